"""Reads what a group looks like in ZooKeeper, and watches it. Requests of one kind are sent at once: one round trip.

Watches are set once, and again only after they have fired. kazoo's recipes for that stop for ever on a path that does not
exist, and say nothing of a node that was made again (docs/facts/coordination.md#znodes). kazoo has one thread for all
watchers, so they only pass on.
"""

import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import EventType, WatchedEvent

from switchover.consumer.messages import Event
from switchover.coordination import acknowledgement, mode, registration
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.layout import TOPICS, Layout, topic
from switchover.coordination.registration import Malformed, Registration, Subscribed
from switchover.coordination.world import Owner, World
from switchover.shared import foreign_json
from switchover.shared.partition import TopicPartition

NUMBER = re.compile("[0-9]{1,10}")
"""Of a partition; isdigit() knows digits that int() does not."""
ANSWER = 10.0
"""Seconds in which each answer must come."""


class Unsettled(Exception):
    """Members came and went faster than they could be read."""


class NoTopic(ValueError):
    """A topic's node is not what Kafka writes: who is to have its partitions cannot be computed."""


def read_world(client: KazooClient, layout: Layout, attempts: int = 20) -> World:
    """The group as it is. Raises Unsettled, NoTopic, and kazoo's errors when ZooKeeper does not answer or refuses to."""
    for _ in range(attempts):
        before = _membership(client, layout)
        world = _read(client, layout)
        if _membership(client, layout) == before:
            return world
    raise Unsettled(f"members of {layout.group} came and went during each of {attempts} readings")


def read_foreign(client: KazooClient, layout: Layout) -> str:
    """`World.foreign` without the rest of the group. Raises kazoo's errors."""
    _, malformed = _registrations(client, layout)
    _, strange = _owners(client, layout)
    return World(malformed=malformed, strange_owners=strange).foreign


def _membership(client: KazooClient, layout: Layout) -> tuple[int, ...]:
    """Changes with every child that comes or goes."""
    asked = [client.exists_async(path) for path in (layout.ids, layout.migration_ids)]
    stats = [each.get(timeout=ANSWER) for each in asked]
    return tuple(-1 if stat is None else stat.pzxid for stat in stats)


def _registrations(client: KazooClient, layout: Layout) -> tuple[dict[str, Registration], dict[str, str]]:
    """Those that the old consumer can read, and what is wrong with the others."""
    registrations: dict[str, Registration] = {}
    malformed: dict[str, str] = {}
    for consumer_id, (data, _) in _data(client, {each: layout.registration(each) for each in _children(client, layout.ids)}):
        try:
            registrations[consumer_id] = registration.decoded(data)
        except Malformed as problem:
            malformed[consumer_id] = problem.args[0]
    return registrations, malformed


def _owners(client: KazooClient, layout: Layout) -> tuple[dict[TopicPartition, Owner], tuple[str, ...]]:
    """Of partitions, and the nodes of living sessions that are for none."""
    topics = {topic: f"{layout.owners}/{topic}" for topic in _children(client, layout.owners)}
    below = [(topic, name) for topic, names in _each(client.get_children_async, topics) for name in names]
    taken = [TopicPartition(topic, int(name)) for topic, name in below if NUMBER.fullmatch(name)]
    strange = {path: path for topic, name in below if not NUMBER.fullmatch(name)
               for path in (f"{layout.owners}/{topic}/{name}",)}
    return {
        partition: Owner((data or b"").decode(errors="replace"), stat.ephemeralOwner or 0)
        for partition, (data, stat) in _data(client, {each: layout.owner(each) for each in taken})
    }, tuple(sorted(path for path, (_, stat) in _data(client, strange) if stat.ephemeralOwner))


