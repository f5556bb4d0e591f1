"""What captures file one after the other: Spark, the brokers and ZooKeeper are simulated."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from switchover.pipeline.capture import job, zookeeper
from switchover.pipeline.capture.job import Capture
from switchover.pipeline.capture.plan import HOLES, Log, Range
from switchover.pipeline.capture.source import Reading
from switchover.pipeline.config import Config
from switchover.pipeline.outcome import BadConfig, JobFailed, Progress
from switchover.pipeline.store import File, Manifest, Store
from switchover.pipeline.tables import COMMITS, ENDS, GROUPS, TOPICS
from switchover.runtime.signals import Stop

ID = "a" * 32


class World:
    """A log of two partitions, what the tasks that read it answer, and what ZooKeeper's part gives."""

    def __init__(self) -> None:
        self.ends = {0: 4, 1: 2}
        self.read: list[Range] = []
        self.answer: Callable[[Reading], list[Any]] = self.tasks
        self.zookeeper: dict[str, Any] = {"zxid": 7}
        self.away: str | None = None

    @property
    def read_once(self) -> bool:
        offsets = [(each.partition, offset) for each in self.read for offset in range(each.begin, each.end)]
        return sorted(offsets) == [(number, offset) for number in self.ends for offset in range(self.ends[number])]

    def tasks(self, reading: Reading) -> list[Any]:
        """One row for each split, as the DataSource gives them."""
        rows = []
        for index, part in enumerate(reading.splits):
            self.read += part
            nulls = pa.nulls(sum(each.end - each.begin for each in part))
            table = pa.table({field.name: nulls.cast(field.type) for field in COMMITS}, schema=COMMITS)
            file = Store(Path(reading.root), reading.cluster).file(reading.run, "commits", index, reading.began, table)
            reached = {str(each.partition): each.end for each in part}
            rows.append(SimpleNamespace(files=json.dumps([{name: getattr(file, name) for name in File.__slots__}]),
                                        counts='{"tombstone": 1}', reached=json.dumps(reached), error=""))
        return rows

    def collected(self, options: Mapping[str, str]) -> list[Any]:
        return self.answer(Reading.of(options))


