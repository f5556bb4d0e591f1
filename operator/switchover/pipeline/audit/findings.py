"""What is wrong, as rows: one for each overlap, gap and loss. Built by Spark; as sentences for the few that people read."""

from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from switchover.pipeline.audit.commits import MAYBE_LATE, NAMES, SET_BACK, WHICH
from switchover.pipeline.audit.intervals import KEY, merged, overlaps
from switchover.pipeline.audit.verdict import moment, shown
from switchover.pipeline.bronze import ID
from switchover.pipeline.outcome import BadConfig, JobFailed

LONGEST = 200
"""Characters of a sentence."""
PRODUCERS, ENDS = "producers", "ends"


class Kind(StrEnum):
    """What was found."""

    TWICE = "twice"
    REWOUND = "rewound"
    GAP = "gap"
    SKIPPED = "skipped"
    DELETED = "deleted"
    LEFT = "left"
    OWNERS = "owners"


class Doubt(StrEnum):
    """Why something that was found proves nothing; as a person reads it: `_DOUBTS`."""

    LATE = "late"
    TOPIC = "topic"
    BAND = "band"
    UNREAD = "unread"


_DOUBTS = {Doubt.LATE: ", or a commit was late", Doubt.TOPIC: ", or the topic was created again",
           Doubt.BAND: ", within the guard band", Doubt.UNREAD: ", but not all of the group was read"}

COLUMNS = ("kind", "proven", "doubt", *NAMES, "start", "end", "amount", "doubled", "at", "one", "other")
"""Of a finding. `proven`: a violation, else it is undecided, and `doubt` (a Doubt) may say why. `start` to `end`: offsets,
or of OWNERS ms since the epoch; `amount`: records, or of OWNERS ms; `doubled`: of TWICE those that no other finding counts.
`at`: ms. `one`, `other`: stores, of OWNERS the owners; of LEFT `one` is the source of the records, PRODUCERS or ENDS."""


_TYPES = {"kind": "string", "proven": "boolean", "doubt": "string", "group": "string", "topic": "string", "partition": "int",
          "one": "string", "other": "string"}


def _finding(rows: DataFrame, kind: Kind, **columns: Column) -> DataFrame:
    """Rows of COLUMNS: those given, else those of the rows, else what stands for absent ones. Without a doubt proven."""
    length, nobody = f.col("end") - f.col("start"), f.lit(None)
    absent = {"amount": length, "doubled": f.lit(0), "one": nobody, "other": nobody, "doubt": nobody}
    known = {**absent, **{name: f.col(name) for name in rows.columns}, **columns, "kind": f.lit(str(kind))}
    known.setdefault("proven", known["doubt"].isNull())
    return rows.select(*(known[name].cast(_TYPES.get(name, "bigint")).alias(name) for name in COLUMNS))


def of_passes(passes: DataFrame, since: int) -> tuple[DataFrame, DataFrame]:
    """Findings of the offset axis from passes, and the gaps (WHICH, start, end, at, sure), for which there may be evidence.

    Set back and not read since, or to before the first commit that is known, shows nothing that was read twice.
    """
    checked = _checked(passes, "start", "end")
    surely = _checked(passes.drop("start", "end"), "sure_start", "sure_end")
    proven, found = _twice(surely, since, f.lit(None)), _twice(checked, since, f.lit(str(Doubt.TOPIC)))
    order = Window.partitionBy(KEY).orderBy("pass")
    unread = (f.col("start") == f.col("end")) & f.lead("pass").over(order).isNull()
    unknown = f.col("start") < f.min("start").over(order.rowsBetween(Window.unboundedPreceding, -1))
    rewound = passes.withColumn("untold", unread | unknown).where(
        f.col("untold") & f.col("cause").isin(*SET_BACK) & (f.col("began") >= since))
    set_back = _finding(rewound, Kind.REWOUND, end=f.col("was"), amount=f.col("was") - f.col("start"),
                        proven=f.lit(False), at=f.col("began"), other=f.col("store"))
    gaps = checked.where((f.col("gap") > 0) & (f.col("began") >= since) & (f.col("pass") > f.col("other.pass")))
    sure = (f.col("sure_start") == f.col("start")) & (f.col("other.sure_end") == f.col("reach"))
    twice = proven.unionByName(found.join(proven.select(KEY, "later"), [KEY, "later"], "left_anti"))
    return _finding(twice, Kind.TWICE).unionByName(set_back), gaps.select(
        *NAMES, ID, f.col("reach").alias("start"), f.col("start").alias("end"), f.col("began").alias("at"),
        f.coalesce(sure, f.lit(False)).alias("sure"))


