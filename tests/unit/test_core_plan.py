"""The walk along a plan: one move a pass, on record before anything is done, in the direction that is wanted."""

from dataclasses import replace
from typing import Any

import pytest

from made_reasons import fail, unknown, wait
from switchover.answers.observed import Known
from switchover.api.status import Verdict as Outcome
from switchover.engine.effects import Evict
from switchover.engine.gate import Streak, Verdict, passed
from switchover.engine.plan import Correction, Decision, Intent, Leg, Plan, Rescue, Step, decide
from switchover.engine.position import NodeRecord, Position
from switchover.engine.rollout import BatchSize, Phase
from unit.group_pictures import at_start
from unit.pictures import moment
from unit.small_plan import (
    BACKWARD,
    BAKE,
    FORWARD,
    MAKE,
    NEW,
    NODES,
    NOW,
    OLD,
    PLAN,
    SEAL,
    UNMAKE,
    Node,
    Scene,
    World,
    gate,
    intent,
    moving,
    perform,
    rollout,
    start,
)

CLOSED = [wait("Waiting", "not yet"), fail("Failed", "somebody must act"), unknown("NotObserved", "no answer")]


class Walk:
    """Passes over one scene; the world stands still unless a test changes it."""

    def __init__(self, position: Position, world: World | None = None, plan: Plan[Scene] = PLAN) -> None:
        self.scene = Scene(position, world or World())
        self.plan = plan
        self.streaks: dict[str, Streak] = {}

    def decide(self, wanted: Intent | None = None, now: float = NOW, **verdicts: Verdict) -> Decision:
        asked = replace(self.scene, verdict=lambda name: verdicts.get(name, passed()))
        decision = decide(self.plan, asked, wanted or intent(), self.streaks, now)
        self.streaks = dict(decision.streaks)
        self.scene = self.scene.at(decision.position)
        return decision


def reasons(decision: Decision) -> set[str]:
    return {item.verdict.reason for item in decision.judged.values() if not item.open}


def at(step: str, *, opened: bool = False, direction=FORWARD, finished: bool = False, modes=(OLD, OLD, OLD)) -> Position:
    nodes = {f"n{index}": NodeRecord(index, mode) for index, mode in enumerate(modes)}
    return Position(step=step, direction=direction, entered=NOW, opened=NOW if opened else None, nodes=nodes,
                    finished=finished)


MADE = World(made=True)
SEALED = World(made=True, sealed=True)

# --- record before act --------------------------------------------------------------------------------------------------


def test_a_step_is_opened_on_record_before_anything_is_done_for_it():
    walk = Walk(start())
    first = walk.decide()
    assert first.position.opened == NOW
    assert first.effects == ()
    assert walk.decide().effects == (MAKE,)


def test_what_a_step_assigns_is_recorded_with_its_opening():
    assert Walk(start()).decide().position.nodes == {f"n{index}": NodeRecord(index, OLD) for index in range(3)}


def test_a_goal_is_kept_until_it_is_true_and_only_then_the_step_ends():
    walk = Walk(at("Prepare", opened=True))
    assert walk.decide().effects == walk.decide().effects == (MAKE,)
    walk.scene = replace(walk.scene, world=MADE)
    decision = walk.decide()
    assert (decision.position.step, decision.position.opened, decision.effects) == ("Move", None, ())


@pytest.mark.parametrize("closed", CLOSED, ids=lambda verdict: verdict.outcome)
def test_a_watch_gate_that_finds_something_during_a_bake_starts_it_anew(closed):
    scene = moving(batch=("n0",), runs=(NEW, OLD, OLD))
    walk = Walk(scene.position, scene.world)
    walk.decide()
    assert walk.decide().position.batch.proven == NOW
    blind = closed.outcome is Outcome.UNKNOWN
    decision = walk.decide(now=NOW + 1, Healthy=closed)
    assert decision.position.batch.proven == (NOW if blind else None)
    assert blind or decision.note == "gate Healthy closed: the bake begins again"
    assert walk.decide(now=NOW + 60, Healthy=closed).position.batch is not None, "and it ends only while all is well"


