"""What passes look at is watched on a real API server, with the operator's own Role."""

import asyncio
from pathlib import Path

from adapters.eventually import eventually
from apiserver.conftest import Kubectl
from apiserver.test_chart import OTHERS, Release, workload
from apiserver.test_chart import helm as helm
from apiserver.test_chart import operators_kubeconfig as operators_kubeconfig
from apiserver.test_chart import release as release
from switchover.answers.clock import WallClock
from switchover.kubernetes.client.api_server import connect
from switchover.kubernetes.client.reflector import WatchedServer
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.lease import LOOKING_SECONDS
from switchover.kubernetes.workloads import Workload


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

    async def both() -> tuple[Workload | None, Workload | None]:
        return await seen.stateful_set("kafka"), await fresh.stateful_set("kafka")

    server.request = counted  # type: ignore[method-assign]
    try:
        assert await seen.stateful_set("kafka") is None
        assert not await seen.holds_lease("cluster", "uid/one", LOOKING_SECONDS)
        await fresh.hold_lease("cluster", "uid/one", LOOKING_SECONDS)
        for manifest in (workload("kafka"), *OTHERS):
            await fresh.create(manifest)
        found, _ = await eventually(both, lambda answer: answer[0] is not None and len(answer[0].pods) == 2
                                    and answer[0] == answer[1], 60)
        assert found is not None
        assert set(found.pods) == {"kafka-0", "kafka-1"}
        kubectl("-n", release.namespace, "delete", "pod", "kafka-0", "--grace-period=0", "--force")
        after = await eventually(
            lambda: seen.stateful_set("kafka"),
            lambda answer: answer is not None and answer.pods.get("kafka-0") not in (None, found.pods["kafka-0"]), 60)
        assert after is not None
        assert after.pods["kafka-0"].uid != found.pods["kafka-0"].uid
        await eventually(lambda: seen.holds_lease("cluster", "uid/one", LOOKING_SECONDS), bool, 60)
        for round_ in range(100):
            await seen.holds_lease("cluster", "uid/one", LOOKING_SECONDS)
            await seen.stateful_set("kafka")
            await seen.member_workloads([("Deployment", "orders"), ("StatefulSet", "kafka")])
            await seen.original("kafka-original")
            if round_ == 0:
                asked.clear()
        assert [each for each in asked if "nodes" not in each] == []
        assert watched.age(asyncio.get_running_loop().time()) < 120
    finally:
        await watched.close()
        await server.close()
