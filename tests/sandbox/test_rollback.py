"""A real Kafka in real pods: into the middle of MoveBrokers, and all the way back to plain ZooKeeper, under traffic.

The operator is killed as it turns and on the way back.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from demo import metadata, migration, rollback, traffic, world
from demo.cluster import Cluster
from demo.kill import BACK, Killer
from demo.turn_back import TurnBack
from documents import Block, of, run, standing_in
from invariants.jury import judged
from invariants.memory import Limits
from patience import stretched
from sandbox import audit, history
from sandbox.quick import QUICK
from switchover.cli.objects import Resource
from switchover.metadata.tree import state_path

pytestmark = pytest.mark.timeout(2300)

NAMESPACE = "rollback"
IMAGES = list(world.images().values())
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:switchover"
PARTITION = ("invoices", 1)


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
        if self.before < 0 and progress.get("step") == "MoveBrokers":       # before the approval: it takes a while
            self.before, self.planted = self._in_zookeeper(
                "t = c.transaction(); t.delete(path); t.create(path, data); t.commit()")
            return f"the state of {PARTITION} is written anew: version {self.before} becomes {self.planted}"
        if self.planted >= 0 > self.after and any(node["assigned"] == "Stopped" for node in status.get("nodes", ())):
            _, self.after = self._in_zookeeper("pass")
            return f"the state of {PARTITION} has version {self.after}"
        return None

    def _in_zookeeper(self, change: str) -> tuple[int, int]:
        """The node's version before and after, told by a pod of the load, whose image has kazoo."""
        script = "\n".join((
            "from kazoo.client import KazooClient", f"path = {state_path(*PARTITION)!r}",
            "c = KazooClient('zookeeper:2181'); c.start()", "data, stat = c.get(path)", change,
            "print(stat.version, c.exists(path).version)"))
        before, after = self.cluster.kubectl("exec", "deployment/producer", "--", "python", "-c", script).split()
        return int(before), int(after)


@dataclass
class Story:
    """What the half of a migration and its rollback left behind."""

    run: migration.Run
    turn: TurnBack
    killer: Killer
    behind: Behind
    after: frozenset[str]
    modes: dict[str, str]
    left: tuple[str, ...]
    traffic: traffic.Traffic
    requests: list[audit.Request]


def tell(cluster: Cluster, audit_log: Path) -> Story:
    """Forward, and back from the second batch of MoveBrokers. Asserted on what it left."""
    world.deploy(cluster, print, world.LIGHT)
    metadata.prepare(cluster)
    migration.install_operator(cluster)
    run, turn, killer, behind = migration.Run(), TurnBack(cluster), Killer(BACK), Behind(cluster)
    manifest = migration.manifest(holds=rollback.HOLDS, **QUICK)
    migration.follow(cluster, run, manifest, lambda _: None, print, [behind, turn, killer], migration.rolled_back)
    world.await_in_sync(cluster)
    after, modes, left = metadata.tell(cluster), world.modes(cluster), rollback.leftovers(cluster)
    return Story(run, turn, killer, behind, after, modes, left, traffic.verify(cluster), audit.requests(audit_log, ACCOUNT))


def test_it_turned_in_the_middle_of_a_batch(story: Story) -> None:
    assert "not Ready" in story.turn.where
    assert story.turn.killed > 0


def test_rolled_back_it_was_as_before(story: Story) -> None:
    assert story.modes == dict.fromkeys(world.BROKERS, "ZooKeeper")
    assert story.left == ()
    status = story.run.resource["status"]
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


def test_no_acknowledged_record_is_lost(story: Story) -> None:
    assert story.traffic.lost == 0
    assert story.traffic.acknowledged > 10_000, "the load did not run: nothing is proved"


def test_no_broker_was_restarted_more_often_than_its_modes_want(story: Story) -> None:
    """Migration; KRaft and Migration again for those of MoveBrokers, one of them in the middle; ZooKeeper; controllers
    stopped once."""
    replaced = audit.replaced(story.requests)
    remedied = [name for _, name in story.run.remedies]
    brokers = [name for name in replaced if name in world.BROKERS]
    assert len(brokers) <= 3 + 2 * story.turn.batch + 3 + sum(name in world.BROKERS for name in remedied), replaced
    assert len(replaced) - len(brokers) == 3 + sum(name not in world.BROKERS for name in remedied), replaced


def test_the_operator_was_killed_on_the_way_back(story: Story) -> None:
    assert story.killer.missed == []
    assert story.run.restarts == 1 + len(story.killer.killed)


def test_no_pod_was_evicted_before_the_status_named_it(story: Story) -> None:
    assert len(audit.evictions(story.requests)) >= 10, "there and back"
    assert audit.acts_before_record(story.requests) == []


def test_no_invariant_was_broken_by_the_recorded_history(story: Story, audit_log: Path) -> None:
    told = list(history.events(audit_log, ACCOUNT, NAMESPACE, "kafka", story.run.starts))
    assert len(told) > 150, "the audit log does not tell of the migration: nothing is proved"
    assert judged(told, Limits(silence=stretched(Limits.silence))) == []


@pytest.mark.parametrize("block", of("tests/sandbox/test_rollback.py"), ids=str)
def test_what_pages_do_in_a_pod_runs(block: Block, story: Story, stage: Cluster, tmp_path: Path) -> None:
    (tmp_path / "migration.yaml").write_text(migration.manifest(holds=rollback.HOLDS, **QUICK))
    kubeconfig = standing_in(NAMESPACE, Path(stage.environment["KUBECONFIG"]), tmp_path)
    environment = {**stage.environment, "KUBECONFIG": str(kubeconfig)}
    run(block, tmp_path, block.script.replace("--namespace kafka", f"--namespace {NAMESPACE}"), **environment)
