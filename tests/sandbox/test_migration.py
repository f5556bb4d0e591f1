"""One whole migration of a real Kafka in real pods: killed three times, and reverted by a GitOps tool on the way."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo import migration, traffic, world
from demo.cluster import Cluster
from demo.diagnostics import collect
from demo.kill import MOMENTS, Killer
from demo.progress import Resource, condition
from sandbox import audit

pytestmark = pytest.mark.timeout(1800)

OUTPUT = Path(__file__).parents[2] / "build" / "sandbox-tests-diagnostics"
ACCOUNT = "system:serviceaccount:demo:switchover"
REVERTED_SECONDS = 15


@dataclass
class Reversion:
    """Somebody puts the brokers' mount back at the hold before MoveBrokers, and takes it away again later.

    The hybrid of feasibility-modes.md: the user's volume with our subPathExpr. A pod that starts on it finds no file.
    """

    cluster: Cluster
    stalled: list[dict[str, Any]] = field(default_factory=list)
    undone: str = ""
    done: str = ""
    _volume: str = ""
    _index: int = -1

    def __call__(self, resource: Resource, container: str) -> str | None:
        status = resource.get("status", {})
        if not self.done and status.get("progress", {}).get("step") == "MoveBrokers":
            self._index, self._volume = self._mount()
            self._put("config")
            self.done = self._now()
            return "somebody puts the old mount back"
        if self.done and not self.undone and condition(resource, "Stalled") == "True":
            self.stalled = [item for item in status["conditions"] if item["type"] == "Stalled"]
            self._wait()
            self.undone = self._now()
            self._put(self._volume)
            return "the old mount is taken away again"
        return None

    def _mount(self) -> tuple[int, str]:
        mounts = self.cluster.get("statefulset", "kafka")["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        index = next(index for index, mount in enumerate(mounts) if mount["mountPath"] == "/etc/kafka")
        return index, mounts[index]["name"]

    def _put(self, volume: str) -> None:
        path = f"/spec/template/spec/containers/0/volumeMounts/{self._index}/name"
        patch = json.dumps([{"op": "replace", "path": path, "value": volume}])
        self.cluster.kubectl("patch", "statefulset", "kafka", "--type", "json", "--patch", patch)

    def _wait(self) -> None:
        """Time in which an operator that does not look would evict."""
        time.sleep(REVERTED_SECONDS)

    def _now(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass
class Story:
    """What the one migration left behind."""

    run: migration.Run
    killer: Killer
    reversion: Reversion
    requests: list[audit.Request]


@pytest.fixture(scope="module")
def story(cluster: Cluster, audit_log: Path) -> Iterator[Story]:
    """The migration of the demo with a second hold, before MoveBrokers. Everything is asserted on what it left."""
    world.remove(cluster)
    world.deploy(cluster, print)
    migration.install_operator(cluster)
    manifest = yaml.safe_load(migration.MANIFEST.read_text())
    manifest["spec"]["holds"] = ["MoveBrokers", "Finalize"]
    run, killer, reversion = migration.Run(), Killer(MOMENTS[:3]), Reversion(cluster)
    try:
        migration.follow(
            cluster, run, yaml.safe_dump(manifest), lambda _: None, print, observers=[reversion, killer]
        )
        yield Story(run, killer, reversion, audit.requests(audit_log, ACCOUNT))
    except BaseException:
        collect(cluster, OUTPUT)
        raise


def test_it_succeeded_and_zookeeper_may_go(story: Story) -> None:
    assert condition(story.run.resource, "Succeeded") == "True"
    assert condition(story.run.resource, "ZooKeeperRemovable") == "True"
    assert condition(story.run.resource, "RollbackAvailable") == "False"
    assert story.run.resource["status"]["metadataState"] == "KRaft"


def test_the_brokers_themselves_say_kraft(story: Story, cluster: Cluster) -> None:
    assert world.modes(cluster) == dict.fromkeys(world.BROKERS, "KRaft")


def test_nothing_is_connected_to_zookeeper(story: Story, cluster: Cluster) -> None:
    assert world.connections(cluster) == dict.fromkeys(world.SERVERS, 0)


def test_no_acknowledged_record_is_lost(story: Story, cluster: Cluster) -> None:
    world.await_in_sync(cluster)
    found = traffic.verify(cluster)
    assert found.lost == 0
    assert found.acknowledged > 10_000, "the load did not run: nothing is proved"


def test_the_operator_was_killed_three_times(story: Story) -> None:
    assert {moment.step for moment in story.killer.killed} == {"EnableMigration", "MoveBrokers", "Finalize"}


def test_the_operator_never_died_by_itself(story: Story) -> None:
    assert story.run.restarts == 3


def test_no_pod_was_evicted_before_the_status_named_it(story: Story) -> None:
    assert len(audit.evictions(story.requests)) >= 9, "three brokers twice and three controllers were to be evicted"
    assert audit.acts_before_record(story.requests) == []


def test_every_node_was_replaced_as_often_as_needed_and_no_more(story: Story) -> None:
    assert story.run.replaced == 9
    assert len(audit.evictions(story.requests)) == 9


def test_a_mount_put_back_stops_evictions_and_says_so(story: Story) -> None:
    assert story.reversion.stalled[0]["reason"] == "RevertedByGitOps"
    during = [
        item for item in audit.evictions(story.requests) if story.reversion.done < item.at < story.reversion.undone
    ]
    assert during == []


def test_nothing_that_kafka_runs_from_belongs_to_the_migration(story: Story, cluster: Cluster) -> None:
    kinds = "statefulsets,services,secrets,configmaps,persistentvolumeclaims,poddisruptionbudgets,controllerrevisions"
    found = cluster.items(kinds)
    owned = [
        f"{item['kind']}/{item['metadata']['name']}"
        for item in found
        for owner in item["metadata"].get("ownerReferences", [])
        if owner["kind"] == "KafkaMigration"
    ]
    assert {item["metadata"]["name"] for item in found} >= {"kafka", "kafka-controller"}
    assert owned == []


def test_nothing_restarts_any_more(story: Story, cluster: Cluster) -> None:
    for name in ("kafka", "kafka-controller"):
        workload = cluster.get("statefulset", name)
        assert workload["status"]["readyReplicas"] == 3
    kafka = cluster.get("statefulset", "kafka")
    assert kafka["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    assert kafka["status"]["updatedReplicas"] == 3, "a pod without the update revision would be rolled by Kubernetes"
