"""The job: from a configuration to a verdict and the files that it leaves."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.audit_bronze import SECOND, Captures, T
from pipeline.few_rows import FEW_ROWS
from switchover.pipeline.audit.job import run
from switchover.pipeline.audit.losses import produced
from switchover.pipeline.config import Config
from switchover.pipeline.outcome import BadConfig, JobFailed, Outcome
from switchover.pipeline.progress import Progress

UNTIL = 100 * SECOND


def configured(root: Path, *groups: dict[str, str], **audit: Any) -> Config:
    return Config.model_validate({"cluster": "c", "store": str(root), "spark": {"options": FEW_ROWS}, "audit": {
        "groups": list(groups), "since": T, "until": T + UNTIL, "capture": False, **audit}})


def audited(config: Config) -> tuple[Outcome, dict[str, Any]]:
    """The outcome, and the manifest of the run."""
    outcome = run(config, Progress())
    newest = max((config.store / "runs" / "audit" / "c").glob("[0-9]*"))
    assert (newest / "report.txt").read_text(encoding="utf-8").startswith(f"Audit of cluster c: {outcome.verdict}")
    return outcome, json.loads((newest / "manifest.json").read_text(encoding="utf-8"))


def captured() -> Captures:
    """`good` goes from 0 to 100, and expires and goes on at 150; the topic ends at 200."""
    captures = Captures()
    captures.commits("good", [0, 50, 100], 1000)
    captures.end("orders", 0, 100, UNTIL)
    return captures


def test_a_clean_group(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    captured().file(tmp_path, UNTIL)
    calls = []
    monkeypatch.setitem(sys.modules, "switchover.pipeline.capture.job",
                        SimpleNamespace(run=lambda config, progress: calls.append(config.cluster)))
    outcome, manifest = audited(configured(tmp_path, {"name": "good", "expected": "Drained"}, capture=True))
    assert outcome.verdict == "Clean"
    assert outcome.rows == 3
    assert list(outcome.evidence) == []
    assert calls == ["c"]                                     # it captured first
    assert manifest["verdict"] == "Clean"
    assert manifest["hashCollisions"] == 0
    assert {Path(file["path"]).parts[0] for file in manifest["files"]} >= {"evidence.parquet", "report.txt"}


@pytest.mark.long
def test_what_could_not_be_read_leaves_the_verdict_open(spark: SparkSession, tmp_path: Path) -> None:
    captures = captured()
    captures.generation("good", 1, -40_000, {"m-id": None, "n-id": None})
    captures.generation("good", 2, -20_000, {"m-id": None})                  # which stands as the range begins
    captures.generation("good", 3, 40_000, {"m-id": [0]})
    captures.file(tmp_path, UNTIL, counts={"unknown commit version 5": 2, "type 4": 7})
    outcome, manifest = audited(configured(tmp_path, {"name": "good"}))
    assert outcome.verdict == "Indeterminate"
    assert [words.partition(":")[0] for words in manifest["doubts"]] == [
        "2 captured records could not be read (unknown commit version 5)", "group good"]
    assert "1 assignments of members could not be read" in manifest["doubts"][1]


def test_the_producers_log_decides_what_commits_cannot(spark: SparkSession, tmp_path: Path) -> None:
    captures = captured()
    captures.commit("good", None, 10_000)
    captures.commits("good", [150, 180], 20_000)
    captures.commits("lag", [0, 90], 1000)
    captures.file(tmp_path / "store", UNTIL, holes=[{"partition": 3, "from": 5, "to": 9}])
    log = tmp_path / "produced"
    log.mkdir()
    (log / "a.jsonl").write_text('{"topic": "orders", "partition": 0, "first": 0, "last": 119}\n'
                                 '{"topic": "orders", "partition": 0, "first": 140, "last": 199}\n', encoding="utf-8")
    groups = {"name": "good"}, {"name": "lag", "expected": "Drained"}, {"name": "nobody\n"}
    outcome, manifest = audited(configured(tmp_path / "store", *groups, produced=str(log), since=T - 60_000))
    assert outcome.verdict == "Violations"                    # though there are doubts
    assert manifest["violations"] == {"skipped": 1, "left": 1}
    assert manifest["evidence"][0].startswith("lag orders-0: 90 acknowledged records of [90, 200) not consumed by")
    assert manifest["evidence"][1].startswith("good orders-0: 30 acknowledged records of [100, 150) passed over at")
    began, hole, unknown = manifest["doubts"]
    assert began.startswith("the first capture of Kafka began at 2023")
    assert hole == "capture 1 found a hole: {'partition': 3, 'from': 5, 'to': 9}"
    assert unknown.startswith(r"group 'nobody\n' is not known: no commit"[:40])

    (log / "b.jsonl").write_text('{"topic": "orders"\n', encoding="utf-8")
    with pytest.raises(JobFailed, match=r'"orders.* is no range of acknowledged offsets'):
        produced(spark, log)
    (log / "b.jsonl").write_text('{"topic": "orders", "partition": 0, "first": 9, "last": 3}\n', encoding="utf-8")
    with pytest.raises(JobFailed, match="'last': 3"):
        produced(spark, log)
    with pytest.raises(BadConfig, match=r"no \*\.jsonl"):
        produced(spark, tmp_path)


def test_what_cannot_be_audited_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"audit\.groups"):
        run(Config.model_validate({"cluster": "c", "store": str(tmp_path)}), Progress())
    with pytest.raises(BadConfig, match="not in the past"):
        run(configured(tmp_path, {"name": "g"}, until=4_000_000_000_000), Progress())
