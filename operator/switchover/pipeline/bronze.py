"""What captures have filed, as Spark reads it, and which topic a name stood for, and when.

One that was deleted and created again under its name is another topic. A commit of a newer Kafka has its topic's id. For
the rest captures say, which see every topic with its id: between two sightings of one id the name stood for that topic and
for no other. Between sightings of different ids nobody knows for which, nor before the first one.
(docs/facts/spark.md#topics-that-are-created-again)
"""

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from switchover.pipeline.tables import SCHEMAS

if TYPE_CHECKING:
    from switchover.pipeline.store import Store


def read(spark: SparkSession, store: "Store", table: str) -> DataFrame:
    """A table in full: what was before the range is needed too, to know where a group stood. Raises JobFailed."""
    return rows(spark, table, store.files(table))


def newest(spark: SparkSession, store: "Store", table: str) -> DataFrame:
    """What the last capture found, where each captures all there is: what is gone is not in it. Raises JobFailed."""
    return rows(spark, table, store.newest(table))


def rows(spark: SparkSession, table: str, files: list[str]) -> DataFrame:
    """What these files hold of a table; empty without any."""
    schema = from_arrow_schema(SCHEMAS[table])
    assert isinstance(schema, StructType)
    return spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)


ID = "topic_id"
BAND_MS = 5000
"""By how much the clocks of brokers and of captures may differ, where nobody says."""
_EVER = 2**62
_NEVER = -_EVER


def lives(topics: DataFrame, band: int = BAND_MS) -> DataFrame:
    """topic, lives: rows of TOPICS as an array of struct first, topic_id, from, sure_from, sure_to, to (ms), oldest first.

    The name may have stood for that topic within (from, to], and stood for it within [sure_from, sure_to]. All commits that
    were captured are older than the last sighting: a capture looks at the topics after it has read them.
    """
    newest = topics.agg(f.max("time").alias("newest"))
    seen = (topics.where("topic_id is not null").groupBy("topic", ID)
            .agg(f.min("time").alias("first"), f.max("time").alias("last")).crossJoin(f.broadcast(newest))
            .withColumns({"sure_from": f.col("first") + band,
                          "sure_to": f.when(f.col("last") == f.col("newest"), _EVER).otherwise(f.col("last") - band)}))
    in_order = Window.partitionBy("topic").orderBy("first")
    each = seen.withColumns({"from": f.coalesce(f.lag("sure_to").over(in_order), f.lit(_NEVER)),
                             "to": f.coalesce(f.lead("sure_from").over(in_order), f.lit(_EVER))})
    life = f.struct("first", ID, "from", "sure_from", "sure_to", "to")
    return each.groupBy("topic").agg(f.sort_array(f.collect_list(life)).alias("lives"))


def identified(rows: DataFrame, lives: DataFrame, began: Column, ended: Column) -> DataFrame:
    """Each row (of a `topic`, perhaps with its own `topic_id`) once for every topic that it may mean over [began, ended] ms.

    Adds `topic_id` (null: none is known), `sure`: it is that one, and `alone`: as far as is known, no other may be.
    """
    own = f.struct(f.col(ID).alias("id"), f.lit(True).alias("sure"), f.lit(True).alias("alone"))
    may = f.filter("lives", lambda each: (each["from"] < ended) & (began <= each["to"]))
    by_captures = f.transform(may, lambda each: f.struct(
        each[ID].alias("id"), ((each["sure_from"] <= began) & (ended <= each["sure_to"])).alias("sure"),
        (f.size(may) == 1).alias("alone")))
    about = f.explode_outer(f.when(f.col(ID).isNotNull(), f.array(own)).otherwise(by_captures))
    return (rows.join(f.broadcast(lives), "topic", "left").withColumn("about", about)
            .withColumns({ID: f.col("about.id"), "sure": f.coalesce("about.sure", f.lit(False)),
                          "alone": f.coalesce("about.alone", f.lit(True))}).drop("about", "lives"))


def now(lives: DataFrame) -> DataFrame:
    """topic, now, only: the id that each name has in the end, and whether it is the only one ever seen."""
    return lives.select("topic", f.element_at("lives", -1)[ID].alias("now"), (f.size("lives") == 1).alias("only"))


def of_today(rows: DataFrame, lives: DataFrame, time: Column, own: Column | None = None, *,
             band: int = BAND_MS) -> DataFrame:
    """With `current`: the row is about the topic that its name stands for in the end.

    It is not where several topics had the name and nobody knows which of them is meant. Where no id is known, every row is.
    """
    last = f.element_at("lives", -1)
    by_captures = (f.size("lives") == 1) | (last["first"] + band <= time)
    by_id = by_captures if own is None else f.when(own.isNotNull(), own == last[ID]).otherwise(by_captures)
    current = f.when(f.col("lives").isNull(), True).otherwise(f.coalesce(by_id, f.lit(False)))
    return rows.join(f.broadcast(lives), "topic", "left").withColumn("current", current).drop("lives")
