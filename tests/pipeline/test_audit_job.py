"""The job: from a configuration to a verdict and the files that it leaves."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.audit_bronze import LONG_AGO, SECOND, Captures, T, id_of
from pipeline.few_rows import FEW_ROWS
from switchover.pipeline.audit.findings import produced
from switchover.pipeline.audit.job import run
from switchover.pipeline.config import Config
from switchover.pipeline.outcome import BadConfig, JobFailed, Outcome, Progress
from switchover.pipeline.store import Manifest, Store
from switchover.pipeline.tables import SCHEMAS

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
    # whatever the producers wrote, nobody knows whether it was to the topic that has this name now
    for topic_id, *seen in (("aa" * 16, LONG_AGO, 0), ("bb" * 16, 1000, UNTIL)):
        captures.topic("again", topic_id, *seen)
    captures.commits("again", [0, 50, 100], 10_000, topic="again")
    captures.commit("again", None, 20_000, "again")
    captures.commits("again", [150, 180], 30_000, topic="again")
    captures.file(tmp_path / "store", UNTIL, holes=[{"partition": 3, "from": 5, "to": 9}])
    log = tmp_path / "produced"
    log.mkdir()
    (log / "a.jsonl").write_text('{"topic": "orders", "partition": 0, "first": 0, "last": 119}\n'
                                 '{"topic": "orders", "partition": 0, "first": 140, "last": 199}\n'
                                 '{"topic": "again", "partition": 0, "first": 0, "last": 199}\n', encoding="utf-8")
    groups = {"name": "good"}, {"name": "lag", "expected": "Drained"}, {"name": "nobody\n"}, {"name": "again"}
    outcome, manifest = audited(configured(tmp_path / "store", *groups, produced=str(log), since=T - 60_000))
    assert outcome.verdict == "Violations"                    # though there are doubts
    assert manifest["violations"] == {"skipped": 1, "left": 1}
    assert manifest["undecided"] == {"skipped": 1}
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


def test_where_records_were_gone_nothing_is_proven_of_the_groups_that_lie_there(spark: SparkSession, tmp_path: Path) -> None:
    """Nor, where no capture came after the end, that a group has not gone on."""
    captures = captured()
    captures.commits("rewound", [0, 100, 40, 70, 130], 1000)
    captures.commit("elsewhere", 10, 1000, "short")
    captures.rows["commits"][-1]["log_partition"] = 8
    captures.end("short", 90, 200, 30_000)
    captures.file(tmp_path, UNTIL, holes=[{"partition": 7, "from": 5, "to": 9}])
    outcome, manifest = audited(configured(tmp_path, {"name": "rewound"}, {"name": "elsewhere"}, until=T + UNTIL + 1,
                                           waitSeconds=0))
    assert (outcome.verdict, manifest["violations"]) == ("Indeterminate", {})
    assert manifest["undecided"] == {"twice": 1, "deleted": 1}
    [gone] = [words for words in manifest["doubts"] if words.startswith("group rewound")]
    assert gone.endswith("records of __consumer_offsets-7, where it lies, were gone before they were read")
    assert not [words for words in manifest["doubts"] if words.startswith("group elsewhere")]
    report = next((tmp_path / "runs" / "audit" / "c").glob("*/report.txt")).read_text(encoding="utf-8")
    assert "60 records [40, 100) consumed twice from 2023-11-14T22:13:23.000Z on, but not all of the group" in report
    assert "deleted by retention before they were consumed, by 2023-11-14T22:13:50.000Z, but not all" in report


def test_captures_of_before_are_read_and_those_of_another_log_come_after_them(spark: SparkSession, tmp_path: Path) -> None:
    """Captures had no topic ids of commits; and `__consumer_offsets` was created again, so that its offsets began at 0."""
    first, second = Captures(), Captures()
    first.commits("goes on", [0, 50, 100], -60_000)
    first.commits("set back", [0, 100], -57_000)
    second.commits("goes on", [150, 200], 1000)
    second.commits("set back", [40, 90], 1000)
    store = Store(tmp_path, "c")
    inputs = [{"offsets": {"topicId": "one", "next": {"7": 6}}},
              {"offsets": {"topicId": "two", "next": {"7": 0}}, "holes": [{"partition": 7, "from": 6, "to": None}]},
              {"offsets": {"topicId": "two", "next": {"7": 4}}}]
    for number, (began, captures) in enumerate(((-50_000, first), (-20_000, Captures()), (UNTIL, second))):
        captures.topic("orders", id_of("orders"), LONG_AGO, began)
        for name in ("goes on", "set back"):
            captures.group(name, began)
        tables = {table: pa.Table.from_pylist(rows, SCHEMAS[table]) for table, rows in captures.rows.items()}
        files = [store.file(f"run-{number}", table, 0, T + began, rows) for table, rows in tables.items()]
        if captures is first:
            path = tmp_path / next(file.path for file in files if file.table == "commits")
            pq.write_table(tables["commits"].drop_columns(["topic_id"]), path)
            files = [replace(file, bytes=(tmp_path / file.path).stat().st_size) for file in files]
        store.commit(Manifest(number, f"run-{number}", T + began, T + began + 10, inputs[number], files=tuple(files)))
    outcome, manifest = audited(configured(tmp_path, {"name": "goes on"}, {"name": "set back"}))
    assert (manifest["violations"], manifest["undecided"]) == ({"twice": 1}, {})
    assert manifest["evidence"][0].startswith("set back orders-0: 50 records [40, 90) consumed twice")
    assert outcome.summary["recordsTwice"] == 50


def test_what_cannot_be_audited_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"audit\.groups"):
        run(Config.model_validate({"cluster": "c", "store": str(tmp_path)}), Progress())
    with pytest.raises(BadConfig, match="not in the past"):
        run(configured(tmp_path, {"name": "g"}, until=4_000_000_000_000), Progress())
