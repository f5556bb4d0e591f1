"""The judgement of a history, and how it reads."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from history.events import Partition, Process
from history.findings import Duplicates, Gap, Loss, Overlap, Rewind, time_of_day

WORST = 10
"""Gaps that the report names, the longest first."""


@dataclass
class Report:
    """What was found. `epoch` is wall time minus monotonic time, in seconds."""

    epoch: float
    processes: list[Process] = field(default_factory=list)
    partitions: int = 0
    deliveries: int = 0
    overlaps: list[Overlap] = field(default_factory=list)
    rewinds: list[Rewind] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    duplicates: list[Duplicates] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    """The longest one of each partition that ever waited, the longest first."""
    never_owned: list[Partition] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the reader must know: what could not be judged, what broke a rule without doing harm."""

    @property
    def faults(self) -> list[Overlap | Rewind | Loss]:
        """What no history may have."""
        return [*self.overlaps, *self.rewinds, *self.losses]

    @property
    def lost(self) -> int:
        """Records that the group passed and nobody got."""
        return sum(len(each.offsets) for each in self.losses)

    @property
    def repeated(self) -> int:
        """Deliveries beyond the first of a record."""
        return sum(each.records for each in self.duplicates)

    def lines(self) -> Iterator[str]:
        """The report in plain lines: faults, then what is counted, then the summary."""
        clock = time_of_day(self.epoch)
        for fault in self.faults:
            yield fault.words(clock)
        for again in self.duplicates:
            yield again.words()
        for gap in self.gaps[:WORST]:
            yield gap.words(clock)
        for partition in self.never_owned:
            yield f"never owned: {partition}"
        for note in self.notes:
            yield f"note: {note}"
        longest = f"longest gap {self.gaps[0].seconds:.3f} s" if self.gaps else "no gap"
        yield (f"{len(self.processes)} processes, {self.partitions} partitions, {self.deliveries} deliveries: "
               f"{len(self.overlaps)} overlaps, {len(self.rewinds)} rewinds, {self.lost} lost, {self.repeated} duplicates, "
               f"{longest}, {len(self.never_owned)} never owned")
