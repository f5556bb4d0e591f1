"""Gates and their streaks: when a pass counts, when it does not, and how long is too long."""

import pytest

from made_reasons import fail, unknown, wait
from switchover.answers.observed import Known, Observed, Unknown
from switchover.api.status import Verdict as Outcome
from switchover.engine.gate import Gate, Judge, Judgement, Streak, Verdict, passed, seen
from switchover.reasons.walk import NOT_OBSERVED

PASS = passed("all is well")
NOT_PASSING = [wait("Waiting", "not yet"), fail("Failed", "somebody must act"), unknown("NotObserved", "no answer")]


class Passes:
    """Judges one gate pass after pass, as the reconciler does."""

    def __init__(self, scope: str = "1/Forward/Move/0", **gate: object) -> None:
        self.scope = scope
        self.gate: Gate[Verdict] = Gate("Healthy", lambda verdict: verdict, **gate)  # type: ignore[arg-type]
        self.streaks: dict[str, Streak] = {}

    def judge(self, verdict: Verdict, now: float = 0.0) -> Judgement:
        judge: Judge[Verdict] = Judge(self.scope, self.streaks, now)
        judge.all_open([self.gate], verdict)
        self.streaks = dict(judge.next_streaks())
        return judge.judged["Healthy"]


WAITS, FAILS, BLIND = NOT_PASSING
THREE, TEN_SECONDS, PATIENT = {"samples": lambda _: 3}, {"hold": lambda _: 10.0}, {"patience": lambda _: 30.0}
OPENS = {
    "a plain gate, with its first pass": ({}, [(PASS, 0.0, True)]),
    **{f"by a pass alone, not by {each.outcome}": ({}, [(each, 0.0, False)]) for each in NOT_PASSING},
    "one that wants three samples, with the third": (THREE, [(PASS, 0.0, False), (PASS, 1.0, False), (PASS, 2.0, True)]),
    **{f"three in a row, which {each.outcome} breaks": (THREE, [
        (PASS, 0.0, False), (PASS, 0.0, False), (each, 0.0, False), (PASS, 0.0, False), (PASS, 0.0, False),
        (PASS, 0.0, True)]) for each in NOT_PASSING},
    "one that must hold, after that time": (TEN_SECONDS, [(PASS, 0.0, False), (PASS, 9.9, False), (PASS, 10.0, True)]),
    "not for the time in which it was closed": (TEN_SECONDS, [
        (PASS, 0.0, False), (WAITS, 5.0, False), (PASS, 11.0, False), (PASS, 20.9, False), (PASS, 21.0, True)]),
    "where both are wanted, with both": (THREE | TEN_SECONDS, [(PASS, 0.0, False), (PASS, 30.0, False), (PASS, 31.0, True)]),
}
OVERDUE = {
    "never without patience": ({}, [(WAITS, 0.0, False), (WAITS, 1e9, False)]),
    "after the same for longer": (PATIENT, [(WAITS, 0.0, False), (WAITS, 30.0, False), (WAITS, 30.1, True)]),
    "never for what cannot be observed": (PATIENT, [(BLIND, 0.0, False), (BLIND, 1000.0, False)]),
    "from the finding on, not from the blindness before it": (PATIENT, [
        (BLIND, 0.0, False), (WAITS, 100.0, False), (FAILS, 130.0, False), (WAITS, 131.0, True)]),
    "not before a pass is as long ago": (PATIENT, [
        (WAITS, 0.0, False), (PASS, 20.0, False), (WAITS, 40.0, False), (WAITS, 71.0, True)]),
    "not while it passes, however many samples it wants": (THREE | {"patience": lambda _: 1.0}, [
        (PASS, 0.0, False), (PASS, 100.0, False)]),
}


@pytest.mark.parametrize("what", OPENS)
def test_when_a_gate_opens(what):
    gate, row = OPENS[what]
    passes = Passes(**gate)
    assert [passes.judge(verdict, now).open for verdict, now, _ in row] == [opened for *_, opened in row]


