"""Each way in which a coordinator refuses a member of the consumer protocol, made to happen on a real broker.

The table of docs/facts/groups.md#refusals: how it is made, what the broker answers the newcomer, and what Preflight
tells of the facts that our adapters read from that very broker before the newcomer came: a reason for each row that no
other row has.

Not in it:
* a client's own user that lacks a right (30, 29): nothing tells us whose user a member has. The same rights are asked for
  our own user; the pod of such a client is NotAMember after a minute.
* a bad pattern in a client's code or file: only variables and arguments of its pods are seen. It ends as NotAMember too.
* classic members that a group of the consumer protocol refuses (23): test_group_conversions.py.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import pytest
from kio.schema.consumer_group_heartbeat import v0
from kio.schema.consumer_group_heartbeat.v1 import ConsumerGroupHeartbeatResponse
from kio.schema.errors import ErrorCode
from kio.schema.share_group_heartbeat.v1 import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kio.schema.streams_group_heartbeat.v0.request import StreamsGroupHeartbeatRequest, Subtopology, Topology
from kio.schema.streams_group_heartbeat.v0.response import StreamsGroupHeartbeatResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32

from adapters import guarded
from adapters.clusters import KRaftNode
from adapters.eventually import eventually
from adapters.group_brokers import Broker, Serve, policy
from adapters.group_members import (
    SESSION,
    ask,
    asking,
    assignment,
    classic_member,
    classic_pair,
    create_topic,
    heartbeat,
    joined,
    subscription,
)
from adapters.group_sight import sight, told
from switchover.groups.picture import Picture
from switchover.network.addresses import Address
from unit.group_pictures import template, tried, with_fact, with_source

TOPIC = "orders"
LARGE = 540_000
"""Bytes of user data in a subscription: once in the record of a rebalance, for each of two strategies in a conversion's."""

Make = Callable[[Address, str], Awaitable[object]]
Answer = ConsumerGroupHeartbeatResponse | v0.ConsumerGroupHeartbeatResponse
Meet = Callable[[Address, str], Awaitable[Answer]]
Spoil = Callable[[Picture], Picture]


@dataclass(frozen=True)
class Row:
    cause: str
    make: Make
    error: ErrorCode
    words: str
    reasons: frozenset[str]
    meet: Meet = lambda server, group: heartbeat(server, group, TOPIC)
    spoil: Spoil = lambda picture: picture
    assignor: str = "uniform"
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.cause} {self.variant}".strip()


# --- groups -----------------------------------------------------------------------------------------------------------


async def plain(server: Address, group: str) -> None:
    await classic_member(server, group, subscription(TOPIC), assignment(TOPIC, 0, 1))


async def pair(server: Address, group: str) -> None:
    await classic_pair(server, group, subscription(TOPIC), assignment(TOPIC, 0), assignment(TOPIC, 1))


async def of_connect(server: Address, group: str) -> None:
    await classic_member(server, group, b"\xff", b"\xff", protocol_type="connect", strategies=("sessioned",))


async def malformed(server: Address, group: str) -> None:
    await classic_member(server, group, b"\0\0\xff", assignment(TOPIC, 0, 1))


def with_user_data(strategy: str) -> Make:
    async def make(server: Address, group: str) -> None:
        given = assignment(TOPIC, 0, 1, user_data="00000003 010203")
        await classic_member(server, group, subscription(TOPIC), given, strategies=(strategy,))

    return make


def large(size: int) -> Make:
    async def make(server: Address, group: str) -> None:
        wanted = bytes.fromhex(f"0000 00000001 {len(TOPIC):04x}") + TOPIC.encode() + size.to_bytes(4) + bytes(size)
        await classic_member(server, group, wanted, assignment(TOPIC, 0, 1), strategies=("range", "roundrobin"))

    return make


async def static(server: Address, group: str) -> None:
    await classic_member(server, group, subscription(TOPIC), assignment(TOPIC, 0, 1), instance="orders-a")


async def of_streams(server: Address, group: str) -> None:
    """A group of Kafka Streams' own protocol: one member that reads the topic and has no state."""
    reads = Subtopology(subtopology_id="0", source_topics=(TopicName(TOPIC),), state_changelog_topics=(),
                        repartition_source_topics=(), copartition_groups=())
    await eventually(lambda: ask(server, StreamsGroupHeartbeatRequest(
        group_id=GroupId(group), member_id=str(uuid4()), member_epoch=i32(0), endpoint_information_epoch=i32(0),
        rebalance_timeout=SESSION, topology=Topology(epoch=i32(0), subtopologies=(reads,)), active_tasks=(),
        standby_tasks=(), warmup_tasks=(), process_id="streams", client_tags=(), task_offsets=None, task_end_offsets=None,
    ), StreamsGroupHeartbeatResponse), lambda answer: answer.error_code is ErrorCode.none, 30)


