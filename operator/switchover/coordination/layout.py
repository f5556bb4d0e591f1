"""Where a group keeps what in ZooKeeper (docs/facts/coordination.md#znodes). All paths are relative to the chroot of
`zookeeper.connect`."""

from dataclasses import dataclass

from switchover.shared.partition import TopicPartition

BROKERS, TOPICS = "/brokers/ids", "/brokers/topics"
CONSUMERS = "/consumers"


@dataclass(frozen=True, slots=True)
class Layout:
    """The znodes of one group."""

    group: str

    @property
    def root(self) -> str:
        return f"{CONSUMERS}/{self.group}"

    @property
    def ids(self) -> str:
        """Parent of the registrations, ephemeral children named by the consumer's id."""
        return f"{self.root}/ids"

    @property
    def owners(self) -> str:
        """Parent of the owner nodes."""
        return f"{self.root}/owners"

    @property
    def offsets(self) -> str:
        """Parent of the offsets that are committed to ZooKeeper."""
        return f"{self.root}/offsets"

    @property
    def migration_ids(self) -> str:
        """Parent of the acknowledgements of the migration-enabled members, children named like those of `ids` (KIP-125)."""
        return f"{self.root}/migration/ids"

    @property
    def mode(self) -> str:
        """Who is to coordinate (KIP-125); mode.py."""
        return f"{self.root}/migration/mode"

    def registration(self, consumer_id: str) -> str:
        return f"{self.ids}/{consumer_id}"

    def acknowledgement(self, consumer_id: str) -> str:
        return f"{self.migration_ids}/{consumer_id}"

    def owner(self, partition: TopicPartition) -> str:
        return f"{self.owners}/{partition.topic}/{partition.partition}"

    def offset(self, partition: TopicPartition) -> str:
        return f"{self.offsets}/{partition.topic}/{partition.partition}"


def topic(name: str) -> str:
    """The znode whose data names the partitions of a topic."""
    return f"{TOPICS}/{name}"
