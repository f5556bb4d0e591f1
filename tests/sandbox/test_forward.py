"""A real Kafka in real pods, as a public chart sets it up, from ZooKeeper to KRaft under traffic.

An init container makes its file, brokers and clients have passwords, an authorizer decides, and the controllers' listener
has TLS. The operator is killed three times, and a GitOps tool takes the door out of the brokers' template in dual write.
"""

import json
import time
from base64 import b64decode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from adapters.certificates import Certificates
from demo import migration, traffic, world
from demo.cluster import Cluster
from demo.kill import MOMENTS, Killer
from invariants.jury import judged
from invariants.memory import Limits
from patience import stretched
from sandbox import audit, history
from sandbox.quick import QUICK
from switchover.cli.display import condition
from switchover.cli.objects import Resource

pytestmark = pytest.mark.timeout(2300)

NAMESPACE = "generated"
WORLD = world.MANIFESTS.with_name("worlds") / NAMESPACE
IMAGES = list(world.images(WORLD).values())
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:switchover"
REVERTED_SECONDS = 15
CONTROLLERS = [f"kafka-controller-{number}.kafka-controller.{NAMESPACE}.svc" for number in range(3)]
LOGIN = ('org.apache.kafka.common.security.plain.PlainLoginModule required username="inter_broker_user"'
         ' password="hunter2-controllers";')


@dataclass
class Reversion:
    """Somebody takes the door's mount away at the hold before MoveBrokers, and puts it back later.

    A pod that starts meanwhile runs by the user's own file, in ZooKeeper mode without the migration.
    """

    cluster: Cluster
    stalled: list[dict[str, Any]] = field(default_factory=list)
    undone: str = ""
    done: str = ""
    _mount: dict[str, Any] = field(default_factory=dict)
    _index: int = -1

    def __call__(self, resource: Resource, container: str) -> str | None:
        status = resource.get("status", {})
        if not self.done and status.get("progress", {}).get("step") == "MoveBrokers":
            self._index, self._mount = self._door()
            self._patch({"op": "remove"})
            self.done = self._now()
            return "somebody takes the door away"
        if self.done and not self.undone and condition(resource, "Stalled") == "True":
            self.stalled = [item for item in status["conditions"] if item["type"] == "Stalled"]
            self._wait()
            self.undone = self._now()
            self._patch({"op": "add", "value": self._mount})
            return "the door is back"
        return None

    def _door(self) -> tuple[int, dict[str, Any]]:
        mounts = self.cluster.get("statefulset", "kafka")["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        return next((index, mount) for index, mount in enumerate(mounts) if mount.get("subPath") == "door.sh")

    def _patch(self, operation: dict[str, Any]) -> None:
        path = f"/spec/template/spec/containers/0/volumeMounts/{self._index}"
        patch = json.dumps([{**operation, "path": path}])
        self.cluster.kubectl("patch", "statefulset", "kafka", "--type", "json", "--patch", patch)

    def _wait(self) -> None:
        """Time in which an operator that does not look would evict."""
        time.sleep(REVERTED_SECONDS)

    def _now(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass
class Story:
    """What the migration left behind."""

    run: migration.Run
    killer: Killer
    reversion: Reversion
    traffic: traffic.Traffic
    modes: dict[str, str]
    requests: list[audit.Request]
    told: str


def controllers_secret() -> str:
    """What a user writes for a controllers' listener with TLS: one certificate for all of them, and one login."""
    with TemporaryDirectory() as directory:
        made = Certificates(Path(directory), *CONTROLLERS)
    keys = {
        "bootstrap.servers": ",".join(f"{host}:9093" for host in CONTROLLERS),
        "ssl.keystore.certificate.chain": made.server_chain, "ssl.keystore.key": made.server_key,
        "ssl.truststore.certificates": made.authority, "sasl.mechanism": "PLAIN", "sasl.jaas.config": LOGIN}
    return str(yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "controllers-tls"}, "stringData": keys}))


def manifest() -> str:
    """The world's migration with a second hold, before MoveBrokers."""
    path = WORLD / "migration.yaml"
    controllers = yaml.safe_load(path.read_text())["spec"]["controllers"]
    listener = {"securityProtocol": "SASL_SSL", "credentialsRef": {"name": "controllers-tls"}}
    return migration.manifest(
        path, **QUICK, holds=["MoveBrokers", "Finalize"], zookeeperRetentionSeconds=0, backups={"skipReason": "a test"},
        controllers={**controllers, "listener": listener})


