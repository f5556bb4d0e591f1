"""The old consumer on a broker of today: a group of its own kind, the baseline for every migration of such a group."""

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, NewPartitions
from kazoo.protocol.states import ZnodeStat

from adapters.clusters import KafkaCluster
from adapters.members import Process
from adapters.old_members import NEWEST, PARKED, TERMINATED, VERSIONS, OldGroup, old_group, old_java
from history.events import Kind, Partition
from history.findings import Loss
from patience import stretched, until
from switchover.coordination.registration import Registration
from switchover.shared.partition import TopicPartition

by_version = pytest.mark.parametrize(
    "version", [pytest.param(each, marks=[] if each == NEWEST else [pytest.mark.long]) for each in VERSIONS])


def ephemeral(stat: ZnodeStat) -> bool:
    return bool(stat.ephemeralOwner)


def started(all_: OldGroup, name: str, version: str = NEWEST, **environment: str) -> Process:
    return all_.members.member(name, old_java(version), CONSUMER_ID=name, **environment)


@by_version
def test_a_group_of_old_members_and_its_znodes(version: str, zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with old_group(zookeeper_cluster, tmp_path, 8) as all_:
        a, b = started(all_, "a", version, STREAMS="2"), started(all_, "b", version)
        until(lambda: all_.owners() == ["a-0"] * 3 + ["a-1"] * 3 + ["b-0"] * 2, "both own their part")
        until(lambda: len(all_.committed()) == 8, "both commit")
        check_znodes(all_)

        c = started(all_, "c", version)
        until(lambda: all_.owners() == ["a-0"] * 2 + ["a-1"] * 2 + ["b-0"] * 2 + ["c-0"] * 2, "the third has joined")
        until(lambda: c.delivers(2), "c delivers")
        assert b.stop() == TERMINATED
        until(lambda: all_.owners() == ["a-0"] * 3 + ["a-1"] * 3 + ["c-0"] * 2, "the second has left")
        until(lambda: len(c.events(Kind.CLAIM)) >= 4, "c knows")
        killed = time.monotonic()
        c.kill()
        until(lambda: all_.owners() == ["a-0"] * 4 + ["a-1"] * 4, "the killed one's session has ended")
        settled = time.monotonic() - killed
        until(lambda: a.delivers(8, killed), "a delivers everything")

        assert all_.members.producer.stop() == 0
        until(lambda: sum(all_.committed()) == all_.members.acknowledged(), "everything is committed")
        assert a.stop() == TERMINATED
        report = all_.members.report()
    print(f"{version}: {settled:.1f} s after SIGKILL", *report.lines(), sep="\n")
    assert (report.losses, report.never_owned) == ([], [])
    assert report.deliveries >= all_.members.acknowledged() > 0
    for member in (a, b):
        assert [member.events()[0].kind, member.events()[-1].kind] == [Kind.START, Kind.STOP]
        assert len(member.events(Kind.RELEASE)) == len(member.events(Kind.CLAIM))
        assert f"old consumer {version}" in member.events()[0].words
    assert a.events(Kind.LOST) == []
    last = {each.partition: each.offset or 0 for each in a.events(Kind.COMMIT)}
    assert sum(last.values()) == all_.members.acknowledged(), "the last of each partition: one may go again alone"


def check_znodes(all_: OldGroup) -> None:
    """As docs/facts/coordination.md#znodes has them; a node without data is None to kazoo, an empty one b''."""
    zookeeper, znodes, topic, name = all_.zookeeper, all_.znodes, all_.members.topic, all_.members.name
    assert set(zookeeper.get_children(znodes.root)) == {"ids", "owners", "offsets"}
    assert set(zookeeper.get_children(znodes.ids)) == {f"{name}_a", f"{name}_b"}
    for consumer, streams in (("a", 2), ("b", 1)):
        data, stat = zookeeper.get(znodes.registration(f"{name}_{consumer}"))
        stamp = int(json.loads(data)["timestamp"])
        assert data == Registration({topic: streams}, timestamp=stamp).encoded()
        assert data.decode() == (
            f'{{"version":1,"subscription":{{"{topic}":{streams}}},"pattern":"static","timestamp":"{stamp}"}}')
        assert abs(stamp / 1000 - time.time()) < 120
        assert (ephemeral(stat), stat.version) == (True, 0)
    for number in range(8):
        partition = TopicPartition(topic, number)
        assert ephemeral(zookeeper.get(znodes.owner(partition))[1])
        data, stat = zookeeper.get(znodes.offset(partition))
        assert data.decode().isdigit()
        assert not ephemeral(stat)
    assert {path: zookeeper.get(path)[0] for path in (
        "/consumers", znodes.ids, znodes.owners, znodes.offsets, f"{znodes.owners}/{topic}", f"{znodes.offsets}/{topic}",
    )} == {"/consumers": None, znodes.ids: b"", znodes.owners: None, znodes.offsets: None,
           f"{znodes.owners}/{topic}": None, f"{znodes.offsets}/{topic}": None}


def test_a_member_that_lost_all_its_attempts_is_parked_and_an_empty_registration_wakes_it(
    zookeeper_cluster: KafkaCluster, tmp_path: Path
) -> None:
    with old_group(zookeeper_cluster, tmp_path, 4) as all_:
        a = started(all_, "a")
        until(lambda: a.delivers(4), "a delivers")
        all_.members.partitions.append(Partition(all_.members.topic, 4))
        blocker = all_.znodes.owner(TopicPartition(all_.members.topic, 4))
        all_.zookeeper.create(blocker, b"stranger-0")
        admin = AdminClient({"bootstrap.servers": zookeeper_cluster.bootstrap})
        admin.create_partitions([NewPartitions(all_.members.topic, 5)])[all_.members.topic].result(stretched(30))
        until(lambda: PARKED in a.log.read_text(), "a has given up")
        all_.zookeeper.delete(blocker)
        time.sleep(2)
        assert all_.owners() == [""] * 5, "nobody watches the owner nodes"
        assert a.alive
        assert len(a.events(Kind.RELEASE)) == len(a.events(Kind.CLAIM)) == 4

        woken = time.monotonic()
        all_.zookeeper.create(all_.znodes.registration(f"{all_.members.name}_waker"), Registration({}).encoded())
        until(lambda: all_.owners() == ["a-0"] * 5, "a owns everything, the new partition too")
        print(f"woken in {time.monotonic() - woken:.2f} s")
        all_.zookeeper.delete(all_.znodes.registration(f"{all_.members.name}_waker"))
        until(lambda: a.delivers(4, woken), "a delivers again")
        a.stop()
        report = all_.members.report()
    assert report.losses == []


@pytest.mark.long
def test_a_member_that_cannot_begin_ends_with_the_reason(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with old_group(zookeeper_cluster, tmp_path, 2) as all_:
        all_.zookeeper.create(
            all_.znodes.owner(TopicPartition(all_.members.topic, 1)), b"stranger-0", makepath=True)
        a = started(all_, "a")
        assert a.ended() == 1
        assert f"member: out of the group: {all_.members.name}_a {PARKED}" in a.log.read_text()
        assert [PARKED in each.words for each in a.events(Kind.FENCED)] == [True]
        assert all_.zookeeper.get_children(all_.znodes.ids) == []
        assert all_.owners() == ["", "stranger-0"]


@pytest.mark.long
def test_a_frozen_member_loses_what_its_session_held(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with old_group(zookeeper_cluster, tmp_path, 4) as all_:
        a, b = started(all_, "a"), started(all_, "b")
        until(lambda: all_.owners() == ["a-0"] * 2 + ["b-0"] * 2, "both own their part")
        until(lambda: a.delivers(2) and b.delivers(2), "both deliver")
        with a.frozen():
            frozen = time.monotonic()
            until(lambda: all_.owners() == ["b-0"] * 4, "the session of a has ended")
            until(lambda: b.delivers(4, frozen), "b delivers everything")
        until(lambda: all_.owners() == ["a-0"] * 2 + ["b-0"] * 2, "a has its part again")
        until(lambda: a.delivers(2, frozen), "a delivers again")
        lost = [each for each in a.events(Kind.LOST) if each.mono > frozen]
        assert sorted(each.partition for each in lost) == all_.members.partitions[:2]
        a.stop()
        b.stop()
        report = all_.members.report()
    print(*report.lines(), sep="\n")
    assert report.losses == []


@pytest.mark.long
def test_a_forgotten_record_is_found(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with old_group(zookeeper_cluster, tmp_path, 2) as all_:
        a = started(all_, "a", FORGET="10")
        until(lambda: a.delivers(2), "a delivers")
        until(lambda: all_.members.committed() > 100, "a commits")
        a.stop()
        report = all_.members.report()
    assert {type(fault) for fault in report.faults} == {Loss}
    assert all(first == last and first % 10 == 9 for loss in report.losses for first, last in loss.offsets)


def test_offsets_in_kafka_alone_are_not_in_the_history(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with old_group(zookeeper_cluster, tmp_path, 2) as all_:
        a = started(all_, "a", OFFSETS_STORAGE="kafka", DUAL_COMMIT="false")
        admin = AdminClient({"bootstrap.servers": zookeeper_cluster.bootstrap})
        request = [ConsumerGroupTopicPartitions(all_.members.name)]

        def in_kafka() -> list[int]:
            [found] = admin.list_consumer_group_offsets(request).values()
            return [each.offset for each in found.result(stretched(30)).topic_partitions]

        until(lambda: len(in_kafka()) == 2 and min(in_kafka()) > 0, "the offsets in Kafka move")
        a.stop()
        assert all_.committed() == []
        assert {each.offset for each in a.events(Kind.CLAIM)} == {None}
        assert a.events(Kind.COMMIT) == []


@pytest.mark.parametrize(("pattern", "strategy"), [
    ("WHITELIST", "roundrobin"), pytest.param("BLACKLIST", "range", marks=pytest.mark.long)])
def test_topics_by_a_pattern(pattern: str, strategy: str, zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with old_group(zookeeper_cluster, tmp_path, 2) as all_:
        topic = all_.members.topic
        a = started(all_, "a", STRATEGY=strategy, **{pattern: topic if pattern == "WHITELIST" else f"(?!{topic}).*"})
        until(lambda: a.delivers(2), "a delivers")
        assert set(all_.zookeeper.get_children(all_.znodes.owners)) == {topic}
        registration = json.loads(all_.zookeeper.get(all_.znodes.registration(f"{topic}_a"))[0])
        assert registration["pattern"] == ("white_list" if pattern == "WHITELIST" else "black_list")


@pytest.mark.parametrize("settings", [{"STRATEGY": "sticky"}, {"DOUBLE": "1"}, {"STREAMS": "x"}],
                         ids=lambda settings: "=".join(*settings.items()))
def test_settings_that_mean_nothing_are_refused(settings: dict[str, str], tmp_path: Path) -> None:
    member = Process("old", old_java(), tmp_path, {**settings, "HISTORY": str(tmp_path / "old.jsonl")})
    assert member.ended() == 1
    assert next(iter(settings)) in member.log.read_text() or next(iter(settings.values())) in member.log.read_text()