def test_while_nothing_moves_it_says_what_it_waits_for():
    for closed in CLOSED:
        decision = Walk(at("Prepare", opened=True), MADE).decide(Prepared=closed)
        assert reasons(decision) == {closed.reason}


# --- holds and approvals ------------------------------------------------------------------------------------------------


def test_a_hold_stands_until_it_is_approved():
    walk = Walk(at("Seal"), MADE)
    for _ in range(3):
        decision = walk.decide()
        assert decision.position.opened is None
        assert reasons(decision) == {"AwaitingApproval"}
    assert walk.decide(intent(approved=True)).position.opened == NOW
    assert walk.decide(intent(approved=True)).effects == (SEAL,)


@pytest.mark.parametrize(("position", "wanted", "gate_name", "command"), [
    (at("Seal"), intent(), "Approval", "switchover approve small/thing Seal --namespace demo"),
    (at("Seal"), replace(intent(), void={"Seal": "given for another plan"}), "Approval",
     "switchover approve small/thing Seal --namespace demo"),
    (at("Move", opened=True), intent(paused=True), "Paused", "switchover resume small/thing --namespace demo"),
    (at("Seal", opened=True), intent(BACKWARD), "Undo", "switchover resume small/thing --namespace demo")],
    ids=["a hold", "a void approval", "a pause", "the point of no return"])
def test_what_a_person_must_do_is_one_command_to_paste(position, wanted, gate_name, command):
    decision = Walk(position, MADE).decide(wanted)
    assert decision.judged[gate_name].verdict.unblocks == command


def test_the_command_names_the_kind_of_the_object():
    """A name may be that of both kinds in one namespace."""
    assert moment("Finalize").named == ("kmig/to-kraft", "kafka")
    assert at_start().named[0].startswith("cgmig/")


def test_a_batch_on_record_of_a_step_that_moves_no_node_is_not_looked_for():
    plan = Plan((Step("Move", forward=Leg(watch=(gate("RecordHolds"),)), back=None),))
    walk = Walk(moving(batch=("n0",)).position, MADE, plan)
    decision = walk.decide(RecordHolds=fail("Failed", "somebody must act"))
    assert (decision.position, reasons(decision)) == (walk.scene.position, {"Failed"})


@pytest.fixture
def excusable() -> Walk:
    """The walk before a hold for which there may be evidence instead of an approval."""
    steps = (*PLAN.steps[:-1], replace(PLAN.steps[-1], hold=gate("Proven", samples=2)))
    return Walk(at("Seal"), MADE, Plan(steps))


@pytest.mark.parametrize("closed", CLOSED, ids=lambda verdict: verdict.outcome)
def test_evidence_stands_in_for_an_approval_and_only_evidence(excusable, closed):
    decision = excusable.decide(Proven=closed)
    assert decision.position.opened is None
    assert reasons(decision) == {closed.reason, "AwaitingApproval"}
    assert excusable.decide().position.opened is None, "it wants two passes in a row"
    assert excusable.decide().position.opened == NOW


def test_an_approval_makes_the_evidence_needless(excusable):
    assert excusable.decide(intent(approved=True), Proven=CLOSED[0]).position.opened == NOW


def test_what_the_user_holds_waits_for_the_user_whatever_the_evidence(excusable):
    for _ in range(3):
        assert reasons(excusable.decide(intent(held=("Seal",)))) == {"AwaitingApproval"}


def test_evidence_opens_no_closed_gate(excusable):
    for _ in range(3):
        assert excusable.decide(ReadyToSeal=CLOSED[0]).position.opened is None


