"""One membership from its registration to its end: the thread that gives events to the pure member and does what it asks."""

import logging
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as NotInTime

from confluent_kafka import KafkaError, KafkaException

from switchover.consumer import messages
from switchover.consumer.fetching import Positions, Started, Stream
from switchover.consumer.figures import Figures
from switchover.consumer.group import KafkaGroup
from switchover.consumer.lease import Lease
from switchover.consumer.member import Member
from switchover.consumer.messages import (
    CommittedToKafka,
    CommittedToZooKeeper,
    Event,
    OffsetsRead,
    Partitions,
    Request,
    Stopped,
)
from switchover.consumer.offsets import Stored
from switchover.consumer.sessions import Sessions, Unreachable
from switchover.consumer.settings import Settings, Store
from switchover.consumer.znodes import Znodes
from switchover.coordination.registration import Registration
from switchover.coordination.world import World
from switchover.partition import TopicPartition

logger = logging.getLogger(__name__)

LEAVE = 3.0
"""Seconds for Kafka's group to be left."""
COMMIT = 10.0
"""Seconds in which a commit that the application waits for must be answered."""


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
        self._written: dict[Store, dict[TopicPartition, int]] = {each: {} for each in settings.stores}
        self._verified = False                      # what is held is ours, as far as the member knows
        self._said: tuple[object, ...] = ()
        self.figures = Figures()
        self.commits: deque[Mapping[TopicPartition, int]] = deque(maxlen=1000)      # automatic ones that every store took
        self.left = threading.Event()               # of its own accord: closed
        self.ended = False
        self._thread = threading.Thread(target=self._run, name="switchover-member", daemon=True)

    # --- for the application's threads --------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect and begin. Raises what Sessions.start raises."""
        try:
            self._sessions.start()
        except Exception:
            self._group.leave(1.0)
            raise
        self._thread.start()

    def holds(self) -> bool:
        """Whether the session is certain to live, and the member has made sure of what it holds since it was in doubt."""
        return self._verified and self._lease.holds(time.monotonic())

    def close(self) -> None:
        """Begin to let go of everything; `left` is set at the end."""
        self._events.put(messages.Closing())

    def end(self) -> None:
        """Leave both groups as things stand, within a few seconds."""
        self._events.put(None)
        self._thread.join(2 * LEAVE)

    def commit(self, offsets: Mapping[TopicPartition, int], *, wait: bool) -> None:
        """Write positions of partitions that are held to the stores.

        Raises KafkaException when a store does not take them, and `_ASSIGNMENT_LOST` where an owner node is not ours.
        """
        in_kafka = self._group.call(lambda group: self._to_kafka(group, offsets))
        if not wait:
            self._sessions.ask(0, lambda znodes: CommittedToZooKeeper(0, self._to_zookeeper(znodes, offsets)))
            return
        try:
            gone = self._sessions.call(lambda znodes: self._to_zookeeper(znodes, offsets))
            fenced = not in_kafka.result(COMMIT)
        except Unreachable as problem:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, str(problem))) from None
        except NotInTime:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "Kafka does not answer the commit")) from None
        if gone:
            names = ", ".join(map(str, sorted(gone)))
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
        self._verified, self.ended = False, True
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
            self._tell()
            if (silent := max(each.silent(now) for each in self._streams)) > self._settings.max_poll_interval:
                logger.error("the application has not polled for %.0f s, longer than max.poll.interval.ms: its partitions "
                             "are left to others until it does", silent)
                return

    def _note(self, event: Event) -> None:
        if isinstance(event, messages.Suspended | messages.Expired):
            self._verified = False
        if isinstance(event, OffsetsRead):              # also of what is let go before it is fetched
            holdings = self._member.holdings
            self._positions.begin(Started({partition: offset for partition, offset in event.starts.items()
                                           if partition in holdings and holdings[partition].request == event.number}))
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
                self._commit(number, self._positions.of(partitions))
            case messages.Release(number):
                self._sessions.ask(number, lambda znodes: self._release(request, znodes))
            case messages.Guard(partitions):
                self._sessions.ask(0, lambda znodes: znodes.guard(partitions))
            case messages.GoOn():
                self._verified = True
            case messages.Wake():
                logger.warning("a partition of an old consumer has had no owner for long: waking the old consumers")
                self._sessions.ask(0, lambda znodes: znodes.wake())
            case messages.Acknowledge(told):
                self._sessions.ask(0, lambda znodes: znodes.acknowledge(told))
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
        left = threading.Semaphore(0)

        def stopped() -> None:
            if not left.acquire(blocking=False):
                self._events.put(Stopped(number))

        for _ in range(sum(stream.stop(partitions, stopped) for stream in self._streams)):
            left.release()
        stopped()

    # --- offsets ------------------------------------------------------------------------------------------------------

    def _read_offsets(self, number: int, partitions: Partitions, znodes: Znodes) -> None:
        """ZooKeeper's here, Kafka's on its own thread, where the answer is made."""
        in_zookeeper = znodes.offsets(partitions) if Store.ZOOKEEPER in self._settings.stores else {}
        self._group.ask(number, lambda group: self._offsets_read(number, partitions, in_zookeeper, group))

    def _offsets_read(self, number: int, partitions: Partitions, in_zookeeper: Mapping[TopicPartition, int | None],
                      group: KafkaGroup) -> OffsetsRead:
        in_kafka = group.offsets(partitions) if Store.KAFKA in self._settings.stores else {}
        for store, found in ((Store.ZOOKEEPER, in_zookeeper), (Store.KAFKA, in_kafka)):
            if store in self._written:
                self._written[store] |= {partition: -1 if offset is None else offset for partition, offset in found.items()}
        starts, behind = {}, set()
        for partition in partitions:
            stored = Stored(in_zookeeper.get(partition), in_kafka.get(partition))
            position = stored.position
            starts[partition] = group.first(partition) if position is None else position
            if any(written[partition] != starts[partition] for written in self._written.values()):
                behind.add(partition)
        return OffsetsRead(number, starts, frozenset(behind))

    def _commit(self, number: int, offsets: Mapping[TopicPartition, int]) -> None:
        left = set(Store)

        def taken(store: Store) -> None:
            left.discard(store)                         # a set's methods are whole to other threads
            if not left and offsets:
                self.commits.append(offsets)

        def in_zookeeper(znodes: Znodes) -> Event:
            gone = self._to_zookeeper(znodes, offsets)
            if not gone:
                taken(Store.ZOOKEEPER)
            return CommittedToZooKeeper(number, gone)

        def in_kafka(group: KafkaGroup) -> Event:
            done = self._to_kafka(group, offsets)
            if done:
                taken(Store.KAFKA)
            return CommittedToKafka(number, fenced=not done)

        self._sessions.ask(number, in_zookeeper)
        self._group.ask(number, in_kafka)

    def _to_zookeeper(self, znodes: Znodes, offsets: Mapping[TopicPartition, int]) -> Partitions:
        """Those whose owner node is not ours. What the store has is not written again."""
        if Store.ZOOKEEPER not in self._settings.stores:
            return frozenset()
        fresh = self._fresh(Store.ZOOKEEPER, offsets)
        gone = znodes.commit(fresh)
        self._written[Store.ZOOKEEPER] |= {partition: offset for partition, offset in fresh.items() if partition not in gone}
        return gone

    def _to_kafka(self, group: KafkaGroup, offsets: Mapping[TopicPartition, int]) -> bool:
        """False where Kafka's group does not take commits of ours any more."""
        if Store.KAFKA not in self._settings.stores:
            return True
        fresh = self._fresh(Store.KAFKA, offsets)
        taken = group.commit(fresh)
        if taken:
            self._written[Store.KAFKA] |= fresh
        return taken

    def _fresh(self, store: Store, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        written = self._written[store]
        return {partition: offset for partition, offset in offsets.items() if written.get(partition) != offset}

    # --- what is told -------------------------------------------------------------------------------------------------

    def _subscribe(self, world: World) -> None:
        """Kafka's group is told names; what a list means is seen in ZooKeeper."""
        rules = self._settings.rules
        if rules.enabled and not self._member.closing:
            self._group.subscribe(self._registration.streams(world.topics, exclude_internal=rules.exclude_internal))

    def _tell(self) -> None:
        """Figures, and a log line for what has changed."""
        member, now = self._member, time.monotonic()
        phases = {partition: holding.phase for partition, holding in member.holdings.items()}
        self.figures.see(member.mode, member.world, member.assigned, phases, now)
        self.figures.commit_lag = self._commit_lag()
        for was, what in zip(self._said or (None, "", "", frozenset()), said := (
                member.mode, member.waits, member.trouble, member.fetching()), strict=True):
            if was != what:
                self._say(said)
                break
        self._said = said

    def _say(self, said: tuple[object, ...]) -> None:
        mode, waits, trouble, fetching = said
        before = self._said or (None, "", "", frozenset())
        if mode is not None and mode != before[0]:
            logger.info("coordinated by %s", mode)
        if waits and waits != before[1]:
            logger.warning("does not follow the mode znode: %s", waits)
        if trouble and trouble != before[2]:
            logger.error("nobody's partitions can be computed: %s", trouble)
        if fetching != before[3]:
            logger.info("fetching %s", ", ".join(map(str, sorted(self._member.fetching()))) or "nothing")

    def _commit_lag(self) -> int:
        if len(self._written) < 2:
            return 0
        in_zookeeper, in_kafka = (self._written[each] for each in Store)
        return sum(abs(in_kafka.get(each, 0) - in_zookeeper.get(each, 0)) for each in self._member.fetching())
