"""The controllers of a `KafkaMigration`: the quorum that Switchover creates."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from switchover.api.affinity import Affinity
from switchover.api.meta import SecretRef
from switchover.api.schema import ContainerName, Model, Must, ObjectName, Rule, Unique, WorkloadName, matches


class SecurityProtocol(StrEnum):
    """Kafka's security protocols."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class ControllerListener(Model):
    """The listener of the controllers. SASL means PLAIN here: a quorum cannot read SCRAM credentials before it runs."""

    name: Annotated[
        str,
        Field(min_length=1, max_length=64),
        matches(r"[A-Z][A-Z0-9_-]*", "must be a listener's name in upper case, such as CONTROLLER"),
    ] = "CONTROLLER"
    """The listener's name; no broker may have one of the same name."""
    port: Annotated[int, Field(ge=1, le=65535)] = 9093
    """The port."""
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    """Kafka's name of the protocol."""
    credentials_ref: SecretRef | None = None
    """Secret with the listener's client properties: PEM keys, or user and password of PLAIN."""

    cel = (
        Rule(
            # The API server tries rules on a default `{}`, too, before it has filled in the defaults of the fields.
            "!has(self.securityProtocol) || self.securityProtocol == 'PLAINTEXT' || has(self.credentialsRef)",
            "must be given unless securityProtocol is PLAINTEXT",
            field_path=".credentialsRef",
        ),
    )

    @model_validator(mode="after")
    def _credentials(self) -> Self:
        if self.security_protocol is not SecurityProtocol.PLAINTEXT and self.credentials_ref is None:
            raise ValueError(f"credentialsRef {self.cel[0].message}")
        return self


_QUANTITY = r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?"
_QUANTITY_MUST = "must be a quantity, such as 500m, 2 or 1Gi"

Quantity = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if isinstance(value, int) and not isinstance(value, bool) else value),
    Field(max_length=32),
    matches(_QUANTITY, _QUANTITY_MUST),
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
        matches(r"[1-9][0-9]*(\.[0-9]+)?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?", "must be a size, such as 1Gi or 500Mi"),
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


_HEAP = r"(-Xm[snx][0-9]+[kKmMgG]?|-XX:(Initial|Min|Max)RAMPercentage=[0-9]+(\.[0-9]+)?)"


class ControllerTemplate(Model):
    """What of the controllers' pods differs from the brokers', of which they are a copy."""

    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """The image. Absent: the brokers'."""
    heap_options: Annotated[
        str,
        Field(max_length=512),
        # Of the JVM's other options some run commands and load code.
        matches(
            rf"{_HEAP}( {_HEAP})*",
            "must be options of the JVM's heap separated by one space: -Xms, -Xmx, -Xmn with a size,"
            " -XX:InitialRAMPercentage, MinRAMPercentage, MaxRAMPercentage with a number",
        ),
    ] = "-Xms256m -Xmx512m"
    """The JVM's heap."""
    automount_service_account_token: bool = False
    """Whether the container that runs Kafka gets a token of the brokers' ServiceAccount, too. Copied init containers and
    sidecars have one where they have it in the brokers' pods; Kafka needs one only where a ConfigProvider asks the API
    server."""
    resources: ResourceRequirements = ResourceRequirements()
    """Compute resources of the container that runs Kafka. Absent: it asks for 100m and 1Gi, and may use 2Gi; its limit of
    CPU and its ephemeral storage are the brokers', where they have any."""
    omit: Annotated[tuple[ContainerName, ...], Field(max_length=32), Unique()] = ()
    """Init containers and sidecars of the brokers' pod that the controllers shall not have."""
    node_selector: Labels = Field(default_factory=dict)
    """Labels that a node must have. Absent: the brokers'."""
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=32)] = ()
    """Taints that are tolerated. Absent: the brokers'."""
    affinity: Affinity | None = None
    """Kubernetes' own affinity. Absent: on the brokers' kind of nodes, spread over nodes and zones."""
    labels: Labels = Field(default_factory=dict)
    """Further labels of the pods; they have those of the brokers' that have a prefix and select nothing. None that
    a broker's Service or StatefulSet selects."""
    annotations: Annotations = Field(default_factory=dict)
    """Further annotations of the pods."""


_THREE_OR_FIVE = Must(
    Rule(
        "self == 3 || self == 5",
        "must be 3 or 5: a quorum of 3 outlives the loss of one controller, a quorum of 5 of two",
    ),
    lambda value: value in (3, 5),
)


class ControllersSpec(Model):
    """The quorum of controllers that Switchover creates."""

    name: WorkloadName = "kafka-controller"
    """Name of their StatefulSet and headless Service."""
    replicas: Annotated[int, Field(ge=-1000, le=1000), _THREE_OR_FIVE] = 3
    """Number of controllers: 3 or 5."""
    first_node_id: Annotated[int, Field(ge=1, le=2_147_483_000)] = 3000
    """node.id of the first controller; the others follow. None may be a broker's id; 0 is nearly always one."""
    listener: ControllerListener = ControllerListener()
    """Their listener."""
    storage: Storage
    """Their volumes, which stay when the StatefulSet goes."""
    template: ControllerTemplate = ControllerTemplate()
    """What may be said about their pods."""
