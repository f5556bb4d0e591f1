"""The window of a group, what stands beside its lag, and the two watched over many sweeps."""

from itertools import pairwise

import numpy as np
import pytest

from switchover.lag.group import Group, Membership, TopicPartition, group_of
from switchover.lag.samples import NONE
from switchover.lag.thresholds import RECENT, Thresholds
from switchover.lag.verdicts import Effect, Verdict, judge
from switchover.lag.watch import Assessment, Watch
from switchover.lag.window import FOR_EVER, Offsets, Reading, Window
from unit.lag_readings import DEFAULTS, POLL, T0

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def offsets(sweep: int, committed: int = 5, end: int = 7) -> Offsets:
    return Offsets(T0 + sweep * POLL, committed, end, 1, end)


# --- the window -----------------------------------------------------------------------------------------------------------


def test_samples_stand_oldest_first_at_the_right_edge():
    window = Window(3)
    for sweep in range(2):
        window.add({A0: offsets(sweep, 10 + sweep, 20 + sweep)})
    samples = window.samples(read_committed=False)
    assert window.partitions == (A0,)
    assert samples.valid.tolist() == [[False, True, True]]
    assert samples.time.tolist()[0][1:] == [T0, T0 + POLL]
    assert samples.committed.tolist()[0][1:] == [10, 11]
    assert samples.end.tolist()[0][1:] == samples.high.tolist()[0][1:] == [20, 21]
    assert samples.start.tolist()[0][1:] == [1, 1]
    assert samples.transactional.tolist() == [False]
    assert window.samples(read_committed=True).transactional.tolist() == [True]


def test_a_failed_sweep_leaves_an_invalid_sample_in_every_row():
    window = Window(4)
    window.add({A0: offsets(0), B0: offsets(0)})
    window.add({B0: offsets(1)})
    window.add({})
    assert window.partitions == (A0, B0)
    assert window.samples(read_committed=False).valid.tolist() == [[False, True, False, False], [False, True, True, False]]


def test_a_window_never_grows_and_forgets_what_it_cannot_show_any_more():
    window = Window(3)
    window.add({A0: offsets(0), A1: offsets(0)})
    for sweep in range(1, 4):
        assert A0 in window.partitions or sweep == 3
        window.add({A1: offsets(sweep)})
    assert window.partitions == (A1,)
    assert window.samples(read_committed=False).time.tolist() == [[T0 + POLL, T0 + 2 * POLL, T0 + 3 * POLL]]


def test_rows_keep_their_samples_when_partitions_come_and_go():
    window = Window(5)
    dice = np.random.default_rng(3)
    history: dict[TopicPartition, list[int]] = {each: [NONE] * 5 for each in (A0, A1, B0)}
    for sweep in range(40):
        present = [each for each in history if dice.random() < .5]
        window.add({each: offsets(sweep, 100 * sweep + each.partition) for each in present})
        for each, row in history.items():
            row[:] = [*row[1:], 100 * sweep + each.partition if each in present else NONE]
        samples = window.samples(read_committed=False)
        assert set(window.partitions) == {each for each, row in history.items() if set(row) != {NONE}}
        for each, committed, valid in zip(window.partitions, samples.committed, samples.valid, strict=True):
            told = np.where(valid, committed, NONE).tolist()
            assert [NONE] * (5 - len(told)) + told == history[each]


def test_staleness_is_that_of_the_partition_read_longest_ago():
    window = Window(3)
    window.add({A0: offsets(0), A1: offsets(0)})
    window.add({A1: offsets(1)})
    assert window.sampled(frozenset({A0, A1})) == T0
    assert window.sampled(frozenset({A1})) == T0 + POLL
    assert window.sampled(frozenset({A1, B0})) is None
    assert window.sampled(frozenset()) is None


@pytest.mark.parametrize("apart", [100_000, 600_000])
def test_a_long_window_keeps_the_newest_as_they_come_and_older_ones_apart(apart):
    window = Window(60, apart)
    width = 0
    for sweep in range(2000):
        window.add({A0: offsets(sweep, sweep)})
        samples = window.samples(read_committed=False)
        times = samples.time[samples.valid].tolist()
        assert times[-RECENT:] == [T0 + each * POLL for each in range(max(0, sweep + 1 - RECENT), sweep + 1)]
        assert all(apart <= later - earlier < apart + POLL for earlier, later in pairwise(times[:-RECENT]))
        width = max(width, times[-1] - times[0])
    assert width >= (60 - RECENT - 1) * apart


