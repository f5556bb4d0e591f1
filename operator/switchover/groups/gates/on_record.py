"""The step on record against what is seen: a status is a record, not an order, and anybody may have written it.

What lasts of a step is on the workloads: the claim, what is stored of them and their templates; of a toggle it is the mode
in ZooKeeper. Steps that move pods look at these themselves, in every pass (`gates/workloads.py`).
"""

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import ConsumerGroupMigrationStep as Name
from switchover.api.consumer_group_migration import Workload, WorkloadKind
from switchover.api.status import Direction
from switchover.api.status import Verdict as Outcome
from switchover.coordination.mode import Mode
from switchover.engine.gate import Gate, Verdict, fail, passed
from switchover.engine.record import RECORD
from switchover.groups.coordination import membership as coordinated
from switchover.groups.gates import membership
from switchover.groups.gates.protocol import check_selected
from switchover.groups.gates.workloads import not_claimed
from switchover.groups.picture import INTERMEDIATE, ORIGINAL, TARGET, Picture
from switchover.groups.reading import fleet_of, members_of
from switchover.groups.workloads import autoscalers, change
from switchover.kubernetes import names
from switchover.kubernetes.members import MemberWorkload
from switchover.reasons.walk import RECORD_CONTRADICTED
from switchover.text.command import kubectl

TO_INTERMEDIATE = {Name.BRIDGE_CANARY, Name.BRIDGE, Name.BOUNCE_ONE_CANARY, Name.BOUNCE_ONE}
PUT_BACK = "put back the step that was on record (status.history has the moves), or what was changed"


def _contradicted(picture: Picture, workload: Workload, seen: str, unblocks: str = PUT_BACK) -> Verdict:
    message = (f"the status says {picture.position.step} and {workload.kind} {workload.name} {seen}: one of the two was"
               " changed by something else")
    return fail(RECORD_CONTRADICTED, message, subject=workload.name, observed=seen,
                threshold="what the steps before leave behind", unblocks=unblocks)


def check_record_holds(picture: Picture) -> Verdict:
    """The step on record is where the workloads are."""
    at = picture.position
    if at.step == Name.HAND_OVER:
        fleet_of(picture)
    elif not isinstance(picture.facts.fleet, Known):
        return passed("not read: nothing is done without it")
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        found = _find(picture, workload, source.value) if isinstance(source, Known) else None
        if found is not None:
            return found
    if at.step != Name.HAND_OVER or picture.spec.coordination is None or at.finished:
        return passed("the workloads say so too")
    members, after = members_of(picture), Mode.KAFKA if picture.spec.coordination.to == "Kafka" else Mode.ZOOKEEPER
    if (members.world.mode or Mode.ZOOKEEPER) is not after:
        return _contradicted(picture, picture.spec.workloads[0], f"belongs to a group whose mode is not {after}")
    return passed("workloads and mode say so too")


def _find(picture: Picture, workload: Workload, source: MemberWorkload) -> Verdict | None:
    at, ours = picture.position, source.claimed_by == picture.uid
    if ours and _is_of_an_older_operator(picture, workload):
        return _contradicted(picture, workload, "was recorded by an older operator, which moves its pods through a"
                             f" Deployment {workload.name}-switchover",
                             "let the version that began it end it or roll it back")
    if (foreign := _is_foreign(picture, workload, source)) is not None:
        return foreign
    if at.step == Name.PREFLIGHT:
        return _contradicted(picture, workload, "is claimed by this migration") if ours else None
    if at.step == Name.HAND_OVER:
        return _find_at_the_end(picture, workload, ours=ours)
    if at.step == Name.BASELINE:
        if not ours:
            return None
        return _find_lost(picture, workload, source) or (
            _find_left(picture, workload, (TARGET, INTERMEDIATE)) if at.direction is Direction.BACKWARD
            else _find_stopped(picture, workload, source))
    if at.direction is Direction.BACKWARD or at.step == Name.START:     # a lost claim must not keep pods away
        return not_claimed(picture, source) if source.claimed_by and not ours else None
    if not ours:
        return not_claimed(picture, source)
    if not _is_stored(picture, workload):
        return _contradicted(picture, workload, "has no stored original")
    return _find_left(picture, workload, (TARGET,)) if at.step in TO_INTERMEDIATE else None


