"""Follows the metadata log of a KRaft quorum with Fetch requests to its leader
(docs/facts/kraft.md#the-metadata-log-over-the-wire).

Where the log was trimmed, its beginning is a snapshot, read with FetchSnapshot (KIP-630): the same records, between two
control records. The answers are those of a consumer's request (replica id -1), so the reader never shows among the quorum's
observers.
"""

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from kio.records.readers import read_batch
from kio.records.schema import RecordBatch
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import FetchRequest, FetchResponse
from kio.schema.fetch.v13.request import FetchPartition, FetchTopic
from kio.schema.fetch.v13.response import PartitionData
from kio.schema.fetch_snapshot.v0 import FetchSnapshotRequest, FetchSnapshotResponse
from kio.schema.fetch_snapshot.v0.request import PartitionSnapshot, SnapshotId, TopicSnapshot
from kio.schema.fetch_snapshot.v0.response import PartitionSnapshot as SnapshotPart
from kio.schema.types import TopicName
from kio.serial.errors import SerialError
from kio.static.primitive import i32, i32Timedelta, i64

from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.connection import Connection, succeeded
from switchover.metadata.decode import MetadataLogError, decode
from switchover.metadata.parity import LogImage
from switchover.metadata.replay import Replay
from switchover.network.addresses import Address

METADATA_TOPIC = TopicName("__cluster_metadata")
METADATA_TOPIC_ID = UUID(int=1)
MAX_BYTES = i32(8 * 1024 * 1024)
RECORDS_BETWEEN_PAUSES = 500             # about 10 ms of work, then others may run

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


@dataclass(slots=True)
class _Progress:
    """A replay and the offset of the last record in it: a batch that was interrupted half-way is taken up there."""

    replay: Replay = field(default_factory=Replay)
    last: int = -1

    async def apply(self, batch: RecordBatch) -> None:
        """Replay what is new in a batch. Raises MetadataLogError."""
        if batch.attributes & _CONTROL:
            return
        for record in batch.records:
            if record.offset <= self.last:
                continue
            self.replay.apply(decode(record.value or b"", record.offset), record.offset)
            self.last = record.offset
            if record.offset % RECORDS_BETWEEN_PAUSES == 0:
                await asyncio.sleep(0)


@dataclass(slots=True)
class _Snapshot:
    """A snapshot that is being read: up to `position`, with `rest` the beginning of a batch not complete yet."""

    end_offset: int
    epoch: int
    progress: _Progress = field(default_factory=_Progress)
    position: int = 0
    rest: bytes = b""


