"""What a member sees of librdkafka: a client that is made up, and calls back as the real one does."""

from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

TOPIC = "orders"


@dataclass
class Message:
    number: int
    place: int
    wrong: KafkaError | None = None

    def error(self) -> KafkaError | None:
        return self.wrong

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.place


@dataclass
class Client:
    """What Membership uses of a Consumer. It has no incremental_assign, and assign only outside a group: to call one of
    them in a callback is wrong under one protocol or the other, and fails here under both."""

    committed_offsets: dict[int, int] = field(default_factory=dict)
    refuse: dict[int, int] = field(default_factory=dict)
    inbox: list[Any] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    owned: set[int] = field(default_factory=set)
    broken: int = 0

    def subscribe(self, topics: list[str], on_assign: Any, on_revoke: Any, on_lost: Any) -> None:
        self.calls.append(f"subscribe {topics}")
        self._assign, self._revoke, self._lose = on_assign, on_revoke, on_lost

    def poll(self, timeout: float) -> Any:
        return self.inbox.pop(0) if self.inbox else None

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        if self.broken:
            raise KafkaException(KafkaError(self.broken))
        known = self.committed_offsets
        return [TopicPartition(p.topic, p.partition, known.get(p.partition, OFFSET_INVALID)) for p in partitions]

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[Any]:
        assert not asynchronous
        if self.broken:
            raise KafkaException(KafkaError(self.broken))
        self.calls.append("commit " + " ".join(f"{each.partition}:{each.offset}" for each in offsets))
        answers = []
        for each in offsets:
            error = KafkaError(self.refuse[each.partition]) if each.partition in self.refuse else None
            if error is None:
                self.committed_offsets[each.partition] = each.offset
            answers.append(Answer(each.topic, each.partition, each.offset, error))
        return answers

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.calls.append("assign " + " ".join(f"{each.partition}:{each.offset}" for each in partitions))

    def close(self) -> None:
        if self.owned:
            self.revoke(*sorted(self.owned))
        self.calls.append("close")

    def give(self, *partitions: int) -> None:
        self.owned |= set(partitions)
        self._assign(self, [TopicPartition(TOPIC, each) for each in partitions])

    def revoke(self, *partitions: int) -> None:
        self.owned -= set(partitions)
        self._revoke(self, [TopicPartition(TOPIC, each) for each in partitions])

    def lose(self, *partitions: int) -> None:
        self.owned -= set(partitions)
        self._lose(self, [TopicPartition(TOPIC, each) for each in partitions])


@dataclass
class Answer:
    topic: str
    partition: int
    offset: int
    error: KafkaError | None


class Outside(Client):
    """A reader without a group."""

    def close(self) -> None:
        self.calls.append("close")
