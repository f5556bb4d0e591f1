"""A group of one MigrationConsumer, all of its threads under a Scheduler, and at times of a second member; ZooKeeper and
Kafka are made up, may go away, and lose answers.

What is away fails as fast as the real one can, which is when a thread that does not wait is busiest.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place
from kazoo.exceptions import ConnectionLoss, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from interleaving.scheduler import Scheduler
from interleaving.stand_ins import Queue, Thread, standing_in
from switchover.consumer import fetching, group, membership, migration_consumer, serial, sessions
from switchover.consumer.messages import Changed, Event, OwnerFreed, OwnerGone
from switchover.consumer.reading import ANSWER
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.assignment import Strategy, Text
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Registration
from switchover.coordination.world import Owner, World
from switchover.shared.partition import TopicPartition
from unit.consumer_judge import ME, Judge
from unit.test_consumer_fetching import Record

TOPIC, COUNT = "t", 4
ALL = [TopicPartition(TOPIC, number) for number in range(COUNT)]
OTHER = "g_other"
OTHERS_SESSION = 999
GUARD = Owner("guard")

T = TypeVar("T")


class Servers:
    """Both, and what they know of the group."""

    def __init__(self, scheduler: Scheduler, mode: Mode) -> None:
        self.scheduler, self.mode, self.mode_version = scheduler, mode, 5
        self.judge = Judge(self)
        self.zookeeper_answers = self.kafka_answers = True
        self.sessions, self.numbers = set[int](), itertools.count(OTHERS_SESSION + 1)
        self.registered: dict[str, tuple[Registration, int]] = {}
        self.told: dict[str, tuple[Acknowledgement, int]] = {}
        self.owners: dict[TopicPartition, Owner] = {}
        self.in_zookeeper: dict[TopicPartition, int] = {}
        self.in_kafka: dict[TopicPartition, int] = {}
        self.members: dict[str, list[TopicPartition]] = {}          # of Kafka's group
        self.watching: list[Znodes] = []
        self.kazoo: Kazoo
        self.group: GroupClient

    def zookeeper_goes(self) -> None:
        """kazoo notices a while later."""
        self.zookeeper_answers = False
        self.scheduler.sleep(2.0)
        self.kazoo.suspend()

    def zookeeper_comes(self) -> None:
        self.zookeeper_answers = True
        self.kazoo.connect()

    def ends(self, session: int) -> None:
        """A session, and whatever is there for as long as it lives."""
        if session not in self.sessions:
            return
        self.sessions.remove(session)
        for nodes in (self.registered, self.told):
            for name in [name for name, (_, owner) in nodes.items() if owner == session]:
                del nodes[name]  # type: ignore[attr-defined]
        left = [partition for partition, owner in self.owners.items() if owner.session == session]
        self.judge.left(left)
        for partition in left:
            self.owned(partition, None)
        self.changed()

    def changed(self) -> None:
        for each in list(self.watching):
            each.hears()

    def owned(self, partition: TopicPartition, owner: Owner | None) -> None:
        self.owners.pop(partition, None)
        if owner is not None:
            self.owners[partition] = owner
        for each in list(self.watching):
            each.hears_of(partition)

    def follows(self, mode: Mode) -> None:
        """Whoever reads the mode."""
        self.mode, self.mode_version = mode, self.mode_version + 1
        self.changed()

    def world(self) -> World:
        return World({name: each for name, (each, _) in self.registered.items()}, {},
                     {name: each for name, (each, _) in self.told.items()}, self.mode, self.mode.encode(), self.mode_version,
                     {TOPIC: tuple(range(COUNT))}, dict(self.owners))

    def asked(self) -> None:
        """Of Kafka."""
        self.scheduler.place()
        if not self.kafka_answers:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))


class Kazoo:
    """The client of ZooKeeper, and its two threads."""

    chroot = ""

    def __init__(self, servers: Servers, timeout: float) -> None:
        servers.kazoo = self
        self._servers = servers
        self.connected, self.connection, self.client_id = False, 0, (0, b"")
        self._connection = SimpleNamespace(_connect=lambda *_: (timeout * 1000 / 1.5, 0))
        self._listeners: list[Callable[[str], None]] = []
        self._states, self._called_back = Queue(servers.scheduler), Queue(servers.scheduler)

    def start(self, timeout: float) -> None:
        for name, jobs in (("kazoo-connection", self._states), ("kazoo-callbacks", self._called_back)):
            Thread(self._servers.scheduler, lambda jobs=jobs: self._serve(jobs), name).start()
        self.connect()
        if not self._servers.scheduler.wait(lambda: self.connected, timeout):
            self.stop()
            raise KazooTimeoutError

    def _serve(self, jobs: Queue) -> None:
        while (do := jobs.get()) is not None:
            do()

    def later(self, do: Callable[[], None]) -> None:
        self._called_back.put(do)

    def connect(self) -> None:
        self._states.put(self._connect)

    def _connect(self) -> None:
        session, servers = self.client_id[0], self._servers
        if not servers.zookeeper_answers or self.connected:
            return
        if session not in servers.sessions:
            if session:
                self._tell(KazooState.LOST)
            self.client_id = (next(servers.numbers), b"")
            servers.sessions.add(self.client_id[0])
        self._connection._connect()
        self.connected, self.connection = True, self.connection + 1
        self._tell(KazooState.CONNECTED)

    def suspend(self) -> None:
        if self.connected:
            self.connected, self.connection = False, self.connection + 1
            self._states.put(lambda: self._tell(KazooState.SUSPENDED))

    def _tell(self, state: str) -> None:
        for each in list(self._listeners):
            each(state)

    def add_listener(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[str], None]) -> None:
        self._listeners.remove(listener)

    def stop(self) -> None:
        if self.connected:
            self._servers.ends(self.client_id[0])
        self.connected, self.connection = False, self.connection + 1
        for jobs in (self._states, self._called_back):
            jobs.put(None)

    def close(self) -> None: ...


class Znodes:
    """Of one session."""

    def __init__(self, servers: Servers, kazoo: Kazoo, session: int, consumer_id: str, registration: Registration,
                 notify: Callable[[Event], None]) -> None:
        self._servers, self._kazoo, self._session, self._notify = servers, kazoo, session, notify
        self._id, self._registration = consumer_id, registration
        self._watches_all = False
        self._watched, self._refused, self._held = set[TopicPartition](), set[TopicPartition](), set[TopicPartition]()
        servers.watching.append(self)

    def hears(self) -> None:
        if self._watches_all:
            self._watches_all = False
            self._kazoo.later(lambda: self._notify(Changed()))

    def hears_of(self, partition: TopicPartition) -> None:
        for those, event in ((self._watched, OwnerGone(partition)), (self._refused, OwnerFreed(partition))):
            if partition in those:
                those.discard(partition)
                self._kazoo.later(lambda event=event: self._notify(event))  # type: ignore[misc]

    def _asks(self, do: Callable[[], T]) -> T:
        """One request; its answer may be lost on its way back."""
        servers, kazoo = self._servers, self._kazoo
        connection = kazoo.connection
        servers.scheduler.place()
        if not servers.zookeeper_answers:
            servers.scheduler.wait(lambda: kazoo.connection != connection, ANSWER)
        if kazoo.connection != connection:
            raise ConnectionLoss
        if not servers.zookeeper_answers:
            raise KazooTimeoutError
        if self._session not in servers.sessions:
            raise SessionExpiredError
        found = do()
        servers.scheduler.place()
        if kazoo.connection != connection:
            raise ConnectionLoss
        return found

    def register(self) -> None:
        def do() -> None:
            self._servers.registered[self._id] = self._registration, self._session
            self._servers.told.setdefault(self._id, (Acknowledgement(waits="has not begun"), self._session))
            self._servers.changed()

        self._asks(do)

    def is_registered(self) -> bool:
        return self._asks(lambda: self._servers.registered.get(self._id, (None, 0))[1] == self._session)

    def read(self) -> World:
        self._watches_all = True
        self._watched |= self._held
        return self._asks(self._servers.world)

    def acknowledge(self, told: Acknowledgement) -> None:
        def do() -> None:
            if self._id in self._servers.told:
                self._servers.told[self._id] = told, self._session

        self._asks(do)

    def wake(self) -> None: ...

    def _owns(self, partition: TopicPartition) -> bool:
        return self._servers.owners.get(partition, GUARD).session == self._session

    def claim(self, threads: Mapping[TopicPartition, str]) -> frozenset[TopicPartition]:
        def do() -> frozenset[TopicPartition]:
            if self._id not in self._servers.registered:
                raise SessionExpiredError
            for partition, thread in threads.items():
                if self._servers.owners.get(partition, GUARD).session in (0, self._session):
                    self._servers.owned(partition, Owner(thread, self._session))
                else:
                    self._refused.add(partition)
            return frozenset(filter(self._owns, threads))

        found = self._asks(do)
        self._held |= found
        self._watched |= found
        return found

    def release(self, partitions: frozenset[TopicPartition], *, guard: bool) -> None:
        def do() -> None:
            for partition in filter(self._owns, partitions):
                self._servers.judge.gives(partition)
                self._servers.owned(partition, GUARD if guard else None)

        self._asks(do)
        self._held -= partitions

    def guard(self, partitions: Iterable[TopicPartition]) -> None:
        self._asks(lambda: [self._servers.owned(each, GUARD) for each in partitions if each not in self._servers.owners])

    def has_lost(self, partition: TopicPartition) -> bool:
        if partition not in self._held:
            return False
        self._watched.add(partition)
        if self._asks(lambda: self._owns(partition)):
            return False
        self._held.discard(partition)
        return True

    def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        return self._asks(lambda: {each: self._servers.in_zookeeper.get(each) for each in partitions})

    def commit(self, offsets: Mapping[TopicPartition, int]) -> frozenset[TopicPartition]:
        def do() -> frozenset[TopicPartition]:
            ours = {partition: offset for partition, offset in offsets.items() if self._owns(partition)}
            self._servers.judge.written("ZooKeeper", ours)
            self._servers.in_zookeeper |= ours
            return frozenset(offsets.keys() - ours)

        return self._asks(do)


class GroupClient:
    """librdkafka's, in Kafka's group: what the group is told comes in `poll`, also while Kafka is away."""

    def __init__(self, servers: Servers) -> None:
        servers.group = self
        self._servers = servers
        self._coming: list[Callable[[], None]] = []
        self._joined = False

    def subscribe(self, _: list[str], on_assign: Any, on_revoke: Any, on_lost: Any) -> None:
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost
        self._joined = True
        self._coming.append(self._assign)

    def _share(self) -> list[Place]:
        return [Place(*each) for each in self._servers.members.get(ME, ())]

    def _assign(self) -> None:
        """Of the range that each has."""
        members = self._servers.members
        members[ME] = ALL[:COUNT // 2] if OTHER in members else ALL
        self._on_assign(self, self._share())

    def rebalances(self) -> None:
        if self._joined:
            self._coming += [lambda: self._on_revoke(self, self._share()), self._assign]

    def puts_out(self) -> None:
        self._coming += [lambda: self._on_lost(self, self._share()), self._assign]

    def poll(self, seconds: float) -> None:
        if self._servers.scheduler.wait(lambda: bool(self._coming), seconds):
            self._coming.pop(0)()

    def assign(self, places: list[Place]) -> None: ...

    def close(self) -> None:
        self._servers.members.pop(ME, None)

    def committed(self, places: list[Place], timeout: float) -> list[Place]:
        self._servers.asked()
        has = self._servers.in_kafka
        return [Place(each.topic, each.partition, has.get(TopicPartition(each.topic, each.partition), -1001))
                for each in places]

    def commit(self, offsets: list[Place], *, asynchronous: bool) -> list[Place]:
        self._servers.asked()
        given = {TopicPartition(each.topic, each.partition): each.offset for each in offsets}
        self._servers.judge.written("Kafka", given)
        self._servers.in_kafka |= given
        self._servers.asked()                               # the answer may be lost on its way back
        return offsets

    def get_watermark_offsets(self, place: Place, timeout: float) -> tuple[int, int]:
        self._servers.asked()
        return 0, 0


class Admin:
    """Who asks for the members of Kafka's group."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def describe_consumer_groups(self, groups: list[str], request_timeout: float) -> dict[str, Any]:
        return {groups[0]: SimpleNamespace(result=lambda _: self._described())}

    def _described(self) -> SimpleNamespace:
        self._servers.asked()
        return SimpleNamespace(members=[
            SimpleNamespace(client_id=name, assignment=SimpleNamespace(topic_partitions=[Place(*each) for each in share]))
            for name, share in self._servers.members.items()])


