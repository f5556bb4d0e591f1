"""The job `baseline`: what each partition is used to by hour of week, and how often the gate would have cried.

Leaves in its run:

    baseline.parquet      the figures of every partition: all hours (hour null) and hours of the week
    backtest.parquet      of every group what its gate would have said, sweep by sweep, without and with a baseline
    configmaps/NAME.yaml  one for each group, for `gates.baselineRef`
    report.md             the same as sentences and a table
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from switchover.lag.thresholds import of_a_migration
from switchover.pipeline.baseline.history import Course
from switchover.pipeline.baseline.kernel import GROUPS, LONGEST_NAME, Bronze, Kernel
from switchover.pipeline.baseline.report import GroupResult, as_yaml, manifest, name_of, per_day, report
from switchover.pipeline.config import BaselineSettings, Config
from switchover.pipeline.outcome import JobFailed, Outcome, Progress
from switchover.pipeline.session import session
from switchover.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
COARSE_MS = 300_000
"""Between two captures; beyond it a time lag is an estimate, and the report says so."""
TABLES = ("commits", "ends", "topics", "znodes", "transactions")


def run(config: Config, progress: Progress) -> Outcome:
    """Raises JobFailed without captures, or with too few of them."""
    settings, store = config.baseline, Store(config.store, config.cluster)
    manifests = store.manifests()
    if not manifests:
        raise JobFailed(f"{config.store} has no capture of {config.cluster}: run `switchover pipeline capture` first")
    since = manifests[-1].ended - settings.days * DAY_MS
    files = {table: store.files(table, since=since) for table in TABLES}
    if not files["ends"]:
        raise JobFailed(f"no capture of the last {settings.days} days has end offsets: run `switchover pipeline capture` "
                        "with the brokers' address in `kafka`")
    spark = session(config.spark, f"baseline {config.cluster}")
    bronze = Bronze(spark, files)
    with progress.of(spark, "reading the times of the captures"):
        sweeps = bronze.sweeps()
    course = course_of([now for _, now in sweeps], settings)
    notes = list(notes_of(course, settings))
    if longer := bronze.longer_names():
        notes.append(f"{longer} groups whose names are longer than {LONGEST_NAME} characters are left out: no "
                     "ConsumerGroupMigration can name them")
    for note in notes:
        progress.say(note)
    record: dict[str, Any] = {"settings": settings.model_dump(), "inputs": {
        "manifest": manifests[-1].number, "files": {name: len(each) for name, each in files.items()},
        "since": since, "until": int(course.now[-1]), "sweeps": len(course.now)}, "notes": notes}
    with store.results("baseline", record) as directory:
        from pyspark.storagelevel import StorageLevel

        groups = judged(bronze.rows(sweeps), Kernel(course, settings.max_bytes)).persist(StorageLevel.DISK_ONLY)
        with progress.of(spark, f"judging {len(course.now)} sweeps of every group"):
            _file(groups, directory)
        summary = _deliver(groups, directory, course, notes)
        groups.unpersist()
        record["summary"] = summary
    progress.say(f"{summary['configMaps']} ConfigMaps for {summary['groups']} groups in {store.latest('baseline')}")
    return Outcome(rows=int(summary.pop("rows")), summary=summary)


def judged(rows: "DataFrame", kernel: Kernel) -> "DataFrame":
    """One row for each group."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return rows.mapInArrow(kernel, from_arrow_schema(GROUPS))


