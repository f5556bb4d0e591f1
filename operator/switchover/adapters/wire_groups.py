"""Consumer groups over Kafka's protocol (`ports.Groups`).

Ordinary clients do not tell epochs, user data or by which protocol a member takes part, and their admin client crashed
the process when a coordinator moved (adapters/kafka.py).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v3 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.metadata.v10 import MetadataResponse

from switchover.adapters.group_answers import changing, described_group, group_type, other_group
from switchover.adapters.wire_broker import cluster_operations
from switchover.adapters.wire_brokers import Brokers
from switchover.adapters.wire_configs import broker_settings, topic_settings
from switchover.adapters.wire_connection import Connection, succeeded
from switchover.adapters.wire_coordinator import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    Coordinator,
    answered,
)
from switchover.adapters.wire_metadata import metadata
from switchover.adapters.wire_versions import api_versions
from switchover.core.groups.facts import BrokerGroups, Group, GroupState, GroupType, OffsetsTopic, Readiness
from switchover.core.kraft.facts import Address
from switchover.metadata.replay import METADATA_VERSION
from switchover.ports import Access, Cluster, Refused, Unreachable

GROUP_VERSION = "group.version"
OFFSETS_TOPIC = "__consumer_offsets"
CODEC, UNCOMPRESSED = "offsets.topic.compression.codec", "0"
SHORTEST_SESSION = "group.min.session.timeout.ms"

T = TypeVar("T")


class WireGroups:
    """`ports.Groups` with a connection for each question, which may take `seconds`.

    `access.servers` is `bootstrap.servers`, asked one after the other, the last that answered first. Raises Refused at
    once when the client properties cannot be used.
    """

    def __init__(self, access: Access, *, seconds: float = 5.0) -> None:
        self._brokers = Brokers(access, seconds)

    async def describe(self, group: str) -> Group:
        """ConsumerGroupDescribe, and DescribeGroups for what is not of that type."""
        node_id, node = await self._coordinator_of(group)
        async with self._asked(node) as coordinator:
            return await _describe(coordinator, node_id, group)

    async def cluster(self) -> Cluster:
        """Metadata of one broker."""
        answer = await self._brokers.any(lambda node, connection: metadata(node, connection, ()))
        return Cluster(
            answer.cluster_id or "", {broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers})

    async def broker(self, broker: Address, broker_id: int) -> BrokerGroups:
        """ApiVersions and DescribeConfigs of that broker."""
        async with self._brokers.connected(broker) as connection:
            versions = await api_versions(broker, connection)
            settings = await broker_settings(broker, connection, broker_id)
        return BrokerGroups(
            group_version=versions.finalized.get(GROUP_VERSION, 0),
            metadata_version=versions.supported.get(METADATA_VERSION, 0),
            consumer_keys={CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE} <= versions.api_keys.keys(),
            settings={setting.name: setting.value for setting in settings
                      if setting.name.startswith("group.") and setting.value is not None},
        )

    async def readiness(self, group: str, topics: Iterable[str]) -> Readiness:
        """The coordinator's answer to a heartbeat that it must refuse."""
        _, node = await self._coordinator_of(group)
        async with self._asked(node) as coordinator:
            code, words = await coordinator.heartbeat(group, topics)
        if code is not ErrorCode.unsupported_assignor:
            return Readiness(code.name.upper())
        listed = re.search(r"Supported assignors: ([^.]*)", words)
        return Readiness("", tuple(listed[1].split(", ")) if listed else ())

    async def all_support(self, group: str, strategy: str) -> bool:
        """JoinGroup with that strategy alone, of a group that was described on the same connection."""
        node_id, node = await self._coordinator_of(group)
        async with self._asked(node) as coordinator:
            [shortest] = await broker_settings(node, coordinator.connection, node_id, [SHORTEST_SESSION])
            described = await _describe(coordinator, node_id, group)
            if described.state is not GroupState.STABLE or not described.members:
                raise Unreachable(f"group {group} is {described.state} with {len(described.members)} members: they cannot "
                                  "be asked what they support now")
            code = await coordinator.join(group, strategy, int(shortest.value or 0))
        if code not in (ErrorCode.member_id_required, ErrorCode.inconsistent_group_protocol):
            answered(node, code, group, f"ask group {group} what its members support", "Read")
        return code is ErrorCode.member_id_required

    async def coordinators(self, group: str) -> frozenset[int]:
        """The same questions as `describe`, to every broker: who does not coordinate it says NOT_COORDINATOR."""
        async def answers(node_id: int, node: Address) -> bool:
            try:
                async with self._asked(node) as coordinator:
                    await _describe(coordinator, node_id, group)
            except Unreachable:
                return False
            return True

        return frozenset(node_id for node_id, is_one in (await self._each(answers)).items() if is_one)

    async def coordinated(self) -> Mapping[int, int]:
        """ListGroups of every broker, and the members of those that are not Empty."""
        async def one(_: int, node: Address) -> int:
            async with self._asked(node) as coordinator:
                if "DESCRIBE" not in await cluster_operations(coordinator.connection):
                    raise Refused(f"{node}: shows our user only groups that it has rights on; grant it Describe on the "
                                  "Cluster resource")
                return await _members(coordinator)

        return await self._each(one)

    async def offsets_topic(self) -> OffsetsTopic:
        """Metadata, the topic's settings, and every broker's compression codec for it."""
        async def read(node: Address, connection: Connection) -> tuple[MetadataResponse, int]:
            answer = await metadata(node, connection, (OFFSETS_TOPIC,))
            [topic] = answer.topics
            if topic.error_code is ErrorCode.unknown_topic_or_partition:
                raise Unreachable(f"{node}: there is no {OFFSETS_TOPIC} yet: no group has ever been there")
            succeeded(node, topic.error_code, f"describe topic {OFFSETS_TOPIC}", "Describe", f"topic {OFFSETS_TOPIC}")
            [limit] = await topic_settings(node, connection, OFFSETS_TOPIC, ["max.message.bytes"])
            return answer, int(limit.value or 0)

        async def compresses(broker_id: int, node: Address) -> bool:
            async with self._brokers.connected(node) as connection:
                [codec] = await broker_settings(node, connection, broker_id, [CODEC])
            return codec.value != UNCOMPRESSED

        answer, limit = await self._brokers.any(read)
        compressed = await asyncio.gather(
            *(compresses(broker.node_id, Address(broker.host, broker.port)) for broker in answer.brokers))
        short = [partition for partition in answer.topics[0].partitions
                 if len(partition.isr_nodes) < len(partition.replica_nodes)]
        return OffsetsTopic(limit, all(compressed), len(short))

    async def partitions(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Metadata of those topics; nothing is created."""
        asked = tuple(topics)

        async def read(node: Address, connection: Connection) -> dict[str, int]:
            answer = await metadata(node, connection, asked)
            found = {str(topic.name): topic for topic in answer.topics
                     if topic.error_code is not ErrorCode.unknown_topic_or_partition}
            for name, topic in found.items():
                succeeded(node, topic.error_code, f"describe topic {name}", "Describe", f"topic {name}")
            return {name: len(topic.partitions) for name, topic in found.items()}

        return await self._brokers.any(read)

    async def close(self) -> None:
        """Nothing stays open between two questions."""

    async def _coordinator_of(self, group: str) -> tuple[int, Address]:
        async def find(node: Address, connection: Connection) -> tuple[int, Address]:
            answer = await connection.ask(FindCoordinatorRequest(key=group), FindCoordinatorResponse)
            answered(node, answer.error_code, group, f"find the coordinator of group {group}")
            return answer.node_id, Address(answer.host, answer.port)

        return await self._brokers.any(find)

    @asynccontextmanager
    async def _asked(self, node: Address) -> AsyncIterator[Coordinator]:
        async with self._brokers.connected(node) as connection:
            yield Coordinator(node, connection, await api_versions(node, connection))

    async def _each(self, question: Callable[[int, Address], Awaitable[T]]) -> dict[int, T]:
        """What every broker answers, by its node id; all are asked at once."""
        brokers = (await self.cluster()).brokers
        answers = await asyncio.gather(*(question(*each) for each in brokers.items()))
        return dict(zip(brokers, answers, strict=True))


async def _describe(coordinator: Coordinator, node_id: int, group: str) -> Group:
    found = described_group(coordinator.node, group, (await coordinator.descriptions([group]))[group], node_id)
    return found if found.state is not GroupState.DEAD else other_group(
        group, (await coordinator.listed()).get(group), node_id)


async def _members(coordinator: Coordinator) -> int:
    """Of all classic and consumer groups of that broker."""
    names = [name for name, group in (await coordinator.listed()).items()
             if group_type(group) is not GroupType.OTHER and group.group_state != GroupState.EMPTY]
    count = 0
    for name, group in (await coordinator.descriptions(names)).items():
        answered(coordinator.node, group.error_code, name, f"describe group {name}")
        if group.group_state == GroupState.DEAD:
            raise changing(name)
        count += len(group.members)
    return count
