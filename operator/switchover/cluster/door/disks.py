"""What only a broker's disk tells, reported by an init container when its pod starts.

Two things stop a broker and are told nowhere else: a log directory formatted by `kafka-storage` (meta.properties of version
1), with which a broker on plain ZooKeeper refuses to start, and a partition directory without `partition.metadata`, whose
log has no topic id (KAFKA-21022). The container needs /bin/sh and nothing else, and it ends with 0 whatever happens: a
report that fails must not keep a broker down.
"""

from collections.abc import Mapping
from typing import Any

from switchover.kubernetes.reports import DISKS

NOT_DATA = ("configMap", "secret", "downwardAPI", "projected")

SCRIPT = """(
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


def init_container(pod: Mapping[str, Any], broker: Mapping[str, Any]) -> dict[str, Any]:
    """The init container for a pod's spec and its broker's container: the data volumes, read-only, at the same paths.

    Resources and security are the broker's own: the pod asks for no more than before, keeps its quality of service, and
    whatever admits the broker (quota, limit range, `restricted`) admits this.
    """
    no_data = {volume["name"] for volume in pod.get("volumes", []) if any(source in volume for source in NOT_DATA)}
    mounts = [mount for mount in broker.get("volumeMounts", []) if mount["name"] not in no_data]
    container: dict[str, Any] = {
        "name": DISKS,
        "image": broker["image"],
        "command": ["/bin/sh", "-c", SCRIPT, DISKS, *(mount["mountPath"] for mount in mounts)],
        "volumeMounts": [
            {key: mount[key] for key in ("name", "mountPath", "subPath", "subPathExpr") if key in mount}
            | {"readOnly": True}
            for mount in mounts
        ],
    }
    kept = ["imagePullPolicy", "securityContext", "resources"]
    if any("subPathExpr" in mount for mount in mounts):
        kept += ["env", "envFrom"]                     # the expression may name any variable of the broker's
    return container | {key: broker[key] for key in kept if key in broker}
