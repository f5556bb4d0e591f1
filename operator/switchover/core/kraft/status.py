"""The status of a KafkaMigration, folded in one place from what was decided and seen in a pass."""

from collections.abc import Mapping
from datetime import UTC, datetime

from switchover.api.conditions import Condition, ConditionType, set_condition
from switchover.api.kafka_migration import KafkaMigration, KafkaMigrationStatus, MetadataState
from switchover.api.meta import DesiredState, ReadinessPolicy
from switchover.api.status import AcceptedApproval, Direction, Finding, Phase, Rollback, Severity, Transition
from switchover.core import status as fold
from switchover.core.kraft import names
from switchover.core.kraft.estimate import rollback_seconds
from switchover.core.kraft.facts import MigrationState
from switchover.core.kraft.gates.backups import check_backups_taken
from switchover.core.kraft.gates.ending import check_zookeeper_unused
from switchover.core.kraft.gates.volumes import VOLUMES_KEPT, volumes_on_record
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.plan import PLAN, plan_hash
from switchover.core.kraft.preview import preview
from switchover.core.observed import Known
from switchover.core.pace import Spent, with_batch
from switchover.core.plan import Decision
from switchover.core.position import Position

PREFLIGHT, FINALIZE, RELEASE = "Preflight", "Finalize", "ReleaseZooKeeper"
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
    old, at, now = migration.status, decision.position, picture.now
    waiting = () if at.finished else fold.waiting_of(decision.judged)
    again = at.attempt != old.attempt
    hashed = _plan_hash(migration, picture.uid, at)
    lost = old.rollback.lost_at_step or (FINALIZE if _finalize_begun(decision) else "")
    can_go_back = not lost and PLAN.can_go_back(at)
    first = waiting[0] if waiting else None
    findings = fold.findings_of(decision.judged) if picture.position.step == PREFLIGHT else old.findings
    approvals = _accepted(migration, at, hashed, now)
    own, to_replace = names.controller_pods(migration.spec).keys(), fold.put_on_record_to_be_replaced(picture.position, at)
    volumes, caught_up = volumes_on_record(picture)
    note = "; ".join(filter(None, (
        decision.note + _on_whose_word(picture, at, approvals), _incident(decision, old.history), caught_up)))
    return KafkaMigrationStatus(
        observed_generation=migration.metadata.generation,
        phase=_phase(migration, decision),
        attempt=at.attempt,
        plan_hash=hashed,
        metadata_state=metadata_state(picture, old.metadata_state),
        cluster_id=old.cluster_id or _cluster_id(picture),
        high_watermark=-1 if again else _high_watermark(old.high_watermark, picture),
        migration_node="" if again else _migration_node(old.migration_node, picture),
        nodes=fold.nodes_of(at, seen, volumes),
        broker_restarts=old.broker_restarts + len(to_replace - own),
        controller_restarts=old.controller_restarts + len(to_replace & own),
        progress=fold.progress_of(at, old.progress, STEPS, spent, remaining, now),
        waiting_for=waiting[: fold.WAITING_SHOWN],
        waiting_for_count=len(waiting),
        waiting_for_summary="" if first is None else f"{first.reason} {first.subject}".strip(),
        gates=fold.streaks_of(decision.judged),
        rollback=Rollback(
            available=can_go_back, estimated_seconds=round(rollback_seconds(picture.at(at))) if can_go_back else None,
            lost_at_step=lost, failure=at.failure),
        approvals=approvals,
        restarts=fold.restarts_of(with_batch(picture.paces, picture.position, at, spent.batch)),
        steps=fold.steps_of(old.steps, picture.position, at, now),
        history=fold.history_of(old.history, picture.position, at, note, now),
        plan=(preview(picture) or old.plan) if picture.position.step == PREFLIGHT else old.plan,
        findings=findings,
        conditions=_conditions(migration, picture, decision, lost, findings),
    )


def invalid_status(migration: Mapping[str, object], generation: int, why: str, now: float) -> dict[str, object]:
    """The status of an object whose spec the operator refuses, in words."""
    at = datetime.fromtimestamp(now, UTC)
    conditions: tuple[Condition, ...] = ()
    conditions = set_condition(conditions, ConditionType.READY, False, "InvalidSpec", why, at, generation)
    conditions = set_condition(conditions, ConditionType.STALLED, True, "InvalidSpec", why, at, generation)
    kept = migration.get("status")
    return {
        **(kept if isinstance(kept, dict) else {}),
        "observedGeneration": generation,
        "phase": Phase.STALLED.value,
        "waitingForSummary": "InvalidSpec",
        "conditions": [condition.manifest() for condition in conditions],
    }


def telling(status: KafkaMigrationStatus) -> tuple[object, ...]:
    """What makes a status worth writing before its heartbeat is due; figures alone do not."""
    return (
        status.observed_generation,
        status.phase,
        status.plan_hash,
        status.metadata_state,
        status.nodes,
        status.approvals,
        status.migration_node,
        status.plan and status.plan.evolve(estimated_completion_time=None),
        (status.rollback.available, status.rollback.lost_at_step, status.rollback.failure),
        [(item.code, item.severity, item.subject) for item in status.findings],
        [(item.gate, item.verdict, item.reason, item.subject) for item in status.waiting_for],
        [(item.type, item.status, item.reason) for item in status.conditions],
    )


AFTER_FINALIZE = STEPS[STEPS.index(FINALIZE) + 1:]
"""A step of a later version is not among them: what it means cannot be known here."""


def _finalize_begun(decision: Decision) -> bool:
    at = decision.position
    return at.step in AFTER_FINALIZE or (at.step == FINALIZE and at.opened is not None)


