"""Why Kubernetes does not make something, which only events say: a quota, an admission, a volume that nobody provisions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from switchover.answers.clock import Clock
from switchover.answers.errors import Refused, Unreachable
from switchover.kubernetes.client.api_server import ApiServer, NotFound
from switchover.kubernetes.client.pods import reason_text

HOLDS_SECONDS = 10.0
"""How long an answer is good: a controller tries again after seconds at first, and after a quarter of an hour at last."""
MOST = 50
"""Events that are read of one object: of each kind there is one, with a count."""


class WarningEvents:
    """The last events about objects. Without the right to read events there are none, and nobody waits for them."""

    def __init__(self, server: ApiServer, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._read: dict[str, tuple[float, Sequence[Mapping[str, Any]]]] = {}

    async def why_not(self, uid: str, name: str = "") -> str:
        """What the last event about an object warns of, that names `name`; "" where the last one is no warning."""
        named = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)")
        about = [event for event in await self._events(uid) if not name or named.search(event.get("message") or "")]
        last = max(about, key=_at, default={})
        return reason_text(last) if last.get("type") == "Warning" else ""

    async def why_none(self, uid: str, names: Iterable[str]) -> Mapping[str, str]:
        """The same of each of its pods that do not exist."""
        return {name: await self.why_not(uid, name) for name in names}

    async def _events(self, uid: str) -> Sequence[Mapping[str, Any]]:
        now = self._clock.now()
        at, events = self._read.get(uid, (-HOLDS_SECONDS, ()))
        if now - at < HOLDS_SECONDS:
            return events
        self._read = {known: read for known, read in self._read.items() if now - read[0] < HOLDS_SECONDS}
        try:
            events = await self._server.events(uid, MOST)
        except (NotFound, Refused, Unreachable):
            events = ()
        self._read[uid] = now, events
        return events


def _at(event: Mapping[str, Any]) -> str:
    """When it was last seen: clients of the old API write lastTimestamp, those of the new one a series."""
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")
