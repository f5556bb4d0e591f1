"""Follows the metadata log of a KRaft quorum with Fetch requests to its leader (feasibility-kraft.md 3.1).

The answers are those of a consumer's request (replica id -1), so the reader never shows among the quorum's observers.
"""

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from kio.records.readers import read_batch
from kio.records.schema import RecordBatch
from kio.schema.fetch.v13 import FetchRequest, FetchResponse
from kio.schema.fetch.v13.request import FetchPartition, FetchTopic
from kio.schema.fetch.v13.response import PartitionData
from kio.static.primitive import i32, i32Timedelta, i64

from switchover.adapters.wire_connection import Connection, succeeded
from switchover.core.kraft.facts import Address, LogImage
from switchover.metadata.decode import MetadataLogError, decode
from switchover.metadata.replay import Replay
from switchover.ports import Refused, Unreachable

METADATA_TOPIC_ID = UUID(int=1)
MAX_BYTES = i32(8 * 1024 * 1024)
BATCHES_BETWEEN_PAUSES = 500             # about 10 ms of work, then others may run

_BATCH_HEAD = struct.Struct(">qiibIh")   # base offset, length, leader epoch, magic, checksum, attributes
_LENGTH_COUNTS_FROM = 12
_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_CONTROL = 0x20


@dataclass(frozen=True, slots=True)
class _Tail:
    """The last batch applied. It is read again each time, to see that the log still is the same one."""

    base_offset: int
    last_offset: int
    checksum: int
    epoch: int
    epoch_before: int


class MetadataLog:
    """The position in the log and what was replayed up to there. One `follow` at a time."""

    def __init__(self) -> None:
        self._restart()

    def _restart(self) -> None:
        self._tail: _Tail | None = None
        self._replay = Replay()

    async def follow(self, leader: Address, connection: Connection, leader_epoch: int) -> LogImage:
        """Read on to the high watermark; start again from offset 0 when the log is not the one read before.

        Raises Refused when the start of the log is gone or cannot be understood. What was read stays when this is
        interrupted.
        """
        if self._tail is not None and self._tail.epoch > leader_epoch:
            self._restart()
        while True:
            partition = await self._fetch(leader, connection, leader_epoch)
            if partition.snapshot_id.end_offset >= 0 and self._tail is None:
                raise Refused(f"{leader}: the metadata log was trimmed, its first offset is "
                              f"{partition.log_start_offset}; reading snapshots (FetchSnapshot) is not supported yet")
            if partition.snapshot_id.end_offset >= 0 or partition.diverging_epoch.epoch >= 0:
                self._restart()
                continue
            if partition.high_watermark < 0:
                raise Unreachable(f"{leader}: the new leader does not know its high watermark yet")
            before = self._tail
            if not await self._apply(leader, partition):
                self._restart()
                continue
            if self._offset >= partition.high_watermark:
                return self._replay.image()
            if self._tail == before:
                raise Unreachable(f"{leader}: no record between offset {self._offset} and the high watermark "
                                  f"{partition.high_watermark}")

    @property
    def _offset(self) -> int:
        """The next offset to apply."""
        return 0 if self._tail is None else self._tail.last_offset + 1

    async def _fetch(self, leader: Address, connection: Connection, leader_epoch: int) -> PartitionData:
        tail = self._tail
        answer = await connection.ask(FetchRequest(
            max_wait=i32Timedelta.parse(timedelta()),
            min_bytes=i32(0),
            max_bytes=MAX_BYTES,
            topics=(FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(FetchPartition(
                partition=i32(0),
                current_leader_epoch=i32(leader_epoch),
                fetch_offset=i64(tail.base_offset if tail else 0),
                last_fetched_epoch=i32(tail.epoch_before if tail else 0),
                partition_max_bytes=MAX_BYTES,
            ),)),),
            forgotten_topics_data=(),
        ), FetchResponse)
        succeeded(leader, answer.error_code, "read the metadata log", "ClusterAction")
        if len(answer.responses) != 1 or len(answer.responses[0].partitions) != 1:
            raise Unreachable(f"{leader}: answered without the metadata log")
        partition = answer.responses[0].partitions[0]
        succeeded(leader, partition.error_code, "read the metadata log", "ClusterAction")
        return partition

    async def _apply(self, leader: Address, partition: PartitionData) -> bool:
        """Replay the committed batches. False when the first one is not the tail, which was asked for again."""
        batches = _batches(leader, partition.records or b"")
        if self._tail is not None:
            first = next(batches, None)
            if first is None or (first.base_offset, first.crc) != (self._tail.base_offset, self._tail.checksum):
                return False
        for count, batch in enumerate(batches, start=1):
            last_offset = batch.base_offset + batch.last_offset_delta
            if last_offset >= partition.high_watermark:
                break
            try:
                if not batch.attributes & _CONTROL:
                    for record in batch.records:
                        self._replay.apply(decode(record.value or b"", record.offset), record.offset)
            except MetadataLogError as error:
                self._restart()
                raise Refused(f"{leader}: {error}; only logs of Kafka 3.9 can be read") from error
            self._replay.advance(last_offset, batch.partition_leader_epoch)
            self._tail = _Tail(batch.base_offset, last_offset, batch.crc, batch.partition_leader_epoch,
                               epoch_before=self._tail.epoch if self._tail else 0)
            if count % BATCHES_BETWEEN_PAUSES == 0:
                await asyncio.sleep(0)
        return True


def _batches(leader: Address, data: bytes) -> Iterator[RecordBatch]:
    """The complete batches of an answer; the last one may be cut off."""
    position = 0
    while position + _BATCH_HEAD.size <= len(data):
        offset, length, _, _, _, attributes = _BATCH_HEAD.unpack_from(data, position)
        if position + _LENGTH_COUNTS_FROM + length > len(data):
            return
        if codec := attributes & 0x07:
            raise Refused(f"{leader}: the metadata log is compressed ({_CODECS.get(codec, codec)}) at offset {offset}, "
                          "which Kafka 3.9 never does; such a log cannot be read")
        try:
            batch, size = read_batch(data, position)
        except ValueError as error:
            raise Unreachable(f"{leader}: damaged batch at offset {offset} of the metadata log: {error}") from error
        yield batch
        position += size
