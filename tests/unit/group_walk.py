"""Walks along the plan of a ConsumerGroupMigration, pass after pass, over a group and its workloads on paper.

Everything a pass knows comes from the object's status, the world, and a memory that can be lost: as in the operator.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import jsonpatch
import pytest

from switchover.answers.observed import Known, Unknown
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.status import Direction
from switchover.engine.effects import DeletePod, Evict
from switchover.engine.gate import Streak
from switchover.engine.pace import Spent
from switchover.engine.plan import Decision, decide
from switchover.engine.policy import Policy
from switchover.engine.position import Position
from switchover.engine.story import Page, next_page
from switchover.groups.facts import GroupSample
from switchover.groups.gates.convergence import expected
from switchover.groups.gates.lag import thresholds
from switchover.groups.kind import consumer_group_migrations
from switchover.groups.picture import Facts, Fleet, Picture
from switchover.groups.workloads.change import original_name
from switchover.kafka.group import GroupState, OffsetsTopic, Readiness
from switchover.lag.group import Group as LagGroup
from switchover.lag.watch import Assessment, Watch
from switchover.lag.window import Offsets, Reading
from switchover.shared.partition import TopicPartition
from tales import Tale
from unit.group_pictures import (
    BOUNCES,
    BRIDGED,
    STRATEGY,
    TO_CLASSIC,
    UID,
    assessment,
    audited,
    broker,
    spec_of,
    tried,
    workload_of,
)
from unit.group_world import World

SECONDS = 3.0
"""Between two passes; each sweeps the group's offsets."""
WINDOW_SECONDS = 300.0
KIND = consumer_group_migrations(Policy(images=("pipeline",), claims=("pipeline",)))
KEEPS_UP = assessment(spec_of())
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


