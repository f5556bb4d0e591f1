"""Every state that the small plan and its world can reach, against an environment that means ill.

Time is what it must be to tell young from old: a bake or a pod's start is either of this moment or long ago. A pod's uid
matters only as far as it is the one on record. What no decision reads is left out of a state, so the states are finite.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from made_reasons import fail, unknown, wait
from switchover.engine.gate import Streak, Verdict, passed
from switchover.engine.plan import Decision, Intent, decide
from switchover.engine.position import NodeRecord, Position
from unit.small_plan import (
    BACKWARD,
    FORWARD,
    LONG_AGO,
    NODES,
    NOW,
    PLAN,
    SAMPLES,
    Node,
    Scene,
    World,
    intent,
    perform,
    start,
)

VERDICTS = (passed(), wait("Waiting", "not yet"), fail("Failed", "somebody must act"), unknown("NotObserved", "no answer"))
ONWARD, APPROVED, BACK = intent(FORWARD), intent(FORWARD, approved=True), intent(BACKWARD)
UID, NEW, GONE = "the pod there is", "its successor", "its predecessor"


@dataclass(frozen=True, slots=True)
class State:
    """The position on record, the world, and how often InSync has passed in a row."""

    position: Position
    world: World
    passes: int = 0

    def __hash__(self) -> int:
        return hash((self.position.step, self.position.direction, self.position.opened, self.position.batch,
                     self.position.batches_done, tuple(self.position.nodes.values()), self.world, self.passes))


def scope(at: Position) -> str:
    return f"{at.attempt}/{at.direction}/{at.step}/{at.batches_done}"


def streaks_of(state: State) -> dict[str, Streak]:
    if not state.passes:
        return {}
    return {f"{scope(state.position)}/InSync": Streak(VERDICTS[0].outcome, NOW, state.passes)}


def abstract(position: Position, world: World, passes: int = 0) -> State:
    """The state without what no later decision reads."""
    batch = position.batch.nodes if position.batch is not None else ()
    records = {}
    for name, record in position.nodes.items():
        node = world.node(name)
        if name not in batch:
            records[name] = NodeRecord(record.node_id, record.assigned, settled=record.settled)
        elif record.evicting:
            known = UID if record.evicting == node.uid else GONE
            records[name] = NodeRecord(record.node_id, record.assigned, known, record.evictions, record.settled)
        else:
            records[name] = record
        waited_for = name in batch and record.evictions > 0 and node.ready and node.runs != record.assigned
        plain = Node(node.runs, node.uid and UID, node.ready, node.started_at if waited_for else LONG_AGO, node.file)
        if plain != node:
            world = world.with_node(name, plain)
    at = Position(1, position.step, position.direction, NOW, position.opened, position.batch, position.batches_done,
                  position.finished, position.failure, records)
    return State(at, world, min(passes, SAMPLES))


@dataclass
class Answers:
    """Answers the gates of one pass with a given row of verdicts, and notes which gate was asked what."""

    row: list[int]
    asked: dict[str, Verdict] = field(default_factory=dict)

    def __call__(self, name: str) -> Verdict:
        if name not in self.asked:
            if len(self.asked) == len(self.row):
                self.row.append(0)
            self.asked[name] = VERDICTS[self.row[len(self.asked)]]
        return self.asked[name]


def every_pass(state: State, wanted: Intent) -> Iterator[tuple[Decision, dict[str, Verdict]]]:
    """The decision for every combination of verdicts of the gates that are asked."""
    row: list[int] = []
    while True:
        answers = Answers(row)
        decision = decide(PLAN, Scene(state.position, state.world, answers), wanted, streaks_of(state), NOW)
        yield decision, answers.asked
        del row[len(answers.asked):]
        while row and row[-1] == len(VERDICTS) - 1:
            row.pop()
        if not row:
            return
        row[-1] += 1


def passes_after(decision: Decision) -> int:
    streak = decision.streaks.get(f"{scope(decision.position)}/InSync")
    return streak.passes if streak is not None else 0


def after(state: State, decision: Decision) -> Iterator[State]:
    """What a decision leads to: the record alone, or the effects, which the API server may refuse."""
    passes = passes_after(decision)
    yield abstract(decision.position, state.world, passes)
    world = state.world
    for effect in decision.effects:
        world = perform(world, effect)
        yield abstract(decision.position, world, passes)


# --- what the environment can do ----------------------------------------------------------------------------------------


def mischief(state: State) -> Iterator[State]:
    """Everything that can happen between two passes, one thing at a time."""
    if state.passes:
        yield replace(state, passes=0)                                       # the operator dies
    for name in NODES:
        for node in _fates(state, name):
            yield abstract(state.position, state.world.with_node(name, node), state.passes)
    yield from _time_passes(state)


def _fates(state: State, name: str) -> Iterator[Node]:
    node = state.world.node(name)
    up = sum(other.ready for other in state.world.nodes)
    if node.ready:
        if up == len(NODES):
            yield replace(node, ready=False)                                 # it crashes, and its pod stays
    elif node.uid == "":
        yield replace(node, uid=NEW)                                         # its new pod is there
    else:
        yield replace(node, ready=True, runs=node.file, started_at=NOW)      # it comes up as assigned
        if node.runs != node.file and up == len(NODES) - 1:
            yield replace(node, ready=True, started_at=NOW)                  # it comes up as it was


def _time_passes(state: State) -> Iterator[State]:
    nodes = tuple(replace(node, started_at=LONG_AGO) if node.ready else node for node in state.world.nodes)
    batch = state.position.batch
    if batch is not None and batch.proven is not None:
        batch = replace(batch, proven=LONG_AGO)
    if nodes != state.world.nodes or batch != state.position.batch:
        yield abstract(replace(state.position, batch=batch), replace(state.world, nodes=nodes), state.passes)


# --- the environment when it means well ---------------------------------------------------------------------------------


def benign(state: State, wanted: Intent) -> tuple[State, Decision]:
    """One pass in which every gate passes and every effect works; then nodes come up, time passes, a person repairs."""
    decision = decide(PLAN, Scene(state.position, state.world), wanted, streaks_of(state), NOW)
    world = state.world
    for effect in decision.effects:
        world = perform(world, effect)
    next_state = abstract(decision.position, world, passes_after(decision))
    if decision.position != state.position or decision.effects:
        return next_state, decision
    nodes = []
    for name in NODES:
        node = world.node(name)
        if node.uid == "":
            node = replace(node, uid=NEW)
        elif not node.ready or f"Replace/{name}" in decision.judged:
            node = Node(node.file, node.uid, True, LONG_AGO, node.file)
        nodes.append(node)
    return next(_time_passes(replace(next_state, world=replace(world, nodes=tuple(nodes)))),
                abstract(decision.position, replace(world, nodes=tuple(nodes)), passes_after(decision))), decision


def ways() -> dict[State, None]:
    """Every state of a migration to which nothing happens, and of its way back from each of them."""
    there = _way(abstract(start(), World()), APPROVED)
    back = [each for state in there if state.position.step != "Seal" for each in _way(state, BACK)]
    return dict.fromkeys([*there, *back])


def _way(state: State, wanted: Intent) -> list[State]:
    path = [state]
    while not (state.position.finished and state.position.direction is wanted.direction):
        state, _ = benign(state, wanted)
        path.append(state)
    return path


def intents(state: State) -> tuple[Intent, ...]:
    """What the user may want; an approval is read at the hold alone."""
    return (ONWARD, APPROVED, BACK) if state.position.step == "Seal" else (ONWARD, BACK)
