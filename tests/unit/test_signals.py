"""A program that a signal asks to end while it waits."""

import os
import subprocess
import sys
import time
from pathlib import Path

from patience import stretched
from switchover.runtime.signals import Stop

PROGRAM = """
import os, signal, threading
from switchover.runtime.signals import on_signals

# An alarm comes at every moment of the waiting, many times.
stop = on_signals()
signal.signal(signal.SIGALRM, lambda *_: stop.set())
signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
for _ in range(20_000):
    stop = type(stop)()
    stop.wait(0.00002)
signal.setitimer(signal.ITIMER_REAL, 0)

stop = on_signals()
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
assert stop.wait(600) and stop.is_set() and stop.wait(600)
"""


def test_a_signal_at_any_moment_of_its_waiting_lets_it_go_on_and_wakes_it() -> None:
    found = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "operator")}
    subprocess.run([sys.executable, "-c", PROGRAM], env=found, check=True, timeout=stretched(30))


def test_who_is_not_asked_to_end_waits_for_as_long_as_it_wants() -> None:
    stop, began = Stop(), time.monotonic()
    assert not stop.wait(0.05)
    assert not stop.is_set()
    assert time.monotonic() - began >= 0.05
