"""How long tests and demos wait for real servers: in seconds of a quiet machine, however busy or slow this one is.

A wait of 60 s on two quiet cores is one of ten minutes where twenty tasks want them. Every limit of a test or a demo
that stands for "by now something is broken" is one of this file; what is part of the proof (a session, a bake) is not.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

REFERENCE_SECONDS = 0.0142
"""CPU time that `_work` takes on the machine that all limits were chosen on."""

LOAD = Path("/proc/loadavg")


def slowness() -> float:
    """How many times longer than on two quiet cores anything takes here and now; at least 1.

    Tasks that want to run, for each core, times what a fixed piece of work costs here in CPU time.
    """
    minute, _, _, tasks, *_ = LOAD.read_text().split()
    wanting = max(float(minute), float(tasks.split("/")[0]))
    return max(1.0, wanting / (os.cpu_count() or 1)) * _speed()


def stretched(seconds: float) -> float:
    """`seconds` of a quiet machine as seconds of this one, for calls that take a limit and cannot be asked again."""
    return seconds * slowness()


class Patience:
    """`seconds` of a quiet machine, used up the slower the busier this machine is while one waits.

    Ask `over` in a loop: every question takes the time since the one before, by how busy the machine is then.
    """

    def __init__(
        self, seconds: float, *, clock: Callable[[], float] = time.monotonic, slow: Callable[[], float] = slowness
    ) -> None:
        self.seconds = seconds
        self._clock, self._slow = clock, slow
        self._left = seconds
        self._began = self._asked = clock()

    @property
    def over(self) -> bool:
        """Whether it is used up."""
        now = self._clock()
        self._left -= (now - self._asked) / self._slow()
        self._asked = now
        return self._left <= 0

    def looks(self) -> Iterator[int]:
        """Numbers from 0 until it is over, one at least: for a loop that looks, and sleeps, and looks again."""
        number = 0
        while not self.over or not number:
            yield number
            number += 1

    def __str__(self) -> str:
        """How long it waited, as an error says it."""
        waited = self._clock() - self._began
        quiet = waited < 1.2 * self.seconds + 1
        return f"{waited:.0f} s" if quiet else f"{waited:.0f} s, {self.seconds:g} s of a quiet machine"


def until(right: Callable[[], object], what: str | Callable[[], str], seconds: float = 60, *, pause: float = 0.2) -> None:
    """Back once `right()` is true. Raises AssertionError when patience is over first, naming `what` was waited for; called
    then, it can say how things stand."""
    patience = Patience(seconds)
    while not right():
        if patience.over:
            raise AssertionError(f"after {patience} still not: {what if isinstance(what, str) else what()}")
        time.sleep(pause)


@contextmanager
def within_processor_time(seconds: float, what: str = "it") -> Iterator[None]:
    """What is done here takes no more of the processor than `seconds` of a quiet machine. Raises AssertionError."""
    begun = time.thread_time()
    yield
    took = time.thread_time() - begun
    if took > seconds:                                    # or only on a machine that is slow just now
        took /= max(1.0, min(_work() for _ in range(3)) / REFERENCE_SECONDS)
    assert took <= seconds, f"{what} took {took:.2f} s of processor, more than {seconds} s"


_measured: list[float] = []


def _speed() -> float:
    """CPU time of a fixed piece of work against the reference, at least 1; measured once, the best of three."""
    if not _measured:
        _measured.append(max(1.0, min(_work() for _ in range(3)) / REFERENCE_SECONDS))
    return _measured[0]


def _work() -> float:
    """Seconds of CPU time for a fixed piece of work."""
    begun, value = time.thread_time(), 0
    for number in range(200_000):
        value = (value * 31 + number) & 0xFFFFFFFF
    return time.thread_time() - begun


if __name__ == "__main__":                  # for the sandbox's own commands: seconds in, whole seconds out
    print(round(stretched(float(sys.argv[1]))))
