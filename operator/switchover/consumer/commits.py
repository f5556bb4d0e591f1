"""The commits of one member, the application's and its own, in one order over both stores: that of ZooKeeper's thread.

There, and nowhere before, a commit reads the positions that it writes, and there it takes its turn with Kafka. So what was
read first cannot be written last, over what another commit was answered for meanwhile.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from switchover.consumer.fetching import Claim, Positions
from switchover.consumer.group import KafkaGroup
from switchover.consumer.messages import Partitions
from switchover.consumer.stores import Offsets, Stores
from switchover.consumer.znodes import Znodes
from switchover.shared.partition import TopicPartition

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
