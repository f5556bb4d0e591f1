"""Which topic ids a broker serves, and whether its logs have them: only a Fetch by id tells what they have
(docs/facts/kraft.md#topic-ids)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import FetchRequest, FetchResponse
from kio.schema.fetch.v13.request import FetchPartition, FetchTopic
from kio.static.primitive import i32, i32Timedelta, i64

from switchover.kafka.client.connection import NOT_AUTHORIZED, Connection, succeeded
from switchover.kafka.client.versions import api_keys
from switchover.kafka.client.whole_view import WholeViews
from switchover.kafka.node import TopicIds
from switchover.metadata.names import id_text
from switchover.network.addresses import Address
from switchover.shared.grouped import grouped

PARTITIONS = 2000                        # in one request, of some 30 bytes each
FETCH, BY_ID = 1, 13
BEYOND = i64(2**63 - 1)
"""No log ends there: one of the right id answers OFFSET_OUT_OF_RANGE, and nothing is read."""


async def topic_ids(node: Address, connection: Connection, broker_id: int, views: WholeViews) -> TopicIds:
    """Of the topics that the broker lists, and of the logs that it has. Raises Refused naming the right."""
    topics = (await views.ask(node, connection)).topics
    ids = {name: topic.topic_id for name, topic in topics.items() if topic.topic_id is not None}
    logs = [(name, partition.index) for name in ids for partition in topics[name].partitions
            if broker_id in partition.replicas]
    told: dict[tuple[str, int], ErrorCode] = {}
    if logs and (await api_keys(node, connection)).get(FETCH, 0) >= BY_ID:
        for start in range(0, len(logs), PARTITIONS):
            told |= await _fetched(connection, ids, logs[start:start + PARTITIONS])
    for (name, _), code in told.items():
        if code in NOT_AUTHORIZED:
            succeeded(node, code, f"read topic {name}", "Read", f"topic {name}")
    others = {name: index for (name, index), code in told.items() if code is ErrorCode.inconsistent_topic_id}
    silent = frozenset(name for name, index in logs
                       if told.get((name, index)) not in (ErrorCode.inconsistent_topic_id, ErrorCode.offset_out_of_range))
    return TopicIds({name: id_text(topic_id) for name, topic_id in ids.items()}, others, silent)


async def _fetched(connection: Connection, ids: Mapping[str, UUID],
                   logs: Sequence[tuple[str, int]]) -> dict[tuple[str, int], ErrorCode]:
    """What a fetch beyond the end of each of these logs, by the id that is served, comes to."""
    answer = await connection.ask(FetchRequest(
        max_wait=i32Timedelta.parse(timedelta()),
        min_bytes=i32(0),
        max_bytes=i32(0),
        topics=tuple(
            FetchTopic(topic_id=ids[name], partitions=tuple(
                FetchPartition(partition=i32(index), fetch_offset=BEYOND, partition_max_bytes=i32(0)) for index in indices))
            for name, indices in grouped(logs).items()),
        forgotten_topics_data=(),
    ), FetchResponse)
    names = {ids[name]: name for name, _ in logs}
    return {(names[topic.topic_id], partition.partition_index): partition.error_code
            for topic in answer.responses if topic.topic_id in names for partition in topic.partitions}
