"""What may go wrong in a group of old, migration-enabled and plain Kafka consumers, on a real ZooKeeper and a broker of 3.9.

Members get contiguous partitions in the order of their names. These are chosen so that no partition goes from one Java
member to another, where duplicates would be theirs (D1 of docs/facts/coordination.md#its-defects).
"""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from adapters.clusters import KafkaCluster, kafka_cluster
from adapters.old_members import NEWEST, PARKED, VERSIONS
from adapters.trial import SESSION, Trial, trial
from history.events import Kind, Partition
from patience import stretched, until
from switchover.api.kafka_migration import NodeMode
from switchover.coordination.assignment import Strategy, Text, assigned
from switchover.coordination.mode import Mode

long = pytest.mark.long

PATIENT = 20.0
"""Seconds of a session that outlives what is done to its process."""


@pytest.fixture(scope="module")
def patient_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Its ZooKeeper grants long sessions."""
    with kafka_cluster(tmp_path_factory.mktemp("patient-cluster")) as cluster:
        cluster.zookeeper.start(cluster.zookeeper.properties() + "maxSessionTimeout=30000\n")
        cluster.brokers[1].start(cluster.broker_properties(1, NodeMode.ZOOKEEPER))
        cluster.wait_for_brokers()
        yield cluster


# --- old members ------------------------------------------------------------------------------------------------------


@long
@pytest.mark.parametrize("version", VERSIONS)
def test_old_members_are_replaced_one_by_one_and_come_back(version: str, zookeeper_cluster: KafkaCluster, tmp_path: Path,
                                                           ) -> None:
    with trial(zookeeper_cluster, tmp_path) as here:
        a, z = here.old("a", version), here.old("z", version)
        here.settles({"a": 3, "z": 3})
        m = here.member("m")
        here.settles({"a": 2, "m": 2, "z": 2})
        a.stop()
        here.settles({"m": 3, "z": 3})
        n = here.member("n", COMMITS="automatic")
        here.settles({"m": 2, "n": 2, "z": 2})
        z.stop()
        here.toggle(Mode.KAFKA)
        here.settles({"m": 3, "n": 3})
        b = here.old("b", version)
        here.settles({"b": 2, "m": 2, "n": 2})
        assert m.stop() == 0
        here.settles({"b": 3, "n": 3})
        assert n.stop() == 0
        here.settles({"b": 6})
        here.ends(b)
        here.judged()


@long
@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_member_is_killed_beside_ours(version: str, zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    """It costs what it had not committed."""
    with trial(zookeeper_cluster, tmp_path) as here:
        killed, m, z = here.old("killed", version, SESSION_TIMEOUT_MS="4000"), here.member("m"), here.old("z", version)
        here.settles({"killed": 2, "m": 2, "z": 2})
        killed.kill()
        here.settles({"m": 3, "z": 3})
        here.ends(m, z)
        here.judged(crashes=True)


@long
def test_an_old_member_that_restarts_five_times_in_kafka_mode(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    """Each time the group goes to ZooKeeper with it and comes back without it."""
    with trial(zookeeper_cluster, tmp_path) as here:
        one, two = here.member("one"), here.member("two")
        here.settles({"one": 3, "two": 3})
        here.toggle(Mode.KAFKA)
        for number in range(5):
            old = here.old(f"old{number}", SESSION_TIMEOUT_MS="4000")
            here.settles({old.name: 2, "one": 2, "two": 2})
            assert here.modes() == {Mode.ZOOKEEPER}
            if number % 2:
                old.kill()
            else:
                old.stop()
            here.settles({"one": 3, "two": 3})
            until(lambda: here.modes() == {Mode.KAFKA}, "they are Kafka's again")
        here.ends(one, two)
        here.judged(crashes=True)


@pytest.mark.long
def test_an_old_member_cannot_come_in_beside_a_kafka_consumer(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    """Guards and our owner nodes keep it out, until the KafkaConsumer is gone."""
    with trial(zookeeper_cluster, tmp_path) as here:
        one, two = here.member("one"), here.member("two")
        here.settles({"one": 3, "two": 3})
        here.toggle(Mode.KAFKA)
        plain = here.kafka_consumer("plain")
        here.settles({"one": 2, "two": 2, "": 2})
        old = here.old("old")
        here.says("KafkaConsumer plain is in the group")
        assert old.ended() == 1
        assert PARKED in old.log.read_text()
        here.settles({"one": 2, "two": 2, "": 2})
        assert here.modes() == {Mode.KAFKA}
        assert plain.stop() == 0
        here.settles({"one": 3, "two": 3})
        again = here.old("again")
        here.settles({"again": 2, "one": 2, "two": 2})
        assert here.modes() == {Mode.ZOOKEEPER}
        here.ends(again, one, two)
        here.judged()
        assert old.events(Kind.CLAIM, Kind.DELIVERED) == []


@long
def test_an_old_member_that_gave_up_is_woken(patient_cluster: KafkaCluster, tmp_path: Path) -> None:
    with trial(patient_cluster, tmp_path) as here:
        old, one = here.old("old"), here.member("one", session=PATIENT)
        here.settles({"old": 3, "one": 3})
        with one.frozen():
            first = here.member("first")
            until(lambda: PARKED in old.log.read_text(), "old has given up")
        here.settles({"first": 2, "old": 2, "one": 2})
        assert "waking the old consumers" in first.log.read_text()
        here.ends(first, old, one)
        here.judged()


@long
@pytest.mark.parametrize(("version", "text"), [
    (NEWEST, Text.SINCE_1_0), ("0.11.0.3", Text.UP_TO_0_11), ("0.10.2.2", Text.UP_TO_0_11)])
def test_roundrobin_over_streams_by_the_text_of_the_version(version: str, text: Text, zookeeper_cluster: KafkaCluster,
                                                            tmp_path: Path) -> None:
    with trial(zookeeper_cluster, tmp_path, partitions=17, GROUP=told_apart(17)) as here:
        old = here.old("old", version, STRATEGY="roundrobin", STREAMS="3")
        one = here.member("one", STRATEGY="roundrobin", STREAMS="3", CONSUMER_PARTITION_ASSIGNMENT_ROUNDROBIN_TEXT=(
            "1.0" if text is Text.SINCE_1_0 else "0.11"))
        here.settles({"old": 9, "one": 8})
        world = here.world()
        intended = world.intended(Strategy.ROUND_ROBIN, text)
        assert {partition: owner.thread for partition, owner in world.owners.items()} == intended
        assert len(set(intended.values())) == 6
        old.stop()
        here.settles({"one": 17})
        here.toggle(Mode.KAFKA)
        here.settles({"one": 17})
        here.toggle(Mode.ZOOKEEPER)
        here.settles({"one": 17})
        here.ends(one)
        here.judged()


def told_apart(partitions: int) -> str:
    """A name for group and topic by which the two texts give different shares: with two of three they do not."""
    while True:
        name = uuid.uuid4().hex
        streams, topics = {f"{name}_{each}": {name: 3} for each in ("old", "one")}, {name: range(partitions)}
        if assigned(Strategy.ROUND_ROBIN, Text.SINCE_1_0, streams, topics) != assigned(
                Strategy.ROUND_ROBIN, Text.UP_TO_0_11, streams, topics):
            return name


# --- the mode ---------------------------------------------------------------------------------------------------------


def test_a_mode_that_nobody_can_read_and_one_that_is_deleted(zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    """Junk changes nothing. Without the node a group is ZooKeeper's, but not over the head of a KafkaConsumer."""
    with trial(zookeeper_cluster, tmp_path) as here:
        one, two = here.member("one"), here.member("two")
        here.settles({"one": 3, "two": 3})
        here.toggle(Mode.ZOOKEEPER)
        stays(here, Mode.ZOOKEEPER)
        here.zookeeper.delete(here.layout.mode)
        here.says("")
        here.toggle(Mode.KAFKA)
        stays(here, Mode.KAFKA)
        plain = here.kafka_consumer("plain")
        here.settles({"one": 2, "two": 2, "": 2})
        stays(here, Mode.KAFKA)
        here.zookeeper.delete(here.layout.mode)
        here.says("KafkaConsumer plain is in the group")
        here.settles({"one": 2, "two": 2, "": 2})
        assert here.modes() == {Mode.KAFKA}
        assert plain.stop() == 0
        here.says("")
        here.settles({"one": 3, "two": 3})
        assert here.modes() == {Mode.ZOOKEEPER}
        here.ends(one, two)
        here.judged()