class MetadataLog:
    """The position in the log and what was replayed up to there. One `follow` at a time."""

    def __init__(self) -> None:
        self._restart()

    def _restart(self) -> None:
        self._begin, self._begin_epoch = 0, 0               # where the log begins for us: at 0, or after a snapshot
        self._snapshot: _Snapshot | None = None
        self._tail: _Tail | None = None
        self._progress = _Progress()

    async def follow(self, leader: Address, connection: Connection, leader_epoch: int,
                     cluster_id: str | None = None) -> LogImage:
        """Read on to the high watermark; start again from the beginning when the log is not the one read before.

        Raises Refused when the log cannot be understood, or is that of another cluster, which the leader compares. What was
        read stays when this is interrupted.
        """
        if self._epoch > leader_epoch:
            self._restart()
        while True:
            if self._snapshot is not None:
                await self._read_snapshot(leader, connection, leader_epoch, self._snapshot)
                continue
            partition = await self._fetch(leader, connection, leader_epoch, cluster_id)
            if partition.snapshot_id.end_offset >= 0:
                self._restart()
                self._snapshot = _Snapshot(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
                continue
            if partition.diverging_epoch.epoch >= 0:
                self._restart()
                continue
            if partition.high_watermark < 0:
                raise Unreachable(f"{leader}: the new leader does not know its high watermark yet")
            before = self._tail
            if not await self._apply(leader, partition):
                self._restart()
                continue
            if self._offset >= partition.high_watermark:
                return self._progress.replay.image()
            if self._tail == before:
                raise Unreachable(f"{leader}: no record between offset {self._offset} and the high watermark "
                                  f"{partition.high_watermark}")

    @property
    def _offset(self) -> int:
        """The next offset to apply."""
        return self._begin if self._tail is None else self._tail.last_offset + 1

    @property
    def _epoch(self) -> int:
        """The newest leader epoch read."""
        if self._snapshot is not None:
            return self._snapshot.epoch
        return self._begin_epoch if self._tail is None else self._tail.epoch

    async def _read_snapshot(self, leader: Address, connection: Connection, leader_epoch: int, snapshot: _Snapshot) -> None:
        """Read on in a snapshot; at its end the log goes on from there. One that is gone is given up."""
        part = await self._fetch_snapshot(leader, connection, leader_epoch, snapshot)
        if part.error_code in (ErrorCode.snapshot_not_found, ErrorCode.position_out_of_range):
            self._restart()
            return
        succeeded(leader, part.error_code, "read a snapshot of the metadata log", "ClusterAction")
        data, done = snapshot.rest + bytes(part.unaligned_records or b""), 0
        if part.position != snapshot.position or len(data) == len(snapshot.rest):
            raise Unreachable(f"{leader}: a snapshot of the metadata log ends at byte {snapshot.position} of {part.size}")
        for batch, end in _batches(leader, data):
            await self._replay(leader, batch, snapshot.progress)
            done = end
        snapshot.position, snapshot.rest = snapshot.position + len(data) - len(snapshot.rest), data[done:]
        if snapshot.position < part.size:
            return
        if snapshot.rest:
            raise Unreachable(f"{leader}: a snapshot of the metadata log ends within a batch")
        self._snapshot, self._progress = None, _Progress(snapshot.progress.replay, snapshot.end_offset - 1)
        self._begin, self._begin_epoch = snapshot.end_offset, snapshot.epoch
        self._progress.replay.advance(snapshot.end_offset - 1, snapshot.epoch)

    async def _fetch_snapshot(
        self, leader: Address, connection: Connection, leader_epoch: int, snapshot: _Snapshot,
    ) -> SnapshotPart:
        answer = await connection.ask(FetchSnapshotRequest(
            max_bytes=MAX_BYTES,
            topics=(TopicSnapshot(name=METADATA_TOPIC, partitions=(PartitionSnapshot(
                partition=i32(0),
                current_leader_epoch=i32(leader_epoch),
                snapshot_id=SnapshotId(end_offset=i64(snapshot.end_offset), epoch=i32(snapshot.epoch)),
                position=i64(snapshot.position),
            ),)),),
        ), FetchSnapshotResponse)
        succeeded(leader, answer.error_code, "read a snapshot of the metadata log", "ClusterAction")
        if len(answer.topics) != 1 or len(answer.topics[0].partitions) != 1:
            raise Unreachable(f"{leader}: answered without a snapshot of the metadata log")
        return answer.topics[0].partitions[0]

    async def _fetch(self, leader: Address, connection: Connection, leader_epoch: int,
                     cluster_id: str | None) -> PartitionData:
        tail = self._tail
        answer = await connection.ask(FetchRequest(
            cluster_id=cluster_id,
            max_wait=i32Timedelta.parse(timedelta()),
            min_bytes=i32(0),
            max_bytes=MAX_BYTES,
            topics=(FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(FetchPartition(
                partition=i32(0),
                current_leader_epoch=i32(leader_epoch),
                fetch_offset=i64(tail.base_offset if tail else self._begin),
                last_fetched_epoch=i32(tail.epoch_before if tail else self._begin_epoch),
                partition_max_bytes=MAX_BYTES,
            ),)),),
            forgotten_topics_data=(),
        ), FetchResponse)
        if answer.error_code is ErrorCode.inconsistent_cluster_id:
            raise Refused(f"{leader}: is a controller of another cluster than {cluster_id}")
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
            first, _ = next(batches, (None, 0))
            if first is None or (first.base_offset, first.crc) != (self._tail.base_offset, self._tail.checksum):
                return False
        for batch, _ in batches:
            last_offset = batch.base_offset + batch.last_offset_delta
            if last_offset >= partition.high_watermark:
                break
            await self._replay(leader, batch, self._progress)
            self._progress.replay.advance(last_offset, batch.partition_leader_epoch)
            self._tail = _Tail(batch.base_offset, last_offset, batch.crc, batch.partition_leader_epoch,
                               epoch_before=self._tail.epoch if self._tail else self._begin_epoch)
        return True

    async def _replay(self, leader: Address, batch: RecordBatch, progress: _Progress) -> None:
        try:
            await progress.apply(batch)
        except MetadataLogError as error:
            self._restart()
            raise Refused(f"{leader}: {error}; only logs of Kafka 3.9 can be read") from error


def _batches(leader: Address, data: bytes) -> Iterator[tuple[RecordBatch, int]]:
    """The complete batches of an answer, each with the position after it; the last one may be cut off."""
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
        except (SerialError, ValueError, OverflowError, OSError) as error:      # OSError: a time that the platform has not
            raise Unreachable(f"{leader}: damaged batch at offset {offset} of the metadata log: {error}") from error
        position += size
        yield batch, position
