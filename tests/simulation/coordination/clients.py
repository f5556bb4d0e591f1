"""What is in a member's process: the clients of both protocols, as librdkafka and Java have them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count

from kio.schema.errors import ErrorCode

from simulation.coordination.coordinator import FINE, HEARTBEAT, NONE, Answer, Coordinator, Partitions, Who
from switchover.kafka.group import LEFT
from switchover.shared.partition import TopicPartition

AGAIN, PATIENCE = 1.0, 3.0
"""Seconds: after which a process that was refused is started again, and that a request waits for its answer."""

AT_ONCE = frozenset({ErrorCode.rebalance_in_progress, ErrorCode.not_coordinator})
"""What a JoinGroup is sent again for, and nothing is lost."""


@dataclass(eq=False)
class Client:
    """A classic member as its own process sees it. The process says `released` once it has given back what `on_revoke` asks
    for; `on_assign` is told all that it has then.

    An eager one gives everything back and joins. A cooperative one joins, and once more after it gave something back.
    """

    who: Who
    coordinator: Coordinator
    on_assign: Callable[[Partitions], None]
    on_revoke: Callable[[Partitions], None]
    on_lost: Callable[[], None]
    plain: bool = False                         # a KafkaConsumer's own
    epoch: int = -1                             # that it follows; -1: not in the group
    owned: Partitions = NONE
    silent: bool = False                        # stopped, or cut off
    stopped: bool = False                       # the process hears nothing either
    gone: bool = False                          # left or dead
    refused: ErrorCode = FINE
    _heard: float = 0.0                         # of the coordinator
    _joining: bool = False
    _asked: Partitions = NONE
    _then: Callable[[], None] | None = None     # once it has given back what it is asked for

    def __post_init__(self) -> None:
        self.loop = self.coordinator.loop
        self._number = count()
        self._last = -1                         # the request whose answer counts

    @property
    def name(self) -> str:
        return self.who.member_id

    @property
    def reaches(self) -> bool:
        return not self.silent and self.coordinator.is_up

    # --- what the process does ----------------------------------------------------------------------------------------

    def enter(self) -> None:
        """It joins, and heartbeats from then on."""
        if self.plain:
            self.coordinator.expected.add(self.name)
        self.loop.after(self.loop.between(0.0, HEARTBEAT), self._beat)
        self._join()

    def released(self) -> None:
        """The process has given back what it was asked for."""
        if (then := self._then) is not None and not self.gone:
            self.owned, self._asked, self._then = self.owned - self._asked, NONE, None
            then()

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool | None:
        """None: no answer. False: fenced. A cut takes its heartbeats alone; of more than that the process knows."""
        if not self.coordinator.is_up:
            return None
        return self.epoch >= 0 and self.coordinator.commit(self.name, self.epoch, offsets) is FINE

    def leave(self) -> None:
        self.crash()
        if self.reaches:
            self._say_goodbye()

    def crash(self) -> None:
        self.gone = True
        self.coordinator.expected.discard(self.name)

    # --- its client ---------------------------------------------------------------------------------------------------

    def _say_goodbye(self) -> None:
        if not self.who.instance_id:            # the coordinator keeps a static one's place until its session ends
            self.coordinator.leave(self.name)

    def _join(self) -> None:
        if self.gone:
            return
        self._last, self._joining = next(self._number), True
        if self.reaches:
            self._heard = self.loop.now
            self.coordinator.join(self.who, self.owned, partial(self._joined, self._last))
        else:
            self.loop.after(0.5, partial(self._join_again, self._last))

    def _join_again(self, number: int) -> None:
        if number == self._last:
            self._join()

    def _joined(self, number: int, answer: Answer) -> None:
        if self.gone or number != self._last:
            return
        if answer.code is not FINE:
            if self.owned and answer.code not in AT_ONCE:
                self._lose()
            self.refused = answer.code
            self.loop.after(0.1 if answer.code in AT_ONCE else AGAIN, partial(self._join_again, number))
            return
        self._joining, self.refused, self.epoch = False, FINE, answer.epoch
        gone = self.owned - answer.assigned
        if answer.assigned - self.owned or not gone:
            self.owned |= answer.assigned
            self.on_assign(self.owned)
        if gone:
            self._ask_back(gone, self._join)

    def _ask_back(self, partitions: Partitions, then: Callable[[], None]) -> None:
        self._asked, self._then = partitions, then
        self.on_revoke(partitions)

    def _lose(self) -> None:
        """Others may have what it had."""
        self.epoch, self.owned, self._asked, self._then = -1, NONE, NONE, None
        self.on_lost()

    def _beat(self) -> None:
        if self.gone:
            return
        self.loop.after(0.1 if self.silent else HEARTBEAT, self._beat)
        if not self.reaches:
            late = self.loop.now - self._heard > self.coordinator.classic_session
            if late and self.silent and not self.stopped and self.epoch >= 0:
                self._lose()                    # the client counts for itself
                self._join()
            return
        code = self.coordinator.heartbeat(self.name, self.epoch)
        if self._then is not None:              # it sits in its callback and hears nothing
            return
        if code is ErrorCode.unknown_member_id or (code is ErrorCode.illegal_generation and not self._joining):
            if self.epoch >= 0:
                self._lose()
                self._join()
            return
        self._heard = self.loop.now
        if code is ErrorCode.rebalance_in_progress and not self._joining:
            if self.who.is_cooperative:
                self._join()
            else:
                self._ask_back(self.owned, self._join)


@dataclass(eq=False)
class ConsumerClient(Client):
    """A member of the consumer protocol: one heartbeat on its way at a time, each of which says what it owns."""

    epoch: int = 0
    _again: bool = False
    _sent: float | None = None

    def enter(self) -> None:
        self.loop.after(self.loop.between(0.0, 0.3), self._beat)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool | None:
        return super().commit(offsets) if self.epoch > 0 or not self.coordinator.is_up else False

    def _say_goodbye(self) -> None:
        self.coordinator.consumer_heartbeat(self.who, LEFT if self.who.instance_id else -1, NONE)

    def _beat(self) -> None:
        if not self.gone:
            self.loop.after(self.coordinator.heartbeat_interval, self._beat)
            self._send()

    def _send(self) -> None:
        """Now, or once the one that is on its way is answered."""
        if self.gone:
            return
        if self._sent is not None and self.loop.now - self._sent < PATIENCE:
            self._again = True
            return
        self._sent, self._again, self._last = self.loop.now, False, next(self._number)
        if not self.silent:
            self.loop.after(self.loop.between(0.001, 0.02), partial(self._arrive, self._last, self.epoch, self.owned))

    def _arrive(self, number: int, epoch: int, owned: Partitions) -> None:
        """At the coordinator, which does not know whether the process still lives."""
        if self.coordinator.is_up:
            answer = self.coordinator.consumer_heartbeat(self.who, epoch, owned)
            self.loop.after(self.loop.between(0.001, 0.02), partial(self._hear, number, answer))

    def _hear(self, number: int, answer: Answer) -> None:
        if self.gone or self.silent or number != self._last:
            return
        self._sent = None
        if answer.code is not FINE:
            if self.epoch > 0:
                self._lose()
            self.epoch = 0
            if answer.code in (ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch):
                self._send()
            else:                               # it ends by that
                self.refused = answer.code
                self.loop.after(AGAIN, self._send)
            return
        self.epoch, self.refused = answer.epoch, FINE
        if self._then is None and answer.assigned != self.owned:
            if gone := self.owned - answer.assigned:
                self._ask_back(gone, partial(self._take_on, answer.assigned))
            else:
                self._take_on(answer.assigned)
        elif self._again:
            self._send()

    def _take_on(self, assigned: Partitions) -> None:
        """And the coordinator hears of it at once."""
        self.owned = assigned
        self.on_assign(assigned)
        self._send()
