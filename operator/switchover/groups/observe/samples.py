"""The offsets of a group, sweep after sweep: samples for gates that look back, both stores, and the lag judged by them."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from switchover.answers.ask import known
from switchover.answers.clock import Clock
from switchover.answers.observed import NOT_ASKED, Known, Observed, Unknown
from switchover.engine.approvals import PREFLIGHT
from switchover.groups.coordination.members import Members
from switchover.groups.facts import GroupSample, Stored, StoreSample
from switchover.groups.gates.convergence import expected
from switchover.groups.gates.lag import POLL, thresholds
from switchover.groups.picture import Facts, Picture
from switchover.kafka.group import Group, GroupState
from switchover.kafka.limits import SWEEP_SECONDS
from switchover.lag.baseline import WeeklyBaseline
from switchover.lag.collector import LagCollector
from switchover.lag.group import Group as LagGroup
from switchover.lag.group import Membership
from switchover.lag.samples import NONE
from switchover.lag.watch import Assessment
from switchover.lag.window import Asked, GroupOffsets, Offsets, Sweep
from switchover.shared.partition import TopicPartition
from switchover.zookeeper.ports import ZooKeeperGroups


class BothStores:
    """`GroupOffsets` of one group in two stores. `last` is what the last sweep found in each."""

    def __init__(self, kafka: GroupOffsets, zookeeper: ZooKeeperGroups, clock: Clock) -> None:
        self._kafka = kafka
        self._zookeeper = zookeeper
        self._clock = clock
        self.last: StoreSample | None = None

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        """A sweep of the one group, with the greater one of both commits, but none beyond the end that was read before."""
        (group,) = asked
        at = self._clock.now()
        sweep = await self._kafka.sweep(asked)
        committed = await self._zookeeper.offsets(group)
        reading = sweep.readings[group]
        self.last = StoreSample(at, {
            each: Stored(committed.get(each), None if offsets.committed == NONE else offsets.committed,
                         offsets.start, offsets.end)
            for each, offsets in reading.offsets.items()})
        return replace(sweep, readings={group: replace(reading, offsets=dict(_merged(reading.offsets, committed)))})

    async def close(self) -> None:
        """Both are closed by whoever opened them."""


def _merged(kafka: Mapping[TopicPartition, Offsets],
            zookeeper: Mapping[TopicPartition, int]) -> Iterator[tuple[TopicPartition, Offsets]]:
    for each, offsets in kafka.items():
        yield each, offsets._replace(committed=max(offsets.committed, min(zookeeper.get(each, NONE), offsets.end)))


STORED_SECONDS = 600.0
"""How far samples reach back, once something has begun; before that nothing looks further back than to the last one."""
Commits = Mapping[TopicPartition, tuple[int | None, int]]
"""Of each partition the commit, and the end of what there is to consume."""
FRESH_SECONDS = 4 * POLL / 1000
"""How old the last reading of both stores may be: what starts next goes on from there."""


class GroupSamples:
    """What the sweeps over one group have found. Nothing of it outlives the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[GroupSample] = deque()
        self._stores: deque[StoreSample] = deque()
        self._both: BothStores | None = None
        self._collector: LagCollector | None = None
        self._judged_by: object = None
        self._lag: Observed[Assessment] = NOT_ASKED
        self._partitions: Observed[Mapping[str, int]] = NOT_ASKED

    def laid_into(self, facts: Facts) -> Facts:
        """The facts with what is known now."""
        samples: Observed[tuple[GroupSample, ...]] = Unknown("no offset was read yet")
        if self._samples:
            samples = Known(tuple(self._samples), self._samples[-1].at)
        return replace(facts, samples=samples, stores=self._both_stores(), lag=self._lag, partitions=self._partitions)

    def _both_stores(self) -> Observed[tuple[StoreSample, ...]]:
        if self._both is None:
            return NOT_ASKED
        if not self._stores:
            return Unknown("no offset was read yet")
        if (age := self._clock.now() - self._stores[-1].at) > FRESH_SECONDS:
            return Unknown(f"offsets were read {age:.0f} s ago and not since")
        return Known(tuple(self._stores), self._stores[-1].at)

    async def take(self, picture: Picture, offsets: GroupOffsets, zookeeper: ZooKeeperGroups | None) -> None:
        """One more sweep over the group, unless the last one was just now, and the lag judged by it."""
        now, group = self._clock.now(), picture.facts.group
        members = picture.members.value if isinstance(picture.members, Known) else None
        if not isinstance(group, Known) or (self._samples and now - self._samples[-1].at < POLL / 1000):
            return
        if zookeeper is not None and members is None:
            return                                          # nobody can tell its topics
        topics = _topics(group.value) | (members.topics() if members is not None else frozenset())
        name, limits = picture.spec.group, thresholds(picture)
        read_committed = picture.spec.gates.isolation == "ReadCommitted"
        if self._collector is None or self._judged_by != (offsets, zookeeper, limits, read_committed):
            self._both = BothStores(offsets, zookeeper, self._clock) if zookeeper is not None else None
            self._collector = LagCollector(self._both or offsets, self._clock, limits)
            self._judged_by = (offsets, zookeeper, limits, read_committed)
        sweep = await known(self._collector.sweep({name: Asked(topics, read_committed)}), SWEEP_SECONDS, self._clock)
        if not isinstance(sweep, Known) or sweep.value.readings[name].why:
            self._partitions = sweep if isinstance(sweep, Unknown) else Unknown(sweep.value.readings[name].why)
            self._lag = self._partitions
            return
        epoch = group.value.epoch if members is None else members.generation
        before = self._samples[-1].offsets if self._samples else {}
        self._keep(GroupSample(now, epoch, _shared(self._collector.left(name), before), self._collector.judge(name).stood),
                   picture.spec.gates.quiet_seconds, 0.0 if picture.position.step == PREFLIGHT else STORED_SECONDS)
        self._partitions = Known({name: count for name, count in sweep.value.partitions.items() if name in topics}, sweep.at)
        opened = picture.position.opened
        own = (_lag_group(group.value, self._partitions.value) if members is None
               else _coordinated_lag_group(members, self._partitions.value))
        baseline = picture.facts.baseline.value if isinstance(picture.facts.baseline, Known) else None
        self._lag = Known(self._collector.assess(
            name, own, None if opened is None else round(opened * 1000),
            baseline if isinstance(baseline, WeeklyBaseline) else None), sweep.at)

    def _keep(self, sample: GroupSample, quiet_seconds: int, stored_seconds: float) -> None:
        self._samples.append(sample)
        while sample.at - self._samples[0].at > stored_seconds:
            self._samples.popleft()
        if self._both is not None and self._both.last is not None:
            self._stores.append(self._both.last)
            while len(self._stores) > 2 and sample.at - self._stores[1].at >= quiet_seconds:
                self._stores.popleft()


