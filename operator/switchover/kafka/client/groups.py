"""Consumer groups over Kafka's protocol (`ports.Groups`, `ports.GroupMemberships`).

Ordinary clients do not tell epochs, user data or by which protocol a member takes part, and librdkafka's admin client ended
the process when a coordinator moved (its issues 4605 and 5397).
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v10 import MetadataResponse

from switchover.answers.clock import Clock
from switchover.answers.errors import Refused, Unreachable
from switchover.answers.observed import Unknown
from switchover.kafka.client import each_group
from switchover.kafka.client.broker_settings import broker_settings, cluster_operations, topic_settings
from switchover.kafka.client.brokers import Brokers, Question, Together
from switchover.kafka.client.connection import Connection, api_versions, succeeded
from switchover.kafka.client.consumer_protocol import PROTOCOL_TYPE
from switchover.kafka.client.coordinator import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    Coordinator,
    Coordinators,
    answered,
    find_coordinators,
)
from switchover.kafka.client.metadata import addresses, metadata
from switchover.kafka.client.offsets import NOT_ANSWERED
from switchover.kafka.group import BrokerGroups, Group, GroupState, OffsetsTopic, Readiness, SeenGroup, SeenGroups
from switchover.kafka.limits import ANSWER_SECONDS
from switchover.kafka.ports import Cluster
from switchover.lag.group import Membership
from switchover.metadata.replay import METADATA_VERSION
from switchover.network.addresses import Address
from switchover.network.credentials import Access

GROUP_VERSION = "group.version"
OFFSETS_TOPIC = "__consumer_offsets"
CODEC, UNCOMPRESSED = "offsets.topic.compression.codec", "0"
SHORTEST_SESSION = "group.min.session.timeout.ms"
FOR_ALL = "grant it Describe on the Cluster resource, or name the groups (--group)"

T = TypeVar("T")


class WireGroups:
    """`ports.Groups` and `ports.GroupMemberships`. A question may take `seconds`; connections are used until they are `keep`
    seconds old.

    What many want to know of their groups at about the same time is asked together. `access.servers` is `bootstrap.servers`,
    asked one after the other, the last that answered first. Raises Refused at once when the client properties cannot be
    used.
    """

    def __init__(self, access: Access, *, seconds: float = ANSWER_SECONDS, keep: float = 0.0) -> None:
        self._brokers = Brokers(access, seconds, keep)
        self._described: Together[str, Group] = Together(self._describe_all)
        self._serving: Together[tuple[str, tuple[str, ...]], Readiness] = Together(self._serve_all)
        self._answering: Together[str, frozenset[int]] = Together(self._ask_every_broker)

    async def describe(self, group: str) -> Group:
        """DescribeGroups, and ConsumerGroupDescribe for what is not of that type."""
        return await self._described.get(group)

    async def cluster(self) -> Cluster:
        """Metadata of one broker."""
        answer = await self._brokers.any(lambda node, connection: metadata(node, connection, ()))
        return Cluster(answer.cluster_id or "", addresses(answer))

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
        return await self._serving.get((group, tuple(topics)))

    async def all_support(self, group: str, strategy: str) -> bool:
        """JoinGroup with that strategy alone, of a group that was described on the same connection."""
        node_id, node = await self._coordinator_of(group)
        async with self._brokers.connected(node) as connection:
            coordinator = await Coordinator.at(node, connection)
            [shortest] = await broker_settings(node, connection, node_id, [SHORTEST_SESSION])
            described = (await each_group.described(coordinator, node_id, [group]))[group]
            if isinstance(described, Exception):
                raise described
            if described.state is not GroupState.STABLE or not described.members:
                raise Unreachable(f"group {group} is {described.state} with {len(described.members)} members: they cannot "
                                  "be asked what they support now")
            code = await coordinator.join(group, strategy, int(shortest.value or 0))
        if code not in (ErrorCode.member_id_required, ErrorCode.inconsistent_group_protocol):
            answered(node, code, group, f"ask group {group} what its members support", "Read")
        return code is ErrorCode.member_id_required

    async def coordinators(self, group: str) -> frozenset[int]:
        """The same questions as `describe`, to every broker: who does not coordinate it says NOT_COORDINATOR."""
        return await self._answering.get(group)

    async def coordinated(self) -> Mapping[int, int]:
        """ListGroups of every broker, and the members of those that are not Empty."""
        async def count(_: int, coordinator: Coordinator) -> int:
            if "DESCRIBE" not in await cluster_operations(coordinator.connection):
                raise Refused(f"{coordinator.node}: shows our user only groups that it has rights on; grant it Describe on "
                              "the Cluster resource")
            return await each_group.member_count(coordinator)

        return await self._each(count)

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
        compressed = await asyncio.gather(*(compresses(*each) for each in addresses(answer).items()))
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

    async def groups(self) -> Sequence[str]:
        """ListGroups of every broker: those of consumers that our user may see, and those that were only committed to.

        Raises what one broker raises: its groups would be missing.
        """
        async def listed(_: int, coordinator: Coordinator) -> list[str]:
            return [name for name, group in (await coordinator.listed()).items()
                    if group.protocol_type in (PROTOCOL_TYPE, "")]

        return sorted(chain(*(await self._each(listed)).values()))

    async def memberships(self, groups: Iterable[str]) -> Mapping[str, Membership | str]:
        """Of each group its members, or why its coordinator does not tell them."""
        found: dict[str, Membership | str] = {}

        async def ask(_: int, coordinator: Coordinator, part: Sequence[str]) -> None:
            found.update(await each_group.memberships(coordinator, part))

        names = sorted(set(groups))
        await self._ask_coordinators(
            names, ask, lambda part, error: found.update({name: str(error) for name in part if name not in found}))
        return {name: found.get(name, NOT_ANSWERED) for name in names}

    async def every(self, clock: Clock) -> SeenGroups:
        """All that there are, of whatever type. Refused where our user is shown only those that it has rights on."""
        async def brokers(node: Address, connection: Connection) -> Mapping[Address, int]:
            if "DESCRIBE" not in await cluster_operations(connection):
                raise Refused(f"{node}: shows our user only groups that it has rights on; {FOR_ALL}")
            return await _ids(node, connection)

        found, ids = SeenGroups(), await self._brokers.any(brokers)

        async def ask(node: Address, connection: Connection, _: Sequence[None]) -> None:
            coordinator = await Coordinator.at(node, connection)
            found.groups.update(await each_group.seen(coordinator, ids[node], None, self._brokers.seconds, clock))

        await self._brokers.each(dict.fromkeys(ids, (None,)), ask, lambda _, error: found.silent.append(str(error)))
        return found

    async def named(self, names: Sequence[str], clock: Clock) -> SeenGroups:
        """These alone, of whatever type. One that does not exist is Dead."""
        found = SeenGroups()

        async def ask(node_id: int, coordinator: Coordinator, part: Sequence[str]) -> None:
            found.groups.update(await each_group.seen(coordinator, node_id, part, self._brokers.seconds, clock))

        def failed(part: Iterable[str], error: Exception) -> None:
            why = Unknown(str(error), refused=isinstance(error, Refused))
            found.groups.update({name: SeenGroup(name, why) for name in part})

        await self._ask_coordinators(names, ask, failed)
        return found

    async def close(self) -> None:
        """Close what is kept open between two questions."""
        self._brokers.close()

    async def _describe_all(self, questions: Sequence[Question[str, Group]]) -> None:
        def tell(told: Mapping[str, Group | Exception]) -> None:
            for question in questions:
                if question.asked in told:
                    question.tell(told[question.asked])

        async def describe(node_id: int, coordinator: Coordinator, groups: Sequence[str]) -> None:
            tell(await each_group.described(coordinator, node_id, groups))

        await self._ask_coordinators([question.asked for question in questions], describe,
                                     lambda groups, error: tell(dict.fromkeys(groups, error)))

    async def _serve_all(self, questions: Sequence[Question[tuple[str, tuple[str, ...]], Readiness]]) -> None:
        asked: dict[str, list[Question[tuple[str, tuple[str, ...]], Readiness]]] = defaultdict(list)
        for question in questions:
            asked[question.asked[0]].append(question)

        def about(groups: Iterable[str]) -> Iterator[Question[tuple[str, tuple[str, ...]], Readiness]]:
            return (question for group in groups for question in asked[group])

        async def serve(_: int, coordinator: Coordinator, groups: Sequence[str]) -> None:
            for question in about(groups):
                question.tell(await coordinator.readiness(*question.asked))

        def failed(groups: Iterable[str], error: Exception) -> None:
            for question in about(groups):
                question.tell(error)

        await self._ask_coordinators(asked, serve, failed)

    async def _ask_coordinators(
        self, groups: Iterable[str], ask: Callable[[int, Coordinator, Sequence[str]], Awaitable[None]],
        failed: Callable[[Iterable[str], Exception], None],
    ) -> None:
        """Each broker, by its id, about the groups that it coordinates; those that have no coordinator, or one that does not
        answer, have failed."""
        found = await self._find(groups)
        for group, why in found.failed.items():
            failed([group], why)

        async def one(node: Address, connection: Connection, groups: Sequence[str]) -> None:
            await ask(found.ids[node], await Coordinator.at(node, connection), groups)

        await self._brokers.each(found.groups, one, failed)

    async def _ask_every_broker(self, questions: Sequence[Question[str, frozenset[int]]]) -> None:
        groups = sorted({question.asked for question in questions})

        async def ask(node_id: int, coordinator: Coordinator) -> Mapping[str, Group | Exception]:
            return await each_group.described(coordinator, node_id, groups)

        told = await self._each(ask, lambda error: dict.fromkeys(groups, error))
        for question in questions:
            answers = {node_id: found[question.asked] for node_id, found in told.items()}
            wrong = [each for each in answers.values() if isinstance(each, Exception) and not isinstance(each, Unreachable)]
            question.tell(wrong[0] if wrong else frozenset(
                node_id for node_id, each in answers.items() if isinstance(each, Group)))

    async def _find(self, groups: Iterable[str]) -> Coordinators:
        """Their coordinators, by the first bootstrap server that knows one of any group, if one does."""
        asked, told = sorted(set(groups)), Coordinators()

        async def find(node: Address, connection: Connection) -> None:
            nonlocal told
            told = await find_coordinators(node, connection, asked)
            refused = any(isinstance(each, Refused) for each in told.failed.values())
            if asked and told.failed.keys() >= {*asked} and not refused:
                raise told.failed[asked[0]]

        try:
            await self._brokers.any(find)
        except Unreachable:
            if not told.failed:
                raise
        return told

    async def _coordinator_of(self, group: str) -> tuple[int, Address]:
        found = await self._find([group])
        for address, node_id in found.ids.items():
            return node_id, address
        raise found.failed.get(group) or Unreachable(f"group {group} was left out of the answer about its coordinator")

    async def _each(self, ask: Callable[[int, Coordinator], Awaitable[T]],
                    instead: Callable[[Exception], T] | None = None) -> dict[int, T]:
        """What every broker answers, by its node id; of one that cannot be asked what stands `instead`, else its error is
        raised once all were asked."""
        found, errors = dict[int, T](), list[Exception]()

        async def one(node: Address, connection: Connection, part: Sequence[int]) -> None:
            [node_id] = part
            found[node_id] = await ask(node_id, await Coordinator.at(node, connection))

        def failed(part: Iterable[int], error: Exception) -> None:
            if instead is None:
                errors.append(error)
            else:
                found.update(dict.fromkeys(part, instead(error)))

        brokers = (await self.cluster()).brokers
        await self._brokers.each({node: (node_id,) for node_id, node in brokers.items()}, one, failed)
        if errors:
            raise errors[0]
        return found


async def _ids(node: Address, connection: Connection) -> Mapping[Address, int]:
    return {address: node_id for node_id, address in addresses(await metadata(node, connection, ())).items()}
