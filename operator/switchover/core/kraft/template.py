"""The one change of a brokers' StatefulSet: each pod mounts its own file, and pods are replaced only by eviction.

The user's configuration mount gives way to a Secret of ours at the same path with `subPathExpr` (where the configuration is
environment variables, the container's command is wrapped instead: environment.py), the update strategy to OnDelete
(feasibility-modes.md, with its traps), the JVM's name cache is cut short, and an init container reports what only the disk
tells. Volumes of the user stay.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from switchover.api.kafka_migration import BrokerSet
from switchover.core.kraft import disks, environment, name_cache, names
from switchover.core.kraft.facts import Workload

VOLUME = "switchover-node-files"
POD_NAME = "SWITCHOVER_POD_NAME"
ON_DELETE = {"type": "OnDelete"}
_POD_NAME = {"name": POD_NAME, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}


class Unsupported(Exception):
    """This template cannot be taken over; the message says why and what to change."""


class ContainerMissing(Unsupported):
    """The pod has no container of that name."""


@dataclass(frozen=True, slots=True)
class ConfigurationMount:
    """Where the broker reads its configuration: indexes into the template, and the mount as the user wrote it."""

    container: int
    mount: int
    manifest: Mapping[str, Any]
    single_file: bool


def _container(template: Mapping[str, Any], name: str) -> tuple[int, Mapping[str, Any]]:
    containers = template["spec"].get("containers", [])
    for index, container in enumerate(containers):
        if container["name"] == name:
            return index, container
    known = ", ".join(container["name"] for container in containers)
    raise ContainerMissing(f"there is no container {name}; the pod has: {known}")


def broker_container(workload: Workload, brokers: BrokerSet) -> Mapping[str, Any]:
    """The container that runs Kafka. Raises ContainerMissing when the template has no such container."""
    return _container(workload.template, brokers.container)[1]


def volume_below(workload: Workload, container: Mapping[str, Any], path: str) -> str:
    """The kind of volume that a path of a container lies on, such as emptyDir; "" for the container's own file system."""
    mounts = [mount for mount in container.get("volumeMounts", [])
              if f"{path.rstrip('/')}/".startswith(f"{mount['mountPath'].rstrip('/')}/")]
    if not mounts:
        return ""
    name = max(mounts, key=lambda mount: len(mount["mountPath"]))["name"]
    if name in workload.claim_templates:
        return "persistentVolumeClaim"
    volumes = workload.template["spec"].get("volumes", [])
    volume: Mapping[str, Any] = next((volume for volume in volumes if volume["name"] == name), {})
    return next((kind for kind in volume if kind != "name"), "")


def changed_back(workload: Workload, brokers: BrokerSet) -> tuple[str, ...]:
    """Which of volumes, mounts, command and strategy are not what `patch` made them."""
    volume: Mapping[str, Any] = next((v for v in workload.template["spec"].get("volumes", []) if v["name"] == VOLUME), {})
    containers = workload.template["spec"].get("containers", [])
    container: Mapping[str, Any] = next((each for each in containers if each["name"] == brokers.container), {})
    mounts = container.get("volumeMounts", [])
    by_file = brokers.configuration.environment is None
    ours = {
        "volumes": volume.get("secret", {}).get("secretName") == names.node_files(workload.name),
        "mounts": any(mount["name"] == VOLUME and POD_NAME in mount.get("subPathExpr", "") for mount in mounts),
        "command": by_file or environment.is_wrapped(container.get("command", [])),
        "strategy": workload.update_strategy.get("type") == "OnDelete",
    }
    return tuple(part for part, is_so in ours.items() if not is_so)


def would_restart(workload: Workload, brokers: BrokerSet) -> bool:
    """Whether Kubernetes replaces pods by itself, now: a strategy that is not ours, and a template that is not what runs.
    A template changed back may be newer than the update revision that was read."""
    changed = changed_back(workload, brokers)
    outdated = any(pod.revision != workload.update_revision for pod in workload.pods.values())
    return "strategy" in changed and (outdated or len(changed) > 1)


