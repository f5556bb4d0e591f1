"""What Preflight finds under way or left over in a real cluster, and what the runbooks' commands make of it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from adapters import records
from adapters.admin import create_topic
from adapters.clusters import KafkaCluster, kafka_cluster
from adapters.eventually import eventually
from adapters.pasting import Tools
from patience import stretched
from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from unit.pictures import NOW, moment, with_fact
from unit.preflight_pictures import check

DIES = 7
"""A broker that is no pod of the picture; the other one, 1, is."""


class Seen:
    """What Preflight says of a real ZooKeeper, and the tools of the runbooks."""

    def __init__(self, cluster: KafkaCluster, directory: Path) -> None:
        self.cluster = cluster
        self._tools = Tools(directory)
        self._tree = KazooZooKeeper(Access(cluster.zookeeper_connect))
        self.client = KazooClient(cluster.zookeeper_connect, timeout=stretched(30))
        self.client.start()

    async def registered(self) -> set[int]:
        return {*(await self._tree.state()).brokers}

    async def reasons(self) -> set[str]:
        """Those for which a migration would not begin."""
        found = await self._tree.topics()
        own = {name: topic for name, topic in found.topics.items() if not name.startswith("__")}
        topics = with_fact(moment("Preflight"), "zookeeper_topics", Known(replace(found, topics=own), NOW))
        nodes = with_fact(moment("Preflight"), "zookeeper", Known(await self._tree.state(), NOW))
        verdicts = check("Membership", topics), check("Topics", topics), check("Residue", nodes)
        return {each.reason for verdict in verdicts for each in verdict.findings if each.reason != "MetadataSize"}

    def paste(self, section: str) -> str:
        """What the commands of a section print."""
        return "\n".join(self._tools.paste_page(
            "preflight-cluster", section, TOPIC="orders", REPLICAS="1", N="0",
            ZOOKEEPER=self.cluster.zookeeper_connect, **{"kafka:9092": str(self.cluster.brokers[1].address)}))

    async def close(self) -> None:
        self.client.stop()
        self.client.close()
        await self._tree.close()


@pytest.fixture
async def seen(tmp_path: Path) -> AsyncIterator[Seen]:
    with kafka_cluster(tmp_path / "cluster", brokers=(1, DIES)) as cluster:
        cluster.start_zookeeper_mode()
        for topic in ("orders", "gone"):
            create_topic(cluster.bootstrap, topic, replicas=2)
        records.write(cluster.bootstrap, "orders")
        seen = Seen(cluster, tmp_path)
        yield seen
        await seen.close()


@pytest.mark.long
@pytest.mark.case("DeadBrokerInAssignment", "PendingDeletes", "Residue")
async def test_what_a_broker_that_died_and_an_earlier_attempt_have_left(seen: Seen) -> None:
    """Replicas are moved away from the broker; the deletion of a topic ends when it comes back. The records stay."""
    died, bootstrap = seen.cluster.brokers[DIES], str(seen.cluster.brokers[1].address)
    assert await seen.reasons() == {"DeadBrokerInAssignment"}, "broker 7 is none of the picture's"
    died.kill()
    await eventually(seen.registered, lambda found: found == {1})
    seen.client.create("/admin/delete_topics/gone", b"")
    seen.client.create("/migration", b'{"version":0,"kraft_metadata_offset":-1,"kraft_controller_id":3000,'
                                     b'"kraft_metadata_epoch":-1,"kraft_controller_epoch":-1}')
    assert await seen.reasons() == {"DeadBrokerInAssignment", "PendingDeletes", "Residue"}
    assert "is completed" in seen.paste("DeadBrokerInAssignment")
    seen.paste("Residue")
    died.start(seen.cluster.broker_properties(DIES, Mode.ZOOKEEPER))
    await eventually(seen.reasons, lambda found: found == set())
    records.read(bootstrap, "orders")
