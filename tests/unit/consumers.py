"""Consumers' workloads on paper: facts of a manifest, and what a patch makes of it as the API server would."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import jsonpatch

from switchover.engine.effects import Patch
from switchover.kubernetes.members import MemberPod, MemberWorkload

UID = "uid-of-the-workload"
LABELS = {"app": "orders"}
OLD, NEW = "revision-old", "revision-new"


def pod(name: str, revision: str = OLD, **changes: Any) -> MemberPod:
    made = MemberPod(name=name, uid=f"uid-{name}", ips=frozenset({"10.0.0.1"}), node="node-0", ready=True, terminating=False,
                     revision=revision, restarts=0, trouble="", started_at=0.0)
    return replace(made, **changes)


def pods(*made: MemberPod) -> dict[str, MemberPod]:
    return {each.name: each for each in made}


def manifest(kind: str = "Deployment", replicas: int = 3, **pod_spec: Any) -> dict[str, Any]:
    """As the API server has it, of the fields that matter here."""
    container = {"name": "app", "image": "orders:1", "args": ["--group", "orders"], "env": [
        {"name": "FIRST", "value": "1"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "orders", "key": "password"}}},
        {"name": "LAST", "value": "$(FIRST)"}]}
    template = {"metadata": {"labels": dict(LABELS)},
                "spec": {"containers": [{"name": "sidecar", "image": "sidecar:1"}, container], **pod_spec}}
    metadata = {"name": "orders", "uid": UID, "generation": 7, "resourceVersion": "70"}
    made: dict[str, Any] = {"kind": kind, "metadata": metadata, "spec": {"replicas": replicas, "template": template}}
    if kind == "StatefulSet":
        made["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    return made


def workload(made: dict[str, Any], **changes: Any) -> MemberWorkload:
    metadata, spec = made["metadata"], made["spec"]
    found = MemberWorkload(
        kind=made["kind"], name=metadata["name"], uid=metadata["uid"], resource_version=metadata["resourceVersion"],
        generation=metadata["generation"], caught_up=True, replicas=spec["replicas"], seen=spec["replicas"],
        template=deepcopy(spec["template"]), update_revision=OLD, current_revision=OLD,
        pods=pods(*(pod(f"orders-{ordinal}") for ordinal in range(spec["replicas"]))),
        update_strategy=deepcopy(spec.get("updateStrategy", {})))
    return replace(found, **changes)


def after(made: dict[str, Any], effect: Patch) -> dict[str, Any]:
    """Raises jsonpatch.JsonPatchTestFailed where the API server would fence it."""
    assert (effect.kind, effect.name) == (made["kind"], made["metadata"]["name"])
    result: dict[str, Any] = jsonpatch.apply_patch(made, [dict(operation) for operation in effect.operations])
    return result