def _find_lost(picture: Picture, workload: Workload, source: MemberWorkload) -> Verdict | None:
    """What was stored is gone, and what would be stored now, or given back, is what this migration has made of it."""
    name = change.original_name(workload.kind, workload.name, picture.uid, picture.position.attempt)
    proof = picture.made.get(f"ControllerRevision {name}")
    changed = picture.position.direction is Direction.BACKWARD or any(map(autoscalers.is_set, source.autoscalers))
    if proof is None or not changed or _is_stored(picture, workload) or proof == names.digest(change.data_of(source)):
        return None
    return _contradicted(picture, workload, f"has lost ControllerRevision {name}, which stored what it was",
                         "put it back from a backup; without one, set workload and autoscalers as they were")


def _find_stopped(picture: Picture, workload: Workload, source: MemberWorkload) -> Verdict | None:
    """What a later step stopped: Baseline moves no pod."""
    protocol, original = picture.spec.protocol, fleet_of(picture).originals.get(workload.name)
    if protocol is None or protocol.strategy != "Offline" or original is None or source.replicas:
        return None
    return _contradicted(picture, workload, f"has no pods, of {original['replicas']}") if original.get("replicas") else None


def _find_at_the_end(picture: Picture, workload: Workload, *, ours: bool) -> Verdict | None:
    """Until it is handed over every pod is of the target; afterwards what is stored of it says whose it was."""
    finished = picture.position.finished
    if not finished and ours and (found := _find_left(picture, workload, (ORIGINAL, INTERMEDIATE))) is not None:
        return found
    if finished and ours:
        return _contradicted(picture, workload, "is claimed still")
    if _is_stored(picture, workload):
        return None
    moved = _moved(picture) if finished else None
    if moved is not None and moved.outcome in (Outcome.PASS, Outcome.UNKNOWN):
        return None if moved.outcome is Outcome.PASS else moved
    return _contradicted(picture, workload, "has no stored original")


def _find_left(picture: Picture, workload: Workload, modes: tuple[str, ...]) -> Verdict | None:
    """A template or pod of a mode that no step before this one leaves or makes."""
    if not picture.replaces or not _is_stored(picture, workload):
        return None
    if (live := picture.live_mode(workload.name)) in modes:
        return _contradicted(picture, workload, f"has its {live.lower()} template")
    left = [(pod.name, mode) for name, mode, pod in picture.pods()
            if name == workload.name and mode in modes and not pod.terminating]
    return _contradicted(picture, workload, f"has pod {left[0][0]} of its {left[0][1].lower()} template") if left else None


def _is_stored(picture: Picture, workload: Workload) -> bool:
    return fleet_of(picture).originals.get(workload.name) is not None


def _is_foreign(picture: Picture, workload: Workload, source: MemberWorkload) -> Verdict | None:
    """What is stored must be what was written. Where no record of this release tells, it must be what the workload is, as
    long as nothing of that was changed."""
    name = change.original_name(workload.kind, workload.name, picture.uid, picture.position.attempt)
    stored = fleet_of(picture).originals.get(workload.name)
    proof = picture.made.get(f"ControllerRevision {name}")
    if stored is None or proof == names.digest(stored):
        return None
    if proof is None and (picture.position.step != Name.BASELINE or stored.get("template") == source.template):
        return None
    return _contradicted(
        picture, workload, f"has ControllerRevision {name}, which keeps something else than this migration has put there",
        "put it back from a backup" if proof else
        f"{kubectl(picture.namespace, 'delete controllerrevision {}', name)}; it is written in the next pass")


def _is_of_an_older_operator(picture: Picture, workload: Workload) -> bool:
    stored = fleet_of(picture).originals.get(workload.name)
    return workload.kind is WorkloadKind.DEPLOYMENT and stored is not None and "minReadySeconds" not in stored


def _moved(picture: Picture) -> Verdict:
    """Whether the group is as this migration leaves it, where nothing else tells that it did."""
    if picture.spec.coordination is not None:
        return coordinated.check_all_moved(picture)
    return check_selected(picture) if picture.spec.assignment_strategy is not None else membership.check_all_moved(picture)


RECORD_HOLDS: Gate[Picture] = Gate(RECORD, check_record_holds)
