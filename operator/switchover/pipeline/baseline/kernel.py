"""The histories of groups through Arrow: the rows of commits and ends from bronze in, one row for each group out.

Runs in Spark's workers (`mapInArrow`); rows come sorted by SORTED, a group's all in one Spark partition.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from switchover.lag.baseline import TOPIC
from switchover.lag.samples import NONE, Ints
from switchover.pipeline.baseline.history import Course, Figures, GroupHistory, group_history
from switchover.pipeline.baseline.report import bounded
from switchover.pipeline.baseline.series import ALWAYS, Commits, Series, sampled
from switchover.shared.partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

KAFKA, ZOOKEEPER, END = 0, 1, 2
"""Kinds of a row. A partition with commits in Kafka is judged by those alone."""

ROWS: Final = pa.schema([
    ("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("kind", pa.int8()),
    ("place", pa.int64()),               # order of writing of a commit; the sweep of an end
    ("time", pa.int64()), ("value", pa.int64()),        # committed offset or end; null: the offset was deleted
    ("start", pa.int64()), ("writes", pa.int64()),
])
"""What comes in."""
SORTED: Final = ("group", "topic", "partition", "kind", "place")

FIGURES: Final = pa.struct([
    ("topic", pa.string()), ("partition", pa.int32()), ("hour", pa.int16()),       # null: over all hours
    ("samples", pa.int64()), ("censored", pa.int64()),
    ("time_lag_q50", pa.int64()), ("time_lag_q95", pa.int64()), ("time_lag_q99", pa.int64()),       # ms
    ("commit_intervals", pa.int64()), ("commit_interval_p99", pa.int64()),                          # ms; null: not known
    ("rate_q50", pa.int64()), ("rate_q95", pa.int64()),                                             # records per hour
])
VERDICTS: Final = pa.struct([
    ("topic", pa.string()), ("partition", pa.int32()),
    ("without", pa.list_(pa.int8())), ("used_to", pa.list_(pa.int8()))])
"""Codes of `lag.verdicts.Verdict`, one for each sweep of the trial, without and with a baseline."""
GROUPS: Final = pa.schema([
    ("group", pa.string()), ("text", pa.string()),                    # of the ConfigMap; null: no partition has a baseline
    ("by_hour", pa.bool_()), ("partitions_left_out", pa.int64()),  # of the text, for its size
    ("partitions", pa.int64()), ("with_baseline", pa.int64()), ("unread", pa.int64()),   # unread: no end was ever read
    ("skewed", pa.int64()),
    ("alarms_without", pa.int64()), ("alarms", pa.int64()), ("interruptions_without", pa.int64()),
    ("interruptions", pa.int64()), ("passing_without", pa.int64()), ("passing", pa.int64()),
    ("effects_without", pa.list_(pa.int8())), ("effects", pa.list_(pa.int8())),          # of `lag.verdicts.Effect`
    ("figures", pa.list_(FIGURES)), ("verdicts", pa.list_(VERDICTS)),
])
"""What goes out. What has a baseline bears the plain name."""


class Key(NamedTuple):
    """Of the rows of one partition of one group."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """The function for `mapInArrow`."""

    course: Course
    max_bytes: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch for each group."""
        for group, pieces in groupby(partitions_of(batches), key=lambda piece: piece[0].group):
            unread: list[Key] = []
            yield pa.RecordBatch.from_pylist([self._row(group_history(
                group, self._histories(pieces, unread), self.course), len(unread))], schema=GROUPS)

    def _histories(self, pieces: Iterable[tuple[Key, pa.Table]],
                   unread: list[Key]) -> Iterator[tuple[TopicPartition, Commits, Series]]:
        for key, rows in pieces:
            kind = _ints(rows, "kind")
            commits, ends = kind == kind.min(), kind == END
            if kind.min() == END or not ends.any() or not TOPIC.fullmatch(key.topic):
                unread.append(key)
                continue
            place, time, value, start, writes = (_ints(rows, name) for name in ROWS.names[4:])
            written = Commits(time[commits], value[commits], writes[commits])
            yield TopicPartition(key.topic, key.partition), written, sampled(
                written, place[ends], time[ends], value[ends], start[ends], len(self.course.now))

    def _row(self, found: GroupHistory, unread: int) -> dict[str, Any]:
        text, by_hour, left_out = bounded(found.baseline, self.max_bytes)
        without, used_to = found.without, found.used_to
        return {
            "group": found.baseline.group, "text": text if found.baseline.partitions else None, "by_hour": by_hour,
            "partitions_left_out": left_out, "partitions": len(found.figures) + unread,
            "with_baseline": len(found.baseline.partitions), "unread": unread, "skewed": found.skewed,
            "alarms_without": without.alarms, "alarms": used_to.alarms,
            "interruptions_without": without.interruptions, "interruptions": used_to.interruptions,
            "passing_without": without.passing, "passing": used_to.passing,
            "effects_without": without.effects, "effects": used_to.effects,
            "figures": [_figures(partition, each) for partition, figures in found.figures.items() for each in figures],
            "verdicts": [{"topic": partition.topic, "partition": partition.partition, "without": one.tolist(),
                          "used_to": other.tolist()} for partition, (one, other) in found.verdicts.items()]}


