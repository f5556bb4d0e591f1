"""The status of a KafkaMigration, folded in one place from what was decided and seen in a pass."""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from math import ceil
from typing import NamedTuple

from switchover.answers.observed import Known
from switchover.api.conditions import Condition, ConditionType, set_condition
from switchover.api.kafka_migration import (
    KafkaMigration,
    KafkaMigrationStatus,
    MetadataState,
    NodeMode,
    NodeStatus,
    RestartPace,
)
from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.status import Direction, MoveKind
from switchover.cluster import blocked_writes, names
from switchover.cluster.effects import CreateStates, SetQuota
from switchover.cluster.estimate import rollback_seconds
from switchover.cluster.gates.disks import VOLUMES_KEPT, volumes_on_record
from switchover.cluster.gates.ending import check_zookeeper_unused
from switchover.cluster.gates.on_record import RECORD_HOLDS
from switchover.cluster.gates.operations import BACKUPS_TAKEN
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.cluster.preview import preview
from switchover.cluster.reading import silence
from switchover.cluster.rehearsal.replica_job import measured as rehearsed
from switchover.engine import record
from switchover.engine import status as fold
from switchover.engine.approvals import PREFLIGHT, accepted, begins, on_whose_word, plan_to_approve
from switchover.engine.figures import GROUPS, group_figures
from switchover.engine.gate import Unseen, answered, several
from switchover.engine.pace import Pace, Spent, with_batch
from switchover.engine.plan import Decision
from switchover.engine.position import NodeRecord, Position
from switchover.engine.record import Outlook, shared
from switchover.metadata.parity import MigrationState
from switchover.reasons.cluster import QUORUM_VOLUMES_LOST, VOLUME_REPLACED

# --- on record ------------------------------------------------------------------------------------------------------------
# The Kafka nodes and the pace of restarts on record in a KafkaMigration's status: one place to read, one to fold.

def records_of(status: KafkaMigrationStatus) -> dict[str, NodeRecord]:
    """The record of each node."""
    return {node.name: NodeRecord(node.node_id, node.assigned, node.evicting, node.evictions, node.settled)
            for node in status.nodes}


def nodes_of(at: Position, modes: Mapping[str, str], volumes: Mapping[str, tuple[str, ...]]) -> tuple[NodeStatus, ...]:
    """The nodes on record with the mode each was last seen in and the volumes that hold its data."""
    return tuple(
        NodeStatus(name=name, node_id=record.node_id, assigned=NodeMode(record.assigned),
                   observed=NodeMode(modes.get(name, "")), evicting=record.evicting, evictions=record.evictions,
                   settled=record.settled, volumes=volumes.get(name, ()))
        for name, record in sorted(at.nodes.items())
    )


def volumes_of(status: KafkaMigrationStatus) -> dict[str, tuple[str, ...]]:
    """The volume claims on record of each node."""
    return {node.name: node.volumes for node in status.nodes}


def rehearsed_of(status: KafkaMigrationStatus) -> float | None:
    """Seconds from the claim until dual write on a replica, None where nobody has rehearsed it."""
    return status.rehearsal.seconds if status.rehearsal is not None else None


def paces_of(status: KafkaMigrationStatus) -> Mapping[str, Pace]:
    """The restarts that were measured, by mode."""
    return {item.name.value: Pace(item.batches, item.average_seconds, item.slowest_seconds) for item in status.restarts}


def restarts_of(paces: Mapping[str, Pace]) -> tuple[RestartPace, ...]:
    """The restarts that were measured, to be read again after the operator's own restart."""
    return tuple(
        RestartPace(name=NodeMode(mode), batches=pace.batches, average_seconds=round(pace.average),
                    slowest_seconds=math.ceil(pace.slowest))
        for mode, pace in sorted(paces.items())
    )


# --- measured -------------------------------------------------------------------------------------------------------------
# What is measured of a cluster in the course of its migration: dual write, the named groups, restarts.

