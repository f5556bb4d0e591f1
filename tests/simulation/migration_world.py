"""A Kafka cluster in a fake Kubernetes, the operator that migrates it, and a judge who looks at each of its writes."""

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import kopf
import pytest
from javaproperties import loads
from prometheus_client import CollectorRegistry

from fakes.api_server import NAMESPACE, FakeApi, Object
from fakes.incarnation import Incarnation, SimulatedApiServer, serve_kopf
from fakes.kafka_ports import SimulatedAdmin, SimulatedNodes, SimulatedZooKeeper
from fakes.kafka_world import Kafka, mode_of
from fakes.kubelet import Kubelet
from simulation.virtual_time import Timeline, live
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.adapters.migrations import KubernetesMigrations
from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.handlers import Loops, kopf_settings, register
from switchover.metrics import MeasuredMigrations, Metrics
from switchover.observe import Observer
from switchover.reconcile import Reconciler

TICK = 0.5
NAME = "main"
LABELS = {"app": "kafka"}
SERVER_PROPERTIES = """# the user's own file
listeners=PLAINTEXT://:9092
log.dirs=/var/lib/kafka
zookeeper.connect=zookeeper:2181
inter.broker.protocol.version=3.9
min.insync.replicas=2
"""
TOPICS = {
    "orders": {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2)},
    "__consumer_offsets": {index: (1 + index % 3, 1 + (index + 1) % 3, 1 + (index + 2) % 3) for index in range(6)},
}
SPEC = {
    "zookeeper": {"connect": "zookeeper:2181"},
    "kafka": {"bootstrapServers": "kafka-0.kafka:9092,kafka-1.kafka:9092"},
    "brokers": [{"name": "kafka", "container": "kafka",
                 "configuration": {"configMapRef": {"name": "kafka-config", "key": "server.properties"}}}],
    "controllers": {"name": "kafka-controller", "replicas": 3, "firstNodeId": 3000, "storage": {"size": "1Gi"}},
    "rollout": {"steps": [{"pods": 1, "bakeSeconds": 10}, {"pods": 1, "bakeSeconds": 5}]},
    "soakSeconds": 10,
    "zookeeperRetentionSeconds": 10,
    "backups": {"skipReason": "simulated"},
    "gates": {"groups": [{"name": "orders"}]},
}
WHERE_CREATED = {
    "controllerrevisions": "EnableMigration", "services": "ProvisionControllers",
    "poddisruptionbudgets": "ProvisionControllers",
}


@dataclass(frozen=True)
class EndState:
    """What is there in the end, without what differs from run to run by right (uids, versions, times)."""

    files: dict[str, dict[str, str]]
    stateful_sets: dict[str, Any]
    others: list[tuple[str, str]]
    starts: dict[tuple[str, str], int]
    kafka: tuple[object, ...]
    status: dict[str, Any]


