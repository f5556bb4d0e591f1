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

    `lag` sums over partitions with a commit and a known end; `growth` is records an hour by which it grows (negative: it
    shrinks). `headroom` is the smallest share of a partition's log that lies before the committed offset: at 0 retention has
    reached it, below it records are lost (`lost` counts such partitions). `subscription` is static, white_list, black_list
    or "" (ZooKeeper groups alone tell). `rebalances` are those of a day.
    """

    name: str
    topics: tuple[str, ...]
    partitions: int
    storage: Storage
    coordination: Coordination
    protocol: str
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
