"""The resource `KafkaMigration`: one Kafka cluster from ZooKeeper to KRaft."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from switchover.api.conditions import Conditions
from switchover.api.meta import (
    API_VERSION,
    HOST_PORTS,
    Approval,
    DesiredState,
    GroupHealth,
    KafkaConnection,
    KeyRef,
    ObjectMeta,
    OnFailure,
    ReadinessPolicy,
    RolloutSpec,
    SecretRef,
    TopicName,
    Window,
    ruled,
    unique_by,
)
from switchover.api.schema import Clipped, ContainerName, Matches, Model, ObjectName, Rule, WorkloadName, add_rules
from switchover.api.status import (
    AcceptedApprovals,
    Count,
    Findings,
    GateStreaks,
    History,
    Name,
    Phase,
    Progress,
    Rollback,
    StepRecords,
    WaitingList,
)


class KafkaMigrationStep(StrEnum):
    """The steps of the plan, in their order."""

    PREFLIGHT = "Preflight"
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
        Matches(
            rf"{HOST_PORTS}(/[A-Za-z0-9._/-]*)?",
            "must be host:port pairs separated by commas, without spaces, with the brokers' chroot if they have one,"
            " such as zookeeper:2181/kafka",
        ),
    ]
    """The brokers' own zookeeper.connect: host:port pairs and the chroot, if any."""
    credentials_ref: SecretRef | None = None
    """Secret with the client's TLS and SASL settings. Absent: no authentication."""


class EnvironmentConfiguration(Model):
    """An image that builds server.properties from environment variables at start."""

    prefix: Annotated[
        str,
        Field(min_length=1, max_length=64),
        Matches(r"[A-Z][A-Z0-9_]*_", "must be the prefix of the variables: upper case, ending in '_', such as KAFKA_"),
    ] = "KAFKA_"
    """What the names of these variables begin with."""


_CONFIGURATION_RULE = Rule(
    "[has(self.configMapRef), has(self.secretRef), has(self.environment)].filter(given, given).size() == 1",
    "must have exactly one of configMapRef, secretRef and environment",
)


class BrokerConfiguration(Model):
    """Where the brokers' server.properties comes from."""

    config_map_ref: KeyRef | None = None
    """A key of a ConfigMap, mounted as a file or a directory."""
    secret_ref: KeyRef | None = None
    """A key of a Secret, mounted as a file or a directory."""
    environment: EnvironmentConfiguration | None = None
    """Environment variables of the container."""

    @model_validator(mode="after")
    def _one_source(self) -> "BrokerConfiguration":
        if sum(source is not None for source in (self.config_map_ref, self.secret_ref, self.environment)) != 1:
            raise ValueError(_CONFIGURATION_RULE.message)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return ruled(core, handler, _CONFIGURATION_RULE)


class BrokerSet(Model):
    """A StatefulSet of brokers."""

    name: WorkloadName
    """Name of the StatefulSet."""
    container: ContainerName = "kafka"
    """The container that runs the broker."""
    configuration: BrokerConfiguration
    """Where its server.properties comes from; it is read and never edited."""


class SecurityProtocol(StrEnum):
    """Kafka's security protocols."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


_LISTENER_RULE = Rule(
    "self.securityProtocol == 'PLAINTEXT' || has(self.credentialsRef)",
    "must have credentialsRef unless securityProtocol is PLAINTEXT",
    field_path=".credentialsRef",
)


class ControllerListener(Model):
    """The listener of the controllers. SASL means PLAIN here: a quorum cannot read SCRAM credentials before it runs."""

    name: Annotated[
        str,
        Field(min_length=1, max_length=64),
        Matches(r"[A-Z][A-Z0-9_-]*", "must be a listener's name in upper case, such as CONTROLLER"),
    ] = "CONTROLLER"
    """The listener's name; no broker may have one of the same name."""
    port: Annotated[int, Field(ge=1, le=65535)] = 9093
    """The port."""
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    """Kafka's name of the protocol."""
    credentials_ref: SecretRef | None = None
    """Secret with the listener's keys, or user and password of PLAIN."""

    @model_validator(mode="after")
    def _credentials(self) -> "ControllerListener":
        if self.security_protocol is not SecurityProtocol.PLAINTEXT and self.credentials_ref is None:
            raise ValueError(_LISTENER_RULE.message)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return ruled(core, handler, _LISTENER_RULE)


