"""A group in Java changes its strategy in two bounces, on Kafka 4.4 in real pods, beside one in Python that changes nothing.

The oracle judges the histories of all pods that ever were members.
"""

from pathlib import Path

import pytest

from demo.cluster import Cluster
from demo.diagnostics import collect
from demo_groups import __main__ as demo
from demo_groups import stories, world
from demo_groups.summary import Summary
from sandbox.operator_killed import Kill, left_behind, operator_restarts

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

IMAGES = world.images()
OUTPUT = Path(__file__).parents[2] / "build" / "group-strategy"


@pytest.fixture(scope="module")
def kill(cluster: Cluster) -> Kill:
    """In the second batch of the first bounce."""
    return Kill(cluster, stories.ASSIGNMENT_STRATEGY, lambda progress: progress.get("step") == "BounceOne"
                and progress.get("batch") == 2)


@pytest.fixture(scope="module")
def summary(cluster: Cluster, kill: Kill) -> Summary:
    world.remove(cluster)
    try:
        return demo.tell(cluster, (((stories.ASSIGNMENT_STRATEGY,),),), print, OUTPUT / "histories", kill)
    except BaseException:
        collect(cluster, OUTPUT)
        raise


def test_it_comes_to_its_end(summary: Summary) -> None:
    assert summary.as_json()["stories"] == {"assignmentStrategy": "Succeeded"}
    bounced = summary.told["assignmentStrategy"].resource["status"]
    assert (bounced["group"]["type"], bounced["group"]["assignor"]) == ("Classic", "cooperative-sticky")


def test_the_operator_was_killed_on_the_way_and_never_ended_by_itself(
        summary: Summary, kill: Kill, cluster: Cluster) -> None:
    assert kill.killed > 0
    assert operator_restarts(cluster) == 1


def test_the_oracle_finds_no_fault(summary: Summary) -> None:
    report = summary.reports["payments"]
    assert report.faults == []
    assert report.never_owned == []
    assert report.deliveries > 10_000
    assert not [note for note in report.notes if "not judged" in note], report.notes


def test_nothing_is_left_beside_the_workloads(summary: Summary, cluster: Cluster) -> None:
    assert left_behind(cluster) == []
