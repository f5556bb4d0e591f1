"""What a process has used of the processors."""

import os
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Since it began, as its own and for it."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
