"""One stream of records: fetched by hand-picked partitions, and handed out only while they are certain to be ours.

Its client is in no group, never commits, and is called by the application's thread alone. What the member decides comes as
orders: hand-out ends the moment that Stop or Abandon is ordered; the client and the application's callbacks follow when
the application calls next, which is also when it has done with what it was given before (as with confluent-kafka's own).
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as Place

from switchover.consumer.messages import Partitions
from switchover.partition import TopicPartition

SLICE = 0.05
"""Seconds after which a waiting poll looks for orders again."""
AHEAD = 500
"""Records that are taken from the client at once: a call for each of them costs more than all the rest."""


class Listener(Protocol):
    """What the application's thread is told: that it has called, before all else, and its callbacks."""

    def calling(self) -> None: ...
    def assigned(self, places: list[Place]) -> None: ...
    def revoked(self, places: list[Place]) -> None: ...
    def lost(self, places: list[Place]) -> None: ...


@dataclass(eq=False, slots=True)
class Claim:
    """A partition from one claim of its owner node to the end of that; what an earlier one knows of it counts no more."""

    next: int                                           # after the last record that was handed out
    done: int                                           # may be committed
    ended: bool = False                                 # nothing of it is handed out


@dataclass(frozen=True, eq=False, slots=True)
class _Started:
    claims: Mapping[TopicPartition, Claim]


@dataclass(frozen=True, eq=False, slots=True)
class _Ended:
    partitions: Partitions
    stopped: Callable[[], None] | None                  # None: others may have them already


class Positions:
    """What may be committed of each partition, for all streams; any thread may ask.

    Automatically: past what was handed out before the application's last call. Otherwise: what it committed itself.
    """

    def __init__(self, automatic: bool) -> None:
        self.automatic = automatic
        self._lock = threading.Lock()
        self._claims: dict[TopicPartition, Claim] = {}

    def begin(self, starts: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Claim]:
        """New claims, in the place of those before."""
        claims = {partition: Claim(offset, offset) for partition, offset in starts.items()}
        with self._lock:
            self._claims |= claims
        return claims

    def move(self, partition: TopicPartition, claim: Claim, offset: int) -> bool:
        """False, and nothing is moved, where that is not the partition's claim any more."""
        with self._lock:
            if self._claims.get(partition) is not claim:
                return False
            claim.done = offset
            return True

    def forget(self, partitions: Partitions) -> None:
        """Others may have them."""
        with self._lock:
            for partition in partitions:
                self._claims.pop(partition, None)

    def of(self, partitions: Partitions) -> dict[TopicPartition, int]:
        with self._lock:
            return {each: self._claims[each].done for each in partitions if each in self._claims}


