"""What a migration-enabled consumer may be configured with and subscribe to, and what is refused in which words."""

from typing import Any

import pytest
from typer.testing import CliRunner

from switchover.cli.main import app
from switchover.consumer.group import embedded
from switchover.consumer.migration_consumer import MigrationConsumer
from switchover.consumer.settings import BadConfiguration, Store, parsed, registered
from switchover.coordination.assignment import Strategy, Text
from switchover.coordination.registration import Registration, Subscribed

NEEDED = {"group.id": "orders", "zookeeper.connect": "zookeeper:2181/kafka"}
BOTH = {Store.ZOOKEEPER, Store.KAFKA}


def test_the_old_consumers_defaults() -> None:
    settings = parsed(NEEDED)
    assert (settings.reset, settings.session_timeout, settings.rules.strategy) == ("latest", 6.0, Strategy.RANGE)
    assert settings.stores == BOTH
    group, _, rest = settings.consumer_id.partition("_")
    assert (group, settings.consumer_id) == ("orders", settings.rules.consumer_id)
    _, stamp, unique = rest.rsplit("-", 2)
    assert (len(stamp), len(unique), int(unique, 16) >= 0) == (13, 8, True)


def test_both_families_of_names() -> None:
    settings = parsed(NEEDED | {
        "consumer.id": "a", "auto.commit.enable": "false", "auto.offset.reset": "smallest",
        "exclude.internal.topics": "FALSE",
        "partition.assignment.strategy": "roundrobin", "partition.assignment.roundrobin.text": "0.11",
        "coordination.migration.session.timeout.ms": 8000, "coordination.migration.poll.interval.ms": "100",
        "fetch.min.bytes": 7})
    rules = settings.rules
    assert (rules.consumer_id, rules.commit_interval, rules.exclude_internal) == ("orders_a", None, False)
    assert (rules.strategy, rules.text, settings.reset) == (Strategy.ROUND_ROBIN, Text.UP_TO_0_11, "earliest")
    assert (settings.embedded, settings.fetching, settings.poll_interval) == (
        {"session.timeout.ms": 8000}, {"fetch.min.bytes": 7}, 0.1)


def test_the_member_in_kafkas_group_hears_soon_of_a_rebalance_unless_it_is_told_otherwise() -> None:
    found = embedded(parsed(NEEDED), "kafka:9092")
    assert (found["heartbeat.interval.ms"], found["session.timeout.ms"]) == (1000, 10_000)
    assert embedded(parsed(NEEDED | {"heartbeat.interval.ms": 3000}), "kafka:9092")["heartbeat.interval.ms"] == 1000
    told = parsed(NEEDED | {"coordination.migration.heartbeat.interval.ms": 3000})
    assert embedded(told, "kafka:9092")["heartbeat.interval.ms"] == 3000


@pytest.mark.parametrize(("given", "stores"), [
    ({}, {Store.ZOOKEEPER}),
    ({"offsets.storage": "kafka"}, BOTH),
    ({"offsets.storage": "kafka", "dual.commit.enabled": "false"}, {Store.KAFKA}),
    ({"dual.commit.enabled": "true"}, {Store.ZOOKEEPER}),
])
def test_without_migration_offsets_are_where_the_old_consumer_has_them(given: dict[str, str], stores: set[Store]) -> None:
    assert parsed(NEEDED | {"coordination.migration.enabled": False} | given).stores == stores


@pytest.mark.parametrize(("given", "words"), [
    ({"group.id": ""}, "group.id cannot be ''"),
    ({"group.id": "a/b"}, "group.id cannot be 'a/b': only letters"),
    ({"consumer.id": "ü"}, "consumer.id cannot be 'ü': only letters"),
    ({"zookeeper.connect": ""}, "zookeeper.connect is missing"),
    ({"zookeeper.session.timeout.ms": "soon"}, "zookeeper.session.timeout.ms cannot be 'soon'"),
    ({"auto.commit.interval.ms": 0}, "more than 0 ms"),
    ({"enable.auto.commit": "perhaps"}, "enable.auto.commit cannot be 'perhaps'"),
    ({"auto.offset.reset": "none"}, "one of smallest, earliest, largest, latest"),
    ({"partition.assignment.strategy": "cooperative-sticky"}, "it is range or roundrobin"),
    ({"partition.assignment.roundrobin.text": "2.0"}, "0.11 where"),
    ({"offsets.storage": "disk"}, "offsets.storage cannot be 'disk'"),
    ({"offsets.storage": "kafka", "dual.commit.enabled": False}, "dual.commit.enabled=true on all members first"),
    ({"client.id": "me"}, "client.id is not yours to set"),
    ({"coordination.migration.group.id": "x"}, "coordination.migration.group.id is not yours to set"),
])
def test_what_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadConfiguration) as refused:
        parsed(NEEDED | given)
    assert words in str(refused.value)


@pytest.mark.parametrize("key", ["fetch.min.byte", "coordination.migration.sesion.timeout.ms"])
def test_librdkafkas_keys_are_refused_before_anything_begins(key: str) -> None:
    with pytest.raises(BadConfiguration, match="No such configuration property"):
        MigrationConsumer(NEEDED | {key: 1})


def test_subscriptions() -> None:
    assert registered(["a", "b"], "", "", 2).subscription == {"a": 2, "b": 2}
    assert registered({"a": 1, "b": 3}, "", "", 1).subscription == {"a": 1, "b": 3}
    black: Registration = registered((), "", "a,b", 1)
    assert (black.by, black.subscription) == (Subscribed.BLACK_LIST, {"a,b": 1})


@pytest.mark.parametrize(("topics", "whitelist", "streams", "words"), [
    ((), "", 1, "exactly one of"), (["a"], "b", 1, "exactly one of"), ("orders", "", 1, "not the text"),
    (["a/b"], "", 1, "no name of a topic"), (["a"], "", 0, "no number of streams"),
    ((), r"a\d+", 1, "may not mean the same"),
])
def test_subscriptions_that_are_refused(topics: Any, whitelist: str, streams: int, words: str) -> None:
    with pytest.raises(BadConfiguration, match=words):
        registered(topics, whitelist, "", streams)


@pytest.mark.parametrize(("arguments", "words"), [
    (["-X", "group.id"], "is not KEY=VALUE"),
    (["-X", "group.id=a"], "zookeeper.connect is missing"),
    (["--config", "/nowhere"], "cannot read /nowhere"),
    (["-X", "group.id=a", "-X", "zookeeper.connect=127.0.0.1:1"], "exactly one of topics"),
    (["-X", "group.id=a", "-X", "zookeeper.connect=127.0.0.1:1", "-X", "zookeeper.connection.timeout.ms=300",
      "-X", "bootstrap.servers=127.0.0.1:1", "--topic", "a"], "ZooKeeper at 127.0.0.1:1 does not answer within 0.3 s"),
])
def test_the_command_refuses_in_words(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(app, ["consume", *arguments])
    assert (result.exit_code, words in result.output) == (2, True), result.output
