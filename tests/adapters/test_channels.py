"""Brokers of real Kafka 3.9 that have lost a channel to the controller, one after the other, and how each is seen."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster, kafka_cluster, patient_wire
from adapters.eventually import eventually
from adapters.pasting import Tools
from adapters.servers import free_port
from adapters.suspended import debugged, suspended
from patience import stretched
from switchover.answers.clock import WallClock
from switchover.answers.observed import Known, Observed
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.facts import CaughtUp, whole_of
from switchover.cluster.gates.replicas import FOLLOWERS_TAKEN_BACK
from switchover.cluster.observe.brokers import CaughtUpWatch, ForwardingWatch, ask_each
from switchover.kafka.client.nodes import KafkaWire
from switchover.kafka.node import WholeView
from switchover.network.addresses import Address
from unit.kraft_gates import dual_write
from unit.pictures import NOW, with_fact

TOPIC = "orders"
WIRE, CLOCK = patient_wire({}), WallClock()


class Sight:
    """What the operator sees of the brokers."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._brokers: Mapping[int, Address | None] = {
            number: server.address for number, server in cluster.brokers.items()}
        self._watch = CaughtUpWatch(CLOCK)

    async def views(self) -> Mapping[int, Observed[WholeView]]:
        return await ask_each(self._brokers, lambda address, _: WIRE.metadata(address), CLOCK)

    async def isr(self) -> set[tuple[int, frozenset[int]]]:
        """(leader, in sync) of the partition, as each broker tells it."""
        return {(each.leader, frozenset(each.isr)) for view in whole_of(await self.views()).values()
                for each in view.partitions if each.topic == TOPIC}

    async def caught_up(self) -> set[tuple[int, int]]:
        """(leader, follower)."""
        found = await self._watch.look(WIRE, self._brokers, await self.views())
        assert isinstance(found, Known)
        return {(each.leader, each.follower) for each in found.value if each.topic == TOPIC}

    async def for_a_minute(self) -> Known[tuple[CaughtUp, ...]]:
        """What it sees now, as if it had for so long."""
        found = await self._watch.look(WIRE, self._brokers, await self.views())
        assert isinstance(found, Known)
        return Known(tuple(replace(each, since=NOW - 60) for each in found.value if each.topic == TOPIC), NOW)


def write(cluster: KafkaCluster, records: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "1"})
    for number in range(records):
        producer.produce(TOPIC, str(number) * 100)
    assert producer.flush(stretched(60)) == 0


@pytest.mark.case("LeaderStuck")
async def test_a_leader_that_lost_its_way_to_the_controller_is_told_from_a_follower_that_is_behind(tmp_path: Path) -> None:
    """Its thread for AlterPartition stands still; the third form in docs/facts/kraft.md#a-leader-that-takes-nobody-back."""
    with kafka_cluster(tmp_path, brokers=(0, 1, 2)) as cluster:
        ports = {number: free_port() for number in cluster.brokers}
        for number, server in cluster.brokers.items():
            server.java_options = debugged(ports[number])
        cluster.start_zookeeper_mode("controlled.shutdown.enable=true\n")
        create_topic(cluster.bootstrap, TOPIC, replicas=3)
        sight = Sight(cluster)
        [(leader, _)] = await eventually(sight.isr, lambda found: {isr for _, isr in found} == {frozenset({0, 1, 2})})
        controller = next(view.controller_id for view in whole_of(await sight.views()).values())
        follower = next(number for number in cluster.brokers if number not in (leader, controller))
        stopped = cluster.brokers[follower]
        with suspended(ports[leader], "alter-partition-channel-manager"):
            stopped.stop()
            write(cluster, 5000)
            assert await sight.caught_up() == set(), "it is not there"
            stopped.start(cluster.broker_properties(follower, Mode.ZOOKEEPER))
            await eventually(sight.caught_up, lambda found: found == {(leader, follower)})
            for _ in range(5):                                 # records come, and it follows: still nobody takes it back
                write(cluster, 100)
                await asyncio.sleep(0.3)
                assert await sight.caught_up() == {(leader, follower)}
            assert await sight.isr() == {(leader, frozenset({0, 1, 2} - {follower}))}
            found = FOLLOWERS_TAKEN_BACK.check(with_fact(dual_write(), "caught_up", await sight.for_a_minute()))
            assert (found.reason, found.subject) == ("LeaderStuck", f"kafka-{leader}")
            # to stop, it would wait for that thread
            Tools(tmp_path, {found.subject: cluster.brokers[leader]}, grace=0).paste_of(found.unblocks)
        await eventually(sight.isr, lambda found: {isr for _, isr in found} == {frozenset({0, 1, 2})})
        assert await sight.caught_up() == set()


async def test_a_broker_that_passes_nothing_on_and_one_without_heartbeats(tmp_path: Path) -> None:
    with kafka_cluster(tmp_path, brokers=(1, 2), controllers=(3000,)) as cluster:
        port, first = free_port(), cluster.brokers[1]
        first.java_options = debugged(port)
        cluster.start_kraft("broker.session.timeout.ms=6000\n")
        brokers: Mapping[int, Address | None] = {number: server.address for number, server in cluster.brokers.items()}
        voters = {number: server.address for number, server in cluster.controllers.items()}

        async def silent() -> set[int]:
            answers = await ask_each(brokers, lambda address, _: WIRE.api_versions(address), CLOCK)
            found = await ForwardingWatch(CLOCK).look(KafkaWire({}), brokers, answers)
            assert isinstance(found, Known)
            return {*found.value}

        async def fenced() -> set[int]:
            return {number for number, broker in (await WIRE.log(voters)).brokers.items() if broker.fenced}

        await eventually(silent, lambda found: found == set())
        with suspended(port, "to-controller-forwarding-channel-manager"):
            await eventually(silent, lambda found: found == {1})
            assert (await WIRE.metadata(first.address)).cluster_id, "it answers all else"
        await eventually(silent, lambda found: found == set())
        with suspended(port, "to-controller-heartbeat-channel-manager"):
            await eventually(fenced, lambda found: found == {1})
            assert (await WIRE.metadata(first.address)).cluster_id, "it answers"
        await eventually(fenced, lambda found: found == set())
