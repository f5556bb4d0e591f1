"""The entry point of all jobs: what they end with, and what they are refused for. No Spark runs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import ArrowInvalid
from pyspark.errors import PySparkRuntimeError

from switchover.api.job_message import LARGEST, NONCE, read
from switchover.pipeline import main
from switchover.pipeline.config import Config
from switchover.pipeline.outcome import JobFailed, Outcome, Progress

WORLD = "cluster: blue\nstore: /data\n"


@pytest.fixture
def message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the termination message is left."""
    path = tmp_path / "termination"
    monkeypatch.setenv("SWITCHOVER_TERMINATION_MESSAGE", str(path))
    return path


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `drift` with a configuration and something else in the job's place; its exit code."""
    def run(work: Callable[[], Outcome], content: str = WORLD) -> int:
        file = tmp_path / "pipeline.yaml"
        file.write_text(content)

        def instead(config: Config, progress: Progress) -> Outcome:
            return work()

        monkeypatch.setattr("switchover.pipeline.drift.job.run", instead)
        return main.main(["drift", "--config", str(file)])

    return run


def raises(error: Exception) -> Callable[[], Outcome]:
    def work() -> Outcome:
        raise error

    return work


def test_the_outcome_is_a_line_and_the_termination_message(
        ran: Callable[..., int], message: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(lambda: Outcome(7, {"driftPersistent": 0, "reason": None}, "Clean")) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert message.read_text() == last
    told = json.loads(last)
    assert told.pop("seconds") >= 0
    assert told == {"job": "drift", "version": 1, "result": "Succeeded", "verdict": "Clean", "rows": 7, "driftPersistent": 0}


def test_the_outcome_repeats_the_nonce_of_its_job(
        ran: Callable[..., int], message: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator believes no other verdict of an audit."""
    monkeypatch.setenv(NONCE, "n0nce")
    assert ran(lambda: Outcome(7, {"findings": "x" * LARGEST}, "Clean")) == 0
    left = read(message.read_text())
    assert (left.verdict, left.nonce) == ("Clean", "n0nce")


@pytest.mark.parametrize(("error", "words"), [
    (JobFailed("nothing was captured of cluster blue"), "drift: nothing was captured of cluster blue"),
    (OSError(28, "No space left on device", "/data/runs"), "No space left on device: '/data/runs'"),
    (ArrowInvalid("Could not open Parquet input source '/data/a.parquet': magic bytes"), "'/data/a.parquet'"),
    (PySparkRuntimeError("[FAILED_READ_FILE] b.parquet\n\tat org.apache\n\tat java.lang"), "[FAILED_READ_FILE] b.parquet"),
])
def test_what_stops_a_job_is_told_in_one_line(ran: Callable[..., int], message: Path, capsys: pytest.CaptureFixture[str],
                                              error: Exception, words: str) -> None:
    assert ran(raises(error)) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert words in said
    left = json.loads(message.read_text())
    assert left["result"] == "Failed"
    assert words.removeprefix("drift: ") in left["reason"]


@pytest.mark.parametrize(("content", "words"), [
    ("", "must hold fields such as `cluster`"),
    ("cluster: [", "is not YAML"),
    ("store: /data", "cluster: Field required"),
    (WORLD + "audits: {}", "audits: Extra inputs are not permitted"),
    (WORLD + "capture: {everySeconds: 0}", "capture.everySeconds: Input should be greater than or equal to 1"),
    (WORLD + "audit: {since: 2026-11-22T10:00:00, groups: [{name: g}]}", "audit.since: Value error, a time needs its zone"),
    (WORLD + "audit: {since: 5, until: 4, groups: [{name: g}]}", "until must be later than since"),
    ("cluster: '../blue'\nstore: /data", "cluster: String should match pattern"),
])
def test_a_configuration_that_cannot_be_used_is_refused_by_its_field(
        ran: Callable[..., int], capsys: pytest.CaptureFixture[str], content: str, words: str) -> None:
    assert ran(raises(AssertionError("the job must not run")), content) == 2
    assert words in capsys.readouterr().err


def test_a_configuration_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["drift", "--config", "/nowhere.yaml"]) == 2
    assert "/nowhere.yaml: No such file or directory" in capsys.readouterr().err


def test_a_long_outcome_is_cut_to_what_kubernetes_keeps(ran: Callable[..., int], message: Path) -> None:
    assert ran(lambda: Outcome(1, {"notes": ["a" * 300] * 50, "reason": "b" * 9000, "counts": {"c" * 5000: 1}})) == 0
    assert len(message.read_bytes()) <= LARGEST
    assert json.loads(message.read_text())["result"] == "Succeeded"
