"""Kafka's side: the coordinator of one group, request by request, by both protocols, and its committed offsets.

By the rules of docs/facts/groups.md, as Kafka's GroupMetadataManager has them. JoinGroup and SyncGroup are one request here,
and the leader of a classic group assigns at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from kio.schema.errors import ErrorCode

from simulation.coordination.loop import Loop
from switchover.coordination.assignment import Strategy, Text, assigned
from switchover.groups.reading import DOWNGRADES, UPGRADES
from switchover.kafka.group import LEFT, Group, GroupState, GroupType, MemberProtocol
from switchover.kafka.group import Member as Described
from switchover.shared.partition import TopicPartition

Partitions = frozenset[TopicPartition]
CLASSIC, CONSUMER = MemberProtocol.CLASSIC, MemberProtocol.CONSUMER
NONE: Partitions = frozenset()
FINE = ErrorCode.none

SESSION, HEARTBEAT, REBALANCE = 10.0, 1.0, 20.0
"""Of classic members, in seconds: after which a silent one is out, between two heartbeats, and that a rebalance waits for
members to join, or one of the other protocol to give back."""
GRACE = 0.2
"""Seconds by which a client counts shorter than the coordinator; every KafkaConsumer lives by it."""
COOPERATIVE = "cooperative-sticky"
ASSIGNORS = ("uniform", "range")


@dataclass(frozen=True)
class Who:
    """What a member says of itself when it joins. `strategies` are those that a classic one offers, its favourite first,
    `assignor` is what one of the consumer protocol asks for."""

    member_id: str
    topics: tuple[str, ...]
    protocol: MemberProtocol = CLASSIC
    strategies: tuple[str, ...] = ("range",)
    assignor: str = ""
    instance_id: str = ""
    host: str = ""
    user_data: int = 0

    @property
    def is_cooperative(self) -> bool:
        """Java takes the lowest mode of its list (docs/facts/groups.md#the-strategy-by-two-bounces)."""
        return set(self.strategies) == {COOPERATIVE}


@dataclass(frozen=True)
class Answer:
    """To a request that may give partitions: all that the member is to own now."""

    code: ErrorCode
    epoch: int = -1
    assigned: Partitions = NONE


@dataclass
class Member:
    """A member as the coordinator has it. What it has to give back is `revoking`: still its own for all others."""

    who: Who
    heard: float
    epoch: int = 0
    previous: int = 0
    assigned: Partitions = NONE
    revoking: Partitions = NONE
    target: Partitions = NONE
    since: dict[TopicPartition, int] = field(default_factory=dict)      # the epoch in which it was given each
    owned: Partitions = NONE                                            # as its last JoinGroup said
    waits: Callable[[Answer], None] | None = None                       # its JoinGroup's answer
    syncing: bool = False                                               # which is on its way
    until: float | None = None                                          # by when it must have given back, or joined again

    @property
    def holds(self) -> Partitions:
        return self.assigned | self.revoking

    def give(self, partitions: Partitions, epoch: int) -> None:
        """It is to own these, and no others."""
        self.since = {each: self.since.get(each, epoch) for each in partitions}
        self.assigned = partitions


@dataclass
class Coordinator:
    """The broker that coordinates the group. While it is down nothing is answered, and nobody is put out.

    `policy` is group.consumer.migration.policy, `release` Kafka's own, `session` and `heartbeat_interval` those of the
    consumer protocol; `max_size` is group.consumer.max.size and group.max.size alike. `put_out` are those who may not know
    yet that they are no members.
    """

    loop: Loop
    topics: Callable[[], Mapping[str, tuple[int, ...]]]
    policy: str = "bidirectional"
    release: tuple[int, int] = (4, 4)
    session: float = 45.0
    heartbeat_interval: float = 5.0
    classic_session: float = SESSION
    rebalance: float = REBALANCE
    max_size: int = 1000
    type: GroupType = GroupType.CLASSIC
    members: dict[str, Member] = field(default_factory=dict)
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    epoch: int = 0                      # of a classic group its generation
    assignment_epoch: int = 0
    strategy: str = ""
    preparing: bool = False
    down_until: float = 0.0
    expected: set[str] = field(default_factory=set)
    put_out: set[str] = field(default_factory=set)
    _round: int = 0
    _assigned_at: float = -1.0

    def __post_init__(self) -> None:
        self._sweep()

    @property
    def is_up(self) -> bool:
        return self.loop.now >= self.down_until

    @property
    def joining(self) -> bool:
        """Whether a KafkaConsumer has been started that the group does not know yet."""
        return not self.expected <= self.members.keys()

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(topic, each) for topic, numbers in self.topics().items() for each in numbers)

    # --- requests of classic members ----------------------------------------------------------------------------------

    def join(self, who: Who, owned: Partitions, reply: Callable[[Answer], None]) -> None:
        """JoinGroup: answered when all have joined; by a group of the consumer protocol at once."""
        is_out = bool(owned) and who.member_id not in self.members              # it does not know yet that it is out
        if (code := ErrorCode.unknown_member_id if is_out else self._refusal(who)) is not FINE:
            reply(Answer(code))
            return
        if self.type is GroupType.CONSUMER and self.members:
            self._join_converted(who, owned, reply)
            return
        self._become(GroupType.CLASSIC)
        succeeds = self._place(who.instance_id) not in ("", who.member_id)
        member, is_new = self._member(who)
        member.owned, member.waits = owned, reply
        if succeeds and not is_new and not self.preparing and self._vote() == self.strategy:
            self._synced(member)            # the successor of a static member goes on with what that one had
            return
        self._prepare()
        self._complete()

    def heartbeat(self, member_id: str, generation: int) -> ErrorCode:
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.unknown_member_id
        member.heard = self.loop.now
        if member.waits or member.syncing:
            return FINE
        if self.type is GroupType.CLASSIC:
            if generation != self.epoch:
                return ErrorCode.illegal_generation
            return ErrorCode.rebalance_in_progress if self.preparing else FINE
        if generation != member.epoch:
            return ErrorCode.illegal_generation
        missing = member.target - member.assigned
        if member.epoch < self.epoch or member.revoking or missing - self._held_beside(member):
            member.until = member.until or self.loop.now + self.rebalance
            return ErrorCode.rebalance_in_progress
        return FINE

    def leave(self, member_id: str) -> None:
        """LeaveGroup, and whatever else ends a member."""
        if (gone := self.members.pop(member_id, None)) is None:
            return
        if self.type is GroupType.CLASSIC:
            self._prepare()
            self._complete()
            return
        self.epoch += 1
        self._downgrade_after(gone)

    # --- the request of those of the consumer protocol ----------------------------------------------------------------

    def consumer_heartbeat(self, who: Who, epoch: int, owned: Partitions) -> Answer:
        """ConsumerGroupHeartbeat: epoch 0 joins, -1 leaves, -2 leaves for a successor."""
        if who.assignor not in ("", *ASSIGNORS):
            return Answer(ErrorCode.unsupported_assignor)
        if self.type is GroupType.CLASSIC and (epoch != 0 or not self._upgrade()):
            return Answer(ErrorCode.group_id_not_found)
        known = self.members.get(who.member_id)
        if epoch == 0:
            if known is None and (code := self._no_place(who)) is not FINE:
                return Answer(code)
            known, is_new = self._member(who)
            self.epoch += is_new
        elif known is None:
            return Answer(ErrorCode.unknown_member_id)
        elif epoch == LEFT:
            known.epoch = LEFT
            return Answer(FINE, epoch)
        elif epoch < 0:
            self.leave(who.member_id)
            return Answer(FINE, epoch)
        elif epoch > known.epoch or (epoch < known.epoch and (epoch != known.previous or not owned <= known.assigned)):
            return Answer(ErrorCode.fenced_member_epoch)
        known.heard = self.loop.now
        self._assign()
        self._reconcile(known, owned)
        return Answer(FINE, known.epoch, known.assigned)

    # --- what both may ask --------------------------------------------------------------------------------------------

    def commit(self, member_id: str, epoch: int, offsets: Mapping[TopicPartition, int]) -> ErrorCode:
        """OffsetCommit. From 4.3 on a member may be behind its epoch, as long as it has had the partition (KIP-1251)."""
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.unknown_member_id
        current = self.epoch if self.type is GroupType.CLASSIC else member.epoch
        late = (self.type is GroupType.CONSUMER and self.release >= (4, 3) and epoch < current
                and all(member.since.get(each, current) <= epoch for each in offsets))
        if epoch != current and not late:
            is_consumer = member.who.protocol is CONSUMER
            return ErrorCode.stale_member_epoch if is_consumer else ErrorCode.illegal_generation
        self.offsets.update(offsets)
        return FINE

    @property
    def state(self) -> GroupState:
        members = self.members.values()
        if not members:
            return GroupState.EMPTY
        if self.type is GroupType.CLASSIC:
            settles = any(each.syncing for each in members)
            return (GroupState.PREPARING_REBALANCE if self.preparing else
                    GroupState.COMPLETING_REBALANCE if settles else GroupState.STABLE)
        if self.assignment_epoch < self.epoch:
            return GroupState.ASSIGNING
        return GroupState.STABLE if all(self._is_reconciled(each) for each in members) else GroupState.RECONCILING

    def shares(self) -> dict[str, Partitions]:
        """What the coordinator shows of each: nothing while a classic group rebalances."""
        hidden = self.type is GroupType.CLASSIC and self.preparing
        return {name: NONE if hidden else each.assigned for name, each in self.members.items()}

    def group(self) -> Group:
        """As DescribeGroups and ConsumerGroupDescribe answer."""
        classic, state = self.type is GroupType.CLASSIC, self.state
        shown = not classic or state is GroupState.STABLE
        members = tuple(
            Described(member_id=name, client_id=name, host=each.who.host, instance_id=each.who.instance_id,
                      protocol=each.who.protocol, epoch=self.epoch if classic else each.epoch, regex="",
                      topics=frozenset(each.who.topics if shown else ()), assigned=each.assigned if shown else NONE,
                      target=(each.assigned if classic else each.target) if shown else NONE,
                      user_data=each.who.user_data if shown and classic else 0)
            for name, each in self.members.items())
        assignor = (self.strategy if shown else "") if classic else self._assignor()
        return Group(name="orders", coordinator=1, type=self.type, state=state, protocol_type="consumer", epoch=self.epoch,
                     assignment_epoch=self.epoch if classic else self.assignment_epoch, assignor=assignor, members=members)

    def owner(self, partition: TopicPartition) -> Member | None:
        return next((each for each in self.members.values() if partition in each.assigned), None)

    def strategies_of_all(self) -> list[str]:
        """What every classic member offers; a stable group alone is asked."""
        return self._common(self._of(CLASSIC)) if self.state is GroupState.STABLE else []

    # --- what happens to it -------------------------------------------------------------------------------------------

    def metadata(self) -> None:
        """The leader, or the coordinator, has heard of another partition."""
        if self.type is GroupType.CLASSIC:
            self._prepare()
        elif self.members:
            self.epoch += 1

    def move(self, seconds: float) -> None:
        """Another broker takes over after a while. It knows of classic members the chosen strategy alone, and of no question
        that waits."""
        self.down_until = self.loop.now + seconds
        for each in self.members.values():
            if self.type is GroupType.CLASSIC and each.who.protocol is CLASSIC and self.strategy in each.who.strategies:
                each.who = replace(each.who, strategies=(self.strategy,))
        self._answer_all(ErrorCode.not_coordinator)

    def _sweep(self) -> None:
        """Once a second: put out who was silent for too long, or does not give back."""
        self.loop.after(1.0, self._sweep)
        now = self.loop.now
        for name, each in tuple(self.members.items()):
            if not self.is_up:
                each.heard = max(each.heard, now)
                each.until = None if each.until is None else max(each.until, now + self.rebalance)
                continue
            session = self.classic_session + GRACE if each.who.protocol is CLASSIC else self.session
            if now - each.heard > session or (each.until is not None and now > each.until):
                self.put_out.add(name)
                self.leave(name)

    # --- members ------------------------------------------------------------------------------------------------------

    def _of(self, protocol: MemberProtocol) -> list[Who]:
        return [each.who for each in self.members.values() if each.who.protocol is protocol]

    def _member(self, who: Who) -> tuple[Member, bool]:
        """The member, whose predecessor may have had its instance id; and whether the group has changed by it."""
        place = self._place(who.instance_id) or who.member_id
        known = self.members.pop(place, None)
        if known is None:
            self.put_out.discard(who.member_id)
            self.members[who.member_id] = made = Member(who, self.loop.now)
            return made, True
        changed = known.who.topics != who.topics
        self.members[who.member_id] = known
        if place != who.member_id:
            self.put_out.add(place)
            known.epoch, known.waits, known.until = (self.epoch if known.who.protocol is CLASSIC else 0), None, None
        known.who, known.heard = who, self.loop.now
        return known, changed

    def _place(self, instance_id: str) -> str:
        """Who has it."""
        return next((name for name, each in self.members.items() if instance_id and each.who.instance_id == instance_id), "")

    def _refusal(self, who: Who) -> ErrorCode:
        """Of a classic one."""
        others = [each for each in self._of(CLASSIC) if each.member_id != who.member_id]
        if self.members and self.type is GroupType.CONSUMER and self.policy == "disabled" and self.release > (4, 0):
            return ErrorCode.inconsistent_group_protocol
        if not self._common([who, *others]):
            return ErrorCode.inconsistent_group_protocol
        is_new = who.member_id not in self.members and not self._place(who.instance_id)
        return ErrorCode.group_max_size_reached if is_new and len(self.members) >= self.max_size else FINE

    def _no_place(self, who: Who) -> ErrorCode:
        """For one more of the consumer protocol."""
        if place := self._place(who.instance_id):
            holder = self.members[place]
            released = holder.who.protocol is CLASSIC or holder.epoch == LEFT
            return FINE if released else ErrorCode.unreleased_instance_id
        return ErrorCode.group_max_size_reached if len(self.members) >= self.max_size else FINE

    @staticmethod
    def _common(classic: Iterable[Who]) -> list[str]:
        first, *others = [*classic] or [None]
        return [name for name in first.strategies if all(name in each.strategies for each in others)] if first else []

    # --- conversion ---------------------------------------------------------------------------------------------------

    def _become(self, wanted: GroupType) -> None:
        """Of a group without members; its epochs begin again."""
        if self.type is not wanted:
            self.type, self.epoch, self.assignment_epoch, self.preparing = wanted, 0, 0, False

    def _upgrade(self) -> bool:
        """Each member stays with what it has. Whoever waits for the classic rebalance joins again."""
        if not self.members:
            self._become(GroupType.CONSUMER)
            return True
        if (self.policy not in UPGRADES or len(self.members) > self.max_size
                or any(each.who.user_data for each in self.members.values())):
            return False
        self.type, self.preparing, self.assignment_epoch = GroupType.CONSUMER, False, self.epoch
        for each in self.members.values():
            each.epoch = each.previous = self.epoch
            each.target, each.since = each.assigned, dict.fromkeys(each.assigned, self.epoch)
        self._answer_all(ErrorCode.rebalance_in_progress)
        return True

    def _downgrade_after(self, gone: Member) -> None:
        """The last one of the consumer protocol went: the group is classic again, if it may be."""
        if (gone.who.protocol is CONSUMER and self.members and not self._of(CONSUMER) and self.policy in DOWNGRADES
                and len(self.members) <= self.max_size):
            self.type, self.strategy = GroupType.CLASSIC, self._vote()
            for each in self.members.values():
                each.revoking, each.until = NONE, None
            self._prepare()
            self._complete()

    def _answer_all(self, code: ErrorCode) -> None:
        for each in self.members.values():
            reply, each.waits = each.waits, None
            if reply is not None:
                reply(Answer(code))

    # --- a classic group ----------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Everybody hears of it by the next heartbeat."""
        if self.preparing or not self.members:
            return
        self.preparing = True
        self._round += 1
        self.loop.after(self.rebalance, partial(self._late, self._round))

    def _late(self, this: int) -> None:
        if not self.preparing or self._round != this:
            return
        if not self.is_up:
            self.loop.after(1.0, partial(self._late, this))
            return
        self.put_out |= {name for name, each in self.members.items() if not each.waits}
        self.members = {name: each for name, each in self.members.items() if each.waits}
        self._complete()

    def _complete(self) -> None:
        if not self.preparing or not self.members or not all(each.waits for each in self.members.values()):
            return
        self.preparing = False
        self.epoch += 1
        self.strategy = self._vote()
        shares = self._shares_of_the_leader()
        for name, member in self.members.items():
            member.epoch = self.epoch
            member.give(shares[name], self.epoch)
            self._synced(member)

    def _synced(self, member: Member) -> None:
        """The answer is on its way."""
        reply, member.waits, member.syncing = member.waits, None, True
        assert reply is not None
        self.loop.after(self.loop.between(0.005, 0.05), partial(self._sync, member, self.epoch, reply))

    def _sync(self, member: Member, generation: int, reply: Callable[[Answer], None]) -> None:
        member.syncing = False
        if self.members.get(member.who.member_id) is not member or member.epoch != generation:
            reply(Answer(ErrorCode.unknown_member_id))
        elif member.waits is None:
            reply(Answer(FINE, generation, member.assigned))

    def _vote(self) -> str:
        """Each votes for the first of its list that all have."""
        classic = self._of(CLASSIC)
        common = self._common(classic)
        votes = [next(name for name in each.strategies if name in common) for each in classic] if common else []
        return max(dict.fromkeys(votes), key=votes.count, default="")

    def _shares_of_the_leader(self) -> dict[str, Partitions]:
        if self.strategy == COOPERATIVE:            # what another still has is given in the next generation
            owned = {name: each.owned for name, each in self.members.items()}
            return {name: share - self._all(other for each, other in owned.items() if each != name)
                    for name, share in self._sticky(owned).items()}
        return self._by(Strategy(self.strategy))

    def _by(self, strategy: Strategy) -> dict[str, Partitions]:
        streams = {name: dict.fromkeys(each.who.topics, 1) for name, each in self.members.items()}
        shares: dict[str, set[TopicPartition]] = {name: set() for name in self.members}
        for partition, thread in assigned(strategy, Text.SINCE_1_0, streams, self.topics()).items():
            shares[thread.rpartition("-")[0]].add(partition)
        return {name: frozenset(share) for name, share in shares.items()}

    def _sticky(self, owned: Mapping[str, Partitions]) -> dict[str, Partitions]:
        """Even, and whoever has a partition keeps it as far as that goes."""
        everything, count = self.partitions, len(owned)
        names = sorted(owned, key=lambda name: -len(owned[name]))
        sizes = [len(everything) // count + (index < len(everything) % count) for index in range(count)]
        kept = [sorted(owned[name])[:size] for name, size in zip(names, sizes, strict=True)]
        free = [each for each in everything if each not in {*chain(*kept)}]
        return {name: frozenset([*own, *(free.pop() for _ in range(size - len(own)))])
                for name, own, size in zip(names, kept, sizes, strict=True)}

    # --- a group of the consumer protocol -----------------------------------------------------------------------------

    def _join_converted(self, who: Who, owned: Partitions, reply: Callable[[Answer], None]) -> None:
        """A classic member of it. Its joining again assigns nothing (docs/facts/groups.md#upgrade-alone-from-43-on)."""
        before = self.members.get(self._place(who.instance_id) or who.member_id)
        was = before and replace(before)
        member, is_new = self._member(who)
        self.epoch += is_new
        if is_new or self.release < (4, 3):
            self._assign(at_once=True)
        self._reconcile(member, owned)
        member.until, member.waits = None, reply
        if was is not None and was.who.protocol is CONSUMER:
            self._downgrade_after(was)
        if self.type is GroupType.CONSUMER:
            reply_at, member.waits, member.syncing = member.waits, None, True
            self.loop.after(self.loop.between(0.005, 0.05), partial(self._sync, member, member.epoch, reply_at))

    def _assign(self, at_once: bool = False) -> None:
        """From 4.3 on once a second."""
        now = self.loop.now
        if self.assignment_epoch == self.epoch or (
                not at_once and self.release >= (4, 3) and 0 <= now - self._assigned_at < 1.0 and self._assigned_at >= 0):
            return
        self._assigned_at, self.assignment_epoch = now, self.epoch
        targets = (self._by(Strategy.RANGE) if self._assignor() == "range" else
                   self._sticky({name: each.target for name, each in self.members.items()}))
        for name, each in self.members.items():
            each.target = targets[name]

    def _assignor(self) -> str:
        """The one that most members name."""
        named = [each.assignor for each in self._of(CONSUMER) if each.assignor]
        return max(dict.fromkeys(named), key=named.count, default=ASSIGNORS[0])

    def _reconcile(self, member: Member, owned: Partitions) -> None:
        """Give back first, then take what nobody has any more: CurrentAssignmentBuilder."""
        if member.revoking & owned:
            return
        member.revoking, member.until = NONE, None
        keeps, gone = member.assigned & member.target, member.assigned - member.target
        member.give(keeps, member.epoch)
        if gone & owned:
            member.revoking, member.until = gone, self.loop.now + self.rebalance
            return
        if member.epoch != self.assignment_epoch:
            member.previous, member.epoch = member.epoch, self.assignment_epoch
        member.give(keeps | (member.target - self._held_beside(member)), member.epoch)

    def _held_beside(self, member: Member) -> Partitions:
        """What all others still have."""
        return self._all(each.holds for each in self.members.values() if each is not member)

    @staticmethod
    def _all(parts: Iterator[Partitions]) -> Partitions:
        return frozenset(chain.from_iterable(parts))

    def _is_reconciled(self, member: Member) -> bool:
        return member.epoch == self.assignment_epoch and member.holds == member.target
