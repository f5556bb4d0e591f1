"""What a capture reads: first, going on, and after everything that can happen to a log in between."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.pipeline.capture.plan import HOLES, Hole, Log, Range, following, plan, splits
from switchover.pipeline.outcome import JobFailed

ID, OTHER = "a" * 32, "b" * 32


def inputs(next_: Mapping[str, int], topic_id: str | None = ID) -> dict[str, object]:
    return {"offsets": {"topicId": topic_id, "next": dict(next_)}}


def log(topic_id: str | None = ID, **watermarks: tuple[int, int]) -> Log:
    return Log(topic_id, {int(name[1:]): each for name, each in watermarks.items()})


def test_the_first_capture_reads_all_there_is() -> None:
    found = plan({}, log(p0=(5, 20), p1=(0, 0)))
    assert found.ranges == (Range(0, 5, 20), Range(1, 0, 0))
    assert (found.holes, found.notes, found.records) == ((), (), 15)


def test_the_next_goes_on_where_the_last_ended() -> None:
    assert plan(inputs({"0": 12}), log(p0=(5, 20))).ranges == (Range(0, 12, 20),)


def test_a_partition_that_is_new_is_read_from_its_start() -> None:
    assert plan(inputs({"0": 20}), log(p0=(5, 20), p1=(0, 7))).ranges == (Range(0, 20, 20), Range(1, 0, 7))


def test_what_was_deleted_before_it_was_read_is_a_hole_and_said() -> None:
    found = plan(inputs({"0": 12}), log(p0=(15, 20)))
    assert found.ranges == (Range(0, 15, 20),)
    assert found.holes == (Hole(0, 12, 15),)
    assert following(found, {0: 20}, log(p0=(15, 20)))["holes"] == [{"partition": 0, "from": 12, "to": 15}]
    assert "offsets 12 to 14 were deleted before they were read" in found.notes[0]


def test_a_topic_made_again_is_read_anew_and_what_it_held_is_not_known() -> None:
    found = plan(inputs({"0": 12}), log(OTHER, p0=(0, 30)))
    assert found.ranges == (Range(0, 0, 30),)
    assert found.holes == (Hole(0, 12, None),)
    assert "deleted and created again" in found.notes[0]


def test_without_topic_ids_an_end_that_went_back_tells_it() -> None:
    assert plan(inputs({"0": 12}, None), log(None, p0=(0, 3))).holes
    assert not plan(inputs({"0": 12}, None), log(None, p0=(0, 13))).holes


def test_a_log_that_went_back_is_read_from_its_end_and_said() -> None:
    """Records of other content take offsets that were captured: those are no longer the log's."""
    found = plan(inputs({"0": 12}), log(p0=(0, 10)))
    assert found.ranges == (Range(0, 10, 10),)
    assert found.holes == (Hole(0, 10, 12),)
    assert "went back from 12 to 10" in found.notes[0]
    assert following(found, {}, log(p0=(0, 10)))["offsets"]["next"] == {"0": 10}


def test_a_partition_that_is_no_longer_named_is_refused() -> None:
    with pytest.raises(JobFailed, match=r"partitions \[1\] were captured before"):
        plan(inputs({"0": 12, "1": 3}), log(p0=(0, 12)))


def test_nothing_new_is_an_empty_range_for_each_partition() -> None:
    found = plan(inputs({"0": 12, "1": 3}), log(p0=(0, 12), p1=(3, 3)))
    assert (found.ranges, found.records, splits(found.ranges, 2)) == ((Range(0, 12, 12), Range(1, 3, 3)), 0, ())


def test_a_partition_that_was_planned_and_not_read_has_no_following() -> None:
    with pytest.raises(KeyError):
        following(plan({}, log(p0=(0, 5))), {}, log(p0=(0, 5)))


def test_the_next_inputs_are_what_was_reached_and_not_what_was_planned() -> None:
    """Behind an open transaction nothing is readable."""
    state = log(p0=(0, 10), p1=(4, 4))
    assert following(plan({}, state), {0: 8}, state) == {
        "offsets": {"topicId": ID, "next": {"0": 8, "1": 4}}, HOLES: []}


RANGES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12)


@given(RANGES, st.integers(1, 5))
def test_splits_hold_every_range_once_and_are_level(sizes: list[tuple[int, int]], count: int) -> None:
    ranges = [Range(number, begin, begin + size) for number, (begin, size) in enumerate(sizes)]
    parts = splits(ranges, count)
    assert sorted((each for part in parts for each in part), key=lambda each: each.partition) == [
        each for each in ranges if each.end > each.begin]
    assert len(parts) <= count
    loads = [sum(each.end - each.begin for each in part) for part in parts]
    largest = max((each.end - each.begin for each in ranges), default=0)
    if len(parts) == count:
        assert max(loads) - min(loads) <= largest


@given(st.lists(st.integers(0, 100), min_size=2, max_size=8))
def test_captures_one_after_the_other_tile_the_log(ends: list[int]) -> None:
    known: dict[str, object] = {}
    read: list[int] = []
    for end in sorted(ends):
        state = log(p0=(0, end))
        found = plan(known, state)
        read += [offset for each in found.ranges for offset in range(each.begin, each.end)]
        known = following(found, {0: end}, state)
    assert read == list(range(max(ends)))
