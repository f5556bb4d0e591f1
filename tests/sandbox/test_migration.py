"""A real Kafka in real pods: into the middle of MoveBrokers, all the way back, and again to the end.

The operator is killed on every leg, and a GitOps tool reverts the brokers' mount in dual write.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo import metadata, migration, rollback, traffic, world
from demo.cluster import Cluster
from demo.diagnostics import collect
from demo.kill import BACK, MOMENTS, Killer
from demo.lost_answer import Cure
from demo.progress import Resource, condition
from demo.turn_back import TurnBack
from demo_pipeline import jobs
from invariants.jury import judged
from invariants.memory import Limits
from sandbox import audit, history
from sandbox.pipeline_jobs import Jobs
from switchover.metadata.tree import state_path

pytestmark = pytest.mark.timeout(2300)

IMAGES = [*world.images().values(), jobs.IMAGE]
OUTPUT = Path(__file__).parents[2] / "build" / "sandbox-tests-diagnostics"
ACCOUNT = "system:serviceaccount:demo:switchover"
REVERTED_SECONDS = 15
PARTITION = ("invoices", 1)


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
class Behind:
    """What dual write does to a partition that changes several times at once: the version of its state in ZooKeeper is far
    below its epoch in KRaft. Here the node is made anew; until the first controller stops it must have caught up.
    """

    cluster: Cluster
    before: int = -1
    planted: int = -1
    after: int = -1

    def __call__(self, resource: Resource, container: str) -> str | None:
        status = resource.get("status", {})
        progress = status.get("progress", {})
        if self.before < 0 and progress.get("step") == "MoveBrokers" and progress.get("batch"):
            self.before, self.planted = self._in_zookeeper(
                "t = c.transaction(); t.delete(path); t.create(path, data); t.commit()")
            return f"the state of {PARTITION} is written anew: version {self.before} becomes {self.planted}"
        if self.planted >= 0 > self.after and any(node["assigned"] == "Stopped" for node in status.get("nodes", ())):
            _, self.after = self._in_zookeeper("pass")
            return f"the state of {PARTITION} has version {self.after}"
        return None

    def _in_zookeeper(self, change: str) -> tuple[int, int]:
        """The node's version before and after, told by the operator's own pod."""
        script = "\n".join((
            "from kazoo.client import KazooClient", f"path = {state_path(*PARTITION)!r}",
            "c = KazooClient('zookeeper:2181'); c.start()", "data, stat = c.get(path)", change,
            "print(stat.version, c.exists(path).version)"))
        before, after = self.cluster.kubectl("exec", "deploy/switchover", "--", "python3", "-c", script).split()
        return int(before), int(after)


@dataclass
class Story:
    """What the two migrations and the rollback between them left behind."""

    first: migration.Run
    second: migration.Run
    turn: TurnBack
    killers: tuple[Killer, Killer]
    reversion: Reversion
    behind: Behind
    pipeline: Jobs
    cure: Cure
    after: frozenset[str]
    modes_between: dict[str, str]
    left_between: tuple[str, ...]
    requests: list[audit.Request]

    @property
    def began_again(self) -> str:
        """When the second attempt began, as the audit log writes times."""
        return datetime.fromtimestamp(self.second.start, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.fixture(scope="module")
def story(cluster: Cluster, audit_log: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Forward with a second hold, before MoveBrokers; back from its second batch; forward. Asserted on what it left."""
    world.remove(cluster)
    world.deploy(cluster, print)
    metadata.prepare(cluster)
    migration.install_operator(cluster)
    manifest = yaml.safe_load(migration.MANIFEST.read_text())
    manifest["spec"]["holds"] = ["MoveBrokers", "Finalize"]
    first, second, turn = migration.Run(), migration.Run(), TurnBack(cluster)
    there, again, reversion = Killer((MOMENTS[1], *BACK)), Killer((MOMENTS[0], MOMENTS[2])), Reversion(cluster)
    behind, pipeline = Behind(cluster), Jobs(cluster, tmp_path_factory.mktemp("pipeline"))
    cure, cure_again = Cure(cluster), Cure(cluster)

    def follow(run: migration.Run, observers: list[migration.Observer], ended: Callable[[Resource], bool]) -> None:
        migration.follow(cluster, run, yaml.safe_dump(manifest), lambda _: None, print, observers, ended)

    try:
        follow(first, [reversion, behind, turn, there, cure], migration.rolled_back)
        world.await_in_sync(cluster)
        after, between, left = metadata.tell(cluster), world.modes(cluster), rollback.leftovers(cluster)
        manifest["spec"] |= {"desiredState": "Running", "holds": ["Finalize"]}
        pipeline.capture()
        follow(second, [again, pipeline, cure_again], migration.succeeded)
        yield Story(first, second, turn, (there, again), reversion, behind, pipeline, cure_again, after, between, left,
                    audit.requests(audit_log, ACCOUNT))
    except BaseException:
        collect(cluster, OUTPUT)
        raise


def test_it_turned_in_the_middle_of_a_batch(story: Story) -> None:
    assert "not Ready" in story.turn.where
    assert story.turn.killed > 0


