"""Links that are cut, a node that is lost and a disk that is full, made from outside: in the namespaces of pods and nodes.

For the sandbox's own nodes: with kind a node's processes and mounts are found in another way.
"""

import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from demo import operator_process
from demo.cluster import Cluster
from patience import until

CGROUPS = Path("/sys/fs/cgroup/pids") if Path("/sys/fs/cgroup/pids").is_dir() else Path("/sys/fs/cgroup")
CUT = "table ip cut {{ chain input {{ type filter hook input priority 0; ip saddr {{ {} }} drop; }} }}"
ROOM = "64m"
"""Of a small disk: enough for the metadata log of a test."""


def _within(pid: int, namespace: str, *command: str, feed: str = "", check: bool = True) -> None:
    """Run a program of this machine in a namespace of that process."""
    subprocess.run(["nsenter", f"--{namespace}", "--target", str(pid), *command], input=feed, text=True, check=check)


def _process(cluster: Cluster, pod: str) -> int:
    """One of the pod's; it has the pod's network."""
    found: list[int] = []

    def runs() -> bool:
        found[:] = operator_process.processes(operator_process.container_id(cluster.get("pod", pod)))
        return bool(found)

    until(runs, f"{pod} runs a process", pause=0.5)
    return found[0]


@contextlib.contextmanager
def cut_off(cluster: Cluster, pods: Sequence[str], others: Sequence[str]) -> Iterator[None]:
    """Nothing comes from the others to these pods, by their own addresses or by their Services': neither can be asked nor
    answer."""
    gone = [cluster.get("pod", other) for other in others]
    labels = gone[0]["metadata"]["labels"].items()
    services = [each["spec"].get("clusterIP", "None") for each in cluster.items("services")
                if each["spec"].get("selector") and each["spec"]["selector"].items() <= labels]
    addresses = [*(pod["status"]["podIP"] for pod in gone), *(each for each in services if each != "None")]
    for pod in pods:
        _within(_process(cluster, pod), "net", "nft", "--file", "-", feed=CUT.format(", ".join(addresses)))
    try:
        yield
    finally:
        for pod in pods:                               # one that was replaced meanwhile has another network, which is whole
            _within(_process(cluster, pod), "net", "nft", "delete", "table", "ip", "cut", check=False)


def _processes_of_node(state: Path, node: str) -> list[int]:
    """All of a node's: its kubelet, its containers and whatever else began in it."""
    name = f"switchover-{hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:8]}"
    return [int(line) for each in (CGROUPS / name / node).rglob("cgroup.procs") for line in each.read_text().split()]


def _send(state: Path, node: str, number: signal.Signals) -> None:
    for pid in _processes_of_node(state, node):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


@contextlib.contextmanager
def node_lost(state: Path, node: str) -> Iterator[None]:
    """A node on which nothing runs any more, neither its kubelet nor its pods; it comes back as it was."""
    _send(state, node, signal.SIGSTOP)
    _send(state, node, signal.SIGSTOP)                 # what was forked meanwhile
    try:
        yield
    finally:
        _send(state, node, signal.SIGCONT)


def _volume(cluster: Cluster, pod: str) -> str:
    """Where the pod's claim lies on its node."""
    found: dict[str, Any] = cluster.get("pod", pod)
    [claim] = [each["persistentVolumeClaim"]["claimName"] for each in found["spec"]["volumes"]
               if "persistentVolumeClaim" in each]
    path: str = cluster.get("pv", cluster.get("pvc", claim)["spec"]["volumeName"])["spec"]["local"]["path"]
    return path


@contextlib.contextmanager
def small_disk(cluster: Cluster, state: Path, pod: str) -> Iterator[Path]:
    """The pod on a disk of ROOM with what it had on its own, and a file with which it can be filled. The disk stays."""
    node = cluster.get("pod", pod)["spec"]["nodeName"]
    path, pid = _volume(cluster, pod), int((state / node / "pid").read_text())
    operator_process.kill(operator_process.container_id(cluster.get("pod", pod)), signal.SIGSTOP)    # it writes no more
    _within(pid, "mount", "sh", "-ec", f"cp -a {path} /run/kept-{pod}; mount -t tmpfs -o size={ROOM} tmpfs {path};"
                                       f" cp -a /run/kept-{pod}/. {path}")
    cluster.kubectl("delete", "pod", pod, "--force", "--grace-period=0", timeout=120)
    yield Path(f"/proc/{pid}/root{path}/filler")


def fill(filler: Path) -> None:
    """Until nothing more can be written."""
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(65536))
