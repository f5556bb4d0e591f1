"""Captures of real brokers: everything once, through kills, beside each other, and with the broker away."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from pyspark.sql import SparkSession

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster, KRaftNode, node
from patience import Patience, stretched, until
from pipeline.few_rows import small_session
from switchover.pipeline.capture import plan as planning
from switchover.pipeline.capture.client import reader
from switchover.pipeline.capture.job import Capture
from switchover.pipeline.config import Config
from switchover.pipeline.outcome import JobFailed, Progress
from switchover.pipeline.store import Store

COMMITS, PARTITIONS = 40, 3


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with small_session(tmp_path_factory.mktemp("spark")) as started:
        yield started


def address(server: KafkaCluster | KRaftNode) -> str:
    return str(server.brokers[1].address) if isinstance(server, KafkaCluster) else str(server.address)


def commits(servers: str, group: str, topic: str, rounds: int) -> None:
    """Commit 1…rounds in every partition, by a consumer that joins nothing."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False})
    for offset in range(1, rounds + 1):
        consumer.commit(offsets=[TopicPartition(topic, number, offset) for number in range(PARTITIONS)], asynchronous=False)
    consumer.close()


def topic(servers: str) -> str:
    name = f"captured-{uuid.uuid4().hex[:8]}"
    create_topic(servers, name, PARTITIONS)
    return name


def plain(servers: str) -> set[tuple[int, int]]:
    """(partition, offset) of every committed record of `__consumer_offsets`, by a plain consumer."""
    consumer = Consumer({**reader({"bootstrap.servers": servers}), "auto.offset.reset": "earliest"})
    numbers = consumer.list_topics(planning.TOPIC, stretched(20)).topics[planning.TOPIC].partitions
    consumer.assign([TopicPartition(planning.TOPIC, number, 0) for number in numbers])
    found, ended = set(), set()
    while len(ended) < len(numbers):
        for message in consumer.consume(1000, 1.0):
            if (error := message.error()) is None:
                found.add((message.partition(), message.offset()))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
    consumer.close()
    return found


def config(store: Path, servers: str, **capture: object) -> Config:
    return Config.model_validate({"cluster": "test", "store": store, "kafka": {"bootstrapServers": servers},
                                  "capture": capture})


def table(store: Path, name: str) -> pa.Table:
    return pa.concat_tables([pq.read_table(path, partitioning=None) for path in Store(store, "test").files(name)])


def places(store: Path) -> Counter[tuple[int, int]]:
    """Where each captured record lies; a classic group's record is several rows of one place."""
    found: Counter[tuple[int, int]] = Counter()
    rows = table(store, "commits").select(["log_partition", "log_offset"])
    found.update((row["log_partition"], row["log_offset"]) for row in rows.to_pylist())
    if Store(store, "test").files("ownership"):
        rows = table(store, "ownership").select(["log_partition", "log_offset"])
        found.update({(row["log_partition"], row["log_offset"]) for row in rows.to_pylist()})
    return found


@pytest.fixture(scope="module")
def wide_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    """Kafka 4.4 whose `__consumer_offsets` has eight partitions; those of the other fixtures have one."""
    with node(tmp_path_factory.mktemp("wide-kafka"), "4.4") as server:
        server.begin("offsets.topic.num.partitions=8\n")
        yield server


@pytest.fixture(params=[pytest.param("zookeeper_cluster", marks=pytest.mark.long), "wide_kafka"])
def servers(request: pytest.FixtureRequest) -> str:
    return address(request.getfixturevalue(request.param))


def test_what_a_plain_consumer_reads_is_captured_once_and_the_next_goes_on(
        servers: str, tmp_path: Path, spark: SparkSession) -> None:
    name, group = topic(servers), uuid.uuid4().hex
    commits(servers, group, name, COMMITS)
    capture = Capture(config(tmp_path, servers), spark, Progress())
    first = capture.once()
    expected = plain(servers)
    skipped = sum(count for what, count in first.counts.items() if what.startswith(("type", "bad", "unknown")))
    found = places(tmp_path)
    assert max(found.values()) == 1
    assert found.keys() <= expected
    assert len(expected) - len(found) == skipped
    rows = [row for row in table(tmp_path, "commits").to_pylist() if row["group"] == group]
    assert sorted((row["topic"], row["partition"], row["offset"]) for row in rows) == sorted(
        (name, number, offset) for number in range(PARTITIONS) for offset in range(1, COMMITS + 1))
    second = capture.once()
    assert not [file for file in second.files if file.table in ("commits", "ownership")]
    commits(servers, group, name, 5)
    third = capture.once()
    assert sum(file.rows for file in third.files if file.table == "commits") == 5 * PARTITIONS
    assert max(places(tmp_path).values()) == 1


