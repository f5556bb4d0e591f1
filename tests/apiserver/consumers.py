"""Consumers' workloads for tests on a real API server, and what the operator and a kubelet do to them."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from apiserver.kubelet import run_as_kubelet
from patience import Patience
from switchover.answers.errors import Fenced
from switchover.api.consumer_group_migration import ContainerChange
from switchover.engine.effects import Effect
from switchover.engine.policy import NOTHING_MORE
from switchover.engine.reconcile import Reconciler
from switchover.groups.kind import consumer_group_migrations
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.members import MemberWorkload

LABELS = {"app.kubernetes.io/name": "orders", "app.kubernetes.io/instance": "shop"}
FINAL = ContainerChange.model_validate({
    "image": "localhost/orders:2", "args": [],
    "env": [{"name": "GROUP_PROTOCOL", "value": "consumer"}, {"name": "SECRET", "value": "a < b & c"}, {"name": "EMPTY"}]})
CONTAINER: dict[str, Any] = {
    "name": "app", "image": "localhost/orders:1", "args": ["--group", "orders"],
    "env": [{"name": "FIRST", "value": "1"},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "orders", "key": "password"}}}]}


def deployment(count: int, name: str = "orders", **spec: Any) -> dict[str, Any]:
    sidecar = {"name": "sidecar", "image": "localhost/sidecar:1"}
    pod = {"terminationGracePeriodSeconds": 0, "containers": [sidecar, CONTAINER]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": count, "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": pod}, **spec}}


def stateful_set(count: int, **spec: Any) -> dict[str, Any]:
    made = deployment(count, **{"serviceName": "orders", "podManagementPolicy": "Parallel", **spec})
    return {**made, "kind": "StatefulSet"}


async def read(workloads: KubernetesWorkloads, kind: str = "Deployment", name: str = "orders") -> MemberWorkload:
    found = (await workloads.member_workloads([(kind, name)]))[name]
    assert found is not None
    return found


async def until(condition: Callable[[], Awaitable[bool]], what: str, seconds: float = 20.0, *, pause: float = 0.2) -> None:
    """By what is read fresh: eight requests each time."""
    patience = Patience(seconds)
    while not await condition():
        assert not patience.over, f"after {patience} still not: {what}"
        await asyncio.sleep(pause)


async def up(server: ApiServer, workloads: KubernetesWorkloads, kind: str = "Deployment", name: str = "orders",
             broken: str = "") -> MemberWorkload:
    """Wait until its controller made every pod that is wanted, and be their kubelet; all but `broken` get Ready."""
    async def all_there() -> bool:
        found = await read(workloads, kind, name)
        return found.caught_up and len([pod for pod in found.pods.values() if not pod.terminating]) == found.replicas

    await until(all_there, f"{kind} {name} has the pods that it wants")
    for pod in (await read(workloads, kind, name)).pods.values():
        if not pod.ready and pod.name != broken:
            await run_as_kubelet(server, pod, container="app")
    return await read(workloads, kind, name)


async def perform(workloads: KubernetesWorkloads, effect: Effect | None) -> None:
    """As the reconciler does it, which makes a note of what was fenced or refused; here that is an error."""
    assert effect is not None
    nobody: Any = None
    kind = consumer_group_migrations(NOTHING_MORE)
    reconciler: Any = Reconciler(kind, "test", "me", nobody, workloads, nobody, nobody, nobody, nobody)
    memory = SimpleNamespace(fenced=0, refused="")
    await reconciler._perform(SimpleNamespace(metadata=SimpleNamespace(name="orders")), effect, memory)
    assert not memory.refused, memory.refused
    if memory.fenced:
        raise Fenced(str(effect))


async def tried(workloads: KubernetesWorkloads, effect: Callable[[], Awaitable[Effect | None]]) -> None:
    """As the operator does where the status of an object moves between reading and writing: read again, try again."""
    for _ in Patience(30).looks():
        try:
            await perform(workloads, await effect())
        except Fenced:
            await asyncio.sleep(0.1)
        else:
            return
    raise AssertionError("fenced for ever")