def succeeded(decision: Decision) -> bool:
    """Finalize is proven: the steps that follow only hand over."""
    at = decision.position
    return at.direction is Direction.FORWARD and at.step in AFTER_FINALIZE


def _phase(migration: KafkaMigration, decision: Decision) -> Phase:
    at = decision.position
    if migration.metadata.deletion_timestamp is not None:
        return Phase.TERMINATING
    if at.direction is Direction.BACKWARD:
        return Phase.ROLLED_BACK if at.finished else Phase.STALLED if decision.stalled else Phase.ROLLING_BACK
    if succeeded(decision):
        return Phase.SUCCEEDED
    if decision.stalled is not None:
        return Phase.STALLED
    if migration.spec.desired_state is DesiredState.PLANNED and at.step == PREFLIGHT:
        return Phase.PLANNED
    if migration.spec.desired_state is DesiredState.PAUSED:
        return Phase.PAUSED
    return Phase.AWAITING_APPROVAL if "Approval" in decision.judged else Phase.RUNNING


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


def _accepted(migration: KafkaMigration, at: Position, hashed: str, now: float) -> tuple[AcceptedApproval, ...]:
    """The approvals for this plan. One that is changed or taken back counts so until its step begins; then it is history."""
    before = [item for item in migration.status.approvals if item.plan_hash == hashed]
    accepted = {item.name: item for item in before if _begun(at, item.name)}
    known = {(item.name, item.approver, item.reason): item for item in before}
    for given in migration.spec.approvals:
        if given.plan_hash == hashed and given.name not in accepted:
            accepted[given.name] = known.get((given.name, given.approver, given.reason)) or AcceptedApproval(
                name=given.name, plan_hash=given.plan_hash, approver=given.approver, reason=given.reason,
                accepted_time=datetime.fromtimestamp(now, UTC))
    return tuple(accepted.values())


def _begun(at: Position, step: str) -> bool:
    if at.step == step:
        return at.opened is not None
    return step in STEPS and at.step in STEPS and STEPS.index(step) < STEPS.index(at.step)


def _on_whose_word(picture: Picture, at: Position, approvals: tuple[AcceptedApproval, ...]) -> str:
    """Who let the step begin and, at the point of no return, which backups there are; "" when none begins in this pass."""
    if at.opened is None or picture.position.opened is not None or at.direction is Direction.BACKWARD:
        return ""
    words = [f"approved by {item.approver}" + (f" ({item.reason})" if item.reason else "")
             for item in approvals if item.name == at.step]
    if at.step == FINALIZE:
        words.append(check_backups_taken(picture).message)
    return "".join(f"; {item}" for item in words)


def _incident(decision: Decision, history: tuple[Transition, ...]) -> str:
    """What befell the volumes, told once; "" when nothing did."""
    found = decision.judged.get(VOLUMES_KEPT.name)
    if found is None or found.verdict.reason not in ("VolumeReplaced", "QuorumVolumesLost"):
        return ""
    told = f"incident: {found.verdict.message} (now {found.verdict.observed})"
    return "" if any(told in item.message for item in history) else told


def _conditions(migration: KafkaMigration, picture: Picture, decision: Decision, lost: str,
                findings: tuple[Finding, ...]) -> tuple[Condition, ...]:
    at, now = decision.position, datetime.fromtimestamp(picture.now, UTC)
    generation = migration.metadata.generation
    conditions = migration.status.conditions

    def put(kind: ConditionType, value: bool, reason: str, message: str = "") -> None:
        nonlocal conditions
        conditions = set_condition(conditions, kind, value, reason, message, now, generation)

    done, stalled = succeeded(decision), decision.stalled
    awaiting = decision.judged.get("Approval")
    standing = at.finished or done
    if stalled is not None and not standing:
        put(ConditionType.STALLED, True, stalled.verdict.reason, stalled.verdict.message)
    else:
        put(ConditionType.STALLED, False, "Progressing", "")
        put(ConditionType.RECONCILING, not standing, "Completed" if standing else at.step, decision.note)
    on_acceptance = migration.spec.readiness_policy is ReadinessPolicy.ON_ACCEPTANCE and at.step != PREFLIGHT
    ready = done or on_acceptance
    put(ConditionType.READY, ready, "Succeeded" if done else "Accepted" if ready else at.step,
        "the cluster runs on KRaft" if done else "")
    put(ConditionType.SUCCEEDED, done, "Finalized" if done else "NotFinalized",
        "every controller is finalized and the metadata log says POST_MIGRATION" if done else "")
    paused = migration.spec.desired_state is DesiredState.PAUSED
    put(ConditionType.PAUSED, paused, "DesiredState", "spec.desiredState is Paused" if paused else "")
    put(ConditionType.AWAITING_APPROVAL, awaiting is not None, "Hold" if awaiting else "NoHold",
        awaiting.verdict.message if awaiting else "")
    available = not lost and PLAN.can_go_back(at)
    put(ConditionType.ROLLBACK_AVAILABLE, available,
        "CanGoBack" if available else "PointOfNoReturn" if lost else "UndoNotAvailable",
        "" if available else f"lost at {lost}" if lost else "this version cannot take every step back yet")
    passed = at.step != PREFLIGHT
    blocked = any(finding.severity is Severity.BLOCKER for finding in findings)
    put(ConditionType.PREFLIGHT_PASSED, passed, "Passed" if passed else "Findings" if blocked else "Checking",
        fold.summary_of(findings))
    removable = at.step == RELEASE and at.finished
    put(ConditionType.ZOOKEEPER_REMOVABLE, removable, "Unused" if removable else "NotYet",
        "nothing of this cluster uses ZooKeeper: its StatefulSet, Services and volume claims may be deleted"
        if removable else "")
    return conditions
