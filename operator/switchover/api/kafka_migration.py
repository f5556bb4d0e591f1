"""The resource `KafkaMigration`: one Kafka cluster from ZooKeeper to KRaft."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from switchover.api.controllers import ControllersSpec, ResourceRequirements
from switchover.api.meta import (
    API_VERSION,
    HOST_PORTS,
    GroupHealth,
    KafkaConnection,
    MigrationGates,
    MigrationSpec,
    ObjectMeta,
    SecretRef,
    TopicName,
    Untouched,
    untouched_before,
)
from switchover.api.plan_preview import PlanPreview
from switchover.api.schema import Clipped, ContainerName, Informative, Model, Rule, Time, Unique, WorkloadName, matches
from switchover.api.status import Count, MigrationStatus, Name, Seconds


class KafkaMigrationStep(StrEnum):
    """The steps of the plan, in their order."""

    PREFLIGHT = "Preflight"
    REHEARSE = "Rehearse"
    UPGRADE_BROKERS = "UpgradeBrokers"
    RAISE_PROTOCOL_VERSION = "RaiseProtocolVersion"
    PROVISION_CONTROLLERS = "ProvisionControllers"
    ENABLE_MIGRATION = "EnableMigration"
    COPY_METADATA = "CopyMetadata"
    DUAL_WRITE = "DualWrite"
    MOVE_BROKERS = "MoveBrokers"
    SOAK = "Soak"
    FINALIZE = "Finalize"
    HAND_OVER = "HandOver"
    RELEASE_ZOOKEEPER = "ReleaseZooKeeper"


class ZooKeeperConnection(Model):
    """How to reach the ZooKeeper ensemble that the brokers use."""

    connect: Annotated[
        str,
        Field(min_length=3, max_length=2048),
        matches(
            rf"{HOST_PORTS}(/[A-Za-z0-9._/-]*)?",
            "must be host:port pairs separated by commas, without spaces, with the brokers' chroot if they have one,"
            " such as zookeeper:2181/kafka",
        ),
    ]
    """The brokers' own zookeeper.connect: host:port pairs and the chroot, if any."""
    credentials_ref: SecretRef | None = None
    """Secret with the client's TLS and SASL settings. Absent: no authentication."""


class ZooKeeperEnsemble(ZooKeeperConnection):
    """The ZooKeeper ensemble of the cluster, and whether it is the cluster's alone."""

    shared: bool = False
    """Others use this ensemble too, so it cannot be stopped: that brokers start without it is then not proved, and never
    said."""


class StartPreset(StrEnum):
    """Whose layout an image has: where its own script that starts Kafka is."""

    APACHE = "Apache"
    BITNAMI = "Bitnami"
    CONFLUENT = "Confluent"


class BrokerStart(Model):
    """The image's own script that starts Kafka, over which the edits of a mode are made."""

    preset: StartPreset | None = None
    """Apache: /opt/kafka/bin/kafka-server-start.sh; Bitnami: /opt/bitnami/kafka/bin/kafka-server-start.sh; Confluent:
    /usr/bin/kafka-server-start."""
    script: Annotated[
        str,
        Field(min_length=2, max_length=512),
        matches(r"(/[A-Za-z0-9._-]+)+", "must be an absolute path without blanks, such as /kafka/bin/kafka-server-start.sh"),
    ] | None = None
    """Its path in the image, where it is another."""

    cel = (Rule("has(self.preset) != has(self.script)", "must have exactly one of preset and script"),)

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.preset is None) == (self.script is None):
            raise ValueError(self.cel[0].message)
        return self


class BrokerSet(Model):
    """A StatefulSet of brokers. How they are configured need not be said."""

    name: WorkloadName
    """Name of the StatefulSet."""
    container: ContainerName | None = None
    """The container that runs Kafka. Absent: the only one, or the only one whose name says so."""
    start: BrokerStart | None = None
    """The script that starts Kafka. Absent: the one that the container's command calls, or that of the image's layout."""


class BrokerUpgrade(Model):
    """The release that brokers of Kafka 3.4 to 3.8 are brought to before anything else, since only 3.9 can be migrated."""

    image: Annotated[str, Field(min_length=1, max_length=512)]
    """An image of Kafka 3.9 with the brokers' own layout. The protocol version stays as it is until the migration."""


