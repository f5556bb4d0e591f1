"""Kafka nodes asked one at a time over Kafka's protocol (`ports.KafkaNodes`), with kio's requests and responses.

Ordinary clients choose the node themselves, and neither controllers nor the metadata log are open to them.
"""

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager

from kio.schema.alter_client_quotas.v1 import AlterClientQuotasRequest, AlterClientQuotasResponse
from kio.schema.alter_client_quotas.v1.request import EntityData, EntryData, OpData
from kio.schema.broker_registration.v4 import BrokerRegistrationRequest, BrokerRegistrationResponse
from kio.schema.broker_registration.v4.request import Feature, Listener
from kio.schema.describe_quorum.v1 import DescribeQuorumRequest, DescribeQuorumResponse
from kio.schema.describe_quorum.v1.request import PartitionData, TopicData
from kio.schema.describe_quorum.v1.response import ReplicaState
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.types import BrokerId
from kio.static.primitive import f64, i16, i32, u16

from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.broker_settings import (
    broker_settings,
    examine_broker,
    identify,
    min_insync_replicas,
    shown_marker,
)
from switchover.kafka.client.connection import Connection, api_versions, connected, succeeded
from switchover.kafka.client.metadata import WholeViews, addresses, metadata, topic_ids
from switchover.kafka.client.metadata_log import METADATA_TOPIC, MetadataLog
from switchover.kafka.client.partition_logs import DEBUGGER, LATEST, READ_UNCOMMITTED, list_offsets
from switchover.kafka.limits import ANSWER_SECONDS, NODE_SECONDS
from switchover.kafka.node import BrokerExamination, BrokerView, NodeAnswer, Quorum, Replica, TopicIds, WholeView
from switchover.kafka.ports import LISTENER
from switchover.metadata.cluster import Entity
from switchover.metadata.parity import LogImage
from switchover.metadata.replay import METADATA_VERSION
from switchover.network.addresses import Address
from switchover.network.credentials import ANYWHERE, AllowedServers
from switchover.network.security import security
from switchover.shared.partition import TopicPartition

SECONDS_FOR_OTHER_VOTERS = 0.5


