"""A secured cluster goes there and back on the edits that Switchover writes, asked by our own adapters and jobs."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition

from adapters.eventually import eventually
from adapters.finalized import finalized
from adapters.pods import given
from adapters.secured import ENCODER_SECRET, LISTENER, SecuredCluster
from adapters.way_back import end_claim
from patience import stretched
from pipeline.few_rows import FEW_ROWS
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.controllers import listener
from switchover.metadata.parity import MigrationState


@pytest.fixture
async def clusters() -> AsyncIterator[list[SecuredCluster]]:
    opened: list[SecuredCluster] = []
    yield opened
    for cluster in opened:
        await cluster.close()


async def to_dual_write(cluster: SecuredCluster) -> None:
    """Every broker to Migration, one by one; the last one lets Kafka claim and copy."""
    for broker, server in cluster.brokers.items():
        server.restart(cluster.broker_edits(broker, Mode.MIGRATION))
        assert given(server)["control.plane.listener.name"] == "CONTROL"
        await eventually(cluster.log, lambda image, broker=broker: broker in image.brokers
                         and not image.brokers[broker].fenced)
        await cluster.ready([broker])
    state = await eventually(cluster.state, lambda state: state.migration is not None and state.migration.offset > 0)
    assert state.controller is not None
    assert not state.controller.ephemeral
    await eventually(cluster.log, lambda image: image.migration_state is MigrationState.MIGRATION)
    await cluster.has_kept_everything()


async def to_kraft(cluster: SecuredCluster) -> None:
    """Every broker to KRaft; what changes meanwhile is written to both sides."""
    for broker, server in cluster.brokers.items():
        server.restart(cluster.broker_edits(broker, Mode.KRAFT))
        assert "control.plane.listener.name" not in given(server)
        await eventually(cluster.log, lambda image, broker=broker: not image.brokers[broker].migrating_zk
                         and not image.brokers[broker].fenced)
        await cluster.ready([broker])
        await cluster.has_kept_everything()


def mounted(directory: Path, secret: Mapping[str, str]) -> str:
    """A Secret as a pod has it: a file for each key."""
    directory.mkdir(parents=True)
    for key, value in secret.items():
        (directory / key).write_text(value)
    return str(directory)


async def seen_by_the_pipeline(cluster: SecuredCluster) -> None:
    """In dual write: a commit is captured, and both sides are compared, encrypted passwords included."""
    alice = Consumer({**cluster.librdkafka("alice"), "group.id": "alice"})
    alice.commit(offsets=[TopicPartition("before", 0, 7)], asynchronous=False)
    alice.close()
    secrets = cluster.directory / "secrets"
    config = cluster.directory / "pipeline.yaml"
    config.write_text(yaml.safe_dump({
        "cluster": "secured", "store": str(cluster.directory / "store"), "spark": {"memory": "600m", "options": FEW_ROWS},
        "kafka": {"bootstrapServers": cluster.bootstrap,
                  "commandConfig": mounted(secrets / "kafka", cluster.client("switchover"))},
        "zookeeper": {"connect": cluster.tree_access.servers,
                      "commandConfig": mounted(secrets / "zookeeper", cluster.tree_access.properties)},
        "drift": {
            "quorumVoters": ",".join(f"{node}@{address}" for node, address in cluster.addresses.items()),
            "controllersConfig": mounted(secrets / "controllers", listener.client_properties(LISTENER, cluster.secret)),
            "passwordEncoderSecret": mounted(secrets / "encoder", {"secret": ENCODER_SECRET}) + "/secret",
            "pauseSeconds": 2}}))

    async def told(job: str) -> dict[str, Any]:
        ran = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-m", "switchover.pipeline", job, "--config", config],
            capture_output=True, text=True, check=False, timeout=stretched(240))
        assert ran.returncode == 0, ran.stdout + ran.stderr
        outcome: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
        return outcome

    assert (await told("capture"))["notes"] == []
    commits = cluster.directory / "store" / "bronze" / "commits"
    assert duckdb.sql(f"""SELECT "group", topic, "offset" FROM '{commits}/**/*.parquet'""").fetchall() == [
        ("alice", "before", 7)]
    drift = await told("drift")
    assert (drift["verdict"], drift["driftPersistent"]) == ("Clean", 0)


async def back_to_zookeeper(cluster: SecuredCluster) -> None:
    """The way back, in the order of docs/facts/kraft.md#rollback."""
    for broker, server in cluster.brokers.items():
        server.restart(cluster.broker_edits(broker, Mode.MIGRATION))
        await eventually(cluster.log, lambda image, broker=broker: image.brokers[broker].migrating_zk
                         and not image.brokers[broker].fenced)
        await eventually(cluster.state, lambda state, broker=broker: broker in state.brokers)
        await cluster.ready([broker])
    await cluster.has_kept_everything()
    leader = (await cluster.quorum.quorum(cluster.addresses.values())).leader_id
    for node in sorted(cluster.controllers, key=lambda node: node == leader):
        cluster.controllers[node].stop()
        shutil.rmtree(cluster.log_dir(node))
    await end_claim(cluster.tree)
    await eventually(cluster.state, lambda state: state.controller is not None and state.controller.ephemeral)
    await cluster.obeys_zookeeper()
    for broker, server in cluster.brokers.items():
        server.restart("")                               # by the user's own template
        await cluster.ready([broker])
    await cluster.has_kept_everything()


async def there_and_back(cluster: SecuredCluster) -> None:
    await cluster.begin()
    await cluster.has_kept_everything()
    await cluster.start_controllers()
    await to_dual_write(cluster)
    await seen_by_the_pipeline(cluster)
    await to_kraft(cluster)
    # From now on ZooKeeper holds a password that a controller encrypted, and a right that a controller wrote.
    await cluster.change_encrypted_setting("third", "thr33")
    cluster.write()
    await back_to_zookeeper(cluster)


@pytest.mark.long
async def test_a_secured_broker_goes_there_and_back(tmp_path: Path, clusters: list[SecuredCluster]) -> None:
    cluster = SecuredCluster(tmp_path, brokers=1, controllers=1)
    clusters.append(cluster)
    await there_and_back(cluster)


@pytest.mark.long
async def test_a_secured_cluster_goes_there_and_back_and_there_again(
    tmp_path: Path, clusters: list[SecuredCluster]
) -> None:
    cluster = SecuredCluster(tmp_path, brokers=2, controllers=3)
    clusters.append(cluster)
    await there_and_back(cluster)
    await cluster.start_controllers()
    await to_dual_write(cluster)
    await to_kraft(cluster)
    leader = (await cluster.quorum.quorum(cluster.addresses.values())).leader_id
    for node in sorted(cluster.controllers, key=lambda node: node == leader):
        await finalized(cluster.controllers[node], cluster.controller_edits(node, Mode.KRAFT_CONTROLLER), node, cluster.log)
    await eventually(cluster.log, lambda image: image.migration_state is MigrationState.POST_MIGRATION)
    cluster.zookeeper.stop()
    cluster.create_topic("after")
    await cluster.has_kept_everything()