def _figures(partition: TopicPartition, figures: Figures) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition,
            "hour": None if figures.hour == ALWAYS else figures.hour, "samples": figures.values,
            "censored": figures.censored,
            **dict(zip(("time_lag_q50", "time_lag_q95", "time_lag_q99"), figures.time_lag, strict=True)),
            "commit_intervals": figures.intervals,
            "commit_interval_p99": None if figures.interval_p99 == NONE else figures.interval_p99,
            "rate_q50": figures.rate[0], "rate_q95": figures.rate[1]}


def _ints(rows: pa.Table, name: str) -> Ints:
    return np.asarray(rows[name].fill_null(NONE).to_numpy(), dtype=np.int64)


def partitions_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Key, pa.Table]]:
    """The rows of each partition of each group, from batches that are cut anywhere."""
    for key, pieces in groupby(_runs(batches), key=lambda piece: piece[0]):
        yield key, pa.Table.from_batches([batch for _, batch in pieces])


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Key, pa.RecordBatch]]:
    """Stretches of a batch in which the key is the same."""
    for batch in batches:
        if not batch.num_rows:
            continue
        changes = np.zeros(batch.num_rows - 1, dtype=np.bool_)
        for name in Key._fields:
            column = batch[name]
            changes |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows]
        for begin, end in pairwise(edges):
            yield Key(*(batch[name][begin].as_py() for name in Key._fields)), batch.slice(begin, end - begin)


LONGEST_NAME: Final = 32767
"""Of a group, as Kafka's protocol and the operator's resources take it. A longer one, of ZooKeeper alone, is left out."""
LATEST: Final = 2**53
"""ms; a time beyond it, or below 0, is put to the edge, so that differences stay numbers."""
_RUN: Final = r"^(.*)-\d+\.parquet$"
_OFFSET: Final = r"^/consumers/([^/]+)/offsets/([^/]+)/([0-9]{1,9})$"


