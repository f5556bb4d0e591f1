"""One broker asked about the groups that it coordinates, on one connection (Kafka 3.0 or newer)."""

import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from kio.schema.consumer_group_describe import v0 as describe_v0
from kio.schema.consumer_group_describe import v1 as describe_v1
from kio.schema.consumer_group_describe.v0.response import DescribedGroup as DescribedV0
from kio.schema.consumer_group_describe.v1.response import DescribedGroup as DescribedV1
from kio.schema.consumer_group_heartbeat import v0 as heartbeat_v0
from kio.schema.consumer_group_heartbeat import v1 as heartbeat_v1
from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.describe_groups.v5.response import DescribedGroup as DescribedClassic
from kio.schema.describe_groups.v5.response import DescribeGroupsResponse
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.join_group.v6.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v6.response import JoinGroupResponse
from kio.schema.list_groups import v4 as list_v4
from kio.schema.list_groups import v5 as list_v5
from kio.schema.list_groups.v4.response import ListedGroup as ListedV4
from kio.schema.list_groups.v5.response import ListedGroup as ListedV5
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta

from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.brokers import batches
from switchover.kafka.client.connection import Connection, api_keys, succeeded
from switchover.kafka.client.consumer_protocol import PROTOCOL_TYPE
from switchover.kafka.client.metadata import advertised_address
from switchover.kafka.group import GroupState, Readiness
from switchover.network.addresses import Address

KEYS = 100                  # groups in one FindCoordinator
BATCH = 50                  # groups in one description: a large one answers with a megabyte
LIST_GROUPS, CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 16, 68, 69
NO_SUCH_ASSIGNOR = "__probe__"
NOTHING_SUBSCRIBED = bytes.fromhex("0000 00000000 ffffffff")
"""A subscription in version 0 to no topic, without user data."""

DescribedConsumer = DescribedV0 | DescribedV1
Described = DescribedClassic | DescribedConsumer
ListedGroup = ListedV4 | ListedV5

_NO_CONSUMER_GROUP = frozenset({ErrorCode.group_id_not_found, ErrorCode.unsupported_version})
"""ConsumerGroupDescribe's answers for a group of another type, and where the consumer protocol is switched off."""
_ON_THE_MOVE = {
    ErrorCode.not_coordinator: "does not coordinate group {group} any more: its coordinator moves to another broker",
    ErrorCode.coordinator_load_in_progress: "is loading group {group}: it has just become its coordinator",
    ErrorCode.coordinator_not_available: "finds no coordinator for group {group}: its partition of __consumer_offsets "
                                         "has no leader, or is being made",
}


def answered(node: Address, code: ErrorCode, group: str, what: str, right: str = "Describe") -> None:
    """Raise what an error code about a group means: Refused naming the right, else Unreachable."""
    if code in _ON_THE_MOVE:
        raise _moving(node, code, group)
    if code is ErrorCode.topic_authorization_failed:
        succeeded(node, code, what, "Describe", f"every topic that group {group} reads")
    succeeded(node, code, what, right, f"group {group}")


def _moving(node: Address, code: ErrorCode, group: str) -> Unreachable:
    return Unreachable(f"{node}: {_ON_THE_MOVE[code].format(group=group)}")


def failure(node: Address, code: ErrorCode, group: str, what: str) -> Refused | Unreachable | None:
    """What an error code about a group means, None where it is none."""
    try:
        answered(node, code, group, what)
    except (Refused, Unreachable) as error:
        return error
    return None


@dataclass(slots=True)
class Coordinators:
    """The groups by the brokers that coordinate them, the ids of these, and why other groups have none: as text, and the
    code itself."""

    groups: dict[Address, list[str]] = field(default_factory=lambda: defaultdict(list))
    ids: dict[Address, int] = field(default_factory=dict)
    failed: dict[str, Refused | Unreachable] = field(default_factory=dict)
    codes: dict[str, ErrorCode] = field(default_factory=dict)


async def find_coordinators(node: Address, broker: Connection, groups: Sequence[str]) -> Coordinators:
    """FindCoordinator v4 (Kafka 3.0)."""
    coordinators = Coordinators()
    for batch in batches(groups, KEYS):
        answer = await broker.ask(FindCoordinatorRequest(coordinator_keys=tuple(batch)), FindCoordinatorResponse)
        for found in answer.coordinators:
            if found.error_code is ErrorCode.none:
                address = advertised_address(f"the coordinator of group {found.key}", found.host, found.port)
                coordinators.groups[address].append(found.key)
                coordinators.ids[address] = found.node_id
            elif why := failure(node, found.error_code, found.key, f"find the coordinator of group {found.key}"):
                coordinators.failed[found.key], coordinators.codes[found.key] = why, found.error_code
    return coordinators


