"""The one change of a brokers' StatefulSet: the door runs before each pod's start script, and pods are replaced only by
eviction.

Of the user's template only what is in the way is changed: the update strategy becomes OnDelete
(docs/facts/kubernetes.md#the-update-strategy) and the JVM's name cache is shortened. An init container reports what only the
disk shows.
"""

from collections.abc import Callable, Mapping
from typing import Any

from switchover.api.kafka_migration import BrokerSet
from switchover.cluster import names
from switchover.cluster.door import mount
from switchover.cluster.door.brokers import DATA_FIELD, Brokers, ContainerMissing, container_of, layout_of, stored, upgraded
from switchover.kubernetes.json_patch import annotation, unchanged
from switchover.kubernetes.reports import DISKS
from switchover.kubernetes.workloads import Workload

# --- compute --------------------------------------------------------------------------------------------------------------
# The default requests and limits of our own pods, where the namespace's quota wants each container to have them.

COUNTED = ("cpu", "memory", "ephemeral-storage")
"""What a ResourceQuota refuses a pod for that does not say it (quota/v1/evaluator/core/pods.go)."""


def as_counted(default: Mapping[str, Mapping[str, Any]], kafka: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The default, and of what it leaves out what the brokers' container `kafka` says.

    We limit no CPU by ourselves: it would slow down a controller that has to answer. Where a quota counts limits.cpu the
    brokers have such a limit, or they would not be admitted; theirs is enough for a controller.
    """
    theirs = kafka.get("resources") or {}
    return {kind: {**{name: value for name, value in (theirs.get(kind) or {}).items() if name in COUNTED}, **own}
            for kind, own in default.items()}


ON_DELETE = {"type": "OnDelete"}
OWN = (mount.KEEPER, DISKS)
"""Our init containers, in a broker's pod."""
OUTLIVES_THE_POD = frozenset({
    "persistentVolumeClaim", "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc",
    "gcePersistentDisk", "glusterfs", "iscsi", "nfs", "portworxVolume", "rbd", "vsphereVolume"})
"""The kinds of volumes whose data stays when their pod goes (docs/facts/kubernetes.md#volumes-that-end-with-their-pod)."""


def mount_below(container: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """The mount that a path of a container lies on; None for the container's own file system."""
    found = [each for each in container.get("volumeMounts") or ()
             if f"{path.rstrip('/')}/".startswith(f"{each['mountPath'].rstrip('/')}/")]
    return max(found, key=lambda each: len(each["mountPath"]), default=None)


def volume_below(workload: Workload, container: Mapping[str, Any], path: str) -> str:
    """The kind of volume that a path of a container lies on, such as emptyDir; "" for the container's own file system."""
    found = mount_below(container, path)
    if found is None:
        return ""
    name = found["name"]
    if name in workload.claim_templates:
        return "persistentVolumeClaim"
    volumes = workload.template["spec"].get("volumes", [])
    volume: Mapping[str, Any] = next((volume for volume in volumes if volume["name"] == name), {})
    return next((kind for kind in volume if kind != "name"), "")


def changed_back(workload: Workload, brokers: BrokerSet, image: str = "") -> tuple[str, ...]:
    """Which of volumes, mounts, strategy and, where brokers are upgraded, image are not what `patch` made them."""
    pod = workload.template["spec"]
    try:
        container = container_of(workload.template, brokers)
        passes, present = mount.passes(container), container.get("image", "")
    except ContainerMissing:
        passes, present = False, ""
    copied = any(container["name"] == mount.KEEPER for container in pod.get("initContainers") or ())
    ours = {
        "volumes": mount.is_mounted(pod, names.node_files(workload.name)),
        "mounts": passes and copied,
        "image": image in ("", present),
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
    """Whether volume, mounts and strategy all are what `patch` made them; a template changed back half-way is not."""
    return not changed_back(workload, brokers)


def patch(workload: Workload, brokers: BrokerSet, image: str = "") -> tuple[Mapping[str, Any], ...]:
    """JSON patch that takes the template over, with the image that its brokers are upgraded to, if they are; its test fails
    when the StatefulSet is not what was read.

    Raises ContainerMissing.
    """
    container = container_of(workload.template, brokers)
    strategy = {"op": "replace", "path": "/spec/updateStrategy", "value": ON_DELETE}
    if not {"volumes", "mounts"} & {*changed_back(workload, brokers)}:
        return unchanged(workload.generation), strategy     # else a second door would be put before the first
    pod = workload.template["spec"]
    index = pod["containers"].index(container)
    container = upgraded(container, image)
    layout = layout_of(container, brokers)
    base = "/spec/template/spec"
    changes = {
        "volumeMounts": mount.mounts(layout.script, container),
        "env": mount.environment(layout, container.get("env") or ()),
        **({"image": image} if image else {}),
    }
    init_containers = [
        mount.init_container(layout.script, container),
        *_of_the_user(pod),
        mount.disks_container(pod, {**container, "volumeMounts": mount.of_the_user(container)}),
    ]
    volumes = mount.volumes(names.node_files(workload.name), pod.get("volumes") or ())
    return (
        unchanged(workload.generation),
        *({"op": "add", "path": f"{base}/containers/{index}/{field}", "value": value} for field, value in changes.items()),
        {"op": "add", "path": f"{base}/volumes", "value": volumes},
        {"op": "add", "path": f"{base}/initContainers", "value": init_containers},
        strategy,
    )


def original_manifest(workload: Workload, brokers: Brokers, attempt: int, labels: Mapping[str, str]) -> dict[str, Any]:
    """The ControllerRevision that is the backup for a rollback, with what the brokers were; nobody owns it, so that nothing
    deletes it."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": names.original(workload.name, attempt), "labels": dict(labels)},
        "revision": attempt,
        "data": {"template": workload.template, "updateStrategy": workload.update_strategy, DATA_FIELD: brokers.data()},
    }


def is_restored(workload: Workload, original: Mapping[str, Any] | None) -> bool:
    """Whether template and update strategy are what they were before we touched them."""
    return original is None or (
        workload.template == original["template"] and workload.update_strategy == original["updateStrategy"])


def is_untouched(workload: Workload, brokers: BrokerSet) -> bool:
    """Whether nothing of ours is in the template: neither the volume nor a container of ours."""
    pod = workload.template["spec"]
    own = any(each["name"] in OWN for each in pod.get("initContainers") or ())
    return not own and {"volumes", "mounts"} <= {*changed_back(workload, brokers)}


def is_outdated(workload: Workload, brokers: BrokerSet, original: Mapping[str, Any]) -> bool:
    """Whether the user has changed the StatefulSet since its backup, and nothing of ours is in it."""
    return is_untouched(workload, brokers) and not is_restored(workload, original)


def is_users_new(workload: Workload, brokers: BrokerSet, original: Mapping[str, Any] | None) -> bool:
    """Whether the template is one that the user has brought since, and nothing of ours is in it."""
    return is_untouched(workload, brokers) and is_brought(workload, brokers, original)


def is_brought(workload: Workload, brokers: BrokerSet, original: Mapping[str, Any] | None) -> bool:
    """Whether the user has changed the template since its backup, whatever of ours is in it.

    An apply of a manifest, by Helm as by kubectl, changes only what the manifest has: our volumes, mounts and containers
    stay until we remove them (docs/facts/hand-over.md).
    """
    if original is None:
        return False
    found = stored(original)
    image = found.image if isinstance(found, Brokers) else ""
    was = _with_container(original["template"], brokers, lambda container: upgraded(container, image))
    try:
        return _compared(workload.template, brokers) != _compared(was, brokers)
    except ContainerMissing:
        return True


def _compared(template: Mapping[str, Any], brokers: BrokerSet) -> Mapping[str, Any]:
    """A template without ours, and without the variables that the layout wants, which `patch` puts in front."""
    def without_layout(container: Mapping[str, Any]) -> Mapping[str, Any]:
        wanted = layout_of(container, brokers).environment
        return _filled({**container, "env": [each for each in container.get("env") or () if each["name"] not in wanted]})

    return _with_container(without_ours(template, brokers), brokers, without_layout)


def without_ours(template: Mapping[str, Any], brokers: BrokerSet) -> Mapping[str, Any]:
    """A template with nothing of what `patch` puts into it but the variables of the layout: its image wants those in KRaft
    mode as well. Raises ContainerMissing."""
    theirs = _with_container(template, brokers, lambda container: _filled({
        **container, "volumeMounts": mount.of_the_user(container), "env": mount.environment_of_the_user(container)}))
    pod = theirs["spec"]
    return {**theirs, "spec": _filled({
        **pod, "volumes": mount.volumes_of_the_user(pod.get("volumes") or ()), "initContainers": _of_the_user(pod)})}


def _with_container(template: Mapping[str, Any], brokers: BrokerSet,
                    change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Mapping[str, Any]:
    """A template with another container in place of the one that runs Kafka. Raises ContainerMissing."""
    own = container_of(template, brokers)
    containers = [change(each) if each is own else each for each in template["spec"]["containers"]]
    return {**template, "spec": {**template["spec"], "containers": containers}}


def _of_the_user(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A pod's init containers without ours."""
    return [each for each in pod.get("initContainers") or () if each["name"] not in OWN]


def _filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without empty lists, which the API server drops."""
    return {key: value for key, value in fields.items() if value != []}


def take_ours_out(workload: Workload, brokers: BrokerSet) -> tuple[Mapping[str, Any], ...]:
    """JSON patch that leaves the user's own template, to which pods are rolled by eviction only. Raises ContainerMissing."""
    return (
        unchanged(workload.generation),
        {"op": "replace", "path": "/spec/template", "value": without_ours(workload.template, brokers)},
        {"op": "replace", "path": "/spec/updateStrategy", "value": ON_DELETE},
    )


def restore_template(workload: Workload, original: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """JSON patch that restores the template while pods are still replaced by eviction only."""
    return (
        unchanged(workload.generation),
        {"op": "replace", "path": "/spec/template", "value": original["template"]},
    )


def hold_strategy(workload: Workload) -> tuple[Mapping[str, Any], ...]:
    """JSON patch that stops Kubernetes from replacing pods by itself."""
    return unchanged(workload.generation), {"op": "replace", "path": "/spec/updateStrategy", "value": ON_DELETE}


def restore_strategy(workload: Workload, original: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """JSON patch that restores the update strategy; it restarts nothing only while all pods have the update revision."""
    return (
        unchanged(workload.generation),
        {"op": "replace", "path": "/spec/updateStrategy", "value": original["updateStrategy"]},
    )


def release(workload: Workload) -> tuple[Mapping[str, Any], ...]:
    """JSON patch that removes our claim; it fails where by now the claim is another one's, or of a later attempt."""
    path = annotation(names.CLAIM)
    return (
        unchanged(workload.generation),
        {"op": "test", "path": path, "value": workload.claimed_by},
        {"op": "remove", "path": path},
    )
