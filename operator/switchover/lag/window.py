"""The last samples of one group, sweep after sweep, and what a sweep brings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from switchover.lag.group import TopicPartition
from switchover.lag.samples import Samples


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

    `read_committed`: the group reads committed records only, so its end is the last stable offset.
    """

    topics: frozenset[str] = frozenset()
    read_committed: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What a sweep read of a group.

    `committed` are the topics that it has committed to. `failed` says of a partition or a whole topic why it could not be
    read, `why` says it of the whole group.
    """

    offsets: Mapping[TopicPartition, Offsets] = field(default_factory=dict)
    committed: frozenset[str] = frozenset()
    failed: Mapping[TopicPartition | str, str] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep: a reading of every group that was asked for, and how many partitions each of their topics has.

    A topic that does not exist, or that our user may not see, is absent.
    """

    readings: Mapping[str, Reading]
    partitions: Mapping[str, int] = field(default_factory=dict)


_VALID: Final = len(Offsets._fields)
"""The layer behind those of the offsets: 1 where the sample is valid."""


class Window:
    """The last `width` sweeps of a group. A partition of which none of them has a valid sample is forgotten."""

    def __init__(self, width: int) -> None:
        self._partitions: tuple[TopicPartition, ...] = ()
        self._cells = np.zeros((_VALID + 1, 0, width), dtype=np.int64)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The rows of the samples."""
        return self._partitions

    def add(self, offsets: Mapping[TopicPartition, Offsets]) -> None:
        """One more sweep; for a partition that it does not have, an invalid sample."""
        before = {each: row for row, each in enumerate(self._partitions) if self._cells[_VALID, row, 1:].any()}
        partitions = tuple(sorted({*before, *offsets}))
        cells = np.zeros((_VALID + 1, len(partitions), self._cells.shape[2]), dtype=np.int64)
        for row, each in enumerate(partitions):
            if each in before:
                cells[:, row, :-1] = self._cells[:, before[each], 1:]
            if each in offsets:
                cells[:, row, -1] = (*offsets[each], True)
        self._partitions, self._cells = partitions, cells

    def samples(self, *, read_committed: bool) -> Samples:
        """The window for the kernel.

        Where a group reads committed records only, its topics are taken for transactional: nothing short of reading
        the log tells whether the offset before the end is a marker, which is never committed.
        """
        time, committed, end, start, high, valid = self._cells
        return Samples(time, committed, end, start, valid.astype(np.bool_), high,
                       transactional=np.full(len(self._partitions), read_committed))

    def sampled(self, partitions: frozenset[TopicPartition]) -> int | None:
        """When the newest valid sample was taken of that one of these partitions of which it is oldest; None without one."""
        rows = [row for row, each in enumerate(self._partitions) if each in partitions]
        if not rows or len(rows) < len(partitions):
            return None
        return int((self._cells[0, rows] * self._cells[_VALID, rows]).max(axis=1).min())