async def of_shares(server: Address, group: str) -> None:
    await eventually(lambda: ask(server, ShareGroupHeartbeatRequest(
        group_id=GroupId(group), member_id=str(uuid4()), member_epoch=i32(0), rack_id=None,
        subscribed_topic_names=(TopicName(TOPIC),)), ShareGroupHeartbeatResponse),
        lambda answer: answer.error_code is ErrorCode.none)


# --- newcomers --------------------------------------------------------------------------------------------------------


async def by_version_0(server: Address, group: str) -> v0.ConsumerGroupHeartbeatResponse:
    """3.9 closes the connection on version 1."""
    return await ask(server, v0.ConsumerGroupHeartbeatRequest(
        group_id=GroupId(group), member_id="", member_epoch=i32(0), rebalance_timeout=SESSION,
        subscribed_topic_names=(TopicName(TOPIC),), topic_partitions=()), v0.ConsumerGroupHeartbeatResponse)


async def second_of_one_place(server: Address, group: str) -> ConsumerGroupHeartbeatResponse:
    """The first takes the place of the classic member, the second stands beside it, as a new pod beside its predecessor."""
    await joined(server, group, TOPIC, instance="orders-a")
    return await heartbeat(server, group, TOPIC, instance="orders-a")


def subscribing(pattern: str) -> Meet:
    return lambda server, group: heartbeat(server, group, "", regex=pattern)


def of_pattern(pattern: str) -> Spoil:
    """The pods have it in a variable."""
    container = {"name": "app", "image": "orders:1", "env": [{"name": "TOPICS", "value": pattern}]}
    return with_source(template={**template(), "spec": {"containers": [container]}})


REFUSED = ErrorCode.group_id_not_found


def row(cause: str, make: Make, error: ErrorCode, words: str, *reasons: str, **more: object) -> Row:
    return Row(cause, make, error, words, frozenset(reasons), **more)


ANYWHERE = (
    row("nothing forbids it", plain, ErrorCode.none, ""),
    row("a large group that still fits", large(LARGE - 40_000), ErrorCode.none, "", "RecordLarge"),
    row("Connect's workers", of_connect, REFUSED, "does not use the consumer embedded protocol", "NotConsumers"),
    row("bytes of no protocol", malformed, REFUSED, "the embedded consumer protocol is malformed", "MalformedMember"),
    row("user data in an assignment", with_user_data("range"), REFUSED, "an unsupported custom assignor is in use",
        "AssignmentUserData"),
    row("Kafka Streams", with_user_data("stream"), REFUSED, "an unsupported custom assignor is in use",
        "AssignmentUserData", "KafkaStreams"),
    row("a conversion too large for one batch", large(LARGE), ErrorCode.unknown_server_error, "", "RecordTooLarge"),
    row("no such assignor", plain, ErrorCode.unsupported_assignor, "Supported assignors: uniform, range", "AssignorUnknown",
        meet=lambda server, group: heartbeat(server, group, TOPIC, assignor="sticky"), assignor="sticky"),
    row("an instance id that another has", static, ErrorCode.unreleased_instance_id, "", "StaticMembersInDeployment",
        meet=second_of_one_place),
    *(row("a pattern that brokers do not know", plain, ErrorCode.invalid_regular_expression, "", "PatternUnsupported",
          meet=subscribing(pattern), spoil=of_pattern(pattern), variant=pattern)
      for pattern in ("^(?!internal).*", "^(?<=a)b.*", r"^(a)\1.*", "^a*+.*", "^(?>a).*")),
    row("a pattern that brokers know", plain, ErrorCode.none, "", meet=subscribing("^ord(ers|inary)+.*"),
        spoil=of_pattern("^ord(ers|inary)+.*")),
)
OTHER = tuple(row("a group of another type", make, REFUSED, "is not a consumer group", "GroupTypeUnsupported",
                  "MemberMissing", variant=what) for what, make in (("share", of_shares), ("streams", of_streams)))
POLICY = row("the policy", plain, REFUSED, "online upgrade is disabled", "PolicyForbids")
SMALL = (
    row("more members than fit", pair, REFUSED, "exceeds the consumer group maximum size", "GroupTooLarge"),
    row("no room for one more", plain, ErrorCode.group_max_size_reached, "", "NoRoomForBatch"),
)
OFF = row("the feature is not finalized", plain, ErrorCode.unsupported_version, "", "FeatureNotFinalized", "ProtocolRefused")
NOT_LISTED = row("the protocol is not listed", plain, ErrorCode.unsupported_version, "", "ProtocolRefused")
PREVIEW = row("the preview of 3.9", plain, REFUSED, "is not a consumer group", "WrongKafkaVersion",
              meet=by_version_0)

