"""Metadata as a broker answers it: brokers, topics with their ids, and every partition of a cluster."""

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, repeat
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import FetchRequest, FetchResponse
from kio.schema.fetch.v13.request import FetchPartition, FetchTopic
from kio.schema.metadata.v10 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v10.request import MetadataRequestTopic
from kio.schema.metadata.v10.response import MetadataResponsePartition, MetadataResponseTopic
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from switchover.answers import memory
from switchover.answers.errors import Malformed, NoMetadata
from switchover.kafka.client import bounds
from switchover.kafka.client.connection import NOT_AUTHORIZED, Connection, api_keys, succeeded
from switchover.kafka.node import Partition, Topic, TopicIds, WholeView
from switchover.metadata.names import id_text
from switchover.network.addresses import Address
from switchover.shared.grouped import grouped


async def metadata(node: Address, connection: Connection, topics: Iterable[str] | None) -> MetadataResponse:
    """Of these topics, or of all for None, with their ids (Kafka 2.8 or newer); nothing is created.

    Raises NoMetadata for a broker that knows of no broker, not even of itself: it has just started, and knows no topic
    either.
    """
    return knowing(node, await connection.ask(request(topics), MetadataResponse))


def request(topics: Iterable[str] | None) -> MetadataRequest:
    """For `metadata`."""
    return MetadataRequest(
        topics=None if topics is None else tuple(
            MetadataRequestTopic(topic_id=None, name=TopicName(topic)) for topic in topics),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def knowing(node: Address, answer: MetadataResponse) -> MetadataResponse:
    """The answer, as `metadata` gives it."""
    if not answer.brokers:
        raise NoMetadata(f"{node}: has just started, and has no metadata yet")
    return answer


def addresses(answer: MetadataResponse) -> dict[int, Address]:
    """Where each broker listens, by its id. Raises Malformed."""
    return {each.node_id: advertised_address(f"broker {each.node_id}", each.host, each.port) for each in answer.brokers}


def advertised_address(who: str, host: str, port: int) -> Address:
    """Where somebody listens, as a broker says. Raises Malformed, which names who."""
    try:
        return Address(host, port)
    except ValueError as error:
        raise Malformed(f"{who} is said to listen at {error}") from None


NO_ELEMENTS = b"\x01"                     # an array, as flexible versions write it
PARTITION = 350
"""Bytes that a partition takes with its own bytes (docs/measurements.md#the-largest-cluster)."""


@dataclass(frozen=True, slots=True)
class _Read:
    name: str
    partitions: Mapping[bytes, Partition]       # by their bytes, in their order
    rest: bytes                                 # all these, and what follows them
    topic: Topic


_NOTHING = _Read("", {}, b"", Topic(()))


class WholeViews:
    """Every partition of one cluster. One in the same bytes as before is not read again, whichever broker sends it: brokers
    are asked in every pass, and of 200,000 partitions a pass changes few."""

    def __init__(self) -> None:
        self._topics: Mapping[bytes, _Read] = {}        # by the bytes before their partitions: name and id
        self._partitions = 0
        self._held: memory.Held | None = None

    async def ask(self, broker: Address, connection: Connection) -> WholeView:
        """Metadata of all topics. Raises NoMetadata as `metadata` does, and Refused where they take too much memory."""
        answer = await connection.exchange(request(None))
        return await connection.work(answer, lambda: self.read(broker, answer))

    def read(self, broker: Address, data: bytes) -> WholeView:
        """The view in the bytes of its answer. Raises as `ask` does, and Unreadable."""
        begin = bounds.Measured(MetadataResponse.__header_schema__, data).end
        array = bounds.place(MetadataResponse, "topics", data, begin)
        count, at = bounds.elements(MetadataResponse, data, array)
        found: dict[bytes, _Read] = {}
        partitions = 0
        for _ in range(count):
            inner = bounds.place(MetadataResponseTopic, "partitions", data, at)
            number, first = bounds.elements(MetadataResponseTopic, data, inner)
            partitions += number
            self._hold(broker, max(partitions, self._partitions))
            head = data[at:inner]
            found[head], at = self._topic(head, data, number, first)
        answer, _ = bounds.read(MetadataResponse, data[begin:array] + NO_ELEMENTS + data[at:])
        view = WholeView(answer.cluster_id or "", answer.controller_id, addresses(knowing(broker, answer)),
                         {read.name: read.topic for read in found.values()})
        self._topics, self._partitions = found, partitions
        self._hold(broker, partitions)
        return view

    def _topic(self, head: bytes, data: bytes, number: int, at: int) -> tuple[_Read, int]:
        """The topic with so many partitions from `at` on, and where it ends."""
        before = self._topics.get(head, _NOTHING)
        if before.rest and number == len(before.partitions) and data.startswith(before.rest, at):
            return before, at + len(before.rest)
        begin = at
        own: list[bytes] = []
        new: dict[bytes, bounds.Measured[MetadataResponsePartition]] = {}
        # What stands next stood next before, in most answers: then nothing is measured.
        for _, known in zip(range(number), chain(before.partitions, repeat(b"")), strict=False):
            if not known or not data.startswith(known, at):
                measured = bounds.Measured(MetadataResponsePartition, data, at)
                known = data[at:measured.end]
                if known not in before.partitions:
                    new[known] = measured
            own.append(known)
            at += len(known)
        end = bounds.rest(MetadataResponseTopic, "partitions", data, at)
        topic, _ = bounds.read(MetadataResponseTopic, head + NO_ELEMENTS + data[at:end])
        read = {each: _partition(topic.name, new[each].made()) if each in new else before.partitions[each] for each in own}
        return _Read(topic.name, read, data[begin:end], Topic(tuple(read.values()), topic.topic_id)), end

    def _hold(self, broker: Address, partitions: int) -> None:
        if self._held is None:
            self._held = memory.ANSWERS.lasting(f"the cluster of {broker}")
            weakref.finalize(self, self._held.give_back)
        self._held.resize(partitions * PARTITION, f"a view of {partitions:,} partitions from broker {broker}")


def _partition(topic: str, read: MetadataResponsePartition) -> Partition:
    replicas, isr = tuple(read.replica_nodes), tuple(read.isr_nodes)
    return Partition(topic, read.partition_index, read.leader_id, replicas, replicas if isr == replicas else isr)


PARTITIONS = 2000                        # in one request, of some 30 bytes each
FETCH, BY_ID = 1, 13
BEYOND = i64(2**63 - 1)
"""No log ends there: one of the right id answers OFFSET_OUT_OF_RANGE, and nothing is read."""


async def topic_ids(node: Address, connection: Connection, broker_id: int, views: WholeViews) -> TopicIds:
    """Which ids a broker serves, and whether its logs have them, which only a Fetch by id shows
    (docs/facts/kraft.md#topic-ids). Raises Refused naming the right."""
    topics = (await views.ask(node, connection)).topics
    ids = {name: topic.topic_id for name, topic in topics.items() if topic.topic_id is not None}
    logs = [(name, partition.index) for name in ids for partition in topics[name].partitions
            if broker_id in partition.replicas]
    codes: dict[tuple[str, int], ErrorCode] = {}
    if logs and (await api_keys(node, connection)).get(FETCH, 0) >= BY_ID:
        for start in range(0, len(logs), PARTITIONS):
            codes |= await _fetched(connection, ids, logs[start:start + PARTITIONS])
    for (name, _), code in codes.items():
        if code in NOT_AUTHORIZED:
            succeeded(node, code, f"read topic {name}", "Read", f"topic {name}")
    others = {name: index for (name, index), code in codes.items() if code is ErrorCode.inconsistent_topic_id}
    silent = frozenset(name for name, index in logs
                       if codes.get((name, index)) not in (ErrorCode.inconsistent_topic_id, ErrorCode.offset_out_of_range))
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
