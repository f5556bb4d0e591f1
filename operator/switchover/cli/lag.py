"""`switchover lag`: consumer groups sampled and judged as the operator does it. Nothing is written."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from switchover.answers.clock import Clock, WallClock
from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.client.offsets import WireOffsets
from switchover.kafka.ports import GroupMemberships
from switchover.lag.collector import LagCollector
from switchover.lag.group import Group, Membership, group_of, worst
from switchover.lag.thresholds import Thresholds
from switchover.lag.verdicts import Effect
from switchover.lag.watch import Assessment
from switchover.lag.window import Asked, GroupOffsets, Reading
from switchover.network.credentials import Access

EXIT_CODES = {Effect.PASS: 0, Effect.FAIL: 1, Effect.HOLD: 3, Effect.INCONCLUSIVE: 3}
"""2 is for what cannot be asked at all."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which groups (none: all), of them which topics (none: all), how they read, and what they are judged by."""

    access: Access
    groups: tuple[str, ...]
    topics: frozenset[str]
    read_committed: bool
    thresholds: Thresholds

    @property
    def needed(self) -> int:
        """Samples without which there is no verdict; none where it is given at once."""
        if self.thresholds.at_once:
            return 0
        return max(self.thresholds.min_samples, math.ceil(self.thresholds.min_span / self.thresholds.poll) + 1)


@dataclass(frozen=True, slots=True)
class GroupReport:
    """One group after a sweep; `why` says why its members are not known. `gone`: it was there in an earlier sweep.
    `remade`: its topics that were deleted and created again within the window."""

    name: str
    membership: Membership | None
    why: str
    assessment: Assessment
    gone: bool = False
    remade: tuple[str, ...] = ()

    @property
    def effect(self) -> Effect:
        """What is found now. It fails as the gate fails; it passes without having passed for two minutes."""
        gate, found = self.assessment.gate.effect, self.assessment.evaluation.effect
        return gate if gate is Effect.FAIL else found


@dataclass(frozen=True, slots=True)
class Report:
    """All groups after a sweep, the worst first. `missing` more samples make a verdict; `every` is the time between two."""

    at: float
    groups: tuple[GroupReport, ...]
    missing: int
    every: float

    @property
    def effect(self) -> Effect:
        return worst([each.effect for each in self.groups] or [Effect.INCONCLUSIVE])

    @property
    def judged(self) -> bool:
        """Every partition that can be judged was: one more sample changes nothing of that."""
        if self.missing != 0:
            return self.missing < 0
        return all(each.assessment.judged.quantities.judgeable.all() for each in self.groups)


def thresholds_of(every: float, samples: int, span: float, *, once: bool = False) -> Thresholds:
    """The defaults but for the rhythm and the evidence that is asked for. Refused when a window could not hold it.

    `once`: what one sample proves is reported after the first.
    """
    poll, min_span = round(every * 1000), round(span * 1000)
    try:
        found = Thresholds(poll=poll, min_samples=samples, min_span=min_span, at_once=once)
    except ValueError as error:
        raise Refused(f"--every, --samples and --span do not fit: {error}") from None
    if (samples - 1) * poll > found.max_quiet:
        raise Refused(f"--samples {samples} with --every {every:g} take longer than the {found.max_quiet // 1000} s "
                      "that the window is sure to show")
    return found


def follow_from_here(question: Question) -> AsyncGenerator[Report]:
    """Reports with connections of our own, one every poll, without end. Raises Refused for an access that cannot be used."""
    return follow(question, WireGroups(question.access), WireOffsets(question.access), WallClock())


async def follow(
    question: Question, memberships: GroupMemberships, offsets: GroupOffsets, clock: Clock,
) -> AsyncGenerator[Report]:
    """One report every poll, without end.

    Raises Refused and Unreachable when the first sweep reads nothing; after it, what cannot be read is Inconclusive.
    """
    every = question.thresholds.poll / 1000
    sweeps = _Sweeps(question, memberships, LagCollector(offsets, clock, question.thresholds), clock)
    begun = time.monotonic()
    count = 0
    while True:
        count += 1
        groups = await sweeps.next()
        worst_first = sorted(groups, key=lambda each: (-each.effect, each.name))
        yield Report(clock.now(), tuple(worst_first), question.needed - count, every)
        await asyncio.sleep(max(0.0, begun + count * every - time.monotonic()))