def test_an_approval_does_not_open_a_closed_gate():
    decision = Walk(at("Seal"), MADE).decide(intent(approved=True), ReadyToSeal=CLOSED[0])
    assert decision.position.opened is None
    assert "AwaitingApproval" not in reasons(decision)


def test_the_gates_of_a_hold_are_judged_while_it_waits_for_a_person():
    decision = Walk(at("Seal"), MADE).decide(ReadyToSeal=CLOSED[1])
    assert reasons(decision) == {"Failed", "AwaitingApproval"}


def test_the_user_can_hold_any_step():
    walk = Walk(at("Move"), MADE)
    assert reasons(walk.decide(intent(held=("Move",)))) == {"AwaitingApproval"}
    assert walk.decide(intent(held=("Move",), approved=True)).position.opened == NOW


def test_an_approval_of_another_step_does_not_count():
    wanted = replace(intent(), approved=frozenset({"Move", "Prepare"}))
    assert Walk(at("Seal"), MADE).decide(wanted).position.opened is None


def test_an_approval_that_does_not_count_is_told_and_does_not_count():
    wanted = replace(intent(), void={"Seal": "given for another plan", "Move": "not asked"})
    decision = Walk(at("Seal"), MADE).decide(wanted)
    assert decision.position.opened is None
    assert decision.judged["Approval"].verdict.reason == "ApprovalVoid"
    assert decision.judged["Approval"].verdict.message == "given for another plan"


@pytest.mark.parametrize(("wanted", "told"), [
    (intent(held=("Mov",)), "Mov in spec.holds"),
    (replace(intent(), approved=frozenset({"Sael"})), "Sael in spec.approvals"),
    (intent(paused=True, held=("Mov", "Sael")), "Mov in spec.holds, Sael in spec.holds"),
])
def test_no_step_begins_while_a_hold_or_approval_names_none(wanted, told):
    for walk in (Walk(at("Move"), MADE), Walk(at("Prepare"), MADE), Walk(at("Prepare", opened=True), MADE)):
        before = walk.scene.position
        for _ in range(3):
            decision = walk.decide(wanted)
        assert (decision.position, decision.effects, decision.stalled) == (before, (), None)
        (found,) = decision.judged["Steps"].verdict.findings
        assert (found.reason, told in found.message, "Prepare, Move, Seal" in found.unblocks) == ("NoSuchStep", True, True)
        assert found.unblocks.endswith(f"(did you mean {'Move' if told.startswith('Mov') else 'Seal'}?)")
    assert "Prepared" in decision.judged, "whatever else there is to tell is told"


def test_what_has_begun_goes_on_and_so_does_the_way_back_whatever_a_hold_names():
    assert Walk(at("Move", opened=True), MADE).decide(intent(held=("Mov",))).position.batch is not None
    assert Walk(at("Move", direction=BACKWARD), MADE).decide(intent(BACKWARD, held=("Mov",))).position.opened == NOW


def test_no_approval_is_asked_for_on_the_way_back():
    decision = Walk(at("Move", direction=BACKWARD), MADE).decide(intent(BACKWARD, held=("Move",)))
    assert decision.position.opened == NOW


def test_waiting_for_a_person_is_never_stalled():
    walk = Walk(at("Seal"), MADE)
    walk.decide()
    assert walk.decide(intent(patience=1.0), now=NOW + 1e6).stalled is None


# --- pause --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scene", "judged"), [
    (Scene(at("Seal")), {"ReadyToSeal", "Sealed"}),
    (moving(), {"Healthy", "SafeToEvict", "Moved"}),
    (moving(assigned=(OLD, OLD, OLD), batch=("n0",), runs=(OLD, OLD, OLD)), {"Healthy", "SafeToEvict", "Moved"}),
    (moving(batch=("n0",), runs=(NEW, OLD, OLD)), {"Healthy", "InSync", "Moved"}),
    (moving(assigned=(NEW, NEW, NEW)), {"Healthy", "Moved"}),
], ids=["before a step", "before a batch", "before an eviction", "after a batch", "before the end"])
def test_paused_every_gate_that_would_be_asked_is_judged_and_told(scene, judged):
    for name in sorted(judged):
        walk = Walk(scene.position, scene.world)
        decision = walk.decide(intent(paused=True), **{name: CLOSED[0]})
        assert judged | {"Paused"} <= decision.judged.keys()
        assert (decision.position, decision.effects) == (scene.position, ())
        assert {"Paused", CLOSED[0].reason} <= reasons(decision), name


