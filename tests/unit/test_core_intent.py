"""What the user wants of the walk, and what is told of its time."""

from dataclasses import replace
from typing import Any

import pytest

from made_reasons import wait
from switchover.api.kafka_migration import KafkaMigration
from switchover.api.status import MOST_REQUESTERS, Direction
from switchover.cluster.plan import PLAN
from switchover.engine import intent
from switchover.engine.approvals import REQUESTER, noted, plan_hash
from switchover.engine.gate import Judgement, Streak, Verdict
from switchover.engine.pace import Spent, spend
from switchover.engine.plan import Decision, Intent
from switchover.engine.policy import NOTHING_MORE, Policy
from switchover.engine.position import Position
from unit.pictures import NOW, UID, migration
from unit.small_plan import MAKE
from unit.test_core_approvals import CLUSTER

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
HASH = plan_hash(UID, 1, PLAN.names, migration().spec)
OTHER = "fedcba9876543210fedcba9876543210"


def wanted(direction: Direction = FORWARD, step: str = "Soak", told: str = HASH, **spec: Any) -> KafkaMigration:
    own = migration(**spec).manifest()
    return KafkaMigration.model_validate(
        {**own, "status": {"planHash": told, "progress": {"step": step, "direction": direction.value}}})


def intent_of(own: KafkaMigration, policy: Policy = NOTHING_MORE) -> Intent:
    return intent.intent_of(own, PLAN, policy)


# --- intent -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "on_record", "direction", "paused"), [
    ("Running", FORWARD, FORWARD, False), ("Running", BACKWARD, FORWARD, False),
    ("RolledBack", FORWARD, BACKWARD, False), ("RolledBack", BACKWARD, BACKWARD, False),
    ("Paused", FORWARD, FORWARD, True), ("Paused", BACKWARD, BACKWARD, True),
    ("Planned", FORWARD, FORWARD, True), ("Planned", BACKWARD, BACKWARD, True),
])
def test_a_pause_holds_whichever_way_it_was_going(state, on_record, direction, paused):
    intent = intent_of(wanted(on_record, desiredState=state))
    assert (intent.direction, intent.paused) == (direction, paused)


@pytest.mark.parametrize(("state", "on_record", "ended", "direction"), [
    ("Running", BACKWARD, False, BACKWARD), ("Running", BACKWARD, True, FORWARD), ("Running", FORWARD, False, BACKWARD),
    ("RolledBack", BACKWARD, True, BACKWARD), ("Paused", BACKWARD, True, BACKWARD)])
@pytest.mark.parametrize("failure", ["GroupLag", ""])
def test_another_attempt_waits_for_the_end_of_the_rollback(state, on_record, ended, direction, failure):
    """On the way forward there is none to wait for: there an annotation of this attempt is of no moment."""
    own = retried(f"{UID}/1", state, on_record, failure, ended)
    if on_record is FORWARD:
        direction = BACKWARD if failure else FORWARD
    assert intent_of(own).direction is direction
    assert intent.is_retried(own) is (state == "Running" and on_record is BACKWARD)


@pytest.mark.parametrize("named", ["", "1", UID, f"{UID}/2", f"{UID}/01", "uid-of-another/1"])
def test_an_annotation_of_another_object_or_attempt_begins_nothing(named):
    own = retried(named, "Running", BACKWARD, "GroupLag", ended=True)
    assert (intent_of(own).direction, intent.is_retried(own)) == (BACKWARD, False)


def retried(named: str, state: str, direction: Direction, failure: str, ended: bool) -> KafkaMigration:
    own = wanted(direction, desiredState=state).manifest()
    own["metadata"]["annotations"] = {intent.RETRY: named}
    own["status"]["rollback"] = {"failure": failure}
    own["status"]["progress"] |= {"completeTime": "2026-11-29T10:00:00Z"} if ended else {}
    return KafkaMigration.model_validate(own)


def approval(plan_hash: str) -> dict[str, Any]:
    return {"approvals": [{"name": "Finalize", "planHash": plan_hash, "approver": "alice"}]}


@pytest.mark.parametrize("told", [OTHER, "deadbeef", ""])
def test_what_the_status_says_of_the_hash_is_believed_by_nobody(told):
    """Whoever writes a status wrote a hash, and an approval of it: it counted."""
    assert intent_of(wanted(told=told, **approval(told or HASH))).approved == (set() if told else {"Finalize"})
    assert intent_of(wanted(told=told, **approval(HASH))).approved == {"Finalize"}


def test_an_approval_of_another_object_does_not_count():
    own = wanted(**approval(plan_hash("uid-of-an-earlier-object", 1, PLAN.names, migration().spec)))
    assert intent_of(own).approved == set()


@pytest.mark.parametrize("change", [
    {"gates": {"groups": []}}, {"gates": {"dualWriteMaxLag": 1_000_000}}, {"backups": {"skipReason": "no time"}},
    {"rollout": {"steps": [{"pods": 3}]}}, {"windows": CLUSTER["windows"]}, {"holds": []}, {"onFailure": "RollBack"},
], ids=str)
def test_whoever_changes_what_was_approved_voids_it(change):
    changed = intent_of(wanted(**change, **approval(HASH)))
    assert changed.approved == set()
    assert "alice's approval was given for plan" in changed.void["Finalize"]


