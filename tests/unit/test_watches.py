"""One watch a namespace: what ends one leaves the others alone."""

import asyncio
import signal
from typing import Any

import aiohttp
import kopf
import pytest
from prometheus_client import CollectorRegistry

from apiserver.processes import port
from patience import Patience
from switchover import handlers
from switchover.handlers import SILENCE_SECONDS, Loops, LoopsByNamespace, Watch, register, serve, why_dead
from switchover.metrics import Metrics
from switchover.probe import PATH, answering

RESOURCE = ("switchover.dev", "v1alpha1", "kafkamigrations")


class Passes:
    """Stands for a reconciler in one namespace."""

    def __init__(self, namespace: str, delay: float = 60.0) -> None:
        self.namespace, self.delay = namespace, delay
        self.served: list[str] = []

    async def reconcile(self, name: str) -> float:
        self.served.append(name)
        return self.delay

    async def set_finalizer(self, name: str, finalizer: str, present: bool) -> bool:
        return True

    async def close(self) -> None: ...

    def loops(self, metrics: Metrics) -> Loops:
        return Loops("KafkaMigration", self.namespace, self.reconcile, self.reconcile, self.set_finalizer, self.close,
                     metrics)


def metrics() -> Metrics:
    return Metrics(CollectorRegistry(), lambda: asyncio.get_running_loop().time())


async def told(watch: Watch, namespace: str, name: str, type: str | None = None, **more: Any) -> None:
    (handler,) = watch.registry._watching.get_all_handlers()
    await handler.fn(type=type, meta={"namespace": namespace, "name": name, "uid": f"{namespace}-{name}", **more})
    await asyncio.sleep(0)


async def test_objects_of_one_name_in_two_namespaces_are_two() -> None:
    """A watch of all namespaces tells of both; each is served by what is bound to its namespace."""
    made: dict[str, Passes] = {}
    known = metrics()

    def loops(namespace: str) -> Loops:
        made[namespace] = Passes(namespace)
        return made[namespace].loops(known)

    watch = Watch(handlers.EVERYWHERE)
    register(watch, RESOURCE, LoopsByNamespace("KafkaMigration", loops, known))
    for namespace in ("shop", "bank", "shop"):
        await told(watch, namespace, "kafka")
    await asyncio.sleep(0)
    assert {namespace: each.served for namespace, each in made.items()} == {"shop": ["kafka"], "bank": ["kafka"]}
    await told(watch, "bank", "kafka", type="DELETED")
    assert why_dead([watch], asyncio.get_running_loop().time() + 60 + 2 * SILENCE_SECONDS) == (
        "the loop of shop/kafka has shown no life for 120 s")
    await watch.loops[0].stop()
    assert why_dead([watch], float("inf")) == ""


async def test_the_oldest_pass_of_a_kind_is_that_of_any_namespace() -> None:
    registry = CollectorRegistry()
    known = Metrics(registry, lambda: 0.0)
    ages = {"shop": 3.0, "bank": 70.0}
    for age in ages.values():
        known.asks_oldest_pass("KafkaMigration", lambda age=age: age)  # type: ignore[misc]
    LoopsByNamespace("ConsumerGroupMigration", lambda _: Passes("x").loops(known), known)

    def oldest(kind: str) -> float | None:
        return registry.get_sample_value("switchover_oldest_pass_age_seconds", {"kind": kind})

    assert oldest("KafkaMigration") == 70.0
    assert oldest("ConsumerGroupMigration") == 0.0, "without objects it is there, or an alert takes the operator for gone"


class Kopf:
    """Stands for kopf.operator: refused in some namespaces, else watching until it is told to end."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.begun: list[str] = []
        self.ended: list[str] = []

    async def operator(self, stop_flag: asyncio.Event, namespaces: list[str], **_: Any) -> None:
        (namespace,) = namespaces
        self.begun.append(namespace)
        if namespace in self.refused:
            raise kopf.PermanentError(f"may not list in {namespace}")
        await stop_flag.wait()
        self.ended.append(namespace)


async def until(seen: Any) -> None:
    for _ in Patience(20).looks():
        if seen():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it is not so")


async def test_a_namespace_that_is_refused_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "backoff", lambda _: 0.01)
    stood = Kopf("bank")
    monkeypatch.setattr(kopf, "operator", stood.operator)
    watches = [Watch("shop"), Watch("bank")]
    serving = asyncio.create_task(serve(watches, metrics()))
    await until(lambda: stood.begun.count("bank") > 3)
    assert stood.begun.count("shop") == 1
    assert why_dead(watches, 0.0) == ""
    await until(lambda: watches[1].down)
    assert watches[1].down == "the watch of namespace bank ended: may not list in bank"
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(serving, 20)
    assert stood.ended == ["shop"]


async def test_where_nothing_is_watched_the_kubelet_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    stood = Kopf("shop", "bank")
    monkeypatch.setattr(kopf, "operator", stood.operator)
    watches = [Watch("shop"), Watch("bank")]
    serving = asyncio.create_task(serve(watches, metrics()))
    await until(lambda: watches[1].down)
    assert why_dead(watches, 0.0) == "the watch of namespace shop ended: may not list in shop"
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(serving, 20)


async def test_the_first_that_is_told_to_end_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kopf's handler of signals is that of the last watch that began."""
    stood = Kopf()

    async def operator(stop_flag: asyncio.Event, namespaces: list[str], **more: Any) -> None:
        if namespaces != ["bank"]:
            await stood.operator(stop_flag, namespaces, **more)

    monkeypatch.setattr(kopf, "operator", operator)
    await asyncio.wait_for(serve([Watch("shop"), Watch("bank")], metrics()), 20)
    assert stood.ended == ["shop"]


async def test_the_probe_says_why() -> None:
    here, why = port(), [""]
    async with answering(here, lambda: why[0]), aiohttp.ClientSession() as session:
        for why[0], answer in (("", (200, "alive\n")), ("shop/kafka hangs", (503, "shop/kafka hangs\n"))):
            async with session.get(f"http://127.0.0.1:{here}{PATH}") as found:
                assert (found.status, await found.text()) == answer
        with pytest.raises(OSError, match="in use"):
            async with answering(here, lambda: ""):
                pass