@pytest.mark.parametrize("gate_name", ["Healthy", "InSync"])
def test_a_bake_in_which_a_gate_closes_during_a_pause_begins_anew(gate_name):
    scene = moving(batch=("n0",), runs=(NEW, OLD, OLD))
    walk = Walk(replace(scene.position, batch=replace(scene.position.batch, proven=NOW)), scene.world)
    assert walk.decide(intent(paused=True)).position.batch.proven == NOW
    decision = walk.decide(intent(paused=True), now=NOW + 1, **{gate_name: CLOSED[0]})
    assert decision.position.batch.proven is None
    assert decision.note.startswith(f"in the pause, gate {gate_name} closed: the bake ")
    healthy = walk.decide(intent(paused=True), now=NOW + 100)
    assert healthy.position.batch.proven is None, "a pause proves nothing"


def test_a_pause_is_not_stalled_however_long_it_lasts():
    walk = Walk(at("Move", opened=True), MADE)
    walk.decide(intent(paused=True, patience=1.0))
    assert walk.decide(intent(paused=True, patience=1.0), now=NOW + 1e6).stalled is None


# --- turning back -------------------------------------------------------------------------------------------------------


def test_a_node_that_was_assigned_and_not_moved_is_not_forgotten_by_turning_twice():
    scene = moving(batch=("n0",))
    walk = Walk(scene.position, scene.world)
    walk.decide(intent(BACKWARD))
    for _ in range(3):
        again = walk.decide(intent(FORWARD)).position
    assert again.batch is not None
    assert again.batch.nodes == ("n0",)
    assert again.nodes["n0"].assigned == NEW


def test_before_the_point_of_no_return_opens_the_whole_way_back_is_there():
    walk = Walk(at("Seal", modes=(NEW, NEW, NEW)), MADE)
    assert PLAN.can_go_back(walk.scene.position)
    turned = walk.decide(intent(BACKWARD)).position
    assert (turned.step, turned.direction) == ("Move", BACKWARD)
    assert PLAN.can_go_back(turned)


def test_once_the_point_of_no_return_is_on_record_going_back_is_refused_in_words():
    position = at("Seal", opened=True, modes=(NEW, NEW, NEW))
    walk = Walk(position, MADE)
    assert not PLAN.can_go_back(position)
    decision = walk.decide(intent(BACKWARD))
    assert decision.position == position
    assert decision.effects == ()
    assert reasons(decision) == {"PointOfNoReturn"}
    assert decision.stalled is not None
    assert decision.stalled.verdict.unblocks
    assert walk.decide(intent(FORWARD)).effects == (SEAL,), "it can still go on"


def test_a_step_that_cannot_be_taken_back_yet_refuses_in_words():
    one_way: Plan[Scene] = Plan((replace(PLAN.steps[0], back=None), PLAN.steps[1]))
    position = at("Move", opened=True)
    decision = Walk(position, MADE, one_way).decide(intent(BACKWARD))
    assert decision.position == position
    assert reasons(decision) == {"UndoNotAvailable"}


def test_a_step_later_than_one_that_cannot_be_taken_back_refuses_too():
    steps = (replace(PLAN.steps[0], back=None), PLAN.steps[1])
    assert not Plan(steps).can_go_back(at("Move", opened=True))


# --- both ends ----------------------------------------------------------------------------------------------------------


