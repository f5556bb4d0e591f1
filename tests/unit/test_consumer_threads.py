"""A thread for each stream, and the consumer's own, in every order: what one of them looks at another may change meanwhile.

The classes are those that ship; clients and servers are made up. Each case was seen to fail with its mutant.
"""

import contextlib
from collections import deque
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import KafkaException

from interleaving.orders import explored
from switchover.consumer import fetching, membership, migration_consumer, serial
from switchover.consumer import messages as m
from switchover.consumer.commits import Commits, Stores
from switchover.consumer.fetching import Positions, Stream
from switchover.consumer.figures import Figures
from switchover.consumer.membership import Membership, Sent
from switchover.consumer.migration_consumer import MigrationConsumer
from switchover.consumer.settings import Store
from switchover.shared.partition import TopicPartition
from unit.test_consumer_fetching import Record

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
WITH_TWO_DELAYS_IF_LONG = pytest.mark.parametrize("delays", [1, pytest.param(2, marks=pytest.mark.long)])


class Quiet:
    """A client that has these records, and a listener that is told nothing."""

    def __init__(self, *records: Record) -> None:
        self.records = list(records)

    def close(self) -> None: ...

    def consume(self, count: int, _: float) -> list[Record]:
        taken, self.records = self.records[:count], self.records[count:]
        return taken

    def incremental_assign(self, places: Any) -> None: ...
    def incremental_unassign(self, places: Any) -> None: ...
    def calling(self) -> None: ...
    def assigned(self, places: Any) -> None: ...
    def revoked(self, places: Any) -> None: ...
    def lost(self, places: Any) -> None: ...


def fetching_from(positions: Positions, partition: TopicPartition, *offsets: int) -> Stream:
    """A stream that has begun to fetch and has handed nothing out."""
    quiet = Quiet()
    stream = Stream(quiet, quiet, positions)  # type: ignore[arg-type]
    stream.holds = lambda now: True
    stream.start({partition: 0})
    stream.consume(1, 0)
    quiet.records += [Record(partition, offset) for offset in offsets]
    return stream


def beside(threads: Any, do: Any) -> Any:
    """Another thread of the application."""
    thread = threads.Thread(do, "beside")
    thread.start()
    return thread


# --- a commit beside a stream that polls ------------------------------------------------------------------------------


def commits_while_it_is_given_back(threads: Any) -> None:
    stream = fetching_from(Positions(automatic=False), P)
    stream.stop(frozenset({P}), lambda: None)
    polls = beside(threads, lambda: stream.consume(1, 0))
    claims = stream.commit({P: 5})
    assert claims.keys() <= {P}
    polls.join()
    assert stream.commit({P: 6}) == {}


def commits_further_than_it_was_handed(threads: Any) -> None:
    positions = Positions(automatic=True)
    stream = fetching_from(positions, P, 0, 1, 2)
    stream.consume(2, 0)
    polls = beside(threads, lambda: stream.consume(1, 0))
    claims = stream.commit({P: 20})
    assert positions.under(claims) == {P: 20}
    polls.join()
    assert positions.under(claims) == {P: 20}


@WITH_TWO_DELAYS_IF_LONG
def test_a_commit_beside_a_stream_that_polls(delays: int) -> None:
    """A partition that was looked up before its stream gave it back is not looked up again."""
    found = explored(commits_while_it_is_given_back, fetching, delays=delays, watched=[Stream.commit])
    assert found.orders > 50
    assert found.broken == []


def test_a_commit_is_not_undone_by_a_stream_that_counts() -> None:
    found = explored(commits_further_than_it_was_handed, fetching, delays=2, watched=[Stream._count, Positions.pass_on])
    assert found.orders > 1000
    assert found.broken == []


# --- a partition of each stream taken at once -------------------------------------------------------------------------


def gives_back_of_two_streams(threads: Any) -> None:
    positions = Positions(automatic=False)
    one, two = fetching_from(positions, P), fetching_from(positions, Q)
    told = list[m.Event]()
    member: Any = object.__new__(Membership)
    member._streams, member._events, member.figures = [one, two], SimpleNamespace(put=told.append), Figures()
    polls = beside(threads, lambda: one.consume(1, 0))
    member._stop(7, frozenset({P, Q}))
    polls.join()
    one.consume(1, 0)
    assert told == [], "the second stream's application is still at work"
    two.consume(1, 0)
    assert told == [m.Stopped(7)]


