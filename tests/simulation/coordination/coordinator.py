"""Kafka's side: a group of the classic protocol under an eager assignor, and its committed offsets."""

from collections.abc import Callable
from dataclasses import dataclass, field

from simulation.coordination.loop import Loop
from switchover.coordination.assignment import Strategy, Text, assigned
from switchover.shared.partition import TopicPartition

SESSION, HEARTBEAT, REBALANCE = 10.0, 1.0, 20.0
"""Seconds: after which a silent member is out, between two heartbeats, and that a rebalance waits for members to join."""
GRACE = 0.2
"""Seconds by which a client counts shorter than the coordinator; every KafkaConsumer lives by it."""


@dataclass
class Client:
    """One group member as its own process sees it."""

    client_id: str
    topics: tuple[str, ...]
    on_assign: Callable[[frozenset[TopicPartition]], None]
    on_revoke: Callable[[], None]
    on_lost: Callable[[], None]
    plain: bool = False                 # a KafkaConsumer's own
    heard: float = 0.0                  # by the coordinator
    generation: int = -1                # that it follows; -1: not in the group
    joined: bool = False                # for the generation to come
    syncing: bool = False               # its assignment is on its way
    asked: bool = False                 # told to join again, and not there yet
    silent: bool = False                # stopped, or cut off
    share: frozenset[TopicPartition] = frozenset()
    stopped: bool = False               # the process hears nothing either
    gone: bool = False                  # left or dead


@dataclass
class Coordinator:
    """The broker that coordinates the group. While it is down nothing is answered, and nobody is put out."""

    loop: Loop
    partitions: Callable[[], dict[str, tuple[int, ...]]]
    members: dict[str, Client] = field(default_factory=dict)
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    generation: int = 0
    preparing: bool = False
    down_until: float = 0.0
    _round: int = 0
    _plain: list[Client] = field(default_factory=list)

    @property
    def is_up(self) -> bool:
        return self.loop.now >= self.down_until

    def enter(self, client: Client) -> None:
        """A process starts its client: it joins and heartbeats from then on."""
        if client.plain:
            self._plain.append(client)
        self.loop.after(self.loop.between(0.0, HEARTBEAT), lambda: self._heartbeat(client))
        self._join(client)

    @property
    def joining(self) -> bool:
        """Whether a KafkaConsumer has been started that the group does not know yet."""
        return any(not client.gone and client.client_id not in self.members for client in self._plain)

    def leave(self, client: Client) -> None:
        client.gone = True
        if self.members.pop(client.client_id, None) is not None:
            self._prepare()

    def rejoin(self, client: Client) -> None:
        """The process has let go of what it had."""
        client.asked = False
        self._join(client)

    def commit(self, client: Client, offsets: dict[TopicPartition, int]) -> bool | None:
        """None: no answer. False: fenced."""
        if not self.is_up:
            return None
        if self.members.get(client.client_id) is not client or client.generation < 0:
            return False
        if not self.preparing and client.generation != self.generation:
            return False
        self.offsets.update(offsets)
        return True

    def shares(self) -> dict[str, frozenset[TopicPartition]]:
        """As DescribeGroups tells them: nothing while the group rebalances."""
        return {name: frozenset() if self.preparing else client.share for name, client in self.members.items()}

    def crash(self, client: Client) -> None:
        client.gone = True

    # --- inside -------------------------------------------------------------------------------------------------------

    def _join(self, client: Client) -> None:
        if client.gone:
            return
        if not self.is_up or client.silent:
            self.loop.after(0.5, lambda: self._join(client))
            return
        self.members[client.client_id] = client
        client.heard, client.joined = self.loop.now, True
        if not self.preparing:
            self._prepare()
        self._complete()

    def _prepare(self) -> None:
        """Everybody is told by the next heartbeat."""
        if self.preparing or not self.members:
            return
        self.preparing = True
        self._round += 1
        this = self._round
        def late() -> None:
            if self.preparing and self._round == this:
                if not self.is_up:
                    self.loop.after(1.0, late)
                    return
                for client in [each for each in self.members.values() if not each.joined]:
                    del self.members[client.client_id]
                self._complete()
        self.loop.after(REBALANCE, late)

    def _complete(self) -> None:
        if not self.preparing or not self.members or not all(each.joined for each in self.members.values()):
            return
        self.preparing = False
        self.generation += 1
        streams = {name: dict.fromkeys(client.topics, 1) for name, client in self.members.items()}
        shares: dict[str, set[TopicPartition]] = {name: set() for name in self.members}
        for partition, thread in assigned(Strategy.RANGE, Text.SINCE_1_0, streams, self.partitions()).items():
            shares[thread.rpartition("-")[0]].add(partition)
        generation = self.generation
        for name, client in self.members.items():
            client.joined, client.syncing = False, True
            client.share = frozenset(shares[name])
            def sync(client: Client = client, share: frozenset[TopicPartition] = client.share) -> None:
                client.syncing = False
                if not client.gone and self.members.get(client.client_id) is client and self.generation == generation \
                        and not client.joined and not client.asked:
                    client.generation = generation
                    client.on_assign(share)
            self.loop.after(self.loop.between(0.005, 0.05), sync)

    def metadata(self) -> None:
        """The leader has heard of another partition."""
        self._prepare()

    def _heartbeat(self, client: Client) -> None:
        if client.gone:
            return
        self.loop.after(0.1 if client.silent else HEARTBEAT, lambda: self._heartbeat(client))
        if not self.is_up or client.silent:
            if client.silent and not client.stopped and client.generation >= 0 and self.loop.now - client.heard > SESSION:
                client.generation = -1      # the client counts for itself
                client.on_lost()
                self._join(client)
            return
        known = self.members.get(client.client_id) is client
        if not known:
            if client.generation >= 0 and not client.asked:     # who is asked sits in its callback and hears nothing
                client.generation = -1
                client.on_lost()
                self._join(client)
            return
        client.heard = self.loop.now
        if self.preparing and not client.joined and not client.asked:
            client.asked = True
            client.on_revoke()
        elif client.generation != self.generation and not (
                client.joined or client.syncing or client.asked or self.preparing):
            client.generation = -1      # it missed the assignment
            client.on_lost()
            self._join(client)

    def sweep(self) -> None:
        """Put out who was silent for too long; called once a second."""
        self.loop.after(1.0, self.sweep)
        if not self.is_up:
            for client in self.members.values():
                client.heard = max(client.heard, self.loop.now)
            return
        late = [each for each in self.members.values()
                if self.loop.now - each.heard > SESSION + GRACE and (each.gone or not each.joined)]
        for client in late:
            del self.members[client.client_id]
        if late:
            self.preparing or self._prepare()
            self._complete()
