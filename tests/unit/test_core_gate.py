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


def test_a_plain_gate_opens_with_its_first_pass():
    assert Passes().judge(PASS).open


@pytest.mark.parametrize("verdict", NOT_PASSING, ids=lambda verdict: verdict.outcome)
def test_only_a_pass_opens_a_gate(verdict):
    assert not Passes().judge(verdict).open


def test_a_gate_that_cannot_see_a_fact_answers_why():
    gate: Gate[Observed[int]] = Gate("Healthy", lambda fact: passed(
        f"{seen(fact, NOT_OBSERVED, 'broker 1', 'it answers', saying='no number: ')} is fine"))
    assert gate.check(Known(7, 0.0)).message == "7 is fine"
    blind = gate.check(Unknown("no answer"))
    assert (blind.outcome, blind.reason, blind.subject) == (Outcome.UNKNOWN, "NotObserved", "broker 1")
    assert (blind.message, blind.unblocks) == ("no number: no answer", "it answers")


def test_a_gate_that_wants_three_samples_opens_with_the_third():
    passes = Passes(samples=lambda _: 3)
    assert [passes.judge(PASS, now).open for now in (0.0, 1.0, 2.0)] == [False, False, True]


@pytest.mark.parametrize("verdict", NOT_PASSING, ids=lambda verdict: verdict.outcome)
def test_anything_but_a_pass_breaks_the_row(verdict):
    passes = Passes(samples=lambda _: 3)
    opened = [passes.judge(given).open for given in (PASS, PASS, verdict, PASS, PASS, PASS)]
    assert opened == [False, False, False, False, False, True]


def test_a_gate_that_must_hold_opens_only_after_that_time():
    passes = Passes(hold=lambda _: 10.0)
    assert [passes.judge(PASS, now).open for now in (0.0, 9.9, 10.0)] == [False, False, True]


def test_time_in_which_a_gate_was_closed_does_not_count_as_held():
    passes = Passes(hold=lambda _: 10.0)
    passes.judge(PASS, 0.0)
    passes.judge(NOT_PASSING[0], 5.0)
    assert not passes.judge(PASS, 11.0).open
    assert not passes.judge(PASS, 20.9).open
    assert passes.judge(PASS, 21.0).open


def test_samples_and_time_are_both_wanted():
    passes = Passes(samples=lambda _: 3, hold=lambda _: 10.0)
    assert [passes.judge(PASS, now).open for now in (0.0, 30.0, 31.0)] == [False, False, True]


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


def test_a_gate_without_patience_is_never_overdue():
    passes = Passes()
    passes.judge(NOT_PASSING[0], 0.0)
    assert not passes.judge(NOT_PASSING[0], 1e9).overdue


def test_a_gate_is_overdue_when_it_has_found_the_same_for_longer_than_its_patience():
    passes = Passes(patience=lambda _: 30.0)
    late = [passes.judge(NOT_PASSING[0], now).overdue for now in (0.0, 30.0, 30.1)]
    assert late == [False, False, True]


def test_what_cannot_be_observed_is_never_overdue():
    passes = Passes(patience=lambda _: 30.0)
    passes.judge(NOT_PASSING[2], 0.0)
    assert not passes.judge(NOT_PASSING[2], 1000.0).overdue


def test_patience_begins_with_the_finding_and_not_with_the_blindness_before_it():
    passes = Passes(patience=lambda _: 30.0)
    passes.judge(NOT_PASSING[2], 0.0)
    assert not passes.judge(NOT_PASSING[0], 100.0).overdue
    assert not passes.judge(NOT_PASSING[1], 130.0).overdue
    assert passes.judge(NOT_PASSING[0], 131.0).overdue


def test_a_pass_renews_patience():
    passes = Passes(patience=lambda _: 30.0)
    passes.judge(NOT_PASSING[0], 0.0)
    passes.judge(PASS, 20.0)
    assert not passes.judge(NOT_PASSING[0], 40.0).overdue
    assert passes.judge(NOT_PASSING[0], 71.0).overdue


def test_a_gate_that_passes_is_not_overdue_however_many_samples_it_still_wants():
    passes = Passes(samples=lambda _: 3, patience=lambda _: 1.0)
    passes.judge(PASS, 0.0)
    assert not passes.judge(PASS, 100.0).overdue


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
