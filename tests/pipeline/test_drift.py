"""What `drift` leaves behind, names and values as hostile as Kafka's and ZooKeeper's formats let them be."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from switchover.metadata.cluster import ClusterMetadata, Hidden, Resource
from switchover.pipeline.config import Config, DriftSettings
from switchover.pipeline.drift import job
from switchover.pipeline.outcome import Outcome, Progress
from switchover.pipeline.store import Store
from unit.pipeline.drift_sides import FakeSides, log, tree

SNAPSHOTS = 2
HOSTILE = ("line\nfeed", "\u202egnp.exe", "n" * 65_536, "\x00", "\ud800", "")


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(cluster="c", store=tmp_path, drift=DriftSettings(snapshots=SNAPSHOTS, pause_seconds=0))


def run(config: Config, monkeypatch: pytest.MonkeyPatch, zookeeper: ClusterMetadata, kraft: ClusterMetadata) -> Outcome:
    sides = FakeSides([tree(zookeeper)] * SNAPSHOTS, [log(kraft)] * SNAPSHOTS)
    monkeypatch.setattr(job, "both_sides", lambda _: sides)
    return job.run(config, Progress())


def test_every_difference_is_a_row(spark: SparkSession, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ClusterMetadata(configs={Resource("broker", name): {"a.secret": Hidden("sesame"), "b": name} for name in HOSTILE},
                           next_producer_id=1000)
    outcome = run(config, monkeypatch, ours, ClusterMetadata(next_producer_id=2000))
    assert (outcome.verdict, outcome.summary["driftPersistent"], outcome.rows) == ("Drift", 13, 14)
    left = Store(config.store, "c").latest("drift")
    assert left is not None
    rows = pq.read_table(left / "differences").to_pylist()
    assert len(rows) == 13
    assert {row["class"] for row in rows if row["entity_type"] == "broker"} == {"missing"}
    assert {row["entity"] for row in rows if row["field"] == "b"} > {"line\\nfeed", "\\u202egnp.exe", "\\x00", "\\ud800"}
    assert [rows[-1][name] for name in ("entity_type", "zookeeper", "kraft", "since_offset")] == [
        "producer ids", "1000", "2000", 100]
    assert max(len(str(value)) for row in rows for value in row.values()) < 250
    assert "sesame" not in str(rows) + (left / "manifest.json").read_text() + json.dumps(outcome.summary)


def test_a_clean_run_leaves_an_empty_table(spark: SparkSession, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    both = ClusterMetadata(next_producer_id=1000)
    assert run(config, monkeypatch, both, both).verdict == "Clean"
    left = Store(config.store, "c").latest("drift")
    assert left is not None
    found = pq.read_table(left / "differences")
    assert (found.num_rows, "since_offset" in found.column_names) == (0, True)
