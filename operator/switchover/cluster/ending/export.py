"""What belongs into Git after Finalize, made of the live objects: manifests that restart no pod when they are applied.

Left out is what the API server adds by itself: status, uid, versions, managed fields, and values that equal its
defaults. Everything else stays as it runs, since a template that differs in one word is a restart of every broker.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from switchover.cluster import names
from switchover.kubernetes.gitops import LAST_APPLIED

SECRET_TYPE = "Opaque"


@dataclass(frozen=True, slots=True)
class _Default:
    """A value that the API server fills in where a manifest has none."""

    value: object


_Defaults = Mapping[str, Any]
"""Field -> its default, or the defaults of what is below it; lists are looked through item by item."""

_PROBE: _Defaults = {
    "timeoutSeconds": _Default(1), "periodSeconds": _Default(10), "successThreshold": _Default(1),
    "failureThreshold": _Default(3), "httpGet": {"scheme": _Default("HTTP")}, "grpc": {"service": _Default("")},
}
_FIELD_REF: _Defaults = {"fieldRef": {"apiVersion": _Default("v1")}}
_CONTAINER: _Defaults = {
    "terminationMessagePath": _Default("/dev/termination-log"), "terminationMessagePolicy": _Default("File"),
    "resources": _Default({}), "ports": {"protocol": _Default("TCP")}, "env": {"valueFrom": _FIELD_REF},
    "livenessProbe": _PROBE, "readinessProbe": _PROBE, "startupProbe": _PROBE,
}
_FILES: _Defaults = {"defaultMode": _Default(420)}
_POD: _Defaults = {
    "restartPolicy": _Default("Always"), "dnsPolicy": _Default("ClusterFirst"), "securityContext": _Default({}),
    "schedulerName": _Default("default-scheduler"), "terminationGracePeriodSeconds": _Default(30),
    "containers": _CONTAINER, "initContainers": _CONTAINER,
    "volumes": {"configMap": _FILES, "secret": _FILES, "projected": _FILES, "hostPath": {"type": _Default("")}},
}
_METADATA: _Defaults = {"creationTimestamp": _Default(None)}
_DEFAULTS: Mapping[str, _Defaults] = {
    "StatefulSet": {
        "podManagementPolicy": _Default("OrderedReady"), "revisionHistoryLimit": _Default(10),
        "persistentVolumeClaimRetentionPolicy": _Default({"whenDeleted": "Retain", "whenScaled": "Retain"}),
        "template": {"metadata": _METADATA, "spec": _POD},
        "volumeClaimTemplates": {
            "apiVersion": _Default("v1"), "kind": _Default("PersistentVolumeClaim"), "metadata": _METADATA,
            "status": _Default({"phase": "Pending"}), "spec": {"volumeMode": _Default("Filesystem")}},
    },
    "Service": {
        "type": _Default("ClusterIP"), "sessionAffinity": _Default("None"), "clusterIPs": _Default(["None"]),
        "internalTrafficPolicy": _Default("Cluster"), "ipFamilyPolicy": _Default("SingleStack"),
        "ports": {"protocol": _Default("TCP")},
    },
    "PodDisruptionBudget": {},
}
_CHOSEN_BY_THE_CLUSTER = {"Service": ("ipFamilies",)}


def manifest_of(live: Mapping[str, Any], migration: str) -> dict[str, Any]:
    """A live StatefulSet, Service or PodDisruptionBudget as its manifest, labelled with the migration it comes from."""
    kind = live["kind"]
    spec = _without(live["spec"], _DEFAULTS[kind])
    for field in _CHOSEN_BY_THE_CLUSTER.get(kind, ()):
        spec.pop(field, None)
    return {"apiVersion": live["apiVersion"], "kind": kind, "metadata": _metadata(live, migration), "spec": spec}


def secret_manifest(live: Mapping[str, Any], migration: str) -> dict[str, Any]:
    """A live Secret as its manifest; what is text stays readable."""
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    for key, value in sorted((live.get("data") or {}).items()):
        try:
            texts[key] = base64.b64decode(value).decode()
        except UnicodeDecodeError:
            others[key] = value
    found = {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(live, migration),
             "type": live.get("type", SECRET_TYPE)}
    return found | ({"stringData": texts} if texts else {}) | ({"data": others} if others else {})


def stateful_set_manifest(live: Mapping[str, Any], migration: str, original: Mapping[str, Any] | None) -> dict[str, Any]:
    """A live StatefulSet as its manifest, with the update strategy of `original`, the backup of a brokers' one."""
    manifest = manifest_of(live, migration)
    if original is not None:
        manifest["spec"]["updateStrategy"] = dict(original["updateStrategy"])
    return manifest


def runs_the_same(manifest: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether two StatefulSets differ in nothing but their metadata, status and update strategy."""
    return _but_strategy(manifest) == _but_strategy(live)


def _but_strategy(stateful_set: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in stateful_set["spec"].items() if key != "updateStrategy"}


def _metadata(live: Mapping[str, Any], migration: str) -> dict[str, Any]:
    """Name, namespace, labels and annotations; the claim is ours to release, and what was applied is not applied again."""
    found = live["metadata"]
    annotations = {key: value for key, value in (found.get("annotations") or {}).items()
                   if key not in (LAST_APPLIED, names.CLAIM)}
    metadata = {"name": found["name"], "namespace": found["namespace"],
                "labels": {**(found.get("labels") or {}), names.MIGRATION_LABEL: migration}}
    return metadata | ({"annotations": annotations} if annotations else {})


def _without(value: Any, defaults: _Defaults) -> Any:
    if isinstance(value, list):
        return [_without(item, defaults) for item in value]
    if not isinstance(value, dict):
        return value
    left = {}
    for key, item in value.items():
        default = defaults.get(key)
        if isinstance(default, _Default):
            if item != default.value:
                left[key] = item
        else:
            left[key] = _without(item, default) if default is not None else item
    return left