class DualWrite(NamedTuple):
    """How far ZooKeeper is behind: records of the metadata log, and seconds since it was written to last."""

    lag: int | None = None
    age: float | None = None


def dual_write(picture: Picture) -> DualWrite:
    """None for what could not be observed, and unless there is dual write: nothing else makes a lag mean something."""
    log, zookeeper, quorum = picture.facts.log, picture.facts.zookeeper, picture.facts.quorum
    node = zookeeper.value.migration if isinstance(zookeeper, Known) else None
    writes = isinstance(log, Known) and log.value.migration_state is MigrationState.MIGRATION
    if not writes or node is None or node.offset < 0:
        return DualWrite()
    written = quorum.value.high_watermark if isinstance(quorum, Known) else -1
    lag = None if written < 0 else max(0, written - 1 - node.offset)
    try:
        return DualWrite(lag, silence(picture))
    except Unseen:
        return DualWrite(lag)


def measured(picture: Picture, restarts: int) -> Mapping[str, int]:
    """The figures of this pass. `restarts` are the pods put on record to be replaced so far."""
    lag, age = dual_write(picture)
    groups = {group.name: (found.value.lag or 0, found.value.stood) for group in picture.spec.gates.groups[:GROUPS]
              if isinstance(found := picture.facts.groups.get(group.name), Known)}
    return {
        **({"DualWriteLag": lag} if lag is not None else {}), **({"DualWriteAge": ceil(age)} if age is not None else {}),
        **dict(group_figures(groups)), "Restarts": restarts}


MOVE, FINALIZE, RELEASE = Step.MOVE_BROKERS, Step.FINALIZE, Step.RELEASE_ZOOKEEPER
STEPS = PLAN.names


def metadata_state(picture: Picture, before: MetadataState) -> MetadataState:
    """The KIP's name for where the metadata is, by the evidence; what cannot be seen now stays as it was."""
    log, zookeeper = picture.facts.log, picture.facts.zookeeper
    step = picture.position.step
    holder = zookeeper.value.controller if isinstance(zookeeper, Known) else None
    if picture.position.direction is Direction.BACKWARD and holder is not None and holder.ephemeral:
        return MetadataState.ZOOKEEPER
    if not isinstance(log, Known) or step not in STEPS:
        return before
    state = log.value.migration_state
    if state is MigrationState.POST_MIGRATION:
        if before is MetadataState.KRAFT or picture.position.finished or zookeeper_is_unused(picture):
            return MetadataState.KRAFT
        return MetadataState.MIGRATION_FINISHED
    if state is MigrationState.MIGRATION:
        return MetadataState.MIGRATION_ACTIVE
    if state is not MigrationState.PRE_MIGRATION or STEPS.index(step) < STEPS.index(Step.ENABLE_MIGRATION):
        return MetadataState.ZOOKEEPER
    if isinstance(zookeeper, Known):
        registered = {node_id for node_id, item in log.value.brokers.items() if item.migrating_zk and not item.fenced}
        if set(picture.brokers.values()) <= registered:
            return MetadataState.MIGRATION_READY
    return MetadataState.MIGRATION_ELIGIBLE


def zookeeper_is_unused(picture: Picture) -> bool:
    """Nothing is connected to any ZooKeeper server that was asked, and each was."""
    return answered(check_zookeeper_unused, picture).outcome == "Pass"


