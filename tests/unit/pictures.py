"""A small Kafka cluster on paper: it gives the facts of any moment of a migration, and takes what is done to it.

Nothing here takes time or fails by itself; tests spoil the facts they want to be wrong. The StatefulSet and its
server.properties are those of the demo.
"""

import json
import marshal
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zlib import crc32

import jsonpatch
import yaml
from javaproperties import loads

from fakes.views import whole_view
from switchover.answers.observed import Known, Observed, Unknown
from switchover.api.job_message import NONCE
from switchover.api.kafka_migration import BrokerSet, KafkaMigration, KafkaMigrationSpec
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.meta import GroupHealth
from switchover.cluster import modes, names, template
from switchover.cluster.door import edits, mount
from switchover.cluster.door.brokers import Brokers, find
from switchover.cluster.effects import DeleteZNode, RaiseEpoch, RaiseVersions
from switchover.cluster.ending import trial_job
from switchover.cluster.facts import Examination, Export, Facts, KubernetesState, Written
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.cluster.rehearsal.report import TREE_DIGEST, Report, as_message
from switchover.engine.effects import Apply, Create, Delete, DeletePod, Effect, Evict, Patch, Provide, WriteNodeFiles
from switchover.engine.position import NodeRecord, Position
from switchover.kafka.node import (
    NOT_LISTENING,
    BrokerExamination,
    LogDirectory,
    NodeAnswer,
    Partition,
    Quorum,
    Replica,
    TopicIds,
    WholeView,
)
from switchover.kubernetes.client import pods
from switchover.kubernetes.ports import StorageClasses, TemplateChange
from switchover.kubernetes.reports import DiskReport
from switchover.kubernetes.workloads import JobRun, JobState, Pod, Workload
from switchover.lag.group import Membership
from switchover.metadata.parity import BrokerRegistration, LogImage, MigrationState, Parity
from switchover.network.addresses import Address
from switchover.shared.partition import TopicPartition
from switchover.zookeeper.nodes import (
    ControllerNode,
    IdleGroups,
    MigrationNode,
    ZooKeeperRights,
    ZooKeeperState,
    ZooKeeperTopic,
    ZooKeeperTopics,
)
from unit.judged_groups import Swept, judged

MANIFESTS = Path(__file__).parents[2] / "sandbox" / "manifests" / "kafka.yaml"
UID = "5f0c7a9e-uid-of-the-migration"
NOW = 1_800_000_000.0
CLUSTER_ID = "clusterOnPaperAAAAAAAA"
CONTROLLERS = {"kafka-controller-0": 3000, "kafka-controller-1": 3001, "kafka-controller-2": 3002}
BROKERS = {"kafka-0": 0, "kafka-1": 1, "kafka-2": 2}
SOAKING_SINCE = NOW - 3700
PRE, ACTIVE, POST = MigrationState.PRE_MIGRATION, MigrationState.MIGRATION, MigrationState.POST_MIGRATION
OFFSET = 500
"""The high watermark of the metadata log is one more."""
HEALTHY_DISKS = DiskReport(1, 3, 0, 0)
ORDERS = TopicPartition("orders", 0)
CONSUMES = judged(GroupHealth(name="orders"), (Swept(2, {ORDERS: (90, 100, 0)}), Swept(0, {ORDERS: (100, 110, 0)})), NOW)
EXPORT = Export("digest-of-tree", ("1 digest part",))
REPORT = Report(EXPORT.digest, topics=1, nonce="nonce-of-job")
REHEARSED = JobRun(names.job("to-kraft", "rehearsal", (UID,)), JobState.SUCCEEDED, as_message(REPORT), uid="uid-of-job",
                   created=NOW - 60, given={NONCE: REPORT.nonce, TREE_DIGEST: EXPORT.digest})
OPERATOR_IMAGE = "switchover:1"

# API keys by kind of node, as measured on Kafka 3.9 (docs/facts/kraft.md#what-a-node-answers).
ZOOKEEPER_BROKER = dict.fromkeys((*range(52), 56, 57, 58, 60, 61, *range(65, 70)), 5) | {
    modes.FETCH: 17, modes.LEADER_AND_ISR: 7}
