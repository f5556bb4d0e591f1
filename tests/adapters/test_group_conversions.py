"""Request by request: what a coordinator converts under each policy, and in which state.

Static members, replaced both ways, are real ones in test_group_moves.py.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4 import HeartbeatRequest, HeartbeatResponse
from kio.schema.offset_commit.v8.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_commit.v8.response import OffsetCommitResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from adapters.clusters import KRaftNode, node
from adapters.eventually import eventually
from adapters.group_brokers import policy
from adapters.group_members import (
    ask,
    assignment,
    classic_member,
    classic_pair,
    create_topic,
    heartbeat,
    join,
    joined,
    joining_beside,
    leave,
    subscription,
    sync,
)
from switchover.groups.reading import DOWNGRADES, UPGRADES
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.client.offsets import WireOffsets
from switchover.kafka.group import Group, GroupState, GroupType, MemberProtocol
from switchover.lag.group import TopicPartition
from switchover.lag.window import Asked
from switchover.network.addresses import Address
from switchover.network.credentials import Access

TOPIC = "converted"
WANTED, GIVEN = subscription(TOPIC), assignment(TOPIC, 0, 1)
CLASSIC, CONSUMER = GroupType.CLASSIC, GroupType.CONSUMER
POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")


def seconds(number: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(seconds=number))


class Node(NamedTuple):
    server: Address
    version: str
    policy: str


class Case:
    """A group on a broker, which does not exist yet."""

    def __init__(self, server: Address) -> None:
        self.server = server
        self.name = uuid4().hex
        self._groups = WireGroups(Access(str(server)), seconds=30)

    @staticmethod
    async def on(server: Address) -> "Case":
        made = Case(server)
        if not await made._groups.partitions([TOPIC]):
            await create_topic(server, TOPIC, 2)
        await eventually(made.seen, lambda _: True)
        return made

    async def seen(self) -> Group:
        return await self._groups.describe(self.name)

    async def type(self) -> GroupType:
        return (await self.seen()).type

    async def newcomer(self) -> tuple[ErrorCode, str]:
        """A member of the consumer protocol tries to join: the answer, and its id."""
        answer = await heartbeat(self.server, self.name, TOPIC)
        return answer.error_code, answer.member_id or ""

    async def gone(self, member: str) -> None:
        """The member of the consumer protocol leaves."""
        assert (await heartbeat(self.server, self.name, TOPIC, member=member, epoch=-1)).error_code is ErrorCode.none

    async def classic(self) -> str:
        return await classic_member(self.server, self.name, WANTED, GIVEN)


OFTEN = {("4.4", "bidirectional"), ("4.4", "upgrade")}
"""Nodes of every run; the others are for the long list."""


@pytest.fixture(scope="module", params=[
    pytest.param((version, name), id=f"{version} {name}", marks=[] if (version, name) in OFTEN else [pytest.mark.long])
    for version in ("4.4", "4.0") for name in POLICIES
])
def of_policy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    version, name = request.param
    if (version, name) == ("4.4", "bidirectional"):             # as it comes (test_wire_groups.py)
        newest: KRaftNode = request.getfixturevalue("newest_kafka")
        yield Node(newest.address, version, name)
        return
    with node(tmp_path_factory.mktemp("of-policy"), version) as server:
        server.begin(policy(name))
        yield Node(server.address, version, name)


async def test_an_empty_group_goes_both_ways_under_any_policy(of_policy: Node) -> None:
    case = await Case.on(of_policy.server)
    await leave(case.server, case.name, await case.classic())
    assert ((await case.seen()).state, await case.type()) == (GroupState.EMPTY, CLASSIC)
    member = (await joined(case.server, case.name, TOPIC)).member_id or ""
    assert await case.type() is CONSUMER
    await case.gone(member)
    assert ((await case.seen()).state, await case.type()) == (GroupState.EMPTY, CONSUMER)
    await case.classic()
    assert await case.type() is CLASSIC


async def test_a_newcomer_beside_a_classic_member_is_let_in_as_our_constants_say(of_policy: Node) -> None:
    """And what the group becomes when it leaves again."""
    case, name = await Case.on(of_policy.server), of_policy.policy
    await case.classic()
    code, member = await case.newcomer()
    assert code is (ErrorCode.none if name in UPGRADES else ErrorCode.group_id_not_found)
    assert await case.type() is (CONSUMER if name in UPGRADES else CLASSIC)
    if name in UPGRADES:
        await case.gone(member)
        left = await case.seen()
        assert left.type is (CLASSIC if name in DOWNGRADES else CONSUMER)
        assert [each.protocol for each in left.members] == [MemberProtocol.CLASSIC]


async def test_a_classic_newcomer_beside_a_member_of_the_consumer_protocol(of_policy: Node) -> None:
    case, name = await Case.on(of_policy.server), of_policy.policy
    _, member = await case.newcomer()
    beside = await join(case.server, case.name, WANTED)
    refused = name == "disabled" and of_policy.version == "4.4"                     # not before 4.0.3: KAFKA-20640
    assert beside.error_code is (ErrorCode.inconsistent_group_protocol if refused else ErrorCode.none)
    assert await case.type() is CONSUMER
    await case.gone(member)
    assert await case.type() is (CLASSIC if name in DOWNGRADES else CONSUMER)
    if name in DOWNGRADES - UPGRADES:
        assert (await case.newcomer())[0] is ErrorCode.group_id_not_found, "there is no way forward again"


async def test_offsets_without_a_member_are_taken_along(of_policy: Node) -> None:
    """A group that only has offsets, committed by somebody who assigns partitions to himself."""
    case = await Case.on(of_policy.server)
    await ask(case.server, OffsetCommitRequest(group_id=GroupId(case.name), member_id="", topics=(OffsetCommitRequestTopic(
        name=TopicName(TOPIC), partitions=(OffsetCommitRequestPartition(
            partition_index=i32(1), committed_offset=i64(41), committed_metadata=None),)),)), OffsetCommitResponse)
    before = await case.seen()
    assert (before.type, before.state, before.protocol_type) == (CLASSIC, GroupState.EMPTY, "")
    await joined(case.server, case.name, TOPIC)
    assert await case.type() is CONSUMER
    sweep = await WireOffsets(Access(str(case.server))).sweep({case.name: Asked(frozenset({TOPIC}))})
    assert sweep.readings[case.name].offsets[TopicPartition(TOPIC, 1)].committed == 41


# --- the state in which a newcomer meets the group --------------------------------------------------------------------


@pytest.fixture(params=["newest_kafka", pytest.param("oldest_kafka_4", marks=pytest.mark.long)])
async def case(request: pytest.FixtureRequest) -> Case:
    server: KRaftNode = request.getfixturevalue(request.param)
    return await Case.on(server.address)


async def test_a_newcomer_meets_a_group_that_prepares_a_rebalance(case: Case) -> None:
    one = await case.classic()
    waiting = await joining_beside(case.server, case.name, WANTED)
    code, _ = await case.newcomer()
    assert code is ErrorCode.none
    assert (await waiting).error_code is ErrorCode.rebalance_in_progress, "it is sent to join again"
    seen = await case.seen()
    assert seen.type is CONSUMER
    assert (one in {each.member_id for each in seen.members}, len(seen.members)) == (True, 3)


async def test_a_newcomer_meets_a_group_whose_leader_still_assigns(case: Case) -> None:
    leader = await join(case.server, case.name, WANTED)
    assert (await case.seen()).state is GroupState.COMPLETING_REBALANCE
    code, _ = await case.newcomer()
    assert code is ErrorCode.none
    assert (await case.type(), len((await case.seen()).members)) == (CONSUMER, 2)
    with pytest.raises(AssertionError, match=str(ErrorCode.rebalance_in_progress)):
        await sync(case.server, case.name, leader, {leader.member_id: GIVEN})


@pytest.mark.parametrize("silent", ["no heartbeat", pytest.param("does not join again", marks=pytest.mark.long)])
async def test_a_classic_member_of_a_mixed_group_is_put_out(case: Case, silent: str) -> None:
    short, long = seconds(6), seconds(300)
    answer = await join(case.server, case.name, WANTED, session=short if silent == "no heartbeat" else long,
                        rebalance=long if silent == "no heartbeat" else short)
    await sync(case.server, case.name, answer, {answer.member_id: GIVEN})
    _, newcomer = await case.newcomer()
    if silent != "no heartbeat":
        told = await ask(case.server, HeartbeatRequest(
            group_id=GroupId(case.name), generation_id=answer.generation_id, member_id=answer.member_id), HeartbeatResponse)
        assert told.error_code is ErrorCode.rebalance_in_progress
    assert len((await case.seen()).members) == 2
    left = await eventually(case.seen, lambda seen: len(seen.members) == 1, 30)
    assert (left.type, left.members[0].member_id) == (CONSUMER, newcomer)


async def test_classic_members_of_a_mixed_group_leave_together(case: Case) -> None:
    pair = await classic_pair(case.server, case.name, WANTED, assignment(TOPIC, 0), assignment(TOPIC, 1))
    _, newcomer = await case.newcomer()
    assert len((await case.seen()).members) == 3
    await leave(case.server, case.name, *pair)
    left = await case.seen()
    assert (left.type, [each.member_id for each in left.members]) == (CONSUMER, [newcomer])
