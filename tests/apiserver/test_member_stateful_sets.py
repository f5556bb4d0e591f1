"""Consumers' StatefulSets by their partition on a real API server with its controllers: there, back, and pods lost.

No node runs here: `up` writes the pods' status as a kubelet would.
"""

import asyncio
from collections.abc import Callable

from apiserver.consumers import CONTAINER, FINAL, perform, read, stateful_set, until, up
from apiserver.kubelet import run_as_kubelet
from switchover.groups.workloads import change
from switchover.groups.workloads import stateful_set as recipe
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.members import MemberWorkload


def images(found: MemberWorkload, revisions: dict[str, str]) -> dict[str, str]:
    return {name: revisions[pod.revision] for name, pod in sorted(found.pods.items())}


async def lowered(server: ApiServer, workloads: KubernetesWorkloads, updated: int) -> MemberWorkload:
    """One batch, until its pods run the template."""
    await perform(workloads, recipe.lower(await read(workloads, "StatefulSet"), updated))

    async def replaced() -> bool:
        found = await up(server, workloads, "StatefulSet")
        return {*recipe.highest(found, updated)} <= {*found.ready()}

    await until(replaced, f"{updated} pods are replaced")
    return await read(workloads, "StatefulSet")


async def lose(server: ApiServer, workloads: KubernetesWorkloads, name: str) -> MemberWorkload:
    """The pod goes away, with its node say, and comes back."""
    before = (await read(workloads, "StatefulSet")).pods[name].uid
    await server.request("DELETE", server.path("v1", "Pod", name), {})

    async def made_anew() -> bool:
        pod = (await read(workloads, "StatefulSet")).pods.get(name)
        return pod is not None and pod.uid != before

    await until(made_anew, f"{name} is made anew")
    return await up(server, workloads, "StatefulSet")


async def all_settled(workloads: KubernetesWorkloads) -> bool:
    return recipe.settled(await read(workloads, "StatefulSet"))


