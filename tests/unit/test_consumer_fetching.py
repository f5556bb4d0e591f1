"""What one stream hands out, to whom it tells what, and what may be committed; its client is made up."""

from collections import deque
from typing import Any

import pytest

from switchover.consumer.fetching import Positions, Stream
from switchover.shared.partition import TopicPartition

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)


class Record:
    def __init__(self, partition: TopicPartition, offset: int, error: str | None = None) -> None:
        self._place, self._error = (partition, offset), error

    def error(self) -> str | None:
        return self._error

    def topic(self) -> str:
        return self._place[0].topic

    def partition(self) -> int:
        return self._place[0].partition

    def offset(self) -> int:
        return self._place[1]


class Bench:
    """A client, a listener and a lease in one."""

    def __init__(self, *, automatic: bool = True) -> None:
        self.records: deque[Record] = deque()
        self.told: list[str] = []
        self.lives = True
        self.meanwhile = lambda: None
        self.positions = Positions(automatic)
        self.stream = Stream(self, self, self.positions)  # type: ignore[arg-type]
        self.stream.holds = lambda _: self.lives

    def consume(self, count: int, _: float) -> list[Record]:
        self.meanwhile()
        return [self.records.popleft() for _ in range(min(count, len(self.records)))]

    def incremental_assign(self, places: list[Any]) -> None:
        self._tell("fetch", places)

    def incremental_unassign(self, places: list[Any]) -> None:
        self._tell("end", places)

    def calling(self) -> None: ...

    def assigned(self, places: list[Any]) -> None:
        self._tell("assigned", places)

    def revoked(self, places: list[Any]) -> None:
        self._tell("revoked", places)

    def lost(self, places: list[Any]) -> None:
        self._tell("lost", places)

    def _tell(self, word: str, places: list[Any]) -> None:
        self.told += [f"{word} {each.partition}@{each.offset}" for each in places]

    def next(self) -> int | None:
        message = self.stream.poll(0)
        return None if message is None else message.offset()

    def committable(self) -> dict[TopicPartition, int]:
        return self.positions.under(self.positions.claims(frozenset({P, Q})))


def stopped(bench: Bench) -> None:
    bench.told.append("stopped")


def test_the_application_is_told_before_anything_is_fetched_and_asked_before_it_ends() -> None:
    bench = Bench()
    bench.stream.start({P: 5})
    assert bench.told == [], "in the application's own time"
    bench.records += [Record(P, 5)]
    assert (bench.next(), bench.told) == (5, ["assigned 0@5", "fetch 0@5"])
    assert bench.stream.stop(frozenset({P, Q}), lambda: stopped(bench))
    assert bench.told[2:] == [], "it may be at work still"
    assert bench.committable() == {P: 5}
    assert bench.next() is None
    assert bench.told[2:] == ["revoked 0@6", "end 0@6", "stopped"]
    assert bench.committable() == {P: 6}
    assert not bench.stream.stop(frozenset({P}), lambda: stopped(bench)), "nothing is left to stop"


def test_nothing_is_handed_out_once_it_is_stopped_or_abandoned() -> None:
    for end in ("stop", "abandon"):
        bench = Bench()
        bench.stream.start({P: 0, Q: 0})
        bench.records += [Record(P, 0), Record(Q, 0)]

        def order(bench: Bench = bench, end: str = end) -> None:
            bench.meanwhile = lambda: None
            if end == "stop":
                bench.stream.stop(frozenset({P}), lambda: None)
            else:
                bench.stream.abandon(frozenset({P}))

        bench.meanwhile = order
        found = bench.stream.consume(2, 0)
        assert [message.partition() for message in found] == [1], "it came while the client was asked"
        bench.next()
        assert f"{'revoked' if end == 'stop' else 'lost'} 0@0" in bench.told


def test_a_record_of_an_earlier_claim_is_not_handed_out_in_a_later_one() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.records += [Record(P, 0)]

    def again() -> None:
        bench.meanwhile = lambda: None
        bench.stream.abandon(frozenset({P}))
        bench.stream.start({P: 7})

    bench.meanwhile = again
    assert bench.next() is None
    bench.records += [Record(P, 7), Record(P, 8)]
    assert bench.next() == 7
    assert bench.told == ["assigned 0@0", "fetch 0@0", "lost 0@0", "end 0@0", "assigned 0@7", "fetch 0@7"]
    bench.stream.abandon(frozenset({P}))
    bench.stream.start({P: 7})
    assert bench.next() is None, "the client had given it for the claim before"
    bench.records += [Record(P, 7)]
    assert bench.next() == 7


