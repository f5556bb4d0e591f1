"""What persists, what it is called, and when nothing can be said; against a comparison of sets as the oracle."""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchover.metadata.cluster import (
    ABSENT,
    DEFAULT,
    LIMIT,
    Acl,
    Assignment,
    ClusterMetadata,
    Difference,
    Hidden,
    Resource,
    Topic,
)
from switchover.metadata.parity import LogImage, MigrationState, TreeReading
from switchover.pipeline.config import Config, DriftSettings, ZooKeeper
from switchover.pipeline.drift.job import both_sides, summary, voters
from switchover.pipeline.drift.judgement import (
    LONGEST,
    Judgement,
    Unread,
    Verdict,
    judged,
    kind,
    rows,
    sentence,
    shown,
    size,
)
from switchover.pipeline.outcome import BadConfig
from unit.pipeline.drift_sides import FakeSides, log, tree

ONE, TWO = ClusterMetadata(next_producer_id=1000), ClusterMetadata(next_producer_id=2000)
GONE = Unread("zk:2181 did not answer", refused=False)
FORBIDDEN = Unread("zk:2181 does not let us use /config", refused=True)


def judge(trees: Sequence[TreeReading | Unread], logs: Sequence[LogImage | Unread], snapshots: int = 3) -> Judgement:
    said: list[str] = []
    return asyncio.run(judged(FakeSides(trees, logs), snapshots, 0.0, said.append))


# --- Verdicts ---------------------------------------------------------------------------------------------------------


def test_equal_sides_are_clean() -> None:
    found = judge([tree(ONE)] * 3, [log(ONE)] * 3)
    assert (found.verdict, found.found, len(found.snapshots), found.entries) == (Verdict.CLEAN, (), 3, 2)


def test_what_stays_once_dual_write_has_passed_it_is_drift() -> None:
    found = judge([tree(ONE, 99), tree(ONE, 100)], [log(TWO, 100), log(TWO, 101)], 2)
    assert (found.verdict, found.reason) == (Verdict.DRIFT, "differences that persist: 1")
    assert [(each.difference.kind, each.persistent, each.since) for each in found.found] == [("producer ids", True, 100)]
    assert summary(found)["driftPersistent"] == 1
    assert summary(found)["first"] == ["producer ids next: ZooKeeper says 1000, KRaft says 2000"]


def test_what_dual_write_has_not_reached_is_not_judged() -> None:
    found = judge([tree(ONE, 50), tree(ONE, 60), tree(ONE, 70)], [log(TWO, 100), log(TWO, 101), log(TWO, 102)])
    assert found.verdict is Verdict.INDETERMINATE
    assert "dual write has got to offset 70, the log to 102" in found.reason
    assert (summary(found)["driftPersistent"], summary(found)["unsettled"]) == (0, 1)


def test_without_the_node_of_the_migration_nothing_settles() -> None:
    found = judge([tree(ONE, -1)] * 3, [log(TWO)] * 3)
    assert found.verdict is Verdict.INDETERMINATE
    assert "no /migration" in found.reason


def test_what_heals_is_clean() -> None:
    found = judge([tree(ONE, 100), tree(ONE, 101), tree(TWO, 102)], [log(TWO, 100), log(TWO, 101), log(TWO, 102)])
    assert [each.persistent for each in found.snapshots] == [0, 1, 0]
    assert found.verdict is Verdict.CLEAN


def test_a_snapshot_that_failed_is_left_out() -> None:
    found = judge([tree(ONE, 100), GONE, tree(ONE, 101)], [log(TWO, 100), log(TWO, 101)])
    assert (found.verdict, len(found.snapshots)) == (Verdict.DRIFT, 2)


@pytest.mark.parametrize(("trees", "logs", "why"), [
    ([GONE, tree(ONE), GONE], [log(ONE)], "ZooKeeper's metadata could not be read: zk:2181 did not answer"),
    ([tree(ONE)] * 3, [Unread("no voter", refused=False)] * 3, "KRaft's metadata could not be read: no voter"),
    ([FORBIDDEN], [], "ZooKeeper's metadata could not be read: zk:2181 does not let us use /config"),
])
def test_a_side_that_cannot_be_read_leaves_it_open(trees: list[Any], logs: list[Any], why: str) -> None:
    found = judge(trees, logs)
    assert (found.verdict, found.reason) == (Verdict.INDETERMINATE, why)
    assert summary(found)["driftPersistent"] is None, "not known is not zero"


