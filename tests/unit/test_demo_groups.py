"""The demo of consumer groups: its stories are resources that the operator takes, and its figures say what was seen."""

from pathlib import Path

import pytest

from demo_groups import histories, stories
from demo_groups.follow import Told, is_over
from demo_groups.summary import NAMES, Summary
from member.settings import Settings, in_force
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.consumer_group_migration import ContainerChange as Change
from switchover.groups.workloads.change import changed
from unit.group_story import Story

EVERY = (stories.PROTOCOL_UPGRADE, stories.REFUSED_CANARY, stories.STALLED_CANARY, stories.ASSIGNMENT_STRATEGY,
         stories.DOWNGRADE)


@pytest.mark.parametrize("story", EVERY, ids=lambda story: story.name)
def test_a_story_is_a_resource_that_the_models_take(story):
    migration = ConsumerGroupMigration.model_validate(story.manifest())
    assert migration.spec.group == migration.spec.workloads[0].name
    assert ("Canary" in migration.spec.holds) is (story.before_canary is not None)


def test_the_file_that_a_patch_mounts_counts_before_the_variables(tmp_path):
    change = Change.model_validate(stories.BY_FILE["template"])
    template = {"spec": {"containers": [{"name": "member"}], "volumes": [
        {"name": "settings", "configMap": {"name": "orders-settings", "optional": True}}]}}
    assert changed(template, "member", change)["spec"]["volumes"][0]["configMap"]["name"] == "orders-settings-consumer"
    environment = {"GROUP_PROTOCOL": "classic", "GROUP": "orders", "SETTINGS": str(tmp_path / "settings")}
    assert Settings.of(in_force(environment)).protocol == "classic", "a file that need not be there"
    (tmp_path / "settings").write_text("GROUP_PROTOCOL=consumer\n\n")
    settings = Settings.of(in_force(environment))
    assert (settings.protocol, settings.group) == ("consumer", "orders")
    (tmp_path / "settings").write_text("GROUP_PROTOCOL consumer\n")
    with pytest.raises(ValueError, match="not NAME=value: 'GROUP_PROTOCOL consumer'"):
        in_force(environment)


def test_the_summary_has_every_story_of_the_demo():
    assert tuple(story.name for story in EVERY) == NAMES


def ended(story, phase, reasons=()):
    return Told(story, start=10.0, end=70.0, resource={"status": {"phase": phase}}, reasons=set(reasons))


def test_a_story_is_good_only_with_the_end_and_the_reason_that_were_planted():
    assert ended(stories.PROTOCOL_UPGRADE, "Succeeded").good
    assert not ended(stories.PROTOCOL_UPGRADE, "RolledBack").good
    assert ended(stories.STALLED_CANARY, "RolledBack", ["PartitionStalled", "Baking"]).good
    assert not ended(stories.STALLED_CANARY, "RolledBack", ["NotAMember"]).good


@pytest.mark.parametrize(("generation", "observed", "completed", "over"), [
    (2, 2, "2026-11-22T10:00:00Z", True), (2, 2, None, False), (3, 2, "2026-11-22T10:00:00Z", False)])
def test_a_story_is_not_over_because_an_attempt_before_it_was(generation, observed, completed, over):
    progress = {"completeTime": completed} if completed else {}
    status = {"observedGeneration": observed, "progress": progress}
    assert is_over({"metadata": {"generation": generation}, "status": status}) is over
    assert not is_over({})


def overlapping() -> Story:
    story = Story()
    a, b = story.member("a"), story.member("b")
    for offset in range(3):
        story.produce(0, offset)
    a.claim(0)
    b.claim(0)
    a.deliver(0, 0)
    b.deliver(0, 1)
    a.deliver(0, 2)
    a.commit(0, 3)
    return story


def test_an_overlap_makes_the_whole_demo_fail():
    summary = Summary({"protocolUpgrade": ended(stories.PROTOCOL_UPGRADE, "Succeeded")}, {"protocolUpgrade": 1.25})
    assert (summary.good, summary.as_json()["result"]) == (True, "Succeeded")
    summary.reports["orders"] = overlapping().report()
    assert (summary.good, summary.as_json()["result"], summary.as_json()["overlaps"]) == (False, "Failed", 1)
    assert summary.as_json()["stories"] == {"protocolUpgrade": "Succeeded"}
    assert summary.as_json()["longestGap"] == {"protocolUpgrade": 1.25}


@pytest.fixture
def waiting(tmp_path: Path) -> float:
    """Files of a group whose one partition waits for 4 s and, later, for 7 s; the wall time of the beginning."""
    story = Story()
    a = story.member("a")
    begin = story.now + 1.7e9
    a.claim(0)
    for quiet, length, offset in ((10, 4, 0), (16, 7, 1)):
        story.wait(quiet)
        story.produce(0, offset)
        story.wait(length)
        a.deliver(0, offset)
    story.member("later")
    for number, file in enumerate(story.files):
        (tmp_path / f"orders-{number}.jsonl").write_bytes(file.getvalue())
    return begin


@pytest.mark.parametrize(("since", "until", "longest"), [
    (0, 100, 7), (0, 20, 4), (20, 100, 7), (12, 20, 2), (33, 100, 4), (0, 5, 0)])
def test_the_longest_gap_is_that_of_its_story_alone(tmp_path, waiting, since, until, longest):
    found = histories.between(tmp_path, "orders", waiting + since, waiting + until)
    assert found.longest_gap == pytest.approx(longest, abs=0.1)


def test_claims_are_counted_within_their_story(tmp_path, waiting):
    assert [histories.between(tmp_path, "orders", waiting + since, waiting + until).claims
            for since, until in ((-1, 100), (5, 100), (-1, -0.5))] == [1, 0, 0]


def test_what_is_delivered_twice_and_what_moves_to_another_pod_is_counted_within_its_story(tmp_path):
    story = Story()
    a, b = story.member("a"), story.member("b")
    begin = story.now + 1.7e9
    a.claim(0, 1)
    a.deliver(0, 0, 1, 2)
    a.commit(0, 1)
    story.wait(10)
    story.member("a").claim(0)
    b.claim(1)
    b.deliver(0, 1, 2, 3)
    b.commit(0, 4)
    for number, file in enumerate(story.files):
        (tmp_path / f"orders-{number}.jsonl").write_bytes(file.getvalue())
    found = [histories.between(tmp_path, "orders", begin + since, begin + until) for since, until in ((-1, 5), (5, 20))]
    assert [(each.claims, each.moves, each.deliveries, each.duplicates) for each in found] == [(2, 0, 3, 0), (2, 1, 3, 2)]
