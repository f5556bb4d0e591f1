"""`drift` on a real cluster in dual write: nothing first, then what is planted past Kafka, then a controller less."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from kazoo.client import KazooClient

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster, kafka_cluster, patient_wire
from adapters.eventually import eventually
from fakes.metadata_sides import config as config_node
from pipeline.few_rows import FEW_ROWS
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.metadata.cluster import ClusterMetadata
from switchover.metadata.parity import LogImage, MigrationState
from switchover.network.credentials import Access
from switchover.pipeline.config import Config, DriftSettings, Kafka, Spark, ZooKeeper
from switchover.pipeline.drift import job
from switchover.pipeline.outcome import Outcome, Progress
from switchover.pipeline.store import Store
from switchover.zookeeper.client.zookeeper import KazooZooKeeper


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KafkaCluster]:
    with kafka_cluster(tmp_path / "servers", controllers=(3000,)) as servers:
        yield servers


async def test_a_real_cluster_in_dual_write(cluster: KafkaCluster, tmp_path: Path) -> None:
    await in_dual_write(cluster)
    told = Config(
        cluster="one", store=tmp_path / "store", spark=Spark(memory="600m", options=FEW_ROWS),
        kafka=Kafka(bootstrap_servers=cluster.bootstrap), zookeeper=ZooKeeper(connect=cluster.zookeeper_connect),
        drift=DriftSettings(quorum_voters=f"3000@{cluster.controllers[3000].address}", pause_seconds=2))
    clean = await run(told)
    assert (clean.verdict, clean.summary["driftPersistent"], clean.summary["unsettled"]) == ("Clean", 0, 0)
    assert clean.rows > 20, "something was read on both sides"
    assert left_by(told) == []

    with zookeeper(cluster) as client:
        client.set("/config/topics/orders", config_node({"retention.ms": "1"}))              # one is gone, one is another
        client.set("/config/topics/payments", config_node({"retention.ms": "5", "file.delete.delay.ms": "7"}))
        client.create("/config/brokers/<default>", config_node({"ssl.keystore.password": "sesame"}))
    drift = await run(told)
    assert (drift.verdict, drift.summary["driftPersistent"]) == ("Drift", 4)
    assert drift.summary["classes"] == {"missing": 2, "extra": 1, "different": 1}
    assert left_by(told) == [
        ("broker", "(default)", "ssl.keystore.password", "missing", "(hidden)", "nothing", True),
        ("topic", "orders", "cleanup.policy", "extra", "nothing", "'compact'", True),
        ("topic", "orders", "retention.ms", "different", "'1'", "'100000'", True),
        ("topic", "payments", "file.delete.delay.ms", "missing", "'7'", "nothing", True)]
    assert "topic configuration orders retention.ms: ZooKeeper says '1', KRaft says '100000'" in drift.summary["first"]
    assert {(row[0], row[1], row[2]) for row in left_by(told)} == await differing(cluster)

    cluster.controllers[3000].stop()
    unread = await run(told.model_copy(update={"drift": told.drift.model_copy(update={"snapshots": 2, "seconds": 2.0})}))
    assert unread.verdict == "Indeterminate"
    assert unread.summary["reason"].startswith("KRaft's metadata could not be read: no voter leads the quorum")
    assert unread.summary["driftPersistent"] is None


async def run(told: Config) -> Outcome:
    """The job makes its own event loop, so it runs on a thread of its own."""
    return await asyncio.to_thread(job.run, told, Progress())


async def in_dual_write(cluster: KafkaCluster) -> None:
    cluster.start_zookeeper_mode()
    create = {"orders": {"retention.ms": "100000", "cleanup.policy": "compact"}, "payments": {"retention.ms": "5"}}
    for name, values in create.items():
        create_topic(cluster.bootstrap, name, 3, config=values)
    tree = KazooZooKeeper(Access(cluster.zookeeper_connect))
    cluster.start_controllers((await tree.state()).cluster_id)
    await tree.close()
    cluster.brokers[1].restart(cluster.broker_properties(1, Mode.MIGRATION))
    await eventually(lambda: log(cluster), lambda image: image.migration_state is MigrationState.MIGRATION)
    cluster.wait_for_brokers()


async def log(cluster: KafkaCluster) -> LogImage:
    return await patient_wire({}).log({3000: cluster.controllers[3000].address})


async def differing(cluster: KafkaCluster) -> set[tuple[str, str, str]]:
    """The oracle: what is not in both, as ZooKeeper's own client and the log's image tell it."""
    kraft = flat((await log(cluster)).metadata)
    found: set[tuple[str, str, str, str]] = set()
    with zookeeper(cluster) as client:
        for kind in ("topic", "broker"):
            for name in client.get_children(f"/config/{kind}s"):
                values = json.loads(client.get(f"/config/{kind}s/{name}")[0])["config"]
                found |= {(kind, name.replace("<default>", "(default)"), key, value) for key, value in values.items()}
    return {each[:3] for each in found ^ kraft}


def flat(metadata: ClusterMetadata) -> set[tuple[str, str, str, str]]:
    return {(resource.type, resource.name or "(default)", key, str(value))
            for resource, values in metadata.configs.items() for key, value in values.items()}


def left_by(told: Config) -> list[tuple[Any, ...]]:
    """The rows of the newest run, read by another reader than the one that wrote them."""
    newest = Store(told.store, told.cluster).latest("drift")
    assert newest is not None
    manifest = json.loads((newest / "manifest.json").read_text())
    assert len(manifest["snapshots"]) == 3
    assert all(each["zookeeper"] >= 0 for each in manifest["snapshots"])
    assert "sesame" not in (newest / "manifest.json").read_text()
    return duckdb.sql(f"SELECT entity_type, entity, field, class, zookeeper, kraft, persistent "
                      f"FROM '{newest}/differences/*.parquet' ORDER BY ALL").fetchall()


@contextlib.contextmanager
def zookeeper(cluster: KafkaCluster) -> Iterator[KazooClient]:
    """A client that writes past Kafka."""
    client = KazooClient(cluster.zookeeper_connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
