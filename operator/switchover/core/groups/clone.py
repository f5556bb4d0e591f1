"""The clone of a consumers' Deployment: it carries the intermediate while the Deployment itself is changed at 0 replicas.

Two Deployments may select the same pods without harm as long as each pod is made by a ReplicaSet: a Deployment takes over
only a ReplicaSet that nobody owns, and a ReplicaSet only pods with its own template's hash (seen on 1.36). So the clone's
pods keep every label of the source's pods, by which Services, NetworkPolicies, disruption budgets and affinities find them,
and the clone selects by a label of ours alone, which the source's pods do not have. What is not harmless is to leave the
clone's ReplicaSet without an owner: the source takes it over and scales it away. The clone is deleted in the foreground.

A Deployment's own marks never come along: a GitOps tool that found its tracking label on the clone would prune it
(progressive-delivery.md 2.3). On pods they may stay: those have an owner, and are nobody's to prune.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from switchover.api.consumer_group_migration import ContainerChange, WorkloadKind
from switchover.core import gitops, names
from switchover.core.groups.change import Unsupported, changed, container_of
from switchover.core.groups.workloads import MemberWorkload

CLONE_LABEL = "switchover.dev/clone-of"
SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})
"""Access modes with which pods of two Deployments on different nodes can mount one claim."""


def clone_name(source: str) -> str:
    """At most 63 characters, as the name of a workload has at most 52."""
    return f"{source}-switchover"


def check_cloneable(source: MemberWorkload, container: str) -> None:
    """Raises Unsupported in words when a clone could not run beside the source, or the source not be changed."""
    if source.kind != WorkloadKind.DEPLOYMENT:
        raise Unsupported(f"{source} is no Deployment: it is moved by its partition")
    if source.paused:
        raise Unsupported(f"{source} is paused: its controller would scale the old template up, whatever is changed;"
                          f" kubectl rollout resume deployment {source.name}")
    container_of(source.template, container)
    pod = source.template["spec"]
    for name, port in _host_ports(pod):
        raise Unsupported(f"container {name} takes port {port} of its node, which two pods cannot share: give it up, or let"
                          " a Service reach the pods")
    for volume in pod.get("volumes", []):
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim is None:
            continue
        if claim not in source.claims:
            raise Unsupported(f"volume {volume['name']} names PersistentVolumeClaim {claim}, which does not exist")
        if not SHARED & {*source.claims[claim]}:
            modes = ", ".join(source.claims[claim])
            raise Unsupported(f"PersistentVolumeClaim {claim} is {modes}: pods of a clone could not mount it beside the"
                              " others; use a claim with ReadWriteMany, or a StatefulSet")


def _host_ports(pod: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Of each container; with hostNetwork every port is one, as the API server fills it in."""
    for container in (*pod.get("initContainers", []), *pod.get("containers", [])):
        for port in container.get("ports", []):
            if port.get("hostPort"):
                yield container["name"], port["hostPort"]


def manifest(source: MemberWorkload, template: Mapping[str, Any], container: str, change: ContainerChange,
             migration: str, uid: str) -> dict[str, Any]:
    """The clone with 0 replicas, of the source's original template and the intermediate change.

    It is to be created, never applied: what runs would be scaled to 0. No ownerReference: deleting the migration must take
    no consumer away. Raises Unsupported.
    """
    check_cloneable(source, container)
    own = {CLONE_LABEL: source.name}
    pod = changed(template, container, change)
    found = pod.get("metadata") or {}
    metadata: dict[str, Any] = {"labels": {**(found.get("labels") or {}), **own}}
    if annotations := _without_marks(found.get("annotations") or {}):
        metadata["annotations"] = annotations
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": clone_name(source.name), "labels": {**names.labels(migration), **own},
                     "annotations": {names.CLAIM: uid}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": own},
            "template": {"metadata": metadata, "spec": pod["spec"]},
        },
    }


def _without_marks(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if not key.startswith(gitops.MARKS)}
