"""Kopf's part: it watches the resource; each object has one loop of ours that looks again when woken or when due.

Kopf is asked for its watch-stream, login and shutdown only. Its daemons would not do: one that holds a deletion
is forgotten when the operator restarts, and Kopf 1.45 then removes the finalizer at once (`process_spawning_cause`
stops no daemon, finds nothing to wait for, and releases the object). So the finalizer is ours, and so are the loops;
Kopf writes nothing on the object (codebases.md A and reliability.md 1.5 say why not). Its own finalizer setting must
stay another one: Kopf removes the one it knows from every object when no handler of its own asks for it.

Each namespace has a Kopf of its own, for Kopf ends with the first watch that is refused: a namespace that is taken away
must not stop what goes on in the others.
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import kopf

from switchover.metrics import Metrics
from switchover.ports import Fenced, Refused, Unreachable
from switchover.settings import EVERYWHERE

FINALIZER = "switchover.dev/finalizer"
SILENCE_SECONDS = 120.0  # a loop that is overdue for longer is dead or hangs
LONGEST_PAUSE = 15.0     # seconds without the watch of a namespace

logger = logging.getLogger(__name__)

Close = Callable[[], Awaitable[None]]
Reconcile = Callable[[str], Awaitable[float]]
Release = Callable[[str], Awaitable[float | None]]
SetFinalizer = Callable[[str, str, bool], Awaitable[bool]]


def backoff(failures: int) -> float:
    """Seconds until the next try after so many failures in a row: 1, 2, 4 … 60."""
    return float(min(60, 2 ** min(failures - 1, 6)))


@dataclass(slots=True)
class Loop:
    """One object's loop. `due` is when it must have shown life again, by the event loop's clock."""

    uid: str
    seen: object
    deleting: bool
    held: bool
    due: float
    last_pass: float
    woken_at: float | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Loops:
    """The loops of all objects of one kind in one namespace.

    `reconcile(name)` makes one pass and returns the seconds until the next. `release(name)` is asked instead once the
    object is being deleted: None lets it go, a number asks again after so many seconds, for as long as it takes. `close()`
    comes last, when no loop runs any more.
    """

    def __init__(self, kind: str, namespace: str, reconcile: Reconcile, release: Release, set_finalizer: SetFinalizer,
                 close: Close, metrics: Metrics) -> None:
        self._kind = kind
        self._namespace = namespace
        self._reconcile = reconcile
        self._release = release
        self._set_finalizer = set_finalizer
        self._close = close
        self._metrics = metrics
        self._loops: dict[str, Loop] = {}

    def noticed(self, metadata: Mapping[str, Any]) -> None:
        """The object exists, as the watch-stream tells: start its loop, or wake it if something but status changed."""
        name, uid, now = metadata["name"], metadata["uid"], asyncio.get_running_loop().time()
        deleting = "deletionTimestamp" in metadata
        held = FINALIZER in (metadata.get("finalizers") or ())
        seen = (metadata.get("generation"), dict(metadata.get("annotations") or {}), deleting, held)
        loop = self._loops.get(name)
        if loop is None or loop.uid != uid:
            self.forget(name)
            loop = self._loops[name] = Loop(uid, seen, deleting, held, now + SILENCE_SECONDS, now)
            loop.task = asyncio.create_task(self._drive(name, loop), name=f"loop of {name}")
        elif loop.seen != seen:
            loop.seen, loop.held, loop.deleting = seen, held, loop.deleting or deleting
            loop.woken_at = now if loop.woken_at is None else loop.woken_at
            loop.wake.set()

    def forget(self, name: str) -> None:
        """The object is gone: its loop ends."""
        self._metrics.migrations(self._kind, self._namespace).gone(name)
        if (loop := self._loops.pop(name, None)) is not None and loop.task is not None:
            loop.task.cancel()

    async def stop(self) -> None:
        """End all loops, as the operator does, and what they have opened. They may begin anew afterwards."""
        tasks = [loop.task for loop in self._loops.values() if loop.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._loops.clear()
        await self._close()

    def overdue(self, now: float) -> str | None:
        """The object whose loop has shown no life for too long, if there is one."""
        return next((name for name, loop in self._loops.items() if now > loop.due), None)

    def oldest_pass(self) -> float:
        """Seconds since the last pass of the object that was served longest ago; 0 without objects."""
        now = self._metrics.now()
        return max((now - loop.last_pass for loop in self._loops.values()), default=0.0)

    async def _drive(self, name: str, loop: Loop) -> None:
        clock = asyncio.get_running_loop().time
        failures = 0
        while True:
            loop.wake.clear()
            started = clock()
            loop.due = started + SILENCE_SECONDS
            self._metrics.notice(started if loop.woken_at is None else loop.woken_at)
            loop.woken_at = None
            delay: float | None
            try:
                delay = await self._pass(name, loop)
                failures = 0
            except Exception as error:  # noqa: BLE001 - a loop must not end: nothing would start it again
                failures += 1
                delay = backoff(failures)
                self._failed(name, error, delay)
            loop.last_pass = clock()
            self._metrics.pass_seconds.observe(loop.last_pass - started)
            if delay is None:
                loop.due = float("inf")
                return
            loop.due = loop.last_pass + delay + SILENCE_SECONDS
            try:
                async with asyncio.timeout(delay):
                    await loop.wake.wait()
            except TimeoutError:
                pass

    async def _pass(self, name: str, loop: Loop) -> float | None:
        if not loop.deleting and not loop.held:
            loop.held = await self._set_finalizer(name, FINALIZER, True)
            loop.deleting = not loop.held
        if not loop.deleting:
            return await self._reconcile(name)
        delay = await self._release(name)
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


class LoopsByNamespace:
    """The loops of one kind that one watch tells of: those of each namespace are made when its first object is seen."""

    def __init__(self, kind: str, loops: Callable[[str], Loops], metrics: Metrics) -> None:
        self._make = loops
        self._loops: dict[str, Loops] = {}
        metrics.asks_oldest_pass(kind, self.oldest_pass)

    def of(self, namespace: str) -> Loops:
        """Those of one namespace."""
        if namespace not in self._loops:
            self._loops[namespace] = self._make(namespace)
        return self._loops[namespace]

    async def stop(self) -> None:
        """End all loops; they may begin anew afterwards."""
        for loops in tuple(self._loops.values()):
            await loops.stop()

    def overdue(self, now: float) -> str | None:
        """The object, as NAMESPACE/NAME, whose loop has shown no life for too long, if there is one."""
        return next((f"{namespace}/{name}" for namespace, loops in self._loops.items()
                     if (name := loops.overdue(now)) is not None), None)

    def oldest_pass(self) -> float:
        """Seconds since the last pass of the object that was served longest ago; 0 without objects."""
        return max((loops.oldest_pass() for loops in self._loops.values()), default=0.0)


@dataclass(slots=True)
class Watch:
    """What is watched in one namespace, or EVERYWHERE. `down` says why nothing of it is watched just now."""

    namespace: str
    registry: kopf.OperatorRegistry = field(default_factory=kopf.OperatorRegistry)
    loops: list[LoopsByNamespace] = field(default_factory=list)
    down: str = ""

    def __str__(self) -> str:
        return "all namespaces" if self.namespace == EVERYWHERE else f"namespace {self.namespace}"


def register(watch: Watch, resource: tuple[str, str, str], loops: LoopsByNamespace) -> None:
    """Wire the loops to Kopf's watch-stream of the resource (group, version, plural), and to its end."""
    watch.loops.append(loops)

    @kopf.on.event(*resource, registry=watch.registry)
    async def noticed(type: str | None, meta: Mapping[str, Any], **_: Any) -> None:
        there = loops.of(meta["namespace"])
        if type == "DELETED":
            there.forget(meta["name"])
        else:
            there.noticed(meta)

    @kopf.on.cleanup(registry=watch.registry, id=resource[2])
    async def stop(**_: Any) -> None:
        await loops.stop()


