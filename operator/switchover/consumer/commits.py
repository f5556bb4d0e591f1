"""The commits of one member, the application's and its own, in one order over the two stores of a group's offsets
(docs/facts/coordination.md#which-store-counts).

That order is the one of ZooKeeper's thread. There, and nowhere before, a commit reads the positions that it writes, and
there it takes its turn with Kafka. So what was read first cannot be written last, over what another commit was answered for
meanwhile. ZooKeeper is written first, where our owner node is checked: Kafka takes any offset of its member, also of one
that stood still while others went on.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from switchover.consumer.fetching import Claim, Positions
from switchover.consumer.group import KafkaGroup
from switchover.consumer.messages import Partitions
from switchover.consumer.settings import Store
from switchover.consumer.znodes import Znodes
from switchover.shared.partition import TopicPartition

Offsets = Mapping[TopicPartition, int]
NOTHING = -1
"""What a store has of a partition that it does not have."""


class Stored(NamedTuple):
    """What a store says of one partition: the next offset to read, None for none."""

    zookeeper: int | None
    kafka: int | None

    @property
    def position(self) -> int | None:
        """Where to go on: the later one, since whoever consumed last may have committed to one store alone."""
        return max((offset for offset in self if offset is not None), default=None)


class Stores:
    """`used`: those that are read and written; the other has whatever it has. What a store has is not written again."""

    def __init__(self, used: frozenset[Store]) -> None:
        self._has: dict[Store, dict[TopicPartition, int]] = {each: {} for each in used}
        self._unsure: dict[Store, set[TopicPartition]] = {each: set() for each in used}     # written, and not answered

    def in_zookeeper(self, znodes: Znodes, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """What ZooKeeper has, None for nothing and for a store that is not used. Raises kazoo's errors."""
        found = znodes.offsets(partitions) if Store.ZOOKEEPER in self._has else dict.fromkeys(partitions)
        self._note(Store.ZOOKEEPER, found)
        return found

    def read(self, group: KafkaGroup, in_zookeeper: Mapping[TopicPartition, int | None]) -> tuple[Offsets, Partitions]:
        """The position of each partition, and which of them are not in every store. Raises KafkaException."""
        in_kafka = group.offsets(in_zookeeper) if Store.KAFKA in self._has else {}
        self._note(Store.KAFKA, in_kafka)
        positions = {}
        for partition, offset in in_zookeeper.items():
            position = Stored(offset, in_kafka.get(partition)).position
            positions[partition] = group.first(partition) if position is None else position
        behind = (partition for partition, position in positions.items()
                  if any(has.get(partition) != position for has in self._has.values()))
        return positions, frozenset(behind)

    def to_zookeeper(self, znodes: Znodes, offsets: Offsets) -> Partitions:
        """Write; those whose owner node is not ours. Raises kazoo's errors."""
        if Store.ZOOKEEPER not in self._has:
            return frozenset()
        fresh = self._fresh(Store.ZOOKEEPER, offsets)
        gone = znodes.commit(fresh)
        self._note(Store.ZOOKEEPER, {each: offset for each, offset in fresh.items() if each not in gone})
        return gone

    def to_kafka(self, group: KafkaGroup, offsets: Offsets) -> bool:
        """Write; False where Kafka's group does not take commits of ours any more. Raises KafkaException."""
        if Store.KAFKA not in self._has:
            return True
        fresh = self._fresh(Store.KAFKA, offsets)
        taken = group.commit(fresh)
        if taken:
            self._note(Store.KAFKA, fresh)
        return taken

    def apart(self, partitions: Partitions) -> int:
        """Records by which the two stores differ."""
        if len(self._has) < len(Store):
            return 0
        one, other = self._has.values()
        return sum(abs(max(one.get(each, 0), 0) - max(other.get(each, 0), 0)) for each in partitions)

    def _note(self, store: Store, found: Mapping[TopicPartition, int | None]) -> None:
        if store in self._has:
            self._has[store] |= {each: NOTHING if offset is None else offset for each, offset in found.items()}
            self._unsure[store].difference_update(found)

    def _fresh(self, store: Store, offsets: Offsets) -> dict[TopicPartition, int]:
        """What it may not have: an answer may be lost on its way, and what was written is there all the same."""
        has, unsure = self._has[store], self._unsure[store]
        fresh = {each: offset for each, offset in offsets.items() if each in unsure or has.get(each) != offset}
        unsure.update(fresh)
        return fresh


T = TypeVar("T")

Claims = Mapping[TopicPartition, Claim]
InKafka = Callable[[KafkaGroup], Offsets | None]
"""Writes to Kafka; what it has of these claims now, None where the group is fenced off. Raises KafkaException, Uncertain."""


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """What came of a commit: the positions that it read, those of them whose owner node is not ours, and Kafka's turn."""

    offsets: Offsets
    gone: Partitions
    in_kafka: T

    def lost(self, claims: Claims) -> Partitions:
        """What was to be committed and is not ours any more."""
        return frozenset(claims.keys() - self.offsets.keys()) | self.gone


class Uncertain(RuntimeError):
    """Others may own what is to be committed, and Kafka would take it all the same."""


class Commits:
    """Of the positions that may be committed into the stores that are used. `holds`: whether the session with ZooKeeper is
    certain to live."""

    def __init__(self, positions: Positions, stores: Stores, holds: Callable[[], bool]) -> None:
        self._positions, self._stores, self._holds = positions, stores, holds

    def write(self, znodes: Znodes, claims: Claims, submit: Callable[[InKafka], T]) -> Written[T]:
        """To be called on ZooKeeper's thread; `submit` keeps the order of its calls. Raises kazoo's errors.

        Kafka takes any offset of its member, also of a process that stood still while others went on: so that is asked once
        more when its turn has come.
        """
        offsets = self._positions.under(claims)
        gone = self._stores.to_zookeeper(znodes, offsets)
        self._positions.forget(gone)

        def in_kafka(group: KafkaGroup) -> Offsets | None:
            if not self._holds():
                raise Uncertain("not committed to Kafka: ZooKeeper has not answered for so long that others may own it")
            ours = self._positions.under(claims)        # what was lost, or released without waiting for Kafka, is not
            held = {partition: offset for partition, offset in offsets.items() if partition in ours}
            return held if self._stores.to_kafka(group, held) else None

        return Written(offsets, gone, submit(in_kafka))
