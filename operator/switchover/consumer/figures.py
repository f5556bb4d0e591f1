"""What a member says of itself in numbers: KIP-125's two metrics by name, and ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from switchover.consumer.member.states import Phase
from switchover.consumer.messages import Partitions
from switchover.coordination.mode import Mode
from switchover.coordination.world import World
from switchover.shared.partition import TopicPartition


@dataclass
class Figures:
    """Written by the member's thread, read by any."""

    active: bool = False
    kafka_owned: int = 0
    held: int = 0
    fetching: int = 0
    rebalances: int = 0
    toggle_latency: float = 0.0
    commit_lag: int = 0
    _unowned: dict[TopicPartition, float] = field(default_factory=dict)
    _asked: tuple[int, float] = (-2, 0.0)               # the mode znode's version, and when it was seen first
    _mode: Mode | None = None

    def see(self, mode: Mode | None, world: World | None, assigned: Partitions | None,
            phases: Mapping[TopicPartition, Phase], now: float) -> None:
        """The member after an event. Times are of a monotonic clock."""
        if world is not None and world.mode_version != self._asked[0]:
            self._asked = world.mode_version, now
        if mode != self._mode:
            if self._mode is not None:
                self.toggle_latency = now - self._asked[1]
            self._mode = mode
        self.active = mode is Mode.KAFKA
        self.kafka_owned = len(assigned or ())
        self.held = sum(phase is not Phase.CLAIMING for phase in phases.values())
        fetching = {partition for partition, phase in phases.items() if phase is Phase.FETCHING}
        self.fetching = len(fetching)
        self._unowned = {partition: self._unowned.get(partition, now) for partition in phases.keys() - fetching}

    def by_name(self, records: int, now: float) -> dict[str, float]:
        """Ages and latencies in seconds, counts since the membership began."""
        return {
            "ActiveKafkaCoordinationCount": int(self.active),
            "KafkaOwnedPartitionsCount": self.kafka_owned,
            "held-partitions": self.held,
            "fetching-partitions": self.fetching,
            "unowned-age-seconds": max((now - since for since in list(self._unowned.values())), default=0.0),
            "rebalances": self.rebalances,
            "toggle-latency-seconds": self.toggle_latency,
            "commit-lag-zookeeper-kafka": self.commit_lag,
            "records": records,
        }
