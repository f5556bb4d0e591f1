"""Sweep after sweep over consumer groups: their windows, verdicts and gates."""

from collections.abc import Mapping

from switchover.lag.baseline import WeeklyBaseline
from switchover.lag.group import Group
from switchover.lag.thresholds import Thresholds
from switchover.lag.watch import Assessment, Watch
from switchover.lag.window import Asked, Reading, Sweep
from switchover.ports import Clock, GroupOffsets, Refused, Unreachable


class LagCollector:
    """Watches the groups that each sweep asks for; one that is not asked for any more is forgotten.

    After `sweep`, `assess` each group with what is true of it beside its lag. Nothing outlives the process: a gate without
    its samples would be Inconclusive all the same.
    """

    def __init__(self, offsets: GroupOffsets, clock: Clock, thresholds: Thresholds) -> None:
        self._offsets = offsets
        self._clock = clock
        self._thresholds = thresholds
        self._watches: dict[str, Watch] = {}

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        """Read all groups once more. Where nobody answers, every group's samples are invalid, and say why."""
        try:
            found = await self._offsets.sweep(asked)
        except (Unreachable, Refused) as error:
            found = Sweep({group: Reading(why=str(error)) for group in asked})
        self._watches = {
            group: self._watches.get(group) or Watch(self._thresholds, read_committed=wanted.read_committed)
            for group, wanted in asked.items()}
        for group, watch in self._watches.items():
            watch.add(found.readings[group])
        return found

    def assess(self, name: str, group: Group, since: int | None = None, usual: WeeklyBaseline | None = None) -> Assessment:
        """Judge a group of the last sweep now, by what is usual for it where that is known.

        `since`: when the running step began, in ms since the epoch.
        """
        return self._watches[name].assess(group, round(self._clock.now() * 1000), since, usual)