class Bronze:
    """The tables as the files of a store hold them.

    What is of a topic that was deleted and created again since is left out: it was another topic.
    """

    def __init__(self, spark: "SparkSession", files: dict[str, list[str]]) -> None:
        self._spark = spark
        self._files = files

    def sweeps(self) -> list[tuple[str, int]]:
        """Every run that read ends, and the latest time at which it did, in the order of those times."""
        from pyspark.sql import functions as f

        found = self._ends().groupBy("run").agg(f.max("time").alias("now")).collect()
        return sorted(((row["run"], row["now"]) for row in found), key=lambda each: each[::-1])

    def rows(self, sweeps: Sequence[tuple[str, int]]) -> "DataFrame":
        """Commits of every group, and the ends of the partitions that each has committed to, sorted for the kernel."""
        from pyspark.sql import functions as f

        commits = self._kafka().unionByName(self._zookeeper())
        numbers = self._spark.createDataFrame(
            [(run, number) for number, (run, _) in enumerate(sweeps)], "run string, place bigint")
        keys = commits.select("group", "topic", "partition").distinct()
        ends = (
            self._of_today(self._ends(), band=0).join(f.broadcast(numbers), "run").join(keys, ["topic", "partition"])
            .withColumns({"kind": f.lit(END).cast("tinyint"), "value": f.col("end"), "writes": f.lit(None).cast("bigint")}))
        return (commits.select(*ROWS.names).unionByName(ends.select(*ROWS.names))
                .repartition("group").sortWithinPartitions(*SORTED))

    def longer_names(self) -> int:
        """Groups that are left out for their names."""
        from pyspark.sql import functions as f

        return self._table("commits").select("group").where(f.length("group") > LONGEST_NAME).distinct().count()

    def _kafka(self) -> "DataFrame":
        from pyspark.sql import functions as f

        found = self._table("commits").where(f.length("group") <= LONGEST_NAME)
        return self._of_today(found.withColumn("time", f.coalesce("commit_time", "record_time")), f.col("topic_id")).select(
            "group", "topic", "partition", f.lit(KAFKA).cast("tinyint").alias("kind"), f.col("log_offset").alias("place"),
            _bounded(f.col("time")).alias("time"),
            f.when(f.col("offset") >= 0, f.col("offset")).alias("value"),
            f.lit(None).cast("bigint").alias("start"), f.lit(None).cast("bigint").alias("writes"))

    def _zookeeper(self) -> "DataFrame":
        """Offsets below /consumers: every write that the transaction logs show, and the last one before each snapshot."""
        from pyspark.sql import functions as f

        nodes = self._table("znodes").select(
            "path", "data", f.col("mzxid").alias("place"), f.col("mtime").alias("time"),
            f.col("version").cast("bigint").alias("writes"))
        written = self._table("transactions").where(f.col("op").isin("create", "setData", "delete")).select(
            "path", f.when(f.col("op") != "delete", f.col("data")).alias("data"), f.col("zxid").alias("place"), "time",
            f.when(f.col("op") == "create", f.lit(0)).otherwise(f.col("version")).cast("bigint").alias("writes"))
        offsets = nodes.unionByName(written).where(f.col("path").rlike(_OFFSET)).dropDuplicates(["path", "place"])
        text = f.col("data").cast("string")
        return self._of_today(offsets.select(
            f.regexp_extract("path", _OFFSET, 1).alias("group"), f.regexp_extract("path", _OFFSET, 2).alias("topic"),
            f.regexp_extract("path", _OFFSET, 3).cast("int").alias("partition"),
            f.lit(ZOOKEEPER).cast("tinyint").alias("kind"), "place", _bounded(f.col("time")).alias("time"),
            f.when(text.rlike("^[0-9]{1,18}$"), text).cast("bigint").alias("value"),
            f.lit(None).cast("bigint").alias("start"), "writes").where(f.length("group") <= LONGEST_NAME))

    def _ends(self) -> "DataFrame":
        from pyspark.sql import functions as f

        run = f.regexp_extract(f.col("_metadata.file_name"), _RUN, 1).alias("run")
        return self._table("ends").select("topic", "partition", "start", "end", "time", run)

    def _of_today(self, rows: "DataFrame", own: "Column | None" = None, **band: int) -> "DataFrame":
        """Those of the topics that the names stand for now."""
        from pyspark.sql import functions as f

        from switchover.pipeline.bronze import lives, of_today

        return of_today(rows, lives(self._table("topics")), f.col("time"), own, **band).where("current").drop("current")

    def _table(self, table: str) -> "DataFrame":
        from switchover.pipeline.bronze import rows

        return rows(self._spark, table, self._files.get(table, []))


def _bounded(time: "Column") -> "Column":
    from pyspark.sql import functions as f

    return f.greatest(f.least(time, f.lit(LATEST)), f.lit(0).cast("bigint"))
