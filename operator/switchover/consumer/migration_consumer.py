"""The migration-enabled consumer of KIP-125, in confluent-kafka's shape.

    consumer = MigrationConsumer({"group.id": "orders", "zookeeper.connect": "zookeeper:2181/kafka"})
    consumer.subscribe(["orders"])
    while running:
        message = consumer.poll(1.0)

It is a member of the group as the old Java consumer is one, partition for partition, until the znode
`/consumers/GROUP/migration/mode` says `kafka` and every member is migration-enabled; from then on a member of Kafka's group.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from switchover.consumer.fetching import Positions, Stream, place
from switchover.consumer.group import embedded, made
from switchover.consumer.membership import ForeignMembers, Membership
from switchover.consumer.sessions import Lease, Sessions, Unreachable
from switchover.consumer.settings import BadConfiguration, parsed, registered
from switchover.consumer.znodes import brokers
from switchover.coordination.registration import Registration
from switchover.shared.partition import TopicPartition

logger = logging.getLogger(__name__)

__all__ = ["BadConfiguration", "ForeignMembers", "MigrationConsumer", "Unreachable"]

TURN = 0.05
"""Seconds that a call waits at one of several streams before it looks at the next."""

Callback = Callable[["MigrationConsumer", list[Place]], None]


class MigrationConsumer:
    """Keys of `configuration`: docs/consumer.md. Raises BadConfiguration. `on_commit` among them is called, in poll and
    close, with None and the offsets of an automatic commit that every store of the group took.

    All methods are for one thread, but each of `streams` may be polled by one of its own, which may commit; `close` comes
    when these have ended.
    """

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self._on_commit = configuration.get("on_commit")
        self._settings = parsed({key: value for key, value in configuration.items() if key != "on_commit"})
        for configuration in (embedded(self._settings, ""), self._fetching("")):
            made(configuration).close()                         # refuses what librdkafka refuses
        self._registration: Registration | None = None
        self._callbacks: dict[str, Callback | None] = {}
        self._positions = Positions(self._settings.rules.commit_interval is not None)
        # Any thread reads these two without a lock, once each; they are written under `_beginning`, and as `close` ends.
        self._membership: Membership | None = None
        self._closed = False
        self._beginning, self._calling_back = threading.Lock(), threading.Lock()
        self.streams: Sequence[Stream] = ()
        self._turn = 0                                          # the stream that is asked next
        self.commit_sent = 0.0
        """When the commit was sent that `on_commit` is called for, in seconds of the monotonic clock."""

    # --- confluent's --------------------------------------------------------------------------------------------------

    def subscribe(
        self, topics: Iterable[str] | Mapping[str, int] = (), *, whitelist: str = "", blacklist: str = "", streams: int = 1,
        on_assign: Callback | None = None, on_revoke: Callback | None = None, on_lost: Callback | None = None,
    ) -> None:
        """Become a member of the group; once only.

        One of `topics` (a mapping says streams by topic), `whitelist` and `blacklist` (the old consumer's expressions; all
        topics whose whole name matches, or does not). on_assign: before partitions are fetched, with where each starts, and
        `group_assignment` says who has the others. on_revoke: before they are released, commits are accepted. on_lost: they
        have been taken away, and others may have them. The callbacks are called in poll, consume and close.

        Raises BadConfiguration, Unreachable when ZooKeeper does not answer within zookeeper.connection.timeout.ms, and
        ForeignMembers where the group has members of another make (pykafka), whose commits would fail.
        """
        if self._registration is not None:
            raise BadConfiguration("subscribed already: a member that wants other topics is another member")
        self._registration = registered(topics, whitelist, blacklist, streams)
        self._callbacks = {"assigned": on_assign, "revoked": on_revoke, "lost": on_lost}
        try:
            self._begin()
        except Exception:
            self._registration = None
            raise

    def poll(self, timeout: float = -1) -> Message | None:
        """The next record or error of any stream, None when there is none in `timeout` seconds; negative: waits for ever.

        By this call the application says that it has done with what it was given before. Where it joins again, after
        max.poll.interval.ms, it raises what `subscribe` raises.
        """
        membership = self._membership
        if (membership is not None and not membership.sent
                and (message := self.streams[self._turn].at_once()) is not None):
            self._turn = (self._turn + 1) % len(self.streams)
            return message
        found = self.consume(1, timeout)
        return found[0] if found else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Up to so many records of one stream, fewer when there are no more in `timeout` seconds. All of them are done with
        at the next call, and not before."""
        if self._registration is None or self._closed:
            raise RuntimeError("Consumer closed" if self._closed else "Consumer not subscribed")
        deadline = float("inf") if timeout < 0 else time.monotonic() + timeout
        turn = float("inf") if len(self.streams) == 1 else TURN
        while True:
            for _ in self.streams:
                stream, self._turn = self.streams[self._turn], (self._turn + 1) % len(self.streams)
                if found := stream.consume(num_messages, min(max(deadline - time.monotonic(), 0.0), turn)):
                    return found
            if time.monotonic() >= deadline:
                return []

    def commit(self, message: Message | None = None, offsets: Sequence[Place] | None = None, asynchronous: bool = True,
               ) -> list[Place] | None:
        """Write to the group's stores: the record after `message`, or `offsets`, or without both what was handed out.

        Asynchronously it returns None at once. Otherwise raises KafkaException when a store does not take it.
        """
        if message is not None:
            partition, offset = place(message)
            given = {partition: offset + 1}
        elif offsets is not None:
            given = {TopicPartition(each.topic, each.partition): each.offset for each in offsets}
        else:
            given = self._handed_out()
        back = message is not None or offsets is not None       # else another thread may have committed further meanwhile
        claims = {partition: claim for stream in self.streams
                  for partition, claim in stream.commit(given, back=back).items()}
        if others := sorted(given.keys() - claims):
            raise KafkaException(KafkaError(KafkaError._STATE, f"{others[0]} is not assigned to this consumer"))
        if (membership := self._membership) is None:
            raise KafkaException(KafkaError(KafkaError._STATE, "this consumer is not in the group now"))
        membership.commit(claims, wait=not asynchronous)
        return None if asynchronous else _places(given)

    def position(self, partitions: Sequence[Place]) -> list[Place]:
        """The offset after the last record that was handed out; OFFSET_INVALID for what is not assigned."""
        known = self._handed_out()
        return [Place(each.topic, each.partition, known.get(TopicPartition(each.topic, each.partition), -1001))
                for each in partitions]

    def assignment(self) -> list[Place]:
        """What is fetched."""
        return [Place(*partition) for partition in sorted(self._handed_out())]

    def _handed_out(self) -> dict[TopicPartition, int]:
        """Up to where, of each partition that is fetched."""
        return {partition: offset for stream in self.streams for partition, offset in stream.position().items()}

    def close(self, timeout: float = 15.0) -> None:
        """Finish, commit, release and leave, within `timeout` seconds and a few; what is not done then is left to others.

        Raises what a callback has raised first, when all of this is done.
        """
        raised: list[Exception] = []
        with self._beginning:
            if self._closed:
                return
            self._closed, membership = True, self._membership
        if membership is not None:
            deadline = time.monotonic() + timeout
            membership.close()
            while not membership.left.wait(0.02) and not membership.ended and time.monotonic() < deadline:
                self._follow_orders(raised)
            self._finish(self._call_back_commits, raised)
            if not membership.left.is_set() and not membership.ended:
                logger.error("not everything was committed and released within %g s: %s", timeout,
                             ", ".join(str(TopicPartition(each.topic, each.partition)) for each in self.assignment()))
            membership.end()
            self._membership = None
        self._follow_orders(raised)
        for stream in self.streams:
            stream.close()
        if raised:
            raise raised[0]

    def _follow_orders(self, raised: list[Exception]) -> None:
        for stream in self.streams:
            self._finish(stream.follow_orders, raised)

    def _finish(self, do: Callable[[], None], raised: list[Exception]) -> None:
        """What a callback raises does not end the end."""
        try:
            do()
        except Exception as problem:  # noqa: BLE001 - whatever the application raises
            raised.append(problem)

    # --- ours ---------------------------------------------------------------------------------------------------------

    @property
    def consumer_id(self) -> str:
        """The member's name in ZooKeeper, and its client.id in Kafka's group."""
        return self._settings.consumer_id

    def group_assignment(self) -> Mapping[TopicPartition, str]:
        """The stream of each partition of the group: `CONSUMERID-NUMBER`, as KIP-125 hands it to listeners."""
        membership = self._membership
        return membership.threads() if membership is not None else {}

    def metrics(self) -> Mapping[str, float]:
        """By name; ages and latencies in seconds."""
        if (membership := self._membership) is None:
            return {}
        return membership.figures.by_name(sum(stream.records for stream in self.streams), time.monotonic())

    # --- a membership after the other ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        assert self._registration is not None
        settings, registration = self._settings, self._registration
        bootstrap = settings.bootstrap or self._brokers()
        if not self.streams:
            count = max(registration.subscription.values(), default=1)
            self.streams = [Stream(made(self._fetching(bootstrap)), self, self._positions) for _ in range(count)]
        membership = Membership(settings, registration, self.streams, self._positions, bootstrap)
        membership.start()
        self._membership = membership
        for stream in self.streams:
            stream.holds = membership.holds

    def _brokers(self) -> str:
        assert self._registration is not None
        sessions = Sessions(self._settings, self._registration, Lease(0.0), lambda _: None)
        sessions.start()
        try:
            found = brokers(sessions.client)
        finally:
            sessions.stop()
        if not found:
            raise Unreachable(f"no broker with a plaintext listener is registered at {self._settings.zookeeper}")
        return found

    def _fetching(self, bootstrap: str) -> dict[str, Any]:
        """Positions are ours: the client neither stores nor commits them, and its group does not exist."""
        settings = self._settings
        return {
            **settings.fetching, "bootstrap.servers": bootstrap, "group.id": f"{settings.group}-fetching",
            "client.id": settings.consumer_id, "enable.auto.commit": False, "enable.auto.offset.store": False,
            "auto.offset.reset": settings.reset,
        }

    # --- what the streams report --------------------------------------------------------------------------------------

    def calling(self) -> None:
        """The application is there, after it may have been silent for too long."""
        with self._beginning:
            if self._closed:
                raise RuntimeError("Consumer closed")
            if self._membership is not None and self._membership.ended:
                self._membership.end()
                self._membership = None
            if self._membership is None:
                self._begin()
        self._call_back_commits()

    def _call_back_commits(self) -> None:
        """By one thread at a time, in their order; the others have something else to do."""
        if (membership := self._membership) is None or not self._calling_back.acquire(blocking=False):
            return
        try:
            while membership.sent:
                commit = membership.sent.popleft()
                if self._on_commit is not None:
                    self.commit_sent = commit.since
                    self._on_commit(None, _places(commit.offsets))
        finally:
            self._calling_back.release()

    def assigned(self, places: list[Place]) -> None:
        self._call("assigned", places)

    def revoked(self, places: list[Place]) -> None:
        self._call("revoked", places)

    def lost(self, places: list[Place]) -> None:
        self._call("lost", places)

    def _call(self, which: str, places: list[Place]) -> None:
        if (callback := self._callbacks.get(which)) is not None:
            callback(self, places)


def _places(offsets: Mapping[TopicPartition, int]) -> list[Place]:
    return [Place(*partition, offset) for partition, offset in sorted(offsets.items())]
