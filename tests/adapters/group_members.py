"""Members of consumer groups that tests make: real clients as processes, and members request by request."""

import asyncio
import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from kio.schema.consumer_group_heartbeat.v1 import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kio.schema.consumer_group_heartbeat.v1.request import TopicPartitions
from kio.schema.create_topics.v7 import CreateTopicsRequest, CreateTopicsResponse
from kio.schema.create_topics.v7.request import CreatableTopic
from kio.schema.errors import ErrorCode
from kio.schema.join_group.v6.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v6.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i16, i32, i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

from adapters.clusters import patient_wire
from adapters.eventually import eventually
from patience import stretched
from switchover.kafka.client.connection import connected
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import GroupState
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.network.security import security

SESSION = i32Timedelta.parse(timedelta(minutes=5))      # longer than any test: nobody sends heartbeats
NO_USER_DATA = "ffffffff"

Answer = TypeVar("Answer", bound=ResponsePayload)


async def ask(node: Address, request: RequestPayload, response: type[Answer],
              properties: Mapping[str, str] | None = None) -> Answer:
    async with connected(node, security(properties or {}), stretched(30)) as connection:
        return await connection.ask(request, response)


def asking(node: Address, properties: Mapping[str, str] | None = None) -> WireGroups:
    """Of groups, by the operator's own client; how long an answer may take goes by the machine."""
    return WireGroups(Access(str(node), properties or {}), seconds=stretched(5))


async def create_topic(node: Address, name: str, partitions: int, properties: Mapping[str, str] | None = None) -> None:
    """A node that has just started has no broker to put replicas on for a moment; what a controller has made a broker knows
    a moment later."""
    await eventually(lambda: ask(node, CreateTopicsRequest(
        topics=(CreatableTopic(name=TopicName(name), num_partitions=i32(partitions), replication_factor=i16(1),
                               assignments=(), configs=()),),
        timeout=i32Timedelta.parse(timedelta(seconds=30)),
    ), CreateTopicsResponse, properties), lambda answer: answer.topics[0].error_code is ErrorCode.none, 30)
    await eventually(lambda: patient_wire(properties or {}).metadata(node),
                     lambda view: partitions == sum(each.topic == name for each in view.partitions), 30)


# --- Members of the consumer protocol, request by request -------------------------------------------------------------


async def heartbeat(
    node: Address, group: str, topic: str, *, member: str = "", epoch: int = 0, instance: str | None = None,
    regex: str | None = None, assignor: str | None = None, owned: tuple[TopicPartitions, ...] = (),
    properties: Mapping[str, str] | None = None,
) -> ConsumerGroupHeartbeatResponse:
    """ConsumerGroupHeartbeat v1: epoch 0 joins, -1 leaves, -2 leaves for a successor."""
    return await ask(node, ConsumerGroupHeartbeatRequest(
        group_id=GroupId(group), member_id=member or str(uuid.uuid4()), member_epoch=i32(epoch), instance_id=instance,
        rebalance_timeout=SESSION, subscribed_topic_names=(TopicName(topic),) if topic else (),
        subscribed_topic_regex=regex, server_assignor=assignor, topic_partitions=owned,
    ), ConsumerGroupHeartbeatResponse, properties)


async def joined(
    node: Address, group: str, topic: str, *, instance: str | None = None, properties: Mapping[str, str] | None = None,
) -> ConsumerGroupHeartbeatResponse:
    """A new member once it owns what it is given."""
    first = await heartbeat(node, group, topic, instance=instance, properties=properties)
    assert first.error_code is ErrorCode.none, first.error_message
    assert first.member_id is not None
    member = first.member_id
    last = await eventually(
        lambda: heartbeat(node, group, topic, member=member, epoch=first.member_epoch, instance=instance,
                          properties=properties),
        lambda answer: answer.assignment is not None and bool(answer.assignment.topic_partitions), 30)
    assert last.assignment is not None
    owned = tuple(TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                  for each in last.assignment.topic_partitions)
    return await heartbeat(node, group, topic, member=member, epoch=last.member_epoch, instance=instance, owned=owned,
                           properties=properties)


# --- Classic members, request by request ------------------------------------------------------------------------------


def subscription(topic: str, generation: int = -1) -> bytes:
    """Version 3, owning nothing, without user data."""
    return bytes.fromhex(f"0003 00000001 {len(topic):04x}") + topic.encode() + bytes.fromhex(
        f"{NO_USER_DATA} 00000000") + generation.to_bytes(4, signed=True) + bytes.fromhex("ffff")