def test_finished_forward_it_does_nothing_more_whatever_is_wanted():
    walk = Walk(at("Seal", opened=True), SEALED)
    end = walk.decide().position
    assert end.finished
    for direction in (FORWARD, BACKWARD):
        decision = walk.decide(intent(direction, approved=True))
        assert (decision.position, decision.effects) == (end, ())


def test_a_new_start_after_a_rollback_is_a_new_attempt():
    position = at("Prepare", opened=True, direction=BACKWARD, finished=True)
    again = Walk(position).decide(intent(FORWARD)).position
    assert (again.attempt, again.direction, again.finished, again.opened) == (2, FORWARD, False, None)


# --- a spec that changes ------------------------------------------------------------------------------------------------

LOOKS: Plan[Scene] = Plan((
    Step("Look", forward=Leg(), back=Leg()), Step("Try", forward=Leg(), back=Leg()),
    *PLAN.steps))
RECORD = {"n0": NodeRecord(0, OLD)}


def standing(step: str, opened: float | None = None, **more: Any) -> Position:
    return Position(step=step, entered=NOW - 9, opened=opened, **more)


@pytest.mark.parametrize(("position", "again"), [
    (standing("Try"), True), (standing("Try", NOW - 5), True), (standing("Prepare"), True),
    (standing("Prepare", NOW - 5), False), (standing("Move"), False), (standing("Look"), False),
    (standing("Look", NOW - 5), False), (standing("Try", NOW - 5, nodes=RECORD), False),
    (standing("Try", NOW - 5, direction=BACKWARD), False)], ids=str)
@pytest.mark.parametrize("paused", [False, True])
def test_a_spec_that_changes_before_anything_is_touched_is_looked_at_from_the_start(position, again, paused):
    """What nothing was made of may change until then, and nobody has checked what it says now."""
    wanted = intent(position.direction, paused=paused)
    decision = decide(LOOKS, Scene(position), replace(wanted, changed=True), {}, NOW)
    words = "the spec was changed before anything was touched: Look begins again"
    assert (decision.note == words) is again
    if again:
        assert (decision.position, decision.effects) == (Position(step="Look", entered=NOW), ())
    assert decide(LOOKS, Scene(position), wanted, {}, NOW).note != words


def test_whoever_wants_to_go_back_goes_back_although_the_spec_has_changed():
    turned = decide(LOOKS, Scene(standing("Try", NOW - 5)), replace(intent(BACKWARD), changed=True), {}, NOW)
    assert (turned.position.step, turned.position.direction) == ("Try", BACKWARD)


# --- what is on record is not of this plan ------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("paused", [False, True])
def test_a_step_that_this_plan_does_not_know_is_touched_by_nobody(direction, opened, paused):
    position = at("StepOfALaterVersion", opened=opened)
    decision = Walk(position, MADE).decide(intent(direction, paused=paused, approved=True))
    assert (decision.position, decision.effects) == (position, ())
    assert decision.stalled is not None
    assert decision.stalled.verdict.reason == "UnknownStep"
    assert not PLAN.can_go_back(position)


# --- stalled ------------------------------------------------------------------------------------------------------------


def test_a_failed_gate_is_stalled_at_once():
    assert Walk(at("Prepare", opened=True), MADE).decide(Prepared=CLOSED[1]).stalled is not None


def test_a_step_without_progress_is_stalled_after_its_patience():
    for closed in (CLOSED[0], CLOSED[2]):
        walk = Walk(at("Prepare", opened=True), MADE)
        late = [walk.decide(intent(patience=60), now=now, Prepared=closed).stalled for now in (NOW, NOW + 60, NOW + 61)]
        assert late[:2] == [None, None]
        assert late[2] is not None
        assert late[2].verdict == closed


