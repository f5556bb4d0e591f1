"""The member's part in Kafka's group: a consumer that is assigned partitions and takes no data
(docs/facts/coordination.md#which-store-counts), and the store of its offsets.

All of it is on one thread: polling, the callbacks, commits. In a revocation the thread goes on with commits until the
member lets it join again, for Kafka accepts them of the old generation until then (rule R2).
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from switchover.consumer.messages import Event, Failed, GroupAssigned, GroupLost, GroupRevoking, Partitions
from switchover.consumer.serial import Serial
from switchover.consumer.settings import BadConfiguration, Settings
from switchover.shared.partition import TopicPartition

logger = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER = 5.0
"""Seconds in which Kafka must answer."""
FENCED = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION})


def embedded(settings: Settings, bootstrap: str) -> dict[str, Any]:
    """The configuration of the member's client. Eager assignors only: the whole assignment is revoked before a rebalance.

    A rebalance lasts until every member has heard of it with a heartbeat, and hand-overs meanwhile wait for Kafka's answer
    to their commits.
    """
    return {
        **settings.fetching,
        "session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000, "max.poll.interval.ms": 60_000,
        "topic.metadata.refresh.interval.ms": 10_000,
        "socket.timeout.ms": int(ANSWER * 2000),
        **settings.embedded,
        "bootstrap.servers": bootstrap, "group.id": settings.group, "client.id": settings.rules.consumer_id,
        "enable.auto.commit": False, "partition.assignment.strategy": str(settings.rules.strategy),
    }


def made(configuration: Mapping[str, Any]) -> Consumer:
    """A client. Raises BadConfiguration with librdkafka's message."""
    try:
        return Consumer(dict(configuration))
    except KafkaException as problem:
        raise BadConfiguration(problem.args[0].str()) from None
    except (TypeError, ValueError) as problem:
        raise BadConfiguration(str(problem)) from None


class KafkaGroup:
    """`post` gets GroupAssigned, GroupRevoking and GroupLost."""

    def __init__(self, settings: Settings, bootstrap: str, post: Callable[[Event], None]) -> None:
        configuration = embedded(settings, bootstrap)
        self._patience = int(configuration["max.poll.interval.ms"]) / 1000 * 0.5
        self._group, self._post, self._reset = settings.group, post, settings.reset
        self._client = made(configuration)
        self._connection = {key: value for key, value in configuration.items() if key.startswith(
            ("bootstrap.", "security.", "sasl.", "ssl.", "client.", "socket."))}
        self._topics: tuple[str, ...] = ()
        self._allowed = self._closing = False       # `_closing` without a lock: it is set once, by whoever leaves
        self._complaint = ""
        self._serial = Serial("switchover-kafka-group", self._poll, settings.poll_interval,
                              self._client.close)

    # --- for the member -----------------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """Join the group, or change what is wanted of it; nothing to do where that is the same."""
        named = tuple(sorted(topics))
        if named != self._topics and named:
            self._topics = named
            self._serial.submit(lambda: self._client.subscribe(
                list(named), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost))

    def allow(self) -> None:
        """End the wait of the revocation that is under way."""
        self._serial.submit(self._allow)

    def ask(self, number: int, do: "Callable[[KafkaGroup], Event]") -> None:
        """Do it; what it gives is posted, Failed with this number where it could not be done."""
        self._serial.submit(lambda: self._answer(number, do))

    def call(self, do: "Callable[[KafkaGroup], T]") -> Future[T]:
        """Do it; its result, or what it raises, comes with the future."""
        return self._serial.submit(lambda: do(self))

    def leave(self, seconds: float) -> None:
        """Leave the group at once, whatever it waits for; so long for it."""
        self._closing = True
        self._serial.end(seconds)

    # --- to be asked through `ask` and `call`: on the thread ----------------------------------------------------------

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Write offsets as the group's member; False where the group is fenced off. Raises KafkaException otherwise."""
        if not offsets:
            return True
        places = [Place(*partition, offset) for partition, offset in offsets.items()]
        try:
            committed = self._client.commit(offsets=places, asynchronous=False)
            errors = [each.error for each in committed if each.error is not None]
        except KafkaException as problem:
            errors = [problem.args[0]]
        if any(error.code() in FENCED for error in errors):
            return False
        if errors:
            raise KafkaException(errors[0])
        return True

    def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """What is committed, None for nothing. Raises KafkaException."""
        found: dict[TopicPartition, int | None] = {}
        for each in self._client.committed([Place(*partition) for partition in partitions], timeout=ANSWER):
            if each.error is not None:
                raise KafkaException(each.error)
            found[TopicPartition(each.topic, each.partition)] = each.offset if each.offset >= 0 else None
        return found

    def first(self, partition: TopicPartition) -> int:
        """Where a partition without a position begins, by `auto.offset.reset`. Raises KafkaException."""
        low, high = self._client.get_watermark_offsets(Place(*partition), timeout=ANSWER)
        return int(low if self._reset == "earliest" else high)

    def assigned(self) -> Mapping[str, Partitions]:
        """What each member is assigned, by its client id; nothing while the group rebalances. Raises KafkaException.

        librdkafka ends the process when the connection to the coordinator drops under such a question (its issues 4605 and
        5397), and does not find a coordinator that was away. So it is asked when the coordinator has just answered, by a
        client of its own.
        """
        self.offsets([TopicPartition(self._topics[0] if self._topics else self._group, 0)])     # of whatever: answered
        admin = AdminClient(self._connection)
        [future] = admin.describe_consumer_groups([self._group], request_timeout=ANSWER).values()
        try:
            described = future.result(2 * ANSWER)
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return {}
            raise
        return {member.client_id: frozenset(TopicPartition(each.topic, each.partition)
                                            for each in member.assignment.topic_partitions)
                for member in described.members}

    # --- on the thread ------------------------------------------------------------------------------------------------

    def _answer(self, number: int, do: "Callable[[KafkaGroup], Event]") -> None:
        try:
            event = do(self)
        except (KafkaException, TimeoutError, RuntimeError) as problem:
            why = problem.args[0].str() if isinstance(problem, KafkaException) else str(problem)
            logger.info("Kafka group %s: %s", self._group, why)
            event = Failed(number, why)
        except Exception as problem:                    # what is never answered is never asked again
            logger.exception("Kafka group %s", self._group)
            event = Failed(number, str(problem))
        self._post(event)

    def _poll(self) -> None:
        if not self._topics or self._closing:
            return
        message = self._client.poll(0.01)
        if message is not None and (error := message.error()) is not None and error.str() != self._complaint:
            self._complaint = error.str()
            logger.warning("Kafka group %s: %s", self._group, self._complaint)

    def _allow(self) -> None:
        self._allowed = True

    def _assigned(self, client: Consumer, places: list[Place]) -> None:
        client.assign([])
        self._post(GroupAssigned(frozenset(TopicPartition(each.topic, each.partition) for each in places)))

    def _revoked(self, client: Consumer, places: list[Place]) -> None:
        if self._closing:
            return
        self._allowed = False
        self._post(GroupRevoking())
        deadline = time.monotonic() + self._patience
        while not self._allowed and not self._closing:
            if (left := deadline - time.monotonic()) <= 0:
                logger.error("Kafka group %s rebalances, and the application has not done with its partitions for %.0f s: "
                             "joining again without waiting longer", self._group, self._patience)
                return
            self._serial.turn(min(left, 0.1))

    def _lost(self, client: Consumer, places: list[Place]) -> None:
        logger.warning("Kafka group %s has put this member out", self._group)
        self._post(GroupLost())
