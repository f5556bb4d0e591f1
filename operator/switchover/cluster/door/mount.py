"""How the door gets into a pod: a copy of the image's own start script, which calls it, lies in that one's place.

One Secret holds the door and the edits of every pod, under its name; no password of the user's is in it. An init container
makes the copy, in a directory that the pod may write: entry scripts of images edit their start script (`sed -i`), which
fails on a mounted file.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from switchover.cluster.door.brokers import SCRIPTS, Layout
from switchover.kubernetes.names import NODE_FILES
from switchover.kubernetes.reports import DISKS
from switchover.kubernetes.reports import REACH as REACH_CONTAINER

# --- scripts --------------------------------------------------------------------------------------------------------------
_HERE = resources.files(__package__)

DOOR = _HERE.joinpath("door.sh").read_text()
"""Runs before the image's own start script."""
STARTS = _HERE.joinpath("starts.sh").read_text()
"""A function that finds start scripts; other scripts begin with it."""
KEEP = STARTS + _HERE.joinpath("keep.sh").read_text()
"""What an init container runs: it copies the start script."""
GUARD = _HERE.joinpath("guard.sh").read_text()
"""What another runs in a controller's pod, so that no broker can start there."""
REACH = _HERE.joinpath("reach.sh").read_text()
"""What another runs there, to see whether brokers answer it."""
TRIAL = _HERE.joinpath("trial.sh").read_text()
"""What one runs in the pod that tries a template of the user's: it lays out the door, and log directories without a log."""


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
    return own_name_cache([item for item in container.get("env") or () if item["name"] != POD_NAME])


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
    theirs = [item for item in others if item["name"] not in (POD_NAME, *ours)]
    # A variable must come before those that use it, and ours use no other: first is always right.
    return short_name_cache([_POD_NAME, *({"name": name, "value": value} for name, value in ours.items()), *theirs])


def init_container(script: str, container: Mapping[str, Any]) -> dict[str, Any]:
    """What copies the start script that `container` would run: its image's or, where the user mounts one there, theirs."""
    known = [each for each in SCRIPTS if each != script]
    return init_like(container, KEEPER, ["bash", "-c", KEEP, KEEPER, script, _place_of(script, container), *known], [
        *_below(container, script), {"name": RUN_VOLUME, "mountPath": RUN}])


def guard(log_dir: str, container: Mapping[str, Any]) -> dict[str, Any]:
    """What keeps Kafka from being a broker in this pod, whatever its container starts: `log_dir` is where it would be one.

    It may name the pod as $(SWITCHOVER_POD_NAME).
    """
    found = init_like(container, GUARDIAN, ["bash", "-c", GUARD, GUARDIAN, log_dir], _below(container, log_dir))
    return found | {"env": [_POD_NAME, *(item for item in found.get("env") or () if item["name"] != POD_NAME)]}


def _below(container: Mapping[str, Any], path: str) -> list[Mapping[str, Any]]:
    """The container's own mounts that a path lies on."""
    return [mount for mount in of_the_user(container) if f"{path}/".startswith(f"{mount['mountPath'].rstrip('/')}/")]