def is_ours(workload: Workload, brokers: BrokerSet) -> bool:
    """Whether volume, mount and strategy all are what `patch` made them; a template changed back half-way is not."""
    return not changed_back(workload, brokers)


def check_supported(workload: Workload, brokers: BrokerSet) -> None:
    """Raises Unsupported in words when `patch` could not take the template over."""
    if brokers.configuration.environment is None:
        configuration_mount(workload, brokers)
    elif not broker_container(workload, brokers).get("command"):
        raise Unsupported(f"container {brokers.container} has no command: Kubernetes does not know the entrypoint of its"
                          " image, so nothing can be put before it")


def configuration_mount(workload: Workload, brokers: BrokerSet) -> ConfigurationMount:
    """The user's mount of their configuration. Raises Unsupported in words when there is none that can be replaced."""
    reference = brokers.configuration.config_map_ref or brokers.configuration.secret_ref
    assert reference is not None, "configuration by environment variables is mounted nowhere"
    kind = "ConfigMap" if brokers.configuration.config_map_ref else "Secret"
    index, container = _container(workload.template, brokers.container)
    volumes = {
        volume["name"]: volume
        for volume in workload.template["spec"].get("volumes", [])
        if volume.get("configMap", {}).get("name") == reference.name
        or volume.get("secret", {}).get("secretName") == reference.name
    }
    for position, mount in enumerate(container.get("volumeMounts", [])):
        if mount["name"] not in volumes:
            continue
        if "subPath" not in mount and "subPathExpr" not in mount:
            return ConfigurationMount(index, position, mount, single_file=False)
        if mount.get("subPath") == reference.key:
            return ConfigurationMount(index, position, mount, single_file=True)
    raise Unsupported(
        f"container {brokers.container} does not mount {kind} {reference.name} as a directory, nor its key {reference.key}"
        " by subPath: its configuration may be written by something else at start, which cannot be taken over")


def file_key(pod: str, brokers: BrokerSet | None = None) -> str:
    """The key of a pod's own file in the Secret; controllers are of no broker set, and have a properties file."""
    by_environment = brokers is not None and brokers.configuration.environment is not None
    return f"{pod}.sh" if by_environment else f"{pod}.properties"


def node_file(brokers: BrokerSet, user: str, rendered: str) -> str:
    """A broker's own file, of the server.properties that the user has and the one that its mode wants."""
    source = brokers.configuration.environment
    return rendered if source is None else environment.changes(user, rendered, source.prefix)


def _volume(workload: Workload, brokers: BrokerSet, pods: Iterable[str], other_keys: Iterable[str]) -> dict[str, Any]:
    reference = brokers.configuration.config_map_ref or brokers.configuration.secret_ref
    file = reference.key if reference is not None else environment.FILE
    items = []
    for pod in pods:
        items.append({"key": file_key(pod, brokers), "path": f"{pod}/{file}"})
        items += [{"key": key, "path": f"{pod}/{key}"} for key in sorted(other_keys)]
    return {"name": VOLUME, "secret": {"secretName": names.node_files(workload.name), "items": items}}


def _unchanged(workload: Workload) -> Mapping[str, Any]:
    """That nobody has changed the spec since it was read.

    The parts themselves cannot be tested: the API server compares JSON as text, in which it writes <, > and & as escapes.
    """
    return {"op": "test", "path": "/metadata/generation", "value": workload.generation}


