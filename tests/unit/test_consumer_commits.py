"""An answered commit is never undone: the member's own commits and the application's, step by step in every order.

Positions, Commits and Stores are those that ship. ZooKeeper's thread and Kafka's are queues of jobs, done one at a time when
the walk says so; each server takes what it is given, and its answer may be lost.
"""

import contextlib
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from switchover.consumer.commits import Claims, Commits, InKafka, Stores, Uncertain, Written
from switchover.consumer.fetching import Positions
from switchover.consumer.settings import Store
from switchover.shared.partition import TopicPartition

P = TopicPartition("orders", 17)


class NoAnswer(Exception):
    """The server has done it, and its answer did not come."""


class Server:
    """What one store has of P. `owned`: the owner node is ours, for ZooKeeper."""

    def __init__(self) -> None:
        self.has, self.owned, self.answers = 0, True, True

    def commit(self, offsets):
        if P in offsets and self.owned:
            self.has = offsets[P]
        if not self.answers:
            self.answers = True
            raise NoAnswer
        return frozenset() if self.owned else frozenset(offsets)


class Kafka(Server):
    def commit(self, offsets):
        super().commit(offsets)
        return True


class Threads:
    """ZooKeeper's and Kafka's."""

    def __init__(self) -> None:
        self.positions, self.zookeeper, self.kafka = Positions(False), Server(), Kafka()
        self.stores = Stores(frozenset(Store))
        self.certain = True
        self.commits = Commits(self.positions, self.stores, lambda: self.certain)
        self.to_zookeeper, self.to_kafka = deque[Callable[[], None]](), deque[Callable[[], None]]()
        self.begin(0)

    def begin(self, offset: int) -> None:
        """A claim, as after OffsetsRead."""
        self.claim = self.positions.begin({P: offset})[P]

    def commit(self, claims: Claims, done: Callable[[Written[None], bool], None] = lambda *_: None) -> None:
        """As Membership does it, for the application and for the member."""
        def in_zookeeper() -> None:
            turn = deque[InKafka]()
            written = self.commits.write(self.zookeeper, claims, turn.append)

            def in_kafka() -> None:
                done(written, turn[0](self.kafka) is not None)
            self.to_kafka.append(in_kafka)
        self.to_zookeeper.append(in_zookeeper)

    def write_to_zookeeper(self, offset: int) -> None:
        """The application commits, and Kafka's turn has not come."""
        self.positions.move(P, self.claim, offset)
        self.commit({P: self.claim})
        self.run(self.to_zookeeper)

    def run(self, jobs: deque[Callable[[], None]]) -> None:
        with contextlib.suppress(NoAnswer):
            jobs.popleft()()

    def drain(self) -> None:
        while self.to_zookeeper or self.to_kafka:
            self.run(self.to_zookeeper or self.to_kafka)


def test_what_the_member_read_before_is_not_written_over_a_commit_that_was_answered():
    """../shared/cases/commit_goes_back.py, as the demo of old consumers met it."""
    threads, answered = Threads(), []
    threads.positions.move(P, threads.claim, 1706)
    threads.commit(threads.positions.claims(frozenset({P})))            # the member's: asked, and not yet done
    threads.positions.move(P, threads.claim, 1710)
    threads.commit({P: threads.claim}, lambda written, taken: answered.append((written.lost({P: threads.claim}), taken)))
    threads.drain()
    assert answered == [(frozenset(), True)]
    assert (threads.zookeeper.has, threads.kafka.has) == (1710, 1710)


def test_an_application_may_go_back_though_the_answer_before_was_lost():
    threads = Threads()
    for offset, answers in ((5, True), (7, False), (5, True)):
        threads.zookeeper.answers = threads.kafka.answers = answers
        threads.positions.move(P, threads.claim, offset)
        threads.commit({P: threads.claim})
        threads.drain()
        threads.zookeeper.answers = True
        threads.drain()
    assert (threads.zookeeper.has, threads.kafka.has) == (5, 5)


@pytest.mark.parametrize("again", [False, True], ids=["released", "and claimed again"])
def test_a_commit_under_a_claim_that_has_ended_is_lost_and_told(again):
    threads, told = Threads(), []
    before = threads.claim
    threads.positions.move(P, before, 9)
    threads.commit({P: before}, lambda written, _: told.append(written.lost({P: before})))
    threads.positions.forget(frozenset({P}))
    if again:
        threads.begin(20)
    threads.drain()
    assert told == [{P}]
    assert (threads.zookeeper.has, threads.kafka.has) == (0, 0)


def test_kafka_is_not_told_late_what_was_released_without_waiting_for_it():
    threads = Threads()
    threads.write_to_zookeeper(9)
    threads.positions.forget(frozenset({P}))
    threads.kafka.has = 30                                              # by whoever has it now
    threads.drain()
    assert (threads.zookeeper.has, threads.kafka.has) == (9, 30)


