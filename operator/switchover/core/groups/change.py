"""The change of one container in a workload's template, and the way back to exactly what was there.

Only image, variables and arguments of the named container are written; whatever else somebody changes in the template
meanwhile stays theirs. A JSON patch and not server-side apply: apply cannot replace a variable that has a `valueFrom` (it
merges the two, and the API server refuses a variable with both), nor give a field back to whom it took it from.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from switchover.api.consumer_group_migration import ContainerChange
from switchover.core import names
from switchover.core.effects import Patch
from switchover.core.groups.workloads import MemberWorkload

FIELDS = ("image", "env", "args")


class Unsupported(Exception):
    """This workload cannot be moved; the message says why and what to change."""


def container_of(template: Mapping[str, Any], name: str) -> tuple[int, Mapping[str, Any]]:
    """The container and its index. Raises Unsupported when the template has none of that name."""
    containers = template["spec"].get("containers", [])
    for index, container in enumerate(containers):
        if container["name"] == name:
            return index, container
    known = ", ".join(container["name"] for container in containers)
    raise Unsupported(f"there is no container {name}; the pod has: {known}")


def changed(template: Mapping[str, Any], container: str, change: ContainerChange) -> dict[str, Any]:
    """A copy of the template with the change, as the API server would keep it. Raises Unsupported."""
    index, _ = container_of(template, container)
    whole = deepcopy(dict(template))
    target = whole["spec"]["containers"][index]
    if change.image is not None:
        target["image"] = change.image
    if change.env:
        target["env"] = _merged(target.get("env", []), change)
    if change.args is not None:
        target["args"] = list(change.args)
        if not change.args:
            del target["args"]
    return whole


def _merged(variables: list[dict[str, Any]], change: ContainerChange) -> list[dict[str, Any]]:
    """The variables with the new values in the places of the old; what is new comes last, since it may use the others."""
    new = {item.name: {"name": item.name, "value": item.value} if item.value else {"name": item.name} for item in change.env}
    known = {variable["name"] for variable in variables}
    return [*(new.get(item["name"], item) for item in variables), *(new[name] for name in new if name not in known)]


def differing(workload: MemberWorkload, container: str, wanted: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of image, env and args of the container are not those of the `wanted` template; all, when it is not there.

    In the words that managedFields are read in (`Manager.parts`), so that `gitops.last_writer` tells who wrote them.
    """
    _, target = container_of(wanted, container)
    try:
        _, live = container_of(workload.template, container)
    except Unsupported:
        live = {}
    return tuple(f"{field} of {container}" for field in FIELDS if live.get(field) != target.get(field))


EMPTY: Mapping[str, Any] = {"op": "test", "path": "/spec/replicas", "value": 0}
"""That a workload has no pods."""


def write(workload: MemberWorkload, container: str, wanted: Mapping[str, Any], purpose: str,
          *held: Mapping[str, Any]) -> Patch:
    """Give the container the fields that it has in the `wanted` template: the change on the way forward, the original or
    the intermediate on the way back.

    `held` are the operations that keep its pods from being replaced at once (deployment.py, stateful_set.py) or that test
    that it has none: the API server refuses the whole (Fenced) where they do not hold. Raises Unsupported when the container
    is gone.
    """
    index, live = container_of(workload.template, container)
    _, target = container_of(wanted, container)
    at = f"/spec/template/spec/containers/{index}"
    operations: list[Mapping[str, Any]] = [unchanged(workload), *held]
    for field in FIELDS:
        if field in target and live.get(field) != target[field]:
            operations.append({"op": "add", "path": f"{at}/{field}", "value": target[field]})
        elif field in live and field not in target:
            operations.append({"op": "remove", "path": f"{at}/{field}"})
    return patch(workload, operations, purpose)


# --- what is kept, and whose it is --------------------------------------------------------------------------------------


def original_name(kind: str, name: str, uid: str, attempt: int) -> str:
    """The ControllerRevision that keeps what a workload was before an attempt of that migration touched it."""
    return f"{kind.lower()}-{name}-before-{uid[:8]}-{attempt}"


def original_manifest(workload: MemberWorkload, uid: str, attempt: int, labels: Mapping[str, str]) -> dict[str, Any]:
    """What the way back needs; nobody owns it, so that nothing can take it away, and its data can never change."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": original_name(workload.kind, workload.name, uid, attempt), "labels": dict(labels)},
        "revision": attempt,
        "data": {
            "template": workload.template,
            "updateStrategy": workload.update_strategy,
            "minReadySeconds": workload.min_ready,
            "progressDeadlineSeconds": workload.deadline,
            "replicas": workload.replicas,
            "autoscalers": {str(autoscaler): autoscaler.settings for autoscaler in workload.autoscalers},
        },
    }


def claim(workload: MemberWorkload, uid: str) -> Patch:
    """Mark the workload as that migration's, if nobody has written it since it was read."""
    path = "/metadata/annotations"
    if not workload.annotated:
        operation = {"op": "add", "path": path, "value": {names.CLAIM: uid}}
    else:
        operation = {"op": "add", "path": f"{path}/{names.CLAIM.replace('/', '~1')}", "value": uid}
    same = {"op": "test", "path": "/metadata/resourceVersion", "value": workload.resource_version}
    return patch(workload, [same, operation], "claimed")


def release(workload: MemberWorkload) -> Patch:
    """Take our claim off; fenced where somebody else's stands by now."""
    path = f"/metadata/annotations/{names.CLAIM.replace('/', '~1')}"
    return patch(workload, [{"op": "test", "path": path, "value": workload.claimed_by}, {"op": "remove", "path": path}],
                 "claimed no longer")


# --- fences -------------------------------------------------------------------------------------------------------------


def unchanged(workload: MemberWorkload) -> Mapping[str, Any]:
    """That nobody has changed the spec since it was read; of the same object, which `patch` makes sure of."""
    return {"op": "test", "path": "/metadata/generation", "value": workload.generation}


def as_read(uid: str, resource_version: str) -> tuple[Mapping[str, Any], ...]:
    """That it is the very object that was read, and nobody has written anything of it since."""
    return ({"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": resource_version})


def patch(workload: MemberWorkload, operations: list[Mapping[str, Any]], purpose: str) -> Patch:
    """JSON patch of the workload, if it is the very object that was read and not another by its name."""
    same = {"op": "test", "path": "/metadata/uid", "value": workload.uid}
    return Patch("apps/v1", workload.kind, workload.name, (same, *operations), purpose)
