"""A producer that numbers its records within each partition and remembers which were acknowledged."""

import time

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from history.recorder import Recorder
from load.history import History
from load.lost import Watch
from switchover.runtime.signals import Stop


class TopicForgotten(Exception):
    """The client was told by a broker that has just started that the topic does not exist, and keeps believing it."""


def produce(
    bootstrap: str, topic: str, rate: int, every: float, history: History, recorder: Recorder, stop: Stop
) -> None:
    """Produce `rate` records a second, spread evenly over all partitions, until `stop` is set; what is due is sent `every`
    so many seconds. Seldom means few, larger requests, where the load must not be what the machine is busy with.

    `recorder` gets the offset of every acknowledged record, for the oracle of consumer histories.

    acks=all and idempotent: librdkafka retries for five minutes, in order and without a duplicate. A client that does not
    know the topic any more is replaced by a new one, as an application would restart; no number is used again. Raises
    BrokersLost.
    """
    load = _Load(topic, rate, every, history, recorder, stop)
    try:
        while not stop.is_set():
            producer = Producer(
                {
                    "bootstrap.servers": bootstrap,
                    "client.id": history.name,
                    "acks": "all",
                    "enable.idempotence": True,
                    "linger.ms": 50,
                    "topic.metadata.refresh.interval.ms": 10_000,
                    "error_cb": lambda error: history.error(error.name()),
                }
            )
            watch = Watch(producer)
            try:
                load.keep_up(producer, await_partitions(producer, topic, history, stop, watch), watch)
                producer.flush(30)
            except TopicForgotten:
                history.error("_UNKNOWN_TOPIC")
                producer.purge()
                producer.flush(1)
    finally:
        recorder.stop()
        history.write()


class _Load:
    """The numbered records of one run, whatever client sends them."""

    def __init__(
        self, topic: str, rate: int, every: float, history: History, recorder: Recorder, stop: Stop
    ) -> None:
        self._topic, self._rate, self._history, self._recorder, self._stop = topic, rate, history, recorder, stop
        self._every = every
        self._numbers: dict[int, int] = {}
        self._sent, self._begun = 0, 0.0

    def keep_up(self, producer: Producer, partitions: list[int], watch: Watch) -> None:
        """Send what is due until told to stop. Raises TopicForgotten and BrokersLost."""
        self._watch = watch
        if not self._numbers:
            self._history.expect(partitions)
            self._history.keep_writing()
            self._numbers = dict.fromkeys(partitions, 0)
            self._begun = time.monotonic()
        padding = "x" * 100
        while not self._stop.is_set():
            watch.check()
            due = int((time.monotonic() - self._begun) * self._rate)
            while self._sent < due:
                partition = partitions[self._sent % len(partitions)]
                value = f"{self._history.run}:{partition}:{self._numbers[partition]}:{padding}"
                try:
                    producer.produce(self._topic, value.encode(), partition=partition, on_delivery=self._delivered)
                except BufferError:  # full while nothing is acknowledged: wait, then catch up
                    producer.poll(0.1)
                    break
                except KafkaException as problem:
                    if problem.args[0].code() != KafkaError._UNKNOWN_TOPIC:
                        raise
                    raise TopicForgotten from None
                self._numbers[partition] += 1
                self._sent += 1
            producer.poll(0)
            self._stop.wait(self._every)        # poll() would end it with the first answer
            self._recorder.tick()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._history.error(f"not delivered: {error.name()}")
            return
        value, partition, offset = message.value(), message.partition(), message.offset()
        assert value is not None
        assert partition is not None
        assert offset is not None
        self._watch.heard()
        self._history.note(partition, int(value.split(b":")[2]))
        if offset >= 0:  # unknown to the client where only a retry was answered
            self._recorder.acknowledged(self._topic, partition, offset)


def await_partitions(
    producer: Producer, topic: str, history: History, stop: Stop, watch: Watch
) -> list[int]:
    """The partitions of the topic, waiting for it as long as there are none. Raises BrokersLost."""
    while not stop.is_set():
        try:
            found = producer.list_topics(timeout=10).topics.get(topic)
        except KafkaException as problem:
            history.error(problem.args[0].name())
            watch.check()
            continue
        if found is not None and found.error is None and found.partitions:
            return sorted(found.partitions)
        time.sleep(0.5)
    raise SystemExit(0)
