"""What the specs of both resources share: references, approvals, windows, the shape of a rollout, thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from switchover.api.cron import CRON_FIELDS, ZONE, comes_true
from switchover.api.schema import Model, Must, ObjectName, Rule, Time, Unique, matches

GROUP: Final = "switchover.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "switchover.dev/v1alpha1"


class DesiredState(StrEnum):
    """What the user wants of a migration. Pausing holds steps and keeps watching; RolledBack takes all steps back."""

    PLANNED = "Planned"
    RUNNING = "Running"
    PAUSED = "Paused"
    ROLLED_BACK = "RolledBack"


class ReadinessPolicy(StrEnum):
    """When `Ready` turns True: when the migration succeeded, or as soon as its plan was accepted."""

    ON_COMPLETION = "OnCompletion"
    ON_ACCEPTANCE = "OnAcceptance"


class OnFailure(StrEnum):
    """What follows a failed gate: stand and say so, or take all steps back."""

    PAUSE = "Pause"
    ROLL_BACK = "RollBack"


StepName = Annotated[
    str,
    Field(min_length=1, max_length=63),
    matches(r"[A-Z][A-Za-z0-9]*", "must be the name of a step of the plan, such as Finalize"),
]
PlanHash = Annotated[
    str,
    Field(min_length=8, max_length=64),
    matches(r"[0-9a-f]+", "must be the plan's hash as status.planHash shows it: lower case hexadecimal digits"),
]
GROUP_BYTES = 32767
"""A string of Kafka's protocol; nothing else bounds the id of a group."""
GroupName = Annotated[
    str,
    Field(min_length=1, max_length=GROUP_BYTES),
    Must(
        Rule(f"size(bytes(self)) <= {GROUP_BYTES}", f"must be the id of a group: at most {GROUP_BYTES} bytes as UTF-8"),
        lambda value: len(value.encode(errors="surrogatepass")) <= GROUP_BYTES,
    ),
]
TopicName = Annotated[
    str,
    Field(min_length=1, max_length=249),
    matches(r"[A-Za-z0-9._-]+", "must be a topic's name: letters, digits, '.', '_' and '-'"),
]
_HOST_PORT = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"
HOST_PORTS = rf"{_HOST_PORT}(,{_HOST_PORT})*"
HostPorts = Annotated[
    str,
    Field(min_length=3, max_length=2048),
    matches(
        HOST_PORTS,
        "must be host:port pairs separated by commas, without spaces, such as kafka-0.kafka:9092,kafka-1.kafka:9092",
    ),
]


class SecretRef(Model):
    """A Secret in the resource's own namespace."""

    name: ObjectName
    """Name of the Secret."""


class ConfigMapRef(Model):
    """A ConfigMap in the resource's own namespace."""

    name: ObjectName
    """Name of the ConfigMap."""


class KafkaConnection(Model):
    """How to reach the Kafka cluster as a client."""

    bootstrap_servers: HostPorts
    """host:port pairs, separated by commas."""
    credentials_ref: SecretRef | None = None
    """Secret with client properties (TLS, SASL). Absent: PLAINTEXT."""


class Approval(Model):
    """A person lets the migration pass a hold. It counts for one object, one attempt and one plan only."""

    name: StepName
    """The step that may start."""
    plan_hash: PlanHash
    """The hash that status.planHash shows: of this object's uid, the attempt, the steps and the spec."""
    approver: Annotated[str, Field(min_length=1, max_length=253)]
    """Who approves: the name by which the API server knows them, where the chart binds approvals."""
    reason: Annotated[str, Field(max_length=1024)] = ""
    """Why, for example a change ticket."""


class Window(Model):
    """A time in which steps and batches may start. Outside of all windows the migration stands and keeps watching.

    What cannot end before the window closes does not start; what is under way ends. Going back waits for no window.
    """

    name: ObjectName
    """Name of the window."""
    cron: Annotated[str, Field(min_length=9, max_length=100), CRON_FIELDS, AfterValidator(comes_true)]
    """When the window opens: minute, hour, day of month, month, day of week."""
    duration_seconds: Annotated[int, Field(ge=60, le=604800)]
    """How long it stays open, in elapsed time."""
    time_zone: Annotated[str, Field(min_length=1, max_length=64), ZONE] = "UTC"
    """The IANA name of the time zone that the cron fields are read in."""