class KafkaWire:
    """`ports.KafkaNodes` with a connection for each question, which may take as long as `limits` says, or `seconds`.

    Raises Refused at once when the client properties cannot be used.
    """

    def __init__(self, properties: Mapping[str, str], allowed: AllowedServers = ANYWHERE, search: tuple[str, ...] = (), *,
                 seconds: float | None = None) -> None:
        self._security = security(properties, allowed, search)
        self._seconds = seconds
        self._log = MetadataLog()
        self._views = WholeViews()

    async def api_versions(self, node: Address) -> NodeAnswer:
        """ApiVersions v3; a node too old for it (before Kafka 2.4) answers its API keys alone."""
        async with self._connected(node, NODE_SECONDS) as connection:
            found = await api_versions(node, connection)
        return NodeAnswer(
            api_keys=found.api_keys,
            zk_migration_ready=found.zk_migration_ready,
            features_epoch=found.epoch,
            metadata_version=found.finalized.get(METADATA_VERSION),
        )

    async def known_brokers(self, broker: Address) -> BrokerView:
        """Metadata v10 of no topic."""
        async with self._connected(broker, NODE_SECONDS) as connection:
            answer = await metadata(broker, connection, ())
        return BrokerView(answer.cluster_id or "", answer.controller_id, addresses(answer))

    async def metadata(self, broker: Address) -> WholeView:
        """Metadata v10 of all topics, internal ones too."""
        async with self._connected(broker, ANSWER_SECONDS) as connection:
            return await self._views.ask(broker, connection)

    async def quorum(self, voters: Iterable[Address]) -> Quorum:
        """Ask all voters at once. Raises Refused when one of them refuses and none leads."""
        questions = [asyncio.create_task(self._describe_quorum(voter)) for voter in voters]
        if not questions:
            raise Unreachable("no voter of the quorum is known")
        try:
            answers = await _answers(questions)
        finally:
            for question in questions:
                question.cancel()
        if answers:
            return max(answers, key=lambda quorum: quorum.leader_epoch)     # a leader cut off may not know it yet
        errors = [question.exception() for question in questions]
        refusals = [str(error) for error in errors if isinstance(error, Refused)]
        if refusals:
            raise Refused("; ".join(refusals))
        raise Unreachable("no voter leads the quorum: " + "; ".join(str(error) for error in errors))

    async def log(self, voters: Mapping[int, Address], cluster_id: str | None = None) -> LogImage:
        """Follow the metadata log; one call at a time. Interrupted by its time limit, the next call goes on."""
        quorum = await self.quorum(voters.values())
        leader = voters.get(quorum.leader_id)
        if leader is None:
            raise Unreachable(f"node {quorum.leader_id} leads the quorum, but is none of the voters "
                              f"{sorted(voters)} known here")
        async with self._connected(leader, ANSWER_SECONDS) as connection:
            return await self._log.follow(leader, connection, quorum.leader_epoch, cluster_id)

    async def examine(self, broker: Address, broker_id: int) -> BrokerExamination:
        """Settings, log directories and our rights."""
        async with self._connected(broker, ANSWER_SECONDS) as connection:
            return await examine_broker(broker, connection, broker_id)

    async def topic_ids(self, broker: Address, broker_id: int) -> TopicIds:
        """Those that it serves, and whether its logs have them."""
        async with self._connected(broker, ANSWER_SECONDS) as connection:
            return await topic_ids(broker, connection, broker_id, self._views)

    async def identity(self, node: Address, cluster_id: str, among: Iterable[int]) -> frozenset[int]:
        """Which of these brokers it is, by whose settings it shows."""
        async with self._connected(node, NODE_SECONDS) as connection:
            return await identify(node, connection, cluster_id, among)

    async def marker(self, broker: Address, broker_id: int) -> str:
        """Of all settings that a broker shows, the one that the start script added."""
        async with self._connected(broker, NODE_SECONDS) as connection:
            return await shown_marker(broker, connection, broker_id)

    async def settings(self, broker: Address, broker_id: int) -> Mapping[str, str]:
        """DescribeConfigs of the broker itself; sensitive values and nulls are absent."""
        async with self._connected(broker, NODE_SECONDS) as connection:
            configs = await broker_settings(broker, connection, broker_id)
        return {each.name: each.value for each in configs if each.value is not None and not each.is_sensitive}

    async def min_insync_replicas(self, broker: Address, topics: Iterable[str]) -> Mapping[str, int]:
        """DescribeConfigs of the topics, that one setting alone."""
        async with self._connected(broker, ANSWER_SECONDS) as connection:
            return await min_insync_replicas(broker, connection, topics)

    async def log_ends(self, broker: Address, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """ListOffsets v7, which a follower answers as the leader does."""
        async with self._connected(broker, NODE_SECONDS) as connection:
            found = await list_offsets(connection, partitions, READ_UNCOMMITTED, LATEST, DEBUGGER)
        return {each: end for each, end in found.items() if isinstance(end, int)}

    async def ask_controller(self, broker: Address) -> None:
        """ListPartitionReassignments v0, which changes nothing."""
        async with self._connected(broker, NODE_SECONDS) as connection:
            answer = await connection.ask(ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse)
        succeeded(broker, answer.error_code, "ask the controller", "Describe")

    async def set_quota(self, controller: Address, entity: Entity, key: str, value: float | None) -> None:
        """AlterClientQuotas v1."""
        async with self._connected(controller, ANSWER_SECONDS) as connection:
            await set_quota(controller, connection, entity, key, value)

    async def close(self) -> None:
        """Nothing stays open between two questions."""

    def _connected(self, node: Address, seconds: float) -> AbstractAsyncContextManager[Connection]:
        return connected(node, self._security, self._seconds or seconds)

    async def _describe_quorum(self, voter: Address) -> Quorum:
        async with self._connected(voter, ANSWER_SECONDS) as connection:
            answer = await connection.ask(DescribeQuorumRequest(topics=(
                TopicData(topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=i32(0)),)),
            )), DescribeQuorumResponse)
        succeeded(voter, answer.error_code, "describe the quorum", "Describe")
        if len(answer.topics) != 1 or len(answer.topics[0].partitions) != 1:
            raise Unreachable(f"{voter}: answered without the quorum")
        partition = answer.topics[0].partitions[0]
        succeeded(voter, partition.error_code, "describe the quorum", "Describe")
        return Quorum(
            leader_id=partition.leader_id,
            leader_epoch=partition.leader_epoch,
            high_watermark=partition.high_watermark,
            voters=_replicas(partition.current_voters),
            observers=_replicas(partition.observers),
        )


