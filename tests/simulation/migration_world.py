"""A Kafka cluster in a fake Kubernetes, the operator that migrates it, and a jury that sees each write and each moment."""

import base64
import marshal
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from javaproperties import loads

from fakes import environment_image
from fakes.api_server import NAMESPACE, copied
from fakes.incarnation import Incarnation, SimulatedApiServer
from fakes.kafka_ports import SimulatedMemberships, SimulatedNodes, SimulatedOffsets, SimulatedTree, SimulatedZooKeeper
from fakes.kafka_world import PROTOCOL, Kafka
from fakes.kubelet import Kubelet
from invariants.memory import Limits
from simulation.operated import Of, OperatedWorld
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.kind import kafka_migrations
from switchover.engine.kind import Kind
from switchover.engine.policy import NOTHING_MORE
from switchover.kubernetes.client.survey import KubernetesSurvey
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.process.connections import Connections, Openers
from tales import without_nonce

HOW_FAR = pytest.mark.parametrize(
    "whole", [pytest.param(False, id="goes on"), pytest.param(True, id="to the end", marks=pytest.mark.long)])
"""How far a migration is watched that goes on after a trouble: `test_forward` has what follows."""
TICK = 0.5
NAME = "main"
OF = Of("KafkaMigration", "kafkamigrations", "kmig", NAME)
LABELS = {"app": "kafka"}
CANARY = "canary-5f2c9e"
SERVER_PROPERTIES = f"""# the user's own file
listeners=PLAINTEXT://:9092
log.dirs=/var/lib/kafka
zookeeper.connect=zookeeper:2181
inter.broker.protocol.version=3.9
min.insync.replicas=2
password.encoder.secret={CANARY}
"""
TOPICS = {
    "orders": {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2)},
    "__consumer_offsets": {index: (1 + index % 3, 1 + (index + 1) % 3, 1 + (index + 2) % 3) for index in range(6)},
}
SPEC = {
    "zookeeper": {"connect": "zookeeper:2181"},
    "kafka": {"bootstrapServers": "kafka-0.kafka:9092,kafka-1.kafka:9092"},
    "brokers": [{"name": "kafka"}],
    "controllers": {"name": "kafka-controller", "replicas": 3, "firstNodeId": 3000, "storage": {"size": "1Gi"}},
    "rollout": {"steps": [{"pods": 1, "bakeSeconds": 10}, {"pods": 1, "bakeSeconds": 5}]},
    "soakSeconds": 10,
    "zookeeperRetentionSeconds": 10,
    "backups": {"skipReason": "simulated"},
    "gates": {"groups": [{"name": "orders"}]},
}


Moment = tuple[str | int, ...]
_REACHED: dict[tuple[object, ...], "MigrationWorld"] = {}
"""Worlds at the moments that many tests begin from."""
ON_THE_WAY: dict[Moment, tuple[Callable[["MigrationWorld"], bool], bool]] = {}
"""Moments of a migration that nothing disturbs: what is so then, and whether the process is killed by it. One life that goes
to the end leaves a world at each of them."""
LOOKS: list[Callable[["MigrationWorld"], None]] = []
"""What else that life is looked at for, all the time."""
TO_THE_END: Moment = ("end",)
DEFAULT = (0, 2.0, False, "3.9", "names", False)


def live_to_the_end() -> None:
    """Live one migration that nothing disturbs, approving what waits for it, and leave a world at each moment on its way."""
    if (*DEFAULT, *TO_THE_END) in _REACHED:
        return
    with pytest.MonkeyPatch.context() as patch:
        world = MigrationWorld(patch)

        def leave(killed: bool) -> None:
            for moment, (is_there, kills) in ON_THE_WAY.items():
                if kills is killed and (*DEFAULT, *moment) not in _REACHED and is_there(world):
                    _REACHED[*DEFAULT, *moment] = world.as_if_it_ended(killed=killed)

        def looked() -> bool:
            leave(False)
            world.approve_what_waits()
            for look in LOOKS:
                look(world)
            return world.finished

        def written() -> bool:
            leave(True)
            return False

        assert world.live(looked, kill_when=written)
        _REACHED[*DEFAULT, *TO_THE_END] = world.copy_for(patch)


@dataclass(frozen=True)
class EndState:
    """What is there in the end, without what differs from run to run by right (uids, versions, times)."""

    files: dict[str, dict[str, str]]
    stateful_sets: dict[str, Any]
    others: list[tuple[str, str]]
    starts: dict[tuple[str, str], int]
    kafka: tuple[object, ...]
    status: dict[str, Any]


