"""Links that are cut, a node that is lost and a disk that is full, made from outside: in the namespaces of pods and nodes.

For the sandbox's own nodes: with kind a node's processes and mounts are found in another way.
"""

import contextlib
import hashlib
import itertools
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from demo import operator_process
from demo.cluster import Cluster
from patience import until

CGROUPS = Path("/sys/fs/cgroup/pids") if Path("/sys/fs/cgroup/pids").is_dir() else Path("/sys/fs/cgroup")
CUT = """
table ip cut
delete table ip cut
table ip cut {{
  chain input {{
    type filter hook input priority 0
    ip saddr {{ {} }} drop
  }}
}}
"""
ROOM = 64 * 1024 * 1024
"""Bytes of a small disk: enough for the metadata log of a test."""


def _within(pid: int, namespace: str, *command: str, feed: str = "", check: bool = True) -> None:
    """Run a program of this machine in a namespace of that process."""
    subprocess.run(["nsenter", f"--{namespace}", "--target", str(pid), *command], input=feed, text=True, check=check)


def _cut(cluster: Cluster, pods: Sequence[str], others: Sequence[str], done: dict[int, str]) -> None:
    """By the addresses of now: a pod that was replaced has another one, and a network without the cut."""
    items = cluster.items("pods,services")
    found = {each["metadata"]["name"]: each for each in items if each["kind"] == "Pod"}
    gone = [found[other] for other in others if "podIP" in found.get(other, {}).get("status", {})]
    labels = [pod["metadata"]["labels"].items() for pod in gone]
    services = [each["spec"]["clusterIP"] for each in items if each["kind"] == "Service" and each["spec"].get("selector")
                and any(each["spec"]["selector"].items() <= those for those in labels)]
    rules = CUT.format(", ".join(sorted({*(pod["status"]["podIP"] for pod in gone), *services} - {"None"})))
    for pod in pods if gone else ():
        for process in itertools.islice(operator_process.processes(operator_process.container_id(found.get(pod, {}))), 1):
            if done.get(process) != rules:
                _within(process, "net", "nft", "--file", "-", feed=rules, check=process not in done)
                done[process] = rules


@contextlib.contextmanager
def cut_off(cluster: Cluster, pods: Sequence[str], others: Sequence[str]) -> Iterator[None]:
    """Nothing comes from the others to these pods, by their own addresses or by their Services': neither can be asked nor
    answer. Pods that take their places meanwhile are cut off as well."""
    done: dict[int, str] = {}
    over = threading.Event()

    def keep() -> None:
        while not over.wait(1):
            _cut(cluster, pods, others, done)

    with ThreadPoolExecutor(1) as pool:
        try:
            _cut(cluster, pods, others, done)
            kept = pool.submit(keep)
            yield
            over.set()
            kept.result()
        finally:
            over.set()
            pool.shutdown()
            for process in done:                       # some are gone, and their network with them
                _within(process, "net", "nft", "delete", "table", "ip", "cut", check=False)


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
    found, path = cluster.get("pod", pod), _volume(cluster, pod)
    node = found["spec"]["nodeName"]
    pid = int((state / node / "pid").read_text())
    root = Path(f"/proc/{pid}/root")
    cluster.kubectl("cordon", node)                    # its volume is here: the next one waits
    try:
        cluster.kubectl("delete", "pod", pod, timeout=120)
        # What is mounted under it would be unmounted with it.
        volumes = root / f"var/lib/kubelet/pods/{found['metadata']['uid']}/volumes"
        until(lambda: not volumes.exists(), f"the volumes of {pod} are unmounted", 120)
        _within(pid, "mount", "sh", "-ec", f"cp -a {path} /run/kept-{pod}; mount -t tmpfs -o size={ROOM} tmpfs {path};"
                                           f" cp -a /run/kept-{pod}/. {path}")
    finally:
        cluster.kubectl("uncordon", node)
    filler = Path(f"{root}{path}/filler")
    try:
        yield filler
    finally:
        filler.unlink(missing_ok=True)


def fill(filler: Path) -> None:
    """Until nothing more can be written."""
    assert shutil.disk_usage(filler.parent).total == ROOM, f"{filler.parent} is no small disk"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(65536))
