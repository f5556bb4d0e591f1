"""Consumers' Deployments and their autoscalers on a real API server with its controllers: what Kubernetes does, and what we
rest upon it.

No node runs here: `up` writes the pods' status as a kubelet would.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import yaml

from apiserver.consumers import FINAL, LABELS, deployment, perform, read, stateful_set, tried, until, up
from apiserver.kubelet import budget
from patience import Patience, stretched
from switchover.adapters.api_server import ApiServer
from switchover.adapters.clock import WallClock
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.api.consumer_group_migration import ContainerChange
from switchover.core import gitops, names
from switchover.core.effects import Create, Delete, Effect
from switchover.core.groups import autoscalers, change, clone, partition, replicas
from switchover.core.groups.workloads import MemberWorkload
from switchover.ports import Fenced, Refused

Kubectl = Callable[..., Any]
BRIDGE = ContainerChange.model_validate({"image": "localhost/orders:bridge"})


@pytest.fixture
def workloads(server: ApiServer) -> KubernetesWorkloads:
    return KubernetesWorkloads(server, WallClock())


async def scaled(server: ApiServer, workloads: KubernetesWorkloads, name: str, count: int) -> MemberWorkload:
    """Scale a Deployment and wait for its pods."""
    async def effect() -> Effect:
        return replicas.scale(await read(workloads, name=name), count)

    await tried(workloads, effect)
    return await up(server, workloads, name=name)


def clone_of(source: MemberWorkload, intermediate: ContainerChange = BRIDGE) -> Create:
    return Create(clone.manifest(source, source.template, "app", intermediate, "orders", "uid-of-the-migration"))


async def exchange(server: ApiServer, workloads: KubernetesWorkloads, rising: str, falling: str, moved: int,
                   total: int) -> int:
    """One batch from the one to the other; the fewest pods Ready that there were at any moment."""
    fewest = total
    for _ in Patience(30).looks():
        up_now, down_now = await up(server, workloads, name=rising), await up(server, workloads, name=falling)
        fewest = min(fewest, sum(pod.ready for each in (up_now, down_now) for pod in each.pods.values()))
        if replicas.is_exchanged(up_now, down_now, moved, total):
            return fewest
        if (effect := replicas.exchange(up_now, down_now, moved, total)) is not None:
            with suppress(Fenced):
                await perform(workloads, effect)
    raise AssertionError(f"{rising} does not come to have {moved}")


# --- the clone ----------------------------------------------------------------------------------------------------------


async def test_a_deployment_by_its_clone_there_and_back(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(deployment(3), budget("orders", {"matchLabels": LABELS}))
    source = await up(server, workloads)
    first = {pod.uid for pod in source.pods.values()}
    await perform(workloads, clone_of(source))
    for moved in (1, 3):
        assert await exchange(server, workloads, "orders-switchover", "orders", moved, 3) == 3
        both = await workloads.member_workloads([("Deployment", "orders"), ("Deployment", "orders-switchover")])
        assert [len(each.pods) for each in both.values() if each] == [3 - moved, moved], "neither takes the other's pods"
        assert first >= {pod.uid for pod in (await read(workloads)).pods.values()}, "no pod of the source was replaced"
    copy = await read(workloads, name="orders-switchover")
    bridged = {pod.uid for pod in copy.pods.values()}
    assert copy.claimed_by == "uid-of-the-migration"
    assert {pod.revision for pod in copy.pods.values()} == {copy.update_revision}

    async def counted() -> bool:
        status = (await server.get(server.path("policy/v1", "PodDisruptionBudget", "orders"))).get("status") or {}
        return (status.get("expectedPods"), status.get("disruptionsAllowed")) == (3, 1)

    await until(counted, "one budget counts the pods of both Deployments")
    assert (await read(workloads)).budgets == (await read(workloads, name="orders-switchover")).budgets == {"orders": 1}

    at_rest, original = await read(workloads), source.template                    # the template, at 0 replicas
    wanted = change.changed(original, "app", FINAL)
    assert change.differing(at_rest, "app", wanted) == ("image of app", "env of app", "args of app")
    await perform(workloads, change.write(at_rest, "app", wanted, "the change"))
    assert (await up(server, workloads)).pods == {}
    assert {pod.uid for pod in (await read(workloads, name="orders-switchover")).pods.values()} == bridged

    assert await exchange(server, workloads, "orders", "orders-switchover", 2, 3) == 3    # Promote, and half-way back again
    changed = await read(workloads)
    assert changed.template == wanted, "the API server keeps it as it was computed"
    assert {pod.revision for pod in changed.pods.values()} == {changed.update_revision} != {source.update_revision}
    assert await exchange(server, workloads, "orders-switchover", "orders", 3, 3) == 3
    await perform(workloads, change.write(await read(workloads), "app", original, "as it was"))
    assert await exchange(server, workloads, "orders", "orders-switchover", 3, 3) == 3
    restored = await read(workloads)
    assert restored.template == original
    assert {pod.revision for pod in restored.pods.values()} == {source.update_revision}

    last = await read(workloads, name="orders-switchover")
    await perform(workloads, Delete("apps/v1", "Deployment", last.name, last.uid))

    async def gone() -> bool:
        return (await workloads.member_workloads([("Deployment", last.name)]))[last.name] is None

    await until(gone, "the clone is deleted")
    assert (await read(workloads)).pods == restored.pods


async def test_a_clone_left_without_owner_would_be_taken_over_by_the_source(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl, namespace: str
) -> None:
    """Why it is deleted in the foreground, with all that is its own."""
    apply(deployment(1))
    source = await up(server, workloads)
    await perform(workloads, clone_of(source))
    orphans = (await scaled(server, workloads, "orders-switchover", 2)).pods
    kubectl("-n", namespace, "delete", "deployment", "orders-switchover", "--cascade=orphan")

    async def taken() -> bool:
        left = {pod["metadata"]["name"] for pod in await server.items(server.path("v1", "Pod"))}
        return not left & {*orphans}

    await until(taken, "the source scales the orphaned ReplicaSet away")
    assert len((await read(workloads)).pods) == 1


async def test_a_deleted_clone_takes_its_pods_along_before_it_is_gone(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(deployment(1))
    await perform(workloads, clone_of(await up(server, workloads)))
    copy = await scaled(server, workloads, "orders-switchover", 1)
    pod = server.path("v1", "Pod", *copy.pods)
    await server.json_patch(pod, [{"op": "add", "path": "/metadata/finalizers", "value": ["switchover.dev/test"]}])
    await perform(workloads, Delete("apps/v1", "Deployment", copy.name, copy.uid))

    async def ending() -> bool:
        return all(pod.terminating for pod in (await read(workloads, name=copy.name)).pods.values())

    await until(ending, "its pod ends")
    assert len((await read(workloads, name=copy.name)).pods) == 1, "and as long as it does, the clone is there"
    await server.json_patch(pod, [{"op": "remove", "path": "/metadata/finalizers"}])


async def test_the_clone_bears_no_mark_of_a_tool_and_no_owner_and_its_pods_every_label(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    marked = deployment(1)
    marked["metadata"] |= {
        "labels": {**LABELS, "kustomize.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/name": "shop"},
        "annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:x/orders",
                        "meta.helm.sh/release-name": "shop"}}
    marked["spec"]["template"]["metadata"]["annotations"] = {"prometheus.io/scrape": "true",
                                                            "argocd.argoproj.io/tracking-id": "shop"}
    apply(marked)
    source = await up(server, workloads)
    assert {*source.marks} > {gitops.ARGO_TRACKING, gitops.INSTANCE, gitops.HELM}
    await perform(workloads, clone_of(source))
    made = await server.get(server.path("apps/v1", "Deployment", "orders-switchover"))
    assert made["metadata"]["labels"] == {**names.labels("orders"), clone.CLONE_LABEL: "orders"}
    assert {*made["metadata"]["annotations"]} <= {names.CLAIM, "deployment.kubernetes.io/revision"}
    assert "ownerReferences" not in made["metadata"]
    assert made["spec"]["selector"] == {"matchLabels": {clone.CLONE_LABEL: "orders"}}
    pod = made["spec"]["template"]["metadata"]
    assert pod["labels"] == {**LABELS, clone.CLONE_LABEL: "orders"}
    assert pod["annotations"] == {"prometheus.io/scrape": "true"}


async def test_the_longest_name_that_a_workload_may_have_can_be_cloned(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    name = "o" * 52
    apply(deployment(1, name))
    await perform(workloads, clone_of(await up(server, workloads, name=name)))
    copy = await scaled(server, workloads, clone.clone_name(name), 1)
    assert len(copy.ready()) == 1


async def test_what_a_paused_deployment_does(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    """Why it is refused: scaled up after the change, it brings the old template."""
    apply(deployment(1))
    first = await up(server, workloads)
    apply(deployment(0, paused=True))
    held = await up(server, workloads)
    assert held.paused
    with pytest.raises(change.Unsupported, match="is paused"):
        clone.check_cloneable(held, "app")
    await perform(workloads, change.write(held, "app", change.changed(held.template, "app", FINAL), "the change"))
    back = await scaled(server, workloads, "orders", 1)
    assert {pod.revision for pod in back.pods.values()} == {first.update_revision}


async def test_claims_and_quotas_are_seen(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    mounting = deployment(1)
    mounting["spec"]["template"]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    once = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"}, "spec": {"hard": {"pods": "0"}}},
          *({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": once}
            for name in ("data", "other")))
    apply(mounting)

    async def told() -> bool:
        return "exceeded quota" in (await read(workloads)).trouble

    await until(told, "the quota that forbids its pods is named")
    found = await read(workloads)
    assert found.claims == {"data": ("ReadWriteOnce",)}
    with pytest.raises(change.Unsupported, match="PersistentVolumeClaim data is ReadWriteOnce"):
        clone.check_cloneable(found, "app")
    assert (await workloads.member_workloads([("StatefulSet", "nothing")])) == {"nothing": None}


# --- fences -------------------------------------------------------------------------------------------------------------


async def test_no_write_goes_over_somebody_elses(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl, namespace: str
) -> None:
    async def claimed_by(uid: str) -> Effect:
        return change.claim(await read(workloads), uid)

    apply(deployment(0))
    read_before = await up(server, workloads)
    kubectl("-n", namespace, "set", "env", "deployment/orders", "--containers", "sidecar", "WHO=somebody")
    changed = change.changed(read_before.template, "app", FINAL)
    for stale in (replicas.scale(read_before, 3), change.write(read_before, "app", changed, "the change"),
                  change.claim(read_before, "uid-1")):
        with pytest.raises(Fenced):
            await perform(workloads, stale)
    now = await up(server, workloads)
    assert (now.replicas, now.claimed_by, change.differing(now, "app", read_before.template)) == (0, "", ())
    await tried(workloads, lambda: claimed_by("uid-1"))
    claimed = await read(workloads)
    assert claimed.claimed_by == "uid-1"
    await tried(workloads, lambda: claimed_by("uid-2"))
    with pytest.raises(Fenced):
        await perform(workloads, change.release(claimed))
    await perform(workloads, change.release(await read(workloads)))
    assert (await read(workloads)).claimed_by == ""


async def test_an_object_of_the_same_name_is_another_one(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl, namespace: str
) -> None:
    apply(deployment(0))
    before = await up(server, workloads)
    wanted = change.changed(before.template, "app", FINAL)
    stale = (replicas.scale(before, 3), change.write(before, "app", wanted, "the change"))
    kubectl("-n", namespace, "delete", "deployment", "orders")
    for effect in stale:
        with pytest.raises(Fenced):
            await perform(workloads, effect)
    apply(deployment(0))
    again = await up(server, workloads)
    assert again.generation == before.generation, "so it is the uid that tells them apart"
    for effect in stale:
        with pytest.raises(Fenced):
            await perform(workloads, effect)
    assert (await read(workloads)).replicas == 0


async def test_a_clone_that_is_there_is_not_created_again(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    """An operator that stood still between deciding and acting would else scale the consumers to 0."""
    apply(deployment(1))
    source = await up(server, workloads)
    await perform(workloads, clone_of(source))
    await scaled(server, workloads, "orders-switchover", 1)
    with pytest.raises(Fenced, match="create Deployment orders-switchover"):
        await perform(workloads, clone_of(source))
    assert (await read(workloads, name="orders-switchover")).replicas == 1


async def test_no_template_is_written_while_pods_would_be_replaced(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(deployment(1), {**stateful_set(1), "metadata": {"name": "payments"}})
    for found in (await up(server, workloads), await up(server, workloads, "StatefulSet", "payments")):
        with pytest.raises(Fenced):
            await perform(workloads, change.write(found, "app", change.changed(found.template, "app", FINAL), "the change"))
        assert (await read(workloads, found.kind, found.name)).template == found.template


async def test_whose_change_it_was(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl, namespace: str
) -> None:
    """Argo CD applies what is in Git with force, and somebody scales."""
    apply(deployment(0))
    original = await up(server, workloads)
    wanted = change.changed(original.template, "app", BRIDGE)
    await perform(workloads, change.write(original, "app", wanted, "the change"))
    ours = await up(server, workloads)
    assert change.differing(ours, "app", wanted) == ()
    assert gitops.last_writer(ours, ("image of app",)) is None
    in_git = yaml.safe_dump(deployment(0))
    kubectl("-n", namespace, "apply", "--server-side", "--force-conflicts", "--field-manager", "argocd-controller",
            "-f", "-", stdin=in_git)
    reverted = await up(server, workloads)
    parts = change.differing(reverted, "app", wanted)
    assert parts == ("image of app",)
    writer = gitops.last_writer(reverted, parts)
    assert writer is not None
    assert writer.name == "argocd-controller"
    kubectl("-n", namespace, "scale", "deployment", "orders", "--replicas", "1")
    scaler = gitops.last_writer(await read(workloads), ("replicas",))
    assert scaler is not None
    assert (scaler.name, scaler.subresource) == ("kubectl", "scale")


async def test_server_side_apply_cannot_replace_a_variable_that_has_a_source(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    """Why the template is changed by a JSON patch."""
    apply(deployment(0))
    found = await up(server, workloads)
    variable = {"name": "SECRET", "value": "plain"}
    container = {"name": "app", "env": [variable]}
    with pytest.raises(Refused, match="may not be specified when `value` is not empty"):
        await workloads.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "orders"},
                               "spec": {"template": {"spec": {"containers": [container]}}}})
    wanted = change.changed(found.template, "app", ContainerChange.model_validate({"env": [variable]}))
    await perform(workloads, change.write(found, "app", wanted, "the change"))
    assert (await read(workloads)).template == wanted


async def test_what_others_change_in_the_template_stays_theirs(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl, namespace: str
) -> None:
    apply(deployment(0))
    original = await up(server, workloads)
    wanted = change.changed(original.template, "app", FINAL)
    await perform(workloads, change.write(original, "app", wanted, "the change"))
    kubectl("-n", namespace, "set", "env", "deployment/orders", "--containers", "sidecar", "WHO=somebody")
    await perform(workloads, change.write(await up(server, workloads), "app", original.template, "as it was"))
    restored = await read(workloads)
    assert change.differing(restored, "app", original.template) == ()
    assert restored.template["spec"]["containers"][0]["env"] == [{"name": "WHO", "value": "somebody"}]


async def test_the_original_is_kept_for_the_way_back_and_owned_by_nobody(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    """The StatefulSet controller takes over revisions that carry its pods' labels: ours do not."""
    apply(stateful_set(1))
    found = await up(server, workloads, "StatefulSet")
    await workloads.apply(change.original_manifest(found, "uid", 1, names.labels("orders")))
    kept = await workloads.original(change.original_name(found.kind, found.name, "uid", 1))
    assert kept == {"template": found.template, "updateStrategy": found.update_strategy, "replicas": 1, "autoscalers": {}}
    await perform(workloads, partition.hold(found))
    await up(server, workloads, "StatefulSet")
    path = server.path("apps/v1", "ControllerRevision", change.original_name(found.kind, found.name, "uid", 1))
    assert "ownerReferences" not in (await server.get(path))["metadata"]


