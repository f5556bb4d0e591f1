"""`switchover groups` against real Kafka 4.4 and 3.9, and the adapter that it asks."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32
from typer.testing import CliRunner

from adapters.clusters import KafkaCluster, KRaftNode
from adapters.eventually import eventually
from adapters.group_members import ask, assignment, classic_member, create_topic, joined, subscription
from switchover.answers.clock import WallClock
from switchover.answers.observed import Known
from switchover.cli.main import app
from switchover.kafka.client import connection as wire_connection
from switchover.kafka.client import groups as wire_groups
from switchover.kafka.client.connection import Connection, Versions
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import GroupState
from switchover.kafka.limits import EVERY_GROUP_SECONDS
from switchover.network.addresses import Address
from switchover.network.credentials import Access


async def run(*arguments: str) -> tuple[int, Any, str]:
    """Exit code, the document, and what is said of errors."""
    answer = await asyncio.to_thread(CliRunner().invoke, app, ["groups", *arguments, "-o", "json"])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    return answer.exit_code, json.loads(answer.stdout) if answer.stdout else None, answer.stderr


def by_name(found: Any, names: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    listed = {each["group"]: each for each in found["groups"]}
    return {what: listed[name] for what, name in names.items() if name in listed}


async def share_member(server: Address, group: str, topic: str) -> None:
    answer = await ask(server, ShareGroupHeartbeatRequest(
        group_id=GroupId(group), member_id=str(uuid4()), member_epoch=i32(0), rack_id=None,
        subscribed_topic_names=(TopicName(topic),)), ShareGroupHeartbeatResponse)
    assert answer.error_message is None, answer.error_message


async def coordinated(server: Address, names: Sequence[str]) -> None:
    """The broker has loaded the groups: a node that has just started has no coordinator for a moment."""
    every, clock = WireGroups(Access(str(server)), seconds=EVERY_GROUP_SECONDS), WallClock()
    await eventually(lambda: every.named(names, clock), lambda found: all(
        isinstance(each.group, Known) for each in found.groups.values()))


async def test_groups_of_every_type_with_what_stands_in_their_way(newest_kafka: KRaftNode) -> None:
    server, topic, made = newest_kafka.address, uuid4().hex, uuid4().hex
    names = {kind: f"{kind}-{made}" for kind in ("classic", "consumer", "connect", "torn", "custom", "share")}
    await create_topic(server, topic, 3)
    await coordinated(server, [*names.values()])
    await classic_member(server, names["classic"], subscription(topic), assignment(topic, 0, 1, 2))
    await classic_member(server, names["connect"], b"\xff", b"\xff", protocol_type="connect", strategies=("sessioned",))
    await classic_member(server, names["torn"], subscription(topic), b"\0\0\xff")
    await classic_member(server, names["custom"], subscription(topic), assignment(topic, 0, user_data="0000000177"))
    await joined(server, names["consumer"], topic)
    await share_member(server, names["share"], topic)

    code, found, _ = await run("--bootstrap-server", str(server))
    groups = by_name(found, names)
    assert {what: (each["type"], each["protocolType"], each["state"], each["members"], each["assignor"], each["ready"])
            for what, each in groups.items()} == {
        "classic": ("Classic", "consumer", "Stable", 1, "range", "Yes"),
        "consumer": ("Consumer", "consumer", "Stable", 1, "uniform", "No"),
        "connect": ("Classic", "connect", "Stable", 1, "sessioned", "No"),
        "custom": ("Classic", "consumer", "Stable", 1, "range", "No"),
        "share": ("Share", "share", "Stable", None, "", "No"),
        "torn": ("Classic", None, "Stable", None, None, "No")}
    assert {what: [each["reason"] for each in group["findings"]] for what, group in groups.items()} == {
        "classic": [], "consumer": ["AlreadyMoved"], "connect": ["NotConsumers"], "custom": ["AssignmentUserData"],
        "share": ["GroupTypeUnsupported"], "torn": ["MalformedMember"]}
    assert (found["missing"], found["brokers"]["findings"]) == ([], [])

    named = [option for name in names.values() for option in ("--group", name)]
    again, few, _ = await run("--bootstrap-server", str(server), *named)
    assert by_name(few, names) == groups
    assert len(few["groups"]) == len(names)
    assert again == 0, "of these groups all was seen"
    code, back, _ = await run("--bootstrap-server", str(server), "--to", "Classic", "--group", names["consumer"])
    assert (code, back["groups"][0]["ready"]) == (0, "Yes")
    code, nothing, why = await run("--bootstrap-server", str(server), "--group", f"nobody-{made}")
    assert (code, nothing, why) == (2, None, f"switchover: group nobody-{made} does not exist at {server}\n")


async def test_below_kafka_4_every_group_is_told_what_its_brokers_lack(zookeeper_cluster: KafkaCluster) -> None:
    [server], topic, name = [each.address for each in zookeeper_cluster.brokers.values()], uuid4().hex, uuid4().hex
    await create_topic(server, topic, 1)
    await coordinated(server, [name])
    await classic_member(server, name, subscription(topic), assignment(topic, 0))
    _, found, _ = await run("--bootstrap-server", zookeeper_cluster.bootstrap)
    group = by_name(found, {"ours": name})["ours"]
    assert (group["type"], group["state"], group["members"], group["ready"], group["findings"]) == (
        "Classic", "Stable", 1, "No", [])
    assert [each["reason"] for each in found["brokers"]["findings"]] == ["WrongKafkaVersion"]


async def test_groups_are_described_in_batches_on_the_connection_that_listed_them(
        newest_kafka: KRaftNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the list tells no types, as before Kafka 3.8."""
    server, topic, prefix = newest_kafka.address, uuid4().hex, uuid4().hex
    names = [f"{prefix}-{number:02}" for number in range(60)]
    await create_topic(server, topic, 1)
    await coordinated(server, names)
    for name in names:
        await classic_member(server, name, subscription(topic), assignment(topic, 0))
    requests, exchange, versions = Counter[str](), Connection.exchange, wire_connection.api_versions

    async def counted(self: Connection, request: object) -> bytes:
        requests[type(request).__module__.rsplit(".", 3)[-3] + type(request).__module__.rsplit(".", 2)[-2]] += 1
        return await exchange(self, request)                                     # type: ignore[arg-type]

    async def older(node: Address, connection: Connection) -> Versions:
        told = await versions(node, connection)
        return replace(told, api_keys={**told.api_keys, 16: 4})

    every, clock = WireGroups(Access(str(server)), seconds=EVERY_GROUP_SECONDS), WallClock()
    newest = {name: each for name, each in (await every.every(clock)).groups.items() if name in names}
    assert {each.state for each in newest.values()} == {GroupState.STABLE}
    monkeypatch.setattr(Connection, "exchange", counted)
    monkeypatch.setattr(wire_connection, "api_versions", older)
    before = await every.every(clock)
    assert {name: replace(each, group=None) for name, each in before.groups.items() if name in names} == {
        name: replace(each, group=None) for name, each in newest.items()}
    assert requests["list_groupsv4"] == 1
    assert requests["describe_groupsv5"] == -(-len(before.groups) // 50), "in batches"


async def test_a_broker_that_does_not_answer_is_no_cluster_without_groups(
        newest_kafka: KRaftNode, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = wire_groups._ids

    async def one_more(node: Address, connection: Connection) -> Mapping[Address, int]:
        return {**await ids(node, connection), Address("127.0.0.1", 1): 7}

    monkeypatch.setattr(wire_groups, "_ids", one_more)
    code, found, why = await run("--bootstrap-server", str(newest_kafka.address))
    assert (code, found["missing"], why) == (3, ["127.0.0.1:1: nobody listens there"], "")