def test_what_an_earlier_claim_knew_is_not_committed_in_a_later_one() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.records += [Record(P, 3)]
    assert bench.next() == 3
    bench.stream.abandon()
    assert (bench.committable(), bench.stream.commit({P: 4})) == ({}, {}), "it may be another's by now"
    bench.stream.start({P: 100})
    assert bench.stream.commit({P: 4}) == {}
    bench.next()
    assert bench.committable() == {P: 100}
    assert bench.stream.commit({P: 101}).keys() == {P}


def test_what_is_here_of_an_earlier_claim_is_not_handed_out_in_a_later_one_that_begins_before_it() -> None:
    bench = Bench()
    bench.stream.start({P: 50, Q: 0})
    bench.records += [Record(P, 50), Record(P, 51), Record(Q, 0)]
    assert bench.next() == 50
    bench.stream.abandon(frozenset({P}))
    bench.stream.start({P: 10})
    assert [bench.next(), bench.next()] == [0, None]
    assert bench.committable() == {P: 10, Q: 1}
    assert bench.stream.position() == {P: 10, Q: 1}
    bench.records += [Record(P, 10)]
    assert [bench.next(), bench.next()] == [10, None]
    assert bench.committable() == {P: 11, Q: 1}


def test_a_session_in_doubt_while_the_client_is_asked() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.records += [Record(P, 0), Record(P, 1)]
    bench.meanwhile = lambda: setattr(bench, "lives", False)
    assert bench.stream.consume(2, 0) == []
    assert bench.stream.position() == {P: 0}
    bench.meanwhile = lambda: None
    bench.lives = True
    assert [message.offset() for message in bench.stream.consume(2, 0)] == [0, 1]


def test_what_is_lost_with_a_session_is_not_handed_out_in_the_next_one() -> None:
    """The orders are looked at after the session: the next one may live by the time it is asked."""
    bench = Bench()
    bench.stream.start({P: 0, Q: 0})
    bench.records += [Record(P, 0), Record(P, 1), Record(Q, 0)]
    assert bench.next() == 0

    def again(_: float) -> bool:
        bench.stream.holds = lambda _: True
        bench.stream.abandon(frozenset({P}))
        return True

    bench.stream.holds = again
    message = bench.stream.at_once()
    assert message is None
    bench.stream.start({P: 0})
    bench.stream.holds = again
    bench.records += [Record(P, 0)]
    assert [message.partition() for message in bench.stream.consume(5, 0)] == [1]


def test_an_error_is_handed_out_in_its_place_and_moves_nothing() -> None:
    bench = Bench()
    bench.stream.start({P: 0, Q: 0})
    bench.records += [Record(P, 0), Record(P, 9, "end"), Record(Q, 4), Record(Q, 99, "end")]
    assert [message.offset() for message in bench.stream.consume(4, 0)] == [0, 9, 4, 99]
    assert bench.stream.position() == {P: 1, Q: 5}
    assert bench.stream.records == 2
    bench.records += [Record(P, 1, "end"), Record(P, 1)]
    assert [bench.next(), bench.next(), bench.next()] == [1, 1, None]
    assert bench.committable() == {P: 2, Q: 5}
    assert bench.stream.records == 3


def test_positions_go_by_offsets_and_not_by_how_many_there_were() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.records += [Record(P, 3), Record(P, 10), Record(P, 12)]
    assert bench.next() == 3
    assert bench.stream.position() == {P: 4}
    assert bench.next() == 10
    assert (bench.stream.position(), bench.committable()) == ({P: 11}, {P: 4})
    assert bench.next() == 12
    assert (bench.stream.position(), bench.committable()) == ({P: 13}, {P: 11})


def test_a_list_that_was_handed_out_is_the_applications() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.records += [Record(P, number) for number in range(3)]
    bench.stream.consume(3, 0).clear()
    bench.next()
    assert bench.committable() == {P: 3}