def test_a_gate_that_closes_for_a_moment_late_in_a_long_step_is_not_stalled():
    steady = Walk(at("Move", opened=True), MADE)
    assert steady.decide(intent(patience=60), now=NOW + 1e6, Healthy=CLOSED[0]).stalled is None
    assert steady.decide(intent(patience=60), now=NOW + 1e6 + 61, Healthy=CLOSED[0]).stalled is not None


def test_waiting_that_is_meant_to_be_long_is_not_stalled():
    for reason in ("Baking", "Soaking", "Retaining"):
        walk = Walk(at("Prepare", opened=True), MADE)
        assert walk.decide(intent(patience=60), now=NOW + 1e6, Prepared=wait(reason, "it takes time")).stalled is None


def test_of_several_overdue_gates_the_one_that_saw_something_is_told():
    def patient(name: str):
        return replace(gate(name), patience=lambda _: 10.0)

    step = Step("Move", forward=Leg(watch=(patient("Blind"), patient("Seeing"))), back=None)
    walk = Walk(at("Move", opened=True), plan=Plan((step,)))
    for now in (NOW, NOW + 11):
        decision = walk.decide(now=now, Blind=unknown("NotObserved", "no answer"), Seeing=CLOSED[0])
    assert decision.stalled is not None
    assert decision.stalled.verdict.reason == "Waiting"


def test_while_a_watch_gate_is_shut_the_pod_of_the_batch_is_told_of_and_not_moved():
    """Its group has no leader since that pod does not come up: who reads of the group alone looks in the wrong place."""
    scene = moving(assigned=(OLD, OLD, OLD), batch=("n0",))
    down = Node(uid="u2", ready=False, file=NEW, phase=Phase("pod n0 ended with 1", True, "kubectl logs n0"))
    position = scene.position.with_node("n0", replace(scene.position.nodes["n0"], evictions=1, evicting="u1"))
    walk = Walk(position, scene.world.with_node("n0", down))
    decision = walk.decide(Healthy=CLOSED[0])
    assert (decision.position, decision.effects) == (position, ())
    assert reasons(decision) >= {"Waiting", "PodInTrouble"}


def test_a_remediation_that_ends_nothing_bakes_all_the_same_so_that_the_next_node_gets_its_turn():
    """Else it is proven and unproven for ever: the gate that is shut is the one that it is for."""
    healthy = replace(gate("Healthy"), patience=lambda _: 10.0)
    restart = replace(rollout(OLD, (BatchSize(1, BAKE),)), restart=True,
                      left=lambda scene: Known([name for name in NODES if name not in scene.position.rescued], NOW))
    step = Step("Move", forward=Leg(watch=(healthy,), rescues=(Rescue((healthy,), restart),)), back=None)
    walk = Walk(at("Move", opened=True), MADE, Plan((step,)))
    for second in range(60):
        for effect in walk.decide(now=NOW + second, Healthy=CLOSED[0]).effects:
            world = perform(walk.scene.world, effect)
            if isinstance(effect, Evict):
                world = world.with_node(effect.pod, Node(uid="u2"))
            walk.scene = replace(walk.scene, world=world)
    assert walk.scene.position.rescued == NODES
    assert walk.scene.position.batch is None


def test_what_others_did_to_earlier_steps_is_taken_back_before_a_step_begins():
    """Shut gates, a hold and a pause do not keep it from that; once the step has begun, it is `keep` that counts."""
    move = PLAN.steps[1]
    guarded = replace(move, forward=replace(move.forward, keep=Correction(lambda _: (UNMAKE,), ahead=lambda _: (MAKE,))))
    plan = Plan((PLAN.steps[0], guarded, PLAN.steps[2]))
    for wanted in (intent(), intent(held=("Move",)), intent(paused=True)):
        decision = Walk(at("Move"), MADE, plan).decide(wanted)
        assert (decision.position.opened, decision.effects) == (None, (MAKE,))
        assert Walk(at("Move", opened=True), MADE, plan).decide(wanted).effects == (UNMAKE,)