def test_partitions_of_two_streams_are_given_back_when_both_are_done_with() -> None:
    found = explored(gives_back_of_two_streams, fetching, membership, delays=2, watched=[Membership._stop])
    assert found.orders > 400
    assert found.broken == []


# --- the consumer itself ----------------------------------------------------------------------------------------------


class Ended:
    """A membership that is over, or not: what MigrationConsumer calls of it."""

    def __init__(self, *sent: Sent, ended: bool = True) -> None:
        self.sent, self.ended, self.figures = deque(sent), ended, Figures()
        self.left = SimpleNamespace(wait=lambda _: True, is_set=lambda: True)

    def close(self) -> None:
        self.ended = True

    def end(self) -> None: ...
    def commit(self, claims: Any, *, wait: bool) -> None: ...

    def threads(self) -> dict[TopicPartition, str]:
        return {}


def a_consumer(first: Ended, **configuration: Any) -> tuple[MigrationConsumer, list[Ended]]:
    """In this membership, and those in which it begins later."""
    begun = list[Ended]()
    with mock.patch.object(migration_consumer, "made", return_value=Quiet()):
        consumer: Any = MigrationConsumer({"group.id": "g", "zookeeper.connect": "zookeeper", **configuration})

    def begin() -> None:
        migration_consumer.time.sleep(0.1)
        begun.append(Ended(ended=False))
        consumer._membership = begun[-1]

    consumer._membership, consumer._begin = first, begin
    return consumer, begun


def hears_of_commits(threads: Any) -> None:
    told = list[tuple[float, int]]()
    consumer, _ = a_consumer(
        Ended(*(Sent(float(number), {P: number}) for number in range(3)), ended=False),
        on_commit=lambda _, places: told.append((consumer.commit_sent, places[0].offset)))
    polls = beside(threads, consumer.calling)
    consumer.calling()
    polls.join()
    assert told == [(0.0, 0), (1.0, 1), (2.0, 2)]


@WITH_TWO_DELAYS_IF_LONG
def test_two_streams_hear_of_commits_once_and_in_their_order(delays: int) -> None:
    found = explored(hears_of_commits, migration_consumer, delays=delays, watched=[MigrationConsumer._call_back_commits])
    assert found.broken == []
    assert found.orders > 100


def asks_while_it_joins_again(threads: Any) -> None:
    consumer, begun = a_consumer(Ended())
    polls = beside(threads, consumer.calling)
    consumer.metrics()
    consumer.group_assignment()
    with contextlib.suppress(KafkaException):
        consumer.commit(asynchronous=False)
    polls.join()
    assert len(begun) == 1


def test_it_may_be_asked_while_another_thread_joins_again() -> None:
    found = explored(asks_while_it_joins_again, migration_consumer, delays=1, watched=[
        MigrationConsumer.commit, MigrationConsumer.metrics, MigrationConsumer.group_assignment])
    assert found.orders > 50
    assert found.broken == []


def commits_what_was_handed_out(threads: Any) -> None:
    """Of both streams, by the thread of each."""
    positions, answered = Positions(automatic=False), [0]
    consumer, _ = a_consumer(first := Ended(ended=False))
    consumer._positions, consumer.streams = positions, [fetching_from(positions, P), fetching_from(positions, Q, 0)]

    def written(claims: Any, *, wait: bool) -> None:
        due = answered[0]
        assert (offset := positions.under(claims)[Q]) >= due, f"{offset} is written, {due} was answered"

    first.commit = written  # type: ignore[method-assign]

    def polls_and_commits() -> None:
        consumer.streams[1].consume(1, 0)
        consumer.commit(asynchronous=False)
        answered[0] = 1

    polls = beside(threads, polls_and_commits)
    consumer.commit(asynchronous=False)
    polls.join()
    assert positions.claims(frozenset({Q}))[Q].done == 1


def test_what_one_stream_committed_another_does_not_take_back() -> None:
    found = explored(commits_what_was_handed_out, fetching, migration_consumer, delays=1, watched=[MigrationConsumer.commit])
    assert found.orders > 50
    assert found.broken == []


def closes_when_it_is_out_already(threads: Any) -> None:
    first = Ended()
    first.left = SimpleNamespace(wait=lambda seconds: migration_consumer.time.sleep(seconds), is_set=lambda: False)
    consumer, _ = a_consumer(first)
    began = migration_consumer.time.monotonic()
    consumer.close()
    assert migration_consumer.time.monotonic() - began < 1.0


