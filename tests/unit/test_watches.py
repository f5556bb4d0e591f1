"""What is watched in several namespaces: one that is closed leaves the others alone."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import kopf
import pytest
from prometheus_client import CollectorRegistry

from apiserver.processes import port
from patience import Patience
from switchover.answers.errors import Unreachable
from switchover.kubernetes.client.index import Packed
from switchover.process import handlers
from switchover.process.handlers import (
    FINALIZER,
    SILENCE_SECONDS,
    Loop,
    Loops,
    LoopsByNamespace,
    Watch,
    register,
    serve,
    why_dead,
    why_not_ready,
)
from switchover.process.metrics import Metrics
from switchover.process.probe import LIVE, READY, answering, health
from switchover.process.turns import Turns

CLOSED = "nothing is watched in namespace bank: this account may not list kafkamigrations.switchover.dev there"
RESOURCE = ("switchover.dev", "v1alpha1", "kafkamigrations")


class Passes:
    """Stands for a reconciler in one namespace."""

    def __init__(self, namespace: str, delay: float = 60.0) -> None:
        self.namespace, self.delay = namespace, delay
        self.served: list[str] = []
        self.let_go: list[str] = []
        self.ending: bool | Exception = False

    async def reconcile(self, name: str, found: Mapping[str, Any] | None = None) -> float:
        self.served.append(name)
        return self.delay

    async def release(self, name: str) -> float:
        return self.delay

    async def set_finalizer(self, name: str, finalizer: str, present: bool) -> Mapping[str, Any] | None:
        assert not present, f"{name} has its finalizer"
        self.let_go.append(name)
        return None

    async def is_ending(self) -> bool:
        if isinstance(self.ending, Exception):
            raise self.ending
        return self.ending

    async def leave(self, name: str) -> None:
        raise AssertionError(f"{name} is nobody else's")

    async def close(self) -> None: ...

    def loops(self, metrics: Metrics) -> Loops:
        return Loops("KafkaMigration", self.namespace, self.reconcile, self.release, self.set_finalizer,
                     self.is_ending, self.leave, self.close, metrics, Turns())


def metrics() -> Metrics:
    return Metrics(CollectorRegistry(), lambda: asyncio.get_running_loop().time())


async def told(watch: Watch, namespace: str, name: str, type: str | None = None, **more: Any) -> None:
    (handler,) = watch.registry._watching.get_all_handlers()
    meta = {"namespace": namespace, "name": name, "uid": f"{namespace}-{name}", "finalizers": [FINALIZER], **more}
    await handler.fn(type=type, meta=meta, event={"type": type, "object": {"metadata": meta}})
    await asyncio.sleep(0)


@pytest.mark.parametrize(("ending", "let_go"), [(False, []), (True, ["kafka", "second"]), (Unreachable("no answer"), [])],
                         ids=["no", "yes", "nobody tells"])
async def test_an_operator_that_ends_in_a_namespace_that_ends_holds_nothing(ending: Any, let_go: list[str]) -> None:
    """The operator's pod goes before the migrations do, and no other pod can come after it."""
    passes = Passes("shop")
    passes.ending = ending
    loops = passes.loops(metrics())
    for name in ("kafka", "second"):
        loops.noticed({"metadata": {"name": name, "uid": name, "finalizers": [handlers.FINALIZER]}})
    await asyncio.sleep(0)
    await loops.stop()
    assert passes.let_go == let_go


async def test_objects_of_one_name_in_two_namespaces_are_two() -> None:
    """A watch of all namespaces tells of both; each is served by what is bound to its namespace."""
    made: dict[str, Passes] = {}
    known = metrics()

    def loops(namespace: str) -> Loops:
        made[namespace] = Passes(namespace)
        return made[namespace].loops(known)

    watch = Watch([handlers.EVERYWHERE])
    register(watch, RESOURCE, LoopsByNamespace("KafkaMigration", loops, known))
    for namespace in ("shop", "bank", "shop"):
        await told(watch, namespace, "kafka")
    await asyncio.sleep(0)
    assert {namespace: each.served for namespace, each in made.items()} == {"shop": ["kafka"], "bank": ["kafka"]}
    assert why_not_ready(watch, 0.0) == "nothing is watched yet"
    watch.begun = True
    assert why_not_ready(watch, 0.0) == ""
    watch.loops[0].of("bank").noticed({"metadata": {"name": "orders", "uid": "bank-orders"}})
    assert why_not_ready(watch, 0.0) == "migrations that have not been looked at yet: 1"
    await asyncio.sleep(0)
    assert why_not_ready(watch, 0.0) == ""
    watch.down = CLOSED
    assert why_not_ready(watch, 0.0) == CLOSED
    watch.down = ""
    await told(watch, "bank", "kafka", type="DELETED")
    assert why_dead(watch, asyncio.get_running_loop().time() + 60 + 2 * SILENCE_SECONDS) == (
        "the loop of shop/kafka has shown no life for 120 s")
    await watch.loops[0].stop()
    assert why_dead(watch, float("inf")) == ""


