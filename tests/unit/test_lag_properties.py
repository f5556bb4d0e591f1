"""What holds of the lag kernel whatever was read: it says what docs/facts/lag.md says, nothing passes unseen."""

import math
from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchover.lag.samples import NONE
from switchover.lag.thresholds import Baseline, Thresholds
from switchover.lag.verdicts import Effect, Judged, Verdict, judge
from unit.lag_readings import DEFAULTS, POLL, Reading, made_up, samples_of
from unit.lag_scalar import Scalar, scalar

dices = st.randoms(use_true_random=False)
counts = st.integers(1, 50)
later = st.sampled_from([0, 0, 0, 5_000, 35_000, 35_001])


def compare(kernel: Judged, row: int, expected: Scalar) -> None:
    assert Verdict(kernel.verdict[row]).name == expected.verdict
    assert Effect(kernel.effect[row]).name == expected.effect
    if expected.lag is None:
        return
    q = kernel.quantities
    assert (q.lag[row], q.time_lag[row], q.censored[row]) == (expected.lag, expected.age, expected.censored)
    assert q.stood[row] == expected.stood
    assert (q.quiet[row], q.drop[row]) == (expected.quiet, expected.drop)
    assert (kernel.growing[row], kernel.strayed[row]) == (expected.growing, expected.strayed)
    assert math.isclose(q.arriving[row], expected.arriving, rel_tol=1e-12)
    assert math.isclose(q.growth[row], expected.growth, rel_tol=1e-12)
    assert math.isclose(q.eta[row], expected.eta, rel_tol=1e-12)


@given(dices, counts, st.integers(1, 4), later, st.booleans(), st.booleans(), st.booleans(),
       st.sampled_from([(60_000, NONE), (60_000, 2000), (NONE, 2000), (NONE, NONE)]))
def test_the_kernel_says_what_the_sheet_says_in_plain_python(dice, count, partitions, late, reset, progress, clip, bounds):
    rows = [made_up(dice, count) for _ in range(partitions)]
    transactional = [dice.random() < .3 for _ in rows]
    q99 = [dice.choice((NONE, 1000, 100_000, 10**6)) for _ in rows]
    p99 = [dice.choice((NONE, 1000, 100_000, 10**6)) for _ in rows]
    readable = [dice.choice((NONE, NONE, row[-1].c, row[-1].e, row[-1].e + 5, row[dice.randrange(count)].e)) for row in rows]
    thresholds = replace(DEFAULTS, require_progress=progress, max_time_lag=bounds[0], max_lag=bounds[1])
    now = max(row[-1].t for row in rows) + late
    since = now - 400_000 if clip else None
    baseline = Baseline(np.array(q99), np.array(p99))
    kernel = judge(samples_of(rows, transactional, readable), now, thresholds, baseline=baseline, since=since,
                   reset_declared=reset)
    for row, readings in enumerate(rows):
        compare(kernel, row, scalar(readings, now, thresholds, q99=q99[row], p99=p99[row], since=since, reset=reset,
                                    transactional=transactional[row], readable=readable[row]))


AGELESS = replace(DEFAULTS, max_time_lag=NONE, max_lag=10_000)


@pytest.mark.parametrize("thresholds", [DEFAULTS, AGELESS, replace(DEFAULTS, max_lag=1000)])
def test_the_histories_that_it_is_compared_with_hold_every_verdict(thresholds):
    found: Counter[Verdict] = Counter()
    for seed in range(3000):
        readings = made_up(Random(seed), 40)
        kernel = judge(samples_of([readings]), readings[-1].t, thresholds)
        compare(kernel, 0, scalar(readings, readings[-1].t, thresholds))
        found[Verdict(kernel.verdict[0])] += 1
    assert min(found[verdict] for verdict in Verdict) >= 5, found


@given(dices, counts, st.integers(0, 2**40), st.integers(-10**11, 10**11))
def test_only_differences_of_offsets_and_times_matter(dice, count, records, milliseconds):
    readings = made_up(dice, count)
    moved = [Reading(r.t + milliseconds, NONE if r.c == NONE else r.c + records, r.e + records, r.s + records, r.valid,
                     r.hw + records, NONE if r.tc == NONE else r.tc + milliseconds) for r in readings]
    now = readings[-1].t
    before, after = judge(samples_of([readings]), now, DEFAULTS), judge(samples_of([moved]), now + milliseconds, DEFAULTS)
    assert (before.verdict == after.verdict).all()
    assert (before.effect == after.effect).all()
    if before.quantities.count[0]:
        for name in ("lag", "time_lag", "censored", "growth", "eta", "quiet", "silent", "drop"):
            assert getattr(before.quantities, name) == getattr(after.quantities, name), name