class Walk:
    """Decides and performs, pass after pass. With `judges_lag` the lag kernel itself judges; else the group keeps up."""

    def __init__(self, world: World, spec: dict[str, Any], *, judges_lag: bool = False) -> None:
        self.world, self.judges_lag = world, judges_lag
        self.wanted = spec
        self.migration = ConsumerGroupMigration.model_validate(
            {"metadata": {"name": "to-consumer", "uid": UID}, "spec": spec_of(*spec["workloads"], **{
                key: value for key, value in spec.items() if key != "workloads"})})
        self.steps = ["Preflight"]
        self.story: Tale | None = None              # what it has told since `tells`
        self.forget()
        self.total = {name: each.spec["replicas"] for name, each in world.workloads.items()}
        self.fewest = world.members()

    # --- a pass -------------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """The operator is another one: it knows what is in status."""
        self.page = Page()
        self.streaks: dict[str, Streak] = {}
        self.samples: deque[GroupSample] = deque()
        self.stands: dict[TopicPartition, tuple[int, float]] = {}       # the commit of what has more to commit; since when
        self.watch: Watch | None = None

    def tells(self) -> Self:
        """From now on it tells its story."""
        self.story = []
        return self

    def say(self, what: str) -> None:
        """Tell in the story what nobody logs."""
        self._tell([f"* {what}"])

    def _tell(self, lines: Iterable[str]) -> None:
        if self.story is not None:
            self.story += [(self.world.now, line) for line in lines]

    def wants(self, **changes: Any) -> None:
        """The user changes the spec."""
        self.say(f"a person sets {', '.join(f'{name} to {value}' for name, value in changes.items())}")
        self.wanted = self.wanted | changes
        self.migration = self.migration.evolve(spec=spec_of(*self.wanted["workloads"], **{
            key: value for key, value in self.wanted.items() if key != "workloads"}))

    @property
    def position(self) -> Position:
        return KIND.picture(self.migration, "shop", self.world.now).position

    def step(self, spoil: Callable[[Picture], Picture] = lambda picture: picture) -> Decision:
        """One pass; `spoil` is what it sees wrongly."""
        picture = spoil(self.picture())
        decision = decide(KIND.plan(picture), picture, KIND.intent(self.migration), self.streaks, picture.now)
        self.streaks = dict(decision.streaks)
        before = picture.position
        self.migration = self.migration.evolve(status=KIND.next_status(
            self.migration, picture, decision, Spent(), {}))
        if self.story is not None:
            self.page, lines = next_page(self.page, before, KIND.digest(picture), decision)
            acts = [f"act: {effect}" for effect in decision.effects]
            self._tell([*lines, *([f"recorded: {decision.note}"] if decision.position != before else acts)])
        if decision.position != before:
            assert self.position == decision.position, "what is on record is not what was decided"
        else:
            for effect in decision.effects:
                self.perform(effect)
        if self.position.step != self.steps[-1]:
            self.steps.append(self.position.step)
        for _ in range(round(SECONDS)):
            self.world.pass_time(1.0)
            self.fewest = min(self.fewest, self.world.members())
        return decision

    def perform(self, effect: Any) -> None:
        try:
            self.world.perform(effect)
        except jsonpatch.JsonPatchTestFailed as error:
            raise AssertionError(f"fenced although nobody wrote since it was read: {effect}") from error

    def until(self, reached: Callable[[], bool] = lambda: False, passes: int = 600) -> "Walk":
        """Walk until that, or to the end that is wanted."""
        for _ in range(passes):
            if reached() or self.ended():
                return self
            decision = self.step()
            assert decision.stalled is None, f"{self.position}\n{decision.stalled}"
        raise AssertionError(f"never came there: {self.position}\n{decision.judged}")

    def ended(self) -> bool:
        position = self.position
        return position.finished and position.direction is KIND.intent(self.migration).direction

    # --- what it sees -------------------------------------------------------------------------------------------------

    def picture(self) -> Picture:
        picture = KIND.picture(self.migration, "shop", self.world.now)
        world, spec, now = self.world, picture.spec, self.world.now
        group = world.coordinator.group()
        self.samples.append(GroupSample(now, group.epoch, dict(world.offsets), self._stood()))
        while now - self.samples[0].at > WINDOW_SECONDS:
            self.samples.popleft()
        workloads = spec.workloads
        fleet = Fleet(
            sources={each.name: world.seen(each.name) for each in workloads},
            originals={
                each.name: world.originals.get(
                    original_name(each.kind, each.name, picture.uid, picture.position.attempt))
                for each in workloads})
        settings = {"group.consumer.migration.policy": world.coordinator.policy}
        partitions = {"orders": len(world.coordinator.partitions)}
        common = world.coordinator.strategies_of_all()
        seen = replace(picture, facts=Facts(fleet=Known(fleet, now)))
        facts = Facts(
            fleet=Known(fleet, now), trials=tried(seen), cluster_id=Known("cluster-1", now), group=Known(group, now),
            partitions=Known(partitions, now), samples=Known(tuple(self.samples), now),
            lag=Known(self._lag(picture, partitions), now), brokers={1: Known(broker(settings=settings), now)},
            coordinators=Known(frozenset({1}), now),
            coordinated=Known({1: len(group.members)}, now), offsets_topic=Known(OffsetsTopic(1_048_588, False, 0), now),
            readiness=Known(Readiness("", ("uniform", "range")), now), missing_rights=Known((), now),
            unchecked=Known((), now),
            offered=Known(dict.fromkeys(common, True), now) if common else Unknown("the group rebalances"),
            audit=Known(audited() if world.jobs else None, now))
        return replace(picture, facts=facts).held_by(f"{UID}/operator-1", now)

    def _stood(self) -> dict[TopicPartition, float]:
        now, before = self.world.now, self.stands
        self.stands = {
            each: before[each] if each in before and before[each][0] == committed else (committed, now)
            for each, (committed, end) in self.world.offsets.items() if committed < end}
        return {each: now - since for each, (_, since) in self.stands.items() if now > since}

    def _lag(self, picture: Picture, partitions: dict[str, int]) -> Assessment:
        if not self.judges_lag:
            return KEEPS_UP
        if self.watch is None:
            self.watch = Watch(thresholds(picture))
        group, at, opened = self.world.coordinator.group(), round(self.world.now * 1000), picture.position.opened
        self.watch.add(Reading({each: Offsets(at, committed, end, 0, end)
                                for each, (committed, end) in self.world.offsets.items()}, frozenset({"orders"})))
        wanted = expected(group, partitions)
        sole = all(self.world.coordinator.owner(each) for each in wanted)
        return self.watch.assess(LagGroup(wanted, group.state == "Stable", group.epoch, sole), at,
                                 None if opened is None else round(opened * 1000))


# --- a walk along each plan, and how it ends ----------------------------------------------------------------------------

D, S = "Deployment", "StatefulSet"
OFFLINE = {"protocol": {"to": "Consumer", "strategy": "Offline"}}
DOWN = {"protocol": {"to": "Classic"}}
QUICK = {"soakSeconds": 6, "gates": {"stableSamples": 2, "maxStallSeconds": 30},
         "rollout": {"steps": [{"pods": 2, "bakeSeconds": 6}, {"pods": 2, "bakeSeconds": 3}]}}