def stays(here: Trial, mode: Mode) -> None:
    """Whatever nobody can read, and nobody loses a partition by it."""
    before = here.owned()
    for junk in ("kafka\n", "zookeeper\n", "junk", ""):
        here.write(junk)
        here.says(f"the mode znode says {junk.encode()!r}, and must say kafka or zookeeper exactly")
        assert (here.modes(), here.owned()) == ({mode}, before)


@long
def test_one_that_hears_of_the_mode_ten_seconds_later(patient_cluster: KafkaCluster, tmp_path: Path) -> None:
    """ZooKeeper deals to threads and Kafka to members, so that a partition goes over with each change of the mode."""
    owned = {Mode.ZOOKEEPER: {"one": 4, "two": 2}, Mode.KAFKA: {"one": 3, "two": 3}}
    with trial(patient_cluster, tmp_path) as here:
        one, two = here.member("one", session=PATIENT, STREAMS="2"), here.member("two", session=PATIENT)
        here.settles(owned[Mode.ZOOKEEPER])
        for slow in (one, two):
            for mode in (Mode.KAFKA, Mode.ZOOKEEPER):
                before = here.owned()[slow.name]
                with slow.frozen():
                    written = here.write(mode)
                    time.sleep(10)
                    assert here.owned()[slow.name] == before, "its session lives, and what it has stays its own"
                here.follow(mode, written)
                here.settles(owned[mode])
        assert one.events(Kind.LOST) + two.events(Kind.LOST) == []
        here.ends(one, two)
        here.judged()