def test_rolled_back_it_was_as_before(story: Story) -> None:
    assert story.modes_between == dict.fromkeys(world.BROKERS, "ZooKeeper")
    assert story.left_between == ()
    status = story.first.resource["status"]
    assert (status["phase"], status["metadataState"], status["rollback"]["available"]) == ("RolledBack", "ZooKeeper", True)
    assert status["migrationNode"], "what /migration held is kept"


def test_metadata_changed_in_dual_write_survived_the_way_back(story: Story) -> None:
    told = "\n".join(story.turn.before)
    for change in (metadata.MADE, "PartitionCount=5", "max.message.bytes=131072", "SCRAM-SHA-256", "producer_byte_rate"):
        assert change in told, "the change was not made: nothing is proved"
    assert f"Topic={metadata.DOOMED} " not in told
    assert story.after == story.turn.before


def test_a_state_that_was_behind_its_leader_caught_up_before_zookeeper_ruled(story: Story) -> None:
    assert story.behind.planted == 0 < 2 < story.behind.before, "nothing was behind: nothing is proved"
    assert story.behind.after >= story.behind.before


def test_no_broker_was_restarted_more_often_than_its_modes_want(story: Story) -> None:
    """B; C and B again for the first two, one of them in the middle; A; controllers stopped once."""
    replaced = audit.evictions([item for item in story.requests if item.at < story.began_again])
    brokers = [item.name for item in replaced if item.name in world.BROKERS]
    assert len(brokers) <= 3 + 2 + 2 + 3
    assert len(replaced) - len(brokers) == 3


def test_it_succeeded_and_zookeeper_may_go(story: Story) -> None:
    status = story.second.resource["status"]
    assert condition(story.second.resource, "Succeeded") == "True"
    assert condition(story.second.resource, "ZooKeeperRemovable") == "True"
    assert condition(story.second.resource, "RollbackAvailable") == "False"
    assert (status["metadataState"], status["attempt"]) == ("KRaft", 2)


def test_the_brokers_themselves_say_kraft(story: Story, cluster: Cluster) -> None:
    assert world.modes(cluster) == dict.fromkeys(world.BROKERS, "KRaft")


def test_nothing_is_connected_to_zookeeper(story: Story, cluster: Cluster) -> None:
    assert world.connections(cluster) == dict.fromkeys(world.SERVERS, 0)


def test_no_acknowledged_record_is_lost(story: Story, cluster: Cluster) -> None:
    world.await_in_sync(cluster)
    found = traffic.verify(cluster)
    assert found.lost == 0
    assert found.acknowledged > 10_000, "the load did not run: nothing is proved"


def test_the_operator_was_killed_on_every_leg(story: Story) -> None:
    assert [killer.missed for killer in story.killers] == [[], []]


def test_the_operator_never_died_by_itself(story: Story) -> None:
    assert max(story.first.restarts, story.second.restarts) == 1 + sum(len(killer.killed) for killer in story.killers)


def test_no_pod_was_evicted_before_the_status_named_it(story: Story) -> None:
    assert len(audit.evictions(story.requests)) >= 20, "there and back and there again"
    assert audit.acts_before_record(story.requests) == []


def test_every_node_was_replaced_as_often_as_needed_and_no_more(story: Story) -> None:
    """The second time: each broker twice, each controller once, and the leader once more in the soak."""
    assert story.second.replaced == 10 + len(story.cure.restarted)
    assert len(audit.evictions([item for item in story.requests if item.at > story.began_again])) == 10


def test_no_invariant_was_broken_by_the_recorded_history(story: Story, audit_log: Path) -> None:
    told = list(history.events(audit_log, ACCOUNT, "demo", "kafka"))
    assert len(told) > 300, "the audit log does not tell of the migration: nothing is proved"
    assert judged(told, Limits(heartbeat=0.0)) == []       # a process that was killed is not told from the next


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


def test_the_jobs_of_the_pipeline_ran_in_pods_at_the_last_hold(story: Story) -> None:
    told = story.pipeline.told
    assert set(told) == {"inventory", "audit", "baseline", "drift"}
    assert all(each["result"] == "Succeeded" and each["rows"] > 0 for each in told.values()), told
    assert told["inventory"]["groups"] >= 1
    # Of all that "orders" has; how many of them have a baseline hangs on the holes that brokers on the move leave.
    assert (told["baseline"]["groups"], told["baseline"]["partitions"]) == (1, 6)


def test_brokers_that_moved_made_no_group_consume_twice(story: Story) -> None:
    """Nobody was killed, and every member commits one at a time, so that no commit can be late."""
    told = story.pipeline.told["audit"]
    assert told["verdict"] == "Clean", "; ".join(told["evidence"])


def test_zookeeper_and_kraft_agreed_at_the_last_hold(story: Story) -> None:
    found = story.pipeline.told["drift"]
    assert (found["verdict"], found["driftPersistent"]) == ("Clean", 0), found


def test_nothing_restarts_any_more(story: Story, cluster: Cluster) -> None:
    for name in ("kafka", "kafka-controller"):
        workload = cluster.get("statefulset", name)
        assert workload["status"]["readyReplicas"] == 3
    kafka = cluster.get("statefulset", "kafka")
    assert kafka["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    assert kafka["status"]["updatedReplicas"] == 3, "a pod without the update revision would be rolled by Kubernetes"
