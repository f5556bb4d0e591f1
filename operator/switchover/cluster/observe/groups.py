"""How far the consumer groups are that must stay healthy while brokers are replaced, sweep after sweep."""

from collections.abc import Iterable, Mapping

from switchover.answers.ask import Answers, known
from switchover.answers.clock import Clock
from switchover.answers.observed import Known, Observed, Unknown
from switchover.api.meta import GroupHealth
from switchover.kafka.limits import SWEEP_SECONDS
from switchover.kafka.ports import GroupMemberships
from switchover.lag.collector import LagCollector
from switchover.lag.group import Membership
from switchover.lag.thresholds import Thresholds, of_a_cluster
from switchover.lag.watch import JudgedGroup
from switchover.lag.window import Asked, GroupOffsets, Reading

SAMPLE_SECONDS = 2.0
"""Time between two sweeps."""
MEMBERS_SECONDS = 15.0
"""How old it may be who the members are."""


def thresholds(group: GroupHealth) -> Thresholds:
    """What the user allows."""
    return of_a_cluster(round(SAMPLE_SECONDS * 1000), group.max_lag, group.max_stall_seconds * 1000)


class WatchedGroups:
    """What is found of each group that the spec names. Nothing of it outlives the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offsets: GroupOffsets | None = None
        self._collector: LagCollector | None = None
        self._judged: Observed[dict[str, JudgedGroup | str]] = Unknown("no offset was read yet")
        self._groups: dict[str, GroupHealth] = {}

    async def seen(self, groups: Iterable[GroupHealth], offsets: GroupOffsets) -> dict[str, Observed[JudgedGroup]]:
        """Each as it was judged last, after one more sweep unless the last one was just now."""
        named = {group.name: group for group in groups}
        if not named:
            return {}
        judged = self._judged
        if named != self._groups or not isinstance(judged, Known) or self._clock.now() - judged.at >= SAMPLE_SECONDS:
            if self._collector is None or offsets is not self._offsets:
                self._collector, self._offsets = LagCollector(offsets, self._clock), offsets
            self._groups = named
            self._judged = await known(_judge(self._collector, named), SWEEP_SECONDS, self._clock)
        return {name: self._of(name) for name in named}

    def _of(self, name: str) -> Observed[JudgedGroup]:
        if not isinstance(self._judged, Known):
            return Unknown(f"group {name}: {self._judged.why}")
        found = self._judged.value[name]
        return Unknown(f"group {name}: {found}") if isinstance(found, str) else Known(found, self._judged.at)


async def members_of(groups: Iterable[GroupHealth], memberships: GroupMemberships,
                     answers: Answers) -> dict[str, Observed[Membership]]:
    """Who is in each of them."""
    names = tuple(group.name for group in groups)
    if not names:
        return {}
    answer = await answers.observed(
        "members", lambda: memberships.memberships(names), MEMBERS_SECONDS, made_of=(names, memberships))
    if not isinstance(answer, Known):
        return dict.fromkeys(names, answer)
    return {name: Unknown(found) if isinstance(found, str) else Known(found, answer.at)
            for name, found in answer.value.items()}


async def _judge(collector: LagCollector, named: Mapping[str, GroupHealth]) -> dict[str, JudgedGroup | str]:
    """One more sweep: what is found of each group, or why it is not known."""
    sweep = await collector.sweep(
        {name: Asked(read_committed=group.isolation == "ReadCommitted") for name, group in named.items()},
        {name: thresholds(group) for name, group in named.items()})
    return {name: _why_not(sweep.readings[name]) or collector.judge(name) for name in named}


def _why_not(reading: Reading) -> str:
    """Why a reading does not have all of a group; "" where it does."""
    return reading.why or min((f"{each}: {why}" for each, why in reading.failed.items()), default="")
