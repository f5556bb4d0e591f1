"""What a group did not consume: deleted before it came, skipped, or left at the end."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from switchover.pipeline.audit.commits import NAMES, WHICH
from switchover.pipeline.audit.findings import ENDS, PRODUCERS
from switchover.pipeline.audit.intervals import KEY
from switchover.pipeline.outcome import BadConfig, JobFailed
from switchover.pipeline.topic_ids import ID

_PRODUCED = "topic string, partition int, first long, last long, broken string"


def produced(spark: SparkSession, directory: Path) -> DataFrame:
    """The producers' own log: topic, partition, first, last (inside). Raises BadConfig and JobFailed with the line."""
    if not any(directory.glob("*.jsonl")):
        raise BadConfig(f"{directory} has no *.jsonl: give the directory of the producers' log, or none")
    rows = (spark.read.schema(_PRODUCED).option("columnNameOfCorruptRecord", "broken")
            .json(str(directory / "*.jsonl"), mode="PERMISSIVE"))
    wrong = rows.where("broken is not null or topic is null or partition is null or first is null or last is null"
                       " or first < 0 or last < first").head()
    if wrong is not None:
        line = ascii((wrong["broken"] or str(wrong.asDict()))[:200])
        raise JobFailed(f"{directory}: {line} is no range of acknowledged offsets: "
                        'each line must be {"topic": …, "partition": …, "first": …, "last": …}')
    return rows.drop("broken")


def deleted(ordered: DataFrame, ends: DataFrame, since: int, until: int, band: int) -> DataFrame:
    """Records that retention took before they were committed: NAMES, start, end, at, sure, late.

    A log start that was first seen in the range is compared with the offset that stood then (`sure`: both are of one topic).
    Where a commit within the band after it had passed it, the order of the two is not known (not `late`).
    """
    starts = (ends.where("start > 0").groupBy("topic", f.col(ID).alias("id"), "partition", "start")
              .agg(f.min("time").alias("seen"), f.max("sure").alias("known"))
              .where(f.col("seen").between(since, until - 1)))
    keys = ordered.select(KEY, *WHICH).distinct()
    twice = f.explode(f.array(f.lit(False), f.lit(True)))
    probes = (keys.join(starts, ["topic", "partition"]).where(f.col(ID).eqNullSafe(f.col("id"))).drop(ID, "id")
              .withColumn("late", twice))
    position = f.struct("offset", "sure").alias("position")
    line = (ordered.select(KEY, *NAMES, "at", "n", position)
            .unionByName(probes.withColumn("at", f.col("seen") + f.when(f.col("late"), band).otherwise(0)),
                         allowMissingColumns=True))
    stood = f.last("position", ignorenulls=True).over(
        Window.partitionBy(KEY).orderBy("at", f.col("n").asc_nulls_last())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow))
    found = line.withColumn("stood", stood).where("start is not null and stood.offset < start")
    return (found.groupBy(KEY, *NAMES, "start").agg(
        f.min("stood.offset").alias("stood"), f.max("seen").alias("at"), f.max("late").alias("late"),
        f.min(f.col("known") & f.col("stood.sure")).alias("sure"))
        .select(*NAMES, f.col("stood").alias("start"), f.col("start").alias("end"), "at", "sure", "late"))


def last_positions(ordered: DataFrame) -> DataFrame:
    """WHICH, offset, sure of the last event of each partition; a null offset after a tombstone."""
    return ordered.groupBy(KEY).agg(
        *(f.first(name).alias(name) for name in WHICH),
        f.max_by(f.struct("offset", "sure"), "n").alias("last")).select(*WHICH, "last.offset", "last.sure")


def left(positions: DataFrame, groups: list[str], acknowledged: DataFrame | None, ends: DataFrame,
         named: DataFrame) -> DataFrame:
    """What drained groups have not passed: NAMES, start, end, amount (records), sure, one (who tells of the records).

    Judged are all partitions of the topics of which the group has committed any, as they are in the end (`named`: which
    topic each name stands for then). End offsets alone prove nothing: markers of transactions and records after the range
    lie there too. The producers' log is `sure` where its names never stood for another topic.
    """
    drained = positions.where(f.col("group").isin(groups)).join(f.broadcast(named), "topic", "left")
    topics = drained.select("group", "topic", "only").distinct()
    stand = drained.where(f.col(ID).eqNullSafe(f.col("now"))).select(*NAMES, "offset", "sure")
    if acknowledged is None:
        stands = ends.groupBy("topic", "partition").agg(f.max_by("start", "time").alias("first"),
                                                        f.max_by("end", "time").alias("last"))
    else:
        stands = acknowledged.withColumn("last", f.col("last") + 1)
    sure = f.coalesce("only", f.lit(False)) & f.coalesce("sure", f.lit(True))
    return (topics.join(stands, "topic").join(stand, list(NAMES), "left")
            .withColumn("start", f.greatest("first", "offset")).where("start < last")
            .groupBy(*NAMES)
            .agg(f.min("start").alias("start"), f.max("last").alias("end"),
                 f.sum(f.col("last") - f.col("start")).alias("amount"), f.min(sure).alias("sure"))
            .withColumn("one", f.lit(ENDS if acknowledged is None else PRODUCERS)))


def skipped(gaps: DataFrame, acknowledged: DataFrame, named: DataFrame) -> DataFrame:
    """Of gaps (WHICH, start, end, at, sure) those in which records were acknowledged: with their number as `amount`.

    They are not `sure` where the name ever stood for another topic: the producers' log has no ids.
    """
    inside = f.least("end", f.col("last") + 1) - f.greatest("start", "first")
    only = f.coalesce(f.col("only") & (f.col(ID) == f.col("now")), f.lit(False))
    return (gaps.join(acknowledged, ["topic", "partition"]).withColumn("amount", inside).where("amount > 0")
            .join(f.broadcast(named), "topic", "left").withColumn("sure", f.col("sure") & only)
            .groupBy(*NAMES, "start", "end", "at", "sure").agg(f.sum("amount").alias("amount")))
