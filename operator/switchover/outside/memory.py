"""How much memory this process has for one answer of a peer."""

from functools import cache
from pathlib import Path

MIB = 1024 * 1024
AT_REST = 160 * MIB
"""What the operator uses beside answers, in bytes: 136 MiB at most in `make demo` (docs/measurements.md)."""
LEAST, MOST = 64 * MIB, 2048 * MIB
"""Kafka's raft layer sends up to 8 MiB of the metadata log at once, whatever the operator's limit is."""
FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""The limit of a container as it sees it itself: of cgroups v2, and of v1."""


@cache
def room() -> int:
    """Bytes that one answer may take, read and unread."""
    memory = limit()
    return MOST if memory is None else max(LEAST, min(MOST, memory - AT_REST))


def limit() -> int | None:
    """The memory limit of this container, in bytes; None without one."""
    for file in FILES:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) < 1 << 60:    # v1 writes a very large number where there is none
            return int(text)
    return None


def limit_for(answer: int) -> str:
    """The memory limit with which there is room for an answer that takes so many bytes."""
    return f"{-(-(AT_REST + answer) // MIB)}Mi"
