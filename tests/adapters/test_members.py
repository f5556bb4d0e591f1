"""The sample members, in Python and in Java, on real brokers; the oracle judges what they write."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapters.clusters import KafkaCluster, KRaftNode
from adapters.members import Group, Process, group, java, old_python, python
from history.events import Kind
from history.findings import Loss, Overlap
from patience import until

TERMINATED = {"python": 0, "java": 143}
"""Exit codes after SIGTERM: a JVM that leaves in order says the signal all the same."""


@pytest.fixture(scope="module")
def kafka4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Kafka 4.4 that converts no group online; members hear of a change within a second instead of five."""
    node = KRaftNode(tmp_path_factory.mktemp("kafka4"), "4.4")
    try:
        node.begin("group.consumer.migration.policy=disabled\n"
                   "group.consumer.min.heartbeat.interval.ms=1000\ngroup.consumer.heartbeat.interval.ms=1000\n")
        yield str(node.address)
    finally:
        node.kill()


# --- both in one group ------------------------------------------------------------------------------------------------


def hand_over(all_: Group, first: Process, joining: Callable[[], Process]) -> Process:
    """A member joins, and both deliver; the first leaves, and the other delivers from every partition."""
    second = joining()
    until(lambda: second.delivers(2), f"{second.name} delivers its part")
    first.stop()
    left = time.clock_gettime(time.CLOCK_MONOTONIC)
    until(lambda: second.delivers(len(all_.partitions), left), f"{second.name} delivers everything")
    return second


