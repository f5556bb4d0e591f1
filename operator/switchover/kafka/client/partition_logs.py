"""The log of a partition: where it begins and ends, and stretches in which a consumer finds no record."""

import struct
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import timedelta
from typing import NamedTuple

from kio.records.readers import read_batch
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.schema.fetch.v12.response import AbortedTransaction, PartitionData
from kio.schema.list_offsets.v7 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.types import BrokerId, TopicName
from kio.serial.errors import SerialError
from kio.static.primitive import i8, i32, i32Timedelta, i64

from switchover.kafka.client.connection import Connection
from switchover.shared.grouped import grouped
from switchover.shared.partition import TopicPartition

READ_UNCOMMITTED, READ_COMMITTED = i8(0), i8(1)
LATEST, EARLIEST = i64(-1), i64(-2)
CONSUMER = BrokerId(-1)
DEBUGGER = BrokerId(-2)
"""A follower answers it as well as the leader, and each with the end of its own log
(ListOffsetsRequest.DEBUGGING_REPLICA_ID, ReplicaManager.fetchOffsetForTimestamp)."""

_ERRORS = {
    ErrorCode.group_authorization_failed: "our user is not allowed to ask; it needs DESCRIBE on the group",
    ErrorCode.topic_authorization_failed: "our user is not allowed to ask; it needs DESCRIBE on the topic",
    ErrorCode.not_coordinator: "the group's coordinator has moved",
    ErrorCode.coordinator_load_in_progress: "the group's coordinator is still loading its groups",
    ErrorCode.coordinator_not_available: "the group has no coordinator: its partition of __consumer_offsets has no leader",
    ErrorCode.not_leader_or_follower: "the partition's leader has moved",
    ErrorCode.leader_not_available: "the partition has no leader",
    ErrorCode.offset_not_available: "the partition's new leader does not know its end yet",
}


async def list_offsets(broker: Connection, partitions: Iterable[TopicPartition], isolation: i8, timestamp: i64,
                       asking: BrokerId = CONSUMER) -> dict[TopicPartition, int | str]:
    """An offset of each, or why there is none; nothing is asked about no partition."""
    if not (topics := grouped(partitions)):
        return {}
    answer = await broker.ask(ListOffsetsRequest(
        replica_id=asking,
        isolation_level=isolation,
        topics=tuple(ListOffsetsTopic(name=TopicName(topic), partitions=tuple(
            ListOffsetsPartition(partition_index=i32(number), timestamp=timestamp) for number in numbers))
            for topic, numbers in topics.items()),
    ), ListOffsetsResponse)
    return {
        TopicPartition(topic.name, partition.partition_index):
            partition.offset if partition.error_code is ErrorCode.none else error_text(partition.error_code)
        for topic in answer.topics for partition in topic.partitions}


def error_text(code: ErrorCode) -> str:
    """What an error of Kafka's says, for people."""
    return f"{_ERRORS[code]} ({code.name.upper()})" if code in _ERRORS else code.name.upper()


FIRST_BYTES, MOST_BYTES = 16 * 1024, 1024 * 1024        # of one answer; a first batch that is larger comes whole
MOST_RECORDS = 1000         # of a batch that is read whole: some 20 ms

_HEAD = struct.Struct(">qiibIhiqqqhii")
_LENGTH_COUNTS_FROM = 12
_MAGIC = 2
_CODEC, _TRANSACTIONAL, _CONTROL = 0x07, 0x10, 0x20


class _Batch(NamedTuple):
    """The head of a batch, and where the batch begins and ends in the answer."""

    first: int
    last: int
    magic: int
    attributes: int
    producer: int
    records: int
    begin: int
    end: int


async def unreadable(
    leader: Connection, partition: TopicPartition, offset: int, end: int, *, read_committed: bool,
) -> AsyncIterator[int]:
    """Offsets that rise from `offset` to the first record, or to `end`: before each of them there is no record.

    Markers, aborted records and what compaction removed are passed over. The heads of the batches show which these are, as
    for Kafka's own consumer (CompletedFetch.java): a control batch has no record for anybody; of an aborted transaction the
    answer names producer and first offset, and its marker ends it.

    None of them where the leader does not answer, or a batch may have a record. An answer without a batch proves nothing
    either: old segments may lie elsewhere and not come in time.
    """
    size = FIRST_BYTES
    while offset < end:
        answer = await _fetch(leader, partition, offset, size, read_committed=read_committed)
        if answer is None:
            return
        reached = _reached(answer, offset)
        if reached == offset:
            return
        yield min(reached, end)
        offset, size = reached, min(4 * size, MOST_BYTES)


async def _fetch(
    leader: Connection, partition: TopicPartition, offset: int, size: int, *, read_committed: bool,
) -> PartitionData | None:
    answer = await leader.ask(FetchRequest(
        max_wait=i32Timedelta.parse(timedelta()),
        min_bytes=i32(0),
        max_bytes=i32(size),
        isolation_level=i8(read_committed),
        topics=(FetchTopic(topic=TopicName(partition.topic), partitions=(FetchPartition(
            partition=i32(partition.partition), fetch_offset=i64(offset), partition_max_bytes=i32(size)),)),),
        forgotten_topics_data=(),
    ), FetchResponse)
    found = [each for topic in answer.responses for each in topic.partitions]        # none when a quota is used up
    return found[0] if len(found) == 1 else None                                     # with an error it has no records


def _batches(data: bytes) -> Iterator[_Batch]:
    """The batches of an answer whose heads are there; of the last one the end may be missing."""
    begin = 0
    while begin + _HEAD.size <= len(data):
        first, length, _, magic, _, attributes, delta, _, _, producer, _, _, records = _HEAD.unpack_from(data, begin)
        end = begin + _LENGTH_COUNTS_FROM + length
        yield _Batch(first, first + delta, magic, attributes, producer, records, begin, end)
        begin = max(end, begin + _HEAD.size)


def _reached(answer: PartitionData, offset: int) -> int:
    """Before which offset the batches of the answer have no record."""
    waiting = sorted(answer.aborted_transactions or (), key=lambda each: each.first_offset, reverse=True)
    aborted: set[int] = set()
    for batch in _batches(answer.records or b""):
        if batch.magic != _MAGIC:
            return offset                                   # of before Kafka 0.11: without transactions
        _begin(waiting, aborted, batch.last)
        if batch.attributes & _CONTROL:
            aborted.discard(batch.producer)
        elif not (batch.attributes & _TRANSACTIONAL and batch.producer in aborted) and _has_record(answer, batch, offset):
            return max(offset, batch.first)
        offset = max(offset, batch.last + 1)
    return offset


def _begin(waiting: list[AbortedTransaction], aborted: set[int], last: int) -> None:
    while waiting and waiting[-1].first_offset <= last:
        aborted.add(waiting.pop().producer_id)


def _has_record(answer: PartitionData, batch: _Batch, offset: int) -> bool:
    """Whether a record of the batch is at that offset or behind it; yes where that is not known.

    Compaction takes records out and leaves the batch its first and last offset.
    """
    if batch.last < offset or batch.records == 0:
        return False
    whole = batch.records > batch.last - batch.first
    if batch.first >= offset or whole or batch.attributes & _CODEC or batch.records > MOST_RECORDS:
        return True
    try:
        found, _ = read_batch((answer.records or b"")[batch.begin:batch.end], 0)
    except (SerialError, ValueError, OverflowError, OSError):       # OSError: a time that the platform has not
        return True
    return any(record.offset >= offset for record in found.records)
