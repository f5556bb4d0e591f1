"""Whether the group goes on: commits move wherever there is something to commit, never back."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from switchover.engine.gate import Gate, Verdict, fail, passed, wait
from switchover.groups.facts import GroupSample
from switchover.groups.picture import Picture
from switchover.groups.reading import group_of, offsets_of, pods_of
from switchover.lag.group import TopicPartition
from switchover.reasons.groups import COMMIT_WENT_BACK, NO_PROGRESS_YET, PARTITION_STALLED

Offsets = Mapping[TopicPartition, tuple[int | None, int]]


def check_goes_on(picture: Picture) -> Verdict:
    """No partition stands still for longer than spec.gates.maxStallSeconds, and no committed offset goes back."""
    found = offsets_of(picture)
    for earlier, later in pairwise(sample for sample in found if sample.at >= picture.position.entered):
        for partition, (committed, _) in later.offsets.items():
            before = earlier.offsets.get(partition, (None, 0))[0]
            if committed is not None and before is not None and committed < before:
                return fail(COMMIT_WENT_BACK, f"the committed offset of {partition} went back", subject=str(partition),
                            observed=committed, threshold=f"at least {before}",
                            unblocks="find out which member commits what it has not got, and what that delivers twice")
    limit = float(picture.spec.gates.max_stall_seconds)
    for partition, stood in sorted(found[-1].stood.items()):
        if stood > limit:
            return fail(PARTITION_STALLED, f"nothing of {partition} was committed although it has records",
                        subject=str(partition), observed=f"{stood:.0f} s", threshold=f"{limit:.0f} s",
                        unblocks="look at the member that owns it")
    return passed("every partition that has records goes on")


def check_progressed(picture: Picture) -> Verdict:
    """Every partition that a new pod owns, and that has records, has moved on since the pod owns it."""
    found, group = offsets_of(picture), group_of(picture)
    owned = {pod.name: picture.owned_by(pod) for _, mode, pod in pods_of(picture) if mode == picture.moved_to}
    return progressed(found, group.epoch, owned)


def progressed(found: Sequence[GroupSample], epoch: int, owned: Mapping[str, frozenset[TopicPartition]]) -> Verdict:
    """Each pod in `owned` has committed on all of its partitions that have records, since the group's `epoch` began."""
    since = next((sample for sample in found if sample.epoch == epoch), found[0])
    for pod, partitions in owned.items():
        for partition in sorted(partitions):
            committed, end = found[-1].offsets.get(partition, (None, 0))
            before = since.offsets.get(partition, (None, 0))[0]
            if (committed or 0) < end and (committed is None or (before is not None and committed <= before)):
                return wait(NO_PROGRESS_YET, f"{pod} has not committed on {partition} yet", subject=str(partition),
                            observed=f"{committed} of {end}", threshold="a commit of its own", unblocks="it commits")
    return passed("the new pods consume and commit")


GOES_ON: Gate[Picture] = Gate("GoesOn", check_goes_on)
PROGRESSED: Gate[Picture] = Gate("Progressed", check_progressed)
