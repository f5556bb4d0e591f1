"""The resource `ConsumerGroupMigration`: one consumer group from one way of coordinating its members to another."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from switchover.api.kafka_migration import ZooKeeperConnection
from switchover.api.meta import (
    API_VERSION,
    AcceptedRisk,
    ConfigMapRef,
    GroupName,
    KafkaConnection,
    MigrationGates,
    MigrationSpec,
    ObjectMeta,
    RolloutSpec,
    Untouched,
    untouched_before,
)
from switchover.api.schema import Clipped, ContainerName, Informative, Model, Rule, Unique, WorkloadName, matches
from switchover.api.status import Count, MigrationStatus, Name
from switchover.api.template_patch import LONGEST, is_patch


class ConsumerGroupMigrationStep(StrEnum):
    """The steps of all plans that there are for a group."""

    PREFLIGHT = "Preflight"
    BASELINE = "Baseline"
    BRIDGE_CANARY = "BridgeCanary"
    BRIDGE = "Bridge"
    BOUNCE_ONE_CANARY = "BounceOneCanary"
    BOUNCE_ONE = "BounceOne"
    BOUNCE_TWO = "BounceTwo"
    CANARY = "Canary"
    ROLLOUT = "Rollout"
    STOP = "Stop"
    START = "Start"
    REPLACE_WITH_MIGRATION_ENABLED = "ReplaceWithMigrationEnabled"
    TOGGLE = "Toggle"
    REPLACE_WITH_KAFKA_CONSUMERS = "ReplaceWithKafkaConsumers"
    REPLACE_WITH_OLD_CONSUMERS = "ReplaceWithOldConsumers"
    SETTLE = "Settle"
    AUDIT = "Audit"
    HAND_OVER = "HandOver"


class WorkloadKind(StrEnum):
    """Kinds of workload whose pods can be members."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"


class EnvironmentVariable(Model):
    """One environment variable of the container."""

    name: Annotated[
        str,
        Field(min_length=1, max_length=253),
        matches(r"[A-Za-z_][A-Za-z0-9_.-]*", "must be a variable's name: letters, digits, '_', '.' and '-'"),
    ]
    """Its name."""
    value: Annotated[str, Field(max_length=4096)] = ""
    """Its value."""


class ContainerChange(Model):
    """What changes in the container that holds the consumer, and by a patch around it; what is not named stays as it is."""

    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """The new image."""
    env: Annotated[tuple[EnvironmentVariable, ...], Field(max_length=64), Unique("name")] = ()
    """Variables that are added or replaced."""
    args: Annotated[tuple[Annotated[str, Field(max_length=4096)], ...], Field(max_length=64)] | None = None
    """The new arguments, all of them."""
    patch: Annotated[str, Field(min_length=1, max_length=LONGEST), AfterValidator(is_patch)] | None = None
    """A strategic merge patch of the pod template, YAML or JSON, as kubectl patch understands it: for what is configured by
    a ConfigMap, a Secret, another volume or an init container. Image, env and args are laid over it."""


class Workload(Model):
    """A workload whose pods are members of the group."""

    name: WorkloadName
    """Name of the Deployment or StatefulSet."""
    kind: WorkloadKind = WorkloadKind.DEPLOYMENT
    """Deployment or StatefulSet."""
    container: ContainerName
    """The container that holds the consumer."""
    template: ContainerChange
    """The change that the migration ends with; where it replaces nothing, an empty one."""
    bridge: ContainerChange | None = None
    """The change in between: both strategies, the client upgrade, or the migration-enabled consumer."""


class ProtocolMigration(Model):
    """From the classic group protocol to the consumer protocol (KIP-848), or back."""

    to: Literal["Consumer", "Classic"]
    """The protocol that the group ends with."""
    remote_assignor: Annotated[str, Field(min_length=1, max_length=249)] = "uniform"
    """The brokers' assignor for the consumer protocol."""
    strategy: Literal["Online", "Offline"] = "Online"
    """Online rolls the members one batch after another; Offline stops them all first."""
    accept_no_online_rollback: bool = False
    """Go on where the brokers' policy would not let the group go back online."""


class AssignmentStrategyMigration(Model):
    """From one client-side assignment strategy to another, in two bounces."""

    to: Annotated[str, Field(min_length=1, max_length=249)]
    """The strategy that the group ends with, such as cooperative-sticky."""
    client_family: Literal["Java", "Librdkafka"] = "Java"
    """The client library of the members; librdkafka cannot mix eager and cooperative strategies."""


