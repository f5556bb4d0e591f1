"""A process with our consumer in it: the very Member, Positions, Stores and Commits that MigrationConsumer ships, and what
its threads do.

Requests to ZooKeeper go through one queue, those to Kafka through another; those to the application go beside them. Half of
the applications commit by themselves.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from simulation.coordination.clients import Client
from simulation.coordination.coordinator import Coordinator, Who
from simulation.coordination.loop import Loop
from simulation.coordination.oracle import UNTOLD, Kind, Oracle
from simulation.coordination.zookeeper import TIMEOUT, Session, ZooKeeper
from switchover.consumer import messages as m
from switchover.consumer.commits import Claims, Commits, InKafka, Offsets, Stores, Uncertain, Written
from switchover.consumer.fetching import Claim, Positions
from switchover.consumer.member.following import Rules
from switchover.consumer.member.machine import Member
from switchover.consumer.member.states import ENDING
from switchover.consumer.sessions import Lease
from switchover.consumer.settings import Store
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Registration
from switchover.coordination.world import Owner
from switchover.shared.partition import TopicPartition

GUARD = "guard"


class NoAnswer(Exception):
    """Of Kafka's coordinator."""


class Kafka:
    """What Stores, Commits and the member call of KafkaGroup. All of it raises NoAnswer."""

    def __init__(self, process: "Ours") -> None:
        self._process = process

    def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {each: self._asked().offsets.get(each) for each in partitions}

    def first(self, partition: TopicPartition) -> int:
        return 0

    def assigned(self) -> Mapping[str, m.Partitions]:
        return self._asked().shares()

    def commit(self, offsets: Offsets) -> bool:
        process = self._process
        if not offsets:
            return True
        assert process.client is not None
        if (answer := process.client.commit(offsets)) is None:
            raise NoAnswer
        if answer:
            process.oracle.stored("Kafka", offsets, process.name)
        return answer

    def _asked(self) -> Coordinator:
        if not self._process.coordinator.is_up:
            raise NoAnswer
        return self._process.coordinator


class Znodes:
    """What Stores and Commits call of the real one."""

    def __init__(self, process: "Ours") -> None:
        self._process = process

    def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {each: self._process.zookeeper.offsets.get(each) for each in partitions}

    def commit(self, offsets: Offsets) -> m.Partitions:
        process = self._process
        gone = frozenset(each for each in offsets if not process.is_ours(each))
        for partition in offsets.keys() - gone:
            before = process.zookeeper.offsets.get(partition, 0)
            process.oracle.check("Z4", offsets[partition] >= before,
                                 f"{process.name} commits {offsets[partition]} of {partition} to ZooKeeper over {before}")
            process.zookeeper.offsets[partition] = offsets[partition]
        process.oracle.stored("ZooKeeper", {each: offsets[each] for each in offsets.keys() - gone}, process.name)
        return gone


