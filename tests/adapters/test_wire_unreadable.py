"""What no member can ever consume is no lag: markers, aborted records, deleted and compacted ones, on a real broker."""

import uuid
from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import response as v12
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from adapters.clusters import node
from adapters.eventually import eventually
from adapters.test_wire_offsets import NO_WAIT, Watched, delete_records
from adapters.test_wire_settings import committed, created, filled
from fakes.kafka_node import Node
from patience import Patience, stretched
from switchover.answers.clock import WallClock
from switchover.answers.observed import Known
from switchover.api.meta import GroupHealth
from switchover.cluster.observe.groups import WatchedGroups
from switchover.kafka.client.connection import connected
from switchover.kafka.client.offsets import WireOffsets
from switchover.kafka.client.partition_logs import unreadable
from switchover.lag.group import TopicPartition as Named
from switchover.lag.unreadable import Stretch
from switchover.lag.verdicts import Verdict
from switchover.lag.window import Asked
from switchover.network.credentials import Access
from switchover.network.security import security


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Kafka 4.4 that compacts at once, and coordinates its groups however starved it is."""
    with node(tmp_path_factory.mktemp("kafka-4.4"), "4.4") as server:
        server.begin("log.cleaner.backoff.ms=100\nbroker.session.timeout.ms=60000\n")
        servers = str(server.address)
        committed(servers, "first", [TopicPartition(created(servers), 0, 0)])       # makes the topic of all groups' offsets
        yield servers


def transactional(servers: str) -> Producer:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(stretched(60))
    return producer


def transaction(producer: Producer, topic: str, records: int, *, commit: bool) -> None:
    """That many records and a marker."""
    producer.begin_transaction()
    for number in range(records):
        producer.produce(topic, b"x", key=str(number), partition=0)
    assert producer.flush(stretched(30)) == 0
    (producer.commit_transaction if commit else producer.abort_transaction)(stretched(60))


async def reached(servers: str, topic: str, offset: int, *, read_committed: bool = True) -> int:
    """How far the log is known to have no record from that offset on."""
    group, each = uuid.uuid4().hex, Named(topic, 0)
    asked = Asked(frozenset({topic}), read_committed, {each: Stretch(offset, offset)})
    reading = (await WireOffsets(Access(servers), seconds=stretched(3)).sweep({group: asked})).readings[group]
    assert reading.offsets, reading
    return reading.unreadable.get(each, Stretch(offset, offset)).end


async def test_an_aborted_transaction_at_the_end_is_no_lag_and_one_record_behind_it_is(servers: str) -> None:
    """spring-projects/spring-kafka#2590: commits by hand, and nobody will ever commit past what was aborted."""
    topic, name, producer = created(servers), uuid.uuid4().hex, transactional(servers)
    transaction(producer, topic, 5, commit=True)                                     # 0-4, marker 5
    committed(servers, name, [TopicPartition(topic, 0, 5)])
    transaction(producer, topic, 3, commit=False)                                    # 6-8, marker 9
    reads, peeks = Watched(servers, name, read_committed=True), Watched(servers, name)
    assert (await reads.until(Verdict.IDLE)).lag == 0
    await peeks.until(Verdict.STOPPED)                                               # who reads uncommitted has them to read
    assert (await reached(servers, topic, 5), await reached(servers, topic, 5, read_committed=False)) == (10, 6)
    filled(servers, topic, {0: 1})                                                   # 10
    assert (await reads.until(Verdict.STOPPED)).lag == 1
    assert await reached(servers, topic, 5) == 10


async def test_a_kafka_migration_does_not_wait_for_a_group_to_commit_a_marker(servers: str) -> None:
    """Who has read all of a transactional topic stands one behind for ever, and is stopped only by a record."""
    topic, name = created(servers), uuid.uuid4().hex
    transaction(transactional(servers), topic, 3, commit=True)                       # 0-2, marker 3
    committed(servers, name, [TopicPartition(topic, 0, 3)])
    watched, offsets = WatchedGroups(WallClock()), WireOffsets(Access(servers), seconds=stretched(3))

    async def found() -> tuple[Verdict, int] | None:
        seen = (await watched.seen([GroupHealth(name=name, max_stall_seconds=6)], offsets))[name]
        if not isinstance(seen, Known):
            return None
        (row,) = seen.value.rows
        return Verdict(seen.value.judged.verdict[row]), int(seen.value.judged.quantities.lag[row])

    assert await eventually(found, lambda told: told is not None) == (Verdict.OK, 1)
    assert await eventually(found, lambda told: told is not None and told[1] == 0) == (Verdict.IDLE, 0)
    filled(servers, topic, {0: 1})                                                   # 4
    assert await eventually(found, lambda told: told is not None and told[1] > 0) == (Verdict.OK, 1)
    assert await eventually(found, lambda told: told is not None and told[0] is not Verdict.OK) == (Verdict.STOPPED, 1)


