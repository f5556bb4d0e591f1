"""`switchover groups` on made-up answers: what stands in the way of whom, how it is shown, and with which exit code."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from switchover.answers.observed import Known, Unknown
from switchover.cli.command import Output
from switchover.cli.display import document as written
from switchover.cli.groups import Look, Ready, document, judged, table
from switchover.cli.main import app
from switchover.groups.picture import Facts
from switchover.kafka.group import GroupState, GroupType, Member, MemberProtocol, SeenGroup
from unit.group_pictures import NOW, at_start, broker, value

GROUP = value(at_start().facts.group)
FACTS = at_start().facts
MODERN = tuple(replace(each, protocol=MemberProtocol.CONSUMER) for each in GROUP.members)
EVIL = "\x1b[2Jorders\u202egnp\n"


def seen(name: str = "orders", **changes: Any) -> SeenGroup:
    found = replace(GROUP, name=name, **changes)
    return SeenGroup(name, Known(found, NOW), str(found.type), str(found.state))


def look(*found: SeenGroup, facts: Facts = FACTS, to: Any = "Consumer", silent: tuple[str, ...] = ()) -> Look:
    return judged("kafka:9092", "cluster-1", to, found, facts, silent, NOW)


def with_members(change: Callable[[Member], Member]) -> tuple[Member, ...]:
    return tuple(change(each) for each in GROUP.members)


def shown(found: Look) -> str:
    screen = Console(width=400, file=io.StringIO())
    for each in table(found):
        screen.print(each)
    return screen.file.getvalue()                                                # type: ignore[attr-defined, no-any-return]


def test_a_group_that_nothing_stops_is_ready() -> None:
    found = look(seen())
    assert [(row.ready, row.findings) for row in found.groups] == [(Ready.YES, ())]
    assert (found.brokers, found.code) == ((), 0)
    assert shown(found).splitlines()[1].split() == ["orders", "Classic", "consumer", "range", "Stable", "6", "Yes"]


@pytest.mark.parametrize(("changes", "ready", "reason", "words"), [
    ({"state": GroupState.PREPARING_REBALANCE}, Ready.NOT_YET, "GroupNotStable", "group orders is PreparingRebalance"),
    ({"state": GroupState.EMPTY, "members": ()}, Ready.NO, "GroupEmpty", "group orders has no members"),
    ({"protocol_type": "connect"}, Ready.NO, "NotConsumers", "has the protocol type connect"),
    ({"type": GroupType.OTHER, "members": ()}, Ready.NO, "GroupTypeUnsupported", "that only Kafka Streams or share"),
    ({"assignor": "stream"}, Ready.NO, "KafkaStreams", "is a Kafka Streams application"),
    ({"members": with_members(lambda each: replace(each, user_data=9))}, Ready.NO, "AssignmentUserData",
     "carries 9 bytes of user data"),
    ({"members": with_members(lambda each: replace(each, metadata=1_000_000))}, Ready.NO, "RecordTooLarge",
     "is estimated at"),
    ({"members": MODERN, "type": GroupType.CONSUMER, "assignor": "uniform"},
     Ready.NO, "AlreadyMoved", "6 of 6 members take part by the consumer protocol already"),
], ids=lambda each: each if isinstance(each, str) and " " not in each else "")
def test_what_is_in_the_way_of_a_group_is_told(changes: dict[str, Any], ready: Ready, reason: str, words: str) -> None:
    found = look(seen(**changes), seen("other"))
    assert [(row.seen.name, row.ready) for row in found.groups] == [("orders", ready), ("other", Ready.YES)]
    [finding] = document(found)["groups"][0]["findings"]
    assert (finding["reason"], words in finding["message"], bool(finding["unblocks"])) == (reason, True, True)
    assert words in shown(found)
    assert found.code == 0, "a group that cannot be moved is no trouble of this command"


def test_what_the_brokers_lack_is_told_once_and_counts_for_all() -> None:
    classic_alone = {"group.consumer.migration.policy": "bidirectional", "group.coordinator.rebalance.protocols": "classic"}
    old = replace(FACTS, brokers={1: Known(broker(metadata_version=21, settings=classic_alone), NOW)})
    found = look(seen(), seen("other"), facts=old)
    assert {row.ready for row in found.groups} == {Ready.NO}
    assert [each.reason for each in found.brokers if each.outcome == "Fail"] == ["WrongKafkaVersion"]
    assert shown(found).count("is older than Kafka 4.0") == 1
    assert shown(found).count("the brokers: see below") == 2
    found = look(seen(), facts=replace(FACTS, brokers={7: Known(broker(settings=classic_alone), NOW)}))
    assert [each.message for each in found.brokers if each.outcome == "Fail"] == [
        "broker 7 does not serve the consumer protocol"]


def test_back_to_the_classic_protocol_other_things_count() -> None:
    assert look(seen(), to="Classic").groups[0].findings[0].reason == "AlreadyMoved"
    modern = seen(type=GroupType.CONSUMER, members=MODERN)
    assert look(modern, to="Classic").groups[0].ready is Ready.YES


def test_in_a_group_that_moves_right_now_both_kinds_of_members_are_counted() -> None:
    first, *others = GROUP.members
    mixed = seen(type=GroupType.CONSUMER, members=(replace(first, protocol=MemberProtocol.CONSUMER), *others))
    assert " 6 (5 classic) " in shown(look(mixed))
    assert document(look(mixed))["groups"][0]["classicMembers"] == 5


@pytest.mark.parametrize(("facts", "group", "words"), [
    (FACTS, SeenGroup("orders", Unknown("kafka-1:9092: no answer"), "Classic", "Stable"), "kafka-1:9092: no answer"),
    (replace(FACTS, brokers={}), seen(), "no broker was asked yet"),
    (replace(FACTS, brokers={1: Unknown("may not read the settings", refused=True)}), seen(), "may not read the settings"),
    (replace(FACTS, offsets_topic=Unknown("there is none")), seen(), "there is none"),
], ids=["group", "brokers", "right", "topic"])
def test_what_was_not_seen_is_unknown_and_never_fine(facts: Facts, group: SeenGroup, words: str) -> None:
    found = look(group, facts=facts)
    assert (found.groups[0].ready, found.code) == (Ready.UNKNOWN, 3)
    assert shown(found).count(words) == 1, "not for each group what the brokers do not tell"
    assert " Unknown " in shown(found)


def test_a_group_that_cannot_be_described_says_what_is_known_of_it() -> None:
    found = look(SeenGroup("orders", Unknown("m does not speak it", refused=True, malformed=True), "Classic", "Stable"))
    assert shown(found).splitlines()[1].split()[:7] == ["orders", "Classic", "?", "?", "Stable", "?", "No"]
    group = document(found)["groups"][0]
    assert (group["members"], group["classicMembers"], group["assignor"]) == (None, None, None)
    assert [each["reason"] for each in group["findings"]] == ["MalformedMember"]


def test_brokers_that_did_not_tell_their_groups_are_named() -> None:
    found = look(seen(), silent=("kafka-2:9092: nobody listens there",))
    assert (found.code, document(found)["missing"]) == (3, ["kafka-2:9092: nobody listens there"])
    assert "its groups are missing here: kafka-2:9092: nobody listens there" in shown(found)


def test_names_do_nothing_to_a_terminal_and_documents_have_them_whole() -> None:
    found = look(seen(EVIL, assignor=EVIL), silent=(EVIL,))
    for text in (shown(found), written(document(found), Output.JSON), written(document(found), Output.YAML)):
        assert not {"\x1b", "\u202e"} & {*text}
    assert json.loads(written(document(found), Output.JSON))["groups"][0]["group"] == EVIL
    assert yaml.safe_load(written(document(found), Output.YAML))["groups"][0]["assignor"] == EVIL


def test_a_cluster_without_groups_says_so() -> None:
    assert shown(look()) == "no group at kafka:9092\n"
    assert shown(look(silent=("kafka-2:9092: nobody listens there",))) == (
        "its groups are missing here: kafka-2:9092: nobody listens there\n")


@pytest.mark.parametrize(("options", "words"), [
    (["--bootstrap-server", "127.0.0.1:1"], "no bootstrap server answers: 127.0.0.1:1: nobody listens there"),
    (["--bootstrap-server", "kafka"], "server 'kafka' is not of the form HOST:PORT"),
    (["--bootstrap-server", "k:1", "--command-config", "/nowhere"], "/nowhere"),
])
def test_what_cannot_be_asked_is_one_line_and_exit_code_2(options: list[str], words: str) -> None:
    answer = CliRunner().invoke(app, ["groups", *options])
    assert (answer.exit_code, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)
    assert words in answer.stderr
