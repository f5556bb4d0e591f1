"""Walks along the whole plan of a KafkaMigration, pass after pass, over a cluster on paper."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Direction
from switchover.cluster import modes
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.engine.effects import Apply, DeletePod, Effect, Evict, Patch, Provide
from switchover.engine.gate import Streak
from switchover.engine.plan import Decision, decide
from switchover.engine.position import Position
from unit.pictures import NOW, Cluster, spec_of, stateful_set, three
from unit.small_plan import FORWARD, intent

STEPS = [step.name for step in PLAN.steps]
REHEARSED = "kafka-controller-0"
"""The leader, which is restarted once more in the soak."""
PROOF = ("kafka-2", "kafka-controller-1")
"""The broker that leads least and a controller that does not lead: they are restarted while ZooKeeper is stopped."""
LONG = ("Soak", "ReleaseZooKeeper")
"""Steps that are mostly waiting: their time passes faster here."""


class Walk:
    """Decides and performs, pass after pass, and keeps the order of all that happened."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.spec = spec_of(rollout={"steps": [{"pods": 1, "bakeSeconds": 5}]})
        self.position = Position(step="Preflight", entered=NOW)
        self.streaks: dict[str, Streak] = {}
        self.steps = ["Preflight"]
        self.assigned: list[tuple[str, str]] = []
        self.modes_seen: list[tuple[Mode, ...]] = []

    def picture(self) -> Picture:
        return self.cluster.picture(self.position, self.spec)

    def step(self, approved: bool = True, picture: Picture | None = None, direction: Direction = FORWARD) -> Decision:
        """One pass, over what is there or over what `picture` shows of it."""
        wanted = replace(intent(direction), approved=frozenset({"Finalize", "HandOver"} if approved else ()), patience=1e9)
        decision = decide(PLAN, picture or self.picture(), wanted, self.streaks, self.cluster.now)
        for name, record in decision.position.nodes.items():
            before = self.position.nodes.get(name)
            if before is None or before.assigned != record.assigned:
                self.assigned.append((name, record.assigned))
        for effect in decision.effects:
            self.check(effect)
            self.cluster.perform(effect)
        if any(item.verdict.reason == "ZooKeeperRuns" for item in decision.judged.values()):
            self.cluster.connections = None                    # what a person does who is asked
        self.streaks, self.position = dict(decision.streaks), decision.position
        if self.position.step != self.steps[-1]:
            self.steps.append(self.position.step)
        seen = (node.mode for node in self.cluster.brokers.values())
        self.modes_seen.append(tuple(sorted(seen, key=modes.BROKERS.index)))
        self.cluster.pass_time(600.0 if self.position.step in LONG else 1.0)
        return decision

    def check(self, effect: Effect) -> None:
        brake = isinstance(effect, Patch) and effect.operations[1:] == (
            {"op": "replace", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}},)
        assert self.position.opened is not None or brake, "the brake alone takes back what others did"
        if isinstance(effect, Evict | DeletePod):
            assert self.position.batch is not None
            assert self.position.nodes[effect.pod].evicting == effect.uid
        if isinstance(effect, Apply | Provide):
            assert "ownerReferences" not in repr(effect)

    def until(self, step: str = "the end") -> None:
        self.go(lambda: self.position.step == step)

    def go(self, reached: Callable[[], bool], direction: Direction = FORWARD) -> None:
        """Walk until that or to the end that is wanted."""
        for _ in range(800):
            if reached() or (self.position.finished and self.position.direction is direction):
                return
            decision = self.step(direction=direction)
            assert decision.stalled is None, decision.stalled
        raise AssertionError(f"never came there: {self.position}")


def changes(seen: list[tuple[Mode, ...]]) -> list[tuple[Mode, ...]]:
    """Each of a row of equal items once."""
    return [item for index, item in enumerate(seen) if index == 0 or item != seen[index - 1]]


def one_by_one(*through: Mode) -> list[tuple[Mode, ...]]:
    """What is seen of three brokers that go from mode to mode, one after the other."""
    return [three(through[0]), *((before,) * (3 - done) + (after,) * done
                                 for before, after in pairwise(through) for done in (1, 2, 3))]


def opened(step: str) -> Callable[[Walk], Callable[[], bool]]:
    return lambda walk: lambda: walk.position.step == step and walk.position.opened is not None


def in_batch(step: str, index: int) -> Callable[[Walk], Callable[[], bool]]:
    """The batch is assigned; its pod may still run in the old mode."""
    return lambda walk: lambda: (walk.position.step == step and walk.position.batch is not None
                                 and walk.position.batch.index == index)


def replaced_in_batch(step: str, index: int) -> Callable[[Walk], Callable[[], bool]]:
    return lambda walk: lambda: in_batch(step, index)(walk)() and all(
        walk.cluster.brokers[name].mode == walk.position.nodes[name].assigned for name in walk.position.batch.nodes)


def check_back_at_the_start(walk: Walk) -> None:
    cluster = walk.cluster
    assert walk.position.finished
    assert {node.mode for node in cluster.brokers.values()} == {Mode.ZOOKEEPER}
    assert cluster.manifest["spec"] == stateful_set()["spec"], "not the user's own template and strategy"
    assert (cluster.controllers, cluster.claims, cluster.files, cluster.original) == ({}, (), {}, None)
    assert (cluster.taken, cluster.migration_node, cluster.claimed_by) == (False, False, "")
