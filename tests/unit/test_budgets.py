"""Layers that take too long."""

import itertools
import re
from pathlib import Path

import pytest

from budgets import TOO_SLOW
from unit import inner_pytest

CONFTEST = """
import pytest
from budgets import Budgets

def pytest_addoption(parser):
    parser.addoption("--budgets", action="store_true")

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        budgets = Budgets({"unit": 0.2, "adapters": 600}, lambda file: file.split("/")[1],
                          enforced=config.getoption("--budgets"), slow=lambda: 4.0)
        config.pluginmanager.register(budgets)
"""
SLOW = """
import time
import pytest

@pytest.fixture
def slow_to_begin():
    time.sleep(0.3)

def test_slow(slow_to_begin):
    pass
"""
QUICK = "".join(f"def test_quick_{number}(): pass\n" for number in range(12))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for layer in ("unit", "adapters"):
        (tmp_path / "tests" / layer).mkdir(parents=True)
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
    (tmp_path / "tests" / "unit" / "test_it.py").write_text(SLOW + QUICK)
    (tmp_path / "tests" / "adapters" / "test_other.py").write_text("def test_other(): pass\n")
    return tmp_path


@pytest.mark.parametrize("how", [(), ("-p", "xdist", "--numprocesses", "2")], ids=["alone", "xdist"])
def test_an_overrun_is_no_failure(project: Path, how: tuple[str, ...]) -> None:
    ended = inner_pytest.run(project, "--budgets", *how)
    assert ended.returncode == TOO_SLOW
    lines = ended.stdout.splitlines()
    assert "14 passed" in lines[-2]
    load = r"machine 4\.0 times slower than quiet"
    assert re.fullmatch(rf"TOO SLOW: unit \d+ s of 0\.2 s, {load}\. Every test passed\.", lines[-1])
    assert re.search(rf"^adapters: \d+ s, within its budget of 600 s, {load}$", ended.stdout, re.MULTILINE)
    after = lines[lines.index("the slowest of unit:") + 1:]
    slowest = list(itertools.takewhile(lambda line: line.startswith("  "), after))
    assert len(slowest) == 10
    took = {test: float(seconds) for seconds, _, test in map(str.split, slowest)}
    assert took["tests/unit/test_it.py::test_slow"] >= 0.3
    assert list(took.values()) == sorted(took.values(), reverse=True)


def test_nothing_hangs_on_budgets_that_nobody_asked_for(project: Path) -> None:
    ended = inner_pytest.run(project)
    assert ended.returncode == 0
    assert "OVER ITS BUDGET" in ended.stdout
    assert "slowest" not in ended.stdout
    assert "TOO SLOW" not in ended.stdout


def test_a_failure_stays_a_failure_however_slow(project: Path) -> None:
    with (project / "tests" / "unit" / "test_it.py").open("a") as file:
        file.write("def test_wrong(): assert False\n")
    ended = inner_pytest.run(project, "--budgets")
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert "the slowest of unit:" in ended.stdout
    assert "TOO SLOW" not in ended.stdout
