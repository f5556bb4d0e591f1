"""A member of a consumer group that remembers when each partition delivered."""

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from load.history import History
from load.lost import Watch
from switchover.runtime.signals import Stop

COMMIT_SECONDS = 1.0


class Commits:
    """Offsets of what was delivered, once a second, one commit at a time.

    librdkafka's own may be several under way, and send an older one again after a newer one when the coordinator moves: no
    audit could tell that from records read twice (docs/pipeline/audit.md).
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._under_way, self._due = False, 0.0

    def answered(self, error: KafkaError | None, _: list[TopicPartition]) -> None:
        """`on_commit` of the consumer."""
        self._under_way = False
        if error is not None:
            self._note(error)

    def keep(self, consumer: Consumer) -> None:
        """Send the next one if it is time and the last one has its answer."""
        if not self._under_way and time.monotonic() >= self._due:
            self._due = time.monotonic() + COMMIT_SECONDS
            self._under_way = True
            consumer.commit(asynchronous=True)

    def revoked(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        """Commit before others get them."""
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as problem:
            self._note(problem.args[0])

    def _note(self, error: KafkaError) -> None:
        if error.code() != KafkaError._NO_OFFSET:           # nothing was read since the last one
            self._history.error(f"commit: {error.name()}")


def consume(bootstrap: str, topic: str, group: str, history: History, stop: Stop) -> None:
    """Consume as a member of `group`, until `stop` is set. Raises BrokersLost."""
    commits = Commits(history)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": history.name,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "on_commit": commits.answered,
            "topic.metadata.refresh.interval.ms": 10_000,
            "error_cb": lambda error: history.error(error.name()),
        }
    )

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        history.expect([each.partition for each in partitions])

    history.keep_writing()
    consumer.subscribe([topic], on_assign=assigned, on_revoke=commits.revoked)
    watch = Watch(consumer)
    while not stop.is_set():
        watch.check()
        commits.keep(consumer)
        for message in consumer.consume(num_messages=200, timeout=0.1):
            error, partition = message.error(), message.partition()
            if error is not None:
                history.error(error.name())
            elif partition is not None:
                watch.heard()
                history.note(partition)
    consumer.close()
    history.write()