def test_of_a_group_that_is_seldom_looked_at_no_more_is_kept_than_counts():
    window = Window(58, reach=60 * POLL)
    for sweep in range(100):
        window.add({A0: offsets(6 * sweep, sweep)})
    assert window.samples(read_committed=False).time.shape == (1, 10)
    assert window.samples(read_committed=False).committed.tolist() == [list(range(90, 100))]


def test_what_lies_too_far_back_changes_no_judgement():
    dice = np.random.default_rng(5)
    near, far = (Window(DEFAULTS.width, reach=reach) for reach in (DEFAULTS.window, FOR_EVER))
    sweep = 0
    for committed in range(150):
        sweep += int(dice.choice([1, 1, 2, 6, 60]))
        found = {each: offsets(sweep, committed, committed + int(dice.integers(0, 5)))
                 for each in (A0, A1) if dice.random() < .9}
        now = T0 + sweep * POLL
        told = []
        for window in (near, far):
            window.add(found)
            judged = judge(window.samples(read_committed=False), now, DEFAULTS)
            told.append({each: (int(judged.verdict[row]), int(judged.effect[row]), int(judged.quantities.stood[row]))
                         for row, each in enumerate(window.partitions) if judged.quantities.count[row]})
        assert told[0] == told[1]


def test_a_clock_that_was_put_back_empties_no_window():
    window = Window(60, 100_000)
    for sweep in (*range(1000), *range(200, 400)):
        window.add({A0: offsets(sweep, sweep)})
    samples = window.samples(read_committed=False)
    found = judge(samples, T0 + 399 * POLL, DEFAULTS)
    assert found.quantities.count[0] > RECENT


# --- beside the lag -------------------------------------------------------------------------------------------------------


def test_every_partition_of_an_assigned_topic_is_expected():
    membership = Membership("Stable", {"m1": frozenset({A0}), "m2": frozenset({A1})})
    group = group_of(membership, {"a": 2, "b": 1}, frozenset({"b"}))
    assert group.expected == {A0, A1}
    assert (group.stable, group.sole_owners) == (True, True)


@pytest.mark.parametrize(("assigned", "partitions"), [
    ({"m1": frozenset({A0})}, {"a": 2}),                                    # A1 has no owner
    ({"m1": frozenset({A0, A1}), "m2": frozenset({A1})}, {"a": 2}),         # A1 has two
])
def test_owners_that_are_not_sole_are_told(assigned, partitions):
    assert group_of(Membership("Stable", assigned), partitions, frozenset()).sole_owners is False


def test_what_is_assigned_is_expected_even_of_a_topic_that_is_gone():
    assert group_of(Membership("Stable", {"m1": frozenset({A0})}), {}, frozenset()).expected == {A0}


@pytest.mark.parametrize(("state", "stable"), [("Empty", False), ("PreparingRebalance", False), ("Unknown", None)])
def test_without_an_assignment_commits_stand_for_it_and_nothing_passes(state, stable):
    group = group_of(Membership(state, {}), {"a": 2}, frozenset({"a"}))
    assert group.expected == {A0, A1}
    assert (group.stable, group.sole_owners) == (stable, False)


def test_the_generation_is_another_one_when_who_owns_what_has_changed():
    same = Membership("Stable", {"m1": frozenset({A0, A1}), "m2": frozenset()})
    assert same.generation == Membership("Stable", {"m2": frozenset(), "m1": frozenset({A1, A0})}).generation
    others = [Membership("Stable", {"m1": frozenset({A0}), "m2": frozenset({A1})}),
              Membership("Stable", {"m3": frozenset({A0, A1}), "m2": frozenset()}), Membership("Stable", {})]
    assert len({each.generation for each in (same, *others)}) == 4


# --- watched --------------------------------------------------------------------------------------------------------------

