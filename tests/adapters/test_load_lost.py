"""The demo's load tells a client that nobody answers any more from one that waits."""

import pytest
from confluent_kafka import Consumer, Producer

from adapters.clusters import KRaftNode
from adapters.servers import loopback
from load import lost


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(lost, "ANSWER_SECONDS", 2.0)


def test_a_silent_client_that_is_answered_goes_on(newest_kafka: KRaftNode) -> None:
    servers = {"bootstrap.servers": str(newest_kafka.address)}
    lost.Watch(Producer(servers)).check()
    lost.Watch(Consumer(servers | {"group.id": "nobody"})).check()


def test_one_that_nobody_answers_is_lost() -> None:
    servers = {"bootstrap.servers": str(loopback(9092))}
    for client in (Producer(servers), Consumer(servers | {"group.id": "nobody"})):
        with pytest.raises(lost.BrokersLost, match="no broker answers"):
            lost.Watch(client).check()


def test_before_the_silence_is_long_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost, "SILENT_SECONDS", 60.0)
    lost.Watch(Producer({"bootstrap.servers": str(loopback(9092))})).check()
