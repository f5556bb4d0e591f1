"""A ConsumerGroupMigration in virtual time: Kopf, the Reconciler, Leases and the adapters of workloads are the operator's.

What Kubernetes makes of a workload, and the coordinator of a group, are those of `unit.group_world`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from fakes.api_server import NAMESPACE
from fakes.incarnation import Incarnation, SimulatedApiServer
from fakes.members import PLURALS, ServedWorld
from invariants.memory import Course, Limits
from simulation.operated import Of, OperatedWorld
from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec
from switchover.engine.kind import Kind
from switchover.engine.policy import Policy
from switchover.groups.kind import consumer_group_migrations
from switchover.groups.plan import plan_of
from switchover.kafka.group import BrokerGroups, Group, OffsetsTopic, Readiness
from switchover.kafka.ports import Cluster
from switchover.kubernetes.client.survey import GROUP_RIGHTS, KubernetesSurvey
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.lag.window import Asked, Offsets, Reading, Sweep
from switchover.network.addresses import Address
from switchover.process.connections import GroupConnections, GroupOpeners
from unit.group_pictures import broker

OF = Of("ConsumerGroupMigration", "consumergroupmigrations", "cgmig", "to-consumer")
POLICY = Policy(images=("pipeline",), claims=("pipeline",))


def places_of(steps: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Preflight touches nothing, Baseline claims, and what it keeps of a template is written by no other step."""
    touching = frozenset(f"{step}{way}" for step in steps[1:] for way in "><")
    return {**dict.fromkeys((*PLURALS.values(), "horizontalpodautoscalers", "pods"), touching),
            "controllerrevisions": frozenset({f"{steps[1]}>"})}


def course_of(spec: ConsumerGroupMigrationSpec) -> Course:
    steps = tuple(step.name for step in plan_of(spec).steps)
    return Course(steps, steps[-1], tuple(f"{step}>" for step in steps[1:3]), places_of(steps))


@dataclass(frozen=True)
class GroupEnd:
    """What is there in the end, without what differs from run to run by right (uids, versions, times, names of pods)."""

    workloads: dict[str, Any]
    pods: dict[str, int]
    others: list[tuple[str, str]]
    autoscaler: Any
    group: tuple[object, ...]
    status: dict[str, Any]