@given(dices, counts, st.integers(-2**62, 2**62))
def test_the_numbers_of_an_invalid_sample_are_never_looked_at(dice, count, garbage):
    readings = made_up(dice, count)
    spoilt = [r if r.valid else Reading(r.t, garbage, garbage, garbage, False, garbage, garbage) for r in readings]
    before, after = (judge(samples_of([each]), readings[-1].t, DEFAULTS) for each in (readings, spoilt))
    assert before.verdict == after.verdict
    assert before.effect == after.effect


@given(dices, counts, st.booleans())
def test_without_a_record_behind_the_commit_there_is_no_lag_and_what_was_not_looked_at_changes_nothing(
        dice, count, transactional):
    readings = made_up(dice, count)
    now = readings[-1].t
    last = next((each for each in reversed(readings) if each.valid), readings[-1])        # what the kernel judges by
    stands = last.s if last.c == NONE else last.c
    alone = judge(samples_of([readings], [transactional]), now, DEFAULTS)
    for told in (NONE, stands):
        known = judge(samples_of([readings], [transactional], [told]), now, DEFAULTS)
        assert (known.verdict, known.effect, known.quantities.lag) == (alone.verdict, alone.effect, alone.quantities.lag)
    nothing = judge(samples_of([readings], [transactional], [last.e]), now, DEFAULTS)
    assert nothing.quantities.beyond == alone.quantities.beyond
    if nothing.quantities.judgeable[0] and readings[-1].valid and not nothing.quantities.beyond[0]:
        assert Verdict(nothing.verdict[0]) in (Verdict.IDLE, Verdict.OK)


@given(dices, st.integers(1, 20), st.integers(0, 40))
def test_more_invalid_samples_never_turn_unknown_into_pass(dice, count, more):
    readings = made_up(dice, count)
    now = readings[-1].t
    before = judge(samples_of([readings]), now, DEFAULTS)
    if before.verdict[0] != Verdict.UNKNOWN or before.quantities.beyond[0]:
        return
    ill = [Reading(now - i * POLL // 2, r.c, r.e, r.s, False) for i, r in enumerate((readings * 5)[:more])]
    for mixed in (ill + readings, readings + ill, sorted(ill + readings, key=lambda reading: reading.t)):
        assert judge(samples_of([mixed]), now, DEFAULTS).verdict[0] == Verdict.UNKNOWN


@settings(max_examples=300)
@given(dices, st.integers(1, 45))
def test_nothing_passes_without_evidence(dice, count):
    """What a pass must rest on, said once more without the table."""
    readings = made_up(dice, count)
    now = readings[-1].t
    kernel = judge(samples_of([readings]), now, DEFAULTS)
    if kernel.effect[0] != Effect.PASS:
        return
    seen = [r for r in readings if r.valid and r.t > now - DEFAULTS.window]
    assert len(seen) >= 8
    assert seen[-1].t - seen[0].t >= 120_000
    assert now - seen[-1].t <= 35_000
    newest = seen[-1]
    assert newest.c <= newest.hw
    if newest.c == NONE:
        assert newest.e == newest.s
        return
    if newest.s == newest.e:                       # an empty log: whatever was committed, nothing is there to be consumed
        return
    assert newest.s <= newest.c or newest.c >= newest.e
    # What is committed now had been written no longer than T_ok ago, so by then the end was not beyond it.
    back = [r for r in seen if r.e <= newest.c]
    assert back, "a head older than the window never passes"
    assert newest.c >= newest.e or newest.t - seen[seen.index(back[-1]) + 1].t <= DEFAULTS.max_time_lag


@pytest.mark.parametrize("wrong", [{"max_time_lag": 541_000}, {"slo_ceiling": 541_000}, {"window": 300_000},
                                   {"min_samples": 1}, {"min_span": 0}, {"min_samples": 41},
                                   {"poll": 500, "min_samples": 25}])
def test_thresholds_that_no_window_can_show_are_refused(wrong):
    with pytest.raises(ValueError, match=r"cannot show|at least two|is sure to have"):
        Thresholds(**wrong)