def why_dead(watches: Sequence[Watch], now: float) -> str:
    """Why the kubelet had better start the process anew, or "": a loop hangs, or nothing at all is watched."""
    for loops in (loops for watch in watches for loops in watch.loops):
        if (name := loops.overdue(now)) is not None:
            return f"the loop of {name} has shown no life for {SILENCE_SECONDS:.0f} s"
    return watches[0].down if all(watch.down for watch in watches) else ""


async def serve(watches: Sequence[Watch], metrics: Metrics) -> None:
    """Watch until SIGTERM or SIGINT, whatever ends a single watch."""
    end = asyncio.Event()
    async with asyncio.TaskGroup() as all_of_them:
        for watch in watches:
            all_of_them.create_task(_keep_watching(watch, metrics, end), name=f"watch of {watch}")


async def _keep_watching(watch: Watch, metrics: Metrics, end: asyncio.Event) -> None:
    """Watch one namespace until one of all watches is told to end, which tells the others.

    Kopf ends at an error that the API server sends into a watch, or repeats for too long, and ends every task that began
    meanwhile. So the loops begin again with the watch, as in a new process, but at once and without the kubelet's back-off.
    """
    loop = asyncio.get_running_loop()
    everywhere = watch.namespace == EVERYWHERE
    where: dict[str, Any] = {"clusterwide": True} if everywhere else {"namespaces": [watch.namespace]}
    failures = 0
    while not end.is_set():
        begun, watch.down = loop.time(), ""
        try:
            await kopf.operator(registry=watch.registry, settings=kopf_settings(), stop_flag=end, **where)
            end.set()
        except Exception as error:  # noqa: BLE001 - whatever it is, the migrations want to go on
            failures = 1 if loop.time() - begun > SILENCE_SECONDS else failures + 1
            delay = min(backoff(failures), LONGEST_PAUSE)
            watch.down = f"the watch of {watch} ended: {error}"
            metrics.failures.labels("watch").inc()
            logger.error("%s; it begins again in %.0f s", watch.down, delay)
            await _wait_for(end, delay)


async def _wait_for(end: asyncio.Event, seconds: float) -> None:
    """So long at most: a signal sets the event, for Kopf's own handlers of signals are those of a run that is over."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    try:
        async with asyncio.timeout(seconds):
            await end.wait()
    except TimeoutError:
        pass


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
    return settings
