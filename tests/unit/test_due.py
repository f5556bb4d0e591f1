"""When a migration is looked at again: facts of a decision in, seconds out."""

from dataclasses import replace

import pytest

from made_reasons import fail, unknown, wait
from switchover.engine.effects import Evict
from switchover.engine.gate import Judgement, Streak, passed
from switchover.engine.pace import AT_ONCE, ENDED, MOVING, STANDING, WAITING, due, is_moving
from switchover.engine.plan import Decision
from switchover.engine.position import Batch, Position

NOW = 10_000.0
AT = Position(step="Rollout", opened=NOW - 500)
SHUT = replace(AT, opened=None)
BATCH = replace(AT, batch=Batch(0, ("a",), NOW - 100))
WAITS = wait("GroupNotStable", "it is rebalancing")
PAUSED = wait("Paused", "the migration is paused")
CLOSED = wait("OutsideWindow", "the window opens on Sunday")
BLOCKED = fail("GroupEmpty", "it has no members")


LONG_AGO = 3600.0


def judged(gate, verdict, *, is_open=False, held=("", "")):
    return {gate: Judgement(gate, verdict, Streak(verdict.outcome, NOW - LONG_AGO, 1), is_open, overdue=False, held=held)}


def decision(at, effects=(), stalled=None, **gates):
    told = {gate: each for found in gates.values() for gate, each in found.items()}
    return Decision(at, effects, told, {}, "", stalled)


def stalled():
    found = judged("Group", BLOCKED)
    return decision(AT, stalled=found["Group"], found=found)


@pytest.mark.parametrize(("before", "decided", "seconds"), [
    pytest.param(AT, decision(BATCH), AT_ONCE, id="recorded"),
    pytest.param(AT, decision(AT, (Evict("a", "uid"),)), MOVING, id="acts"),
    pytest.param(BATCH, decision(BATCH, found=judged("Ready", WAITS)), MOVING, id="a batch moves"),
    pytest.param(BATCH, decision(BATCH, (Evict("a", "uid"),), found=judged("Paused", PAUSED)), MOVING,
                 id="acts although it is paused"),
    pytest.param(AT, decision(AT, found=judged("Group", WAITS)), MOVING, id="waits for a gate under way"),
    pytest.param(AT, decision(AT, found=judged("Lag", unknown("LagUnknown", "no answer"))), MOVING, id="cannot see"),
    pytest.param(SHUT, decision(SHUT, found=judged("Group", WAITS)), WAITING, id="waits to begin, however long"),
    pytest.param(AT, decision(AT, found=judged("Paused", PAUSED)), STANDING, id="is paused"),
    pytest.param(AT, decision(AT, a=judged("Paused", PAUSED), b=judged("Group", passed(), held=("1 passes", "3"))), WAITING,
                 id="is paused, and a gate counts passes"),
    pytest.param(BATCH, decision(BATCH, found=judged("Paused", PAUSED)), STANDING, id="is paused in a batch"),
    pytest.param(AT, decision(AT, found=judged("WithinWindow", CLOSED)), STANDING, id="waits for its window"),
    pytest.param(AT, decision(AT, found=judged("Approval", wait("AwaitingApproval", "it waits"))), STANDING,
                 id="waits for an approval"),
    pytest.param(AT, stalled(), STANDING, id="blocked"),
    pytest.param(replace(AT, finished=True), decision(replace(AT, finished=True)), ENDED, id="ended"),
    pytest.param(replace(AT, finished=True), decision(replace(AT, finished=True), found=judged("Record", BLOCKED)), STANDING,
                 id="ended, by a record that nobody believes"),
])
def test_what_it_does_decides(before, decided, seconds):
    assert due(before, decided, NOW, NOW - LONG_AGO) == seconds


@pytest.mark.parametrize(("ago", "seconds"), [(0.0, WAITING), (11.9, WAITING), (40.0, 10.0), (LONG_AGO, STANDING)])
def test_of_what_stands_still_the_looks_grow_apart_once_there_are_no_news(ago, seconds):
    assert due(AT, decision(AT, found=judged("Paused", PAUSED)), NOW, NOW - ago) == seconds
    assert due(AT, stalled(), NOW, NOW - ago) == seconds


def test_an_operator_that_finds_everything_as_it_is_on_record_looks_seldom_from_the_start():
    assert due(AT, decision(AT, found=judged("Paused", PAUSED)), NOW, -float("inf")) == STANDING


def test_only_what_moves_goes_before_others():
    assert [is_moving(each) for each in (AT_ONCE, MOVING, WAITING, STANDING)] == [True, True, False, False]
