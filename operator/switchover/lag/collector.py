"""Sweep after sweep over consumer groups: their windows, verdicts and gates."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from switchover.answers.clock import Clock
from switchover.answers.errors import Refused, Unreachable
from switchover.lag.baseline import WeeklyBaseline
from switchover.lag.group import Group
from switchover.lag.thresholds import Thresholds
from switchover.lag.unreadable import Stretch
from switchover.lag.watch import Assessment, JudgedGroup, Watch
from switchover.lag.window import Asked, GroupOffsets, Reading, Sweep
from switchover.shared.partition import TopicPartition

DEFAULTS: Final = Thresholds()
LOOKS = 100
"""Partitions of all groups in whose logs one sweep looks; the others wait for the next."""


class LagCollector:
    """Watches the groups that each sweep asks for; one that is not asked for any more is forgotten.

    After `sweep`, `assess` each group with what is true of it besides its lag. Nothing outlives the process: a gate without
    its samples would be Inconclusive all the same.
    """

    def __init__(self, offsets: GroupOffsets, clock: Clock, thresholds: Thresholds = DEFAULTS) -> None:
        self._offsets = offsets
        self._clock = clock
        self._thresholds = thresholds
        self._watches: dict[str, Watch] = {}
        self._now = 0                             # of the last sweep, in ms since the epoch

    async def sweep(self, asked: Mapping[str, Asked], own: Mapping[str, Thresholds] = MappingProxyType({})) -> Sweep:
        """Read all groups once more. Where nobody answers, every group's samples are invalid, and say why.

        `own`: the thresholds of groups that are judged by others than the collector's. Where they change, the group's window
        starts over.
        """
        asked = self._with_looks(asked)
        try:
            found = await self._offsets.sweep(asked)
        except (Unreachable, Refused) as error:
            found = Sweep({group: Reading(why=str(error)) for group in asked})
        self._watches = {group: self._watch(group, wanted.read_committed, own.get(group, self._thresholds))
                         for group, wanted in asked.items()}
        for group, watch in self._watches.items():
            watch.add(found.readings[group])
        self._now = round(self._clock.now() * 1000)
        return found

    def _with_looks(self, asked: Mapping[str, Asked]) -> dict[str, Asked]:
        """The same, and where to look for records: first where nobody has, then where that is longest ago."""
        watches = {name: self._watches[name] for name in asked if name in self._watches}
        doubts = sorted((doubt, name) for name, watch in watches.items() for doubt in watch.doubts())
        looks: dict[str, dict[TopicPartition, Stretch]] = {name: {} for name in asked}
        for (_, partition), name in doubts[:LOOKS]:
            looks[name][partition] = watches[name].look(partition)
        return {name: replace(wanted, looks=looks[name]) for name, wanted in asked.items()}

    def _watch(self, name: str, read_committed: bool, thresholds: Thresholds) -> Watch:
        """The one that there is; another when the group is read in another way by now, or judged by other limits."""
        last = self._watches.get(name)
        if last is not None and last.read_committed == read_committed and last.thresholds == thresholds:
            return last
        return Watch(thresholds, read_committed=read_committed)

    def left(self, name: str) -> dict[TopicPartition, tuple[int | None, int]]:
        """Commit and end of each partition of a group of the last sweep, as `Watch.left` has them."""
        return self._watches[name].left()

    def judge(self, name: str) -> JudgedGroup:
        """Judge a group as the last sweep found it, by its lag alone."""
        return self._watches[name].judge(self._now)

    def assess(self, name: str, group: Group, since: int | None = None, usual: WeeklyBaseline | None = None) -> Assessment:
        """Judge a group as the last sweep found it, by what is usual for it where that is known.

        `since`: when the running step began, in ms since the epoch.
        """
        return self._watches[name].assess(group, self._now, since, usual)
