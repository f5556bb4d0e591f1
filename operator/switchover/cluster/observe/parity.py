"""The comparison of ZooKeeper's metadata with KRaft's, read in the background: on a large cluster it outlasts a pass."""

import asyncio
from collections.abc import Awaitable, Callable

from switchover.answers.clock import Clock
from switchover.answers.errors import Refused, Unreachable
from switchover.answers.observed import NOT_ASKED, Known, Observed, Unknown
from switchover.metadata.parity import Comparison, LogImage, MigrationState, Parity, TreeReading, compare

PAUSE_SECONDS = 5.0
"""Between two readings of the tree; after one that took longer than half of it, twice what that took."""
LIFE_SECONDS = 60.0
"""How long a reading is evidence, in addition to three times what it took."""


class ParityWatch:
    """Reads again and again while it is asked, and remembers what must be known of the reading before."""

    def __init__(self, read: Callable[[str | None, bool], Awaitable[TreeReading]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._reading: asyncio.Task[Observed[TreeReading]] | None = None
        self._began = self._due = self._took = 0.0
        self._last: Comparison | None = None
        self._known: Known[Parity] | None = None
        self._why = ""

    def begin(self, secret: str | None, states: bool) -> None:
        """Start a reading when it is time, with the partitions' states where `states` are wanted. `secret` is the brokers'
        `password.encoder.secret`."""
        now = self._clock.now()
        if self._reading is None and now >= self._due:
            self._began = now
            self._reading = asyncio.create_task(self._observed(secret, states))

    def end(self, log: Observed[LogImage]) -> Observed[Parity]:
        """The newest comparison, with the time at which its reading began. `log` was read in this pass."""
        now = self._clock.now()
        if self._reading is not None and self._reading.done():
            self._took = now - self._began
            self._due = now + max(PAUSE_SECONDS, 2 * self._took)
            self._take(self._reading.result(), log)
            self._reading = None
        if self._known is not None and now - self._known.at <= LIFE_SECONDS + 3 * self._took:
            return self._known
        return Unknown(self._why or "the first comparison of ZooKeeper's metadata with KRaft's is under way")

    def forget(self) -> Observed[Parity]:
        """Nobody asks any more: what comes later has nothing to do with what was."""
        if self._reading is not None:
            self._reading.cancel()
        self._reading, self._last, self._known, self._why, self._due = None, None, None, "", 0.0
        return NOT_ASKED

    def _take(self, tree: Observed[TreeReading], log: Observed[LogImage]) -> None:
        if not isinstance(tree, Known):
            self._why = f"ZooKeeper's metadata: {tree.why}"
        elif not isinstance(log, Known):
            self._why = f"KRaft's metadata: {log.why}"
        elif log.value.migration_state is not MigrationState.MIGRATION:
            self._why = "the metadata log does not say MIGRATION"
        else:
            self._last = compare(self._last, tree.value, log.value)
            self._known = Known(self._last.parity, tree.at)

    async def _observed(self, secret: str | None, states: bool) -> Observed[TreeReading]:
        at = self._clock.now()
        try:
            return Known(await self._read(secret, states), at)
        except (Unreachable, Refused) as error:
            return Unknown(str(error))
