"""How far a log has no record for a consumer: markers, aborted records and what compaction took away are passed over.

Batches are told by their heads, as Kafka's own consumer tells them (CompletedFetch.java): a control batch has no record for
anybody; of a transaction that was aborted the answer names producer and first offset, and its marker ends it.
"""

import struct
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import NamedTuple

from kio.records.readers import read_batch
from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.schema.fetch.v12.response import AbortedTransaction, PartitionData
from kio.schema.types import TopicName
from kio.serial.errors import SerialError
from kio.static.primitive import i8, i32, i32Timedelta, i64

from switchover.kafka.client.connection import Connection
from switchover.lag.group import TopicPartition

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

    None of them where the leader does not tell, or a batch cannot be told from one with a record. An answer without a batch
    tells nothing either: old segments may lie elsewhere and not come in time.
    """
    size = FIRST_BYTES
    while offset < end:
        told = await _fetch(leader, partition, offset, size, read_committed=read_committed)
        if told is None:
            return
        reached = _reached(told, offset)
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


def _reached(told: PartitionData, offset: int) -> int:
    """Before which offset the batches of the answer have no record."""
    waiting = sorted(told.aborted_transactions or (), key=lambda each: each.first_offset, reverse=True)
    aborted: set[int] = set()
    for batch in _batches(told.records or b""):
        if batch.magic != _MAGIC:
            return offset                                   # of before Kafka 0.11: without transactions
        _begin(waiting, aborted, batch.last)
        if batch.attributes & _CONTROL:
            aborted.discard(batch.producer)
        elif not (batch.attributes & _TRANSACTIONAL and batch.producer in aborted) and _has_record(told, batch, offset):
            return max(offset, batch.first)
        offset = max(offset, batch.last + 1)
    return offset


def _begin(waiting: list[AbortedTransaction], aborted: set[int], last: int) -> None:
    while waiting and waiting[-1].first_offset <= last:
        aborted.add(waiting.pop().producer_id)


def _has_record(told: PartitionData, batch: _Batch, offset: int) -> bool:
    """Whether a record of the batch is at that offset or behind it; yes where that cannot be told.

    Compaction takes records out and leaves the batch its first and last offset.
    """
    if batch.last < offset or batch.records == 0:
        return False
    whole = batch.records > batch.last - batch.first
    if batch.first >= offset or whole or batch.attributes & _CODEC or batch.records > MOST_RECORDS:
        return True
    try:
        found, _ = read_batch((told.records or b"")[batch.begin:batch.end], 0)
    except (SerialError, ValueError, OverflowError, OSError):       # OSError: a time that the platform has not
        return True
    return any(record.offset >= offset for record in found.records)
