"""What one member reads and writes in ZooKeeper within one session, each change in a transaction
(docs/facts/coordination.md#the-rules).

Our owner node is created and set once more to the same value in one transaction, so that it has version 1: an old member
takes a node with its own value for its own whatever made it, and only the version distinguishes the two in a later check.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError, RolledBackError

from switchover.consumer.messages import Changed, Event, OwnerFreed, OwnerGone, Partitions
from switchover.consumer.reading import ANSWER, Watches, read_world
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.layout import BROKERS, CONSUMERS, TOPICS, Layout, topic
from switchover.coordination.registration import Registration, Subscribed
from switchover.coordination.world import World
from switchover.shared import foreign_json
from switchover.shared.partition import TopicPartition

GUARD = b"migration-guard"
"""The value of a node that keeps old consumers off a partition (rule R6); no thread is called so."""
OURS = 1
"""The version of an owner node of a migration-enabled member."""


class Taken(Exception):
    """A registration in our name is another session's."""


class Znodes:
    """`registration`: what is registered; `enabled`: also below `migration/ids`. Methods raise kazoo's errors.

    `notify` is called on kazoo's thread: Changed, OwnerFreed, and OwnerGone whenever something happened to a node of ours.
    """

    def __init__(self, client: KazooClient, session: int, layout: Layout, consumer_id: str, registration: Registration,
                 enabled: bool, notify: Callable[[Event], None]) -> None:
        self.session = session
        self._client, self._layout, self._id = client, layout, consumer_id
        self._registration, self._enabled = registration, enabled
        self._watches = Watches(client, notify)
        self._held: set[TopicPartition] = set()
        self._parents: set[str] = set()
        self._unacknowledged: Acknowledgement | None = None

    # --- the group ----------------------------------------------------------------------------------------------------

    def register(self) -> None:
        """R3: both nodes or none. Raises Taken where another session has one of them; done where they are ours."""
        self._make_parents(self._layout.ids)
        nodes = {self._layout.registration(self._id): self._registration.encoded()}
        if self._enabled:
            self._make_parents(self._layout.migration_ids)
            nodes = {self._layout.acknowledgement(self._id): Acknowledgement(waits="has not begun").encoded(), **nodes}
        missing = {}
        for path, data in nodes.items():
            stat = self._client.exists_async(path).get(timeout=ANSWER)
            if stat is None:
                missing[path] = data
            elif stat.ephemeralOwner != self.session:
                raise Taken(f"{path} belongs to session {stat.ephemeralOwner:#x}: another consumer has this consumer.id, or "
                            "one that died a moment ago had it")
        if missing:
            transaction = self._client.transaction()
            for path, data in missing.items():
                transaction.create(path, data, ephemeral=True)
            _whole(self._commit([transaction])[0])

    def is_registered(self) -> bool:
        """Whether our registration is there and this session's."""
        stat = self._client.exists_async(self._layout.registration(self._id)).get(timeout=ANSWER)
        return stat is not None and stat.ephemeralOwner == self.session

    def read(self) -> World:
        """The group, all of it watched from before it was read, and every owner node of ours."""
        self._watches.children(self._layout.ids, Changed())
        self._watches.children(self._layout.migration_ids, Changed())
        self._watches.nodes([self._layout.mode], Changed())
        for partition in self._held:
            self._watch(partition)
        if self._unacknowledged is not None:
            self.acknowledge(self._unacknowledged)
        while True:
            world = read_world(self._client, self._layout)
            if any(each.by is not Subscribed.STATIC for each in world.registrations.values()):
                self._watches.children(TOPICS, Changed())
            named = {name for each in world.registrations.values() if each.by is Subscribed.STATIC
                     for name in each.subscription}
            if not self._watches.nodes([topic(name) for name in sorted(named | world.topics.keys())], Changed()):
                return world

    def acknowledge(self, now: Acknowledgement) -> None:
        """To the operator; again with the next reading where it fails."""
        self._unacknowledged = now
        self._client.set_async(self._layout.acknowledgement(self._id), now.encoded()).get(timeout=ANSWER)
        self._unacknowledged = None

    def wake(self) -> None:
        """Our registration goes and comes back in one transaction, which old members see as a change."""
        path = self._layout.registration(self._id)
        transaction = self._client.transaction()
        transaction.delete(path)
        transaction.create(path, self._registration.encoded(), ephemeral=True)
        _whole(self._commit([transaction])[0])

    # --- owner nodes --------------------------------------------------------------------------------------------------

    def claim(self, threads: Mapping[TopicPartition, str]) -> Partitions:
        """Create the owner nodes, or put them in the place of guards; those that are ours then, each watched."""
        for name in {partition.topic for partition in threads}:
            self._make_parents(f"{self._layout.owners}/{name}")
        refused: list[TopicPartition] = []
        results = self._commit([self._claiming(partition, thread) for partition, thread in threads.items()])
        for (partition, thread), result in zip(threads.items(), results, strict=True):
            error = _error(result)
            if error is None or (isinstance(error, NodeExistsError) and self._replace(partition, thread)):
                self._held.add(partition)
            elif isinstance(error, NodeExistsError | BadVersionError):
                refused.append(partition)
            else:
                self._parents.clear()
                raise error
        for partition in refused:
            self._watches.nodes([self._layout.owner(partition)], OwnerFreed(partition))
        for partition in threads:
            self._watch(partition)
        return frozenset(partition for partition in threads if self.owns(partition))

    def _claiming(self, partition: TopicPartition, thread: str, over: int | None = None) -> TransactionRequest:
        """`over`: the version of the node in whose place ours comes.

        The check of our registration binds it to the session for which it was asked: registering is the first thing that
        is done in a new one.
        """
        path, transaction = self._layout.owner(partition), self._client.transaction()
        transaction.check(self._layout.registration(self._id), -1)
        if over is not None:
            transaction.delete(path, over)
        transaction.create(path, thread.encode(), ephemeral=True)
        transaction.set_data(path, thread.encode(), 0)
        return transaction

    def _replace(self, partition: TopicPartition, thread: str) -> bool:
        """A node is there: ours from a try whose answer was lost, a guard, or another's, which stays."""
        try:
            data, stat = self._client.get_async(self._layout.owner(partition)).get(timeout=ANSWER)
        except NoNodeError:
            return False
        if stat.ephemeralOwner not in (0, self.session):
            return False
        if stat.ephemeralOwner == self.session and data == thread.encode():
            return True
        return _error(self._commit([self._claiming(partition, thread, stat.version)])[0]) is None

    def release(self, partitions: Partitions, *, guard: bool) -> None:
        """Delete what is ours of these, a guard in its place in the same transaction if asked for."""
        ours = [partition for partition in sorted(partitions) if self.owns(partition)]
        transactions = []
        for partition in ours:
            transaction = self._client.transaction()
            transaction.delete(self._layout.owner(partition), OURS)
            if guard:
                transaction.create(self._layout.owner(partition), GUARD)
            transactions.append(transaction)
        for result in self._commit(transactions):
            if not isinstance(_error(result), NoNodeError | BadVersionError):
                _whole(result)
        self._held -= partitions

    def guard(self, partitions: Partitions) -> None:
        """Where no owner node is."""
        for partition in sorted(partitions):
            self._make_parents(f"{self._layout.owners}/{partition.topic}")
            self._create(self._layout.owner(partition), GUARD)

    def has_lost(self, partition: TopicPartition) -> bool:
        """Whether something that happened to an owner node of ours took it away; watched on otherwise."""
        if partition not in self._held:
            return False
        self._watch(partition)
        if self.owns(partition):
            return False
        self._held.discard(partition)
        return True

    def owns(self, partition: TopicPartition) -> bool:
        """Whether the owner node is this session's."""
        stat = self._client.exists_async(self._layout.owner(partition)).get(timeout=ANSWER)
        return stat is not None and stat.ephemeralOwner == self.session

    def _watch(self, partition: TopicPartition) -> None:
        if partition in self._held:
            self._watches.nodes([self._layout.owner(partition)], OwnerGone(partition))

    # --- offsets ------------------------------------------------------------------------------------------------------

    def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """What is committed, None for nothing."""
        asked = {partition: self._client.get_async(self._layout.offset(partition)) for partition in partitions}
        found: dict[TopicPartition, int | None] = {}
        for partition, each in asked.items():
            try:
                found[partition] = offset_in(each.get(timeout=ANSWER)[0])
            except NoNodeError:
                found[partition] = None
        return found

    def commit(self, offsets: Mapping[TopicPartition, int]) -> Partitions:
        """Write each over our owner node; those whose owner node is not ours."""
        missing: dict[TopicPartition, int] = {}
        gone: set[TopicPartition] = set()
        for create in (False, True):
            todo = missing if create else offsets
            for name in {partition.topic for partition in todo}:
                self._make_parents(f"{self._layout.offsets}/{name}")
            results = self._commit([self._writing(partition, offset, create) for partition, offset in todo.items()])
            for (partition, offset), result in zip(todo.items(), results, strict=True):
                if isinstance(result[0], NoNodeError | BadVersionError):
                    gone.add(partition)
                elif isinstance(_error(result), NoNodeError) and not create:
                    missing[partition] = offset
                else:
                    _whole(result)
        return frozenset(gone)

    def _writing(self, partition: TopicPartition, offset: int, create: bool) -> TransactionRequest:
        transaction = self._client.transaction()
        transaction.check(self._layout.owner(partition), OURS)
        (transaction.create if create else transaction.set_data)(self._layout.offset(partition), str(offset).encode())
        return transaction

    # --- small ones ---------------------------------------------------------------------------------------------------

    def _make_parents(self, path: str) -> None:
        """Data is null but below `ids`, as the old consumer leaves it."""
        if path in self._parents:
            return
        parts = path.removeprefix(CONSUMERS).strip("/").split("/")
        for length in range(len(parts) + 1):
            each = "/".join([CONSUMERS, *parts[:length]])
            self._create(each, b"" if each.endswith("/ids") else None)
        self._parents.add(path)

    def _create(self, path: str, data: bytes | None) -> None:
        try:
            self._client.create_async(path, data).get(timeout=ANSWER)
        except NodeExistsError:
            return

    def _commit(self, transactions: Sequence[TransactionRequest]) -> list[list[Any]]:
        asked = [each.commit_async() for each in transactions]
        return [each.get(timeout=ANSWER) for each in asked]


