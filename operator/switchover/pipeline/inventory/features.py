"""From bronze to groups: aggregates in Spark, one row for each group on the driver."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from switchover.pipeline.bronze import newest, read
from switchover.pipeline.inventory.readiness import Coordination, Group, Storage
from switchover.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DAY = 86_400_000.0


def partitions(commits: "DataFrame", znodes: "DataFrame", ends: "DataFrame", topics: "DataFrame") -> "DataFrame":
    """One row for each (group, topic, partition) that has an offset, from the newest commit of either store.

    Newest is by the place in the log, which is causal: a key lies in one partition of it. Deleted offsets are gone. What was
    committed to a topic that was deleted and created again since says nothing of the new one: `offset` is null, and so are
    the rates. `znodes` are those of one capture.
    """
    from pyspark.sql import functions as f

    from switchover.pipeline.bronze import lives, of_today

    key = ["group", "topic", "partition"]
    named = lives(topics)
    kafka = (
        of_today(commits, named, f.col("commit_time"), f.col("topic_id")).groupBy(*key)
        .agg(f.max_by(f.struct("offset", "commit_time", "current"), "log_offset").alias("last"),
             f.min_by("offset", f.when(f.col("current"), f.col("log_offset"))).alias("first_offset"),
             f.min(f.when(f.col("current"), f.col("commit_time"))).alias("first_time"),
             f.count(f.when(f.col("current"), f.col("offset"))).alias("count"))
        .where("last.offset is not null")
        .select(*key, f.col("last.offset").alias("kafka"), f.col("last.commit_time").alias("kafka_time"),
                f.when(f.col("last.current"), f.col("last.offset")).alias("of_today"),
                "first_offset", "first_time", "count"))
    zookeeper = of_today(offsets(znodes), named, f.col("zookeeper_time")).withColumn(
        "zookeeper_of_today", f.when(f.col("current"), f.col("zookeeper"))).drop("current")
    logs = (
        of_today(ends, named, f.col("time"), band=0).where("current").groupBy("topic", "partition")
        .agg(f.max_by(f.struct("start", "end", "time"), "time").alias("now"),
             f.min_by(f.struct("end", "time"), "time").alias("then"))
        .select("topic", "partition", f.col("now.start").alias("start"), f.col("now.end").alias("end"),
                ((f.col("now.end") - f.col("then.end")) * 1000.0
                 / f.nullif(f.col("now.time") - f.col("then.time"), f.lit(0))).alias("produced")))
    offset = f.when(f.coalesce(f.col("kafka_time"), f.lit(-1)) >= f.coalesce(f.col("zookeeper_time"), f.lit(-1)),
                    f.col("of_today")).otherwise(f.col("zookeeper_of_today"))
    span = f.nullif(f.col("kafka_time") - f.col("first_time"), f.lit(0))
    return (
        kafka.join(zookeeper, key, "full").withColumn("offset", offset).join(logs, ["topic", "partition"], "left")
        .select(*key, "kafka", "zookeeper", "offset", "start", "end", "count",
                f.greatest("kafka_time", "zookeeper_time").alias("time"), "produced",
                ((f.col("of_today") - f.col("first_offset")) * 1000.0 / span).alias("consumed"),
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
    each = partitions(read(spark, store, "commits"), znodes, read(spark, store, "ends"), read(spark, store, "topics"))
    policies = newest(spark, store, "topics").select(
        "topic", f.array_contains(f.split("cleanup_policy", r"\s*,\s*"), "delete").alias("deletes"))
    each = each.join(f.broadcast(policies), "topic", "left")
    left = f.col("end") - f.col("offset")
    lag = f.when(left.isNotNull(), f.greatest(left, f.lit(0)))
    held = f.when(f.col("deletes") & (f.col("end") > f.col("start")),
                  (f.col("offset") - f.col("start")) / (f.col("end") - f.col("start")))
    totals = each.groupBy("group").agg(
        f.collect_set("topic").alias("topics"), f.count("*").alias("partitions"), f.sum(lag).alias("lag"),
        f.sum((f.col("produced") - f.col("consumed")) * 3600).alias("growth"), f.min(held).alias("headroom"),
        f.count_if(f.col("offset") < f.col("start")).alias("lost"), f.max("time").alias("last_commit"),
        f.avg("interval").alias("commit_interval"), f.count("kafka").alias("in_kafka"),
        f.count("zookeeper").alias("in_zookeeper"))
    time = f.when(f.col("epoch").isNotNull(), f.col("time"))
    classic = f.when(f.col("record") == "ClassicGroup", f.col("log_offset"))
    rebalanced = (read(spark, store, "ownership").where("record in ('ClassicGroup', 'Epoch')")
                  .groupBy("group").agg((f.max("epoch") - f.min("epoch")).alias("epochs"),
                                        (f.max(time) - f.min(time)).alias("span"),
                                        f.max_by(f.struct("protocol_type", "protocol"), classic).alias("classic"))
                  .select("group", "epochs", "span", "classic.protocol_type", "classic.protocol"))
    described = newest(spark, store, "groups").select(
        "group", "type", "state", "assignor", f.size("members").alias("members"),
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
        protocol=row["type"] or "", protocol_type=row["protocol_type"], strategy=row["assignor"] or row["protocol"] or "",
        state=row["state"] or "",
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