def next_status(migration: KafkaMigration, picture: Picture, decision: Decision, spent: Spent, remaining: float | None,
                seen: Mapping[str, str]) -> KafkaMigrationStatus:
    """The status after this pass; pure, so that the same pass always folds to the same status."""
    old, at, before = migration.status, decision.position, picture.position
    again = at.attempt != old.attempt
    hashed = plan_to_approve(migration, at, STEPS)
    lost = _lost(picture, decision, old)
    believed = not record.is_contradicted(decision)
    can_go_back = believed and not lost and PLAN.can_go_back(at)
    approvals = accepted(migration, before, hashed, PLAN, picture.policy, picture.now)
    own, to_replace = names.controller_pods(migration.spec).keys(), fold.put_on_record_to_be_replaced(before, at)
    volumes, caught_up = volumes_on_record(picture)
    note = "; ".join(filter(None, (
        decision.note, on_whose_word(before, at, approvals), _on_which_backups(picture, at),
        _coordinations_lost(picture, at))))
    befallen = (*_incident(decision), *_dual_write_put_right(picture, decision),
                *(((MoveKind.VOLUME_CAUGHT_UP, caught_up),) if caught_up else ()))
    done = record.has_succeeded(
        decision, old, proven=at.direction is Direction.FORWARD and at.step in AFTER_FINALIZE)
    outlook = Outlook(
        steps=STEPS, final=PLAN.final, succeeded=done, success="the cluster runs on KRaft",
        proof="every controller is finalized and the metadata log says POST_MIGRATION",
        lost=lost, believed=believed, can_go_back=can_go_back,
        back_seconds=rollback_seconds(picture.at(at)) if can_go_back else 0.0,
        measured=measured(picture, old.broker_restarts + old.controller_restarts + len(to_replace)))
    common = shared(migration, picture, decision, outlook, hashed, approvals, spent, remaining, note, befallen)
    return KafkaMigrationStatus(**{
        **common,
        "metadata_state": metadata_state(picture, old.metadata_state),
        "cluster_id": fold.cluster_of(old, cluster_id(picture)),
        "high_watermark": -1 if again else _high_watermark(old.high_watermark, picture),
        "migration_node": "" if again else _migration_node(old.migration_node, picture),
        "nodes": nodes_of(at, seen, volumes),
        "broker_restarts": old.broker_restarts + len(to_replace - own),
        "controller_restarts": old.controller_restarts + len(to_replace & own),
        "rehearsal": rehearsed(picture) or (None if again else old.rehearsal),
        "restarts": restarts_of(with_batch(picture.paces, before, at, spent.batch)),
        "plan": (preview(picture) or old.plan) if before.step == PREFLIGHT else old.plan,
        "conditions": _with_zookeeper_removable(
            common["conditions"], migration, picture, done and _zookeeper_released(decision), decision.position),
    })


def telling(status: KafkaMigrationStatus) -> tuple[object, ...]:
    """What makes a status worth writing before its heartbeat is due; figures alone do not."""
    return (
        *record.telling(status),
        status.metadata_state,
        status.nodes,
        status.migration_node,
        status.plan and status.plan.evolve(estimated_completion_time=None),
    )


AFTER_FINALIZE = STEPS[STEPS.index(FINALIZE) + 1:]
"""Finalize is proven before them: they only hand over. Of a step of a later version it cannot be known."""


def _lost(picture: Picture, decision: Decision, before: KafkaMigrationStatus) -> str:
    """The step from which no rollback is possible: by the metadata log, and by the record as far as it is believed."""
    log = picture.facts.log
    if isinstance(log, Known) and log.value.migration_state is MigrationState.POST_MIGRATION:
        return FINALIZE
    if record.is_contradicted(decision):
        return ""
    if _finalize_begun(decision):
        return FINALIZE
    return "" if isinstance(log, Known) and decision.position.step in STEPS else before.rollback.lost_at_step


def _finalize_begun(decision: Decision) -> bool:
    at = decision.position
    return at.step in AFTER_FINALIZE or (at.step == FINALIZE and at.opened is not None)


def _high_watermark(before: int, picture: Picture) -> int:
    log, quorum = picture.facts.log, picture.facts.quorum
    if isinstance(log, Known) and isinstance(quorum, Known) and log.value.migration_state is MigrationState.MIGRATION:
        return max(before, quorum.value.high_watermark)
    return before


