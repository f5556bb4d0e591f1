"""Who is in the groups, asked in batches, against real Kafka 4.4 and 3.9."""

import json
import time
from collections import Counter
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from adapters.clusters import KafkaCluster, KRaftNode
from adapters.eventually import eventually
from adapters.group_members import assignment, classic_member, create_topic, joined, subscription
from patience import stretched
from switchover.answers.errors import Unreachable
from switchover.kafka.client import groups as wire_groups
from switchover.kafka.client.connection import Connection
from switchover.kafka.client.coordinator import Coordinators
from switchover.kafka.client.groups import WireGroups
from switchover.lag.group import Membership, TopicPartition
from switchover.network.addresses import Address
from switchover.network.credentials import Access


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each was sent."""
    found, exchange = Counter[str](), Connection.exchange

    async def counted(self: Connection, request: object) -> bytes:
        found[type(request).__name__.removesuffix("Request")] += 1
        return await exchange(self, request)                # type: ignore[arg-type]

    monkeypatch.setattr(Connection, "exchange", counted)
    return found


def librdkafkas(servers: str, groups: list[str]) -> Counter[str]:
    """The requests by which an ordinary AdminClient describes them, after it has found its brokers."""
    told: list[str] = []
    client = AdminClient({"bootstrap.servers": servers, "statistics.interval.ms": 100, "stats_cb": told.append})
    for future in client.describe_consumer_groups(groups, request_timeout=stretched(30)).values():
        future.result()
    time.sleep(0.3)
    client.poll(0)
    found = Counter[str]()
    for broker in json.loads(told[-1])["brokers"].values():
        found.update(broker["req"])
    return found


async def test_groups_in_batches_of_fifty_and_not_one_by_one(
    zookeeper_cluster: KafkaCluster, requests: Counter[str],
) -> None:
    [server], topic, prefix = [each.address for each in zookeeper_cluster.brokers.values()], uuid4().hex, uuid4().hex
    await create_topic(server, topic, 2)
    groups = [f"{prefix}-{number:03}" for number in range(120)]
    memberships = WireGroups(Access(zookeeper_cluster.bootstrap))
    await eventually(lambda: memberships.memberships(groups[:1]), lambda found: isinstance(found[groups[0]], Membership))
    members = {group: await classic_member(server, group, subscription(topic), assignment(topic, 1)) for group in groups[:3]}
    requests.clear()
    found = await memberships.memberships(groups)
    owned = frozenset({TopicPartition(topic, 1)})
    assert {group: found[group] for group in members} == {
        group: Membership("Stable", {member: owned}) for group, member in members.items()}
    assert {found[group] == Membership("Dead", {}) for group in groups[3:]} == {True}
    assert requests == {"FindCoordinator": 2, "ApiVersions": 1, "DescribeGroups": 3, "ConsumerGroupDescribe": 3}

    before = librdkafkas(zookeeper_cluster.bootstrap, groups)
    assert before["FindCoordinator"] >= len(groups)
    assert before["DescribeGroups"] >= len(groups), "what it cost in one request for each group"
    assert set(members) <= set(await memberships.groups())


async def test_groups_of_every_type_and_what_is_none(newest_kafka: KRaftNode) -> None:
    server, topic, made = newest_kafka.address, uuid4().hex, uuid4().hex
    names = {kind: f"{kind}-{made}" for kind in ("classic", "consumer", "connect", "torn", "nobody")}
    await create_topic(server, topic, 3)
    memberships = WireGroups(Access(str(server)))
    await eventually(lambda: memberships.memberships(names.values()),
                     lambda found: all(isinstance(each, Membership) for each in found.values()))
    member = await classic_member(server, names["classic"], subscription(topic), assignment(topic, 0, 2))
    await classic_member(server, names["connect"], b"\xff", b"\xff", protocol_type="connect", strategies=("sessioned",))
    torn = await classic_member(server, names["torn"], subscription(topic), b"\0\0\xff")
    await joined(server, names["consumer"], topic)
    found = await memberships.memberships(names.values())
    assert found[names["classic"]] == Membership(
        "Stable", {member: frozenset({TopicPartition(topic, 0), TopicPartition(topic, 2)})})
    modern = found[names["consumer"]]
    assert isinstance(modern, Membership)
    assert (modern.state, [sorted(owned) for owned in modern.assigned.values()]) == (
        "Stable", [[TopicPartition(topic, number) for number in range(3)]])
    assert found[names["nobody"]] == Membership("Dead", {})
    assert f"group {names['torn']}: member {torn} does not speak the consumer protocol" in str(found[names["torn"]])
    listed = set(await memberships.groups())
    assert {names["classic"], names["consumer"], names["torn"]} <= listed
    assert names["connect"] not in listed, "no group of consumers"


async def test_a_broker_that_does_not_answer_spoils_its_own_groups(
    newest_kafka: KRaftNode, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def coordinators(*_: object) -> Coordinators:
        silent = Address("127.0.0.1", 1)
        return Coordinators({silent: ["there"], newest_kafka.address: ["here"]}, {silent: 1, newest_kafka.address: 2})

    monkeypatch.setattr(wire_groups, "find_coordinators", coordinators)
    found = await WireGroups(Access(str(newest_kafka.address))).memberships(["here", "there", "forgotten"])
    assert found["here"] == Membership("Dead", {})
    assert found["there"] == "127.0.0.1:1: nobody listens there"
    assert found["forgotten"] == "the broker left it out of its answer"


async def test_no_bootstrap_server_at_all() -> None:
    with pytest.raises(Unreachable, match=r"no bootstrap server answers: 127\.0\.0\.1:1: nobody listens there"):
        await WireGroups(Access("127.0.0.1:1")).groups()
