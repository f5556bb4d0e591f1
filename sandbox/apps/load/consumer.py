"""A member of a consumer group that remembers when each partition delivered."""

import threading

from confluent_kafka import Consumer, TopicPartition

from load.history import History


def consume(bootstrap: str, topic: str, group: str, history: History, stop: threading.Event) -> None:
    """Consume as a member of `group`, committing once a second, until `stop` is set."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": history.name,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
            "topic.metadata.refresh.interval.ms": 10_000,
            "error_cb": lambda error: history.error(error.name()),
        }
    )

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        history.expect([each.partition for each in partitions])

    history.keep_writing()
    consumer.subscribe([topic], on_assign=assigned)
    while not stop.is_set():
        for message in consumer.consume(num_messages=200, timeout=0.1):
            error, partition = message.error(), message.partition()
            if error is not None:
                history.error(error.name())
            elif partition is not None:
                history.note(partition)
    consumer.close()
    history.write()
