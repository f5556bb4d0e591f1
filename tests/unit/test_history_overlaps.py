"""Who delivered a partition while another did: hand-overs that are lawful, and planted double consumers."""

import pytest

from history.events import Partition
from unit.group_story import TOPIC, Story, endings, lines, ten_each


def test_a_cooperative_hand_over_while_the_other_partition_goes_on() -> None:
    story = ten_each()
    a, b = story.member("a"), story.member("b")
    a.claim(0, 1)
    a.deliver(0, 0, 1)
    a.deliver(1, 0, 1)
    a.commit(1, 2)
    a.release(1)
    b.claim(1)
    for offset in range(2, 10):
        a.deliver(0, offset)
        b.deliver(1, offset)
    a.commit(0, 10)
    b.commit(1, 10)
    report = story.report(expected=[0, 1])
    assert (report.faults, report.duplicates, report.never_owned, report.notes) == ([], [], [], [])
    assert (report.deliveries, report.partitions) == (20, 2)
    assert [by.member for by in report.processes] == ["a", "b", "producer"]


def test_ownership_may_overlap_where_deliveries_do_not() -> None:
    story = ten_each()
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    a.deliver(0, *range(5))
    a.commit(0, 5)
    story.wait(50)  # it stands still; the group gives the partition away
    b.claim(0)
    b.deliver(0, *range(5, 10))
    b.commit(0, 10)
    a.lose(0)
    assert story.report().faults == []


def test_intervals_that_touch_do_not_overlap() -> None:
    story = Story()
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    b.claim(0)
    a.deliver(0, 0, 1)
    b.recorder.delivered(TOPIC, 0, 2)  # at the very moment of the last delivery of a
    b.deliver(0, 3)
    a.recorder.flush()
    b.recorder.flush()
    assert story.report().overlaps == []


def test_after_sigkill_the_interval_ends_with_the_last_delivery_written() -> None:
    story = ten_each()
    a = story.member("a")
    a.claim(0)
    a.deliver(0, 0, 1, 2)
    a.commit(0, 3)
    story.wait(1)
    a.deliver(0, 3, 4)
    a.recorder.flush()
    a.deliver(0, 5)  # in a window when it dies
    story.wait(6)
    b = story.member("b")
    b.claim(0)
    b.deliver(0, *range(3, 10))
    b.commit(0, 10)
    report = story.report()
    assert report.faults == []
    [again] = report.duplicates
    assert (again.records, list(again.offsets)) == (2, [(3, 4)])
    assert {by.member for by in again.by} == {"b"}
    [gap] = report.gaps
    assert (gap.seconds, gap.before.member, gap.after.member) == (pytest.approx(6, abs=0.1), "a", "b")


def test_a_static_member_that_comes_back_is_a_run_of_its_own() -> None:
    story = ten_each()
    first = story.member("orders-0", instance="orders-0")
    first.claim(0)
    first.deliver(0, *range(4))
    first.commit(0, 4)
    story.wait(20)
    second = story.member("orders-0", instance="orders-0")
    second.claim(0)
    second.deliver(0, *range(4, 10))
    second.commit(0, 10)
    assert story.report().faults == []
    first.deliver(0, 4)  # and the old process wakes up, and goes on
    second.deliver(0, 5)
    first.recorder.flush()
    second.recorder.flush()
    [overlap] = story.report().overlaps
    assert {overlap.one.by.member, overlap.other.by.member} == {"orders-0"}
    assert overlap.one.by.run != overlap.other.by.run



def test_a_planted_double_consumer_is_named_with_partition_and_time() -> None:
    story = ten_each()
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    b.claim(0)
    a.deliver(0, 0, 1)
    began = story.now + 0.001
    b.deliver(0, 0, 1)
    a.deliver(0, 2)
    a.recorder.flush()
    b.recorder.flush()
    [overlap] = story.report().overlaps
    assert (overlap.partition, overlap.one.by.member, overlap.other.by.member) == (Partition(TOPIC, 0), "a", "b")
    assert (overlap.start, overlap.end) == pytest.approx((began, began + 0.001))
    [words] = lines(story, "overlap: orders-0")
    assert "a (run" in words
    assert "b (run" in words
    assert ":" in words.split(" from ")[1], "the time of day"


def test_intervals_that_begin_together_overlap() -> None:
    story = Story()
    a, b = story.member("a"), story.member("b")
    story.wait(1)
    for _ in range(2):
        a.recorder.delivered(TOPIC, 0, 0)
        b.recorder.delivered(TOPIC, 0, 0)
        story.wait(0.1)
    a.recorder.flush()
    b.recorder.flush()
    [overlap] = story.report().overlaps
    assert overlap.end - overlap.start == pytest.approx(0.1)


def test_one_record_in_the_middle_of_anothers_deliveries_is_an_overlap() -> None:
    story = Story()
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    a.deliver(0, 0)
    b.claim(0)
    b.deliver(0, 0)
    a.deliver(0, 1)
    a.recorder.flush()
    [overlap] = story.report().overlaps
    assert overlap.start == overlap.end


def test_a_member_that_goes_on_after_its_release_is_found_even_between_the_others_deliveries() -> None:
    story = ten_each()
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    a.deliver(0, 0, 1)
    a.commit(0, 2)
    a.release(0)
    b.claim(0)
    b.deliver(0, 2, 3, 4)
    b.recorder.flush()
    story.wait(1)
    a.deliver(0, 2, 3)
    a.recorder.flush()
    [overlap] = story.report().overlaps
    assert overlap.one.after_end == 2
    assert lines(story, "note: delivered without holding it, orders-0: a (run")
    assert "2 records after that" in lines(story, "overlap")[0]


@pytest.mark.parametrize("ending", ["release", "lost", "stop", "fenced"])
def test_the_words_say_how_a_holding_ended(ending: str) -> None:
    story = Story()
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    a.deliver(0, 0)
    b.claim(0)
    b.deliver(0, 0)
    a.deliver(0, 1)
    endings(a)[ending]()
    a.recorder.stop()
    [words] = lines(story, "overlap")
    assert f"ended by {ending}" in words
    assert "with no end in its history" in words


def test_three_at_once_are_three_pairs() -> None:
    story = Story()
    members = [story.member(name) for name in "abc"]
    for _ in range(2):
        for member in members:
            member.deliver(0, 0)
    for member in members:
        member.recorder.flush()
    report = story.report()
    assert {(o.one.by.member, o.other.by.member) for o in report.overlaps} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert {o.one.after_end for o in report.overlaps} == {2}, "nobody ever claimed it"