async def test_a_stateful_set_by_its_partition_there_and_back(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(stateful_set(3))
    original = await up(server, workloads, "StatefulSet")
    first = {pod.uid for pod in original.pods.values()}
    await until(lambda: all_settled(workloads), "settled")
    await perform(workloads, recipe.hold(await read(workloads, "StatefulSet")))
    held = await up(server, workloads, "StatefulSet")
    assert recipe.is_held(held)
    wanted = change.changed(original.template, "app", FINAL)
    await perform(workloads, change.write(held, "app", wanted, "the change", recipe.holding(held)))
    changed = await up(server, workloads, "StatefulSet")
    assert {pod.uid for pod in changed.pods.values()} == first, "held: no pod is replaced"
    revisions = {original.update_revision: "old", changed.update_revision: "new"}
    assert images(await lose(server, workloads, "orders-0"), revisions)["orders-0"] == "old", "lost, and back as it was"

    canary = await lowered(server, workloads, 1)
    assert images(canary, revisions) == {"orders-0": "old", "orders-1": "old", "orders-2": "new"}
    assert images(await lose(server, workloads, "orders-1"), revisions)["orders-1"] == "old"
    assert images(await lose(server, workloads, "orders-2"), revisions)["orders-2"] == "new"

    await perform(workloads, recipe.hold(await read(workloads, "StatefulSet")))            # back from the middle
    stood = await up(server, workloads, "StatefulSet")
    assert images(stood, revisions)["orders-2"] == "new", "held: what is new stays so"
    await perform(workloads, change.write(stood, "app", original.template, "as it was", recipe.holding(stood)))
    back = await up(server, workloads, "StatefulSet")
    assert back.template == original.template
    assert back.update_revision == original.update_revision, "Kubernetes knows the template again"
    assert images(back, revisions)["orders-2"] == "new"
    assert recipe.would_restart(back, original.update_strategy) == ("orders-2",)
    done = await lowered(server, workloads, 1)
    assert {*images(done, revisions).values()} == {"old"}
    assert recipe.would_restart(done, original.update_strategy) == ()
    uids = {pod.uid for pod in done.pods.values()}
    await perform(workloads, recipe.restore_strategy(done, original.update_strategy))
    given_back = await up(server, workloads, "StatefulSet")
    assert given_back.update_strategy == original.update_strategy
    assert {pod.uid for pod in given_back.pods.values()} == uids


async def test_back_from_the_end_goes_batch_by_batch_as_well(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(stateful_set(2))
    original = await up(server, workloads, "StatefulSet")
    await until(lambda: all_settled(workloads), "settled")
    await perform(workloads, recipe.hold(await read(workloads, "StatefulSet")))
    held = await up(server, workloads, "StatefulSet")
    wanted = change.changed(held.template, "app", FINAL)
    await perform(workloads, change.write(held, "app", wanted, "the change", recipe.holding(held)))
    await lowered(server, workloads, 2)
    await until(lambda: all_settled(workloads), "the new revision is the current one")
    await perform(workloads, recipe.hold(await read(workloads, "StatefulSet")))
    end = await up(server, workloads, "StatefulSet")
    revisions = {original.update_revision: "old", end.update_revision: "new"}
    await perform(workloads, change.write(end, "app", original.template, "as it was", recipe.holding(end)))
    assert images(await lose(server, workloads, "orders-0"), revisions) == {"orders-0": "new", "orders-1": "new"}
    assert images(await lowered(server, workloads, 1), revisions) == {"orders-0": "new", "orders-1": "old"}


async def under_on_delete(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> dict[str, str]:
    """Two pods of a second template, while the current revision is still the very first."""
    apply(stateful_set(2, updateStrategy={"type": "OnDelete"}))
    first = await up(server, workloads, "StatefulSet")
    manifest = stateful_set(2, updateStrategy={"type": "OnDelete"})
    manifest["spec"]["template"]["spec"]["containers"][1] = {**CONTAINER, "image": "localhost/orders:second"}
    apply(manifest)
    for name in ("orders-0", "orders-1"):
        assert recipe.would_restart(await up(server, workloads, "StatefulSet"), {"type": "RollingUpdate"})
        await lose(server, workloads, name)
    second = await up(server, workloads, "StatefulSet")
    assert (second.current_revision, recipe.settled(second)) == (first.update_revision, False)
    assert recipe.would_restart(second, {"type": "RollingUpdate"}) == ()
    return {first.update_revision: "first", second.update_revision: "second"}


async def test_on_delete_has_forgotten_what_its_pods_run(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    """Held at once, a pod that is lost comes back of the very first template."""
    revisions = await under_on_delete(server, workloads, apply)
    path = server.path("v1", "Pod", "orders-1") + "/status"      # not Ready for a moment: the revision does not catch up
    not_ready = [{"op": "replace", "path": "/status/conditions", "value": [{"type": "Ready", "status": "False"}]}]
    await server.json_patch(path, not_ready)
    await perform(workloads, recipe.hold(await read(workloads, "StatefulSet")))
    assert images(await lose(server, workloads, "orders-0"), revisions)["orders-0"] == "first"


async def test_settled_first_it_remembers(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    revisions = await under_on_delete(server, workloads, apply)
    before = await read(workloads, "StatefulSet")
    await perform(workloads, recipe.settle(before))
    await until(lambda: all_settled(workloads), "the current revision has caught up")
    settled = await read(workloads, "StatefulSet")
    assert {pod.uid for pod in settled.pods.values()} == {pod.uid for pod in before.pods.values()}, "nothing restarts"
    await perform(workloads, recipe.hold(settled))
    held = await up(server, workloads, "StatefulSet")
    wanted = change.changed(held.template, "app", FINAL)
    await perform(workloads, change.write(held, "app", wanted, "the change", recipe.holding(held)))
    assert images(await lose(server, workloads, "orders-0"), revisions)["orders-0"] == "second"


async def test_a_pod_that_never_gets_ready_blocks_its_own_way_back_until_it_is_deleted(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(stateful_set(2, podManagementPolicy="OrderedReady"))

    await until(lambda: _started(server, workloads), "both pods are Ready")
    original = await read(workloads, "StatefulSet")
    await until(lambda: all_settled(workloads), "settled")
    await perform(workloads, recipe.hold(await read(workloads, "StatefulSet")))
    held = await up(server, workloads, "StatefulSet")
    wanted = change.changed(held.template, "app", FINAL)
    await perform(workloads, change.write(held, "app", wanted, "the change", recipe.holding(held)))
    await perform(workloads, recipe.lower(await read(workloads, "StatefulSet"), 1))

    async def broken() -> bool:
        pod = (await read(workloads, "StatefulSet")).pods.get("orders-1")
        return pod is not None and pod.uid != original.pods["orders-1"].uid

    await until(broken, "orders-1 is replaced, and no kubelet starts it")
    await perform(workloads, recipe.hold(await read(workloads, "StatefulSet")))
    stood = await read(workloads, "StatefulSet")
    await perform(workloads, change.write(stood, "app", original.template, "as it was", recipe.holding(stood)))
    await perform(workloads, recipe.lower(await read(workloads, "StatefulSet"), 1))
    stuck = (await read(workloads, "StatefulSet")).pods["orders-1"].uid
    await asyncio.sleep(2)
    found = await read(workloads, "StatefulSet")
    assert found.caught_up
    assert found.pods["orders-1"].uid == stuck, "the better template does not help it"
    healed = await lose(server, workloads, "orders-1")
    assert healed.pods["orders-1"].revision == original.update_revision


async def _started(server: ApiServer, workloads: KubernetesWorkloads) -> bool:
    """OrderedReady: the next pod is made when the one before is Ready."""
    found = await read(workloads, "StatefulSet")
    for pod in found.pods.values():
        if not pod.ready:
            await run_as_kubelet(server, pod, container="app")
    return len(found.ready()) == found.replicas
