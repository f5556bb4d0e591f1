"""One ZooKeeper server with the znodes of one group: sessions, ephemeral nodes, watches; and the topic's log ends."""

from collections.abc import Callable
from dataclasses import dataclass, field

from simulation.coordination.loop import Loop
from simulation.coordination.oracle import Oracle
from switchover.coordination import mode
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.registration import Registration
from switchover.coordination.world import Owner, World
from switchover.shared.partition import TopicPartition

TIMEOUT = 6.0
"""Seconds of a session, the old consumer's default."""


@dataclass
class Session:
    """A client's session; `cut` is since when the server hears nothing of it."""

    number: int
    expired: Callable[[], None]
    cut: float | None = None
    alive: bool = True


@dataclass
class ZooKeeper:
    """State of the server. Methods are what happens at the server; latency is the clients' affair."""

    loop: Loop
    oracle: Oracle
    registrations: dict[str, tuple[Registration, int]] = field(default_factory=dict)
    acknowledgements: dict[str, tuple[Acknowledgement | None, int]] = field(default_factory=dict)
    mode_data: bytes = b""
    mode_version: int = -1
    topics: dict[str, tuple[int, ...]] = field(default_factory=dict)
    owners: dict[TopicPartition, Owner] = field(default_factory=dict)
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    sessions: dict[int, Session] = field(default_factory=dict)
    down_until: float = 0.0
    watches: list[Callable[[str, TopicPartition | None], None]] = field(default_factory=list)
    _world: World | None = None
    _writes: int = 0

    # --- sessions -----------------------------------------------------------------------------------------------------

    def connect(self, expired: Callable[[], None]) -> Session:
        session = Session(len(self.sessions) + 1, expired)
        self.sessions[session.number] = session
        return session

    def cut(self, session: Session) -> None:
        """The server hears nothing of the client from now on."""
        session.cut = since = self.loop.now
        def end() -> None:
            if session.alive and session.cut == since:
                if self.loop.now < self.down_until:       # a server that comes back gives every session its time anew
                    self.loop.after(self.down_until - self.loop.now + TIMEOUT, end)
                else:
                    self.end(session)
        self.loop.after(TIMEOUT, end)

    def end(self, session: Session, *, told: bool = True) -> None:
        """The session's ephemeral nodes vanish together."""
        if not session.alive:
            return
        session.alive = False
        number = session.number
        for children, kind in ((self.registrations, "ids"), (self.acknowledgements, "migration")):
            gone = [name for name, (_, owner) in children.items() if owner == number]
            for name in gone:
                del children[name]
            if gone:
                self._changed(kind)
        for partition in [each for each, owner in self.owners.items() if owner.session == number]:
            self.delete_owner(partition)
        if told:
            session.expired()

    @property
    def is_up(self) -> bool:
        return self.loop.now >= self.down_until

    # --- nodes --------------------------------------------------------------------------------------------------------

    def world(self) -> World:
        if self._world is None:
            self._world = World(
                {name: registration for name, (registration, _) in self.registrations.items()}, {},
                {name: told for name, (told, _) in self.acknowledgements.items()}, mode.parsed(self.mode_data),
                self.mode_data, self.mode_version, dict(self.topics), dict(self.owners))
        return self._world

    def register(self, name: str, registration: Registration, session: int) -> None:
        self.registrations[name] = registration, session
        self._changed("ids")

    def acknowledge(self, name: str, told: Acknowledgement | None, session: int) -> None:
        new = name not in self.acknowledgements
        self.acknowledgements[name] = told, session
        self._world = None
        if new:
            self._changed("migration")

    def unregister(self, name: str) -> None:
        if self.registrations.pop(name, None) is not None:
            self._changed("ids")

    def write_mode(self, data: bytes | None) -> None:
        """None deletes the node."""
        self._writes += 1
        self.mode_data, self.mode_version = (b"", -1) if data is None else (data, self._writes)
        self._changed("mode")

    def add_partition(self, topic: str) -> None:
        number = len(self.topics.get(topic, ()))
        self.topics[topic] = (*self.topics.get(topic, ()), number)
        self.oracle.born[TopicPartition(topic, number)] = self.loop.now
        self._changed("topics")

    def create_owner(self, partition: TopicPartition, owner: Owner) -> bool:
        """Whether it could be created: nothing was there."""
        if partition in self.owners:
            return False
        self.owners[partition] = owner
        self._world = None
        return True

    def delete_owner(self, partition: TopicPartition) -> None:
        if self.owners.pop(partition, None) is not None:
            self._changed("owner", partition)

    def replace_owner(self, partition: TopicPartition, owner: Owner) -> None:
        self.owners[partition] = owner
        self._changed("owner", partition)

    def _changed(self, what: str, partition: TopicPartition | None = None) -> None:
        self._world = None
        for tell in self.watches:
            tell(what, partition)
