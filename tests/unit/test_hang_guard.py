"""A test that hangs is ended; one that a busy machine holds up is not."""

from pathlib import Path

from unit import inner_pytest

HANGS = """
import time

def test_hangs():
    time.sleep(60)

def test_after_it():
    pass
"""
WAITS_AND_HANGS = """
import time

def test_waits():
    time.sleep(1.5)

def test_hangs():
    time.sleep(60)
"""
PLUGINS = ("pytest_timeout", "hang_guard")


CONFTEST = """
from pathlib import Path

import patience

patience.LOAD = Path("loadavg")
patience.os.cpu_count = lambda: 2
patience._measured.append(1.0)
"""


def load(tmp_path: Path, tasks: int) -> None:
    """A machine of two cores as fast as the reference, with so many tasks that want to run."""
    (tmp_path / "loadavg").write_text(f"{tasks}.00 0 0 {tasks}/900 7\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)


def test_on_a_quiet_machine_a_test_that_hangs_is_ended_and_the_next_one_runs(tmp_path: Path) -> None:
    load(tmp_path, 2)
    (tmp_path / "test_it.py").write_text(HANGS)
    ended = inner_pytest.run(tmp_path, "--timeout", "2", plugins=PLUGINS)
    assert ended.returncode == 1
    assert "1 failed, 1 passed" in ended.stdout
    assert "FAILED test_it.py::test_hangs - Failed: Timeout (>2.0s) from pytest-timeout." in ended.stdout


def test_on_a_machine_four_times_slower_it_has_four_times_as_long(tmp_path: Path) -> None:
    load(tmp_path, 8)
    (tmp_path / "test_it.py").write_text(WAITS_AND_HANGS)
    ended = inner_pytest.run(tmp_path, "--timeout", "1", plugins=PLUGINS)
    assert "1 failed, 1 passed" in ended.stdout
    assert "FAILED test_it.py::test_hangs" in ended.stdout
