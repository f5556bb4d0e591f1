"""Committed offsets that went back, records that were passed and delivered to nobody, and what excuses them."""

import pytest

from history.events import Partition
from history.ranges import Ranges
from unit.group_story import TOPIC, Story, lines, ten_each


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


def test_a_loss_names_who_passed_it_and_not_who_was_sent_over_it() -> None:
    story = ten_each()
    a, b = story.member("a"), story.member("b")
    for member, start, end in ((a, 8, 10), (b, 2, 5)):
        story.producer.recorder.reset(TOPIC, 0, start)
        story.committed[0] = start
        member.claim(0)
        member.deliver(0, *range(start, end - 1))
        member.commit(0, end)
        member.release(0)
    [loss] = story.report().losses
    assert (list(loss.offsets), loss.passed.by.member) == ([(4, 4), (9, 9)], "b")


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