class HandOver(StrEnum):
    """What the brokers run by in the end: their own configuration with the script's edits, which Git gets as `switchover
    export` prints them, or their own configuration alone.
    """

    EXPORT = "Export"
    OWN_CONFIGURATION = "OwnConfiguration"


class RehearsalSpec(Model):
    """The rehearsal of claim, copy, rollback and end on a throwaway replica, by Kafka's own code."""

    enabled: bool = True
    """False: what Kafka's migration makes of the metadata is seen first after the claim."""
    resources: ResourceRequirements = ResourceRequirements()
    """Of each container of the replica's pod. Absent: 1.7 GiB requested and at most 3.8 GiB used by all four together. A
    large cluster (some 1,000 topics with 40 partitions each) has all of that requested. Each container has the brokers'
    limit of CPU and ephemeral storage, where they have any."""


class KafkaMigrationGates(MigrationGates):
    """Thresholds of the gates."""

    groups: Annotated[tuple[GroupHealth, ...], Field(max_length=100), Unique("name")] = ()
    """Consumer groups whose lag must stay healthy through every batch of brokers."""
    accepted_topics: Annotated[tuple[TopicName, ...], Field(max_length=1000), Unique()] = ()
    """Topics that may lose availability during a restart, because their replication never allows one."""
    broker_session_timeout_seconds: Annotated[int, Field(ge=1, le=600)] = 9
    """The brokers' broker.session.timeout.ms; after a change of leader every broker must stay unfenced for longer."""
    copy_timeout_seconds: Annotated[int, Field(ge=1, le=86_400)] = 30
    """Longest time between claim and copied metadata; one second is added for every 1000 partitions."""
    quorum_stable_seconds: Annotated[int, Field(ge=0, le=3600)] = 10
    """How long the quorum must keep its leader."""
    dual_write_max_lag: Annotated[int, Field(ge=0, le=1_000_000)] = 3
    """Largest lag of the dual write to ZooKeeper, in metadata records; KRaft writes an empty one every half second."""
    dual_write_max_age_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """Largest age of the last dual write's heartbeat."""
    idle_group_seconds: Annotated[int, Field(ge=1, le=31_536_000)] = 604_800
    """How lately a group without members must have committed to ZooKeeper for Preflight to warn of it."""


class Backups(Model):
    """The backups that a person took before the point of no return, or why there are none."""

    taken_time: Time | None = None
    """When both were taken, ZooKeeper's data and the controllers' metadata log; it must be after Soak began."""
    location: Annotated[str, Field(max_length=1024)] = ""
    """Where they are stored, for whoever needs them."""
    skip_reason: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Why Finalize may begin without them. The history shows it."""

    cel = (Rule("has(self.takenTime) != has(self.skipReason)", "must have exactly one of takenTime and skipReason"),)

    @model_validator(mode="after")
    def _taken_or_skipped(self) -> Self:
        if (self.taken_time is None) == (self.skip_reason is None):
            raise ValueError(self.cel[0].message)
        return self


UNTOUCHED = untouched_before("UpgradeBrokers", "nodes", "Rehearse")


class KafkaMigrationSpec(MigrationSpec):
    """What the user wants."""

    holds: Annotated[tuple[KafkaMigrationStep, ...], Field(max_length=13), Unique()] = (KafkaMigrationStep.FINALIZE,)
    """Steps that wait for an approval. Finalize always does."""
    zookeeper: ZooKeeperEnsemble
    """The ZooKeeper ensemble."""
    kafka: KafkaConnection
    """The Kafka cluster, as a client sees it."""
    brokers: Annotated[tuple[BrokerSet, ...], Field(min_length=1, max_length=16), Unique("name")]
    """The StatefulSets of the cluster's brokers: all of them."""
    upgrade: BrokerUpgrade | None = None
    """Absent: the brokers must run Kafka 3.9 already."""
    controllers: ControllersSpec
    """The controllers that Switchover creates."""
    rehearsal: RehearsalSpec = RehearsalSpec()
    """The rehearsal, before anything is touched and again before the copy where the metadata has changed."""
    soak_seconds: Annotated[int, Field(ge=0, le=31_536_000)] = 86_400
    """How long dual write runs with all brokers on KRaft before Finalize may start."""
    zookeeper_retention_seconds: Annotated[int, Field(ge=0, le=31_536_000)] = 604_800
    """How long ZooKeeper stays after Finalize."""
    hand_over: HandOver = HandOver.EXPORT
    """Export: script and edits stay in the brokers' template, and Git gets what `switchover export` prints.
    OwnConfiguration: the brokers' template is given KRaft settings by whoever keeps it (a chart's values, a manifest);
    HandOver, once approved, takes what is Switchover's out of it and rolls the brokers to it."""
    backups: Backups | None = None
    """The backups that Finalize waits for; it does not begin without this."""
    gates: KafkaMigrationGates = KafkaMigrationGates()
    """Thresholds of the gates."""

    untouched: ClassVar[Mapping[str, Untouched]] = {
        "": UNTOUCHED,
        "controllers": Untouched("ProvisionControllers", (
            f"{UNTOUCHED.cel} || (has(status.nodes) && size(status.nodes) > 0 && status.nodes.all(node, has(node.assigned)"
            " && node.assigned in ['ZooKeeper', 'ZooKeeperPinned', 'ZooKeeperRaised', 'A', 'U', 'R']))")),
    }
    changeable: ClassVar[Mapping[str, frozenset[str]]] = {"zookeeper": frozenset({"shared"})}
    cel = (
        Rule(
            "self.brokers.all(brokers, brokers.name != self.controllers.name)",
            "must differ from the names of the brokers' StatefulSets",
            field_path=".controllers.name",
        ),
    )

    @model_validator(mode="after")
    def _names(self) -> Self:
        if any(brokers.name == self.controllers.name for brokers in self.brokers):
            raise ValueError(f"controllers.name {self.cel[0].message}")
        return self