def _shared(found: Commits, before: Commits) -> Commits:
    """What was found, nothing stored twice that is as it was in the sample before: most of a group that rests."""
    if found == before:
        return before
    known = {each: (each, value) for each, value in before.items()}
    shared: dict[TopicPartition, tuple[int | None, int]] = {}
    for each, value in found.items():
        key, last = known.get(each, (each, value))
        shared[key] = last if last == value else value
    return shared


def _topics(group: Group) -> frozenset[str]:
    owned: Iterable[str] = (each.topic for member in group.members for each in member.target)
    return frozenset(owned).union(*(member.topics for member in group.members))


def _lag_group(group: Group, partitions: Mapping[str, int]) -> LagGroup:
    wanted = expected(group, partitions)
    owners = Counter(each for member in group.members for each in member.assigned)
    assigned = {member.member_id: member.assigned for member in group.members}
    return LagGroup(
        wanted, stable=group.state is GroupState.STABLE, generation=Membership(group.state, assigned).generation,
        sole_owners=all(owners[each] == 1 for each in wanted))


def _coordinated_lag_group(members: Members, partitions: Mapping[str, int]) -> LagGroup:
    """Settled while every partition has one owner: the group that Kafka knows may have no member at all."""
    wanted = members.expected(partitions)
    sole = all(len(members.owners.get(each, ())) == 1 for each in wanted)
    return LagGroup(wanted, stable=sole, generation=members.generation, sole_owners=sole)
