"""Members on Kafka's old high-level consumer (ZookeeperConsumerConnector), and what a group of theirs has in ZooKeeper."""

import contextlib
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from adapters.clusters import KafkaCluster
from adapters.members import JAVA, SANDBOX, Group, group
from switchover.coordination.layout import Layout
from switchover.shared.partition import TopicPartition

NEWEST = "1.1.1"
VERSIONS = (NEWEST, "0.11.0.3", "0.10.2.2")
"""0.11 and older have another text for roundrobin and another parser; 0.10.2 knows one internal topic only."""
PARKED = "can't rebalance after 4 retries"
"""What its log says when it gives up."""
TERMINATED = 143
"""A JVM that leaves in order says the signal all the same."""


@cache
def old_java(version: str = NEWEST, main: str = "OldMember") -> list[str]:
    """The command of an old member, compiled the first time; `main` names another class of its jar."""
    build = subprocess.run([SANDBOX / "apps/java-old-member/build", version], stdout=subprocess.PIPE, text=True, check=True)
    return [*JAVA, "-Dzookeeper.sasl.client=false", "-cp", f"{build.stdout.strip()}/*", f"dev.switchover.member.{main}"]


class OldGroup:
    """A group, and its znodes as ZooKeeper has them now."""

    def __init__(self, members: Group, zookeeper: KazooClient) -> None:
        self.members, self.zookeeper = members, zookeeper
        self.znodes = Layout(members.name)

    def owners(self) -> list[str]:
        """The thread that owns each partition of the topic, the group's name left out; empty for none."""
        owners = (self._data(self.znodes.owner(TopicPartition(*each))) or "" for each in self.members.partitions)
        return [each.removeprefix(f"{self.members.name}_") for each in owners]

    def committed(self) -> list[int]:
        """The offsets of the partitions that have one."""
        offsets = (self._data(self.znodes.offset(TopicPartition(*each))) for each in self.members.partitions)
        return [int(each) for each in offsets if each is not None]

    def _data(self, path: str) -> str | None:
        try:
            data: bytes = self.zookeeper.get(path)[0]
        except NoNodeError:
            return None
        return data.decode()


@contextlib.contextmanager
def old_group(cluster: KafkaCluster, directory: Path, partitions: int, **environment: str) -> Iterator[OldGroup]:
    """A topic with a producer, for members that are told this ZooKeeper; their processes end with the block."""
    zookeeper = KazooClient(cluster.zookeeper_connect)
    zookeeper.start()
    try:
        with group(cluster.bootstrap, directory, partitions, ZOOKEEPER_CONNECT=cluster.zookeeper_connect,
                   **environment) as members:
            yield OldGroup(members, zookeeper)
    finally:
        zookeeper.stop()
        zookeeper.close()
