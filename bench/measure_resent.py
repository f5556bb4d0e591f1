"""How often commits of a group go back when brokers are restarted, although nothing is read twice.

    python -m measure_resent 8 0.1

Three brokers of Kafka 3.9 under 600 records a second, each restarted 8 times in turn. Two members let librdkafka commit
every 0.1 s; two of another group with the same coordinator commit as often, one commit at a time.
"""

import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from adapters.clusters import KafkaCluster, kafka_cluster
from load import consumer as load
from load.history import History
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.pipeline.records.commits import split

SETTINGS = "offsets.topic.replication.factor=3\nmin.insync.replicas=2\n"
PARTITIONS, RATE, PAUSE_SECONDS = 6, 600, 6.0
BY_ITSELF, ONE_AT_A_TIME = "librdkafka's own", "one at a time"


class Group:
    """Two members; `twice` counts records that were delivered though one after them had been."""

    def __init__(self, name: str, servers: str, every: float, directory: Path) -> None:
        self.name, self.twice, self._every, self._reach = name, 0, every, Counter[int]()
        self._servers, self._directory, self._stop = servers, directory, threading.Event()
        self._threads = [threading.Thread(target=self._consume, args=(number,)) for number in range(2)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _consume(self, number: int) -> None:
        commits = load.Commits(History(f"{number}", self._directory / f"{self.name}-{number}.json"))
        own = {"auto.commit.interval.ms": round(self._every * 1000)} if self.name == BY_ITSELF else {
            "enable.auto.commit": False, "on_commit": commits.answered}
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": self.name, "auto.offset.reset": "earliest",
                             "topic.metadata.refresh.interval.ms": 10_000, **own})
        consumer.subscribe(["orders"])
        while not self._stop.is_set():
            if self.name == ONE_AT_A_TIME:
                commits.keep(consumer)
            for message in consumer.consume(200, 0.1):
                if message.error() is None:
                    self._note(message.partition() or 0, message.offset() or 0)
        consumer.close()

    def _note(self, partition: int, offset: int) -> None:
        self.twice += offset < self._reach[partition]
        self._reach[partition] = max(self._reach[partition], offset + 1)


def produce(servers: str, stop: threading.Event) -> None:
    """RATE records a second over all partitions, as long as the brokers take them."""
    producer, number = Producer({"bootstrap.servers": servers}), 0
    while not stop.wait(1 / RATE):
        producer.produce("orders", b"record", partition=number % PARTITIONS)
        producer.poll(0)
        number += 1
    producer.flush(30)


def restart(cluster: KafkaCluster, rounds: int) -> int:
    """Every broker in turn; how many restarts that were."""
    for _ in range(rounds):
        for broker, server in cluster.brokers.items():
            server.stop()
            server.start(cluster.broker_properties(broker, Mode.ZOOKEEPER, SETTINGS))
            cluster.wait_for_brokers()
            time.sleep(PAUSE_SECONDS)
    return rounds * len(cluster.brokers)


def logged(servers: str) -> list[Message]:
    """All of `__consumer_offsets`."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False,
                         "enable.partition.eof": True})
    consumer.assign([TopicPartition("__consumer_offsets", 0, 0)])
    found: list[Message] = []
    while (message := consumer.poll(10)) is not None and message.error() is None:
        found.append(message)
    consumer.close()
    return found


def told(messages: list[Message], groups: list[Group]) -> None:
    """Print how many commits each group made and how many of them went back."""
    rows = split(pa.array([each.key() for each in messages], pa.binary()),
                 pa.array([each.value() for each in messages], pa.binary()),
                 pa.array([each.timestamp()[1] for each in messages]).to_numpy(),
                 pa.array([each.offset() for each in messages]).to_numpy(), 0).commits.to_pylist()
    for group in groups:
        commits, back, reach = 0, Counter[int](), dict[int, tuple[int, int]]()
        for row in rows:
            if row["group"] != group.name or row["offset"] is None:
                continue
            commits += 1
            offset, at = reach.get(row["partition"], (0, 0))
            if row["offset"] < offset:
                back[row["record_time"] - at] += 1
            reach[row["partition"]] = row["offset"], row["record_time"]
        print(f"{group.name}: {commits} commits, {back.total()} below the one before (ms after it: {sorted(back)}), "
              f"{group.twice} records delivered twice")


def main(rounds: int, every: float) -> None:
    load.COMMIT_SECONDS = every
    directory = Path(tempfile.mkdtemp(prefix="resent-"))
    with kafka_cluster(directory, brokers=(1, 2, 3)) as cluster:
        cluster.start_zookeeper_mode(SETTINGS)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("orders", PARTITIONS, 3)])["orders"].result(60)
        stop = threading.Event()
        producer = threading.Thread(target=produce, args=(cluster.bootstrap, stop))
        producer.start()
        groups = [Group(name, cluster.bootstrap, every, directory) for name in (BY_ITSELF, ONE_AT_A_TIME)]
        time.sleep(15)
        print(f"{restart(cluster, rounds)} restarts", flush=True)
        stop.set()
        producer.join()
        for group in groups:
            group.end()
        told(logged(cluster.bootstrap), groups)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
