"""The offset axis: what a group consumed according to its commits, in both stores, as passes over each partition.

A commit of C after one of B says that the group has passed [B, C). Commits are ordered within their store by what the store
itself counts (offset in the log, zxid), and between the stores by time, which gives no order within the guard band:

* What stands in both stores within the band is one commit (members that write both), and counts once, where it came first.
* A commit below the one before it begins a new pass, whose overlap with the others was consumed twice. Where the one before
  it stands in the other store, and that store got past it within the band only, it may as well have been late (`close`).
* A commit below one before it in Kafka may be an older one that its client sent again, after newer ones (`resent`):
  librdkafka has several under way, and keeps those that a coordinator on the move did not take. Kafka takes commits of
  members alone while a group has any, so nobody else committed; where nobody owned the partition, there were two.
* A commit that goes on in its own store where that had got to, is a step of that store alone: members of both worlds who
  commit in turn are distinguished by it (`own`).
* A commit that goes on in one store from elsewhere than where the other has got to (`seam`) leaves open who consumed what
  lies between. It begins a new pass at its own offset.
* After a tombstone the position is not known; the next commit begins a new pass.

All of that is within one topic (`WHICH`): one that was deleted and created again is another. An event of which nobody knows
what topic it is about (not `sure`) is looked at with each that it may be about, and proves nothing.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from switchover.coordination.layout import CONSUMERS
from switchover.pipeline.audit.intervals import KEY
from switchover.pipeline.bronze import ID

NAMES = ("group", "topic", "partition")
WHICH = (*NAMES, ID)
"""What is hashed to `k`."""
KAFKA, ZOOKEEPER = "kafka", "zookeeper"
FIRST, TOMBSTONE, REWIND, CLOSE, RESENT, OWN, SEAM = "first", "tombstone", "rewind", "close", "resent", "own", "seam"
"""Why a pass begins."""
SET_BACK, MAYBE_LATE = (REWIND, CLOSE, RESENT), (CLOSE, RESENT)
"""Of these: by a commit below the one before; by one that proves nothing, as it may be of a time before that one."""
RESENT_MS = 60_000
"""How old a commit may be that a client sends again: what has no answer for so long it gives up (`socket.timeout.ms` of
librdkafka; Java's `request.timeout.ms` is 30 s)."""
_DIGITS = r"\A[0-9]{1,19}\z"


def in_kafka(commits: DataFrame) -> DataFrame:
    """Rows of COMMITS as events: WHICH, store, offset (null: a tombstone), time, place and sub (the order in the store).

    The id is the commit's own, null where it has none.
    """
    return commits.where("offset is null or offset >= 0").select(
        *WHICH, f.lit(KAFKA).alias("store"), "offset", f.col("record_time").alias("time"),
        f.col("log_offset").alias("place"), f.lit(0).alias("sub"))


def in_zookeeper(transactions: DataFrame, znodes: DataFrame) -> DataFrame:
    """Events of `/consumers/GROUP/offsets/TOPIC/PARTITION`. A write that was polled and is in the logs too is one event.

    Data that is no offset is left out, as is what lies elsewhere.
    """
    deleted = f.col("op").isin("delete", "closeSession")
    logged = transactions.where(f.col("path").startswith(f"{CONSUMERS}/")).select(
        "path", f.when(~deleted, f.col("data")).alias("data"), deleted.alias("deleted"), "time",
        f.col("zxid").alias("place"), f.col("index").alias("sub"))
    polled = znodes.select(
        "path", "data", f.lit(False).alias("deleted"), f.col("mtime").alias("time"),
        f.col("mzxid").alias("place"), f.lit(0).alias("sub"))
    parts = f.split("path", "/")
    offset = digits(f.col("data").cast("string"), "bigint")
    return (logged.unionByName(polled).where((f.size(parts) == 6) & (parts[3] == "offsets"))
            .select(parts[2].alias("group"), parts[4].alias("topic"), digits(parts[5], "int").alias("partition"),
                    f.lit(None).cast("string").alias(ID), f.lit(ZOOKEEPER).alias("store"), offset.alias("offset"), "time",
                    "place", "sub", "deleted")
            .where("partition is not null and (offset is not null or deleted)").drop("deleted")
            .dropDuplicates([*NAMES, "place"]))


def digits(text: Column, kind: str) -> Column:
    """Decimal text as a number, null for anything else."""
    return f.when(text.rlike(_DIGITS), text.try_cast(kind))


def steps(events: DataFrame, band: int, *, two_stores: bool) -> DataFrame:
    """The events, hashed by `k`, in one order, each with the one before it.

    Adds `at` (time that never goes back within a store), `n` (place in the order), `before` (struct store, offset, at of
    the event before; null for the first), and where a pass begins `cause`, `start`, and `sure_start`, the same where it is
    sure. Copies of the other store's commits are left out, and tombstones in a store that was not the last to commit.
    """
    own = Window.partitionBy(KEY, "store").orderBy("place", "sub")
    passed = own.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    if two_stores:
        events = events.repartition(KEY)
    events = events.withColumn("at", f.max("time").over(passed))
    long_ago = Window.partitionBy(KEY, "store").orderBy("at").rangeBetween(Window.unboundedPreceding, -RESENT_MS - 1)
    events = events.withColumn("stood", f.max_by("offset", "place").over(long_ago))
    order: Sequence[str] = ("place", "sub")
    if two_stores:
        order = ("at", "store", "place", "sub")
        earlier = own.rowsBetween(Window.unboundedPreceding, -1)
        events = events.withColumns({"from": f.max_by("offset", "place").over(earlier),
                                     "from_sure": f.max_by("sure", "place").over(earlier)})
        events = _without_copies(_with_settled(events, band), band)
        at_once = Window.partitionBy(KEY).orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)
        last = f.last(f.when(f.col("offset").isNotNull(), f.col("store")), ignorenulls=True).over(at_once)
        events = events.withColumn("last", last).where("offset is not null or store = last").drop("last")
    else:
        nothing = f.lit(None).cast("long")
        events = events.withColumns({"from": nothing, "from_sure": f.lit(None).cast("boolean"), "settled": nothing})
    in_order = Window.partitionBy(KEY).orderBy(*order)
    events = events.withColumns({
        "before": f.lag(f.struct("store", "offset", "at")).over(in_order), "n": f.row_number().over(in_order)})
    goes_on = ((f.col("before.store") != f.col("store")) & (f.col("from") <= f.col("offset"))
               & f.col("cause").isin(REWIND, CLOSE, OWN))
    start = f.when(goes_on, f.col("from")).otherwise(f.col("offset"))
    sure = f.when(f.col("sure"), f.when(goes_on & f.col("from_sure"), f.col("from")).otherwise(f.col("offset")))
    return (events.withColumn("cause", _cause()).withColumns({"start": start, "sure_start": sure})
            .drop("from", "from_sure", "settled", "stood"))


