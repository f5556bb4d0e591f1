"""The job `inventory`."""

import time
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from switchover.pipeline.config import Config
from switchover.pipeline.inventory import features, report
from switchover.pipeline.inventory.readiness import Group, Readiness, judge
from switchover.pipeline.inventory.waves import Wave, document, glue, migration, pack, workload_of
from switchover.pipeline.outcome import BadConfig, JobFailed, Outcome, Progress
from switchover.pipeline.session import session
from switchover.pipeline.store import Store


def run(config: Config, progress: Progress) -> Outcome:
    """Every group with its readiness, and the waves. Raises JobFailed."""
    store = Store(config.store, config.cluster)
    captures = store.manifests()
    if not captures:
        raise JobFailed(f"nothing was captured of cluster {config.cluster}: run `switchover pipeline capture` before")
    if config.inventory.workloads and config.kafka is None:
        raise BadConfig("kafka.bootstrapServers is needed for the manifests")
    spark = session(config.spark, f"inventory {config.cluster}")
    progress.say("Spark is ready")
    with progress.of(spark, "looking at every group"):
        found = features.collect(spark, store)
    groups = [group for group in found if _wanted(group.name, config)]
    now = int(time.time() * 1000)
    judged = {group.name: judge(group, now, config.inventory.dead_seconds) for group in groups}
    ready = [group for group in groups if judged[group.name].score > 0]
    cut = frozenset(topic for topic in features.names(ready)
                    if any(fnmatchcase(topic, pattern) for pattern in config.inventory.cut_topics))
    waves = pack(ready, {name: each.score for name, each in judged.items()}, config.inventory.max_groups,
                 config.inventory.max_partitions, cut)
    held = glue({group.name: group.topics for group in ready}, cut)
    progress.say(f"{len(groups)} groups, {len(ready)} ready, {len(waves)} waves")
    notes = [note for capture in captures for note in capture.notes]
    manifest: dict[str, Any] = {"captures": len(captures), "groups": len(groups), "waves": len(waves), "notes": notes[-50:]}
    with store.results("inventory", manifest) as directory:
        unknown, refused = _write(directory, config, groups, judged, waves)
        manifest["withoutManifest"] = len(unknown)
        manifest["refused"] = refused[:50]
        (directory / "report.html").write_text(
            report.page(config.cluster, groups, judged, waves, held, unknown, notes), encoding="utf-8")
    for why in refused[:10]:
        progress.say(why)
    latest = store.latest("inventory")
    progress.say(f"report: {latest}/report.html")
    return Outcome(len(found), {
        "groups": len(groups), "ready": len(ready), "waves": len(waves), "withoutWorkload": len(unknown),
        **({"glue": held.topic[:200]} if held is not None else {}), "results": str(latest)})


def _wanted(name: str, config: Config) -> bool:
    settings = config.inventory
    return (any(fnmatchcase(name, pattern) for pattern in settings.include)
            and not any(fnmatchcase(name, pattern) for pattern in settings.exclude))


def _write(directory: Path, config: Config, groups: list[Group], judged: dict[str, Readiness],
           waves: tuple[Wave, ...]) -> tuple[list[str], list[str]]:
    """Tables and manifests; the ready groups that have none, and why where a workload of theirs was found.

    One group whose name makes no workload's name must not cost all others their manifests.
    """
    of = {name: wave.number for wave in waves for name in wave.groups}
    rows = [{**asdict(group), "topics": list(group.topics), "score": judged[group.name].score,
             "terms": [term.reason for term in judged[group.name].terms], "wave": of.get(group.name)} for group in groups]
    pq.write_table(pa.Table.from_pylist(rows, GROUPS), directory / "groups.parquet")
    pq.write_table(pa.Table.from_pylist([asdict(wave) for wave in waves], WAVES), directory / "waves.parquet")
    (directory / "waves").mkdir()
    by_name = {group.name: group for group in groups}
    unknown, refused = list[str](), list[str]()
    for wave in waves:
        made = []
        for name in wave.groups:
            workload = workload_of(name, config.inventory.workloads)
            if workload is None:
                unknown.append(name)
                continue
            assert config.kafka is not None
            try:
                made.append(migration(by_name[name], wave.number, workload, config.kafka, config.zookeeper))
            except BadConfig as error:
                unknown.append(name)
                refused.append(str(error))
        if made:
            (directory / "waves" / f"{wave.number:04}.yaml").write_text(document(wave, made), encoding="utf-8")
    return unknown, refused


GROUPS = pa.schema([
    ("name", pa.string()), ("topics", pa.list_(pa.string())), ("partitions", pa.int64()), ("storage", pa.string()),
    ("coordination", pa.string()), ("protocol", pa.string()), ("protocol_type", pa.string()), ("strategy", pa.string()),
    ("state", pa.string()), ("members", pa.int64()),
    ("subscription", pa.string()), ("lag", pa.int64()), ("growth", pa.float64()), ("headroom", pa.float64()),
    ("lost", pa.int64()), ("rebalances", pa.float64()), ("commit_interval", pa.float64()), ("last_commit", pa.int64()),
    ("score", pa.int64()), ("terms", pa.list_(pa.string())), ("wave", pa.int64()),
])
WAVES = pa.schema([
    ("number", pa.int64()), ("groups", pa.list_(pa.string())), ("partitions", pa.int64()), ("over", pa.string()),
])
