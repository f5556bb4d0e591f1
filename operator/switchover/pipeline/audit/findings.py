"""What is wrong, as rows: one for each overlap, gap, loss. Built by Spark; in words for the few that people read."""

from enum import StrEnum
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from switchover.pipeline.audit.commits import MAYBE_LATE, NAMES, SET_BACK
from switchover.pipeline.audit.coverage import moment, shown
from switchover.pipeline.audit.intervals import KEY, merged, overlaps

LONGEST = 200
"""Characters of a sentence."""


class Kind(StrEnum):
    """What was found."""

    TWICE = "twice"
    REWOUND = "rewound"
    GAP = "gap"
    SKIPPED = "skipped"
    DELETED = "deleted"
    LEFT = "left"
    OWNERS = "owners"


COLUMNS = ("kind", "proven", *NAMES, "start", "end", "amount", "doubled", "at", "one", "other")
"""Of a finding. `proven`: a violation, else it is undecided. `start` to `end`: offsets, or of OWNERS ms since the epoch;
`amount`: records, or of OWNERS ms; `doubled`: of TWICE those that no other finding counts. `at`: ms. `one`, `other`: stores,
or of OWNERS the owners."""


_TYPES = {"kind": "string", "proven": "boolean", "group": "string", "topic": "string", "partition": "int", "one": "string",
          "other": "string"}


def _finding(rows: DataFrame, kind: Kind, **columns: Column) -> DataFrame:
    """Rows of COLUMNS: those given, else those of the rows, else what stands for absent ones."""
    length, nobody = f.col("end") - f.col("start"), f.lit(None)
    absent = {"amount": length, "doubled": f.lit(0), "one": nobody, "other": nobody}
    known = {**absent, **{name: f.col(name) for name in rows.columns}, **columns, "kind": f.lit(str(kind))}
    return rows.select(*(known[name].cast(_TYPES.get(name, "bigint")).alias(name) for name in COLUMNS))


def of_passes(passes: DataFrame, since: int) -> tuple[DataFrame, DataFrame]:
    """Findings of the offset axis from passes, and the gaps (NAMES, start, end, at), for which there may be evidence.

    Set back and not read since, or to before the first commit that is known, tells of nothing that was read twice.
    """
    told = f.struct("pass", "cause", "began", "store")
    checked = overlaps(passes.where("start < end"), [KEY], "start", "end", told)
    later = f.when(f.col("pass") > f.col("other.pass"), told).otherwise(f.col("other"))
    earlier = f.when(f.col("pass") > f.col("other.pass"), f.col("other")).otherwise(told)
    checked = checked.withColumns({"later": later, "earlier": earlier})
    twice = _finding(
        checked.where((f.col("overlap") > 0) & (f.col("later.began") >= since)), Kind.TWICE,
        end=f.col("start") + f.col("overlap"), amount=f.col("overlap"), proven=~f.col("later.cause").isin(*MAYBE_LATE),
        at=f.col("later.began"), one=f.col("earlier.store"), other=f.col("later.store"))
    order = Window.partitionBy(KEY).orderBy("pass")
    unread = (f.col("start") == f.col("end")) & f.lead("pass").over(order).isNull()
    unknown = f.col("start") < f.min("start").over(order.rowsBetween(Window.unboundedPreceding, -1))
    rewound = passes.withColumn("untold", unread | unknown).where(
        f.col("untold") & f.col("cause").isin(*SET_BACK) & (f.col("began") >= since))
    set_back = _finding(rewound, Kind.REWOUND, end=f.col("was"), amount=f.col("was") - f.col("start"),
                        proven=f.lit(False), at=f.col("began"), other=f.col("store"))
    gaps = checked.where((f.col("gap") > 0) & (f.col("began") >= since) & (f.col("pass") > f.col("other.pass")))
    return twice.unionByName(set_back), gaps.select(
        *NAMES, f.col("reach").alias("start"), f.col("start").alias("end"), f.col("began").alias("at"))


def of_gaps(gaps: DataFrame) -> DataFrame:
    """Gaps of which nothing more is known."""
    return _finding(gaps, Kind.GAP, proven=f.lit(False))


