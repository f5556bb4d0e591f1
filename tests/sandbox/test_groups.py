"""Real members in real pods on Kafka 4.4: a canary that stalls is taken back, an upgrade goes to its end, and a group in
Java changes its strategy in two bounces. The oracle judges the histories of all pods that ever were members."""

from pathlib import Path

import pytest

from demo.cluster import Cluster
from demo.diagnostics import collect
from demo_groups import stories, world
from demo_groups.__main__ import tell
from demo_groups.summary import Summary
from sandbox.operator_killed import Kill, left_behind, operator_restarts

pytestmark = pytest.mark.timeout(1800)

IMAGES = world.images()
OUTPUT = Path(__file__).parents[2] / "build" / "groups-diagnostics"


@pytest.fixture(scope="module")
def kill(cluster: Cluster) -> Kill:
    """In the middle of the upgrade's second batch."""
    return Kill(cluster, stories.PROTOCOL_UPGRADE, lambda progress: progress.get("step") == "Rollout"
                and bool(progress.get("batchNodes")))


@pytest.fixture(scope="module")
def summary(cluster: Cluster, kill: Kill) -> Summary:
    """Both groups at once, each with its own migrations."""
    lines = ((stories.STALLED_CANARY, stories.PROTOCOL_UPGRADE), (stories.ASSIGNMENT_STRATEGY,))
    try:
        return tell(cluster, (lines,), print, OUTPUT / "histories", kill)
    except Exception:
        collect(cluster, OUTPUT)
        raise


def test_each_story_comes_to_the_end_that_it_is_meant_to_have(summary: Summary) -> None:
    assert summary.as_json()["stories"] == {
        "stalledCanary": "RolledBack", "protocolUpgrade": "Succeeded", "assignmentStrategy": "Succeeded"}
    assert "PartitionStalled" in summary.told["stalledCanary"].reasons


def test_the_operator_was_killed_on_the_way_and_never_ended_by_itself(
        summary: Summary, kill: Kill, cluster: Cluster) -> None:
    assert kill.killed > 0
    assert operator_restarts(cluster) == 1


def test_the_oracle_finds_no_fault(summary: Summary) -> None:
    assert summary.reports.keys() == {"orders", "payments"}
    for report in summary.reports.values():
        assert report.faults == []
        assert report.never_owned == []
        assert report.deliveries > 10_000
        assert not [note for note in report.notes if "not judged" in note], report.notes


def test_the_group_ends_as_its_last_migration_says(summary: Summary) -> None:
    upgraded = summary.told["protocolUpgrade"].resource["status"]
    group = upgraded["group"]
    assert (group["type"], group["classicMembers"], group["members"]) == ("Consumer", 0, 6)
    assert {slot["assigned"] for slot in upgraded["slots"]} == {"Target"}
    bounced = summary.told["assignmentStrategy"].resource["status"]
    assert (bounced["group"]["type"], bounced["group"]["assignor"]) == ("Classic", "cooperative-sticky")


def test_nothing_is_left_beside_the_workloads(summary: Summary, cluster: Cluster) -> None:
    assert left_behind(cluster) == []
