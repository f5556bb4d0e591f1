"""Whether the store that the next members read has what the others have committed
(docs/facts/coordination.md#which-store-counts)."""

from collections.abc import Iterator

from switchover.engine.gate import Gate, Verdict, passed, wait
from switchover.groups.facts import Stored, StoreSample
from switchover.groups.picture import Picture
from switchover.groups.reading import stores_of
from switchover.reasons.groups import KAFKA_OFFSETS_BEHIND, ZOOKEEPER_OFFSETS_BEHIND
from switchover.shared.partition import TopicPartition


def _behind(earlier: StoreSample, latest: StoreSample, store: str) -> Iterator[tuple[TopicPartition, int | None, int]]:
    """Partitions of which `store` now has less than the other one had a sweep ago: what is under way does not count."""
    other = "kafka" if store == "zookeeper" else "zookeeper"
    for partition, before in sorted(earlier.offsets.items()):
        committed, wanted = getattr(latest.offsets.get(partition, before), store), getattr(before, other)
        if wanted is not None and (committed is None or committed < wanted):
            yield partition, committed, wanted


def check_zookeeper_reached(picture: Picture) -> Verdict:
    """An old consumer reads ZooKeeper alone: every offset there is at least Kafka's."""
    stores = stores_of(picture)
    for partition, committed, wanted in _behind(stores[-2], stores[-1], "zookeeper"):
        return wait(ZOOKEEPER_OFFSETS_BEHIND, f"the offset of {partition} in ZooKeeper is behind Kafka's: an old consumer"
                    " would deliver again what lies between", subject=str(partition), observed=committed, threshold=wanted,
                    unblocks="the migration-enabled member that owns it commits to both stores; if none does, look at its"
                             " log")
    return passed("no offset in ZooKeeper is behind Kafka's")


def check_kafka_reached(picture: Picture) -> Verdict:
    """A KafkaConsumer reads Kafka alone: every offset is there, and none is behind ZooKeeper's."""
    stores = stores_of(picture)
    latest: list[tuple[TopicPartition, Stored]] = sorted(stores[-1].offsets.items())
    for partition, found in latest:
        if found.kafka is None:
            return wait(KAFKA_OFFSETS_BEHIND, f"Kafka has no offset of {partition}: a KafkaConsumer would begin where its"
                        " auto.offset.reset says", subject=str(partition), observed="none",
                        threshold=found.zookeeper if found.zookeeper is not None else "an offset",
                        unblocks="the migration-enabled member that owns it commits to both stores; look at its log")
    for partition, committed, wanted in _behind(stores[-2], stores[-1], "kafka"):
        return wait(KAFKA_OFFSETS_BEHIND, f"the offset of {partition} in Kafka is behind ZooKeeper's: a KafkaConsumer would"
                    " deliver again what lies between", subject=str(partition), observed=committed, threshold=wanted,
                    unblocks="the migration-enabled member that owns it commits to both stores; if none does, look at its"
                             " log")
    return passed("every offset is in Kafka")


ZOOKEEPER_REACHED: Gate[Picture] = Gate("ZooKeeperOffsets", check_zookeeper_reached)
KAFKA_REACHED: Gate[Picture] = Gate("KafkaOffsets", check_kafka_reached)
