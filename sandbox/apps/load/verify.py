"""Reads a topic completely and holds it against what was acknowledged."""

import json
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from history.ranges import Ranges
from load.accounting import Audit


def verify(bootstrap: str, topic: str, path: Path, deadline: float = 300) -> dict[str, Any]:
    """Lost and duplicate records; the history is read first, so that all it names must be in the log.

    Raises RuntimeError when the end of a partition is not reached within `deadline` seconds: then nothing is proved.
    """
    history = json.loads(path.read_text())
    acknowledged = {
        (run, int(partition)): Ranges(ranges)
        for run, of_run in history["acknowledged"].items()
        for partition, ranges in of_run.items()
    }
    audit = Audit(acknowledged)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "switchover-load-verify",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
            "auto.offset.reset": "error",
            # It runs beside the producer, within that one's memory.
            "queued.min.messages": 10_000,
            "queued.max.messages.kbytes": 16_384,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        left: dict[int, int] = {}
        starts = []
        for partition in partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
            starts.append(TopicPartition(topic, partition, low))
            if high > low:
                left[partition] = high
        consumer.assign(starts)
        until = time.monotonic() + deadline
        while left:
            if time.monotonic() > until:
                raise RuntimeError(f"the end of partitions {sorted(left)} was not reached within {deadline:.0f} s")
            for message in consumer.consume(num_messages=1000, timeout=1):
                error, value = message.error(), message.value()
                partition, offset = message.partition(), message.offset()
                if error is not None:
                    raise KafkaException(error)
                if partition is None or offset is None or partition not in left or offset >= left[partition]:
                    continue
                audit.note(value or b"", partition)
                if offset == left[partition] - 1:
                    del left[partition]
    finally:
        consumer.close()
    return {**audit.result(), "errors": history["errors"]}