KRAFT_BROKER = dict.fromkeys((*range(4), *range(7, 52), 55, 57, 60, 61), 5) | {1: 17}
CONTROLLER = dict.fromkeys((1, *range(52, 56), 62, 63, 70), 5) | {1: 17}


@cache
def _manifests() -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load_all(MANIFESTS.read_text(encoding="utf-8")))


def _manifest(kind: str, name: str) -> dict[str, Any]:
    return deepcopy(next(item for item in _manifests() if item["kind"] == kind and item["metadata"]["name"] == name))


def server_properties(protocol: str = "3.9") -> str:
    """The demo's server.properties, with another protocol version if asked for."""
    text: str = _manifest("ConfigMap", "kafka-config")["data"]["server.properties"]
    return text.replace("inter.broker.protocol.version=3.9", f"inter.broker.protocol.version={protocol}")


@cache
def given(protocol: str = "3.9") -> MappingProxyType[str, str]:
    """What the demo's brokers are given by it."""
    return MappingProxyType(loads(server_properties(protocol)))


def _frozen(manifest: Mapping[str, Any]) -> bytes:
    return marshal.dumps(manifest, 2)                   # without references, which are chance


@cache
def _changed(manifest: bytes, image: str) -> TemplateChange:
    """What the template becomes by Switchover's patch."""
    before = marshal.loads(manifest)
    workload = Cluster(manifest=before).workload()
    operations = [dict(operation) for operation in template.patch(workload, spec_of().brokers[0], image)]
    after = jsonpatch.apply_patch(before, operations)["spec"]
    return TemplateChange(after["template"], after["updateStrategy"])


