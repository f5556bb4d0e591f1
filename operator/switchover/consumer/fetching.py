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
from switchover.shared.partition import TopicPartition

SLICE = 0.05
"""Seconds after which a waiting poll looks for orders again."""
AHEAD = 500
"""Records that are taken from the client at once: a call for each of them costs more than all the rest."""


class Listener(Protocol):
    """What is called on the application's thread: that it has called, before all else, and its callbacks."""

    def calling(self) -> None: ...
    def assigned(self, places: list[Place]) -> None: ...
    def revoked(self, places: list[Place]) -> None: ...
    def lost(self, places: list[Place]) -> None: ...


@dataclass(eq=False, slots=True)
class Claim:
    """A partition from one claim of its owner node to the end of that; what an earlier one knows of it counts no more."""

    next: int                                           # after what the application is done with
    done: int                                           # may be committed


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
        self.notes: list[Callable[[], None]] = []           # of each stream: bring its claims up to date
        self._lock = threading.Lock()
        self._claims: dict[TopicPartition, Claim] = {}

    def begin(self, starts: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Claim]:
        """New claims, in the place of those before."""
        claims = {partition: Claim(offset, offset) for partition, offset in starts.items()}
        with self._lock:
            self._claims |= claims
        return claims

    def move(self, partition: TopicPartition, claim: Claim, offset: int, *, back: bool = True) -> bool:
        """False, and nothing is moved, where that is not the partition's claim any more. `back`: also to an earlier
        offset."""
        with self._lock:
            if self._claims.get(partition) is not claim:
                return False
            claim.done = offset if back else max(claim.done, offset)
            return True

    def pass_on(self, claim: Claim, offset: int) -> None:
        """What is before `offset` is done with. The application may have committed further."""
        if self.automatic:
            with self._lock:
                claim.done = max(claim.done, offset)

    def forget(self, partitions: Partitions) -> None:
        """Others may have them."""
        with self._lock:
            for partition in partitions:
                self._claims.pop(partition, None)

    def forget_all(self) -> None:
        with self._lock:
            self._claims.clear()

    def claims(self, partitions: Partitions) -> dict[TopicPartition, Claim]:
        """Those of the partitions that have one."""
        with self._lock:
            return {each: self._claims[each] for each in partitions if each in self._claims}

    def under(self, claims: Mapping[TopicPartition, Claim]) -> dict[TopicPartition, int]:
        """What may be committed now under these claims, of those that still are their partitions'."""
        for note in self.notes:
            note()
        with self._lock:
            return {partition: claim.done for partition, claim in claims.items() if self._claims.get(partition) is claim}