ROWS: tuple[tuple[Broker, Row], ...] = (
    *((Broker("4.4"), each) for each in (*ANYWHERE, *OTHER)),
    *((Broker("4.0"), each) for each in ANYWHERE),
    *((Broker(version, policy(name)), POLICY) for version in ("4.4", "4.0") for name in ("disabled", "downgrade")),
    *((Broker(version, "group.consumer.max.size=1\n"), each) for version in ("4.4", "4.0") for each in SMALL),
    *((Broker(version, feature=0), OFF) for version in ("4.4", "4.0")),
    *((Broker(version, "group.coordinator.rebalance.protocols=classic\n"), NOT_LISTED) for version in ("4.4", "4.0")),
    (Broker("3.9", "group.coordinator.rebalance.protocols=classic,consumer\n"), PREVIEW),
)
OFTEN = {Broker("4.4"), Broker("4.4", "group.consumer.max.size=1\n")}
"""Brokers that every run asks; the others are for the long list. What they refuse and tell is asked of such brokers in
test_wire_groups.py (a protocol that is not listed answers as one that is off), and unit/test_group_findings.py says what
Preflight makes of it."""


@pytest.fixture
def server(request: pytest.FixtureRequest, serving: Serve) -> Address:
    if request.param == Broker("4.4"):                          # as it comes
        newest: KRaftNode = request.getfixturevalue("newest_kafka")
        return newest.address
    return serving(request.param)


async def ready(server: Address, group: str, properties: dict[str, str] | None = None) -> None:
    """The topic is there, and so is the coordinator: the first question makes Kafka create __consumer_offsets."""
    groups = asking(server, properties)
    if not await eventually(lambda: groups.partitions([TOPIC]), lambda _: True):
        await create_topic(server, TOPIC, 2, properties)
    await eventually(lambda: groups.describe(group), lambda _: True)


@pytest.mark.parametrize(("server", "row"), [
    pytest.param(broker, each, id=f"{broker}: {each}", marks=[] if broker in OFTEN else [pytest.mark.long])
    for broker, each in ROWS
], indirect=["server"])
async def test_what_the_broker_refuses_preflight_tells_by_its_own_reason(server: Address, row: Row) -> None:
    group = uuid4().hex
    await ready(server, group)
    await row.make(server, group)
    picture = row.spoil(await sight(server, group, protocol={"to": "Consumer", "remoteAssignor": row.assignor}))
    assert told(with_fact(picture, "trials", tried(picture))) == row.reasons
    answer = await row.meet(server, group)
    assert answer.error_code is row.error, answer.error_message
    assert row.words in (answer.error_message or "")


@pytest.mark.parametrize("server", [pytest.param(Broker("4.4", users=True), id="4.4 with an authorizer")], indirect=True)
async def test_a_missing_right_is_told_by_its_own_reason(server: Address) -> None:
    """Our user has the rights that reading needs, and those of a member one after the other."""
    admin, ours, group = guarded.user("admin"), guarded.user("switchover"), "guarded"
    await ready(server, group, admin)
    await classic_member(server, group, subscription(TOPIC), assignment(TOPIC, 0, 1), properties=admin)
    for kind, name, operation in (
        (guarded.CLUSTER, "kafka-cluster", guarded.DESCRIBE), (guarded.CLUSTER, "kafka-cluster", guarded.DESCRIBE_CONFIGS),
        (guarded.TOPIC, "__consumer_offsets", guarded.DESCRIBE), (guarded.GROUP, group, guarded.DESCRIBE),
        (guarded.TOPIC, "__consumer_offsets", guarded.DESCRIBE_CONFIGS),
    ):
        await guarded.allow(server, kind, name, operation)
    for right, code in (
        ((guarded.GROUP, group, guarded.READ), ErrorCode.group_authorization_failed),
        ((guarded.TOPIC, TOPIC, guarded.DESCRIBE), ErrorCode.topic_authorization_failed),
    ):
        # A right takes effect a moment after it was granted.
        await eventually(partial(met, server, group, ours), lambda answer, code=code: answer is code, 30)
        assert told(await sight(server, group, properties=ours)) == {"GroupRightMissing"}
        await guarded.allow(server, *right)
    await eventually(lambda: sight(server, group, properties=ours), lambda seen: told(seen) == set(), 30)
    assert await met(server, group, ours) is ErrorCode.none


async def met(server: Address, group: str, properties: dict[str, str]) -> ErrorCode:
    return (await heartbeat(server, group, TOPIC, properties=properties)).error_code


def test_every_cause_has_a_reason_that_no_other_has() -> None:
    """What is told beside it of the same group is another cause's: user data, of a Kafka Streams application."""
    reasons = {row.cause: row.reasons for _, row in ROWS if row.error is not ErrorCode.none}
    reasons["a missing right"] = frozenset({"GroupRightMissing"})
    assert all(reasons.values())
    assert len(set(reasons.values())) == len(reasons) == 16
