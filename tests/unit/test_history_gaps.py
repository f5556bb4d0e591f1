"""How long a partition waited, who owned it, and histories that cannot be judged."""

import pytest

from history.checker import check
from history.events import SPAN, Kind
from unit.group_story import Story, lines, ten_each


def test_the_longest_gap_counts_only_while_a_record_waits() -> None:
    story = Story()
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    story.wait(30)  # nothing to deliver
    story.produce(0, 0)
    a.deliver(0, 0)
    a.commit(0, 1)
    a.release(0)
    story.wait(20)  # nothing to deliver
    story.produce(0, 1)
    began = story.now
    story.wait(3)
    b.claim(0)
    b.deliver(0, 1)
    story.wait(40)
    story.member("later")
    [gap] = story.report().gaps
    assert (gap.start, gap.seconds) == pytest.approx((began, 3), abs=0.01)
    assert (gap.before.member, gap.after.member) == ("a", "b")
    assert "gap: orders-0 waited 3.00" in lines(story, "gap")[0]


def test_more_records_do_not_shorten_a_gap() -> None:
    story = Story()
    a = story.member("a")
    a.claim(0)
    for offset in range(5):
        story.produce(0, offset)
        story.wait(1)
    a.deliver(0, *range(5))
    assert story.report().gaps[0].seconds == pytest.approx(5, abs=0.02)


def test_a_partition_that_nobody_delivers_waits_until_the_end() -> None:
    story = ten_each()
    a = story.member("a")
    a.claim(0)
    story.wait(12)
    story.member("later")
    [gap] = story.report().gaps
    assert (gap.seconds, gap.before, gap.after) == (pytest.approx(12, abs=0.01), None, None)


def test_what_is_shorter_than_a_window_is_no_gap() -> None:
    story = Story()
    a = story.member("a")
    a.claim(0, 1)
    for offset in range(100):
        story.produce(0, offset)
        a.deliver(0, offset)
        story.wait(SPAN / 2)
    story.produce(1, 0)
    story.wait(5)
    a.deliver(1, 0)
    [longest] = story.report().gaps
    assert (longest.partition.number, longest.seconds) == (1, pytest.approx(5, abs=0.01))


def test_the_longest_gap_comes_first() -> None:
    story = Story()
    a = story.member("a")
    a.claim(0, 1, 2)
    story.produce(1, 0)
    for partition, seconds in ((1, 2), (0, 4), (2, 3)):
        story.produce(partition, 1)
        story.wait(seconds)
        a.deliver(partition, 0, 1)
    assert [gap.partition.number for gap in story.report().gaps] == [0, 2, 1]


def test_partitions_that_nobody_claimed_are_named() -> None:
    story = ten_each()
    a = story.member("a")
    a.claim(0)
    assert [each.number for each in story.report(expected=range(3)).never_owned] == [1, 2]
    assert lines(story, "never owned: orders-1")



def test_an_empty_history_proves_nothing() -> None:
    with pytest.raises(ValueError, match="there is no event"):
        check([])


def test_clocks_of_two_machines_are_refused() -> None:
    story = Story()
    story.member("a", clock="boot-2")
    with pytest.raises(ValueError, match=r"a \(run .* cannot be compared"):
        story.report()


def test_events_out_of_order_are_refused() -> None:
    story = ten_each()
    with pytest.raises(ValueError, match="not in the order of time"):
        check(reversed(story.events()))


def test_a_history_without_its_beginning_is_told() -> None:
    story = Story()
    a = story.member("a")
    a.claim(0)
    events = [event for event in story.events() if not (event.kind is Kind.START and event.by.member == "a")]
    assert any("does not begin with its start" in note for note in check(events).notes)


def test_the_summary_counts_everything() -> None:
    story = ten_each()
    a, b = story.member("a"), story.member("b")
    a.claim(0, 1)
    a.deliver(0, 0, 1, 1, 4)
    b.deliver(0, 1)
    a.deliver(0, 5)
    b.recorder.flush()
    a.commit(0, 6)
    a.commit(0, 4)
    *_, last = story.report().lines()
    assert last == ("3 processes, 2 partitions, 6 deliveries: "
                    "1 overlaps, 1 rewinds, 2 lost, 2 duplicates, no gap, 0 never owned")
