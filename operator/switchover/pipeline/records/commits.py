"""Offset commits of `__consumer_offsets`, in all records at once: no Python runs for each.

A key is an int16 type, then for the types 0 and 1 group and topic (int16 length and UTF-8) and an int32 partition. A value
is an int16 version, then

    0, 2    int64 offset                     string metadata           int64 time
    1       int64 offset                     string metadata           int64 time   int64 expiry
    3       int64 offset  int32 leader epoch string metadata           int64 time
    4       int64 offset  int32 leader epoch compact string metadata   int64 time   tagged fields

(OffsetCommitKey and OffsetCommitValue of Kafka 3.9 to 4.4; golden vectors in the tests.) The tagged field 0 is the topic's
id. Bytes after the last field are passed over, as Kafka does.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from switchover.pipeline.records.spans import Bools, Ints, Spans
from switchover.pipeline.tables import COMMITS

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
    counts.update(_told("type {}", kind[good & ~commit & ~group]))
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
        counts = _told("unknown commit version {}", unknown)
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
    told = [each.hex() if any(each) else None for each in encoded.dictionary.to_pylist()]
    return pa.array(told, pa.string()).take(encoded.indices)


def _told(name: str, numbers: Ints) -> Counter[str]:
    """How often each number occurs, under a name that holds it."""
    found, times = np.unique(numbers, return_counts=True)
    return Counter({name.format(number): count for number, count in zip(found.tolist(), times.tolist(), strict=True)})
