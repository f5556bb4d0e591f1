"""What Preflight asks for itself, of a real broker and a real ZooKeeper."""

import re
import shutil
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]
from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from adapters.clusters import KafkaCluster, kafka_cluster, patient_wire
from adapters.eventually import eventually
from adapters.pods import as_pod
from patience import stretched
from switchover.answers.errors import Refused, Unreachable
from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.door import edits
from switchover.kafka.node import LogDirectory
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from switchover.zookeeper.nodes import ZooKeeperRights
from unit.pictures import NOW, moment, with_fact
from unit.preflight_pictures import check
from unit.preflight_pictures import told as pod_says

EVERYTHING = {"READ", "WRITE", "CREATE", "DELETE", "ADMIN"}


# --- a broker -----------------------------------------------------------------------------------------------------------


async def test_a_broker_tells_file_disks_and_rights(zookeeper_cluster: KafkaCluster) -> None:
    server = zookeeper_cluster.brokers[1]
    told = await patient_wire({}).examine(server.address, 1)
    assert told.static_settings["broker.id"] == "1"
    assert told.static_settings["log.dirs"] == str(server.directory / "data")
    assert told.static_settings["inter.broker.protocol.version"] == "3.9"
    assert "log.retention.hours" not in told.static_settings, "a default is not from the file"
    assert told.hidden == {"super.users"}, "Kafka's own configuration does not define it; a secret that is not set is none"
    assert told.log_directories == (LogDirectory(str(server.directory / "data"), offline=False),)
    assert {"DESCRIBE", "DESCRIBE_CONFIGS", "CLUSTER_ACTION"} <= told.operations


