"""When a difference counts, when a comparison is evidence, and what the gate says of it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fakes.clock import Clock
from switchover.answers.errors import Refused, Unreachable
from switchover.answers.observed import NOT_ASKED, Known, Observed, Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.gates.dual_write import PARITY, PATIENCE_SECONDS, are_ended_by_a_new_leader, check_parity
from switchover.cluster.observe.parity import LIFE_SECONDS, PAUSE_SECONDS, ParityWatch
from switchover.cluster.picture import Picture
from switchover.engine.gate import Judge
from switchover.engine.position import Batch, Position
from switchover.metadata.cluster import LIMIT, Assignment, ClusterMetadata, Difference, Resource, Topic
from switchover.metadata.parity import Comparison, LogImage, MigrationState, Parity, TreeReading, compare
from unit.kraft_spoilers import parity
from unit.pictures import NOW, Cluster, moment, value, with_fact


def log(offset: int, next_id: int | None = None, state: MigrationState = MigrationState.MIGRATION) -> LogImage:
    return LogImage(offset, 1, state, 21, {}, {}, None, 0, ClusterMetadata(next_producer_id=next_id))


def tree(offset: int, next_id: int | None = None) -> TreeReading:
    return TreeReading(offset, ClusterMetadata(next_producer_id=next_id), 1)


def after(*readings: tuple[TreeReading, LogImage]) -> Parity:
    last: Comparison | None = None
    for zookeeper, kraft in readings:
        last = compare(last, zookeeper, kraft)
    assert last is not None
    return last.parity


BEHIND = Difference("producer ids", "next", "1", "2")

# --- When a difference counts -----------------------------------------------------------------------------------------


def test_equal_sides_are_proven_at_once() -> None:
    assert after((tree(100, 1), log(100, 1))) == Parity((), 0, proven=True)


def test_a_first_difference_does_not_count_and_proves_nothing() -> None:
    assert after((tree(99, 1), log(100, 2))) == Parity((), 1, proven=False)


def test_a_difference_that_persists_past_the_dual_write_offset_counts() -> None:
    assert after((tree(99, 1), log(100, 2)), (tree(100, 1), log(101, 2))) == Parity((BEHIND,), 0, proven=False)


def test_it_does_not_count_while_dual_write_is_behind_the_first_reading() -> None:
    late = ((tree(90, 1), log(100, 2)), (tree(95, 1), log(120, 2)), (tree(99, 1), log(140, 2)))
    assert after(*late) == Parity((), 1, proven=False)
    assert after(*late, (tree(100, 1), log(160, 2))).differences == (BEHIND,)


def test_what_has_arrived_proves_that_both_were_equal_although_something_new_is_on_its_way() -> None:
    assert after((tree(99, 1), log(100, 2)), (tree(100, 2), log(105, 3))) == Parity((), 1, proven=True)
    assert after((tree(99, 1), log(100, 2)), (tree(100, 2), log(105, 3)), (tree(106, 2), log(110, 3))) == Parity(
        (Difference("producer ids", "next", "2", "3"),), 0, proven=False)


def test_a_difference_that_went_away_and_came_back_begins_anew() -> None:
    assert after((tree(99, 1), log(100, 2)), (tree(100, 2), log(105, 2)), (tree(110, 1), log(110, 2))) == Parity(
        (), 1, proven=True)


def test_a_state_that_stays_behind_its_epoch_is_overdue_and_no_difference() -> None:
    def states(offset: int, version: int | None) -> TreeReading:
        return TreeReading(offset, ClusterMetadata(epochs=None if version is None else {("orders", 0): version}), 1)

    def epochs(offset: int, epoch: int) -> LogImage:
        return replace(log(offset), metadata=ClusterMetadata(epochs={("orders", 0): epoch}))

    assert after((states(100, None), epochs(100, 9))).behind is None
    assert after((states(100, 9), epochs(100, 9))) == Parity((), 0, True, 0)
    assert after((states(100, 10), epochs(100, 9))).behind == 0, "ZooKeeper's own next change is higher still"
    first = (states(99, 7), epochs(100, 9))
    assert after(first) == Parity((), 0, True, 1)
    assert after(first, (states(99, 7), epochs(101, 9))).overdue == {}, "dual write has not come that far"
    assert after(first, (states(100, 8), epochs(101, 9))).overdue == {}, "it is catching up"
    assert after(first, (states(100, 8), epochs(101, 10))) == Parity((), 0, True, 1, {("orders", 0): 10})
    gone = TreeReading(100, ClusterMetadata(epochs={}), 1)
    assert after(first, (gone, epochs(101, 9))).behind == 0, "a partition that is gone"


@pytest.mark.parametrize("counted", [True, False])
def test_what_differs_of_a_topic_that_was_created_again_is_another_difference(counted: bool) -> None:
    """The second one has come into the log since, and dual write has not got that far; of the same topic it would have."""
    assignment = {0: Assignment((1,))}

    def copied(offset: int, topic_id: str) -> TreeReading:
        topics = {"orders": Topic(topic_id, assignment)}
        return TreeReading(offset, ClusterMetadata(topics=topics, epochs={("orders", 0): 1}), 1)

    def logged(offset: int, topic_id: str) -> LogImage:
        configured = {Resource("topic", "orders"): {"retention.ms": "1"}}
        return replace(log(offset), metadata=ClusterMetadata(
            topics={"orders": Topic(topic_id, assignment)}, configs=configured, epochs={("orders", 0): 2}))

    again = "a" if counted else "b"
    found = after((copied(99, "a"), logged(100, "a")), (copied(150, again), logged(200, again)))
    assert (len(found.differences), found.unsettled) == ((1, 0) if counted else (0, 1))
    assert found.overdue == ({("orders", 0): 2} if counted else {})


# --- The watch --------------------------------------------------------------------------------------------------------


class Tree:
    """Answers `outcome` when it is let go."""

    def __init__(self, outcome: TreeReading | Exception) -> None:
        self.outcome = outcome
        self.asked: list[tuple[str | None, bool]] = []
        self.go = asyncio.Event()
        self.go.set()

    async def read(self, secret: str | None, states: bool) -> TreeReading:
        self.asked.append((secret, states))
        await self.go.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


async def one_pass(watch: ParityWatch, kraft: Observed[LogImage]) -> Observed[Parity]:
    watch.begin("secret", states=False)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return watch.end(kraft)


def known(image: LogImage) -> Observed[LogImage]:
    return Known(image, 0.0)


async def test_a_quick_reading_is_there_in_the_same_pass_and_repeated_after_a_pause() -> None:
    clock, side = Clock(), Tree(tree(100, 1))
    watch = ParityWatch(side.read, clock)
    assert await one_pass(watch, known(log(100, 1))) == Known(Parity((), 0, proven=True), 1000.0)
    clock.seconds += PAUSE_SECONDS - 1
    assert await one_pass(watch, known(log(101, 9))) == Known(Parity((), 0, proven=True), 1000.0)
    assert side.asked == [("secret", False)]
    clock.seconds += 1
    assert await one_pass(watch, known(log(102, 1))) == Known(Parity((), 0, proven=True), 1000.0 + PAUSE_SECONDS)
    assert len(side.asked) == 2


async def test_a_slow_reading_goes_on_over_passes_and_dates_from_its_beginning() -> None:
    clock, side = Clock(), Tree(tree(100, 1))
    side.go.clear()
    watch = ParityWatch(side.read, clock)
    first = await one_pass(watch, known(log(100, 1)))
    assert isinstance(first, Unknown)
    assert "under way" in first.why
    clock.seconds += 20
    assert isinstance(await one_pass(watch, known(log(110, 1))), Unknown)
    side.go.set()
    await asyncio.sleep(0)
    assert await one_pass(watch, known(log(120, 1))) == Known(Parity((), 0, proven=True), 1000.0)
    assert len(side.asked) == 1
    clock.seconds += 39                                          # it took 20 s, so ZooKeeper is left alone for 40
    await one_pass(watch, known(log(130, 1)))
    assert len(side.asked) == 1
    clock.seconds += 1
    await one_pass(watch, known(log(130, 1)))
    assert len(side.asked) == 2


async def test_evidence_grows_old_and_the_reason_is_told() -> None:
    clock, side = Clock(), Tree(tree(100, 1))
    watch = ParityWatch(side.read, clock)
    await one_pass(watch, known(log(100, 1)))
    side.outcome = Refused("READ on /config/users")
    clock.seconds += LIFE_SECONDS
    assert isinstance(await one_pass(watch, known(log(100, 1))), Known)
    clock.seconds += 1
    assert await one_pass(watch, known(log(100, 1))) == Unknown("ZooKeeper's metadata: READ on /config/users")


@pytest.mark.parametrize(("outcome", "kraft", "why"), [
    (Unreachable("gone"), known(log(1)), "ZooKeeper's metadata: gone"),
    (tree(1), Unknown("no leader"), "KRaft's metadata: no leader"),
    (tree(1), known(log(1, state=MigrationState.PRE_MIGRATION)), "the metadata log does not say MIGRATION"),
])
async def test_a_side_that_cannot_be_read_is_named(outcome: Any, kraft: Observed[LogImage], why: str) -> None:
    assert await one_pass(ParityWatch(Tree(outcome).read, Clock()), kraft) == Unknown(why)


async def test_what_is_forgotten_does_not_count_later() -> None:
    clock, side = Clock(), Tree(tree(100, 1))
    watch = ParityWatch(side.read, clock)
    await one_pass(watch, known(log(100, 2)))
    assert watch.forget() is NOT_ASKED
    again = await one_pass(watch, known(log(100, 2)))
    assert again == Known(Parity((), 1, proven=False), 1000.0)


async def test_a_reading_under_way_ends_when_nobody_asks_any_more() -> None:
    side = Tree(tree(100, 1))
    side.go.clear()
    watch = ParityWatch(side.read, Clock())
    await one_pass(watch, known(log(100, 1)))
    task = watch._reading
    assert task is not None
    watch.forget()
    await asyncio.wait([task], timeout=1)
    assert task.cancelled()


# --- The gate ---------------------------------------------------------------------------------------------------------


STEP = Position(entered=NOW - 100)


def judged(parity: Observed[Parity], position: Position = STEP) -> Picture:
    return with_fact(Cluster().picture(position), "parity", parity)


def test_differences_are_named_counted_and_only_a_few() -> None:
    found = tuple(Difference("topic", f"t{number}", "nothing", "id x") for number in range(5))
    verdict = check_parity(judged(Known(Parity(found, 1, proven=False), NOW)))
    assert (verdict.outcome, verdict.reason, verdict.subject) == ("Wait", "MetadataDiffers", "topic t0")
    assert (verdict.observed, verdict.threshold) == ("5", "0")
    assert verdict.message.startswith("topic t0: ZooKeeper says nothing, KRaft says id x; topic t1: ")
    assert verdict.message.endswith("; and 2 more")


@pytest.mark.parametrize("position", [
    Position(entered=NOW - 5), Position(entered=NOW - 100, opened=NOW - 5),
    Position(entered=NOW - 100, opened=NOW - 50, batch=Batch(1, ("kafka-0",), NOW - 5)),
])
def test_a_reading_from_before_the_batch_or_step_is_no_evidence(position: Position) -> None:
    old = check_parity(judged(Known(Parity((), 0, proven=True), NOW - 6), position))
    assert (old.outcome, old.reason) == ("Wait", "ParityUnsettled")
    assert check_parity(judged(Known(Parity((), 0, proven=True), NOW - 5), position)).outcome == "Pass"


def test_a_difference_that_stays_is_told_as_stalled() -> None:
    picture = judged(Known(Parity((BEHIND,), 0, proven=False), NOW))
    first: Judge[Picture] = Judge("", {}, NOW)
    assert not first.all_open([PARITY], picture)
    later: Judge[Picture] = Judge("", first.next_streaks(), NOW + PATIENCE_SECONDS + 1)
    assert not later.all_open([PARITY], picture)
    assert (first.judged["Parity"].overdue, later.judged["Parity"].overdue) == (False, True)


# --- What a new leader ends -------------------------------------------------------------------------------------------


def of(kind: str, zookeeper: str = "4096 iterations", kraft: str = "another value, 4096 iterations") -> Difference:
    return Difference(kind, "alice", zookeeper, kraft)


NEW_SALT, REMOVED_QUOTA = of("SCRAM user"), of("quota", "21.0", "nothing")


@pytest.mark.parametrize("found", [
    (NEW_SALT,), (of("SCRAM user", "nothing"),), (REMOVED_QUOTA,), (of("quota", "1.0", "2.0"),), (NEW_SALT, REMOVED_QUOTA),
])
def test_what_entry_scripts_and_kafka_leave_in_zookeeper_is_ended_by_a_new_leader(found: tuple[Difference, ...]) -> None:
    assert are_ended_by_a_new_leader(found)


@pytest.mark.parametrize("found", [
    (),
    *((of(kind),) for kind in (
        "znode", "topic", "partition", "topic configuration", "broker configuration", "ACL", "delegation token",
        "producer ids")),
    (of("SCRAM user", kraft="nothing"),),
    (of("ACL", "present", "nothing"),), (of("ACL", "nothing", "present"),),
    (NEW_SALT, of("ACL")),
    tuple([NEW_SALT] * LIMIT),
])
def test_what_somebody_may_want_is_left_to_a_person(found: tuple[Difference, ...]) -> None:
    """All of it: a new leader writes everything over ZooKeeper's, and beyond the limit others may hide."""
    assert not are_ended_by_a_new_leader(found)


