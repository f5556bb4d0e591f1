"""The rows that the kernel takes, from the bronze tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from switchover.pipeline.baseline.kernel import END, KAFKA, ROWS, SORTED, ZOOKEEPER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

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
        """Offsets below /consumers: every write that the transaction logs tell, and the last one before each snapshot."""
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

        from switchover.pipeline.topic_ids import lives, of_today

        return of_today(rows, lives(self._table("topics")), f.col("time"), own, **band).where("current").drop("current")

    def _table(self, table: str) -> "DataFrame":
        from switchover.pipeline.bronze import rows

        return rows(self._spark, table, self._files.get(table, []))


def _bounded(time: "Column") -> "Column":
    from pyspark.sql import functions as f

    return f.greatest(f.least(time, f.lit(LATEST)), f.lit(0).cast("bigint"))
