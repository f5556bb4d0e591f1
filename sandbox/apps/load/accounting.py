"""What the load generator writes down, and what is computed from it afterwards. Standard library only.

An application notes for each partition the spans of time in which records kept coming (acknowledged, or delivered) no
further than `QUIET` apart. Spans of several members of one group can be laid over each other, gaps cannot; a gap is
what no span covers. Times are seconds since the epoch.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from history.ranges import Ranges

QUIET = 0.7
"""Seconds without a record that end a span: more than the half second of `EVERY_MS` in the light worlds, where each record
would else begin a span, and all of them are written anew every second."""

Span = tuple[float, float]


@dataclass
class Activity:
    """The spans and the number of records of one partition."""

    spans: list[list[float]] = field(default_factory=list)
    records: int = 0

    def note(self, now: float, records: int = 1) -> None:
        """Count records that came at `now`; calls come in the order of time."""
        self.records += records
        if self.spans and now - self.spans[-1][1] <= QUIET:
            self.spans[-1][1] = now
        else:
            self.spans.append([now, now])


@dataclass(frozen=True)
class Gap:
    """The longest time without a record in one partition, inside a window."""

    partition: int
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


def longest_gap(histories: Iterable[dict[str, Any]], start: float, end: float) -> Gap:
    """The longest gap of any one partition between `start` and `end`, over the histories of all members together.

    A gap that reaches over an edge of the window counts with the part inside. Every partition that a history names
    counts, also one of which nothing came at all. Raises ValueError where there is nothing to judge by: an empty
    window, no partition, or a window that reaches beyond the time at which the histories were written.
    """
    if not start < end:
        raise ValueError(f"the window is empty: {start} to {end}")
    spans: dict[int, list[Span]] = {}
    for history in histories:
        if history["written"] < end:
            raise ValueError(f"the history of {history['name']} ends {end - history['written']:.1f} s before the window")
        for partition, activity in history["partitions"].items():
            spans.setdefault(int(partition), []).extend((a, b) for a, b in activity["spans"])
    if not spans:
        raise ValueError("no history names a partition")
    gaps = [gap for partition, of_one in spans.items() for gap in _gaps(partition, of_one, start, end)]
    return max(gaps, key=lambda gap: gap.seconds)


def _gaps(partition: int, spans: list[Span], start: float, end: float) -> Iterable[Gap]:
    reached = start
    for begin, finish in sorted(spans):
        if finish < start:
            continue
        if begin >= end:
            break
        if begin > reached:
            yield Gap(partition, reached, begin)
        reached = max(reached, finish)
    yield Gap(partition, reached, max(reached, end))


@dataclass
class Audit:
    """Acknowledged records against what the log holds. A record is (run, partition, number); a million of them in order take
    no more memory than one."""

    acknowledged: dict[tuple[str, int], Ranges]
    seen: dict[tuple[str, int], Ranges] = field(default_factory=dict)
    read: int = 0
    duplicates: int = 0
    strangers: int = 0

    def note(self, value: bytes, partition: int) -> None:
        """Count one record of the log; one that no run of ours has written is a stranger."""
        self.read += 1
        try:
            run, claimed, number = value.decode().split(":")[:3]
            key = (run, int(claimed))
            numbered = int(number)
        except (UnicodeDecodeError, ValueError):
            self.strangers += 1
            return
        if key[1] != partition:
            self.strangers += 1
            return
        if self.seen.setdefault(key, Ranges()).add(numbered, numbered):
            self.duplicates += 1

    def result(self) -> dict[str, Any]:
        lost = {key: numbers - self.seen.get(key, Ranges()) for key, numbers in self.acknowledged.items()}
        sample = (f"{run}:{partition}:{number}" for (run, partition), numbers in lost.items()
                  for first, last in numbers for number in range(first, last + 1))
        return {
            "acknowledged": sum(map(len, self.acknowledged.values())),
            "lost": sum(map(len, lost.values())),
            "lostSample": list(islice(sample, 20)),
            "duplicates": self.duplicates,
            "read": self.read,
            "strangers": self.strangers,
        }
