"""drift: the job."""

import asyncio
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from switchover.pipeline.config import Config
from switchover.pipeline.drift.judgement import COLUMNS, Judgement, Row, Sides, judged, kind, rows, sentence
from switchover.pipeline.drift.sides import both_sides
from switchover.pipeline.outcome import Outcome, Progress
from switchover.pipeline.session import session
from switchover.pipeline.store import Store

SENTENCES = 5
"""How many differences the summary lists."""
NOT_COMPARED = ("leaders and in-sync replicas, which change all the time", "registrations", "features",
                "configurations of anything but topics and brokers")
"""As `metadata.cluster` says: dual write does not carry it, or it belongs to one side alone."""


def run(config: Config, progress: Progress) -> Outcome:
    """Compare ZooKeeper's metadata with KRaft's and leave what differs. Raises JobFailed."""
    sides = both_sides(config)
    judgement = asyncio.run(_read(sides, config, progress))
    progress.say(f"{judgement.verdict}: {judgement.reason}")
    written = rows(judgement.found)
    manifest = {"verdict": judgement.verdict, "reason": judgement.reason, "notCompared": NOT_COMPARED,
                "snapshots": [asdict(each) for each in judgement.snapshots]}
    with Store(config.store, config.cluster).results("drift", manifest) as directory:
        _write(config, progress, written, directory / "differences")
    return Outcome(judgement.entries or 0, summary(judgement), judgement.verdict)


def summary(judgement: Judgement) -> dict[str, Any]:
    """Of the last snapshot; without numbers where nothing could be compared."""
    persistent = [each.difference for each in judgement.found if each.persistent]
    known = judgement.entries is not None
    return {
        "reason": judgement.reason,
        "driftPersistent": len(persistent) if known else None,
        "unsettled": len(judgement.found) - len(persistent) if known else None,
        "classes": dict(Counter(str(kind(each)) for each in persistent)),
        "first": [sentence(each) for each in persistent[:SENTENCES]],
    }


async def _read(sides: Sides, config: Config, progress: Progress) -> Judgement:
    try:
        return await judged(sides, config.drift.snapshots, config.drift.pause_seconds, progress.say)
    finally:
        await sides.close()


def _write(config: Config, progress: Progress, written: list[Row], directory: Path) -> None:
    spark = session(config.spark, "drift")
    with progress.of(spark, f"writing {len(written)} differences"):
        spark.createDataFrame(written, COLUMNS).coalesce(1).write.parquet(str(directory))
