"""No thread of a consumer goes around and around while somebody is away: each waits, whatever state it stands in."""

import contextlib

import pytest
from confluent_kafka import KafkaException

from interleaving.scheduler import Scheduler
from switchover.consumer.migration_consumer import MigrationConsumer
from switchover.coordination.mode import Mode
from unit.consumer_world import Servers, made_up

SECONDS = 10.0
"""For which somebody is away."""
OURS, THE_APPLICATIONS = 25, 60
"""Passes a second, at most: of a thread of ours, and of one of the application that polls or closes."""
THREADS = {"switchover-member", "switchover-zookeeper", "switchover-zookeeper-heartbeat", "switchover-kafka-group"}


def goes(servers: Servers, away: str) -> None:
    if away != "ZooKeeper":
        servers.kafka_answers = False
    if away != "Kafka":
        servers.zookeeper_goes()


@pytest.mark.parametrize("automatic", [True, False], ids=["automatic", "manual"])
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("state", ["begins", "fetches", "gives back", "is put out", "closes"])
@pytest.mark.parametrize("away", ["ZooKeeper", "Kafka", "both"])
def test_every_thread_waits(away: str, state: str, mode: Mode, automatic: bool) -> None:
    scheduler = Scheduler(lambda s, able: s.current if s.current in able else able[0])
    passes: dict[str, float] = {}

    def live() -> None:
        consumer = MigrationConsumer({
            "group.id": "g", "consumer.id": "me", "zookeeper.connect": "zookeeper", "bootstrap.servers": "kafka",
            "enable.auto.commit": automatic, "auto.commit.interval.ms": 1000})
        consumer.subscribe({"t": 2})
        ends = threads.Event()

        def poll(number: int) -> None:
            while not ends.is_set():
                consumer.streams[number].poll(1.0)
                if not automatic:
                    with contextlib.suppress(KafkaException):       # and nothing else
                        consumer.commit(asynchronous=False)

        polling = [threads.Thread(lambda number=number: poll(number), f"stream {number}") for number in (0, 1)]
        for each in polling:
            each.start()
        if state != "begins":
            scheduler.sleep(5.0)
            assert len(consumer.assignment()) == 4
            assert consumer.metrics()["ActiveKafkaCoordinationCount"] == (mode is Mode.KAFKA)
        goes(servers, away)
        if state == "gives back":
            servers.group.rebalances()
        if state == "is put out":
            servers.group.puts_out()
        if state == "closes":
            ends.set()
            for each in polling:
                each.join()
        before, began = {each.name: each.waits for each in scheduler.tasks}, scheduler.now
        if state == "closes":
            consumer.close(SECONDS)
        else:
            scheduler.sleep(SECONDS)
        passed = max(scheduler.now - began, 1.0)
        passes.update({each.name: (each.waits - before[each.name]) / passed for each in scheduler.tasks})

    with made_up(scheduler, mode) as (servers, threads):
        failures = scheduler.run(live)
    assert failures == []
    assert passes.keys() >= THREADS
    for name, often in passes.items():
        assert often <= (OURS if name in THREADS else THE_APPLICATIONS), name
