"""One collection of the API server, as a watch shows it: listed once, then each change.

The official client's informer works in threads of its own, and for asyncio it has none, so this one is ours: list, watch
from there, watch again where one ends, list again where the place is lost (410) or an answer is not understood.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Any

from switchover.answers import memory
from switchover.answers.errors import Refused, Unreachable
from switchover.kubernetes.client import index
from switchover.kubernetes.client.api_server import ApiServer, Expired, Forbidden, NotFound
from switchover.kubernetes.client.index import Labelled
from switchover.kubernetes.members import COST, KINDS, PAUSED, PAUSED_REPLICAS
from switchover.shared import foreign_json

PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds until it is tried again, after so many failures in a row."""
REFUSED_SECONDS = 60.0
"""How long a refusal holds, and that a kind is not served."""

logger = logging.getLogger(__name__)


class Lost(Exception):
    """What was watched cannot be gone on with: list again."""


STALE_SECONDS = 120.0
"""How long ago the API server last wrote about a collection; bookmarks come every minute or so."""
WORKLOADS = frozenset(plural for _, plural in KINDS.values())
"""Of these it is asked who wrote which field, and what their annotations say."""
ANNOTATIONS = {"pods": frozenset({COST}), "scaledobjects": frozenset({PAUSED, PAUSED_REPLICAS})}
"""What is read of the annotations of others; and whether there are any, by one that is left of them without its value."""
WATCHED = frozenset({
    *WORKLOADS, "replicasets", "pods", "poddisruptionbudgets", "persistentvolumeclaims", "controllerrevisions",
    "horizontalpodautoscalers", "scaledobjects", "verticalpodautoscalers", "leases"})


