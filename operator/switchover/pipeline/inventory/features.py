"""From bronze to groups: aggregates in Spark, one row for each group on the driver."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from switchover.pipeline.bronze import newest, read
from switchover.pipeline.inventory.group import Coordination, Group, Storage
from switchover.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DAY = 86_400_000.0


def partitions(commits: "DataFrame", znodes: "DataFrame", ends: "DataFrame") -> "DataFrame":
    """One row for each (group, topic, partition) that has an offset, from the newest commit of either store.

    Newest is by the place in the log, which is causal: a key lies in one partition of it. Deleted offsets are gone.
    `znodes` are those of one capture.
    """
    from pyspark.sql import functions as f

    key = ["group", "topic", "partition"]
    kafka = (
        commits.groupBy(*key)
        .agg(f.max_by(f.struct("offset", "commit_time"), "log_offset").alias("last"),
             f.min_by("offset", "log_offset").alias("first_offset"), f.min("commit_time").alias("first_time"),
             f.count("offset").alias("count"))
        .where("last.offset is not null")
        .select(*key, f.col("last.offset").alias("kafka"), f.col("last.commit_time").alias("kafka_time"),
                "first_offset", "first_time", "count"))
    zookeeper = offsets(znodes)
    logs = (
        ends.groupBy("topic", "partition")
        .agg(f.max_by(f.struct("start", "end", "time"), "time").alias("now"),
             f.min_by(f.struct("end", "time"), "time").alias("then"))
        .select("topic", "partition", f.col("now.start").alias("start"), f.col("now.end").alias("end"),
                ((f.col("now.end") - f.col("then.end")) * 1000.0
                 / f.nullif(f.col("now.time") - f.col("then.time"), f.lit(0))).alias("produced")))
    offset = f.when(f.coalesce(f.col("kafka_time"), f.lit(-1)) >= f.coalesce(f.col("zookeeper_time"), f.lit(-1)),
                    f.col("kafka")).otherwise(f.col("zookeeper"))
    span = f.nullif(f.col("kafka_time") - f.col("first_time"), f.lit(0))
    return (
        kafka.join(zookeeper, key, "full").withColumn("offset", offset).join(logs, ["topic", "partition"], "left")
        .select(*key, "kafka", "zookeeper", "offset", "start", "end", "count",
                f.greatest("kafka_time", "zookeeper_time").alias("time"), "produced",
                ((f.col("kafka") - f.col("first_offset")) * 1000.0 / span).alias("consumed"),
                (span / f.nullif(f.col("count") - 1, f.lit(0))).alias("interval")))


def offsets(znodes: "DataFrame") -> "DataFrame":
    """The offsets that ZooKeeper holds: a node whose data is no number has none."""
    from pyspark.sql import functions as f

    parts = f.split("path", "/")
    return (znodes.where(f.size(parts) == 6).where((parts[1] == "consumers") & (parts[3] == "offsets"))
            .select(parts[2].alias("group"), parts[4].alias("topic"), parts[5].try_cast("int").alias("partition"),
                    _text("data").try_cast("bigint").alias("zookeeper"),
                    f.col("mtime").alias("zookeeper_time"))
            .where("partition is not null and zookeeper is not null"))


def registered(znodes: "DataFrame") -> "DataFrame":
    """Of each group that ZooKeeper knows: live members, and how they subscribe."""
    from pyspark.sql import functions as f

    parts = f.split("path", "/")
    return (znodes.where((f.size(parts) >= 3) & (parts[1] == "consumers"))
            .groupBy(parts[2].alias("group"))
            .agg(f.count_if((f.size(parts) == 5) & (parts[3] == "ids")).alias("registered"),
                 f.max(f.when((f.size(parts) == 5) & (parts[3] == "ids"),
                              f.get_json_object(_text("data"), "$.pattern"))).alias("subscription"),
                 f.collect_set(f.when((f.size(parts) == 6) & parts[3].isin("owners", "offsets"), parts[4])).alias("known")))


def _text(column: str) -> "Column":
    """Bytes as text; what is not UTF-8 becomes something else, and fails nothing."""
    from pyspark.sql import functions as f

    return f.make_valid_utf8(f.col(column).cast("string"))


def collect(spark: "SparkSession", store: Store) -> list[Group]:
    """Every group that any table knows, by name."""
    from pyspark.sql import functions as f

    znodes = newest(spark, store, "znodes")
    each = partitions(read(spark, store, "commits"), znodes, read(spark, store, "ends"))
    lag = f.when(f.col("end").isNotNull(), f.greatest(f.col("end") - f.col("offset"), f.lit(0)))
    held = f.when(f.col("end") > f.col("start"), (f.col("offset") - f.col("start")) / (f.col("end") - f.col("start")))
    totals = each.groupBy("group").agg(
        f.collect_set("topic").alias("topics"), f.count("*").alias("partitions"), f.sum(lag).alias("lag"),
        f.sum((f.col("produced") - f.col("consumed")) * 3600).alias("growth"), f.min(held).alias("headroom"),
        f.count_if(f.col("offset") < f.col("start")).alias("lost"), f.max("time").alias("last_commit"),
        f.avg("interval").alias("commit_interval"), f.count("kafka").alias("in_kafka"),
        f.count("zookeeper").alias("in_zookeeper"))
    rebalanced = (read(spark, store, "ownership").where("record in ('ClassicGroup', 'Epoch') and epoch is not null")
                  .groupBy("group").agg((f.max("epoch") - f.min("epoch")).alias("epochs"),
                                        (f.max("time") - f.min("time")).alias("span")))
    described = newest(spark, store, "groups").select(
        "group", "type", "state", f.size("members").alias("members"),
        f.array_distinct(f.flatten("members.assigned").getField("topic")).alias("assigned"))
    rows = (totals.join(rebalanced, "group", "full").join(described, "group", "full")
            .join(registered(znodes), "group", "full").toArrow().to_pylist())
    return sorted((_group(row) for row in rows), key=lambda group: group.name)


def _group(row: dict[str, Any]) -> Group:
    topics: set[str] = {topic for name in ("topics", "assigned", "known") for topic in row[name] or () if topic}
    kafka, zookeeper = (row["members"] or 0) > 0, (row["registered"] or 0) > 0
    return Group(
        name=row["group"], topics=tuple(sorted(topics)), partitions=row["partitions"] or 0,
        storage=Storage(_both(row["in_kafka"], row["in_zookeeper"])), coordination=Coordination(_both(kafka, zookeeper)),
        protocol=row["type"] or "", state=row["state"] or "",
        members=max(row["members"] or 0, row["registered"] or 0), subscription=row["subscription"] or "",
        lag=row["lag"], growth=row["growth"], headroom=row["headroom"], lost=row["lost"] or 0,
        rebalances=_daily(row["epochs"], row["span"]), commit_interval=row["commit_interval"],
        last_commit=row["last_commit"])


def _both(kafka: object, zookeeper: object) -> str:
    return "Both" if kafka and zookeeper else "Kafka" if kafka else "ZooKeeper" if zookeeper else "None"


def _daily(epochs: int | None, span: int | None) -> float | None:
    """An hour at least is looked at as a day's part: two records in a second are no trend."""
    return None if epochs is None or span is None else epochs * DAY / max(span, DAY / 24)


def names(groups: Sequence[Group]) -> frozenset[str]:
    """All topics of these groups."""
    return frozenset(topic for group in groups for topic in group.topics)
