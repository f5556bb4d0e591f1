"""The status of a ConsumerGroupMigration, folded in one place from what was decided and seen in a pass."""

from collections.abc import Mapping

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import (
    ConsumerGroupMigration,
    ConsumerGroupMigrationStatus,
    GroupSummary,
    Slot,
    SlotMode,
)
from switchover.api.consumer_group_migration import ConsumerGroupMigrationStep as Name
from switchover.api.status import Direction
from switchover.engine import record
from switchover.engine.approvals import accepted, on_whose_word, plan_to_approve
from switchover.engine.figures import group_figures
from switchover.engine.pace import Spent
from switchover.engine.plan import Decision
from switchover.engine.position import NodeRecord, Position
from switchover.engine.record import Outlook, shared
from switchover.engine.status import cluster_of
from switchover.groups.facts import GroupSample
from switchover.groups.picture import Picture
from switchover.groups.plan import plan_of
from switchover.groups.slots import moves_left
from switchover.kafka.group import MemberProtocol

BACK_SECONDS = 30.0
"""Assumed of one pod in a rollback, before one was measured."""


def records_of(status: ConsumerGroupMigrationStatus) -> dict[str, NodeRecord]:
    """The record of each slot."""
    return {slot.name: NodeRecord(int(slot.name.rpartition("/")[2]), slot.assigned, slot.evicting, slot.evictions,
                                  slot.settled) for slot in status.slots}


def next_status(migration: ConsumerGroupMigration, picture: Picture, decision: Decision, spent: Spent,
                remaining: float | None, seen: Mapping[str, str]) -> ConsumerGroupMigrationStatus:
    """The status after this pass; pure, so that the same pass always folds to the same status."""
    at, before, plan = decision.position, picture.position, plan_of(picture.spec)
    steps = plan.names
    hashed = plan_to_approve(migration, at, steps)
    begun = at.step == Name.HAND_OVER and (at.opened is not None or at.finished)
    believed = not record.is_contradicted(decision)
    lost = Name.HAND_OVER if begun and believed else ""
    approvals = accepted(migration, before, hashed, plan, picture.policy, picture.now)
    done = record.has_succeeded(
        decision, migration.status, proven=at.direction is Direction.FORWARD and at.finished)
    outlook = Outlook(
        steps=steps, final=plan.final, succeeded=done,
        success="every member of the group has moved", proof="the group is healthy with every member moved",
        lost=lost, believed=believed, can_go_back=believed and not lost and plan.can_go_back(at),
        back_seconds=BACK_SECONDS * moves_left(picture.at(at)), measured=_measured(picture))
    note = "; ".join(filter(None, (decision.note, on_whose_word(before, at, approvals))))
    common = shared(migration, picture, decision, outlook, hashed, approvals, spent, remaining, note)
    return ConsumerGroupMigrationStatus(**{
        **common, "cluster_id": cluster_of(migration.status, cluster_id(picture)), "slots": _slots(at, seen),
        "group": _summary(picture) or migration.status.group})


def telling(status: ConsumerGroupMigrationStatus) -> tuple[object, ...]:
    """What makes a status worth writing before its heartbeat is due; figures alone do not."""
    group = status.group
    return (*record.telling(status), status.slots, group and (
        group.type, group.state, group.coordinator, group.members, group.mode, group.old_members, group.baseline))


def _slots(at: Position, seen: Mapping[str, str]) -> tuple[Slot, ...]:
    return tuple(
        Slot(name=name, assigned=SlotMode(item.assigned), observed=SlotMode(seen.get(name, "")), evicting=item.evicting,
             evictions=item.evictions, settled=item.settled)
        for name, item in sorted(at.nodes.items(), key=lambda each: (each[0].rpartition("/")[0], each[1].node_id)))


def _summary(picture: Picture) -> GroupSummary | None:
    group, samples = picture.facts.group, picture.facts.samples
    if not isinstance(group, Known):
        return None
    found = group.value
    return GroupSummary(
        type=found.type, state=found.state, members=len(found.members), assignor=found.assignor,
        coordinator=found.coordinator, mode=_mode(picture), old_members=_old_members(picture),
        classic_members=sum(member.protocol is MemberProtocol.CLASSIC for member in found.members),
        lag=_lag(samples.value[-1]) if isinstance(samples, Known) and samples.value else 0,
        baseline=_baseline(picture))


def _measured(picture: Picture) -> Mapping[str, int]:
    """The figures of this pass."""
    found = picture.facts.samples
    if not isinstance(found, Known) or not found.value:
        return {}
    return dict(group_figures({picture.spec.group: (_lag(found.value[-1]), found.value[-1].stood)}))


def _lag(sample: GroupSample) -> int:
    return sum(max(0, end - committed) for committed, end in sample.offsets.values() if committed is not None)


def _baseline(picture: Picture) -> str:
    """Of how many partitions a baseline tells; "" where none is wanted."""
    wanted, lag = picture.spec.gates.baseline_ref, picture.facts.lag
    if wanted is None:
        return ""
    if not isinstance(picture.facts.baseline, Known) or isinstance(picture.facts.baseline.value, str):
        return f"{wanted.name} cannot be used"
    if not isinstance(lag, Known):
        return f"{wanted.name}, not used yet"
    judged = lag.value.judged.baseline[lag.value.rows]
    return f"{wanted.name} tells of {int(judged.sum())} of {len(judged)} partitions"


def _mode(picture: Picture) -> str:
    members = picture.members
    followed = members.value.followed if isinstance(members, Known) else frozenset()
    return "mixed" if len(followed) > 1 else next(iter(followed), "")


def _old_members(picture: Picture) -> int:
    return len(picture.members.value.world.old) if isinstance(picture.members, Known) else 0


def cluster_id(picture: Picture) -> str:
    return picture.facts.cluster_id.value if isinstance(picture.facts.cluster_id, Known) else ""
