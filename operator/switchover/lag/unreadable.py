"""Offsets behind a commit at which there is no record for any member: which partitions to look at, and what was found.

Markers of transactions, aborted records and what compaction removed have offsets that are never committed by a member
which commits what it has processed. Only the log can tell them apart from records.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from switchover.lag.samples import NONE, Bools, Ints
from switchover.shared.partition import TopicPartition

AGAIN: Final = 60_000
"""Milliseconds until a partition in which there is a record, or of which there was no answer, is looked at again."""


Partitions = tuple[TopicPartition, ...]


class Stretch(NamedTuple):
    """Offsets without a record: from `begin`, where the group stood, to before `end`."""

    begin: int
    end: int


class Doubt(NamedTuple):
    """A partition to look at; `looked` is when that was done last, in ms since the epoch, or 0. The oldest come first."""

    looked: int
    partition: TopicPartition


class Stretches:
    """What was found in the logs of one group's partitions, as long as it holds."""

    def __init__(self) -> None:
        self._found: dict[TopicPartition, Stretch] = {}
        self._looked: dict[TopicPartition, tuple[int, int]] = {}        # when, and from which offset on

    def add(self, found: Mapping[TopicPartition, Stretch], partitions: Partitions, stands: Ints, high: Ints) -> None:
        """Take in what was found, and forget what does not hold: the group went back or on, or the log was cut.

        `stands` is where the group stands now in each partition, `high` the high watermark.
        """
        if not (found or self._looked):
            return
        rows = {each: row for row, each in enumerate(partitions)}
        self._found = {
            each: stretch for each, stretch in {**self._found, **found}.items()
            if each in rows and stretch.begin <= stands[rows[each]] < stretch.end <= high[rows[each]]}
        self._looked = {each: looked for each, looked in self._looked.items() if each in rows}

    def readable(self, partitions: Partitions) -> Ints:
        """Before which offset there is no record for who stands where the group does; NONE where nothing is known."""
        return np.array([self._found[each].end if each in self._found else NONE for each in partitions], dtype=np.int64)

    def doubts(self, partitions: Partitions, doubtful: Bools, stands: Ints, now: int) -> list[Doubt]:
        """Of the doubtful partitions those that were not looked at just now from the same offset on."""
        reached, found = np.maximum(stands, self.readable(partitions)), []
        for row in np.flatnonzero(doubtful).tolist():
            at, begun = self._looked.get(partitions[row], (0, NONE))
            if begun != reached[row] or now - at >= AGAIN:
                found.append(Doubt(at, partitions[row]))
        return found

    def look(self, partition: TopicPartition, stands: int, now: int) -> Stretch:
        """Note that it is looked at now; from the end of the stretch on, which is the one to prolong."""
        stretch = self._found.get(partition, Stretch(stands, stands))
        self._looked[partition] = now, stretch.end
        return stretch
