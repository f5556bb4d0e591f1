"""The last samples of one group, sweep after sweep, and what a sweep brings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import numpy as np

from switchover.lag.group import TopicPartition
from switchover.lag.samples import NONE, Bools, Ints, Samples
from switchover.lag.thresholds import RECENT
from switchover.lag.unreadable import Doubt, Stretch, Stretches


class Offsets(NamedTuple):
    """One partition in one sweep, as `Samples` has it: `time` in ms since the epoch, `committed` NONE without a commit."""

    time: int
    committed: int
    end: int
    start: int
    high: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What a sweep is to read of a group: the partitions of these topics and of those that it has committed to.

    `read_committed`: the group reads committed records only, so its end is the last stable offset. `looks`: in which logs
    to look for records, behind the end of each stretch.
    """

    topics: frozenset[str] = frozenset()
    read_committed: bool = False
    looks: Mapping[TopicPartition, Stretch] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a sweep read of a group.

    `committed` are the topics that it has committed to. `failed` says of a partition or a whole topic why it could not be
    read, `why` says it of the whole group. `unreadable` are the stretches that were looked at, prolonged as far as there is
    no record; one that could not be looked at is absent.
    """

    offsets: Mapping[TopicPartition, Offsets] = field(default_factory=dict)
    committed: frozenset[str] = frozenset()
    failed: Mapping[TopicPartition | str, str] = field(default_factory=dict)
    why: str = ""
    unreadable: Mapping[TopicPartition, Stretch] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep: a reading of every group that was asked for, how many partitions each of their topics has, and its id.

    A topic that does not exist, or that our user may not see, is absent; without an id one from before Kafka 2.8.
    """

    readings: Mapping[str, Reading]
    partitions: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, UUID] = field(default_factory=dict)


_COMMITTED, _END, _START, _HIGH = (Offsets._fields.index(name) for name in ("committed", "end", "start", "high"))
FOR_EVER: Final = 2**62
_VALID: Final = len(Offsets._fields)
"""The layer behind those of the offsets: 1 where the sample is valid."""