def patch(workload: Workload, brokers: BrokerSet, pods: Iterable[str], other_keys: Iterable[str],
          cluster_id: str = "") -> tuple[Mapping[str, Any], ...]:
    """JSON patch that takes the template over; its test fails when the StatefulSet is not what was read.

    `other_keys` are the further keys of the user's ConfigMap or Secret, which every pod goes on seeing. Images that are
    configured by variables want CLUSTER_ID in KRaft mode. Raises Unsupported in words.
    """
    check_supported(workload, brokers)
    index, container = _container(workload.template, brokers.container)
    pod = workload.template["spec"]
    base = "/spec/template/spec"
    variables = [_POD_NAME]
    if brokers.configuration.environment is None:
        changes: dict[str, Any] = {"volumeMounts": _mounts_of_file(workload, brokers)}
    else:
        changes = {"volumeMounts": _mounts_of_environment(container), "command": environment.wrapped(container["command"])}
        variables.append({"name": "CLUSTER_ID", "value": cluster_id})
    ours = {variable["name"] for variable in variables}
    # A variable must stand before those that use it, and ours use no other: first is always right.
    changes["env"] = [*variables, *name_cache.short([item for item in container.get("env", []) if item["name"] not in ours])]
    volumes = [item for item in pod.get("volumes", []) if item["name"] != VOLUME]
    init_containers = [item for item in pod.get("initContainers", []) if item["name"] != disks.CONTAINER]
    return (
        _unchanged(workload),
        *({"op": "add", "path": f"{base}/containers/{index}/{field}", "value": value} for field, value in changes.items()),
        {"op": "add", "path": f"{base}/volumes", "value": [*volumes, _volume(workload, brokers, pods, other_keys)]},
        {"op": "add", "path": f"{base}/initContainers", "value": [*init_containers, disks.init_container(pod, container)]},
        {"op": "replace", "path": "/spec/updateStrategy", "value": ON_DELETE},
    )


def _mounts_of_file(workload: Workload, brokers: BrokerSet) -> list[Mapping[str, Any]]:
    """The container's mounts with the pod's own file or directory where the user's configuration was."""
    found = configuration_mount(workload, brokers)
    reference = brokers.configuration.config_map_ref or brokers.configuration.secret_ref
    assert reference is not None
    expression = f"$({POD_NAME})/{reference.key}" if found.single_file else f"$({POD_NAME})"
    mount = {"name": VOLUME, "mountPath": found.manifest["mountPath"], "subPathExpr": expression, "readOnly": True}
    mounts = workload.template["spec"]["containers"][found.container]["volumeMounts"]
    return [mount if position == found.mount else other for position, other in enumerate(mounts)]


def _mounts_of_environment(container: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The container's mounts and the pod's own directory, in which the wrapped command looks for its file."""
    others = [mount for mount in container.get("volumeMounts", []) if mount["name"] != VOLUME]
    mount = {"name": VOLUME, "mountPath": environment.DIRECTORY, "subPathExpr": f"$({POD_NAME})", "readOnly": True}
    return [*others, mount]


def original_manifest(workload: Workload, attempt: int, labels: Mapping[str, str]) -> dict[str, Any]:
    """The ControllerRevision that keeps what the way back needs; nobody owns it, so that nothing can take it away."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": names.original(workload.name, attempt), "labels": dict(labels)},
        "revision": attempt,
        "data": {"template": workload.template, "updateStrategy": workload.update_strategy},
    }


def is_restored(workload: Workload, original: Mapping[str, Any] | None) -> bool:
    """Whether template and update strategy are what they were before we touched them."""
    return original is None or (
        workload.template == original["template"] and workload.update_strategy == original["updateStrategy"])


def restore_template(workload: Workload, original: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """JSON patch that gives the template back while pods are still replaced by eviction only."""
    return (
        _unchanged(workload),
        {"op": "replace", "path": "/spec/template", "value": original["template"]},
    )


def hold_strategy(workload: Workload) -> tuple[Mapping[str, Any], ...]:
    """JSON patch that stops Kubernetes from replacing pods by itself."""
    return _unchanged(workload), {"op": "replace", "path": "/spec/updateStrategy", "value": ON_DELETE}


def restore_strategy(workload: Workload, original: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """JSON patch that gives the update strategy back; it restarts nothing only while all pods have the update revision."""
    return (
        _unchanged(workload),
        {"op": "replace", "path": "/spec/updateStrategy", "value": original["updateStrategy"]},
    )


def release(workload: Workload) -> tuple[Mapping[str, Any], ...]:
    """JSON patch that takes our claim off; it fails where somebody else's stands by now, or a later attempt's."""
    path = f"/metadata/annotations/{names.CLAIM.replace('/', '~1')}"
    return (
        _unchanged(workload),
        {"op": "test", "path": path, "value": workload.claimed_by},
        {"op": "remove", "path": path},
    )
