"""Real members in real pods on Kafka 4.4: a canary that stalls is taken back, and an upgrade goes to its end. The oracle
judges the histories of all pods that ever were members."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from demo.cluster import Cluster
from demo.world import images
from demo_groups import __main__ as demo
from demo_groups import stories, world
from demo_groups.summary import Summary
from documents import Block, of, run, standing_in
from sandbox.operator_killed import Kill, left_behind, operator_restarts

pytestmark = pytest.mark.timeout(2300)

NAMESPACE = "groups"
IMAGES = [image for name, image in images(world.LIGHT).items() if name != "java-member"]
HISTORIES = Path(__file__).parents[2] / "build" / "groups-histories"


@dataclass(frozen=True)
class Story:
    """What the migrations left behind."""

    summary: Summary
    kill: Kill


def quick(story: stories.Story) -> stories.Story:
    """With waits as short as they can be and still prove the point, and a canary before one larger batch."""
    rollout = {"steps": [{"pods": 2, "bakeSeconds": 2}, {"pods": 4, "bakeSeconds": 2}]}
    return replace(story, spec={**story.spec, "rollout": rollout, "soakSeconds": 3})


def tell(cluster: Cluster, audit_log: Path) -> Story:
    """One migration after the other. The operator is killed in the upgrade's second batch."""
    kill = Kill(cluster, stories.PROTOCOL_UPGRADE, lambda progress: progress.get("step") == "Rollout"
                and bool(progress.get("batchNodes")))
    line = [quick(story) for story in (stories.STALLED_CANARY, stories.PROTOCOL_UPGRADE)]
    return Story(demo.tell(cluster, ((line,),), print, HISTORIES, kill, world.LIGHT), kill)


def test_each_story_comes_to_the_end_that_it_is_meant_to_have(story: Story) -> None:
    assert story.summary.as_json()["stories"] == {
        "stalledCanary": "RolledBack", "protocolUpgrade": "Succeeded"}
    assert "PartitionStalled" in story.summary.told["stalledCanary"].reasons


def test_the_operator_was_killed_on_the_way_and_never_ended_by_itself(
        story: Story, stage: Cluster) -> None:
    assert story.kill.killed > 0
    assert operator_restarts(stage) == 1


def test_the_oracle_finds_no_fault(story: Story) -> None:
    report = story.summary.reports["orders"]
    assert report.faults == []
    assert report.never_owned == []
    assert report.deliveries > 10_000
    assert not [note for note in report.notes if "not judged" in note], report.notes


def test_the_group_ends_as_its_last_migration_says(story: Story) -> None:
    upgraded = story.summary.told["protocolUpgrade"].resource["status"]
    group = upgraded["group"]
    assert (group["type"], group["classicMembers"], group["members"]) == ("Consumer", 0, 6)
    assert {slot["assigned"] for slot in upgraded["slots"]} == {"Target"}


def test_nothing_is_left_beside_the_workloads(story: Story, stage: Cluster) -> None:
    assert left_behind(stage) == []


@pytest.mark.parametrize("block", of("tests/sandbox/test_groups.py"), ids=str)
def test_what_pages_do_in_this_world_runs(block: Block, story: Story, stage: Cluster, tmp_path: Path) -> None:
    kubeconfig = standing_in(NAMESPACE, Path(stage.environment["KUBECONFIG"]), tmp_path)
    script = block.script.replace("demo", NAMESPACE)
    run(block, tmp_path, script, **stage.environment | {"KUBECONFIG": str(kubeconfig)})
