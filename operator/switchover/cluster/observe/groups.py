"""How far the consumer groups are that must stay healthy while brokers are replaced, sweep after sweep."""

from collections import deque
from collections.abc import Iterable

from switchover.api.meta import GroupHealth
from switchover.cluster.facts import GroupSample
from switchover.lag.collector import LagCollector
from switchover.lag.standstill import keep, span
from switchover.lag.thresholds import Thresholds
from switchover.lag.window import Asked, GroupOffsets, Reading, Sweep
from switchover.outside.ask import known
from switchover.outside.clock import Clock
from switchover.outside.observed import Known, Observed, Unknown

SWEEP_SECONDS = 8.0
"""How long a sweep over all of them may take."""
SAMPLE_SECONDS = 2.0
"""Time between two sweeps."""
THRESHOLDS = Thresholds(poll=round(SAMPLE_SECONDS * 1000))
"""Of which the collector needs how long an end stands before it looks into the log behind a commit."""


class WatchedGroups:
    """The samples of each group that the spec names. Nothing of it outlives the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offsets: GroupOffsets | None = None
        self._collector: LagCollector | None = None
        self._swept: Observed[Sweep] = Unknown("no offset was read yet")
        self._asked: dict[str, Asked] = {}
        self._samples: dict[str, deque[GroupSample]] = {}

    async def seen(
        self, groups: Iterable[GroupHealth], offsets: GroupOffsets,
    ) -> dict[str, Observed[tuple[GroupSample, ...]]]:
        """The samples of each, after one more sweep unless the last one was just now."""
        named = {group.name: group for group in groups}
        asked = {name: Asked(read_committed=group.isolation == "ReadCommitted") for name, group in named.items()}
        if not asked:
            return {}
        now, swept = self._clock.now(), self._swept
        if asked != self._asked or not isinstance(swept, Known) or now - swept.at >= SAMPLE_SECONDS:
            await self._sweep(asked, offsets)
            for name, group in named.items():
                self._keep(name, now, span(group.max_stall_seconds))
        return {name: self._told(name) for name in named}

    async def _sweep(self, asked: dict[str, Asked], offsets: GroupOffsets) -> None:
        if self._collector is None or offsets is not self._offsets:
            self._collector, self._offsets = LagCollector(offsets, self._clock, THRESHOLDS), offsets
        self._asked = asked
        self._swept = await known(self._collector.sweep(asked), SWEEP_SECONDS, self._clock)

    def _keep(self, name: str, now: float, seconds: float) -> None:
        if not isinstance(self._swept, Known) or _why_not(self._swept.value.readings[name]):
            return
        assert self._collector is not None, "it has swept"
        keep(self._samples.setdefault(name, deque()), GroupSample(now, self._collector.left(name)), seconds)

    def _told(self, name: str) -> Observed[tuple[GroupSample, ...]]:
        if not isinstance(self._swept, Known):
            return Unknown(f"group {name}: {self._swept.why}")
        if why := _why_not(self._swept.value.readings[name]):
            return Unknown(f"group {name}: {why}")
        return Known(tuple(self._samples[name]), self._samples[name][-1].at)


def _why_not(reading: Reading) -> str:
    """Why a reading does not tell all of a group; "" where it does."""
    return reading.why or min((f"{each}: {why}" for each, why in reading.failed.items()), default="")