class MetadataState(StrEnum):
    """KIP-866's names for the state of the cluster's metadata, and ZooKeeper and KRaft for before and after."""

    ZOOKEEPER = "ZooKeeper"
    MIGRATION_ELIGIBLE = "MigrationEligible"
    MIGRATION_READY = "MigrationReady"
    MIGRATION_ACTIVE = "MigrationActive"
    MIGRATION_FINISHED = "MigrationFinished"
    KRAFT = "KRaft"


class NodeMode(StrEnum):
    """The configuration a node runs in; a controller is in one of the last three.

    ZooKeeper is a broker as it was, ZooKeeperPinned one on Kafka 3.9 with the protocol version of before, ZooKeeperRaised
    one with the protocol version raised, Migration one with the migration flag. KRaft is a broker on KRaft by Switchover's
    edits, OwnKRaft one by the user's own configuration. MigrationController is a controller that migrates, KRaftController
    one that has finalized.
    """

    NONE = ""
    ZOOKEEPER = "ZooKeeper"
    ZOOKEEPER_PINNED = "ZooKeeperPinned"
    ZOOKEEPER_RAISED = "ZooKeeperRaised"
    MIGRATION = "Migration"
    KRAFT = "KRaft"
    OWN_KRAFT = "OwnKRaft"
    MIGRATION_CONTROLLER = "MigrationController"
    KRAFT_CONTROLLER = "KRaftController"
    STOPPED = "Stopped"

    @classmethod
    def _missing_(cls, value: object) -> "NodeMode | None":
        return FORMERLY.get(value) if isinstance(value, str) else None

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        return {**schema, "enum": [*schema["enum"], *FORMERLY]}


FORMERLY: Mapping[str, NodeMode] = {
    "A": NodeMode.ZOOKEEPER, "U": NodeMode.ZOOKEEPER_PINNED, "R": NodeMode.ZOOKEEPER_RAISED, "B": NodeMode.MIGRATION,
    "C": NodeMode.KRAFT, "K": NodeMode.OWN_KRAFT, "P": NodeMode.MIGRATION_CONTROLLER, "F": NodeMode.KRAFT_CONTROLLER}
"""What was written for a mode before it had a name: read still, and accepted by the CRD, since an operator of before may
write it until it is replaced, and nobody writes the status of a migration that has ended. Whatever is written has names."""


