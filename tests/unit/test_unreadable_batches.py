"""How far batches have no record, as a leader may send them; a real one is asked in adapters/test_wire_unreadable.py."""

import struct
from collections.abc import Sequence

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.response import AbortedTransaction, PartitionData
from kio.schema.types import ProducerId
from kio.static.primitive import Records, i32, i64

from switchover.kafka.client.partition_logs import _reached

PLAIN, COMPRESSED, TRANSACTION, MARKER = 0, 0x04, 0x10, 0x30


def batch(first: int, last: int, attributes: int = PLAIN, *, producer: int = 7, records: int | None = None,
          magic: int = 2) -> bytes:
    """A batch with a body that nobody can read."""
    count = last - first + 1 if records is None else records
    return struct.pack(">qiibIhiqqqhii", first, 49 + 5, 0, magic, 0, attributes, last - first, 0, 0, producer, 0, 0,
                       count) + b"12345"


def reached(offset: int, batches: Sequence[bytes], *aborted: tuple[int, int], cut: int = 0) -> int:
    data = b"".join(batches)
    return _reached(PartitionData(
        partition_index=i32(0), error_code=ErrorCode.none, high_watermark=i64(10**6),
        aborted_transactions=tuple(AbortedTransaction(producer_id=ProducerId(producer), first_offset=i64(first))
                                   for producer, first in aborted),
        records=Records(data[:len(data) - cut])), offset)


@pytest.mark.parametrize(("batches", "aborted", "wanted"), [
    ([], (), 5),
    ([batch(5, 9)], (), 5),
    ([batch(5, 9, MARKER)], (), 10),
    ([batch(5, 5, MARKER), batch(6, 6, MARKER), batch(7, 7)], (), 7),
    ([batch(5, 8, TRANSACTION), batch(9, 9, MARKER)], ((7, 5),), 10),
    ([batch(5, 8, TRANSACTION), batch(9, 9, MARKER)], (), 5),                           # it was committed
    ([batch(5, 8, TRANSACTION), batch(9, 9, MARKER)], ((7, 2),), 10),                   # it began before
    ([batch(5, 8, TRANSACTION), batch(9, 9, MARKER)], ((8, 5),), 5),                    # of another producer
    ([batch(5, 8), batch(9, 9, MARKER)], ((7, 5),), 5),                                 # no part of the transaction
    ([batch(5, 6, TRANSACTION), batch(7, 7, MARKER), batch(8, 9, TRANSACTION)], ((7, 5),), 8),
    ([batch(5, 6, TRANSACTION), batch(7, 7, MARKER), batch(8, 9, TRANSACTION)], ((7, 5), (7, 8)), 10),
    ([batch(5, 6, TRANSACTION), batch(7, 7, MARKER), batch(8, 9, TRANSACTION)], ((7, 8), (7, 5)), 10),
    ([batch(5, 6, TRANSACTION), batch(7, 8, TRANSACTION, producer=8)], ((7, 5),), 7),
    ([batch(3, 9, records=0)], (), 10),                                                 # compaction left the batch alone
    ([batch(20, 20, MARKER)], (), 21),                                                  # a hole before it
    ([batch(20, 21)], (), 20),
    ([batch(0, 4)], (), 5),
    ([batch(0, 9, records=3)], (), 5),                                                  # which of them cannot be read
    ([batch(0, 9, COMPRESSED, records=3)], (), 5),
    ([batch(5, 9, records=3)], (), 5),
    ([batch(5, 9, MARKER, magic=1)], (), 5),
])
def test_how_far_batches_have_no_record(batches: Sequence[bytes], aborted: Sequence[tuple[int, int]], wanted: int) -> None:
    assert reached(5, batches, *aborted) == wanted


@pytest.mark.parametrize(("cut", "wanted"), [(1, 7), (5, 7), (6, 6)])
def test_the_head_of_the_last_batch_is_enough(cut: int, wanted: int) -> None:
    assert reached(5, [batch(5, 5, MARKER), batch(6, 6, MARKER)], cut=cut) == wanted


@pytest.mark.parametrize("length", [-100, -12, 0, 2**31 - 1])
def test_a_length_that_is_nonsense_ends_the_walk(length: int) -> None:
    wrong = bytearray(batch(5, 5, MARKER))
    wrong[8:12] = struct.pack(">i", length)
    assert reached(5, [bytes(wrong), bytes(wrong)]) == 6
