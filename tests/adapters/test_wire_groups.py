"""Groups over the raw protocol, against real Kafka 4.4, 4.0 and 3.9."""

import asyncio
import functools
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from kio.schema.consumer_group_heartbeat.v0 import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_groups.v5.response import ListedGroup
from kio.schema.share_group_heartbeat.v1 import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32

from adapters.clusters import KafkaCluster, KRaftNode, kafka_cluster, node
from adapters.eventually import eventually
from adapters.group_members import (
    SESSION,
    ask,
    asking,
    assignment,
    classic_member,
    client,
    create_topic,
    heartbeat,
    joined,
    leave,
    subscription,
)
from adapters.servers import loopback
from patience import stretched
from switchover.answers.errors import Malformed, Unreachable
from switchover.kafka.client import coordinator as wire_coordinator
from switchover.kafka.client.connection import Connection, connected
from switchover.kafka.client.coordinator import Coordinator, answered
from switchover.kafka.client.group_answers import described_group
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import (
    LEFT,
    NO_EPOCH,
    BrokerGroups,
    Group,
    GroupState,
    GroupType,
    MemberProtocol,
    OffsetsTopic,
    Readiness,
)
from switchover.kafka.ports import Cluster
from switchover.lag.group import TopicPartition
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.network.security import Security, security

PARTITIONS = 6
USER_DATA = "00000003 010203"
BOTH = ("newest_kafka", pytest.param("oldest_kafka_4", marks=pytest.mark.long))


async def settled(groups: WireGroups, group: str, members: int, owns: int = 0) -> Group:
    """Once it is Stable, nothing is still to be handed over, and so many partitions have an owner.

    Cooperative clients are Stable twice: what one gives back in the first rebalance, another gets in the second.
    """
    return await eventually(
        lambda: groups.describe(group),
        lambda seen: seen.state is GroupState.STABLE and len(seen.members) == members
        and all(member.assigned == member.target for member in seen.members) and len(owned(seen)) >= owns, 60)


async def awake(groups: WireGroups, group: str) -> None:
    """Once its coordinator serves it: the first question makes Kafka create __consumer_offsets."""
    await eventually(lambda: groups.describe(group), lambda _: True)


def every_partition(topic: str) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in range(PARTITIONS)}


def owned(group: Group) -> list[TopicPartition]:
    return sorted(partition for member in group.members for partition in member.assigned)


@pytest.fixture(scope="module")
def switched_off(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    """Kafka 4.4 whose group.version was never raised, as after a mere upgrade of the software."""
    with node(tmp_path_factory.mktemp("switched-off"), "4.4") as server:
        server.begin(features={"group.version": 0})
        yield server


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    """Kafka 4.0 that converts no group online, and lets no session be short."""
    with node(tmp_path_factory.mktemp("strict"), "4.0") as server:
        server.begin("group.consumer.migration.policy=disabled\ngroup.min.session.timeout.ms=20000\n")
        yield server


@pytest.fixture(scope="module")
def preview(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    """Kafka 3.9 with the preview of the consumer protocol, which knows version 0 of its requests."""
    with node(tmp_path_factory.mktemp("preview"), "3.9") as server:
        server.begin("group.coordinator.rebalance.protocols=classic,consumer\noffsets.topic.compression.codec=1\n")
        yield server


# --- Brokers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("which", "release"), [
    ("newest_kafka", (4, 4)), pytest.param("oldest_kafka_4", (4, 0), marks=pytest.mark.long)])
async def test_a_broker_of_kafka_4(which: str, release: tuple[int, int], request: pytest.FixtureRequest) -> None:
    server: KRaftNode = request.getfixturevalue(which)
    told = await asking(server.address).broker(server.address, 1)
    assert told.release == release
    assert told.group_version == 1
    assert told.consumer_keys
    assert told.settings["group.consumer.migration.policy"] == "bidirectional"
    assert told.settings["group.consumer.max.session.timeout.ms"] == "60000"
    assert all(name.startswith("group.") for name in told.settings)


async def test_a_group_version_that_was_never_raised(switched_off: KRaftNode) -> None:
    groups = asking(switched_off.address)
    told = await groups.broker(switched_off.address, 1)
    assert (told.release, told.group_version) == ((4, 4), 0)
    assert told.consumer_keys, "which is why the keys alone prove nothing"
    await create_topic(switched_off.address, "off", PARTITIONS)
    await awake(groups, "off")
    assert await groups.readiness("off", ["off"]) == Readiness("UNSUPPORTED_VERSION")
    await classic_member(switched_off.address, "off", subscription("off"), assignment("off", 0, 1))
    seen = await groups.describe("off")
    assert (seen.type, seen.state, len(seen.members)) == (GroupType.CLASSIC, GroupState.STABLE, 1)
    assert (await heartbeat(switched_off.address, "off", "off")).error_code is ErrorCode.unsupported_version


