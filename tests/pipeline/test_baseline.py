"""The job `baseline` on Spark: the operator's own words on the same samples, and figures as others reckon them."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import duckdb
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

from pipeline.baseline_world import AHEAD_MS, Place, World, made_up
from switchover.lag.baseline import KEY, hour_of_week, parse
from switchover.lag.group import Group, TopicPartition
from switchover.lag.samples import NONE
from switchover.lag.thresholds import Thresholds, of_a_migration
from switchover.lag.verdicts import Effect
from switchover.lag.watch import Watch
from switchover.lag.window import Reading
from switchover.pipeline.baseline.job import TABLES, course_of, judged, run
from switchover.pipeline.baseline.kernel import Bronze, Kernel
from switchover.pipeline.baseline.report import name_of
from switchover.pipeline.bronze import BAND_MS
from switchover.pipeline.config import BaselineSettings, Config, Spark
from switchover.pipeline.outcome import JobFailed, Outcome, Progress
from unit.lag_readings import Reading as Sample
from unit.lag_scalar import scalar

POLL = 60_000
FEW = Spark(options={"spark.sql.shuffle.partitions": "2"})


def ran(world: World, root: Path, **settings: object) -> tuple[Outcome, Path]:
    store = world.filed(root)
    outcome = run(Config(cluster="shop", store=root, baseline=BaselineSettings(**settings),
                         spark=FEW), Progress())
    return outcome, store.latest("baseline")


@pytest.fixture(scope="module")
def minutes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Outcome, Path]:
    """80 minutes of three groups, too few to hold any back."""
    world = made_up(Random(5), 80, POLL)
    return world, *ran(world, tmp_path_factory.mktemp("minutes"))


def limits_of(world: World) -> Thresholds:
    """The gate's with the settings' defaults; 79 steps lie between the sweeps, so that one is in their middle."""
    steps = sorted(after - before for before, after in pairwise(world.now))
    return of_a_migration(steps[len(steps) // 2], 60_000, 75_000, 30_000)


def test_every_verdict_is_the_one_of_the_operator_on_the_same_samples(minutes):
    world, _, directory = minutes
    rows = {row["group"]: row for row in pq.read_table(directory / "backtest.parquet").to_pylist()}
    assert rows.keys() == world.groups.keys()
    limits = limits_of(world)
    seen = set()
    for group, row in rows.items():
        manifest = yaml.safe_load((directory / "configmaps" / f"{name_of(group)}.yaml").read_text())
        usual = parse(manifest["data"][KEY], group)
        plain, used_to = Watch(limits), Watch(limits)
        own = Group(frozenset(world.groups[group]), stable=True, generation=0, sole_owners=True)
        told = {(each["topic"], each["partition"]): each for each in row["verdicts"]}
        for number, now in enumerate(world.now):
            reading = Reading(world.seen(group, number))
            plain.add(reading)
            used_to.add(reading)
            found = plain.assess(own, now), used_to.assess(own, now, usual=usual)
            for name, effects, assessed in zip(
                    ("without", "used_to"), ("effects_without", "effects"), found, strict=True):
                for index, each in enumerate(assessed.partitions):
                    seen.add(code := int(assessed.judged.verdict[index]))
                    assert told[each][name][number] == code, (group, each, number, name)
                assert row[effects][number] == assessed.gate.effect, (group, number, name)
    assert len(seen) >= 6, seen
    assert {effect for row in rows.values() for effect in row["effects"]} >= {Effect.HOLD, Effect.INCONCLUSIVE, Effect.PASS}


def ages(world: World, group: str, each: TopicPartition, limits: Thresholds) -> list[int]:
    """The time lag at each sweep that can be judged and has a commit, by the plain formula
    (docs/facts/lag.md#quantities)."""
    readings, found = [], []
    for number, now in enumerate(world.now):
        offsets = world.seen(group, number).get(each)
        readings.append(Sample(now, 0, 0, valid=False) if offsets is None else Sample(
            offsets.time, offsets.committed, offsets.end, offsets.start, high=offsets.high))
        said = scalar(readings[-(limits.window // limits.poll):], now, limits)
        newest = next((reading for reading in reversed(readings) if reading.valid), None)
        if said.age is not None and NONE != newest.c <= newest.e:
            found.append(said.age)
    return found


def smallest_above(values: list[int], percent: int) -> int:
    return min(value for value in values if 100 * sum(other <= value for other in values) >= percent * len(values))


def test_quantiles_of_the_time_lag_are_those_of_the_plain_formula(minutes):
    world, _, directory = minutes
    limits = limits_of(world)
    rows = pq.read_table(directory / "baseline.parquet").to_pylist()
    assert {row["hour"] for row in rows} == {None}, "less than a day"
    assert len(rows) >= 8
    for row in rows:
        values = ages(world, row["group"], TopicPartition(row["topic"], row["partition"]), limits)
        assert row["samples"] == len(values)
        assert [row[f"time_lag_q{percent}"] for percent in (50, 95, 99)] == [
            smallest_above(values, percent) for percent in (50, 95, 99)]


def test_commit_intervals_are_those_that_duckdb_finds(minutes):
    _, _, directory = minutes
    (commits,) = {str(path) for path in directory.parents[3].glob("bronze/commits/*/*/*.parquet")}
    found = duckdb.sql(f"""
        with gaps as (select "group", topic, partition, commit_time - lag(commit_time) over (
            partition by "group", topic, partition order by log_offset) gap from '{commits}' where "offset" is not null)
        select "group", topic, partition, count(gap), quantile_disc(gap, 0.99) from gaps group by all""").fetchall()
    expected = {row[:3]: row[3:] for row in found}
    rows = pq.read_table(directory / "baseline.parquet").to_pylist()
    assert {(row["group"], row["topic"], row["partition"]): (row["commit_intervals"], row["commit_interval_p99"])
            for row in rows} == {key: expected[key] for key in
                                 ((row["group"], row["topic"], row["partition"]) for row in rows)}


def test_a_short_history_says_so_and_delivers_all_the_same(minutes):
    _, outcome, directory = minutes
    assert outcome.summary["heldOut"] is False
    assert any("less than a day" in note for note in outcome.summary["notes"])
    assert any("flatters" in note for note in outcome.summary["notes"])
    assert outcome.summary["configMaps"] == len(list((directory / "configmaps").iterdir())) == 3
    assert outcome.summary["daysTested"] > 0
    report = (directory / "report.md").read_text()
    assert "less than a day" in report
    assert "| group-0 | baseline-group-0-" in report


def test_days_are_told_hour_by_hour_and_tried_on_the_last(spark: SparkSession, tmp_path: Path):
    """The gate is tried with what the three days before the last one show."""
    world = made_up(Random(9), 4 * 24, 3_600_000, groups=1, partitions=2)
    outcome, directory = ran(world, tmp_path, min_values=2)
    assert outcome.summary["heldOut"] is True
    assert 0.95 < outcome.summary["daysTested"] < 1.05
    rows = pq.read_table(directory / "baseline.parquet").to_pylist()
    hours = {row["hour"] for row in rows} - {None}
    covered = {hour_of_week(now) for now in world.now}
    assert len(hours) > 90
    assert hours <= {(hour + step) % 168 for hour in covered for step in (-1, 0, 1)}
    (tested,) = pq.read_table(directory / "backtest.parquet").to_pylist()
    day = [now for now in world.now if now > world.now[-1] - 86_400_000]
    assert len(tested["effects"]) == len(day)


def test_rows_of_one_group_are_exchanged_once(spark: SparkSession, tmp_path: Path):
    """Beside that only the keys are: to be made distinct and joined."""
    world = made_up(Random(1), 10, POLL, groups=1)
    store = world.filed(tmp_path)
    bronze = Bronze(spark, {table: store.files(table) for table in TABLES})
    frame = judged(bronze.rows(bronze.sweeps()), Kernel(None, 1000))  # type: ignore[arg-type]
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange hashpartitioning(group") == 1 + 1, plan       # the rows, and the distinct keys
    assert "MapInArrow" in plan
    assert "PythonUDF" not in plan
    assert "BatchEvalPython" not in plan


def test_offsets_in_zookeeper_are_told_as_those_in_kafka_are(spark: SparkSession, tmp_path: Path):
    world = made_up(Random(4), 60, POLL, groups=1, partitions=2)
    for place in world.groups["group-0"].values():
        place.commits = [commit for commit in place.commits if commit.offset is not None]
    found = []
    for zookeeper in (False, True):
        store = world.filed(tmp_path / str(zookeeper), zookeeper=zookeeper)
        bronze = Bronze(spark, {table: store.files(table) for table in TABLES})
        sweeps = bronze.sweeps()
        kernel = Kernel(course_of([now for _, now in sweeps], BaselineSettings()), 240_000)
        found += judged(bronze.rows(sweeps), kernel).collect()
    assert found[0] == found[1]
    assert found[0]["with_baseline"] == 2


@pytest.mark.parametrize("zookeeper", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_topic_that_was_created_again_is_told_by_what_it_is_now(spark: SparkSession, tmp_path: Path, zookeeper: bool):
    """As if the one of before had never been: the same offsets of the same topic tell something else."""
    world = made_up(Random(4), 80, POLL, groups=1, partitions=2)
    places = world.groups["group-0"]
    for place in places.values():
        place.commits = [commit for commit in place.commits if commit.offset is not None]
    since = world.now[40] - AHEAD_MS + BAND_MS
    ids = {"again": ["a"] * 40 + ["b"] * 40, "same": ["a"] * 80}
    young = {each: Place([None] * 40 + place.ends[40:], [commit for commit in place.commits if commit.time >= since])
             for each, place in places.items()}
    found, sweeps = [], None
    for number, (told, of_topic) in enumerate(((places, ids["again"]), (young, ids["again"]), (places, ids["same"]))):
        store = replace(world, groups={"group-0": told}, ids={"topic-0": of_topic}).filed(
            tmp_path / str(number), zookeeper=zookeeper)
        bronze = Bronze(spark, {table: store.files(table) for table in TABLES})
        sweeps = sweeps or bronze.sweeps()               # the second store has none of the topic of before
        kernel = Kernel(course_of([now for _, now in sweeps], BaselineSettings()), 240_000)
        found += judged(bronze.rows(sweeps), kernel).collect()
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_hostile_and_odd_rows_are_told_and_break_nothing(spark: SparkSession, tmp_path: Path):
    world = made_up(Random(3), 60, POLL, groups=1, partitions=1)
    places = dict(world.groups["group-0"])
    gone = next(iter(places.values()))
    evil = "a\n| b\u202e\x00\"' *"
    world = replace(world, groups={
        evil: places, "x" * 60_000: places, "gone": {TopicPartition("no-such", 0): replace(
            gone, ends=[None] * len(world.now))}})
    ahead = gone.commits[10]
    ahead.time += 10**9                                    # one broker's clock was 11 days ahead once
    outcome, directory = ran(world, tmp_path)
    assert outcome.summary["groups"] == 2
    assert any("1 groups whose names are longer than 32767" in note for note in outcome.summary["notes"])
    report = (directory / "report.md").read_text()
    assert "no baseline for 1 partitions whose ends no capture has read" in report
    assert "\\\\n\\| b\\\\u202e\\\\x00" in report
    (path,) = (directory / "configmaps").iterdir()
    assert path.name == f"{name_of(evil)}.yaml"
    assert parse(yaml.safe_load(path.read_text())["data"][KEY], evil).partitions


def test_a_cluster_in_which_nobody_commits_has_no_config_map_and_says_so(spark: SparkSession, tmp_path: Path):
    world = made_up(Random(2), 40, POLL, groups=1, partitions=1)
    for place in world.groups["group-0"].values():
        place.commits = []
    outcome, directory = ran(world, tmp_path)
    assert (outcome.summary["groups"], outcome.summary["configMaps"], outcome.rows) == (0, 0, 0)
    assert "no group has committed anything" in (directory / "report.md").read_text()
    assert list((directory / "configmaps").iterdir()) == []


@pytest.mark.parametrize(("captures", "why"), [
    (0, "has no capture of shop: run `switchover pipeline capture` first"),
    (12, "has 12 captures with end offsets, and a baseline needs 30"),
])
def test_what_is_too_little_is_refused_and_leaves_nothing(spark: SparkSession, tmp_path: Path, captures: int, why: str):
    if captures:
        made_up(Random(2), captures, POLL, groups=1, partitions=1).filed(tmp_path)
    with pytest.raises(JobFailed) as caught:
        run(Config(cluster="shop", store=tmp_path, spark=FEW), Progress())
    assert why in str(caught.value)
    assert not (tmp_path / "runs").exists()