class MigrationWorld(OperatedWorld):
    """The world of one KafkaMigration."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int = 0, lag: float = 2.0,
                 by_environment: bool = False, protocol: str = "3.9", advertise: str = "names", old: bool = False) -> None:
        super().__init__(monkeypatch, OF, seed, lag, Limits(namespace=NAMESPACE, secrets=(CANARY,)), protocol)
        self.kubelet = Kubelet(self.api, seed)
        self.kafka = Kafka(self.kubelet, seed, {name: dict(partitions) for name, partitions in TOPICS.items()},
                           self.jury.see, protocol=protocol, advertise=advertise, old=old)
        self._ticked = self.timeline.now()
        self._put_objects(by_environment, SERVER_PROPERTIES.replace(f"{PROTOCOL}=3.9", f"{PROTOCOL}={protocol}"))
        self.timeline.wait(60)
        self.advance()
        assert set(self.kafka.nodes) == {"kafka-0", "kafka-1", "kafka-2"}
        self.original = copied(self.api.objects["statefulsets", "kafka"])
        self.api.add("switchover.dev/v1alpha1", "KafkaMigration", "kafkamigrations", NAME,
                     spec=SPEC)
        self._how = (seed, lag, by_environment, protocol, advertise, old)
        self._untouched = marshal.dumps(self.api.objects)

    def _put_objects(self, by_environment: bool, server_properties: str) -> None:
        self.api.add("v1", "ConfigMap", "configmaps", "kafka-config", data={"server.properties": server_properties})
        container = {
            "name": "kafka", "image": "kafka:3.9",
            "command": ["sh", "-c", "exec kafka-server-start.sh /etc/kafka/server.properties --override broker.id=$ID"],
            "volumeMounts": [{"name": "config", "mountPath": "/etc/kafka"}, {"name": "data", "mountPath": "/var/lib/kafka"}],
        }
        volumes = [{"name": "config", "configMap": {"name": "kafka-config"}}]
        if by_environment:
            container = {"name": "kafka", "image": "confluentinc/cp-kafka:7.9", "command": [environment_image.ENTRYPOINT],
                         "env": environment_image.variables(loads(server_properties)),
                         "volumeMounts": [{"name": "data", "mountPath": "/var/lib/kafka"}]}
            volumes = []
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container], "volumes": volumes}}
        self.api.add("apps/v1", "StatefulSet", "statefulsets", "kafka", spec={
            "replicas": 3, "serviceName": "kafka", "selector": {"matchLabels": LABELS}, "template": template,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}]})
        self.api.add("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "kafka",
                     spec={"maxUnavailable": 1, "selector": {"matchLabels": LABELS}})

    # --- time ---------------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Let the world catch up with the time."""
        while self._ticked + TICK <= self.timeline.now():
            self._ticked += TICK
            self.witness.wish()
            self.kubelet.tick(self._ticked)
            self.kafka.tick(self._ticked)

    def approve_what_waits(self, only: tuple[str, ...] = ()) -> None:
        """What a person does who trusts the operator, with all steps or with some: ZooKeeper is stopped when asked away."""
        if ("kafkamigrations", NAME) not in self.api.objects:
            return
        if any(item["reason"] == "ZooKeeperRuns" for item in self.status.get("waitingFor", ())):
            if not self.kafka.zookeeper_stopped:
                self.say("a person stops ZooKeeper")
            self.kafka.zookeeper_stopped = True
        approval = {"name": self.step, "planHash": self.status.get("planHash"), "approver": "alice"}
        waiting = any(item["reason"] in ("AwaitingApproval", "ApprovalVoid") for item in self.status.get("waitingFor", ()))
        if waiting and approval not in self.migration["spec"].get("approvals", ()) and (not only or self.step in only):
            self.say(f"a person approves {self.step}")
            self.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(approvals=[
                *(each for each in found["spec"].get("approvals", ()) if each["name"] != self.step), approval]))

    # --- copies -------------------------------------------------------------------------------------------------------

    def get_to(self, moment: Moment, run: Callable[[], None]) -> None:
        """Do `run`, which lets operators live until a moment; a new world takes over what a world before it came to there.

        `moment` names what `run` does. What a test changes in a new world, objects of the API aside, it changes afterwards.
        """
        if self.lives or marshal.dumps(self.api.objects) != self._untouched:
            run()
            return
        known = (*self._how, *moment)
        if self._how == DEFAULT and moment in (*ON_THE_WAY, TO_THE_END):
            live_to_the_end()
        if known not in _REACHED:
            run()
            _REACHED[known] = self.copy_for(self._monkeypatch)
        else:
            self._become(_REACHED[known])

    def copy_for(self, monkeypatch: pytest.MonkeyPatch) -> "MigrationWorld":
        """A copy for a test, of a world in which no operator lives at this moment."""
        world = MigrationWorld.__new__(MigrationWorld)
        world._become(self)
        world._monkeypatch = monkeypatch
        return world

    def _become(self, other: "MigrationWorld") -> None:
        """Be a copy of a world in which no operator lives at this moment."""
        patch = self.__dict__.get("_monkeypatch")
        kept: dict[int, object] = {id(other): self} | {id(registry): registry for registry in other.metrics}
        parts = {name: part for name, part in other.__dict__.items() if name != "_monkeypatch"}
        self.__dict__ = deepcopy(parts, kept) | {"_monkeypatch": patch}

    def as_if_it_ended(self, *, killed: bool) -> "MigrationWorld":
        """A copy of this world, in which an operator lives, as it will be when that has ended now; what it counted is not
        known there."""
        ended = MigrationWorld.__new__(MigrationWorld)
        parts = {name: part for name, part in self.__dict__.items() if name not in ("_monkeypatch", "metrics", "timeline")}
        timeline = self.timeline.as_if_it_ended()
        kept: dict[int, object] = {id(self): ended, id(self.timeline): timeline}
        kept |= {id(registry): registry for registry in self.metrics}
        ended.__dict__ = deepcopy(parts, kept) | {"_monkeypatch": None, "metrics": [], "timeline": timeline}
        ended.api.after_write = lambda: None
        if killed:
            ended.say(f"operator {ended.lives} is killed")
        ended.advance()
        assert not ended.violations, ended.violations
        return ended

    def run_to_the_end(self, **how: Any) -> bool:
        """Run until the migration is finished, approving what waits for it; False when killed before."""
        return self.live(self.approved_and(lambda: self.finished), **how)

    def goes_on(self, whole: bool) -> None:
        """Run until the next batch or step, approving what waits for it; with `whole` to the end of the migration."""

        def place() -> tuple[Any, ...]:
            progress = self.status.get("progress") or {}               # none yet where nothing could be written
            return progress.get("step"), progress.get("batch"), progress.get("openTime")

        before = place()
        assert self.live(self.approved_and(lambda: self.finished or (not whole and place() != before)))

    def roll_back(self, **how: Any) -> bool:
        """Ask for the way back, and run until it is done; False when killed before."""
        self.want("RolledBack")
        return self.live(lambda: self.phase == "RolledBack", **how)

    def try_again(self, **how: Any) -> bool:
        """Ask for another attempt, and run until it is finished; False when killed before."""
        attempt = self.status["attempt"]
        self.want("Running")
        return self.live(self.approved_and(lambda: self.status["attempt"] > attempt and self.finished), **how)

    @property
    def kind(self) -> Kind[Any, Any]:
        return kafka_migrations(NOTHING_MORE, "switchover:1")

    def connect(self, incarnation: Incarnation, server: SimulatedApiServer, workloads: KubernetesWorkloads,
                watched: KubernetesWorkloads) -> Connections:
        openers = simulated(incarnation, self.kafka)
        return Connections(NAMESPACE, workloads, KubernetesSurvey(server), self.timeline, openers, watched)

    # --- the end ------------------------------------------------------------------------------------------------------

    def end_state(self) -> EndState:
        """What must not depend on when the operator died."""
        files = {
            secret["metadata"]["name"]: {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
            for secret in self.api.of("secrets")
        }
        stateful_sets = {
            found["metadata"]["name"]: (found["spec"], found["metadata"].get("labels"),
                                        "switchover.dev/claimed-by" in (found["metadata"].get("annotations") or {}))
            for found in self.api.of("statefulsets")
        }
        attempt = f"-{self.status['attempt']}"
        others = [(plural, name.removesuffix(attempt) if plural == "controllerrevisions" else without_nonce(name))
                  for plural, name in sorted(self.api.objects)
                  if plural not in ("events", "pods", "secrets", "statefulsets")]
        modes = {pod: node.mode for pod, node in sorted(self.kafka.nodes.items())}
        kafka = (modes, self.kafka.state, self.kafka.tree.controller is not None and not self.kafka.tree.claimed)
        progress = self.status["progress"]
        status = {
            "phase": self.status["phase"], "metadataState": self.status["metadataState"], "step": progress["step"],
            "nodes": [(node["name"], node["nodeId"], node["assigned"], node["observed"]) for node in self.status["nodes"]],
            "restarts": (self.status["brokerRestarts"], self.status["controllerRestarts"]),
            "steps": [step["name"] for step in self.status["steps"]],
            "conditions": {each["type"]: each["status"] for each in self.status["conditions"]},
        }
        starts: dict[tuple[str, str], int] = {}
        # Which of them is chance.
        any_of = {Mode.MIGRATION_CONTROLLER: "kafka-controller", Mode.KRAFT_CONTROLLER: "kafka-controller",
                  Mode.KRAFT: "kafka"}
        for (pod, mode), times in self.kafka.starts.items():
            which = any_of.get(mode, pod)
            starts[which, mode] = starts.get((which, mode), 0) + times
        return EndState(files, stateful_sets, others, starts, kafka, status)


def simulated(incarnation: Incarnation, kafka: Kafka) -> Openers:
    """Clients of the simulated world. They take any credentials."""
    return Openers(
        nodes=lambda _properties, _allowed, _within: SimulatedNodes(incarnation, kafka),
        zookeeper=lambda access: SimulatedZooKeeper(incarnation, kafka, access.servers),
        tree=lambda _: SimulatedTree(incarnation, kafka),
        offsets=lambda _: SimulatedOffsets(incarnation, kafka),
        memberships=lambda _: SimulatedMemberships(incarnation, kafka),
    )