class Batch(Model):
    """The size of one batch of a rollout and how long it is watched afterwards."""

    pods: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of pods."""
    percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """Share of the pods in percent, rounded up."""
    bake_seconds: Annotated[int, Field(ge=0, le=604800)] = 60
    """How long the gates must keep passing after the batch before the next one starts."""

    cel = (Rule("has(self.pods) != has(self.percent)", "must have exactly one of pods and percent"),)

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.pods is None) == (self.percent is None):
            raise ValueError(self.cel[0].message)
        return self


class RolloutSpec(Model):
    """How pods are replaced: the first batch is the canary, the last one repeats until all pods are done."""

    steps: Annotated[tuple[Batch, ...], Field(min_length=1, max_length=20)] = (
        Batch(pods=1, bake_seconds=300),
        Batch(pods=1, bake_seconds=60),
    )
    """The batches, in order."""


class GroupHealth(Model):
    """A consumer group whose lag must stay healthy while pods are replaced."""

    name: GroupName
    """The group's id."""
    max_lag: Annotated[int, Field(ge=0, le=1_000_000_000_000)] = 10_000
    """Largest lag of one partition, in records."""
    max_stall_seconds: Annotated[int, Field(ge=1, le=86_400)] = 30
    """Longest time in which a partition that has lag may stand without a new committed offset."""
    isolation: Literal["ReadUncommitted", "ReadCommitted"] = "ReadUncommitted"
    """How the members read. Of ReadCommitted what an open transaction holds back, or was aborted, is no lag."""


class MigrationGates(Model):
    """What the gates' thresholds of both resources share."""

    stable_samples: Annotated[int, Field(ge=1, le=100)] = 3
    """Consecutive passes that a health gate needs before it opens."""
    step_patience_seconds: Annotated[int, Field(ge=10, le=604_800)] = 900
    """How long a step may stand without progress before it is Stalled."""


class AcceptedRisk(StrEnum):
    """What is refused unless the spec accepts it: that passwords of PLAIN and of ZooKeeper's digest travel unencrypted,
    that the controllers' listener is less secured than the one that the brokers use among themselves, that an
    authorizer which is not Kafka's own judges on KRaft, and that brokers go over to a template of the user's own whose trial
    has failed or was not made.
    """

    PASSWORDS_IN_CLEAR = "PasswordsInClear"
    WEAKER_CONTROLLERS = "WeakerControllers"
    FOREIGN_AUTHORIZER = "ForeignAuthorizer"
    UNTRIED_TEMPLATE = "UntriedTemplate"


@dataclass(frozen=True, slots=True)
class Untouched:
    """Until when a part of a spec may change: `step` is the first that makes or changes something by it, and `cel` holds of
    the status of an object (`status`) of which nothing was."""

    step: str
    cel: str


def untouched_before(step: str, records: str, *earlier: str) -> Untouched:
    """Before a step has begun, in it or in one of those `earlier`, and nothing is on record in that list of the status."""
    steps = ", ".join(f"'{each}'" for each in earlier)
    place = f"(status.progress.step == '{step}' && !has(status.progress.openTime))"
    if steps:
        place = f"(status.progress.step in [{steps}] || {place})"
    return Untouched(step, f"(!has(status.{records}) || size(status.{records}) == 0) && has(status.progress)"
                           f" && has(status.progress.step) && {place}")


class MigrationSpec(Model):
    """What the specs of both resources share."""

    untouched: ClassVar[Mapping[str, Untouched]]
    """By attribute, "" for all others, until when a part that is not CHANGEABLE may change although a plan is on record."""
    changeable: ClassVar[Mapping[str, frozenset[str]]] = {}
    """Attributes of a part that may always change, where the others may not."""

    desired_state: DesiredState = DesiredState.RUNNING
    """Planned shows the plan and changes nothing; Paused holds steps and keeps watching; RolledBack undoes them."""
    approvals: Annotated[tuple[Approval, ...], Field(max_length=32), Unique("name")] = ()
    """Approvals, one for each step."""
    readiness_policy: ReadinessPolicy = ReadinessPolicy.ON_COMPLETION
    """When Ready turns True: OnCompletion, or OnAcceptance for tools that must not wait for days."""
    rollout: RolloutSpec = RolloutSpec()
    """How pods are replaced."""
    on_failure: OnFailure = OnFailure.PAUSE
    """What follows a failed gate."""
    windows: Annotated[tuple[Window, ...], Field(max_length=32), Unique("name")] = ()
    """Times in which steps and batches may start. Empty: always."""
    holds: Annotated[tuple[StepName, ...], Field(max_length=16), Unique()] = ()
    """Steps that wait for an approval."""
    gates: MigrationGates = MigrationGates()
    """Thresholds of the gates."""
    accepted_risks: Annotated[tuple[AcceptedRisk, ...], Field(max_length=8), Unique()] = ()
    """Risks that are taken knowingly."""


CHANGEABLE: Final = frozenset(
    {"desired_state", "holds", "approvals", "accepted_risks", "backups", "hand_over", "windows", "gates", "rollout",
     "readiness_policy", "on_failure", "rehearsal", "soak_seconds", "zookeeper_retention_seconds"}
)
"""Attributes of a spec that may change at any time: what they say is read again in every pass, and nothing is made of it."""

UNBOUND: Final = frozenset({"desired_state", "approvals", "readiness_policy"})
"""Attributes of a spec that no approval covers: they change nothing of what is done once a step was let begin."""


class ObjectMeta(Model):
    """The part of Kubernetes' own metadata that is read here; Kubernetes owns its schema."""

    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    finalizers: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class EventTimes(Model):
    """When a Kubernetes Event was; which of the two it has is up to who wrote it."""

    last_timestamp: Time | None = None
    event_time: Time | None = None
