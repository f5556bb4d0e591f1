"""The picture of one pass: what is wanted, what is on record and what was observed, put together for gates and goals."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from switchover.answers.observed import NOT_ASKED, Known, Observed, Unknown
from switchover.api.kafka_migration import BrokerSet, HandOver, KafkaMigrationSpec, NodeMode
from switchover.cluster import identity, modes, names
from switchover.cluster.controllers import manifests
from switchover.cluster.controllers.listener import same_login
from switchover.cluster.door import brokers, edits
from switchover.cluster.door.brokers import Brokers, ContainerMissing
from switchover.cluster.door.directives import NotADirective, line
from switchover.cluster.facts import Facts
from switchover.cluster.modes import Voters
from switchover.cluster.step import ClusterStep
from switchover.engine.pace import Pace
from switchover.engine.plan import Plan
from switchover.engine.policy import NOTHING_MORE, Policy
from switchover.engine.position import Position
from switchover.kafka.node import NOT_LISTENING, BrokerView, NodeAnswer, WholeView
from switchover.kubernetes.workloads import Pod, Workload
from switchover.network.addresses import Address
from switchover.network.credentials import Unusable
from switchover.shared.grouped import grouped

UPDATE_METADATA, DESCRIBE_QUORUM = 6, 55
PRODUCE = 0


@dataclass(frozen=True)
class Picture:
    """Everything that a decision about a KafkaMigration may rest on. Times are seconds since the epoch.

    `entered` says when each step of the plan was entered last, as far as it was; `paces` of each mode how long batches
    took to come back in it, as far as they were measured; `volumes` are the claims on record of each node; `rehearsed` is
    how many seconds claim, copy and the begin of dual write took on a replica, None where nobody rehearsed them; `made` is
    how each object that was made is known (`status.made`).
    """

    name: str
    namespace: str
    uid: str
    spec: KafkaMigrationSpec
    position: Position
    facts: Facts
    now: float
    plan: Plan["Picture"] = field(repr=False)
    high_watermark: int = -1
    """The newest one that was seen while the metadata log said MIGRATION: so much must be in ZooKeeper; -1 for none."""
    entered: Mapping[str, float] = field(default_factory=dict)
    paces: Mapping[str, Pace] = field(default_factory=dict)
    volumes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rehearsed: float | None = None
    made: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = NOTHING_MORE
    operator_image: str = ""
    recorded_cluster: str = ""
    """The id of the cluster on record; "" in Preflight, which is to find it out."""

    @property
    def named(self) -> tuple[str, str]:
        """As commands name it, and the namespace."""
        return f"kmig/{self.name}", self.namespace

    def at(self, position: Position) -> "Picture":
        """The same picture with another position, to ask what would hold there."""
        return replace(self, position=position)

    def held_by(self, holder: str, now: float) -> "Picture":
        """The picture of now with the Lease's holder in it, where Kubernetes was observed."""
        facts = self.facts
        if isinstance(facts.kubernetes, Known):
            state = replace(facts.kubernetes.value, lease_holder=holder)
            facts = replace(facts, kubernetes=Known(state, facts.kubernetes.at))
        return replace(self, facts=facts, now=now)

    @property
    def step(self) -> ClusterStep["Picture"]:
        """The step on record, which the plan has."""
        found = next(step for step in self.plan.steps if step.name == self.position.step)
        assert isinstance(found, ClusterStep), "the plan of a KafkaMigration has no others"
        return found

    def keeps(self, workload: str) -> bool | None:
        """Whether the backup of a StatefulSet is the one that this migration wrote; None where there is none, or where the
        record is of a release that did not note it."""
        state = self.facts.kubernetes
        original = state.value.originals.get(workload) if isinstance(state, Known) else None
        proof = self.made.get(f"ControllerRevision {self.original_of(workload)}")
        return None if original is None or proof is None else names.digest(original) == proof

    def original_of(self, workload: str) -> str:
        """The ControllerRevision that is the backup of a StatefulSet."""
        return names.original(workload, self.position.attempt)

    @property
    def cluster_id(self) -> str:
        """The id on record, else what ZooKeeper says; "" where neither is known."""
        zookeeper = self.facts.zookeeper
        return self.recorded_cluster or (zookeeper.value.cluster_id if isinstance(zookeeper, Known) else "")

    # --- the nodes ----------------------------------------------------------------------------------------------------

    @cached_property
    def broker_sets(self) -> Mapping[str, BrokerSet]:
        return {brokers.name: brokers for brokers in self.spec.brokers}

    @cached_property
    def controllers(self) -> Mapping[str, int]:
        """Pod name -> node.id of every controller."""
        return names.controller_pods(self.spec)

    @cached_property
    def brokers(self) -> Mapping[str, int]:
        """Pod name -> broker id of every broker on record."""
        own = self.controllers
        return {name: record.node_id for name, record in self.position.nodes.items() if name not in own}

    def pods_of(self, workload: str) -> tuple[str, ...]:
        """The pods on record of one StatefulSet of brokers, by ordinal."""
        return self._pods.get(workload, ())

    @cached_property
    def _pods(self) -> Mapping[str, tuple[str, ...]]:
        own = grouped((name.rpartition("-")[0], name) for name in self.brokers)
        return {workload: tuple(sorted(pods, key=lambda name: int(name.rpartition("-")[2])))
                for workload, pods in own.items()}

    @property
    def voter_addresses(self) -> Mapping[int, Address]:
        """node.id -> address of every controller."""
        return manifests.addresses(self.spec, self.namespace)

    @property
    def voters(self) -> Voters | None:
        """The quorum as nodes' files name it.

        None while the credentials of its listener are not known, cannot be used or are not those that the controllers run
        with: the gate ListenerCredentials reports which.
        """
        if not isinstance(self.facts.kubernetes, Known):
            return None
        credentials = self.facts.kubernetes.value.listener_credentials
        if isinstance(credentials, str):
            return None
        try:
            voters = manifests.voters(self.spec, self.namespace, credentials)
        except Unusable:
            return None
        return voters if same_login(voters.listener.settings, self.controller_files) else None

    @property
    def controller_files(self) -> tuple[Mapping[str, str], ...]:
        """What the controllers' edits set, as they are written now."""
        if not isinstance(self.facts.kubernetes, Known):
            return ()
        files = self.facts.kubernetes.value.node_files.get(self.spec.controllers.name, {})
        return tuple(edits.settings_of(text) for pod, text in files.items() if pod in self.controllers)

    @property
    def batch(self) -> tuple[str, ...]:
        """Names of the pods of the batch on record."""
        return self.position.batch.nodes if self.position.batch is not None else ()

    @property
    def is_stopping(self) -> bool:
        """Whether a controller was made to stop: from then on KRaft's metadata log may not be readable any more."""
        return any(record.assigned == NodeMode.STOPPED and (record.evictions > 0 or name not in self.batch)
                   for name, record in self.position.nodes.items())

    def broker_pods(self) -> Observed[Mapping[str, int]]:
        """Pod name -> broker id, of all pods; Unknown names a pod whose id is not known."""
        facts = self.facts
        if not isinstance(facts.kubernetes, Known):
            return facts.kubernetes
        if not isinstance(facts.zookeeper, Known):
            return facts.zookeeper
        pods: list[str] = []
        for workload in facts.kubernetes.value.brokers.values():
            if workload is None:
                return Unknown("a StatefulSet of brokers does not exist")
            pods += workload.wanted
        found = identity.identified(pods, facts.zookeeper.value.brokers, facts.identities)
        return Unknown(found) if isinstance(found, str) else Known(found, facts.zookeeper.at)

    def listeners_for_controllers(self) -> Observed[tuple[str, ...]]:
        """Where each broker listens for controllers, as `host:port`, as it has registered; Unknown names one that has not.
        Where it encrypts the address begins with tls://.

        Kafka registers listeners by their names in capitals, however the settings write them.
        """
        zookeeper, found = self.facts.zookeeper, []
        if not isinstance(zookeeper, Known):
            return zookeeper
        for pod, broker_id in self.brokers.items():
            brokers = self.brokers_of(pod.rpartition("-")[0])
            if not isinstance(brokers, Known):
                return brokers
            listener = brokers.value.listener.upper()
            address = zookeeper.value.brokers.get(broker_id, {}).get(listener)
            if address is None:
                return Unknown(f"broker {broker_id} has not registered in ZooKeeper where it listens for controllers")
            tls = listener in (name.upper() for name in brokers.value.encrypted)
            found.append(f"{'tls://' if tls else ''}{address}")
        return Known(tuple(sorted(found)), zookeeper.at)

    # --- what nodes say of themselves ---------------------------------------------------------------------------------

    def mode(self, node_id: int) -> Observed[NodeMode]:
        """The mode that a node's ApiVersions show (docs/facts/kraft.md#what-a-node-answers), with its settings where they
        leave two."""
        answer = self.facts.answers.get(node_id, Unknown(f"node {node_id} was not asked"))
        if not isinstance(answer, Known):
            return answer
        if answer.value == NOT_LISTENING:
            return Unknown(f"node {node_id} is not listening")
        mode = observed_mode(answer.value)
        if mode == NodeMode.KRAFT:
            return self._handed_over(node_id, Known(mode, answer.at))
        if mode == NodeMode.ZOOKEEPER:
            return self._on_zookeeper(node_id, Known(answer.value, answer.at))
        return Known(mode, answer.at)

    def _handed_over(self, node_id: int, answered: Known[NodeMode]) -> Observed[NodeMode]:
        """KRaft or OwnKRaft: ApiVersions does not distinguish them; the marker of a broker does while it is being moved."""
        record = next((record for record in self.position.nodes.values() if record.node_id == node_id), None)
        if record is None or record.assigned != NodeMode.OWN_KRAFT:
            return answered
        if record.settled:
            return Known(NodeMode.OWN_KRAFT, answered.at)
        marker = self.facts.markers.get(node_id, Unknown(f"broker {node_id} was not asked for its marker"))
        if not isinstance(marker, Known):
            return marker
        return Known(NodeMode.KRAFT if marker.value else NodeMode.OWN_KRAFT, marker.at)

    def _on_zookeeper(self, node_id: int, answered: Known[NodeAnswer]) -> Observed[NodeMode]:
        """One without a quorum: ApiVersions shows the release, and the live settings the protocol version, where either is
        changed."""
        plain = Known(NodeMode.ZOOKEEPER, answered.at)
        pod = next((name for name, record in self.position.nodes.items() if record.node_id == node_id), "")
        if not pod:                                                   # Preflight looks at both by itself
            return plain
        found = self.brokers_of(pod.rpartition("-")[0])
        if not isinstance(found, Known):
            return found
        brokers = found.value
        if not (brokers.image or brokers.raised):
            return plain
        if brokers.image and is_older(answered.value):
            marker = self.facts.markers.get(node_id)
            edited = isinstance(marker, Known) and marker.value != ""
            if edited and self.position.nodes[pod].assigned == NodeMode.ZOOKEEPER:
                return Known(NodeMode.ZOOKEEPER_PINNED, answered.at)  # in a rollback from an image that was not of 3.9
            return plain
        settings = self.facts.broker_settings.get(node_id, Unknown(f"broker {node_id} was not asked for its settings"))
        if not isinstance(settings, Known):
            return settings
        live = settings.value.get(modes.PROTOCOL_VERSION, "")
        if brokers.raised and modes.release_of(live) == modes.RAISED:
            return Known(NodeMode.ZOOKEEPER_RAISED, settings.at)
        if not brokers.image:
            return Known(NodeMode.ZOOKEEPER, settings.at)
        if live == brokers.version:
            return Known(NodeMode.ZOOKEEPER_PINNED, settings.at)
        return Unknown(f"broker {node_id} runs with {modes.PROTOCOL_VERSION} {live}, and ran with {brokers.version} before"
                       " its upgrade")

    @property
    def own_configuration(self) -> bool:
        """Whether HandOver is to bring the brokers to a configuration of the user's own."""
        return self.spec.hand_over is HandOver.OWN_CONFIGURATION

    @property
    def new_image(self) -> str:
        """The image that the spec upgrades brokers to, "" for none."""
        return self.spec.upgrade.image if self.spec.upgrade is not None else ""

    @property
    def upgrades(self) -> bool:
        """Whether some brokers must be brought to Kafka 3.9, as far as is known."""
        return any(found.image for found in self._known_brokers())

    @property
    def raises(self) -> bool:
        """Whether the protocol version of some brokers must be raised, as far as is known."""
        return any(found.raised for found in self._known_brokers())

    def _known_brokers(self) -> Iterator[Brokers]:
        found = (self.brokers_of(name) for name in self.broker_sets)
        return (one.value for one in found if isinstance(one, Known))

    def brokers_of(self, workload: str) -> Observed[Brokers]:
        """What the brokers of a StatefulSet were before they were touched: by the backup, else by their own answers."""
        state = self.facts.kubernetes
        if not isinstance(state, Known):
            return state
        if (original := state.value.originals.get(workload)) is not None:
            backup, stored = f"ControllerRevision {self.original_of(workload)}", brokers.stored(original)
            if stored is None:
                return Unknown(f"{backup}, the backup of StatefulSet {workload}, says nothing of its brokers: end the"
                               " migration with the older release of Switchover that wrote it, or restore the backup")
            if isinstance(stored, Brokers):
                return _usable(stored, original["template"], f"StatefulSet {workload} as it was", state.at)
            return Unknown(f"{backup}, the backup of StatefulSet {workload}: {stored}", malformed=True)
        found = state.value.brokers.get(workload)
        if found is None:
            return Unknown(f"StatefulSet {workload} does not exist")
        if any(self.position.nodes[pod].assigned != NodeMode.ZOOKEEPER for pod in self.pods_of(workload)):
            return Unknown(f"ControllerRevision {self.original_of(workload)}, the backup of StatefulSet {workload}, is"
                           " missing, and its brokers already run by Switchover's edits")
        settings, image = self._settings_of(workload), self._new_image_of(workload)
        if not isinstance(settings, Known):
            return settings
        if not isinstance(image, Known):
            return image
        try:
            own = brokers.find(found.template, self.broker_sets[workload], settings.value, image.value)
        except ContainerMissing as why:
            return Unknown(f"StatefulSet {workload}: {why}")
        except NotADirective as why:
            return Unknown(f"the settings of the brokers of StatefulSet {workload}: {why}", malformed=True)
        return _usable(own, found.template, f"StatefulSet {workload}", settings.at)

    def _ids_of(self, workload: str) -> Observed[tuple[int, ...]]:
        """The brokers of a StatefulSet, by their pods' names."""
        pods = Known(self.brokers, self.now) if self.brokers else self.broker_pods()
        if not isinstance(pods, Known):
            return pods
        found = tuple(broker_id for pod, broker_id in sorted(pods.value.items()) if pod.rpartition("-")[0] == workload)
        return Known(found, pods.at) if found else Unknown(f"StatefulSet {workload} has no broker")

    def _settings_of(self, workload: str) -> Observed[Mapping[str, str]]:
        """What one of a StatefulSet's brokers runs with."""
        ids = self._ids_of(workload)
        if not isinstance(ids, Known):
            return ids
        answers = [self.facts.broker_settings.get(broker_id, NOT_ASKED) for broker_id in ids.value]
        return next((answer for answer in answers if isinstance(answer, Known)), answers[0])

    def _new_image_of(self, workload: str) -> Observed[str]:
        """The image that a StatefulSet's brokers are upgraded to; "" where the spec has none, or all run Kafka 3.9."""
        if not self.new_image:
            return Known("", self.now)
        ids = self._ids_of(workload)
        if not isinstance(ids, Known):
            return ids
        answers = [self.facts.answers.get(broker_id, NOT_ASKED) for broker_id in ids.value]
        if any(isinstance(answer, Known) and is_older(answer.value) for answer in answers):
            return Known(self.new_image, ids.at)
        silent = next((answer for answer in answers if not isinstance(answer, Known)), None)
        return silent if silent is not None else Known("", ids.at)

    def view(self, broker_id: int) -> Observed[BrokerView]:
        """What this broker answers to Metadata."""
        return self.facts.views.get(broker_id, Unknown(f"broker {broker_id} was not asked"))

    @property
    def whole_views(self) -> dict[int, WholeView]:
        """What the brokers answer that were asked for all partitions."""
        return self.facts.whole_views

    @property
    def moving(self) -> frozenset[int]:
        """The ids of the brokers of the batch."""
        return frozenset(self.brokers[name] for name in self.batch if name in self.brokers)

    def workload_of(self, pod: str) -> Workload | None:
        """The StatefulSet that a pod of the plan belongs to, None when it was not observed."""
        if not isinstance(self.facts.kubernetes, Known):
            return None
        state = self.facts.kubernetes.value
        if pod in self.controllers:
            return state.controllers
        return state.brokers.get(pod.rpartition("-")[0])

    def pod_of(self, name: str) -> Pod | None:
        """The pod of a node, None when it was not observed."""
        workload = self.workload_of(name)
        return workload.pods.get(name) if workload is not None else None