async def test_a_broker_in_zookeeper_mode(zookeeper_cluster: KafkaCluster) -> None:
    broker = zookeeper_cluster.brokers[1].address
    groups = asking(broker)
    told = await groups.broker(broker, 1)
    assert told == BrokerGroups(0, 0, True, told.settings), "no features in ZooKeeper mode"
    assert "group.consumer.migration.policy" not in told.settings
    assert told.settings["group.min.session.timeout.ms"] == "6000"
    await awake(groups, "g")
    assert await groups.readiness("g", []) == Readiness("UNSUPPORTED_VERSION")


async def test_two_brokers_each_with_its_own(tmp_path: Path) -> None:
    with kafka_cluster(tmp_path, brokers=(1, 2)) as cluster:
        cluster.start_zookeeper_mode("offsets.topic.replication.factor=2\noffsets.topic.num.partitions=2\n")
        addresses = {number: broker.address for number, broker in cluster.brokers.items()}
        groups = WireGroups(Access(f"{loopback(9092)},{cluster.bootstrap}"))
        await eventually(groups.cluster, lambda found: found.brokers == addresses)
        names = {}
        for name in ("a", "b", "c", "d", "e"):      # each broker begins to coordinate when it has loaded its own partition
            seen = await eventually(functools.partial(groups.describe, name), lambda _: True)
            assert seen.state is GroupState.DEAD
            names[seen.coordinator] = name
        assert names.keys() == {1, 2}, "two partitions of __consumer_offsets, led by one broker each"
        for number, name in names.items():
            await classic_member(addresses[number], name, subscription("two"), assignment("two", *range(PARTITIONS)))
        async with connected(addresses[1], security({}), 5) as connection:
            wrong = await Coordinator.at(addresses[1], connection)
            with pytest.raises(Unreachable, match=f"{addresses[1]}: does not coordinate group {names[2]} any more"):
                described_group(addresses[1], names[2], (await wrong.descriptions([names[2]]))[names[2]], 1)
        assert await groups.coordinated() == {1: 1, 2: 1}
        assert [await groups.coordinators(names[number]) for number in (1, 2)] == [{1}, {2}]
        with cluster.brokers[1].frozen():
            impatient = WireGroups(Access(cluster.bootstrap), seconds=2)
            await impatient.cluster()
            started = time.monotonic()
            await impatient.cluster()
            assert time.monotonic() - started < stretched(2), "whoever answered last is asked first"
        whole = await groups.offsets_topic()
        assert whole == OffsetsTopic(max_message_bytes=1048588, compressed=False, replicas_short=0)
        cluster.brokers[2].stop()
        short = await eventually(groups.offsets_topic, lambda topic: topic.replicas_short == 2)
        assert short.max_message_bytes == 1048588
        moved = await eventually(lambda: groups.describe(names[2]), lambda group: group.coordinator == 1)
        assert moved.state is not GroupState.DEAD
        assert await groups.coordinators(names[2]) == {1}, "who cannot be reached answers for nobody"


async def test_topics_and_the_topic_of_offsets(preview: KRaftNode) -> None:
    groups = asking(preview.address)
    with pytest.raises(Unreachable, match="there is no __consumer_offsets yet"):
        await groups.offsets_topic()
    await awake(groups, "nobody")
    assert (await groups.offsets_topic()).compressed
    await create_topic(preview.address, "counted", PARTITIONS)
    assert await groups.partitions(["counted", "never-created"]) == {"counted": PARTITIONS}
    assert await groups.partitions([]) == {}