def test_a_process_that_stood_still_does_not_tell_kafka_what_it_was_about_to():
    threads = Threads()
    threads.write_to_zookeeper(9)
    threads.certain, threads.kafka.has = False, 30
    with pytest.raises(Uncertain):
        threads.drain()
    assert threads.kafka.has == 30


def test_what_another_owns_goes_to_no_store():
    threads, told = Threads(), []
    threads.zookeeper.owned = False
    threads.positions.move(P, threads.claim, 9)
    threads.commit({P: threads.claim}, lambda written, _: told.append((written.gone, written.lost({P: threads.claim}))))
    threads.drain()
    assert told == [({P}, {P})]
    assert (threads.zookeeper.has, threads.kafka.has) == (0, 0)


class Walk(RuleBasedStateMachine):
    """One member, an application that commits by itself, hand-overs between them and others that consume meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = Threads()
        self.held = True
        self.position = 0                   # of the application
        self.floor = 0                      # what was answered last, or a lower offset that was asked for later
        self.asked: list[int] = []

    @precondition(lambda self: self.held)
    @rule(step=st.integers(1, 5))
    def commit_by_the_application(self, step: int) -> None:
        self.position += step
        self._ask(self.position)

    @precondition(lambda self: self.held and self.position > 0)
    @rule(back=st.integers(1, 3))
    def go_back(self, back: int) -> None:
        self.position = max(self.position - back, 0)
        self.floor = min(self.floor, self.position)
        self._ask(self.position)

    def _ask(self, offset: int) -> None:
        threads, claim, number = self.threads, self.threads.claim, len(self.asked)
        assert threads.positions.move(P, claim, offset)
        self.asked.append(offset)

        def answered(written: Written[None], taken: bool) -> None:
            if taken and not written.lost({P: claim}):
                self.floor = max(self.floor, min(self.asked[number:]))
        threads.commit({P: claim}, answered)

    @precondition(lambda self: self.held)
    @rule()
    def commit_by_the_member(self) -> None:
        self.threads.commit(self.threads.positions.claims(frozenset({P})))

    @precondition(lambda self: self.threads.to_zookeeper)
    @rule(answers=st.booleans())
    def zookeepers_turn(self, answers: bool) -> None:
        self.threads.zookeeper.answers = answers
        self.threads.run(self.threads.to_zookeeper)
        self.threads.zookeeper.answers = True

    @precondition(lambda self: self.threads.to_kafka)
    @rule(answers=st.booleans())
    def kafkas_turn(self, answers: bool) -> None:
        self.threads.kafka.answers = answers
        self.threads.run(self.threads.to_kafka)
        self.threads.kafka.answers = True

    @precondition(lambda self: self.held)
    @rule(waits=st.booleans())
    def hand_over(self, waits: bool) -> None:
        """In zookeeper mode Kafka is waited for no longer than a moment; ZooKeeper always is."""
        threads = self.threads
        while threads.to_zookeeper:
            threads.run(threads.to_zookeeper)
        self.commit_by_the_member()
        threads.run(threads.to_zookeeper)
        while waits and threads.to_kafka:
            threads.run(threads.to_kafka)
        threads.positions.forget(frozenset({P}))
        threads.zookeeper.owned = self.held = False

    @precondition(lambda self: not self.held)
    @rule(step=st.integers(0, 5))
    def consumed_by_others(self, step: int) -> None:
        """Who reads both stores, goes on at the later one and writes both."""
        zookeeper, kafka = self.threads.zookeeper, self.threads.kafka
        zookeeper.has = kafka.has = max(zookeeper.has, kafka.has) + step
        self.floor = max(self.floor, zookeeper.has)

    @precondition(lambda self: not self.held)
    @rule()
    def claim_again(self) -> None:
        threads = self.threads
        threads.zookeeper.owned = self.held = True
        self.position = max(threads.zookeeper.has, threads.kafka.has)
        threads.stores._note(Store.ZOOKEEPER, {P: threads.zookeeper.has})
        threads.stores._note(Store.KAFKA, {P: threads.kafka.has})
        threads.begin(self.position)

    @invariant()
    def what_was_answered_stays(self) -> None:
        assert max(self.threads.zookeeper.has, self.threads.kafka.has) >= self.floor

    def teardown(self) -> None:
        """In the end both stores have the application's last word."""
        if self.held:
            self.commit_by_the_member()
            self.threads.drain()
            assert (self.threads.zookeeper.has, self.threads.kafka.has) == (self.position, self.position)


def test_every_order_of_commits_and_hand_overs():
    run_state_machine_as_test(Walk, settings=settings(max_examples=200, stateful_step_count=40, deadline=None))
