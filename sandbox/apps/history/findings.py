"""What a history can be guilty of, in words. Times are monotonic seconds; `Clock` turns them into the time of day."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from history.events import NO_OFFSET, Partition, Process
from history.ranges import Ranges

Clock = Callable[[float], str]
SHOWN = 8
"""Ranges of offsets that a line names before it stops."""


def time_of_day(epoch: float) -> Clock:
    """Monotonic seconds as UTC; `epoch` is wall time minus monotonic time."""
    return lambda mono: datetime.fromtimestamp(mono + epoch, UTC).strftime("%H:%M:%S.%f")[:-3]


def offset_words(offset: int) -> str:
    return "none" if offset == NO_OFFSET else str(offset)


def shown(offsets: Ranges) -> str:
    """The first ranges of a set of offsets."""
    ranges = list(offsets)
    return str(Ranges(ranges[:SHOWN])) + (", …" if len(ranges) > SHOWN else "")


def names(processes: Set[Process]) -> str:
    return ", ".join(map(str, sorted(processes)))


@dataclass(frozen=True, slots=True)
class Holding:
    """What one process did with a partition between two claims of it; `first` to `last` is its delivery interval."""

    by: Process
    first: float
    last: float
    ended: str
    """How: release, lost, fenced, stop, or empty when nothing in the history ended it."""
    after_end: int
    """Records delivered although it had ended, or had never begun with a claim."""

    def words(self) -> str:
        ended = f"ended by {self.ended}" if self.ended else "with no end in its history"
        went_on = f", {self.after_end} records after that or without a claim" if self.after_end else ""
        return f"{self.by} ({ended}{went_on})"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two processes whose delivery intervals on one partition have time in common."""

    partition: Partition
    one: Holding
    other: Holding

    @property
    def start(self) -> float:
        return max(self.one.first, self.other.first)

    @property
    def end(self) -> float:
        return min(self.one.last, self.other.last)

    def words(self, clock: Clock) -> str:
        return (f"overlap: {self.partition} was delivered to {self.one.words()} and to {self.other.words()} "
                f"from {clock(self.start)} to {clock(self.end)}, {self.end - self.start:.3f} s")


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset as one process knew it: it had it accepted, or found it when it claimed the partition."""

    by: Process
    at: float
    offset: int
    found: bool

    def words(self, clock: Clock) -> str:
        return f"{offset_words(self.offset)} ({'found' if self.found else 'committed'} by {self.by} at {clock(self.at)})"


@dataclass(frozen=True, slots=True)
class Rewind:
    """A committed offset that was lower than, or gone after, one that had been there for certain."""

    partition: Partition
    before: Committed
    after: Committed

    def words(self, clock: Clock) -> str:
        return (f"rewind: the committed offset of {self.partition} went back from {self.before.words(clock)} "
                f"to {self.after.words(clock)}")


@dataclass(frozen=True, slots=True)
class Loss:
    """Acknowledged records that the group passed by a commit and that no process delivered."""

    partition: Partition
    offsets: Ranges
    passed: Committed
    """By whom, and up to where, the first of them was passed."""

    def words(self, clock: Clock) -> str:
        return (f"loss: {len(self.offsets)} acknowledged records of {self.partition} were delivered to nobody: "
                f"{shown(self.offsets)}; passed by {self.passed.words(clock)}")


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Records delivered more than once; `records` counts the deliveries beyond the first of each."""

    partition: Partition
    records: int
    offsets: Ranges
    by: frozenset[Process]

    def words(self) -> str:
        return f"duplicates: {self.records} of {self.partition}, again by {names(self.by)}: {shown(self.offsets)}"


@dataclass(frozen=True, slots=True)
class Gap:
    """The longest time without a delivery of a partition while an acknowledged record waited in it."""

    partition: Partition
    start: float
    end: float
    before: Process | None
    after: Process | None

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def words(self, clock: Clock) -> str:
        return (f"gap: {self.partition} waited {self.seconds:.3f} s from {clock(self.start)} to {clock(self.end)}, "
                f"after {self.before or 'nobody'}, before {self.after or 'nobody'}")
