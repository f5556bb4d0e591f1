"""The load's producer writes down what was acknowledged, so that a loss can be proved."""

import io
from pathlib import Path
from typing import Any

import pytest

from history.checker import check
from history.events import Kind, parsed
from history.recorder import Recorder
from load import producer
from load.history import History
from switchover.runtime.signals import Stop


class Broker:
    """A Producer whose records are acknowledged by the next poll; it stops the load after some of them."""

    def __init__(self, stop: Stop, offsets: list[int]) -> None:
        self.stop, self.offsets, self.waiting = stop, offsets, []

    def produce(self, topic: str, value: bytes, partition: int, on_delivery: Any) -> None:
        if self.offsets:
            self.waiting.append((on_delivery, value, partition, self.offsets.pop(0)))
        else:
            self.stop.set()

    def poll(self, timeout: float) -> None:
        for on_delivery, value, partition, offset in self.waiting:
            on_delivery(None, Message(value, partition, offset))
        self.waiting.clear()

    def flush(self, timeout: float) -> None:
        self.poll(timeout)

    def list_topics(self, timeout: float) -> Any:
        return type("Metadata", (), {"topics": {"orders": type("Topic", (), {"error": None, "partitions": {0: 0}})}})


class Message:
    def __init__(self, value: bytes, partition: int, offset: int) -> None:
        self.value, self.partition, self.offset = (lambda: value), (lambda: partition), (lambda: offset)


def test_acknowledged_offsets_are_recorded_and_unknown_ones_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, file = Stop(), io.BytesIO()
    monkeypatch.setattr(producer, "Producer", lambda _: Broker(stop, [0, 1, -1001, 3]))
    monkeypatch.setattr(History, "keep_writing", lambda _: None)
    producer.produce("nowhere", "orders", 1000, 0.01, History("producer", tmp_path / "h"), Recorder(file, "producer"), stop)
    events = [parsed(line) for line in file.getvalue().splitlines()]
    ranges = [each for event in events if event.kind is Kind.ACKNOWLEDGED for each in event.ranges]
    assert [offset for first, last in ranges for offset in range(first, last + 1)] == [0, 1, 3]
    assert events[-1].kind is Kind.STOP
    assert [str(each) for each in check(events).never_owned] == ["orders-0"]
