"""The sample member: its callbacks against a client that is made up, and its planted faults before the checker."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError

from history.checker import check
from history.events import SPAN, Event, Kind, parsed
from history.findings import Loss, Overlap
from history.recorder import Recorder
from member.faults import Faults
from member.membership import Membership, OutOfTheGroup
from member.settings import Settings
from unit.group_client import TOPIC, Client, Message, Outside


class Clock:
    """Every look at it is a millisecond later."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class Pod:
    """A member with its client and its history."""

    def __init__(self, clock: Clock, name: str = "a", faults: Faults | None = None, **client: Any) -> None:
        self.clock, self.file, self.client, self.outside = clock, io.BytesIO(), Client(**client), Outside()
        self.recorder = Recorder(self.file, name, clock="boot", mono=clock, wall=clock)
        reader: Callable[[], Any] = lambda: self.outside  # noqa: E731
        self.membership = Membership(self.client, self.recorder, TOPIC, 1.0, faults or Faults(), reader, clock)  # type: ignore[arg-type]

    def take(self, partition: int, *offsets: int) -> None:
        self.client.inbox += [Message(partition, offset) for offset in offsets]
        for _ in offsets:
            self.membership.turn()

    def pause(self, seconds: float) -> None:
        self.clock.now += seconds
        self.membership.turn()

    def events(self) -> list[Event]:
        return [parsed(line) for line in self.file.getvalue().splitlines()]

    def told(self) -> list[str]:
        """Every event after the start: kind, partition, and what it says."""
        return [" ".join(str(part) for part in (
            event.kind, event.partition.number if event.partition.topic else "",
            event.offset if event.offset is not None else "", event.ranges or "", event.words) if part != "")
            for event in self.events()[1:]]


def judged(*pods: Pod) -> Any:
    return check(sorted((event for pod in pods for event in pod.events()), key=lambda event: event.mono))


# --- a good member ----------------------------------------------------------------------------------------------------


def test_the_life_of_a_member_in_its_history() -> None:
    pod = Pod(Clock(), committed_offsets={0: 5})
    pod.client.give(0, 1)
    pod.take(0, 5, 6, 7)
    pod.pause(1.0)
    pod.membership.leave()
    assert pod.told() == [
        "claim 0 5", "claim 1 -1", "delivered 0 ((5, 5),)", "delivered 0 ((6, 7),)", "commit 0 8", "release 0", "release 1",
        "stop"]
    assert pod.client.calls == ["subscribe ['orders']", "commit 0:8", "close"]


def test_a_revoked_partition_is_committed_before_it_is_released_and_the_others_stay() -> None:
    pod = Pod(Clock())
    pod.client.give(0, 1)
    pod.take(0, 0, 1)
    pod.take(1, 0)
    pod.client.revoke(0)
    pod.take(1, 1)
    assert pod.told()[2:] == [
        "delivered 0 ((0, 0),)", "delivered 1 ((0, 0),)", "delivered 0 ((1, 1),)", "commit 0 2", "release 0"]
    assert pod.client.calls[1:] == ["commit 0:2"]
    pod.client.give(2)
    pod.membership.leave()
    assert pod.client.calls[1:] == ["commit 0:2", "commit 1:2", "close"], "1 is still owned"


def test_a_lost_partition_is_not_committed() -> None:
    pod = Pod(Clock())
    pod.client.give(0)
    pod.take(0, 0, 1)
    pod.client.lose(0)
    pod.pause(5)
    pod.membership.leave()
    assert not [call for call in pod.client.calls if call.startswith("commit")]
    assert pod.told()[-2:] == ["lost 0", "stop"]


def test_what_is_committed_is_not_committed_again() -> None:
    pod = Pod(Clock())
    pod.client.give(0)
    pod.take(0, 0)
    pod.pause(1)
    pod.pause(1)
    assert pod.client.calls[1:] == ["commit 0:1"]


def test_deliveries_are_in_the_history_before_the_next_commit() -> None:
    pod = Pod(Clock())
    pod.client.give(0)
    pod.take(0, 0, 1)
    pod.pause(SPAN)
    assert pod.told()[-1] == "delivered 0 ((1, 1),)"


def test_a_refused_commit_is_told_and_tried_again() -> None:
    pod = Pod(Clock(), refuse={1: KafkaError.REBALANCE_IN_PROGRESS})
    pod.client.give(0, 1)
    pod.take(0, 0)
    pod.take(1, 0)
    pod.pause(1)
    assert "commit 0 1" in pod.told()
    assert "error commit of orders-1: REBALANCE_IN_PROGRESS" in pod.told()
    assert "commit 1 1" not in pod.told()
    pod.client.refuse.clear()
    pod.pause(1)
    assert pod.client.calls[-1] == "commit 1:1"
    pod.client.broken = KafkaError.ILLEGAL_GENERATION
    pod.take(0, 1)
    pod.pause(1)
    assert pod.told()[-1] == "error commit: ILLEGAL_GENERATION"
    pod.client.broken = 0
    pod.pause(1)
    assert pod.client.calls[-1] == "commit 0:2"


def test_a_claim_whose_offset_could_not_be_read_leaves_it_open() -> None:
    pod = Pod(Clock(), broken=KafkaError._TIMED_OUT)
    pod.client.give(0)
    assert pod.told() == ["error committed: _TIMED_OUT", "claim 0"]


