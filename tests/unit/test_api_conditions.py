"""Conditions: transition times, and never Reconciling and Stalled together."""

from datetime import UTC, datetime, timedelta

import pytest

from switchover.api.conditions import Condition, ConditionStatus, ConditionType, find_condition, set_condition

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def test_a_new_condition_goes_to_the_end_with_the_time_of_now():
    ready = set_condition((), ConditionType.READY, False, "Running", "step Soak", NOON, 1)
    both = set_condition(ready, ConditionType.PAUSED, True, "Asked", "spec.desiredState is Paused", LATER, 2)
    assert [condition.type for condition in both] == ["Ready", "Paused"]
    assert both[1] == Condition(
        type="Paused",
        status="True",
        reason="Asked",
        message="spec.desiredState is Paused",
        last_transition_time=LATER,
        observed_generation=2,
    )


def test_the_transition_time_stays_while_the_status_stays():
    before = set_condition((), ConditionType.READY, False, "Running", "step Soak", NOON, 1)
    same = set_condition(before, ConditionType.READY, False, "Waiting", "step Finalize", LATER, 2)
    assert (same[0].last_transition_time, same[0].reason, same[0].observed_generation) == (NOON, "Waiting", 2)
    changed = set_condition(same, ConditionType.READY, True, "Succeeded", "", LATER, 2)
    assert changed[0].last_transition_time == LATER
    unknown = set_condition(changed, ConditionType.READY, ConditionStatus.UNKNOWN, "Lost", "", NOON, 2)
    assert (unknown[0].status, unknown[0].last_transition_time) == (ConditionStatus.UNKNOWN, NOON)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ConditionType.RECONCILING, ConditionType.STALLED),
        (ConditionType.STALLED, ConditionType.RECONCILING),
    ],
)
def test_reconciling_and_stalled_are_never_true_together(first, second):
    conditions = set_condition((), first, True, "A", "", NOON, 1)
    conditions = set_condition(conditions, second, True, "PatienceExceeded", "CopyMetadata stands", LATER, 1)
    displaced = find_condition(conditions, first)
    assert displaced is not None
    assert (displaced.status, displaced.last_transition_time) == (ConditionStatus.FALSE, LATER)
    assert displaced.message == f"{second}: CopyMetadata stands"


def test_turning_one_of_them_false_leaves_the_other_alone():
    conditions = set_condition((), ConditionType.RECONCILING, True, "A", "", NOON, 1)
    conditions = set_condition(conditions, ConditionType.STALLED, False, "Moving", "", LATER, 1)
    reconciling = find_condition(conditions, ConditionType.RECONCILING)
    assert reconciling is not None
    assert reconciling.status is ConditionStatus.TRUE


def test_setting_the_same_condition_again_changes_nothing():
    once = set_condition((), ConditionType.STALLED, True, "A", "b", NOON, 1)
    assert set_condition(once, ConditionType.STALLED, True, "A", "b", LATER, 1) == once


def test_a_condition_that_is_not_there_is_not_found():
    assert find_condition((), ConditionType.READY) is None
