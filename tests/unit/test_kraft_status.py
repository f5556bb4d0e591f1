"""The folded status of a KafkaMigration: one phase, conditions that kstatus can read, and no way back once it is lost."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.api.conditions import ConditionType, find_condition
from switchover.api.kafka_migration import KafkaMigration, KafkaMigrationStatus, MetadataState
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Phase, Severity
from switchover.api.status import Verdict as Outcome
from switchover.cluster.facts import Facts
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.cluster.status import metadata_state, next_status, records_of, telling, zookeeper_is_unused
from switchover.engine.approvals import REQUESTER, plan_hash
from switchover.engine.gate import Streak
from switchover.engine.pace import Spent
from switchover.engine.plan import Decision, decide
from switchover.engine.policy import Policy
from switchover.engine.position import Position
from switchover.engine.record import stopped_status
from switchover.engine.status import position_of
from switchover.kubernetes.ports import GroupMigration
from switchover.reasons.walk import DEFECT, INVALID_SPEC, STATUS_UNREADABLE
from unit.pictures import ACTIVE, NOW, POST, PRE, UID, Cluster, migration, moment, spoil, spoil_each, spoil_pod, with_fact
from unit.small_plan import BACKWARD, FORWARD, intent


def folded(picture: Picture, own: KafkaMigration | None = None, **wanted: Any) -> KafkaMigrationStatus:
    """The status after one pass over this picture."""
    return fold(own or migration(), picture, decide(PLAN, picture, intent(**wanted), {}, picture.now))


def fold(own: KafkaMigration, picture: Picture, decision: Decision) -> KafkaMigrationStatus:
    return next_status(own, picture, decision, Spent(), 60.0, {})


def on_record(own: KafkaMigration, status: KafkaMigrationStatus) -> KafkaMigration:
    """The object as it is read after the status was written."""
    return KafkaMigration.model_validate({**own.manifest(), "status": status.manifest()})


def hashed_of(own: KafkaMigration, attempt: int = 1) -> str:
    return plan_hash(UID, attempt, PLAN.names, own.spec)


def is_true(status: KafkaMigrationStatus, kind: ConditionType) -> bool:
    found = find_condition(status.conditions, kind)
    return found is not None and found.status.value == "True"


def words_of(status: KafkaMigrationStatus, kind: ConditionType) -> tuple[str, str]:
    found = find_condition(status.conditions, kind)
    return ("", "") if found is None else (found.reason, found.message)


def conditions_of(status: KafkaMigrationStatus) -> tuple[str, str, str]:
    """Ready, Reconciling, Stalled: what kstatus reads. Not there is False."""
    found = [find_condition(status.conditions, kind)
             for kind in (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)]
    ready, reconciling, stalled = ("False" if each is None else each.status.value for each in found)
    return ready, reconciling, stalled


PICTURES = {
    "Preflight": lambda: moment("Preflight"),
    "Preflight finds residue": lambda: spoil(moment("Preflight"), "kubernetes", controller_claims=("data-0",)),
    "Preflight sees nothing": lambda: replace(moment("Preflight"), facts=Facts()),
    "ProvisionControllers": lambda: moment("ProvisionControllers", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, (), PRE),
    "EnableMigration": lambda: moment("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER,
                                      ("kafka-0",), PRE),
    "EnableMigration sees nothing": lambda: replace(
        moment("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, ("kafka-0",), PRE),
        facts=Facts()),
    "MoveBrokers": lambda: moment("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-0",),
                                  ACTIVE),
    "MoveBrokers without dual write": lambda: spoil(
        moment("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, (), ACTIVE), "zookeeper",
        migration=None),
    "Finalize held": lambda: moment("Finalize", Mode.KRAFT, Mode.MIGRATION_CONTROLLER, (), ACTIVE, opened=None),
    "Finalize begun": lambda: moment(
        "Finalize", Mode.KRAFT, (Mode.MIGRATION_CONTROLLER, Mode.KRAFT_CONTROLLER, Mode.MIGRATION_CONTROLLER),
        ("kafka-controller-1",), ACTIVE),
    "HandOver": lambda: moment("HandOver", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST, opened=None),
    "ReleaseZooKeeper": lambda: moment("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST, opened=NOW - 9000),
    "an unknown step": lambda: moment("StepOfALaterVersion", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST),
}
WANTED = ({}, {"paused": True}, {"direction": BACKWARD}, {"approved": True})
STATES = ("Running", "Paused", "Planned", "RolledBack")


@cache
def everything(policy: str = "OnCompletion") -> tuple[tuple[str, KafkaMigration, KafkaMigrationStatus], ...]:
    """Every picture, wanted in every way, over no status, over the same again, and over one of a healthy run."""
    healthy = folded(PICTURES["EnableMigration"]())
    told = []
    for name, picture_of in PICTURES.items():
        picture = picture_of()
        for wanted in WANTED:
            for state in STATES:
                own = migration(desiredState=state, readinessPolicy=policy)
                first = folded(picture, own, **wanted)
                told += [(name, own, first), *(
                    (name, own, folded(picture, on_record(own, before), **wanted)) for before in (first, healthy))]
    return tuple(told)


# --- conditions ---------------------------------------------------------------------------------------------------------


def test_kstatus_reads_ready_failed_or_in_progress_and_never_two_of_them():
    kinds = (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
    for name, _, status in everything():
        assert sum(is_true(status, kind) for kind in kinds) <= 1, name


def test_every_condition_is_told_and_speaks_of_the_generation_that_was_read():
    for _, own, status in everything():
        told = {condition.type for condition in status.conditions}
        assert told >= {kind.value for kind in ConditionType} - {"Reconciling"}
        assert {condition.observed_generation for condition in status.conditions} <= {own.metadata.generation, -1}
        assert status.observed_generation == own.metadata.generation


def test_a_status_is_written_and_read_without_loss():
    for _, own, status in everything():
        assert on_record(own, status).status == status


def test_the_same_pass_folds_to_the_same_status():
    for picture in PICTURES.values():
        assert folded(picture()) == folded(picture())


def test_while_nothing_moves_the_status_says_what_it_waits_for():
    for name, picture in PICTURES.items():
        for wanted in WANTED:
            decision = decide(PLAN, picture(), intent(**wanted), {}, NOW)
            if decision.position == picture().position and not decision.effects:
                status = fold(migration(), picture(), decision)
                assert status.waiting_for, name
                assert status.waiting_for_count >= len(status.waiting_for)
                assert status.waiting_for_summary


def test_a_failed_gate_is_stalled_with_its_own_words():
    status = folded(PICTURES["MoveBrokers without dual write"]())
    stalled = find_condition(status.conditions, ConditionType.STALLED)
    assert stalled is not None
    assert (stalled.status.value, stalled.reason) == ("True", "MigrationNodeGone")
    assert status.phase is Phase.STALLED


def test_a_run_that_stalls_is_no_longer_in_progress_and_the_other_way_round():
    own, stalled_picture = migration(), PICTURES["MoveBrokers without dual write"]()
    running = folded(PICTURES["MoveBrokers"](), own)
    assert is_true(running, ConditionType.RECONCILING)
    stalled = folded(stalled_picture, on_record(own, running))
    assert (is_true(stalled, ConditionType.STALLED), is_true(stalled, ConditionType.RECONCILING)) == (True, False)
    again = folded(PICTURES["MoveBrokers"](), on_record(own, stalled))
    assert (is_true(again, ConditionType.STALLED), is_true(again, ConditionType.RECONCILING)) == (False, True)
    assert [each.progress.estimated_completion_time is not None for each in (running, stalled, again)] == [True, False, True]


def test_a_condition_keeps_its_time_while_it_does_not_change():
    own = migration()
    first = folded(PICTURES["EnableMigration"](), own)
    later = replace(PICTURES["EnableMigration"](), now=NOW + 100)
    second = folded(later, on_record(own, first))
    assert [item.last_transition_time for item in second.conditions] == [
        item.last_transition_time for item in first.conditions]


# --- the phase ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "state", "wanted", "phase"), [
    ("Preflight", "Running", {}, Phase.RUNNING),
    ("Preflight", "Planned", {"paused": True}, Phase.PLANNED),
    ("EnableMigration", "Paused", {"paused": True}, Phase.PAUSED),
    ("EnableMigration", "Running", {}, Phase.RUNNING),
    ("Finalize held", "Running", {}, Phase.AWAITING_APPROVAL),
    ("Finalize begun", "Running", {}, Phase.RUNNING),
    ("HandOver", "Running", {}, Phase.SUCCEEDED),
    ("ReleaseZooKeeper", "Running", {}, Phase.SUCCEEDED),
    ("an unknown step", "Running", {}, Phase.STALLED),
    ("Preflight finds residue", "Running", {}, Phase.STALLED),
])
def test_the_phase_is_the_migration_in_one_word(name, state, wanted, phase):
    assert folded(PICTURES[name](), migration(desiredState=state), **wanted).phase is phase


def test_a_migration_taken_back_says_so():
    back = Position(step="Preflight", direction=BACKWARD, entered=NOW, opened=NOW)
    assert folded(Cluster().picture(back), direction=BACKWARD).phase is Phase.ROLLED_BACK


def test_succeeded_is_told_when_finalize_is_proven_and_not_after_the_retention():
    assert not is_true(folded(PICTURES["Finalize begun"]()), ConditionType.SUCCEEDED)
    for name in ("HandOver", "ReleaseZooKeeper"):
        status = folded(PICTURES[name]())
        assert is_true(status, ConditionType.SUCCEEDED)
        assert is_true(status, ConditionType.READY)
        assert not is_true(status, ConditionType.ZOOKEEPER_REMOVABLE)


def test_on_acceptance_nothing_is_in_progress_once_the_plan_is_accepted():
    """kstatus looks at Reconciling first: with it True, Ready would say nothing to Flux."""
    own = migration(readinessPolicy="OnAcceptance")
    assert conditions_of(folded(PICTURES["Preflight"](), own)) == ("False", "True", "False")
    for name in ("ProvisionControllers", "EnableMigration", "MoveBrokers", "Finalize held"):
        for desired, wanted in (("Running", {}), ("Paused", {"paused": True}), ("RolledBack", {"direction": BACKWARD})):
            own = migration(readinessPolicy="OnAcceptance", desiredState=desired)
            assert conditions_of(folded(PICTURES[name](), own, **wanted)) == ("True", "False", "False"), (name, desired)


def test_on_acceptance_what_stalls_has_failed_all_the_same():
    own = migration(readinessPolicy="OnAcceptance")
    assert conditions_of(folded(PICTURES["MoveBrokers without dual write"](), own)) == ("False", "False", "True")


def taken_back(failure: str = "") -> Picture:
    """The end of a rollback, which a failure may have begun."""
    return Cluster().picture(Position(step="Preflight", direction=BACKWARD, entered=NOW, opened=NOW, finished=True,
                                      failure=failure))


@pytest.mark.parametrize("policy", ["OnCompletion", "OnAcceptance"])
@pytest.mark.parametrize("desired", ["RolledBack", "Paused", "Planned"])
def test_a_rollback_that_was_wished_ends_ready(desired, policy):
    own = migration(desiredState=desired, readinessPolicy=policy)
    status = folded(taken_back(), own, direction=BACKWARD, paused=desired != "RolledBack")
    assert (status.phase, conditions_of(status)) == (Phase.ROLLED_BACK, ("True", "False", "False"))
    assert words_of(status, ConditionType.READY) == ("RolledBack", "every step is taken back")
    assert not is_true(status, ConditionType.SUCCEEDED)


@pytest.mark.parametrize("policy", ["OnCompletion", "OnAcceptance"])
def test_a_migration_that_turned_back_by_itself_ends_stalled_until_somebody_takes_note(policy):
    own = migration(readinessPolicy=policy)
    ended = folded(taken_back("GroupLag"), own, direction=BACKWARD)
    assert (ended.phase, conditions_of(ended)) == (Phase.ROLLED_BACK, ("False", "False", "True"))
    reason, words = words_of(ended, ConditionType.STALLED)
    assert reason == "GroupLag"
    assert words == ("rolled back automatically because of GroupLag; repair the cause, then begin attempt 2:"
                     " switchover retry kmig/to-kraft --namespace kafka")
    assert ended.waiting_for_summary == "GroupLag"
    noting = replace(intent(direction=BACKWARD), undo_known=True)
    noted = fold(on_record(migration(desiredState="RolledBack"), ended), taken_back("GroupLag"),
                 decide(PLAN, taken_back("GroupLag"), noting, {}, NOW))
    assert conditions_of(noted) == ("True", "False", "False")


def test_on_acceptance_a_migration_that_turned_back_by_itself_is_in_progress():
    picture = PICTURES["MoveBrokers"]()
    back = picture.at(replace(picture.position, direction=BACKWARD, failure="GroupLag"))
    status = folded(back, migration(readinessPolicy="OnAcceptance"), direction=BACKWARD)
    assert (status.phase, conditions_of(status)) == (Phase.ROLLING_BACK, ("False", "True", "False"))


def test_ready_reconciling_and_stalled_always_say_what_is_waited_for():
    """What `kubectl wait`, Flux and Argo CD print of a migration is one of these messages."""
    for name, _, status in everything():
        for kind in (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED):
            found = find_condition(status.conditions, kind)
            if found is not None and (kind is ConditionType.READY or found.status.value == "True"):
                assert found.message, (name, kind)
        if is_true(status, ConditionType.RECONCILING) and status.waiting_for:
            assert status.waiting_for[0].message in words_of(status, ConditionType.RECONCILING)[1], name


def test_one_sentence_is_the_summary_and_the_message_of_the_conditions():
    for name, _, status in everything():
        told = ConditionType.STALLED if is_true(status, ConditionType.STALLED) else ConditionType.READY
        assert status.summary == words_of(status, told)[1] != "", name
        if is_true(status, ConditionType.RECONCILING):
            assert words_of(status, ConditionType.RECONCILING)[1] == status.summary, name


def test_the_sentence_at_a_hold_says_who_is_waited_for():
    assert folded(PICTURES["Finalize held"]()).summary == (
        "Finalize waits for Approval: nobody has approved Finalize yet (and 5 more in status.waitingFor)")


def test_after_the_point_of_no_return_the_sentence_says_what_is_done_and_what_is_left():
    assert folded(PICTURES["HandOver"]()).summary.startswith("the cluster runs on KRaft; HandOver waits for ")
    assert folded(ended(PICTURES["ReleaseZooKeeper"]())).summary == "the cluster runs on KRaft"


def test_a_figure_in_the_sentence_is_no_reason_to_write_the_status():
    """`passes, and must go on passing (4 of 9 s)` would be written in every pass."""
    status = folded(PICTURES["Finalize held"]())
    assert telling(status) == telling(status.evolve(summary="another figure"))


# --- the point of no return, approvals, findings ------------------------------------------------------------------------


def test_the_way_back_is_lost_with_finalizes_first_record_and_for_good():
    assert folded(PICTURES["Finalize held"]()).rollback.lost_at_step == ""
    begun = folded(PICTURES["Finalize begun"]())
    assert (begun.rollback.available, begun.rollback.lost_at_step) == (False, "Finalize")
    assert not is_true(begun, ConditionType.ROLLBACK_AVAILABLE)
    later = folded(PICTURES["an unknown step"](), on_record(migration(), begun))
    assert later.rollback.lost_at_step == "Finalize"


def ended(picture: Picture, proofs: int = 2) -> Picture:
    """The end, with a broker and a controller that were restarted while ZooKeeper was stopped."""
    return picture.at(replace(picture.position, finished=True, batches_done=proofs))


def test_zookeeper_is_removable_at_the_end_alone_and_while_nobody_uses_it():
    end = ended(PICTURES["ReleaseZooKeeper"]())
    assert is_true(folded(end), ConditionType.ZOOKEEPER_REMOVABLE)
    in_use = folded(spoil_each(end, "zookeeper_connections", lambda _: 2))
    assert (is_true(in_use, ConditionType.ZOOKEEPER_REMOVABLE), is_true(in_use, ConditionType.SUCCEEDED)) == (False, True)
    removed = folded(with_fact(end, "zookeeper_connections", {"zookeeper:2181": Unknown("no such host")}))
    assert is_true(removed, ConditionType.ZOOKEEPER_REMOVABLE), "it is gone"
    forged = folded(spoil(end, "log", migration_state=ACTIVE))
    assert not is_true(forged, ConditionType.ZOOKEEPER_REMOVABLE)


def test_zookeeper_is_not_removable_without_the_proof_on_record():
    """Shared, or ended by an older release that asked for none, or for a broker's restart alone.

    What the spec says afterwards proves nothing.
    """
    for shared in (True, False):
        picture = moment("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST,
                         zookeeper={"connect": "zk:2181", "shared": shared})
        for proofs in (0, 1):
            found = find_condition(folded(ended(picture, proofs)).conditions, ConditionType.ZOOKEEPER_REMOVABLE)
            assert found is not None
            assert (found.status, found.reason) == ("False", "NotProven")
            assert "spec.zookeeper.shared" in found.message


def test_a_shared_zookeeper_is_left_although_others_use_it():
    picture = moment("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST,
                     zookeeper={"connect": "zk:2181", "shared": True})
    status = folded(ended(spoil_each(picture, "zookeeper_connections", lambda _: 7), proofs=0))
    assert is_true(status, ConditionType.SUCCEEDED)
    assert status.metadata_state is MetadataState.KRAFT


@pytest.mark.parametrize(("trouble", "phase"), [("CrashLoopBackOff", Phase.STALLED), ("", Phase.SUCCEEDED)])
def test_a_broker_that_does_not_come_back_is_told_although_the_migration_has_succeeded(trouble, phase):
    picture = moment("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER, ("kafka-2",), POST, opened=NOW - 9000)
    picture = spoil_each(picture, "zookeeper_connections", lambda _: None)
    picture = spoil_pod(picture, "kafka-2", ready=not trouble, trouble=trouble)
    since = {"1/Forward/ReleaseZooKeeper/0/BackWithoutZooKeeper": Streak(Outcome.WAIT, NOW - 901, 0)}
    decision = decide(PLAN, picture, intent(), since, NOW)
    status = fold(migration(), picture, decision)
    assert status.phase is phase
    assert is_true(status, ConditionType.SUCCEEDED)
    stalled = find_condition(status.conditions, ConditionType.STALLED)
    assert stalled is not None
    assert (stalled.reason, trouble in stalled.message) == ("NotBackWithoutZooKeeper" if trouble else "Progressing", True)


def test_whether_there_is_a_way_back_is_told_by_the_log_and_not_by_the_record():
    finalized = folded(spoil(PICTURES["MoveBrokers"](), "log", migration_state=POST))
    assert (finalized.rollback.available, finalized.rollback.lost_at_step) == (False, "Finalize")
    forged = folded(spoil(PICTURES["HandOver"](), "log", migration_state=ACTIVE))
    told = find_condition(forged.conditions, ConditionType.ROLLBACK_AVAILABLE)
    assert told is not None
    assert (told.status.value, told.reason, forged.rollback.lost_at_step) == ("False", "RecordContradicted", "")
    put_right = folded(PICTURES["Finalize held"](), on_record(migration(), forged))
    assert (put_right.rollback.available, put_right.rollback.lost_at_step) == (True, "")


def test_the_way_back_is_available_exactly_when_the_plan_has_one():
    for name, picture in PICTURES.items():
        decision = decide(PLAN, picture(), intent(), {}, NOW)
        status = fold(migration(), picture(), decision)
        assert status.rollback.available == (
            PLAN.can_go_back(decision.position) and not status.rollback.lost_at_step), name
        assert status.rollback.available == is_true(status, ConditionType.ROLLBACK_AVAILABLE)


def test_a_plan_has_its_hash_once_preflight_is_passed():
    assert folded(PICTURES["Preflight"]()).plan_hash == ""
    assert folded(PICTURES["ProvisionControllers"]()).plan_hash == hashed_of(migration())


def approved(hashed: str) -> KafkaMigration:
    return migration(approvals=[{"name": "Finalize", "planHash": hashed, "approver": "alice", "reason": "CHG-1"}])


def test_an_approval_is_accepted_for_this_very_plan_alone():
    right, wrong = hashed_of(migration()), "0123456789abcdef"
    assert [item.approver for item in folded(PICTURES["Finalize held"](), approved(right)).approvals] == ["alice"]
    assert folded(PICTURES["Finalize held"](), approved(wrong)).approvals == ()


def test_an_approval_counts_while_it_stands_until_its_step_begins():
    own = approved(hashed_of(migration()))
    held = folded(PICTURES["Finalize held"](), own)
    assert folded(PICTURES["Finalize held"](), on_record(migration(), held)).approvals == ()
    begun = folded(PICTURES["Finalize begun"](), on_record(migration(), held))
    assert [item.approver for item in begun.approvals] == ["alice"]


def named(own: KafkaMigration, name: str) -> KafkaMigration:
    found = own.manifest()
    return KafkaMigration.model_validate({**found, "metadata": {**found["metadata"], "annotations": {REQUESTER: name}}})


def test_who_changed_the_spec_stays_on_record_and_approves_nothing_with_four_eyes():
    picture, own = PICTURES["Finalize held"](), approved(hashed_of(migration()))
    first = folded(picture, named(own, "alice"))
    second = folded(picture, named(on_record(own, first), "bob"))
    assert (first.requesters, second.requesters) == (("alice",), ("alice", "bob"))
    assert telling(first) != telling(second)
    again = folded(picture, named(on_record(own, second), "alice"))
    assert again.requesters == second.requesters
    four = replace(picture, policy=Policy(four_eyes=True))
    assert [each.approver for each in again.approvals] == ["alice"]
    assert folded(four, on_record(own, second)).approvals == ()


def test_another_approver_before_the_step_is_the_one_on_record():
    hashed = hashed_of(migration())
    held = folded(PICTURES["Finalize held"](), approved(hashed))
    other = migration(approvals=[{"name": "Finalize", "planHash": hashed, "approver": "bob"}])
    assert [item.approver for item in folded(PICTURES["Finalize held"](), on_record(other, held)).approvals] == ["bob"]
    assert [item.approver for item in folded(PICTURES["Finalize begun"](), on_record(other, held)).approvals] == ["alice"]


def test_history_tells_who_let_finalize_begin_why_and_with_which_backups():
    own = approved(hashed_of(migration()))
    healthy = {f"1/Forward/Finalize/0/{gate.name}": Streak(Outcome.PASS, NOW - 1000, 1000)
               for gate in PLAN.steps[PLAN.index("Finalize") or 0].forward.enter}
    picture = PICTURES["Finalize held"]()
    decision = decide(PLAN, picture, replace(intent(), approved=frozenset({"Finalize"})), healthy, NOW)
    assert decision.position.opened == NOW, decision.judged
    (told,) = fold(own, picture, decision).history
    assert told.message == "Finalize begins; approved by alice (CHG-1); backups skipped: a cluster on paper"


@pytest.mark.parametrize(("migrations", "told"), [
    (Known({"orders": (GroupMigration("orders", "Succeeded"),), "pay": (GroupMigration("a", ""),)}, NOW),
     "MoveBrokers begins; ConsumerGroupMigration/a, ConsumerGroupMigration/orders cannot go back to ZooKeeper from here:"
     " old consumers find no broker on KRaft"),
    (Known({}, NOW), "MoveBrokers begins"),
    (Unknown("forbidden"), "MoveBrokers begins"),
])
def test_history_tells_which_coordinations_are_lost_where_brokers_leave_zookeeper(migrations, told):
    picture = with_fact(moment("MoveBrokers", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, (), ACTIVE, opened=None),
                        "group_migrations", migrations)
    assert [item.message for item in folded(picture).history] == [told]


def test_before_brokers_leave_zookeeper_no_coordination_is_lost():
    migrations = Known({"orders": (GroupMigration("orders", ""),)}, NOW)
    picture = with_fact(moment("DualWrite", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, (), ACTIVE, opened=None),
                        "group_migrations", migrations)
    assert [item.message for item in folded(picture).history] == ["DualWrite begins"]


def test_an_approval_with_which_a_step_began_is_history_whatever_the_plan_is_since():
    own = approved(hashed_of(migration()))
    held = folded(PICTURES["Finalize held"](), own)
    changed = migration(gates={"groups": []}, approvals=[])
    begun = folded(PICTURES["Finalize begun"](), on_record(changed, held))
    assert begun.plan_hash != held.plan_hash
    assert begun.approvals == held.approvals


def test_in_the_pass_in_which_a_step_begins_its_approval_is_the_one_that_counts_and_not_one_on_record():
    """alice approved, bob changed the gates, mallory approved that: history names mallory."""
    held = folded(PICTURES["Finalize held"](), approved(hashed_of(migration())))
    changed = migration(gates={"groups": []})
    own = migration(gates={"groups": []}, approvals=[
        {"name": "Finalize", "planHash": hashed_of(changed), "approver": "mallory"}])
    picture = PICTURES["Finalize held"]()
    opens = Decision(replace(picture.position, opened=NOW), (), {}, {}, "Finalize begins", None)
    status = fold(on_record(own, held), picture, opens)
    assert [item.approver for item in status.approvals] == ["mallory"]
    assert [item.message for item in status.history] == [
        "Finalize begins; approved by mallory; backups skipped: a cluster on paper"]


def test_no_approval_is_carried_into_a_new_attempt():
    own = approved(hashed_of(migration()))
    first = folded(PICTURES["Finalize held"](), own)
    back = Position(step="Preflight", direction=BACKWARD, entered=NOW, opened=NOW, finished=True)
    again = folded(Cluster().picture(back), on_record(own, first), direction=FORWARD)
    assert again.attempt == 2
    assert again.plan_hash == "", "until the next plan is on record the spec may change"
    assert hashed_of(own, 2) != first.plan_hash
    assert again.approvals == ()


def test_what_preflight_found_stays_to_be_read():
    found = folded(PICTURES["Preflight finds residue"]())
    assert [(item.code, item.severity) for item in found.findings] == [
        ("Residue", Severity.BLOCKER), ("StartScript", Severity.INFO), ("LowControllerEpoch", Severity.INFO),
        ("MetadataSize", Severity.INFO)]
    assert not is_true(found, ConditionType.PREFLIGHT_PASSED)
    assert folded(PICTURES["EnableMigration"](), on_record(migration(), found)).findings == found.findings


# --- where the metadata is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("picture", "state"), [
    (moment("Preflight"), MetadataState.ZOOKEEPER),
    (moment("ProvisionControllers", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, (), PRE), MetadataState.ZOOKEEPER),
    (moment("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, (), PRE),
     MetadataState.MIGRATION_ELIGIBLE),
    (spoil(moment("CopyMetadata", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, (), ACTIVE), "log", migration_state=PRE),
     MetadataState.MIGRATION_READY),
    (moment("DualWrite", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, (), ACTIVE), MetadataState.MIGRATION_ACTIVE),
    (spoil_each(moment("Finalize", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST), "zookeeper_connections", lambda _: 1),
     MetadataState.MIGRATION_FINISHED),
    (moment("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST), MetadataState.KRAFT),
], ids=lambda item: item.value if isinstance(item, MetadataState) else item.position.step)
def test_the_state_of_the_metadata_follows_the_evidence(picture, state):
    assert metadata_state(picture, MetadataState.ZOOKEEPER) is state


def test_what_cannot_be_seen_now_stays_as_it_was():
    blind = with_fact(moment("DualWrite", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, (), ACTIVE), "log",
                      Unknown("no leader"))
    assert metadata_state(blind, MetadataState.MIGRATION_ACTIVE) is MetadataState.MIGRATION_ACTIVE


def test_zookeeper_is_unused_only_when_every_server_said_so():
    picture = moment("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST)
    assert zookeeper_is_unused(picture)
    assert not zookeeper_is_unused(with_fact(picture, "zookeeper_connections", {}))
    assert not zookeeper_is_unused(with_fact(picture, "zookeeper_connections", {"zookeeper:2181": Unknown("no answer")}))


# --- a spec that is refused ---------------------------------------------------------------------------------------------


def test_a_refused_spec_is_stalled_in_words_and_keeps_what_was_on_record():
    kept = folded(PICTURES["EnableMigration"]())
    raw = {"metadata": {"generation": 7}, "status": kept.manifest()}
    status = KafkaMigrationStatus.model_validate(stopped_status(raw, INVALID_SPEC, "spec.brokers: must not be empty", NOW))
    assert status.phase is Phase.STALLED
    assert position_of(status, records_of(status), NOW) == position_of(kept, records_of(kept), NOW)
    stalled = find_condition(status.conditions, ConditionType.STALLED)
    assert stalled is not None
    assert stalled.message == status.summary == "spec.brokers: must not be empty"
    assert not is_true(status, ConditionType.READY)
    assert not is_true(status, ConditionType.RECONCILING)


def test_what_is_told_already_is_not_written_again():
    raw = {"metadata": {"generation": 7}, "status": folded(PICTURES["EnableMigration"]()).manifest()}
    told = stopped_status(raw, DEFECT, "KeyError in a.py:1 (b)", NOW)
    again = {**raw, "status": told}
    assert stopped_status(again, DEFECT, "KeyError in a.py:1 (b)", NOW + 60) is None
    of_an_earlier_release = {**raw, "status": {**told, "summary": "step 2 of 11"}}
    assert stopped_status(of_an_earlier_release, DEFECT, "KeyError in a.py:1 (b)", NOW + 60) == told
    assert stopped_status(again, DEFECT, "KeyError in a.py:2 (b)", NOW + 60) is not None
    assert stopped_status({**again, "metadata": {"generation": 8}}, DEFECT, "KeyError in a.py:1 (b)", NOW) is not None


def test_a_time_that_no_clock_has_in_utc_does_not_keep_it_from_being_told():
    status = {"planHash": "ab", "conditions": [{"type": "Ready", "status": "True", "reason": "Ready",
                                               "lastTransitionTime": "9999-12-31T23:59:59-10:00"}]}
    told = stopped_status({"metadata": {"generation": 7}, "status": status}, DEFECT, "so", NOW)
    assert (told or {})["summary"] == "so"


@pytest.mark.parametrize("reason", [INVALID_SPEC, DEFECT])
def test_who_wrote_what_cannot_be_read_is_on_record_all_the_same(reason):
    """Else nobody but they could put it right, with four eyes."""
    raw: dict[str, Any] = {"metadata": {"generation": 7, "annotations": {REQUESTER: "alice"}},
                           "status": folded(PICTURES["EnableMigration"]()).manifest()}
    told = stopped_status(raw, reason, "so", NOW)
    assert told is not None
    assert KafkaMigrationStatus.model_validate(told).requesters == ("alice",)
    assert stopped_status({**raw, "status": told}, reason, "so", NOW) is None
    other = {**raw, "metadata": {"generation": 7, "annotations": {REQUESTER: "bob"}}, "status": told}
    assert (stopped_status(other, reason, "so", NOW) or {})["requesters"] == ["alice", "bob"]


def test_what_is_no_list_of_names_is_left_as_it_is():
    raw = {"metadata": {"generation": 7, "annotations": {REQUESTER: "alice"}}, "status": {"requesters": 5}}
    assert (stopped_status(raw, STATUS_UNREADABLE, "so", NOW) or {})["requesters"] == 5
    assert (stopped_status(raw, DEFECT, "so", NOW) or {})["requesters"] == 5


def test_words_too_long_for_the_schema_are_cut_and_not_written_again():
    told = stopped_status({"metadata": {"generation": 7}}, INVALID_SPEC, "a" * 5000, NOW)
    assert len(told["summary"]) == 2048
    assert stopped_status({"metadata": {"generation": 7}, "status": told}, INVALID_SPEC, "a" * 5000, NOW) is None


@pytest.mark.parametrize("conditions", [None, "all well", [], [7, {"type": "Ready"}], {"type": "Stalled"}])
def test_a_status_that_cannot_be_read_is_kept_beside_what_is_told_of_it(conditions):
    status = {"progress": {"step": 5}, "observedGeneration": 6, "conditions": conditions}
    raw = {"metadata": {"generation": 7}, "status": status}
    told = stopped_status(raw, STATUS_UNREADABLE, "status.progress.step: not a string", NOW)
    assert (told["progress"], told["observedGeneration"], told["phase"]) == ({"step": 5}, 6, "Stalled")
    assert {(each["type"], each["status"], each["reason"]) for each in told["conditions"]} == {
        ("Ready", "False", "StatusUnreadable"), ("Stalled", "True", "StatusUnreadable")}
