"""One group of the fleet, as captures tell it."""

from dataclasses import dataclass
from enum import StrEnum


class Storage(StrEnum):
    """Where a group's offsets are. Both: old consumers with `dual.commit.enabled`, or a migration under way."""

    KAFKA = "Kafka"
    ZOOKEEPER = "ZooKeeper"
    BOTH = "Both"
    NONE = "None"


class Coordination(StrEnum):
    """Who coordinates its members. None: it has none."""

    KAFKA = "Kafka"
    ZOOKEEPER = "ZooKeeper"
    BOTH = "Both"
    NONE = "None"


@dataclass(frozen=True, slots=True)
class Group:
    """What is known of a group. None is what was not captured, or cannot be told; times are ms since the epoch.

    `protocol` is the group's type as the broker names it, "" where the last capture does not describe it; `protocol_type`
    that of its last record as a classic group, None without one. `lag` sums over partitions with a commit and a known end;
    `growth` is records an hour by which it grows (negative: it shrinks). `headroom` is the smallest share of a partition's
    log that lies before the committed offset, of topics from which retention deletes: at 0 it has reached the offset, below
    it records are lost (`lost` counts such partitions, of all topics). `subscription` is static, white_list, black_list or
    "" (ZooKeeper groups alone tell). `rebalances` are those of a day.
    """

    name: str
    topics: tuple[str, ...]
    partitions: int
    storage: Storage
    coordination: Coordination
    protocol: str
    protocol_type: str | None
    strategy: str
    state: str
    members: int
    subscription: str
    lag: int | None
    growth: float | None
    headroom: float | None
    lost: int
    rebalances: float | None
    commit_interval: float | None
    last_commit: int | None
