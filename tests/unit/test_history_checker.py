"""Lawful and planted histories before the checker, one by one."""

import pytest

from history.checker import check
from history.events import SPAN, Kind, Partition
from history.ranges import Ranges
from unit.group_story import TOPIC, Story, endings


def ten_each() -> Story:
    """Ten acknowledged records in each of two partitions."""
    story = Story()
    for partition in (0, 1):
        story.produce(partition, *range(10))
    return story


def lines(story: Story, word: str) -> list[str]:
    return [line for line in story.report().lines() if line.startswith(word)]


# --- hand-overs that are lawful ---------------------------------------------------------------------------------------


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


# --- overlaps ---------------------------------------------------------------------------------------------------------


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


# --- committed offsets ------------------------------------------------------------------------------------------------


def test_a_planted_rewind_is_told_once_with_both_offsets() -> None:
    story = ten_each()
    a = story.member("a")
    a.claim(0)
    a.deliver(0, *range(8))
    a.commit(0, 8)
    a.commit(0, 3)
    a.commit(0, 5)
    a.commit(0, 9)
    [rewind] = story.report().rewinds
    assert (rewind.before.offset, rewind.after.offset, rewind.after.found) == (8, 3, False)
    [words] = lines(story, "rewind: the committed offset of orders-0 went back from 8 (committed by a (run")
    assert " to 3 (committed by a (run" in words


@pytest.mark.parametrize(("found", "words"), [(3, "to 3 (found by b"), (None, "to none (found by b")])
def test_a_claim_that_finds_less_than_was_committed_is_a_rewind(found: int | None, words: str) -> None:
    story = ten_each()
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    a.deliver(0, *range(8))
    a.commit(0, 8)
    a.release(0)
    story.committed.clear()
    if found is not None:
        story.committed[0] = found
    b.claim(0)
    assert words in lines(story, "rewind")[0]


def test_what_a_claim_does_not_know_is_not_judged() -> None:
    story = ten_each()
    a, b = story.member("a"), story.member("b")
    a.deliver(0, *range(8))
    a.commit(0, 8)
    b.recorder.claim(TOPIC, 0, story.now, None)
    assert story.report().rewinds == []


def test_an_answer_that_a_stopped_process_reads_late_is_no_rewind() -> None:
    story = ten_each()
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    a.deliver(0, *range(5))
    sent = a.recorder.flush()
    story.committed[0] = 5
    story.wait(50)
    b.claim(0)
    b.deliver(0, *range(5, 10))
    b.commit(0, 10)
    story.wait(1)
    a.recorder.commit(TOPIC, 0, sent, 5)
    assert story.report().faults == []
    a.commit(0, 5)  # but one that it sends now is
    assert [rewind.after.by.member for rewind in story.report().rewinds] == ["a"]


def test_a_declared_reset_excuses_the_rewind_and_what_it_skips() -> None:
    story = ten_each()
    a = story.member("a")
    a.claim(0)
    a.deliver(0, *range(6))
    a.commit(0, 6)
    a.release(0)
    for start in (2, 8):
        story.wait(1)
        story.producer.recorder.reset(TOPIC, 0, start)
        story.committed[0] = start
        a.claim(0)
        a.deliver(0, start, start + 1)
        a.commit(0, start + 2)
        a.release(0)
    report = story.report()
    assert report.faults == []
    assert not [note for note in report.notes if "orders-0" in note]
    a.commit(0, 7)
    assert len(story.report().rewinds) == 1, "the reset excuses what comes before it, not what comes after"


# --- losses -----------------------------------------------------------------------------------------------------------


def test_a_planted_loss_is_told_with_its_offsets_and_who_passed_them() -> None:
    story = ten_each()
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    a.deliver(0, 0, 1, 2, 6)
    a.commit(0, 2)
    a.commit(0, 5)
    a.release(0)
    b.claim(0)
    b.deliver(0, 7, 8)
    b.commit(0, 9)
    [loss] = story.report().losses
    assert "not judged: 1 records of orders-0, neither delivered nor passed" in story.report().notes
    assert (loss.partition, list(loss.offsets)) == (Partition(TOPIC, 0), [(3, 5)])
    assert (loss.passed.by.member, loss.passed.offset) == ("a", 5)
    assert "loss: 3 acknowledged records of orders-0 were delivered to nobody: 3–5; passed by 5 (committed by a" in \
        lines(story, "loss")[0]


def test_a_claim_that_finds_more_than_anybody_delivered_is_a_loss() -> None:
    story = ten_each()
    a = story.member("a")
    story.committed[0] = 4
    a.claim(0)
    a.deliver(0, *range(4, 10))
    a.commit(0, 10)
    [loss] = story.report().losses
    assert list(loss.offsets) == [(0, 3)]
    assert loss.passed.found


def test_duplicates_are_counted_and_not_called_a_loss() -> None:
    story = ten_each()
    a = story.member("a")
    a.claim(0)
    a.deliver(0, 0, 1, 2, 2, 1, 2, *range(3, 10))
    a.commit(0, 10)
    report = story.report()
    assert report.faults == []
    [again] = report.duplicates
    assert (again.records, list(again.offsets)) == (3, [(1, 2)])


def test_markers_of_transactions_are_no_loss() -> None:
    story = Story()
    story.produce(0, 0, 1, 3, 4)  # 2 and 5 are markers
    a = story.member("a")
    a.claim(0)
    a.deliver(0, 0, 1, 3, 4)
    a.commit(0, 6)
    report = story.report()
    assert report.faults == []
    assert not [note for note in report.notes if note.startswith("not judged")]


def test_what_compaction_took_is_no_loss_and_what_the_log_holds_still_is() -> None:
    story = ten_each()
    a = story.member("a")
    a.claim(0)
    a.deliver(0, 0, 1, 5, 9)
    a.commit(0, 10)
    assert [list(loss.offsets) for loss in story.report().losses] == [[(2, 4), (6, 8)]]
    recorder = story.member("reader").recorder
    recorder.held(TOPIC, 0, Ranges([(0, 1), (5, 6), (9, 9)]))
    assert [list(loss.offsets) for loss in story.report().losses] == [[(6, 6)]]


def test_what_no_commit_has_passed_is_not_judged_and_said_so() -> None:
    story = ten_each()
    a = story.member("a")
    a.claim(0)
    a.deliver(0, *range(4))
    a.commit(0, 4)
    report = story.report()
    assert report.faults == []
    assert "not judged: 6 records of orders-0, neither delivered nor passed" in report.notes


def test_without_acknowledgements_nothing_is_lost_and_it_is_said() -> None:
    story = Story()
    a = story.member("a")
    a.claim(0)
    a.deliver(0, 0, 5)
    a.commit(0, 6)
    report = story.report()
    assert (report.faults, report.gaps) == ([], [])
    assert report.notes == ["nothing acknowledged, so losses and gaps are not judged: orders-0"]


# --- gaps and owners --------------------------------------------------------------------------------------------------


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


# --- what cannot be judged --------------------------------------------------------------------------------------------


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
