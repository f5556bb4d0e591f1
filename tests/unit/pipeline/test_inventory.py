"""Readiness, waves and manifests: pure, on groups on paper."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.pipeline.config import Kafka, Workload, ZooKeeper
from switchover.pipeline.inventory.readiness import Coordination, Group, Storage, judge
from switchover.pipeline.inventory.report import page, shown
from switchover.pipeline.inventory.waves import Wave, components, document, glue, migration, object_name, pack
from switchover.pipeline.outcome import BadConfig

NOW = 1_700_000_000_000
WEEK = 604_800
HEALTHY = Group(
    name="orders", topics=("orders",), partitions=24, storage=Storage.KAFKA, coordination=Coordination.KAFKA,
    protocol="Classic", protocol_type="consumer", strategy="range", state="Stable", members=6, subscription="", lag=10,
    growth=0.0, headroom=0.9, lost=0, rebalances=1.0,
    commit_interval=1000.0, last_commit=NOW - 1000)
OLD = replace(HEALTHY, storage=Storage.ZOOKEEPER, coordination=Coordination.ZOOKEEPER, protocol="",
              protocol_type=None, strategy="", state="", subscription="static")
IDLE = replace(HEALTHY, coordination=Coordination.NONE, members=0, state="Empty")
HOSTILE = ["a\nb", "\x00", "\u202egnp.exe", "x" * 65_536, "<script>alert(1)</script>", "{group}", "é/..", "A", "-", "\udcff"]


# --- readiness ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [HEALTHY, OLD])
def test_of_a_healthy_group_nothing_is_to_be_said(group: Group) -> None:
    found = judge(group, NOW, WEEK)
    assert (found.score, found.terms) == (100, ())


UNKNOWN = "what kind of group it is is not known"


@pytest.mark.parametrize(("group", "change", "words"), [
    (IDLE, {}, "no member runs"),
    (IDLE, {"protocol_type": None}, "no member runs"),                 # it never had any
    (IDLE, {"last_commit": NOW - WEEK * 1001}, "dead"),
    (IDLE, {"last_commit": None}, "dead"),
    (IDLE, {"protocol": "", "protocol_type": None, "storage": Storage.NONE, "last_commit": None}, "dead"),
    (IDLE, {"protocol": "", "protocol_type": None, "storage": Storage.ZOOKEEPER}, "no member runs"),
    (HEALTHY, {"coordination": Coordination.BOTH}, "in ZooKeeper and in Kafka"),
    (HEALTHY, {"lost": 2}, "2 partitions have lost records"),
    (HEALTHY, {"protocol": "Consumer", "protocol_type": None}, "6 of 6 members take part by the consumer protocol already"),
    (HEALTHY, {"topics": ()}, "no topic"),
    (HEALTHY, {"strategy": "stream"}, "is a Kafka Streams application"),
    (HEALTHY, {"protocol_type": "connect"}, "has the protocol type connect"),
    (IDLE, {"protocol": "", "protocol_type": "connect", "state": ""}, "has the protocol type connect"),
    (IDLE, {"protocol": "", "protocol_type": "sr", "state": "", "storage": Storage.NONE}, "has the protocol type sr"),
    (IDLE, {"protocol": "", "protocol_type": None, "state": ""}, UNKNOWN),         # Streams by its own protocol has offsets
    (IDLE, {"protocol": "", "state": ""}, UNKNOWN),                    # not described this time
    (HEALTHY, {"protocol_type": None}, UNKNOWN),
    (HEALTHY, {"protocol": "Unknown"}, UNKNOWN),
])
def test_a_blocker_takes_all_of_the_score(group: Group, change: Mapping[str, object], words: str) -> None:
    found = judge(replace(group, **change), NOW, WEEK)  # type: ignore[arg-type]
    assert found.score == 0
    assert words in found.blockers[0]
    assert len(found.blockers) == 1


@pytest.mark.parametrize(("group", "change", "words"), [
    (OLD, {"storage": Storage.BOTH}, "both stores"),
    (OLD, {"subscription": "black_list"}, "black list"),
    (HEALTHY, {"state": "PreparingRebalance"}, "group orders is PreparingRebalance"),
    (HEALTHY, {"state": ""}, "in a state that is not known"),
    (HEALTHY, {"rebalances": 100.0}, "rebalances 100 times"),
    (HEALTHY, {"headroom": 0.05}, "retention is near: 5%"),
    (HEALTHY, {"growth": 5000.0}, "grows by 5,000"),
    (HEALTHY, {"commit_interval": 90_000.0}, "every 90 s"),
    (HEALTHY, {"lag": None}, "not known"),
])
def test_each_term_is_told_with_its_points(group: Group, change: Mapping[str, object], words: str) -> None:
    found = judge(replace(group, **change), NOW, WEEK)  # type: ignore[arg-type]
    (term,) = found.terms
    assert words in term.reason
    assert found.score == 100 - term.points
    assert found.blockers == ()


# --- waves --------------------------------------------------------------------------------------------------------------


def brute(topics: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Connected by a walk from each group."""
    left, found = set(topics), []
    while left:
        reached, new = set[str](), {min(left)}
        while new:
            reached |= new
            seen = {topic for group in reached for topic in topics[group]}
            new = {group for group in topics if seen & set(topics[group])} - reached
        found.append(tuple(sorted(reached)))
        left -= reached
    return sorted(found)


FLEETS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.sets(st.sampled_from("pqrstuvw"), max_size=3), max_size=12)


@given(FLEETS)
def test_components_are_those_that_a_walk_finds(topics: dict[str, set[str]]) -> None:
    assert components(topics) == brute(topics)


