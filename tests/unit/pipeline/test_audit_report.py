"""The words of an audit: verdicts, what is missing, settings, and how hostile names are shown. No Spark."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from switchover.api.job_message import AuditVerdict, JobMessage, Result, read
from switchover.pipeline.audit.verdict import (
    KAFKA,
    LOGS,
    ZOOKEEPER,
    Activity,
    Report,
    around,
    begun_again,
    doubts,
    holes,
    missing,
    moment,
    of_group,
    shown,
    to_the_end,
    unread,
    unread_of_group,
)
from switchover.pipeline.config import AuditSettings
from switchover.pipeline.store import File, Manifest

GROUPS: list[dict[str, Any]] = [{"name": "g"}]


def report(**changes: Any) -> Report:
    return Report("c", ["g"], 0, 1000, 5000, **changes)


def capture(number: int, began: int, *tables: str, holes: object = None) -> Manifest:
    files = tuple(File(table, f"{table}-{number}", 1, 1, "") for table in tables)
    return Manifest(number, f"run-{number}", began, began + 50, {"holes": holes} if holes else {}, files=files)


@pytest.mark.parametrize(("found", "verdict"), [
    ({}, AuditVerdict.CLEAN),
    ({"undecided": {"gap": 1}}, AuditVerdict.INDETERMINATE),
    ({"doubts": ["Kafka was never captured"]}, AuditVerdict.INDETERMINATE),
    ({"violations": {"twice": 1}}, AuditVerdict.VIOLATIONS),
    ({"violations": {"twice": 1}, "undecided": {"gap": 1}, "doubts": ["a hole"]}, AuditVerdict.VIOLATIONS),
])
def test_clean_is_what_nothing_speaks_against(found: dict[str, Any], verdict: AuditVerdict) -> None:
    assert report(**found).verdict is verdict


def test_a_covered_range_has_no_doubts() -> None:
    assert doubts([capture(0, 100, "ends"), capture(1, 900, "commits")], 100, 900, ["Kafka"]) == []


@pytest.mark.parametrize(("captures", "words"), [
    ([], "nothing was captured of Kafka"),
    ([capture(0, 100, "znodes")], "nothing was captured of Kafka"),
    ([capture(0, 101, "ends"), capture(1, 900, "ends")], "first capture of Kafka began"),
    ([capture(0, 100, "ends"), capture(1, 899, "ends")], "last capture of Kafka began"),
    ([capture(0, 100, "ends"), capture(1, 800, "ends"), capture(2, 900, "transactions")], "last capture of Kafka began"),
])
def test_what_was_not_captured_is_told(captures: list[Manifest], words: str) -> None:
    found = doubts(captures, 100, 900, ["Kafka"])
    assert len(found) == 1
    assert words in found[0]


def test_a_hole_counts_where_it_was_found_in_the_range() -> None:
    one, two = {"partition": 3, "from": 5, "to": 9}, {"partition": 4, "from": 1, "to": 2}
    captures = [capture(0, 100, "ends"), capture(1, 200, "ends", holes=[one]), capture(2, 300, "ends"),
                capture(3, 400, "ends", holes=[one, two])]
    assert len(holes(captures, 100, 400)) == 3
    assert holes(captures, 200, 300) == []
    assert [each[:9] for each in holes(captures, 250, 400)] == ["capture 3"] * 2
    assert holes(captures, 400, 500) == []


def test_a_log_that_began_anew_is_a_hole() -> None:
    captures = [Manifest(number, "r", 100 * number, 100 * number, {"offsets": {"next": {"0": offset, "1": 5}}})
                for number, offset in enumerate((10, 20, 7, 9))]
    assert holes(captures, 0, 1000) == ["capture 2 found another __consumer_offsets, which begins again"]
    assert holes(captures, 200, 1000) == []


def test_captures_that_found_another_log_are_known_by_partition() -> None:
    def found(number: int, following: dict[str, int], *holes: dict[str, object]) -> Manifest:
        return Manifest(number, "r", 100 * number, 100 * number, {"offsets": {"next": following}, "holes": list(holes)})

    went_back, deleted = {"partition": 0, "from": 7, "to": 20}, {"partition": 1, "from": 5, "to": 9}
    again = [{"partition": number, "from": 30, "to": None} for number in (0, 1)]
    captures = [found(0, {"0": 20, "1": 5}), found(1, {"0": 7, "1": 9}, went_back, deleted),
                capture(2, 200, "znodes", holes=[{"zxid": True, "from": 1, "to": None}]),
                found(3, {"0": 40, "1": 40}, *again), found(4, {"0": 41, "1": 41})]
    assert begun_again(captures) == {0: [1, 3], 1: [3]}
    assert begun_again(captures[:1]) == {}


def test_what_is_missing_is_told_together_and_says_of_which_groups_nothing_is_proven() -> None:
    captures = [capture(0, 100, "ends"), capture(1, 300, "ends")]
    seen = {"g": IN_KAFKA, "h": replace(IN_KAFKA, described=0)}
    found = missing(captures, 200, 300, ["g", "h", "i"], seen)
    assert (found.groups, found.to_the_end) == (("h",), True)
    assert [words.partition(":")[0] for words in found.doubts] == ["group h", "group i is not known"]
    unreadable = [captures[0], replace(captures[1], counts={"bad value": 1})]
    assert missing(unreadable, 200, 400, ["g", "h"], seen).groups == ("g", "h")
    assert not missing(unreadable, 200, 400, ["g", "h"], seen).to_the_end


@pytest.mark.parametrize(("logs", "words"), [
    ((True, True, True), ""),
    ((True, False, True), ""),
    ((False, False, False), "polls do not show"),
    ((False, True, True), "first capture of ZooKeeper's transaction logs began"),
    ((True, True, False), "last capture of ZooKeeper's transaction logs began"),
])
def test_zookeeper_is_covered_by_its_logs_over_all_of_the_range(logs: tuple[bool, ...], words: str) -> None:
    captures = [capture(number, 100 * number, "ends", "znodes", *["transactions"] * read)
                for number, read in enumerate(logs)]
    found = doubts(captures, 0, 200, [KAFKA, ZOOKEEPER, LOGS])
    assert len(found) == bool(words)
    assert words in "".join(found)


def test_records_that_could_not_be_read_count_where_they_may_be_of_the_range() -> None:
    captures = [Manifest(number, "r", 100 * number, 100 * number + 50, counts=counts) for number, counts in enumerate((
        {"unknown commit version 5": 1}, {"unknown commit version 5": 2, "tombstone": 9, "type 4": 9, "bad assignment": 9},
        {"unknown commit version 5": 4, "bad value": 8}, {"bad key": 16}))]
    assert [each.partition(":")[0] for each in unread(captures, 120, 200)] == [
        "8 captured records could not be read (bad value)",
        "6 captured records could not be read (unknown commit version 5)"]
    assert len(unread(captures, 0, 1000)) == 3
    assert unread(captures, 350, 400) == []


def test_a_group_of_which_nothing_is_known_is_not_clean() -> None:
    assert [["is not known" in each for each in of_group("g", seen)] for seen in (None, Activity())] == [[True], [True]]
    assert "nothing in the range" in of_group("g", Activity(commits=5))[0]
    assert of_group("g", Activity(commits=5, in_range=1)) == []


IN_KAFKA = Activity(commits=5, in_range=1, in_kafka=5, log_partition=3, described=2)


@pytest.mark.parametrize(("seen", "words"), [
    (IN_KAFKA, ""),
    (replace(IN_KAFKA, unread=3), "3 assignments of members could not be read"),
    (replace(IN_KAFKA, described=0), "no capture of the range describes it"),
    (replace(IN_KAFKA, described=0, in_kafka=0), ""),                   # all of it is in ZooKeeper
    (replace(IN_KAFKA, other_types=1), "a type whose members are not read"),
    (replace(IN_KAFKA, members=2), "no record of them was captured"),
    (replace(IN_KAFKA, members=2, records=1), ""),
    (replace(IN_KAFKA, log_partition=4), "records of __consumer_offsets-4"),
    (replace(IN_KAFKA, ever_in_zookeeper=1), "transactions of ZooKeeper were gone"),
])
def test_what_was_not_read_of_a_group_is_told_of_it_alone(seen: Activity, words: str) -> None:
    gone = [{"partition": 4, "from": 1, "to": 2}, {"zxid": True, "from": 5, "to": 6}]
    captures = [capture(0, 100, "ends", holes=[{"partition": 3, "from": 0, "to": 1}]), capture(1, 200, "ends", holes=gone),
                capture(2, 300, "ends")]
    found = unread_of_group("g", seen, captures, 100, 300)
    assert len(found) == bool(words)
    assert all(each.startswith("group g: ") for each in found)
    assert words in "".join(found)
    assert unread_of_group("g", replace(seen, described=2, members=0, other_types=0, unread=0), captures, 200, 300) == []


def test_a_group_that_nobody_knows_has_nothing_that_was_not_read() -> None:
    assert unread_of_group("g", None, [], 0, 1) == []


def test_a_range_is_described_from_the_capture_before_it_to_the_one_after_it() -> None:
    captures = [capture(number, 100 * number, "ends") for number in range(6)]
    assert around(captures, 150, 350) == (100, 450)
    assert around(captures, 200, 300) == (200, 350)
    assert around(captures[3:], 150, 900) == (150, 900)


@pytest.mark.parametrize(("captures", "read"), [
    ([capture(0, 100, "ends"), capture(1, 200, "ends")], True),
    ([capture(0, 100, "ends"), capture(1, 199, "ends")], False),
    ([capture(0, 100, "ends"), capture(1, 200, "znodes")], False),
    ([], False),
])
def test_commits_are_read_to_the_end_by_a_capture_of_kafka_that_began_after_it(captures: list[Manifest], read: bool) -> None:
    assert to_the_end(captures, 200) is read


@given(st.lists(st.text(max_size=500), max_size=9), st.lists(st.text(max_size=500), max_size=9), st.booleans())
def test_the_outcome_fits_a_termination_message(sentences: list[str], missing: list[str], found: bool) -> None:
    told = report(sentences=[shown(each, 200)[:200] for each in sentences], doubts=[shown(each, 200) for each in missing],
                     violations={"twice": 2**62} if found else {}, records_twice=10**30)
    evidence = tuple(told.evidence())
    left = read(JobMessage("audit", Result.SUCCEEDED, told.verdict, evidence=evidence, more=told.summary()).line())
    assert (left.audit_verdict(), left.evidence) == (told.verdict, evidence), "nothing of it was cut"
    assert len(evidence) <= 5


def test_evidence_begins_with_what_made_the_verdict() -> None:
    assert report(sentences=["twice"], doubts=["hole"], violations={"twice": 1}).evidence() == ["twice", "hole"]
    assert report(sentences=["gap"], doubts=["hole"], undecided={"gap": 1}).evidence() == ["hole", "gap"]


@given(st.text(max_size=200), st.integers(8, 60))
@example("000000000", 8)
def test_a_name_is_shown_without_what_could_deceive(name: str, longest: int) -> None:
    told = shown(name, longest)
    assert told.isprintable()
    assert told.isascii()
    assert told == name or told.startswith("'") or told.startswith('"') or len(name) > longest


def test_long_and_hostile_names() -> None:
    assert shown("orders-2.x_y") == "orders-2.x_y"
    assert shown("a\nb\x00\u202e") == r"'a\nb\x00\u202e'"
    assert len(shown("x" * 65_536)) < 70
    assert shown("") == "''"
    assert moment(0) == "1970-01-01T00:00:00.000Z"
    assert moment(2**62) == f"{2**62} ms"


def test_times_are_ms_or_have_a_zone() -> None:
    told = AuditSettings.model_validate({"groups": GROUPS, "since": "2026-11-22T10:00:00Z", "until": 1_900_000_000_000})
    assert told.since == 1_795_341_600_000
    assert told.until == 1_900_000_000_000
    assert told.guard_band_ms == 5000
    assert told.capture


@pytest.mark.parametrize(("changed", "words"), [
    ({"since": "2026-11-22T10:00:00"}, "zone"),
    ({"since": "yesterday"}, "yesterday"),
    ({"since": 10, "until": 10}, "later than since"),
    ({"groups": []}, "at least 1"),
    ({"groups": [{"name": "g"}, {"name": "g"}]}, "twice"),
    ({"groups": [{"name": "g", "expected": "Full"}]}, "Drained"),
    ({"guardBandMs": -1}, "greater than or equal to 0"),
    ({"guardband": 5}, "Extra inputs"),
])
def test_settings_that_cannot_be_meant_are_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        AuditSettings.model_validate({"groups": GROUPS, "since": 0, **changed})


def test_the_report_tells_all_in_plain_words() -> None:
    text = report(violations={"twice": 2}, undecided={"gap": 1}, records_twice=70, records_doubled=50, sentences=["s1"],
                  doubts=["d1"], hand_overs=3, longest_hand_over=1200).text()
    for words in ("Audit of cluster c: Violations", "2 x twice", "1 x gap", "50 records", "s1", "d1", "1200 ms"):
        assert words in text
