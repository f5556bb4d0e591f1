"""The accounting that the demo's promises are measured with."""

import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "sandbox/apps"))

from history.ranges import Ranges
from load.accounting import QUIET, Activity, Audit, longest_gap


def history(written: float, **partitions: list[list[float]]) -> dict[str, Any]:
    return {
        "name": "member",
        "written": written,
        "partitions": {name[1:]: {"spans": spans, "records": 1} for name, spans in partitions.items()},
    }


def test_records_close_together_are_one_span_and_a_pause_begins_another() -> None:
    activity = Activity()
    for now in (10.0, 10.1, 10.1 + QUIET, 12.0):
        activity.note(now)
    assert activity.spans == [[10.0, 10.1 + QUIET], [12.0, 12.0]]
    assert activity.records == 4


def test_the_longest_gap_names_its_partition_and_its_time() -> None:
    gap = longest_gap([history(99, p0=[[0, 20], [21, 50]], p3=[[0, 30], [34, 50]])], 10, 50)
    assert (gap.partition, gap.start, gap.end, gap.seconds) == (3, 30, 34, 4)


def test_a_gap_counts_only_with_its_part_inside_the_window() -> None:
    recorded = history(99, p0=[[0, 5], [40, 60]])
    assert longest_gap([recorded], 30, 50).seconds == 10
    assert longest_gap([recorded], 0, 15).seconds == 10
    assert longest_gap([recorded], 45, 55).seconds == 0


def test_silence_until_the_end_of_the_window_is_a_gap() -> None:
    assert longest_gap([history(99, p0=[[0, 20]])], 10, 50).seconds == 30


def test_a_partition_that_never_had_a_record_is_a_gap_as_long_as_the_window() -> None:
    assert longest_gap([history(99, p0=[[0, 99]], p1=[])], 10, 50).seconds == 40


def test_a_partition_that_moves_between_members_has_no_gap_while_one_of_them_delivers() -> None:
    first = history(99, p0=[[0, 20]])
    second = history(99, p0=[[18, 60]])
    assert longest_gap([first, second], 0, 60).seconds == 0
    assert longest_gap([first], 0, 60).seconds == 40


def test_a_window_beyond_the_history_is_refused_instead_of_being_judged() -> None:
    with pytest.raises(ValueError, match=r"ends 1\.0 s before the window"):
        longest_gap([history(49, p0=[[0, 49]])], 10, 50)


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5)])
def test_an_empty_window_is_refused(start: float, end: float) -> None:
    with pytest.raises(ValueError, match="window is empty"):
        longest_gap([history(99, p0=[[0, 99]])], start, end)


def test_histories_without_a_partition_prove_nothing() -> None:
    with pytest.raises(ValueError, match="no history names a partition"):
        longest_gap([history(99)], 1, 2)


def test_what_was_acknowledged_and_is_not_in_the_log_is_lost_by_name() -> None:
    audit = Audit({("a", 0): Ranges([(0, 2)]), ("b", 1): Ranges([(0, 0)])})
    for value in (b"a:0:0:x", b"a:0:2:x", b"a:0:3:x"):
        audit.note(value, 0)
    result = audit.result()
    assert (result["acknowledged"], result["lost"], result["lostSample"]) == (4, 2, ["a:0:1", "b:1:0"])
    assert (result["duplicates"], result["read"], result["strangers"]) == (0, 3, 0)


def test_a_record_written_twice_is_a_duplicate_even_if_it_was_never_acknowledged() -> None:
    audit = Audit({})
    for number in (7, 7, 8, 7):
        audit.note(b"a:2:%d:x" % number, 2)
    assert audit.result()["duplicates"] == 2


@pytest.mark.parametrize("value", [b"", b"words", b"a:1", b"a:b:c:d", b"\xff\xfe", b"a:1:0:x"])
def test_a_record_that_is_not_ours_or_in_the_wrong_partition_proves_nothing(value: bytes) -> None:
    audit = Audit({("a", 1): Ranges([(0, 0)])})
    audit.note(value, 0)
    assert (audit.result()["strangers"], audit.result()["lost"]) == (1, 1)


@pytest.mark.parametrize("records", [20_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_millions_of_records_are_judged_in_the_memory_of_one_pod(records: int) -> None:
    """A long story has written 1.3 million; sets of their numbers were killed at 256 MiB."""
    audit = Audit({("a", 0): Ranges([(0, records - 1)])})
    tracemalloc.start()
    for number in range(records):
        audit.note(b"a:0:%d:x" % number, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (audit.result()["lost"], peak < 100_000) == (0, True)
