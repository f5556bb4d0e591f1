"""One membership from its registration to its end: the thread that gives events to the pure member and does what it asks."""

import logging
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from switchover.consumer import messages
from switchover.consumer.commits import Claims, Commits, Offsets, Stores, Uncertain
from switchover.consumer.fetching import Positions, Stream
from switchover.consumer.figures import Figures
from switchover.consumer.group import KafkaGroup
from switchover.consumer.member.machine import Member
from switchover.consumer.messages import (
    CommittedToKafka,
    CommittedToZooKeeper,
    Event,
    OffsetsRead,
    Partitions,
    Request,
    Stopped,
)
from switchover.consumer.reading import read_foreign
from switchover.consumer.sessions import Lease, Sessions, Unreachable, reason_of
from switchover.consumer.settings import Settings
from switchover.consumer.znodes import Znodes
from switchover.coordination.layout import Layout
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Registration
from switchover.coordination.world import World
from switchover.shared.partition import TopicPartition

logger = logging.getLogger(__name__)

LEAVE = 3.0
"""Seconds for Kafka's group to be left."""
COMMIT = 10.0
"""Seconds in which a commit that the application waits for must be answered."""


class ForeignMembers(Exception):
    """Clients that are not the Java one are in the group, and joining would break their commits; says who, and the way."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A commit that every store took. `since`: when it was sent, of the monotonic clock."""

    since: float
    offsets: Offsets