class GroupMigrationWorld(OperatedWorld):
    """The world of one ConsumerGroupMigration. `spec` is that of the object, as YAML has it; `how` is for the workloads.
    The group must never have fewer members than at its start, but for `spared`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, spec: Mapping[str, Any], workloads: Iterable[tuple[str, str, int]],
                 spared: int, seed: int = 0, lag: float = 2.0, **how: Any) -> None:
        course = course_of(ConsumerGroupMigrationSpec.model_validate(spec))
        self.steps = course.steps
        super().__init__(monkeypatch, OF, seed, lag, Limits(namespace=NAMESPACE), course=course)
        self.fleet = ServedWorld(self.api, *workloads, **how)
        self.timeline.wait(self.fleet.now - self.timeline.now())
        self.floor = self.fleet.members() - spared
        self.api.add("switchover.dev/v1alpha1", OF.kind, OF.plural, OF.name, spec=dict(spec))

    def advance(self) -> None:
        while self.fleet.now + 1.0 <= self.timeline.now():
            self.witness.wish()
            self.fleet.tick()
            if (members := self.fleet.members()) < self.floor:
                self.jury.violations.append(f"{members} members in {self.step}, at least {self.floor} are wanted")

    def approve_what_waits(self, only: tuple[str, ...] = ()) -> None:
        """Nothing waits for a person unless a test says so."""

    @property
    def kind(self) -> Kind[Any, Any]:
        return consumer_group_migrations(POLICY)

    def connect(self, incarnation: Incarnation, server: SimulatedApiServer, workloads: KubernetesWorkloads,
                watched: KubernetesWorkloads) -> GroupConnections:
        openers = GroupOpeners(groups=lambda _: SimulatedGroups(incarnation, self.fleet),
                               offsets=lambda _: SimulatedGroupOffsets(incarnation, self.fleet))
        return GroupConnections(workloads, KubernetesSurvey(server, GROUP_RIGHTS), self.timeline, openers, watched)

    def end_state(self) -> GroupEnd:
        """What must not depend on what troubled the operator."""
        made = [each for plural in PLURALS.values() for each in self.api.of(plural)]
        pods = Counter(str(sorted(pod.client.items())) for each in self.fleet.workloads.values() for pod in each.alive)
        scaler, coordinator, status = self.fleet.autoscaler, self.fleet.coordinator, self.status
        ours = ("events", "pods", "replicasets", OF.plural, *PLURALS.values())
        return GroupEnd(
            {each["metadata"]["name"]: (each["spec"], each["metadata"].get("annotations") or {}) for each in made},
            dict(pods),
            [(plural, name) for plural, name in sorted(self.api.objects) if plural not in ours],
            scaler and (scaler["spec"], scaler["metadata"].get("annotations") or {}),
            (coordinator.type, coordinator.state, len(coordinator.members),
             all(coordinator.owner(each) for each in coordinator.partitions)),
            {"phase": status["phase"], "step": self.step,
             "slots": [(slot["name"], slot["assigned"], slot["observed"]) for slot in status.get("slots") or ()],
             "steps": [step["name"] for step in status["steps"]],
             "conditions": {each["type"]: each["status"] for each in status["conditions"]}})


class SimulatedGroups:
    """`kafka.ports.Groups` of one broker, which coordinates the group."""

    def __init__(self, incarnation: Incarnation, fleet: ServedWorld) -> None:
        self._incarnation, self._fleet = incarnation, fleet

    async def describe(self, group: str) -> Group:
        return await self._incarnation.call(self._fleet.coordinator.group)

    async def cluster(self) -> Cluster:
        return await self._incarnation.call(lambda: Cluster("cluster-1", {1: Address("kafka", 9092)}))

    async def broker(self, broker_at: Address, broker_id: int) -> BrokerGroups:
        settings = {"group.consumer.migration.policy": self._fleet.coordinator.policy}
        return await self._incarnation.call(lambda: broker(settings=settings))

    async def readiness(self, group: str, topics: Iterable[str]) -> Readiness:
        return await self._incarnation.call(lambda: Readiness("", ("uniform", "range")))

    async def all_support(self, group: str, strategy: str) -> bool:
        return await self._incarnation.call(lambda: strategy in self._fleet.coordinator.strategies_of_all())

    async def coordinators(self, group: str) -> frozenset[int]:
        return await self._incarnation.call(lambda: frozenset({1}))

    async def coordinated(self) -> Mapping[int, int]:
        return await self._incarnation.call(lambda: {1: len(self._fleet.coordinator.members)})

    async def offsets_topic(self) -> OffsetsTopic:
        return await self._incarnation.call(lambda: OffsetsTopic(1_048_588, False, 0))

    async def partitions(self, topics: Iterable[str]) -> Mapping[str, int]:
        return await self._incarnation.call(lambda: {"orders": len(self._fleet.coordinator.partitions)})

    async def close(self) -> None:
        """Nothing is open."""


class SimulatedGroupOffsets:
    """`lag.window.GroupOffsets` of the group."""

    def __init__(self, incarnation: Incarnation, fleet: ServedWorld) -> None:
        self._incarnation, self._fleet = incarnation, fleet

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        return await self._incarnation.call(lambda: Sweep(
            {name: self._reading() for name in asked}, {"orders": len(self._fleet.coordinator.partitions)}))

    def _reading(self) -> Reading:
        at = round(self._fleet.now * 1000)
        return Reading({each: Offsets(at, committed, end, 0, end) for each, (committed, end) in self._fleet.offsets.items()},
                       frozenset({"orders"}))

    async def close(self) -> None:
        """Nothing is open."""
