"""A producer that numbers its records within each partition and remembers which were acknowledged."""

import threading
import time

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from load.history import History


def produce(bootstrap: str, topic: str, rate: int, history: History, stop: threading.Event) -> None:
    """Produce `rate` records a second, spread evenly over all partitions, until `stop` is set.

    acks=all and idempotent: librdkafka retries for five minutes, in order and without a duplicate.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": history.name,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 50,  # few, larger requests: the load must not be what the machine is busy with
            "topic.metadata.refresh.interval.ms": 10_000,
            "error_cb": lambda error: history.error(error.name()),
        }
    )
    partitions = await_partitions(producer, topic, history, stop)
    history.expect(partitions)
    history.keep_writing()
    numbers = dict.fromkeys(partitions, 0)
    padding = "x" * 100

    def acknowledged(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            history.error(f"not delivered: {error.name()}")
            return
        value, partition = message.value(), message.partition()
        assert value is not None
        assert partition is not None
        history.note(partition, int(value.split(b":")[2]))

    sent, begun = 0, time.monotonic()
    while not stop.is_set():
        due = int((time.monotonic() - begun) * rate)
        while sent < due:
            partition = partitions[sent % len(partitions)]
            value = f"{history.run}:{partition}:{numbers[partition]}:{padding}"
            try:
                producer.produce(topic, value.encode(), partition=partition, on_delivery=acknowledged)
            except BufferError:  # full while nothing is acknowledged: wait, then catch up
                producer.poll(0.1)
                continue
            except KafkaException as problem:
                if problem.args[0].code() != KafkaError._UNKNOWN_TOPIC:
                    raise
                # A broker that has just started told that the topic does not exist: ask again, do not wait for the
                # next refresh.
                history.error(problem.args[0].name())
                await_partitions(producer, topic, history, stop)
                continue
            numbers[partition] += 1
            sent += 1
        producer.poll(0.02)
    producer.flush(30)
    history.write()


def await_partitions(producer: Producer, topic: str, history: History, stop: threading.Event) -> list[int]:
    """The partitions of the topic, waiting for it and for brokers as long as there are none."""
    while not stop.is_set():
        try:
            found = producer.list_topics(timeout=10).topics.get(topic)
        except KafkaException as problem:
            history.error(problem.args[0].name())
            continue
        if found is not None and found.error is None and found.partitions:
            return sorted(found.partitions)
        time.sleep(0.5)
    raise SystemExit(0)
