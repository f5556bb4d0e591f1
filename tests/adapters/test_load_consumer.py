"""The demo's consumer commits what it was given, and never two commits at once."""

import threading
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from adapters.clusters import KRaftNode
from load import consumer
from load.history import History
from patience import stretched, until
from switchover.runtime.signals import Stop


def test_what_was_delivered_is_committed_and_by_the_end_all_of_it(newest_kafka: KRaftNode, tmp_path: Path) -> None:
    servers, topic, group = str(newest_kafka.address), uuid.uuid4().hex, uuid.uuid4().hex
    producer, asking = Producer({"bootstrap.servers": servers}), Consumer({"bootstrap.servers": servers, "group.id": group})

    def produce() -> None:
        for _ in range(100):
            producer.produce(topic, b"1")
        assert producer.flush(stretched(60)) == 0

    def committed() -> int:
        return asking.committed([TopicPartition(topic, 0)], timeout=10)[0].offset or 0

    produce()
    history, stop = History("consumer", tmp_path / "history.json"), Stop()
    thread = threading.Thread(target=consumer.consume, args=(servers, topic, group, history, stop))
    thread.start()
    try:
        until(lambda: committed() == 100, "a commit of what was delivered")
        produce()
        until(lambda: history.partitions[0].records == 200, "everything delivered")
    finally:
        stop.set()
        thread.join()
    assert committed() == 200
    assert history.errors == {}
    asking.close()


class Sent:
    """Stands for a consumer; counts the commits that it was asked for."""

    count = 0

    def commit(self, *, asynchronous: bool) -> None:
        assert asynchronous
        self.count += 1


def test_the_next_commit_waits_for_the_answer_to_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "COMMIT_SECONDS", 0.0)
    commits, sent = consumer.Commits(History("consumer", tmp_path / "history.json")), Sent()
    for expected in (1, 1, 1):
        commits.keep(sent)                      # type: ignore[arg-type]
        assert sent.count == expected
    commits.answered(None, [])
    commits.keep(sent)                          # type: ignore[arg-type]
    assert sent.count == 2
