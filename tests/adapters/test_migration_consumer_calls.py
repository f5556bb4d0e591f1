"""The migration-enabled consumer as an application calls it, on a real ZooKeeper and a broker of 3.9."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place
from kazoo.client import KazooClient

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster
from adapters.members import OPERATOR
from patience import Patience, stretched, until
from switchover.consumer import membership
from switchover.consumer.migration_consumer import BadConfiguration, ForeignMembers, MigrationConsumer
from switchover.coordination.layout import Layout, topic
from switchover.coordination.registration import decoded
from switchover.shared.partition import TopicPartition

RECORDS = 10
"""In each partition."""


class Bench:
    """A topic of four partitions with records in it, a group of the same name, and a view into ZooKeeper."""

    def __init__(self, cluster: KafkaCluster, zookeeper: KazooClient, opened: contextlib.ExitStack) -> None:
        self.topic = self.group = f"t{uuid.uuid4().hex}"
        self.layout, self.zookeeper = Layout(self.group), zookeeper
        self._cluster, self._opened = cluster, opened
        self.create(self.topic)

    def create(self, topic: str) -> None:
        create_topic(self._cluster.bootstrap, topic, 4)
        self.produce(topic)

    def produce(self, topic: str) -> None:
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap})
        for number in range(4 * RECORDS):
            producer.produce(topic, str(number).encode(), partition=number % 4)
        assert producer.flush(stretched(60)) == 0

    def consumer(self, **settings: Any) -> MigrationConsumer:
        made = MigrationConsumer({
            "group.id": self.group, "zookeeper.connect": self._cluster.zookeeper_connect, "auto.offset.reset": "smallest",
            **{key.replace("_", "."): value for key, value in settings.items()}})
        self._opened.callback(made.close)
        return made

    def offsets(self) -> list[int]:
        """What ZooKeeper has of each partition; -1 for nothing."""
        found = []
        for number in range(4):
            path = self.layout.offset(TopicPartition(self.topic, number))
            found.append(int(self.zookeeper.get(path)[0]) if self.zookeeper.exists(path) else -1)
        return found

    def in_kafka(self) -> list[int]:
        """What Kafka has of each partition; below 0 for nothing."""
        client = Consumer({"bootstrap.servers": self._cluster.bootstrap, "group.id": self.group})
        patience = Patience(30)
        try:
            while True:
                try:
                    return [each.offset for each in client.committed([Place(self.topic, number) for number in range(4)], 30)]
                except KafkaException as problem:       # the topic of offsets was made a moment ago
                    if problem.args[0].code() != KafkaError.NOT_COORDINATOR or patience.over:
                        raise
                    time.sleep(0.2)
        finally:
            client.close()

    def owners(self) -> list[str]:
        """The threads that own something."""
        paths = [self.layout.owner(TopicPartition(self.topic, number)) for number in range(4)]
        return sorted(self.zookeeper.get(path)[0].decode() for path in paths if self.zookeeper.exists(path))


@pytest.fixture
def bench(zookeeper_cluster: KafkaCluster) -> Iterator[Bench]:
    zookeeper = KazooClient(zookeeper_cluster.zookeeper_connect)
    zookeeper.start()
    try:
        with contextlib.ExitStack() as opened:
            yield Bench(zookeeper_cluster, zookeeper, opened)
    finally:
        zookeeper.stop()
        zookeeper.close()


def taken(poll: Callable[[float], Message | None], count: int) -> list[tuple[str, int, int]]:
    """So many records: topic, partition, offset."""
    found: list[tuple[str, int, int]] = []
    patience = Patience(60)
    while len(found) < count:
        assert not patience.over, f"{len(found)} of {count} records after {patience}"
        if (message := poll(0.2)) is not None and message.error() is None:
            found.append((message.topic() or "", message.partition() or 0, message.offset() or 0))
    return found


def test_manual_commits_positions_and_an_application_that_comes_back(bench: Bench) -> None:
    first = bench.consumer(enable_auto_commit=False)
    first.subscribe([bench.topic])
    taken(first.poll, 4 * RECORDS)
    places = [Place(bench.topic, number) for number in range(4)]
    assert [each.offset for each in first.position(places)] == [RECORDS] * 4
    assert first.commit(offsets=[Place(bench.topic, 0, 3)], asynchronous=False) == [Place(bench.topic, 0, 3)]
    with pytest.raises(KafkaException, match=f"{bench.topic}-9 is not assigned"):
        first.commit(offsets=[Place(bench.topic, 9, 3)], asynchronous=False)
    first.close()
    assert bench.offsets() == bench.in_kafka() == [3, 0, 0, 0], "what was handed out and not committed is not committed"
    second = bench.consumer()
    second.subscribe([bench.topic])
    assert len(taken(second.poll, 4 * RECORDS - 3)) == 4 * RECORDS - 3
    second.close()
    assert bench.offsets() == bench.in_kafka() == [RECORDS] * 4
    assert bench.owners() == []
    with pytest.raises(RuntimeError, match="closed"):
        second.poll(0)


def test_no_store_takes_a_commit_of_what_others_own(bench: Bench) -> None:
    consumer = bench.consumer(enable_auto_commit=False)
    consumer.subscribe([bench.topic])
    taken(consumer.poll, 4 * RECORDS)
    consumer.commit(offsets=[Place(bench.topic, number, 0) for number in range(4)], asynchronous=False)
    assert bench.in_kafka() == [0] * 4
    node = bench.layout.owner(TopicPartition(bench.topic, 2))
    with bench.zookeeper.transaction() as others:
        others.delete(node)
        others.create(node, bench.zookeeper.get(node)[0], ephemeral=True)
    places = [Place(bench.topic, number, RECORDS) for number in range(4)]
    with pytest.raises(KafkaException, match=f"{bench.topic}-2 (is not assigned|are not ours)"):    # its watch, or the store
        consumer.commit(offsets=places, asynchronous=False)

    def lost() -> bool:
        assert consumer.poll(0) is None
        return [each.partition for each in consumer.assignment()] == [0, 1, 3]

    until(lost, "it knows what it lost", 20)
    consumer.commit(offsets=[each for each in places if each.partition != 2], asynchronous=False)
    assert bench.offsets() == bench.in_kafka() == [RECORDS, RECORDS, 0, RECORDS]


def test_a_topic_whose_node_is_none_is_named_and_read_again(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    node = topic(bench.topic)
    right = bench.zookeeper.get(node)[0]
    bench.zookeeper.set(node, b"no topic")
    consumer = bench.consumer()
    consumer.subscribe([bench.topic])
    until(lambda: f"the node of topic '{bench.topic}' is none" in caplog.text, "it says so", 20)
    assert consumer.poll(0.2) is None
    bench.zookeeper.set(node, right)
    assert len(taken(consumer.poll, 4 * RECORDS)) == 4 * RECORDS


def test_a_batch_is_done_with_the_next_call(bench: Bench) -> None:
    consumer = bench.consumer(auto_commit_interval_ms=100)
    consumer.subscribe([bench.topic])
    batch = consumer.consume(4 * RECORDS, timeout=60)
    assert len(batch) == 4 * RECORDS
    time.sleep(1)
    assert bench.offsets() == [0] * 4, "the application has it, and may still fail"
    assert consumer.consume(1, timeout=0) == []
    until(lambda: bench.offsets() == [RECORDS] * 4, "now it is done with", 20)


def test_streams_in_threads_of_their_own(bench: Bench) -> None:
    consumer = bench.consumer(consumer_id="x")
    consumer.subscribe({bench.topic: 2})
    found: list[list[tuple[str, int, int]]] = [[], []]

    def work(number: int) -> None:
        found[number] = taken(consumer.streams[number].poll, 2 * RECORDS)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    own = f"{bench.group}_x"
    assert [sorted({partition for _, partition, _ in each}) for each in found] == [[0, 1], [2, 3]]
    assert bench.owners() == [f"{own}-0"] * 2 + [f"{own}-1"] * 2
    assert consumer.group_assignment() == {
        TopicPartition(bench.topic, number): f"{own}-{number // 2}" for number in range(4)}
    metrics = consumer.metrics()
    assert (metrics["ActiveKafkaCoordinationCount"], metrics["held-partitions"], metrics["records"]) == (0, 4, 4 * RECORDS)
    until(lambda: consumer.metrics()["KafkaOwnedPartitionsCount"] == 4, "Kafka's group has assigned all to it", 20)


def test_a_poll_goes_through_all_streams(bench: Bench) -> None:
    """A stream that always has something must not keep the others from their records and from letting go."""
    consumer = bench.consumer()
    consumer.subscribe({bench.topic: 2})
    taken(consumer.poll, 4 * RECORDS)
    bench.produce(bench.topic)
    time.sleep(1)
    assert {partition // 2 for _, partition, _ in taken(consumer.poll, RECORDS)} == {0, 1}


def test_a_white_list_finds_a_new_topic(bench: Bench) -> None:
    consumer = bench.consumer()
    consumer.subscribe(whitelist=f"{bench.topic}.*")
    taken(consumer.poll, 4 * RECORDS)
    [name] = bench.zookeeper.get_children(bench.layout.ids)
    data, stat = bench.zookeeper.get(bench.layout.registration(name))
    assert (decoded(data).subscription, stat.version) == ({f"{bench.topic}.*": 1}, 0)
    bench.create(f"{bench.topic}.new")
    assert {topic for topic, _, _ in taken(consumer.poll, 4 * RECORDS)} == {f"{bench.topic}.new"}


@pytest.mark.parametrize(("storage", "dual", "in_zookeeper", "in_kafka"), [
    ("zookeeper", False, RECORDS, -1001), ("kafka", False, -1, RECORDS), ("kafka", True, RECORDS, RECORDS)])
def test_without_migration_it_is_a_plain_member(
    storage: str, dual: bool, in_zookeeper: int, in_kafka: int, bench: Bench,
) -> None:
    consumer = bench.consumer(coordination_migration_enabled=False, offsets_storage=storage, dual_commit_enabled=dual)
    consumer.subscribe([bench.topic])
    taken(consumer.poll, 4 * RECORDS)
    consumer.close()
    assert (bench.offsets(), bench.in_kafka()) == ([in_zookeeper] * 4, [in_kafka] * 4)
    assert bench.zookeeper.exists(bench.layout.migration_ids) is None


def test_an_application_that_does_not_poll_loses_all_and_begins_again(bench: Bench) -> None:
    events: list[str] = []
    consumer = bench.consumer(max_poll_interval_ms=1500, auto_commit_interval_ms=100)
    told = {f"on_{what}": lambda *_, what=what: events.append(what) for what in ("assign", "revoke", "lost")}
    consumer.subscribe([bench.topic], **told)
    taken(consumer.poll, 4 * RECORDS)
    assert consumer.poll(0.5) is None
    until(lambda: bench.offsets() == [RECORDS] * 4, "committed", 20)
    until(lambda: bench.zookeeper.get_children(bench.layout.ids) == [], "it is out of the group", 20)
    assert bench.owners() == []
    bench.produce(bench.topic)
    events.clear()
    again = taken(consumer.poll, 4 * RECORDS)
    assert min(offset for _, _, offset in again) == RECORDS
    assert events == ["lost", "assign"]


def test_a_kafka_consumer_waits_for_an_application_at_work(bench: Bench, zookeeper_cluster: KafkaCluster) -> None:
    bench.zookeeper.create(bench.layout.mode, b"kafka", makepath=True)
    consumer = bench.consumer(consumer_id="x")
    consumer.subscribe([bench.topic])
    taken(consumer.poll, 4 * RECORDS)
    assert consumer.metrics()["ActiveKafkaCoordinationCount"] == 1
    plain = Consumer({"bootstrap.servers": zookeeper_cluster.bootstrap, "group.id": bench.group, "enable.auto.commit": False,
                      "partition.assignment.strategy": "range", "auto.offset.reset": "earliest"})
    try:
        plain.subscribe([bench.topic])
        busy = time.monotonic() + 8                     # it heard of the rebalance with a heartbeat, a second apart
        while time.monotonic() < busy:
            assert plain.poll(0.1) is None
            assert plain.assignment() == []
        patience = Patience(30)
        while not plain.assignment():
            assert not patience.over, "it has nothing though the application polls again"
            assert consumer.poll(0.1) is None
            assert plain.poll(0.1) is None
        assert len(plain.assignment()) == 2
    finally:
        plain.close()
    assert bench.in_kafka() == [RECORDS] * 4


def test_the_command_prints_records_and_leaves_in_order(bench: Bench, zookeeper_cluster: KafkaCluster) -> None:
    command = [sys.executable, "-c", "from switchover.cli.entry import main; main()", "consume", "--topic", bench.topic,
               "-X", f"group.id={bench.group}", "-X", f"zookeeper.connect={zookeeper_cluster.zookeeper_connect}",
               "-X", "auto.offset.reset=smallest"]
    environment = {**os.environ, "PYTHONPATH": str(OPERATOR), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *command], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        records = [json.loads(process.stdout.readline()) for _ in range(4 * RECORDS)]
        process.terminate()
        out, err = process.communicate(timeout=stretched(60))
    assert (process.returncode, out) == (0, "")
    assert sorted(int(each["value"]) for each in records) == list(range(4 * RECORDS))
    assert bench.offsets() == [RECORDS] * 4
    assert f"assigned {bench.topic}-0 at 0" in err
    assert f"revoked {bench.topic}-0 at {RECORDS}" in err


def test_it_subscribes_once_and_needs_the_chroot(bench: Bench) -> None:
    consumer = bench.consumer()
    with pytest.raises(RuntimeError, match="not subscribed"):
        consumer.poll(0)
    consumer.subscribe([bench.topic])
    with pytest.raises(BadConfiguration, match="subscribed already"):
        consumer.subscribe(["other"])
    elsewhere = bench.consumer(zookeeper_connect=f"{bench.zookeeper.hosts[0][0]}:2181/nowhere")
    with pytest.raises(BadConfiguration, match="there is no /nowhere there"):
        elsewhere.subscribe([bench.topic])


class Foreign:
    """A client as pykafka 2.8.0 is one: its nodes in ZooKeeper, and commits to Kafka as nobody's member."""

    def __init__(self, bench: Bench, bootstrap: str) -> None:
        self._topic, self._root, self._zookeeper = bench.topic, bench.layout.root, bench.zookeeper
        self._client = Consumer({"bootstrap.servers": bootstrap, "group.id": bench.group})

    def registers(self) -> None:
        self._zookeeper.create(f"{self._root}/ids/host:uuid", self._topic.encode(), ephemeral=True, makepath=True)

    def owns(self) -> None:
        self._zookeeper.create(f"{self._root}/owners/b'{self._topic}'/1-0", b"host:uuid", ephemeral=True, makepath=True)

    def commits(self, offset: int) -> None:
        """Raises KafkaException where Kafka's group has a member."""
        self._client.commit(offsets=[Place(self._topic, 0, offset)], asynchronous=False)

    def leaves(self) -> None:
        for path in (f"{self._root}/ids/host:uuid", f"{self._root}/owners/b'{self._topic}'/1-0"):
            if self._zookeeper.exists(path):
                self._zookeeper.delete(path)

    def close(self) -> None:
        self.leaves()
        self._client.close()