HEALTHY = Group(frozenset({A0}), True, 1, True)


def watched(readings: list[Reading], *, read_committed: bool = False, thresholds: Thresholds = DEFAULTS,
            group: Group = HEALTHY) -> list[Assessment]:
    watch = Watch(thresholds, read_committed=read_committed)
    found = []
    for sweep, reading in enumerate(readings):
        watch.add(reading)
        found.append(watch.assess(group, T0 + sweep * POLL))
    return found


def running(sweeps: int, behind: int = 0) -> list[Reading]:
    return [Reading({A0: offsets(sweep, 1000 * sweep - behind + 1000, 1000 * sweep + 1000)}) for sweep in range(sweeps)]


def test_a_healthy_group_is_judged_after_two_minutes_and_passes_two_later():
    found = watched(running(20))
    effects = [each.evaluation.effect for each in found]
    assert effects == [Effect.INCONCLUSIVE] * 8 + [Effect.PASS] * 12
    assert [each.gate.effect for each in found].index(Effect.PASS) == 16


def test_a_group_that_could_not_be_read_is_unknown_with_its_third_failure_and_never_absent():
    found = watched(running(12) + [Reading(why="nobody answers")] * 4)
    assert [Verdict(each.judged.verdict[0]) for each in found[11:]] == [
        Verdict.OK, Verdict.OK, Verdict.OK, Verdict.UNKNOWN, Verdict.UNKNOWN]
    assert {each.partitions for each in found} == {(A0,)}
    assert {each.sampled for each in found[11:]} == {T0 + 11 * POLL}
    assert found[-1].reading.why == "nobody answers"


def test_a_group_of_which_nothing_was_ever_read_is_inconclusive():
    [*_, last] = watched([Reading(why="nobody answers")] * 12)
    assert (last.partitions, last.evaluation.effect, last.evaluation.missing) == ((), Effect.INCONCLUSIVE, (A0,))


def test_figures_of_the_group_are_of_expected_partitions_alone_and_an_age_beyond_the_window_marks_them_all():
    def assessed(*expected: TopicPartition) -> Assessment:
        group = Group(frozenset(expected), True, 1, True)
        readings = [Reading({
            A0: offsets(sweep, 1000 * sweep + 500, 1000 * sweep + 1000), A1: offsets(sweep, 0, 1000 * sweep + 1000),
            B0: offsets(sweep, 1000 * sweep + 1005, 1000 * sweep + 1000)}) for sweep in range(10)]
        return watched(readings, group=group)[-1]

    assert (assessed(A0).lag, assessed(A0).time_lag) == (500, (POLL // 2, False))
    assert (assessed(A0, A1).lag, assessed(A0, A1).time_lag) == (10_500, (9 * POLL, True))
    assert (assessed(A0, B0).lag, assessed(B0).lag) == (500, 0)             # beyond the end, and no credit for others
    assert assessed(A0, B0).verdicts == {Verdict.OK: 1, Verdict.BEYOND_END: 1, Verdict.UNKNOWN: 0}
    assert (assessed().lag, assessed().time_lag) == (None, None)


def test_the_last_marker_is_forgiven_where_the_group_reads_committed_records_only():
    ends = [Reading({A0: offsets(sweep, 999, 1000)}) for sweep in range(40)]
    assert watched(ends, read_committed=True)[-1].judged.verdict[0] == Verdict.IDLE
    assert watched(ends)[-1].judged.verdict[0] == Verdict.STOPPED


def test_an_evaluation_names_what_it_was_judged_by():
    [plain], [other], [committed] = (
        watched(running(1)), watched(running(1), thresholds=Thresholds(max_time_lag=70_000)),
        watched(running(1), read_committed=True))
    assert len({each.evaluation.config for each in (plain, other, committed)}) == 3
    assert plain.evaluation.config == watched(running(1))[0].evaluation.config


def test_the_window_holds_what_the_thresholds_look_back():
    samples = watched(running(100))[-1].judged.quantities
    assert samples.count[0] == 40
    assert all(later.judged.quantities.count[0] >= earlier.judged.quantities.count[0]
               for earlier, later in pairwise(watched(running(60))))
