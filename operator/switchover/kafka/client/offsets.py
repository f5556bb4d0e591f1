"""How far consumer groups are (`lag.window.GroupOffsets`), asked in batches over Kafka's protocol.

Ordinary clients cannot do it: librdkafka's AdminClient asks for one group a call and ends the process when a coordinator has
moved (its issues 4605 and 5397), and a consumer for each group is dear (docs/measurements.md, Lag, has both).
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.offset_fetch.v8 import OffsetFetchRequest, OffsetFetchResponse
from kio.schema.offset_fetch.v8.request import OffsetFetchRequestGroup
from kio.schema.types import GroupId

from switchover.kafka.client.brokers import Brokers, Question, Together, batches
from switchover.kafka.client.connection import Connection
from switchover.kafka.client.coordinator import find_coordinators
from switchover.kafka.client.metadata import addresses, metadata
from switchover.kafka.client.partition_logs import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    error_text,
    list_offsets,
    unreadable,
)
from switchover.kafka.limits import LOOK_SECONDS, ROUND_SECONDS
from switchover.lag.group import TopicPartition
from switchover.lag.samples import NONE
from switchover.lag.unreadable import Stretch
from switchover.lag.window import Asked, Offsets, Reading, Sweep
from switchover.network.addresses import Address
from switchover.network.credentials import Access

GROUPS = 100                # in one request: the answer carries every commit of each
PARTITIONS = 5_000          # in one request; the answer has some 30 bytes for each

NOT_ANSWERED = "the broker left it out of its answer"


class WireOffsets:
    """The brokers of one Kafka cluster (3.0 or newer).

    A sweep is four rounds, each of which may take `seconds`: who coordinates, the commits of all groups, who leads, and the
    ends and log starts of all their partitions, once each however many groups read them; and a fifth, of `LOOK_SECONDS`,
    where it is to look for records. In a round all brokers are asked at the same time.
    Nothing is asked twice: what a moved coordinator or leader refuses has failed in this sweep, and the next one asks again
    who it is. Connections are used until they are `keep` seconds old. Raises Refused for an access that cannot be used.
    """

    def __init__(self, access: Access, *, seconds: float = ROUND_SECONDS, keep: float = 0.0) -> None:
        self._brokers = Brokers(access, seconds, keep)
        self._swept: Together[Mapping[str, Asked], Sweep] = Together(self._sweep_all)

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        """Read them all. Raises Unreachable when no bootstrap server answers, Refused when one does not accept us."""
        return await self._swept.get(asked)

    async def _sweep_all(self, questions: Sequence[Question[Mapping[str, Asked], Sweep]]) -> None:
        """In one sweep what many ask; in another whoever asks for a group of it in another way."""
        together: dict[str, Asked] = {}
        otherwise = []
        first = []
        for question in questions:
            if any(together.get(group, asked) != asked for group, asked in question.asked.items()):
                otherwise.append(question)
            else:
                together.update(question.asked)
                first.append(question)
        sweep = await self._sweep(together)
        for question in first:
            question.tell(replace(sweep, readings={group: sweep.readings[group] for group in question.asked}))
        if otherwise:
            await self._sweep_all(otherwise)

    async def _sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        found = _Sweep(asked)
        await self._brokers.any(found.find_coordinators)
        await self._brokers.each(found.coordinators, found.fetch_commits, found.groups_failed)
        await self._brokers.any(found.find_leaders)
        await self._brokers.each(found.leaders, found.list_ends, found.partitions_failed)
        await self._brokers.each(found.looks(), found.look, lambda *_: None, min(self._brokers.seconds, LOOK_SECONDS))
        return found.result()

    async def close(self) -> None:
        """Close what stays open between two sweeps."""
        self._brokers.close()


class _End(NamedTuple):
    """A partition's ends with the time at which they were asked for, in ms, and its log start."""

    high_at: int
    high: int
    stable_at: int
    stable: int
    start: int


class _Look(NamedTuple):
    """A stretch of a partition that a group cannot read, to be prolonged."""

    group: str
    partition: TopicPartition
    stretch: Stretch