def _without_copies(events: DataFrame, band: int) -> DataFrame:
    """Of the same offset in both stores within the band the first remains; at the same time ZooKeeper's, written first."""
    same = Window.partitionBy(KEY, "offset").orderBy("at").rangeBetween(-band, Window.currentRow)
    others = {store: f.max(f.when(f.col("store") == store, f.col("at"))).over(same) for store in (KAFKA, ZOOKEEPER)}
    copy = f.when(f.col("store") == KAFKA, f.col("of_zookeeper").isNotNull()).otherwise(
        f.coalesce(f.col("of_kafka") < f.col("at"), f.lit(False)))
    return (events.withColumns({f"of_{store}": column for store, column in others.items()})
            .where(f.col("offset").isNull() | ~copy).drop("of_kafka", "of_zookeeper"))


def _with_settled(events: DataFrame, band: int) -> DataFrame:
    """With `settled`, the offset of the other store longer ago than the band."""
    ago = Window.partitionBy(KEY).orderBy("at").rangeBetween(Window.unboundedPreceding, -band - 1)
    of = {store: f.max_by(f.when(f.col("store") == store, f.col("offset")),
                            f.when(f.col("store") == store, f.struct("at", "place"))).over(ago)
          for store in (KAFKA, ZOOKEEPER)}
    return events.withColumn("settled", f.when(f.col("store") == KAFKA, of[ZOOKEEPER]).otherwise(of[KAFKA]))


def _cause() -> Column:
    offset, before = f.col("offset"), f.col("before")
    across = before["store"] != f.col("store")
    ahead = across & (offset > before["offset"])
    own = f.col("from")
    below = (f.when(across & ~f.coalesce(f.col("settled") > offset, f.lit(False)), CLOSE)
             .when(~across & (f.col("store") == KAFKA) & ~f.coalesce(f.col("stood") > offset, f.lit(False)), RESENT)
             .otherwise(REWIND))
    return (f.when(offset.isNull(), None)
            .when(before.isNull(), FIRST)
            .when(before["offset"].isNull(), TOMBSTONE)
            .when(offset < before["offset"], below)
            .when(ahead & (own > before["offset"]), f.when(own <= offset, OWN).otherwise(REWIND))
            .when(ahead & (own.isNull() | (own < before["offset"])), SEAM))


def passes(ordered: DataFrame) -> DataFrame:
    """Passes over a partition: k, WHICH, pass (1, 2, …), cause, was, start, end, sure_start, sure_end, began, ended, store,
    place.

    `was` is the offset before it, `began` and `ended` are ms, `place` that of its first commit in its store; start = end
    where nothing was read after that commit. `sure_start` to `sure_end` is what lies between commits that are known to be
    about this topic; null without any.
    """
    counted = Window.partitionBy(KEY).orderBy("n").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    first = f.min(f.struct("n", "cause", f.col("before.offset").alias("was"), "at", "store", "place", "start", "sure_start"))
    sure = f.when(f.col("sure"), f.col("offset"))
    return (ordered.withColumn("pass", f.count("cause").over(counted)).where("offset is not null")
            .groupBy(KEY, "pass")
            .agg(*(f.first(name).alias(name) for name in WHICH), first.alias("first"),
                 f.max("offset").alias("end"), f.max("at").alias("ended"),
                 f.min(sure).alias("least"), f.max(sure).alias("sure_end"))
            .select(KEY, *WHICH, "pass", "first.cause", "first.was", "first.start", "end",
                    f.least("first.sure_start", "least").alias("sure_start"), "sure_end",
                    f.col("first.at").alias("began"),
                    "ended", "first.store", "first.place"))


def of_members(passes: DataFrame, owned: DataFrame) -> DataFrame:
    """The passes, of which only those of a member are RESENT; the others are REWIND.

    `owned`: NAMES, first, last (places): whoever has a partition of that name is a member, whatever topic it was then.
    """
    members = (passes.where(f.col("cause") == RESENT).join(owned.select(*NAMES, "first", "last"), list(NAMES))
               .where((f.col("first") <= f.col("place")) & (f.col("place") < f.col("last")))
               .select(KEY, "pass", f.lit(True).alias("member")).distinct())
    alone = (f.col("cause") == RESENT) & f.col("member").isNull()
    return (passes.join(members, [KEY, "pass"], "left")
            .withColumn("cause", f.when(alone, REWIND).otherwise(f.col("cause"))).drop("member"))