@pytest.mark.parametrize("protocol", [pytest.param("classic", marks=pytest.mark.long), "consumer"])
def test_python_and_java_hand_partitions_to_each_other_in_one_group(
    protocol: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    servers: KafkaCluster | str = request.getfixturevalue("zookeeper_cluster" if protocol == "classic" else "kafka4")
    bootstrap = servers if isinstance(servers, str) else servers.bootstrap
    settings = {"GROUP_PROTOCOL": protocol, "ASSIGNOR": "range"}
    with group(bootstrap, tmp_path) as all_:
        one = all_.member("python-1", python(), **settings)
        until(lambda: one.delivers(4), "python-1 delivers")
        two = hand_over(all_, one, lambda: all_.member("java-2", java(), **settings))
        three = hand_over(all_, two, lambda: all_.member("python-3", python(), **settings))
        assert all_.producer.stop() == 0
        until(lambda: all_.committed() == all_.acknowledged(), "everything is committed")
        assert three.stop() == TERMINATED["python"]
        assert (one.ended(), two.ended()) == (TERMINATED["python"], TERMINATED["java"])
        report = all_.report()
    assert (report.faults, report.duplicates, report.notes, report.never_owned) == ([], [], [], [])
    assert report.deliveries == all_.acknowledged()
    for member in (one, two, three):
        assert [member.events()[0].kind, member.events()[-1].kind] == [Kind.START, Kind.STOP]
        assert len(member.events(Kind.RELEASE)) == len(member.events(Kind.CLAIM)) >= 4
    assert {each.offset is None for each in two.events(Kind.CLAIM)} == {False}, "the offset found is told"
    assert max(each.offset or 0 for each in two.events(Kind.CLAIM)) > 0, "the group's offset, not none"


@pytest.mark.long
def test_a_cooperative_java_member_gives_back_only_what_moves(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with group(zookeeper_cluster.bootstrap, tmp_path) as all_:
        one = all_.member("one", java(), ASSIGNOR="cooperative-sticky")
        until(lambda: one.delivers(4), "one delivers")
        two = all_.member("two", java(), ASSIGNOR="cooperative-sticky")
        until(lambda: two.delivers(2), "two delivers its part")
        assert (len(one.events(Kind.CLAIM)), len(one.events(Kind.RELEASE)), len(two.events(Kind.CLAIM))) == (4, 2, 2)


def test_a_static_member_in_python_takes_the_place_of_one_in_java(kafka4: str, tmp_path: Path) -> None:
    settings = {"GROUP_PROTOCOL": "consumer", "INSTANCE_ID": "place"}
    with group(kafka4, tmp_path) as all_:
        first = all_.member("first", java(), **settings)
        until(lambda: first.delivers(4), "first delivers")
        assert all_.member("early", python(), **settings).ended() == 1, "the place is taken"
        first.stop()
        second = all_.member("second", python(), **settings)
        until(lambda: second.delivers(4), "second delivers, long before the session of the first would end")
        second.stop()
        report = all_.report()
    assert (report.faults, report.duplicates) == ([], [])
    assert {event.instance for event in [*first.events(), *second.events()]} == {"place"}


# --- planted faults ---------------------------------------------------------------------------------------------------


def test_a_double_consumer_is_found(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with group(zookeeper_cluster.bootstrap, tmp_path) as all_:
        bad = all_.member("bad", python(), DOUBLE="1")
        until(lambda: bad.delivers(4), "bad delivers")
        good = all_.member("good", python())
        until(lambda: good.delivers(2), "good delivers its part")
        both = time.monotonic()
        until(lambda: good.delivers(2, both) and bad.delivers(4, both), "bad delivers beside good")
        good.stop()
        bad.stop()
        report = all_.report()
    assert {type(fault) for fault in report.faults} == {Overlap}
    assert {fault.partition for fault in report.faults} == {each.partition for each in good.events(Kind.DELIVERED)}
    doubles = [holding for fault in report.overlaps for holding in (fault.one, fault.other) if holding.by.member == "bad"]
    assert doubles
    assert all(each.ended == "release" and each.after_end for each in doubles)


@pytest.mark.parametrize("command", [python, pytest.param(java, marks=pytest.mark.long)])
def test_a_forgotten_record_is_found(
    command: Callable[[], list[str]], zookeeper_cluster: KafkaCluster, tmp_path: Path
) -> None:
    with group(zookeeper_cluster.bootstrap, tmp_path) as all_:
        bad = all_.member("bad", command(), FORGET="10")
        until(lambda: all_.committed() > 200, "bad commits")
        bad.stop()
        report = all_.report()
    assert {type(fault) for fault in report.faults} == {Loss}
    assert {loss.partition for loss in report.losses} == set(all_.partitions)
    assert all(first == last and first % 10 == 9 for loss in report.losses for first, last in loss.offsets)


@pytest.mark.parametrize("command", [python, pytest.param(java, marks=pytest.mark.long)])
def test_a_stalled_partition_is_found(
    command: Callable[[], list[str]], zookeeper_cluster: KafkaCluster, tmp_path: Path
) -> None:
    with group(zookeeper_cluster.bootstrap, tmp_path) as all_:
        bad = all_.member("bad", command(), STALL_PARTITION="1")
        until(lambda: bad.delivers(3), "bad delivers")
        time.sleep(3)
        bad.stop()
        report = all_.report()
    worst = report.gaps[0]
    assert (worst.partition, worst.before, worst.after) == (all_.partitions[1], None, None)
    assert worst.seconds > 2
    assert report.faults == []
    assert all_.partitions[1] not in {each.partition for each in bad.events(Kind.DELIVERED, Kind.COMMIT)}


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_an_old_librdkafka_does_not_tell_that_the_group_refuses_it(kafka4: str, tmp_path: Path) -> None:
    with group(kafka4, tmp_path) as all_:
        settled = all_.member("classic", python())
        until(lambda: settled.delivers(4), "the classic member delivers")
        consumer = {"GROUP_PROTOCOL": "consumer"}
        old = all_.member("old", old_python(), **consumer)
        new = all_.member("new", python(), **consumer)
        in_java = all_.member("java", java(), **consumer)
        until(lambda: bool(old.events()), "old has started")
        assert (new.ended(), in_java.ended()) == (1, 1)
        time.sleep(3)                                   # a refused client asks ten times a second
        assert old.alive
        assert [event.kind for event in old.events()] == [Kind.START]
        [told] = new.events(Kind.FENCED)
        assert "group id does not exist" in told.words, "librdkafka drops the broker's reason"
        [told] = in_java.events(Kind.FENCED)
        assert "online upgrade is disabled" in told.words
        assert len(settled.events(Kind.CLAIM)) == 4, "the group was not disturbed"
        settled.stop()                                  # an empty group may be converted under any policy
        until(lambda: old.delivers(4), "old, which has asked all the time, is let in")


@pytest.mark.parametrize("settings", [
    {"GROUP_PROTOCOL": "eager"}, {"ASSIGNOR": "uniform"}, {"DOUBLE": "1"}, {"FORGET": "x"}, {"STALL_PARTITION": "x"},
], ids=lambda settings: "=".join(*settings.items()))
def test_the_java_member_refuses_settings_that_mean_nothing(settings: dict[str, str], tmp_path: Path) -> None:
    member = Process("java", java(), tmp_path, {**settings, "HISTORY": str(tmp_path / "java.jsonl")})
    assert member.ended() == 1
    assert next(iter(settings)) in member.log.read_text() or next(iter(settings.values())) in member.log.read_text()
    assert member.events() == []
