"""The demo of old consumers: its stories are resources that the operator takes, and it tells our overlaps from theirs."""

import re
from pathlib import Path

import pytest

from demo_groups.follow import Told
from demo_zkcc import stories
from demo_zkcc.__main__ import judge
from demo_zkcc.summary import OLD_CONSUMER, Summary
from member.settings import Settings
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.groups.coordination.members import Consumer, consumers
from switchover.groups.coordination.plan import plan_of
from unit.group_story import Story
from unit.kustomized import SANDBOX, world

EPOCH = 1.7e9
BOTH = pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.name)


def migration(story) -> ConsumerGroupMigration:
    return ConsumerGroupMigration.model_validate(story.manifest())


@BOTH
def test_a_story_is_a_resource_whose_plan_has_a_toggle(story):
    spec = migration(story).spec
    assert (spec.group, [each.name for each in spec.workloads]) == ("orders", ["orders"])
    assert stories.TOGGLE in [step.name for step in plan_of(spec.coordination).steps]


RUNS = {stories.OLD: Consumer.OLD, "zkmember": Consumer.ENABLED, "member": Consumer.KAFKA}


@BOTH
def test_each_change_makes_the_pods_run_what_the_plan_expects_them_to_run(story):
    """Of the image and its variables as they become one after the other; what is not named stays."""
    spec = migration(story).spec
    [workload], env, image, found = spec.workloads, dict[str, str](), stories.OLD, []
    if story is stories.BACK:
        env, image = dict(stories.KAFKA_CONSUMER), stories.CLIENT
    for change in (workload.bridge, workload.template):
        env |= {each.name: each.value for each in change.env}
        image = change.image or image
        found.append(RUNS[image if image == stories.OLD else env["MEMBER"]])
        assert change.args is None
    assert tuple(found) == consumers(spec.coordination)[1:]


def test_the_clients_image_runs_the_member_that_its_environment_names():
    dockerfile = (SANDBOX / "images" / "client" / "Dockerfile").read_text()
    assert 'CMD ["sh", "-c", "exec python -m ${MEMBER:-member}"]' in dockerfile
    for change in (stories.ENABLED, stories.KAFKA_CONSUMER):
        assert f"COPY {change['MEMBER']} /opt/{change['MEMBER']}\n" in dockerfile
        assert (SANDBOX / "apps" / change["MEMBER"] / "__main__.py").exists()


def test_the_images_are_those_of_the_world_with_old_consumers():
    [container] = world("manifests-zkcc").containers("orders")
    assert world("manifests-zkcc").images[container["image"]] == stories.OLD
    assert {stories.OLD, stories.CLIENT} <= set(stories.IMAGES.values())


def test_only_the_old_consumer_calls_itself_so():
    java = (SANDBOX / "apps/java-old-member/src/main/java/dev/switchover/member/OldSettings.java").read_text()
    enabled = (SANDBOX / "apps/zkmember/__main__.py").read_text()
    assert re.search(rf'String words\(\) {{\s+return "[^"]*{OLD_CONSUMER}', java)
    assert OLD_CONSUMER not in Settings.of({}).words()
    assert OLD_CONSUMER not in "".join(re.findall(r"words=f?\"(.*)\"", enabled))


# --- the figures ------------------------------------------------------------------------------------------------------


class Run:
    """Histories of a run: a baseline of 100 s, both stories of 100 s each after it."""

    def __init__(self) -> None:
        self.story = Story()
        self.begin = self.story.now + EPOCH
        self.offset = 0
        self.summary = Summary(baseline=(self.begin, self.begin + 100))
        for number, (story, seconds) in enumerate(((stories.FORWARD, 12), (stories.BACK, 7)), 1):
            steps = [{"name": "Preflight", "seconds": 1}, {"name": "Toggle", "seconds": seconds}]
            self.summary.told[story.name] = Told(
                story, start=self.begin + 100 * number, end=self.begin + 100 * (number + 1),
                resource={"status": {"phase": story.end, "steps": steps}})

    def old(self, name: str):
        return self.story.member(name, words=f"group orders, {OLD_CONSUMER} 1.1.1, {{}}")

    def ours(self, name: str):
        return self.story.member(name, words="group orders, migration-enabled")

    def at(self, seconds: float) -> None:
        self.story.now = self.begin - EPOCH + seconds

    def deliver(self, *members) -> None:
        """One record more to each of them."""
        for member in members:
            self.story.produce(0, self.offset)
            member.deliver(0, self.offset)
            member.recorder.flush()
            self.offset += 1

    def overlap(self, one, other) -> None:
        one.claim(0)
        other.claim(0)
        self.deliver(one, other, one)
        one.release(0)
        self.deliver(other)

    def judged(self, directory: Path) -> Summary:
        self.at(300)
        self.ours("last").commit(0, self.offset)
        for number, file in enumerate(self.story.files):
            (directory / f"orders-{number}.jsonl").write_bytes(file.getvalue())
        self.summary.judged = judge(directory, self.summary, 1)
        return self.summary


@pytest.fixture
def run() -> Run:
    return Run()