def brokers(client: KazooClient) -> str:
    """The plaintext endpoints of the brokers, as `bootstrap.servers` has them (versions 1 to 5 of their registrations)."""
    servers = []
    for broker in client.get_children_async(BROKERS).get(timeout=ANSWER):
        try:
            data, _ = client.get_async(f"{BROKERS}/{broker}").get(timeout=ANSWER)
        except NoNodeError:
            continue
        servers += endpoints(foreign_json.parsed(data))
    return ",".join(sorted(servers))


def endpoints(broker: Mapping[str, Any]) -> list[str]:
    """Where a broker answers in plaintext. Version 1 has a host and a port alone; up to 3 a listener is named by its
    protocol."""
    if "endpoints" not in broker:
        return [f"{broker['host']}:{broker['port']}"]
    protocols = broker.get("listener_security_protocol_map", {})
    named = [each.split("://", 1) for each in broker["endpoints"]]
    return [address for name, address in named if protocols.get(name, name) == "PLAINTEXT"]


def _error(result: Sequence[Any]) -> KazooException | None:
    """Why a transaction was not done: what stands between those rolled back and those not tried."""
    errors = (each for each in result if isinstance(each, KazooException) and not isinstance(each, RolledBackError))
    return next(errors, None)


def _whole(result: Sequence[Any]) -> None:
    if (error := _error(result)) is not None:
        raise error


def offset_in(data: bytes | None) -> int | None:
    """The offset that a node holds; what is negative or no number counts as none, as the old consumer has it."""
    try:
        offset = int((data or b"").decode())
    except ValueError:
        return None
    return offset if offset >= 0 else None
