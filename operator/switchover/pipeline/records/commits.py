"""Offset commits of `__consumer_offsets`, in all records at once: numpy reads the bytes of an Arrow array.

A key is an int16 type, then for the types 0 and 1 group and topic (int16 length and UTF-8) and an int32 partition. A value
is an int16 version, then

    0, 2    int64 offset                     string metadata           int64 time
    1       int64 offset                     string metadata           int64 time   int64 expiry
    3       int64 offset  int32 leader epoch string metadata           int64 time
    4       int64 offset  int32 leader epoch compact string metadata   int64 time   tagged fields

(OffsetCommitKey and OffsetCommitValue of Kafka 3.9 to 4.4; golden vectors in the tests.) The tagged field 0 is the topic's
id. Bytes after the last field are passed over, as Kafka does. Numbers are big-endian, as Kafka writes them. Positions that
are asked for have been found to lie within a row.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from switchover.pipeline.tables import COMMITS

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LONGEST_VARINT = 5
"""Bytes of a 32-bit number with seven bits in each."""


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Row i is `data[start[i]:end[i]]`, which means nothing where `null[i]`."""

    data: NDArray[np.uint8]
    start: Ints
    end: Ints
    null: Bools

    @staticmethod
    def of(array: pa.Array) -> "Spans":
        """Of an Arrow array of type binary or large_binary, whole or a slice, without a copy of the bytes."""
        null = array.is_null().to_numpy(zero_copy_only=False)
        _, offsets, data = array.buffers()
        if len(array) == 0 or offsets is None:
            nowhere = np.zeros(len(array), np.int64)
            return Spans(np.zeros(0, np.uint8), nowhere, nowhere, null)
        width = np.int64 if pa.types.is_large_binary(array.type) else np.int32
        at = np.frombuffer(offsets, width, len(array) + 1, array.offset * np.dtype(width).itemsize).astype(np.int64)
        # A slice shares the buffers of the whole: what lies outside of it is cut off here, once.
        own = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[at[0]:at[-1]]
        at -= at[0]
        return Spans(own, at[:-1], at[1:], null)

    def number(self, dtype: str, positions: Ints) -> Ints:
        """Numbers of a big-endian numpy type such as ">i8", one at each position."""
        if not len(positions):
            return np.zeros(0, np.int64)
        kind = np.dtype(dtype)
        # A view with an element at every byte: numpy reads unaligned ones as well.
        everywhere: NDArray[Any] = np.ndarray((len(self.data) - kind.itemsize + 1,), kind, self.data, strides=(1,))
        return everywhere[positions].astype(np.int64)

    def varint(self, positions: Ints, end: Ints) -> tuple[Ints, Ints, Bools]:
        """Unsigned variable-length numbers of 32 bits: the numbers, the positions after them, and which are whole.

        One is not whole when it goes on at `end` or after five bytes, or is above the largest int32.
        """
        number, after, going = np.zeros(len(positions), np.int64), positions.copy(), np.arange(len(positions))
        whole = np.zeros(len(positions), np.bool_)
        for shift in range(0, 7 * LONGEST_VARINT, 7):
            going = going[after[going] < end[going]]
            byte = self.data[after[going]].astype(np.int64)
            number[going] |= (byte & 0x7F) << shift
            after[going] += 1
            last = byte < 0x80
            whole[going[last]] = True
            going = going[~last]
            if not len(going):
                break
        return number, after, whole & (number <= np.iinfo(np.int32).max)

    def strings(self, start: Ints, end: Ints) -> pa.Array:
        """An Arrow array of strings, each of which begins after the one before it; what is not UTF-8 becomes U+FFFD."""
        bounds = np.column_stack([start, end]).ravel()
        # Every second row is what lies between two strings; Arrow leaves it out while it copies.
        both = pa.Array.from_buffers(pa.large_binary(), max(len(bounds) - 1, 0),
                                     [None, pa.py_buffer(bounds), pa.py_buffer(self.data)])
        raw = both.take(pa.array(np.arange(0, len(bounds), 2)))
        try:
            return raw.cast(pa.large_string())
        except pa.ArrowInvalid:
            return pa.array([text.decode(errors="replace") for text in raw.to_pylist()], pa.large_string())


COMMIT_TYPES = (0, 1)
GROUP_TYPES = (2, 3, 5, 6, 7, 8)
"""Of records for `groups.decode`. The others hold nothing that the pipeline reads: 4 and 16 are what the coordinator works
out of topics and regular expressions, 9 to 15 belong to share groups, 17 and more to streams groups."""
NEWEST_VERSION = 4