def _read(client: KazooClient, layout: Layout) -> World:
    registrations, malformed = _registrations(client, layout)
    acknowledgements: dict[str, Acknowledgement | None] = {
        consumer_id: acknowledgement.decoded(data)
        for consumer_id, (data, _) in _data(
            client, {each: layout.acknowledgement(each) for each in _children(client, layout.migration_ids)})}
    found = dict(_data(client, {"": layout.mode}))
    mode_data, stat = found.get("", (None, None))
    owners, strange = _owners(client, layout)
    return World(
        registrations, malformed, acknowledgements, mode.parsed(mode_data), mode_data or b"",
        -1 if stat is None else stat.mzxid, _topics(client, registrations.values()), owners, strange_owners=strange)


def _topics(client: KazooClient, registrations: Collection[Registration]) -> Mapping[str, Sequence[int]]:
    """The partitions of the topics that count: those subscribed to by name, or all where somebody has a list."""
    by_name = {name for each in registrations if each.by is Subscribed.STATIC for name in each.subscription}
    lists = any(each.by is not Subscribed.STATIC for each in registrations)
    paths = {name: topic(name) for name in (_children(client, TOPICS) if lists else by_name)}
    return {name: partitions(name, data) for name, (data, _) in _data(client, paths)}


def partitions(name: str, data: bytes | None) -> Sequence[int]:
    """The partitions of a topic by its node. Raises NoTopic."""
    try:
        found = foreign_json.parsed(data or b"")
    except ValueError as problem:
        raise NoTopic(f"the node of topic {name!r} is none: {problem}") from None
    named = found.get("partitions") if isinstance(found, dict) else None
    if not isinstance(named, dict) or not all(map(NUMBER.fullmatch, named)):
        raise NoTopic(f"the node of topic {name!r} names no partitions")
    return sorted(map(int, named))


def _children(client: KazooClient, path: str) -> Sequence[str]:
    try:
        children: list[str] = client.get_children_async(path).get(timeout=ANSWER)
    except NoNodeError:
        return ()
    return children


def _data(client: KazooClient, paths: Mapping[Any, str]) -> Iterable[tuple[Any, Any]]:
    return _each(client.get_async, paths)


def _each(ask: Callable[[str], Any], paths: Mapping[Any, str]) -> list[tuple[Any, Any]]:
    """The answer for each node that is still there."""
    asked = [(key, ask(path)) for key, path in paths.items()]
    found: list[tuple[Any, Any]] = []
    for key, each in asked:
        try:
            found.append((key, each.get(timeout=ANSWER)))
        except NoNodeError:
            continue
    return found


Key = tuple[str, Event]


class Watches:
    """Of one session. `notify` is called on kazoo's thread with the event that a watch was set for."""

    def __init__(self, client: KazooClient, notify: Callable[[Event], None]) -> None:
        self._client, self._notify = client, notify
        self._lock = threading.Lock()
        self._set: set[Key] = set()

    def nodes(self, paths: Iterable[str], event: Event) -> bool:
        """Watch nodes, there or not, for coming, going and new data; whether any was not watched yet."""
        return self._watch(self._client.exists_async, paths, event)

    def children(self, path: str, event: Event) -> None:
        """Watch the children of a node; nothing is watched where it does not exist."""
        self._watch(self._client.get_children_async, [path], event)

    def _watch(self, ask: Callable[..., Any], paths: Iterable[str], event: Event) -> bool:
        new = [key for path in paths if self._add(key := (path, event))]
        asked = [ask(path, watch=self._once((path, event))) for path, _ in new]
        for key, each in zip(new, asked, strict=True):
            try:
                each.get(timeout=ANSWER)
            except NoNodeError:
                self._discard(key)
            except Exception:
                for other in new:
                    self._discard(other)
                raise
        return bool(new)

    def _add(self, key: Key) -> bool:
        with self._lock:
            new = key not in self._set
            self._set.add(key)
            return new

    def _discard(self, key: Key) -> None:
        with self._lock:
            self._set.discard(key)

    def _once(self, key: Key) -> Callable[[WatchedEvent], None]:
        def fired(event: WatchedEvent) -> None:
            self._discard(key)
            if event.type != EventType.NONE:            # the connection went; all is read again when it is back
                self._notify(key[1])
        return fired
