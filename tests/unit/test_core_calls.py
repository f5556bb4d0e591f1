"""What calls for people: once for each thing that is new, and never for what was told before."""

from dataclasses import replace
from typing import Any

import pytest

from made_reasons import fail
from switchover.api.kafka_migration import KafkaMigration
from switchover.cluster.plan import PLAN
from switchover.engine.calls import BLOCKERS_CALLED, Call, News, calls_of
from switchover.engine.plan import decide
from switchover.engine.status import findings_of
from unit.pictures import NOW, migration
from unit.small_plan import BACKWARD, intent
from unit.test_core_status import judged
from unit.test_kraft_status import PICTURES, Picture, fold, folded, hashed_of, on_record, taken_back


def calls(before: str, after: Picture, own: KafkaMigration | None = None, **wanted: Any) -> tuple[Call, ...]:
    """Of the pass that goes from one moment to another; what the pass before it saw is on record."""
    own = own or migration()
    first = folded(PICTURES[before](), own)
    return calls_of(first, folded(after, on_record(own, first), **wanted))


def reasons(told: tuple[Call, ...], *, warning: bool) -> list[str]:
    return [each.reason for each in told if each.warning is warning]


def test_what_stalls_it_is_a_warning_in_the_words_of_the_condition():
    (told,) = calls("MoveBrokers", PICTURES["MoveBrokers without dual write"]())
    assert (told.reason, told.warning, told.news) == ("Stalled", True, News.STALLED)
    assert told.message.startswith("MigrationNodeGone: ")


@pytest.mark.parametrize("name", PICTURES)
def test_what_was_told_is_not_told_again(name):
    own = migration()
    first = folded(PICTURES[name](), own)
    again = folded(PICTURES[name](), on_record(own, first))
    third = folded(PICTURES[name](), on_record(own, again))
    assert calls_of(again, third) == ()


def test_each_blocker_is_a_warning_with_its_cure():
    told = calls("Preflight", PICTURES["Preflight finds residue"]())
    assert reasons(told, warning=True) == ["Stalled", "Residue"]
    assert [each.news for each in told] == [News.STALLED, None], "one message for one standstill"
    (finding,) = [each for each in folded(PICTURES["Preflight finds residue"]()).findings if each.code == "Residue"]
    assert told[1].message == f"{finding.message}; {finding.cure}"


def test_of_many_blockers_the_first_are_called_and_all_are_in_the_status():
    one = folded(PICTURES["Preflight"]())
    found = replace(fail("Residue", "many"), findings=tuple(
        fail("Residue", "one of many", subject=str(number)) for number in range(BLOCKERS_CALLED + 5)))
    many = one.evolve(findings=findings_of(judged(Claims=(found, NOW, False))))
    assert len(many.findings) == BLOCKERS_CALLED + 5
    assert reasons(calls_of(one, many), warning=True) == ["Residue"] * BLOCKERS_CALLED


def test_a_hold_that_is_reached_is_told_once_and_is_no_warning():
    held = PICTURES["Finalize held"]()
    (told,) = calls("MoveBrokers", held)
    assert (told.reason, told.warning, told.news) == ("AwaitingApproval", False, News.HELD)
    assert told.message.startswith("Finalize waits for an approval of plan ")
    assert calls("Finalize held", held) == ()


def test_a_void_approval_is_a_warning():
    picture, own = PICTURES["Finalize held"](), migration()
    first = folded(picture, own)
    voided = replace(intent(), void={"Finalize": "alice's approval was given for plan abc"})
    after = fold(on_record(own, first), picture, decide(PLAN, picture, voided, {}, NOW))
    (told,) = calls_of(first, after)
    assert (told.reason, told.warning) == ("ApprovalVoid", True)
    assert "alice's approval" in told.message


def test_each_end_is_told_and_the_one_that_nobody_wished_is_a_warning():
    assert [(each.news, each.message) for each in calls("Finalize begun", PICTURES["HandOver"]())] == [
        (News.HELD, f"HandOver waits for an approval of plan {hashed_of(migration())}"),
        (News.SUCCEEDED, folded(PICTURES["HandOver"]()).summary)]
    wished = calls("MoveBrokers", taken_back(), migration(desiredState="RolledBack"), direction=BACKWARD)
    assert [(each.news, each.warning) for each in wished] == [(News.ROLLED_BACK, False)]
    going = PICTURES["MoveBrokers"]()
    turned = going.at(replace(going.position.turn(BACKWARD, NOW), failure="GroupLag"))
    begun = calls("MoveBrokers", turned, direction=BACKWARD)
    assert [(each.reason, each.about, each.news, each.warning) for each in begun] == [
        ("AutomaticRollback", "GroupLag", News.ROLLING_BACK, True)]
    own = migration()
    first = folded(turned, own, direction=BACKWARD)
    done = calls_of(first, folded(taken_back("GroupLag"), on_record(own, first), direction=BACKWARD))
    assert [(each.reason, each.about, each.news, each.warning) for each in done] == [
        ("Stalled", "GroupLag", News.STALLED, True)]
