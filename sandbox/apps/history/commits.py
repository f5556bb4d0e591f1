"""The committed offset of one partition through a history: how far the group has passed, and where it went back.

A commit takes effect somewhere between its sending and its answer, and a process that stood still in between may read
the answer long after others went on. So it went back for certain only where a higher offset had been *answered* before
the lower one was *sent*; commits that were under way together prove nothing about their order.
"""

from bisect import bisect_right

from history.events import Event, Partition
from history.findings import Committed, Rewind
from history.ranges import Ranges


class Commits:
    """Events of one partition go in by the time of their answers."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._start = 0
        self._times: list[float] = []
        self._standing: list[Committed | None] = []
        self.passed = Ranges()
        """Offsets that the group has left behind by its commits, but for what a declared reset skipped."""
        self._passings: list[tuple[int, Committed]] = []
        self.rewinds: list[Rewind] = []

    def reset(self, event: Event) -> None:
        """A declared start of the group, or a declared move of it."""
        assert event.offset is not None
        self._start = event.offset
        self._stands(event.mono, None)

    def known(self, event: Event) -> None:
        """A commit, or a committed offset as a claim found it."""
        if event.offset is None:
            return
        now = Committed(event.by, event.mono, event.offset, found=event.kind == "claim")
        certain = self._standing_at(event.since)
        latest = self._standing[-1] if self._standing else None
        if certain is not None and now.offset < certain.offset:
            self.rewinds.append(Rewind(self._partition, certain, now))
            self._stands(now.at, now)
        elif latest is None or now.offset > latest.offset:
            self._stands(now.at, now)
        if now.offset > self._start:
            before = len(self.passed)
            self.passed.add(self._start, now.offset - 1)
            if len(self.passed) > before:
                self._passings.append((self._start, now))

    def passing(self, offset: int) -> Committed:
        """The first that passed this offset, which is in `passed`."""
        return next(commit for start, commit in self._passings if start <= offset < commit.offset)

    @property
    def start(self) -> int:
        """Where the group started last by declaration, else 0."""
        return self._start

    def _standing_at(self, time: float) -> Committed | None:
        at = bisect_right(self._times, time)
        return self._standing[at - 1] if at else None

    def _stands(self, time: float, committed: Committed | None) -> None:
        self._times.append(time)
        self._standing.append(committed)