@pytest.mark.parametrize("state", [None, *MigrationState])
def test_only_the_time_of_dual_write_can_be_judged(state: MigrationState | None) -> None:
    found = judge([tree(ONE)] * 2, [log(ONE, state=state)] * 2, 2)
    assert (found.verdict is Verdict.CLEAN) == (state is MigrationState.MIGRATION)
    assert ("finalized" in found.reason) == (state is MigrationState.POST_MIGRATION)


def test_a_migration_that_is_finalized_in_the_meantime_is_not_judged() -> None:
    found = judge([tree(ONE)] * 3, [log(TWO), log(TWO), log(TWO, state=MigrationState.POST_MIGRATION)])
    assert (found.verdict, found.found) == (Verdict.INDETERMINATE, ())
    assert summary(found)["driftPersistent"] is None


def test_more_than_are_named_are_said_to_be_more() -> None:
    many = ClusterMetadata(configs={Resource("broker", str(number)): {"x": "1"} for number in range(LIMIT + 1)})
    found = judge([tree(many)] * 2, [log(ClusterMetadata())] * 2, 2)
    assert found.reason == f"differences that persist: at least {LIMIT}"


# --- Against the oracle -----------------------------------------------------------------------------------------------

Item = tuple[str, str, str | None]
NAMES = st.sampled_from(["orders", "a b", "x-1", "\u202eevil\n", "9"])
KEYS = st.sampled_from(["plugin.retention", "plugin.policy", "plugin.password"])
VALUES = st.sampled_from(["", "1", "nothing", "1 2\x00"])
CONFIGS = st.dictionaries(KEYS, VALUES, min_size=1).map(
    lambda found: {key: Hidden(value) if "password" in key else value for key, value in found.items()})
IDS = st.integers(1, 3).map(lambda number: urlsafe_b64encode(number.to_bytes(16)).decode().rstrip("="))
TOPICS = st.builds(Topic, IDS, st.dictionaries(
    st.integers(0, 2), st.builds(Assignment, st.permutations([1, 2]).map(tuple)), min_size=1))
METADATA = st.builds(
    ClusterMetadata,
    topics=st.dictionaries(NAMES, TOPICS, max_size=3).filter(
        lambda found: len({topic.id for topic in found.values()}) == len(found)),
    configs=st.dictionaries(st.builds(Resource, st.sampled_from(["topic", "broker"]), NAMES), CONFIGS, max_size=4),
    quotas=st.dictionaries(st.tuples(st.tuples(st.just("user"), NAMES | st.none())),
                           st.dictionaries(st.just("producer_byte_rate"), st.sampled_from([1.0, 2.0]), min_size=1)),
    acls=st.frozensets(st.builds(Acl, st.just("User:a"), st.just("*"), st.just("Allow"), st.sampled_from(["Read", "Write"]),
                                 st.just("Topic"), st.just("literal"), NAMES)),
    next_producer_id=st.none() | st.sampled_from([1000, 2000]))


def things(metadata: ClusterMetadata, other: ClusterMetadata) -> set[tuple[Item, object]]:
    """Everything one by one; the partitions of a topic that is the same one on the other side as well."""
    found: set[tuple[Item, object]] = set()
    for name, topic in metadata.topics.items():
        theirs = other.topics.get(name)
        same = theirs is not None and theirs.id == topic.id
        found.add((("topic", name, None), topic.id))
        found |= {(("partition", name, str(index)), item) for index, item in topic.partitions.items() if same}
    for (kind_, name), values in metadata.configs.items():
        found |= {((kind_, name, key), value) for key, value in values.items()}
    for ((_, user),), quotas in metadata.quotas.items():
        found |= {(("quota", f"user {DEFAULT if user is None else user}", key), value) for key, value in quotas.items()}
    found |= {(("ACL", str(acl), None), True) for acl in metadata.acls}
    if metadata.next_producer_id is not None:
        found.add((("producer ids", "next", None), metadata.next_producer_id))
    return found


