"""Consumers' Deployments and their autoscalers on a real API server with its controllers: what Kubernetes does, and what we
rest upon it.

No node runs here: `up` writes the pods' status as a kubelet would.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from apiserver.consumers import FINAL, deployment, perform, read, stateful_set, tried, until, up
from patience import stretched
from switchover.answers.errors import Fenced, Refused
from switchover.api.consumer_group_migration import ContainerChange
from switchover.engine.effects import Effect
from switchover.groups.workloads import autoscalers, change
from switchover.groups.workloads import deployment as rolled
from switchover.groups.workloads import stateful_set as ordered
from switchover.kubernetes import gitops, names
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.members import MemberWorkload

Kubectl = Callable[..., Any]
BRIDGE = ContainerChange.model_validate({"image": "localhost/orders:bridge"})


async def scaled(server: ApiServer, workloads: KubernetesWorkloads, name: str, count: int) -> MemberWorkload:
    """Scale a Deployment and wait for its pods."""
    async def effect() -> Effect:
        return autoscalers.scale(await read(workloads, name=name), count)

    await tried(workloads, effect)
    return await up(server, workloads, name=name)


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
        rolled.check_movable(found, in_place=False)
    assert (await workloads.member_workloads([("StatefulSet", "nothing")])) == {"nothing": None}


ROLLOUTS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "rollouts.argoproj.io"},
    "spec": {"group": "argoproj.io", "scope": "Namespaced", "names": {"kind": "Rollout", "plural": "rollouts"},
             "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": {
                 "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


async def test_what_has_the_name_of_a_workload_that_does_not_exist_is_told(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl
) -> None:
    made = deployment(0)
    apply({**made, "kind": "DaemonSet", "metadata": {"name": "agents"}, "spec": {
        key: each for key, each in made["spec"].items() if key != "replicas"}})
    assert await workloads.others_called(["agents", "orders"]) == {"agents": "DaemonSet"}
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(ROLLOUTS))
    try:
        kubectl("wait", "--for=condition=Established", f"--timeout={stretched(30):.0f}s", "crd/rollouts.argoproj.io")
        await server.request("POST", server.resource_path("argoproj.io/v1alpha1", "rollouts"), {
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "orders"}, "spec": {}})
        assert await workloads.others_called(["agents", "orders"]) == {"agents": "DaemonSet", "orders": "Rollout"}
    finally:
        kubectl("delete", "crd", "rollouts.argoproj.io")


CANARIES = {
    **ROLLOUTS, "metadata": {"name": "canaries.flagger.app"},
    "spec": {**ROLLOUTS["spec"], "group": "flagger.app", "names": {"kind": "Canary", "plural": "canaries"}}}


async def test_a_deployment_that_flagger_runs_in_another_one_is_told(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl
) -> None:
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(CANARIES))
    try:
        kubectl("wait", "--for=condition=Established", f"--timeout={stretched(30):.0f}s", "crd/canaries.flagger.app")
        canary = await server.request("POST", server.resource_path("flagger.app/v1alpha1", "canaries"), {
            "apiVersion": "flagger.app/v1alpha1", "kind": "Canary", "metadata": {"name": "orders"}, "spec": {}})
        owner = {"apiVersion": "flagger.app/v1alpha1", "kind": "Canary", "name": "orders", "controller": True,
                 "uid": canary["metadata"]["uid"]}
        for name, owners in (("orders", []), ("orders-primary", [owner]), ("pay", []), ("pay-primary", [])):
            apply({**deployment(0), "metadata": {"name": name, "ownerReferences": owners}})
        assert await workloads.others_called(["orders", "pay"]) == {"orders": "Canary orders"}
    finally:
        kubectl("delete", "crd", "canaries.flagger.app")


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
    for stale in (autoscalers.scale(read_before, 3), change.write(read_before, "app", changed, "the change", change.EMPTY),
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
    stale = (autoscalers.scale(before, 3), change.write(before, "app", wanted, "the change", change.EMPTY))
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


async def test_no_template_is_written_while_pods_would_be_replaced(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(deployment(1), {**stateful_set(1), "metadata": {"name": "payments"}})
    for found in (await up(server, workloads), await up(server, workloads, "StatefulSet", "payments")):
        wanted, held = change.changed(found.template, "app", FINAL), ordered.holding(found)
        with pytest.raises(Fenced):
            await perform(workloads, change.write(
                found, "app", wanted, "the change", held if found.kind == "StatefulSet" else change.EMPTY))
        assert (await read(workloads, found.kind, found.name)).template == found.template


async def test_whose_change_it_was(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl, namespace: str
) -> None:
    """Argo CD applies what is in Git with force, and somebody scales."""
    apply(deployment(0))
    original = await up(server, workloads)
    wanted = change.changed(original.template, "app", BRIDGE)
    await perform(workloads, change.write(original, "app", wanted, "the change", change.EMPTY))
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
    await perform(workloads, change.write(found, "app", wanted, "the change", change.EMPTY))
    assert (await read(workloads)).template == wanted


async def test_what_others_change_in_the_template_stays_theirs(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl, namespace: str
) -> None:
    apply(deployment(0))
    original = await up(server, workloads)
    wanted = change.changed(original.template, "app", FINAL)
    await perform(workloads, change.write(original, "app", wanted, "the change", change.EMPTY))
    kubectl("-n", namespace, "set", "env", "deployment/orders", "--containers", "sidecar", "WHO=somebody")
    await perform(workloads, change.write(await up(server, workloads), "app", original.template, "as it was", change.EMPTY))
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
    assert kept == {"template": found.template, "updateStrategy": found.update_strategy, "replicas": 1, "autoscalers": {},
                    "minReadySeconds": 0, "progressDeadlineSeconds": None}
    await perform(workloads, ordered.hold(found))
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
    """The real controller looks every 3 s: it brings `disabled` up to its minimum in spite of its behavior, and leaves
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
        assert autoscalers.in_the_way(autoscaler) is None
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