@given(FLEETS, st.integers(1, 5), st.integers(1, 60), st.randoms())
def test_waves_hold_every_group_once_and_keep_to_the_caps(
        topics: dict[str, set[str]], most: int, partitions: int, chance: random.Random) -> None:
    groups = [replace(HEALTHY, name=name, topics=tuple(sorted(each)), partitions=len(name) * 7)
              for name, each in topics.items()]
    scores = {group.name: 50 + len(group.topics) for group in groups}
    waves = pack(groups, scores, most, partitions)
    assert sorted(name for wave in waves for name in wave.groups) == sorted(topics)
    connected = components(topics)
    for wave in waves:
        parts = [each for each in connected if set(each) & set(wave.groups)]
        assert sum(map(len, parts)) == len(wave.groups), "connected groups stay together"
        assert (len(wave.groups) > most or wave.partitions > partitions) == bool(wave.over)
        assert not wave.over or len(parts) == 1
    assert [wave.number for wave in waves] == list(range(1, len(waves) + 1))
    chance.shuffle(groups)
    assert pack(groups, scores, most, partitions) == waves


def test_the_riskiest_come_last() -> None:
    groups = [replace(HEALTHY, name=name, topics=(name,)) for name in "abc"]
    waves = pack(groups, {"a": 10, "b": 90, "c": 50}, 1, 1000)
    assert [wave.groups for wave in waves] == [("b",), ("c",), ("a",)]


def test_the_topic_that_glues_the_fleet_is_named_and_parts_it_once_it_is_cut() -> None:
    topics = {f"g{team}{index}": {f"t{team}", "audit"} for team in "abc" for index in range(4)}
    found = glue(topics)
    assert found is not None
    assert (found.topic, found.size, found.without) == ("audit", 12, 4)
    assert [len(each) for each in components(topics, {"audit"})] == [4, 4, 4]
    assert glue({"a": {"t"}, "b": {"u"}}) is None


# --- manifests ----------------------------------------------------------------------------------------------------------

WORKLOAD = Workload.model_validate({"groups": "*", "name": "app", "container": "app", "template": {
    "env": [{"name": "GROUP_PROTOCOL", "value": "consumer"}]}, "bridge": {"image": "enabled:1"}})
CONNECTION = Kafka.model_validate({"bootstrapServers": "kafka:9092", "credentialsRef": {"name": "kafka-client"}})
TREE = ZooKeeper.model_validate({"connect": "zookeeper:2181", "credentialsRef": {"name": "zookeeper-client"}})


@pytest.mark.parametrize(("group", "kind"), [(HEALTHY, "protocol"), (OLD, "coordination")])
def test_a_manifest_is_a_valid_migration_that_moves_nothing(group: Group, kind: str) -> None:
    found = migration(group, 3, WORKLOAD, CONNECTION, TREE)
    read = ConsumerGroupMigration.model_validate(yaml.safe_load(document(Wave(3, ("orders",), 24), [found])))
    assert (read.spec.desired_state, read.metadata.labels) == ("Planned", {"switchover.dev/wave": "3"})
    assert (read.spec.protocol is not None) == (kind == "protocol")
    assert (read.spec.coordination is not None) == (kind == "coordination")
    connections = [read.spec.kafka, *([read.spec.zookeeper] if kind == "coordination" else [])]
    assert [each.manifest() for each in connections if each is not None] == [
        {"bootstrapServers": "kafka:9092", "credentialsRef": {"name": "kafka-client"}},
        {"connect": "zookeeper:2181", "credentialsRef": {"name": "zookeeper-client"}}][:len(connections)]


def test_names_that_kubernetes_does_not_take_get_one_that_is_theirs_alone() -> None:
    names = [object_name(each) for each in HOSTILE]
    assert len(set(names)) == len(HOSTILE)
    for name in names:
        assert len(name) <= 63
        assert name.strip("-") == name
        assert all(each.islower() or each.isdigit() or each == "-" for each in name)
    assert object_name("orders") == "orders"


def test_settings_that_make_no_valid_migration_are_named() -> None:
    broken = Workload.model_validate({"groups": "*", "container": "app", "template": {"env": "no list"}})
    with pytest.raises(BadConfig, match=r"inventory\.workloads makes no valid migration of group 'orders'"):
        migration(HEALTHY, 1, broken, CONNECTION, None)
    with pytest.raises(BadConfig, match=r"give zookeeper\.connect"):
        migration(OLD, 1, WORKLOAD, CONNECTION, None)


# --- the report ---------------------------------------------------------------------------------------------------------


def test_the_report_shows_hostile_names_as_text_and_says_what_is_wrong() -> None:
    groups = [replace(HEALTHY, name=name, lost=1) for name in HOSTILE]
    judged = {group.name: judge(group, NOW, WEEK) for group in groups}
    wave = Wave(1, tuple(HOSTILE), 5, "12 groups, where 3 are wanted: they share topics")
    text = page("demo", groups, judged, [wave], None, HOSTILE, ["a <note>"])
    text.encode()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "\\u202e" in text
    assert "\u202e" not in text
    assert "(65536 characters)" in text
    assert "have lost records to retention" in text
    assert "a &lt;note&gt;" in text
    assert text.count("<svg") == 3


@pytest.mark.parametrize(("name", "text"), [("orders", "orders"), ("a\nb", "a\\nb"), ("\x00", "\\x00"), ("é", "é")])
def test_a_name_is_shown_so_that_it_can_be_read(name: str, text: str) -> None:
    assert shown(name) == text
