"""Who was delivering a partition, and when: delivery intervals and their overlaps."""

from collections.abc import Iterator
from dataclasses import dataclass

from history.events import Event, Partition, Process
from history.findings import Holding, Overlap


@dataclass
class _Growing:
    claimed: bool
    first: float = 0.0
    last: float = 0.0
    ended: str = ""
    after_end: int = 0
    records: int = 0


class Holdings:
    """The holdings of one partition."""

    def __init__(self) -> None:
        self._all: list[tuple[Process, _Growing]] = []
        self._newest: dict[Process, _Growing] = {}

    def claim(self, by: Process) -> None:
        self._begin(by, claimed=True)

    def deliver(self, event: Event) -> None:
        holding = self._newest.get(event.by) or self._begin(event.by, claimed=False)
        records = sum(last - first + 1 for first, last in event.ranges)
        if not holding.records:
            holding.first = event.since
        holding.last = event.until
        holding.records += records
        if holding.ended or not holding.claimed:
            holding.after_end += records

    def end(self, by: Process, how: str) -> None:
        holding = self._newest.get(by)
        if holding is not None and not holding.ended:
            holding.ended = how

    @property
    def claimed(self) -> bool:
        """Whether anybody ever claimed the partition."""
        return any(holding.claimed for _, holding in self._all)

    def delivering(self) -> list[Holding]:
        """The holdings in which something was delivered, by their first delivery."""
        found = [Holding(by, h.first, h.last, h.ended, h.after_end) for by, h in self._all if h.records]
        return sorted(found, key=lambda holding: (holding.first, holding.last))

    def overlaps(self, partition: Partition) -> Iterator[Overlap]:
        """Each pair of holdings whose intervals have more in common than one end."""
        open_: list[Holding] = []
        for holding in self.delivering():
            for other in open_:
                if holding.first < other.last and other.first < holding.last:
                    yield Overlap(partition, other, holding)
            open_ = [other for other in open_ if other.last > holding.first] + [holding]

    def _begin(self, by: Process, *, claimed: bool) -> _Growing:
        holding = self._newest[by] = _Growing(claimed)
        self._all.append((by, holding))
        return holding