async def test_the_oldest_pass_of_a_kind_is_that_of_any_namespace() -> None:
    registry, now = CollectorRegistry(), [100.0]
    known = Metrics(registry, lambda: now[0])
    loops = LoopsByNamespace("KafkaMigration", lambda namespace: Passes(namespace).loops(known), known)

    def oldest() -> float | None:
        return registry.get_sample_value("switchover_oldest_pass_age_seconds", {"kind": "KafkaMigration"})

    assert oldest() == 0.0, "without objects it is there, or an alert takes the operator for gone"
    for namespace in ("shop", "bank"):
        loops.of(namespace)._loops["kafka"] = Loop(
            "uid", None, False, True, 0.0, 60.0 if namespace == "shop" else 97.0, Packed({}))
    assert oldest() == 40.0


class Kopf:
    """Stands for kopf.operator: watches until it is told to end, or refused as the API server refuses it."""

    def __init__(self, *refused: str) -> None:
        self.closed, self.refused = set(refused), set(refused)
        self.begun: list[list[str]] = []

    async def operator(self, stop_flag: asyncio.Event, namespaces: list[str], **_: Any) -> None:
        self.begun.append(namespaces)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        if found := self.refused & set(namespaces):
            raise kopf.PermanentError(f"may not list in {found}")
        waits = [asyncio.create_task(event.wait()) for event in (stop_flag, stopped)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)

    async def missing(self, namespace: str) -> Sequence[str]:
        return ["list kafkamigrations.switchover.dev"] if namespace in self.closed else []


stopped = asyncio.Event()


@pytest.fixture
def stood(monkeypatch: pytest.MonkeyPatch) -> Kopf:
    stopped.clear()
    monkeypatch.setattr(handlers, "backoff", lambda _: 0.01)
    monkeypatch.setattr(handlers, "LONGEST_PAUSE", 0.01)
    kopf_stood = Kopf("bank")
    monkeypatch.setattr(kopf, "operator", kopf_stood.operator)
    return kopf_stood


async def until(seen: Any) -> None:
    for _ in Patience(20).looks():
        if seen():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it is not so")


async def ends(serving: "asyncio.Task[None]") -> None:
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(serving, 20)


async def test_a_namespace_that_is_closed_is_left_out_until_it_opens(stood: Kopf, caplog: pytest.LogCaptureFixture) -> None:
    watch, counted = Watch(["shop", "bank"]), metrics()
    serving = asyncio.create_task(serve(watch, stood.missing, counted))
    await until(lambda: counted.failures.labels("watch")._value.get() > 3)
    assert stood.begun == [["shop"]], "it goes on while the other is asked again and again"
    assert why_dead(watch, 0.0) == ""
    assert f"{CLOSED}; it is asked again every" in caplog.text
    stood.closed.clear()
    stood.refused.clear()
    await until(lambda: len(stood.begun) == 2)
    assert stood.begun[1] == ["shop", "bank"]
    await ends(serving)


async def test_one_that_is_closed_under_way_is_left_out_then(stood: Kopf) -> None:
    """Kopf is refused, and ends; then nothing is said to be missing for a moment, as the authorizer learns late."""
    stood.closed.clear()
    watch = Watch(["shop", "bank"])
    serving = asyncio.create_task(serve(watch, stood.missing, metrics()))
    await until(lambda: len(stood.begun) > 3)
    assert ["shop"] not in stood.begun
    stood.closed.add("bank")
    await until(lambda: ["shop"] in stood.begun)
    await ends(serving)
    assert stood.begun[-1] == ["shop"]


async def test_where_nothing_is_watched_the_kubelet_is_told(stood: Kopf) -> None:
    watch = Watch(["bank"])
    serving = asyncio.create_task(serve(watch, stood.missing, metrics()))
    await until(lambda: watch.down)
    assert why_dead(watch, 0.0) == f"the watch ended: {CLOSED}"
    await ends(serving)
    assert stood.begun == []


async def test_the_probe_says_why() -> None:
    here, why = port(), ["", ""]
    pages = health(lambda: why[0], lambda: why[1])
    async with answering(here, pages), aiohttp.ClientSession() as session:
        for why[:], answers in ((["", ""], {LIVE: (200, "alive\n"), READY: (200, "ready\n")}),
                             (["", "3 are left"], {LIVE: (200, "alive\n"), READY: (503, "3 are left\n")}),
                             (["shop/kafka hangs", ""], {LIVE: (503, "shop/kafka hangs\n")})):
            for path, answer in answers.items():
                async with session.get(f"http://127.0.0.1:{here}{path}") as found:
                    assert (found.status, await found.text()) == answer
        with pytest.raises(OSError, match="in use"):
            async with answering(here, pages):
                pass
