"""The members that are not ours: the old Java consumer as docs/facts/coordination.md#the-old-consumers-rebalance has
it, and a plain KafkaConsumer."""

from collections.abc import Callable

from simulation.coordination.clients import Client
from simulation.coordination.coordinator import Coordinator, Who
from simulation.coordination.loop import Loop
from simulation.coordination.oracle import Kind, Oracle
from simulation.coordination.zookeeper import Session, ZooKeeper
from switchover.coordination.assignment import Strategy, Text
from switchover.coordination.registration import Registration
from switchover.coordination.world import Owner
from switchover.shared.partition import TopicPartition

ATTEMPTS, BACKOFF = 4, 2.0


class Old:
    """ZookeeperConsumerConnector: lets go of everything, claims all or nothing, gives up after four attempts. `commits`:
    every two seconds, else in order alone."""

    kind = Kind.OLD

    def __init__(self, name: str, loop: Loop, zookeeper: ZooKeeper, oracle: Oracle, topics: tuple[str, ...], *,
                 commits: bool = False) -> None:
        self.name, self.loop, self.zookeeper, self.oracle, self.topics = name, loop, zookeeper, oracle, topics
        self.alive = True
        self.parked = False
        self._session: Session = zookeeper.connect(lambda: None)
        self._mine: dict[TopicPartition, Owner] = {}        # owner nodes that it believes to own
        self._fetching: set[TopicPartition] = set()
        self._busy = self._again = False
        zookeeper.watches.append(self._watched)
        self._when_up(lambda: zookeeper.register(name, Registration(dict.fromkeys(topics, 1)), self._session.number))
        self._trigger()
        if commits:
            self._commit_now_and_then()

    def _commit_now_and_then(self) -> None:
        if self.alive:
            self.loop.after(2.0, self._commit_now_and_then)
            for partition in self._fetching:
                if (position := self.oracle.position(partition, self.name)) is not None:
                    self.zookeeper.offsets[partition] = max(position, self.zookeeper.offsets.get(partition, 0))

    def _when_up(self, do: Callable[[], None]) -> None:
        """A request waits for the server: the old client tries for ever."""
        def there() -> None:
            if not self.alive:
                return
            if self.zookeeper.is_up:
                do()
            else:
                self.loop.after(self.zookeeper.down_until - self.loop.now + 0.1, there)
        self.loop.after(self.loop.between(0.001, 0.02), there)

    def _watched(self, what: str, _: TopicPartition | None) -> None:
        if self.alive and what in ("ids", "topics"):
            self.loop.after(self.loop.between(0.001, 0.05), self._trigger)

    def _trigger(self) -> None:
        if not self.alive:
            return
        if self._busy:
            self._again = True
            return
        self._busy, self._again = True, False
        self._attempt(1)

    def _attempt(self, number: int) -> None:
        """Stop and commit, delete every owner node by its path, compute, read offsets, then claim."""
        self._stop(in_order=True)
        def release() -> None:
            for partition in self._mine:
                self.zookeeper.delete_owner(partition)      # whatever sits there (F6)
            self._mine = {}
            self._when_up(compute)
        def compute() -> None:
            intended = self.zookeeper.world().intended(Strategy.RANGE, Text.SINCE_1_0)
            share = {each: thread for each, thread in intended.items() if thread.startswith(f"{self.name}-")}
            offsets = {each: self.zookeeper.offsets.get(each, 0) for each in share}     # D1: read before it is claimed
            self._when_up(lambda: claim(share, offsets))
        def claim(share: dict[TopicPartition, str], offsets: dict[TopicPartition, int]) -> None:
            mine = {each: Owner(thread, self._session.number) for each, thread in share.items()
                    if self.zookeeper.create_owner(each, Owner(thread, self._session.number))}
            if len(mine) == len(share):
                self._mine = mine
                for partition, offset in offsets.items():
                    self._fetching.add(partition)
                    self.oracle.begin(partition, self.name, self.kind, offset)
                self._done(parked=False)
                return
            for partition in mine:
                self.zookeeper.delete_owner(partition)
            if number < ATTEMPTS:
                self.loop.after(BACKOFF, lambda: self.alive and self._attempt(number + 1))
            else:
                self._done(parked=True)
        self._when_up(release)

    def _done(self, *, parked: bool) -> None:
        self.parked, self._busy = parked, False
        if self._again:
            self._trigger()

    def _stop(self, *, in_order: bool) -> None:
        for partition in self._fetching:
            if self.oracle.position(partition, self.name) is not None:
                position = self.oracle.end(partition, self.name)
                if in_order:
                    self.oracle.let_go(partition, self.name)
                    self.zookeeper.offsets[partition] = max(position, self.zookeeper.offsets.get(partition, 0))
        self._fetching = set()

    def close(self) -> None:
        """Commit, then end the session: everything vanishes together."""
        if self.alive:
            self._stop(in_order=True)
            self._away()
            def end() -> None:
                if self.zookeeper.is_up:
                    self.zookeeper.end(self._session)
                else:
                    self.zookeeper.cut(self._session)
            self.loop.after(self.loop.between(0.001, 0.02), end)

    def crash(self) -> None:
        if self.alive:
            self._stop(in_order=False)
            self._away()
            self.zookeeper.cut(self._session)

    def _away(self) -> None:
        self.alive = False
        self.zookeeper.watches.remove(self._watched)


