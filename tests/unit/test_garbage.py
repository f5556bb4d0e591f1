"""What runs long looks for garbage seldom, and never at what it imported."""

import subprocess
import sys

PROGRAM = """
import gc
import switchover.lag.collector
from switchover.runtime.garbage import look_seldom
before = gc.get_threshold()
look_seldom()
print(gc.get_freeze_count() > 10_000, gc.get_threshold()[0] > before[0], gc.get_threshold()[1:] == before[1:])
"""


def test_it_looks_seldom_and_not_at_what_was_there() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True", "True", "True"]
