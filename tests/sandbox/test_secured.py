"""A Kafka with passwords in real pods, from ZooKeeper to KRaft: every Secret goes to its servers, and is told nowhere."""

from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from demo import migration, traffic, world
from demo.cluster import Cluster
from demo.diagnostics import collect
from demo.kill import MOMENTS, Killer
from sandbox.quick import QUICK
from switchover.cli.display import condition

pytestmark = [pytest.mark.long, pytest.mark.timeout(2300)]

MANIFESTS = world.MANIFESTS.with_name("manifests-secured")
OUTPUT = Path(__file__).parents[2] / "build" / "secured"


@dataclass
class Story:
    """What the migration left behind."""

    run: migration.Run
    killer: Killer
    traffic: traffic.Traffic
    modes: dict[str, str]


def manifest() -> str:
    """The demo's migration, by the listener with passwords, with a controllers' listener like it."""
    plain = yaml.safe_load(migration.MANIFEST.read_text())["spec"]
    return migration.manifest(
        **QUICK,
        acceptedRisks=["PasswordsInClear"],
        kafka={"bootstrapServers": "kafka:9096", "credentialsRef": {"name": "kafka-client"}},
        zookeeper={**plain["zookeeper"], "credentialsRef": {"name": "zookeeper-client"}},
        controllers={**plain["controllers"], "listener": {
            "securityProtocol": "SASL_PLAINTEXT", "credentialsRef": {"name": "controllers"}}},
    )


@pytest.fixture(scope="module")
def story(cluster: Cluster) -> Story:
    world.remove(cluster)
    try:
        world.deploy(cluster, print, MANIFESTS)
        migration.install_operator(cluster)
        run, killer = migration.Run(), Killer(MOMENTS[1:2])
        migration.follow(cluster, run, manifest(), lambda _: None, print, [killer])
        world.await_in_sync(cluster)
        return Story(run, killer, traffic.verify(cluster), world.modes(cluster))
    except BaseException:
        collect(cluster, OUTPUT / "diagnostics")
        raise


def test_it_succeeded_and_no_acknowledged_record_is_lost(story: Story) -> None:
    assert condition(story.run.resource, "Succeeded") == "True"
    assert condition(story.run.resource, "ZooKeeperRemovable") == "True"
    assert story.modes == dict.fromkeys(world.BROKERS, "KRaft")
    assert story.traffic.lost == 0
    assert story.traffic.acknowledged > 10_000, "the load did not run: nothing is proved"
    assert story.run.restarts == len(story.killer.killed) == 1


def test_nobody_comes_to_the_controllers_without_a_password(story: Story, cluster: Cluster) -> None:
    for name in ("kafka-switchover", "kafka-controller-switchover"):
        edits = {key: b64decode(value).decode() for key, value in cluster.get("secret", name)["data"].items()}
        assert edits.pop("door.sh").startswith("#!/bin/bash")
        assert edits.keys() == {f"{name.removesuffix('-switchover')}-{number}" for number in range(3)}
        for text in edits.values():
            assert "CONTROLLER:SASL_PLAINTEXT" in text
            assert "hunter2-controllers" in text, "the one place that it is for"
            assert "hunter2-kafka" not in text, "the user's own stay where they are"


def test_no_password_is_told(story: Story, cluster: Cluster) -> None:
    told = cluster.kubectl("get", "kafkamigrations,events,configmaps,statefulsets,pods", "--output", "yaml", timeout=120)
    log = cluster.kubectl("logs", "--selector", migration.OPERATOR, "--tail=-1")
    log += cluster.kubectl("logs", "--selector", migration.OPERATOR, "--tail=-1", "--previous")
    assert "EnableMigration" in told
    assert "MoveBrokers" in log
    assert "hunter2" not in told + log