async def _answers(questions: list[asyncio.Task[Quorum]]) -> list[Quorum]:
    """What was answered: once there is one answer, the others get only a moment more."""
    waiting = set(questions)
    answers: list[Quorum] = []
    while waiting:
        done, waiting = await asyncio.wait(
            waiting, timeout=SECONDS_FOR_OTHER_VOTERS if answers else None, return_when=asyncio.FIRST_COMPLETED,
        )
        if not done:
            break
        answers += [question.result() for question in done if question.exception() is None]
    return answers


def _replicas(states: tuple[ReplicaState, ...]) -> dict[int, Replica]:
    return {state.replica_id: Replica(state.log_end_offset, state.last_fetch_timestamp) for state in states}


async def set_quota(controller: Address, connection: Connection, entity: Entity, key: str, value: float | None) -> None:
    """Set one key of one entity's quotas by the controller that leads (KIP-546). None removes it, and one that is not there
    is no error. `kafka-configs.sh` cannot: it asks for the quotas first, and no controller answers that.

    Raises Refused when the user lacks AlterConfigs on the cluster, else Unreachable, also for a controller that does not
    lead any more.
    """
    answer = await connection.ask(AlterClientQuotasRequest(entries=(EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        ops=(OpData(key=key, value=f64(value or 0.0), remove=value is None),),
    ),), validate_only=False), AlterClientQuotasResponse)
    if len(answer.entries) != 1:
        raise Unreachable(f"{controller}: answered without the quota")
    succeeded(controller, answer.entries[0].error_code, f"change the quota {key}", "AlterConfigs")


DISCARD = 9
"""The port of a stand-in: nobody listens there, and no controller connects to a broker that is fenced."""


async def register(controller: Address, brokers: Iterable[int], cluster_id: str, level: int,
                   seconds: float) -> Mapping[int, str]:
    """Register each of these as a migrating broker whose metadata.version is `level`; Kafka's errors for those refused.

    That is all that the migration driver asks of them (docs/rehearsal.md). They send no heartbeat, so they stay fenced: no
    connection is opened to them, and they lose no partition. Raises Unreachable and Refused.
    """
    refused, supported = {}, i16(level)
    async with connected(controller, security({}, ANYWHERE), seconds) as connection:
        for broker in brokers:
            answer = await connection.ask(BrokerRegistrationRequest(
                broker_id=BrokerId(broker),
                cluster_id=cluster_id,
                incarnation_id=uuid.uuid4(),
                listeners=(Listener(name=LISTENER, host="127.0.0.1", port=u16(DISCARD), security_protocol=i16(0)),),
                features=(Feature(name=METADATA_VERSION, min_supported_version=supported, max_supported_version=supported),),
                rack=None,
                is_migrating_zk_broker=True,
                log_dirs=(uuid.uuid4(),),
            ), BrokerRegistrationResponse)
            if answer.error_code is not ErrorCode.none:
                refused[broker] = answer.error_code.name.upper()
    return refused