@pytest.mark.parametrize("what", OVERDUE)
def test_when_a_gate_is_overdue(what):
    gate, row = OVERDUE[what]
    passes = Passes(**gate)
    assert [passes.judge(verdict, now).overdue for verdict, now, _ in row] == [late for *_, late in row]


def test_a_gate_that_cannot_see_a_fact_answers_why():
    gate: Gate[Observed[int]] = Gate("Healthy", lambda fact: passed(
        f"{seen(fact, NOT_OBSERVED, 'broker 1', 'it answers', saying='no number: ')} is fine"))
    assert gate.check(Known(7, 0.0)).message == "7 is fine"
    blind = gate.check(Unknown("no answer"))
    assert (blind.outcome, blind.reason, blind.subject) == (Outcome.UNKNOWN, "NotObserved", "broker 1")
    assert (blind.message, blind.unblocks) == ("no number: no answer", "it answers")


def test_a_gate_that_was_not_judged_in_a_pass_begins_its_row_anew():
    passes = Passes(samples=lambda _: 2)
    passes.judge(PASS)
    skipped: Judge[Verdict] = Judge(passes.scope, passes.streaks, 1.0)
    passes.streaks = dict(skipped.next_streaks())
    assert not passes.judge(PASS).open
    assert passes.judge(PASS).open


def test_an_operator_that_restarts_counts_anew():
    passes = Passes(samples=lambda _: 2)
    passes.judge(PASS)
    passes.streaks = {}
    assert not passes.judge(PASS).open


def test_a_row_of_another_step_direction_or_batch_does_not_count():
    passes = Passes(samples=lambda _: 2)
    for scope in ("1/Forward/Move/1", "1/Backward/Move/0", "1/Forward/Settle/0", "2/Forward/Move/0"):
        passes.scope = "1/Forward/Move/0"
        passes.judge(PASS)
        passes.scope = scope
        assert not passes.judge(PASS).open


def test_the_row_tells_since_when_a_gate_passes_and_how_often():
    passes = Passes()
    passes.judge(NOT_PASSING[0], 1.0)
    passes.judge(PASS, 2.0)
    assert passes.judge(PASS, 3.0).streak == Streak(Outcome.PASS, since=2.0, passes=2)


def test_every_gate_is_judged_even_after_one_is_closed():
    judge: Judge[Verdict] = Judge("scope", {}, 0.0)
    gates: list[Gate[Verdict]] = [
        Gate("Closed", lambda _: wait("Waiting", "not yet")), Gate("Open", lambda _: passed())]
    assert not judge.all_open(gates, PASS)
    assert {name: item.open for name, item in judge.judged.items()} == {"Closed": False, "Open": True}


def test_no_gate_at_all_is_open():
    judge: Judge[Verdict] = Judge("scope", {}, 0.0)
    assert judge.all_open([], PASS)


def test_figures_of_a_verdict_become_words():
    verdict = wait("Lag", "behind", observed=7, threshold=3)
    assert (verdict.observed, verdict.threshold) == ("7", "3")


def test_unknown_says_what_would_unblock_it():
    assert unknown("NotObserved", "no answer").unblocks


# --- what was proven ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verdict", "spoils"), [(PASS, False), *zip(NOT_PASSING, (True, True, False), strict=True)])
def test_what_is_found_makes_void_what_was_proven_and_what_cannot_be_seen_does_not(verdict, spoils):
    assert Passes().judge(verdict).spoils is spoils


def test_what_passes_by_itself_within_its_grace_makes_nothing_void_and_opens_nothing():
    passes = Passes(grace=60.0)
    judged = [passes.judge(verdict, now) for verdict, now in ((NOT_PASSING[0], 0.0), (NOT_PASSING[1], 59.0), (PASS, 60.0),
                                                              (NOT_PASSING[0], 61.0), (NOT_PASSING[0], 121.0))]
    assert [item.spoils for item in judged] == [False, False, False, False, True]
    assert [item.open for item in judged] == [False, False, True, False, False]
