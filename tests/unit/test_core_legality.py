"""Every move that can be made from every state that can be reached is a legal one, and from everywhere there is a way on.

The states are those of the small plan with three nodes (`exploration.py`): every combination of verdicts in every pass,
nodes that crash and come back in their assigned mode or, once too often, as they were, evictions refused, the operator
killed at any moment, minds changed at any moment.
"""

import random
from dataclasses import replace

import pytest

import samples
from switchover.engine.effects import Apply, DeletePod, Evict, WriteNodeFiles
from switchover.engine.gate import Verdict
from switchover.engine.plan import Decision, Intent, decide
from switchover.engine.position import NodeRecord, Position
from unit.exploration import ONWARD, State, abstract, after, benign, every_pass, intents, mischief, streaks_of, ways
from unit.small_plan import BACKWARD, BAKE, FORWARD, MAKE, NEW, NOW, OLD, PLAN, SEAL, UNMAKE, Scene, World, intent, start

STEPS = [step.name for step in PLAN.steps]
PAUSED = (intent(FORWARD, paused=True, approved=True), intent(BACKWARD, paused=True))
STATES = (10_000, 100_000)
"""Between so many: fewer and the environment has become too kind, more and there is an explosion of states."""
ORDINARY = 8_000
"""How many of them an ordinary run judges; `long` takes them all."""

Asked = dict[str, Verdict]


def test_every_move_from_some_reachable_states_is_legal_and_leads_on(counted):
    judged, found = explored(ORDINARY)
    counted(samples.told(judged, found, "states that were found"))


@pytest.mark.long
def test_every_move_from_every_reachable_state_is_legal_and_leads_on():
    fewest, most = STATES
    judged, found = explored(most)
    assert fewest < judged == found


def explored(most: int) -> tuple[int, int]:
    """Judge so many states, the undisturbed ways first and then whichever: how many there were, and how many were found."""
    dice, edges = random.Random(samples.SAMPLE), ways()
    states, judged, passes, undisturbed = list(edges), 0, 0, len(edges)
    try:
        while judged < min(len(states), most):
            if judged >= undisturbed:
                other = dice.randrange(judged, len(states))
                states[judged], states[other] = states[other], states[judged]
            state = states[judged]
            judged += 1
            following = list(mischief(state))
            for wanted in intents(state):
                for decision, asked in every_pass(state, wanted):
                    passes += 1
                    check_pass(state, wanted, decision, asked)
                    following += after(state, decision)
            for wanted in PAUSED:
                check_pause(state, wanted)
            for found in following:
                if found not in edges:
                    edges[found] = None
                    states.append(found)
        walked = check_that_all_ends_are_reachable(states[:judged])
    except AssertionError as error:
        raise AssertionError(f"SAMPLE={samples.SAMPLE}: {error}") from error
    print(f"\n{judged} states, {passes} passes judged, {walked} steps walked to both ends")
    return judged, len(states)


# --- one pass -----------------------------------------------------------------------------------------------------------


def check_pass(state: State, wanted: Intent, decision: Decision, asked: Asked) -> None:
    at, to = state.position, decision.position
    if to != at:
        assert decision.effects == (), "a move and an effect in one pass"
        check_move(state, wanted, to, asked)
    for effect in decision.effects:
        check_effect(state, effect, asked)
    if to == at and not decision.effects and not at.finished:
        assert any(not item.open for item in decision.judged.values()), "nothing moves and nothing is waited for"
    if begun(at) and wanted.direction is BACKWARD and not at.finished:
        assert decision.judged["Undo"].verdict.reason == "PointOfNoReturn"


def begun(at: Position) -> bool:
    """Whether the point of no return is passed."""
    return at.step == "Seal" and at.opened is not None


def check_pause(state: State, wanted: Intent) -> None:
    decision = decide(PLAN, Scene(state.position, state.world), wanted, streaks_of(state), NOW)
    at, to = state.position, decision.position
    if to != at:                                       # the one thing recorded: a bake in which a gate closed is void
        assert at.batch is not None
        assert at.batch.proven is not None
        assert to == replace(at, batch=replace(at.batch, proven=None))
    assert decision.effects == ()
    assert state.position.finished or any(not item.open for item in decision.judged.values())


