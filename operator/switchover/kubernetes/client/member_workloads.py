"""Deployments and StatefulSets whose pods are members of a group, as facts. Reads only."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from switchover.kubernetes import names
from switchover.kubernetes.client import index, ownership
from switchover.kubernetes.client.api_server import ApiServer, NotFound
from switchover.kubernetes.client.pods import read_member_pod
from switchover.kubernetes.client.warning_events import WarningEvents
from switchover.kubernetes.members import (
    CANARY,
    HPA,
    KINDS,
    PAUSED,
    PAUSED_REPLICAS,
    PRIMARY,
    SCALED_OBJECT,
    Autoscaler,
    MemberWorkload,
)
from switchover.kubernetes.selectors import required, selects

Object = Mapping[str, Any]

AUTOSCALERS = {HPA: "autoscaling/v2", SCALED_OBJECT: "keda.sh/v1alpha1", "VerticalPodAutoscaler": "autoscaling.k8s.io/v1"}
RELATED = {"PodDisruptionBudget": "policy/v1", "PersistentVolumeClaim": "v1", **AUTOSCALERS}
"""What may be about a workload, with the version of each kind."""
HASH = "pod-template-hash"
OTHERS = (("argoproj.io/v1alpha1", "rollouts", "Rollout"), ("apps.kruise.io/v1alpha1", "clonesets", "CloneSet"),
          ("core.strimzi.io/v1beta2", "strimzipodsets", "StrimziPodSet"), ("apps/v1", "daemonsets", "DaemonSet"))
"""Workloads that have pods as well and are not moved."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How one kind of workload is read. `own` makes the fields of `MemberWorkload` that other kinds have otherwise, of the
    workload, of what stands `between` it and its pods (with the version of each kind), and of the revisions that run."""

    own: Callable[[Object, Sequence[Object], Collection[str]], dict[str, Any]]
    between: Mapping[str, str]
    tells_trouble: bool
    """Whether its status says why it has fewer pods than it should; else Events are asked."""


async def read_member_workloads(
    server: ApiServer, events: WarningEvents, wanted: Iterable[tuple[str, str]]
) -> Mapping[str, MemberWorkload | None]:
    """By name; None for one that does not exist. Pods are read after the workloads, so that none of theirs is missing."""
    pairs = tuple(wanted)
    found = await asyncio.gather(*(server.find(server.path(KINDS[kind][0], kind, name)) for kind, name in pairs))
    own = await asyncio.gather(*(_selected(server, kind, each) for (kind, _), each in zip(pairs, found, strict=True)))
    subjects = frozenset().union(*(index.subjects(kind, each, selected["Pod"])
                                   for (kind, _), each, selected in zip(pairs, found, own, strict=True) if each is not None))
    by_kind = await _lists(server, RELATED, lambda path: server.about(path, subjects))
    read = {name: None if each is None else _workload(kind, each, {**by_kind, **selected})
            for (kind, name), each, selected in zip(pairs, found, own, strict=True)}
    return {name: await _with_why_none(events, each) for name, each in read.items()}


async def _with_why_none(events: WarningEvents, read: MemberWorkload | None) -> MemberWorkload | None:
    if read is None or READ[read.kind].tells_trouble or len(read.pods) >= read.replicas:
        return read
    return replace(read, trouble=await events.why_not(read.uid))


async def other_kind(server: ApiServer, name: str) -> str:
    """The kind of a workload of that name that is neither Deployment nor StatefulSet, or, with its name, Flagger's Canary
    that runs the pods of a Deployment of that name in one of its own; "" where there is none."""
    for version, plural, kind in OTHERS:
        if await server.find(server.resource_path(version, plural, name)) is not None:
            return kind
    primary = await server.find(server.path("apps/v1", "Deployment", f"{name}{PRIMARY}"))
    owner = ownership.owner(primary) if primary is not None else ""
    return owner if owner.startswith(f"{CANARY} ") else ""


async def _selected(server: ApiServer, kind: str, workload: Object | None) -> Mapping[str, list[dict[str, Any]]]:
    """What its selector can select of the namespace, in which there may be thousands of others."""
    if workload is None:
        return {}
    labels = required(workload["spec"].get("selector"))
    return await _lists(server, {"Pod": "v1", **READ[kind].between}, lambda path: server.items(path, labels))


async def _lists(server: ApiServer, versions: Mapping[str, str],
                 read: Callable[[str], Awaitable[list[dict[str, Any]]]]) -> Mapping[str, list[dict[str, Any]]]:
    """By kind, as `read` from the path of each. Nothing of one that the API server does not serve: KEDA or the VPA is not
    installed."""
    async def items(kind: str, version: str) -> list[dict[str, Any]]:
        try:
            return await read(server.path(version, kind))
        except NotFound:
            return []

    found = await asyncio.gather(*(items(*each) for each in versions.items()))
    return dict(zip(versions, found, strict=True))


def _workload(kind: str, found: Object, by_kind: Mapping[str, list[dict[str, Any]]]) -> MemberWorkload:
    metadata, spec, status = found["metadata"], found["spec"], found.get("status") or {}
    annotations = metadata.get("annotations") or {}
    sets = [each for between in READ[kind].between for each in by_kind[between]
            if ownership.controls({metadata["uid"]}, each)]
    owners = {metadata["uid"]} | {each["metadata"]["uid"] for each in sets}
    own = [pod for pod in by_kind["Pod"] if ownership.controls(owners, pod)]
    pods = [read_member_pod(pod) for pod in own]
    labels = [index.labels(each) for each in (spec["template"], *own)]
    budgets = [each for each in by_kind["PodDisruptionBudget"]
               if any(selects(each["spec"].get("selector"), those) for those in labels)]
    return MemberWorkload(
        kind=kind,
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=metadata["generation"],
        caught_up=status.get("observedGeneration") == metadata["generation"],
        replicas=spec.get("replicas", 1),
        seen=status.get("replicas", 0),
        template=spec["template"],
        pods={pod.name: pod for pod in pods},
        update_strategy=spec.get("updateStrategy") or spec.get("strategy") or {},
        min_ready=spec.get("minReadySeconds", 0),
        trouble=_trouble(status),
        annotated=bool(annotations),
        claimed_by=annotations.get(names.CLAIM, ""),
        marks=ownership.marks(found),
        managers=ownership.managers(found, every_place=True),
        owner=ownership.owner(found),
        autoscalers=_autoscalers(kind, metadata["name"], by_kind),
        budgets={each["metadata"]["name"]: (each.get("status") or {}).get("disruptionsAllowed", 0) for each in budgets},
        claims=_claims(spec["template"], by_kind["PersistentVolumeClaim"]),
        **READ[kind].own(found, sets, {pod.revision for pod in pods}),
    )


def _of_deployment(found: Object, sets: Sequence[Object], running: Collection[str]) -> dict[str, Any]:
    spec, newest = found["spec"], _newest(found["spec"]["template"], sets)
    return {
        "update_revision": _revision(newest),
        "deadline": spec.get("progressDeadlineSeconds"),
        "sizes": {_revision(each): each["spec"].get("replicas", 1) for each in sets},
        "templates": {_revision(each): _plain(each["spec"]["template"]) for each in sets if _revision(each) in running},
        "available": _available(found, newest),
        "paused": spec.get("paused", False),
    }


def _of_stateful_set(found: Object, _: Sequence[Object], __: Collection[str]) -> dict[str, Any]:
    status = found.get("status") or {}
    return {
        "update_revision": status.get("updateRevision", ""),
        "current_revision": status.get("currentRevision", ""),
        "first_ordinal": (found["spec"].get("ordinals") or {}).get("start", 0),
    }


def _newest(template: Object, sets: Iterable[Object]) -> Object | None:
    """The ReplicaSet of the template as it is now, which the Deployment's controller rolls to; None before it has made one.

    By the template, as that controller finds it (FindNewReplicaSet), and the oldest where two have it: a paused Deployment
    whose template has changed gets no new one, and its annotation still names the one before.
    """
    wanted = _plain(template)
    return min((each for each in sets if _plain(each["spec"]["template"]) == wanted), key=_age, default=None)


def _age(found: Object) -> tuple[str, str]:
    return found["metadata"].get("creationTimestamp") or "", found["metadata"]["name"]


def _plain(template: Object) -> Object:
    """The template without the label by which a ReplicaSet knows its pods."""
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH}
    rest = {key: value for key, value in metadata.items() if key not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**rest, "labels": labels}}


def _revision(found: Object | None) -> str:
    return "" if found is None else str((found["metadata"].get("labels") or {}).get(HASH, ""))


def _available(workload: Object, newest: Object | None) -> int:
    """Of the newest ReplicaSet; all its pods while its controller has not counted under the seconds of now."""
    if newest is None:
        return 0
    status, spec = newest.get("status") or {}, newest["spec"]
    counted = status.get("observedGeneration") == newest["metadata"].get("generation") and spec.get(
        "minReadySeconds", 0) == workload["spec"].get("minReadySeconds", 0)
    return int(status.get("availableReplicas", 0) if counted else spec.get("replicas", 1))


def _trouble(status: Object) -> str:
    for condition in status.get("conditions") or ():
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"
    return ""


def _claims(template: Object, claims: Iterable[Object]) -> dict[str, tuple[str, ...]]:
    named = index.claims(template)
    return {claim["metadata"]["name"]: tuple(claim["spec"].get("accessModes") or ())
            for claim in claims if claim["metadata"]["name"] in named}


# --- autoscalers --------------------------------------------------------------------------------------------------------


def _autoscalers(kind: str, name: str, by_kind: Mapping[str, list[dict[str, Any]]]) -> tuple[Autoscaler, ...]:
    """Those that target the workload. The HPA that KEDA made for a ScaledObject is that ScaledObject's affair."""
    found = [_autoscaler(version, scaler, each) for scaler, version in AUTOSCALERS.items() for each in by_kind[scaler]
             if index.target(each) == (kind, name)]
    named = {str(each) for each in found}
    return tuple(each for each in found if each.owner not in named)


def _autoscaler(version: str, kind: str, found: Object) -> Autoscaler:
    metadata, annotations = found["metadata"], found["metadata"].get("annotations") or {}
    settings: dict[str, Any] = {}
    if kind == HPA:
        settings = {key: found["spec"][key] for key in ("minReplicas", "behavior") if key in found["spec"]}
    elif kind == SCALED_OBJECT:
        settings = {key: annotations[key] for key in (PAUSED, PAUSED_REPLICAS) if key in annotations}
    conditions = (found.get("status") or {}).get("conditions") or ()
    return Autoscaler(
        api_version=version,
        kind=kind,
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        settings=settings,
        annotated=bool(annotations),
        confirmed=any(each.get("type") == "Paused" and each.get("status") == "True" for each in conditions),
        owner=ownership.owner(found),
    )


READ = {"Deployment": Reading(_of_deployment, {"ReplicaSet": "apps/v1"}, tells_trouble=True),
        "StatefulSet": Reading(_of_stateful_set, {}, tells_trouble=False)}
