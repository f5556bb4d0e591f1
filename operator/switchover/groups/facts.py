"""What sweeps over the offsets of a group have found, and what is not read in every pass."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto

from switchover.lag.group import TopicPartition


class Need(StrEnum):
    """What is read only where a gate of the plan names it."""

    RIGHTS = auto()
    RIGHTS_IN_ZOOKEEPER = auto()
    OTHERS = auto()
    """What has the name of a workload that is not there, and is of a kind that is not moved."""
    TRIALS = auto()
    LOAD = auto()
    """How many members every coordinator has: each group of the cluster is described."""
    READINESS = auto()
    """A probe; only where members of the consumer protocol are to come (`gates.protocol.to_consumer`)."""
    OFFERED = auto()
    """Another, which leaves a pending member behind."""
    AUDIT = auto()


@dataclass(frozen=True, slots=True)
class GroupSample:
    """One sweep over a group's offsets: the offset committed, None for none, and up to where its members are to commit.

    With coordination the greater one of both stores, as members read them, and for the epoch what stands for it. `stood` is
    for how many seconds the commit had stood where there was something to commit.
    """

    at: float                                     # seconds since the epoch
    epoch: int                                    # the group's
    offsets: Mapping[TopicPartition, tuple[int | None, int]]
    stood: Mapping[TopicPartition, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """What is committed of a partition, None for none, and where its log begins and ends."""

    zookeeper: int | None
    kafka: int | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StoreSample:
    """The offsets of a group in both stores. ZooKeeper was read after Kafka: it is not behind by what was under way."""

    at: float
    offsets: Mapping[TopicPartition, Stored]
