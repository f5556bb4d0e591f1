"""Half-open intervals of integers in Spark: merged by owner, and checked for what is covered twice or not at all.

By a running maximum over the intervals of a key in the order of their starts: one shuffle, one sort, O(1) state for each
key, where a self-join would build all pairs. Comparing with the predecessor alone is wrong for nested intervals.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

KEY = "k"
"""The column of `hashed`."""


def hashed(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """With 64 bits of the names as `k`: a grouping by them costs half of one by strings."""
    return rows.withColumn(KEY, f.xxhash64(*names))


def collisions(rows: DataFrame, names: Sequence[str]) -> int:
    """Values of `k` that stand for more than one key: these must be none, or a gap may be hidden and an overlap feigned."""
    name = f.struct(*names)
    clashing = rows.groupBy(KEY).agg((f.min(name) != f.max(name)).alias("clash")).where("clash")
    return clashing.count()


def merged(intervals: DataFrame, owner: Sequence[str], start: str, end: str,
           further: Mapping[str, Column] | None = None) -> DataFrame:
    """Touching and overlapping intervals of one owner (all of these columns) as one. `further`: further aggregates of it."""
    in_order = Window.partitionBy(*owner).orderBy(start, end)
    reach = f.max(end).over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    begins = f.when(reach >= f.col(start), 0).otherwise(1)
    island = f.sum("begins").over(in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    aggregates = {start: f.min(start), end: f.max(end), **(further or {})}
    return (intervals.withColumn("begins", begins).withColumn("island", island).groupBy(*owner, "island")
            .agg(*(column.alias(name) for name, column in aggregates.items())).drop("island"))


def overlaps(intervals: DataFrame, key: Sequence[str], start: str, end: str, holder: Column | None = None) -> DataFrame:
    """Each interval against those of its key that start before it (at the same start: end before it).

    `reach`    how far these go; null for the first
    `overlap`  how much of this one they cover; summed up, what three cover counts twice
    `doubled`  how much of it is covered twice by this interval for the first time; the sum is the length of all that is
    `gap`      how much before it none of them covers
    `other`    with `holder`: its value for the one that reaches farthest

    Empty intervals (start = end) must be left out.
    """
    earlier = Window.partitionBy(*key).orderBy(start, end).rowsBetween(Window.unboundedPreceding, -1)
    begin, none = f.col(start), f.lit(0).cast("long")
    if holder is None:
        rows = intervals.withColumn("reach", f.max(end).over(earlier))
    else:
        farthest = f.max(f.struct(f.col(end).alias("reach"), holder.alias("other"))).over(earlier)
        rows = intervals.withColumn("farthest", farthest).withColumns(
            {"reach": f.col("farthest.reach"), "other": f.col("farthest.other")}).drop("farthest")
    shared = f.least(end, f.coalesce("reach", begin))
    rows = rows.withColumn("shared", shared).withColumn("before", f.max("shared").over(earlier))
    return rows.withColumns({
        "overlap": f.greatest(f.col("shared") - begin, none),
        "doubled": f.greatest(f.col("shared") - f.greatest(begin, f.coalesce("before", begin)), none),
        "gap": f.greatest(begin - f.coalesce("reach", begin), none),
    }).drop("shared", "before")
