"""How many pods a workload has while they are moved: its autoscalers, and /scale where all are stopped and started again.

Autoscalers are paused before the first pod, and given back exactly as they were.
A HorizontalPodAutoscaler enforces its bounds even where its behavior is disabled, so minReplicas goes down to 1; at 0
replicas it does nothing (kubernetes pkg/controller/podautoscaler/horizontal.go; tests/apiserver/test_member_workloads.py).
KEDA would put its own HPA back: its ScaledObject is paused by the annotation that it has for this, upon which it removes the
HPA (kedacore/keda discussion 6800) and leaves the replicas alone.

Replicas are written through /scale only. That leaves the replicas of a Deployment that Git describes without them to us,
and an autoscaler's trace and ours can be distinguished (`Manager.subresource`).
"""

from collections.abc import Mapping
from typing import Any

from switchover.engine.effects import Patch
from switchover.kubernetes.json_patch import annotation, as_read
from switchover.kubernetes.members import HPA, KINDS, PAUSED, PAUSED_REPLICAS, SCALED_OBJECT, Autoscaler, MemberWorkload

_DISABLED = {"selectPolicy": "Disabled"}


def in_the_way(autoscaler: Autoscaler) -> tuple[str, str] | None:
    """Why this one cannot be paused, and what to do; None when `pause` can."""
    if autoscaler.kind == SCALED_OBJECT:
        if PAUSED_REPLICAS in autoscaler.settings:
            return (f"{autoscaler} holds the replicas at {autoscaler.settings[PAUSED_REPLICAS]}",
                    f"remove its annotation {PAUSED_REPLICAS}")
        return None
    if autoscaler.kind != HPA:
        return f"{autoscaler} may restart pods by itself", "delete it until the migration has ended"
    if autoscaler.owner:
        return f"{autoscaler} belongs to {autoscaler.owner}, which would end a pause", f"pause {autoscaler.owner}"
    return None


def is_paused(autoscaler: Autoscaler) -> bool:
    """Whether it is set to leave the replicas alone; of a ScaledObject, that KEDA has heard it."""
    if autoscaler.kind == SCALED_OBJECT:
        return is_set(autoscaler) and autoscaler.confirmed
    return autoscaler.kind == HPA and is_set(autoscaler)


def is_set(autoscaler: Autoscaler) -> bool:
    """The same, whatever KEDA has heard."""
    if autoscaler.kind == SCALED_OBJECT:
        return autoscaler.settings.get(PAUSED) == "true"
    behavior = autoscaler.settings.get("behavior") or {}
    disabled = all((behavior.get(way) or {}).get("selectPolicy") == "Disabled" for way in ("scaleUp", "scaleDown"))
    return disabled and autoscaler.settings.get("minReplicas", 1) == 1


def is_stored(autoscaler: Autoscaler, original: Mapping[str, Any] | None) -> bool:
    """Whether its settings of before are among what is stored of its workload (`change.original_manifest`)."""
    return original is not None and str(autoscaler) in original["autoscalers"]


def pause(autoscaler: Autoscaler) -> Patch | None:
    """Set it to leave the replicas alone; None when it is set so."""
    assert not in_the_way(autoscaler), f"{autoscaler} cannot be paused"
    if is_set(autoscaler):
        return None
    operations: list[Mapping[str, Any]]
    if autoscaler.kind == HPA:
        operations = [{"op": "add", "path": "/spec/minReplicas", "value": 1},
                      {"op": "add", "path": "/spec/behavior", "value": {"scaleUp": _DISABLED, "scaleDown": _DISABLED}}]
    elif autoscaler.annotated:
        operations = [{"op": "add", "path": annotation(PAUSED), "value": "true"}]
    else:
        operations = [{"op": "add", "path": "/metadata/annotations", "value": {PAUSED: "true"}}]
    return _patch(autoscaler, operations, "paused")


def resume(autoscaler: Autoscaler, original: Mapping[str, Any]) -> Patch | None:
    """Give it the settings that were stored (`change.original_manifest`); None when it has them."""
    paths = ({"minReplicas": "/spec/minReplicas", "behavior": "/spec/behavior"} if autoscaler.kind == HPA
             else {PAUSED: annotation(PAUSED)})
    operations: list[Mapping[str, Any]] = []
    for setting, path in paths.items():
        if setting in original and autoscaler.settings.get(setting) != original[setting]:
            operations.append({"op": "add", "path": path, "value": original[setting]})
        elif setting in autoscaler.settings and setting not in original:
            operations.append({"op": "remove", "path": path})
    return _patch(autoscaler, operations, "as it was") if operations else None


def _patch(autoscaler: Autoscaler, operations: list[Mapping[str, Any]], purpose: str) -> Patch:
    fence = as_read(autoscaler.uid, autoscaler.resource_version)
    return Patch(autoscaler.api_version, autoscaler.kind, autoscaler.name, (*fence, *operations), purpose)


def scale(workload: MemberWorkload, replicas: int) -> Patch:
    """Set the replicas, if nobody has written the workload since it was read.

    The scale shows no generation: the resourceVersion fences it, which status moves as well. Fenced means read again.
    """
    operations = (*as_read(workload.uid, workload.resource_version),
                  {"op": "replace", "path": "/spec/replicas", "value": replicas})
    version, _ = KINDS[workload.kind]
    return Patch(version, workload.kind, workload.name, operations, f"{workload.replicas} to {replicas} replicas", "scale")
