"""The time, as the machine's clock had it when we started, and what has passed since by a clock that nobody sets."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time, so that tests can own it."""

    def now(self) -> float: ...


class WallClock:
    """`Clock` in seconds since the epoch. Neither a clock that is set nor a machine that slept makes ages wrong."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> float:
        return self._epoch + time.clock_gettime(time.CLOCK_BOOTTIME)