class KafkaConsumer:
    """A plain member of Kafka's group. It knows only Kafka's offsets, and starts at the end where there are none."""

    kind = Kind.KAFKA

    def __init__(self, name: str, loop: Loop, coordinator: Coordinator, oracle: Oracle, topics: tuple[str, ...],
                 host: str = "") -> None:
        self.name, self.loop, self.coordinator, self.oracle = name, loop, coordinator, oracle
        self.alive = True
        self._fetching: set[TopicPartition] = set()
        who = Who(name, topics, host=host)
        self.client = Client(who, coordinator, self._assigned, self._revoked, self._lost, plain=True)
        self.client.enter()
        self._commit_now_and_then()

    def _assigned(self, share: frozenset[TopicPartition]) -> None:
        if not self.coordinator.is_up:
            self.loop.after(0.5, lambda: self.alive and self._assigned(share) if self.client.epoch >= 0 else None)
            return
        for partition in share - self._fetching:
            offset = self.coordinator.offsets.get(partition)
            self._fetching.add(partition)
            if offset is None:          # what nobody ever had is as new as the group; all else was to be committed before
                offset = self.oracle.end_of(partition) if partition in self.oracle.passed else 0
            self.oracle.begin(partition, self.name, self.kind, offset)

    def _revoked(self, _: frozenset[TopicPartition]) -> None:
        offsets = {each: position for each in self._fetching
                   if (position := self.oracle.position(each, self.name)) is not None}
        in_order = bool(self.client.commit(offsets))
        self._stop(in_order=in_order)
        self.loop.after(self.loop.between(0.001, 0.05), lambda: self.alive and self.client.released())

    def _lost(self) -> None:
        self._stop(in_order=False)

    def _stop(self, *, in_order: bool) -> None:
        for partition in self._fetching:
            if self.oracle.position(partition, self.name) is not None:
                self.oracle.end(partition, self.name)
                if in_order:
                    self.oracle.let_go(partition, self.name)
        self._fetching = set()

    def _commit_now_and_then(self) -> None:
        if self.alive:
            self.loop.after(2.0, self._commit_now_and_then)
            self.client.commit({
                each: position for each in self._fetching
                if (position := self.oracle.position(each, self.name)) is not None})

    def close(self) -> None:
        if self.alive:
            self._revoke_for_good()
            self.client.leave()

    def _revoke_for_good(self) -> None:
        offsets = {each: position for each in self._fetching
                   if (position := self.oracle.position(each, self.name)) is not None}
        self._stop(in_order=bool(self.client.commit(offsets)))
        self.alive = False

    def crash(self) -> None:
        if self.alive:
            self._stop(in_order=False)
            self.alive = False
            self.client.crash()
