"""Watches that are set once, and again only after they have told.

kazoo's recipes for that stop for ever on a path that does not exist, and say nothing of a node that was made anew
(docs/facts/coordination.md#znodes). kazoo has one thread for all watchers, so they only pass on.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import EventType, WatchedEvent

from switchover.consumer.messages import Event
from switchover.consumer.reading import ANSWER

Key = tuple[str, Event]


class Watches:
    """Of one session. `tell` is called on kazoo's thread with the event that a watch was set for."""

    def __init__(self, client: KazooClient, tell: Callable[[Event], None]) -> None:
        self._client, self._tell = client, tell
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
        def told(event: WatchedEvent) -> None:
            self._discard(key)
            if event.type != EventType.NONE:            # the connection went; all is read again when it is back
                self._tell(key[1])
        return told
