"""What a pod uses of others' making, by name: the controllers' pods are a copy of the brokers', and go on using theirs."""

from collections.abc import Iterator, Mapping
from typing import Any

from switchover.cluster import names
from switchover.text.command import kubectl

_NAMED = {
    "configMap": ("configmap", "name"), "configMapRef": ("configmap", "name"), "configMapKeyRef": ("configmap", "name"),
    "secret": ("secret", "secretName"), "secretRef": ("secret", "name"), "secretKeyRef": ("secret", "name"),
    "nodePublishSecretRef": ("secret", "name"), "imagePullSecrets": ("secret", "name"),
    "persistentVolumeClaim": ("persistentvolumeclaim", "claimName")}
"""The fields of a pod's spec that refer to an object of the namespace: its kind, and where its name stands. A projected
volume's Secret is the one that stands in `name`."""


def objects(template: Mapping[str, Any], workload: str) -> tuple[str, ...]:
    """ConfigMaps, Secrets, claims and the ServiceAccount that the pods of `workload` name, as kubectl takes them: kind/name.

    Not the Secret with their own edits.
    """
    pod = template["spec"]
    account = pod.get("serviceAccountName") or "default"
    found = {*_below(pod), *([f"serviceaccount/{account}"] if account != "default" else [])}
    return tuple(sorted(found - {f"secret/{names.node_files(workload)}"}))


def keep(template: Mapping[str, Any], workload: str, namespace: str) -> str:
    """What is to be done so that an upgrade of the brokers' chart does not take them away; "" where they use none."""
    if not (used := objects(template, workload)):
        return ""
    return ("Take away nothing that the controllers' pods go on using, or they do not start again; Helm's upgrades leave"
            f" what is annotated: {kubectl(namespace, 'annotate --overwrite {} helm.sh/resource-policy=keep', used)}")


def _below(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _below(item)
    elif isinstance(value, Mapping):
        for field, item in value.items():
            yield from _below(item)
            if field in _NAMED:
                kind, key = _NAMED[field]
                yield from (f"{kind}/{name}" for each in (item if isinstance(item, list) else [item])
                            if isinstance(each, Mapping) and (name := each.get(key) or each.get("name")))
