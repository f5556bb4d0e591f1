"""The raw protocol against real Kafka 3.9: brokers in modes ZooKeeper, Migration and KRaft, and controllers."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import pytest

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster, kafka_cluster, patient_wire
from adapters.eventually import eventually
from adapters.finalized import finalized
from adapters.servers import loopback
from patience import stretched
from switchover.answers.errors import Refused, Unreachable
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.kafka.client.nodes import KafkaWire
from switchover.kafka.node import Partition
from switchover.metadata.parity import LogImage, MigrationState
from switchover.network.addresses import Address

NO_METADATA_VERSION = None
METADATA_VERSION_3_9 = 21
LEADER_AND_ISR, DESCRIBE_QUORUM = 4, 55

Answer = TypeVar("Answer")


@pytest.fixture(scope="module")
def kraft_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Broker 1 and controllers 3000–3002, born in KRaft mode. Leave them running."""
    with kafka_cluster(tmp_path_factory.mktemp("kraft-cluster"), controllers=(3000, 3001, 3002)) as cluster:
        cluster.start_kraft()
        yield cluster


def voters(cluster: KafkaCluster) -> dict[int, Address]:
    return {node: server.address for node, server in cluster.controllers.items()}


# --- Modes, as ApiVersions tells them ---------------------------------------------------------------------------------


async def test_a_zookeeper_broker_tells_its_keys_and_no_metadata_version(zookeeper_cluster: KafkaCluster) -> None:
    answer = await patient_wire({}).api_versions(zookeeper_cluster.brokers[1].address)
    assert LEADER_AND_ISR in answer.api_keys
    assert DESCRIBE_QUORUM not in answer.api_keys
    assert answer.api_keys[18] == 4                             # the newest ApiVersions of 3.9
    assert not answer.zk_migration_ready
    assert answer.metadata_version is NO_METADATA_VERSION


async def test_a_kraft_broker_and_its_controllers(kraft_cluster: KafkaCluster) -> None:
    wire = patient_wire({})
    broker = await wire.api_versions(kraft_cluster.brokers[1].address)
    assert DESCRIBE_QUORUM in broker.api_keys
    assert LEADER_AND_ISR not in broker.api_keys
    for node in (kraft_cluster.brokers[1].address, *voters(kraft_cluster).values()):
        answer = await wire.api_versions(node)
        assert not answer.zk_migration_ready
        assert answer.features_epoch >= 0
        assert answer.metadata_version == METADATA_VERSION_3_9


# --- Metadata of one broker -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["zookeeper_cluster", "kraft_cluster"])
async def test_metadata_shows_every_partition_as_that_broker_sees_it(
    which: str, request: pytest.FixtureRequest,
) -> None:
    cluster: KafkaCluster = request.getfixturevalue(which)
    broker = cluster.brokers[1].address
    create_topic(cluster.bootstrap, "seen-over-the-wire", 2)
    wire = patient_wire({})
    view = await eventually(
        lambda: wire.metadata(broker),
        lambda view: [p.leader for p in view.partitions if p.topic == "seen-over-the-wire"] == [1, 1],
    )
    assert view.brokers == {1: broker}
    assert len(view.cluster_id) == 22
    assert Partition("seen-over-the-wire", 1, 1, (1,), (1,)) in view.partitions


async def test_a_controller_serves_no_metadata(kraft_cluster: KafkaCluster) -> None:
    node = voters(kraft_cluster)[3000]
    with pytest.raises(Unreachable, match=f"^{node}: closed the connection without an answer"):
        await patient_wire({}).metadata(node)


# --- The quorum -------------------------------------------------------------------------------------------------------


async def test_the_leader_is_found_among_the_voters(kraft_cluster: KafkaCluster) -> None:
    quorum = await eventually(
        lambda: patient_wire({}).quorum(voters(kraft_cluster).values()), lambda quorum: set(quorum.observers) == {1})
    assert quorum.leader_id in quorum.voters
    assert set(quorum.voters) == {3000, 3001, 3002}
    assert quorum.high_watermark > 0
    assert all(abs(replica.last_fetch_ms / 1000 - time.time()) < stretched(10) for replica in quorum.voters.values())


async def test_voters_that_do_not_answer_do_not_hold_up_the_leader(kraft_cluster: KafkaCluster) -> None:
    wire = KafkaWire({}, seconds=8)
    leader = (await wire.quorum(voters(kraft_cluster).values())).leader_id
    nobody = loopback(9093)
    silent = next(server for node, server in kraft_cluster.controllers.items() if node != leader)
    with silent.frozen():
        started = time.monotonic()
        quorum = await wire.quorum([nobody, silent.address, voters(kraft_cluster)[leader]])
        assert quorum.leader_id == leader
        assert time.monotonic() - started < stretched(4)


async def test_without_a_leader_every_voter_is_named(kraft_cluster: KafkaCluster) -> None:
    wire = patient_wire({})
    quorum = await wire.quorum(voters(kraft_cluster).values())
    follower = next(address for node, address in voters(kraft_cluster).items() if node != quorum.leader_id)
    nobody = loopback(9093)
    with pytest.raises(Unreachable) as raised:
        await wire.quorum([follower, nobody])
    assert f"{follower}: cannot describe the quorum now: NOT_LEADER_OR_FOLLOWER" in str(raised.value)
    assert f"{nobody}: nobody listens there" in str(raised.value)
    with pytest.raises(Unreachable, match="no voter"):
        await wire.quorum([])


