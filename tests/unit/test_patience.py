"""Limits in seconds of a quiet machine."""

from pathlib import Path

import pytest

import patience
from patience import Patience, slowness, stretched, until


class Machine:
    """Its time and how slow it is, set by hand."""

    def __init__(self) -> None:
        self.now, self.slow = 0.0, 1.0

    def wait(self, seconds: float) -> Patience:
        return Patience(seconds, clock=lambda: self.now, slow=lambda: self.slow)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the kernel says of the load, of a machine of two cores as fast as the reference."""
    monkeypatch.setattr(patience, "LOAD", tmp_path / "loadavg")
    monkeypatch.setattr(patience.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(patience, "_measured", [1.0])
    return tmp_path / "loadavg"


def test_on_a_quiet_machine_a_second_is_a_second() -> None:
    machine = Machine()
    wait = machine.wait(60)
    machine.now = 59
    assert not wait.over
    machine.now = 60
    assert wait.over
    assert str(wait) == "60 s"


def test_only_the_time_in_which_the_machine_is_slow_counts_less() -> None:
    machine = Machine()
    wait = machine.wait(60)
    machine.now = 30
    assert not wait.over            # 30 s are left
    machine.slow, machine.now = 10.0, 300
    assert not wait.over            # 27 s of them are used
    machine.slow, machine.now = 1.0, 304
    assert wait.over
    assert str(wait) == "304 s, 60 s of a quiet machine"


def test_one_looks_until_patience_is_over_and_once_at_least() -> None:
    machine = Machine()
    seen = []
    for number in machine.wait(10).looks():
        seen.append(number)
        machine.now += 4
    assert seen == [0, 1, 2]
    assert list(machine.wait(0).looks()) == [0]


@pytest.mark.parametrize(("told", "slow"), [
    ("0.10 0.20 0.30 1/200 999", 1.0),
    ("2.00 0.20 0.30 1/200 999", 1.0),
    ("10.00 0.20 0.30 1/200 999", 5.0),
    ("1.00 0.20 0.30 20/200 999", 10.0),         # it has just become busy
])
def test_a_machine_is_as_slow_as_tasks_want_each_core(load: Path, told: str, slow: float) -> None:
    load.write_text(told)
    assert slowness() == slow
    assert stretched(3) == 3 * slow


def test_slow_cores_stretch_limits_too(load: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load.write_text("0.10 0.20 0.30 1/200 999")
    monkeypatch.setattr(patience, "_measured", [])
    monkeypatch.setattr(patience, "_work", lambda: 3 * patience.REFERENCE_SECONDS)
    assert slowness() == pytest.approx(3)


def test_what_does_not_come_is_named(load: Path) -> None:
    load.write_text("0.10 0.20 0.30 1/200 999")
    with pytest.raises(AssertionError, match="still not: the broker is up"):
        until(lambda: False, "the broker is up", 0.05, pause=0.01)
