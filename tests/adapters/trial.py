"""A group on its way between ZooKeeper and Kafka: members of every kind, what ZooKeeper says of them, and the oracle."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from adapters.clusters import KafkaCluster
from adapters.members import Process, migrating, python
from adapters.old_members import NEWEST, TERMINATED, OldGroup, old_group, old_java
from history.events import Event, Kind, Partition
from history.report import Report
from patience import until
from switchover.consumer.reading import read_world
from switchover.coordination.mode import Mode
from switchover.coordination.world import World

PARTITIONS = 6
SESSION = 4.0
"""Of a migration-enabled member with ZooKeeper, seconds."""


class Trial:
    """A group, and what ZooKeeper says of it."""

    def __init__(self, group: OldGroup) -> None:
        self.members, self.zookeeper, self.layout = group.members, group.zookeeper, group.znodes

    def member(self, name: str, *, session: float = SESSION, **settings: str) -> Process:
        """A migration-enabled one. Its session in Kafka's group is longer by half, as it must be."""
        return self.members.member(name, migrating(), CONSUMER_CONSUMER_ID=name, **{
            "CONSUMER_ZOOKEEPER_SESSION_TIMEOUT_MS": str(int(session * 1000)),
            "CONSUMER_COORDINATION_MIGRATION_SESSION_TIMEOUT_MS": str(int(session * 1500)), **settings})

    def old(self, name: str, version: str = NEWEST, **settings: str) -> Process:
        return self.members.member(name, old_java(version), CONSUMER_ID=name, **settings)

    def kafka_consumer(self, name: str) -> Process:
        return self.members.member(name, python(), ASSIGNOR="range")

    def world(self) -> World:
        return read_world(self.zookeeper, self.layout)

    def owned(self) -> dict[str, int]:
        """Owner nodes of each member, by its own name; those of guards are told under the name of none."""
        found: dict[str, int] = {}
        for owner in self.world().owners.values():
            name = owner.thread.rpartition("-")[0].removeprefix(f"{self.members.name}_") if owner.session else ""
            found[name] = found.get(name, 0) + 1
        return found

    def write(self, mode: str) -> int:
        """Into the mode znode; the version that members acknowledge."""
        self.zookeeper.ensure_path(self.layout.mode)
        return int(self.zookeeper.set(self.layout.mode, mode.encode()).mzxid)

    def follow(self, mode: Mode, written: int) -> None:
        """Until every member acknowledges that version of the mode znode."""
        until(lambda: all(told is not None and (told.mode, told.mode_version) == (mode, written)
                          for told in self.world().acknowledgements.values()), f"all members are in {mode} mode", 40)

    def toggle(self, mode: Mode) -> None:
        """Write the mode znode; done when every member acknowledges that version of it."""
        self.follow(mode, self.write(mode))

    def modes(self) -> set[Mode]:
        """That migration-enabled members are in."""
        return {told.mode for told in self.world().acknowledgements.values() if told is not None}

    def says(self, words: str) -> None:
        """Until every migration-enabled member says this of why it does not follow the mode; nothing: until they all do."""
        until(lambda: {told.waits for told in self.world().acknowledgements.values() if told is not None} == {words},
              f"all say {words!r}", 40)

    def settles(self, owned: dict[str, int], seconds: float = 40) -> None:
        """Until these members own so many, and deliver as many after it."""
        until(lambda: self.owned() == owned, lambda: f"{owned} instead of {self.owned()}", seconds)
        now = time.monotonic()
        for process in self.members.processes:
            until(lambda process=process: process.delivers(owned.get(process.name, 0), now),  # type: ignore[misc]
                  f"{process.name} delivers", seconds)

    def ends(self, *last: Process) -> None:
        """Everything that was produced is committed, and these stop in order."""
        assert self.members.producer.stop() == 0
        until(lambda: self.members.committed() == self.members.acknowledged(), "everything is committed")
        assert {process.stop() for process in last} <= {0, TERMINATED}
        assert self.owned().keys() <= {""}, "nothing is owned any more"

    def judged(self, *, crashes: bool = False) -> Report:
        """The oracle's report on a group that has ended: nothing lost, nobody beside another, and nothing twice but what was
        not committed when somebody crashed."""
        report = self.members.report()
        assert (report.faults, report.never_owned, self.repeated()) == ([], [], [])
        assert [note for note in report.notes if "without holding" in note] == []
        again = sum(each.records for each in report.duplicates)
        assert crashes or not again, list(report.lines())
        assert report.deliveries - again >= self.members.acknowledged() > 0
        return report

    def repeated(self) -> list[tuple[Partition, int, int]]:
        """Deliveries of what a commit had passed before: the partition, the first offset, how far the commit was."""
        events = [event for process in self.members.processes for event in process.events(Kind.COMMIT, Kind.DELIVERED)]
        passed: dict[Partition, int] = defaultdict(int)
        found = []
        for event in sorted(events, key=_begun):
            if event.kind is Kind.COMMIT:
                passed[event.partition] = max(passed[event.partition], event.offset or 0)
            elif event.ranges[0][0] < passed[event.partition]:
                found.append((event.partition, event.ranges[0][0], passed[event.partition]))
        return found


def _begun(event: Event) -> float:
    """A commit counts once it was answered, a delivery from its first record on."""
    return event.since if event.kind is Kind.DELIVERED else event.mono


@contextlib.contextmanager
def trial(cluster: KafkaCluster, directory: Path, partitions: int = PARTITIONS, **environment: str) -> Iterator[Trial]:
    """A topic with a producer; all processes get the environment, and end with the block."""
    with old_group(cluster, directory, partitions, **environment) as group:
        yield Trial(group)
