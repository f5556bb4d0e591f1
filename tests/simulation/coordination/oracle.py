"""What must hold at every moment of a simulated group: Z1 to Z9 of docs/testing.md#invariants, that an answered commit is
never undone (Z12), and that no member waits for what is over (Z13); Z10 and Z11 are asked in the end.

A delivery is an interval: every member keeps up with its partitions' ends, so what it was handed is where the end was.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from simulation.coordination.loop import Loop
from switchover.shared.partition import TopicPartition


class Kind(StrEnum):
    """The four kinds of docs/facts/coordination.md."""

    OLD = "old"
    PLAIN = "plain"
    ENABLED = "enabled"
    KAFKA = "kafka"


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass(slots=True)
class Delivery:
    """An open interval."""

    member: str
    kind: Kind
    offset: int


@dataclass(slots=True)
class Passed:
    """How far a partition was delivered, by whom last, and whether they let go of it in order."""

    offset: int = 0
    member: str = ""
    kind: Kind | None = None
    in_order: bool = True


RATE = 20
"""Records a second of each partition."""
UNTOLD = 0.05
"""Seconds in which a watch is told at the latest."""


@dataclass
class Oracle:
    """Judges deliveries, commits and decisions as they happen."""

    loop: Loop
    open: dict[TopicPartition, Delivery] = field(default_factory=dict)
    passed: dict[TopicPartition, Passed] = field(default_factory=dict)
    born: dict[TopicPartition, float] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    """By applications themselves, and answered."""
    answers: int = 0
    duplicates: int = 0
    hand_overs: int = 0
    excused: int = 0
    unguarded: bool = False
    """A migration-enabled member died: until another saw it, what it held had no guard
    (docs/facts/coordination.md#znodes)."""

    by_hand: dict[TopicPartition, float] = field(default_factory=dict)
    """When a person deleted an owner node."""

    too_early: bool = False
    """A KafkaConsumer was on its way into the group when kafka mode ended (P9 of docs/facts/coordination.md#kip-125)."""

    def end_of(self, partition: TopicPartition) -> int:
        """The log's end now."""
        return int((self.loop.now - self.born[partition]) * RATE)

    def begin(self, partition: TopicPartition, member: str, kind: Kind, offset: int) -> None:
        """`member` is handed the partition from `offset` on."""
        other = self.open.get(partition)
        if other is not None:
            if self._is_beyond_us(other.kind, kind) or self.just_deleted(partition, self.loop.now):
                self.excused += 1
                return
            self._broken("Z1", f"{member} ({kind}) begins {partition}, which {other.member} ({other.kind}) has")
        passed = self.passed.setdefault(partition, Passed())
        if offset > passed.offset:
            self._broken("Z5", f"{member} begins {partition} at {offset}, delivered was {passed.offset}")
        if offset < passed.offset:
            if passed.in_order and not self._is_beyond_us(passed.kind, kind):
                self._broken("Z6", f"{member} ({kind}) begins {partition} at {offset}, delivered in order was "
                                   f"{passed.offset} by {passed.kind}")
            self.duplicates += passed.offset - offset
        self.hand_overs += 1
        self.open[partition] = Delivery(member, kind, offset)

    def just_deleted(self, partition: TopicPartition, now: float) -> bool:
        """A person took the owner node away, of which nobody has told its owner by then."""
        return self.by_hand.get(partition, -1.0) > now - UNTOLD

    def _is_beyond_us(self, *kinds: Kind | None) -> bool:
        """Two old members among themselves, and a KafkaConsumer that no guard and no veto could know of."""
        if Kind.KAFKA in kinds:
            return self.too_early or (Kind.OLD in kinds and self.unguarded)
        return set(kinds) == {Kind.OLD}

    def end(self, partition: TopicPartition, member: str) -> int:
        """`member` is handed nothing more of the partition; its position."""
        delivery = self.open.get(partition)
        if delivery is None or delivery.member != member:
            return 0                    # excused in the beginning
        del self.open[partition]
        position = max(delivery.offset, self.end_of(partition))
        passed = self.passed[partition]
        if position >= passed.offset:
            passed.offset, passed.in_order, passed.member, passed.kind = position, False, member, delivery.kind
        return position

    def let_go(self, partition: TopicPartition, member: str) -> None:
        """`member` gave the partition back, as whoever has committed first: the next one repeats nothing."""
        passed = self.passed.get(partition)
        if passed is not None and passed.member == member:
            passed.in_order = True

    def position(self, partition: TopicPartition, member: str) -> int | None:
        """Up to where an open delivery of `member` has come."""
        delivery = self.open.get(partition)
        return max(delivery.offset, self.end_of(partition)) if delivery is not None and delivery.member == member else None

    def answered(self, offsets: Mapping[TopicPartition, int]) -> None:
        """An application knows that its commit is in both stores. It never goes back in these stories."""
        self.answers += 1
        for partition, offset in offsets.items():
            self.committed[partition] = max(offset, self.committed.get(partition, 0))

    def stored(self, where: str, offsets: Mapping[TopicPartition, int], member: str) -> None:
        """A store has taken these from `member`."""
        for partition, offset in offsets.items():
            before = self.committed.get(partition, 0)
            self.check("Z12", offset >= before,
                       f"{member} commits {offset} of {partition} to {where}, and {before} was answered before")

    def _broken(self, invariant: str, words: str) -> None:
        raise Broken(f"{invariant} at {self.loop.now:.3f} s: {words}")

    def check(self, invariant: str, right: bool, words: str) -> None:
        if not right:
            self._broken(invariant, words)
