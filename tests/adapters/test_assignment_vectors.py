"""Our arithmetic against the old client's own: random groups, registered in a real ZooKeeper in our encoding.

Client 1.1.1 hashes `t-p`, 0.11.0.3 `[t,p]`; each reads with its own parser and its own regular expressions.
"""

import json
import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from adapters.clusters import KafkaCluster
from adapters.old_members import old_java
from patience import stretched
from switchover.coordination import layout
from switchover.coordination.assignment import Strategy, Text, assigned
from switchover.coordination.layout import Layout
from switchover.coordination.registration import Registration, Subscribed, decoded, differs_in_java
from switchover.shared.partition import TopicPartition

SEED = 2026
TOPICS: Mapping[str, int] = {
    "orders": 12, "orders.eu": 7, "orders.us": 5, "orders-dead_letters": 1, "pay": 4, "pay2": 21, "Payments.v1": 3,
    "audit": 11, "empty-yet": 0, "__consumer_offsets": 5, "__transaction_state": 3,
}
MISSING = "not-there"
PATTERNS = ("orders", "orders.*", "pay,audit", r"orders\.(eu|us)", "[Pp]ay.*", '"audit"', "(pay2|audit), orders", ".*",
            "__.*", "nothing")
NAMES = ("a", "b", "B", "pod-1", "pod-10", "pod-2", "host.example-1700000000000-1a2b3c4d")


@dataclass(frozen=True)
class RandomGroup:
    name: str
    strategy: Strategy
    members: Mapping[str, Registration]


def random_groups(count: int) -> list[RandomGroup]:
    chance = random.Random(SEED)
    groups = []
    for number in range(count):
        names = chance.sample(NAMES, chance.randint(1, 4))
        groups.append(RandomGroup(f"group-{number}", chance.choice(list(Strategy)), {
            f"group-{number}_{name}": registration(chance) for name in names}))
    return groups


def registration(chance: random.Random) -> Registration:
    by = chance.choice([Subscribed.STATIC, Subscribed.STATIC, Subscribed.WHITE_LIST, Subscribed.BLACK_LIST])
    streams = [1, 1, 2, 3, 12]
    if by is Subscribed.STATIC:
        topics = chance.sample([*TOPICS, MISSING], chance.randint(0, 5))
        return Registration({topic: chance.choice(streams) for topic in topics}, by, 1_700_000_000_000)
    return Registration({chance.choice(PATTERNS): chance.choice(streams)}, by, 1_700_000_000_000)


@pytest.fixture(scope="module", params=[50, pytest.param(1000, marks=pytest.mark.long)])
def registered(request: pytest.FixtureRequest, zookeeper_cluster: KafkaCluster) -> Iterator[tuple[str, list[RandomGroup]]]:
    """The groups, and the connect string of a chroot that has nothing else."""
    address, chroot = str(zookeeper_cluster.zookeeper.address), f"/vectors-{request.param}"
    zookeeper = KazooClient(address)
    zookeeper.start()
    try:
        zookeeper.ensure_path(chroot + layout.TOPICS)
        zookeeper.chroot = chroot
        groups = random_groups(request.param)
        for topic, count in TOPICS.items():
            content = {"version": 3, "partitions": {str(number): [1] for number in reversed(range(count))}}
            zookeeper.create(layout.topic(topic), json.dumps(content).encode())
        made = [zookeeper.create_async(Layout(group.name).registration(name), each.encoded(), makepath=True)
                for group in groups for name, each in group.members.items()]
        for each in made:
            each.get()
        yield address + chroot, groups
    finally:
        zookeeper.stop()
        zookeeper.close()


@pytest.mark.parametrize(("version", "text"), [
    ("1.1.1", Text.SINCE_1_0), pytest.param("0.11.0.3", Text.UP_TO_0_11, marks=pytest.mark.long)])
def test_java_assigns_as_we_do(
    version: str, text: Text, registered: tuple[str, list[RandomGroup]], tmp_path: Path
) -> None:
    connect, groups = registered
    file = tmp_path / "groups"
    file.write_text("".join(f"{group.name} {group.strategy}\n" for group in groups))
    theirs = in_java(version, connect, file)
    assert theirs.keys() == {name for group in groups for name in group.members}
    differing = [group for group in groups
                 if in_python(group, text) != {name: theirs[name] for name in group.members}]
    assert differing == []
    assert sum(len(threads) for threads in theirs.values()) > 20 * len(groups), "hardly anything was assigned"


def in_java(version: str, connect: str, file: Path) -> dict[str, dict[str, str]]:
    """What each member computes for itself: consumer id to partition to thread."""
    done = subprocess.run([*old_java(version, "Assignments"), str(file)], env=os.environ | {"ZOOKEEPER_CONNECT": connect},
                          capture_output=True, text=True, timeout=stretched(500), check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["consumer"]: line["threads"] for line in lines}


def in_python(group: RandomGroup, text: Text) -> dict[str, dict[str, str]]:
    """The same by our arithmetic, from what we read back."""
    streams = {name: decoded(each.encoded()).streams(sorted(TOPICS), exclude_internal=True)
               for name, each in group.members.items()}
    found = assigned(group.strategy, text, streams, {topic: range(count) for topic, count in TOPICS.items()})
    return {name: told(found, name) for name in group.members}


def told(found: Mapping[TopicPartition, str], member: str) -> dict[str, str]:
    return {str(partition): thread for partition, thread in found.items() if thread.rpartition("-")[0] == member}


def test_the_patterns_are_those_that_both_languages_read_alike() -> None:
    assert not any(map(differs_in_java, PATTERNS))
    assert {each.by for group in random_groups(150) for each in group.members.values()} == set(Subscribed)
