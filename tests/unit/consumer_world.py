"""A group of one MigrationConsumer, all of its threads under a Scheduler; ZooKeeper and Kafka are made up, and may go away.

What is away fails as fast as the real one can, which is when a thread that does not wait is busiest.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from unittest import mock

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.states import KazooState

from interleaving.scheduler import Scheduler
from interleaving.stand_ins import standing_in
from switchover.consumer import fetching, group, membership, migration_consumer, serial, sessions
from switchover.consumer.reading import ANSWER
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Registration
from switchover.coordination.world import Owner, World
from switchover.shared.partition import TopicPartition
from unit.test_consumer_fetching import Record

TOPIC, COUNT = "t", 4
ALL = [TopicPartition(TOPIC, number) for number in range(COUNT)]
SESSION = 7


class Servers:
    """Both, and what they know of the group."""

    def __init__(self, scheduler: Scheduler, mode: Mode) -> None:
        self.scheduler, self.mode = scheduler, mode
        self.zookeeper_answers = self.kafka_answers = True
        self.registered: dict[str, Registration] = {}
        self.told: dict[str, Acknowledgement | None] = {}
        self.owners: dict[TopicPartition, Owner] = {}
        self.offsets: dict[TopicPartition, int] = {}
        self.kazoo: Kazoo
        self.group: GroupClient
        self.fetched = dict.fromkeys(ALL, 0)

    def zookeeper_goes(self) -> None:
        """kazoo notices a while later."""
        self.zookeeper_answers = False
        self.scheduler.wait(lambda: False, 2.0)
        self.kazoo.connected = False
        self.kazoo.tell(KazooState.SUSPENDED)

    def kafka_goes(self) -> None:
        self.kafka_answers = False

    def asked(self) -> None:
        """Of Kafka."""
        self.scheduler.place()
        if not self.kafka_answers:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))


class Kazoo:
    """The client of ZooKeeper."""

    chroot, connected, client_id = "", False, (SESSION, b"")

    def __init__(self, servers: Servers, timeout: float) -> None:
        servers.kazoo = self
        self._connection = SimpleNamespace(_connect=lambda *_: (timeout * 1000 / 1.5, 0))
        self._listeners: list[Callable[[str], None]] = []

    def start(self, timeout: float) -> None:
        self._connection._connect()
        self.connected = True
        self.tell(KazooState.CONNECTED)

    def tell(self, state: str) -> None:
        for each in list(self._listeners):
            each(state)

    def add_listener(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[str], None]) -> None:
        self._listeners.remove(listener)

    def stop(self) -> None: ...
    def close(self) -> None: ...


class Znodes:
    """Of the one session."""

    def __init__(self, servers: Servers, consumer_id: str, registration: Registration) -> None:
        self._servers, self._id, self._registration = servers, consumer_id, registration

    def _asks(self) -> None:
        servers = self._servers
        servers.scheduler.place()
        if not servers.zookeeper_answers:
            servers.scheduler.wait(lambda: not servers.kazoo.connected, ANSWER)
            raise ConnectionLoss

    def register(self) -> None:
        self._asks()
        self._servers.registered[self._id], self._servers.told[self._id] = self._registration, Acknowledgement()

    def is_registered(self) -> bool:
        self._asks()
        return self._id in self._servers.registered

    def read(self) -> World:
        self._asks()
        servers = self._servers
        return World(dict(servers.registered), {}, dict(servers.told), servers.mode, servers.mode.encode(), 5,
                     {TOPIC: tuple(range(COUNT))}, dict(servers.owners))

    def acknowledge(self, told: Acknowledgement) -> None:
        self._asks()
        self._servers.told[self._id] = told

    def claim(self, threads: Mapping[TopicPartition, str]) -> frozenset[TopicPartition]:
        self._asks()
        self._servers.owners |= {each: Owner(thread, SESSION) for each, thread in threads.items()}
        return frozenset(threads)

    def release(self, partitions: Iterable[TopicPartition], *, guard: bool) -> None:
        self._asks()
        for each in partitions:
            self._servers.owners[each] = Owner("guard")

    def guard(self, partitions: Iterable[TopicPartition]) -> None:
        self._asks()

    def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        self._asks()
        return {each: self._servers.offsets.get(each) for each in partitions}

    def commit(self, offsets: Mapping[TopicPartition, int]) -> frozenset[TopicPartition]:
        self._asks()
        self._servers.offsets |= offsets
        return frozenset()


class GroupClient:
    """librdkafka's, in Kafka's group."""

    def __init__(self, servers: Servers) -> None:
        servers.group = self
        self._servers = servers
        self._coming: list[Callable[[], None]] = []
        self.share: list[Place] = []

    def subscribe(self, _: list[str], on_assign: Any, on_revoke: Any, on_lost: Any) -> None:
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost
        self._coming.append(self._assign)

    def _assign(self) -> None:
        self.share = [Place(*each) for each in ALL]
        self._on_assign(self, self.share)

    def rebalances(self) -> None:
        self._coming.append(lambda: self._on_revoke(self, self.share))

    def puts_out(self) -> None:
        self._coming.append(lambda: self._on_lost(self, self.share))

    def poll(self, seconds: float) -> None:
        """What the client knows already it tells when Kafka is away, too."""
        if self._servers.scheduler.wait(lambda: bool(self._coming), seconds):
            self._coming.pop(0)()

    def assign(self, places: list[Place]) -> None: ...
    def close(self) -> None: ...

    def committed(self, places: list[Place], timeout: float) -> list[Place]:
        self._servers.asked()
        return [Place(each.topic, each.partition, 0) for each in places]

    def commit(self, offsets: list[Place], *, asynchronous: bool) -> list[Place]:
        self._servers.asked()
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
        share = SimpleNamespace(topic_partitions=self._servers.group.share)
        return SimpleNamespace(members=[SimpleNamespace(client_id="g_me", assignment=share)])


class Fetcher:
    """The client of a stream: a record at a time, when it is waited for."""

    def __init__(self, servers: Servers) -> None:
        self._servers, self._at = servers, dict[TopicPartition, int]()

    def incremental_assign(self, places: list[Place]) -> None:
        self._at |= {TopicPartition(each.topic, each.partition): each.offset for each in places}

    def incremental_unassign(self, places: list[Place]) -> None:
        for each in places:
            del self._at[TopicPartition(each.topic, each.partition)]

    def consume(self, count: int, seconds: float) -> list[Record]:
        if seconds:
            self._servers.scheduler.wait(lambda: False, seconds)
        if not seconds or not self._at or not self._servers.kafka_answers:
            return []
        partition = min(self._at, key=self._at.__getitem__)
        self._at[partition] += 1
        return [Record(partition, self._at[partition] - 1)]

    def close(self) -> None: ...


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
            (sessions, "Znodes", lambda client, session, layout, consumer_id, registration, enabled, tell:
                Znodes(servers, consumer_id, registration)),
            (membership, "read_foreign", lambda *_: ""),
            (group, "made", lambda _: GroupClient(servers)),
            (group, "AdminClient", lambda _: Admin(servers)),
            (migration_consumer, "made", lambda _: Fetcher(servers)),
        ):
            stack.enter_context(mock.patch.object(module, name, made))
        yield servers, threads
