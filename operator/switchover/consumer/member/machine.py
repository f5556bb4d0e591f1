"""One member of a group that ZooKeeper or Kafka coordinates, as a pure state machine: events in, requests out
(docs/facts/coordination.md#the-rules). states.py has its tables.
"""

from collections.abc import Mapping

from switchover.consumer import messages as m
from switchover.consumer.member.following import Following, Rules
from switchover.consumer.member.holdings import AGAIN, Holdings, Question, Requests
from switchover.consumer.member.share import FirstMember, Share
from switchover.consumer.member.states import CONNECTED, GROUP, LIFE, SESSION, SUSPENDED, Cause, Group, Life, Session, after
from switchover.consumer.messages import Acknowledge, Partitions
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.mode import Mode
from switchover.coordination.world import World
from switchover.shared.partition import TopicPartition


class Account:
    """What was acknowledged last."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._last: Acknowledgement | None = None

    def expire(self) -> None:
        """The node has gone with the session."""
        self._last = None

    def report(self, now: Acknowledgement, holdings: Holdings) -> None:
        """What has changed: the mode and why it is not followed at once, the rest when the partitions are settled."""
        before = self._last
        if before is None or (now != before and (holdings.are_settled() or (now.mode, now.mode_version, now.waits) != (
                before.mode, before.mode_version, before.waits))):
            self._last = now
            self._requests.ask(Acknowledge(now))


AUDIT, AUDIT_WITH_OLD = 30.0, 5.0
"""Seconds between readings of the group when nothing is heard; nobody reports when another's owner node comes or goes."""
DESCRIBE_AGAIN = 1.0
"""Seconds between two questions to Kafka who is in the group."""


