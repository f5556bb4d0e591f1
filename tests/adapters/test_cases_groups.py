"""What Preflight of a group prints for a person, run as it stands against real brokers, by the tools of Kafka 3.9."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kio.schema.errors import ErrorCode

from adapters.clusters import KRaftNode
from adapters.eventually import eventually
from adapters.group_brokers import Broker, Serve
from adapters.group_members import heartbeat
from adapters.group_sight import found, sight, told
from adapters.pasting import Tools
from adapters.test_group_refusals import TOPIC, plain, ready
from adapters.test_wire_settings import committed, created, filled
from patience import stretched
from printed import changing
from switchover.answers.observed import Known
from switchover.engine.gate import Verdict
from switchover.groups.coordination.preflight import find_hazards
from switchover.groups.facts import Stored, StoreSample
from switchover.groups.picture import Picture
from switchover.groups.reading import raise_message_bytes
from switchover.kafka.client.offsets import WireOffsets
from switchover.lag.samples import NONE
from switchover.lag.window import Asked, Offsets
from switchover.network.credentials import Access
from switchover.shared.partition import TopicPartition as Named
from unit.group_pictures import tried, with_fact
from unit.test_coordination_gates import moment


@pytest.mark.case("FeatureNotFinalized", "ProtocolRefused")
@pytest.mark.parametrize("version", ["4.4", pytest.param("4.0", marks=pytest.mark.long)])
async def test_a_feature_that_is_not_finalized_is_finalized_for_all_brokers(
        serving: Serve, version: str, tmp_path: Path) -> None:
    server, group = serving(Broker(version, feature=0)), uuid4().hex
    await ready(server, group)
    await plain(server, group)

    async def seen() -> Picture:
        picture = await sight(server, group, protocol={"to": "Consumer"}, kafka={"bootstrapServers": str(server)})
        return with_fact(picture, "trials", tried(picture))

    before = await seen()
    assert told(before) == {"FeatureNotFinalized", "ProtocolRefused"}
    [line] = {line for each in found(before) for line in changing(each.unblocks or "")}
    Tools(tmp_path).paste(line)
    await eventually(seen, lambda picture: told(picture) == set(), 30)
    newcomer = await heartbeat(server, group, TOPIC)
    assert newcomer.error_code is ErrorCode.none, newcomer.error_message


@pytest.mark.case("KafkaOffsetsAhead")
async def test_offsets_that_are_left_over_in_kafka_are_deleted_and_no_others(
        newest_kafka: KRaftNode, tmp_path: Path) -> None:
    servers = str(newest_kafka.address)
    orders, other, group, bystander = created(servers, 2), created(servers), uuid4().hex, uuid4().hex
    filled(servers, orders, {0: 20, 1: 20})
    filled(servers, other, {0: 5})
    committed(servers, group, [TopicPartition(orders, 0, 15), TopicPartition(orders, 1, 12), TopicPartition(other, 0, 3)])
    committed(servers, bystander, [TopicPartition(orders, 0, 7)])

    async def offsets(of: str) -> dict[Named, Offsets]:
        wire = WireOffsets(Access(servers), seconds=stretched(30))
        try:
            sweep = await wire.sweep({of: Asked(frozenset({orders, other}))})
        finally:
            await wire.close()
        return dict(sweep.readings[of].offsets)

    def ahead(kafka: dict[Named, Offsets]) -> list[Verdict]:
        """Of a group whose members commit to ZooKeeper alone: the last sweeps found 3 and then 4 there."""
        picture = moment("old")
        spec = picture.spec.evolve(group=group, kafka={"bootstrapServers": servers})
        samples = tuple(
            StoreSample(picture.now - 4 + zookeeper, {
                each: Stored(zookeeper, None if read.committed == NONE else read.committed, read.start, read.end)
                for each, read in kafka.items()}) for zookeeper in (3, 4))
        picture = with_fact(replace(picture, spec=spec), "stores", Known(samples, picture.now))
        return [each for each in find_hazards(picture) if each.reason == "KafkaOffsetsAhead"]

    before = await offsets(group)
    first, second = ahead(before)
    assert [first.subject, second.subject] == [f"{orders}-0", f"{orders}-1"]
    [line] = {*changing(first.unblocks or ""), *changing(second.unblocks or "")}
    Tools(tmp_path).paste(line)
    after = await offsets(group)
    assert ahead(after) == []
    assert {each: read.committed for each, read in after.items()} == {
        Named(orders, 0): NONE, Named(orders, 1): NONE, Named(other, 0): 3}
    assert {each: read.end for each, read in after.items()} == {each: read.end for each, read in before.items()}
    assert (await offsets(bystander))[Named(orders, 0)].committed == 7


@pytest.mark.case("RecordTooLarge")
def test_the_topic_of_offsets_takes_a_larger_batch(newest_kafka: KRaftNode, tmp_path: Path) -> None:
    """Whatever the topic has besides stays."""
    servers = str(newest_kafka.address)
    admin, resource = AdminClient({"bootstrap.servers": servers}), ConfigResource(ResourceType.TOPIC, "__consumer_offsets")
    committed(servers, uuid4().hex, [TopicPartition(created(servers), 0, 0)])

    def settings() -> dict[str, str]:
        entries = admin.describe_configs([resource])[resource].result(stretched(30))
        return {name: entry.value for name, entry in entries.items()}

    before, picture = settings(), moment("old")
    spec = picture.spec.evolve(kafka={"bootstrapServers": servers})
    wanted = int(before["max.message.bytes"]) + 1
    Tools(tmp_path).paste(raise_message_bytes(replace(picture, spec=spec), wanted))
    assert settings() == before | {"max.message.bytes": str(wanted)}