DELETE = "kubectl --namespace kafka delete pod kafka-controller-0"


@pytest.mark.parametrize(("difference", "opened", "cure"), [
    (NEW_SALT, NOW - 60,
     f"after a minute Switchover restarts the leading controller, each once in this step; to do it yourself: {DELETE}"),
    (NEW_SALT, None, DELETE),
    (of("ACL"), NOW - 60, f"find out which side is right, as the runbook shows; if KRaft's is: {DELETE}"),
])
def test_the_cure_names_the_leader_and_one_command(difference: Difference, opened: float | None, cure: str) -> None:
    picture = moment("DualWrite", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, (), MigrationState.MIGRATION, opened=opened)
    found = with_fact(picture, "parity", Known(Parity((difference,), 0, proven=False), NOW))
    assert check_parity(found).unblocks == cure
    leaderless = check_parity(with_fact(found, "quorum", Unknown("no leader"))).unblocks
    assert leaderless == cure.replace(DELETE, "delete the pod of the leading controller, once one leads")


def test_the_controller_that_is_to_restart_for_a_difference_is_named() -> None:
    differing = parity(difference=True)(moment("Soak"))
    leader = value(differing.facts.quorum).leader_id
    found = check_parity(differing)
    assert found.unblocks.endswith(f"kubectl --namespace kafka delete pod kafka-controller-{leader - 3000}")
    nobody = with_fact(differing, "quorum", Unknown("no controller leads"))
    assert check_parity(nobody).unblocks.endswith("delete the pod of the leading controller, once one leads")