class CoordinationMigration(Model):
    """From a group that ZooKeeper coordinates to one that Kafka does (KIP-125), or back."""

    to: Literal["Kafka", "ZooKeeper"]
    """Who coordinates in the end."""
    replace: Literal["All", "Nothing"] = "All"
    """All: the pods become migration-enabled ones (bridge), and after the toggle those of the template. Nothing: they are
    migration-enabled and stay so; only the mode is toggled."""
    assignment_strategy: Literal["Range", "RoundRobin", "RoundRobinUpTo0_11"] | None = None
    """The old consumers' partition.assignment.strategy, roundrobin as Kafka 1.0 or as 0.11 has it. Absent: taken from
    who owns what, which a small group may leave open."""


class Audit(Model):
    """The proof, by the pipeline, that no partition had two consumers."""

    enabled: bool = False
    """Whether the audit is asked for: then the migration has succeeded only once its verdict is Clean."""
    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """The pipeline's image; needed with enabled."""
    claim: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """The volume claim that holds the pipeline's store, which a capture fills; needed with enabled."""
    cluster: Annotated[str, Field(min_length=1, max_length=100)] = "kafka"
    """The name under which the capture files this cluster."""
    cpu: Annotated[str, Field(min_length=1, max_length=32)] = "1"
    """What its pod requests."""
    memory: Annotated[str, Field(min_length=1, max_length=32)] = "2Gi"
    """What its pod requests, and its limit."""
    deadline_seconds: Annotated[int, Field(ge=60, le=86_400)] = 3_600
    """How long the Job may take."""
    wait_seconds: Annotated[int, Field(ge=0, le=86_400)] = 600
    """How long it waits for the capture to have come to the end of the migration."""
    guard_band_seconds: Annotated[int, Field(ge=0, le=3_600)] = 5
    """By how much the clocks of brokers and ZooKeeper may differ: what overlaps by less is no proof."""
    accept_indeterminate: bool = False
    """Go on where the audit can prove neither, for example because there was no capture yet."""

    cel = (Rule("!(has(self.enabled) && self.enabled) || (has(self.image) && has(self.claim))",
                "must have image and claim with enabled"),)

    @model_validator(mode="after")
    def _has_where(self) -> Self:
        if self.enabled and (self.image is None or self.claim is None):
            raise ValueError(self.cel[0].message)
        return self


class ConsumerGroupMigrationGates(MigrationGates):
    """Thresholds of the gates."""

    max_time_lag_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60
    """Greatest age of the oldest record that a partition has not committed yet."""
    lag_pass_seconds: Annotated[int, Field(ge=0, le=86_400)] = 30
    """How long the lag must have been healthy, again after each rebalance, before a batch follows."""
    max_stall_seconds: Annotated[int, Field(ge=1, le=86_400)] = 75
    """Longest time in which a partition that has lag may stand without a new committed offset. A pod that is killed leaves
    its partitions to nobody until its session has ended: 45 s by default, 60 s at most under the consumer protocol."""
    isolation: Literal["ReadUncommitted", "ReadCommitted"] = "ReadUncommitted"
    """How the members read. Of ReadCommitted what an open transaction holds back, or a marker at the end, is no lag."""
    baseline_ref: ConfigMapRef | None = None
    """ConfigMap with the group's baseline, as the pipeline's job baseline writes it. A partition that it names may lag
    twice its 0.99 quantile of this hour of the week, from 30 s up to maxTimeLagSeconds, and stand for three times its 0.99
    quantile of the time between commits, from 60 s up to maxStallSeconds. Absent: all by those two."""
    quiet_seconds: Annotated[int, Field(ge=0, le=3_600)] = 120
    """With coordination: how long no old consumer may have been seen before the group is toggled to Kafka, and how long
    Preflight watches where the members commit: twice their auto.commit.interval.ms, which is 60 s by default."""
    max_consumers_per_coordinator: Annotated[int, Field(ge=1, le=1_000_000)] = 5_000
    """Consumers of all groups that one broker may coordinate."""


class GroupRollout(RolloutSpec):
    """How the pods of a group's workloads are replaced."""

    surge: Annotated[int, Field(ge=0, le=0)] | None = None
    """Pods that a Deployment may have on top of its own while a batch is moved. Absent: as many as the batch. 0: pods leave
    before their successors start, where a quota, a port or a volume leaves no room; the group is short of them meanwhile."""