def test_a_plan_on_record_of_another_spec_is_told_as_one_and_the_record_decides_nothing_else():
    """A hash that somebody else has written makes Preflight look once more, where nothing is touched."""
    assert not intent_of(wanted()).changed
    assert intent_of(wanted(soakSeconds=7)).changed
    assert intent_of(wanted(told=OTHER)).changed
    assert not intent_of(wanted(desiredState="Paused", readinessPolicy="OnAcceptance", approvals=[])).changed
    assert not intent_of(wanted(told="")).changed
    assert not intent_of(wanted(step="Preflight")).changed, "there is no plan yet"


def test_before_preflight_is_passed_nothing_is_approved():
    for step in ("", "Preflight"):
        assert intent_of(wanted(step=step, **approval(HASH))).approved == set()


def test_an_approval_of_another_plan_is_told_in_words():
    assert intent_of(wanted(**approval(HASH))).void == {}
    assert intent_of(wanted(step="Preflight", **approval(HASH))).void == {}
    told = intent_of(wanted(**approval(OTHER))).void["Finalize"]
    assert f"alice's approval was given for plan {OTHER}, this is plan {HASH} (attempt 1)" in told


# --- by whom it may be given ----------------------------------------------------------------------------------------------

BOT = "system:serviceaccount:ci:bot"


def given_by(approver: str, step: str = "Finalize", named: str = "", noted: tuple[str, ...] = ()) -> KafkaMigration:
    own = wanted(approvals=[{"name": step, "planHash": HASH, "approver": approver}]).manifest()
    own["metadata"]["annotations"] = {REQUESTER: named} if named else {}
    own["status"]["requesters"] = [*noted]
    return KafkaMigration.model_validate(own)


@pytest.mark.parametrize("step", sorted(PLAN.final))
def test_no_service_account_approves_what_cannot_be_taken_back(step):
    intent = intent_of(given_by(BOT, step))
    assert intent.approved == set()
    assert intent.void[step].startswith(f"{BOT} is a service account, and {step} cannot be taken back: a person approves it")
    assert intent_of(given_by(BOT, step), Policy(approvers=(BOT,))).approved == {step}
    assert intent_of(given_by(BOT, step), Policy(approvers=("system:serviceaccount:ci:bo",))).approved == set()
    assert intent_of(given_by("alice", step)).approved == {step}


def test_a_service_account_approves_what_can_be_taken_back():
    assert intent_of(given_by(BOT, "Soak")).approved == {"Soak"}


@pytest.mark.parametrize(("named", "known"), [
    ("mallory", ()), (BOT, ("mallory",)), (BOT, ("mallory", BOT)), ("", ("mallory",))])
def test_with_four_eyes_nobody_approves_who_has_ever_changed_the_spec(named, known):
    own, eyes = given_by("mallory", named=named, noted=known), Policy(four_eyes=True)
    assert intent_of(own).approved == {"Finalize"}
    assert intent_of(own, eyes).approved == set()
    assert intent_of(own, eyes).void == {
        "Finalize": "mallory has changed the spec (status.requesters): somebody else approves Finalize"}
    assert intent_of(given_by("bob", named=named, noted=known), eyes).approved == {"Finalize"}


def test_who_changed_the_spec_is_noted_once_and_is_never_forgotten():
    assert noted((), "") == ()
    assert noted(("alice",), "") == noted(("alice",), "alice") == ("alice",)
    assert noted(("alice",), "bob") == ("alice", "bob")
    assert noted(noted((), "x" * 300), "x" * 300) == ("x" * 253,)
    many = tuple(map(str, range(MOST_REQUESTERS)))
    assert noted(many, "one too many") == many


def test_preflight_cannot_be_held_because_no_plan_could_be_approved_yet():
    assert intent_of(wanted(holds=["Preflight", "Soak"])).held == {"Soak"}


def test_holds_and_patience_are_the_specs():
    intent = intent_of(wanted(holds=["MoveBrokers"], gates={"stepPatienceSeconds": 77}))
    assert (intent.held, intent.patience) == ({"MoveBrokers"}, 77.0)


# --- pace ---------------------------------------------------------------------------------------------------------------

AT = Position(step="MoveBrokers", entered=NOW, opened=NOW)


def decision(position: Position = AT, effects: tuple = (), **verdicts: Verdict) -> Decision:
    judged = {name: Judgement(name, verdict, Streak(verdict.outcome, NOW, 0), False, False)
              for name, verdict in verdicts.items()}
    return Decision(position, effects, judged, {}, "", None)


WAITING = {"AllInSync": wait("OutOfSync", "not yet")}


@pytest.mark.parametrize(("decided", "spent"), [
    (decision(effects=(MAKE,)), Spent(active=5)),
    (decision(replace(AT, step="Soak")), Spent(active=5)),
    (decision(**WAITING), Spent(gates=5)),
    (decision(Approval=wait("AwaitingApproval", "held")), Spent(human=5)),
    (decision(BackupsTaken=wait("BackupsMissing", "nobody said so")), Spent(human=5)),
    (decision(Steps=wait("NoSuchStep", "misspelled")), Spent(human=5)),
    (decision(Paused=wait("Paused", "paused"), **WAITING), Spent(human=5)),
    (decision(WithinWindow=wait("OutsideWindow", "closed"), **WAITING), Spent(human=5)),
    (decision(WithinWindow=wait("WindowTooShort", "closes soon")), Spent(human=5)),
    (decision(replace(AT, finished=True)), Spent()),
], ids=["acting", "moving", "a gate", "a hold", "backups", "a misspelled hold", "a pause", "outside of windows",
        "too late in a window", "at the end"])
def test_time_goes_where_it_was_spent(decided, spent):
    assert spend(Spent(), 5.0, AT, decided) == spent
