"""The record decoders against Kafka's own classes: every record that real brokers of 3.9, 4.0 and 4.4 wrote, in every field.

java/RecordsOracle.java prints what the classes of the broker's own version read out of the same bytes.
"""

import asyncio
import base64
import json
import subprocess
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from adapters.clusters import KafkaCluster, KRaftNode
from adapters.eventually import eventually
from adapters.group_members import assignment, classic_member, create_topic, heartbeat, joined, leave, subscription
from adapters.servers import libraries
from patience import stretched
from switchover.network.addresses import Address
from switchover.pipeline.records import commits, groups
from switchover.pipeline.tables import COMMITS, OWNERSHIP

ORACLE = Path(__file__).parent / "java" / "RecordsOracle.java"
PARTITIONS = 3
Row = dict[str, Any]


@dataclass(frozen=True)
class Logged:
    """A record of `__consumer_offsets`."""

    partition: int
    offset: int
    time: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True)
class Source:
    """A broker on which the groups of `written` have lived, and its log from the first record to the last."""

    version: str
    topic: str
    log: Sequence[Logged]


@pytest.fixture(scope="module", params=["3.9", pytest.param("4.0", marks=pytest.mark.long), "4.4"])
def source(request: pytest.FixtureRequest) -> Source:
    version: str = request.param
    if version == "3.9":
        cluster: KafkaCluster = request.getfixturevalue("zookeeper_cluster")
        return asyncio.run(written(cluster.brokers[1].address, version))
    node: KRaftNode = request.getfixturevalue("oldest_kafka_4" if version == "4.0" else "newest_kafka")
    return asyncio.run(written(node.address, version))


async def written(broker: Address, version: str) -> Source:
    """Let groups of every kind live, and read what the coordinator wrote about them."""
    topic = f"recorded-{uuid.uuid4().hex}"
    await create_topic(broker, topic, PARTITIONS)
    client_life(broker, topic, "classic")
    await classic_member(broker, f"{topic}-strange", b"\0\1a worker's own", b"\1", protocol_type="connect")
    await classic_member(broker, f"{topic}-alone", subscription(topic), assignment(topic, 0, 2), instance="static-1")
    await classic_member(broker, f"{topic}-garbled", b"\0\0\xff", assignment(topic, 1))
    torn = await classic_member(broker, f"{topic}-torn", subscription(topic), b"\0\0\xff")
    await leave(broker, f"{topic}-torn", torn)          # while it is there, nobody can tell what it consumes
    transactions(broker, topic)
    if version != "3.9":
        client_life(broker, topic, "consumer")
        await pending_revocation(broker, topic)
        await heartbeat(broker, f"{topic}-regex", "", regex=f"{topic}.*", assignor="range")
    delete(broker, f"{topic}-gone")
    return Source(version, topic, list(log_of(broker)))


def client_life(broker: Address, topic: str, protocol: str) -> None:
    """A dynamic and a static member of one group, a group with a strange name and one that is to be deleted."""
    settings = {"bootstrap.servers": str(broker), "auto.offset.reset": "earliest", "enable.auto.commit": False,
                "group.protocol": protocol}
    group = f"{topic}-{protocol}"
    members = [Consumer(settings | {"group.id": group, "client.id": f"cliënt-{i}"} | static)
               for i, static in enumerate([{}, {"group.instance.id": "i-1"}])]
    for member in members:
        member.subscribe([topic])
    while not all(member.assignment() for member in members):
        for member in members:
            member.poll(0.1)
    for member in members:
        owned = member.assignment()
        member.commit(offsets=[TopicPartition(topic, of.partition, 5 + of.partition) for of in owned], asynchronous=False)
        member.close()
    for name in (f"{topic}-日本-ü\n-{protocol}", f"{topic}-gone"):
        alone = Consumer(settings | {"group.id": name, "group.protocol": "classic"})
        alone.commit(offsets=[TopicPartition(topic, 1, 7, "m" * 300), TopicPartition(topic, 2, 2**40, "m" * 126)],
                     asynchronous=False)
        alone.close()


def transactions(broker: Address, topic: str) -> None:
    """Offset 11 committed, offset 22 aborted."""
    consumer = Consumer({"bootstrap.servers": str(broker), "group.id": f"{topic}-transactional"})
    producer = Producer({"bootstrap.servers": str(broker), "transactional.id": topic})
    producer.init_transactions()
    for offset, end in ((11, producer.commit_transaction), (22, producer.abort_transaction)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], consumer.consumer_group_metadata())
        end()
    consumer.close()


async def pending_revocation(broker: Address, topic: str) -> None:
    """A member that has all partitions is to give back some to a second one."""
    group = f"{topic}-pending"
    first = await joined(broker, group, topic)
    second = await heartbeat(broker, group, topic)
    assert first.member_id is not None
    assert second.error_code.value == 0
    member, epoch = first.member_id, first.member_epoch
    await eventually(lambda: heartbeat(broker, group, topic, member=member, epoch=epoch),
                     lambda answer: answer.assignment is not None and partitions_of(answer) < PARTITIONS, 30)