@settings(max_examples=150, deadline=None)
@given(METADATA, METADATA)
def test_the_rows_are_the_difference_of_the_sets(ours: ClusterMetadata, theirs: ClusterMetadata) -> None:
    left, right = things(ours, theirs), things(theirs, ours)
    wrong = {item for item, _ in left ^ right}
    there, here = {item for item, _ in left & _about(left, wrong)}, {item for item, _ in right & _about(right, wrong)}
    expected = {(*escaped(item), "different" if item in there & here else "missing" if item in there else "extra")
                for item in wrong}
    found = judge([tree(ours)] * 2, [log(theirs)] * 2, 2)
    told = rows(found.found)
    assert {row[:4] for row in told} == expected
    assert len(told) == len(expected)
    assert all(row[6] for row in told)
    assert (found.verdict is Verdict.CLEAN) == (not expected)
    assert found.entries == size(ours) + size(theirs)


def _about(side: set[tuple[Item, object]], items: set[Item]) -> set[tuple[Item, object]]:
    return {each for each in side if each[0] in items}


def escaped(item: Item) -> Item:
    return item[0], shown(item[1]), None if item[2] is None else shown(item[2])


# --- Words ------------------------------------------------------------------------------------------------------------


def test_secrets_show_nothing_and_hostile_names_do_nothing() -> None:
    name = "evil\n\u202e\x00"
    ours = ClusterMetadata(configs={Resource("topic", name): {"plugin.password": Hidden("sesame"), "a": "x" * 70_000}})
    theirs = ClusterMetadata(configs={Resource("topic", name): {"plugin.password": Hidden("simsim"), "a": "x" * 70_001}})
    found = judge([tree(ours)] * 2, [log(theirs)] * 2, 2)
    told = rows(found.found)
    assert [row[:4] for row in told] == [("topic", "evil\\n\\u202e\\x00", "a", "different"),
                                         ("topic", "evil\\n\\u202e\\x00", "plugin.password", "different")]
    assert told[0][4] != told[0][5]
    assert max(len(row[4]) for row in told) < LONGEST + 40
    assert told[1][4:6] == ("(hidden)", "another value, (hidden)")
    written = str(told) + str(summary(found))
    assert "sesame" not in written
    assert "simsim" not in written
    assert "\u202e" not in written


def test_a_znode_that_cannot_be_read_is_a_class_of_its_own() -> None:
    malformed = Difference("znode", "/config/topics/t", "not JSON", ABSENT)
    assert kind(malformed) == "malformed"
    assert sentence(malformed) == "znode /config/topics/t: ZooKeeper says not JSON, KRaft says nothing"


def test_lone_surrogates_can_be_shown() -> None:
    assert shown("\ud800") == "\\ud800"
    assert "sha256" in shown("\ud800" * 300)


# --- Configuration ----------------------------------------------------------------------------------------------------


def test_the_voters_as_kafka_names_them() -> None:
    assert {node: str(where) for node, where in voters("3000@kafka-0.x:9093, 3001@[::1]:9093").items()} == {
        3000: "kafka-0.x:9093", 3001: "[::1]:9093"}


@pytest.mark.parametrize("text", ["kafka:9093", "1@kafka", "1@kafka:99999", "1@a:1,1@b:1", "", "1@a:1,", "x@a:1"])
def test_voters_that_make_no_sense_are_refused_in_words(text: str) -> None:
    with pytest.raises(BadConfig, match="quorumVoters"):
        voters(text)


def config(tmp_path: Path, **drift: Any) -> Config:
    return Config(cluster="c", store=tmp_path, zookeeper=ZooKeeper(connect="127.0.0.1:1"), drift=DriftSettings(**drift))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"zookeeper\.connect"):
        both_sides(Config(cluster="c", store=tmp_path))
    with pytest.raises(BadConfig, match=r"drift\.quorumVoters"):
        both_sides(config(tmp_path))
    with pytest.raises(BadConfig, match=r"no-such-file: No such file"):
        both_sides(config(tmp_path, quorum_voters="1@a:1", password_encoder_secret=tmp_path / "no-such-file"))
    wrong = tmp_path / "client.properties"
    wrong.write_text("security.protocol=TELEPATHY\n")
    with pytest.raises(BadConfig, match=r"drift: security\.protocol 'TELEPATHY'"):
        both_sides(config(tmp_path, quorum_voters="1@a:1", controllers_config=wrong))
