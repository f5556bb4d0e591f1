"""The groups that must stay healthy while brokers are replaced: what is sampled, what is left to consume, what is well."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from switchover.answers.ask import Answers
from switchover.answers.errors import Unreachable
from switchover.answers.observed import Known, Observed, Unknown
from switchover.api.meta import GroupHealth
from switchover.api.status import Verdict as Outcome
from switchover.cluster.observe.groups import MEMBERS_SECONDS, SAMPLE_SECONDS, WatchedGroups, members_of, thresholds
from switchover.lag.group import Membership
from switchover.lag.samples import NONE
from switchover.lag.thresholds import MOST
from switchover.lag.unreadable import Stretch
from switchover.lag.verdicts import Verdict
from switchover.lag.watch import JudgedGroup
from switchover.lag.window import Asked, Offsets, Reading, Sweep
from switchover.shared.partition import TopicPartition
from unit.judged_groups import Swept
from unit.kraft_gates import outcome, to_b
from unit.kraft_spoilers import samples, sweep
from unit.limits import largest
from unit.pictures import ORDERS, spec_of, value

GROUP, PAYMENTS = GroupHealth(name="orders"), GroupHealth(name="payments")


@dataclass
class Cluster:
    """`GroupOffsets` and `Clock` in one. `record` is where the next record behind the commit is, None for none."""

    offsets: dict[TopicPartition, Offsets] = field(default_factory=lambda: {ORDERS: Offsets(0, 5, 9, 0, 9)})
    record: int | None = None
    failed: dict[TopicPartition | str, str] = field(default_factory=dict)
    why: str = ""
    deaf: bool = False
    at: float = 1_000_000.0
    asked: list[Mapping[str, Asked]] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        self.asked.append(asked)
        if self.deaf:
            raise Unreachable("no bootstrap server answers")
        now = round(self.at * 1000)
        found = {each: told._replace(time=now) for each, told in self.offsets.items()}
        found = {} if self.why else found
        return Sweep({name: Reading(found, frozenset({"orders"}), self.failed, self.why, self._looked(wanted))
                      for name, wanted in asked.items()}, {"orders": len(found)})

    def _looked(self, asked: Asked) -> dict[TopicPartition, Stretch]:
        return {each: stretch._replace(end=self.offsets[each].end if self.record is None else self.record)
                for each, stretch in asked.looks.items()}

    async def close(self) -> None:
        """Nothing is open."""


class Story:
    def __init__(self, cluster: Cluster, *groups: GroupHealth) -> None:
        self.cluster, self.groups = cluster, groups or (GROUP,)
        self.watched = WatchedGroups(cluster)

    async def goes_on(self, sweeps: int = 1, seconds: float = SAMPLE_SECONDS) -> dict[str, Observed[JudgedGroup]]:
        for _ in range(sweeps):
            self.cluster.at += seconds
            found = await self.watched.seen(self.groups, self.cluster)
        return found

    async def judged(self, sweeps: int = 20) -> tuple[str, int]:
        """Verdict and lag of the one partition, as the gate gets them."""
        found = (await self.goes_on(sweeps))["orders"]
        assert isinstance(found, Known)
        assert found.at == self.cluster.at
        assert found.value.partitions == (ORDERS,)
        return Verdict(found.value.judged.verdict[0]).name, int(found.value.judged.quantities.lag[0])


async def test_what_no_member_can_consume_is_not_left() -> None:
    """Markers at the end of a transactional topic, an aborted transaction, compaction: no record is behind the commit."""
    assert await Story(Cluster()).judged() == ("IDLE", 0)
    assert await Story(Cluster(record=7)).judged() == ("STOPPED", 2)
    assert await Story(Cluster({ORDERS: Offsets(0, 5, 9, 9, 9)})).judged() == ("IDLE", 0)          # the log was emptied
    assert await Story(Cluster({ORDERS: Offsets(0, NONE, 9, 9, 9)})).judged() == ("IDLE", 0)
    assert await Story(Cluster({ORDERS: Offsets(0, NONE, 9, 0, 9)}, record=7)).judged() == ("UNCOMMITTED", 2)


async def test_what_is_left_is_left_until_somebody_has_looked() -> None:
    assert await Story(Cluster()).judged(2) == ("IDLE", 4)


async def test_one_sweep_is_enough_to_begin_with_but_no_proof_of_a_commit_beyond_the_end() -> None:
    assert await Story(Cluster()).judged(1) == ("OK", 4)
    many = Cluster({ORDERS: Offsets(0, 5, 20_000, 0, 20_000)}, record=5)
    assert await Story(many).judged(1) == ("BEHIND", 19_995)
    beyond = Story(Cluster({ORDERS: Offsets(0, 10, 9, 0, 9)}))
    assert await beyond.judged(1) == ("UNKNOWN", -1)
    assert await beyond.judged(1) == ("BEYOND_END", -1)


async def test_a_marker_at_the_end_is_forgiven_who_reads_committed_records() -> None:
    reads = GROUP.model_copy(update={"isolation": "ReadCommitted"})
    cluster = Cluster(record=7)
    cluster.offsets = {ORDERS: Offsets(0, 8, 9, 0, 9)}
    assert await Story(cluster, reads).judged(2) == ("IDLE", 0)
    assert all(asked["orders"].read_committed for asked in cluster.asked)
    assert await Story(Cluster({ORDERS: Offsets(0, NONE, 0, 0, 0)}), reads).judged() == ("IDLE", -1)


async def test_a_group_that_is_read_in_another_way_is_watched_anew() -> None:
    story = Story(Cluster({ORDERS: Offsets(0, 8, 9, 0, 9)}, record=8))
    assert await story.judged() == ("STOPPED", 1)
    story.groups = (GROUP.model_copy(update={"isolation": "ReadCommitted"}),)
    assert await story.judged(1) == ("OK", 0)


async def test_each_group_is_judged_by_its_own_limits_and_those_of_now() -> None:
    patient = PAYMENTS.model_copy(update={"max_stall_seconds": 60})
    story = Story(Cluster(record=5), GROUP, patient)
    found = await story.goes_on(20)
    verdicts = {name: Verdict(value(each).judged.verdict[0]).name for name, each in found.items()}
    assert verdicts == {"orders": "STOPPED", "payments": "IDLE"}
    story.groups = (GROUP.model_copy(update={"max_lag": 3}),)
    assert await story.judged(1) == ("BEHIND", 4)


async def test_a_hole_between_two_sweeps_does_not_hide_that_a_commit_stands() -> None:
    """The coordinator moves while brokers restart: for a while nobody tells, and the commit is where it was."""
    cluster = Cluster(record=5)
    story = Story(cluster)
    await story.goes_on(5)
    cluster.why = "its coordinator moves"
    await story.goes_on(15)
    cluster.why = ""
    assert await story.judged(1) == ("STOPPED", 4)


async def test_a_topic_that_is_gone_does_not_count_any_more() -> None:
    cluster = Cluster({ORDERS: Offsets(0, 5, 9, 0, 9), TopicPartition("gone", 0): Offsets(0, 5, 9, 0, 9)}, record=5)
    story = Story(cluster)
    assert len(value((await story.goes_on())["orders"]).expected) == 2
    del cluster.offsets[TopicPartition("gone", 0)]
    found = value((await story.goes_on())["orders"])
    assert [found.partitions[row] for row in found.rows] == [ORDERS]


async def test_the_longest_limit_keeps_no_more_samples_than_the_window_of_a_short_one() -> None:
    longest = GROUP.model_copy(update={"max_stall_seconds": largest("max_stall_seconds", GroupHealth)})
    assert thresholds(longest).width == MOST
    assert thresholds(longest).max_quiet > 1000 * longest.max_stall_seconds


async def test_all_groups_are_one_sweep_and_that_no_more_often_than_need_be() -> None:
    cluster = Cluster()
    story = Story(cluster, GROUP, PAYMENTS)
    await story.goes_on(6, seconds=SAMPLE_SECONDS / 2)
    assert len(cluster.asked) == 3
    assert all(asked.keys() == {"orders", "payments"} for asked in cluster.asked)
    story.groups = (GROUP,)
    assert (await story.goes_on(seconds=0.0)).keys() == {"orders"}
    assert await Story(cluster, *()).watched.seen((), cluster) == {}


async def test_what_cannot_be_read_is_unknown_and_names_the_group() -> None:
    for cluster, words in (
            (Cluster(why="it is not allowed"), "group orders: it is not allowed"),
            (Cluster(failed={TopicPartition("orders", 3): "no leader"}), "group orders: orders-3: no leader"),
            (Cluster(failed={"orders": "not allowed"}), "group orders: orders: not allowed"),
            (Cluster(deaf=True), "group orders: no bootstrap server answers")):
        found = (await Story(cluster).goes_on())["orders"]
        assert isinstance(found, Unknown)
        assert found.why == words


async def test_a_reading_that_failed_leaves_the_samples_and_is_tried_again() -> None:
    cluster = Cluster()
    story = Story(cluster)
    await story.goes_on(3)
    cluster.why = "its coordinator moves"
    assert isinstance((await story.goes_on())["orders"], Unknown)
    cluster.why = ""
    found = (await story.goes_on())["orders"]
    assert value(found).judged.quantities.count.tolist() == [4]


# --- what the gate does not mind ----------------------------------------------------------------------------------------


def test_a_group_with_nothing_to_commit_is_healthy():
    idle = samples(sweep(300, 99, 99), sweep(0, 99, 99))
    assert outcome("GroupsHealthy", idle(to_b())) is Outcome.PASS


def test_a_group_stands_still_only_since_there_is_something_to_commit():
    fresh = samples(sweep(300, 99, 99), sweep(10, 99, 100), sweep(0, 99, 105))
    assert outcome("GroupsHealthy", fresh(to_b())) is Outcome.PASS


def test_an_empty_partition_never_committed_does_not_make_a_group_unhealthy():
    partly = Swept(0, {ORDERS: (99, 100, 0), TopicPartition("orders", 1): (None, 0, 0)})
    assert outcome("GroupsHealthy", samples(partly)(to_b())) is Outcome.PASS


def test_without_named_groups_there_is_nothing_to_watch():
    none = replace(to_b(), spec=spec_of(gates={}))
    assert outcome("GroupsHealthy", none) is Outcome.PASS


# --- who is in them -----------------------------------------------------------------------------------------------------


class Members:
    """`GroupMemberships`: one group has a member, of the other nobody tells."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.deaf = False

    async def groups(self) -> tuple[str, ...]:
        return ()

    async def memberships(self, groups: Iterable[str]) -> Mapping[str, Membership | str]:
        self.asked.append(tuple(groups))
        if self.deaf:
            raise Unreachable("no bootstrap server answers")
        return {"orders": MEMBER, "payments": "its coordinator moves"}

    async def close(self) -> None:
        """Nothing is open."""


MEMBER = Membership("Stable", {"a": frozenset({ORDERS})})


async def test_the_members_of_a_group_are_told_or_why_not() -> None:
    members, clock = Members(), Cluster()
    answers = Answers(clock)
    for _ in range(2):
        assert await members_of((GROUP, PAYMENTS), members, answers) == {
            "orders": Known(MEMBER, clock.at), "payments": Unknown("its coordinator moves")}
    assert members.asked == [("orders", "payments")], "once for some seconds"
    clock.at += MEMBERS_SECONDS
    members.deaf = True
    assert await members_of((GROUP,), members, answers) == {"orders": Unknown("no bootstrap server answers")}
    assert await members_of((), members, answers) == {}