def partitions_of(answer: Any) -> int:
    return sum(len(each.partitions) for each in answer.assignment.topic_partitions)


def delete(broker: Address, group: str) -> None:
    client = AdminClient({"bootstrap.servers": str(broker)})        # its calls end with it
    for done in client.delete_consumer_groups([group]).values():
        done.result(stretched(30))


def log_of(broker: Address) -> Iterator[Logged]:
    """Every record of `__consumer_offsets` that is not of an aborted transaction."""
    consumer = Consumer({"bootstrap.servers": str(broker), "group.id": "not-used", "enable.auto.commit": False,
                         "isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest"})
    name = "__consumer_offsets"
    left = set(consumer.list_topics(name, stretched(30)).topics[name].partitions)
    consumer.assign([TopicPartition(name, partition, 0) for partition in left])
    while left:
        message = consumer.poll(30)
        assert message is not None, "no record and no end within 30 s"
        if message.error() is None:
            yield Logged(message.partition(), message.offset(), message.timestamp()[1], message.key(), message.value())
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            left.discard(message.partition())
    consumer.close()


def asked(version: str, records: Sequence[tuple[bytes, bytes | None]]) -> list[Row]:
    """What Kafka's classes read."""
    lines = "".join(f"{key.hex() or '00'} {'-' if value is None else value.hex() or '00'}\n" for key, value in records)
    done = subprocess.run(["java", "-XX:TieredStopAtLevel=1", "-cp", f"{libraries(version)}/*", ORACLE], input=lines,
                          capture_output=True, text=True, encoding="utf-8", timeout=stretched(120), check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(records)
    return answers


# --- What the oracle's words mean in our tables -----------------------------------------------------------------------

NAMES = {2: "ClassicGroup", 3: "Epoch", 5: "Member", 6: "TargetEpoch", 7: "Target", 8: "Current"}
NO_ID = base64.urlsafe_b64encode(bytes(16)).decode().rstrip("=")


def hexadecimal(topic_id: str) -> str:
    return base64.urlsafe_b64decode(topic_id + "==").hex()


def commit_row(record: Logged, told: Row) -> Row:
    value = told.get("value", {})
    return {
        "group": told["key"]["group"], "topic": told["key"]["topic"], "partition": told["key"]["partition"],
        "offset": value.get("offset"), "leader_epoch": value.get("leaderEpoch", -1) if value else None,
        "commit_time": value.get("commitTimestamp"), "record_time": record.time, "version": told.get("version"),
        "topic_id": hexadecimal(value["topicId"]) if value.get("topicId", NO_ID) != NO_ID else None,
        "log_partition": record.partition, "log_offset": record.offset,
    }


def group_rows(record: Logged, told: Row) -> list[Row]:
    key, value = told["key"], told.get("value")
    nothing = dict.fromkeys(OWNERSHIP.names)
    of = nothing | {
        "group": key["group"] if told["type"] == 2 else key["groupId"], "record": NAMES[told["type"]],
        "member": key.get("memberId"), "tombstone": value is None, "time": record.time,
        "log_partition": record.partition, "log_offset": record.offset,
    }
    if value is None:
        return [of]
    if told["type"] == 2:
        since = value.get("currentStateTimestamp", -1)
        of |= {"epoch": value["generation"], "protocol_type": value["protocolType"], "protocol": value["protocol"],
               "time": since if since >= 0 else record.time}
        return [of | {"leader": value["leader"]}, *(of | {
            "member": member["memberId"], "instance": member.get("groupInstanceId"), "client_id": member["clientId"],
            "client_host": member["clientHost"], "topics": member.get("topics"),
            "assigned": [{"topic": topic, "topic_id": None, "partition": partition}
                         for topic, partition in member["assigned"]] if member.get("assigned") is not None else None,
        } for member in value["members"])]
    columns: Mapping[int, Row] = {
        3: {"epoch": value.get("epoch")}, 6: {"epoch": value.get("assignmentEpoch")},
        5: {"instance": value.get("instanceId"), "client_id": value.get("clientId"), "client_host": value.get("clientHost"),
            "topics": value.get("subscribedTopicNames"), "regex": value.get("subscribedTopicRegex") or None,
            "protocol": value.get("serverAssignor")},
        7: {"assigned": by_id(value.get("topicPartitions"))},
        8: {"epoch": value.get("memberEpoch"), "previous_epoch": value.get("previousMemberEpoch"),
            "state": value.get("state"), "assigned": by_id(value.get("assignedPartitions")),
            "pending": by_id(value.get("partitionsPendingRevocation"))},
    }
    return [of | columns[told["type"]]]


def by_id(topics: list[Row] | None) -> list[Row] | None:
    return None if topics is None else [
        {"topic": None, "topic_id": hexadecimal(topic["topicId"]), "partition": partition}
        for topic in topics for partition in topic["partitions"]]


# --- The tests --------------------------------------------------------------------------------------------------------


def split(records: Sequence[Logged]) -> commits.Decoded:
    keys, values = [record.key for record in records], [record.value for record in records]
    times, offsets = [record.time for record in records], [record.offset for record in records]
    return commits.split(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), np.array(times), np.array(offsets),
                         records[0].partition)