@pytest.fixture
def foreign(bench: Bench, zookeeper_cluster: KafkaCluster) -> Iterator[Foreign]:
    client = Foreign(bench, zookeeper_cluster.bootstrap)
    bench.in_kafka()                                    # the topic of offsets is there
    yield client
    client.close()


@pytest.mark.parametrize("shown", ["registers", "owns"])
def test_it_does_not_join_beside_a_client_of_another_make(bench: Bench, foreign: Foreign, shown: str) -> None:
    getattr(foreign, shown)()
    consumer = bench.consumer()
    with pytest.raises(ForeignMembers, match="managed=True"):
        consumer.subscribe([bench.topic])
    assert not bench.zookeeper.exists(bench.layout.migration_ids), "nothing is registered"
    foreign.commits(5)
    assert bench.in_kafka()[0] == 5
    foreign.leaves()
    consumer.subscribe([bench.topic])
    assert len(taken(consumer.poll, 4 * RECORDS - 5)) == 4 * RECORDS - 5, "it goes on from the offsets in Kafka"
    with pytest.raises(KafkaException, match=r"(?i)unknown.*member"):
        foreign.commits(6)                              # what is kept from them


def test_it_does_not_join_beside_one_that_came_while_it_looked(
    bench: Bench, foreign: Foreign, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(membership, "read_foreign", lambda *_: "")
    foreign.registers()
    consumer = bench.consumer()
    consumer.subscribe([bench.topic])
    for _ in range(20):
        assert consumer.poll(0.2) is None
    foreign.commits(5)
    assert bench.in_kafka()[0] == 5


def test_a_node_that_another_make_left_behind_keeps_nobody_out(bench: Bench) -> None:
    bench.zookeeper.create(f"{bench.layout.root}/owners/b'{bench.topic}'/1-0", b"host:uuid", makepath=True)
    consumer = bench.consumer()
    consumer.subscribe([bench.topic])
    assert len(taken(consumer.poll, 4 * RECORDS)) == 4 * RECORDS