def overlaps(summary: Summary) -> tuple[int, int, int]:
    found = summary.as_json()
    return found["overlapsCausedByUs"], found["overlapsJavaOnlyBaseline"], found["overlapsJavaOnlyInMigration"]


def test_there_and_back_without_an_overlap_is_a_success(run, tmp_path):
    a, b = run.old("a"), run.ours("b")
    for member in (a, b):
        member.claim(0)
        run.deliver(member, member)
        member.release(0)
    summary = run.judged(tmp_path)
    found = summary.as_json()
    assert (summary.good, found["result"], found["forward"], found["back"]) == (True, "Succeeded", "Succeeded", "Succeeded")
    assert overlaps(summary) == (0, 0, 0)
    assert (found["toggleSeconds"], found["toggleBackSeconds"]) == (12, 7)
    assert found["seconds"] == {"baseline": 100, "forward": 100, "back": 100}
    assert (found["lostRecords"], found["duplicates"], found["deliveries"]) == (0, 0, 4)


@pytest.mark.parametrize(("at", "expected"), [(50, (0, 1, 0)), (150, (0, 0, 1)), (250, (0, 0, 1))])
def test_old_consumers_may_overlap_among_themselves(run, tmp_path, at, expected):
    a, b = run.old("a"), run.old("b")
    run.at(at)
    run.overlap(a, b)
    summary = run.judged(tmp_path)
    assert overlaps(summary) == expected
    assert summary.good


@pytest.mark.parametrize("at", [50, 150])
@pytest.mark.parametrize("kinds", [("old", "ours"), ("ours", "old"), ("ours", "ours")])
def test_an_overlap_with_one_of_ours_in_it_is_our_fault_whenever_it_was(run, tmp_path, kinds, at):
    one, other = (getattr(run, kind)(name) for kind, name in zip(kinds, "ab", strict=True))
    run.at(at)
    run.overlap(one, other)
    summary = run.judged(tmp_path)
    assert overlaps(summary) == (1, 0, 0)
    assert (summary.good, summary.as_json()["result"]) == (False, "Failed")


@pytest.mark.parametrize(("kinds", "expected"), [
    (("old", "old"), (0, 1)), (("old", "ours"), (1, 0)), (("ours", "old"), (1, 0)), (("ours", "ours"), (1, 0))])
def test_a_rewind_fails_it_unless_old_consumers_had_it_among_themselves(run, tmp_path, kinds, expected):
    one, other = (getattr(run, kind)(name) for kind, name in zip(kinds, "ab", strict=True))
    one.claim(0)
    run.deliver(one, one, one)
    one.commit(0, 3)
    one.release(0)
    run.story.wait(1)
    other.claim(0, 3)
    other.commit(0, 1)
    summary = run.judged(tmp_path)
    assert (summary.as_json()["rewindsCausedByUs"], summary.as_json()["rewindsJavaOnly"]) == expected
    assert summary.good == (expected[0] == 0)


def test_an_old_consumer_is_its_process_and_not_its_name(run, tmp_path):
    """A pod keeps its name when its container begins anew."""
    a, b = run.old("a"), run.old("b")
    run.story.wait(1)
    again = run.ours("a")
    run.overlap(again, b)
    assert overlaps(run.judged(tmp_path)) == (1, 0, 0)
    assert a.name == again.name


def test_a_lost_record_fails_it(run, tmp_path):
    a = run.old("a")
    a.claim(0)
    run.deliver(a)
    run.story.produce(0, run.offset)
    run.offset += 1
    run.deliver(a)
    summary = run.judged(tmp_path)
    assert (summary.as_json()["lostRecords"], summary.good) == (1, False)


def test_duplicates_and_gaps_are_told_of_each_part(run, tmp_path):
    a = run.old("a")
    a.claim(0)
    run.deliver(a)
    for at, quiet in ((120, 3), (220, 5)):
        run.at(at)
        run.story.produce(0, run.offset)
        run.story.wait(quiet)
        a.deliver(0, run.offset, 0)
        a.recorder.flush()
        run.offset += 1
    found = run.judged(tmp_path).as_json()
    assert found["duplicates"] == 2
    assert found["duplicatesIn"] == {"baseline": 0, "forward": 1, "back": 1}
    assert found["longestGap"] == {name: pytest.approx(gap, abs=0.1) for name, gap in
                                   {"baseline": 0, "forward": 3, "back": 5}.items()}


def test_a_story_that_ended_otherwise_or_never_began_fails_it(run, tmp_path):
    summary = run.judged(tmp_path)
    assert summary.good
    summary.told["back"].resource["status"]["phase"] = "RolledBack"
    assert (summary.good, summary.as_json()["back"]) == (False, "Failed")
    del summary.told["back"]
    assert (summary.good, summary.ends()) == (False, {"forward": "Succeeded", "back": "Failed"})


def test_what_is_not_judged_is_no_success_and_tells_no_figures(run):
    assert run.summary.as_json() == {"result": "Failed", "forward": "Succeeded", "back": "Succeeded"}
