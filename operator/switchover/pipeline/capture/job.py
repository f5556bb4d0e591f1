"""The job `capture`."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from switchover.pipeline.capture import facts
from switchover.pipeline.capture.client import configuration
from switchover.pipeline.capture.plan import HOLES, TOPIC, Log, Plan, following, plan, splits
from switchover.pipeline.config import Config, Kafka
from switchover.pipeline.outcome import BadConfig, JobFailed, Outcome, Progress, cause
from switchover.pipeline.session import session
from switchover.pipeline.store import File, Manifest, Overtaken, Store, new_run
from switchover.runtime.signals import Stop, on_signals
from switchover.shared import foreign_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIES = 3
"""Plans of one capture, when others file theirs first."""
MOST_NOTES = 5
"""Of one kind: the counts cover all."""

Write = Callable[[str, pa.Table], File]


def run(config: Config, progress: Progress) -> Outcome:
    """Capture once, or until SIGTERM. Raises JobFailed."""
    if config.kafka is None and config.zookeeper is None:
        raise BadConfig("there is nothing to capture: give kafka, zookeeper or both")
    spark = session(config.spark, f"capture {config.cluster}")
    progress.say("Spark is ready")
    capture = Capture(config, spark, progress)
    if left := capture.store.remove_left():
        progress.say(f"removed {left} files that captures which died had left")
    stopped = on_signals() if config.capture.mode == "Continuous" else None
    filed = Filed()
    for manifest in [capture.once()] if stopped is None else capture.on_and_on(stopped):
        filed.add(manifest)
    return Outcome(filed.rows, {"captures": filed.captures, "counts": dict(filed.counts), "notes": list(filed.notes)})


@dataclass
class Filed:
    """Of all captures of a run, which may be months long, what its outcome says."""

    captures: int = 0
    rows: int = 0
    counts: "Counter[str]" = field(default_factory=Counter)
    notes: "deque[str]" = field(default_factory=lambda: deque(maxlen=MOST_NOTES))

    def add(self, manifest: Manifest) -> None:
        self.captures += 1
        self.rows += sum(file.rows for file in manifest.files)
        self.counts.update(manifest.counts)
        self.notes.extend(manifest.notes)


class Capture:
    """Captures of one cluster, one after the other in one session."""

    def __init__(self, config: Config, spark: "SparkSession", progress: Progress) -> None:
        from switchover.pipeline.capture.source import OffsetsSource

        self.store = Store(config.store, config.cluster)
        self._config = config
        self._spark = spark
        self._progress = progress
        spark.dataSource.register(OffsetsSource)

    def once(self) -> Manifest:
        """One capture, filed. Raises JobFailed."""
        for _ in range(TRIES):
            last = self.store.last()
            manifest = self._read(0, {}) if last is None else self._read(last.number + 1, last.inputs)
            try:
                self.store.commit(manifest)
            except Overtaken:
                self.store.discard(manifest.files)
                self._progress.say("another capture was quicker: going again from where it ended")
                continue
            counts = Counter({file.table: 0 for file in manifest.files})
            for file in manifest.files:
                counts[file.table] += file.rows
            filed = ", ".join(f"{rows} {table}" for table, rows in sorted(counts.items())) or "nothing new"
            self._progress.say(f"capture {manifest.number}: {filed}; {(manifest.ended - manifest.began) / 1000:.1f} s")
            for note in manifest.notes:
                self._progress.say(f"note: {note}")
            return manifest
        raise JobFailed(f"other captures of {self._config.cluster} filed theirs first {TRIES} times: run one of them")

    def on_and_on(self, stopped: Stop) -> Iterator[Manifest]:
        """Until `stopped`, at the pace of the settings; the capture under way is finished.

        Raises JobFailed when nothing was captured for too long.
        """
        settings, failing = self._config.capture, None
        while not stopped.is_set():
            began = time.monotonic()
            try:
                yield self.once()
                failing = None
            except BadConfig:
                raise
            except JobFailed as error:
                failing = began if failing is None else failing
                if time.monotonic() - failing >= settings.patience_seconds:
                    raise
                self._progress.say(f"not captured, trying again: {error}")
            stopped.wait(max(0.0, settings.every_seconds - (time.monotonic() - began)))
        self._progress.say("stops, as it was asked to")

    def _read(self, number: int, inputs: Mapping[str, Any]) -> Manifest:
        run, began = new_run(), facts.now()
        files: list[File] = []

        def write(table: str, rows: pa.Table) -> File:
            files.append(self.store.file(run, table, 900_000 + len(files), began, rows))
            return files[-1]

        # What this capture does not read is gone on from by a later one that does, and not read a second time.
        following_inputs = dict(inputs)
        counts, notes, holes = Counter[str](), list[str](), list[Any]()
        try:
            if self._config.zookeeper is not None:
                from switchover.pipeline.capture.zookeeper import capture_zookeeper

                read, counts, notes = capture_zookeeper(self._config, inputs, write, self._progress)
                holes += read.pop(HOLES, [])
                following_inputs |= read
            if self._config.kafka is not None:
                read = self._kafka(self._config.kafka, inputs, write, files, counts, notes, run, began)
                holes += read.pop(HOLES, [])
                following_inputs |= read
        except BaseException:
            self.store.discard(files)
            raise
        return Manifest(number, run, began, facts.now(), {**following_inputs, HOLES: holes}, dict(+counts), tuple(notes),
                        tuple(files), version("switchover"))

    def _kafka(self, kafka: Kafka, inputs: Mapping[str, Any], write: Write, files: list[File],
               counts: "Counter[str]", notes: list[str], run: str, began: int) -> dict[str, Any]:
        cluster = facts.Cluster(configuration(kafka.bootstrap_servers, kafka.command_config))
        log = cluster.log()
        following_inputs: dict[str, Any] = {}
        if log is None:
            notes.append(f"there is no {TOPIC} yet")
        else:
            planned = plan(inputs, log)
            notes += planned.notes
            following_inputs = self._offsets(kafka, planned, log, files, counts, run, began)
        # The ends after the commits, so that no commit seems to be beyond its partition's end.
        topics, unknown = cluster.topics(facts.now())
        write("topics", topics)
        write("ends", cluster.ends(topics, facts.now()))
        groups, undescribed = cluster.groups(facts.now())
        write("groups", groups)
        counts.update({"topic not described": len(unknown), "group not described": len(undescribed)})
        notes += unknown[:MOST_NOTES] + undescribed[:MOST_NOTES]
        return following_inputs

    def _offsets(self, kafka: Kafka, planned: Plan, log: Log, files: list[File], counts: "Counter[str]", run: str,
                 began: int) -> dict[str, Any]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from switchover.pipeline.capture.source import NAME, Reading

        reached: dict[int, int] = {}
        parts = splits(planned.ranges, self._config.capture.splits)
        if parts:
            reading = Reading(str(self.store.root.absolute()), self.store.cluster, run, began, kafka.bootstrap_servers,
                              str(kafka.command_config) if kafka.command_config is not None else None, parts)
            try:
                with self._progress.of(self._spark, f"reading up to {planned.records} records of {TOPIC}"):
                    rows = self._spark.read.format(NAME).options(**reading.options()).load().collect()
            except (PySparkException, Py4JError) as error:
                raise JobFailed(f"{TOPIC} could not be read: {cause(error)}") from error
            for row in rows:
                files += [File(**file) for file in foreign_json.parsed(row.files)]
                counts.update(foreign_json.parsed(row.counts))
                reached |= {int(key): value for key, value in foreign_json.parsed(row.reached).items()}
            if errors := [row.error for row in rows if row.error]:
                raise JobFailed(errors[0])
        wanted = {each.partition for part in parts for each in part}
        if reached.keys() != wanted:
            raise JobFailed(f"{TOPIC}: partitions {sorted(wanted)} were planned and {sorted(reached)} were read; "
                            "nothing is filed")
        return following(planned, reached, log)