def test_it_closes_at_once_when_its_membership_has_ended() -> None:
    """Beyond max.poll.interval.ms, for one: nothing is left to be committed or released."""
    assert explored(closes_when_it_is_out_already, migration_consumer).broken == []


def closes_while_a_stream_polls(threads: Any) -> None:
    consumer, begun = a_consumer(Ended(ended=False))

    def poll() -> None:
        with contextlib.suppress(RuntimeError):         # Consumer closed
            consumer.calling()

    polls = beside(threads, poll)
    consumer.close()
    polls.join()
    assert begun == [], "nobody would ever end it"


def test_nobody_joins_again_once_it_is_closed() -> None:
    found = explored(closes_while_a_stream_polls, migration_consumer, delays=2, watched=[
        MigrationConsumer.close, MigrationConsumer.calling])
    assert found.orders > 1000
    assert found.broken == []


# --- the commits of the application and of the member -----------------------------------------------------------------


class InStore:
    """One store. What was answered to the application may not go back."""

    def __init__(self) -> None:
        self.answered, self.broken = 0, ""

    def commit(self, offsets: Any) -> Any:
        if (offset := offsets.get(P, self.answered)) < self.answered:
            self.broken = f"{offset} is written, {self.answered} was answered"
        return frozenset()


class InKafka(InStore):
    def commit(self, offsets: Any) -> bool:
        return super().commit(offsets) == frozenset()


class Server:
    """What a membership calls of Sessions, and of KafkaGroup: one thread each."""

    def __init__(self, name: str, store: InStore) -> None:
        self._store, self._serial = store, serial.Serial(name)

    def ask(self, number: int, do: Any) -> None:
        self.submit(do)

    def submit(self, do: Any) -> Any:
        return self._serial.submit(lambda: do(self._store))


class ReadsEarly(Membership):
    """As it was before 0e7d52a4: what is written was read when it was asked for."""

    def _commit(self, number: int, claims: Any) -> None:
        offsets = self._positions.under(claims)

        def in_zookeeper(znodes: Any) -> None:
            self._stores.to_zookeeper(znodes, offsets)
            self._group.ask(number, lambda group: self._stores.to_kafka(group, offsets))  # type: ignore[arg-type, return-value]

        self._sessions.ask(number, in_zookeeper)  # type: ignore[arg-type]


def commits_beside_the_member(threads: Any, kind: type[Membership] = Membership) -> None:
    in_zookeeper, in_kafka = InStore(), InKafka()
    zookeeper, kafka = Server("zookeeper", in_zookeeper), Server("kafka", in_kafka)
    member: Any = object.__new__(kind)
    member._positions, member._stores = Positions(False), Stores(frozenset(Store))
    member._commits = Commits(member._positions, member._stores, lambda: True)
    member.figures, member.sent = Figures(), deque()
    member._sessions = SimpleNamespace(ask=zookeeper.ask, call=lambda do: zookeeper.submit(do).result(5))
    member._group = SimpleNamespace(ask=kafka.ask, call=kafka.submit)
    claim = member._positions.begin({P: 0})[P]

    def commits_now_and_then() -> None:
        for number in (1, 2):
            member._commit(number, member._positions.claims(frozenset({P})))

    thread = beside(threads, commits_now_and_then)
    for offset in (5, 9):
        member._positions.move(P, claim, offset)
        member.commit({P: claim}, wait=True)
        in_zookeeper.answered = in_kafka.answered = offset
    thread.join()
    for each in (zookeeper, kafka):
        each.submit(lambda _: None).result()
    assert (in_zookeeper.broken, in_kafka.broken) == ("", "")


@WITH_TWO_DELAYS_IF_LONG
def test_a_commit_that_was_answered_is_not_undone_by_the_members_own(delays: int) -> None:
    found = explored(commits_beside_the_member, serial, fetching, membership, delays=delays)
    assert found.orders > 60
    assert found.broken == []


def test_the_race_of_before_is_in_these_orders() -> None:
    """Else nothing is proved by them."""
    found = explored(lambda threads: commits_beside_the_member(threads, ReadsEarly), serial, fetching, membership)
    assert any("5 is written, 9 was answered" in each for each in found.broken)
