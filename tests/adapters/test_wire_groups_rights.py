"""What our user may ask of groups, on a real Kafka 4.4 with an authorizer: each right that is missing is named."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode
from typer.testing import CliRunner

from adapters.clusters import KRaftNode, node, patient_wire
from adapters.eventually import eventually
from adapters.group_members import assignment, classic_member, create_topic, heartbeat, joined, subscription
from adapters.guarded import CLUSTER, DESCRIBE, DESCRIBE_CONFIGS, GROUP, READ, TOPIC, allow, settings, user
from switchover.answers.errors import Refused
from switchover.cli.main import app
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import OffsetsTopic, Readiness
from switchover.network.credentials import Access


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    with node(tmp_path_factory.mktemp("guarded"), "4.4") as server:
        server.begin(settings(server) + "group.consumer.max.size=1\n")
        yield server


async def said(question: Callable[[], Awaitable[object]]) -> object:
    """The answer, or the words of the refusal."""
    try:
        return await question()
    except Refused as error:
        return str(error)


async def comes_to(question: Callable[[], Awaitable[object]], answer: object) -> None:
    """A right takes effect a moment after it was granted."""
    await eventually(lambda: said(question), lambda told: told == answer, 20)


async def test_each_missing_right_is_named(guarded: KRaftNode) -> None:
    server = guarded.address
    ours, all_may = WireGroups(Access(str(server), user("switchover"))), WireGroups(Access(str(server), user("admin")))
    await create_topic(server, "orders", 2, user("admin"))
    await eventually(lambda: all_may.describe("modern"), lambda _: True)
    await joined(server, "modern", "orders", properties=user("admin"))
    await classic_member(server, "classic", subscription("orders"), assignment("orders", 0), properties=user("admin"))

    for group in ("modern", "classic"):
        await comes_to(partial(ours.describe, group), f"{server}: the user may not find the coordinator of group {group}; "
                                                      f"grant it Describe on group {group}")
        await allow(server, GROUP, group, DESCRIBE)
    await comes_to(lambda: ours.describe("classic"), await all_may.describe("classic"))
    await comes_to(lambda: ours.describe("modern"), f"{server}: the user may not describe group modern; grant it Describe "
                                                    "on every topic that group modern reads")
    await comes_to(lambda: ours.partitions(["orders"]),
                   f"{server}: the user may not describe topic orders; grant it Describe on topic orders")
    await comes_to(lambda: ours.readiness("classic", ["orders"]), Readiness("GROUP_AUTHORIZATION_FAILED"))
    no_settings = (f"{server}: the user may not read the settings of brokers; grant it DescribeConfigs on the Cluster "
                   "resource")
    await comes_to(lambda: ours.broker(server, 1), no_settings)
    await comes_to(lambda: ours.all_support("classic", "range"), no_settings)
    wire, cluster_id = patient_wire(user("switchover")), (await patient_wire(user("admin")).metadata(server)).cluster_id
    await comes_to(lambda: wire.identity(server, cluster_id, (0, 1)), no_settings)

    await allow(server, CLUSTER, "kafka-cluster", DESCRIBE_CONFIGS)
    await comes_to(lambda: wire.identity(server, cluster_id, (0, 1)), frozenset({1}))
    await comes_to(lambda: ours.broker(server, 1), await all_may.broker(server, 1))
    await comes_to(lambda: ours.all_support("classic", "range"),
                   f"{server}: the user may not ask group classic what its members support; grant it Read on group classic")
    await allow(server, GROUP, "classic", READ)
    await comes_to(lambda: ours.all_support("classic", "range"), True)
    await comes_to(lambda: ours.readiness("classic", ["orders"]), Readiness("TOPIC_AUTHORIZATION_FAILED"))
    await allow(server, TOPIC, "orders", DESCRIBE)
    await comes_to(lambda: ours.readiness("classic", ["orders"]), Readiness("", ("uniform", "range")))
    await comes_to(lambda: ours.describe("modern"), await all_may.describe("modern"))
    await comes_to(lambda: ours.partitions(["orders"]), {"orders": 2})

    await comes_to(ours.offsets_topic, f"{server}: the user may not describe topic __consumer_offsets; grant it Describe on "
                                       "topic __consumer_offsets")
    await allow(server, TOPIC, "__consumer_offsets", DESCRIBE)
    await comes_to(ours.offsets_topic, f"{server}: the user may not read the settings of topic __consumer_offsets; grant it "
                                       "DescribeConfigs on topic __consumer_offsets")
    await allow(server, TOPIC, "__consumer_offsets", DESCRIBE_CONFIGS)
    await comes_to(ours.offsets_topic, OffsetsTopic(max_message_bytes=1048588, compressed=False, replicas_short=0))

    await comes_to(ours.coordinated, f"{server}: shows our user only groups that it has rights on; grant it Describe on the "
                                     "Cluster resource")
    await allow(server, CLUSTER, "kafka-cluster", DESCRIBE)
    await comes_to(ours.coordinated, {1: 2})


async def test_a_group_that_has_grown_too_large(guarded: KRaftNode) -> None:
    """The limit is told, and it is what a newcomer meets."""
    server, groups = guarded.address, WireGroups(Access(str(guarded.address), user("admin")))
    assert (await groups.broker(server, 1)).settings["group.consumer.max.size"] == "1"
    await create_topic(server, "large", 2, user("admin"))
    await eventually(lambda: groups.describe("large"), lambda _: True)
    await joined(server, "large", "large", properties=user("admin"))
    refusal = await heartbeat(server, "large", "large", properties=user("admin"))
    assert refusal.error_code is ErrorCode.group_max_size_reached
    assert len((await groups.describe("large")).members) == 1


async def test_who_sees_only_some_groups_is_not_told_that_these_are_all(guarded: KRaftNode, tmp_path: Path) -> None:
    server, file = guarded.address, tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in user("hidden").items()))
    await eventually(lambda: WireGroups(Access(str(server), user("admin"))).describe("secret"), lambda _: True)
    await classic_member(server, "secret", subscription("orders"), assignment("orders", 0), properties=user("admin"))

    async def groups(*options: str) -> tuple[int, str, str]:
        answer = await asyncio.to_thread(CliRunner().invoke, app, [
            "groups", "--bootstrap-server", str(server), "--command-config", str(file), *options])
        return answer.exit_code, answer.stdout, answer.stderr

    assert await groups() == (2, "", f"switchover: {server}: shows our user only groups that it has rights on; grant it "
                                     "Describe on the Cluster resource, or name the groups (--group)\n")
    code, text, _ = await groups("--group", "secret")
    assert (code, "grant it Describe on group secret" in text, " Unknown " in text) == (3, True, True)
