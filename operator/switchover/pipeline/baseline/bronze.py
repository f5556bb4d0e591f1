"""The rows that the kernel takes, from the bronze tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from switchover.pipeline.baseline.kernel import END, KAFKA, ROWS, SORTED, ZOOKEEPER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LONGEST_NAME: Final = 255
"""Of a group, as the operator's resources take it. One that is longer (Kafka allows 32 KiB) is left out."""
LATEST: Final = 2**53
"""ms; a time beyond it, or below 0, is put to the edge, so that differences stay numbers."""
_RUN: Final = r"^(.*)-\d+\.parquet$"
_OFFSET: Final = r"^/consumers/([^/]+)/offsets/([^/]+)/([0-9]{1,9})$"


class Bronze:
    """The tables as the files of a store hold them."""

    def __init__(self, spark: "SparkSession", files: dict[str, list[str]]) -> None:
        self._spark = spark
        self._files = files

    def sweeps(self) -> list[tuple[str, int]]:
        """Every run that read ends, and the latest time at which it did, in the order of those times."""
        from pyspark.sql import functions as F  # noqa: N812

        found = self._ends().groupBy("run").agg(F.max("time").alias("now")).collect()
        return sorted(((row["run"], row["now"]) for row in found), key=lambda each: each[::-1])

    def rows(self, sweeps: Sequence[tuple[str, int]]) -> "DataFrame":
        """Commits of every group, and the ends of the partitions that each has committed to, sorted for the kernel."""
        from pyspark.sql import functions as F  # noqa: N812

        commits = self._kafka().unionByName(self._zookeeper())
        numbers = self._spark.createDataFrame(
            [(run, number) for number, (run, _) in enumerate(sweeps)], "run string, place bigint")
        keys = commits.select("group", "topic", "partition").distinct()
        ends = (
            self._ends().join(F.broadcast(numbers), "run").join(keys, ["topic", "partition"])
            .withColumns({"kind": F.lit(END).cast("tinyint"), "value": F.col("end"), "writes": F.lit(None).cast("bigint")}))
        return (commits.select(*ROWS.names).unionByName(ends.select(*ROWS.names))
                .repartition("group").sortWithinPartitions(*SORTED))

    def longer_names(self) -> int:
        """Groups that are left out for their names."""
        from pyspark.sql import functions as F  # noqa: N812

        return self._table("commits").select("group").where(F.length("group") > LONGEST_NAME).distinct().count()

    def _kafka(self) -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812

        found = self._table("commits").where(F.length("group") <= LONGEST_NAME)
        return found.select(
            "group", "topic", "partition", F.lit(KAFKA).cast("tinyint").alias("kind"), F.col("log_offset").alias("place"),
            _bounded(F.coalesce("commit_time", "record_time")).alias("time"),
            F.when(F.col("offset") >= 0, F.col("offset")).alias("value"),
            F.lit(None).cast("bigint").alias("start"), F.lit(None).cast("bigint").alias("writes"))

    def _zookeeper(self) -> "DataFrame":
        """Offsets below /consumers: every write that the transaction logs tell, and the last one before each snapshot."""
        from pyspark.sql import functions as F  # noqa: N812

        nodes = self._table("znodes").select(
            "path", "data", F.col("mzxid").alias("place"), F.col("mtime").alias("time"),
            F.col("version").cast("bigint").alias("writes"))
        written = self._table("transactions").where(F.col("op").isin("create", "setData", "delete")).select(
            "path", F.when(F.col("op") != "delete", F.col("data")).alias("data"), F.col("zxid").alias("place"), "time",
            F.when(F.col("op") == "create", F.lit(0)).otherwise(F.col("version")).cast("bigint").alias("writes"))
        offsets = nodes.unionByName(written).where(F.col("path").rlike(_OFFSET)).dropDuplicates(["path", "place"])
        text = F.col("data").cast("string")
        return offsets.select(
            F.regexp_extract("path", _OFFSET, 1).alias("group"), F.regexp_extract("path", _OFFSET, 2).alias("topic"),
            F.regexp_extract("path", _OFFSET, 3).cast("int").alias("partition"),
            F.lit(ZOOKEEPER).cast("tinyint").alias("kind"), "place", _bounded(F.col("time")).alias("time"),
            F.when(text.rlike("^[0-9]{1,18}$"), text).cast("bigint").alias("value"),
            F.lit(None).cast("bigint").alias("start"), "writes").where(F.length("group") <= LONGEST_NAME)

    def _ends(self) -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812

        run = F.regexp_extract(F.col("_metadata.file_name"), _RUN, 1).alias("run")
        return self._table("ends").select("topic", "partition", "start", "end", "time", run)

    def _table(self, table: str) -> "DataFrame":
        from switchover.pipeline.bronze import rows

        return rows(self._spark, table, self._files.get(table, []))


def _bounded(time: "Column") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return F.greatest(F.least(time, F.lit(LATEST)), F.lit(0).cast("bigint"))
