"""The reader of planned ranges on a real broker, without Spark around it: transactions, logs cut and made again, silence."""

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from adapters.admin import commit_for
from adapters.clusters import KRaftNode, node
from patience import stretched, until
from switchover.pipeline.capture import source
from switchover.pipeline.capture.client import configuration
from switchover.pipeline.capture.facts import Cluster
from switchover.pipeline.capture.plan import TOPIC, Plan, following, plan, splits
from switchover.pipeline.capture.source import OffsetsReader, Reading, Split
from switchover.pipeline.outcome import JobFailed


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    """Kafka 4.4 of this file alone: its `__consumer_offsets` is cut, deleted and made again."""
    with node(tmp_path_factory.mktemp("ranges"), "4.4") as server:
        server.begin("offsets.topic.num.partitions=2\nlog.retention.check.interval.ms=500\nlog.initial.task.delay.ms=500\n")
        yield server


@dataclass
class Captured:
    """What one capture of the offsets alone found."""

    plan: Plan
    inputs: dict[str, Any]
    rows: list[dict[str, Any]]
    counts: dict[str, int]
    errors: list[str]


def captured(broker: KRaftNode, store: Path, inputs: Mapping[str, Any], *, planned: Plan | None = None) -> Captured:
    """Plan and read every split in this process."""
    log = Cluster(configuration(str(broker.address), None)).log()
    assert log is not None
    planned = plan(inputs, log) if planned is None else planned
    reading = Reading(str(store), "test", uuid.uuid4().hex, 0, str(broker.address), None, splits(planned.ranges, 2))
    reader = OffsetsReader(reading)
    found = [row for index in range(len(reading.splits)) for row in reader.read(Split(index))]
    reached = {int(number): offset for row in found for number, offset in json.loads(row[2]).items()}
    tables: list[pa.Table] = [pq.read_table(store / file["path"], partitioning=None)
                              for row in found for file in json.loads(row[0]) if file["table"] == "commits"]
    errors = [row[3] for row in found if row[3]]
    return Captured(planned, {} if errors else following(planned, reached, log),
                    pa.concat_tables(tables).to_pylist() if tables else [],
                    {what: count for row in found for what, count in json.loads(row[1]).items()}, errors)


def commit(broker: KRaftNode, group: str, *offsets: int) -> None:
    for offset in offsets:
        commit_for(str(broker.address), group, "orders", offset)


def of(found: Captured, group: str) -> list[int]:
    return [row["offset"] for row in sorted(found.rows, key=lambda row: row["log_offset"]) if row["group"] == group]


@pytest.fixture(autouse=True, scope="module")
def orders(broker: KRaftNode) -> None:
    """A topic to commit for, and `__consumer_offsets` made by a first commit."""
    producer = Producer({"bootstrap.servers": str(broker.address)})
    producer.produce("orders", b"1")
    assert producer.flush(stretched(60)) == 0
    commit(broker, "first", 1)


