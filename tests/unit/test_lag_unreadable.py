"""Where the collector looks into a log, how often, and for how long what was found holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from switchover.lag.collector import LOOKS, LagCollector
from switchover.lag.group import Group, TopicPartition
from switchover.lag.samples import NONE
from switchover.lag.unreadable import AGAIN, Stretch
from switchover.lag.verdicts import Effect, Verdict
from switchover.lag.window import Asked, Offsets, Reading, Sweep
from unit.lag_readings import DEFAULTS, POLL, T0

A0 = TopicPartition("a", 0)
ABORTED = Offsets(0, 5, 10, 0, 10)
"""Committed 5, and up to 10 there is no record."""
MINUTE = AGAIN // POLL
"""In sweeps."""


@dataclass
class Cluster:
    """`GroupOffsets` and `Clock` in one. `records` are where the next one is, from each offset on; else there is none."""

    offsets: dict[TopicPartition, Offsets] = field(default_factory=lambda: {A0: ABORTED})
    records: dict[TopicPartition, int] = field(default_factory=dict)
    sweeps: int = 0
    deaf: bool = False
    looked: list[tuple[int, TopicPartition, Stretch]] = field(default_factory=list)

    def now(self) -> float:
        return (T0 + self.sweeps * POLL) / 1000

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        self.sweeps += 1
        found = {each: told._replace(time=T0 + self.sweeps * POLL) for each, told in self.offsets.items()}
        return Sweep({name: Reading(found, unreadable=self._looked(wanted)) for name, wanted in asked.items()}, {"a": 1})

    def _looked(self, asked: Asked) -> dict[TopicPartition, Stretch]:
        self.looked += [(self.sweeps, each, stretch) for each, stretch in asked.looks.items()]
        if self.deaf:
            return {}
        return {each: stretch._replace(end=max(stretch.end, min(self.records.get(each, 10**9), self.offsets[each].end)))
                for each, stretch in asked.looks.items()}


class Story:
    """One group, sweep after sweep."""

    def __init__(self, cluster: Cluster, *names: str) -> None:
        self.cluster = cluster
        self.collector = LagCollector(cluster, cluster, DEFAULTS)
        self.names = names or ("g",)

    async def goes_on(self, sweeps: int = 1) -> str:
        """The verdict on the partition after so many more sweeps."""
        for _ in range(sweeps):
            await self.collector.sweep({name: Asked(read_committed=True) for name in self.names})
            group = Group(frozenset({A0}), True, 1, True)
            self.found, *_ = (self.collector.assess(name, group) for name in self.names)
        return Verdict(self.found.judged.verdict[0]).name

    def changes(self, **offsets: int) -> None:
        self.cluster.offsets[A0] = self.cluster.offsets[A0]._replace(**offsets)


async def test_what_stands_for_two_polls_behind_the_end_is_looked_at_and_never_judged_without() -> None:
    story = Story(Cluster())
    found = [await story.goes_on() for _ in range(40)]
    assert found == ["UNKNOWN"] * 8 + ["IDLE"] * 32
    assert story.found.gate.effect is Effect.PASS
    assert story.cluster.looked == [(4, A0, Stretch(5, 5))]
    assert story.collector.left("g") == {A0: (5, 5)}


@pytest.mark.parametrize("offsets", [
    ABORTED._replace(committed=10), ABORTED._replace(committed=12), Offsets(0, NONE, 10, 10, 10),
    Offsets(0, 5, 10, 10, 10)])
async def test_where_nothing_is_behind_the_commit_nobody_looks(offsets: Offsets) -> None:
    story = Story(Cluster({A0: offsets}))
    await story.goes_on(20)
    assert story.cluster.looked == []


@pytest.mark.parametrize(("committed", "looks"), [(9, 0), (8, 1), (NONE, 1)])
async def test_nobody_looks_for_the_one_marker_that_is_forgiven(committed: int, looks: int) -> None:
    story = Story(Cluster({A0: Offsets(0, committed, 10, 9, 10)}))
    await story.goes_on(5)
    assert len(story.cluster.looked) == looks


async def test_whoever_commits_is_not_looked_at() -> None:
    story = Story(Cluster())
    for commit in range(20):
        story.changes(committed=commit, end=1000 + commit)
        await story.goes_on()
    assert story.cluster.looked == []


async def test_a_record_is_found_once_a_minute_and_its_lag_counts_from_there() -> None:
    story = Story(Cluster(records={A0: 7}))
    assert await story.goes_on(9) == "STOPPED"
    assert story.found.lag == 3
    await story.goes_on(11)
    assert story.cluster.looked == [(4, A0, Stretch(5, 5)), *((at, A0, Stretch(5, 7)) for at in range(5, 21, MINUTE))]
    assert story.collector.left("g") == {A0: (5, 9)}, "but for the one marker that is forgiven"


async def test_an_answer_that_could_not_be_had_leaves_the_verdict() -> None:
    story = Story(Cluster(deaf=True))
    assert await story.goes_on(20) == "STOPPED"
    assert story.found.gate.effect is Effect.FAIL
    assert [at for at, _, _ in story.cluster.looked] == list(range(4, 21, MINUTE))


async def test_one_transaction_after_the_other_is_aborted_and_nothing_is_late() -> None:
    story = Story(Cluster())
    for aborted in range(40):
        story.changes(end=10 + aborted, high=10 + aborted)
        found = await story.goes_on()
        assert aborted < 8 or found == "OK"
    assert story.found.gate.effect is Effect.PASS


async def test_a_record_behind_what_was_aborted_is_in_time_for_a_minute_and_then_is_not() -> None:
    story = Story(Cluster())
    await story.goes_on(20)
    story.changes(end=11, high=11)
    story.cluster.records[A0] = 10
    assert [await story.goes_on() for _ in range(5)] == ["OK"] * 4 + ["STOPPED"]
    assert story.found.lag == 1
    story.changes(committed=11)
    assert await story.goes_on() == "OK"


@pytest.mark.parametrize("change", [{"committed": 4}, {"end": 8, "high": 8}], ids=["went back", "was cut"])
async def test_what_was_found_is_forgotten_with_its_ground(change: dict[str, int]) -> None:
    story = Story(Cluster())
    await story.goes_on(20)
    story.cluster.deaf = True
    story.changes(**change)
    await story.goes_on()
    story.changes(committed=5, end=10, high=10)
    assert await story.goes_on(10) == "STOPPED"


async def test_a_group_without_a_commit_stands_at_the_log_start() -> None:
    story = Story(Cluster({A0: Offsets(0, NONE, 10, 3, 10)}))
    assert await story.goes_on(10) == "IDLE"
    assert story.cluster.looked == [(4, A0, Stretch(3, 3))]


async def test_a_sweep_looks_at_so_many_and_at_the_others_next() -> None:
    many = {TopicPartition("a", number): ABORTED for number in range(LOOKS)}
    cluster = Cluster(many, deaf=True)
    story = Story(cluster, "g", "h")
    await story.goes_on(3 + MINUTE)
    sizes = [sum(at == sweep for at, _, _ in cluster.looked) for sweep in range(1, 4 + MINUTE)]
    assert sizes == [0, 0, 0, LOOKS, LOOKS, 0, 0]
    assert {each for _, each, _ in cluster.looked[:LOOKS]}.isdisjoint(each for _, each, _ in cluster.looked[LOOKS:])


async def test_what_is_asked_is_asked_beside_what_was_asked_before() -> None:
    story = Story(Cluster())
    await story.goes_on(3)
    asked = Asked(frozenset({"a"}), read_committed=True)
    seen: list[Asked] = []
    sweep = story.cluster.sweep

    async def noted(asked: Mapping[str, Asked]) -> Sweep:
        seen.extend(asked.values())
        return await sweep(asked)

    story.cluster.sweep = noted                                     # type: ignore[method-assign]
    await story.collector.sweep({"g": asked, "new": asked})
    assert seen == [replace(asked, looks={A0: Stretch(5, 5)}), asked]