def test_topics_ends_and_groups_are_what_the_brokers_say(servers: str, tmp_path: Path, spark: SparkSession) -> None:
    name, group = topic(servers), uuid.uuid4().hex
    commits(servers, group, name, 1)
    Capture(config(tmp_path, servers), spark, Progress()).once()
    topics = {row["topic"]: row for row in table(tmp_path, "topics").to_pylist()}
    assert (topics[name]["partitions"], topics[name]["internal"], topics[name]["cleanup_policy"]) == (3, False, "delete")
    assert len(topics[name]["topic_id"]) == 32
    assert topics[name]["retention_ms"] == 604_800_000
    assert topics[planning.TOPIC]["internal"]
    ends = [row for row in table(tmp_path, "ends").to_pylist() if row["topic"] == name]
    assert [(row["partition"], row["start"], row["end"]) for row in ends] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    groups = {row["group"]: row for row in table(tmp_path, "groups").to_pylist()}
    assert (groups[group]["state"], groups[group]["members"]) == ("Empty", [])


@pytest.mark.long
@pytest.mark.parametrize("kills", [1, 3])
def test_killed_again_and_again_it_loses_and_doubles_nothing(kills: int, wide_kafka: KRaftNode, tmp_path: Path) -> None:
    """Each round commits more, and is killed at another moment; the last one may end."""
    servers, group = str(wide_kafka.address), uuid.uuid4().hex
    name, file, store = topic(servers), tmp_path / "pipeline.yaml", tmp_path / "store"
    file.write_text(json.dumps({"cluster": "test", "store": str(store), "kafka": {"bootstrapServers": servers},
                                "spark": {"memory": "500m"}, "capture": {"mode": "Continuous", "everySeconds": 1}}))
    command = [sys.executable, "-m", "switchover.pipeline", "capture", "--config", str(file)]
    expected, chance = 0, random.Random(7)
    manifests = Store(store, "test").manifests
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        known = len(manifests())
        patience = Patience(120)
        while len(manifests()) == known and not patience.over:
            assert process.poll() is None
            commits(servers, group, name, 10)
            expected += 10 * PARTITIONS
        commits(servers, group, name, 10)
        expected += 10 * PARTITIONS
        time.sleep(chance.uniform(0, 1.5))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    known = len(manifests())
    until(lambda: len(manifests()) >= known + 2, "two more captures", 120)
    process.terminate()
    out, _ = process.communicate(timeout=stretched(60))
    assert process.returncode == 0, out
    assert "stops, as it was asked to" in out
    rows = [row for row in table(store, "commits").to_pylist() if row["group"] == group]
    assert len(rows) == expected
    assert max(places(store).values()) == 1


def test_two_at_once_file_every_range_once(wide_kafka: KRaftNode, tmp_path: Path, spark: SparkSession) -> None:
    servers, group = str(wide_kafka.address), uuid.uuid4().hex
    name = topic(servers)
    captures = [Capture(config(tmp_path, servers), spark, Progress()) for _ in range(2)]
    for _ in range(3):
        commits(servers, group, name, 10)
        threads = [threading.Thread(target=each.once) for each in captures]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    numbers = [manifest.number for manifest in Store(tmp_path, "test").manifests()]
    assert numbers == list(range(6))
    assert max(places(tmp_path).values()) == 1
    named = {file.path for manifest in Store(tmp_path, "test").manifests() for file in manifest.files}
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.glob("bronze/*/*/*/*")} == named


def test_a_plan_without_one_of_the_partitions_is_refused(
        wide_kafka: KRaftNode, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = str(wide_kafka.address)
    name = topic(servers)
    for number in range(8):
        commits(servers, f"{name}-{number}", name, 3)
    from switchover.pipeline.capture import source

    def forgetful(reading: source.Reading) -> dict[str, str]:
        fewer = source.Reading(**{**{name: getattr(reading, name) for name in reading.__slots__},
                                  "splits": reading.splits[:1]})
        return options(fewer)

    options = source.Reading.options
    monkeypatch.setattr(source.Reading, "options", forgetful)
    with pytest.raises(JobFailed, match="were planned and"):
        Capture(config(tmp_path, servers), spark, Progress()).once()
    assert Store(tmp_path, "test").manifests() == ()
    assert list(tmp_path.glob("bronze/*/*/*/*")) == []


def test_brokers_that_do_not_answer_are_named(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchover.pipeline.capture.facts.SECONDS", 2.0)
    with pytest.raises(JobFailed, match=r"brokers of kafka\.bootstrapServers"):
        Capture(config(tmp_path, "127.0.0.1:9"), spark, Progress()).once()