def ours(records: Sequence[Logged]) -> tuple[list[Row], list[Row], Counter[str]]:
    """Rows of COMMITS and of OWNERSHIP, and the counts."""
    decoded = split(records)
    chosen = [records[i] for i in decoded.groups.tolist()]
    table, counts = groups.decode([record.key for record in chosen], [record.value for record in chosen],
                                  [record.time for record in chosen], [record.offset for record in chosen],
                                  records[0].partition)
    assert decoded.commits.schema == COMMITS
    assert table.schema == OWNERSHIP
    return decoded.commits.to_pylist(), table.to_pylist(), decoded.counts + counts


def test_every_record_of_the_log_is_read_as_kafka_reads_it(source: Source) -> None:
    told = asked(source.version, [(record.key, record.value) for record in source.log])
    assert not [answer for answer in told if "error" in answer]
    both = list(zip(source.log, told, strict=True))
    read, owned, counts = ours(source.log)

    assert read == [commit_row(record, answer) for record, answer in both if answer["type"] in (0, 1)]
    assert owned == [row for record, answer in both if answer["type"] in NAMES for row in group_rows(record, answer)]
    expected = Counter(f"type {answer['type']}" for answer in told if answer["type"] > 1 and answer["type"] not in NAMES)
    expected["tombstone"] = sum(record.value is None and answer["type"] in (0, 1, *NAMES) for record, answer in both)
    members = [member for answer in told if answer["type"] == 2 for member in answer.get("value", {}).get("members", [])]
    for name, column in (("bad subscription", "topics"), ("bad assignment", "assigned")):
        expected[name] = sum(column in member and member[column] is None for member in members)
    assert counts == +expected


def test_the_log_holds_what_is_to_be_compared(source: Source) -> None:
    """Else the comparison could not fail."""
    read, owned, counts = ours(source.log)
    here = [row for row in read if row["group"].startswith(source.topic)]
    versions = Counter(row["version"] for row in here if row["offset"] is not None)
    assert versions == {4 if source.version == "4.4" else 3: len([row for row in here if row["offset"] is not None])}
    assert {row["topic_id"] is not None for row in here if row["offset"] is not None} == {source.version == "4.4"}
    assert {row["offset"] for row in here if row["group"].endswith("-transactional")} == {11}
    assert {row["group"] for row in here if "日本" in row["group"]} >= {f"{source.topic}-日本-ü\n-classic"}
    assert {row["topic"]: row["offset"] for row in here if row["group"] == f"{source.topic}-gone"}[source.topic] is None
    assert counts["tombstone"] >= 2

    mine = [row for row in owned if row["group"].startswith(source.topic)]
    records = Counter(row["record"] for row in mine)
    assert records["ClassicGroup"] >= 11        # two members and their group, and four with a member each
    assert counts["bad subscription"] >= 1
    assert counts["bad assignment"] >= 1
    assert {"connect", "consumer"} <= {row["protocol_type"] for row in mine if row["record"] == "ClassicGroup"}
    assert {"static-1", "i-1"} <= {row["instance"] for row in mine}
    assert {len(row["assigned"]) for row in mine if row["group"] == f"{source.topic}-alone" and row["assigned"]} == {2}
    if source.version != "3.9":
        assert all(records[name] >= 3 for name in NAMES.values()), records
        assert any(row["regex"] == f"{source.topic}.*" for row in mine)
        assert any(row["state"] == 1 and row["pending"] for row in mine)
        assert {row["record"] for row in mine if row["tombstone"]} >= {"Member", "Target", "Current"}
        assert counts["type 4" if source.version == "4.0" else "type 16"] >= 1


def test_bytes_that_kafka_refuses_are_refused(source: Source) -> None:
    """One record of each type and version, ended at every byte."""
    whole = {(record.key[:2], record.value[:2]): record for record in source.log
             if record.value is not None and record.key[1] in (1, *NAMES)}
    assert len(whole) >= (2 if source.version == "3.9" else 7)
    cut = [(record.key, record.value[:length]) for record in whole.values() if record.value is not None
           for length in range(1, len(record.value) + 1)]
    cut += [(record.key[:length], record.value) for record in whole.values() for length in range(1, len(record.key))]
    records = [Logged(0, i, 0, key, value) for i, (key, value) in enumerate(cut)]
    read, owned, counts = ours(records)
    good = {row["log_offset"] for row in (*read, *owned)}
    told = asked(source.version, cut)
    assert good == {i for i, answer in enumerate(told) if "error" not in answer}
    assert len(good) >= len(whole)
    assert set(counts) <= {"bad key", "bad value", "bad subscription", "bad assignment"}