def _checked(passes: DataFrame, start: str, end: str) -> DataFrame:
    """Passes from `start` to `end` against those before them, which are `other`."""
    about = f.struct("pass", "cause", "began", "store", "sure_end")
    spans = passes.withColumns({"start": f.col(start), "end": f.col(end)}).where("start < end")
    return overlaps(spans, [KEY], "start", "end", about)


def _twice(checked: DataFrame, since: int, doubt: Column) -> DataFrame:
    """What the later of two passes went over again, in the range; with `later`, its number."""
    own = f.struct("pass", "cause", "began", "store", "sure_end")
    after = f.col("pass") > f.col("other.pass")
    found = checked.withColumns({"last": f.when(after, own).otherwise(f.col("other")),
                                 "before": f.when(after, f.col("other")).otherwise(own)})
    return found.where((f.col("overlap") > 0) & (f.col("last.began") >= since)).select(
        KEY, *NAMES, f.col("last.pass").alias("later"), "start", (f.col("start") + f.col("overlap")).alias("end"),
        f.col("overlap").alias("amount"), "doubled", f.col("last.began").alias("at"),
        f.col("before.store").alias("one"), f.col("last.store").alias("other"),
        f.when(f.col("last.cause").isin(*MAYBE_LATE), str(Doubt.LATE)).otherwise(doubt).alias("doubt"))


def of_gaps(gaps: DataFrame) -> DataFrame:
    """Gaps of which nothing more is known."""
    return _finding(gaps, Kind.GAP, proven=f.lit(False))


def of_skipped(skipped: DataFrame) -> DataFrame:
    """Gaps in which producers say that there were records."""
    return _finding(skipped, Kind.SKIPPED, doubt=f.when(~f.col("sure"), str(Doubt.TOPIC)))


def of_deleted(deleted: DataFrame) -> DataFrame:
    """What retention took."""
    doubt = f.when(~f.col("sure"), str(Doubt.TOPIC)).when(~f.col("late"), str(Doubt.LATE))
    return _finding(deleted, Kind.DELETED, doubt=doubt)


def of_left(left: DataFrame, until: int) -> DataFrame:
    """What was not passed in the end: a violation by the producers' log, undecided by end offsets alone."""
    doubt = f.when(~f.col("sure"), str(Doubt.TOPIC))
    return _finding(left, Kind.LEFT, at=f.lit(until), doubt=doubt, proven=doubt.isNull() & (f.col("one") == PRODUCERS))


def of_what_was_read(found: DataFrame, groups: Collection[str], *, to_the_end: bool) -> DataFrame:
    """The findings, of which those of `groups`, which were not read as a whole, prove nothing; nor does, where nobody read
    `to_the_end`, what depends on no commit coming after it."""
    unread = f.col("group").isin(list(groups)) | (
        f.lit(not to_the_end) & f.col("kind").isin(str(Kind.DELETED), str(Kind.LEFT)))
    return found.withColumns({"doubt": f.when(f.col("proven") & unread, str(Doubt.UNREAD)).otherwise(f.col("doubt")),
                              "proven": f.col("proven") & ~unread})


def of_kafka_owners(owned: DataFrame, since: int, until: int) -> DataFrame:
    """Two members of Kafka's group that own a partition at once, by the order of the log. `owned` has `k`.

    What begins and ends in one millisecond is one change, such as a static member that takes the place of its predecessor.
    """
    each = merged(owned.repartition(KEY), [KEY, *NAMES, "member"], "first", "last",
                  {"began": f.min("began"), "ended": f.max("ended"), "alone": f.min("alone")})
    checked = overlaps(each, [KEY], "first", "last", f.struct("member", "began", "ended", "alone"))
    start = f.greatest("began", "other.began")
    end = f.least("ended", "other.ended", f.lit(until))
    return _finding(checked.where((f.col("overlap") > 0) & (start < end) & (end > since)), Kind.OWNERS,
                    start=start, end=end, amount=end - start, doubt=_another(), at=start,
                    one=f.col("other.member"), other=f.col("member"), doubled=f.lit(0))