class MigrationWorld:
    """The world of one migration; `live` runs an operator in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int = 0, lag: float = 2.0) -> None:
        self.timeline = Timeline()
        self.violations: list[str] = []
        self.api = FakeApi(self.timeline.now, seed, lag, on_write=self._judge)
        self.kubelet = Kubelet(self.api, seed, self.violations)
        self.kafka = Kafka(self.kubelet, seed, self.violations, TOPICS)
        self.metrics: list[CollectorRegistry] = []
        self.lives = 0
        self.moves = 0
        self._position: object = None
        self._seed = seed
        self._ticked = self.timeline.now()
        self._monkeypatch = monkeypatch
        self._put_objects()
        self.timeline.wait(60)
        self.advance()
        assert set(self.kafka.nodes) == {"kafka-0", "kafka-1", "kafka-2"}
        self.api.add("switchover.dev/v1alpha1", "KafkaMigration", "kafkamigrations", NAME, spec=SPEC)

    def _put_objects(self) -> None:
        self.api.add("v1", "ConfigMap", "configmaps", "kafka-config", data={"server.properties": SERVER_PROPERTIES})
        container = {
            "name": "kafka", "image": "kafka:3.9",
            "command": ["sh", "-c", "exec kafka-server-start.sh /etc/kafka/server.properties --override broker.id=$ID"],
            "volumeMounts": [{"name": "config", "mountPath": "/etc/kafka"}],
        }
        volumes = [{"name": "config", "configMap": {"name": "kafka-config"}}]
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container], "volumes": volumes}}
        self.api.add("apps/v1", "StatefulSet", "statefulsets", "kafka", spec={
            "replicas": 3, "serviceName": "kafka", "selector": {"matchLabels": LABELS}, "template": template,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}})
        self.api.add("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "kafka",
                     spec={"maxUnavailable": 1, "selector": {"matchLabels": LABELS}})

    # --- time ---------------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Let the world catch up with the time."""
        while self._ticked + TICK <= self.timeline.now():
            self._ticked += TICK
            self.kubelet.tick(self._ticked)
            self.kafka.tick(self._ticked)

    @property
    def migration(self) -> Object:
        return self.api.objects["kafkamigrations", NAME]

    @property
    def status(self) -> dict[str, Any]:
        return self.migration.get("status") or {}

    @property
    def step(self) -> str:
        return str((self.status.get("progress") or {}).get("step", ""))

    @property
    def finished(self) -> bool:
        return bool((self.status.get("progress") or {}).get("completeTime"))

    def approve_what_waits(self, only: tuple[str, ...] = ()) -> None:
        """What a person does who trusts the operator, with all steps or with some."""
        if ("kafkamigrations", NAME) not in self.api.objects:
            return
        names = {approval["name"] for approval in self.migration["spec"].get("approvals", ())}
        waiting = any(item["reason"] == "AwaitingApproval" for item in self.status.get("waitingFor", ()))
        if waiting and self.step not in names and (not only or self.step in only):
            approval = {"name": self.step, "planHash": self.status["planHash"], "approver": "alice"}
            self.api.edit("kafkamigrations", NAME,
                          lambda found: found["spec"].setdefault("approvals", []).append(approval))

    # --- the operator -------------------------------------------------------------------------------------------------

    def live(self, until: Callable[[], bool], limit: float = 3600,
             kill_when: Callable[[], bool] = lambda: False, identities: tuple[str, ...] = ("operator",),
             stopped_before: Callable[[str, str], float] = lambda method, path: 0.0) -> bool:
        """Run an operator process (or several at once); see `virtual_time.live`. Fails as soon as a rule is broken.

        `stopped_before` concerns the first of several.
        """
        self.lives += 1
        incarnation = Incarnation(self.api, self._seed * 1000 + self.lives, self.advance)
        serve_kopf(incarnation, self._monkeypatch)

        metrics = self.metrics = [CollectorRegistry() for _ in identities]
        incarnations = [incarnation, *(Incarnation(self.api, n, self.advance) for n in range(1, len(identities)))]
        incarnation.stopped_before = stopped_before

        async def operator() -> None:
            await asyncio.gather(*(
                operate(each, self.kafka, self.timeline, identity, registry)
                for each, identity, registry in zip(incarnations, identities, metrics, strict=True)))

        def judged() -> bool:
            self.advance()
            assert not self.violations, self.violations
            return until()

        try:
            ended = live(self.timeline, self.api, incarnation, operator, judged, limit, kill_when)
        finally:
            defects = [each.get_sample_value("switchover_pass_failures_total", {"kind": "defect"}) for each in metrics]
            assert not any(defects), "a pass ended in an error that is none of the three; see the log"
        self.advance()
        assert not self.violations, self.violations
        return ended

    def run_to_the_end(self, **how: Any) -> bool:
        """Run until the migration is finished, approving what waits for it; False when killed before."""
        return self.live(self.approved_and(lambda: self.finished), **how)

    def approved_and(self, until: Callable[[], bool], only: tuple[str, ...] = ()) -> Callable[[], bool]:
        """Approve whatever waits for it, until something is so."""

        def approving() -> bool:
            self.approve_what_waits(only)
            return until()

        return approving

    # --- the judge ----------------------------------------------------------------------------------------------------

    def _judge(self, plural: str, name: str, subresource: str, found: Object) -> None:
        """Promise 1: no effect before the step, batch and assignment that it belongs to are on record."""
        if plural in ("leases", "events"):
            return
        if plural == "kafkamigrations":
            self.moves += self._position != position(found)
            self._position = position(found)
            return
        self.moves += 1
        nodes = {node["name"]: node for node in self.status.get("nodes") or ()}
        expected = WHERE_CREATED.get(plural, self.step)
        if plural == "pods":
            self._judge_replacement(name, found, nodes)
        elif plural == "secrets":
            for key, value in found["data"].items():
                pod, mode = key.removesuffix(".properties"), mode_of(dict(loads(base64.b64decode(value).decode())))
                if nodes.get(pod, {}).get("assigned") != mode:
                    self.violations.append(f"the file of {pod} is written for mode {mode}, on record is {nodes.get(pod)}")
        elif plural == "statefulsets" and name == "kafka":
            ours = any("secret" in volume for volume in found["spec"]["template"]["spec"]["volumes"])
            back = found["spec"]["updateStrategy"]["type"] != "OnDelete"
            expected = "HandOver" if ours and back else "EnableMigration" if ours else "ProvisionControllers"
        elif plural == "statefulsets":
            expected = "ProvisionControllers"
        if self.step != expected:
            self.violations.append(f"{plural} {name} is written in {self.step}, and belongs to {expected}")

    def _judge_replacement(self, name: str, found: Object, nodes: dict[str, Any]) -> None:
        node, batch = nodes.get(name, {}), (self.status.get("progress") or {}).get("batchNodes") or ()
        if name not in batch or node.get("evicting") != found["metadata"]["uid"]:
            self.violations.append(f"pod {name} is replaced, but on record are batch {batch} and {node}")
        moved = self.kafka.nodes.get(name)
        if moved is None:
            return
        if moved.mode in ("P", "F") and self.step == "Soak":
            if moved.node_id != self.kafka.leader:
                self.violations.append(f"{name} is restarted in the soak and does not lead the quorum")
            return
        if moved.mode in ("P", "F"):
            others = [each for each in self.kafka.nodes.values() if each.mode == "P" and each.pod != name]
            if moved.node_id == self.kafka.leader and others:
                self.violations.append(f"{name} leads the quorum and is stopped before {[each.pod for each in others]}")
            if self.step != "Finalize" or not any(
                    each["name"] == "Finalize" for each in self.migration["spec"].get("approvals", ())):
                self.violations.append(f"controller {name} is stopped without an approval")
            return
        for (topic, index), isr in self.kafka.isr.items():
            if len(isr - {moved.node_id}) < 2:
                self.violations.append(f"{name} is stopped while {topic}-{index} is in sync on {sorted(isr)} alone")

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
        others = [key for key in sorted(self.api.objects) if key[0] not in ("events", "pods", "secrets", "statefulsets")]
        modes = {pod: node.mode for pod, node in sorted(self.kafka.nodes.items())}
        kafka = (modes, self.kafka.state, self.kafka.controller is not None and self.kafka.controller.ephemeral)
        progress = self.status["progress"]
        status = {
            "phase": self.status["phase"], "metadataState": self.status["metadataState"], "step": progress["step"],
            "nodes": [(node["name"], node["nodeId"], node["assigned"], node["observed"]) for node in self.status["nodes"]],
            "restarts": (self.status["brokerRestarts"], self.status["controllerRestarts"]),
            "steps": [step["name"] for step in self.status["steps"]],
            "conditions": {each["type"]: each["status"] for each in self.status["conditions"]},
        }
        starts: dict[tuple[str, str], int] = {}
        for (pod, mode), times in self.kafka.starts.items():
            which = "kafka-controller" if mode == "P" else pod     # who leads, and is rehearsed, is chance
            starts[which, mode] = starts.get((which, mode), 0) + times
        return EndState(files, stateful_sets, others, starts, kafka, status)


