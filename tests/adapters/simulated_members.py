"""Members of consumer groups by the thousand in one process: they join, keep their heartbeats and leave, and read nothing.

Their heartbeats share a bounded number of connections. The coordinator answers a classic JoinGroup when all other members
have come, and a connection answers in order: so a classic member joins on a connection of its own, and gives it back.
"""

import asyncio
import itertools
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, TypeVar

from kio.schema.consumer_group_heartbeat.v1 import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kio.schema.consumer_group_heartbeat.v1.request import TopicPartitions
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4 import HeartbeatRequest, HeartbeatResponse
from kio.schema.join_group.v6.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v6.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

from adapters.group_members import assignment, subscription
from switchover.kafka.client.connection import Connection, connected
from switchover.kafka.group import MemberProtocol
from switchover.network.addresses import Address
from switchover.network.security import security

SESSION = i32Timedelta.parse(timedelta(seconds=45))         # Java's defaults: session.timeout.ms, heartbeat.interval.ms
CLASSIC_INTERVAL = 3.0
REBALANCE = i32Timedelta.parse(timedelta(seconds=60))
UNCHANGED = i32Timedelta.parse(timedelta(milliseconds=-1))
SOCKETS = 5000                                              # of members that join at once
OPEN = security({})                                         # no encryption, no password
JOINED, LEAVES = 0, -1                                      # epochs that say so
LOST = frozenset({ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch, ErrorCode.illegal_generation,
                  ErrorCode.rebalance_in_progress})
"""Answers to a member that must join again; any other error ends the program."""

Answer = TypeVar("Answer", bound=ResponsePayload)


@dataclass(frozen=True, slots=True)
class Topic:
    """What every member subscribes to."""

    name: str
    partitions: int


@dataclass
class Tally:
    """What the members met. `answered` and `late` are seconds of each heartbeat: since it was sent, and since it was due."""

    answered: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)

    def accepted(self, code: ErrorCode, group: str) -> bool:
        """Whether it was; the loss of a member is counted."""
        if code is ErrorCode.none:
            return True
        assert code in LOST, f"a member of group {group!r} got {code.name.upper()}"
        self.lost[code.name.upper()] += 1
        return False


