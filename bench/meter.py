"""What work costs: this process and all that it starts."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

EVERY = 0.3
"""Seconds between two looks; a process that lives shorter may be missed."""


@dataclass(slots=True)
class Cost:
    """`wall` and `cpu` in seconds, `peak` in MiB; a page that processes share counts once (Pss)."""

    wall: float = 0.0
    cpu: float = 0.0
    peak: int = 0

    def __str__(self) -> str:
        return f"{self.wall:7.1f} s {self.cpu:7.1f} CPU-s {self.peak:6} MiB"


@contextmanager
def measured(without: int | None = None) -> Iterator[Cost]:
    """A cost that is filled in when the block ends; the process `without` (a broker, say) does not count."""
    own, ended, cost = psutil.Process(), threading.Event(), Cost()
    seen: dict[int, float] = {}

    def look() -> None:
        memory = 0
        for process in [own, *own.children(recursive=True)]:
            if process.pid != without:
                with suppress(psutil.Error):
                    spent = process.cpu_times()
                    seen[process.pid] = spent.user + spent.system
                    memory += process.memory_full_info().pss
        cost.peak = max(cost.peak, memory >> 20)

    def watch() -> None:
        while not ended.wait(EVERY):
            look()

    look()
    before, began = sum(seen.values()), time.monotonic()
    cost.peak = 0
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield cost
    finally:
        cost.wall = time.monotonic() - began
        ended.set()
        watcher.join()
        look()
        cost.cpu = sum(seen.values()) - before