async def test_what_the_file_says_is_told_under_a_dynamic_value(zookeeper_cluster: KafkaCluster) -> None:
    admin = AdminClient({"bootstrap.servers": zookeeper_cluster.bootstrap})

    def alter(operation: AlterConfigOpType) -> None:
        entry = ConfigEntry("background.threads", "3", incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(stretched(20))

    alter(AlterConfigOpType.SET)
    try:
        told = await patient_wire({}).examine(zookeeper_cluster.brokers[1].address, 1)
        assert told.static_settings["background.threads"] == "2"
    finally:
        alter(AlterConfigOpType.DELETE)


async def test_the_marker_of_the_edits_that_started_it(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    """A key that Kafka does not know is told by its name; a broker without one has not passed the door."""
    wire = patient_wire({})
    assert await wire.marker(zookeeper_cluster.brokers[1].address, 1) == ""
    with kafka_cluster(tmp_path) as cluster:
        cluster.zookeeper.start(cluster.zookeeper.properties())
        server, written = cluster.brokers[1], edits.written(("mode A",))
        as_pod(server, cluster.broker_properties(1, Mode.ZOOKEEPER))
        server.start(written)
        marker = await wire.marker(server.address, 1)
        assert marker == edits.marker_of(written)
        assert marker.startswith("switchover.A.")
        assert marker in (await wire.examine(server.address, 1)).hidden, "Preflight sees it, too"


async def test_a_generated_id_is_seen_and_given_and_a_failed_disk_is_seen(tmp_path: Path) -> None:
    """One broker of its own: its id is Kafka's until it is given as Preflight says, and then one of its two log directories
    goes away under it."""
    with kafka_cluster(tmp_path, brokers=(1001,)) as cluster:
        cluster.zookeeper.start(cluster.zookeeper.properties())
        server, second = cluster.brokers[1001], tmp_path / "second"
        lines = cluster.broker_properties(1001, Mode.ZOOKEEPER).splitlines()
        text = "\n".join(line for line in lines if not line.startswith(("broker.id=", "log.dirs=")))
        text += f"\nbroker.id.generation.enable=true\nlog.dirs={server.directory / 'data'}, {second}\n"
        server.start(text, wait=False)
        cluster.wait_for_brokers()
        wire = patient_wire({})
        told = await wire.examine(server.address, 1001)
        assert told.static_settings.get("broker.id", "-1") == "-1"
        assert told.static_settings.get("node.id", "-1") == "-1"
        assert [directory.offline for directory in told.log_directories] == [False, False]
        assert (await _state(cluster)).generated_ids
        picture = pod_says("kafka-0", 1001)(moment("Preflight"))
        examination = picture.facts.examination
        brokers = {**examination.brokers, 1001: Known(told, NOW)}
        found = check("BrokerIds", with_fact(picture, "examination", replace(examination, brokers=brokers)))
        assert "kafka-0 (1001)" in found.message
        settings = re.findall(r"broker\.id\S*=\S+", found.unblocks)
        server.restart("\n".join([text, *settings, ""]))
        told = await eventually(lambda: wire.examine(server.address, 1001), lambda seen: "broker.id" in seen.static_settings)
        assert settings == ["broker.id.generation.enable=false", "broker.id=1001"]
        assert told.static_settings["broker.id"] == "1001"
        shutil.rmtree(second)
        told = await eventually(lambda: wire.examine(server.address, 1001),
                                lambda seen: any(directory.offline for directory in seen.log_directories), 30)
        assert {directory.path: directory.offline for directory in told.log_directories} == {
            str(server.directory / "data"): False, str(second): True}


async def _state(cluster: KafkaCluster):
    zookeeper = KazooZooKeeper(Access(cluster.zookeeper_connect, {}))
    try:
        return await zookeeper.state()
    finally:
        await zookeeper.close()


# --- ZooKeeper ----------------------------------------------------------------------------------------------------------


async def rights(connect: str, **properties: str) -> ZooKeeperRights:
    named = {key.replace("_", "."): value for key, value in properties.items()}
    zookeeper = KazooZooKeeper(Access(connect, named))
    try:
        return await zookeeper.rights()
    finally:
        await zookeeper.close()


async def test_an_open_tree_gives_everybody_everything(zookeeper_cluster: KafkaCluster) -> None:
    found = await rights(zookeeper_cluster.zookeeper_connect)
    assert found.granted == {"/": EVERYTHING, "/controller_epoch": EVERYTHING}
    assert found.unjudged == {"/": (), "/controller_epoch": ()}


async def test_a_secured_tree_gives_by_credentials(zookeeper_cluster: KafkaCluster) -> None:
    chroot = f"/{uuid.uuid4().hex}"
    client = KazooClient(str(zookeeper_cluster.zookeeper.address), auth_data=[("digest", "kafka:secret")])
    client.start()
    try:
        everybody, kafka = make_acl("world", "anyone", read=True), make_digest_acl("kafka", "secret", all=True)
        client.create(chroot, acl=[everybody, kafka])
        client.create(f"{chroot}/controller_epoch", b"5", acl=[kafka, make_acl("ip", "10.0.0.0/8", all=True)])
    finally:
        client.stop()
        client.close()
    connect = f"{zookeeper_cluster.zookeeper.address}{chroot}"
    ours = await rights(connect, zookeeper_digest="kafka:secret")
    assert ours.granted == {"/": EVERYTHING, "/controller_epoch": EVERYTHING}
    strangers = await rights(connect, zookeeper_digest="kafka:wrong")
    assert strangers.granted == {"/": {"READ"}, "/controller_epoch": set()}
    assert ours.unjudged["/controller_epoch"] == ("ip",)


async def test_a_server_tells_its_mode(zookeeper_cluster: KafkaCluster) -> None:
    zookeeper = KazooZooKeeper(Access(zookeeper_cluster.zookeeper_connect, {}))
    try:
        assert await zookeeper.server_mode(zookeeper.servers()[0]) == "standalone"
        with pytest.raises((Refused, Unreachable)):
            await zookeeper.server_mode(Address("127.0.0.1", 1))
    finally:
        await zookeeper.close()