_QUANTITY = r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?"
_QUANTITY_MUST = "must be a quantity, such as 500m, 2 or 1Gi"

Quantity = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if isinstance(value, int) and not isinstance(value, bool) else value),
    Field(max_length=32),
    Matches(_QUANTITY, _QUANTITY_MUST),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 32,
            "pattern": f"^{_QUANTITY}$",
        }
    ),
]


class Storage(Model):
    """The volume of each controller."""

    size: Annotated[
        str,
        Field(min_length=1, max_length=32),
        Matches(r"[1-9][0-9]*(\.[0-9]+)?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?", "must be a size, such as 1Gi or 500Mi"),
    ]
    """Size of the volume."""
    storage_class_name: ObjectName | None = None
    """The StorageClass. Absent: the cluster's default."""


ResourceList = Annotated[dict[Annotated[str, Field(max_length=253)], Quantity], Field(max_length=16)]
Labels = Annotated[
    dict[Annotated[str, Field(max_length=317)], Annotated[str, Field(max_length=63)]], Field(max_length=64)
]
Annotations = Annotated[
    dict[Annotated[str, Field(max_length=317)], Annotated[str, Field(max_length=4096)]], Field(max_length=64)
]


class ResourceRequirements(Model):
    """Compute resources of a controller's container."""

    requests: ResourceList = Field(default_factory=dict)
    """What the scheduler sets aside."""
    limits: ResourceList = Field(default_factory=dict)
    """What the container may use."""


class Toleration(Model):
    """Kubernetes' own toleration."""

    key: Annotated[str, Field(max_length=317)] = ""
    """The taint's key; empty with operator Exists: every taint."""
    operator: Literal["Exists", "Equal"] = "Equal"
    """Exists or Equal."""
    value: Annotated[str, Field(max_length=63)] = ""
    """The taint's value."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """The effect; empty: every effect."""
    toleration_seconds: Annotated[int, Field(ge=0, le=604800)] | None = None
    """How long a NoExecute taint is tolerated."""


class ControllerTemplate(Model):
    """What may be said about the controllers' pods; everything else is Switchover's own."""

    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """The image. Absent: the brokers'."""
    heap_options: Annotated[str, Field(max_length=512)] = "-Xms256m -Xmx512m"
    """The JVM's heap, given as KAFKA_HEAP_OPTS."""
    resources: ResourceRequirements = ResourceRequirements()
    """Compute resources of the container."""
    node_selector: Labels = Field(default_factory=dict)
    """Labels that a node must have."""
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=32)] = ()
    """Taints that are tolerated."""
    affinity: Annotated[
        dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    ] = Field(default_factory=dict)
    """Kubernetes' own affinity. Empty: spread over nodes and zones."""
    labels: Labels = Field(default_factory=dict)
    """Further labels of the pods; none that a broker's Service or StatefulSet selects."""
    annotations: Annotations = Field(default_factory=dict)
    """Further annotations of the pods."""


_REPLICAS_RULE = Rule(
    "self == 3 || self == 5", "must be 3 or 5: a quorum of 3 outlives the loss of one controller, a quorum of 5 of two"
)


