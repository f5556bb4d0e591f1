"""The resource `ConsumerGroupMigration`: one consumer group from one way of coordinating its members to another."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from switchover.api.kafka_migration import ZooKeeperConnection
from switchover.api.meta import API_VERSION, GroupName, KafkaConnection, MigrationGates, MigrationSpec, ObjectMeta
from switchover.api.schema import ContainerName, Model, Rule, Unique, WorkloadName, matches
from switchover.api.status import MigrationStatus


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
    """What changes in the container that holds the consumer; what is not named stays as it is."""

    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """The new image."""
    env: Annotated[tuple[EnvironmentVariable, ...], Field(max_length=64), Unique("name")] = ()
    """Variables that are added or replaced."""
    args: Annotated[tuple[Annotated[str, Field(max_length=4096)], ...], Field(max_length=64)] | None = None
    """The new arguments, all of them."""


class Workload(Model):
    """A workload whose pods are members of the group."""

    name: WorkloadName
    """Name of the Deployment or StatefulSet."""
    kind: WorkloadKind = WorkloadKind.DEPLOYMENT
    """Deployment or StatefulSet."""
    container: ContainerName
    """The container that holds the consumer."""
    template: ContainerChange
    """The change that the migration ends with."""
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


class Audit(Model):
    """The proof, by the pipeline, that no partition had two consumers."""

    enabled: bool = False
    """Whether the audit is asked for."""


class ConsumerGroupMigrationGates(MigrationGates):
    """Thresholds of the gates."""

    max_lag: Annotated[int, Field(ge=0, le=1_000_000_000_000)] = 10_000
    """Largest lag of one partition, in records."""
    max_stall_seconds: Annotated[int, Field(ge=1, le=86_400)] = 30
    """Longest time in which a partition that has lag may stand without a new committed offset."""
    max_consumers_per_coordinator: Annotated[int, Field(ge=1, le=1_000_000)] = 5_000
    """Consumers of all groups that one broker may coordinate."""


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
    gates: ConsumerGroupMigrationGates = ConsumerGroupMigrationGates()
    """Thresholds of the gates."""

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


class ConsumerGroupMigrationStatus(MigrationStatus):
    """What is on record and what was observed."""


class ConsumerGroupMigration(Model):
    """Carries one consumer group to another coordination, assignment strategy or group protocol while it consumes."""

    api_version: Literal["switchover.dev/v1alpha1"] = API_VERSION
    kind: Literal["ConsumerGroupMigration"] = "ConsumerGroupMigration"
    metadata: ObjectMeta
    spec: ConsumerGroupMigrationSpec
    status: ConsumerGroupMigrationStatus = ConsumerGroupMigrationStatus()