_LONGEST_STRING = 0x7FFF
_MOST_TAGS = 16
"""Kafka writes one at most. Each costs a pass over the rows that have so many, so a hostile number of them is refused."""
_TOPIC_ID, _ID_BYTES = 0, 16
"""The tag of the topic's id, and its length."""
_NOWHERE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """What a batch of records holds."""

    commits: pa.Table
    """Rows of `tables.COMMITS`, in the order of the records."""
    groups: Ints
    """Positions of the records for `groups.decode`."""
    counts: Counter[str]
    """tombstone: commits that delete an offset, which are rows. Without a row: type N (one that the pipeline does not read),
    bad key, unknown commit version N, bad value."""


def split(key: pa.Array, value: pa.Array, record_time: Ints, log_offset: Ints, log_partition: int) -> Decoded:
    """Decode the commits among records of one partition of `__consumer_offsets`.

    `key` and `value` are arrays of type binary or large_binary, null where a record has none; `record_time` (ms) and
    `log_offset` have one number for each. The keys of one call hold less than 500 MB. Whatever the bytes are, nothing is
    raised.
    """
    encoded = key.dictionary_encode()              # a group commits the same partitions again and again
    keys = _keys(Spans.of(encoded.dictionary))
    which = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)      # the last one is bad
    kind, good = keys.kind[which], keys.good[which]
    commit = good & np.isin(kind, COMMIT_TYPES)
    group = good & np.isin(kind, GROUP_TYPES)

    counts = Counter({"bad key": int(np.count_nonzero(~good))})
    counts.update(_counted("type {}", kind[good & ~commit & ~group]))
    values = Spans.of(value)
    tombstone = commit & values.null
    counts["tombstone"] = int(np.count_nonzero(tombstone))

    read = _Values(len(value))
    of_commits = np.flatnonzero(commit & ~tombstone)
    counts.update(read.fill(values, of_commits))

    rows = np.flatnonzero(tombstone | read.good)
    empty = tombstone[rows]
    of = pa.array(which[rows])
    columns = [
        keys.group.take(of), keys.topic.take(of), pa.array(keys.partition[which[rows]]),
        pa.array(read.offset[rows], mask=empty), pa.array(read.leader_epoch[rows], mask=empty),
        pa.array(read.time[rows], mask=empty), pa.array(record_time[rows]),
        pa.array(read.version[rows], mask=empty), _ids(values, read.topic_id[rows]),
        pa.array(np.full(len(rows), log_partition, np.int32)), pa.array(log_offset[rows]),
    ]
    commits = pa.table([column.cast(field.type) for column, field in zip(columns, COMMITS, strict=True)], schema=COMMITS)
    return Decoded(commits, np.flatnonzero(group), +counts)


@dataclass(frozen=True, slots=True, eq=False)
class _Keys:
    """The distinct keys, and after them one that is bad, for records without a key."""

    kind: Ints
    good: Bools
    group: pa.Array
    """And the topic, and the partition: of good keys of commits; of others they mean nothing."""
    topic: pa.Array
    partition: Ints


def _keys(spans: Spans) -> _Keys:
    size = len(spans.start) + 1
    kind, good = np.zeros(size, np.int64), np.zeros(size, np.bool_)
    nothing = np.append(spans.start, len(spans.data))
    partition, bounds = np.zeros(size, np.int64), np.tile(nothing, (4, 1))         # where group and topic begin and end

    rows = np.flatnonzero(spans.end - spans.start >= 2)
    kind[rows] = spans.number(">i2", spans.start[rows])
    good[rows] = True

    rows = np.flatnonzero(good & np.isin(kind, COMMIT_TYPES))
    good[rows] = False
    at = spans.start[rows] + 2
    for text in (0, 2):
        rows, at, after = _string(spans, rows, at)
        bounds[text, rows], bounds[text + 1, rows] = at, after
        at = after
    whole = at + 4 <= spans.end[rows]
    rows, at = rows[whole], at[whole]
    partition[rows] = spans.number(">i4", at)
    good[rows] = True
    bounds[:, ~good] = nothing[~good]              # a bad key may have a good group: nobody needs it
    return _Keys(kind, good, spans.strings(bounds[0], bounds[1]), spans.strings(bounds[2], bounds[3]), partition)


def _string(spans: Spans, rows: Ints, at: Ints) -> tuple[Ints, Ints, Ints]:
    """The rows whose string, an int16 length before it at `at`, is whole, and where it begins and ends."""
    fits = at + 2 <= spans.end[rows]
    rows, at = rows[fits], at[fits]
    length = spans.number(">i2", at)
    begin = at + 2
    fits = (length >= 0) & (begin + length <= spans.end[rows])
    return rows[fits], begin[fits], begin[fits] + length[fits]


