"""Whether the group goes on, and keeps up.

Commits move wherever there is something to commit, never back. The lag is judged by the kernel: age of the oldest
uncommitted record, never a number of records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from switchover.answers.observed import Known
from switchover.api.status import Verdict as Outcome
from switchover.engine.gate import Gate, Verdict, fail, passed, seen, wait
from switchover.groups.facts import GroupSample
from switchover.groups.picture import Picture
from switchover.groups.reading import group_of, offsets_of, pods_of
from switchover.lag.group import TopicPartition
from switchover.lag.sentences import missing, preconditions, sentence
from switchover.lag.thresholds import Thresholds, of_a_migration
from switchover.lag.verdicts import Effect
from switchover.lag.watch import Assessment
from switchover.reasons.groups import (
    BASELINE_UNKNOWN,
    BASELINE_UNUSABLE,
    COMMIT_WENT_BACK,
    LAG_NOT_HEALTHY_YET,
    LAG_NOT_SEEN_YET,
    LAG_UNHEALTHY,
    LAG_UNKNOWN,
    NO_PROGRESS_YET,
    PARTITION_STALLED,
)

Offsets = Mapping[TopicPartition, tuple[int | None, int]]


def _owner(picture: Picture, partition: TopicPartition) -> str:
    group = picture.facts.group
    return next((f": {each.client_id} at {each.host}" for each in group.value.members if partition in each.assigned),
                "") if isinstance(group, Known) else ""


def check_goes_on(picture: Picture) -> Verdict:
    """No partition stands still for longer than spec.gates.maxStallSeconds, and no committed offset goes back."""
    found = offsets_of(picture)
    for earlier, later in pairwise(sample for sample in found if sample.at >= picture.position.entered):
        for partition, (committed, _) in later.offsets.items():
            before = earlier.offsets.get(partition, (None, 0))[0]
            if committed is not None and before is not None and committed < before:
                return fail(COMMIT_WENT_BACK, f"the committed offset of {partition} went back", subject=str(partition),
                            observed=committed, threshold=f"at least {before}",
                            unblocks="find the member that commits an older offset; records from there on may be"
                                     " delivered twice")
    limit = float(picture.spec.gates.max_stall_seconds)
    for partition, stood in sorted(found[-1].stood.items()):
        if stood > limit:
            return fail(PARTITION_STALLED, f"{partition} has records, and no commit",
                        subject=str(partition), observed=f"{stood:.0f} s", threshold=f"{limit:.0f} s",
                        unblocks=f"look at the log of the member that owns it{_owner(picture, partition)}")
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


POLL = 5_000
"""Milliseconds between two sweeps while a group is migrated."""


def thresholds(picture: Picture) -> Thresholds:
    """What the user allows."""
    gates = picture.spec.gates
    return of_a_migration(
        POLL, gates.max_time_lag_seconds * 1000, gates.max_stall_seconds * 1000, gates.lag_pass_seconds * 1000)


def check_lag(picture: Picture) -> Verdict:
    return _check_baseline(picture) or _check_lag(picture)


def _check_baseline(picture: Picture) -> Verdict | None:
    """None: there is one, or none is wanted."""
    if (wanted := picture.spec.gates.baseline_ref) is None:
        return None
    found = seen(picture.facts.baseline, BASELINE_UNKNOWN, wanted.name, saying=f"ConfigMap {wanted.name} cannot be read: ")
    if isinstance(found, str):
        return wait(BASELINE_UNUSABLE, f"ConfigMap {wanted.name}: {found}", subject=wanted.name,
                    unblocks="apply the ConfigMap that the pipeline's job baseline wrote for this group, or take "
                             "gates.baselineRef out of the spec")
    return None


def _check_lag(picture: Picture) -> Verdict:
    lag = seen(picture.facts.lag, LAG_UNKNOWN, picture.spec.group)
    effect, why = lag.gate.effect, _worst(lag)
    if effect is Effect.PASS:
        return passed(f"group {picture.spec.group} keeps up")
    used_to = "" if picture.spec.gates.baseline_ref is None else "what the baseline tells, at most "
    allowed = f"{used_to}{picture.spec.gates.max_time_lag_seconds} s for {picture.spec.gates.lag_pass_seconds} s"
    if effect is Effect.FAIL:
        return fail(LAG_UNHEALTHY, why, subject=picture.spec.group, threshold=allowed,
                    unblocks="look at the logs of the members that own these partitions")
    if effect is Effect.INCONCLUSIVE and lag.evaluation.effect is Effect.INCONCLUSIVE:
        return wait(LAG_NOT_SEEN_YET, why, subject=picture.spec.group, threshold=allowed,
                    unblocks="it needs a few more samples; if they fail, the operator's log says why")
    return wait(LAG_NOT_HEALTHY_YET, why, subject=picture.spec.group, threshold=allowed, unblocks="the group catches up")


def check_recovered(picture: Picture) -> Verdict:
    """After a stop of all members a backlog is there by right: one that does not shrink the step's patience tells."""
    found = check_lag(picture)
    return replace(found, outcome=Outcome.WAIT) if found.outcome is Outcome.FAIL else found


def _worst(lag: Assessment) -> str:
    """The partition that is worst off; else what else must be true, else how long it has passed."""
    if lag.reading.why:
        return lag.reading.why
    found = list(preconditions(lag.group))
    if lag.evaluation.missing:
        found.append(missing(lag.evaluation.missing[0]))
    rows = [row for row, each in enumerate(lag.partitions) if each in lag.group.expected]
    if rows and (worst := max(rows, key=lambda row: int(lag.judged.effect[row]))) is not None \
            and int(lag.judged.effect[worst]) > int(Effect.PASS):
        found.append(sentence(lag.partitions[worst], lag.judged, worst))
    passing = int(np.count_nonzero(lag.judged.effect == Effect.PASS))
    return "; ".join(found) or f"{passing} partitions are well, and must stay so"


LAG_HEALTHY: Gate[Picture] = Gate("LagHealthy", check_lag)
LAG_RECOVERED: Gate[Picture] = Gate("LagRecovered", check_recovered)
