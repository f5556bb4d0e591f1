"""Topics whose ids an old tool has lost (KAFKA-14190): what Preflight says of real brokers, and what its commands make of
them."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster, kafka_cluster, patient_wire
from adapters.eventually import eventually
from adapters.pasting import Tools
from patience import stretched
from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Verdict as Outcome
from switchover.engine.gate import Verdict
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from unit.pictures import BROKERS, NOW, moment, with_fact
from unit.preflight_pictures import check, topics, wanted

PARTITIONS = 3


class Tool:
    """What looks at a topic of a real cluster, and does to it what tools and people do."""

    def __init__(self, cluster: KafkaCluster, topic: str, directory: Path) -> None:
        self.cluster, self.topic = cluster, topic
        self.path = f"/brokers/topics/{topic}"
        self.client = KazooClient(cluster.zookeeper_connect, timeout=stretched(30))
        self.client.start()
        self._tools = Tools(directory)

    @property
    def id(self) -> str | None:
        """As ZooKeeper has it."""
        found: str | None = json.loads(self.client.get(self.path)[0]).get("topic_id")
        return found

    async def tree_id(self) -> str | None:
        return self.id

    async def controller(self) -> bool:
        return self.client.exists("/controller") is not None

    def ids_on_disks(self) -> set[str]:
        return {line.partition(" ")[2] for server in self.cluster.brokers.values()
                for file in (server.directory / "data").glob(f"{self.topic}-*/partition.metadata")
                for line in file.read_text().splitlines() if line.startswith("topic_id: ")}

    def gets_the_id(self, other: str | None = None) -> None:
        """As an old tool writes a topic's node: without its id. Or as a person does, with another topic's."""
        fields = json.loads(self.client.get(self.path)[0])
        del fields["topic_id"]
        self.client.set(self.path, json.dumps(fields | ({"topic_id": other} if other else {})).encode())

    async def preflight(self, gate: str = "TopicIds", *others: str) -> Verdict:
        """What a check says of this topic, and of no others than these: each pod of the picture answers as one broker."""
        wire, servers = patient_wire({}), list(self.cluster.brokers.items())
        told = [Known(await wire.examine(server.address, broker_id), NOW) for broker_id, server in servers]
        ids = [Known(await wire.topic_ids(server.address, broker_id), NOW) for broker_id, server in servers]
        tree = KazooZooKeeper(Access(self.cluster.zookeeper_connect))
        try:
            found = (await tree.topics()).topics
        finally:
            await tree.close()
        picture = wanted(zookeeper={"connect": self.cluster.zookeeper_connect})(moment("Preflight"))
        answers = {
            fact: {pod: known[index % len(known)] for index, pod in enumerate(BROKERS.values())}
            for fact, known in (("brokers", told), ("topic_ids", ids))}
        picture = with_fact(picture, "examination", replace(picture.facts.examination, **answers))
        return check(gate, topics(topics={name: found[name] for name in (self.topic, *others)})(picture))

    def paste(self, unblocks: str) -> None:
        assert "nothing was written" not in self._tools.paste_of(unblocks)

    def produce(self) -> set[str]:
        """What became of a record to each partition."""
        told: set[str] = set()
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "acks": "all",
                             "message.timeout.ms": int(1000 * stretched(30))})
        for partition in range(PARTITIONS):
            producer.produce(self.topic, b"x", partition=partition,
                             on_delivery=lambda error, _: told.add(error.name() if error else "acknowledged"))
        assert producer.flush(stretched(60)) == 0
        return told

    async def is_whole(self) -> None:
        """Every partition is in sync again, as each broker sees it, and takes records."""
        wire = patient_wire({})
        for server in self.cluster.brokers.values():
            await eventually(lambda server=server: wire.metadata(server.address), lambda view: {
                len(each.isr) for each in view.partitions if each.topic == self.topic} == {len(self.cluster.brokers)})
        assert self.produce() == {"acknowledged"}
        assert (await self.preflight()).outcome is Outcome.PASS


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[list[Tool]]:
    used: list[Tool] = []
    yield used
    for tool in used:
        tool.client.stop()
        tool.client.close()


@pytest.mark.case("TopicWithoutId")
async def test_an_id_that_was_lost_is_written_back_and_stays_with_the_next_controller(
        zookeeper_cluster: KafkaCluster, tmp_path: Path, tools: list[Tool]) -> None:
    topic = f"lost-{uuid.uuid4().hex}"
    create_topic(zookeeper_cluster.bootstrap, topic, PARTITIONS)
    tools.append(tool := Tool(zookeeper_cluster, topic, tmp_path))
    had = tool.id
    assert (await tool.preflight()).findings == (), "the logs have the id by which they are served"
    tool.gets_the_id()
    found = await tool.preflight()
    assert (found.reason, found.subject, found.threshold) == ("TopicWithoutId", topic, had)
    tool.paste(found.unblocks)
    assert tool.id == had
    tool.client.delete("/controller")
    await eventually(tool.controller, lambda there: there)
    await tool.is_whole()
    assert tool.ids_on_disks() == {tool.id} == {had}


@pytest.mark.long
@pytest.mark.case("TopicWithoutId")
async def test_an_id_that_was_lost_is_written_back_and_every_broker_restarts(tmp_path: Path, tools: list[Tool]) -> None:
    with kafka_cluster(tmp_path, brokers=(1, 2)) as cluster:
        cluster.start_zookeeper_mode()
        create_topic(cluster.bootstrap, "orders", PARTITIONS, replicas=2)
        tools.append(tool := Tool(cluster, "orders", tmp_path))
        had = tool.id
        tool.gets_the_id()
        tool.paste((await tool.preflight()).unblocks)
        await tool.is_whole()
        for broker in cluster.brokers:
            await restart(cluster, broker)
            await tool.is_whole()
        assert tool.ids_on_disks() == {tool.id} == {had}


@pytest.mark.case("TopicsShareAnId", "TopicIdDiffers")
async def test_a_node_that_was_copied_gets_the_id_by_which_its_topic_is_served(
        zookeeper_cluster: KafkaCluster, tmp_path: Path, tools: list[Tool]) -> None:
    topic, other = f"copied-{uuid.uuid4().hex}", f"real-{uuid.uuid4().hex}"
    for name in (topic, other):
        create_topic(zookeeper_cluster.bootstrap, name, PARTITIONS)
    tools.append(tool := Tool(zookeeper_cluster, topic, tmp_path))
    had = tool.id
    tool.gets_the_id(json.loads(tool.client.get(f"/brokers/topics/{other}")[0])["topic_id"])
    assert (await tool.preflight("Topics", other)).reason == "TopicsShareAnId"
    found = await tool.preflight("TopicIds", other)
    assert (found.reason, found.subject, found.threshold) == ("TopicIdDiffers", topic, had)
    tool.paste(found.unblocks)
    assert (await tool.preflight("Topics", other)).outcome is Outcome.PASS
    tool.client.delete("/controller")
    await eventually(tool.controller, lambda there: there)
    await tool.is_whole()
    assert tool.ids_on_disks() == {tool.id} == {had}


@pytest.mark.long
@pytest.mark.case("TopicIdDiffers")
@pytest.mark.parametrize("restarted", [0, 1, 2])
async def test_an_id_that_a_controller_replaced_is_taken_from_the_disks(
        restarted: int, tmp_path: Path, tools: list[Tool]) -> None:
    """The controller has moved, and so many brokers have restarted since: of two none serves the topic any more."""
    with kafka_cluster(tmp_path, brokers=(1, 2)) as cluster:
        cluster.start_zookeeper_mode()
        create_topic(cluster.bootstrap, "orders", PARTITIONS, replicas=2, config={"min.insync.replicas": "1"})
        tools.append(tool := Tool(cluster, "orders", tmp_path))
        had = tool.id
        tool.gets_the_id()
        tool.client.delete("/controller")
        await eventually(tool.tree_id, lambda found: found not in (None, had))
        for broker in list(cluster.brokers)[:restarted]:
            await restart(cluster, broker)
        if restarted == 2:
            assert tool.produce() == {"_MSG_TIMED_OUT"}
        found = await eventually(tool.preflight, lambda found: found.reason != "NotObserved")
        assert (found.outcome, found.reason, found.subject) == (Outcome.FAIL, "TopicIdDiffers", "orders")
        tool.paste(found.unblocks)
        await tool.is_whole()
        for broker in cluster.brokers:
            await restart(cluster, broker)
            await tool.is_whole()
        assert tool.ids_on_disks() == {tool.id} == {had}


@pytest.mark.long
async def test_topics_that_never_had_an_id_get_one_with_the_protocol_version(tmp_path: Path, tools: list[Tool]) -> None:
    with kafka_cluster(tmp_path, brokers=(1, 2)) as cluster:
        cluster.start_zookeeper_mode("inter.broker.protocol.version=2.7\n")
        create_topic(cluster.bootstrap, "orders", PARTITIONS, replicas=2)
        tools.append(tool := Tool(cluster, "orders", tmp_path))
        found = await tool.preflight()
        assert (found.reason, found.subject) == ("TopicWithoutId", "orders")
        assert "raise inter.broker.protocol.version" in found.unblocks
        for _ in range(2):
            for broker in cluster.brokers:
                await restart(cluster, broker)
                assert tool.produce() == {"acknowledged"}
        await tool.is_whole()
        assert tool.ids_on_disks() == {tool.id}


async def restart(cluster: KafkaCluster, broker: int) -> None:
    server = cluster.brokers[broker]
    server.stop()
    server.start(cluster.broker_properties(broker, Mode.ZOOKEEPER))
    await eventually(lambda: patient_wire({}).metadata(server.address), lambda view: view.controller_id in cluster.brokers)