def tell(cluster: Cluster, audit_log: Path) -> Story:
    """To the end. Asserted on what it left."""
    world.deploy(cluster, print, WORLD)
    cluster.kubectl("apply", "--filename", "-", feed=controllers_secret())
    migration.install_operator(cluster)
    run, killer, reversion = migration.Run(), Killer(MOMENTS[:3]), Reversion(cluster)
    migration.follow(cluster, run, manifest(), lambda _: None, print, [reversion, killer])
    modes = world.modes(cluster)
    world.await_in_sync(cluster)
    told = cluster.kubectl("get", "kafkamigrations,events,configmaps,statefulsets,pods", "--output", "yaml", timeout=120)
    told += cluster.kubectl("logs", "--selector", migration.OPERATOR, "--tail=-1")
    found = traffic.verify(cluster)
    return Story(run, killer, reversion, found, modes, audit.requests(audit_log, ACCOUNT), told)


def test_it_succeeded_and_zookeeper_may_go(story: Story) -> None:
    resource = story.run.resource
    assert condition(resource, "Succeeded") == "True"
    assert condition(resource, "ZooKeeperRemovable") == "True"
    assert condition(resource, "RollbackAvailable") == "False"
    assert resource["status"]["metadataState"] == "KRaft"


def test_the_brokers_themselves_say_kraft(story: Story) -> None:
    assert story.modes == dict.fromkeys(world.BROKERS, "KRaft")


def test_nothing_was_connected_to_zookeeper_and_two_nodes_started_without_it(story: Story, stage: Cluster) -> None:
    assert story.run.connections == {"zookeeper-0": 0}
    assert stage.get("statefulset", "zookeeper")["spec"]["replicas"] == 0, "by the command that the migration named"
    (removable,) = (each for each in story.run.resource["status"]["conditions"] if each["type"] == "ZooKeeperRemovable")
    assert removable["reason"] == "Proven"
    broker, controller = (each.name for each in audit.evictions(story.requests)[-2:])
    assert broker in world.BROKERS
    assert controller.startswith("kafka-controller-")


def test_no_acknowledged_record_is_lost(story: Story) -> None:
    assert story.traffic.lost == 0
    assert story.traffic.acknowledged > 10_000, "the load did not run: nothing is proved"


def test_the_nodes_met_the_controllers_by_tls(stage: Cluster) -> None:
    for name in ("kafka-switchover", "kafka-controller-switchover"):
        found = stage.get("secret", name)["data"]
        for text in (b64decode(value).decode() for key, value in found.items() if key != "door.sh"):
            assert "CONTROLLER:SASL_SSL" in text
            assert "set listener.name.controller.ssl.client.auth=none" in text
            assert "hunter2-brokers" not in text, "the user's own stay where they are"


def test_no_password_and_no_key_is_told(story: Story) -> None:
    assert "EnableMigration" in story.told
    assert "hunter2" not in story.told
    assert "PRIVATE KEY" not in story.told


def test_the_operator_was_killed_on_the_way(story: Story) -> None:
    assert story.killer.missed == []


def test_the_operator_never_died_by_itself(story: Story) -> None:
    assert story.run.restarts == len(story.killer.killed)


def test_no_pod_was_evicted_before_the_status_named_it(story: Story) -> None:
    assert len(audit.evictions(story.requests)) >= 10
    assert audit.acts_before_record(story.requests) == []


def test_every_node_was_replaced_as_often_as_needed_and_no_more(story: Story) -> None:
    """Each broker twice, each controller once, the leader again in the soak; a broker and a controller without ZooKeeper."""
    assert story.run.replaced == len(audit.replaced(story.requests)) == 12 + len(story.run.remedies)


def test_no_invariant_was_broken_by_the_recorded_history(story: Story, audit_log: Path) -> None:
    told = list(history.events(audit_log, ACCOUNT, NAMESPACE, "kafka", story.run.starts))
    assert len(told) > 150, "the audit log does not tell of the migration: nothing is proved"
    assert judged(told, Limits(silence=stretched(Limits.silence))) == []


def test_a_door_taken_away_stops_evictions_and_says_so(story: Story) -> None:
    assert story.reversion.stalled[0]["reason"] == "RevertedByGitOps"
    during = [
        item for item in audit.evictions(story.requests) if story.reversion.done < item.at < story.reversion.undone
    ]
    assert during == []


def test_nothing_that_kafka_runs_from_belongs_to_the_migration(story: Story, stage: Cluster) -> None:
    kinds = "statefulsets,services,secrets,configmaps,persistentvolumeclaims,poddisruptionbudgets,controllerrevisions"
    found = stage.items(kinds)
    owned = [
        f"{item['kind']}/{item['metadata']['name']}"
        for item in found
        for owner in item["metadata"].get("ownerReferences", [])
        if owner["kind"] == "KafkaMigration"
    ]
    assert {item["metadata"]["name"] for item in found} >= {"kafka", "kafka-controller"}
    assert owned == []


def test_nothing_restarts_any_more(story: Story, stage: Cluster) -> None:
    for name in ("kafka", "kafka-controller"):
        workload = stage.get("statefulset", name)
        assert workload["status"]["readyReplicas"] == 3
    kafka = stage.get("statefulset", "kafka")
    assert kafka["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    assert kafka["status"]["updatedReplicas"] == 3, "a pod without the update revision would be rolled by Kubernetes"
