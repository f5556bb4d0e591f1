"""Kopf's part: it watches the resource; each object has one loop of ours that looks again when woken or when due.

Kopf is asked for its watch-stream, login and shutdown only. Its daemons would not do: one that holds a deletion
is forgotten when the operator restarts, and Kopf 1.45 then removes the finalizer at once (`process_spawning_cause`
stops no daemon, finds nothing to wait for, and releases the object). So the finalizer is ours, and so are the loops;
Kopf writes nothing on the object (docs/facts/kubernetes.md#clients-and-kopf says why not). Its own finalizer setting must
stay another one: Kopf removes the one it knows from every object when no handler of its own asks for it.

Kopf ends with the first watch that is refused, and with it whatever began meanwhile, so that two of them in one process end
each other. So the one is given only the namespaces that may be watched: one that is closed must not stop the others.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import kopf

from switchover.answers.errors import Fenced, Refused, Unreachable
from switchover.api.status import Phase
from switchover.engine.calls import TooMuchWork
from switchover.engine.pace import AT_ONCE, MOVING, STANDING, is_moving, share
from switchover.kubernetes.client.index import Packed
from switchover.kubernetes.selectors import selects
from switchover.process.metrics import Metrics
from switchover.process.settings import EVERYWHERE
from switchover.process.turns import Turns

FINALIZER = "switchover.dev/finalizer"
SILENCE_SECONDS = 120.0  # a loop that is overdue for longer is dead or hangs, unless it waits for its turn
SEEN_SECONDS = 300.0     # for so long a pass may begin with what the watch said last
SELDOM_SECONDS = 120.0   # between passes of an object that took too much of the processor, whatever becomes of it meanwhile
LAST_SECONDS = 5.0       # of an operator that ends, to remove finalizers
LONGEST_PAUSE = 15.0     # seconds without the watch, or until a closed namespace is asked again

logger = logging.getLogger(__name__)

Close = Callable[[], Awaitable[None]]
Reconcile = Callable[[str, Mapping[str, Any] | None], Awaitable[float]]
Leave = Callable[[str], Awaitable[None]]
Release = Callable[[str], Awaitable[float | None]]
SetFinalizer = Callable[[str, str, bool], Awaitable[Mapping[str, Any] | None]]
IsEnding = Callable[[], Awaitable[bool]]
Missing = Callable[[str], Awaitable[Sequence[str]]]
"""Which rights are missing to watch a namespace. Raises Unreachable and Refused."""


def spread(seconds: float, uid: str) -> float:
    """A little sooner, each object by its own share: those that began together do not stay together."""
    return seconds * (1.0 - 0.1 * share(uid))


def backoff(failures: int) -> float:
    """Seconds until the next try after so many failures in a row: 1, 2, 4 … 60."""
    return float(min(60, 2 ** min(failures - 1, 6)))


@dataclass(slots=True)
class Loop:
    """One object's loop. `due` is when it must have shown life again, by the event loop's clock; never while it waits for
    its turn. `delay` is for how long it was to sleep last; `served`: a pass has ended, however."""

    uid: str
    seen: object
    deleting: bool
    held: bool
    due: float
    last_pass: float
    found: Packed
    found_at: float = -float("inf")
    woken_at: float | None = None
    delay: float = MOVING
    served: bool = False
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Loops:
    """The loops of all objects of one kind in one namespace.

    `reconcile(name, found)` makes one pass over an object as the watch has seen it, None where it must be read, and
    returns the seconds until the next. `release(name)` is asked instead once the object is being deleted: None releases it,
    a number asks again after so many seconds, for as long as it takes. Nothing is held once `is_ending()`: the namespace
    is being deleted, with all that could be taken back or gone on with. `leave(name)` is asked where another operator
    serves the object from now on. `close()` comes last, when no loop runs any more. `turns` bounds the passes of all loops
    of the operator.
    """

    def __init__(self, kind: str, namespace: str, reconcile: Reconcile, release: Release, set_finalizer: SetFinalizer,
                 is_ending: IsEnding, leave: Leave, close: Close, metrics: Metrics, turns: Turns) -> None:
        self._kind = kind
        self._namespace = namespace
        self._reconcile = reconcile
        self._release = release
        self._set_finalizer = set_finalizer
        self._is_ending = is_ending
        self._leave = leave
        self._close = close
        self._metrics = metrics
        self._turns = turns
        self._loops: dict[str, Loop] = {}

    def noticed(self, found: Mapping[str, Any]) -> None:
        """The object exists, as the watch-stream says: start its loop, or wake it if something but status changed."""
        metadata = found["metadata"]
        name, uid, now = metadata["name"], metadata["uid"], asyncio.get_running_loop().time()
        deleting, held, seen = "deletionTimestamp" in metadata, _is_held(metadata), _wakes(metadata)
        loop = self._loops.get(name)
        if loop is None or loop.uid != uid:
            self.forget(name)
            loop = self._loops[name] = Loop(uid, seen, deleting, held, now + SILENCE_SECONDS, now, _packed(found), now,
                                            delay=MOVING if deleting or _is_under_way(found) else STANDING)
            loop.task = asyncio.create_task(self._drive(name, loop), name=f"loop of {name}")
            return
        loop.found, loop.found_at = _packed(found), now
        if loop.seen != seen:
            loop.seen, loop.held, loop.deleting = seen, held, loop.deleting or deleting
            loop.woken_at = now if loop.woken_at is None else loop.woken_at
            loop.wake.set()
            self._turns.touch(uid)

    def forget(self, name: str) -> None:
        """The object is gone: its loop ends."""
        self._metrics.migrations(self._kind, self._namespace).gone(name)
        if (loop := self._loops.pop(name, None)) is not None and loop.task is not None:
            loop.task.cancel()

    async def leave(self, name: str) -> None:
        """Another operator serves it, now or ever since: where a loop of ours did, it ends, and what it holds is left."""
        if (loop := self._loops.get(name)) is not None and loop.task is not None:
            self.forget(name)
            await asyncio.gather(loop.task, return_exceptions=True)
            await self._leave(name)

    async def stop(self) -> None:
        """End all loops, as the operator does, and what they have opened. They may begin again afterwards."""
        tasks = [loop.task for loop in self._loops.values() if loop.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._free(tuple(self._loops))
        self._loops.clear()
        await self._close()

    async def _free(self, names: Sequence[str]) -> None:
        """Hold none of them any more if their namespace is ending: Kubernetes deletes the pods of a namespace first, the
        operator's among them, and the objects when nobody would be left to remove the finalizers."""
        with contextlib.suppress(Unreachable, Refused, Fenced, TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                if names and await self._is_ending():
                    for name in names:
                        await self._set_finalizer(name, FINALIZER, False)

    def overdue(self, now: float) -> str | None:
        """The object whose loop has shown no life for too long, if there is one."""
        return next((name for name, loop in self._loops.items() if now > loop.due), None)

    def unserved(self) -> int:
        """How many objects have not been looked at yet."""
        return sum(not loop.served for loop in self._loops.values())

    def oldest_pass(self) -> float:
        """Seconds since the last pass, of the object that was served longest ago, that the API server answered; 0 without
        objects."""
        now = self._metrics.now()
        return max((now - loop.last_pass for loop in self._loops.values()), default=0.0)

    async def _drive(self, name: str, loop: Loop) -> None:
        clock = asyncio.get_running_loop().time
        failures = 0
        while True:
            loop.due, due = float("inf"), clock()
            delay: float | None
            async with self._turns.turn(loop.uid, moving=is_moving(loop.delay), touched=loop.woken_at is not None):
                loop.wake.clear()
                started = clock()
                loop.due = started + SILENCE_SECONDS
                self._metrics.notice(due if loop.woken_at is None else loop.woken_at)
                loop.woken_at, seldom = None, False
                try:
                    delay = await self._pass(name, loop, afresh=failures > 0)
                    failures, unanswered = 0, False
                except Exception as error:  # noqa: BLE001 - a loop must not end: nothing would start it again
                    failures += 1
                    seldom = isinstance(error, TooMuchWork)
                    delay = SELDOM_SECONDS if seldom else backoff(failures)
                    self._failed(name, error, delay)
                    unanswered = isinstance(error, Unreachable)
            ended, loop.served = clock(), True
            loop.last_pass = loop.last_pass if unanswered else ended       # it was not looked at: somebody is called
            self._metrics.pass_seconds.observe(ended - started)
            if delay is None:
                loop.due = float("inf")
                return
            loop.delay = delay
            loop.due = ended + delay + SILENCE_SECONDS
            if seldom:
                await asyncio.sleep(delay)
            else:
                await _happens(loop.wake, spread(delay, loop.uid))

    async def _pass(self, name: str, loop: Loop, *, afresh: bool) -> float | None:
        if not loop.deleting and not loop.held:
            found = await self._set_finalizer(name, FINALIZER, True)
            loop.held, loop.deleting = found is not None, found is None
            if found is not None:              # what the watch said is older than that: nothing could be recorded upon it
                loop.found, loop.seen = _packed(found), _wakes(found["metadata"])
        if not loop.deleting:
            now = asyncio.get_running_loop().time()
            afresh = afresh or loop.delay == AT_ONCE or now - loop.found_at > SEEN_SECONDS
            loop.found_at = now if afresh else loop.found_at
            return await self._reconcile(name, None if afresh else loop.found.value())
        delay = None if await self._is_ending() else await self._release(name)
        if delay is None:
            await self._set_finalizer(name, FINALIZER, False)
        return delay

    def _failed(self, name: str, error: Exception, delay: float) -> None:
        match error:
            case Fenced():
                kind, level = "fenced", logging.INFO
            case Unreachable():
                kind, level = "unreachable", logging.WARNING
            case Refused():
                kind, level = "refused", logging.WARNING
            case TooMuchWork():
                kind, level = "work", logging.WARNING
            case _:
                kind, level = "defect", logging.ERROR
        self._metrics.failures.labels(kind).inc()
        logger.log(
            level,
            "%s: %s; next try in %.0f s",
            name,
            error or type(error).__name__,
            delay,
            exc_info=error if kind == "defect" else None,
            extra={"migration": name, "namespace": self._namespace},
        )


def _packed(found: Mapping[str, Any]) -> Packed:
    """The object without the record of who wrote which field, which nobody asks for and which is half of it."""
    metadata = {key: value for key, value in found["metadata"].items() if key != "managedFields"}
    return Packed({**found, "metadata": metadata})


def _is_held(metadata: Mapping[str, Any]) -> bool:
    return FINALIZER in (metadata.get("finalizers") or ())


def _wakes(metadata: Mapping[str, Any]) -> object:
    """What wakes a loop once it has become another."""
    return (metadata.get("generation"), dict(metadata.get("annotations") or {}), "deletionTimestamp" in metadata,
            _is_held(metadata))


def _is_under_way(found: Mapping[str, Any]) -> bool:
    """Whether the record says that something moves: of many that an operator finds at its start, it goes first."""
    status = found.get("status")
    return isinstance(status, Mapping) and status.get("phase") in (Phase.RUNNING, Phase.ROLLING_BACK)


class LoopsByNamespace:
    """The loops of one kind: those of each namespace are made when its first object is seen."""

    def __init__(self, kind: str, loops: Callable[[str], Loops], metrics: Metrics) -> None:
        self._make = loops
        self._loops: dict[str, Loops] = {}
        metrics.oldest_pass.labels(kind).set_function(self.oldest_pass)

    def of(self, namespace: str) -> Loops:
        """Those of one namespace."""
        if namespace not in self._loops:
            self._loops[namespace] = self._make(namespace)
        return self._loops[namespace]

    async def stop(self) -> None:
        """End all loops; they may begin again afterwards."""
        for loops in tuple(self._loops.values()):
            await loops.stop()

    def overdue(self, now: float) -> str | None:
        """The object, as NAMESPACE/NAME, whose loop has shown no life for too long, if there is one."""
        return next((f"{namespace}/{name}" for namespace, loops in self._loops.items()
                     if (name := loops.overdue(now)) is not None), None)

    def unserved(self) -> int:
        """How many objects have not been looked at yet."""
        return sum(loops.unserved() for loops in self._loops.values())

    def oldest_pass(self) -> float:
        """Seconds since the last pass of the object that was served longest ago; 0 without objects."""
        return max((loops.oldest_pass() for loops in self._loops.values()), default=0.0)


class Closed(Exception):
    """No namespace may be watched; the message says what is missing."""


@dataclass(slots=True)
class Watch:
    """What is watched: the namespaces, EVERYWHERE alone for all of them, and there the objects whose labels the `selector`
    matches. `down` says why nothing is watched just now, `begun` whether anything ever was."""

    namespaces: Sequence[str]
    turns: Turns = field(default_factory=Turns)
    selector: Mapping[str, Any] = field(default_factory=dict)
    registry: kopf.OperatorRegistry = field(default_factory=kopf.OperatorRegistry)
    loops: list[LoopsByNamespace] = field(default_factory=list)
    down: str = ""
    begun: bool = False


def register(watch: Watch, resource: tuple[str, str, str], loops: LoopsByNamespace) -> None:
    """Wire the loops to Kopf's watch-stream of the resource (group, version, plural), and to its end."""
    watch.loops.append(loops)

    @kopf.on.event(*resource, registry=watch.registry)
    async def noticed(type: str | None, meta: Mapping[str, Any], event: Mapping[str, Any], **_: Any) -> None:
        there = loops.of(meta["namespace"])
        if type == "DELETED":
            there.forget(meta["name"])
        elif selects(watch.selector, meta.get("labels") or {}):
            there.noticed(event["object"])
        else:
            await there.leave(meta["name"])

    @kopf.on.cleanup(registry=watch.registry, id=resource[2])
    async def stop(**_: Any) -> None:
        await loops.stop()


def why_dead(watch: Watch, now: float) -> str:
    """Why the kubelet should restart the process, or "": a loop hangs, or nothing at all is watched.

    Many passes that wait for their turn are no reason: it would only begin with all of them again.
    """
    if watch.turns.silence(now) > SILENCE_SECONDS:
        return f"no pass has begun for {SILENCE_SECONDS:.0f} s, and {watch.turns.waiting} are due"
    for loops in watch.loops:
        if (name := loops.overdue(now)) is not None:
            return f"the loop of {name} has shown no life for {SILENCE_SECONDS:.0f} s"
    return watch.down


def why_not_ready(watch: Watch, now: float) -> str:
    """Why a rollout should wait, or "": nothing is watched yet, or it is dead, or migrations have not been looked at."""
    if why := why_dead(watch, now):
        return why
    if not watch.begun:
        return "nothing is watched yet"
    unserved = sum(loops.unserved() for loops in watch.loops)
    return f"migrations that have not been looked at yet: {unserved}" if unserved else ""


async def serve(watch: Watch, missing: Missing, metrics: Metrics) -> None:
    """Watch until SIGTERM or SIGINT.

    Kopf ends at an error that the API server sends into a watch, or repeats for too long, and ends every task that began
    meanwhile. So the loops begin again with the watch, as in a new process, but at once and without the kubelet's back-off.
    """
    loop = asyncio.get_running_loop()
    end = asyncio.Event()
    failures = 0
    while not end.is_set():
        begun = loop.time()
        _end_at_a_signal(end)
        try:
            if await _watch_what_is_open(watch, missing, metrics, end):
                return
        except Exception as error:  # noqa: BLE001 - whatever it is, the migrations want to go on
            failures = 1 if loop.time() - begun > SILENCE_SECONDS else failures + 1
            delay = min(backoff(failures), LONGEST_PAUSE)
            watch.down = f"the watch ended: {error}"
            metrics.failures.labels("watch").inc()
            logger.error("%s; it begins again in %.0f s", watch.down, delay)
            _end_at_a_signal(end)
            await _happens(end, delay)


async def _watch_what_is_open(watch: Watch, missing: Missing, metrics: Metrics, end: asyncio.Event) -> bool:
    """Watch until it is to end, which is True, or until a namespace that was closed can be watched as well."""
    closed = {namespace: why for namespace in watch.namespaces if (why := await _why_closed(namespace, missing))}
    if len(closed) == len(watch.namespaces):
        raise Closed("; ".join(closed.values()))
    if end.is_set():
        return True
    for why in closed.values():
        metrics.failures.labels("watch").inc()
        logger.error("%s; it is asked again every %.0f s", why, LONGEST_PAUSE)
    watch.down, watch.begun = "", True
    everywhere = EVERYWHERE in watch.namespaces
    where: dict[str, Any] = {"clusterwide": True} if everywhere else {
        "namespaces": [namespace for namespace in watch.namespaces if namespace not in closed]}
    opened = asyncio.Event()
    asking = asyncio.create_task(_ask_again(closed, missing, metrics, opened))     # before Kopf begins: it outlives its end
    try:
        await kopf.operator(registry=watch.registry, settings=kopf_settings(), stop_flag=opened, **where)
    finally:
        asking.cancel()
    return not opened.is_set()


async def _why_closed(namespace: str, missing: Missing) -> str:
    rights = await missing(namespace)
    where = "of all namespaces together" if namespace == EVERYWHERE else f"in namespace {namespace}"
    return f"nothing is watched {where}: this account may not {', '.join(rights)} there" if rights else ""


async def _ask_again(closed: Iterable[str], missing: Missing, metrics: Metrics, opened: asyncio.Event) -> None:
    """Until one of the namespaces may be watched, which sets the event."""
    while closed:
        await asyncio.sleep(LONGEST_PAUSE)
        for namespace in closed:
            try:
                if not await missing(namespace):
                    opened.set()
                    return
            except (Unreachable, Refused, Fenced):
                continue
            metrics.failures.labels("watch").inc()


def _end_at_a_signal(end: asyncio.Event) -> None:
    """For Kopf's own handlers of signals are those of a run that is over."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)


async def _happens(event: asyncio.Event, seconds: float) -> None:
    """Wait for it, so long at most."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


class NoDiffs(kopf.DiffBaseStorage):
    """Kopf copies each object with each of its events, to compare it with the one before; nobody asks for that here."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        """Nothing to be compared."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """Nothing was stored."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Nothing is written on the object."""


def kopf_settings() -> kopf.OperatorSettings:
    """Kopf without everything that we do not ask of it."""
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # no watching of CRDs and namespaces: they are not ours to read
    settings.peering.standalone = True  # a peering object of somebody else must not freeze us
    settings.posting.enabled = False
    settings.process.ultimate_exiting_timeout = None  # SIGKILL 10 min after Kopf's end, also when another watch has begun
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 10
    settings.watching.chunk_size = 500
    settings.persistence.diffbase_storage = NoDiffs()
    return settings