def course_of(now: list[int], settings: BaselineSettings) -> Course:
    """How a history with sweeps at these times is judged. Raises JobFailed where they are too few."""
    steps = [after - before for before, after in pairwise(now) if after > before]
    poll = max(int(median(steps)), 1_000) if steps else 1_000
    thresholds = of_a_migration(poll, settings.max_time_lag_seconds * 1000, settings.max_stall_seconds * 1000,
                                settings.lag_pass_seconds * 1000)
    least = max(thresholds.min_samples, settings.min_values)
    if len(now) < least:
        raise JobFailed(
            f"the history of {settings.days} days has {len(now)} captures with end offsets, and a baseline needs {least} of "
            "them at least: let `switchover pipeline capture` run on, every 15 to 60 s if it can")
    span, trial = now[-1] - now[0], settings.back_test_hours * HOUR_MS
    held_out = span - trial >= trial
    first = int(np.searchsorted(now, now[-1] - trial, side="right"))
    return Course(np.array(now, dtype=np.int64), thresholds, first if held_out else 0, held_out, span >= DAY_MS,
                  settings.min_values)


def notes_of(course: Course, settings: BaselineSettings) -> Iterator[str]:
    """What a reader of the results must know."""
    span, limits = int(course.now[-1] - course.now[0]), course.thresholds
    if not course.hours:
        yield (f"the history spans {span / HOUR_MS:.1f} h, less than a day: figures hold over all hours, and hours of "
               "the week are not distinguished")
    elif span < settings.days * DAY_MS - HOUR_MS:
        yield (f"the history spans {span / DAY_MS:.1f} of {settings.days} days: hours of the week without captures are "
               "as all hours are")
    if not course.held_out:
        yield (f"the history is too short to hold {settings.back_test_hours} h of it back: the back-test runs over the "
               "history that the baseline comes from, which flatters it")
    if limits.poll > COARSE_MS:
        yield (f"captures lie {limits.poll // 1000} s apart: what arrived between two of them is taken to have arrived "
               "evenly, so a time lag may be wrong by as much")
    if holes := int((np.diff(course.now) > limits.max_hole).sum()):
        yield (f"{holes} holes of more than {limits.max_hole // 1000} s lie between captures; nothing is judged there, "
               f"nor in up to {limits.window // 1000} s after each")


def _file(groups: "DataFrame", directory: Path) -> None:
    from pyspark.sql import functions as f

    figures = groups.select("group", f.explode("figures").alias("figure")).select("group", "figure.*")
    figures.write.parquet(str(directory / "baseline.parquet"))
    groups.drop("figures", "text").write.parquet(str(directory / "backtest.parquet"))


def _deliver(groups: "DataFrame", directory: Path, course: Course, notes: list[str]) -> dict[str, Any]:
    """Write ConfigMaps and the report; what the job sums up."""
    (directory / "configmaps").mkdir()
    tested: list[GroupResult] = []
    for row in groups.drop("figures", "verdicts", "effects", "effects_without").toLocalIterator():
        found = row.asDict()
        text = found.pop("text")
        tested.append(GroupResult(**found))
        if text is not None:
            path = directory / "configmaps" / f"{name_of(found['group'])}.yaml"
            path.write_text(as_yaml(manifest(found["group"], text)), encoding="utf-8")
    tested.sort(key=lambda each: each.group)
    partitions = sum(each.partitions for each in tested)
    if without := partitions - sum(each.with_baseline for each in tested):
        notes.append(f"{without} of {partitions} partitions have no baseline: of fewer than {course.min_values} values "
                     "(baseline.minValues) there are no figures, and a ConfigMap has its limit (baseline.maxBytes)")
    days = int(course.now[-1] - course.now[course.first]) / DAY_MS
    (directory / "report.md").write_text(report(tested, course, days, notes), encoding="utf-8")
    return {
        "groups": len(tested), "configMaps": sum(each.with_baseline > 0 for each in tested),
        "partitions": partitions, "partitionsWithoutBaseline": without,
        "daysTested": round(days, 3), "heldOut": course.held_out,
        "falseAlarmsPerDay": per_day(sum(each.alarms for each in tested), days),
        "falseAlarmsPerDayWithout": per_day(sum(each.alarms_without for each in tested), days),
        "rows": sum(each.partitions for each in tested) * len(course.now), "notes": notes}
