"""What brokers tell of every partition of a cluster. A partition in the same bytes as before is not read again, whichever
broker tells it: brokers are asked in every pass, and of 200,000 partitions a pass changes few."""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, repeat

from kio.schema.metadata.v10 import MetadataResponse
from kio.schema.metadata.v10.response import MetadataResponsePartition, MetadataResponseTopic

from switchover.answers import memory
from switchover.kafka.client import bounds
from switchover.kafka.client.connection import Connection
from switchover.kafka.client.metadata import addresses, knowing, request
from switchover.kafka.node import Partition, Topic, WholeView
from switchover.network.addresses import Address

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
    """Of one cluster."""

    def __init__(self) -> None:
        self._topics: Mapping[bytes, _Read] = {}        # by the bytes before their partitions: name and id
        self._partitions = 0
        self._held: memory.Held | None = None

    async def ask(self, broker: Address, connection: Connection) -> WholeView:
        """Metadata of all topics. Raises Untold as `metadata` does, and Refused where they take too much memory."""
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
        self._held.resize(partitions * PARTITION, f"{partitions:,} partitions, of which broker {broker} tells,")


def _partition(topic: str, read: MetadataResponsePartition) -> Partition:
    replicas, isr = tuple(read.replica_nodes), tuple(read.isr_nodes)
    return Partition(topic, read.partition_index, read.leader_id, replicas, replicas if isr == replicas else isr)