class _Sweep:
    """What the rounds of one sweep have found so far."""

    def __init__(self, asked: Mapping[str, Asked]) -> None:
        self._asked = asked
        self.coordinators: dict[Address, list[str]] = {}
        self._failed: dict[str, str] = {}
        self._commits: dict[str, dict[TopicPartition, int | str]] = {}
        self.leaders: dict[Address, list[TopicPartition]] = {}
        self._numbers: dict[str, int] = {}
        self._ids: dict[str, UUID] = {}
        self._unread: dict[TopicPartition | str, str] = {}
        self._ends: dict[TopicPartition, _End] = {}
        self._unreadable: dict[str, dict[TopicPartition, Stretch]] = defaultdict(dict)

    # --- commits ----------------------------------------------------------------------------------------------------------

    async def find_coordinators(self, node: Address, broker: Connection) -> None:
        found = await find_coordinators(node, broker, sorted(self._asked))
        self.coordinators, self._failed = found.groups, {group: error_text(code) for group, code in found.codes.items()}

    async def fetch_commits(self, _: Address, coordinator: Connection, groups: Sequence[str]) -> None:
        for batch in batches(groups, GROUPS):
            wanted = tuple(OffsetFetchRequestGroup(group_id=GroupId(group), topics=None) for group in batch)
            answer = await coordinator.ask(OffsetFetchRequest(groups=wanted), OffsetFetchResponse)
            for group in answer.groups:
                if group.error_code is not ErrorCode.none:
                    self._failed[group.group_id] = error_text(group.error_code)
                    continue
                self._commits[group.group_id] = {
                    TopicPartition(topic.name, partition.partition_index):
                        _answered(partition.error_code, partition.committed_offset)
                    for topic in group.topics for partition in topic.partitions}

    def groups_failed(self, groups: Iterable[str], why: Exception) -> None:
        self._failed |= {group: str(why) for group in groups if group not in self._commits}

    # --- ends -------------------------------------------------------------------------------------------------------------

    async def find_leaders(self, node: Address, broker: Connection) -> None:
        self.leaders = defaultdict(list)
        topics = sorted({topic for group in self._commits for topic in self._topics(group)})
        if not topics:
            return
        answer = await metadata(node, broker, topics)
        brokers = addresses(answer)
        for topic in answer.topics:
            if topic.error_code is ErrorCode.unknown_topic_or_partition:
                continue
            if topic.error_code is not ErrorCode.none:
                self._unread[topic.name] = error_text(topic.error_code)
                continue
            self._numbers[topic.name] = len(topic.partitions)
            if topic.topic_id is not None:
                self._ids[topic.name] = topic.topic_id
            for partition in topic.partitions:
                named = TopicPartition(topic.name, partition.partition_index)
                if partition.leader_id in brokers:
                    self.leaders[brokers[partition.leader_id]].append(named)
                else:
                    self._unread[named] = error_text(ErrorCode.leader_not_available)

    async def list_ends(self, _: Address, leader: Connection, partitions: Sequence[TopicPartition]) -> None:
        stable = {topic for group in self._commits if self._asked[group].read_committed for topic in self._topics(group)}
        for batch in batches(partitions, PARTITIONS):
            stable_at = _now()
            stables = await list_offsets(leader, [each for each in batch if each.topic in stable], READ_COMMITTED, LATEST)
            high_at = _now()
            highs = await list_offsets(leader, batch, READ_UNCOMMITTED, LATEST)
            starts = await list_offsets(leader, batch, READ_UNCOMMITTED, EARLIEST)
            for each in batch:
                high, start = highs.get(each, NOT_ANSWERED), starts.get(each, NOT_ANSWERED)
                end = stables.get(each, NOT_ANSWERED) if each.topic in stable else high
                if isinstance(high, int) and isinstance(start, int) and isinstance(end, int):
                    self._ends[each] = _End(high_at, high, stable_at, end, start)
                else:
                    self._unread[each] = next(found for found in (end, high, start) if isinstance(found, str))

    def partitions_failed(self, partitions: Iterable[TopicPartition], why: Exception) -> None:
        self._unread |= {each: str(why) for each in partitions if each not in self._ends and each not in self._unread}

    # --- records ----------------------------------------------------------------------------------------------------------

    def looks(self) -> dict[Address, list[_Look]]:
        """In which logs to look, by their leaders."""
        leaders = {each: leader for leader, partitions in self.leaders.items() for each in partitions}
        found: dict[Address, list[_Look]] = defaultdict(list)
        for group in self._commits:
            for each, stretch in self._asked[group].looks.items():
                if each in self._ends:
                    found[leaders[each]].append(_Look(group, each, stretch))
        return found

    async def look(self, _: Address, leader: Connection, looks: Sequence[_Look]) -> None:
        """Prolong each stretch up to the next record, or to the end that was read before. What was seen in time counts."""
        for group, each, stretch in looks:
            read_committed, found = self._asked[group].read_committed, self._ends[each]
            end = found.stable if read_committed else found.high
            async for offset in unreadable(leader, each, max(stretch.end, found.start), end, read_committed=read_committed):
                self._unreadable[group][each] = stretch._replace(end=offset)

    # --- both -------------------------------------------------------------------------------------------------------------

    def result(self) -> Sweep:
        """A reading of every group."""
        readings = {group: self._reading(group) for group in self._commits}
        missing = self._asked.keys() - readings.keys()
        return Sweep(readings | {group: Reading(why=self._failed.get(group, NOT_ANSWERED)) for group in missing},
                     self._numbers, self._ids)

    def _topics(self, group: str) -> frozenset[str]:
        return self._asked[group].topics | {each.topic for each in self._commits[group]}

    def _reading(self, group: str) -> Reading:
        commits, read_committed = self._commits[group], self._asked[group].read_committed
        offsets: dict[TopicPartition, Offsets] = {}
        failed: dict[TopicPartition | str, str] = {}
        for topic in self._topics(group):
            if topic in self._unread:
                failed[topic] = self._unread[topic]
            for number in range(self._numbers.get(topic, 0)):
                each = TopicPartition(topic, number)
                committed, end = commits.get(each, NONE), self._ends.get(each)
                if isinstance(committed, str) or end is None:
                    failed[each] = committed if isinstance(committed, str) else self._unread.get(each, NOT_ANSWERED)
                    continue
                at, last = (end.stable_at, end.stable) if read_committed else (end.high_at, end.high)
                offsets[each] = Offsets(at, committed, last, end.start, end.high)
        return Reading(offsets, frozenset(each.topic for each in commits), failed, unreadable=self._unreadable[group])


def _answered(code: ErrorCode, offset: int) -> int | str:
    return offset if code is ErrorCode.none else error_text(code)


def _now() -> int:
    return time.time_ns() // 1_000_000