class _Sweeps:
    """Remembers who was in the groups, for a sweep in which that is unknown, and what was there before."""

    def __init__(self, question: Question, memberships: GroupMemberships, collector: LagCollector, clock: Clock) -> None:
        self._clock = clock
        self._question = question
        self._memberships = memberships
        self._collector = collector
        self._known: dict[str, Membership] = {}
        self._names: tuple[str, ...] = ()
        self._topics: dict[str, frozenset[str]] = {}        # of every group that was listed, and was there
        self._ids: dict[str, UUID] = {}
        self._remade: dict[str, float] = {}                 # when a topic was seen to have another id

    async def next(self) -> list[GroupReport]:
        first = not self._names
        groups = await self._members(first)
        self._known = {name: _only(found, self._question.topics) if isinstance(found, Membership) else self._known[name]
                       for name, found in groups.items() if isinstance(found, Membership) or name in self._known}
        asked = {
            name: Asked((self._known[name].topics if name in self._known else self._question.topics)
                        or self._topics.get(name, frozenset()), self._question.read_committed)
            for name in groups}
        sweep = await self._collector.sweep(asked)
        remade = self._compare(sweep.ids)
        if first:
            self._refuse_nothing(groups, sweep.readings)
        reports = []
        for name, found in groups.items():
            why = found if isinstance(found, str) else ""
            group = self._group(name, why, sweep.partitions, sweep.readings[name])
            before = self._topics.get(name)
            gone = before is not None and self._known[name].state == "Dead" and not (why or sweep.readings[name].committed)
            topics = frozenset(each.topic for each in group.expected) or before or frozenset()
            report = GroupReport(name, self._known.get(name), why, self._collector.assess(name, group), gone,
                                 tuple(sorted(topics & remade)))
            if (name in self._question.groups or group.expected or before is not None or why or sweep.readings[name].why):
                reports.append(report)
                if name in self._known and self._known[name].state != "Dead":
                    self._topics[name] = topics
        if first and not reports:
            raise Refused(f"no consumer group at {self._question.access.servers} has anything to consume"
                          + (f" of {', '.join(sorted(self._question.topics))}" if self._question.topics else ""))
        return reports

    def _compare(self, ids: Mapping[str, UUID]) -> frozenset[str]:
        """The topics that have another id than they had, for as long as the window has samples of the one before."""
        now = self._clock.now()
        self._remade |= {topic: now for topic, found in ids.items() if self._ids.get(topic, found) != found}
        self._ids |= ids
        return frozenset(topic for topic, at in self._remade.items() if now - at < self._question.thresholds.window / 1000)

    async def _members(self, first: bool) -> Mapping[str, Membership | str]:
        """Who is in the groups, or why that is unknown."""
        try:
            self._names = self._question.groups or tuple(sorted({*await self._memberships.groups(), *self._topics}))
            if not self._names:
                raise Refused(f"no consumer group at {self._question.access.servers}, or none that our user may see")
            return await self._memberships.memberships(self._names)
        except (Unreachable, Refused) as error:
            if first:
                raise
            return dict.fromkeys(self._names, str(error))

    def _group(self, name: str, why: str, partitions: Mapping[str, int], reading: Reading) -> Group:
        if name not in self._known:
            return Group(frozenset(), None, None, None)
        topics = self._question.topics
        committed = reading.committed & topics if topics else reading.committed
        group = group_of(self._known[name], partitions, committed)
        return replace(group, stable=None, generation=None, sole_owners=None) if why else group

    def _refuse_nothing(self, groups: Mapping[str, Membership | str], readings: Mapping[str, Reading]) -> None:
        for name in self._question.groups:
            membership = groups[name]
            if isinstance(membership, Membership) and membership.state == "Dead" and not (
                    readings[name].committed or readings[name].why):
                raise Refused(f"group {name} does not exist at {self._question.access.servers}")
        if all(reading.why for reading in readings.values()):
            raise Unreachable(next(iter(f"group {name}: {reading.why}" for name, reading in readings.items())))


def _only(membership: Membership, topics: frozenset[str]) -> Membership:
    if not topics:
        return membership
    return Membership(membership.state, {
        member: frozenset(each for each in owned if each.topic in topics) for member, owned in membership.assigned.items()})