class Membership:
    """`streams` are one for each of the member's threads, by number."""

    def __init__(self, settings: Settings, registration: Registration, streams: Sequence[Stream], positions: Positions,
                 bootstrap: str) -> None:
        self._settings, self._registration = settings, registration
        self._streams, self._positions, self._lease = streams, positions, Lease(0.0)
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._sessions = Sessions(settings, registration, self._lease, self._events.put)
        self._group = KafkaGroup(settings, bootstrap, self._events.put)
        self._member = Member(settings.rules)
        self._stores = Stores(settings.stores)
        self._commits = Commits(positions, self._stores, lambda: self._lease.holds(time.monotonic()))
        # Without a lock: the member's thread writes `_sure_since`, `ended`, figures, and the member's world and holdings;
        # any thread reads one of them at a time. Kafka's thread appends to `sent`, the application's takes from it.
        self._doubts = 0                            # of the lease, that the member has heard of
        self._sure_since: int | None = None         # the doubts after which the member made sure of what it holds
        self._said = _Said()
        self.figures = Figures()
        self.sent: deque[Sent] = deque(maxlen=1000)         # the member's own commits, until the application is called back
        self.left = threading.Event()               # of its own accord: closed
        self.ended = False
        self._thread = threading.Thread(target=self._run, name="switchover-member", daemon=True)

    # --- for the application's threads --------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect and begin. Raises what Sessions.start raises, and ForeignMembers."""
        try:
            self._sessions.start()
            self._refuse_foreign()
        except Exception:
            self._group.leave(1.0)
            raise
        self._thread.start()

    def _refuse_foreign(self) -> None:
        """Before anything is registered: as soon as Kafka's group has a member, it takes no commits of who is none."""
        settings = self._settings
        if not settings.rules.enabled:
            return
        try:
            foreign = read_foreign(self._sessions.client, Layout(settings.group))
        except (KazooException, KazooTimeoutError) as problem:
            self._sessions.stop()
            raise Unreachable(f"ZooKeeper: {reason_of(problem)}") from None
        if foreign:
            self._sessions.stop()
            raise ForeignMembers(
                f"group {settings.group} has members of another make than the Java consumer: {foreign}. Kafka would refuse"
                " their commits from the moment this one joins, so it does not. Leave them alone, and move them by their own"
                " means (pykafka: managed=True); or stop all of them first: this one goes on from their offsets in Kafka")

    def holds(self, now: float) -> bool:
        """Whether the session is certain to live, and the member has made sure of what it holds since it was in doubt."""
        return self._sure_since == self._lease.doubts and self._lease.holds(now)

    def close(self) -> None:
        """Begin to release everything; `left` is set at the end."""
        self._events.put(messages.Closing())

    def end(self) -> None:
        """Leave both groups as things stand, within a few seconds."""
        self._events.put(None)
        self._thread.join(2 * LEAVE)

    def commit(self, claims: Claims, *, wait: bool) -> None:
        """Write the positions under these claims to the stores.

        Raises KafkaException when a store does not take them, and `_ASSIGNMENT_LOST` where a partition is not ours any more.
        """
        if not wait:
            self._sessions.send(lambda znodes: self._commit_late(znodes, claims))
            return
        try:
            written = self._sessions.call(lambda znodes: self._commits.write(znodes, claims, self._group.call))
            fenced = written.in_kafka.result(COMMIT) is None
        except Unreachable as problem:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, str(problem))) from None
        except Uncertain as problem:
            raise KafkaException(KafkaError(KafkaError._STATE, str(problem))) from None
        except NotInTime:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "Kafka does not answer the commit")) from None
        if lost := written.lost(claims):
            names = ", ".join(map(str, sorted(lost)))
            raise KafkaException(KafkaError(KafkaError._ASSIGNMENT_LOST, f"the owner nodes of {names} are not ours"))
        if fenced and self.figures.active:
            raise KafkaException(KafkaError(KafkaError.ILLEGAL_GENERATION, "Kafka's group has gone on without this member"))

    def world(self) -> World | None:
        """The group as it was read last."""
        return self._member.world

    def threads(self) -> dict[TopicPartition, str]:
        """The thread of each partition of the group: as computed in zookeeper mode, as the owner nodes say in kafka mode."""
        world = self._member.world
        if world is None:
            return {}
        own = {partition: holding.thread for partition, holding in list(self._member.holdings.items())}
        if self.figures.active:
            return {partition: owner.thread for partition, owner in world.owners.items() if owner.session} | own
        rules = self._settings.rules
        return world.intended(rules.strategy, rules.text, exclude_internal=rules.exclude_internal)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._work()
        except Exception:
            logger.exception("this membership ends, and the next poll begins another")
        self._sure_since, self.ended = None, True
        for stream in self._streams:
            stream.abandon()
        self._sessions.stop()
        self._group.leave(LEAVE)

    def _work(self) -> None:
        while not self.left.is_set():
            now = time.monotonic()
            try:
                event = self._events.get(timeout=min(max(self._member.due - now, 0.0), 1.0))
            except queue.Empty:
                event = messages.Tick()
            if event is None:
                return
            self._note(event)
            for request in self._member.handle(event, time.monotonic()):
                self._do(request)
            if isinstance(event, messages.WorldRead):
                self._subscribe(event.world)
            self._report()
            if (silent := max(each.silent(now) for each in self._streams)) > self._settings.max_poll_interval:
                logger.error("the application has not polled for %.0f s, longer than max.poll.interval.ms: its partitions "
                             "are left to others until it does", silent)
                return

    def _note(self, event: Event) -> None:
        if isinstance(event, messages.Suspended | messages.Expired):
            self._doubts += 1
        if isinstance(event, messages.Expired):
            self._positions.forget_all()
        if isinstance(event, messages.OwnerGone):
            self._positions.forget(frozenset({event.partition}))
        if isinstance(event, OffsetsRead):              # also of what is released before it is fetched
            holdings = self._member.holdings
            self._positions.begin({partition: offset for partition, offset in event.starts.items()
                                   if partition in holdings and holdings[partition].request == event.number})
        if isinstance(event, messages.Suspended):
            logger.warning("not connected to ZooKeeper: nothing is handed out until the session is certain to live")
        if isinstance(event, messages.Expired):
            logger.warning("the session with ZooKeeper has ended: every partition is lost")

    def _do(self, request: Request) -> None:
        match request:
            case messages.Register(number):
                self._sessions.ask(number, lambda znodes: self._register(number, znodes))
            case messages.ReadWorld(number):
                self._sessions.ask(number, lambda znodes: messages.WorldRead(number, znodes.read()))
            case messages.Claim(number, threads):
                self._sessions.ask(number, lambda znodes: messages.Claimed(number, znodes.claim(threads)))
            case messages.ReadOffsets(number, partitions):
                self._sessions.ask(number, lambda znodes: self._read_offsets(number, partitions, znodes))
            case messages.Start(starts, threads):
                self._start(starts, threads)
            case messages.Stop(number, partitions):
                self._stop(number, partitions)
            case messages.Abandon(partitions):
                for stream in self._streams:
                    stream.abandon(partitions)
                self.figures.rebalances += 1
            case messages.Commit(number, partitions):
                self._commit(number, self._positions.claims(partitions))
            case messages.Release(number, partitions):
                self._positions.forget(partitions)
                self._sessions.ask(number, lambda znodes: self._release(request, znodes))
            case messages.Guard(partitions):
                self._sessions.send(lambda znodes: znodes.guard(partitions))
            case messages.GoOn():
                self._sure_since = self._doubts
            case messages.Wake():
                logger.warning("a partition of an old consumer has had no owner for long: waking the old consumers")
                self._sessions.send(lambda znodes: znodes.wake())
            case messages.Acknowledge(now):
                self._sessions.send(lambda znodes: znodes.acknowledge(now))
            case messages.Describe(number):
                self._group.ask(number, lambda group: messages.Described(number, group.assigned()))
            case messages.AllowRevoke():
                self._group.allow()
            case messages.Leave():
                self.left.set()

    def _register(self, number: int, znodes: Znodes) -> Event:
        znodes.register()
        return messages.Registered(number)

    # --- partitions ---------------------------------------------------------------------------------------------------

    def _start(self, starts: Mapping[TopicPartition, int], threads: Mapping[TopicPartition, str]) -> None:
        by_stream: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        for partition, offset in starts.items():
            by_stream[int(threads[partition].rpartition("-")[2])][partition] = offset
        self.figures.rebalances += 1
        for number, each in by_stream.items():
            self._streams[number].start(each)

    def _release(self, request: messages.Release, znodes: Znodes) -> Event:
        znodes.release(request.partitions, guard=request.guard)
        return messages.Released(request.number)

    def _stop(self, number: int, partitions: Partitions) -> None:
        self.figures.rebalances += 1
        others = threading.Semaphore(len(self._streams) - 1)

        def stopped() -> None:
            """By each stream, in whichever thread; the last one says so."""
            if not others.acquire(blocking=False):
                self._events.put(Stopped(number))

        for stream in self._streams:
            if not stream.stop(partitions, stopped):
                stopped()

    # --- offsets ------------------------------------------------------------------------------------------------------

    def _read_offsets(self, number: int, partitions: Partitions, znodes: Znodes) -> None:
        """ZooKeeper's here, Kafka's on its own thread, where the answer is made."""
        in_zookeeper = self._stores.in_zookeeper(znodes, partitions)
        self._group.ask(number, lambda group: OffsetsRead(number, *self._stores.read(group, in_zookeeper)))

    def _commit(self, number: int, claims: Claims) -> None:
        def in_zookeeper(znodes: Znodes) -> Event:
            sent = time.monotonic()
            written = self._commits.write(
                znodes, claims, lambda do: self._group.ask(number, lambda group: in_kafka(sent, do(group))))
            return CommittedToZooKeeper(number, written.gone)

        def in_kafka(sent: float, held: Offsets | None) -> Event:
            if held:
                self.sent.append(Sent(sent, held))
            return CommittedToKafka(number, fenced=held is None)

        self._sessions.ask(number, in_zookeeper)

    def _commit_late(self, znodes: Znodes, claims: Claims) -> None:
        written = self._commits.write(znodes, claims, self._group.call)
        if lost := written.lost(claims):
            logger.warning("not committed, others own it: %s", ", ".join(map(str, sorted(lost))))

        def complain(done: Future[Offsets | None]) -> None:
            if (problem := done.exception()) is not None:
                logger.warning("not committed to Kafka: %s", problem)

        written.in_kafka.add_done_callback(complain)

    # --- what is reported ---------------------------------------------------------------------------------------------

    def _subscribe(self, world: World) -> None:
        """Kafka's group takes names; what a list means is seen in ZooKeeper. Not while a foreign member is there."""
        rules = self._settings.rules
        if rules.enabled and not self._member.closing and not world.foreign:
            self._group.subscribe(self._registration.streams(world.topics, exclude_internal=rules.exclude_internal))

    def _report(self) -> None:
        """Figures, and a log line for what has changed."""
        member, now = self._member, time.monotonic()
        phases = {partition: holding.phase for partition, holding in member.holdings.items()}
        self.figures.see(member.mode, member.world, member.assigned, phases, now)
        fetching = member.holdings.fetching()
        self.figures.commit_lag = self._stores.apart(fetching)
        said = _Said(member.mode, member.following.waits, member.share.trouble, fetching)
        if said != self._said:
            before, self._said = self._said, said
            _log(before, said)


@dataclass(frozen=True, slots=True)
class _Said:
    mode: Mode | None = None
    waits: str = ""
    trouble: str = ""
    fetching: Partitions = frozenset()


def _log(before: _Said, said: _Said) -> None:
    if said.mode is not None and said.mode != before.mode:
        logger.info("coordinated by %s", said.mode)
    if said.waits and said.waits != before.waits:
        logger.warning("does not follow the mode znode: %s", said.waits)
    if said.trouble and said.trouble != before.trouble:
        logger.error("nobody's partitions can be computed: %s", said.trouble)
    if said.fetching != before.fetching:
        logger.info("fetching %s", ", ".join(map(str, sorted(said.fetching))) or "nothing")