def test_what_the_application_commits_stands_though_the_rest_was_not_counted_yet() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.records += [Record(P, number) for number in range(4)]
    assert [bench.next(), bench.next(), bench.next()] == [0, 1, 2]
    assert bench.stream.commit({P: 3}).keys() == {P}
    assert bench.committable() == {P: 3}


def test_a_record_waits_for_the_session_and_is_not_dropped() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.records += [Record(P, 0), Record(P, 1)]
    bench.lives = False
    assert [bench.next(), bench.next()] == [None, None]
    assert bench.committable() == {P: 0}
    bench.lives = True
    assert [bench.next(), bench.next()] == [0, 1]


def test_what_was_handed_out_is_done_with_the_next_call() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.records += [Record(P, 0), Record(Q, 0), Record(P, 1), Record(P, 2)]
    bench.stream.start({Q: 0})
    assert len(bench.stream.consume(3, 0)) == 3
    assert bench.committable() == {P: 0, Q: 0}
    assert bench.next() == 2
    assert bench.committable() == {P: 2, Q: 1}
    bench.next()
    assert bench.committable() == {P: 3, Q: 1}
    assert bench.stream.records == 4


def test_what_has_come_with_another_record_is_handed_out_by_the_same_rules() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.records += [Record(P, 0), Record(P, 1), Record(P, 2)]
    assert bench.next() == 0
    assert bench.records == deque(), "the client has given all of it"
    bench.lives = False
    assert bench.next() is None
    bench.lives = True
    assert (bench.next(), bench.committable()) == (1, {P: 1})
    bench.stream.stop(frozenset({P}), lambda: stopped(bench))
    assert (bench.next(), bench.committable()) == (None, {P: 2})
    assert bench.told[-3:] == ["revoked 0@2", "end 0@2", "stopped"]


def test_a_call_that_waits_for_records_follows_orders_meanwhile() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.next()

    def stop() -> None:
        bench.meanwhile = lambda: None
        bench.stream.stop(frozenset({P}), lambda: stopped(bench))

    bench.meanwhile = stop
    assert bench.stream.consume(2, 0.3) == []
    assert bench.told[-1] == "stopped"


def test_without_automatic_commits_only_what_the_application_says_counts() -> None:
    bench = Bench(automatic=False)
    bench.stream.start({P: 0})
    bench.records += [Record(P, 0), Record(P, 1)]
    assert [bench.next(), bench.next(), bench.next()] == [0, 1, None]
    assert bench.committable() == {P: 0}
    assert bench.stream.commit({P: 1, Q: 9}).keys() == {P}
    assert bench.committable() == {P: 1}


def test_a_callback_that_fails_keeps_nobody_waiting() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    bench.next()
    bench.revoked = lambda _: 1 / 0  # type: ignore[assignment, return-value]
    bench.stream.stop(frozenset({P}), lambda: stopped(bench))
    with pytest.raises(ZeroDivisionError):
        bench.next()
    assert bench.told[-2:] == ["end 0@0", "stopped"]


def test_an_application_is_silent_only_while_there_is_something_for_it() -> None:
    bench = Bench()
    assert bench.stream.silent(1e12) == 0
    bench.stream.start({P: 0})
    assert bench.stream.silent(1e12) > 1e11
    bench.meanwhile = lambda: bench.told.append(f"{bench.stream.silent(1e12):g} while it calls")
    bench.next()
    assert bench.told[-1] == "0 while it calls"


def test_a_call_for_less_than_one_record_is_refused() -> None:
    """It would go around until its time is over, with nothing to wait for."""
    for count in (0, -1):
        with pytest.raises(ValueError, match=f"^num_messages must be 1 or more, and is {count}$"):
            Bench().stream.consume(count, 1)


def test_a_negative_timeout_waits_as_long_as_it_takes() -> None:
    bench = Bench()
    bench.stream.start({P: 0})
    calls = iter(range(5))

    def late() -> None:
        if next(calls, None) is None:
            bench.records.append(Record(P, 0))

    bench.meanwhile = late
    message = bench.stream.poll(-1)
    assert message is not None
    assert message.offset() == 0