def passed(asked: Asked, *names: str) -> bool:
    return all(name in asked and asked[name].outcome == "Pass" for name in names)


# --- moves --------------------------------------------------------------------------------------------------------------


def check_move(state: State, wanted: Intent, to: Position, asked: Asked) -> None:
    """A move is exactly one of these."""
    at = state.position
    if at.direction is not to.direction:
        check_turn(at, wanted, to)
    elif at.step != to.step or to.finished:
        check_leaving(state, to, asked)
    elif at.opened != to.opened:
        check_opening(at, wanted, to, asked)
    elif at.batch is None:
        check_choosing(state, to, asked)
    elif to.batch is None:
        check_end_of_batch(state, to, asked)
    elif at.nodes != to.nodes:
        check_uid_on_record(state, to, asked)
    else:
        check_proof(state, to, asked)
    assert all(record.evictions <= 2 for record in to.nodes.values())


def check_turn(at: Position, wanted: Intent, to: Position) -> None:
    assert to.direction is wanted.direction
    assert not begun(at), "back from the point of no return"
    assert not (at.finished and at.direction is FORWARD)
    assert to.opened is None
    assert not to.finished
    assert to.attempt == at.attempt + at.finished
    not_begun = at.step == "Seal"
    assert STEPS.index(to.step) == STEPS.index(at.step) - not_begun
    assert to.batch is None
    assert to.nodes == ({} if at.finished else at.nodes), "a turn forgets where the nodes of its batch were"


def check_leaving(state: State, to: Position, asked: Asked) -> None:
    at, world = state.position, state.world
    assert at.opened is not None, "a step that never began has ended"
    assert at.batch is None, "a step has ended in the middle of a batch"
    assert at.nodes == to.nodes
    onward = STEPS.index(at.step) + (1 if at.direction is FORWARD else -1)
    if to.finished:
        assert onward in (-1, len(STEPS))
        assert to.step == at.step
    else:
        assert to.step == STEPS[onward]
        assert (to.opened, to.batch, to.batches_done) == (None, None, 0)
    match at.step, at.direction:
        case "Prepare", _:
            assert world.made == (at.direction is FORWARD)
            assert passed(asked, "Prepared" if at.direction is FORWARD else "Unprepared")
        case "Move", _:
            mode = NEW if at.direction is FORWARD else OLD
            assert {record.assigned for record in at.nodes.values()} == {mode}
            assert {node.runs for node in world.nodes} == {mode}, "a node was left behind"
            assert passed(asked, "Healthy", *(["Moved"] if at.direction is FORWARD else []))
        case "Seal", _:
            assert world.sealed
            assert passed(asked, "Sealed")


def check_opening(at: Position, wanted: Intent, to: Position, asked: Asked) -> None:
    assert at.opened is None
    if at.step == "Seal":
        assert "Seal" in wanted.approved, "begun without an approval"
        assert passed(asked, "ReadyToSeal"), "gates are read again right before the point of no return"
    if at.step != "Prepare":
        assert at.nodes == to.nodes


def check_choosing(state: State, to: Position, asked: Asked) -> None:
    at = state.position
    assert at.opened is not None
    assert at.step == "Move"
    assert to.batch is not None
    assert passed(asked, "Healthy", "SafeToEvict")
    mode = NEW if at.direction is FORWARD else OLD
    chosen = set(to.batch.nodes)
    assert 1 <= len(chosen) <= (1 if at.batches_done == 0 else 2)
    for name, record in to.nodes.items():
        if name in chosen:
            assert at.nodes[name].assigned != mode or not at.nodes[name].settled
            assert record == NodeRecord(record.node_id, mode, settled=False)
        else:
            assert record == at.nodes[name], "assigned without its batch"
            arrived = state.world.node(name).runs == record.assigned
            assert arrived or not record.settled, "a second batch before the first one arrived"