def name_of(mode: str) -> str:
    """The name of a mode, however it was written."""
    return FORMERLY.get(mode, mode)


class NodeStatus(Model):
    """One Kafka node."""

    name: Name
    """Name of its pod."""
    node_id: Annotated[int, Field(ge=-1, le=2_147_483_647)] = -1
    """broker.id or node.id; -1 while unknown."""
    assigned: NodeMode = NodeMode.NONE
    """The mode it will have when it starts next. Empty: the user's own configuration."""
    observed: Annotated[NodeMode, Informative(NodeMode.NONE)] = NodeMode.NONE
    """The mode it last showed. Empty: not observed."""
    evicting: Annotated[str, Clipped(64)] = ""
    """uid of the pod on record to be evicted; a pod with another uid is already the new one."""
    evictions: Count = 0
    """Evictions since its mode was assigned."""
    settled: bool = True
    """False from the choice of its batch until that batch is done: until then it may run in either mode."""
    volumes: Annotated[tuple[Annotated[str, Clipped(320)], ...], Field(max_length=32)] = ()
    """Its volume claims as name/uid: the ones that hold its data. One that was created again is reported as an incident."""


class RestartPace(Model):
    """How long batches took to come back in one mode, from their first eviction until their gates had passed."""

    name: NodeMode
    """The mode that they were restarted into."""
    batches: Count
    """Number of batches measured, in all attempts."""
    average_seconds: Seconds
    """Their average; estimates count with it."""
    slowest_seconds: Seconds
    """The slowest of them; a batch starts only if it could be as slow and still end within the window."""


class RehearsalStatus(Model):
    """What the last rehearsal that came to its end measured."""

    digest: Annotated[str, Clipped(64)] = ""
    """Of the metadata that was rehearsed, masked."""
    topics: Count = 0
    """How many there were."""
    znodes: Count = 0
    """How many nodes of ZooKeeper were read."""
    seconds: Seconds = 0
    """From the claim until dual write had begun, on the replica."""


class KafkaMigrationStatus(MigrationStatus):
    """What is on record and what was observed."""

    metadata_state: Annotated[MetadataState, Informative(MetadataState.ZOOKEEPER)] = MetadataState.ZOOKEEPER
    """Where the cluster's metadata is, by the evidence."""
    high_watermark: Annotated[int, Field(ge=-1, le=2**53)] = -1
    """The newest high watermark of the metadata log that was seen; -1 before there is one."""
    migration_node: Annotated[str, Clipped(256)] = ""
    """What `/migration` held in ZooKeeper when the controllers had been stopped, saved before it was deleted."""
    nodes: Annotated[tuple[NodeStatus, ...], Field(max_length=1000), Unique("name")] = ()
    """The Kafka nodes, brokers and controllers."""
    broker_restarts: Count = 0
    """Pods of brokers put on record to be replaced, over all attempts."""
    controller_restarts: Count = 0
    """Pods of controllers put on record to be replaced, over all attempts."""
    plan: PlanPreview | None = None
    """What will be done, as Preflight computed it: restarts, configuration and time."""
    restarts: Annotated[tuple[RestartPace, ...], Field(max_length=8), Unique("name")] = ()
    """How long restarts took, by mode."""
    rehearsal: RehearsalStatus | None = None
    """What was measured on the replica: the estimate of the copy, and part of the limit after which it takes too long."""

    @field_validator("plan")
    @classmethod
    def _with_names(cls, plan: PlanPreview | None) -> PlanPreview | None:
        """kafka/Migration of kafka/B."""
        if plan is None:
            return None
        changes = ((change, *change.name.rpartition("/")) for change in plan.changes)
        return plan.evolve(changes=tuple(change.evolve(name=f"{of}/{name_of(mode)}") for change, of, _, mode in changes))


class KafkaMigration(Model):
    """Carries one Apache Kafka cluster from ZooKeeper to KRaft (KIP-866) while its traffic keeps flowing."""

    api_version: Literal["switchover.dev/v1alpha1"] = API_VERSION
    kind: Literal["KafkaMigration"] = "KafkaMigration"
    metadata: ObjectMeta
    spec: KafkaMigrationSpec
    status: KafkaMigrationStatus = KafkaMigrationStatus()