class Line:
    """A connection that members share, for one request at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._free = asyncio.Lock()

    async def ask(self, request: RequestPayload, response: type[Answer]) -> tuple[Answer, float]:
        """The answer, and when the request was sent."""
        async with self._free:
            sent = time.perf_counter()
            return await self._connection.ask(request, response), sent


class Member(Protocol):
    interval: float
    """Seconds until the next heartbeat."""

    async def join(self) -> bool:
        """Whether the member is one now; otherwise it must try again."""
        ...

    async def heartbeat(self) -> tuple[bool, float]:
        """Whether the member still is one, and when it asked."""
        ...

    async def leave(self) -> None: ...


class ConsumerMember:
    """Of the consumer protocol. It does at once what it is told: takes partitions, and gives them back."""

    def __init__(self, group: str, topic: Topic, line: Line, tally: Tally) -> None:
        self.interval = 0.0
        self._group, self._topic, self._line, self._tally = GroupId(group), topic, line, tally
        self._id = str(uuid.uuid4())
        self._epoch = i32(JOINED)
        self._owned: tuple[TopicPartitions, ...] | None = ()        # to be told; None once it has been

    async def join(self) -> bool:
        self._epoch, self._owned = i32(JOINED), ()
        joined, _ = await self.heartbeat()
        return joined

    async def heartbeat(self) -> tuple[bool, float]:
        first = self._epoch == JOINED
        answer, sent = await self._line.ask(ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self._id, member_epoch=self._epoch,
            rebalance_timeout=REBALANCE if first else UNCHANGED,
            subscribed_topic_names=(TopicName(self._topic.name),) if first else None, topic_partitions=self._owned,
        ), ConsumerGroupHeartbeatResponse)
        if answer.error_code is ErrorCode.none:
            self._epoch, self._owned = answer.member_epoch, None
            self.interval = answer.heartbeat_interval.total_seconds()
            if answer.assignment is not None:
                self._owned = tuple(TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                                    for each in answer.assignment.topic_partitions)
                self.interval = 0.0
        return self._tally.accepted(answer.error_code, self._group), sent

    async def leave(self) -> None:
        await self._line.ask(ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self._id, member_epoch=i32(LEAVES), topic_partitions=None,
        ), ConsumerGroupHeartbeatResponse)


class ClassicMember:
    """Of the classic protocol. The leader gives partitions out one after the other."""

    interval = CLASSIC_INTERVAL

    def __init__(self, node: Address, group: str, topic: Topic, line: Line, tally: Tally) -> None:
        self._node, self._group, self._topic, self._line, self._tally = node, GroupId(group), topic, line, tally
        self._id = ""
        self._generation = i32(-1)

    async def join(self) -> bool:
        async with connected(self._node, OPEN, 2 * REBALANCE.total_seconds()) as own:
            answer = await self._ask_to_join(own)
            if answer.error_code is ErrorCode.member_id_required:
                self._id = answer.member_id
                answer = await self._ask_to_join(own)
            if not self._accepted(answer.error_code):
                return False
            self._id, self._generation = answer.member_id, answer.generation_id
            members = [member.member_id for member in answer.members] if answer.leader == self._id else []
            synced = await own.ask(SyncGroupRequest(
                group_id=self._group, generation_id=self._generation, member_id=self._id, group_instance_id=None,
                protocol_type="consumer", protocol_name=answer.protocol_name, assignments=tuple(self._shares(members)),
            ), SyncGroupResponse)
            return self._accepted(synced.error_code)

    def _accepted(self, code: ErrorCode) -> bool:
        if code is ErrorCode.unknown_member_id:
            self._id = ""
        return self._tally.accepted(code, self._group)

    async def _ask_to_join(self, own: Connection) -> JoinGroupResponse:
        return await own.ask(JoinGroupRequest(
            group_id=self._group, session_timeout=SESSION, rebalance_timeout=REBALANCE, member_id=self._id,
            group_instance_id=None, protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=subscription(self._topic.name)),),
        ), JoinGroupResponse)

    def _shares(self, members: list[str]) -> Iterator[SyncGroupRequestAssignment]:
        for index, member in enumerate(members):
            partitions = range(index, self._topic.partitions, len(members))
            yield SyncGroupRequestAssignment(member_id=member, assignment=assignment(self._topic.name, *partitions))

    async def heartbeat(self) -> tuple[bool, float]:
        answer, sent = await self._line.ask(HeartbeatRequest(
            group_id=self._group, generation_id=self._generation, member_id=self._id), HeartbeatResponse)
        return self._accepted(answer.error_code), sent

    async def leave(self) -> None:
        await self._line.ask(LeaveGroupRequest(
            group_id=self._group, members=(MemberIdentity(member_id=self._id, group_instance_id=None),),
        ), LeaveGroupResponse)


class Crowd:
    """Members of one protocol, who hold on until the block of `crowd` ends, and then leave."""

    def __init__(self, node: Address, protocol: MemberProtocol, topic: Topic, lines: Iterable[Line],
                 tasks: asyncio.TaskGroup) -> None:
        self.tally = Tally()
        self.leaving = False
        self._node, self._protocol, self._topic = node, protocol, topic
        self._lines = itertools.cycle(lines)
        self._tasks = tasks

    async def join(self, groups: Mapping[str, int]) -> None:
        """So many new members of each group at once, or as many groups as SOCKETS let; returns when all have joined."""
        room = asyncio.Semaphore(max(1, SOCKETS // max(groups.values())))

        async def one(group: str, count: int) -> None:
            async with room:
                joined = [asyncio.Event() for _ in range(count)]
                for event in joined:
                    self._tasks.create_task(self._hold(self._member(group), event))
                for event in joined:
                    await event.wait()

        await asyncio.gather(*(one(group, count) for group, count in groups.items()))

    def _member(self, group: str) -> Member:
        line = next(self._lines)
        if self._protocol is MemberProtocol.CONSUMER:
            return ConsumerMember(group, self._topic, line, self.tally)
        return ClassicMember(self._node, group, self._topic, line, self.tally)

    async def _hold(self, member: Member, joined: asyncio.Event) -> None:
        while not await member.join():
            pass
        joined.set()
        due = time.perf_counter() + member.interval
        while True:
            await asyncio.sleep(due - time.perf_counter())
            if self.leaving:
                break
            still, sent = await member.heartbeat()
            now = time.perf_counter()
            self.tally.answered.append(now - sent)
            self.tally.late.append(now - due)
            while not still:
                still = await member.join()
            due = time.perf_counter() + member.interval
        await member.leave()


@asynccontextmanager
async def crowd(node: Address, protocol: MemberProtocol, topic: Topic, *, connections: int,
                seconds: float) -> AsyncIterator[Crowd]:
    """Nobody yet. The block may take `seconds` in all; the first member that fails ends it."""
    async with AsyncExitStack() as stack:
        lines = [Line(await stack.enter_async_context(connected(node, OPEN, seconds))) for _ in range(connections)]
        async with asyncio.TaskGroup() as tasks:
            held = Crowd(node, protocol, topic, lines, tasks)
            yield held
            held.leaving = True