def walk(*workloads: tuple[str, str, int], change: dict[str, Any] | None = None, spec: dict[str, Any] | None = None,
         judges_lag: bool = False, **world: Any) -> Walk:
    """At its start; bakes and the soak last a pass or two."""
    return Walk(World(*workloads, **world), wanted(*workloads, change=change, spec=spec), judges_lag=judges_lag)


def wanted(*workloads: tuple[str, str, int], change: dict[str, Any] | None = None,
           spec: dict[str, Any] | None = None) -> dict[str, Any]:
    """What is asked for of these workloads."""
    each = tuple(workload_of(kind, name, **(change or {})) for kind, name, _ in workloads)
    return {"workloads": each, **QUICK, **(spec or {})}


PLANS: dict[str, "partial[Walk]"] = {
    "Deployment": partial(walk, (D, "orders", 4), autoscaled="orders"),
    "StatefulSet": partial(walk, (S, "orders", 4)),
    "both": partial(walk, (D, "orders", 3), (S, "payments", 3)),
    "Deployment bridged": partial(walk, (D, "orders", 4), change=BRIDGED),
    "StatefulSet bridged": partial(walk, (S, "orders", 4), change=BRIDGED),
    "strategy, Deployment": partial(walk, (D, "orders", 4), change=BOUNCES, spec=STRATEGY),
    "strategy, StatefulSet": partial(walk, (S, "orders", 4), change=BOUNCES, spec=STRATEGY),
    "offline, Deployment": partial(walk, (D, "orders", 4), spec=OFFLINE),
    "offline, StatefulSet": partial(walk, (S, "orders", 4), spec=OFFLINE),
    "to classic, Deployment": partial(
        walk, (D, "orders", 4), change={"template": TO_CLASSIC}, spec=DOWN, protocol="consumer"),
    "to classic, StatefulSet": partial(
        walk, (S, "orders", 4), change={"template": TO_CLASSIC}, spec=DOWN, protocol="consumer"),
}
each_plan = pytest.mark.parametrize("plan", PLANS)


def new(plan: str) -> str:
    """What only the new clients of a plan have among their settings."""
    return "cooperative-sticky" if "strategy" in plan else "classic" if "classic" in plan else "consumer"


def spared(plan: str) -> int:
    """How many members a plan can be short of: a StatefulSet takes a pod away before it makes the next."""
    return 100 if "offline" in plan else 1 if "StatefulSet" in plan or plan == "both" else 0


def check_there(walk: Walk, plan: str) -> None:
    """Every pod is a new one's, nothing of ours is left, and the group is whole."""
    walked, world = walk.position, walk.world
    assert (walked.finished, walked.step, walked.direction) == (True, "HandOver", FORWARD)
    assert walk.migration.status.phase == "Succeeded"
    assert {name: each.spec["replicas"] for name, each in world.workloads.items()} == walk.total
    assert all(new(plan) in pod.client.values() for each in world.workloads.values() for pod in each.pods.values())
    check_left_alone(walk)


def check_back(walk: Walk, plan: str) -> None:
    """Exactly as it was before anything was touched."""
    fresh = PLANS[plan]().world
    assert (walk.position.finished, walk.position.step) == (True, "Preflight")
    assert {name: each.spec for name, each in walk.world.workloads.items()} == {
        name: each.spec for name, each in fresh.workloads.items()}
    assert not any(new(plan) in pod.client.values() for each in walk.world.workloads.values() for pod in each.pods.values())
    check_left_alone(walk)


def check_left_alone(walk: Walk) -> None:
    world = walk.world
    fresh = World(*((each.made["kind"], name, walk.total[name]) for name, each in world.workloads.items()))
    assert all(not each.made["metadata"].get("annotations") for each in world.workloads.values()), "claimed"
    for name, each in world.workloads.items():
        assert {**each.spec, "template": None} == {**fresh.workloads[name].spec, "template": None}
    if world.autoscaler is not None:
        assert world.autoscaler["spec"] == {"minReplicas": 4}
    assert (world.coordinator.state, world.members()) == (GroupState.STABLE, sum(walk.total.values()))
    assert all(world.coordinator.owner(each) for each in world.coordinator.partitions)


def check_on_the_way(walk: Walk, plan: str) -> None:
    """While nothing fails nobody leaves before whoever follows is a member, and no pod is evicted or deleted."""
    assert walk.fewest >= sum(walk.total.values()) - spared(plan)
    assert not [effect for effect in walk.world.done if isinstance(effect, Evict | DeletePod)]