class Session:
    """The few calls of a SparkSession that a capture makes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.dataSource = SimpleNamespace(register=lambda _: None)
        self.sparkContext = SimpleNamespace(statusTracker=lambda: None, _jsc=SimpleNamespace(sc=lambda: None))
        self.read = self

    def format(self, _: str) -> "Session":
        return self

    def options(self, **options: str) -> Any:
        return SimpleNamespace(load=lambda: SimpleNamespace(collect=lambda: self._world.collected(options)))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()

    class Cluster:
        def __init__(self, _: Mapping[str, Any]) -> None: ...

        def log(self) -> Log | None:
            if world.away is not None:
                raise JobFailed(world.away)
            return Log(ID, {number: (0, end) for number, end in world.ends.items()}) if world.ends else None

        def topics(self, _: int) -> tuple[pa.Table, list[str]]:
            return TOPICS.empty_table(), []

        def ends(self, *_: Any) -> pa.Table:
            return ENDS.empty_table()

        def groups(self, _: int) -> tuple[pa.Table, list[str]]:
            return GROUPS.empty_table(), [f"group {number} is not described" for number in range(9)]

    monkeypatch.setattr(job.facts, "Cluster", Cluster)
    monkeypatch.setattr(zookeeper, "capture_zookeeper", lambda *_: (dict(world.zookeeper), Counter(), []))
    return world


def capture(world: World, store: Path, *sides: str, **settings: object) -> Capture:
    told = {"kafka": {"bootstrapServers": "x:1"}, "zookeeper": {"connect": "y:1"}}
    config = Config.model_validate({"cluster": "test", "store": store, "capture": settings,
                                    **{side: told[side] for side in sides or ("kafka",)}})
    return Capture(config, Session(world), Progress())         # type: ignore[arg-type]


def named(store: Path) -> set[str]:
    return {file.path for manifest in Store(store, "test").manifests() for file in manifest.files}


def lying(store: Path) -> set[str]:
    return {str(path.relative_to(store)) for path in store.glob("bronze/*/*/*/*")}


def test_each_goes_on_where_the_one_before_ended(world: World, tmp_path: Path) -> None:
    for more in (0, 5, 0):
        world.ends[0] += more
        capture(world, tmp_path).once()
    assert world.read_once
    assert [manifest.number for manifest in Store(tmp_path, "test").manifests()] == [0, 1, 2]


@pytest.mark.parametrize("between", [("zookeeper",), ("kafka",)])
def test_what_one_capture_leaves_out_the_next_neither_loses_nor_reads_twice(
        world: World, tmp_path: Path, between: tuple[str, ...]) -> None:
    capture(world, tmp_path, "kafka", "zookeeper").once()
    assert capture(world, tmp_path, *between).once().inputs["zxid"] == 7
    last = capture(world, tmp_path, "kafka", "zookeeper").once()
    assert world.read_once
    assert (last.inputs["offsets"]["next"], last.inputs["zxid"]) == ({"0": 4, "1": 2}, 7)


def test_a_hole_is_told_by_the_capture_that_found_it(world: World, tmp_path: Path) -> None:
    world.zookeeper = {"zxid": 7, HOLES: [{"zxid": True, "from": 1, "to": 5}]}
    first = capture(world, tmp_path, "kafka", "zookeeper").once()
    world.zookeeper = {"zxid": 8}
    assert (len(first.inputs[HOLES]), capture(world, tmp_path, "kafka", "zookeeper").once().inputs[HOLES]) == (1, [])


def test_a_topic_that_is_not_there_is_said(world: World, tmp_path: Path) -> None:
    world.ends = {}
    assert "there is no __consumer_offsets yet" in capture(world, tmp_path).once().notes


def test_groups_that_are_not_described_are_counted_and_a_few_named(world: World, tmp_path: Path) -> None:
    found = capture(world, tmp_path).once()
    assert (found.counts["group not described"], len([note for note in found.notes if "described" in note])) == (9, 5)


def test_a_task_that_broke_off_files_nothing(world: World, tmp_path: Path) -> None:
    def broken(reading: Reading) -> list[Any]:
        rows = world.tasks(reading)
        rows[1].error, rows[1].files, rows[1].reached = "no answer for 60 s", "[]", "{}"
        return rows

    world.answer = broken
    with pytest.raises(JobFailed, match="no answer for 60 s"):
        capture(world, tmp_path).once()
    assert (Store(tmp_path, "test").manifests(), len(lying(tmp_path))) == ((), 1)     # the broken task's own


def test_a_task_whose_answer_is_missing_files_nothing(world: World, tmp_path: Path) -> None:
    world.answer = lambda reading: world.tasks(reading)[:1]
    with pytest.raises(JobFailed, match=r"partitions \[0, 1\] were planned and \[0\] were read"):
        capture(world, tmp_path).once()
    assert (Store(tmp_path, "test").manifests(), len(lying(tmp_path))) == ((), 1)


def overtaken(world: World, store: Path, times: int) -> None:
    """So many times another capture files the same ranges while one reads."""
    left = [times]

    def raced(reading: Reading) -> list[Any]:
        if left[0]:
            left[0] -= 1
            world.answer = world.tasks
            capture(world, store).once()
            before = list(world.read)
            world.answer = raced
            world.ends[0] += 1
            rows = world.tasks(reading)
            world.read = before                 # what both read, one of them may file
            return rows
        return world.tasks(reading)

    world.answer = raced


def test_one_that_is_overtaken_plans_anew_and_leaves_no_files(world: World, tmp_path: Path) -> None:
    overtaken(world, tmp_path, 1)
    capture(world, tmp_path).once()
    manifests = Store(tmp_path, "test").manifests()
    assert world.read_once
    assert sum(file.rows for manifest in manifests for file in manifest.files) == sum(world.ends.values())
    assert (len(manifests), named(tmp_path)) == (2, lying(tmp_path))


def test_one_that_is_always_overtaken_gives_up(world: World, tmp_path: Path) -> None:
    overtaken(world, tmp_path, job.TRIES)
    with pytest.raises(JobFailed, match="filed theirs first 3 times"):
        capture(world, tmp_path).once()
    assert named(tmp_path) == lying(tmp_path)


def test_continuous_says_what_fails_and_goes_on(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopped = Stop()
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        world.away = {1: "the brokers are away"}.get(len(waited))
        return False

    stopped.wait = wait                                         # type: ignore[assignment,method-assign]
    filed: list[Manifest] = []
    for manifest in capture(world, tmp_path, mode="Continuous", everySeconds=60).on_and_on(stopped):
        filed.append(manifest)
        if len(filed) == 3:
            stopped.set()
    assert [manifest.number for manifest in filed] == [0, 1, 2]
    assert "not captured, trying again: the brokers are away" in capsys.readouterr().out
    assert all(50 < seconds <= 60 for seconds in waited)
    assert world.read_once


def test_continuous_gives_up_when_it_failed_for_too_long(world: World, tmp_path: Path) -> None:
    world.away = "the brokers are away"
    with pytest.raises(JobFailed, match="the brokers are away"):
        list(capture(world, tmp_path, mode="Continuous", patienceSeconds=0).on_and_on(Stop()))


def test_nothing_to_capture_is_refused_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="there is nothing to capture"):
        job.run(Config.model_validate({"cluster": "test", "store": tmp_path}), Progress())