def is_older(answer: NodeAnswer) -> bool:
    """Whether a broker runs a Kafka older than 3.9."""
    return answer.api_keys.get(modes.FETCH, 0) < modes.FETCH_OF_3_9


def observed_mode(answer: NodeAnswer) -> NodeMode:
    """The mode by ApiVersions alone, NONE for a node that fits none. All brokers without a quorum answer as ZooKeeper, and
    those on KRaft as KRaft."""
    keys = answer.api_keys
    if modes.LEADER_AND_ISR in keys and UPDATE_METADATA in keys:
        return NodeMode.MIGRATION if answer.zk_migration_ready else NodeMode.ZOOKEEPER
    if DESCRIBE_QUORUM in keys:
        if PRODUCE in keys:
            return NodeMode.KRAFT
        return NodeMode.MIGRATION_CONTROLLER if answer.zk_migration_ready else NodeMode.KRAFT_CONTROLLER
    return NodeMode.NONE


def _usable(own: Brokers, template: Mapping[str, Any], subject: str, at: float) -> Observed[Brokers]:
    """What brokers are, where the directory of controllers that follows from it can be part of the edits."""
    try:
        line(manifests.log_dir({"template": template}, own), "the place of a controller's metadata log")
    except ContainerMissing as why:
        return Unknown(f"{subject}: {why}")
    except NotADirective as why:
        return Unknown(f"{subject}: {why}", malformed=True)
    return Known(own, at)
