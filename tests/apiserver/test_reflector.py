"""What passes look at is watched on a real API server, with the operator's own Role."""

import asyncio
from pathlib import Path

from apiserver.conftest import Kubectl
from apiserver.test_chart import OTHERS, Release, workload
from apiserver.test_chart import helm as helm
from apiserver.test_chart import operators_kubeconfig as operators_kubeconfig
from apiserver.test_chart import release as release
from patience import Patience
from switchover.adapters.api_server import connect
from switchover.adapters.clock import WallClock
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.adapters.reflector import WatchedServer


async def test_a_store_follows_what_is_read_fresh(release: Release, kubectl: Kubectl, operators_kubeconfig: Path) -> None:
    """One watch for each kind, whoever reads; and what is not served is nothing, as ever."""
    server = await connect(release.namespace, str(operators_kubeconfig))
    watched = WatchedServer(server)
    fresh, seen = (KubernetesWorkloads(each, WallClock()) for each in (server, watched))
    asked: list[str] = []
    request = server.request

    async def counted(method, path, body=None, **parameters):  # type: ignore[no-untyped-def]
        asked.append(f"{method} {path}")
        return await request(method, path, body, **parameters)

    server.request = counted  # type: ignore[method-assign]
    try:
        assert await seen.stateful_set("kafka") is None
        for manifest in (workload("kafka"), *OTHERS):
            await fresh.apply(manifest)
        for _ in Patience(60).looks():
            found = await seen.stateful_set("kafka")
            if found is not None and len(found.pods) == 2 and found == await fresh.stateful_set("kafka"):
                break
            await asyncio.sleep(0.2)
        assert found is not None
        assert set(found.pods) == {"kafka-0", "kafka-1"}
        kubectl("-n", release.namespace, "delete", "pod", "kafka-0", "--grace-period=0", "--force")
        for _ in Patience(60).looks():
            after = await seen.stateful_set("kafka")
            if after is not None and after.pods.get("kafka-0") not in (None, found.pods["kafka-0"]):
                break
            await asyncio.sleep(0.2)
        assert after is not None
        assert after.pods["kafka-0"].uid != found.pods["kafka-0"].uid
        for round_ in range(100):
            await seen.stateful_set("kafka")
            await seen.member_workloads([("Deployment", "orders"), ("StatefulSet", "kafka")])
            await seen.original("kafka-original")
            if round_ == 0:
                asked.clear()
        assert [each for each in asked if "nodes" not in each] == []
        assert watched.age() < 120
    finally:
        await watched.close()
        await server.close()
