"""Which offsets of a partition were delivered, and which of them more than once."""

from history.events import Event, Partition, Process
from history.findings import Duplicates
from history.ranges import Ranges


class Deliveries:
    """The deliveries of one partition by everybody together."""

    def __init__(self) -> None:
        self.offsets = Ranges()
        self.records = 0
        self._again = Ranges()
        self._again_by: set[Process] = set()

    def deliver(self, event: Event) -> None:
        for first, last in event.ranges:
            self.records += last - first + 1
            for shared in self.offsets.add(first, last):
                self._again.add(*shared)
                self._again_by.add(event.by)

    def duplicates(self, partition: Partition) -> Duplicates | None:
        repeated = self.records - len(self.offsets)
        return Duplicates(partition, repeated, self._again, frozenset(self._again_by)) if repeated else None
