"""A container's processes, the operator's above all, as the machine sees them: their memory, and signals to them.

The process is found by its container's id in /proc/*/cgroup, which holds for the sandbox and for kind, where a node is
a container of this machine. A signal sent from inside the container would not do: a process cannot kill its own pid 1.
"""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROC = Path("/proc")


def container_id(pod: dict[str, Any]) -> str:
    """Id of the pod's first running container, "" while none runs."""
    for status in pod.get("status", {}).get("containerStatuses", []):
        if "running" in status.get("state", {}):
            return str(status["containerID"]).partition("://")[2]
    return ""


def kill(container: str, number: signal.Signals = signal.SIGKILL) -> int:
    """Send every process of the container a signal; how many there were."""
    killed = 0
    for pid in processes(container):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
        killed += 1
    return killed


def peak_memory(container: str) -> int:
    """The largest resident set that any process of the container ever had (VmHWM), in bytes; 0 when it is gone."""
    peaks = [0]
    for pid in processes(container):
        try:
            found = re.search(r"^VmHWM:\s+(\d+) kB$", (PROC / str(pid) / "status").read_text(), re.MULTILINE)
        except OSError:
            continue
        if found:
            peaks.append(int(found[1]) * 1024)
    return max(peaks)


def processes(container: str) -> Iterator[int]:
    """Ids of the processes of a container."""
    if not container:
        return
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                belongs = container in (entry / "cgroup").read_text()
            except OSError:                          # it ended meanwhile
                continue
            if belongs:
                yield int(entry.name)