class Ours:
    """One process. `enabled`: migration-enabled, else a plain ZooKeeper member."""

    atomic = True
    """False: registers first, acknowledges later, as the prototype did (P3 of docs/facts/coordination.md#kip-125)."""

    def __init__(self, name: str, loop: Loop, zookeeper: ZooKeeper, coordinator: Coordinator, oracle: Oracle,
                 topics: tuple[str, ...], *, enabled: bool = True, slow: float = 0.0, made: type[Member] = Member,
                 host: str = "") -> None:
        self.name, self.loop, self.zookeeper, self.coordinator, self.oracle = name, loop, zookeeper, coordinator, oracle
        self.kind = Kind.ENABLED if enabled else Kind.PLAIN
        self.topics, self.slow = topics, slow
        self.automatic = loop.random.random() < 0.5
        self.member = made(Rules(name, enabled=enabled, commit_interval=2.0 if self.automatic else None))
        self.positions = Positions(self.automatic)
        self.positions.notes.append(self._note_delivered)
        self.stores = Stores(frozenset(Store) if enabled else frozenset({Store.ZOOKEEPER}))
        self.lease = Lease(TIMEOUT)
        self.commits = Commits(self.positions, self.stores, lambda: self.lease.holds(loop.now))
        self.kafka, self.znodes = Kafka(self), Znodes(self)
        self.alive = True
        self.closing = self.frozen = False
        self.connected = True
        self.paused = True                          # until the member has seen that its owner nodes are its own
        self.adoptions: dict[int, int] = {}         # version of the mode znode -> how often kafka mode was entered by it
        self.last_seen_kafka: dict[str, float] = {}
        self._free_at = self._submits_at = 0.0
        self._to_kafka: deque[Callable[[], None]] = deque()
        self._handed: dict[TopicPartition, int] = {}          # delivering, from the member's view; position
        self._claims: dict[TopicPartition, Claim] = {}        # of what is handed
        self._abandoned: set[TopicPartition] = set()          # ended without a commit
        self._pending: list[m.Event] = []
        self._stopping: dict[int, frozenset[TopicPartition]] = {}
        self._thawed = self._froze = -1.0
        self._ticks_at, self._lapsing = float("inf"), 0.0
        self.client: Client | None = None
        self._session: Session | None = None
        zookeeper.watches.append(self._watched)
        self.connect()
        if enabled:
            self.client = Client(Who(name, topics, host=host), coordinator, self._assigned,
                                 lambda _: self._tell(m.GroupRevoking()), self._lost)
            self.client.enter()
        self._beat()
        if not self.automatic:
            self._commit_by_the_application()

    # --- the process and its connections ------------------------------------------------------------------------------

    def connect(self) -> None:
        if self.alive:
            self._session = self.zookeeper.connect(self._expired)
            self.lease.renewed(self.loop.now)
            self._tell(m.Connected(self._session.number))

    def close(self) -> None:
        self.closing = True
        self._tell(m.Closing())

    def crash(self) -> None:
        """SIGKILL."""
        self._end_deliveries()
        self.alive = False
        if self._watched in self.zookeeper.watches:
            self.zookeeper.watches.remove(self._watched)
        if self._session is not None:
            self.zookeeper.cut(self._session)
        if self.client is not None:
            self.client.crash()

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT later."""
        if not self.alive or self.frozen:
            return
        self._end_deliveries()
        self.frozen, self._froze = True, self.loop.now
        if self._session is not None:
            self.zookeeper.cut(self._session)
        if self.client is not None:
            self.client.silent = self.client.stopped = True
        self.loop.after(seconds, self._thaw)

    def _thaw(self) -> None:
        self.frozen, self._thawed = False, self.loop.now
        if self.client is not None:
            self.client.silent = self.client.stopped = False
        if not self.alive:
            return
        if self._session is not None and self._session.alive and self.connected:
            self._session.cut = None
        elif self._session is not None and not self._session.alive:
            self.loop.after(self.loop.between(0.01, 0.5), self._hear_expiry)
        pending, self._pending = self._pending, []
        self._sync()            # it believes what it believed, until somebody tells it: the lease has to stop it
        for event in pending:
            self._tell(event)
        if not self.zookeeper.is_up:
            self.outage(self.zookeeper.down_until - self.loop.now)
        elif self.paused and self._reaches():
            self._tell(m.Resumed())

    def _hear_expiry(self) -> None:
        if self.alive and self._session is not None and not self._session.alive:
            self._session = None
            self._pause()
            self._tell(m.Expired())
            self.connect()

    def _pause(self) -> None:
        self.lease.end()
        self.paused = True
        self._end_deliveries()
        self._excuse()

    def cut_off_from_kafka(self, seconds: float) -> None:
        """Nothing of its group member reaches the coordinator."""
        if self.alive and self.client is not None and not self.frozen:
            client = self.client
            client.silent = True
            self.loop.after(seconds, lambda: setattr(client, "silent", client.stopped))

    def cut_off(self, seconds: float) -> None:
        """Nothing of it reaches ZooKeeper; Kafka is reached as before. kazoo notices after two thirds of the timeout."""
        if not self.alive or not self.connected or self._session is None:
            return
        self.connected = False
        session = self._session
        self.zookeeper.cut(session)
        def notice() -> None:
            if not self.connected and self._session is session and not self.frozen:
                self._pause()
                self._tell(m.Suspended())
        def mend() -> None:
            self.connected = True
            if self._session is not session or not self.alive or self.frozen:
                return
            if session.alive:
                session.cut = None
                self._pause()
                self.lease.renewed(self.loop.now)
                self._tell(m.Suspended())
                self._tell(m.Resumed())
            else:
                self._hear_expiry()
        self.loop.after(TIMEOUT * self.loop.between(0.1, 0.66), notice)
        self.loop.after(seconds, mend)

    def outage(self, seconds: float) -> None:
        """The server is away; sessions outlive it."""
        if not self.alive or self._session is None or self.frozen:
            return
        self._pause()
        self._tell(m.Suspended())
        session = self._session
        def back() -> None:
            if self.alive and self._session is session and session.alive and self.connected:
                self.lease.renewed(self.loop.now)
                self._tell(m.Resumed())
        self.loop.after(seconds + self.loop.between(0.0, 0.5), back)

    def _expired(self) -> None:
        """At the server; a client that cannot hear it learns it when it is connected again."""
        self.oracle.unguarded = self.oracle.unguarded or self.kind is Kind.ENABLED
        if self.alive and self.connected and not self.frozen:
            self._hear_expiry()

    def _beat(self) -> None:
        if not self.alive:
            return
        self.loop.after(TIMEOUT / 6, self._beat)
        if self._reaches() and not self.frozen:
            self.lease.renewed(self.loop.now)
        if not self.frozen:
            self._sync()
        self._plan_tick()

    def _plan_tick(self) -> None:
        """A Tick when the member is due, as its thread waits for it."""
        due = max(self.member.due, self.loop.now)           # it was due while the process stood still
        if due < self._ticks_at:
            self._ticks_at = due
            self.loop.after(due - self.loop.now, self._tick)

    def _tick(self) -> None:
        if self._ticks_at <= self.loop.now:                 # else an earlier one was planned since
            self._ticks_at = float("inf")
            self._tell(m.Tick())

    def _reaches(self) -> bool:
        return self.connected and self.zookeeper.is_up and self._session is not None and self._session.alive

    # --- deliveries ---------------------------------------------------------------------------------------------------

    def _sync(self) -> None:
        """Deliveries are open exactly while the application may be handed records."""
        holds = self._may_hand_out()
        for partition, position in self._handed.items():
            is_open = self.oracle.position(partition, self.name) is not None
            if holds and not is_open:
                self._check_fence(partition)
                self.oracle.begin(partition, self.name, self.kind, position)
                self._abandoned.discard(partition)
            elif not holds and is_open:
                self._handed[partition] = self.oracle.end(partition, self.name)
        if holds and self.lease.until > self._lapsing:
            self._lapsing = self.lease.until
            self.loop.after(self._lapsing - self.loop.now + 1e-6, self._lapse)

    def _may_hand_out(self) -> bool:
        return self.alive and not self.frozen and not self.paused and self.lease.holds(self.loop.now)

    def _lapse(self) -> None:
        if not self._may_hand_out():
            self._end_deliveries()

    def _check_fence(self, partition: TopicPartition) -> None:
        owner = self.zookeeper.owners.get(partition)
        session = self._session.number if self._session is not None and self._session.alive else -1
        looked = self._froze if self.loop.now - self._thawed < UNTOLD else self.loop.now
        just_deleted = self.oracle.just_deleted(partition, looked)
        self.oracle.check("Z2", just_deleted or (owner is not None and owner.session == session),
                          f"{self.name} is handed {partition}, whose owner node is {owner}")

    def _end_deliveries(self) -> None:
        for partition in self._handed:
            if self.oracle.position(partition, self.name) is not None:
                self._handed[partition] = self.oracle.end(partition, self.name)

    # --- the application ----------------------------------------------------------------------------------------------

    def _delivered(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """How far each was delivered, of what is handed."""
        found = {each: self.oracle.position(each, self.name) for each in partitions if each in self._handed}
        return {each: self._handed[each] if position is None else position for each, position in found.items()}

    def _note_delivered(self) -> None:
        """Before positions are read. Who commits by itself moves them in its own calls."""
        if self.automatic:
            self._move(self._delivered(self._handed))

    def _move(self, offsets: Mapping[TopicPartition, int]) -> Claims:
        return {each: self._claims[each] for each, offset in offsets.items()
                if self.positions.move(each, self._claims[each], offset)}

    def _commit_by_the_application(self) -> None:
        """Every second or so, from a thread of its own."""
        if not self.alive:
            return
        self.loop.after(self.loop.between(0.3, 2.0), self._commit_by_the_application)
        if not self.frozen and self._handed:
            self._commit_now(self._handed)

    def _commit_now(self, partitions: Iterable[TopicPartition]) -> None:
        """Some or all of what was delivered, as `MigrationConsumer.commit`."""
        done = {each: self.loop.random.randint(self._claims[each].done, max(offset, self._claims[each].done))
                for each, offset in self._delivered(partitions).items()}
        claims = self._move(done)

        def answered(written: Written[None], held: Offsets | None) -> None:
            if held is not None and not self.frozen:
                self.oracle.answered({each: done[each] for each in held.keys() - written.lost(claims)})
        self._write(0, claims, lambda _: None, answered)

    # --- events and requests ------------------------------------------------------------------------------------------

    def _watched(self, what: str, partition: TopicPartition | None) -> None:
        if not self.alive:
            return
        if what == "owner":
            assert partition is not None
            holding = self.member.holdings.get(partition)
            session = self._session
            def look() -> None:
                owner = self.zookeeper.owners.get(partition)
                now = self.member.holdings.get(partition)
                if session is not self._session or session is None or not self._reaches():
                    return
                if now is not None and now is holding and (owner is None or owner.session != session.number) \
                        and now.phase.value in ("Reading", "Fetching", "Stopping", "Committing", "Lingering"):
                    self._tell(m.OwnerGone(partition))
                elif now is None:
                    self._tell(m.OwnerFreed(partition))
            self.loop.after(self.loop.between(0.001, 0.02), look)
        else:
            self.loop.after(self.loop.between(0.001, 0.02) + (self.slow if what in ("ids", "mode", "migration") else 0.0),
                            lambda: self._reaches() and self._tell(m.Changed()))

    def _excuse(self) -> None:
        """What is being let go of may not be committed any more, by the rules."""
        self._abandoned |= {each for each, holding in self.member.holdings.items() if holding.phase in ENDING}

    def _assigned(self, share: frozenset[TopicPartition]) -> None:
        self._tell(m.GroupAssigned(share))

    def _lost(self) -> None:
        self._excuse()
        self._tell(m.GroupLost())

    def _tell(self, event: m.Event) -> None:
        if not self.alive:
            return
        if self.frozen:
            if not isinstance(event, m.Tick):
                self._pending.append(event)
            return
        mode = self.member.mode
        match event:
            case m.OffsetsRead(number, starts, _):
                self.positions.begin({each: offset for each, offset in starts.items() if each in self.member.holdings
                                      and self.member.holdings[each].request == number})
            case m.Expired():
                self.positions.forget_all()
            case m.OwnerGone(partition):
                self.positions.forget(frozenset({partition}))
        requests = self.member.handle(event, self.loop.now)
        self.oracle.check("Z13", self.member.due > self.loop.now, f"{self.name} is due at once, again and again")
        if self.member.mode is not mode:
            self._adopted(mode)
        for request in requests:
            self._perform(request)
        self._plan_tick()

    def _adopted(self, before: Mode | None) -> None:
        """Z7 and R7, judged by what this member had read."""
        member = self.member
        if member.mode is Mode.KAFKA:
            assert member.world is not None
            self.oracle.check("Z7", not self._sees_old(), f"{self.name} adopts kafka mode beside {self._sees_old()}")
            version = member.following.mode_version
            self.adoptions[version] = self.adoptions.get(version, 0) + 1
            self.oracle.check("R7", self.adoptions[version] <= 2,
                              f"{self.name} flaps: kafka mode of version {version} again and again")
        elif before is Mode.KAFKA and self.kind is Kind.ENABLED:
            stayed = [name for name, since in self.last_seen_kafka.items()
                      if since < self.loop.now - 1.0 and name in self.coordinator.members]
            self.oracle.too_early = self.oracle.too_early or self.coordinator.joining
            self.oracle.check("Z7", not stayed, f"{self.name} leaves kafka mode beside the KafkaConsumers {stayed}")

    def _sees_old(self) -> tuple[str, ...]:
        """Registered for longer than any reading takes, and not below migration/ids."""
        world = self.member.world
        return () if world is None else world.old

    def _perform(self, request: m.Request) -> None:
        match request:
            case m.Start(starts, _):
                self._claims |= self.positions.begin(starts)
                self._handed |= starts
                self._sync()
            case m.Abandon(partitions):
                self.positions.forget(partitions)
                for partition in partitions & self._handed.keys():
                    self._abandon(partition)
            case m.Stop(number, partitions):
                slow = self.loop.random.random() < 0.05
                processing = self.loop.between(0.5, 4.0) if slow else self.loop.between(0.0, 0.05)
                self._stopping[number] = partitions
                self.loop.after(processing, lambda: self._drained(number))
            case m.Commit(number, partitions):
                self._commit(number, self.positions.claims(partitions))
            case m.ReadOffsets(number, partitions):
                self._in_kafka(number, lambda: self._offsets(number, partitions))
            case m.Describe(number):
                self._in_kafka(number, lambda: m.Described(number, self.kafka.assigned()))
            case m.Release(_, partitions):
                self.positions.forget(partitions)
                self._submit(lambda: self._queue(request.number, lambda: self._done(request)))
            case m.GoOn():
                self.paused = False
                self._sync()
            case m.AllowRevoke():
                if self.client is not None:
                    self.client.released()
            case m.Leave():
                self._leave()
            case _:
                self._submit(lambda: self._queue(getattr(request, "number", 0), lambda: self._done(request)))

    def _leave(self) -> None:
        self._end_deliveries()
        self.alive = False
        self.zookeeper.watches.remove(self._watched)
        if self.client is not None:
            self.client.leave()
        session = self._session
        if session is not None:
            self.loop.after(0.005, lambda: self.zookeeper.end(session, told=False) if self.connected
                            and self.zookeeper.is_up else self.zookeeper.cut(session))

    def _abandon(self, partition: TopicPartition) -> None:
        del self._handed[partition]
        self._abandoned.add(partition)
        if self.oracle.position(partition, self.name) is not None:
            self.oracle.end(partition, self.name)

    def _drained(self, number: int) -> None:
        """The application is back: nothing of these partitions is with it any more."""
        partitions = self._stopping.pop(number)
        if self.frozen and self.alive:
            self._stopping[number] = partitions
            self.loop.after(0.5, lambda: self._drained(number))
            return
        if not self.alive:
            return
        holdings = self.member.holdings
        ended = [each for each in sorted(partitions & self._handed.keys())
                 if each in holdings and holdings[each].request == number]
        for partition in ended:
            if self.oracle.position(partition, self.name) is not None:
                self._handed[partition] = self.oracle.end(partition, self.name)
        self._move(self._delivered(ended))              # who commits by itself does so in its callback, all of it
        if not self.automatic:
            self._commit_now(ended)
        for partition in ended:
            del self._handed[partition]
        self._tell(m.Stopped(number))

    # --- commits --------------------------------------------------------------------------------------------------------

    def _commit(self, number: int, claims: Claims) -> None:
        def committed(written: Written[None], held: Offsets | None) -> m.Event:
            if held is None:
                self._excuse()
            return m.CommittedToKafka(number, fenced=held is None)
        self._submit(lambda: self._write(
            number, claims, lambda written: m.CommittedToZooKeeper(number, written.gone), committed))

    def _write(self, number: int, claims: Claims, in_zookeeper: Callable[[Written[None]], m.Event | None],
               in_kafka: Callable[[Written[None], Offsets | None], m.Event | None]) -> None:
        """Kafka's turn is taken when ZooKeeper's answer is here."""
        written: list[Written[None]] = []
        turns: list[InKafka] = []

        def at_server() -> m.Event | None:
            written.append(self.commits.write(self.znodes, claims, turns.append))
            return in_zookeeper(written[0])
        self._queue(number, at_server, lambda: self._in_kafka(number, lambda: in_kafka(written[0], turns[0](self.kafka))))

    # --- requests to Kafka: one after the other -------------------------------------------------------------------------

    def _in_kafka(self, number: int, answer: Callable[[], m.Event | None]) -> None:
        """What it gives is told, Failed where nothing is answered."""
        def do() -> None:
            try:
                event = answer()
            except (NoAnswer, Uncertain):
                event = m.Failed(number, "no answer")
            if event is not None:
                self._tell(event)
        self._to_kafka.append(do)
        if len(self._to_kafka) == 1:
            self._begin_in_kafka()

    def _begin_in_kafka(self) -> None:
        begun = self.loop.now

        def end() -> None:
            if self.frozen and begun > self._froze:         # it had not been sent
                self.loop.after(0.1, end)
            elif self.alive:
                self._to_kafka[0]()
                self._to_kafka.popleft()
                if self._to_kafka:
                    self._begin_in_kafka()
        self.loop.after(self.loop.between(0.002, 0.03) if self.coordinator.is_up else 1.0, end)

    def _offsets(self, number: int, partitions: m.Partitions) -> m.Event | None:
        if not self._reaches():
            raise NoAnswer
        in_zookeeper = self.stores.in_zookeeper(self.znodes, partitions)
        return m.OffsetsRead(number, *self.stores.read(self.kafka, in_zookeeper))

    # --- requests to ZooKeeper ----------------------------------------------------------------------------------------

    def _submit(self, do: Callable[[], None]) -> None:
        """By the member's thread, whose turn may come a moment after it has decided; the application's threads go on."""
        late = self.loop.between(0.0, 0.03) if self.loop.random.random() < 0.5 else 0.0
        self._submits_at = max(self._submits_at, self.loop.now) + late
        self.loop.after(self._submits_at - self.loop.now, do)

    def _queue(self, number: int, do: Callable[[], m.Event | None], then: Callable[[], None] = lambda: None) -> None:
        """`do` at the server, `then` when its answer is here, which is told; 0: nobody waits for it."""
        start = max(self._free_at, self.loop.now)
        there = start + self.loop.between(0.0005, 0.01)
        back = self._free_at = there + self.loop.between(0.0005, 0.01)
        session = self._session
        box: list[m.Event | None] = []
        def at_server() -> None:
            if self.alive and self._reaches() and session is self._session:
                box.append(do())
        def answered() -> None:
            lost = not box or (not self._reaches() and self.loop.random.random() < 0.5)
            if lost and number and session is self._session:
                self._tell(m.Failed(number, "connection lost"))
            elif box and not lost and session is self._session:
                then()
                if box[0] is not None:
                    self._tell(box[0])
        self.loop.after(there - self.loop.now, at_server)
        self.loop.after(back - self.loop.now, answered)

    def _done(self, request: m.Request) -> m.Event | None:
        """At the server, all of it or nothing; a frozen process has sent it before."""
        zookeeper, session = self.zookeeper, self._session
        assert session is not None
        match request:
            case m.Register(number):
                self._register(session)
                return m.Registered(number)
            case m.ReadWorld(number):
                return m.WorldRead(number, zookeeper.world())
            case m.Claim(number, threads):
                return m.Claimed(number, frozenset(
                    each for each in sorted(threads) if self._claim(each, Owner(threads[each], session.number))))
            case m.Release(number, partitions, guard):
                for partition in sorted(partitions):
                    if self.is_ours(partition):
                        self.oracle.check("Z3", self.oracle.position(partition, self.name) is None,
                                          f"{self.name} lets go of {partition} while it is handed out")
                        if partition not in self._abandoned:
                            self.oracle.let_go(partition, self.name)
                        zookeeper.delete_owner(partition)
                        if guard:
                            zookeeper.replace_owner(partition, Owner(GUARD))
                return m.Released(number)
            case m.Guard(partitions):
                for partition in sorted(partitions):
                    zookeeper.create_owner(partition, Owner(GUARD))
            case m.Acknowledge(told):
                if self.name in zookeeper.acknowledgements:
                    zookeeper.acknowledge(self.name, told, session.number)
            case m.Wake():
                zookeeper.unregister(self.name)
                zookeeper.register(self.name, Registration(dict.fromkeys(self.topics, 1)), session.number)
        return None

    def _register(self, session: Session) -> None:
        registration = Registration(dict.fromkeys(self.topics, 1))
        if self.kind is Kind.ENABLED and self.atomic:
            self.zookeeper.acknowledge(self.name, None, session.number)
        self.zookeeper.register(self.name, registration, session.number)
        if self.kind is Kind.ENABLED and not self.atomic:
            self.loop.after(self.loop.between(0.05, 0.5), lambda: session.alive and self.zookeeper.acknowledge(
                self.name, None, session.number))

    def _claim(self, partition: TopicPartition, owner: Owner) -> bool:
        present = self.zookeeper.owners.get(partition)
        if present is not None and not present.session:
            self.zookeeper.replace_owner(partition, owner)
            return True
        return self.zookeeper.create_owner(partition, owner) or present == owner

    def is_ours(self, partition: TopicPartition) -> bool:
        owner = self.zookeeper.owners.get(partition)
        return owner is not None and self._session is not None and owner.session == self._session.number
