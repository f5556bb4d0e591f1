"""How the door gets into a pod: a copy of the image's own start script, which leads through it, lies in that one's place.

One Secret holds the door and the edits of every pod, under its name; no password of the user's is in it. An init container
makes the copy, in a directory that the pod may write: entry scripts of images edit their start script (`sed -i`), which a
mounted file would not bear.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from switchover.cluster.door import name_cache
from switchover.cluster.door.layout import SCRIPTS, Layout
from switchover.cluster.door.scripts import GUARD, KEEP
from switchover.kubernetes.names import NODE_FILES

VOLUME, RUN_VOLUME, FILES_VOLUME = NODE_FILES, "switchover-run", "switchover-files"
OURS = frozenset({VOLUME, RUN_VOLUME, FILES_VOLUME})
DIRECTORIES = (
    {"name": RUN_VOLUME, "emptyDir": {}},
    {"name": FILES_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}})
"""The script's copy, and in memory what the door writes: the file that Kafka gets holds passwords, and a node's disk keeps
what was on it. It counts towards the container's limit, so nothing that grows is there."""
SCRIPT_KEY = "door.sh"
"""The script's key in the Secret; every other key is the name of a pod, with its edits."""
EDITS, SCRIPT = "/etc/switchover/edits", "/etc/switchover/door.sh"
RUN, COPY = "/run/switchover", "start"
SYSTEM = frozenset({"/bin", "/usr/bin", "/usr/local/bin"})
"""Directories with much else than Kafka's own scripts. Of these, of any that is not called bin, and of a user's own, the
script alone is copied: no entry script can put another in its place there."""
POD_NAME = "SWITCHOVER_POD_NAME"
KEEPER, GUARDIAN = "switchover-original", "switchover-guard"
EXECUTABLE = 0o555

_POD_NAME = {"name": POD_NAME, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}


def volumes(secret: str, others: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A pod's volumes with ours in place of those that may be there already."""
    return [
        *volumes_of_the_user(others),
        {"name": VOLUME, "secret": {"secretName": secret, "defaultMode": EXECUTABLE}},
        *DIRECTORIES,
    ]


def volumes_of_the_user(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A pod's volumes without ours."""
    return [each for each in found if each["name"] not in OURS]


def environment_of_the_user(container: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A container's `env` without the pod's name, and with the name cache that it had."""
    return name_cache.as_before([item for item in container.get("env") or () if item["name"] != POD_NAME])


def of_the_user(container: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A container's mounts without ours."""
    return [each for each in container.get("volumeMounts") or () if each["name"] not in OURS]


def _place_of(script: str, container: Mapping[str, Any]) -> str:
    """Over what a start script's copy lies: a directory of Kafka's own scripts that is the image's, or the script."""
    directory, _, _ = script.rpartition("/")
    theirs = {mount["mountPath"].rstrip("/") for mount in of_the_user(container)}
    return directory if directory.endswith("/bin") and directory not in SYSTEM | theirs else script


def mounts(script: str, container: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A container's mounts with the copy of `script` in its place, and the door and edits to which it leads."""
    place = _place_of(script, container)
    copy = COPY if place != script else f"{COPY}/{script.rpartition('/')[2]}"
    return [
        *(mount for mount in of_the_user(container) if mount["mountPath"] != script),
        {"name": RUN_VOLUME, "mountPath": place, "subPath": copy},
        {"name": VOLUME, "mountPath": SCRIPT, "subPath": SCRIPT_KEY, "readOnly": True},
        {"name": VOLUME, "mountPath": EDITS, "subPathExpr": f"$({POD_NAME})", "readOnly": True},
        {"name": FILES_VOLUME, "mountPath": RUN},
    ]


def environment(layout: Layout, others: Sequence[Mapping[str, Any]],
                more: Mapping[str, str] | None = None) -> list[Mapping[str, Any]]:
    """A container's `env` with the pod's name, what the layout and `more` set, and a name cache of a second."""
    ours = {**layout.environment, **(more or {})}
    kept = [item for item in others if item["name"] not in (POD_NAME, *ours)]
    # A variable must stand before those that use it, and ours use no other: first is always right.
    return name_cache.short([_POD_NAME, *({"name": name, "value": value} for name, value in ours.items()), *kept])


def init_container(script: str, container: Mapping[str, Any]) -> dict[str, Any]:
    """What copies the start script that `container` would run: its image's or, where the user mounts one there, theirs."""
    known = [each for each in SCRIPTS if each != script]
    return beside(container, KEEPER, ["bash", "-c", KEEP, KEEPER, script, _place_of(script, container), *known], [
        *_below(container, script), {"name": RUN_VOLUME, "mountPath": RUN}])


def guard(log_dir: str, container: Mapping[str, Any]) -> dict[str, Any]:
    """What keeps Kafka from being a broker in this pod, whatever its container starts: `log_dir` is where it would be one.

    It may name the pod as $(SWITCHOVER_POD_NAME).
    """
    found = beside(container, GUARDIAN, ["bash", "-c", GUARD, GUARDIAN, log_dir], _below(container, log_dir))
    return found | {"env": [_POD_NAME, *(item for item in found.get("env") or () if item["name"] != POD_NAME)]}


def _below(container: Mapping[str, Any], path: str) -> list[Mapping[str, Any]]:
    """The container's own mounts that a path lies on."""
    return [mount for mount in of_the_user(container) if f"{path}/".startswith(f"{mount['mountPath'].rstrip('/')}/")]


def beside(container: Mapping[str, Any], name: str, command: Sequence[str],
            mounted: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An init container with the image, resources and security of `container`: what admits that one admits this."""
    kept = ["imagePullPolicy", "securityContext", "resources"]
    if any("subPathExpr" in mount for mount in mounted):
        kept += ["env", "envFrom"]                     # the expression may name any variable of the container's
    found: dict[str, Any] = {
        "name": name, "image": container["image"], "command": list(command), "volumeMounts": list(mounted)}
    return found | {key: container[key] for key in kept if key in container}


def passes(container: Mapping[str, Any]) -> bool:
    """Whether a container has its edits and the door; in a pod of the release before that lies over its start script."""
    own = {mount["mountPath"]: mount for mount in container.get("volumeMounts") or () if mount["name"] == VOLUME}
    doors = {path for path, mount in own.items() if mount.get("subPath") == SCRIPT_KEY}
    is_led_there = doors != {SCRIPT} or any(
        mount["name"] == RUN_VOLUME and mount.get("subPath", "").startswith(COPY)
        for mount in container.get("volumeMounts") or ())
    return POD_NAME in own.get(EDITS, {}).get("subPathExpr", "") and bool(doors) and is_led_there


def is_mounted(pod: Mapping[str, Any], secret: str) -> bool:
    """Whether a pod's spec has the volume with the script and the edits."""
    volume: Mapping[str, Any] = next((each for each in pod.get("volumes") or () if each["name"] == VOLUME), {})
    return bool(volume.get("secret", {}).get("secretName") == secret)
