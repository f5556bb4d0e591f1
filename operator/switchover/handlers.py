"""Kopf's part: it watches the resource; each object has one loop of ours that looks again when woken or when due.

Kopf is asked for its watch-stream, login, probe and shutdown only. Its daemons would not do: one that holds a deletion
is forgotten when the operator restarts, and Kopf 1.45 then removes the finalizer at once (`process_spawning_cause`
stops no daemon, finds nothing to wait for, and releases the object). So the finalizer is ours, and so are the loops;
Kopf writes nothing on the object (codebases.md A and reliability.md 1.5 say why not). Its own finalizer setting must
stay another one: Kopf removes the one it knows from every object when no handler of its own asks for it.
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import kopf

from switchover.metrics import Metrics
from switchover.ports import Fenced, Refused, Unreachable

FINALIZER = "switchover.dev/finalizer"
SILENCE_SECONDS = 120.0  # a loop that is overdue for longer is dead or hangs
LONGEST_PAUSE = 15.0     # seconds without the watch, and without an answer to the kubelet's probe

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
    """The loops of all objects of one kind.

    `reconcile(name)` makes one pass and returns the seconds until the next. `release(name)` is asked instead once the
    object is being deleted: None lets it go, a number asks again after so many seconds, for as long as it takes. `close()`
    comes last, when no loop runs any more.
    """

    def __init__(self, kind: str, reconcile: Reconcile, release: Release, set_finalizer: SetFinalizer, close: Close,
                 metrics: Metrics) -> None:
        self._kind = kind
        self._reconcile = reconcile
        self._release = release
        self._set_finalizer = set_finalizer
        self._close = close
        self._metrics = metrics
        self._loops: dict[str, Loop] = {}
        metrics.oldest_pass.labels(kind).set_function(self.oldest_pass)

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
        self._metrics.migrations(self._kind).gone(name)
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
        )


def register(registry: kopf.OperatorRegistry, resource: tuple[str, str, str], loops: Loops) -> None:
    """Wire the loops to Kopf's watch-stream of the resource (group, version, plural), to its probe and its end."""

    @kopf.on.event(*resource, registry=registry)
    async def noticed(type: str | None, meta: Mapping[str, Any], **_: Any) -> None:
        if type == "DELETED":
            loops.forget(meta["name"])
        else:
            loops.noticed(meta)

    # Without PERMANENT, Kopf would repeat a failing probe inside the request instead of answering.
    @kopf.on.probe(registry=registry, id=resource[2], errors=kopf.ErrorsMode.PERMANENT)
    async def alive(**_: Any) -> str:
        if (name := loops.overdue(asyncio.get_running_loop().time())) is not None:
            raise kopf.PermanentError(f"the loop of {name} has shown no life for {SILENCE_SECONDS:.0f} s")
        return "alive"

    @kopf.on.cleanup(registry=registry, id=resource[2])
    async def stop(**_: Any) -> None:
        await loops.stop()


async def serve(registry: kopf.OperatorRegistry, metrics: Metrics, namespace: str, probe: str | None = None) -> None:
    """Watch a namespace until SIGTERM or SIGINT.

    Kopf ends at an error that the API server sends into a watch, or repeats for too long, and ends every task that began
    meanwhile. So the loops begin again with the watch, as in a new process, but at once and without the kubelet's back-off.
    """
    loop = asyncio.get_running_loop()
    failures = 0
    while True:
        begun = loop.time()
        try:
            await kopf.operator(registry=registry, settings=kopf_settings(), namespaces=[namespace], liveness_endpoint=probe)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the migrations want to go on
            failures = 1 if loop.time() - begun > SILENCE_SECONDS else failures + 1
            delay = min(backoff(failures), LONGEST_PAUSE)
            metrics.failures.labels("watch").inc()
            logger.error("the watch of namespace %s ended: %s; it begins again in %.0f s", namespace, error, delay)
        if await _is_told_to_end(delay):
            return


async def _is_told_to_end(seconds: float) -> bool:
    """Whether a signal comes within so many seconds: Kopf's own handlers of signals are those of a run that is over."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    try:
        async with asyncio.timeout(seconds):
            await told.wait()
    except TimeoutError:
        return False
    return True


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
