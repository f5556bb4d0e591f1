"""A member that writes its history; all that it knows, the consumer tells every application."""

import time
from collections.abc import Callable

from confluent_kafka import KafkaException, Message, TopicPartition

from history.recorder import Recorder
from switchover.consumer.migration_consumer import MigrationConsumer

POLL = 0.1
"""Seconds that one turn waits for a record."""

OnCommit = Callable[[object, list[TopicPartition]], None]


class Membership:
    """`manual`: it commits by itself, every `commit_interval` seconds and before partitions are taken from it.

    Automatic commits happen when the consumer likes, so every delivery is written at once then.
    """

    def __init__(self, consumer: Callable[[OnCommit], MigrationConsumer], recorder: Recorder, *, manual: bool,
                 commit_interval: float, mono: Callable[[], float] = time.monotonic) -> None:
        self._consumer = consumer(self._committed_by_itself)
        self._recorder, self._manual, self._mono = recorder, manual, mono
        self._interval, self._due = commit_interval, mono() + commit_interval
        self._positions: dict[tuple[str, int], int] = {}
        self._committed: dict[tuple[str, int], int] = {}

    def join(self, topic: str, streams: int) -> None:
        self._consumer.subscribe({topic: streams}, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def turn(self) -> None:
        """Deliver what the next poll brings, and commit when it is time."""
        self._take(self._consumer.poll(POLL))
        self._recorder.tick()
        if self._manual and self._mono() >= self._due:
            self._commit(list(self._positions))
            self._due = self._mono() + self._interval

    def leave(self, seconds: float) -> None:
        self._consumer.close(seconds)
        self._recorder.stop()

    def _assigned(self, _: MigrationConsumer, places: list[TopicPartition]) -> None:
        for each in places:
            self._recorder.claim(each.topic, each.partition, self._mono(), each.offset)

    def _revoked(self, _: MigrationConsumer, places: list[TopicPartition]) -> None:
        keys = [(each.topic, each.partition) for each in places]
        if self._manual:
            self._commit(keys)
        for key in keys:
            self._recorder.release(*key)
            self._forget(key)

    def _lost(self, _: MigrationConsumer, places: list[TopicPartition]) -> None:
        for each in places:
            self._recorder.lost(each.topic, each.partition)
            self._forget((each.topic, each.partition))

    def _take(self, message: Message | None) -> None:
        if message is None:
            return
        if (error := message.error()) is not None:
            self._recorder.error(error.name())
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        self._recorder.delivered(topic, partition, offset)
        if not self._manual:
            self._recorder.flush()
        self._positions[topic, partition] = offset + 1

    def _commit(self, keys: list[tuple[str, int]]) -> None:
        """Where something was delivered since the last commit; what is refused is tried again next time."""
        fresh = {key: self._positions[key] for key in keys
                 if key in self._positions and self._positions[key] != self._committed.get(key)}
        if not fresh:
            return
        since = self._recorder.flush()
        try:
            self._consumer.commit(offsets=[TopicPartition(*key, offset) for key, offset in fresh.items()],
                                  asynchronous=False)
        except KafkaException as problem:
            self._recorder.error(f"commit: {problem.args[0].name()}: {problem.args[0].str()}")
            return
        for key, offset in fresh.items():
            self._recorder.commit(*key, since, offset)
        self._committed |= fresh

    def _committed_by_itself(self, _: object, places: list[TopicPartition]) -> None:
        for each in places:
            self._recorder.commit(each.topic, each.partition, self._consumer.commit_sent, each.offset)

    def _forget(self, key: tuple[str, int]) -> None:
        self._positions.pop(key, None)
        self._committed.pop(key, None)
