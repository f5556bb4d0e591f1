"""The migration-enabled consumer as processes on a real ZooKeeper and a broker of 3.9; the oracle judges their histories."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from adapters.clusters import KafkaCluster, kafka_cluster
from adapters.members import Process, python
from adapters.trial import SESSION, trial
from history.events import Kind
from patience import stretched, until
from switchover.api.kafka_migration import NodeMode
from switchover.coordination.mode import Mode
from switchover.shared.partition import TopicPartition


@contextlib.contextmanager
def waiting(*members: Process) -> Iterator[None]:
    """None of them keeps a processor busy meanwhile."""
    before, began = [each.cpu_seconds() for each in members], time.monotonic()
    yield
    passed = time.monotonic() - began
    for member, seconds in zip(members, before, strict=True):
        assert member.cpu_seconds() - seconds < 0.3 * passed, f"{member.name} in {passed:.0f} s"


def test_there_and_back_with_a_kafka_consumer_in_between(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with trial(zookeeper_cluster, tmp_path) as here:
        one = here.member("one")
        here.settles({"one": 6})
        two = here.member("two", COMMITS="automatic")
        here.settles({"one": 3, "two": 3})
        here.toggle(Mode.KAFKA)
        here.settles({"one": 3, "two": 3})
        plain = here.members.member("plain", python(), ASSIGNOR="range")
        until(lambda: plain.delivers(2), "the KafkaConsumer has its share")
        here.settles({"one": 2, "two": 2, "": 2})
        here.write(Mode.ZOOKEEPER)
        until(lambda: {told.waits for told in here.world().acknowledgements.values() if told is not None} == {
            "KafkaConsumer plain is in the group"}, "they do not leave it alone with its share")
        here.toggle(Mode.KAFKA)
        here.settles({"one": 2, "two": 2, "": 2})
        assert plain.stop() == 0
        here.settles({"one": 3, "two": 3})
        here.toggle(Mode.ZOOKEEPER)
        here.settles({"one": 3, "two": 3})
        assert one.stop() == 0
        here.settles({"two": 6})
        here.ends(two)
        report = here.members.report()
    assert (report.faults, report.duplicates, report.notes, report.never_owned) == ([], [], [], [])
    assert report.deliveries == here.members.acknowledged()


@pytest.mark.parametrize("strategy", [pytest.param("range", marks=pytest.mark.long), "roundrobin"])
def test_beside_old_consumers_in_java(strategy: str, zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    """From old members to ours and back to theirs. A single partition of difference would leave all without an owner."""
    with trial(zookeeper_cluster, tmp_path) as here:
        one, two = (here.old(name, STRATEGY=strategy) for name in ("one", "two"))
        here.settles({"one": 3, "two": 3})
        three = here.member("three", STRATEGY=strategy)
        here.settles({"one": 2, "two": 2, "three": 2})
        here.write(Mode.KAFKA)
        until(lambda: {told.waits for told in here.world().acknowledgements.values() if told is not None} == {
            f"{here.members.name}_one is not migration-enabled"}, "it does not follow while old members are there")
        one.stop()
        here.settles({"two": 3, "three": 3})
        two.stop()
        here.settles({"three": 6})
        here.toggle(Mode.KAFKA)
        four = here.old("four", STRATEGY=strategy)
        here.settles({"three": 3, "four": 3})
        here.write(Mode.ZOOKEEPER)
        assert three.stop() == 0
        here.settles({"four": 6})
        assert here.members.producer.stop() == 0
        until(lambda: here.members.committed() == here.members.acknowledged(), "everything is committed")
        four.stop()
        report = here.members.report()
    assert (report.faults, report.never_owned) == ([], [])
    assert report.deliveries >= here.members.acknowledged()


@pytest.mark.parametrize("mode", [pytest.param(Mode.ZOOKEEPER, marks=pytest.mark.long), Mode.KAFKA])
def test_a_member_that_is_killed_and_one_that_stands_still(mode: Mode, zookeeper_cluster: KafkaCluster, tmp_path: Path,
                                                           ) -> None:
    """SIGKILL costs what was not committed again; SIGSTOP for longer than the session makes no second consumer."""
    with trial(zookeeper_cluster, tmp_path) as here:
        killed, sleeper, steady = (here.member(name) for name in ("killed", "sleeper", "steady"))
        here.settles({"killed": 2, "sleeper": 2, "steady": 2})
        here.toggle(mode)
        killed.kill()
        here.settles({"sleeper": 3, "steady": 3})
        with sleeper.frozen():
            here.settles({"steady": 6})
        here.settles({"sleeper": 3, "steady": 3})
        assert sleeper.events(Kind.LOST), "it was told"
        here.ends(sleeper, steady)
        report = here.members.report()
    assert (report.faults, report.never_owned) == ([], [])
    assert [note for note in report.notes if "without holding" in note] == []


def test_an_owner_node_that_a_person_deletes_is_taken_again(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with trial(zookeeper_cluster, tmp_path) as here:
        one = here.member("one")
        here.settles({"one": 6})
        partition = TopicPartition(here.members.topic, 3)
        here.zookeeper.delete(here.layout.owner(partition))
        until(lambda: bool(one.events(Kind.LOST)), "it stops at once", 10)
        here.settles({"one": 6})
        assert [event.partition.number for event in one.events(Kind.LOST)] == [3]
        here.ends(one)
        report = here.members.report()
    assert report.faults == []


@pytest.mark.long
def test_zookeeper_away_for_shorter_and_for_longer_than_the_session(tmp_path: Path) -> None:
    with kafka_cluster(tmp_path / "cluster") as cluster:
        cluster.start_zookeeper_mode()
        server = cluster.zookeeper
        with trial(cluster, tmp_path) as here:
            one, two = here.member("one", CLOSE_SECONDS="2"), here.member("two", COMMITS="automatic")
            here.settles({"one": 3, "two": 3})
            sessions = {owner.session for owner in here.world().owners.values()}
            with server.frozen():
                time.sleep(SESSION * 0.8)
            here.settles({"one": 3, "two": 3})
            assert {owner.session for owner in here.world().owners.values()} == sessions, "the sessions outlived it"
            assert one.events(Kind.LOST) + two.events(Kind.LOST) == []
            server.stop()
            time.sleep(SESSION)
            quiet = time.monotonic()
            with waiting(one, two):
                time.sleep(SESSION)
            assert [event for each in (one, two) for event in each.events(Kind.DELIVERED) if event.until > quiet] == []
            server.start(server.properties())
            until(lambda: here.zookeeper.connected, "the test's own client is back")
            here.settles({"one": 3, "two": 3}, 60)
            assert two.stop() == 0
            here.settles({"one": 6})
            server.stop()
            assert one.stop() == 0, "it ends, though nobody takes its commits"
            report = here.members.report()
    assert report.faults == []


@pytest.mark.long
@pytest.mark.parametrize("mode", Mode)
def test_partitions_that_are_added(mode: Mode, zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with trial(zookeeper_cluster, tmp_path) as here:
        one, two = here.member("one"), here.member("two")
        here.settles({"one": 3, "two": 3})
        here.toggle(mode)
        admin = AdminClient({"bootstrap.servers": zookeeper_cluster.bootstrap})
        admin.create_partitions([NewPartitions(here.members.topic, 8)])[here.members.topic].result(stretched(30))
        until(lambda: here.owned() == {"one": 4, "two": 4}, "both have their share of eight", 60)
        here.ends(one, two)
        report = here.members.report()
    assert report.faults == []


@pytest.mark.long
@pytest.mark.parametrize("mode", Mode)
def test_the_only_broker_away_and_back(mode: Mode, tmp_path: Path) -> None:
    """The coordinator of the group, and the leader of everything."""
    with kafka_cluster(tmp_path / "cluster") as cluster:
        cluster.start_zookeeper_mode()
        with trial(cluster, tmp_path) as here:
            one, two = here.member("one"), here.member("two", COMMITS="automatic")
            here.settles({"one": 3, "two": 3})
            here.toggle(mode)
            here.settles({"one": 3, "two": 3})
            cluster.brokers[1].kill()
            with waiting(one, two):
                time.sleep(12)                          # longer than the broker's session, and the member's in its group
            cluster.brokers[1].start(cluster.broker_properties(1, NodeMode.ZOOKEEPER))
            here.settles({"one": 3, "two": 3}, 90)
            here.ends(one, two)
            report = here.members.report()
    assert (report.overlaps, report.losses) == ([], [])
