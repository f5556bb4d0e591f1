"""A plan of three steps over three nodes, small enough to be explored completely, and the world that it moves.

Prepare makes something, Move takes the nodes from mode Old to New in batches of one and then two, Seal ends all return. Each
kind of gate occurs once: ReadyToSeal enters, Healthy watches, SafeToEvict comes before a node, InSync after a batch,
Prepared, Moved, Sealed and Unprepared end a leg.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from switchover.answers.observed import Known, Observed, Unknown
from switchover.api.status import Direction
from switchover.engine.effects import Apply, DeletePod, Effect, Evict, WriteNodeFiles
from switchover.engine.gate import Gate, Verdict, passed
from switchover.engine.plan import Intent, Leg, Plan, Step
from switchover.engine.position import NodeRecord, Position
from switchover.engine.rollout import BatchSize, Phase, Rollout, Sight

NODES = ("n0", "n1", "n2")
OLD, NEW = "Old", "New"
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
NOW, BAKE = 1000.0, 5.0
LONG_AGO = NOW - 100
SAMPLES = 2
"""Passes in a row that InSync wants."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node outside: the mode it runs in, its pod ("" while there is none), and the mode that its file says."""

    runs: str = OLD
    uid: str = "u1"
    ready: bool = True
    started_at: float = LONG_AGO
    file: str = OLD
    terminating: bool = False
    trouble: str = ""
    phase: Phase | None = None


@dataclass(frozen=True, slots=True)
class World:
    """What the plan moves: `made` is what Prepare makes, `sealed` what Seal does."""

    nodes: tuple[Node, ...] = (Node(), Node(), Node())
    made: bool = False
    sealed: bool = False

    def node(self, name: str) -> Node:
        return self.nodes[NODES.index(name)]

    def with_node(self, name: str, node: Node) -> "World":
        index = NODES.index(name)
        return World((*self.nodes[:index], node, *self.nodes[index + 1:]), self.made, self.sealed)


def open_gates(_: str) -> Verdict:
    """Every gate passes."""
    return passed()


@dataclass(frozen=True, slots=True)
class Scene:
    """The picture of one pass; `verdict` answers for every gate by its name."""

    position: Position
    world: World = World()
    verdict: Callable[[str], Verdict] = open_gates
    unseen: Mapping[str, str] = field(default_factory=dict)
    named: tuple[str, str] = ("small/thing", "demo")

    def at(self, position: Position) -> "Scene":
        return replace(self, position=position)


def gate(name: str, samples: int = 1) -> Gate[Scene]:
    return Gate(name, lambda scene: scene.verdict(name), samples=lambda _: samples)


# --- effects ------------------------------------------------------------------------------------------------------------

MAKE, UNMAKE, SEAL = (
    Apply({"kind": kind, "metadata": {"name": "thing"}}) for kind in ("Make", "Unmake", "Seal"))


def write_files(scene: Scene) -> tuple[Effect, ...]:
    files = {name: record.assigned for name, record in scene.position.nodes.items()}
    if all(scene.world.node(name).file == mode for name, mode in files.items()):
        return ()
    return (WriteNodeFiles("files", files, {}),)


def replace_pod(_: Scene, name: str, seen: Sight) -> Effect:
    return Evict(name, seen.uid) if seen.ready else DeletePod(name, seen.uid)


def perform(world: World, effect: Effect) -> World:
    """The world after an effect; a pod that is evicted is gone until it comes back by itself."""
    match effect:
        case Apply(manifest):
            kind = manifest["kind"]
            return replace(world, sealed=True) if kind == "Seal" else replace(world, made=kind == "Make")
        case WriteNodeFiles(_, files, _):
            for name, mode in files.items():
                world = world.with_node(name, replace(world.node(name), file=mode))
            return world
        case Evict(pod, uid) | DeletePod(pod, uid):
            node = world.node(pod)
            assert node.uid == uid, "the API server would refuse: another pod"
            return world.with_node(pod, replace(node, uid="", ready=False))
    raise AssertionError(f"no such effect here: {effect}")


def sight(scene: Scene, name: str) -> Observed[Sight]:
    if name in scene.unseen:
        return Unknown(scene.unseen[name])
    node = scene.world.node(name)
    started = node.started_at if node.uid else None
    mode = node.runs if node.ready else ""
    return Known(Sight(node.uid, node.ready, node.terminating, started, mode, node.trouble, node.phase), NOW)


# --- the plan -----------------------------------------------------------------------------------------------------------


def _left(mode: str) -> Callable[[Scene], Observed[list[str]]]:
    def left(scene: Scene) -> Observed[list[str]]:
        if "order" in scene.unseen:
            return Unknown(scene.unseen["order"])
        return Known(scene.position.left(NODES, mode), NOW)

    return left


def rollout(mode: str, sizes: tuple[BatchSize, ...] = (BatchSize(1, BAKE), BatchSize(2, BAKE))) -> Rollout[Scene]:
    return Rollout(mode=mode, left=_left(mode), sight=sight, assign=write_files, replace=replace_pod,
                   sizes=lambda _: sizes, before=(gate("SafeToEvict"),), after=(gate("InSync", SAMPLES),))


def assign_all(_: Scene) -> Mapping[str, NodeRecord]:
    return {name: NodeRecord(index, OLD) for index, name in enumerate(NODES)}


PLAN: Plan[Scene] = Plan((
    Step("Prepare",
         forward=Leg(assigns=assign_all, goal=lambda scene: () if scene.world.made else (MAKE,), done=(gate("Prepared"),)),
         back=Leg(goal=lambda scene: (UNMAKE,) if scene.world.made else (), done=(gate("Unprepared"),))),
    Step("Move",
         forward=Leg(watch=(gate("Healthy"),), rollouts=(rollout(NEW),), done=(gate("Moved"),)),
         back=Leg(watch=(gate("Healthy"),), rollouts=(rollout(OLD),))),
    Step("Seal", hold=True, back=None,
         forward=Leg(enter=(gate("ReadyToSeal"),), goal=lambda scene: () if scene.world.sealed else (SEAL,),
                     done=(gate("Sealed"),))),
))


def intent(direction: Direction = FORWARD, *, paused: bool = False, approved: bool = False, held: tuple[str, ...] = (),
           patience: float = 1e9) -> Intent:
    return Intent(direction, paused, frozenset(held), frozenset({"Seal", *held} if approved else ()), patience)


def start() -> Position:
    return Position(step="Prepare", entered=NOW)


def moving(*, assigned: Sequence[str] = (OLD, OLD, OLD), runs: Sequence[str] | None = None, batch: tuple[str, ...] = (),
           direction: Direction = FORWARD, done: int = 0) -> Scene:
    """In the step Move: the modes on record and those that run (the same unless told), and the batch on record."""
    runs = runs or assigned
    target = NEW if direction is FORWARD else OLD
    nodes = {name: NodeRecord(index, mode) for index, (name, mode) in enumerate(zip(NODES, assigned, strict=True))}
    position = Position(step="Move", direction=direction, entered=LONG_AGO, opened=LONG_AGO, nodes=nodes, batches_done=done)
    if batch:
        position = position.with_batch(batch, target, NOW)
    files = tuple(position.nodes[name].assigned for name in NODES)
    world = World(tuple(Node(runs=mode, file=file) for mode, file in zip(runs, files, strict=True)), made=True)
    return Scene(position, world)
