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
from switchover.pipeline.audit import job
from switchover.pipeline.audit.findings import Doubt, of_what_was_read, produced, sentence
from switchover.pipeline.audit.job import run
from switchover.pipeline.audit.verdict import Report
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


def file_of_before(root: Path, captures: Captures, began: int, log: str, reached: int) -> None:
    """A first capture, of another `__consumer_offsets` than the next ones; captures had no topic ids of commits then."""
    captures.topic("orders", id_of("orders"), LONG_AGO, began)
    store = Store(root, "c")
    tables = {table: pa.Table.from_pylist(rows, SCHEMAS[table]) for table, rows in captures.rows.items()}
    files = [store.file("run-before", table, 0, T + began, rows) for table, rows in tables.items()]
    path = root / next(file.path for file in files if file.table == "commits")
    pq.write_table(tables["commits"].drop_columns(["topic_id"]), path)
    files = [replace(file, bytes=(root / file.path).stat().st_size) for file in files]
    inputs = {"offsets": {"topicId": "one", "next": {log: reached}}}
    store.commit(Manifest(0, "run-before", T + began, T + began + 10, inputs, files=tuple(files)))


def test_groups_that_each_have_something_else_are_judged_in_one_audit(spark: SparkSession, tmp_path: Path) -> None:
    before, captures = Captures(), captured()
    captures.commit("good", None, 10_000)                     # what lies between, the producers' log decides
    captures.commits("good", [150, 180], 20_000)
    captures.commits("lag", [0, 90], 1000)
    # whatever the producers wrote, nobody knows whether it was to the topic that has this name now
    for topic_id, *seen in (("aa" * 16, LONG_AGO, 0), ("bb" * 16, 1000, UNTIL)):
        captures.topic("again", topic_id, *seen)
    captures.commits("again", [0, 50, 100], 10_000, topic="again")
    captures.commit("again", None, 20_000, "again")
    captures.commits("again", [150, 180], 30_000, topic="again")
    captures.log = 8                                          # where records were gone nothing is proven
    captures.commits("rewound", [0, 100, 40, 70, 130], 1000)
    captures.log = before.log = 9                             # which was created again: its offsets began at 0
    before.commits("goes on", [0, 50, 100], -60_000)
    before.commits("set back", [0, 100], -57_000)
    captures.commits("goes on", [150, 200], 1000)
    captures.commits("set back", [40, 90], 1000)
    file_of_before(tmp_path / "store", before, -50_000, "9", 6)
    captures.file(tmp_path / "store", UNTIL, -20_000, [{"partition": 8, "from": 5, "to": 9}], reached=({"9": 0}, {"9": 4}))
    log = tmp_path / "produced"
    log.mkdir()
    (log / "a.jsonl").write_text('{"topic": "orders", "partition": 0, "first": 0, "last": 119}\n'
                                 '{"topic": "orders", "partition": 0, "first": 140, "last": 199}\n'
                                 '{"topic": "again", "partition": 0, "first": 0, "last": 199}\n', encoding="utf-8")
    names = ("good", "nobody\n", "again", "rewound", "goes on", "set back")
    outcome, manifest = audited(configured(
        tmp_path / "store", {"name": "lag", "expected": "Drained"}, *({"name": name} for name in names), produced=str(log)))
    assert outcome.verdict == "Violations"                    # though there are doubts
    assert manifest["violations"] == {"skipped": 1, "left": 1, "twice": 1}
    assert manifest["undecided"] == {"skipped": 1, "twice": 1}
    left, twice, skipped = manifest["evidence"][:3]
    assert left.startswith("lag orders-0: 90 acknowledged records of [90, 200) not consumed by")
    assert twice.startswith("set back orders-0: 50 records [40, 90) consumed twice")
    assert skipped.startswith("good orders-0: 30 acknowledged records of [100, 150) passed over at")
    assert outcome.summary["recordsTwice"] == 50
    hole, unknown, gone = manifest["doubts"]
    assert hole == "capture 2 found a hole: {'partition': 8, 'from': 5, 'to': 9}"
    assert unknown.startswith(r"group 'nobody\n' is not known: no commit"[:40])
    assert gone.startswith("group rewound: records of __consumer_offsets-8, where it lies, were gone")
    [evidence] = (tmp_path / "store" / "runs" / "audit" / "c").glob("*/evidence.parquet")
    rows = {row["group"]: row for row in pq.read_table(evidence).to_pylist() if not row["proven"]}
    assert {name: row["doubt"] for name, row in rows.items()} == {"again": Doubt.TOPIC, "rewound": Doubt.UNREAD}
    assert "60 records [40, 100) consumed twice" in sentence(rows["rewound"])


def test_what_depends_on_no_later_commit_proves_nothing_before_the_end_is_read(spark: SparkSession) -> None:
    found = spark.createDataFrame(
        [("twice", True, None, "read"), ("twice", True, None, "unread"), ("left", True, None, "read"),
         ("deleted", True, None, "read"), ("deleted", False, "late", "read")],
        "kind string, proven boolean, doubt string, group string")

    def judged(*, to_the_end: bool) -> list[tuple[bool, str | None]]:
        rows = of_what_was_read(found, ["unread"], to_the_end=to_the_end).collect()
        return [(row["proven"], row["doubt"]) for row in rows]

    assert judged(to_the_end=True) == [(True, None), (False, "unread"), (True, None), (True, None), (False, "late")]
    assert judged(to_the_end=False) == [(True, None), *[(False, "unread")] * 3, (False, "late")]


def test_it_judges_without_a_capture_of_the_end_once_it_has_waited(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    captured().file(tmp_path, UNTIL)
    monkeypatch.setattr(job, "session", lambda settings, name: None)
    monkeypatch.setattr(job, "judge", lambda spark, store, settings, span, progress: Report(
        store.cluster, ["good"], span.since, span.until, span.band))
    for until, waits in ((T + UNTIL, False), (T + UNTIL + 1, True)):
        assert run(configured(tmp_path, {"name": "good"}, until=until, waitSeconds=1), Progress()).verdict == "Clean"
        assert ("waiting for a capture that begins at" in capsys.readouterr().out) is waits


def test_a_producers_log_that_cannot_be_read_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"no \*\.jsonl"):
        produced(spark, tmp_path)
    (tmp_path / "b.jsonl").write_text('{"topic": "orders"\n', encoding="utf-8")
    with pytest.raises(JobFailed, match=r'"orders.* is no range of acknowledged offsets'):
        produced(spark, tmp_path)
    (tmp_path / "b.jsonl").write_text('{"topic": "orders", "partition": 0, "first": 9, "last": 3}\n', encoding="utf-8")
    with pytest.raises(JobFailed, match="'last': 3"):
        produced(spark, tmp_path)


def test_what_cannot_be_audited_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"audit\.groups"):
        run(Config.model_validate({"cluster": "c", "store": str(tmp_path)}), Progress())
    with pytest.raises(BadConfig, match="not in the past"):
        run(configured(tmp_path, {"name": "g"}, until=4_000_000_000_000), Progress())