def _compact_string(spans: Spans, rows: Ints, at: Ints) -> tuple[Ints, Ints, Ints]:
    """The same of a string whose length, plus one, is a variable-length number; 0 is null, which no commit may have."""
    more, begin, whole = spans.varint(at, spans.end[rows])
    length = more - 1
    fits = whole & (length >= 0) & (length <= _LONGEST_STRING) & (begin + length <= spans.end[rows])
    return rows[fits], begin[fits], begin[fits] + length[fits]


class _Values:
    """The values of commits, a place for each of all records; those that are not `good` hold nothing."""

    def __init__(self, size: int) -> None:
        self.good = np.zeros(size, np.bool_)
        self.version = np.zeros(size, np.int64)
        self.offset = np.zeros(size, np.int64)
        self.leader_epoch = np.full(size, -1, np.int64)
        self.time = np.zeros(size, np.int64)
        self.topic_id = np.full(size, _NOWHERE, np.int64)
        """Where it begins, or _NOWHERE."""

    def fill(self, spans: Spans, rows: Ints) -> Counter[str]:
        """Decode these rows; what stays undecoded, counted."""
        known = rows[spans.end[rows] - spans.start[rows] >= 2]
        version = spans.number(">i2", spans.start[known])
        self.version[known] = version
        for number in np.unique(version).tolist():
            if 0 <= number <= NEWEST_VERSION:
                self._fill(spans, known[version == number], number)
        unknown = version[(version < 0) | (version > NEWEST_VERSION)]
        counts = _counted("unknown commit version {}", unknown)
        counts["bad value"] = len(rows) - len(unknown) - int(np.count_nonzero(self.good))
        return counts

    def _fill(self, spans: Spans, rows: Ints, version: int) -> None:
        has_epoch = version >= 3
        metadata = 14 if has_epoch else 10
        rows = rows[spans.start[rows] + metadata <= spans.end[rows]]
        begin = spans.start[rows] + metadata
        rows, _, at = (_compact_string if version >= 4 else _string)(spans, rows, begin)
        whole = at + (16 if version == 1 else 8) <= spans.end[rows]
        rows, at = rows[whole], at[whole]
        if version >= 4:
            whole, topic_id = _tags(spans, at + 8, spans.end[rows])
            rows, at = rows[whole], at[whole]
            self.topic_id[rows] = topic_id[whole]
        self.offset[rows] = spans.number(">i8", spans.start[rows] + 2)
        if has_epoch:
            self.leader_epoch[rows] = spans.number(">i4", spans.start[rows] + 10)
        self.time[rows] = spans.number(">i8", at)
        self.good[rows] = True


def _tags(spans: Spans, at: Ints, end: Ints) -> tuple[Bools, Ints]:
    """Whether the tagged fields at `at` (their number, then each one's tag, size and bytes) end at `end` or before, and
    where among them the topic's id is."""
    left, at, whole = spans.varint(at, end)
    whole &= left <= _MOST_TAGS
    topic_id = np.full(len(at), _NOWHERE, np.int64)
    rows = np.flatnonzero(whole & (left > 0))
    while len(rows):
        tag, after, good = spans.varint(at[rows], end[rows])
        size, after, sized = spans.varint(after, end[rows])
        at[rows] = after + size
        left[rows] -= 1
        good &= sized & (at[rows] <= end[rows])
        whole[rows[~good]] = False
        is_id = good & (tag == _TOPIC_ID) & (size == _ID_BYTES)
        topic_id[rows[is_id]] = after[is_id]
        rows = rows[good & (left[rows] > 0)]
    return whole, topic_id


def _ids(spans: Spans, at: Ints) -> pa.Array:
    """The ids at these places as 32 hex digits, null for _NOWHERE and for zero, which is no id."""
    there = at != _NOWHERE
    found = np.zeros((len(at), _ID_BYTES), np.uint8)
    found[there] = spans.data[at[there, None] + np.arange(_ID_BYTES)]
    # Of few topics, so that Python writes the digits of each once.
    ids = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_ID_BYTES), len(at), [None, pa.py_buffer(found)])
    encoded = ids.cast(pa.binary()).dictionary_encode()
    texts = [each.hex() if any(each) else None for each in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _counted(name: str, numbers: Ints) -> Counter[str]:
    """How often each number occurs, under a name that holds it."""
    found, times = np.unique(numbers, return_counts=True)
    return Counter({name.format(number): count for number, count in zip(found.tolist(), times.tolist(), strict=True)})
