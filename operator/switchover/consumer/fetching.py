"""One stream of records: fetched by hand-picked partitions, and handed out only while they are certain to be ours.

Its client is in no group, never commits, and is called by the application's thread alone. What the member decides comes as
orders: hand-out ends the moment that Stop or Abandon is ordered; the client and the application's callbacks follow when
the application calls next, which is also when it has done with what it was given before (as with confluent-kafka's own).
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as Place

from switchover.consumer.messages import Partitions
from switchover.partition import TopicPartition

SLICE = 0.05
"""Seconds after which a waiting poll looks for orders again."""


class Listener(Protocol):
    """What the application's thread is told: that it has called, before all else, and its callbacks."""

    def calling(self) -> None: ...
    def assigned(self, places: list[Place]) -> None: ...
    def revoked(self, places: list[Place]) -> None: ...
    def lost(self, places: list[Place]) -> None: ...


@dataclass(frozen=True, eq=False, slots=True)
class Started:
    """An order to fetch. It stands for what one claim gave: what an earlier one knows of a partition counts no more."""

    starts: Mapping[TopicPartition, int]


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
        self._done: dict[TopicPartition, tuple[Started, int]] = {}

    def begin(self, order: Started) -> None:
        """From where it starts."""
        with self._lock:
            self._done |= {partition: (order, offset) for partition, offset in order.starts.items()}

    def done(self, positions: Mapping[TopicPartition, tuple[Started, int]]) -> Partitions:
        """Move on; those of which this is news: what is known by an earlier order changes nothing."""
        with self._lock:
            current = {partition: told for partition, told in positions.items()
                       if partition in self._done and self._done[partition][0] is told[0]}
            self._done |= current
            return frozenset(current)

    def forget(self, partitions: Partitions) -> None:
        """Others may have them."""
        with self._lock:
            for partition in partitions:
                self._done.pop(partition, None)

    def of(self, partitions: Partitions) -> dict[TopicPartition, int]:
        with self._lock:
            return {each: self._done[each][1] for each in partitions if each in self._done}


class Stream:
    """`holds` tells whether the session is certain to live now."""

    def __init__(self, client: Consumer, listener: Listener, positions: Positions, holds: Callable[[], bool]) -> None:
        self._client, self._listener, self._positions, self._holds = client, listener, positions, holds
        self._lock = threading.Lock()
        self._orders: deque[Started | _Ended] = deque()
        self._allowed: dict[TopicPartition, Started] = {}
        self._fetching: dict[TopicPartition, Started] = {}
        self._next: dict[TopicPartition, int] = {}
        self._kept: Message | None = None
        self._calling = False
        self._called = time.monotonic()
        self.records = 0

    # --- for the member -----------------------------------------------------------------------------------------------

    def start(self, starts: Mapping[TopicPartition, int]) -> None:
        order = Started(starts)
        self._positions.begin(order)
        with self._lock:
            self._allowed |= dict.fromkeys(starts, order)
            self._orders.append(order)

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
                for partition in ours:
                    self._allowed.pop(partition, None)
                self._orders.append(_Ended(ours, stopped))
            return bool(ours)

    def silent(self, now: float) -> float:
        """Seconds for which the application has not called, though there is something for it; 0 while it is calling."""
        with self._lock:
            busy = bool(self._orders or self._fetching)
        return now - self._called if busy and not self._calling else 0.0

    # --- for the application --------------------------------------------------------------------------------------------

    def poll(self, timeout: float, *, done: bool = True) -> Message | None:
        """The next record or error, None when there is none in time. `done`: with what was handed out before."""
        deadline = time.monotonic() + timeout
        self._calling = True
        try:
            while True:
                if done:
                    self._listener.calling()
                    self.follow_orders()
                left = deadline - time.monotonic()
                message = self._take(min(max(left, 0.0), SLICE))
                if message is not None or left <= 0:
                    return message
        finally:
            self._called, self._calling = time.monotonic(), False

    def follow_orders(self) -> None:
        """What was handed out is done with; begin and end what was ordered, callbacks included."""
        self._called = time.monotonic()
        if self._positions.automatic:
            self.commit(self._next)
        while True:
            with self._lock:
                order = self._orders.popleft() if self._orders else None
            if order is None:
                return
            if isinstance(order, Started):
                self._start(order)
            else:
                self._finish(order)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> Partitions:
        """May be committed from now on; those of the partitions that are still this stream's."""
        return self._positions.done({partition: (self._fetching[partition], offset)
                                     for partition, offset in offsets.items() if partition in self._fetching})

    def _start(self, order: Started) -> None:
        places = [Place(*partition, offset) for partition, offset in sorted(order.starts.items())]
        with self._lock:
            self._next |= order.starts
            self._fetching |= dict.fromkeys(order.starts, order)
        try:
            self._listener.assigned(places)
        finally:
            self._client.incremental_assign(places)

    def _finish(self, order: _Ended) -> None:
        ours = [partition for partition in sorted(order.partitions) if partition in self._fetching]
        places = [Place(*partition, self._next[partition]) for partition in ours]
        try:
            if places:
                (self._listener.lost if order.stopped is None else self._listener.revoked)(places)
        finally:
            if places:
                self._client.incremental_unassign(places)
            with self._lock:
                for partition in ours:
                    del self._next[partition], self._fetching[partition]
            if order.stopped is not None:
                order.stopped()

    def _take(self, seconds: float) -> Message | None:
        if self._kept is None:
            self._kept = self._client.poll(seconds)
            if self._kept is None:
                return None
            if self._kept.error() is not None:
                error, self._kept = self._kept, None
                return error
        elif not self._holds():
            time.sleep(seconds)                         # the session may come back, and the record is still ours then
        message = self._kept
        partition, offset = place(message)
        with self._lock:
            order = self._allowed.get(partition)
            if order is None or order is not self._fetching.get(partition):
                self._kept = None
                return None
            if not self._holds():
                return None
            self._kept = None
            self._next[partition] = offset + 1
            self.records += 1
            return message

    def position(self) -> dict[TopicPartition, int]:
        """The next offset of each partition that is fetched."""
        return dict(self._next)

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