class Window:
    """The last `width` sweeps of a group. A partition of which none of them has a valid sample is forgotten.

    With `apart` (ms) they reach back further: those older than the RECENT newest lie so far from the one before them.
    What lies further back than `reach` (ms) is dropped: it counts for nothing, and of a group that is seldom looked at it
    would be most.
    """

    def __init__(self, width: int, apart: int = 0, reach: int = FOR_EVER) -> None:
        self._partitions: tuple[TopicPartition, ...] = ()
        begins_with = width if apart else 1
        self._cells = np.zeros((_VALID + 1, 0, begins_with), dtype=np.int64)
        self._at = np.zeros(begins_with, dtype=np.int64)    # when each sweep was made
        self._width = width
        self._apart = apart
        self._reach = reach
        self._stretches = Stretches()

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The rows of the samples."""
        return self._partitions

    def add(self, offsets: Mapping[TopicPartition, Offsets],
            unreadable: Mapping[TopicPartition, Stretch] | None = None) -> None:
        """One more sweep; for a partition that it does not have, an invalid sample."""
        at = max((each.time for each in offsets.values()), default=int(self._at[-1]))
        columns = self._remaining(at)
        old = self._cells[:, :, columns]
        before = {each: row for row, each in enumerate(self._partitions) if old[_VALID, row].any()}
        partitions = tuple(sorted({*before, *offsets}))
        cells = np.zeros((_VALID + 1, len(partitions), len(columns) + 1), dtype=np.int64)
        for row, each in enumerate(partitions):
            if each in before:
                cells[:, row, :-1] = old[:, before[each]]
            if each in offsets:
                cells[:, row, -1] = (*offsets[each], True)
        self._at = np.append(self._at[columns], at)
        self._partitions, self._cells = partitions, cells
        self._stretches.add(unreadable or {}, partitions, self._stands(), self._newest(_HIGH))

    def _remaining(self, at: int) -> Ints:
        """The sweeps that stay when one of that time comes."""
        if self._apart:
            return np.delete(np.arange(self._width), self._dropped())
        sweeps = len(self._at)
        first = next((each for each in range(sweeps) if self._at[each] > at - self._reach), sweeps)
        return np.arange(max(first, sweeps - self._width + 1), sweeps)

    def _dropped(self) -> int:
        """The sweep that makes room: the one that is recent no more where it lies too near to the one before it, else the
        oldest."""
        oldest_recent = len(self._at) - RECENT
        near = self._apart and 0 <= self._at[oldest_recent] - self._at[oldest_recent - 1] < self._apart
        return oldest_recent if near else 0

    def samples(self, *, read_committed: bool) -> Samples:
        """The window for the kernel.

        Where a group reads committed records only, its topics are taken for transactional: nothing short of reading
        the log shows whether the offset before the end is a marker, which is never committed.
        """
        time, committed, end, start, high, valid = self._cells
        return Samples(time, committed, end, start, valid.astype(np.bool_), high,
                       transactional=np.full(len(self._partitions), read_committed),
                       readable=self._stretches.readable(self._partitions))

    def doubts(self, standing: int, forgiven: int) -> list[Doubt]:
        """The partitions of which only the log shows whether anything is left to be consumed.

        There is something behind the commit, or the log start without one, and so it was `standing` ms ago already.
        `forgiven` offsets behind a commit are no lag anyway.
        """
        time, committed, end, start, _, valid = self._cells
        if not time.size:
            return []
        stands, read = self._stands(), valid.astype(np.bool_)
        reached = np.maximum(stands, self._stretches.readable(self._partitions))
        covered = reached + np.where((committed[:, -1] != NONE) & (reached == stands), forgiven, 0)
        moved = read & (committed != committed[:, -1:])
        stood = read & ~np.logical_or.accumulate(moved[:, ::-1], axis=1)[:, ::-1] & (time <= time[:, -1:] - standing)
        left = end[:, -1] > np.maximum(covered, start[:, -1])
        doubtful: Bools = read[:, -1] & left & (stood & (end > covered[:, None])).any(axis=1)
        return self._stretches.doubts(self._partitions, doubtful, stands, int(time[:, -1].max()))

    def look(self, partition: TopicPartition) -> Stretch:
        """Note that a partition of `doubts` is looked at: the stretch to prolong."""
        row = self._partitions.index(partition)
        return self._stretches.look(partition, int(self._stands()[row]), int(self._cells[0, row, -1]))

    def exhausted(self) -> frozenset[TopicPartition]:
        """Those in which no record is left behind the commit, wherever the log ends."""
        done = np.maximum(self._stretches.readable(self._partitions), self._newest(_START)) >= self._newest(_END)
        return frozenset(self._partitions[row] for row in np.flatnonzero(done).tolist())

    def _stands(self) -> Ints:
        """Where a member would go on: at the commit, without one at the log start."""
        committed = self._newest(_COMMITTED)
        return np.where(committed == NONE, self._newest(_START), committed)

    def _newest(self, layer: int) -> Ints:
        """Of the newest valid sample of each partition."""
        width = self._cells.shape[2]
        newest = width - 1 - self._cells[_VALID, :, ::-1].argmax(axis=1)
        found: Ints = np.take_along_axis(self._cells[layer], newest[:, None], axis=1)[:, 0]
        return found

    def sampled(self, partitions: frozenset[TopicPartition]) -> int | None:
        """When the newest valid sample was taken of that one of these partitions of which it is oldest; None without one."""
        rows = [row for row, each in enumerate(self._partitions) if each in partitions]
        if not rows or len(rows) < len(partitions):
            return None
        return int((self._cells[0, rows] * self._cells[_VALID, rows]).max(axis=1).min())


class GroupOffsets(Protocol):
    """How far consumer groups are, all of them at once."""

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        """A reading of every group asked for; what could not be read of one stands in its reading.

        Raises only when no broker answers at all, or none accepts us.
        """
        ...

    async def close(self) -> None: ...
