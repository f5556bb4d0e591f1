"""When the demo kills the operator, and that it finds and kills the right process."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from demo import operator_process
from demo.kill import MOMENTS, Killer


def at(step: str, batch: int) -> dict[str, Any]:
    return {"status": {"progress": {"step": step, "batch": batch}}}


@pytest.fixture
def deaths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Containers killed; "down" stands for an operator that has no process."""
    killed: list[str] = []

    def kill(container: str) -> int:
        if container == "down":
            return 0
        killed.append(container)
        return 1

    monkeypatch.setattr(operator_process, "kill", kill)
    return killed


def test_each_moment_strikes_once(deaths: list[str]) -> None:
    killer = Killer(MOMENTS)
    for step, batch in [("EnableMigration", 1), ("EnableMigration", 2), ("EnableMigration", 2), ("CopyMetadata", 0)]:
        killer(at(step, batch), "first")
    assert [moment.step for moment in killer.killed] == ["EnableMigration", "CopyMetadata"]
    assert len(deaths) == 2
    assert {(moment.step, moment.batch) for moment in killer.missed} == {
        ("MoveBrokers", 1),
        ("MoveBrokers", 3),
        ("Finalize", 2),
    }


def test_a_moment_stays_due_while_the_operator_is_down(deaths: list[str]) -> None:
    killer = Killer(MOMENTS)
    assert killer(at("Finalize", 2), "down") is None
    assert killer(at("Finalize", 2), "second") is not None
    assert deaths == ["second"]


def test_three_kills_are_the_ones_that_matter_most() -> None:
    assert {moment.step for moment in MOMENTS[:3]} == {"EnableMigration", "MoveBrokers", "Finalize"}


def test_processes_are_found_by_the_cgroup_of_their_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        for pid, cgroup in {victim.pid: "0::/kubepods/pod1/0123abcd", 1: "0::/kubepods/pod2/ffff"}.items():
            (tmp_path / str(pid)).mkdir()
            (tmp_path / str(pid) / "cgroup").write_text(cgroup)
            (tmp_path / str(pid) / "status").write_text("VmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\n")
        monkeypatch.setattr(operator_process, "PROC", tmp_path)
        assert operator_process.peak_memory("0123abcd") == 2048 * 1024
        assert operator_process.kill("0123abcd") == 1
        assert victim.wait(5) == -9
    finally:
        victim.kill()
        victim.wait(5)


def test_no_container_is_no_process() -> None:
    assert list(operator_process.processes("")) == []
    assert operator_process.container_id({"status": {"containerStatuses": [{"state": {"waiting": {}}}]}}) == ""
