"""What a group did not consume: deleted before it came, skipped, or left at the end."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from switchover.pipeline.audit.commits import NAMES
from switchover.pipeline.audit.intervals import KEY
from switchover.pipeline.outcome import BadConfig, JobFailed

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
    """Records that retention took before they were committed: NAMES, start, end, at, proven.

    A log start that was first seen in the range is compared with the offset that stood then. Where a commit within the band
    after it had passed it, the order of the two is not known.
    """
    starts = (ends.where("start > 0").groupBy("topic", "partition", "start").agg(f.min("time").alias("seen"))
              .where(f.col("seen").between(since, until - 1)))
    keys = ordered.select(KEY, *NAMES).distinct()
    twice = f.explode(f.array(f.lit(False), f.lit(True)))
    probes = keys.join(starts, ["topic", "partition"]).withColumn("late", twice)
    position = f.struct("offset").alias("position")
    line = (ordered.select(KEY, *NAMES, "at", "n", position)
            .unionByName(probes.withColumn("at", f.col("seen") + f.when(f.col("late"), band).otherwise(0)),
                         allowMissingColumns=True))
    stood = f.last("position", ignorenulls=True).over(
        Window.partitionBy(KEY).orderBy("at", f.col("n").asc_nulls_last())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow))
    found = line.withColumn("stood", stood["offset"]).where("start is not null and stood < start")
    return (found.groupBy(*NAMES, "start").agg(f.min("stood").alias("stood"), f.max("seen").alias("at"),
                                               f.max("late").alias("proven"))
            .select(*NAMES, f.col("stood").alias("start"), f.col("start").alias("end"), "at", "proven"))


def last_positions(ordered: DataFrame) -> DataFrame:
    """NAMES, offset, at of the last event of each partition; a null offset after a tombstone."""
    return ordered.groupBy(KEY).agg(
        *(f.first(name).alias(name) for name in NAMES),
        f.max_by(f.struct("offset", "at"), "n").alias("last")).select(*NAMES, "last.offset", "last.at")


def left(positions: DataFrame, groups: list[str], acknowledged: DataFrame | None, ends: DataFrame) -> DataFrame:
    """What drained groups have not passed: NAMES, start, end, amount (records), proven.

    Judged are all partitions of the topics of which the group has committed any. By the producers' log it is proven; by end
    offsets alone it is not: markers of transactions and records after the range lie there too.
    """
    drained = positions.where(f.col("group").isin(groups))
    topics = drained.select("group", "topic").distinct()
    if acknowledged is None:
        stands = ends.groupBy("topic", "partition").agg(f.max_by("start", "time").alias("first"),
                                                        f.max_by("end", "time").alias("last"))
    else:
        stands = acknowledged.withColumn("last", f.col("last") + 1)
    return (topics.join(stands, "topic").join(drained, list(NAMES), "left")
            .withColumn("start", f.greatest("first", "offset")).where("start < last")
            .groupBy(*NAMES)
            .agg(f.min("start").alias("start"), f.max("last").alias("end"),
                 f.sum(f.col("last") - f.col("start")).alias("amount"))
            .withColumn("proven", f.lit(acknowledged is not None)))


def skipped(gaps: DataFrame, acknowledged: DataFrame) -> DataFrame:
    """Of gaps (NAMES, start, end, at) those in which records were acknowledged: with their number as `amount`."""
    inside = f.least("end", f.col("last") + 1) - f.greatest("start", "first")
    return (gaps.join(acknowledged, ["topic", "partition"]).withColumn("amount", inside).where("amount > 0")
            .groupBy(*NAMES, "start", "end", "at").agg(f.sum("amount").alias("amount")))