def of_skipped(skipped: DataFrame) -> DataFrame:
    """Gaps in which producers say that there were records."""
    return _finding(skipped, Kind.SKIPPED, proven=f.lit(True))


def of_deleted(deleted: DataFrame) -> DataFrame:
    """What retention took."""
    return _finding(deleted, Kind.DELETED)


def of_left(left: DataFrame, until: int) -> DataFrame:
    """What was not passed in the end."""
    return _finding(left, Kind.LEFT, at=f.lit(until))


def of_kafka_owners(owned: DataFrame, since: int, until: int) -> DataFrame:
    """Two members of Kafka's group that own a partition at once, by the order of the log. `owned` has `k`.

    What begins and ends in one millisecond is one change, such as a static member that takes the place of its predecessor.
    """
    alone = merged(owned.repartition(KEY), [KEY, *NAMES, "member"], "first", "last",
                   {"began": f.min("began"), "ended": f.max("ended")})
    checked = overlaps(alone, [KEY], "first", "last", f.struct("member", "began", "ended"))
    start = f.greatest("began", "other.began")
    end = f.least("ended", "other.ended", f.lit(until))
    return _finding(checked.where((f.col("overlap") > 0) & (start < end) & (end > since)), Kind.OWNERS,
                    start=start, end=end, amount=end - start, proven=f.lit(True), at=start,
                    one=f.col("other.member"), other=f.col("member"), doubled=f.lit(0))


def of_two_systems(consuming: DataFrame, since: int, until: int, band: int) -> DataFrame:
    """A partition owned in ZooKeeper and in Kafka at once: longer than the band is a violation. `consuming` has `k`."""
    alone = merged(within(consuming, since, until).repartition(KEY), [KEY, *NAMES, "store"], "began", "ended",
                   {"who": f.min("who")})
    checked = overlaps(alone, [KEY], "began", "ended", f.struct("store", "who"))
    began, length = f.col("began"), f.col("overlap")
    return _finding(checked.where("overlap > 0"), Kind.OWNERS, start=began, end=began + length, amount=length,
                    proven=length > band, at=began, one=f.col("other.who"), other=f.col("who"), doubled=f.lit(0))


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
    """A finding (a row of COLUMNS) in words of at most LONGEST characters; the names shrink first."""
    for longest in (60, 30, 16, 8):
        words = _words(row, longest)
        if len(words) <= LONGEST:
            return words
    return words[:LONGEST - 1] + "…"


def _words(row: Any, longest: int) -> str:
    where = f"{shown(row['group'], longest)} {shown(row['topic'], longest)}-{row['partition']}"
    at = moment(row["at"]) if row["at"] is not None else ""
    span = f"[{row['start']}, {row['end']})"
    one, other = shown(row["one"], longest), shown(row["other"], longest)
    across = f" ({one}, then {other})" if row["one"] != row["other"] else ""
    match Kind(row["kind"]):
        case Kind.TWICE:
            doubt = "" if row["proven"] else ", or a commit was late"
            return f"{where}: {row['amount']} records {span} consumed twice from {at} on{across}{doubt}"
        case Kind.REWOUND:
            return f"{where}: set back from {row['end']} to {row['start']} at {at}; whether it was read twice is not known"
        case Kind.GAP:
            return f"{where}: nobody's commits cover {span}, passed over at {at}; whether records were there is not known"
        case Kind.SKIPPED:
            return f"{where}: {row['amount']} acknowledged records of {span} passed over at {at}"
        case Kind.DELETED:
            doubt = "" if row["proven"] else ", or committed late"
            return f"{where}: {row['amount']} records {span} deleted by retention before they were consumed, by {at}{doubt}"
        case Kind.LEFT:
            kind = "acknowledged records" if row["proven"] else "offsets"
            return f"{where}: {row['amount']} {kind} of {span} not consumed by {at}"
        case Kind.OWNERS:
            doubt = "" if row["proven"] else ", within the guard band"
            return f"{where}: owned by {one} and by {other} at once for {row['amount']} ms from {at}{doubt}"