class ConsumerGroupMigrationSpec(MigrationSpec):
    """What the user wants."""

    group: GroupName
    """The group's id."""
    kafka: KafkaConnection
    """The Kafka cluster, as a client sees it."""
    zookeeper: ZooKeeperConnection | None = None
    """The ZooKeeper ensemble of the group; only for coordination."""
    workloads: Annotated[tuple[Workload, ...], Field(min_length=1, max_length=32), Unique("name")]
    """The workloads whose pods are members: all of them."""
    protocol: ProtocolMigration | None = None
    """Migrate the group protocol (KIP-848)."""
    assignment_strategy: AssignmentStrategyMigration | None = None
    """Migrate the client-side assignment strategy."""
    coordination: CoordinationMigration | None = None
    """Migrate the coordination (KIP-125)."""
    audit: Audit = Audit()
    """Proof after the fact."""
    rollout: GroupRollout = GroupRollout()
    """How pods are replaced."""
    gates: ConsumerGroupMigrationGates = ConsumerGroupMigrationGates()
    """Thresholds of the gates."""
    accepted_risks: Annotated[tuple[Literal[AcceptedRisk.PASSWORDS_IN_CLEAR], ...], Field(max_length=1), Unique()] = ()
    """Risks that are taken knowingly."""
    soak_seconds: Annotated[int, Field(ge=0, le=31_536_000)] = 300
    """How long the group is watched with every member moved, before rollback is given up."""

    untouched: ClassVar[Mapping[str, Untouched]] = {"": untouched_before("Baseline", "slots")}
    cel = (
        Rule(
            "[has(self.protocol), has(self.assignmentStrategy), has(self.coordination)]"
            ".filter(given, given).size() == 1",
            "must have exactly one of protocol, assignmentStrategy and coordination",
        ),
        Rule("has(self.zookeeper) == has(self.coordination)", "must have zookeeper with coordination, and only then"),
    )

    @model_validator(mode="after")
    def _one_migration(self) -> Self:
        kinds = (self.protocol, self.assignment_strategy, self.coordination)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError(self.cel[0].message)
        if (self.zookeeper is None) != (self.coordination is None):
            raise ValueError(self.cel[1].message)
        return self


class SlotMode(StrEnum):
    """What a pod of a workload is made of.

    Original is the workload as it was; Intermediate the workload with its bridge; Target the workload with the template of
    the spec.
    """

    NONE = ""
    ORIGINAL = "Original"
    INTERMEDIATE = "Intermediate"
    TARGET = "Target"


class Slot(Model):
    """One of the places that a workload's pods fill."""

    name: Name
    """The workload and the slot's index: orders/0."""
    assigned: SlotMode = SlotMode.ORIGINAL
    """What a pod in it is to be made of."""
    observed: Annotated[SlotMode, Informative(SlotMode.NONE)] = SlotMode.NONE
    """What the pod in it was last seen to be made of. Empty: not observed."""
    evicting: Annotated[str, Clipped(64)] = ""
    """uid of the pod on record to be evicted."""
    evictions: Count = 0
    """Evictions since its mode was assigned."""
    settled: bool = True
    """False from the choice of its batch until that batch is done."""


class GroupSummary(Model):
    """The group as it was last seen."""

    type: Annotated[str, Clipped(32)] = ""
    """Classic or Consumer."""
    state: Annotated[str, Clipped(32)] = ""
    """Kafka's name of its state."""
    members: Count = 0
    """Its members."""
    classic_members: Count = 0
    """Those that take part by the classic protocol."""
    assignor: Annotated[str, Clipped(249)] = ""
    """The strategy or the brokers' assignor in force."""
    coordinator: Annotated[int, Field(ge=-1, le=2_147_483_647)] = -1
    """The broker that coordinates it."""
    mode: Annotated[str, Clipped(32)] = ""
    """With coordination: by which mode its members choose their partitions, zookeeper or kafka; mixed while they change."""
    old_members: Count = 0
    """With coordination: members that know nothing of the migration."""
    lag: Annotated[int, Field(ge=0, le=2**53)] = 0
    """Records that are not committed yet, of all partitions."""
    baseline: Annotated[str, Clipped(320)] = ""
    """Of how many partitions the lag is judged by what they are used to. Empty: gates.baselineRef is absent."""


class ConsumerGroupMigrationStatus(MigrationStatus):
    """What is on record and what was observed."""

    slots: Annotated[tuple[Slot, ...], Field(max_length=1000), Unique("name")] = ()
    """The places of the workloads' pods."""
    group: GroupSummary | None = None
    """The group as it was last seen."""


class ConsumerGroupMigration(Model):
    """Carries one consumer group to another coordination, assignment strategy or group protocol while it consumes."""

    api_version: Literal["switchover.dev/v1alpha1"] = API_VERSION
    kind: Literal["ConsumerGroupMigration"] = "ConsumerGroupMigration"
    metadata: ObjectMeta
    spec: ConsumerGroupMigrationSpec
    status: ConsumerGroupMigrationStatus = ConsumerGroupMigrationStatus()
