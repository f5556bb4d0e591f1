"""A member of a consumer group that writes its history, under either protocol and any assignor.

The callbacks never call assign() or incremental_assign(): librdkafka then does what the protocol in force wants, and
refuses the wrong one of the two (docs/facts/groups.md#clients). So the same code serves all strategies and both protocols;
the lists are whole in the first and differences in the others, and each partition is treated for itself.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from history.events import NO_OFFSET
from history.recorder import Recorder
from member.faults import Faults

POLL = 0.1
"""Seconds that one turn waits for a record."""

ANSWER = 10.0
"""Seconds in which the coordinator must tell committed offsets."""


class OutOfTheGroup(Exception):
    """The client gave up for good: refused by the group, or fenced."""


class Membership:
    """One member. `reader` makes a consumer outside any group, which only a planted fault uses."""

    def __init__(
        self, consumer: Consumer, recorder: Recorder, topic: str, commit_interval: float, faults: Faults,
        reader: Callable[[], Consumer], mono: Callable[[], float] = time.monotonic,
    ) -> None:
        self._consumer, self._recorder, self._faults, self._reader = consumer, recorder, faults, reader
        self._interval, self._mono = commit_interval, mono
        self._due = mono() + commit_interval
        self._positions: dict[tuple[str, int], int] = {}
        self._committed: dict[tuple[str, int], int] = {}
        self._revoked: dict[tuple[str, int], int] = {}
        self._double: Consumer | None = None
        consumer.subscribe([topic], on_assign=self.assigned, on_revoke=self.revoked, on_lost=self.lost)

    def turn(self) -> None:
        """Deliver what the next poll brings, and commit when it is time. Raises OutOfTheGroup."""
        self._take(self._consumer.poll(POLL))
        if self._double is not None:
            self._take_twice(self._double.poll(0))
        self._recorder.tick()
        if self._mono() >= self._due:
            self._commit(list(self._positions))
            self._due = self._mono() + self._interval

    def leave(self) -> None:
        """Close; the client calls `revoked` for what is left."""
        self._consumer.close()
        if self._double is not None:
            self._double.close()
        self._recorder.stop()

    def assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        since = self._mono()
        offsets: dict[tuple[str, int], int] = {}
        try:
            for each in consumer.committed(partitions, timeout=ANSWER) if partitions else []:
                if each.error is None:
                    offsets[each.topic, each.partition] = max(each.offset, NO_OFFSET)
        except KafkaException as problem:
            self._recorder.error(f"committed: {problem.args[0].name()}")
        if self._faults.stall_first and partitions:
            self._faults = replace(self._faults, stall_first=False, stall_partition=partitions[0].partition)
        for each in partitions:
            self._recorder.claim(each.topic, each.partition, since, offsets.get((each.topic, each.partition)))

    def revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Commit, then release: the partitions go to others when this returns."""
        keys = [(each.topic, each.partition) for each in partitions]
        self._commit(keys)
        for topic, partition in keys:
            self._recorder.release(topic, partition)
        if self._faults.double:
            self._revoked |= {key: self._positions[key] for key in keys if key in self._positions}
            self._read_revoked()
        self._forget(keys)

    def lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Others may have them already: nothing is committed."""
        keys = [(each.topic, each.partition) for each in partitions]
        for topic, partition in keys:
            self._recorder.lost(topic, partition)
        self._forget(keys)

    def _take(self, message: Message | None) -> None:
        if message is None:
            return
        if (error := message.error()) is not None:
            self._complain(error)
            return
        topic, partition, offset = _place(message)
        if self._faults.stalls(partition):
            return
        if not self._faults.forgets(offset):
            self._recorder.delivered(topic, partition, offset)
        self._positions[topic, partition] = offset + 1

    def _complain(self, error: KafkaError) -> None:
        # fatal() alone is False on it: docs/facts/groups.md#refusals
        if error.code() == KafkaError._FATAL or error.fatal():
            self._recorder.fenced(error.str())
            raise OutOfTheGroup(error.str())
        self._recorder.error(error.name())

    def _commit(self, keys: list[tuple[str, int]]) -> None:
        """Commit where something was delivered since the last commit; what is refused is tried again next time."""
        fresh = {key: self._positions[key] for key in keys
                 if key in self._positions and self._positions[key] != self._committed.get(key)}
        if not fresh:
            return
        offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in fresh.items()]
        since = self._recorder.flush()
        try:
            answers = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as problem:
            self._recorder.error(f"commit: {problem.args[0].name()}")
            return
        for each in answers:
            if each.error is not None:
                self._recorder.error(f"commit of {each.topic}-{each.partition}: {each.error.name()}")
                continue
            self._recorder.commit(each.topic, each.partition, since, each.offset)
            self._committed[each.topic, each.partition] = each.offset

    def _forget(self, keys: list[tuple[str, int]]) -> None:
        for key in keys:
            self._positions.pop(key, None)
            self._committed.pop(key, None)

    def _read_revoked(self) -> None:
        if self._double is None:
            self._double = self._reader()
        self._double.assign([TopicPartition(*key, offset) for key, offset in self._revoked.items()])

    def _take_twice(self, message: Message | None) -> None:
        if message is None or message.error() is not None:
            return
        topic, partition, offset = _place(message)
        self._revoked[topic, partition] = offset + 1
        self._recorder.delivered(topic, partition, offset)


def _place(message: Message) -> tuple[str, int, int]:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return topic, partition, offset