async def test_two_markers_at_the_end_are_no_lag_however_the_group_reads(servers: str) -> None:
    topic, name, producers = created(servers), uuid.uuid4().hex, [transactional(servers), transactional(servers)]
    for producer in producers:
        producer.begin_transaction()
        producer.produce(topic, b"x", partition=0)
        assert producer.flush(stretched(30)) == 0
    for producer in producers:
        producer.commit_transaction(stretched(60))
    committed(servers, name, [TopicPartition(topic, 0, 2)])
    for read_committed in (True, False):
        await eventually(partial(reached, servers, topic, 2, read_committed=read_committed), lambda found: found == 4)
        assert await reached(servers, topic, 1, read_committed=read_committed) == 1
        assert (await Watched(servers, name, read_committed=read_committed).until(Verdict.IDLE)).lag == 0


async def test_a_log_emptied_behind_a_commit_is_no_lag_and_a_record_that_is_left_is(servers: str) -> None:
    topic, name = created(servers), uuid.uuid4().hex
    filled(servers, topic, {0: 20})
    committed(servers, name, [TopicPartition(topic, 0, 5)])
    delete_records(servers, topic, 20)
    await Watched(servers, name).until(Verdict.IDLE)
    filled(servers, topic, {0: 1})
    await Watched(servers, name).until(Verdict.LOST)


async def test_a_group_that_never_committed_has_nothing_to_commit_where_there_is_no_record(servers: str) -> None:
    topic, name, producer = created(servers, 2), uuid.uuid4().hex, transactional(servers)
    transaction(producer, topic, 3, commit=False)
    committed(servers, name, [TopicPartition(topic, 1, 0)])                  # of the topic, and not of this partition
    watched = Watched(servers, name, read_committed=True)
    await watched.until(Verdict.IDLE)
    transaction(producer, topic, 1, commit=True)
    await eventually(watched.poll, lambda seen: seen.verdicts[Verdict.UNCOMMITTED] == 1)
    assert await reached(servers, topic, 0) == 4


async def test_a_log_of_which_a_marker_is_left_is_empty(servers: str) -> None:
    topic, name, producer = created(servers), uuid.uuid4().hex, transactional(servers)
    transaction(producer, topic, 5, commit=True)
    committed(servers, name, [TopicPartition(topic, 0, 2)])
    delete_records(servers, topic, 5)
    await Watched(servers, name).until(Verdict.IDLE)


async def test_what_compaction_took_out_is_passed_over_also_within_a_batch(servers: str) -> None:
    topic, producer = created(servers, config={
        "cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": "0"}), transactional(servers)
    together = Producer({"bootstrap.servers": servers, "linger.ms": 500})
    together.produce(topic, b"x", key="kept", partition=0)                           # 0
    together.produce(topic, None, key="gone", partition=0)                           # 1, in the same batch
    assert together.flush(stretched(30)) == 0
    assert await reached(servers, topic, 1) == 1
    patience = Patience(90)
    while first_at(servers, topic, 1) <= 1:         # every transaction begins a segment, and lets one be cleaned
        assert not patience.over
        transaction(producer, topic, 2, commit=False)
    transaction(producer, topic, 2, commit=False)
    end = await eventually(partial(reached, servers, topic, 1), lambda found: found == ends(servers, topic)[1])
    assert await reached(servers, topic, 0) == 0
    filled(servers, topic, {0: 1})
    assert await reached(servers, topic, 1) == end


def first_at(servers: str, topic: str, offset: int) -> int:
    """The first record from there on, aborted or not; -1 when none came in time."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "isolation.level": "read_uncommitted"})
    consumer.assign([TopicPartition(topic, 0, offset)])
    found = consumer.poll(stretched(5))
    consumer.close()
    if found is None:
        return -1
    assert found.error() is None
    return found.offset() or 0


def ends(servers: str, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic})
    found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, 0), stretched(30))
    consumer.close()
    return found


async def test_a_long_stretch_is_looked_at_in_bounded_answers(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in ("FIRST_BYTES", "MOST_BYTES"):
        monkeypatch.setattr(f"switchover.kafka.client.partition_logs.{size}", 1)        # one batch each
    monkeypatch.setattr("switchover.kafka.client.offsets.LOOK_SECONDS", stretched(10))
    topic, producer = created(servers), transactional(servers)
    for _ in range(5):
        transaction(producer, topic, 1, commit=False)
    transaction(producer, topic, 1, commit=True)
    assert await reached(servers, topic, 0) == 10


@pytest.mark.parametrize("responses", [
    (), (v12.FetchableTopicResponse(topic=TopicName("t"), partitions=(v12.PartitionData(
        partition_index=i32(0), error_code=ErrorCode.topic_authorization_failed, high_watermark=i64(-1),
        aborted_transactions=None, records=None),)),)], ids=["a quota is used up", "no right to read"])
async def test_an_answer_that_tells_nothing_prolongs_nothing(responses: tuple[v12.FetchableTopicResponse, ...]) -> None:
    def script(_key: int, _request: bytes) -> object:
        return v12.FetchResponse(throttle_time=NO_WAIT, error_code=ErrorCode.none, responses=responses)

    async with Node(script) as leader, connected(leader.address, security({}), stretched(3)) as connection:
        assert [each async for each in unreadable(connection, Named("t", 0), 5, 9, read_committed=True)] == []
