"""The status of a KafkaMigration, folded in one place from what was decided and seen in a pass."""

from collections.abc import Mapping
from datetime import UTC, datetime

from switchover.api.conditions import Condition, ConditionStatus, ConditionType, find_condition, set_condition
from switchover.api.kafka_migration import KafkaMigration, KafkaMigrationStatus, MetadataState
from switchover.api.status import Direction, Transition
from switchover.core import record
from switchover.core import status as fold
from switchover.core.approvals import accepted, begins, on_whose_word
from switchover.core.intent import PREFLIGHT
from switchover.core.kraft import names
from switchover.core.kraft.estimate import rollback_seconds
from switchover.core.kraft.facts import MigrationState
from switchover.core.kraft.gates.backups import check_backups_taken
from switchover.core.kraft.gates.ending import check_zookeeper_unused
from switchover.core.kraft.gates.on_record import RECORD_HOLDS
from switchover.core.kraft.gates.volumes import VOLUMES_KEPT, volumes_on_record
from switchover.core.kraft.on_record import nodes_of, restarts_of
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.plan import PLAN, plan_hash
from switchover.core.kraft.preflight.reading import several
from switchover.core.kraft.preview import preview
from switchover.core.observed import Known
from switchover.core.pace import Spent, with_batch
from switchover.core.plan import Decision
from switchover.core.position import Position
from switchover.core.record import Outlook, shared

MOVE, FINALIZE, RELEASE = "MoveBrokers", "Finalize", "ReleaseZooKeeper"
STEPS = tuple(step.name for step in PLAN.steps)


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
        if before is MetadataState.KRAFT or zookeeper_is_unused(picture):
            return MetadataState.KRAFT
        return MetadataState.MIGRATION_FINISHED
    if state is MigrationState.MIGRATION:
        return MetadataState.MIGRATION_ACTIVE
    if state is not MigrationState.PRE_MIGRATION or STEPS.index(step) < STEPS.index("EnableMigration"):
        return MetadataState.ZOOKEEPER
    if isinstance(zookeeper, Known):
        registered = {node_id for node_id, item in log.value.brokers.items() if item.migrating_zk and not item.fenced}
        if set(picture.brokers.values()) <= registered:
            return MetadataState.MIGRATION_READY
    return MetadataState.MIGRATION_ELIGIBLE


def zookeeper_is_unused(picture: Picture) -> bool:
    """Nothing is connected to any ZooKeeper server that was asked, and each was."""
    return check_zookeeper_unused(picture).outcome == "Pass"


