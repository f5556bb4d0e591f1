"""Walks along the plan of a group whose coordination moves."""

from collections import deque
from dataclasses import replace
from typing import Any

from switchover.answers.observed import Known
from switchover.groups.facts import StoreSample
from switchover.groups.picture import Picture
from unit.coordination_world import CoordinatedWorld, running
from unit.group_pictures import workload_of
from unit.group_walk import WINDOW_SECONDS, Walk

QUICK = {"soakSeconds": 6, "gates": {"stableSamples": 2, "maxStallSeconds": 60, "quietSeconds": 12},
         "rollout": {"steps": [{"pods": 1, "bakeSeconds": 6}, {"pods": 2, "bakeSeconds": 3}]},
         "zookeeper": {"connect": "zookeeper:2181"}}
KINDS = {"Kafka": ("enabled", "kafka"), "ZooKeeper": ("enabled", "old")}


def changes(to: str) -> dict[str, Any]:
    bridge, template = KINDS[to]
    return {"bridge": running(bridge), "template": running(template)}


class CoordinationWalk(Walk):
    """`replace: Nothing` where the world's pods are migration-enabled from the start."""

    def __init__(self, world: CoordinatedWorld, to: str = "Kafka", kind: str = "Deployment", **spec: Any) -> None:
        self.paper = world
        replaces = world.first != "enabled"
        workloads = tuple(workload_of(kind, name, **(changes(to) if replaces else {"template": {}}))
                          for name in world.workloads)
        coordination = {"to": to, "assignmentStrategy": "Range", **({} if replaces else {"replace": "Nothing"})}
        super().__init__(world, {"workloads": workloads, "coordination": coordination, **QUICK, **spec})
        self.reasons: set[str] = set()

    def forget(self) -> None:
        super().forget()
        self.stores: deque[StoreSample] = deque()
        self.quiet_since: float | None = None

    def step(self, *arguments: Any) -> Any:
        decision = super().step(*arguments)
        self.reasons |= {each.verdict.reason for each in decision.judged.values()}
        return decision

    def picture(self) -> Picture:
        picture, now = super().picture(), self.world.now
        if self.quiet_since is None or self.paper.of("old"):
            self.quiet_since = now
        self.stores.append(StoreSample(now, self.paper.stored()))
        while now - self.stores[0].at > WINDOW_SECONDS:
            self.stores.popleft()
        picture = replace(picture, facts=replace(
            picture.facts, zookeeper=Known(self.paper.tree(), now), stores=Known(tuple(self.stores), now),
            quiet_since=Known(self.quiet_since, now), missing_zookeeper_rights=Known((), now)))
        assert isinstance(picture.members, Known)
        self.samples[-1] = replace(self.samples[-1], epoch=picture.members.value.generation)
        return replace(picture, facts=replace(picture.facts, samples=Known(tuple(self.samples), now)))