class Member:
    """The state of one member. `handle` takes an event and gives what is to be asked now; times are of a monotonic clock."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.life, self.session, self.group = Life.OPEN, Session.NONE, Group.OUTSIDE
        self.world: World | None = None
        self.assigned: Partitions | None = None             # by Kafka; None but in Group.ASSIGNED
        self.requests = Requests()
        self.holdings = Holdings(self.requests)
        self.following, self.share = Following(rules), Share(rules)
        self.first = FirstMember(rules, self.following, self.share, self.holdings, self.requests)
        self._account = Account(self.requests)
        self._session_number = 0                            # ZooKeeper's
        self._generation = -1                               # of Kafka's assignments
        self._register, self._read, self._describe = Question(), Question(), Question()
        self._commit_due = 0.0
        self._nodes_seen = False                            # the owner nodes were seen to be ours, since the last doubt
        self._share_seen = False                            # Kafka was seen to hold us for the owner of what it assigned
        self._may_go_on = False
        self._now = 0.0

    # --- in and out ---------------------------------------------------------------------------------------------------

    def handle(self, event: m.Event, now: float) -> list[m.Request]:
        """What is to be asked after `event`. Raises Impossible."""
        self._now = now
        self.take(event)
        self._advance()
        return self.requests.taken()

    @property
    def due(self) -> float:
        """When a Tick is worth its while, seconds of the monotonic clock: always later than the last event.

        What was due by then has been asked, or cannot be before something else happens, which is an event of its own.
        """
        times = [*self.holdings.times(), self._read.due, self._register.due, self._describe.due, self._commit_due]
        return min((each for each in times if each > self._now), default=self._now + AUDIT)

    @property
    def mode(self) -> Mode | None:
        return self.following.mode

    @property
    def closing(self) -> bool:
        return self.life is not Life.OPEN

    # --- events -------------------------------------------------------------------------------------------------------

    def take(self, event: m.Event) -> None:
        """Let the event change the state."""
        match event:
            case m.Tick():
                pass
            case m.Changed():
                self._read.due = self._now
            case m.WorldRead(number, world) if number == self._read.number:
                self._read.number = 0
                self._see(world)
            case (m.Claimed() | m.OffsetsRead() | m.Stopped() | m.CommittedToZooKeeper() | m.CommittedToKafka()
                  | m.Released()):
                self.holdings.answered(event, self.mode, self._now)
            case m.Connected(session):
                self._session_number, self.world = session, None
                self._turn_session(Cause.CONNECTED)
                self._doubt()
                self._register.ended(self._now)
            case m.Suspended():
                self._turn_session(Cause.SUSPENDED)
                self._doubt()
            case m.Resumed():
                self._turn_session(Cause.RESUMED)
                self._read.due = self._now
            case m.Expired():
                self._expire()
            case m.OwnerGone(partition):
                self.holdings.lose({partition})
            case m.OwnerFreed(partition):
                self.holdings.freed(partition)
            case m.GroupAssigned(partitions):
                self._turn_group(Cause.ASSIGNED)
                self.assigned, self._share_seen = partitions, True
                self._generation += 1
            case m.GroupRevoking():
                self._turn_group(Cause.REVOKED)
                self.assigned = None
            case m.GroupLost():
                self._turn_group(Cause.LOST)
                self.assigned = None
                if self.mode is Mode.KAFKA:             # they are others' now
                    self.holdings.give_up()
            case m.Described(number, assigned) if number == self._describe.number:
                self._describe.ended(self._now + DESCRIBE_AGAIN)
                self._hear_of(assigned)
            case m.Registered(number) if number == self._register.number:
                self._register.ended(self._now)
                self._turn_session(Cause.REGISTERED)
                self._read.due = self._now
            case m.Failed(number) if number:
                self._failed(number)
            case m.Closing():
                self.life = after(LIFE, self.life, Cause.CLOSED)

    def _turn_session(self, cause: Cause) -> None:
        self.session = after(SESSION, self.session, cause)

    def _turn_group(self, cause: Cause) -> None:
        self.group = after(GROUP, self.group, cause)

    def _failed(self, number: int) -> None:
        self.holdings.failed(number, self._now)
        if number == self._register.number:
            self._register.ended(self._now + AGAIN)
        if number == self._read.number:
            self._read.ended(self._now + AGAIN)
        if number == self._describe.number:
            self._describe.ended(self._now + DESCRIBE_AGAIN)
            self.following.hear_nothing()

    def _expire(self) -> None:
        """Every ephemeral node of ours is gone."""
        self._turn_session(Cause.EXPIRED)
        self.world = None
        self.holdings.expire()
        self.following.expire()
        self._account.expire()
        self._read.number = self._register.number = 0

    def _doubt(self) -> None:
        """The process may have been stopped for long: neither ZooKeeper's nodes nor Kafka's assignment are believed."""
        self._nodes_seen = self._share_seen = self._may_go_on = False

    def _see(self, world: World) -> None:
        self.world = world
        if world.old:                                       # what has changed since it was asked for is not overridden
            self._read.due = min(self._read.due, self._now + AUDIT_WITH_OLD)
        self.following.see(world)
        if self.rules.consumer_id not in world.registrations:
            self._turn_session(Cause.UNREGISTERED)
            return
        self.holdings.compare(world.owners, self._session_number)
        self.first.see()
        self._nodes_seen = True

    def _hear_of(self, assigned: Mapping[str, Partitions]) -> None:
        """Who is in Kafka's group, and has what."""
        if self.assigned is not None and assigned.get(self.rules.consumer_id) == self.assigned:
            self._share_seen = True
        if self.world is not None and self.following.hear_of(assigned, self.world):
            self._read.due = self._now

    # --- what is to be done -------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        if self.session in CONNECTED:
            if self.life is not Life.LEFT:
                self._work()
        elif self.session in SUSPENDED and self.group is Group.REVOKING and self.mode is Mode.KAFKA:
            self.holdings.give_up()     # ZooKeeper may be away for long, and Kafka's group must not wait for it
        if self.group is Group.REVOKING and self._may_join_again():
            self._turn_group(Cause.ALL_RELEASED)
            self.requests.ask(m.AllowRevoke())
        if self.life is Life.CLOSING and not self.holdings:
            self.life = after(LIFE, self.life, Cause.EMPTY)
            self.requests.ask(m.Leave())

    def _work(self) -> None:
        if self.session is Session.NEW:
            if not self.closing and self._register.is_due(self._now):
                self.requests.ask(m.Register(self._register.begun(self.requests)))
        else:
            if self._read.is_due(self._now):
                self.requests.ask(m.ReadWorld(self._read.begun(self.requests)))
                self._read.due = self._now + AUDIT
            if self.world is not None and self.rules.consumer_id in self.world.registrations:
                self._work_in(self.world)
        self.holdings.go_on(self.mode, self.world is not None and bool(self.world.old), self._now)
        self._commit_now_and_then()
        self._acknowledge()

    def _work_in(self, world: World) -> None:
        is_open = self.life is Life.OPEN
        if is_open and self.following.follow(world, assigned=self.assigned is not None):
            self.ask_who_is_there()
        if not self._share_seen and self.assigned is not None and self.mode is Mode.KAFKA:
            self.ask_who_is_there()
        elif self._nodes_seen and not self._may_go_on:
            self._may_go_on = True
            self.requests.ask(m.GoOn())
        self.holdings.follow(self._wanted(world), self._now)
        if is_open:
            self.first.look(world, self._now)

    def ask_who_is_there(self) -> None:
        if self._describe.is_due(self._now):
            self.requests.ask(m.Describe(self._describe.begun(self.requests)))

    def _wanted(self, world: World) -> Mapping[TopicPartition, str]:
        """The thread of each partition that is to be ours."""
        mode = self.mode
        if self.closing or mode is None:
            return {}
        if mode is Mode.ZOOKEEPER:
            return self.share.by_zookeeper(world, self.holdings)
        return self.share.by_kafka(world, self.assigned) if self.assigned is not None and self._share_seen else {}

    def _may_join_again(self) -> bool:
        """R2: the embedded member joins Kafka's group again when nothing of the old assignment is held."""
        return self.mode is not Mode.KAFKA or not self.holdings or (
            self.session in SUSPENDED and self.holdings.are_given_up())

    def _commit_now_and_then(self) -> None:
        if self.rules.commit_interval is not None and self._commit_due <= self._now:
            self._commit_due = self._now + self.rules.commit_interval
            if fetching := self.holdings.fetching():
                self.requests.ask(m.Commit(self.requests.next_number(), fetching))

    def _acknowledge(self) -> None:
        """To the operator."""
        if self.rules.enabled and self.session is Session.REGISTERED:
            mode, waits = self.mode, self.following.waits or self.share.trouble
            self._account.report(
                Acknowledgement(mode or Mode.ZOOKEEPER, self.following.mode_version, self._generation, self.holdings.owned(),
                                waits or ("" if mode else "has not begun")), self.holdings)