class Coordinator:
    """Raises Refused and Unreachable, as `answered` says."""

    def __init__(self, node: Address, connection: Connection, keys: Mapping[int, int]) -> None:
        self.node = node
        self.connection = connection
        self._keys = keys

    @classmethod
    async def at(cls, node: Address, connection: Connection) -> "Coordinator":
        """The one at the other end."""
        return cls(node, connection, await api_keys(node, connection))

    async def descriptions(self, names: Sequence[str]) -> dict[str, Described]:
        """Of each group what it is, in batches; an answer may be an error. Dead is what is neither, or is not there."""
        found: dict[str, Described] = {}
        for batch in batches(names, BATCH):
            found |= await self._classic(batch)
            # Dead is also what DescribeGroups says of every group of another type.
            found |= await self._consumer(
                [name for name in batch if name in found and found[name].group_state == GroupState.DEAD])
        return found

    async def _consumer(self, names: Iterable[str]) -> dict[str, DescribedConsumer]:
        """ConsumerGroupDescribe in the newest version that the broker knows; each answer may be an error."""
        asked = tuple(GroupId(name) for name in names)
        newest = self._keys.get(CONSUMER_GROUP_DESCRIBE)
        if newest is None or not asked:
            return {}
        groups: tuple[DescribedConsumer, ...]
        if newest == 0:
            groups = (await self.connection.ask(
                describe_v0.ConsumerGroupDescribeRequest(group_ids=asked, include_authorized_operations=False),
                describe_v0.ConsumerGroupDescribeResponse)).groups
        else:
            groups = (await self.connection.ask(
                describe_v1.ConsumerGroupDescribeRequest(group_ids=asked, include_authorized_operations=False),
                describe_v1.ConsumerGroupDescribeResponse)).groups
        return {str(group.group_id): group for group in groups if group.error_code not in _NO_CONSUMER_GROUP}

    async def _classic(self, names: Iterable[str]) -> dict[str, DescribedClassic]:
        """DescribeGroups v5; each answer may be an error."""
        asked = tuple(GroupId(name) for name in names)
        if not asked:
            return {}
        answer = await self.connection.ask(
            DescribeGroupsRequest(groups=asked, include_authorized_operations=False), DescribeGroupsResponse)
        return {str(group.group_id): group for group in answer.groups}

    async def listed(self) -> dict[str, ListedGroup]:
        """Every group that this broker coordinates and our user may see; before Kafka 3.8 without a type."""
        answer: list_v4.ListGroupsResponse | list_v5.ListGroupsResponse
        if self._keys.get(LIST_GROUPS, 0) < 5:
            answer = await self.connection.ask(list_v4.ListGroupsRequest(states_filter=()), list_v4.ListGroupsResponse)
        else:
            answer = await self.connection.ask(
                list_v5.ListGroupsRequest(states_filter=(), types_filter=()), list_v5.ListGroupsResponse)
        if answer.error_code is ErrorCode.coordinator_load_in_progress:
            raise Unreachable(f"{self.node}: is loading groups: it has just become their coordinator")
        succeeded(self.node, answer.error_code, "list groups", "Describe")
        return {str(group.group_id): group for group in answer.groups}

    async def readiness(self, group: str, topics: Iterable[str]) -> Readiness | Unreachable:
        """What it says to a ConsumerGroupHeartbeat of a newcomer whose assignor does not exist, which it must refuse; an
        error, not raised, where it does not coordinate the group just now.

        The assignor is looked at before the group is: nothing is created, whatever the group
        (docs/facts/groups.md#does-the-coordinator-serve-us).
        """
        newest = self._keys.get(CONSUMER_GROUP_HEARTBEAT)
        if newest is None:
            return Readiness(ErrorCode.unsupported_version.name.upper())
        request = (heartbeat_v0 if newest == 0 else heartbeat_v1).ConsumerGroupHeartbeatRequest(
            group_id=GroupId(group), member_id=str(uuid.uuid4()), member_epoch=i32(0),
            rebalance_timeout=_milliseconds(60_000), server_assignor=NO_SUCH_ASSIGNOR,
            subscribed_topic_names=tuple(TopicName(topic) for topic in topics), topic_partitions=(),
        )
        response = (heartbeat_v0 if newest == 0 else heartbeat_v1).ConsumerGroupHeartbeatResponse
        answer = await self.connection.ask(request, response)
        if answer.error_code in _ON_THE_MOVE:
            return _moving(self.node, answer.error_code, group)
        if answer.error_code is not ErrorCode.unsupported_assignor:
            return Readiness(answer.error_code.name.upper())
        listed = re.search(r"Supported assignors: ([^.]*)", answer.error_message or "")
        return Readiness("", tuple(listed[1].split(", ")) if listed else ())

    async def join(self, group: str, strategy: str, session_timeout: int) -> ErrorCode:
        """JoinGroup v6 of a newcomer that offers one strategy: the error, which comes always since it has no member id yet.

        Leaves a pending member behind in a classic group, until `session_timeout` (ms) is over.
        """
        answer = await self.connection.ask(JoinGroupRequest(
            group_id=GroupId(group), session_timeout=_milliseconds(session_timeout),
            rebalance_timeout=_milliseconds(session_timeout), member_id="", group_instance_id=None,
            protocol_type=PROTOCOL_TYPE,
            protocols=(JoinGroupRequestProtocol(name=strategy, metadata=NOTHING_SUBSCRIBED),),
        ), JoinGroupResponse)
        return answer.error_code


def _milliseconds(number: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=number))
