"""The collector over many sweeps: who is watched, what a sweep that fails leaves, and where a gate begins."""

from collections.abc import Mapping

from switchover.answers.errors import Unreachable
from switchover.lag.collector import LagCollector
from switchover.lag.group import Group, TopicPartition
from switchover.lag.verdicts import Effect, Verdict
from switchover.lag.window import Asked, Offsets, Reading, Sweep
from unit.lag_readings import DEFAULTS, POLL, T0

A0 = TopicPartition("a", 0)
HEALTHY = Group(frozenset({A0}), True, 1, True)


class Cluster:
    """`GroupOffsets` and `Clock` in one: a poll passes with every sweep, and every group keeps up."""

    def __init__(self, begun: int = 0) -> None:
        self.sweeps = begun
        self.down = False

    def now(self) -> float:
        return (T0 + self.sweeps * POLL) / 1000

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        self.sweeps += 1
        if self.down:
            raise Unreachable("nobody answers")
        end = 1000 * self.sweeps
        reading = Reading({A0: Offsets(T0 + self.sweeps * POLL, end - 1, end, 0, end)})
        return Sweep(dict.fromkeys(asked, reading), {"a": 1})


async def test_every_group_has_its_own_window_and_gate():
    cluster = Cluster()
    collector = LagCollector(cluster, cluster, DEFAULTS)
    for _ in range(17):
        await collector.sweep({"old": Asked()})
        old = collector.assess("old", HEALTHY)
    assert old.gate.effect is Effect.PASS
    await collector.sweep({"old": Asked(), "new": Asked()})
    assert collector.assess("old", HEALTHY).gate.effect is Effect.PASS
    assert collector.assess("new", HEALTHY).judged.quantities.count[0] == 1


async def test_a_sweep_that_fails_is_an_invalid_sample_with_its_reason_for_every_group():
    cluster = Cluster()
    collector = LagCollector(cluster, cluster, DEFAULTS)
    asked = {"one": Asked(), "two": Asked()}
    for _ in range(10):
        await collector.sweep(asked)
    cluster.down = True
    for _ in range(3):
        assert {reading.why for reading in (await collector.sweep(asked)).readings.values()} == {"nobody answers"}
    for group in asked:
        found = collector.assess(group, HEALTHY)
        assert Verdict(found.judged.verdict[0]) is Verdict.UNKNOWN
        assert (found.judged.quantities.count[0], found.reading.why) == (10, "nobody answers")


async def test_a_group_that_is_not_asked_for_any_more_is_forgotten():
    cluster = Cluster()
    collector = LagCollector(cluster, cluster, DEFAULTS)
    await collector.sweep({"g": Asked()})
    await collector.sweep({})
    await collector.sweep({"g": Asked()})
    assert collector.assess("g", HEALTHY).judged.quantities.count[0] == 1


async def test_samples_from_before_the_running_step_do_not_count():
    cluster = Cluster()
    collector = LagCollector(cluster, cluster, DEFAULTS)
    for _ in range(10):
        await collector.sweep({"g": Asked()})
    assert collector.assess("g", HEALTHY, since=T0 + 8 * POLL).judged.quantities.count[0] == 3


async def test_transactional_topics_are_those_of_groups_that_read_committed_records():
    cluster = Cluster()
    collector = LagCollector(cluster, cluster, DEFAULTS)
    await collector.sweep({"reads": Asked(read_committed=True), "peeks": Asked()})
    assert collector.assess("reads", HEALTHY).lag == 0                   # one behind: the marker
    assert collector.assess("peeks", HEALTHY).lag == 1
