"""The migration-enabled consumer as processes on a real ZooKeeper and a broker of 3.9; the oracle judges their histories."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from adapters.clusters import KafkaCluster, kafka_cluster
from adapters.members import Group, Process, group, migrating, python, until
from history.events import Kind
from switchover.consumer.reading import read_world
from switchover.coordination.layout import Layout
from switchover.coordination.mode import Mode
from switchover.coordination.world import World
from switchover.partition import TopicPartition

PARTITIONS = 6
SESSION = 4.0


class Trial:
    """A group of migration-enabled members, and what ZooKeeper says of it."""

    def __init__(self, cluster: KafkaCluster, members: Group, zookeeper: KazooClient) -> None:
        self.members, self.zookeeper, self.layout = members, zookeeper, Layout(members.name)
        self._connect = cluster.zookeeper_connect

    def member(self, name: str, **settings: str) -> Process:
        return self.members.member(name, migrating(), ZOOKEEPER_CONNECT=self._connect, CONSUMER_CONSUMER_ID=name, **{
            "CONSUMER_ZOOKEEPER_SESSION_TIMEOUT_MS": str(int(SESSION * 1000)), **settings})

    def world(self) -> World:
        return read_world(self.zookeeper, self.layout)

    def owned(self) -> dict[str, int]:
        """Owner nodes of each member, by its own name; those of guards are told under the name of none."""
        found: dict[str, int] = {}
        for owner in self.world().owners.values():
            name = owner.thread.rpartition("-")[0].removeprefix(f"{self.members.name}_") if owner.session else ""
            found[name] = found.get(name, 0) + 1
        return found

    def toggle(self, mode: Mode) -> None:
        """Set the mode znode; done when every member acknowledges that version of it."""
        if self.zookeeper.exists(self.layout.mode) is None:
            self.zookeeper.create(self.layout.mode, str(mode).encode(), makepath=True)
        written = self.zookeeper.set(self.layout.mode, str(mode).encode()).mzxid
        until(lambda: all(told is not None and (told.mode, told.mode_version) == (mode, written)
                          for told in self.world().acknowledgements.values()), f"all members are in {mode} mode", 40)

    def settles(self, owned: dict[str, int], seconds: float = 40) -> None:
        """Until these members own so many, and deliver as many after it."""
        until(lambda: self.owned() == owned, f"{owned} instead of {self.owned()}", seconds)
        now = time.monotonic()
        for process in self.members.processes:
            until(lambda process=process: process.delivers(owned.get(process.name, 0), now),  # type: ignore[misc]
                  f"{process.name} delivers", seconds)

    def ends(self, *last: Process) -> None:
        """Everything that was produced is committed, and these stop in order."""
        assert self.members.producer.stop() == 0
        until(lambda: self.members.committed() == self.members.acknowledged(), "everything is committed")
        assert [process.stop() for process in last] == [0] * len(last)
        assert self.owned().keys() <= {""}, "nothing is owned any more"


@contextlib.contextmanager
def trial(cluster: KafkaCluster, directory: Path) -> Iterator[Trial]:
    zookeeper = KazooClient(cluster.zookeeper_connect)
    zookeeper.start()
    try:
        with group(cluster.bootstrap, directory, PARTITIONS) as members:
            yield Trial(cluster, members, zookeeper)
    finally:
        zookeeper.stop()
        zookeeper.close()


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


@pytest.mark.parametrize("mode", Mode)
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


def test_zookeeper_away_for_shorter_and_for_longer_than_the_session(tmp_path: Path) -> None:
    with kafka_cluster(tmp_path / "cluster") as cluster:
        cluster.start_zookeeper_mode()
        server = cluster.zookeeper
        with trial(cluster, tmp_path) as here:
            one, two = here.member("one"), here.member("two")
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
            time.sleep(SESSION)
            assert [event for each in (one, two) for event in each.events(Kind.DELIVERED) if event.until > quiet] == []
            server.start(server.properties())
            until(lambda: here.zookeeper.connected, "the test's own client is back")
            here.settles({"one": 3, "two": 3}, 60)
            here.ends(one, two)
            report = here.members.report()
    assert report.faults == []