def _migration_node(before: str, picture: Picture) -> str:
    """`/migration` as the stopped controllers left it, so that a person could write it again."""
    at, zookeeper = picture.position, picture.facts.zookeeper
    stopped = all(at.nodes[name].assigned == NodeMode.STOPPED for name in picture.controllers if name in at.nodes)
    if at.direction is Direction.FORWARD or not stopped or not isinstance(zookeeper, Known):
        return before
    node = zookeeper.value.migration
    if node is None:
        return before
    return f"controller {node.controller_id}, offset {node.offset}, epoch {node.epoch}"


def cluster_id(picture: Picture) -> str:
    return picture.facts.zookeeper.value.cluster_id if isinstance(picture.facts.zookeeper, Known) else ""


def _on_which_backups(picture: Picture, at: Position) -> str:
    """Which backups there are, noted at the point of no return."""
    return BACKUPS_TAKEN.check(picture).message if at.step == FINALIZE and begins(picture.position, at) else ""


def _coordinations_lost(picture: Picture, at: Position) -> str:
    """Which groups' coordination cannot go back any more, noted when the first broker is about to leave ZooKeeper."""
    known = picture.facts.group_migrations
    if at.step != MOVE or not begins(picture.position, at) or not isinstance(known, Known) or not known.value:
        return ""
    named = sorted(str(each) for found in known.value.values() for each in found)
    return f"{several(named)} cannot go back to ZooKeeper from here: old consumers find no broker on KRaft"


def _incident(decision: Decision) -> Iterator[tuple[MoveKind, str]]:
    """What befell the volumes."""
    found = decision.judged.get(VOLUMES_KEPT.name)
    if found is not None and found.verdict.reason in (VOLUME_REPLACED.name, QUORUM_VOLUMES_LOST.name):
        yield MoveKind.INCIDENT, f"incident: {found.verdict.message} (now {found.verdict.observed})"


def _dual_write_put_right(picture: Picture, decision: Decision) -> Iterator[tuple[MoveKind, str]]:
    """What is changed in the user's metadata."""
    if any(isinstance(effect, SetQuota) for effect in decision.effects):
        found = ", ".join(blocked_writes.changed_quota(each) for each in blocked_writes.unwritable_quotas(picture))
        yield MoveKind.DUAL_WRITE_REPAIRED, f"dual write stood still: {found}"
    elif any(isinstance(effect, CreateStates) for effect in decision.effects):
        found = blocked_writes.named_states(blocked_writes.missing_states(picture))
        yield MoveKind.DUAL_WRITE_REPAIRED, f"dual write stood still: states created in ZooKeeper for {found}"


def _zookeeper_released(decision: Decision) -> bool:
    """The plan's end, and nobody was seen to use ZooKeeper since."""
    at, found = decision.position, decision.judged.get(RECORD_HOLDS.name)
    return at.step == RELEASE and at.finished and found is not None and found.verdict.outcome != "Wait"


def _with_zookeeper_removable(conditions: tuple[Condition, ...], migration: KafkaMigration, picture: Picture,
                              released: bool, at: Position) -> tuple[Condition, ...]:
    """True only with the record of a broker and a controller that were restarted while ZooKeeper was stopped."""
    removable = released and at.batches_done > 1
    reason, message = "NotYet", ""
    if removable:
        reason, message = "Proven", ("a broker and a controller were restarted while ZooKeeper was stopped, and came"
                                     " back: ZooKeeper's StatefulSet, Services and volume claims may be deleted")
    elif released:
        reason, message = "NotProven", ("no broker and controller were restarted while ZooKeeper was stopped: it is shared"
                                        " (spec.zookeeper.shared), or an older release of Switchover ended the migration")
    return set_condition(conditions, ConditionType.ZOOKEEPER_REMOVABLE, removable, reason, message,
                         datetime.fromtimestamp(picture.now, UTC), migration.metadata.generation)
