"""The partitions on their way, by the table PARTITION: what is asked for each, and where its answer brings it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from switchover.consumer import messages as m
from switchover.consumer.member.states import ASKS, HANDED, PARTITION, Cause, Phase, after
from switchover.consumer.messages import Partitions, Request
from switchover.coordination.mode import Mode
from switchover.coordination.world import Owner
from switchover.shared.partition import TopicPartition


class Requests:
    """What is to be asked, in its order. Numbers distinguish answers."""

    def __init__(self) -> None:
        self._waiting: list[Request] = []
        self._number = 0

    def ask(self, request: Request) -> None:
        self._waiting.append(request)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def taken(self) -> list[Request]:
        """All since the last time."""
        taken, self._waiting = self._waiting, []
        return taken


class Question:
    """One that is asked again and again, and once at a time: the number under way, 0 for none, and when it is due."""

    __slots__ = ("due", "number")

    def __init__(self) -> None:
        self.number, self.due = 0, 0.0

    def is_due(self, now: float) -> bool:
        return not self.number and self.due <= now

    def begun(self, requests: Requests) -> int:
        """Under way from now on, by this number."""
        self.number = requests.next_number()
        return self.number

    def ended(self, due: float) -> None:
        """Answered, or failed. `due`: when it may be asked again."""
        self.number, self.due = 0, due


AGAIN = 0.2
"""Seconds after which what failed is asked again."""
REFUSED_AGAIN = 1.0
"""Seconds after which a claim that another owner refused is tried again, unless the node is seen to go before."""
LINGER = 0.3
"""Seconds: longer than an old member takes from reading an offset to claiming (docs/facts/coordination.md#its-defects)."""
KAFKA_PATIENCE = 2.0
"""Seconds that a release in zookeeper mode waits for Kafka's answer to the commit: old members give up after six."""


@dataclass(slots=True)
class Holding:
    """A partition on its way. `request` is the number of what is under way for it, 0 for nothing."""

    thread: str
    phase: Phase = Phase.FREE
    request: int = 0
    due: float = 0.0                    # not before
    patience: float = 0.0               # until when Kafka's answer to the last commit is waited for
    in_zookeeper: bool = False          # the last position
    in_kafka: bool = False

    def turn(self, cause: Cause, due: float = 0.0) -> None:
        """Raises Impossible."""
        self.phase = after(PARTITION, self.phase, cause)
        self.due, self.request = due, 0


class Holdings(dict[TopicPartition, Holding]):
    """Every partition that is not Free. Times are of a monotonic clock."""

    def __init__(self, requests: Requests) -> None:
        super().__init__()
        self.wanted: Mapping[TopicPartition, str] = {}      # the thread of each partition that is to be ours
        self._requests = requests
        self._refused: dict[TopicPartition, float] = {}

    # --- as they are --------------------------------------------------------------------------------------------------

    def fetching(self) -> Partitions:
        return frozenset(partition for partition, holding in self.items() if holding.phase is Phase.FETCHING)

    def owned(self) -> Partitions:
        """Whose nodes are ours."""
        return frozenset(partition for partition, holding in self.items() if holding.phase is not Phase.CLAIMING)

    def are_settled(self) -> bool:
        return all(holding.phase is Phase.FETCHING for holding in self.values())

    def are_given_up(self) -> bool:
        return all(holding.phase is Phase.RELEASING for holding in self.values())

    def times(self) -> list[float]:
        """When something is due, or was."""
        return [due for holding in self.values() for due in (holding.due, holding.patience)] + list(self._refused.values())

    # --- what comes about ---------------------------------------------------------------------------------------------

    def answered(self, event: m.Answer, mode: Mode | None, now: float) -> None:
        """Move what the answered request was about. An answer that nothing waits for any more changes nothing."""
        about = {partition: holding for partition, holding in self.items() if holding.request == event.number}
        match event:
            case m.Claimed(_, held):
                for partition in about:
                    if partition in held:
                        self._turn(partition, Cause.CLAIMED)
                    else:
                        self._turn(partition, Cause.REFUSED)
                        self._refused[partition] = now + REFUSED_AGAIN
            case m.OffsetsRead(_, starts, behind):
                self._start({partition: starts[partition] for partition in about}, behind, now)
            case m.Stopped():
                for partition in about:
                    self._finish(partition, Cause.STOPPED, now)
            case m.CommittedToZooKeeper(_, gone):
                for partition, holding in about.items():
                    holding.in_zookeeper = partition not in gone
                self.lose(gone)
            case m.CommittedToKafka(_, fenced):
                for partition, holding in about.items():
                    holding.in_kafka = True
                    if fenced and mode is Mode.KAFKA:
                        self._turn(partition, Cause.FENCED)
            case m.Released():
                for partition in about:
                    self._turn(partition, Cause.RELEASED)

    def failed(self, number: int, now: float) -> None:
        for holding in self.values():
            if holding.request == number:
                holding.request, holding.due = 0, now + AGAIN

    def freed(self, partition: TopicPartition) -> None:
        """The owner node that refused a claim has gone."""
        self._refused.pop(partition, None)

    def compare(self, owners: Mapping[TopicPartition, Owner], session: int) -> None:
        """Lose what the owner nodes, as they were read, say of others. One that is being deleted may be gone already."""
        self.lose([partition for partition, holding in self.items()
                   if holding.phase not in (Phase.CLAIMING, Phase.RELEASING)
                   and owners.get(partition) != Owner(holding.thread, session)])

    def lose(self, partitions: Iterable[TopicPartition]) -> None:
        """Owner nodes that are not ours any more."""
        self._part_with([each for each in partitions if each in self and self[each].phase is not Phase.CLAIMING],
                        Cause.NODE_GONE)

    def give_up(self) -> None:
        """Give up all of them at once, uncommitted: others may have them."""
        self._part_with([each for each, holding in self.items() if holding.phase is not Phase.RELEASING], Cause.GIVEN_UP)

    def expire(self) -> None:
        """Every owner node has gone with the session."""
        self._part_with(tuple(self), Cause.EXPIRED)
        self._refused.clear()

    # --- what is to be done -------------------------------------------------------------------------------------------

    def take(self, partition: TopicPartition, thread: str) -> None:
        self[partition] = Holding(thread)
        self._turn(partition, Cause.WANTED)

    def follow(self, wanted: Mapping[TopicPartition, str], now: float) -> None:
        """Begin to take what is wanted and to release what is not."""
        self.wanted = wanted
        for partition, holding in self.items():
            if wanted.get(partition) != holding.thread and (
                    holding.phase is Phase.FETCHING or (holding.phase is Phase.CLAIMING and not holding.request)):
                self._turn(partition, Cause.UNWANTED)
        for partition, thread in wanted.items():
            if partition not in self and self._refused.get(partition, 0.0) <= now:
                self._refused.pop(partition, None)
                self.take(partition, thread)

    def go_on(self, mode: Mode | None, old: bool, now: float) -> None:
        """Ask for what each partition needs next, all of one phase at once. `old`: members without KIP-125 are there."""
        for partition, holding in self.items():
            if holding.phase is Phase.COMMITTING and self._is_committed(holding, mode, now):
                if old and mode is not Mode.KAFKA:
                    self._turn(partition, Cause.COMMITTED_WITH_OLD, now + LINGER)
                else:
                    self._turn(partition, Cause.COMMITTED)
            if holding.phase is Phase.LINGERING and holding.due <= now:
                self._turn(partition, Cause.LINGERED)
        ready: dict[Phase, list[TopicPartition]] = defaultdict(list)
        for partition, holding in self.items():
            if not holding.request and holding.due <= now:
                ready[holding.phase].append(partition)
        for phase, partitions in ready.items():
            if phase in ASKS:
                self._ask_for(phase, frozenset(partitions), guard=mode is Mode.KAFKA)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _turn(self, partition: TopicPartition, cause: Cause, due: float = 0.0) -> None:
        holding = self[partition]
        holding.turn(cause, due)
        if holding.phase is Phase.FREE:
            del self[partition]

    def _part_with(self, partitions: Iterable[TopicPartition], cause: Cause) -> None:
        """The application hears of what it has of them before they go."""
        handed = frozenset(each for each in partitions if self[each].phase in HANDED)
        if handed:
            self._requests.ask(m.Abandon(handed))
        for partition in partitions:
            self._turn(partition, cause)

    def _start(self, positions: Mapping[TopicPartition, int], behind: Partitions, now: float) -> None:
        """Fetch what is still wanted. Whoever comes next finds the position in both stores, also of what nobody fetched."""
        wanted = [each for each in positions if self.wanted.get(each) == self[each].thread]
        for partition in positions.keys() - wanted:
            if partition in behind:
                self._finish(partition, Cause.BEHIND, now)
            else:
                self._turn(partition, Cause.UNWANTED)
        if not wanted:
            return
        for partition in wanted:
            self._turn(partition, Cause.READ)
        self._requests.ask(m.Start({each: positions[each] for each in wanted},
                                 {each: self[each].thread for each in wanted}))
        if idle := behind.intersection(wanted):
            self._requests.ask(m.Commit(self._requests.next_number(), idle))

    def _finish(self, partition: TopicPartition, cause: Cause, now: float) -> None:
        self._turn(partition, cause)
        holding = self[partition]
        holding.in_zookeeper = holding.in_kafka = False
        holding.patience = now + KAFKA_PATIENCE

    def _is_committed(self, holding: Holding, mode: Mode | None, now: float) -> bool:
        """Old members read ZooKeeper alone, KafkaConsumers Kafka alone: the mode says who may come next."""
        patient = mode is Mode.KAFKA or now < holding.patience
        return holding.in_zookeeper and (holding.in_kafka or not patient)

    def _ask_for(self, phase: Phase, partitions: Partitions, *, guard: bool) -> None:
        number = self._requests.next_number()
        for partition in partitions:
            self[partition].request = number
        asked = ASKS[phase]
        if asked is m.Claim:
            self._requests.ask(m.Claim(number, {partition: self[partition].thread for partition in partitions}))
        elif asked is m.ReadOffsets:
            self._requests.ask(m.ReadOffsets(number, partitions))
        elif asked is m.Stop:
            self._requests.ask(m.Stop(number, partitions))
        elif asked is m.Commit:
            self._requests.ask(m.Commit(number, partitions))
        else:
            self._requests.ask(m.Release(number, partitions, guard=guard))