class Stream:
    """`holds` tells whether the session is certain to live now."""

    def __init__(self, client: Consumer, listener: Listener, positions: Positions, holds: Callable[[], bool]) -> None:
        self._client, self._listener, self._positions, self._holds = client, listener, positions, holds
        self._lock = threading.Lock()
        self._orders: deque[_Started | _Ended] = deque()
        self._allowed: dict[TopicPartition, Claim] = {}
        self._fetching: dict[TopicPartition, Claim] = {}
        self._here: deque[tuple[Message, Claim | None, int]] = deque()      # taken from the client, and not handed out
        self._handed: Iterable[Claim] = ()                                  # of which the last call gave something
        self._calling = False
        self._called = time.monotonic()
        self.records = 0

    # --- for the member -----------------------------------------------------------------------------------------------

    def start(self, starts: Mapping[TopicPartition, int]) -> None:
        claims = self._positions.begin(starts)
        with self._lock:
            self._allowed |= claims
            self._orders.append(_Started(claims))

    def stop(self, partitions: Partitions, stopped: Callable[[], None]) -> bool:
        """`stopped` is called when the application has done with them; False, and it is not, where it has none of them."""
        return self._end(partitions, stopped)

    def abandon(self, partitions: Partitions | None = None) -> None:
        """None: all."""
        with self._lock:
            all_ = frozenset(self._allowed.keys() | self._fetching.keys())
        self._end(all_ if partitions is None else partitions, None)

    def _end(self, partitions: Partitions, stopped: Callable[[], None] | None) -> bool:
        with self._lock:
            ours = partitions & (self._allowed.keys() | self._fetching.keys())
            if stopped is None:
                self._positions.forget(ours)
            if ours:
                for claim in [self._allowed.pop(partition) for partition in ours & self._allowed.keys()]:
                    claim.ended = True
                self._orders.append(_Ended(ours, stopped))
            return bool(ours)

    def silent(self, now: float) -> float:
        """Seconds for which the application has not called, though there is something for it; 0 while it is calling."""
        with self._lock:
            busy = bool(self._orders or self._fetching)
        return now - self._called if busy and not self._calling else 0.0

    # --- for the application --------------------------------------------------------------------------------------------

    def poll(self, timeout: float) -> Message | None:
        """The next record or error, None when there is none in time."""
        if (message := self.at_once()) is not None:
            return message
        found = self.consume(1, timeout)
        return found[0] if found else None

    def at_once(self) -> Message | None:
        """The next record or error as `consume` gives it, if it is here and nothing is to be done before it."""
        with self._lock:
            if self._orders or not self._here or not self._holds():
                return None
            self._done()
            message, claim, after = self._here.popleft()    # of no claim that has ended: its end would be among the orders
            if claim is not None:
                claim.next = after
                self._handed = (claim,)
                self.records += 1
            self._called = time.monotonic()
            return message

    def consume(self, count: int, timeout: float) -> list[Message]:
        """Up to so many records and errors, fewer when there are no more in time, or when partitions begin or end meanwhile.

        By this call the application says that it has done with what it was given before.
        """
        deadline = time.monotonic() + timeout
        self._calling = True
        try:
            while True:
                self._listener.calling()
                self.follow_orders()
                while len(self._here) < count and not self._orders and self._gather(count, deadline):
                    pass
                if (found := self._hand_out(count)) or time.monotonic() >= deadline:
                    return found
                if self._here:
                    time.sleep(SLICE)                   # the session may come back, and the records are still ours then
        finally:
            self._called, self._calling = time.monotonic(), False

    def follow_orders(self) -> None:
        """What was handed out is done with; begin and end what was ordered, callbacks included."""
        self._called = time.monotonic()
        self._done()
        while self._orders:
            with self._lock:
                order = self._orders.popleft()
            if isinstance(order, _Started):
                self._start(order)
            else:
                self._finish(order)

    def _done(self) -> None:
        """With what the last call gave."""
        if self._positions.automatic:
            for claim in self._handed:
                claim.done = claim.next

    def commit(self, offsets: Mapping[TopicPartition, int]) -> Partitions:
        """May be committed from now on; those of the partitions that are still this stream's."""
        claims = self._fetching
        return frozenset(each for each, offset in offsets.items()
                         if each in claims and self._positions.move(each, claims[each], offset))

    def _start(self, order: _Started) -> None:
        places = [Place(*partition, claim.next) for partition, claim in sorted(order.claims.items())]
        with self._lock:
            self._fetching |= order.claims
        try:
            self._listener.assigned(places)
        finally:
            self._client.incremental_assign(places)

    def _finish(self, order: _Ended) -> None:
        ours = [partition for partition in sorted(order.partitions) if partition in self._fetching]
        places = [Place(*partition, self._fetching[partition].next) for partition in ours]
        try:
            if places:
                (self._listener.lost if order.stopped is None else self._listener.revoked)(places)
        finally:
            if places:
                self._client.incremental_unassign(places)
            self._here = deque(each for each in self._here if each[1] is None or not each[1].ended)
            with self._lock:
                for partition in ours:
                    del self._fetching[partition]
            if order.stopped is not None:
                order.stopped()

    def _gather(self, count: int, deadline: float) -> bool:
        """Take from the client what it has, wait a moment where that is less than `count`; False when the time is over."""
        self._keep(self._client.consume(max(count, AHEAD), 0))
        left = deadline - time.monotonic()
        if len(self._here) < count and left > 0:
            self._keep(self._client.consume(count - len(self._here), min(left, SLICE)))
        return left > 0

    def _keep(self, messages: Iterable[Message]) -> None:
        """Each with the claim by which it was fetched, and where that goes on after it; errors are of no claim."""
        for message in messages:
            if message.error() is not None:
                self._here.append((message, None, 0))
                continue
            partition, offset = place(message)
            if (claim := self._fetching.get(partition)) is not None:
                self._here.append((message, claim, offset + 1))

    def _hand_out(self, count: int) -> list[Message]:
        """Errors, and records of claims that have not ended, while the session is certain to live."""
        with self._lock:
            if not self._here or not self._holds():
                return []
            taken = [self._here.popleft() for _ in range(min(count, len(self._here)))]
            found = [each for each in taken if each[1] is None or not each[1].ended]
            self._handed = last = {claim: after for _, claim, after in found if claim is not None}
            for claim, after in last.items():
                claim.next = after
            self.records += sum(claim is not None for _, claim, _ in found)
            return [message for message, _, _ in found]

    def position(self) -> dict[TopicPartition, int]:
        """The next offset of each partition that is fetched."""
        return {partition: claim.next for partition, claim in self._fetching.items()}

    def close(self) -> None:
        """Close the client; nothing is told."""
        self._client.close()


def place(message: Message) -> tuple[TopicPartition, int]:
    """Where a record stands."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return TopicPartition(topic, partition), offset
