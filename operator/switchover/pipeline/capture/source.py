"""Spark's Python DataSource on `__consumer_offsets`: each task reads its ranges, decodes them and leaves Parquet files.

What comes back to the driver is what was left: files, counts, and how far each partition was read. Never Spark's own Kafka
reader, which answers no rows for internal topics and reports success (docs/facts/spark.md#internal-topics).
"""

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from switchover.pipeline.capture import client
from switchover.pipeline.capture.plan import TOPIC, Range
from switchover.pipeline.outcome import BadConfig
from switchover.pipeline.records import commits, groups
from switchover.pipeline.store import File, Store
from switchover.shared import foreign_json

NAME = "switchover-offsets"
FETCH = 10_000
"""Records that are taken from the client at once."""
CHUNK = 200_000
"""Records, of all partitions, that are held before they are decoded: each is a Python object, of some 500 bytes."""
FILE_ROWS = 1_000_000
"""Commits that a task keeps in memory before it writes a file."""
SILENT_SECONDS = 60.0
"""Without a record and without an end: something is wrong, and a short answer would be a wrong one."""


class BrokenOff(Exception):
    """A range could not be read to its end."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the tasks are given. `command_config` is a path and not its content: no password in a plan of Spark's."""

    root: str
    cluster: str
    run: str
    began: int
    bootstrap_servers: str
    command_config: str | None
    splits: tuple[tuple[Range, ...], ...]

    def options(self) -> dict[str, str]:
        return {"reading": json.dumps(asdict(self))}

    @staticmethod
    def of(options: Mapping[str, str]) -> "Reading":
        content = foreign_json.parsed(options["reading"])
        splits = tuple(tuple(Range(**each) for each in part) for part in content.pop("splits"))
        return Reading(**content, splits=splits)


class Split(InputPartition):
    """One task's part."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


class OffsetsSource(DataSource):
    """`spark.read.format(NAME).options(**reading.options())`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "files string, counts string, reached string, error string"

    def reader(self, schema: Any) -> "OffsetsReader":
        return OffsetsReader(Reading.of(self.options))


class OffsetsReader(DataSourceReader):
    """One row for each split; `error` says why one broke off."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[Split]:
        return [Split(index) for index in range(len(self._reading.splits))]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, str, str, str]]:
        assert isinstance(partition, Split)
        writer = Writer(self._reading, partition.index)
        try:
            reached = _read(self._reading, partition.index, writer)
        except (BrokenOff, BadConfig, KafkaException) as error:
            yield "[]", "{}", "{}", str(error)
            return
        files = json.dumps([asdict(file) for file in writer.close()])
        yield files, json.dumps(writer.counts), json.dumps({str(key): value for key, value in reached.items()}), ""


@dataclass
class Writer:
    """Decodes chunks and writes files; `counts` has what the decoders met."""

    reading: Reading
    split: int
    counts: "Counter[str]" = field(default_factory=Counter)
    _held: dict[str, list[pa.Table]] = field(default_factory=lambda: {"commits": [], "ownership": []})
    _files: list[File] = field(default_factory=list)
    _attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    """Spark may try a task twice at once: no attempt writes over the files of another."""

    def add(self, partition: int, messages: list[Message]) -> None:
        """Records of one partition, in order."""
        keys, values = [each.key() for each in messages], [each.value() for each in messages]
        times = np.fromiter((each.timestamp()[1] for each in messages), np.int64, len(messages))
        offsets = np.fromiter((each.offset() for each in messages), np.int64, len(messages))
        decoded = commits.split(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), times, offsets, partition)
        self.counts.update(decoded.counts)
        self._keep("commits", decoded.commits)
        if len(decoded.groups):
            at = decoded.groups.tolist()
            rows, counts = groups.decode([keys[i] for i in at], [values[i] for i in at], times[decoded.groups].tolist(),
                                         offsets[decoded.groups].tolist(), partition)
            self.counts.update(counts)
            self._keep("ownership", rows)

    def close(self) -> list[File]:
        """Write what is left; all files."""
        for table in self._held:
            self._write(table)
        return self._files

    def _keep(self, table: str, rows: pa.Table) -> None:
        self._held[table].append(rows)
        if sum(each.num_rows for each in self._held[table]) >= FILE_ROWS:
            self._write(table)

    def _write(self, table: str) -> None:
        rows = pa.concat_tables(self._held[table]) if self._held[table] else None
        self._held[table] = []
        if rows is not None and rows.num_rows:
            store, reading = Store(Path(self.reading.root), self.reading.cluster), self.reading
            name = f"{reading.run}-{self.split}-{self._attempt}"
            self._files.append(store.file(name, table, len(self._files), reading.began, rows))


def _read(reading: Reading, split: int, writer: Writer) -> dict[int, int]:
    """Read every range to its end; the offset that each partition was read up to.

    The end is the planned one, or the partition's own where that comes first: behind an open transaction nothing is
    readable yet, and markers and compacted records are never delivered. Raises BrokenOff, BadConfig and KafkaException.
    """
    ranges = {each.partition: each for each in reading.splits[split]}
    consumer = Consumer(client.reader(client.configuration(reading.bootstrap_servers, reading.command_config)))
    reached: dict[int, int] = {}
    held: dict[int, list[Message]] = {number: [] for number in ranges}
    try:
        consumer.assign([TopicPartition(TOPIC, each.partition, each.begin) for each in ranges.values()])
        heard = time.monotonic()
        while len(reached) < len(ranges):
            messages = consumer.consume(FETCH, 0.5)
            heard = time.monotonic() if messages else heard
            if time.monotonic() - heard > SILENT_SECONDS:
                waiting = ", ".join(str(number) for number in sorted(ranges.keys() - reached.keys()))
                raise BrokenOff(f"no answer for {SILENT_SECONDS:.0f} s about {TOPIC}, partitions {waiting}: "
                                "look whether their leaders are there")
            known = reached.keys() | set()
            for message in messages:
                _take(message, ranges, reached, held)
            # What others write on must not be fetched for as long as the largest partition takes.
            if done := reached.keys() - known:
                consumer.pause([TopicPartition(TOPIC, number) for number in done])
            if sum(len(each) for each in held.values()) >= CHUNK:
                _decode(held, writer)
        _decode(held, writer)
    finally:
        consumer.close()
    return reached


def _decode(held: dict[int, list[Message]], writer: Writer) -> None:
    for number, messages in held.items():
        if messages:
            writer.add(number, messages)
            held[number] = []


def _take(message: Message, ranges: Mapping[int, Range], reached: dict[int, int], held: dict[int, list[Message]]) -> None:
    number, offset, error = message.partition(), message.offset(), message.error()
    if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return                      # librdkafka looks for a coordinator of our group's name, which nothing here needs
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise BrokenOff(f"{TOPIC}-{number}: the log was deleted while it was read ({error.str()}); capture again")
        raise BrokenOff(f"{TOPIC}-{number}: {error.str()}")
    if number is None or offset is None:
        raise BrokenOff(f"{TOPIC}: a record of no partition")
    if number in reached:
        return
    wanted = ranges[number]
    if error is not None:
        reached[number] = min(max(offset, wanted.begin), wanted.end)
        return
    if offset < wanted.end:
        held[number].append(message)
    if offset >= wanted.end - 1:
        reached[number] = wanted.end