class Stream:
    """`holds` says whether the session is certain to live now, by the monotonic clock; it is the membership's.

    Before each hand-out that is asked first, and then whether there are orders: what was lost with a session is among them
    before another one is believed in. It needs no lock: an order of this instant finds the records handed out, as one that
    comes a moment later does. Of Stop the application hears in its next call, when it is done with them; and what Abandon
    takes is never committed.
    """

    def __init__(self, client: Consumer, listener: Listener, positions: Positions) -> None:
        self._client, self._listener, self._positions = client, listener, positions
        self.holds: Callable[[float], bool] = lambda _: False
        self._lock = threading.Lock()
        self._orders: deque[_Started | _Ended] = deque()
        self._allowed: frozenset[TopicPartition] = frozenset()      # begun or to begin, and not ordered to end
        self._fetching: dict[TopicPartition, Claim] = {}
        self._here: list[Message] = []      # from the client, by the claims of now: counted, done with, handed out, to come
        self._counted = self._done = self._handed = 0               # where each of these ends in it
        self._records = 0                                           # counted
        self._calling = False               # this and the next without a lock: the application writes, the member reads
        self._called = time.monotonic()
        positions.notes.append(self._note)

    # --- for the member -----------------------------------------------------------------------------------------------

    def start(self, starts: Mapping[TopicPartition, int]) -> None:
        claims = self._positions.begin(starts)
        with self._lock:
            self._allowed |= claims.keys()
            self._orders.append(_Started(claims))

    def stop(self, partitions: Partitions, stopped: Callable[[], None]) -> bool:
        """`stopped` is called when the application has done with them; False, and it is not, where it has none of them."""
        return self._end(partitions, stopped)

    def abandon(self, partitions: Partitions | None = None) -> None:
        """None: all."""
        with self._lock:
            all_ = self._allowed | self._fetching.keys()
        self._end(all_ if partitions is None else partitions, None)

    def _end(self, partitions: Partitions, stopped: Callable[[], None] | None) -> bool:
        with self._lock:
            ours = partitions & (self._allowed | self._fetching.keys())
            if stopped is None:
                self._positions.forget(ours)
            if ours:
                self._allowed -= ours
                self._orders.append(_Ended(ours, stopped))
            return bool(ours)

    def silent(self, now: float) -> float:
        """Seconds for which the application has not called, though there is something for it; 0 while it is calling."""
        with self._lock:
            busy = bool(self._orders or self._fetching)
        return now - self._called if busy and not self._calling else 0.0

    # --- for the application --------------------------------------------------------------------------------------------

    def poll(self, timeout: float) -> Message | None:
        """The next record or error, None when there is none in `timeout` seconds; negative: waits for ever."""
        if (message := self.at_once()) is not None:
            return message
        found = self.consume(1, timeout)
        return found[0] if found else None

    def at_once(self) -> Message | None:
        """The next record or error as `consume` gives it, if it is here and nothing is to be done before it."""
        at, now = self._handed, time.monotonic()
        if at == len(self._here) or not self.holds(now) or self._orders:
            return None
        self._done, self._handed, self._called = at, at + 1, now
        return self._here[at]

    def consume(self, count: int, timeout: float) -> list[Message]:
        """Up to so many records and errors, fewer when there are no more in `timeout` seconds; negative: waits for ever.

        By this call the application says that it has done with what it was given before.
        """
        if count < 1:                                   # nothing would be waited for
            raise ValueError(f"num_messages must be 1 or more, and is {count}")
        deadline = float("inf") if timeout < 0 else time.monotonic() + timeout
        self._calling = True
        try:
            while True:
                self._listener.calling()
                self.follow_orders()
                self._keep(self._here[self._handed:])
                while len(self._here) < count and not self._orders and self._gather(count, deadline):
                    pass
                found = self._here[:count] if self.holds(time.monotonic()) and not self._orders else []
                if self._orders:                        # by them some of what is here may not be ours any more
                    continue
                if found or time.monotonic() >= deadline:
                    self._handed = len(found)
                    return found
                if self._here:
                    time.sleep(SLICE)                   # the session may come back, and the records are still ours then
        finally:
            self._called, self._calling = time.monotonic(), False

    def follow_orders(self) -> None:
        """What was handed out is done with; begin and end what was ordered, callbacks included."""
        self._called = time.monotonic()
        self._done = self._handed
        while self._orders:
            order = self._orders.popleft()
            if isinstance(order, _Started):
                self._start(order)
            else:
                self._finish(order)

    def commit(self, offsets: Mapping[TopicPartition, int], *, back: bool = True) -> Mapping[TopicPartition, Claim]:
        """May be committed from now on; the claims of those of the partitions that are still this stream's. `back`: also an
        offset before one that was committed."""
        with self._lock:
            self._count()                               # else it would come after this
            claims = {each: self._fetching[each] for each in offsets.keys() & self._fetching.keys()}
        return {each: claim for each, claim in claims.items()
                if self._positions.move(each, claim, offsets[each], back=back)}

    def _start(self, order: _Started) -> None:
        places = [Place(*partition, claim.next) for partition, claim in sorted(order.claims.items())]
        with self._lock:
            self._fetching |= order.claims
        try:
            self._listener.assigned(places)
        finally:
            self._client.incremental_assign(places)

    def _finish(self, order: _Ended) -> None:
        self._note()
        ours = [partition for partition in sorted(order.partitions) if partition in self._fetching]
        places = [Place(*partition, self._fetching[partition].next) for partition in ours]
        try:
            if places:
                (self._listener.lost if order.stopped is None else self._listener.revoked)(places)
        finally:
            if places:
                self._client.incremental_unassign(places)
            with self._lock:
                for partition in ours:
                    del self._fetching[partition]
            self._keep([each for each in self._here[self._handed:]
                        if each.error() is not None or place(each)[0] in self._fetching])
            if order.stopped is not None:
                order.stopped()

    def _gather(self, count: int, deadline: float) -> bool:
        """Take from the client what it has, wait a moment where that is less than `count`; False when the time is over."""
        self._here.extend(self._client.consume(max(count, AHEAD), 0))
        left = deadline - time.monotonic()
        if len(self._here) < count and left > 0:
            self._here.extend(self._client.consume(count - len(self._here), min(left, SLICE)))
        return left > 0

    def _keep(self, messages: list[Message]) -> None:
        """No others of those that are here: what was handed out is done with."""
        with self._lock:
            self._count()
            self._here, self._counted, self._done, self._handed = messages, 0, 0, 0

    def _note(self) -> None:
        with self._lock:
            self._count()

    def _count(self) -> None:
        """Bring the claims up to what is done with; seldom, because each record costs. The lock is held."""
        upto = self._done
        records = recorded(self._here[self._counted:upto])
        self._counted, self._records = upto, self._records + len(records)
        for partition, offset in after(records).items():
            claim = self._fetching[partition]
            claim.next = offset
            self._positions.pass_on(claim, offset)

    @property
    def records(self) -> int:
        """Handed out."""
        with self._lock:
            return self._records + len(recorded(self._here[self._counted:self._handed]))

    def position(self) -> dict[TopicPartition, int]:
        """The next offset of each partition that is fetched."""
        with self._lock:
            self._count()
            begun = {partition: claim.next for partition, claim in self._fetching.items()}
            return begun | after(recorded(self._here[self._counted:self._handed]))

    def close(self) -> None:
        """Close the client; nothing is called back."""
        self._client.close()


def recorded(messages: Iterable[Message]) -> list[Message]:
    """Those that are no errors."""
    return [message for message in messages if message.error() is None]


def after(records: Iterable[Message]) -> dict[TopicPartition, int]:
    """Where each partition goes on after them."""
    last = {(record.topic(), record.partition()): record for record in records}
    return {partition: offset + 1 for partition, offset in map(place, last.values())}


def place(message: Message) -> tuple[TopicPartition, int]:
    """Where a record stands."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return TopicPartition(topic, partition), offset
