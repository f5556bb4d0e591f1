"""What of a record of a ConsumerGroupMigration is believed, by claims, what is kept, templates and the mode."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.api.conditions import ConditionType, find_condition
from switchover.api.status import Direction
from switchover.api.status import Verdict as Outcome
from switchover.engine.plan import decide
from switchover.groups.gates.on_record import RECORD_HOLDS, check_record_holds
from switchover.groups.picture import Picture
from switchover.groups.plan import plan_of
from switchover.groups.workloads.change import original_name
from switchover.groups.workloads.deployment import is_held
from switchover.kubernetes import names
from unit.group_pictures import AUDIT, NOW, moment, of_stateful_set, spec_of, value, with_fact, with_source
from unit.group_walk import BACKWARD, FORWARD, OFFLINE, PLANS, Walk, each_plan
from unit.small_plan import intent


def forged(walk: Walk, **progress: Any) -> Walk:
    """As `kubectl edit --subresource=status` does it, or a restore."""
    status = walk.migration.status
    walk.migration = walk.migration.evolve(status=status.evolve(progress=status.progress.evolve(**progress)))
    return walk


def untouched(walk: Walk) -> str:
    return repr([(name, each.made) for name, each in walk.world.workloads.items()])


def condition(walk: Walk, kind: ConditionType) -> str:
    found = find_condition(walk.migration.status.conditions, kind)
    return "" if found is None else found.status.value


def stands(walk: Walk, passes: int = 12) -> None:
    """Nothing is done and nothing moves, and it says why."""
    before, at = untouched(walk), walk.position
    for _ in range(passes):
        decision = walk.step()
    assert (untouched(walk), walk.position) == (before, at)
    assert decision.stalled is not None
    assert decision.stalled.verdict.reason in ("RecordContradicted", "NotClaimed")
    assert (walk.migration.status.phase, condition(walk, ConditionType.SUCCEEDED)) == ("Stalled", "False")
    assert condition(walk, ConditionType.ROLLBACK_AVAILABLE) == "False"


def at_step(plan: str, step: str) -> Walk:
    """In the middle of a step."""
    walk = PLANS[plan]()
    return walk.until(lambda: walk.position.step == step and walk.position.opened is not None)


# --- nothing was touched yet --------------------------------------------------------------------------------------------


@each_plan
def test_no_step_that_moves_pods_is_believed_of_workloads_that_were_never_claimed(plan):
    walk = PLANS[plan]()
    for step in plan_of(walk.migration.spec).names[2:]:
        if step == "Start":                                          # gives pods back, of which there are none
            continue
        for opened in (None, NOW):
            fresh = PLANS[plan]()
            stands(forged(fresh, step=step, open_time=opened))


# --- the end ------------------------------------------------------------------------------------------------------------


@each_plan
def test_the_end_on_record_is_no_success_while_pods_are_to_be_moved(plan):
    """It finished at once: Succeeded, with every member where it was."""
    walk = PLANS[plan]()
    for step in [name for name in plan_of(walk.migration.spec).names if name not in ("Preflight", "Settle", "HandOver")]:
        stands(forged(at_step(plan, step), step="HandOver", open_time=None, batch_nodes=(), batch=0))


def test_a_finished_record_of_a_group_that_was_never_moved_is_no_success():
    walk = PLANS["Deployment"]()
    walk.step()
    stands(forged(walk, step="HandOver", complete_time=NOW, open_time=NOW))


def test_a_finished_record_whose_claims_still_stand_is_no_success():
    stands(forged(at_step("Deployment", "Rollout"), step="HandOver", complete_time=NOW, open_time=NOW))


@each_plan
def test_a_migration_that_has_ended_is_believed(plan):
    walk = PLANS[plan]()
    while not walk.ended():
        walk.step()
        assert (condition(walk, ConditionType.SUCCEEDED) == "True") == walk.position.finished
    for _ in range(3):
        decision = walk.step()
        assert [item.open for item in decision.judged.values()] == [True]
        assert condition(walk, ConditionType.SUCCEEDED) == "True"


def test_what_others_do_to_the_group_afterwards_makes_no_failure_of_it():
    walk = PLANS["Deployment"]().until()
    picture = walk.picture()
    later = with_source(claimed_by="uid-of-the-next-migration")(picture)
    members = [replace(each, protocol="Classic") for each in value(later.facts.group).members]
    later = with_fact(later, "group", Known(replace(value(later.facts.group), members=tuple(members)), NOW))
    assert check_record_holds(later).outcome is Outcome.PASS


def without_originals(picture: Picture) -> Picture:
    fleet = value(picture.facts.fleet)
    return with_fact(picture, "fleet", Known(replace(fleet, originals=dict.fromkeys(fleet.originals)), NOW))


def test_where_somebody_cleared_away_what_was_kept_the_group_itself_tells():
    walk = PLANS["Deployment"]().until()
    cleared = without_originals(walk.picture())
    assert check_record_holds(cleared).outcome is Outcome.PASS
    assert RECORD_HOLDS.check(with_fact(cleared, "group", Unknown("no answer"))).outcome is Outcome.UNKNOWN
    members = [replace(each, protocol="Classic") for each in value(cleared.facts.group).members]
    back = with_fact(cleared, "group", Known(replace(value(cleared.facts.group), members=tuple(members)), NOW))
    assert check_record_holds(back).reason == "RecordContradicted"


def test_what_cannot_be_seen_at_the_end_stays_as_it_was():
    walk = PLANS["Deployment"]().until()
    walk.step(lambda picture: with_fact(picture, "fleet", Unknown("no answer")))
    assert condition(walk, ConditionType.SUCCEEDED) == "True"


# --- the way back -------------------------------------------------------------------------------------------------------


@each_plan
def test_no_way_back_that_somebody_shortened_gives_the_workloads_back(plan):
    """Direction Backward and step Baseline, in the middle of the rollout: claims off, and nothing taken back."""
    walk = PLANS[plan]()
    names = plan_of(walk.migration.spec).names
    moved = at_step(plan, names[names.index("Settle")])
    moved.wants(desiredState="RolledBack")
    stands(forged(moved, step="Baseline", direction=Direction.BACKWARD, open_time=NOW))


def test_a_rollback_on_record_whose_claims_still_stand_is_none():
    walk = at_step("Deployment", "Rollout")
    walk.wants(desiredState="RolledBack")
    forged(walk, step="Preflight", direction=Direction.BACKWARD, complete_time=NOW)
    stands(walk)


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
def test_what_another_migration_has_claimed_is_not_touched(direction):
    for step in ("Canary", "Rollout", "Settle"):
        picture = with_source(claimed_by="another")(moment(step, "OOOOTT", direction=direction))
        decision = decide(plan_of(picture.spec), picture, intent(direction), {}, NOW)
        assert (decision.effects, decision.position) == ((), picture.position)
        assert decision.judged[RECORD_HOLDS.name].verdict.reason == "NotClaimed"


def test_a_claim_that_was_lost_keeps_no_pods_away_that_were_stopped():
    walk = at_step("offline, Deployment", "Start")
    for each in walk.world.workloads.values():
        each.made["metadata"]["annotations"] = {}
    assert walk.world.workloads["orders"].spec["replicas"] == 0
    for _ in range(6):
        walk.step()
    assert walk.world.workloads["orders"].spec["replicas"] == 4


# --- a step that was let begin ------------------------------------------------------------------------------------------


@each_plan
def test_a_held_hand_over_that_somebody_opened_in_the_status_waits_for_its_approval(plan):
    walk = PLANS[plan]()
    walk.wants(holds=["HandOver"])
    walk.until(lambda: walk.position.step == "HandOver")
    forged(walk, open_time=walk.world.now)
    before = untouched(walk)
    for _ in range(6):
        walk.step()
    assert (walk.position.step, walk.position.opened, untouched(walk)) == ("HandOver", None, before)
    assert condition(walk, ConditionType.ROLLBACK_AVAILABLE) == "True"
    walk.wants(approvals=[{"name": "HandOver", "planHash": walk.migration.status.plan_hash, "approver": "alice"}])
    walk.until()
    assert walk.migration.status.phase == "Succeeded"


def test_a_hand_over_that_has_begun_goes_on_without_its_approval():
    walk = PLANS["Deployment"]()
    walk.wants(holds=["HandOver"])
    walk.until(lambda: walk.position.step == "HandOver")
    walk.wants(approvals=[{"name": "HandOver", "planHash": walk.migration.status.plan_hash, "approver": "alice"}])
    walk.until(lambda: walk.position.opened is not None and not is_held(value(walk.picture().source("orders"))))
    walk.wants(approvals=[])
    walk.until()
    assert walk.migration.status.phase == "Succeeded"


@pytest.mark.parametrize(("plan", "older", "now", "seen"), [
    ("StatefulSet bridged", "BridgeCanary", "Settle", "has its target template"),
    ("Deployment bridged", "BridgeCanary", "Settle", "has its target template"),
    ("offline, StatefulSet", "Baseline", "Start", "has no pods, of 4"),
], ids=["bridged", "bridged, Deployment", "offline"])
def test_a_record_of_an_earlier_step_moves_no_pod_back(plan, older, now, seen):
    walk = at_step(plan, older)
    status = walk.migration.status
    walk.until(lambda: walk.position.step == now)
    walk.migration = walk.migration.evolve(status=status)
    stands(walk)
    assert seen in check_record_holds(walk.picture()).observed


# --- what is left -------------------------------------------------------------------------------------------------------


def of_an_older_operator(picture: Picture) -> Picture:
    fleet = value(picture.facts.fleet)
    new = ("minReadySeconds", "progressDeadlineSeconds")
    kept = {name: {key: each for key, each in found.items() if key not in new} for name, found in fleet.originals.items()}
    return with_fact(picture, "fleet", Known(replace(fleet, originals=kept), NOW))


@pytest.mark.parametrize(("picture", "told"), [
    (of_an_older_operator(moment("Rollout", "OOOOTT")), "was recorded by an older operator"),
    (moment("HandOver", "OTTTTT"), "pod orders-0 of its original template"),
    (moment("HandOver", "OOOOOO"), "its original template"),
    (of_stateful_set("HandOver", "OOTTTT", ()), "pod orders-0 of its original template"),
    (without_originals(moment("HandOver", "TTTTTT")), "has no stored original"),
    (without_originals(moment("Rollout", "OOOOTT")), "has no stored original"),
    (moment("Preflight", "OOOOOO").at(moment("Preflight").position), ""),
], ids=["an older operator", "a pod", "the original", "a pod of a StatefulSet", "nothing kept", "nothing kept before",
        "nothing"])
def test_what_contradicts_the_record_is_told(picture, told):
    found = check_record_holds(picture)
    assert (found.outcome is Outcome.PASS) == (told == "")
    assert told in found.observed


def test_every_step_of_every_plan_rests_on_it():
    specs = [PLANS[plan]().migration.spec for plan in PLANS]
    coordinated = {"zookeeper": {"connect": "zookeeper:2181"}, "coordination": {"to": "Kafka"}, "audit": AUDIT}
    for spec in (*specs, spec_of(**coordinated), spec_of(**OFFLINE)):
        assert plan_of(spec).rests_on == (RECORD_HOLDS,)


# --- what is kept, and by whom --------------------------------------------------------------------------------------------


def kept_as(picture: Picture, proof: str | None, **changes: object) -> Picture:
    """What is kept of the workload is this, and on record with this digest."""
    fleet, [workload] = value(picture.facts.fleet), picture.spec.workloads
    source = value(picture.source(workload.name))
    kept = {**(fleet.originals[workload.name] or {"template": source.template, "minReadySeconds": 0}), **changes}
    name = original_name(workload.kind, workload.name, picture.uid, picture.position.attempt)
    made = {} if proof is None else {f"ControllerRevision {name}": names.digest(kept) if proof == "its own" else proof}
    return replace(with_fact(picture, "fleet", Known(replace(fleet, originals={workload.name: kept}), NOW)), made=made)


@pytest.mark.parametrize(("step", "slots", "proof", "changes", "holds"), [
    ("Baseline", "OOOOOO", "its own", {}, True), ("Rollout", "OOOOTT", "its own", {}, True),
    ("Baseline", "OOOOOO", "of another", {}, False), ("Rollout", "OOOOTT", "of another", {}, False),
    ("Baseline", "OOOOOO", None, {"template": {"spec": {"containers": [{"name": "app", "image": "evil"}]}}}, False),
    ("Baseline", "OOOOOO", None, {}, True), ("Rollout", "OOOOTT", None, {}, True)])
def test_what_is_kept_is_believed_where_this_migration_has_written_it(
        step: str, slots: str, proof: str | None, changes: dict[str, object], holds: bool) -> None:
    """A release before put nothing on record: what is kept is what the workload is, while nothing of that is changed."""
    found = check_record_holds(kept_as(moment(step, slots), proof, **changes))
    assert (found.outcome is Outcome.PASS) == holds, found
    assert holds or "keeps something else" in found.message


@pytest.mark.parametrize("back", [False, True])
def test_what_an_autoscaler_was_is_not_taken_from_one_that_is_paused(back: bool) -> None:
    """What was stored of it was deleted in Baseline: the pause was stored instead, and stayed after a rollback."""
    walk = PLANS["Deployment"]()
    before = deepcopy(walk.world.autoscaler)
    walk.until(lambda: walk.position.step == "Baseline" and walk.world.autoscaler != before)
    kept = dict(walk.world.originals)
    walk.world.originals.clear()
    if back:
        walk.wants(desiredState="RolledBack")
        walk.until(lambda: walk.position.direction is BACKWARD)
    stands(walk)
    assert "has lost ControllerRevision" in check_record_holds(walk.picture()).observed
    assert walk.world.originals == {}
    walk.world.originals.update(kept)
    walk.wants(desiredState="RolledBack")
    walk.until(lambda: walk.position.finished)
    assert walk.world.autoscaler["spec"] == before["spec"]      # type: ignore[index]
