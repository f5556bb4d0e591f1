"""What happens in a simulated world, told to the jury as it happens."""

import base64
import logging
from collections.abc import Callable, Mapping
from typing import Any

from fakes.api_server import NAMESPACE, FakeApi, Object
from fakes.kafka_world import PROTOCOL, mode_of
from invariants.events import Asked, Effect, Leased, Recorded, Told, Wanted, is_brake
from invariants.jury import Jury
from switchover.cluster.door.mount import SCRIPT_KEY
from tales import Tale

VERBS = {"DELETE": "delete", "POST": "create", "PUT": "change", "PATCH": "change"}


class Witness:
    """Turns the writes of a fake API and of a simulated ZooKeeper into events; `wish` tells of the spec in time."""

    def __init__(self, api: FakeApi, jury: Jury, migration: Callable[[], Object | None], plural: str,
                 protocol: str) -> None:
        self._plural = plural
        self._protocol = protocol
        self._api = api
        self.jury = jury
        self._migration = migration
        self._generation: tuple[str, int] = ("", 0)
        self.lives = 0
        self.moves = 0
        api.on_write = self.write

    def wish(self) -> None:
        """Tell the jury of a spec that is new."""
        found = self._migration()
        if found is None:
            return
        uid, generation = found["metadata"]["uid"], found["metadata"]["generation"]
        if (uid, generation) != self._generation:
            self._generation = uid, generation
            self.jury.see(Wanted(self._api.now(), uid, generation, found["spec"]))

    def asked(self, method: str, path: str) -> None:
        """A request of the operator."""
        self.jury.see(Asked(self._api.now(), method, path))

    def write(self, method: str, plural: str, name: str, subresource: str, body: Any, found: Object) -> None:
        """A write of the operator."""
        self.wish()
        now, reader = self._api.now(), self._api.actor
        actor = f"{reader.identity}#{self.lives}.{self._api.failed_watches}" if reader is not None else ""
        if plural == self._plural and subresource == "status":
            if (migration := self._migration()) is None or migration["metadata"]["uid"] != found["metadata"]["uid"]:
                return                                 # of another migration: what it does is not this one's
            before, made = self.jury.memory.standing.position, self.jury.memory.standing.status.get("made")
            self.jury.see(Recorded(now, found["metadata"]["uid"], found["status"], actor))
            self.moves += (self.jury.memory.standing.position, found["status"].get("made")) != (before, made)
            return
        # A Job that is on no record may be anybody's: its creation is done when its uid is on record.
        self.moves += plural not in ("leases", "events", self._plural) and (method, plural) != ("POST", "jobs")
        if plural == "leases":
            holder = "" if method == "DELETE" else found["spec"]["holderIdentity"]
            self.jury.see(Leased(now, holder))
        if plural == "events":
            self.jury.see(Told(now, "event", repr(found)))
        reads: Mapping[str, float] = reader.reads if reader is not None else {}
        verb = "evict" if subresource == "eviction" else VERBS[method]
        self.jury.see(Effect(
            now, verb, plural, name, actor, NAMESPACE,
            uid=_preconditions(body).get("uid", ""), fenced=plural == "znodes" or method == "POST" or _fenced(body),
            assigns=_assigned(found, self._protocol) if plural == "secrets" and verb != "delete" else None,
            read_at=reads.get(plural), wish_read_at=reads.get(self._plural),
            brake=is_brake(body), content=found if plural == "znodes" else {}))


class LogWitness(logging.Handler):
    """Hands every line that the operator logs to the jury, and to the story what `switchover story` shows of `about`."""

    def __init__(self, api: FakeApi, jury: Jury, story: Tale, about: str) -> None:
        super().__init__()
        self._api = api
        self.jury = jury
        self._story = story
        self._about = about

    def emit(self, record: logging.LogRecord) -> None:
        """A line of the log."""
        self.jury.see(Told(self._api.now(), "log", record.getMessage()))
        if getattr(record, "story", "") == self._about:
            self._story.append((self._api.now(), record.getMessage()))


def _preconditions(body: Any) -> Mapping[str, str]:
    options = body.get("deleteOptions", body) if isinstance(body, dict) else {}
    found: Mapping[str, str] = options.get("preconditions") or {}
    return found


def _fenced(body: Any) -> bool:
    if isinstance(body, list):
        return any(operation["op"] == "test" for operation in body)
    metadata = (body or {}).get("metadata") or {}
    return bool(_preconditions(body)) or "resourceVersion" in metadata or "uid" in metadata


def _assigned(secret: Object, protocol: str) -> dict[str, str]:
    given = {"zookeeper.connect": "zookeeper:2181", PROTOCOL: protocol}
    return {pod: mode_of(base64.b64decode(directives).decode(), given, protocol)
            for pod, directives in (secret.get("data") or {}).items() if pod != SCRIPT_KEY}
