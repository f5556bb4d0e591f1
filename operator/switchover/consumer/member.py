"""One member of a group that ZooKeeper or Kafka coordinates, as a pure state machine: events in, requests out
(docs/facts/coordination.md#the-rules).

A partition passes these phases, each with at most one request under way:

    Claiming    the owner node is being created; refused: tried again later
    Reading     ours; the offsets of both stores are being read
    Fetching    handed to the application
    Stopping    until the application has done with what it was given
    Committing  until the store that the next owner reads has the position; also of what is let go before it was fetched
    Lingering   the position is there, the node is kept a moment (D1 of docs/facts/coordination.md#its-defects)
    Releasing   the owner node is being deleted, or replaced by a guard

The owner node is the fence in both modes (R1): the mode says only which partitions are wanted.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from switchover.consumer.messages import (
    Abandon,
    Acknowledge,
    AllowRevoke,
    Answer,
    Changed,
    Claim,
    Claimed,
    Closing,
    Commit,
    CommittedToKafka,
    CommittedToZooKeeper,
    Connected,
    Describe,
    Described,
    Event,
    Expired,
    Failed,
    GoOn,
    GroupAssigned,
    GroupLost,
    GroupRevoking,
    Guard,
    Leave,
    OffsetsRead,
    OwnerFreed,
    OwnerGone,
    Partitions,
    ReadOffsets,
    ReadWorld,
    Register,
    Registered,
    Release,
    Released,
    Request,
    Resumed,
    Start,
    Stop,
    Stopped,
    Suspended,
    Tick,
    Wake,
    WorldRead,
)
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.assignment import Ambiguous, Strategy, Text, thread_id
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Malformed
from switchover.coordination.world import Owner, World
from switchover.partition import TopicPartition

AGAIN = 0.2
"""Seconds after which what failed is asked again."""
REFUSED_AGAIN = 1.0
"""Seconds after which a claim that another owner refused is tried again, unless the node is seen to go before."""
LINGER = 0.3
"""Seconds: longer than an old member takes from reading an offset to claiming (docs/facts/coordination.md#its-defects)."""
KAFKA_PATIENCE = 2.0
"""Seconds that a release in zookeeper mode waits for Kafka's answer to the commit: old members give up after six."""
AUDIT, AUDIT_WITH_OLD = 30.0, 5.0
"""Seconds between readings of the group when nothing is heard; nobody tells when another's owner node comes or goes."""
PARKED = 10.0
"""Seconds without an owner after which an old member has given up: four attempts, two seconds apart
(docs/facts/coordination.md#the-old-consumers-rebalance)."""


class Phase(StrEnum):
    """What a partition that we want, or still hold, is in."""

    CLAIMING = "Claiming"
    READING = "Reading"
    FETCHING = "Fetching"
    STOPPING = "Stopping"
    COMMITTING = "Committing"
    LINGERING = "Lingering"
    RELEASING = "Releasing"


ENDING = frozenset({Phase.STOPPING, Phase.COMMITTING, Phase.LINGERING, Phase.RELEASING})


@dataclass(slots=True)
class Holding:
    """A partition on its way. `request` is the number of what is under way for it, 0 for nothing."""

    thread: str
    phase: Phase = Phase.CLAIMING
    request: int = 0
    due: float = 0.0                    # not before
    patience: float = 0.0               # until when Kafka's answer to the last commit is waited for
    in_zookeeper: bool = False          # the last position
    in_kafka: bool = False

    def enter(self, phase: Phase, due: float = 0.0) -> None:
        self.phase, self.due, self.request = phase, due, 0


@dataclass(frozen=True, slots=True)
class Rules:
    """What a member is made by. `commit_interval` in seconds, None without automatic commits."""

    consumer_id: str
    enabled: bool = True                # coordination.migration.enabled
    strategy: Strategy = Strategy.RANGE
    text: Text = Text.SINCE_1_0
    exclude_internal: bool = True
    commit_interval: float | None = 5.0


class Member:
    """The state of one member. `handle` takes an event and gives what is to be asked now; times are of a monotonic clock."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.mode: Mode | None = None if rules.enabled else Mode.ZOOKEEPER
        self.mode_version = -1
        self.waits = ""                                     # why the mode znode is not followed
        self.trouble = ""                                   # why the partitions of a member cannot be computed
        self.session: int | None = None
        self.world: World | None = None
        self.assigned: Partitions | None = None             # by Kafka; None while its group rebalances
        self.generation = -1
        self.holdings: dict[TopicPartition, Holding] = {}
        self.suspended = self.registered = self.revoking = self.closing = self.left = False
        self._number = 0
        self._registering = self._reading = self._describing = 0        # numbers of requests under way
        self._register_due = self._read_due = self._describe_due = 0.0
        self._commit_due = 0.0
        self._refused: dict[TopicPartition, float] = {}
        self._orphans: dict[TopicPartition, float] = {}
        self._known: frozenset[str] = frozenset()           # every migration-enabled member ever seen
        self._nodes_seen = False                            # the owner nodes were seen to be ours, since the last doubt
        self._share_seen = False                            # Kafka was seen to hold us for the owner of what it assigned
        self._may_go_on = False
        self._told: Acknowledgement | None = None
        self._computed: tuple[World, Mapping[TopicPartition, str]] | None = None
        self._fresh = False                                 # the world was read and _keep_watch has not looked at it
        self._wanted: Mapping[TopicPartition, str] = {}
        self._requests: list[Request] = []
        self._now = 0.0

    # --- in and out ---------------------------------------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> list[Request]:
        """What is to be asked after `event`."""
        self._now = now
        self._take(event)
        self._advance()
        requests, self._requests = self._requests, []
        return requests

    @property
    def due(self) -> float:
        """When a Tick is worth its while, seconds of the monotonic clock."""
        times = [due for holding in self.holdings.values() for due in (holding.due, holding.patience) if due > self._now]
        times += [due for due in (self._read_due, self._register_due, self._describe_due) if due > self._now]
        times += [due for due in self._refused.values() if due > self._now]
        if self.rules.commit_interval is not None:
            times.append(self._commit_due)
        return min(times, default=self._now + AUDIT)

    def fetching(self) -> Partitions:
        """The partitions that are the application's."""
        return self._in(Phase.FETCHING)

    # --- events -------------------------------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        match event:
            case Tick():
                pass
            case Changed():
                self._read_due = self._now
            case WorldRead(number, world) if number == self._reading:
                self._reading = 0
                self._see(world)
            case Claimed() | OffsetsRead() | Stopped() | CommittedToZooKeeper() | CommittedToKafka() | Released():
                self._answered(event)
            case Connected(session):
                self.session, self.suspended, self.registered, self.world = session, False, False, None
                self._doubt()
                self._registering, self._register_due = 0, self._now
            case Suspended():
                self.suspended = True
                self._doubt()
            case Resumed():
                self.suspended, self._read_due = False, self._now
            case Expired():
                self._expire()
            case OwnerGone(partition):
                self._lose({partition})
            case OwnerFreed(partition):
                self._refused.pop(partition, None)
            case GroupAssigned(partitions):
                self.assigned, self.revoking, self._share_seen = partitions, False, True
                self.generation += 1
            case GroupRevoking():
                self.assigned, self.revoking = None, True
            case GroupLost():
                self._lost_by_kafka()
            case Described(number, assigned) if number == self._describing:
                self._describing, self._describe_due = 0, self._now + 1.0
                self._hear_of(assigned)
            case Registered(number) if number == self._registering:
                self._registering, self.registered, self._read_due = 0, True, self._now
            case Failed(number) if number:
                self._failed(number)
            case Closing():
                self.closing = True

    def _answered(self, event: Answer) -> None:
        """Move what the answered request was about. An answer that nothing waits for any more changes nothing."""
        about = {partition: holding for partition, holding in self.holdings.items() if holding.request == event.number}
        match event:
            case Claimed(_, held):
                for partition, holding in about.items():
                    if partition in held:
                        holding.enter(Phase.READING)
                    else:
                        del self.holdings[partition]
                        self._refused[partition] = self._now + REFUSED_AGAIN
            case OffsetsRead(_, starts, behind):
                self._start({partition: starts[partition] for partition in about}, behind)
            case Stopped():
                for holding in about.values():
                    self._finish(holding)
            case CommittedToZooKeeper(_, gone):
                for partition, holding in about.items():
                    holding.in_zookeeper = partition not in gone
                self._lose(gone)
            case CommittedToKafka(_, fenced):
                for holding in about.values():
                    holding.in_kafka = True
                if fenced and self.mode is Mode.KAFKA:      # others have them: nothing is committed again
                    for holding in about.values():
                        holding.enter(Phase.RELEASING)
            case Released():
                for partition in about:
                    del self.holdings[partition]

    def _start(self, positions: Mapping[TopicPartition, int], behind: Partitions) -> None:
        """Fetch what is wanted. Whoever comes next finds the position in both stores, also of what nobody fetched."""
        wanted = [each for each in positions if self._wanted.get(each) == self.holdings[each].thread]
        for partition in positions.keys() - wanted:
            if partition in behind:
                self._finish(self.holdings[partition])
            else:
                self.holdings[partition].enter(Phase.RELEASING)
        if not wanted:
            return
        for partition in wanted:
            self.holdings[partition].enter(Phase.FETCHING)
        self._ask(Start({each: positions[each] for each in wanted}, {each: self.holdings[each].thread for each in wanted}))
        if idle := behind.intersection(wanted):
            self._ask(Commit(self._next(), idle))

    def _finish(self, holding: Holding) -> None:
        holding.enter(Phase.COMMITTING)
        holding.in_zookeeper = holding.in_kafka = False
        holding.patience = self._now + KAFKA_PATIENCE

    def _failed(self, number: int) -> None:
        for holding in self.holdings.values():
            if holding.request == number:
                holding.request, holding.due = 0, self._now + AGAIN
        if number == self._registering:
            self._registering, self._register_due = 0, self._now + AGAIN
        if number == self._reading:
            self._reading, self._read_due = 0, self._now + AGAIN
        if number == self._describing:
            self._describing, self._describe_due = 0, self._now + 1.0
            self.waits = f"cannot ask Kafka who is in the group, and goes to {Mode.ZOOKEEPER} mode only with that knowledge"

    def _expire(self) -> None:
        """Every ephemeral node of ours is gone. Kafka mode stays: what forbids to leave it holds all the same. Zookeeper
        mode is begun anew: nobody waits for an acknowledgement that is gone, so KafkaConsumers may have come meanwhile."""
        self._abandon(self.holdings.keys())
        self.holdings.clear()
        self._refused.clear()
        self.session, self.world, self.registered, self.suspended = None, None, False, False
        if self.mode is Mode.ZOOKEEPER and self.rules.enabled:
            self.mode = None
        self._reading = self._registering = 0
        self._told = None

    def _doubt(self) -> None:
        """The process may have been stopped for long: neither ZooKeeper's nodes nor Kafka's assignment are believed."""
        self._nodes_seen = self._share_seen = self._may_go_on = False

    def _lost_by_kafka(self) -> None:
        """Kafka has given our partitions to others; in kafka mode they are let go at once, uncommitted."""
        self.assigned, self.revoking = None, False
        if self.mode is Mode.KAFKA:
            self._give_up()

    def _give_up(self) -> None:
        self._abandon(self.holdings.keys())
        for holding in self.holdings.values():
            if holding.phase is not Phase.RELEASING:
                holding.enter(Phase.RELEASING)

    def _lose(self, partitions: Iterable[TopicPartition]) -> None:
        """Owner nodes that are not ours any more."""
        lost = [each for each in partitions if each in self.holdings and self.holdings[each].phase is not Phase.CLAIMING]
        self._abandon(lost)
        for partition in lost:
            del self.holdings[partition]

    def _abandon(self, partitions: Iterable[TopicPartition]) -> None:
        handed = frozenset(each for each in partitions if self.holdings[each].phase in (Phase.FETCHING, Phase.STOPPING))
        if handed:
            self._ask(Abandon(handed))

    # --- the group as it is seen --------------------------------------------------------------------------------------

    def _see(self, world: World) -> None:
        self.world = world
        if world.old:                                       # what has changed since it was asked for is not overridden
            self._read_due = min(self._read_due, self._now + AUDIT_WITH_OLD)
        self._known |= world.acknowledgements.keys()
        if self.rules.consumer_id not in world.registrations:
            self.registered = False
            return
        self._lose([partition for partition, holding in self.holdings.items()
                    if holding.phase not in (Phase.CLAIMING, Phase.RELEASING)
                    and world.owners.get(partition) != Owner(holding.thread, self.session or 0)])
        self._nodes_seen = self._fresh = True

    def _target(self, world: World) -> tuple[Mode, str]:
        """The mode to be in, and why that is not what the mode znode says."""
        if not self.rules.enabled:
            return Mode.ZOOKEEPER, ""
        if world.old:
            return Mode.ZOOKEEPER, f"{world.old[0]} is not migration-enabled" if world.mode is Mode.KAFKA else ""
        if world.mode is None and world.mode_version >= 0:
            acknowledged = {told.mode for told in world.acknowledgements.values() if told is not None}
            kept = self.mode or (Mode.KAFKA if Mode.KAFKA in acknowledged else Mode.ZOOKEEPER)
            return kept, f"the mode znode says {world.mode_data[:32]!r}, and must say kafka or zookeeper exactly"
        return world.mode or Mode.ZOOKEEPER, ""

    def _follow(self, world: World) -> None:
        """Change the mode where that harms nobody (R4, R5)."""
        if self.closing:
            return
        target, waits = self._target(world)
        if target is self.mode:
            self._adopt(target, world, waits)
        elif target is Mode.KAFKA:
            if self.assigned is None:
                self.waits = "has no assignment from Kafka's group yet"
            else:
                self._adopt(target, world, waits)
        elif not self.rules.enabled:
            self._adopt(target, world, waits)
        else:
            self._describe()

    def _describe(self) -> None:
        if not self._describing and self._describe_due <= self._now:
            self._describing = self._next()
            self._ask(Describe(self._describing))

    def _hear_of(self, assigned: Mapping[str, Partitions]) -> None:
        """Leave kafka mode, or begin in zookeeper mode, only where no KafkaConsumer is in the group: no fence holds it."""
        if self.assigned is not None and assigned.get(self.rules.consumer_id) == self.assigned:
            self._share_seen = True
        if self.world is None:
            return
        target, waits = self._target(self.world)
        if target is not Mode.ZOOKEEPER or target is self.mode:
            return
        if strangers := sorted(assigned.keys() - self._known):
            self.waits = f"KafkaConsumer {strangers[0]} is in the group"
            if self.mode is None and not self.world.old:    # its share is right in kafka mode alone (R11)
                self.mode = Mode.KAFKA
            self._read_due = self._now
        else:
            self._adopt(target, self.world, waits)

    def _adopt(self, mode: Mode, world: World, waits: str) -> None:
        self.mode, self.waits = mode, waits
        if world.mode is mode:
            self.mode_version = world.mode_version

    def _choose(self, world: World) -> Mapping[TopicPartition, str]:
        """The thread of each partition that is to be ours."""
        if self.closing or self.mode is None:
            return {}
        if self.mode is Mode.KAFKA:
            return self._spread(world) if self.assigned is not None and self._share_seen else {}
        try:
            intended = self._intended(world)
        except (Malformed, Ambiguous) as problem:
            self.trouble = str(problem)
            return {partition: holding.thread for partition, holding in self.holdings.items() if holding.phase not in ENDING}
        self.trouble = ""
        own = f"{self.rules.consumer_id}-"
        return {partition: thread for partition, thread in intended.items() if thread.startswith(own)}

    def _spread(self, world: World) -> Mapping[TopicPartition, str]:
        """Kafka knows members and no threads: its partitions are dealt to our streams in turn."""
        assert self.assigned is not None
        own = world.registrations[self.rules.consumer_id].streams(
            {each.topic for each in self.assigned}, exclude_internal=self.rules.exclude_internal)
        by_topic: dict[str, list[TopicPartition]] = defaultdict(list)
        for partition in sorted(self.assigned):
            by_topic[partition.topic].append(partition)
        return {
            partition: thread_id(self.rules.consumer_id, index % max(own.get(topic, 1), 1))
            for topic, partitions in by_topic.items() for index, partition in enumerate(partitions)
        }

    def _intended(self, world: World) -> Mapping[TopicPartition, str]:
        """Computed once for each reading. Raises Malformed and Ambiguous."""
        if self._computed is None or self._computed[0] is not world:
            self._computed = world, world.intended(
                self.rules.strategy, self.rules.text, exclude_internal=self.rules.exclude_internal)
        return self._computed[1]

    # --- what is to be done -------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        if self.suspended and self.revoking and self.mode is Mode.KAFKA:
            self._give_up()             # ZooKeeper may be away for long, and Kafka's group must not wait for it
        if self.session is not None and not self.suspended and not self.left:
            self._work()
        if self.revoking and self._may_join_again():
            self.revoking = False
            self._ask(AllowRevoke())
        if self.closing and not self.holdings and not self.left:
            self.left = True
            self._ask(Leave())

    def _work(self) -> None:
        if not self.registered:
            if not self._registering and self._register_due <= self._now and not self.closing:
                self._registering = self._next()
                self._ask(Register(self._registering))
        elif not self._reading and self._read_due <= self._now:
            self._reading, self._read_due = self._next(), self._now + AUDIT
            self._ask(ReadWorld(self._reading))
        if self.world is not None and self.registered:
            self._follow(self.world)
            if self.mode is Mode.KAFKA and self.assigned is not None and not self._share_seen:
                self._describe()
            elif self._nodes_seen and not self._may_go_on:
                self._may_go_on = True
                self._ask(GoOn())
            self._wanted = self._choose(self.world)
            self._match()
            self._keep_watch(self.world)
        self._go_on()
        self._acknowledge()

    def _may_join_again(self) -> bool:
        """R2: the embedded member joins Kafka's group again when nothing of the old assignment is held."""
        return self.mode is not Mode.KAFKA or not self.holdings or (
            self.suspended and all(holding.phase is Phase.RELEASING for holding in self.holdings.values()))

    def _match(self) -> None:
        """Begin to take what is wanted and to let go of what is not."""
        for partition, holding in self.holdings.items():
            if self._wanted.get(partition) == holding.thread:
                continue
            if holding.phase is Phase.FETCHING:
                holding.enter(Phase.STOPPING)
            elif holding.phase is Phase.CLAIMING and not holding.request:
                holding.enter(Phase.RELEASING)
        for partition, thread in self._wanted.items():
            if partition not in self.holdings and self._refused.get(partition, 0.0) <= self._now:
                self._refused.pop(partition, None)
                self.holdings[partition] = Holding(thread)

    def _go_on(self) -> None:
        """Ask for what each partition needs next, all of one phase at once."""
        for holding in self.holdings.values():
            if holding.phase is Phase.COMMITTING and self._is_committed(holding):
                holding.enter(*((Phase.LINGERING, self._now + LINGER) if self._lingers() else (Phase.RELEASING,)))
            if holding.phase is Phase.LINGERING and holding.due <= self._now:
                holding.enter(Phase.RELEASING)
        ready: dict[Phase, list[TopicPartition]] = defaultdict(list)
        for partition, holding in self.holdings.items():
            if not holding.request and holding.due <= self._now:
                ready[holding.phase].append(partition)
        for phase, partitions in ready.items():
            if phase not in (Phase.FETCHING, Phase.LINGERING):
                self._ask_for(phase, frozenset(partitions))
        if self.rules.commit_interval is not None and self._commit_due <= self._now:
            self._commit_due = self._now + self.rules.commit_interval
            if fetching := self.fetching():
                self._ask(Commit(self._next(), fetching))

    def _ask_for(self, phase: Phase, partitions: Partitions) -> None:
        number = self._next()
        for partition in partitions:
            holding = self.holdings[partition]
            holding.request = number
        match phase:
            case Phase.CLAIMING:
                self._ask(Claim(number, {partition: self.holdings[partition].thread for partition in partitions}))
            case Phase.READING:
                self._ask(ReadOffsets(number, partitions))
            case Phase.STOPPING:
                self._ask(Stop(number, partitions))
            case Phase.COMMITTING:
                self._ask(Commit(number, partitions))
            case _:
                self._ask(Release(number, partitions, guard=self.mode is Mode.KAFKA))

    def _is_committed(self, holding: Holding) -> bool:
        """Old members read ZooKeeper alone, KafkaConsumers Kafka alone: the mode says who may come next."""
        patient = self.mode is Mode.KAFKA or self._now < holding.patience
        return holding.in_zookeeper and (holding.in_kafka or not patient)

    def _lingers(self) -> bool:
        return self.mode is not Mode.KAFKA and self.world is not None and bool(self.world.old)

    # --- what the first of the migration-enabled members does for all ---------------------------------------------------

    def _keep_watch(self, world: World) -> None:
        """Guards and parked members; the first member by name does it, once for each reading."""
        first = min(world.acknowledgements, default="")
        if self.mode is None or self.closing or not self._fresh or self.rules.consumer_id != first:
            return
        self._fresh = False
        try:
            intended = self._intended(world)
        except (Malformed, Ambiguous):
            return
        if self.mode is Mode.KAFKA:
            bare = frozenset(intended.keys() - world.owners.keys() - self.holdings.keys())
            if bare:
                self._ask(Guard(bare))
        elif self._target(world)[0] is Mode.ZOOKEEPER:
            enabled = tuple(f"{each}-" for each in world.acknowledgements)
            for partition, owner in world.owners.items():
                if not owner.session and partition not in self.holdings and partition not in self._wanted:
                    self.holdings[partition] = Holding(thread_id(self.rules.consumer_id, 0))
            self._wake(frozenset(partition for partition, thread in intended.items()
                                 if partition not in world.owners and not thread.startswith(enabled)))

    def _wake(self, orphans: Partitions) -> None:
        """Defect D5: an old member that lost its claim four times sleeps until something changes below `ids`."""
        self._orphans = {partition: self._orphans.get(partition, self._now) for partition in orphans}
        if any(since <= self._now - PARKED for since in self._orphans.values()):
            self._orphans = {}
            self._ask(Wake())

    def _acknowledge(self) -> None:
        """Tell the operator what is settled (R4)."""
        if not self.rules.enabled or not self.registered:
            return
        owned = frozenset(partition for partition, holding in self.holdings.items() if holding.phase is not Phase.CLAIMING)
        told = Acknowledgement(self.mode or Mode.ZOOKEEPER, self.mode_version, self.generation, owned,
                               self.waits or self.trouble or ("" if self.mode else "has not begun"))
        before = self._told
        settled = all(holding.phase is Phase.FETCHING for holding in self.holdings.values())
        if before is None or (told != before and (settled or (told.mode, told.mode_version, told.waits) != (
                before.mode, before.mode_version, before.waits))):
            self._told = told
            self._ask(Acknowledge(told))

    # --- small ones ---------------------------------------------------------------------------------------------------

    def _ask(self, request: Request) -> None:
        self._requests.append(request)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _in(self, phase: Phase) -> Partitions:
        return frozenset(partition for partition, holding in self.holdings.items() if holding.phase is phase)