def assignment(topic: str, *partitions: int, user_data: str = NO_USER_DATA) -> bytes:
    """Version 0; `user_data` in hexadecimal, its length before it."""
    numbers = b"".join(partition.to_bytes(4) for partition in partitions)
    return bytes.fromhex(f"0000 00000001 {len(topic):04x}") + topic.encode() + len(partitions).to_bytes(
        4) + numbers + bytes.fromhex(user_data)


async def classic_member(
    node: Address, group: str, metadata: bytes, given: bytes, *, strategies: tuple[str, ...] = ("range",),
    protocol_type: str = "consumer", instance: str | None = None, properties: Mapping[str, str] | None = None,
) -> str:
    """The only member of a classic group, which is Stable when this returns; its id."""
    answer = await join(node, group, metadata, strategies=strategies, protocol_type=protocol_type, instance=instance,
                        properties=properties)
    await sync(node, group, answer, {answer.member_id: given}, protocol_type=protocol_type, instance=instance,
               properties=properties)
    return answer.member_id


async def classic_pair(node: Address, group: str, metadata: bytes, first: bytes, second: bytes) -> tuple[str, str]:
    """Two members of a classic group, which is Stable when this returns; their ids. What each is given."""
    one = await classic_member(node, group, metadata, first)
    joining = await joining_beside(node, group, metadata)
    leader = await join(node, group, metadata, member=one)
    two = (await joining).member_id
    await sync(node, group, leader, {one: first, two: second})
    await sync(node, group, await joining, {})
    return one, two


async def joining_beside(node: Address, group: str, metadata: bytes) -> asyncio.Task[JoinGroupResponse]:
    """Another member joins a classic group, which waits for those that it has: PreparingRebalance when this returns."""
    task = asyncio.create_task(join(node, group, metadata))
    groups = asking(node)
    await eventually(lambda: groups.describe(group), lambda seen: seen.state is GroupState.PREPARING_REBALANCE, 30)
    return task


async def join(
    node: Address, group: str, metadata: bytes, *, member: str = "", strategies: tuple[str, ...] = ("range",),
    protocol_type: str = "consumer", instance: str | None = None, session: i32Timedelta = SESSION,
    rebalance: i32Timedelta = SESSION, properties: Mapping[str, str] | None = None,
) -> JoinGroupResponse:
    """JoinGroup, twice for who has no id yet. It is answered when every member of the group has joined again."""
    answer = await ask(node, JoinGroupRequest(
        group_id=GroupId(group), session_timeout=session, rebalance_timeout=rebalance, member_id=member,
        group_instance_id=instance, protocol_type=protocol_type,
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in strategies),
    ), JoinGroupResponse, properties)
    if answer.error_code is ErrorCode.member_id_required:
        return await join(node, group, metadata, member=answer.member_id, strategies=strategies, protocol_type=protocol_type,
                          instance=instance, session=session, rebalance=rebalance, properties=properties)
    return answer


async def sync(
    node: Address, group: str, answer: JoinGroupResponse, given: Mapping[str, bytes], *, protocol_type: str = "consumer",
    instance: str | None = None, properties: Mapping[str, str] | None = None,
) -> None:
    """SyncGroup after that answer; what is `given` to each member counts from the leader alone."""
    assert answer.error_code is ErrorCode.none, answer.error_code
    synced = await ask(node, SyncGroupRequest(
        group_id=GroupId(group), generation_id=answer.generation_id, member_id=answer.member_id, group_instance_id=instance,
        protocol_type=protocol_type, protocol_name=answer.protocol_name,
        assignments=tuple(SyncGroupRequestAssignment(member_id=each, assignment=what) for each, what in given.items()),
    ), SyncGroupResponse, properties)
    assert synced.error_code is ErrorCode.none, synced.error_code


async def leave(node: Address, group: str, *members: str) -> None:
    """LeaveGroup of classic members, all in one request."""
    answer = await ask(node, LeaveGroupRequest(group_id=GroupId(group), members=tuple(
        MemberIdentity(member_id=member, group_instance_id=None) for member in members)), LeaveGroupResponse)
    assert {answer.error_code, *(each.error_code for each in answer.members)} == {ErrorCode.none}, answer


# --- Real clients -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def client(node: Address, topic: str, group: str, name: str, directory: Path, **settings: str) -> Iterator[None]:
    """A `python -m member` (settings: sandbox/apps/member/settings.py) for the length of the block."""
    environment = os.environ | settings | {
        "BOOTSTRAP_SERVERS": str(node), "TOPIC": topic, "GROUP": group, "HOSTNAME": name,
        "HISTORY": str(directory / f"{name}.history"),
        "PYTHONPATH": str(Path(__file__).parents[2] / "sandbox" / "apps"),
    }
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m", "member"],
                                   env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(stretched(20))
        finally:
            process.kill()
            process.wait()
