"""When the gate enters Pass, when it leaves, what becomes a failure, and what is kept from one evaluation to the next."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.lag.group import Evaluation, Group, TopicPartition, evaluate, worst
from switchover.lag.hysteresis import LIMIT, State, fold, restored, stored
from switchover.lag.thresholds import Thresholds
from switchover.lag.verdicts import Effect, judge
from unit.lag_readings import DEFAULTS, ORDERS, POLL, T0, every_poll, samples_of

OTHER = TopicPartition("orders", 1)
PASS = Evaluation(0, Effect.PASS, 1, "1", ready=True, strayed=False)
SLOW = replace(PASS, effect=Effect.HOLD)
STRAYED = replace(SLOW, strayed=True)
UNKNOWN = replace(PASS, effect=Effect.INCONCLUSIVE)
FAILED = replace(PASS, effect=Effect.FAIL)
STANDING = replace(SLOW, standing=frozenset({ORDERS}))
BEHIND = replace(SLOW, behind=frozenset({ORDERS}), growing=frozenset({ORDERS}))


def folded(*evaluations: Evaluation, state: State | None = None, every: int = POLL, **thresholds: int) -> list[State]:
    """The states after each of them, one poll apart."""
    state = state or State()
    at, states = T0 if state.at is None else state.at + every, []
    for evaluation in evaluations:
        state = fold(state, replace(evaluation, at=at), Thresholds(**thresholds))  # type: ignore[arg-type]
        states.append(state)
        at += every
    return states


def gates(*evaluations: Evaluation, **more: object) -> str:
    """The first letters: P, H, I, F."""
    return "".join(state.effect.name[0] for state in folded(*evaluations, **more))  # type: ignore[arg-type]


ENTERED = folded(*[PASS] * 9)[-1]


def test_a_pass_takes_five_evaluations_and_two_minutes():
    assert gates(*[PASS] * 9) == "HHHHHHHHP"                        # the ninth is 120 s after the first
    assert gates(*[PASS] * 6, every=40_000) == "HHHHPP"             # five in 160 s
    assert gates(*[PASS] * 6, every=30_000) == "HHHHPP"             # five in 120 s
    assert gates(*[PASS] * 6, every=29_999) == "HHHHHP"


@pytest.mark.parametrize("break_", [SLOW, UNKNOWN, FAILED, replace(PASS, generation=2), replace(PASS, config="2")])
def test_anything_but_a_pass_of_the_same_generation_and_configuration_breaks_the_row(break_):
    rest = replace(PASS, generation=break_.generation, config=break_.config)
    states = folded(*[PASS] * 8, break_, *[rest] * 9)
    assert all(state.effect is not Effect.PASS for state in states[:-2])
    assert states[-1].effect is Effect.PASS


@pytest.mark.parametrize(("then", "said"), [
    ([SLOW] * 20, "P" * 20), ([STRAYED], "P"), ([STRAYED, SLOW, STRAYED, PASS, STRAYED], "PPPPP"),
    ([STRAYED, STRAYED, PASS], "PHH"), ([UNKNOWN, PASS], "IH"), ([FAILED, PASS], "FH"),
    ([replace(PASS, generation=2)], "H"), ([replace(PASS, config="2")], "H"), ([replace(SLOW, ready=False)], "H")])
def test_a_gate_that_passes_is_left_late_or_at_once(then, said):
    assert gates(*then, state=ENTERED) == said


def test_it_is_told_since_when_the_gate_passes():
    assert ENTERED.entered == T0 + 8 * POLL
    assert {state.entered for state in folded(PASS, SLOW, PASS, state=ENTERED)} == {ENTERED.entered}


def test_an_evaluation_that_comes_twice_counts_once():
    again = [fold(ENTERED, replace(STRAYED, at=at), DEFAULTS) for at in (ENTERED.at, ENTERED.at - POLL)]
    assert again == [ENTERED, ENTERED]


@pytest.mark.parametrize(("hole", "said"), [(60_000, "P"), (60_001, "H")])
def test_what_was_not_looked_at_for_four_polls_is_proven_anew(hole, said):
    assert gates(PASS, state=ENTERED, every=hole) == said
    assert gates(PASS, state=ENTERED, every=hole, window=172_800_000) == said, "however far the window reaches back"
    assert gates(STANDING, STANDING, STANDING, every=hole) == ("HHF" if said == "P" else "HHH")


# --- what fails in the end ----------------------------------------------------------------------------------------------


def test_a_partition_that_stands_fails_with_the_third_evaluation():
    assert gates(STANDING, STANDING, STANDING, SLOW) == "HHFH"
    assert gates(STANDING, STANDING, SLOW, STANDING, STANDING) == "HHHHH"
    assert gates(*[STANDING] * 3, state=ENTERED) == "PPF"


def test_it_is_the_same_partition_that_must_stand():
    other = replace(STANDING, standing=frozenset({OTHER}))
    assert gates(STANDING, STANDING, other, other) == "HHHH"
    both = replace(STANDING, standing=frozenset({ORDERS, OTHER}))
    assert gates(STANDING, both, both, other) == "HHFF"


def test_a_new_generation_does_not_make_a_dead_partition_alive():
    assert gates(STANDING, replace(STANDING, generation=2), replace(STANDING, generation=3)) == "HHF"


def test_a_partition_that_is_behind_fails_with_the_tenth_evaluation_if_its_lag_grows():
    flat = replace(BEHIND, growing=frozenset())
    assert gates(*[BEHIND] * 10) == "H" * 9 + "F"
    assert gates(*[flat] * 12) == "H" * 12
    assert gates(*[flat] * 10, BEHIND, flat) == "H" * 10 + "FH"
    assert gates(*[BEHIND] * 9, SLOW, BEHIND) == "H" * 11


def test_half_an_hour_of_holding_is_for_a_person():
    said = gates(*[SLOW] * 122)
    assert said == "H" * 120 + "II"                                 # the 121st is 1800 s after the first
    assert gates(*[SLOW] * 119, UNKNOWN, SLOW, SLOW) == "H" * 119 + "IHH"
    assert gates(*[SLOW] * 119, *[PASS] * 9) == "H" * 120 + "I" * 7 + "P"


# --- the group ----------------------------------------------------------------------------------------------------------


def test_the_worst_effect_is_the_groups():
    order = [Effect.PASS, Effect.HOLD, Effect.INCONCLUSIVE, Effect.FAIL]
    assert [worst(order[: i + 1]) for i in range(4)] == order


IDLE = every_poll([500] * 40, [500] * 40)
KERNEL = judge(samples_of([IDLE]), IDLE[-1].t, DEFAULTS)
GROUP = Group(frozenset({ORDERS}), stable=True, generation=1, sole_owners=True)


@pytest.mark.parametrize(("change", "effect"), [
    ({}, Effect.PASS), ({"stable": False}, Effect.HOLD), ({"sole_owners": False}, Effect.HOLD),
    ({"stable": None}, Effect.INCONCLUSIVE), ({"sole_owners": None}, Effect.INCONCLUSIVE),
    ({"generation": None}, Effect.INCONCLUSIVE), ({"generation": 0}, Effect.PASS),
    ({"expected": frozenset()}, Effect.INCONCLUSIVE), ({"expected": frozenset({ORDERS, OTHER})}, Effect.INCONCLUSIVE)])
def test_a_pass_wants_a_stable_group_of_one_generation_with_one_owner_each(change, effect):
    evaluation = evaluate([ORDERS], KERNEL, replace(GROUP, **change), IDLE[-1].t, "1")
    assert evaluation.effect is effect
    assert evaluation.ready == (not {"stable", "sole_owners"} & set(change) and change.get("generation", 1) is not None)


@pytest.mark.parametrize("partitions", [[], [ORDERS, OTHER], [ORDERS, ORDERS]])
def test_rows_must_fit_their_names(partitions):
    with pytest.raises(ValueError, match="partitions"):
        evaluate(partitions, KERNEL, GROUP, 0, "1")


# --- what is kept -------------------------------------------------------------------------------------------------------

evaluations = st.lists(st.sampled_from([PASS, PASS, PASS, SLOW, STRAYED, UNKNOWN, FAILED, STANDING, BEHIND,
                                        replace(PASS, generation=2), replace(PASS, config="2")]), max_size=40)


@given(evaluations, evaluations)
def test_the_state_goes_through_json_and_the_fold_goes_on_as_if_it_had_not(before, after):
    state = folded(*before)[-1] if before else State()
    back = restored(json.loads(json.dumps(stored(state))))
    assert back == state
    assert folded(*after, state=back) == folded(*after, state=state)


@given(evaluations)
def test_the_gate_passes_only_on_what_the_last_evaluations_bear(given_):
    states = folded(*given_)
    for i, state in enumerate(states):
        if state.effect is Effect.PASS:
            assert given_[i].effect in (Effect.PASS, Effect.HOLD)
            passed = next(j for j in range(i, -1, -1) if states[j].entered == states[j].at)
            row = given_[passed - 8: passed + 1]
            assert len(row) == 9
            assert all(each.effect is Effect.PASS for each in row)
            assert len({(each.generation, each.config) for each in given_[passed - 8: i + 1]}) == 1


def test_those_that_are_longest_in_trouble_are_counted_on():
    first, more = (frozenset(TopicPartition(topic, i) for i in range(LIMIT)) for topic in ("late", "early"))
    assert gates(*[replace(STANDING, standing=first)] * 2, replace(STANDING, standing=first | more)) == "HHF"


def test_the_state_stays_small_however_many_partitions_are_in_trouble():
    many = replace(STANDING, standing=frozenset(TopicPartition("orders", i) for i in range(10_000)),
                   behind=frozenset(TopicPartition("t" * 249, i) for i in range(10_000)))
    states = folded(many, many, many)
    assert states[-1].effect is Effect.FAIL
    assert len(states[-1].standing) == len(states[-1].behind) == LIMIT
    assert len(json.dumps(stored(states[-1]))) < 10_000