def position(migration: Object) -> object:
    """The part of a status that decisions rest on."""
    status = migration.get("status") or {}
    progress = status.get("progress") or {}
    return [
        [progress.get(key) for key in ("step", "direction", "openTime", "batch", "batchNodes", "bakeStartTime")],
        [(node["name"], node["assigned"], node.get("evicting")) for node in status.get("nodes") or ()],
    ]


async def operate(
    incarnation: Incarnation, kafka: Kafka, timeline: Timeline, identity: str, metrics_registry: CollectorRegistry
) -> None:
    """The operator as `cli.run` puts it together, with the simulated world at the other end of its adapters."""
    server = SimulatedApiServer(incarnation, NAMESPACE)
    workloads = KubernetesWorkloads(server, timeline)
    migrations = KubernetesMigrations(server, timeline, "KafkaMigration", "kafkamigrations")

    async def observer(spec: KafkaMigrationSpec) -> Observer:
        return Observer(NAMESPACE, workloads, SimulatedNodes(incarnation, kafka), SimulatedAdmin(incarnation, kafka),
                        SimulatedZooKeeper(incarnation, kafka), timeline)

    metrics = Metrics(metrics_registry, timeline.now)
    measured = MeasuredMigrations(migrations, metrics)
    reconciler = Reconciler(NAMESPACE, identity, measured, workloads, observer, timeline, metrics.migrations)
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(login)
    loops = Loops(reconciler.reconcile, reconciler.release, migrations.set_finalizer, metrics)
    register(registry, ("switchover.dev", "v1alpha1", "kafkamigrations"), loops)
    await kopf.operator(registry=registry, settings=kopf_settings(), namespaces=[NAMESPACE])


async def login(**_: Any) -> kopf.ConnectionInfo:
    return kopf.ConnectionInfo(server="http://sim")
