"""The longest time in which a partition had a record to deliver and nobody delivered."""

from history.events import SPAN, Event, Partition, Process
from history.findings import Gap


class Waiting:
    """One partition from its first claim on. Exact to the length of a window (SPAN): what is shorter is no gap.

    Of a gap only what lies after `since` (monotonic) counts.
    """

    def __init__(self, since: float = float("-inf")) -> None:
        self._since = since
        self._quiet_since: float | None = None
        self._waiting_since: float | None = None
        self._acknowledged = self._delivered = -1
        self._before: Process | None = None
        self._longest: Gap | None = None
        self.stood = 0.0
        """Seconds in all gaps together."""

    def claim(self, event: Event) -> None:
        if self._quiet_since is None:
            self._quiet_since = event.mono

    def acknowledge(self, event: Event) -> None:
        self._acknowledged = max(self._acknowledged, event.ranges[-1][1])
        if self._waiting_since is None and self._acknowledged > self._delivered:
            self._waiting_since = event.until

    def deliver(self, event: Event) -> None:
        self._note(event.partition, event.since, event.by)
        self._delivered = max(self._delivered, event.ranges[-1][1])
        self._quiet_since, self._before = event.until, event.by
        if self._acknowledged <= self._delivered:
            self._waiting_since = None

    def longest(self, partition: Partition, end: float) -> Gap | None:
        """The longest gap of all when the history ends at `end`; None where nothing ever waited."""
        self._note(partition, end, None)
        return self._longest

    def _note(self, partition: Partition, until: float, after: Process | None) -> None:
        if self._quiet_since is None or self._waiting_since is None:
            return
        start = max(self._quiet_since, self._waiting_since, self._since)
        self.stood += until - start if until - start > SPAN else 0.0
        if until - start > (self._longest.seconds if self._longest else SPAN):
            self._longest = Gap(partition, start, until, self._before, after)