def transaction(broker: KRaftNode, group: str, offset: int) -> Producer:
    """A transaction under way that has committed an offset."""
    producer = Producer({"bootstrap.servers": str(broker.address), "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(stretched(60))
    producer.begin_transaction()
    consumer = Consumer({"bootstrap.servers": str(broker.address), "group.id": group})
    producer.send_offsets_to_transaction([TopicPartition("orders", 0, offset)], consumer.consumer_group_metadata(), 60)
    consumer.close()
    return producer


def test_an_aborted_commit_never_was_one_and_markers_at_the_end_are_no_wait(broker: KRaftNode, tmp_path: Path) -> None:
    group = uuid.uuid4().hex
    transaction(broker, group, 5).abort_transaction(stretched(60))
    transaction(broker, group, 6).commit_transaction(stretched(60))
    log = Cluster(configuration(str(broker.address), None)).log()
    assert log is not None
    began = time.monotonic()
    found = captured(broker, tmp_path, {})
    assert (found.errors, of(found, group)) == ([], [6])
    assert found.inputs["offsets"]["next"] == {str(number): end for number, (_, end) in log.watermarks.items()}
    assert time.monotonic() - began < stretched(source.SILENT_SECONDS / 2)


def test_behind_an_open_transaction_nothing_is_read_yet_and_later_everything(broker: KRaftNode, tmp_path: Path) -> None:
    group = uuid.uuid4().hex
    before = captured(broker, tmp_path, {})
    producer = transaction(broker, group, 7)
    commit(broker, group, 8)                      # the same partition of the log, behind it
    during = captured(broker, tmp_path, before.inputs)
    assert (during.errors, of(during, group)) == ([], [])
    producer.commit_transaction(stretched(60))
    after = captured(broker, tmp_path, during.inputs)
    assert of(after, group) == [7, 8]


def test_a_broker_that_says_nothing_breaks_the_range_off_and_it_is_read_later(
        broker: KRaftNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = uuid.uuid4().hex
    before = captured(broker, tmp_path, {})
    commit(broker, group, 1, 2, 3)
    log = Cluster(configuration(str(broker.address), None)).log()
    assert log is not None
    planned = plan(before.inputs, log)
    reading = Reading(str(tmp_path), "test", "run", 0, str(broker.address), None, splits(planned.ranges, 1))
    monkeypatch.setattr(source, "SILENT_SECONDS", 3.0)
    with broker.frozen():
        (files, _, reached, error), = OffsetsReader(reading).read(Split(0))
    assert error.startswith("no answer for 3 s about __consumer_offsets, partitions ")
    assert (files, reached) == ("[]", "{}")
    assert of(captured(broker, tmp_path, before.inputs), group) == [1, 2, 3]


def configure(broker: KRaftNode, properties: Mapping[str, str]) -> None:
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in properties.items()])
    admin = AdminClient({"bootstrap.servers": str(broker.address)})
    admin.incremental_alter_configs([resource])[resource].result(stretched(30))


def start(broker: KRaftNode, partition: int) -> int:
    log = Cluster(configuration(str(broker.address), None)).log()
    assert log is not None
    return log.watermarks[partition][0]


def test_a_log_cut_before_it_was_read_is_a_hole_and_cut_while_it_is_read_an_error(broker: KRaftNode, tmp_path: Path) -> None:
    group = uuid.uuid4().hex
    before = captured(broker, tmp_path, {})
    commit(broker, group, 1, 2, 3, 4)
    log = Cluster(configuration(str(broker.address), None)).log()
    assert log is not None
    late = plan(before.inputs, log)
    here = next(each for each in late.ranges if each.end - each.begin >= 4)
    configure(broker, {"cleanup.policy": "delete", "retention.ms": "1"})
    until(lambda: start(broker, here.partition) >= here.end, "the log is cut")
    configure(broker, {"cleanup.policy": "compact", "retention.ms": "604800000"})
    commit(broker, group, 5)
    found = captured(broker, tmp_path, before.inputs)
    assert of(found, group) == [5]
    assert {"partition": here.partition, "from": here.begin, "to": here.end} in found.inputs["holes"]
    assert f"{TOPIC}-{here.partition}: offsets {here.begin} to {here.end - 1} were deleted" in " ".join(found.plan.notes)
    (error,) = captured(broker, tmp_path, before.inputs, planned=late).errors
    assert f"{TOPIC}-{here.partition}: the log was deleted while it was read" in error


def test_a_topic_deleted_and_made_again_is_read_from_its_start(broker: KRaftNode, tmp_path: Path) -> None:
    before, group = captured(broker, tmp_path, {}), uuid.uuid4().hex
    admin = AdminClient({"bootstrap.servers": str(broker.address)})
    admin.delete_topics([TOPIC])[TOPIC].result(stretched(30))
    cluster = Cluster(configuration(str(broker.address), None))
    until(lambda: cluster.log() is None, "the topic is gone")
    commit(broker, group, 9)
    found = captured(broker, tmp_path, before.inputs)
    assert (found.errors, of(found, group)) == ([], [9])
    assert found.inputs["offsets"]["topicId"] != before.inputs["offsets"]["topicId"]
    assert "deleted and created again" in found.plan.notes[0]
    assert [hole["to"] for hole in found.inputs["holes"]] == [None, None]
    again = captured(broker, tmp_path, found.inputs)
    assert (again.plan.notes, again.rows, again.inputs["holes"]) == ((), [], [])


def test_partitions_without_a_leader_are_named(broker: KRaftNode, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(configuration(str(broker.address), None))
    offsets = cluster._offsets
    monkeypatch.setattr(cluster, "_offsets", lambda asked: {
        place: ends for place, ends in offsets(asked).items() if place != (TOPIC, 1)})
    with pytest.raises(JobFailed, match=r"partitions whose ends no broker answers for: \[1\]"):
        cluster.log()