# --- autoscalers --------------------------------------------------------------------------------------------------------


def hpa(name: str, low: int, high: int, **spec: Any) -> dict[str, Any]:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "minReplicas": low,
        "maxReplicas": high, "metrics": [metric], **spec}}


async def test_an_autoscaler_is_paused_and_given_back_exactly(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    """The real controller looks every 15 s: it brings `disabled` up to its minimum in spite of its behavior, and leaves
    `orders` and `stopped`, of the same bounds, where they are scaled to."""
    behavior = {"scaleDown": {"selectPolicy": "Max", "stabilizationWindowSeconds": 60,
                              "policies": [{"type": "Percent", "value": 10, "periodSeconds": 30}]}}
    off = {"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"selectPolicy": "Disabled"}}
    every = ("orders", "stopped", "disabled")
    for name in every:
        made = deployment(4, name)
        made["spec"]["selector"]["matchLabels"] = made["spec"]["template"]["metadata"]["labels"] = {"app": name}
        apply(made)
    apply(hpa("orders", 4, 8, behavior=behavior), hpa("stopped", 4, 8), hpa("disabled", 4, 8, behavior=off))
    kept: dict[str, MemberWorkload] = {}
    for name in ("orders", "stopped"):
        kept[name] = await up(server, workloads, name=name)
        (autoscaler,) = kept[name].autoscalers
        assert (autoscaler.kind, autoscaler.settings["minReplicas"]) == ("HorizontalPodAutoscaler", 4)
        assert autoscalers.in_the_way(autoscaler) == ""
        assert not autoscalers.is_paused(autoscaler)
        effect = autoscalers.pause(autoscaler)
        await perform(workloads, effect)
        with pytest.raises(Fenced):
            await perform(workloads, effect)                                   # read before: somebody has written it since
        (paused,) = (await read(workloads, name=name)).autoscalers
        assert autoscalers.is_paused(paused)
        assert autoscalers.pause(paused) is None
    for name, count in (("orders", 2), ("stopped", 0), ("disabled", 2)):
        await scaled(server, workloads, name, count)
        await server.json_patch(server.path("autoscaling/v2", "HorizontalPodAutoscaler", name) + "/status", [
            {"op": "add", "path": "/status/conditions", "value": []}])

    async def looked_at_all() -> bool:
        found = [await server.get(server.path("autoscaling/v2", "HorizontalPodAutoscaler", name)) for name in every]
        return all((each.get("status") or {}).get("conditions") for each in found) and (
            await read(workloads, name="disabled")).replicas == 4

    await until(looked_at_all, "the controller looked at all three, and enforced the bounds of the one", 60)
    await asyncio.sleep(1)
    assert [(await read(workloads, name=name)).replicas for name in every] == [2, 0, 4]

    for name in ("orders", "stopped"):
        (paused,) = (await read(workloads, name=name)).autoscalers
        (original,) = kept[name].autoscalers
        await perform(workloads, autoscalers.resume(paused, original.settings))
        (resumed,) = (await read(workloads, name=name)).autoscalers
        assert resumed.settings == original.settings
        assert autoscalers.resume(resumed, original.settings) is None


SCALED_OBJECTS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "scaledobjects.keda.sh"},
    "spec": {"group": "keda.sh", "scope": "Namespaced", "names": {"kind": "ScaledObject", "plural": "scaledobjects"},
             "versions": [{"name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {
                 "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


async def test_a_scaled_object_is_paused_instead_of_the_autoscaler_that_keda_made(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl
) -> None:
    apply(deployment(1))
    await up(server, workloads)
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(SCALED_OBJECTS))
    try:
        kubectl("wait", "--for=condition=Established", f"--timeout={stretched(30):.0f}s", "crd/scaledobjects.keda.sh")
        scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "orders"},
                  "spec": {"scaleTargetRef": {"name": "orders"}, "triggers": []}}
        path = server.path("keda.sh/v1alpha1", "ScaledObject")
        made = await server.request("POST", path, scaled)
        owner = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "orders", "uid": made["metadata"]["uid"],
                 "controller": True}
        apply({**hpa("orders", 1, 8), "metadata": {"name": "keda-hpa-orders", "ownerReferences": [owner]}})
        (original,) = (await read(workloads)).autoscalers
        assert str(original) == "ScaledObject orders"
        await perform(workloads, autoscalers.pause(original))
        (told,) = (await read(workloads)).autoscalers
        assert told.settings == {autoscalers.PAUSED: "true"}
        assert autoscalers.pause(told) is None
        assert not autoscalers.is_paused(told), "KEDA has not heard it yet"
        status = {"conditions": [{"type": "Paused", "status": "True"}]}
        await server.json_patch(f"{path}/orders/status", [{"op": "add", "path": "/status", "value": status}])
        (paused,) = (await read(workloads)).autoscalers
        assert autoscalers.is_paused(paused)
        await perform(workloads, autoscalers.resume(paused, original.settings))
        (resumed,) = (await read(workloads)).autoscalers
        assert (resumed.settings, resumed.annotated) == ({}, False)
    finally:
        kubectl("delete", "crd", "scaledobjects.keda.sh")