class _ThreeOrFive:
    """Annotation of a replica count: refused in words by the API server and by pydantic."""

    def __get_pydantic_core_schema__(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(value: int) -> int:
            if value not in (3, 5):
                raise PydanticCustomError("must_match", "{must}", {"must": _REPLICAS_RULE.message})
            return value

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        add_rules(schema, _REPLICAS_RULE)
        return schema


class ControllersSpec(Model):
    """The quorum of controllers that Switchover creates."""

    name: WorkloadName = "kafka-controller"
    """Name of their StatefulSet and headless Service."""
    replicas: Annotated[int, Field(ge=-1000, le=1000), _ThreeOrFive()] = 3
    """Number of controllers: 3 or 5."""
    first_node_id: Annotated[int, Field(ge=0, le=2_147_483_000)] = 3000
    """node.id of the first controller; the others follow. None may be a broker's id."""
    listener: ControllerListener = ControllerListener()
    """Their listener."""
    storage: Storage
    """Their volumes, kept when the StatefulSet goes."""
    template: ControllerTemplate = ControllerTemplate()
    """What may be said about their pods."""


class KafkaMigrationGates(Model):
    """Thresholds of the gates."""

    groups: Annotated[tuple[GroupHealth, ...], Field(max_length=100), unique_by("name")] = ()
    """Consumer groups whose lag must stay healthy through every batch of brokers."""
    accepted_topics: Annotated[tuple[TopicName, ...], Field(max_length=1000)] = ()
    """Topics that may lose availability during a restart, because their replication never allows one."""
    stable_samples: Annotated[int, Field(ge=1, le=100)] = 3
    """Consecutive passes that a health gate needs before it opens."""
    broker_session_timeout_seconds: Annotated[int, Field(ge=1, le=600)] = 9
    """The brokers' broker.session.timeout.ms; after a change of leader every broker must stay unfenced for longer."""
    copy_timeout_seconds: Annotated[int, Field(ge=1, le=86_400)] = 30
    """Longest time between claim and copied metadata; one second is added for every 1000 partitions."""
    quorum_stable_seconds: Annotated[int, Field(ge=0, le=3600)] = 10
    """How long the quorum must keep its leader."""
    dual_write_max_lag: Annotated[int, Field(ge=0, le=1_000_000)] = 3
    """Largest lag of the dual write to ZooKeeper, in metadata records."""
    dual_write_max_age_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """Largest age of the last dual write's heartbeat."""
    name_cache_seconds: Annotated[int, Field(ge=0, le=3600)] = 30
    """How long clients and brokers (JVMs) may cache a pod's address; the pace after a move respects it."""
    step_patience_seconds: Annotated[int, Field(ge=10, le=604_800)] = 900
    """How long a step may stand without progress before it is Stalled."""


class KafkaMigrationSpec(Model):
    """What the user wants."""

    desired_state: DesiredState = DesiredState.RUNNING
    """Planned shows the plan and changes nothing; Paused holds steps and keeps watching; RolledBack undoes them."""
    holds: Annotated[tuple[KafkaMigrationStep, ...], Field(max_length=11)] = (KafkaMigrationStep.FINALIZE,)
    """Steps that wait for an approval. Finalize always does."""
    approvals: Annotated[tuple[Approval, ...], Field(max_length=32), unique_by("name")] = ()
    """Approvals, one for each step."""
    readiness_policy: ReadinessPolicy = ReadinessPolicy.ON_COMPLETION
    """When Ready turns True: OnCompletion, or OnAcceptance for tools that must not wait for days."""
    zookeeper: ZooKeeperConnection
    """The ZooKeeper ensemble."""
    kafka: KafkaConnection
    """The Kafka cluster, as a client sees it."""
    brokers: Annotated[tuple[BrokerSet, ...], Field(min_length=1, max_length=16), unique_by("name")]
    """The StatefulSets of the cluster's brokers: all of them."""
    controllers: ControllersSpec
    """The controllers that Switchover creates."""
    rollout: RolloutSpec = RolloutSpec()
    """How brokers are replaced."""
    soak_seconds: Annotated[int, Field(ge=0, le=31_536_000)] = 86_400
    """How long dual write runs with all brokers on KRaft before Finalize may start."""
    zookeeper_retention_seconds: Annotated[int, Field(ge=0, le=31_536_000)] = 604_800
    """How long ZooKeeper is kept after Finalize."""
    on_failure: OnFailure = OnFailure.PAUSE
    """What follows a failed gate."""
    windows: Annotated[tuple[Window, ...], Field(max_length=32), unique_by("name")] = ()
    """Times in which steps may start. Empty: always."""
    gates: KafkaMigrationGates = KafkaMigrationGates()
    """Thresholds of the gates."""

    @model_validator(mode="after")
    def _names(self) -> "KafkaMigrationSpec":
        if any(brokers.name == self.controllers.name for brokers in self.brokers):
            raise ValueError(_NAMES_RULE.message)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return ruled(core, handler, _NAMES_RULE)


_NAMES_RULE = Rule(
    "self.brokers.all(brokers, brokers.name != self.controllers.name)",
    "must differ from the names of the brokers' StatefulSets",
    field_path=".controllers.name",
)


class MetadataState(StrEnum):
    """KIP-866's names for the state of the cluster's metadata, and ZooKeeper and KRaft for before and after."""

    ZOOKEEPER = "ZooKeeper"
    MIGRATION_ELIGIBLE = "MigrationEligible"
    MIGRATION_READY = "MigrationReady"
    MIGRATION_ACTIVE = "MigrationActive"
    MIGRATION_FINISHED = "MigrationFinished"
    KRAFT = "KRaft"


class NodeMode(StrEnum):
    """The configuration a node runs in: brokers A, B, C; controllers P, F; both Stopped.

    A is ZooKeeper, B is ZooKeeper with the migration flag, C is KRaft; P is a controller that migrates, F one that has
    finalized (facts: kraft-migration.md 1.2).
    """

    NONE = ""
    A = "A"
    B = "B"
    C = "C"
    P = "P"
    F = "F"
    STOPPED = "Stopped"


class NodeStatus(Model):
    """One Kafka node."""

    name: Name
    """Name of its pod."""
    node_id: Annotated[int, Field(ge=-1, le=2_147_483_647)] = -1
    """broker.id or node.id; -1 while unknown."""
    assigned: NodeMode = NodeMode.NONE
    """The mode it will have when it starts next. Empty: the user's own configuration."""
    observed: NodeMode = NodeMode.NONE
    """The mode it last showed. Empty: not observed."""
    evicting: Annotated[str, Clipped(64)] = ""
    """uid of the pod on record to be evicted; a pod with another uid is already the new one."""
    evictions: Count = 0
    """Evictions since its mode was assigned."""


class KafkaMigrationStatus(Model):
    """What is on record and what was observed."""

    observed_generation: Annotated[int, Field(ge=-1, le=2**53)] = -1
    """The generation of the spec that this status speaks of."""
    phase: Phase = Phase.PENDING
    """The migration in one word, for people; nothing is decided from it."""
    attempt: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Counts up with each new start after a rollback; approvals of an earlier attempt do not count."""
    plan_hash: Annotated[str, Field(max_length=64)] = ""
    """Hash of this object's uid, the attempt and the plan; while it is set, most of the spec is frozen."""
    metadata_state: MetadataState = MetadataState.ZOOKEEPER
    """Where the cluster's metadata is, by the evidence."""
    cluster_id: Annotated[str, Clipped(64)] = ""
    """The Kafka cluster's id."""
    nodes: Annotated[tuple[NodeStatus, ...], Field(max_length=1000), unique_by("name")] = ()
    """The Kafka nodes, brokers and controllers."""
    progress: Progress = Progress()
    """Where it stands in the plan."""
    waiting_for: WaitingList = ()
    """The gates that it waits for; never empty while nothing moves."""
    waiting_for_count: Count = 0
    """Number of such gates, also when there are more than the list holds."""
    waiting_for_summary: Annotated[str, Clipped(80)] = ""
    """The first of them in a few words."""
    gates: GateStreaks = ()
    """How often each gate has answered the same in a row."""
    rollback: Rollback = Rollback()
    """Whether all steps can still be taken back."""
    approvals: AcceptedApprovals = ()
    """Approvals as they were accepted."""
    steps: StepRecords = ()
    """When each step ran."""
    history: History = ()
    """The last 50 moves."""
    findings: Findings = ()
    """What Preflight found."""
    conditions: Conditions = ()
    """Kubernetes conditions, clean for kstatus."""


class KafkaMigration(Model):
    """Carries one Apache Kafka cluster from ZooKeeper to KRaft (KIP-866) while its traffic keeps flowing."""

    api_version: Literal["switchover.dev/v1alpha1"] = API_VERSION
    kind: Literal["KafkaMigration"] = "KafkaMigration"
    metadata: ObjectMeta
    spec: KafkaMigrationSpec
    status: KafkaMigrationStatus = KafkaMigrationStatus()