async def test_two_brokers_that_both_answer_for_a_group(
    newest_kafka: KRaftNode, preview: KRaftNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clusters here: what they tell of one group is what two coordinators of one cluster would."""
    groups = asking(newest_kafka.address)
    for server in (newest_kafka, preview):
        await awake(asking(server.address), "torn")
        await classic_member(server.address, "torn", subscription("torn"), assignment("torn", 0))

    async def both() -> Cluster:
        return Cluster("one", {1: newest_kafka.address, 2: preview.address, 3: loopback(9092)})

    monkeypatch.setattr(groups, "cluster", both)
    assert await groups.coordinators("torn") == {1, 2}


@pytest.mark.parametrize(("code", "words"), [
    (ErrorCode.coordinator_load_in_progress, "is loading group g: it has just become its coordinator"),
    (ErrorCode.coordinator_not_available, "finds no coordinator for group g"),
    (ErrorCode.not_coordinator, "does not coordinate group g any more"),
    (ErrorCode.unknown_server_error, "cannot describe group g now: UNKNOWN_SERVER_ERROR"),
])
def test_a_coordinator_that_does_not_answer_now(code: ErrorCode, words: str) -> None:
    with pytest.raises(Unreachable, match=f"^127.0.0.1:9092: {words}"):
        answered(Address("127.0.0.1", 9092), code, "g", "describe group g")


async def test_nobody_answers() -> None:
    nobody, either = loopback(9092), loopback(9092)
    with pytest.raises(Unreachable, match=f"{nobody}: nobody listens there; {either}: nobody listens there"):
        await WireGroups(Access(f"{nobody}, {either}")).describe("g")


# --- Groups that are not there, and groups of other kinds -------------------------------------------------------------


@pytest.mark.parametrize("which", BOTH)
async def test_a_group_that_does_not_exist(which: str, request: pytest.FixtureRequest) -> None:
    server: KRaftNode = request.getfixturevalue(which)
    seen = await eventually(lambda: asking(server.address).describe("missing"), lambda _: True)
    assert seen == Group("missing", 1, GroupType.CLASSIC, GroupState.DEAD, "", NO_EPOCH, NO_EPOCH, "", ())


async def test_a_share_group(newest_kafka: KRaftNode) -> None:
    await create_topic(newest_kafka.address, "shared", PARTITIONS)
    await eventually(lambda: ask(newest_kafka.address, ShareGroupHeartbeatRequest(
        group_id=GroupId("shares"), member_id=str(uuid4()), member_epoch=i32(0), rack_id=None,
        subscribed_topic_names=(TopicName("shared"),)), ShareGroupHeartbeatResponse),
        lambda answer: answer.error_code is ErrorCode.none)
    groups = asking(newest_kafka.address)
    seen = await groups.describe("shares")
    assert (seen.type, seen.state, seen.members) == (GroupType.OTHER, GroupState.STABLE, ())
    assert await groups.coordinated(), "no group of another type is counted, and none is in the way"


async def test_connect_workers(newest_kafka: KRaftNode) -> None:
    """Their bytes are not the consumer protocol's, and no request of that type joins them."""
    server, groups = newest_kafka.address, asking(newest_kafka.address)
    await create_topic(server, "connected", PARTITIONS)
    await awake(groups, "workers")
    await classic_member(server, "workers", b"\xff", b"\xff", protocol_type="connect", strategies=("sessioned",))
    seen = await groups.describe("workers")
    assert (seen.type, seen.protocol_type, seen.assignor) == (GroupType.CLASSIC, "connect", "sessioned")
    assert [(member.topics, member.user_data, member.metadata) for member in seen.members] == [(frozenset(), 0, 1)]
    assert not await groups.all_support("workers", "sessioned")
    refusal = await heartbeat(server, "workers", "connected")
    assert refusal.error_code is ErrorCode.group_id_not_found
    assert "does not use the consumer embedded protocol" in (refusal.error_message or "")


# --- Classic groups ---------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("which", ["newest_kafka", "zookeeper_cluster"])
async def test_real_cooperative_clients(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """From the second generation on librdkafka leaves user data in assignments, which forbids the online upgrade."""
    fixture: KRaftNode | KafkaCluster = request.getfixturevalue(which)
    server = fixture.address if isinstance(fixture, KRaftNode) else fixture.brokers[1].address
    groups, topic = asking(server), "cooperative"
    await create_topic(server, topic, PARTITIONS)
    with client(server, topic, "coop", "one", tmp_path, ASSIGNOR="cooperative-sticky"):
        first = await settled(groups, "coop", 1)
        assert (first.members[0].user_data, first.epoch) == (0, NO_EPOCH)
        with client(server, topic, "coop", "two", tmp_path, ASSIGNOR="cooperative-sticky"):
            seen = await settled(groups, "coop", 2, PARTITIONS)
            assert (seen.type, seen.protocol_type, seen.assignor) == (GroupType.CLASSIC, "consumer", "cooperative-sticky")
            assert sorted(owned(seen)) == sorted(every_partition(topic))
            assert {member.client_id for member in seen.members} == {"one", "two"}
            assert {member.protocol for member in seen.members} == {MemberProtocol.CLASSIC}
            assert all(member.topics == {topic} and member.host == "127.0.0.1" for member in seen.members)
            # The newcomer has none where the first was so quick that it never got the second generation's assignment.
            assert next(member.user_data for member in seen.members if member.client_id == "one") > 0
            assert all(member.assignment > member.user_data and member.metadata > 0 for member in seen.members)
            assert seen.epoch >= 2
            assert seen.epoch == seen.assignment_epoch == seen.members[0].epoch
            assert await groups.all_support("coop", "cooperative-sticky")
            assert not await groups.all_support("coop", "range")
            if which == "newest_kafka":
                refusal = await heartbeat(server, "coop", topic)
                assert "an unsupported custom assignor is in use" in (refusal.error_message or "")
        alone = await settled(groups, "coop", 1)
        assert alone.epoch > seen.epoch, "every rebalance shows"


@pytest.mark.parametrize("which", BOTH)
async def test_what_facts_forbid_the_broker_refuses(which: str, request: pytest.FixtureRequest) -> None:
    """User data in an assignment, and bytes that are no consumer protocol."""
    server: Address = request.getfixturevalue(which).address
    groups = asking(server)
    await create_topic(server, "refused", PARTITIONS)
    await awake(groups, "streams")
    await classic_member(server, "streams", subscription("refused", 4), assignment("refused", 2, user_data=USER_DATA))
    seen = await groups.describe("streams")
    assert [(member.assigned, member.user_data) for member in seen.members] == [({TopicPartition("refused", 2)}, 3)]
    assert seen.epoch == seen.members[0].epoch == 5
    refusal = await heartbeat(server, "streams", "refused")
    assert refusal.error_code is ErrorCode.group_id_not_found
    assert "an unsupported custom assignor is in use" in (refusal.error_message or "")

    member = await classic_member(server, "malformed", b"\0\0\xff", assignment("refused", 1))
    with pytest.raises(Malformed, match=f"group malformed: member {member} at 127.0.0.1 does not speak"):
        await groups.describe("malformed")
    refusal = await heartbeat(server, "malformed", "refused")
    assert "the embedded consumer protocol is malformed" in (refusal.error_message or "")


async def test_a_policy_that_forbids(strict: KRaftNode) -> None:
    server, groups = strict.address, asking(strict.address)
    assert (await groups.broker(server, 1)).settings["group.consumer.migration.policy"] == "disabled"
    await create_topic(server, "strict", PARTITIONS)
    await awake(groups, "held")
    await classic_member(server, "held", subscription("strict"), assignment("strict", 0), instance="pod-0")
    assert await groups.readiness("held", ["strict"]) == Readiness("", ("uniform", "range")), "not the policy's business"
    refusal = await heartbeat(server, "held", "strict")
    assert "online upgrade is disabled" in (refusal.error_message or "")
    seen = await groups.describe("held")
    assert (seen.type, seen.members[0].instance_id) == (GroupType.CLASSIC, "pod-0")
    assert await groups.all_support("held", "range")


# --- Conversion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", BOTH)
async def test_real_clients_of_both_protocols_in_one_group(
    which: str, request: pytest.FixtureRequest, tmp_path: Path,
) -> None:
    server: Address = request.getfixturevalue(which).address
    groups, topic = asking(server), "mixed"
    await create_topic(server, topic, PARTITIONS)
    with client(server, topic, "mixed", "old", tmp_path, ASSIGNOR="range"):
        before = await settled(groups, "mixed", 1)
        assert (before.type, before.assignor, before.epoch) == (GroupType.CLASSIC, "range", NO_EPOCH)
        with client(server, topic, "mixed", "new", tmp_path, GROUP_PROTOCOL="consumer"):
            seen = await settled(groups, "mixed", 2)
            assert (seen.type, seen.protocol_type, seen.assignor) == (GroupType.CONSUMER, "consumer", "uniform")
            kinds = {member.client_id: member.protocol for member in seen.members}
            assert kinds == {"old": MemberProtocol.CLASSIC, "new": MemberProtocol.CONSUMER}
            assert owned(seen) == sorted(every_partition(topic))
            assert all(member.topics == {topic} and member.host == "127.0.0.1" for member in seen.members)
            assert {member.epoch for member in seen.members} == {seen.epoch, seen.assignment_epoch}
            assert await groups.all_support("mixed", "range")
            assert not await groups.all_support("mixed", "roundrobin")
            assert (await groups.describe("mixed")) == seen, "asking has changed nothing"
        back = await settled(groups, "mixed", 1)
        assert back.type is GroupType.CLASSIC


async def test_the_preview_of_3_9(preview: KRaftNode) -> None:
    server, groups = preview.address, asking(preview.address)
    assert (await groups.broker(server, 1)).release == (3, 9)
    await create_topic(server, "preview", PARTITIONS)
    await awake(groups, "early")
    assert await groups.readiness("early", ["preview"]) == Readiness("", ("uniform", "range"))
    assert (await groups.describe("early")).state is GroupState.DEAD
    await ask(server, ConsumerGroupHeartbeatRequest(
        group_id=GroupId("early"), member_id="", member_epoch=i32(0), rebalance_timeout=SESSION,
        subscribed_topic_names=(TopicName("preview"),), topic_partitions=()), ConsumerGroupHeartbeatResponse)
    seen = await groups.describe("early")
    assert seen.type is GroupType.CONSUMER
    assert [(member.protocol, member.topics) for member in seen.members] == [(MemberProtocol.CONSUMER, {"preview"})]


@pytest.mark.parametrize("which", BOTH)
async def test_partitions_that_are_being_handed_over(which: str, request: pytest.FixtureRequest) -> None:
    server: Address = request.getfixturevalue(which).address
    groups = asking(server)
    await create_topic(server, "handed-over", PARTITIONS)
    await awake(groups, "handing")
    holder = await joined(server, "handing", "handed-over")
    newcomer = await heartbeat(server, "handing", "", regex="handed-.*")
    behind = await eventually(lambda: groups.describe("handing"), lambda group: group.state is GroupState.ASSIGNING, 30)
    assert behind.assignment_epoch < behind.epoch, "patterns are resolved in the background, assignments at a heartbeat"

    async def after_a_heartbeat() -> Group:
        await heartbeat(server, "handing", "", regex="handed-.*", member=newcomer.member_id or "",
                        epoch=newcomer.member_epoch)
        return await groups.describe("handing")

    seen = await eventually(
        after_a_heartbeat, lambda group: {len(member.target) for member in group.members} == {PARTITIONS // 2}, 30)
    assert seen.state is GroupState.RECONCILING
    members = {member.member_id == holder.member_id: member for member in seen.members}
    assert (len(members[True].assigned), len(members[False].assigned)) == (PARTITIONS, 0)
    assert members[True].epoch < seen.epoch
    assert [(members[known].topics, members[known].regex) for known in (True, False)] == [
        ({"handed-over"}, ""), (frozenset(), "handed-.*")]


async def test_a_static_member_between_two_pods(newest_kafka: KRaftNode) -> None:
    server, groups = newest_kafka.address, asking(newest_kafka.address)
    await create_topic(server, "static", PARTITIONS)
    await awake(groups, "statics")
    member = await joined(server, "statics", "static", instance="pod-0")
    here = await groups.describe("statics")
    assert [(each.instance_id, each.epoch) for each in here.members] == [("pod-0", member.member_epoch)]
    assert owned(here) == sorted(every_partition("static"))
    assert (await heartbeat(server, "statics", "static", instance="pod-0")).error_code is ErrorCode.unreleased_instance_id

    await heartbeat(server, "statics", "static", member=member.member_id or "", epoch=LEFT, instance="pod-0")
    gone = await groups.describe("statics")
    assert [(each.instance_id, each.epoch) for each in gone.members] == [("pod-0", LEFT)]
    assert owned(gone) == sorted(every_partition("static")), "kept for its successor"
    assert gone.state is GroupState.RECONCILING
    assert gone.epoch == here.epoch


# --- Probes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", BOTH)
async def test_readiness_creates_nothing(which: str, request: pytest.FixtureRequest) -> None:
    server: Address = request.getfixturevalue(which).address
    groups = asking(server)
    await awake(groups, "untouched")
    assert await groups.readiness("untouched", ["no-such-topic"]) == Readiness("", ("uniform", "range"))
    assert (await groups.describe("untouched")).state is GroupState.DEAD


@pytest.mark.parametrize("which", BOTH)
async def test_many_ask_for_readiness_together(
    which: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One connection to find all coordinators, one to each of them."""
    server: Address = request.getfixturevalue(which).address
    groups, names, opened = asking(server), [f"many-{number}" for number in range(20)], []
    for name in names:
        await awake(groups, name)
    really_open = Connection.open

    async def noting(node: Address, security: Security) -> Connection:
        opened.append(node)
        return await really_open(node, security)

    monkeypatch.setattr(Connection, "open", noting)
    found = await asyncio.gather(*(groups.readiness(name, ["t"]) for name in names))
    assert found == [Readiness("", ("uniform", "range"))] * len(names)
    assert len(opened) == 2


@pytest.mark.parametrize("which", BOTH)
async def test_asking_what_members_support_disturbs_nobody(
    which: str, request: pytest.FixtureRequest, zookeeper_cluster: KafkaCluster,
) -> None:
    kafka_4: KRaftNode = request.getfixturevalue(which)
    servers = (kafka_4.address, zookeeper_cluster.brokers[1].address)
    before, group = {}, f"asked-{which}"
    for server in servers:
        groups = asking(server)
        await awake(groups, group)
        await classic_member(server, group, subscription("t", 7), assignment("t", 0),
                             strategies=("cooperative-sticky", "range"))
        before[server] = await groups.describe(group)
        assert before[server].assignor == "cooperative-sticky"
        assert [await groups.all_support(group, strategy) for strategy in ("range", "cooperative-sticky", "sticky")] == [
            True, True, False]
    deadline = time.monotonic() + 7                     # longer than the session of the pending members
    while time.monotonic() < deadline:
        for server in servers:
            assert await asking(server).describe(group) == before[server]
        await asyncio.sleep(0.5)


async def test_an_empty_group_is_not_asked(newest_kafka: KRaftNode) -> None:
    """Of type Consumer it would become classic; a group that is not there would be created."""
    server, groups = newest_kafka.address, asking(newest_kafka.address)
    await create_topic(server, "emptied", PARTITIONS)
    await awake(groups, "emptied")
    member = await joined(server, "emptied", "emptied")
    await heartbeat(server, "emptied", "emptied", member=member.member_id or "", epoch=-1)
    empty = await groups.describe("emptied")
    assert (empty.type, empty.state, empty.members) == (GroupType.CONSUMER, GroupState.EMPTY, ())
    with pytest.raises(Unreachable, match="group emptied is Empty with 0 members"):
        await groups.all_support("emptied", "range")
    assert (await groups.describe("emptied")).type is GroupType.CONSUMER
    with pytest.raises(Unreachable, match="group not-there is Dead with 0 members"):
        await groups.all_support("not-there", "range")
    assert (await groups.describe("not-there")).state is GroupState.DEAD


async def test_a_classic_group_without_members(newest_kafka: KRaftNode) -> None:
    server, groups = newest_kafka.address, asking(newest_kafka.address)
    await awake(groups, "left")
    await leave(server, "left", await classic_member(server, "left", subscription("t"), assignment("t", 0)))
    seen = await groups.describe("left")
    assert (seen.type, seen.state, seen.protocol_type, seen.members) == (
        GroupType.CLASSIC, GroupState.EMPTY, "consumer", ())


async def test_members_of_all_groups_are_counted(strict: KRaftNode, monkeypatch: pytest.MonkeyPatch) -> None:
    server, groups = strict.address, asking(strict.address)
    monkeypatch.setattr(wire_coordinator, "BATCH", 2)
    await create_topic(server, "counted", PARTITIONS)
    await awake(groups, "classic-1")
    before = (await groups.coordinated())[1]
    for name in ("classic-1", "classic-2", "classic-3"):
        await classic_member(server, name, subscription("counted"), assignment("counted", 0))
    await joined(server, "modern", "counted")
    await heartbeat(server, "modern", "counted")
    await classic_member(server, "malformed", b"\xff", b"\xff")
    assert await groups.coordinated() == {1: before + 6}

    listed = Coordinator.listed

    async def with_one_that_is_gone(coordinator: Coordinator) -> dict[str, ListedGroup]:
        known = await listed(coordinator)
        return known | {"gone": known["classic-1"]}

    monkeypatch.setattr(Coordinator, "listed", with_one_that_is_gone)
    with pytest.raises(Unreachable, match="group gone comes, goes or changes its type right now"):
        await groups.coordinated()
    with pytest.raises(Unreachable, match="group gone comes, goes or changes its type right now"):
        await groups.describe("gone")