def next_status(migration: KafkaMigration, picture: Picture, decision: Decision, spent: Spent, remaining: float | None,
                seen: Mapping[str, str]) -> KafkaMigrationStatus:
    """The status after this pass; pure, so that the same pass always folds to the same status."""
    old, at, before = migration.status, decision.position, picture.position
    again = at.attempt != old.attempt
    hashed = _plan_hash(migration, picture.uid, at)
    lost = old.rollback.lost_at_step or (FINALIZE if _finalize_begun(decision) else "")
    can_go_back = not lost and PLAN.can_go_back(at)
    approvals = accepted(migration, at, hashed, STEPS, picture.now)
    own, to_replace = names.controller_pods(migration.spec).keys(), fold.put_on_record_to_be_replaced(before, at)
    volumes, caught_up = volumes_on_record(picture)
    note = "; ".join(filter(None, (
        decision.note, on_whose_word(before, at, approvals), _on_which_backups(picture, at),
        _coordinations_lost(picture, at), _incident(decision, old.history), caught_up)))
    outlook = Outlook(
        steps=STEPS, succeeded=succeeded(decision, old), success="the cluster runs on KRaft",
        proof="every controller is finalized and the metadata log says POST_MIGRATION",
        lost=lost, can_go_back=can_go_back, back_seconds=rollback_seconds(picture.at(at)) if can_go_back else 0.0)
    told = shared(migration, picture, decision, outlook, hashed, approvals, spent, remaining, note)
    return KafkaMigrationStatus(**{
        **told,
        "metadata_state": metadata_state(picture, old.metadata_state),
        "cluster_id": old.cluster_id or _cluster_id(picture),
        "high_watermark": -1 if again else _high_watermark(old.high_watermark, picture),
        "migration_node": "" if again else _migration_node(old.migration_node, picture),
        "nodes": nodes_of(at, seen, volumes),
        "broker_restarts": old.broker_restarts + len(to_replace - own),
        "controller_restarts": old.controller_restarts + len(to_replace & own),
        "restarts": restarts_of(with_batch(picture.paces, before, at, spent.batch)),
        "plan": (preview(picture) or old.plan) if before.step == PREFLIGHT else old.plan,
        "conditions": _with_zookeeper_removable(told["conditions"], migration, picture, at),
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
"""A step of a later version is not among them: what it means cannot be known here."""


def _finalize_begun(decision: Decision) -> bool:
    at = decision.position
    return at.step in AFTER_FINALIZE or (at.step == FINALIZE and at.opened is not None)


def succeeded(decision: Decision, before: KafkaMigrationStatus) -> bool:
    """Finalize is proven: the steps that follow only hand over. What cannot be seen in this pass stays as it was."""
    at, record = decision.position, decision.judged.get(RECORD_HOLDS.name)
    if at.direction is not Direction.FORWARD or at.step not in AFTER_FINALIZE:
        return False
    if record is None or record.verdict.outcome == "Unknown":
        was = find_condition(before.conditions, ConditionType.SUCCEEDED)
        return was is not None and was.status is ConditionStatus.TRUE
    return record.verdict.outcome == "Pass"


def _plan_hash(migration: KafkaMigration, uid: str, at: Position) -> str:
    """None in Preflight, and none after a rollback: until the next plan is on record the whole spec may change."""
    if at.step == PREFLIGHT:
        return "" if at.finished or at.direction is Direction.FORWARD else migration.status.plan_hash
    return migration.status.plan_hash or plan_hash(uid, at.attempt, migration.spec)


def _high_watermark(before: int, picture: Picture) -> int:
    log, quorum = picture.facts.log, picture.facts.quorum
    if isinstance(log, Known) and isinstance(quorum, Known) and log.value.migration_state is MigrationState.MIGRATION:
        return max(before, quorum.value.high_watermark)
    return before


def _migration_node(before: str, picture: Picture) -> str:
    """`/migration` as the stopped controllers left it, so that a person could write it again."""
    at, zookeeper = picture.position, picture.facts.zookeeper
    stopped = all(at.nodes[name].assigned == "Stopped" for name in picture.controllers if name in at.nodes)
    if at.direction is Direction.FORWARD or not stopped or not isinstance(zookeeper, Known):
        return before
    node = zookeeper.value.migration
    if node is None:
        return before
    return f"controller {node.controller_id}, offset {node.offset}, epoch {node.epoch}"


def _cluster_id(picture: Picture) -> str:
    return picture.facts.zookeeper.value.cluster_id if isinstance(picture.facts.zookeeper, Known) else ""


def _on_which_backups(picture: Picture, at: Position) -> str:
    """Which backups there are, told at the point of no return."""
    return check_backups_taken(picture).message if at.step == FINALIZE and begins(picture.position, at) else ""


def _coordinations_lost(picture: Picture, at: Position) -> str:
    """Which coordinations of groups cannot go back any more, told when the first broker is about to leave ZooKeeper."""
    known = picture.facts.group_migrations
    if at.step != MOVE or not begins(picture.position, at) or not isinstance(known, Known) or not known.value:
        return ""
    named = sorted(str(each) for found in known.value.values() for each in found)
    return f"{several(named)} cannot go back to ZooKeeper from here: old consumers find no broker on KRaft"


def _incident(decision: Decision, history: tuple[Transition, ...]) -> str:
    """What befell the volumes, told once; "" when nothing did."""
    found = decision.judged.get(VOLUMES_KEPT.name)
    if found is None or found.verdict.reason not in ("VolumeReplaced", "QuorumVolumesLost"):
        return ""
    told = f"incident: {found.verdict.message} (now {found.verdict.observed})"
    return "" if any(told in item.message for item in history) else told


def _with_zookeeper_removable(conditions: tuple[Condition, ...], migration: KafkaMigration, picture: Picture,
                              at: Position) -> tuple[Condition, ...]:
    removable = at.step == RELEASE and at.finished
    message = "nothing of this cluster uses ZooKeeper: its StatefulSet, Services and volume claims may be deleted"
    return set_condition(
        conditions, ConditionType.ZOOKEEPER_REMOVABLE, removable, "Unused" if removable else "NotYet",
        message if removable else "", datetime.fromtimestamp(picture.now, UTC), migration.metadata.generation)