def init_like(container: Mapping[str, Any], name: str, command: Sequence[str],
              mounted: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An init container with the image, resources and security of `container`: what admits that one admits this."""
    found = {"name": name, "image": container["image"], "command": list(command), "volumeMounts": list(mounted)}
    return found | _shared_with(container, mounted)


def _shared_with(container: Mapping[str, Any], mounted: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of `container` that an init container with these mounts has as well."""
    fields = ["imagePullPolicy", "securityContext", "resources"]
    if any("subPathExpr" in mount for mount in mounted):
        fields += ["env", "envFrom"]                   # the expression may name any variable of the container's
    return {key: container[key] for key in fields if key in container}


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


# --- name cache -----------------------------------------------------------------------------------------------------------
# How long the nodes' JVMs remember names: pods get new addresses at every move (docs/decisions/0002-addresses.md).
#
# With Java's default the controller goes on connecting to a restarted broker's old address for 30 seconds.

JVM_VARIABLE = "JAVA_TOOL_OPTIONS"
"""The JVM itself reads it, so it works whatever an image's start script does."""
JVM_OPTIONS = "-Dsun.net.inetaddr.ttl=1"


def short_name_cache(environment: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A container's `env` with the name cache cut to a second; the user's own options stay.

    A variable that takes its value from elsewhere is left alone: what it says cannot be known here.
    """
    own = next((item for item in environment if item["name"] == JVM_VARIABLE), None)
    if own is None:
        return [*environment, {"name": JVM_VARIABLE, "value": JVM_OPTIONS}]
    if "valueFrom" in own or JVM_OPTIONS in own.get("value", ""):
        return list(environment)
    longer = {"name": JVM_VARIABLE, "value": f"{own.get('value', '')} {JVM_OPTIONS}".strip()}
    return [longer if item is own else item for item in environment]


def own_name_cache(environment: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What `short_name_cache` was given."""
    found: list[Mapping[str, Any]] = []
    for item in environment:
        own = item.get("value", "") if item["name"] == JVM_VARIABLE else ""
        if JVM_OPTIONS in own:
            left = own.replace(JVM_OPTIONS, "").strip()
            found += [{"name": JVM_VARIABLE, "value": left}] if left else []
        else:
            found.append(item)
    return found


# --- disks ----------------------------------------------------------------------------------------------------------------
# What only a broker's disk shows, reported by an init container when its pod starts.
#
# Two things stop a broker and show nowhere else: a log directory formatted by `kafka-storage` (meta.properties of version
# 1), with which a broker on plain ZooKeeper refuses to start, and a partition directory without `partition.metadata`, whose
# log has no topic id (KAFKA-21022). The container needs /bin/sh and nothing else, and it ends with 0 whatever happens: a
# report that fails must not stop a broker from starting.

NOT_DATA = ("configMap", "secret", "downwardAPI", "projected")

DISKS_SCRIPT = """(
directories=0 partitions=0 formatted=0 nameless=0 findings=
found() {
    [ "${#2}" -lt 350 ] || return
    findings="$findings
$1 $2"
}
log_directory() {
    [ -r "$1/meta.properties" ] || exit
    version=
    while IFS='=' read -r key value; do [ "$key" != version ] || version=$value; done <"$1/meta.properties"
    directories=$((directories + 1))
    if [ "$version" != 0 ]; then
        formatted=$((formatted + 1))
        [ "$formatted" -gt 5 ] || found formatted "$1"
    fi
    for partition in "$1"/*-[0-9]*/ "$1"/.*-[0-9]*/; do
        partition=${partition%/}
        case ${partition##*-} in *[!0-9]*) continue ;; esac
        case ${partition##*/} in __cluster_metadata-0) continue ;; esac
        partitions=$((partitions + 1))
        [ ! -s "$partition/partition.metadata" ] || continue
        nameless=$((nameless + 1))
        [ "$nameless" -gt 5 ] || found nameless "$partition"
    done
}
visit() {
    if [ -e "$1/meta.properties" ]; then log_directory "$1"; return; fi
    [ "$2" -gt 0 ] || return
    for directory in "$1"/*/; do visit "${directory%/}" "$(($2 - 1))"; done
}
for mount in "$@"; do visit "$mount" 3; done
echo "disks 1 $directories $partitions $formatted $nameless$findings"
) >/dev/termination-log 2>/dev/null
exit 0
"""
"""Looks for log directories under each mount given as an argument, at most three levels down, and not inside of one.

`*-stray`, `*-delete` and `*-future` directories are no partitions. The report is one line and at most ten findings of less
than 350 bytes each, so that the kubelet cuts nothing off; nothing is written when a log directory cannot be read.
"""


def disks_container(pod: Mapping[str, Any], broker: Mapping[str, Any]) -> dict[str, Any]:
    """The init container for a pod's spec and its broker's container: the data volumes, read-only, at the same paths.

    Resources and security are the broker's own: the pod asks for no more than before, keeps its quality of service, and
    whatever admits the broker (quota, limit range, `restricted`) admits this.
    """
    no_data = {volume["name"] for volume in pod.get("volumes", []) if any(source in volume for source in NOT_DATA)}
    mounts = [mount for mount in broker.get("volumeMounts", []) if mount["name"] not in no_data]
    container = {
        "name": DISKS,
        "image": broker["image"],
        "command": ["/bin/sh", "-c", DISKS_SCRIPT, DISKS, *(mount["mountPath"] for mount in mounts)],
        "volumeMounts": [
            {key: mount[key] for key in ("name", "mountPath", "subPath", "subPathExpr") if key in mount}
            | {"readOnly": True}
            for mount in mounts
        ],
    }
    return container | _shared_with(broker, mounts)


# --- reach ----------------------------------------------------------------------------------------------------------------
# Whether controllers reach the brokers, reported by an init container when a controller's pod starts.
#
# Once Kafka has claimed the cluster its controllers send every broker who leads what, to the brokers' own inter-broker
# listener. Only then it would show that a network admits nobody but brokers there. So brokers are asked before, from the
# controllers' own pods; and where one answers, the door tries to log in (door/door.sh).

def reach_container(addresses: Sequence[str], controller: Mapping[str, Any]) -> dict[str, Any]:
    """The init container for these `host:port`, or tls://host:port, with the image, resources and security of
    `controller`."""
    return init_like(controller, REACH_CONTAINER, ["bash", "-c", REACH, REACH_CONTAINER, *addresses],
                     [{"name": FILES_VOLUME, "mountPath": RUN}])