class Reflector:
    """The objects of one collection by name, and by what `subject` says that each is about. What nobody reads is dropped:
    it may be most of an object."""

    def __init__(self, server: ApiServer, path: str, *,
                 subject: Callable[[index.Object], index.Subject] | None = None) -> None:
        self._server = server
        self._path = path
        self._plural = path.rpartition("/")[2]
        self._subject = subject
        self._room = self._empty_room()
        self._objects = self._none()
        self._version = ""
        self._failure: Exception | None = None
        self._tried = asyncio.Event()             # it was listed, or could not be
        self._seen_at = -float("inf")
        self._task: asyncio.Task[None] | None = None

    @property
    def is_listed(self) -> bool:
        """Whether there is a list."""
        return bool(self._version)

    async def objects(self) -> Labelled:
        """As they were when the API server last sent them. Raises what listing raised, until it succeeds.

        A list that is there is served although the watch is broken just now: `age` says how old it is.
        """
        if self._task is None or self._task.done():            # Kopf ends every task of a watch that ends
            self._tried.clear()
            self._task = asyncio.create_task(self._run(), name=f"watch of {self._path}")
        if not self._version:
            await self._tried.wait()
        if self._failure is not None and not self._version:
            raise self._failure
        return self._objects

    def age(self, now: float) -> float:
        """Seconds since the API server last confirmed all this; `now` by the event loop's clock."""
        return now - self._seen_at

    async def close(self) -> None:
        """Watch no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._objects = self._none()
        self._room.give_back()

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                failures = 0
                await asyncio.sleep(PAUSES[0])
            except (NotFound, Refused) as error:
                self._forget(error)
                await asyncio.sleep(REFUSED_SECONDS)
            except (Unreachable, Lost, Expired) as error:
                if isinstance(error, Lost | Expired):
                    self._version = ""
                elif not self._version:
                    self._forget(error)
                logger.debug("%s: %s", self._path, error)
                await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
                failures += 1

    def _none(self) -> Labelled:
        return Labelled(subject=self._subject)

    def _empty_room(self) -> memory.Held:
        return memory.ANSWERS.lasting(f"namespace {self._server.namespace}")

    def _put(self, objects: Labelled, room: memory.Held, have: int, found: dict[str, Any]) -> None:
        """Refused, which names it, where there is no memory for it beyond what we `have`."""
        metadata = found["metadata"]
        if self._plural not in WORKLOADS:
            metadata.pop("managedFields", None)
            if annotations := metadata.get("annotations"):
                read = {key: annotations[key] for key in ANNOTATIONS.get(self._plural, ()) if key in annotations}
                metadata["annotations"] = read or dict.fromkeys(islice(annotations, 1), "")
        objects.put(found)
        named = f"{metadata['name']} among the {self._plural} of namespace {self._server.namespace}"
        room.resize(max(0, objects.size - have), named)

    def _forget(self, error: Exception) -> None:
        self._version, self._failure = "", error
        self._objects = self._none()
        self._room.give_back()
        self._tried.set()

    async def _list(self) -> None:
        now, found = asyncio.get_running_loop().time(), self._none()
        with self._empty_room() as room:                # a list takes the place of the one before
            version = await self._server.each(self._path, partial(self._put, found, room, self._room.size))
        self._room.resize(found.size, self._path)
        self._objects = found
        self._version, self._failure, self._seen_at = version, None, now
        self._tried.set()

    async def _watch(self) -> None:
        async with self._server.watch(self._path, self._version) as lines:
            async for line in lines:
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            event = foreign_json.parsed(line)
            kind, found = event["type"], event["object"]
            if kind == "ERROR":
                raise Lost(f"{found.get('code')} {found.get('message')}")
            metadata = found["metadata"]
            if kind in ("ADDED", "MODIFIED"):
                self._put(self._objects, self._room, 0, found)
            elif kind == "DELETED":
                self._objects.drop(metadata["name"])
            self._version = metadata["resourceVersion"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Lost(f"an event that is none: {error!r}") from None
        self._seen_at = asyncio.get_running_loop().time()


class WatchedServer(ApiServer):
    """An API server whose collections are read from watches. What no watch may be opened for is asked for, as ever.

    A watch begins with the first reading of its collection, for all who read through this server. Everything but reading is
    the API server's own.
    """

    def __init__(self, server: ApiServer) -> None:
        self.namespace = server.namespace
        self._server = server
        self._reflectors: dict[str, Reflector] = {}

    async def get(self, path: str) -> dict[str, Any]:
        """One object; NotFound when it does not exist."""
        collection, _, name = path.rpartition("/")
        if (seen := await self._seen(collection)) is None:
            return await self._server.get(path)
        if (found := seen.get(name)) is None:
            raise NotFound(path)
        return found

    async def items(self, path: str, labels: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """A collection, at most what carries all the labels. NotFound where the API server does not serve the kind."""
        if (found := await self._seen(path)) is None:
            return await self._server.items(path, labels)
        return found.carrying(labels or {})

    async def about(self, path: str, subjects: Iterable[index.Subject]) -> list[dict[str, Any]]:
        """Of a collection what is about one of these. NotFound where the API server does not serve the kind."""
        if (found := await self._seen(path)) is None:
            return await self._server.about(path, subjects)
        return found.about(subjects)

    async def beyond(self, collection: str, name: str = "") -> dict[str, Any]:
        """As `ApiServer.beyond`."""
        return await self._server.beyond(collection, name)

    async def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> dict[str, Any]:
        """As `ApiServer.request`."""
        return await self._server.request(method, path, body, **parameters)

    async def close(self) -> None:
        """Watch no more; the connections are the API server's."""
        reflectors, self._reflectors = self._reflectors, {}
        await asyncio.gather(*(each.close() for each in reflectors.values()))

    def age(self, now: float) -> float:
        """Seconds since the API server last wrote about the collection of which that is longest ago; 0 without a watch."""
        return max((each.age(now) for each in tuple(self._reflectors.values()) if each.is_listed), default=0.0)

    async def _seen(self, path: str) -> Labelled | None:
        plural = path.rpartition("/")[2]
        if plural not in WATCHED:
            return None
        reflector = self._reflectors.get(path)
        if reflector is None:
            subject = partial(index.subject, plural) if plural in index.SUBJECTS else None
            reflector = self._reflectors[path] = Reflector(self._server, path, subject=subject)
        try:
            found = await reflector.objects()
        except Forbidden:                            # a Role of the release before lets us list, and not watch
            return None
        return found if reflector.age(asyncio.get_running_loop().time()) <= STALE_SECONDS else None
