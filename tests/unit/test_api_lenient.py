"""What `lenient` makes of statuses that another release or another hand has written."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from pydantic import ValidationError

from switchover.api.consumer_group_migration import ConsumerGroupMigrationStatus
from switchover.api.kafka_migration import KafkaMigrationSpec, KafkaMigrationStatus
from switchover.api.lenient import given, lenient
from switchover.api.status import MigrationStatus, Verdict

MOVE = {"time": "2026-11-18T11:00:00Z", "to": "Preflight", "reason": "StepDone"}
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), lambda each: st.lists(each, max_size=3))


def read(**status: Any) -> tuple[MigrationStatus, str]:
    return lenient(MigrationStatus, status)


@pytest.mark.parametrize("model", [KafkaMigrationStatus, ConsumerGroupMigrationStatus])
def test_what_is_right_is_read_as_by_the_operator(model: type[MigrationStatus]) -> None:
    kind = model.__name__.removesuffix("Status").lower()
    status = json.loads((Path(__file__).parent / "last_release" / f"{kind}.json").read_text())["status"]
    assert lenient(model, {**status, "ofANewerRelease": [1]}) == (model.model_validate(status), "")


def test_what_is_not_there_is_told_from_its_default() -> None:
    status, left = read(phase="Paused")
    assert (status.attempt, given(status, "attempt"), given(status, "phase"), left) == (1, None, "Paused", "")


@pytest.mark.parametrize("found", [None, [], "status", 3])
def test_what_is_no_object_has_nothing(found: Any) -> None:
    assert lenient(MigrationStatus, found) == (MigrationStatus(), "")


def test_a_field_of_another_type_is_left_out_by_its_name_and_the_others_stay() -> None:
    status, left = read(attempt="many", planHash="ab", progress={"percent": [], "step": "Soak"})
    assert (given(status, "attempt"), status.plan_hash, status.progress.step) == (None, "ab", "Soak")
    assert given(status.progress, "percent") is None
    assert [each.partition(":")[0] for each in left.split("; ")] == ["attempt", "progress.percent"]


def test_an_object_in_a_list_that_lacks_a_field_is_left_out_by_its_name_and_the_others_stay() -> None:
    other = {**MOVE, "to": "Rehearse"}
    status, left = read(history=[{"to": "Soak", "reason": "Moved"}, MOVE, None, {**MOVE, "time": "noon"}, other])
    assert [each.to for each in status.history] == ["Preflight", "Rehearse"]
    assert [each.partition(":")[0] for each in left.split("; ")] == ["history.0.time", "history.2", "history.3.time"]


def test_all_that_is_left_out_is_counted() -> None:
    _, left = read(history=[{**MOVE, "time": "noon"}] * 30, findings=[{"code": "A"}])
    assert [each.partition(":")[0] for each in left.split("; ")] == [
        *(f"history.{index}.time" for index in range(5)), "and 27 more"]


def test_what_a_later_look_finds_is_named_by_its_place_in_what_was_found() -> None:
    """Once ten are gone, since the list is too long, the item at 48 is the one that stood at 58."""
    status, left = read(history=[*[MOVE] * 58, {**MOVE, "time": "noon"}, MOVE])
    assert len(status.history) == 49
    assert [each.partition(":")[0] for each in left.split("; ")] == ["history", "history.58.time"]


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-10:00", "0001-01-01T00:00:00+10:00"])
def test_a_time_that_no_clock_has_in_utc_is_left_out(time: str) -> None:
    status, left = read(history=[{**MOVE, "time": time}, MOVE])
    assert ([each.to for each in status.history], left) == (
        ["Preflight"], "history.0.time: Value error, must be in the years 1 to 9999 in UTC")


def test_values_are_never_those_of_other_times() -> None:
    series = {"name": "A", "values": [1, "x", 3]}
    status, left = read(measurements={"times": ["2026-11-18T11:00:00Z"] * 3, "series": [series]})
    assert (status.measurements.series[0].values, left.partition(":")[0]) == ((), "measurements.series.0.values.1")


def test_of_a_list_that_is_too_long_the_last_are_read() -> None:
    status, left = read(history=[{**MOVE, "to": f"S{number}"} for number in range(60)])
    assert ([each.to for each in status.history], left.partition(":")[0]) == ([f"S{n}" for n in range(10, 60)], "history")


def test_a_value_of_a_newer_release_is_no_other_value() -> None:
    """The operator reads a phase that it does not know as Pending, and writes it again. Whoever shows it must not."""
    waiting = {"gate": "G", "reason": "R", "verdict": "Maybe"}
    assert MigrationStatus.model_validate({"phase": "Asleep"}).phase == "Pending"
    status, left = read(phase="Asleep", waitingFor=[waiting])
    assert (given(status, "phase"), left.partition(":")[0]) == (None, "phase")
    assert status.waiting_for[0].verdict is Verdict.UNKNOWN


def test_an_object_that_lacks_what_it_must_have_is_refused() -> None:
    with pytest.raises(ValidationError, match="zookeeper"):
        lenient(KafkaMigrationSpec, {})


@drawn(st.dictionaries(st.sampled_from([field.alias or "" for field in KafkaMigrationStatus.model_fields.values()]), JSON))
def test_any_status_is_read(status: dict[str, Any]) -> None:
    found, left = lenient(KafkaMigrationStatus, status)
    assert left or KafkaMigrationStatus.model_validate(status) == found
