"""ListOffsets: where the logs of partitions begin and end, and what a broker says that does not tell."""

from collections.abc import Iterable

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from switchover.kafka.client.connection import Connection
from switchover.shared.grouped import grouped
from switchover.shared.partition import TopicPartition

READ_UNCOMMITTED, READ_COMMITTED = i8(0), i8(1)
LATEST, EARLIEST = i64(-1), i64(-2)
CONSUMER = BrokerId(-1)
DEBUGGER = BrokerId(-2)
"""A follower answers it as well as the leader, and each with the end of its own log
(ListOffsetsRequest.DEBUGGING_REPLICA_ID, ReplicaManager.fetchOffsetForTimestamp)."""

_WORDS = {
    ErrorCode.group_authorization_failed: "our user is not allowed to ask; it needs DESCRIBE on the group",
    ErrorCode.topic_authorization_failed: "our user is not allowed to ask; it needs DESCRIBE on the topic",
    ErrorCode.not_coordinator: "the group's coordinator has moved",
    ErrorCode.coordinator_load_in_progress: "the group's coordinator is still loading its groups",
    ErrorCode.coordinator_not_available: "the group has no coordinator: its partition of __consumer_offsets has no leader",
    ErrorCode.not_leader_or_follower: "the partition's leader has moved",
    ErrorCode.leader_not_available: "the partition has no leader",
    ErrorCode.offset_not_available: "the partition's new leader does not know its end yet",
}


async def list_offsets(broker: Connection, partitions: Iterable[TopicPartition], isolation: i8, timestamp: i64,
                       asking: BrokerId = CONSUMER) -> dict[TopicPartition, int | str]:
    """An offset of each, or why there is none; nothing is asked about no partition."""
    if not (topics := grouped(partitions)):
        return {}
    answer = await broker.ask(ListOffsetsRequest(
        replica_id=asking,
        isolation_level=isolation,
        topics=tuple(ListOffsetsTopic(name=TopicName(topic), partitions=tuple(
            ListOffsetsPartition(partition_index=i32(number), timestamp=timestamp) for number in numbers))
            for topic, numbers in topics.items()),
    ), ListOffsetsResponse)
    return {
        TopicPartition(topic.name, partition.partition_index):
            partition.offset if partition.error_code is ErrorCode.none else words(partition.error_code)
        for topic in answer.topics for partition in topic.partitions}


def words(code: ErrorCode) -> str:
    """What an error of Kafka's says, for people."""
    return f"{_WORDS[code]} ({code.name.upper()})" if code in _WORDS else code.name.upper()