def of_two_systems(consuming: DataFrame, since: int, until: int, band: int) -> DataFrame:
    """A partition owned in ZooKeeper and in Kafka at once: longer than the band is a violation. `consuming` has `k`."""
    each = merged(within(consuming, since, until).repartition(KEY), [KEY, *NAMES, "store"], "began", "ended",
                  {"who": f.min("who"), "alone": f.min("alone")})
    checked = overlaps(each, [KEY], "began", "ended", f.struct("store", "who", "alone"))
    began, length = f.col("began"), f.col("overlap")
    return _finding(checked.where("overlap > 0"), Kind.OWNERS, start=began, end=began + length, amount=length,
                    doubt=f.when(length <= band, str(Doubt.BAND)).otherwise(_another()), at=began, one=f.col("other.who"),
                    other=f.col("who"), doubled=f.lit(0))


def _another() -> Column:
    """A doubt where one of two owners may own another topic of that name."""
    return f.when(~(f.col("alone") & f.col("other.alone")), str(Doubt.TOPIC))


def hand_overs(owned: DataFrame, since: int, until: int) -> DataFrame:
    """NAMES, start, end (ms): when nobody owned a partition between two owners. Information, no finding. `owned` has `k`."""
    alone = merged(within(owned, since, until).repartition(KEY), [KEY, *NAMES], "began", "ended")
    return overlaps(alone, [KEY], "began", "ended").where("gap > 0").select(
        *NAMES, f.col("reach").alias("start"), f.col("began").alias("end"))


def within(owned: DataFrame, since: int, until: int) -> DataFrame:
    """Intervals of time cut to the range."""
    return (owned.withColumn("began", f.greatest("began", f.lit(since).cast("long")))
            .withColumn("ended", f.least("ended", f.lit(until).cast("long"))).where("began < ended"))


def sentence(row: Any) -> str:
    """A finding (a row of COLUMNS) as a sentence of at most LONGEST characters; the names shrink first."""
    for longest in (60, 30, 16, 8):
        text = _sentence(row, longest)
        if len(text) <= LONGEST:
            return text
    return text[:LONGEST - 1] + "…"


def _sentence(row: Any, longest: int) -> str:
    where = f"{shown(row['group'], longest)} {shown(row['topic'], longest)}-{row['partition']}"
    at = moment(row["at"]) if row["at"] is not None else ""
    span = f"[{row['start']}, {row['end']})"
    one, other = shown(row["one"], longest), shown(row["other"], longest)
    across = f" ({one}, then {other})" if row["one"] != row["other"] else ""
    doubt = _DOUBTS[Doubt(row["doubt"])] if row["doubt"] is not None else ""
    match Kind(row["kind"]):
        case Kind.TWICE:
            return f"{where}: {row['amount']} records {span} consumed twice from {at} on{across}{doubt}"
        case Kind.REWOUND:
            return f"{where}: set back from {row['end']} to {row['start']} at {at}; whether it was read twice is not known"
        case Kind.GAP:
            return f"{where}: nobody's commits cover {span}, passed over at {at}; whether records were there is not known"
        case Kind.SKIPPED:
            return f"{where}: {row['amount']} acknowledged records of {span} passed over at {at}{doubt}"
        case Kind.DELETED:
            return f"{where}: {row['amount']} records {span} deleted by retention before they were consumed, by {at}{doubt}"
        case Kind.LEFT:
            kind = "acknowledged records" if row["one"] == PRODUCERS else "offsets"
            return f"{where}: {row['amount']} {kind} of {span} not consumed by {at}{doubt}"
        case Kind.OWNERS:
            return f"{where}: owned by {one} and by {other} at once for {row['amount']} ms from {at}{doubt}"


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
    """What drained groups have not passed: NAMES, start, end, amount (records), sure, one (the source of the records).

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