def test_a_fatal_error_comes_as_a_message_that_does_not_say_fatal() -> None:
    pod = Pod(Clock())
    pod.client.give(0)
    pod.take(0, 0, 1)
    fatal = KafkaError(KafkaError._FATAL, "fenced")
    assert not fatal.fatal()
    pod.client.inbox = [Message(0, -1, KafkaError(KafkaError._ALL_BROKERS_DOWN)), Message(0, -1, fatal)]
    pod.membership.turn()
    with pytest.raises(OutOfTheGroup, match="fenced"):
        pod.membership.turn()
    assert pod.told()[-3:] == ["error _ALL_BROKERS_DOWN", "delivered 0 ((1, 1),)", "fenced fenced"]


# --- planted faults ---------------------------------------------------------------------------------------------------


def hand_over(clock: Clock, faults: Faults) -> tuple[Pod, Pod]:
    """Twenty records; the first member, bad or not, takes ten, the next the rest."""
    producer = Recorder(file := io.BytesIO(), "producer", clock="boot", mono=clock, wall=clock)
    for offset in range(20):
        producer.acknowledged(TOPIC, 0, offset)
    producer.flush()
    first = Pod(clock, "a", faults)
    first.file.write(file.getvalue())
    first.client.give(0)
    first.take(0, *range(10))
    first.client.revoke(0)
    second = Pod(clock, "b", committed_offsets=dict(first.client.committed_offsets))
    second.client.give(0)
    for offset in range(second.client.committed_offsets.get(0, 0), 20):
        second.take(0, offset)
        first.outside.inbox += [Message(0, offset)]
        first.membership.turn()
    for pod in (first, second):
        pod.membership.leave()
    return first, second


def test_without_a_fault_the_hand_over_is_clean() -> None:
    first, second = hand_over(Clock(), Faults())
    report = judged(first, second)
    assert (report.faults, report.duplicates, report.notes) == ([], [], [])
    assert first.outside.calls == []


def test_double_goes_on_where_it_was_revoked_and_is_found() -> None:
    first, second = hand_over(Clock(), Faults(double=True))
    assert first.outside.calls == ["assign 0:10", "close"]
    report = judged(first, second)
    assert {type(fault) for fault in report.faults} == {Overlap}
    assert sum(each.records for each in report.duplicates) == 10


def test_forget_commits_past_what_it_never_delivered_and_is_found() -> None:
    [loss] = judged(*hand_over(Clock(), Faults(forget=4))).faults
    assert isinstance(loss, Loss)
    assert list(loss.offsets) == [(3, 3), (7, 7)]


def test_stall_delivers_and_commits_nothing_of_one_partition_alone() -> None:
    pod = Pod(Clock(), faults=Faults(stall_partition=1))
    pod.client.give(0, 1)
    pod.take(1, 0, 1)
    pod.take(0, 0)
    pod.pause(1)
    pod.membership.leave()
    assert pod.client.calls[1:] == ["commit 0:1", "close"]
    assert not [event for event in pod.events() if event.kind is Kind.DELIVERED and event.partition.number == 1]


def test_stall_first_is_of_the_first_partition_that_it_is_given_whatever_follows() -> None:
    pod = Pod(Clock(), faults=Faults(stall_first=True))
    pod.client.give(1)
    pod.client.give(0)
    pod.take(1, 0, 1)
    pod.take(0, 0)
    pod.membership.leave()
    assert pod.client.calls[1:] == ["commit 0:1", "close"]


def test_a_stall_loses_nothing() -> None:
    first, second = hand_over(Clock(), Faults(stall_partition=0))
    assert not [event for event in first.events() if event.kind is Kind.COMMIT]
    report = judged(first, second)
    assert (report.faults, report.duplicates, report.deliveries) == ([], [], 20)


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("environment", "given", "absent"), [
    ({}, {"group.protocol": "classic", "enable.auto.commit": False}, ["group.instance.id", "partition.assignment.strategy"]),
    ({"GROUP_PROTOCOL": "classic", "ASSIGNOR": "cooperative-sticky"},
     {"partition.assignment.strategy": "cooperative-sticky"}, ["group.remote.assignor"]),
    ({"GROUP_PROTOCOL": "consumer", "ASSIGNOR": "range", "INSTANCE_ID": "a-0"},
     {"group.protocol": "consumer", "group.remote.assignor": "range", "group.instance.id": "a-0"},
     ["partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms"]),
])
def test_the_client_gets_only_what_its_protocol_accepts(environment, given, absent) -> None:
    client = Settings.of(environment).client(print)
    assert client.items() >= given.items()
    assert not set(absent) & set(client)
    Consumer({**client, "log_level": 0}).close()  # the real library takes it: nothing is connected to


def test_faults_are_planted_by_the_environment() -> None:
    settings = Settings.of({"STALL_PARTITION": "0", "DOUBLE": "1", "FORGET": "10", "COMMIT_INTERVAL": "0.5"})
    assert (settings.faults, settings.commit_interval) == (Faults(stall_partition=0, double=True, forget=10), 0.5)
    assert Settings.of({"STALL_PARTITION": "first"}).faults == Faults(stall_first=True)
    assert Settings.of({}).faults == Faults()
    assert Settings.of({"STALL_PARTITION": "", "DOUBLE": "", "FORGET": ""}).faults == Faults()


@pytest.mark.parametrize("environment", [{"GROUP_PROTOCOL": "eager"}, {"FORGET": "x"}, {"COMMIT_INTERVAL": "soon"}])
def test_settings_that_mean_nothing_are_refused(environment) -> None:
    with pytest.raises(ValueError, match=r"classic or consumer|invalid literal|could not convert"):
        Settings.of(environment)