# --- servers and topics -----------------------------------------------------------------------------------------------


@long
def test_the_coordinator_is_killed_while_the_mode_changes(tmp_path: Path) -> None:
    """And with it the only broker."""
    owned = {Mode.ZOOKEEPER: {"one": 4, "two": 2}, Mode.KAFKA: {"one": 3, "two": 3}}
    with kafka_cluster(tmp_path / "cluster") as cluster:
        cluster.start_zookeeper_mode()
        with trial(cluster, tmp_path) as here:
            one, two = here.member("one", STREAMS="2"), here.member("two", COMMITS="automatic")
            here.settles(owned[Mode.ZOOKEEPER])
            for mode in (Mode.KAFKA, Mode.ZOOKEEPER):
                written = here.write(mode)
                cluster.brokers[1].kill()
                time.sleep(12)                          # until ZooKeeper has forgotten the broker
                cluster.brokers[1].start(cluster.broker_properties(1, NodeMode.ZOOKEEPER))
                here.follow(mode, written)
                here.settles(owned[mode], 90)
            here.ends(one, two)
            here.judged(crashes=True)


@long
def test_zookeeper_away_for_longer_than_the_session_beside_a_kafka_consumer(tmp_path: Path) -> None:
    """Ours stop; the KafkaConsumer has its own share and no other."""
    with kafka_cluster(tmp_path / "cluster") as cluster:
        cluster.start_zookeeper_mode()
        with trial(cluster, tmp_path) as here:
            one, two = here.member("one"), here.member("two")
            here.settles({"one": 3, "two": 3})
            here.toggle(Mode.KAFKA)
            plain = here.kafka_consumer("plain")
            here.settles({"one": 2, "two": 2, "": 2})
            cluster.zookeeper.stop()
            time.sleep(SESSION)
            quiet = time.monotonic()
            time.sleep(SESSION)
            assert [event for each in (one, two) for event in each.events(Kind.DELIVERED) if event.until > quiet] == []
            assert plain.delivers(2, quiet)
            cluster.zookeeper.start(cluster.zookeeper.properties())
            until(lambda: here.zookeeper.connected, "the test's own client is back")
            here.settles({"one": 2, "two": 2, "": 2}, 90)
            here.ends(one, two, plain)
            here.judged(crashes=True)


@long
@pytest.mark.parametrize("mode", Mode)
def test_partitions_that_are_added_beside_others(mode: Mode, zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    """Beside an old member or a KafkaConsumer."""
    with trial(zookeeper_cluster, tmp_path) as here:
        topic, added = here.members.topic, [Partition(here.members.topic, number) for number in (6, 7)]
        one = here.member("one")
        here.settles({"one": 6})
        here.toggle(mode)
        stranger = here.old("z") if mode is Mode.ZOOKEEPER else here.kafka_consumer("z")
        share = {Mode.ZOOKEEPER: "z", Mode.KAFKA: ""}[mode]
        here.settles({"one": 3, share: 3})
        admin = AdminClient({"bootstrap.servers": zookeeper_cluster.bootstrap})
        admin.create_partitions([NewPartitions(topic, 8)])[topic].result(stretched(30))
        until(lambda: here.owned() == {"one": 4, share: 4}, "both have their share of eight")
        producer = Producer({"bootstrap.servers": zookeeper_cluster.bootstrap})
        for partition in added:
            producer.produce(topic, b"late", partition=partition.number)
        assert producer.flush(stretched(30)) == 0
        until(lambda: {event.partition for each in (one, stranger) for event in each.events(Kind.DELIVERED)} >= set(added),
              "what is in the new partitions is delivered")
        assert here.members.producer.stop() == 0
        until(lambda: here.members.committed() == here.members.acknowledged() + len(added), "everything is committed")
        stranger.stop()
        assert one.stop() == 0
        here.judged()