def stateful_set() -> dict[str, Any]:
    """The demo's StatefulSet of brokers, with the rolling update that the API server fills in."""
    manifest = _manifest("StatefulSet", "kafka")
    manifest["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    manifest["metadata"]["generation"] = 1
    return manifest


def migration(**spec: Any) -> KafkaMigration:
    """A KafkaMigration for the demo's cluster; `spec` in the manifest's own words."""
    return KafkaMigration.model_validate({
        "metadata": {"name": "to-kraft", "namespace": "kafka", "uid": UID, "generation": 1, "resourceVersion": "7"},
        "spec": {
            "zookeeper": {"connect": "zookeeper:2181"},
            "kafka": {"bootstrapServers": "kafka:9092"},
            "brokers": [{"name": "kafka"}],
            "controllers": {"storage": {"size": "1Gi"}},
            "rollout": {"steps": [{"pods": 1, "bakeSeconds": 60}, {"pods": 1, "bakeSeconds": 10}]},
            "soakSeconds": 3600,
            "zookeeperRetentionSeconds": 7200,
            "backups": {"skipReason": "a cluster on paper"},
            "gates": {"groups": [{"name": "orders"}]},
            **spec,
        },
    })


def spec_of(**changes: Any) -> KafkaMigrationSpec:
    return migration(**changes).spec


def found_of(live: Mapping[str, str]) -> Brokers:
    """What is known of brokers that run with these settings."""
    return find({"spec": {"containers": [{"name": "kafka"}]}}, BrokerSet(name="kafka"), live)


UPGRADED = "kafka:3.9"


def tried(manifest: Mapping[str, Any], *, on_kraft: bool = True, **changes: str) -> JobRun:
    """The Job of a trial that has ended: Kafka would be started with what the broker runs with now, but for `changes`, in
    which an underscore is a dot and an empty value no key."""
    job = JobRun(manifest["metadata"]["name"], JobState.SUCCEEDED, uid="uid-of-trial", created=NOW,
                 given=pods.given(manifest))
    now = trial_job.compared_with(job)
    assert now is not None
    kraft = {"process.roles": "broker", "node.id": str(now.node_id)} if on_kraft else {}
    found = {**now.settings, **kraft, **{key.replace("_", "."): value for key, value in changes.items()}}
    told = [f"{key}={value}" for key, value in found.items() if value]
    return replace(job, message="\n".join((f"trial 2 {len(told)} {job.nonce}", *told)))


@dataclass
class Node:
    """A Kafka process in its pod: the mode it runs in, and since when."""

    mode: str
    uid: str
    started_at: float = NOW - 3600
    revision: str = ""
    marker: str = ""


@dataclass
class Cluster:
    """Brokers, controllers, ZooKeeper and the objects of Kubernetes; `now` is moved by whoever holds it."""

    now: float = NOW
    brokers: dict[str, Node] = field(default_factory=lambda: {name: Node(Mode.ZOOKEEPER, f"{name}/1") for name in BROKERS})
    controllers: dict[str, Node] = field(default_factory=dict)
    controllers_template: Mapping[str, Any] = field(default_factory=lambda: {"spec": {"containers": []}})
    manifest: dict[str, Any] = field(default_factory=stateful_set)
    protocol: str = "3.9"
    """inter.broker.protocol.version of the user's file."""
    old: bool = False
    """Whether the user's image is of a Kafka older than 3.9, and the migration upgrades it to UPGRADED."""
    kraft: bool = False
    """Whether the user's file says KRaft by now."""
    claimed_by: str = ""
    applied_by: tuple[str, ...] = ()
    files: dict[str, Mapping[str, str]] = field(default_factory=dict)
    original: Mapping[str, Any] | None = None
    made: Mapping[str, str] = field(default_factory=dict)
    lease_holder: str = f"{UID}/operator"
    zookeeper_controller: int = 2
    leader: int = 3000
    state: MigrationState | None = None
    written_at: float = NOW
    offset: int = OFFSET
    """What `/migration` says was written to ZooKeeper."""
    taken: bool = False
    """Whether KRaft holds `/controller`."""
    migration_node: bool = False
    controller_epoch: int = 5
    partition_epoch: int = 7
    behind: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Partitions whose states are behind in ZooKeeper, and their epochs."""
    claims: tuple[str, ...] = ()
    rehearsal: JobRun | None = REHEARSED
    trial: JobRun | None = None
    """Of the user's new template; it reports what Kafka must be started with, or that it would be on ZooKeeper."""
    driver_stuck: bool = False
    """Whether no controller claims the cluster although every broker is registered, until one restarts."""
    connections: int | None = 0
    """Clients of ZooKeeper; None once it is stopped."""
    replaced: list[str] = field(default_factory=list)
    applied: list[Mapping[str, Any]] = field(default_factory=list)
    done: list[Effect] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first_image = self._image()
        for node in self.brokers.values():
            node.revision = self._revision()
        self._follow()

    # --- what is seen -------------------------------------------------------------------------------------------------

    def facts(self) -> Facts:
        """Everything that can be observed now; all of it is healthy."""
        nodes = {BROKERS[name]: node for name, node in self.brokers.items()} | {
            CONTROLLERS[name]: node for name, node in self.controllers.items()}
        return Facts(
            kubernetes=self._known(self._kubernetes()),
            zookeeper=self._known(self._zookeeper()),
            unchecked=self._known(()),
            migration_written=self._known(Written(self.written_at, True, self.written_at)),
            zookeeper_topics=self._known(ZooKeeperTopics(
                {"orders": ZooKeeperTopic("topicIdAAAA", dict.fromkeys(range(3), (0, 1, 2)))}, (), False, ())),
            zookeeper_connections={"zookeeper:2181": self._known(self.connections)},
            zookeeper_sets=self._known({"zookeeper": ("zookeeper",)}),
            partition_epoch=self._known(self.partition_epoch),
            stateless=self._known({}),
            answers={node_id: self._known(answer(node.mode, self.old, self._level())) for node_id, node in nodes.items()},
            views={node_id: self._known(self._view()) for node_id in BROKERS.values()},
            caught_up=self._known(()),
            forwarding=self._known({}),
            quorum=self._known(self._quorum()) if self._quorum_lives() else Unknown("no controller leads"),
            log=self._known(self._log()) if self._quorum_lives() else Unknown("no controller leads"),
            parity=self._known(Parity((), 0, True, len(self.behind), self.behind)),
            min_insync=self._known({"orders": 2}),
            broker_settings={
                BROKERS[name]: self._known(given(self.protocol) | {
                    "inter.broker.protocol.version": self._live(node.mode)})
                for name, node in self.brokers.items()},
            markers={BROKERS[name]: self._known(node.marker) for name, node in self.brokers.items()},
            examination=self._examination(),
            rehearsal=self._known(self.rehearsal),
            exported=self._known(EXPORT),
            trials={"kafka": self._known(self.trial)},
            zookeeper_groups=self._known({}),
            group_migrations=self._known({}),
            groups={"orders": self._known(CONSUMES)},
            members={"orders": self._known(Membership("Stable", {"member": frozenset({ORDERS})}))},
        )

    def _level(self) -> int:
        return modes.METADATA_LEVELS.get(self.protocol, 21)

    def _live(self, mode: str) -> str:
        kept = mode in (Mode.ZOOKEEPER, Mode.ZOOKEEPER_PINNED) or self.protocol in modes.METADATA_LEVELS
        return f"{self.protocol if kept else '3.9'}-IV0"

    def _examination(self) -> Examination:
        """Preflight's own facts."""
        brokers = {
            broker_id: BrokerExamination(
                given(self.protocol) | {
                    "broker.id": str(broker_id), "advertised.listeners": f"INTERNAL://{name}"},
                (LogDirectory("/var/lib/kafka/data", offline=False),),
                frozenset({"CLUSTER_ACTION", "DESCRIBE", "DESCRIBE_CONFIGS"}))
            for name, broker_id in BROKERS.items()
        }
        everything = frozenset({"READ", "WRITE", "CREATE", "DELETE", "ADMIN"})
        return Examination(
            brokers={broker_id: self._known(told) for broker_id, told in brokers.items()},
            topic_ids=dict.fromkeys(brokers, self._known(TopicIds({"orders": "topicIdAAAA"}))),
            zookeeper_rights=self._known(ZooKeeperRights(dict.fromkeys(("/", "/controller_epoch"), everything), {})),
            zookeeper_modes={"zookeeper:2181": self._known("leader")},
            objects=self._known({}),
            missing_rights=self._known(()),
            ahead=self._known(0.4),
            storage_classes=self._known(StorageClasses(frozenset({"standard"}), "standard")),
            classes_in_use=self._known(frozenset({"standard"})),
            malformed=self._known({}),
            idle_groups=self._known(IdleGroups({})),
            template_changes={"kafka": self._known(_changed(_frozen(self.manifest), UPGRADED if self.old else ""))},
        )

    def _known(self, value: Any) -> Known[Any]:
        return Known(value, self.now)

    def workload(self) -> Workload:
        """The brokers' StatefulSet with its pods."""
        return Workload(
            name="kafka", uid="uid-of-kafka", replicas=len(self.brokers), template=self.manifest["spec"]["template"],
            update_strategy=self.manifest["spec"]["updateStrategy"], update_revision=self._revision(),
            claimed_by=self.claimed_by, budgets=("kafka",), pods=self._pods(self.brokers),
            applied_by=self.applied_by, claim_templates=("data",), generation=self.manifest["metadata"]["generation"],
            service=self.manifest["spec"]["serviceName"])

    def _pods(self, nodes: Mapping[str, Node]) -> dict[str, Pod]:
        return {name: Pod(name, node.uid, f"node-{name[-1]}", True, False, node.revision, node.started_at, False, "",
                          None if node.mode == Mode.ZOOKEEPER else HEALTHY_DISKS, (f"data-{name}/1",), unreached={},
                          budgets=("kafka" if name in BROKERS else "kafka-controller",), remembers=1)
                for name, node in nodes.items()}

    def _revision(self) -> str:
        return f"kafka-{crc32(_frozen(self.manifest['spec']['template']))}"

    def _quorum_lives(self) -> bool:
        """Before there are controllers their facts are those of a quorum to come; nobody reads them."""
        return not self.controllers or sum(node.mode != Mode.STOPPED for node in self.controllers.values()) > 1

    def _kubernetes(self) -> KubernetesState:
        own = Workload(
            "kafka-controller", "uid-of-controllers", 3, self.controllers_template, {"type": "OnDelete"},
            "kafka-controller-1", "", ("kafka-controller",), self._pods(self.controllers))
        return KubernetesState(
            brokers={"kafka": self.workload()},
            node_files={name: self.files.get(names.node_files(name), {}) for name in ("kafka", "kafka-controller")},
            originals={"kafka": self.original},
            controllers=own if self.controllers else None,
            controller_claims=self.claims,
            lease_holder=self.lease_holder,
        )

    def _zookeeper(self) -> ZooKeeperState:
        registered = {BROKERS[name]: name for name, node in self.brokers.items() if node.mode not in modes.ON_KRAFT}
        copied = self.state in (MigrationState.MIGRATION, MigrationState.POST_MIGRATION)
        written = MigrationNode(False, self.leader, self.offset, 7, 40, self.written_at)
        fresh = MigrationNode(False, -1, -1, -1, 0, NOW)
        return ZooKeeperState(
            cluster_id=CLUSTER_ID,
            controller=ControllerNode(self.leader, False, 7) if self.taken else ControllerNode(
                self.zookeeper_controller, True, -1),
            controller_epoch=self.controller_epoch,
            migration=(written if copied else fresh) if self.migration_node else None,
            brokers={node_id: {"INTERNAL": _address(name)} for node_id, name in registered.items()},
            generated_ids=False,
        )

    def _partitions(self) -> tuple[Partition, ...]:
        """Broker 0 leads most, broker 2 nothing."""
        return tuple(Partition("orders", index, leader, (0, 1, 2), (0, 1, 2)) for index, leader in enumerate((0, 1, 0)))

    def _view(self) -> WholeView:
        return whole_view(CLUSTER_ID, self.zookeeper_controller,
                          {node_id: _address(name) for name, node_id in BROKERS.items()}, self._partitions())

    def _quorum(self) -> Quorum:
        caught_up = Replica(OFFSET + 1, int(self.now * 1000))
        following = [BROKERS[name] for name, node in self.brokers.items() if node.mode in (Mode.MIGRATION, Mode.KRAFT)]
        return Quorum(self.leader, 7, OFFSET + 1, dict.fromkeys(CONTROLLERS.values(), caught_up),
                      dict.fromkeys(following, caught_up))

    def _log(self) -> LogImage:
        registered = {BROKERS[name]: BrokerRegistration(9, node.mode == Mode.MIGRATION, False)
                      for name, node in self.brokers.items() if node.mode in (Mode.MIGRATION, Mode.KRAFT)}
        return LogImage(OFFSET, 7, self.state, self._level() if self.controllers else None,
                        {CONTROLLERS[name]: node.mode == Mode.MIGRATION_CONTROLLER for name,
                         node in self.controllers.items()},
                        registered, None, 0)

    # --- what is done -------------------------------------------------------------------------------------------------

    def perform(self, effect: Effect) -> None:
        """Do what an effect says, at once, and let Kafka do what follows from it."""
        self.done.append(effect)
        match effect:
            case Apply(manifest):
                self._apply(manifest)
            case Provide(manifests):
                for manifest in manifests:
                    self._apply(manifest)
            case Create({"kind": "Job"} as manifest) if trial_job.TRIES in pods.given(manifest):
                assert self.trial is None
                self.trial = tried(manifest, on_kraft=self.kraft)
            case Create({"kind": "Job"}):
                self.rehearsal = REHEARSED
            case WriteNodeFiles(secret, files, _):
                self.files[secret] = dict(files)
            case Patch("apps/v1", "StatefulSet", "kafka", operations, _):
                self.manifest["metadata"]["annotations"] = {names.CLAIM: self.claimed_by}
                self.manifest = jsonpatch.apply_patch(self.manifest, [dict(operation) for operation in operations])
                self.manifest["metadata"]["generation"] += 1
                self.claimed_by = self.manifest["metadata"].pop("annotations").get(names.CLAIM, "")
            case Evict(pod, uid) | DeletePod(pod, uid):
                self._replace(pod, uid)
            case Delete(_, kind, name, _):
                self._delete(kind, name)
            case DeleteZNode("/migration", _, epoch):
                assert epoch == self.controller_epoch
                self.migration_node = False
            case DeleteZNode("/controller", _, epoch):
                assert not self.migration_node
                assert epoch == self.controller_epoch
                self.taken = False
            case RaiseVersions(epochs, epoch):
                assert epoch == self.controller_epoch
                assert epochs == self.behind
                self.behind = {}
            case RaiseEpoch(epoch, expected):
                assert expected == self.controller_epoch
                self.controller_epoch = epoch
            case _:
                raise AssertionError(f"nothing here can {effect}")
        self._follow()

    def _apply(self, manifest: Mapping[str, Any]) -> None:
        self.applied.append(manifest)
        match manifest["kind"], manifest["metadata"]["name"]:
            case "StatefulSet", "kafka":
                self.claimed_by = manifest["metadata"].get("annotations", {}).get(names.CLAIM, "")
            case "StatefulSet", "kafka-controller":
                self.controllers = {name: Node(self._mode_in_file(name), f"{name}/1", self.now) for name in CONTROLLERS}
                self.controllers_template = manifest["spec"]["template"]
                self.claims = tuple(f"data-{name}" for name in CONTROLLERS)
            case "ControllerRevision", _:
                self.original = deepcopy(manifest["data"])
                self.made = {f"ControllerRevision {manifest['metadata']['name']}": names.digest(self.original)}

    def _delete(self, kind: str, name: str) -> None:
        match kind:
            case "StatefulSet":
                assert name == "kafka-controller"
                self.controllers = {}
            case "PersistentVolumeClaim":
                assert not self.controllers
                self.claims = tuple(claim for claim in self.claims if claim != name)
                self.state = None
            case "Secret":
                del self.files[name]
            case "ControllerRevision":
                self.original = None
            case "Job" if self.trial is not None and name == self.trial.name:
                self.trial = None
            case "Job":
                self.rehearsal = None

    def _replace(self, pod: str, uid: str) -> None:
        nodes = self.brokers if pod in self.brokers else self.controllers
        assert nodes[pod].uid == uid, f"{pod} is not the pod that was meant"
        self.replaced.append(pod)
        nodes[pod] = Node(self._mode_in_file(pod), f"{pod}/{len(self.replaced) + 1}", self.now, self._revision(),
                          edits.marker_of(self._edits(pod)))
        self.driver_stuck = self.driver_stuck and pod in BROKERS
        if self.zookeeper_controller == BROKERS.get(pod):
            self.zookeeper_controller = next(other for name, other in BROKERS.items() if name != pod)
        if self.leader == CONTROLLERS.get(pod):
            alive = [name for name, node in self.controllers.items() if name != pod and node.mode != Mode.STOPPED]
            self.leader = CONTROLLERS[alive[0]] if alive else self.leader
            leader = next(name for name, other in CONTROLLERS.items() if other == self.leader)
            if self.controllers[leader].mode == Mode.KRAFT_CONTROLLER:
                self.state = MigrationState.POST_MIGRATION

    def _edits(self, pod: str) -> str:
        """Those that a process of this pod would be started with now; none without the door."""
        if pod in BROKERS and f'"{mount.VOLUME}"' not in json.dumps(self.manifest["spec"]["template"]):
            return ""
        return self.files[names.node_files(pod.rsplit("-", 1)[0])][pod]

    def _mode_in_file(self, pod: str) -> str:
        """What the edits that a pod would start with now make of its process."""
        directives = self._edits(pod).splitlines()
        if not directives and self.kraft:
            return Mode.KRAFT
        if directives[:1] == ["mode Stopped"]:
            return Mode.STOPPED
        settings = edits.applied(directives, given(self.protocol))
        flagged = settings.get("zookeeper.metadata.migration.enable") == "true"
        match settings.get("process.roles"):
            case "controller":
                return Mode.MIGRATION_CONTROLLER if flagged else Mode.KRAFT_CONTROLLER
            case "broker":
                return Mode.KRAFT
        protocol = modes.release_of(settings["inter.broker.protocol.version"])
        assert protocol == modes.release_of(self._live(Mode.MIGRATION)) or not flagged, (
            "the controllers refuse to register it")
        if flagged:
            return Mode.MIGRATION
        if protocol != self.protocol:
            return Mode.ZOOKEEPER_RAISED
        return Mode.ZOOKEEPER_PINNED if self.old and self._image() != self.first_image else Mode.ZOOKEEPER

    def _image(self) -> str:
        return str(self.manifest["spec"]["template"]["spec"]["containers"][0]["image"])

    def _follow(self) -> None:
        migrating = any(node.mode == Mode.MIGRATION_CONTROLLER for node in self.controllers.values())
        if migrating and self.state is None:
            self.state = MigrationState.PRE_MIGRATION
        self.migration_node = self.migration_node or migrating
        together = migrating and all(node.mode == Mode.MIGRATION for node in self.brokers.values())
        if self.state is MigrationState.PRE_MIGRATION and together and not self.driver_stuck:
            self.state = MigrationState.MIGRATION
            self.controller_epoch += 1
        copied = self.state in (MigrationState.MIGRATION, MigrationState.POST_MIGRATION)
        self.taken = self.taken or (copied and bool(self.controllers) and self.migration_node)

    def pass_time(self, seconds: float) -> None:
        """Let time pass; dual write keeps `/migration` young while it lasts."""
        self.now += seconds
        if self.state is MigrationState.MIGRATION and self._quorum_lives():
            self.written_at = self.now

    # --- pictures -----------------------------------------------------------------------------------------------------

    def picture(self, position: Position, spec: KafkaMigrationSpec | None = None) -> Picture:
        seen = OFFSET + 1 if self.state is MigrationState.MIGRATION else -1
        return Picture("to-kraft", "kafka", UID, spec or spec_of(), position, self.facts(), self.now, PLAN, seen,
                       {"Soak": SOAKING_SINCE}, {}, {name: (f"data-{name}/1",) for name in position.nodes},
                       operator_image=OPERATOR_IMAGE, made=self.made)


def _address(pod: str) -> Address:
    return Address(f"{pod}.kafka-headless.kafka.svc.cluster.local", 9092)


def answer(mode: str, old: bool = False, level: int = 21) -> NodeAnswer:
    """What a node says of itself in a mode; `old` is the image that the user had."""
    match mode:
        case Mode.ZOOKEEPER if old:
            return NodeAnswer({**ZOOKEEPER_BROKER, modes.FETCH: modes.FETCH_OF_3_9 - 1}, False, -1, None)
        case Mode.ZOOKEEPER | Mode.ZOOKEEPER_PINNED | Mode.ZOOKEEPER_RAISED | Mode.MIGRATION:
            return NodeAnswer(ZOOKEEPER_BROKER, mode == Mode.MIGRATION, -1, None)
        case Mode.STOPPED:
            return NOT_LISTENING
        case Mode.KRAFT:
            return NodeAnswer(KRAFT_BROKER, False, OFFSET, level)
        case _:
            return NodeAnswer(CONTROLLER, mode == Mode.MIGRATION_CONTROLLER, OFFSET, level)


# --- moments of a migration ---------------------------------------------------------------------------------------------


Modes = Mode | tuple[Mode, ...]
"""Of three nodes: one for all of them, or those of the first ones and, as the last, that of all others."""


def three(modes: Modes) -> tuple[Mode, ...]:
    """The mode of each of three nodes."""
    told = (modes,) if isinstance(modes, Mode) else modes
    return told + told[-1:] * (3 - len(told))


def moment(step: str, brokers: Modes = Mode.ZOOKEEPER, controllers: Modes = (), batch: tuple[str, ...] = (),
           state: MigrationState | None = None, opened: float | None = NOW - 60, **spec: Any) -> Picture:
    """A healthy picture: the modes in which brokers and controllers run and are assigned, and the batch on record."""
    cluster, of_brokers, of_controllers = Cluster(state=state), three(brokers), three(controllers)
    for name, mode in zip(BROKERS, of_brokers, strict=True):
        cluster.brokers[name].mode = mode
    if controllers:
        cluster.claimed_by = UID
        cluster.controllers = {
            name: Node(mode, f"{name}/1") for name, mode in zip(CONTROLLERS, of_controllers, strict=True)}
        cluster.migration_node = True
        cluster.taken = state in (MigrationState.MIGRATION, MigrationState.POST_MIGRATION)
        take_over(cluster)
        for node in cluster.brokers.values():
            node.revision = cluster.workload().update_revision
    if set(of_controllers) == {Mode.KRAFT_CONTROLLER}:
        cluster.written_at = NOW - 600
    position = Position(step=step, entered=NOW - 100, opened=opened, nodes=records(of_brokers, of_controllers))
    if batch:
        mode = [*of_brokers, *of_controllers][[*BROKERS, *CONTROLLERS].index(batch[0])]
        position = position.with_batch(batch, mode, NOW - 30)
    return cluster.picture(position, spec_of(**spec))


def records(brokers: Sequence[Mode], controllers: Sequence[Mode]) -> dict[str, NodeRecord]:
    """What is on record for nodes in these modes; nothing before there are controllers."""
    if not controllers:
        return {}
    pods = zip((*BROKERS.items(), *CONTROLLERS.items()), (*brokers, *controllers), strict=True)
    return {name: NodeRecord(node_id, mode) for (name, node_id), mode in pods}


def take_over(cluster: Cluster) -> None:
    """Original kept, files written and template changed, as EnableMigration begins."""
    position = Position(step="EnableMigration", nodes=records(three(Mode.ZOOKEEPER), three(Mode.MIGRATION_CONTROLLER)))
    enable = next(step for step in PLAN.steps if step.name == "EnableMigration")
    for _ in range(5):
        for effect in enable.forward.goal(cluster.picture(position)):
            cluster.perform(effect)


# --- spoiling a picture -------------------------------------------------------------------------------------------------


def spoil(picture: Picture, fact: str, **changes: Any) -> Picture:
    """The picture with fields of one fact replaced, such as spoil(picture, "zookeeper", migration=None)."""
    known = getattr(picture.facts, fact)
    assert isinstance(known, Known)
    return with_fact(picture, fact, Known(replace(known.value, **changes), known.at))


def with_fact(picture: Picture, fact: str, observed: object) -> Picture:
    return replace(picture, facts=replace(picture.facts, **{fact: observed}))


def spoil_workload(picture: Picture, **changes: Any) -> Picture:
    """The picture with fields of the brokers' StatefulSet replaced."""
    return spoil(picture, "kubernetes", brokers={"kafka": replace(workload_of(picture), **changes)})


def workload_of(picture: Picture) -> Workload:
    workload = value(picture.facts.kubernetes).brokers["kafka"]
    assert isinstance(workload, Workload)
    return workload


def spoil_pod(picture: Picture, name: str, **changes: Any) -> Picture:
    pods = dict(workload_of(picture).pods)
    return spoil_workload(picture, pods={**pods, name: replace(pods[name], **changes)})


def spoil_each(picture: Picture, fact: str, change: Callable[[Any], Any], *only: object) -> Picture:
    """The picture with the values of a fact that is asked of several, all of them or those in `only`, changed."""
    items = getattr(picture.facts, fact)
    changed = {key: Known(change(known.value), known.at) if not only or key in only else known
               for key, known in items.items()}
    return with_fact(picture, fact, changed)


def value(observed: Observed[Any]) -> Any:
    assert isinstance(observed, Known)
    return observed.value