class Fetcher:
    """The client of a stream: a record at a time, when it is waited for."""

    def __init__(self, servers: Servers) -> None:
        self._servers, self._at = servers, dict[TopicPartition, int]()

    def incremental_assign(self, places: list[Place]) -> None:
        begun = {TopicPartition(each.topic, each.partition): each.offset for each in places}
        self._at |= begun
        self._servers.judge.assigned(begun)

    def incremental_unassign(self, places: list[Place]) -> None:
        for each in places:
            del self._at[TopicPartition(each.topic, each.partition)]

    def consume(self, count: int, seconds: float) -> list[Record]:
        if seconds:
            self._servers.scheduler.sleep(seconds)
        if not seconds or not self._at or not self._servers.kafka_answers:
            return []
        partition = min(self._at, key=self._at.__getitem__)
        self._at[partition] += 1
        return [Record(partition, self._at[partition] - 1)]

    def close(self) -> None: ...


class Other:
    """Another member that knows KIP-125: it comes, takes its share, consumes and goes, all at once and right."""

    def __init__(self, servers: Servers) -> None:
        self._servers, self._at = servers, dict[TopicPartition, int]()

    def comes(self, seconds: float) -> None:
        servers = self._servers
        servers.sessions.add(OTHERS_SESSION)
        servers.registered[OTHER] = Registration({TOPIC: 1}), OTHERS_SESSION
        servers.told[OTHER] = Acknowledgement(), OTHERS_SESSION
        servers.members[OTHER] = ALL[COUNT // 2:]
        servers.judge.says("another member comes")
        servers.changed()
        servers.group.rebalances()
        until = servers.scheduler.now + seconds
        while servers.scheduler.now < until:
            self._works()
            servers.scheduler.sleep(0.2)
        self._gives(list(self._at))
        del servers.members[OTHER]
        servers.judge.says("the other member goes")
        servers.ends(OTHERS_SESSION)
        servers.group.rebalances()

    def _works(self) -> None:
        servers = self._servers
        threads = servers.world().intended(Strategy.RANGE, Text.SINCE_1_0)
        wanted = {partition for partition, thread in threads.items() if thread.startswith(OTHER)}
        self._gives([each for each in self._at if each not in wanted])
        for partition in sorted(wanted - self._at.keys() - servers.owners.keys()):
            servers.owned(partition, Owner(f"{OTHER}-0", OTHERS_SESSION))
            self._at[partition] = max(servers.in_zookeeper.get(partition, 0), servers.in_kafka.get(partition, 0))
            servers.judge.begins(partition, self._at[partition], OTHER)
        for partition in self._at:
            servers.judge.handed(partition, self._at[partition], OTHER)
            self._at[partition] += 1

    def _gives(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            offset = self._at.pop(partition)
            self._servers.in_zookeeper[partition] = self._servers.in_kafka[partition] = offset
            self._servers.judge.gives(partition)
            self._servers.owned(partition, None)


@contextlib.contextmanager
def made_up(scheduler: Scheduler, mode: Mode) -> Iterator[tuple[Servers, SimpleNamespace]]:
    """A MigrationConsumer that is made in it has these servers; gives them and what stands in for `threading`."""
    servers = Servers(scheduler, mode)
    with contextlib.ExitStack() as stack:
        threads = stack.enter_context(
            standing_in(scheduler, fetching, group, membership, migration_consumer, serial, sessions))
        for module, name, made in (
            (sessions, "KazooClient", lambda _, timeout, connection_retry: Kazoo(servers, timeout)),
            (sessions, "limit", lambda *_: None),
            (sessions, "Znodes", lambda client, session, layout, consumer_id, registration, enabled, notify:
                Znodes(servers, client, session, consumer_id, registration, notify)),
            (membership, "read_foreign", lambda *_: ""),
            (group, "made", lambda _: GroupClient(servers)),
            (group, "AdminClient", lambda _: Admin(servers)),
            (migration_consumer, "made", lambda _: Fetcher(servers)),
        ):
            stack.enter_context(mock.patch.object(module, name, made))
        yield servers, threads