async def test_a_zookeeper_broker_knows_no_quorum(zookeeper_cluster: KafkaCluster) -> None:
    broker = zookeeper_cluster.brokers[1].address
    with pytest.raises(Unreachable, match=f"no voter leads the quorum: {broker}: closed the connection"):
        await patient_wire({}).quorum([broker])


# --- The metadata log -------------------------------------------------------------------------------------------------


async def test_the_log_is_followed_and_a_fresh_reader_sees_the_same(kraft_cluster: KafkaCluster) -> None:
    wire = patient_wire({})
    first = await eventually(
        lambda: wire.log(voters(kraft_cluster)), lambda image: 1 in image.brokers and not image.brokers[1].fenced)
    assert first.migration_state is MigrationState.NONE
    assert first.metadata_version == METADATA_VERSION_3_9
    assert first.controllers == {3000: False, 3001: False, 3002: False}
    assert not first.brokers[1].migrating_zk
    later = await eventually(lambda: wire.log(voters(kraft_cluster)), lambda image: image.offset > first.offset + 2)
    fresh = await patient_wire({}).log(voters(kraft_cluster))
    assert fresh.offset >= later.offset
    assert replace(fresh, offset=0) == replace(later, offset=0)
    quorum = await wire.quorum(voters(kraft_cluster).values())
    assert set(quorum.observers) == {1}, "whoever reads the log must not show up in the quorum"


async def test_an_unknown_leader_is_named(kraft_cluster: KafkaCluster) -> None:
    strangers = {node + 10: address for node, address in voters(kraft_cluster).items()}
    with pytest.raises(Unreachable, match=r"node 300\d leads the quorum, but is none of the voters \[3010, "):
        await patient_wire({}).log(strangers)


async def test_a_controller_of_another_cluster_tells_nothing(kraft_cluster: KafkaCluster) -> None:
    wire = patient_wire({})
    cluster_id = (await wire.metadata(kraft_cluster.brokers[1].address)).cluster_id
    assert (await wire.log(voters(kraft_cluster), cluster_id)).offset > 0
    with pytest.raises(Refused, match="is a controller of another cluster than anotherClusterAAAAAAAA"):
        await wire.log(voters(kraft_cluster), "anotherClusterAAAAAAAA")


@pytest.mark.long
async def test_a_migration_as_the_log_tells_it(own_cluster: KafkaCluster) -> None:
    own_cluster.start_zookeeper_mode()
    broker = own_cluster.brokers[1]
    wire = patient_wire({})
    own_cluster.start_controllers((await wire.metadata(broker.address)).cluster_id)

    async def log() -> LogImage:
        return await wire.log(voters(own_cluster))

    waiting = await eventually(log, lambda image: len(image.controllers) == 3)
    assert waiting.migration_state is MigrationState.PRE_MIGRATION
    assert waiting.controllers == {3000: True, 3001: True, 3002: True}
    assert waiting.brokers == {}
    assert (await wire.api_versions(own_cluster.controllers[3000].address)).zk_migration_ready

    broker.restart(own_cluster.broker_properties(1, Mode.MIGRATION))
    copied = await eventually(log, lambda image: image.migration_state is MigrationState.MIGRATION)
    registration = copied.brokers[1]
    assert registration.migrating_zk
    assert copied.open_transaction is None
    answer = await wire.api_versions(broker.address)
    assert LEADER_AND_ISR in answer.api_keys
    assert answer.zk_migration_ready
    assert answer.metadata_version is NO_METADATA_VERSION

    broker.stop()
    await eventually(log, lambda image: image.brokers[1].fenced)
    broker.start(own_cluster.broker_properties(1, Mode.KRAFT))
    moved = await eventually(log, lambda image: not image.brokers[1].fenced)
    assert not moved.brokers[1].migrating_zk
    assert moved.brokers[1].epoch > registration.epoch
    assert moved.migration_state is MigrationState.MIGRATION

    leader = (await wire.quorum(voters(own_cluster).values())).leader_id
    for node in sorted(own_cluster.controllers, key=lambda node: node == leader):     # the leader last
        await finalized(own_cluster.controllers[node], own_cluster.controller_properties(node, Mode.KRAFT_CONTROLLER), node,
                        log)
    final = await eventually(log, lambda image: image.migration_state is MigrationState.POST_MIGRATION)
    assert final.epoch > moved.epoch, "the leader has changed and was followed"
    assert final == replace(await patient_wire({}).log(voters(own_cluster)), offset=final.offset)


@pytest.mark.long
async def test_a_log_begun_anew_is_read_anew(own_cluster: KafkaCluster) -> None:
    """A quorum wiped and formatted again has offsets and epochs that the old one had too."""
    wire = patient_wire({})
    own_cluster.start_controllers("AAAAAAAAAAAAAAAAAAAAAA", Mode.KRAFT_CONTROLLER)
    old = await eventually(lambda: wire.log(voters(own_cluster)), lambda image: len(image.controllers) == 3)
    assert old.migration_state is MigrationState.NONE
    for server in own_cluster.controllers.values():
        server.kill()
        shutil.rmtree(server.directory / "data")
    for node in (3001, 3002):
        text = own_cluster.controller_properties(node, Mode.KRAFT_CONTROLLER)
        own_cluster.controllers[node].format("BBBBBBBBBBBBBBBBBBBBBA", text)
        own_cluster.controllers[node].start(text, wait=False)
    for node in (3001, 3002):
        own_cluster.controllers[node].wait()
    fresh = await eventually(lambda: patient_wire({}).log(voters(own_cluster)), lambda image: len(image.controllers) == 2)
    anew = await eventually(lambda: wire.log(voters(own_cluster)), lambda image: image.offset >= fresh.offset)
    assert anew.controllers == {3001: False, 3002: False}