def check_uid_on_record(state: State, to: Position, asked: Asked) -> None:
    at = state.position
    assert at.batch is not None
    assert to.batch == at.batch
    changed = [name for name in at.nodes if at.nodes[name] != to.nodes[name]]
    assert len(changed) == 1
    before, after_it = at.nodes[changed[0]], to.nodes[changed[0]]
    assert changed[0] in at.batch.nodes
    assert after_it.evicting == state.world.node(changed[0]).uid != ""
    assert (after_it.assigned, after_it.evictions) == (before.assigned, before.evictions + 1)
    assert passed(asked, "Healthy", "SafeToEvict")


def check_proof(state: State, to: Position, asked: Asked) -> None:
    at = state.position
    assert at.batch is not None
    assert to.batch is not None
    assert at.nodes == to.nodes
    if to.batch.proven is not None:
        assert in_mode(state)
        assert passed(asked, "Healthy", "InSync")
        assert state.passes >= 1, "one pass of InSync is not two"
    else:
        healthy = in_mode(state) and passed(asked, "Healthy", "InSync")
        assert not healthy, "a bake begins anew only when something went wrong"


def check_end_of_batch(state: State, to: Position, asked: Asked) -> None:
    at = state.position
    assert at.batch is not None
    assert at.batch.proven is not None
    assert at.batch.proven + BAKE <= NOW
    assert in_mode(state)
    assert passed(asked, "Healthy", "InSync")
    settled = {name: replace(record, settled=True) if name in at.batch.nodes else record
               for name, record in at.nodes.items()}
    assert (to.nodes, to.batches_done) == (settled, at.batches_done + 1)


def in_mode(state: State) -> bool:
    assert state.position.batch is not None
    nodes = [(state.world.node(name), state.position.nodes[name].assigned) for name in state.position.batch.nodes]
    return all(node.ready and node.runs == assigned for node, assigned in nodes)


# --- effects ------------------------------------------------------------------------------------------------------------


def check_effect(state: State, effect: object, asked: Asked) -> None:
    """Nothing is done that is not on record, nor while the gates of this very pass are closed."""
    at = state.position
    assert at.opened is not None, "an effect before its step was on record"
    assert not at.finished
    match effect:
        case Apply():
            allowed = {("Prepare", FORWARD): MAKE, ("Prepare", BACKWARD): UNMAKE, ("Seal", FORWARD): SEAL}
            assert effect == allowed[at.step, at.direction]
        case WriteNodeFiles(_, files, _):
            assert at.step == "Move"
            assert at.batch is not None
            assert files == {name: record.assigned for name, record in at.nodes.items()}
        case Evict(pod, uid) | DeletePod(pod, uid):
            assert at.step == "Move"
            assert at.batch is not None
            assert pod in at.batch.nodes
            assert uid == at.nodes[pod].evicting == state.world.node(pod).uid, "a pod that is not on record"
            assert state.world.node(pod).file == at.nodes[pod].assigned, "evicted before its file was written"
            assert passed(asked, "Healthy", "SafeToEvict"), "a gate was not read again after the record"
            assert isinstance(effect, Evict) == state.world.node(pod).ready
        case _:
            raise AssertionError(effect)


# --- liveness -----------------------------------------------------------------------------------------------------------


def check_that_all_ends_are_reachable(states: list[State]) -> int:
    """In an environment that means well every state leads to the end that is wanted, or says why not."""
    walked = 0
    for wanted in (intent(FORWARD, approved=True), intent(BACKWARD)):
        good: set[State] = set()
        for state in states:
            if wanted.direction is BACKWARD and begun(state.position):
                continue
            path: dict[State, None] = {}
            while state not in good and not at_end(state, wanted):
                assert state not in path, f"for ever in {state.position} of {state.world}"
                path[state] = None
                state, _ = benign(state, wanted)
            walked += len(path)
            good.update(path)
            good.add(state)
    return walked


def at_end(state: State, wanted: Intent) -> bool:
    return state.position.finished and state.position.direction is wanted.direction


def test_a_migration_that_fails_in_the_middle_can_be_tried_again():
    state = abstract(start(), World())
    for wanted, passes in ((ONWARD, 12), (intent(BACKWARD), 60), (intent(FORWARD, approved=True), 100)):
        for _ in range(passes):
            state, _ = benign(state, wanted)
    assert at_end(state, ONWARD)
    assert state.world.sealed
