"""audit: the job."""

import time
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from switchover.pipeline.audit import commits, findings, ownership, verdict
from switchover.pipeline.audit.commits import NAMES, WHICH
from switchover.pipeline.audit.intervals import collisions, hashed
from switchover.pipeline.audit.verdict import SHOWN, Activity, Report
from switchover.pipeline.bronze import ID, identified, lives, now, read
from switchover.pipeline.config import AuditSettings, Config
from switchover.pipeline.outcome import EVERY_SECONDS, BadConfig, Outcome, Progress
from switchover.pipeline.session import session
from switchover.pipeline.store import Store

EVIDENCE, HAND_OVERS, REPORT = "evidence.parquet", "hand_overs.parquet", "report.txt"
"""What a run leaves."""
LOG = 2**40
"""More records than any log has."""


@dataclass(frozen=True, slots=True)
class Range:
    """What is judged: times in [since, until), ms."""

    since: int
    until: int
    band: int


def run(config: Config, progress: Progress) -> Outcome:
    """Judge the configured groups and leave the evidence. Raises JobFailed."""
    settings = config.audit
    if settings is None:
        raise BadConfig("audit: which groups, and since when? Give audit.groups and audit.since")
    now = int(time.time() * 1000)
    until = now if settings.until is None else settings.until
    if not settings.since < until <= now:
        raise BadConfig(f"audit: {verdict.moment(settings.since)} until {verdict.moment(until)} is not in the past")
    if settings.capture:
        once = config.capture.model_copy(update={"mode": "Once"})
        import_module("switchover.pipeline.capture.job").run(config.model_copy(update={"capture": once}), progress)
    store = Store(config.store, config.cluster)
    if not settings.capture:
        _await_capture(store, until, settings.wait_seconds, progress)
    spark = session(config.spark, "audit")
    report = judge(spark, store, settings, Range(settings.since, until, settings.guard_band_ms), progress)
    return Outcome(report.rows, report.summary(), report.verdict, report.evidence())


def _await_capture(store: Store, until: int, seconds: int, progress: Progress) -> None:
    """Until one has begun at or after `until`, or the time is over: what is missing then is a doubt of the verdict."""
    deadline, said = time.monotonic() + seconds, float("-inf")
    while not any(each.began >= until for each in store.manifests()) and time.monotonic() < deadline:
        if time.monotonic() - said >= EVERY_SECONDS:
            progress.say(f"waiting for a capture that begins at {verdict.moment(until)} or later")
            said = time.monotonic()
        time.sleep(0.5)


def judge(spark: SparkSession, store: Store, settings: AuditSettings, span: Range, progress: Progress) -> Report:
    """The report, and its files in the store."""
    bronze = _Bronze(spark, store, settings, span)
    with progress.of(spark, "looking what was captured"):
        activity = bronze.activity(span.since)
        two_stores = any(each.ever_in_zookeeper for each in activity.values())
    missing = verdict.missing(bronze.manifests, span.since, span.until, [group.name for group in settings.groups], activity)
    manifest: dict[str, object] = {}
    with store.results("audit", manifest) as directory:
        found, gaps_of_time, clashes = _found(bronze, settings, span, two_stores)
        mixed = [group.name for group in settings.groups] if clashes else []
        found = findings.of_what_was_read(found, [*missing.groups, *mixed], to_the_end=missing.to_the_end)
        with progress.of(spark, "looking for overlaps, gaps and losses"):
            found.write.parquet(str(directory / EVIDENCE))
            gaps_of_time.write.parquet(str(directory / HAND_OVERS))
        report = _report(spark, directory, store, settings, span, activity, clashes, missing.doubts)
        (directory / REPORT).write_text(report.text(), encoding="utf-8")
        manifest.update(report.manifest())
    progress.say(f"{report.verdict}: {'; '.join(report.evidence()[:1]) or 'nothing found'}")
    return report


class _Bronze:
    """The rows that concern the groups, up to the end of the range."""

    def __init__(self, spark: SparkSession, store: Store, settings: AuditSettings, span: Range) -> None:
        groups, until = [group.name for group in settings.groups], span.until
        ours = f.col("group").isin(groups)
        self._topics = settings.topics
        self.manifests = store.manifests()
        transactions = read(spark, store, "transactions").where(f.col("time") < until)
        znodes = read(spark, store, "znodes").where(f.col("ctime") < until)
        named = f.split("path", "/")[2].isin(groups)
        self.transactions, self.znodes = transactions.where(named), znodes.where(named)
        topics = read(spark, store, "topics")
        self.lives = lives(topics, span.band).cache()
        self.ends = self._of_topics(read(spark, store, "ends"))
        written = self._in_order(read(spark, store, "commits"), "commits").where(ours)
        in_zookeeper = commits.in_zookeeper(self.transactions, self.znodes)
        self._written = self._of_topics(commits.in_kafka(written).unionByName(in_zookeeper)).where(f.col("time") < until)
        self.events = self._hashed(self._written, f.col("time"), f.col("time"))
        records = self._in_order(read(spark, store, "ownership"), "ownership")
        self._records = records.where(ours & (f.col("time") < until))
        self._log = written.select("group", "log_partition").unionByName(self._records.select("group", "log_partition"))
        began, ended = verdict.around(self.manifests, span.since, until)
        self._described = read(spark, store, "groups").where(ours & f.col("time").between(began, ended))
        self.kafka_owned = self._of_topics(ownership.in_kafka(
            self._records, topics.select("topic", ID).unionByName(written.select("topic", ID))))
        polls = [each.began for each in self.manifests if any(file.table == "znodes" for file in each.files)]
        self.zookeeper_owned = self._of_topics(
            ownership.in_zookeeper(self.transactions, self.znodes, max(polls, default=0)))

    def _in_order(self, rows: DataFrame, table: str) -> DataFrame:
        """With a `log_offset` that is larger in a later log of the same partition than in any before it."""
        again = verdict.begun_again(self.manifests)
        files = [(Path(file.path).name, each.number) for each in self.manifests
                 for file in each.files if file.table == table]
        if not again or not files:
            return rows
        numbers = f.broadcast(rows.sparkSession.createDataFrame(files, "file string, number int"))
        logs = [f.when((f.col("log_partition") == partition) & (f.col("number") >= number), LOG).otherwise(0)
                for partition, found in again.items() for number in found]
        named = rows.withColumn("file", f.col("_metadata.file_name"))
        return (named.join(numbers, "file").withColumn("log_offset", reduce(Column.__add__, logs, f.col("log_offset")))
                .drop("file", "number"))

    def _of_topics(self, rows: DataFrame) -> DataFrame:
        return rows.where(f.col("topic").isin(list(self._topics))) if self._topics else rows

    def _hashed(self, rows: DataFrame, began: Column, ended: Column) -> DataFrame:
        return hashed(identified(rows, self.lives, began, ended), WHICH)

    def owned(self, rows: DataFrame) -> DataFrame:
        """Intervals of owners, with `k`, for each topic that they may be about."""
        return self._hashed(rows, f.col("began"), f.col("ended"))

    def known_ends(self) -> DataFrame:
        """ENDS for each topic that they may be about."""
        nobody = self.ends.withColumn(ID, f.lit(None).cast("string"))
        return identified(nobody, self.lives, f.col("time"), f.col("time"))

    def activity(self, since: int) -> dict[str, Activity]:
        """By group."""
        late = f.col("time") >= since
        in_zookeeper = f.col("store") == commits.ZOOKEEPER
        written = self._written.groupBy("group").agg(
            f.count("offset").alias("commits"), f.count_if(late & f.col("offset").isNotNull()).alias("in_range"),
            f.count_if(in_zookeeper & late).alias("in_zookeeper"), f.count_if(in_zookeeper).alias("ever_in_zookeeper"),
            f.count_if(~in_zookeeper).alias("in_kafka"))
        owned = self.zookeeper_owned.groupBy("group").agg(f.count_if(f.col("ended") > since).alias("owned"))
        unread = ownership.unread(self._records).groupBy("group").agg(
            f.count_if(f.col("ended") > since).alias("unread"))
        records = self._records.where("member is not null").groupBy("group").agg(f.count("*").alias("records"))
        other = ~f.coalesce(f.col("type").isin(*verdict.MEMBERS_READ), f.lit(False))
        described = self._described.where("state is null or state != 'Dead'").groupBy("group").agg(
            f.count("*").alias("described"), f.count_if(other).alias("other_types"),
            f.max(f.size("members")).alias("members"))
        places = self._log.groupBy("group").agg(f.max("log_partition").alias("log_partition"))
        found: dict[str, dict[str, int]] = {}
        for part in (written, owned, unread, records, described, places):
            for row in part.collect():
                values = row.asDict()
                found.setdefault(values.pop("group"), {}).update(values)
        for seen in found.values():
            seen["in_zookeeper"] = seen.get("in_zookeeper", 0) + seen.pop("owned", 0)
        return {name: Activity(**seen) for name, seen in found.items()}


def _found(bronze: _Bronze, settings: AuditSettings, span: Range, two_stores: bool) -> tuple[DataFrame, DataFrame, int]:
    """All findings, the hand-overs, and how many hashes stand for several keys."""
    ordered = commits.steps(bronze.events, span.band, two_stores=two_stores).cache()
    passes = commits.of_members(commits.passes(ordered), bronze.kafka_owned).cache()
    named = now(bronze.lives)
    of_passes, gaps = findings.of_passes(passes, span.since)
    spark = bronze.events.sparkSession
    acknowledged = findings.produced(spark, settings.produced) if settings.produced else None
    drained = [group.name for group in settings.groups if group.expected == "Drained"]
    enabled = ownership.migration_enabled(bronze.transactions, bronze.znodes)
    consuming = ownership.consuming(bronze.kafka_owned, bronze.zookeeper_owned, enabled,
                                    ownership.in_zookeeper_mode(bronze.transactions, bronze.znodes))
    every = bronze.kafka_owned.select(*NAMES, "began", "ended").unionByName(
        bronze.zookeeper_owned.select(*NAMES, "began", "ended"))
    parts = [
        of_passes,
        findings.of_gaps(gaps) if acknowledged is None else findings.of_skipped(
            findings.skipped(gaps, acknowledged, named)),
        findings.of_deleted(findings.deleted(ordered, bronze.known_ends(), span.since, span.until, span.band)),
        findings.of_kafka_owners(bronze.owned(bronze.kafka_owned), span.since, span.until),
        findings.of_two_systems(bronze.owned(consuming), span.since, span.until, span.band),
    ]
    if drained:
        positions = findings.last_positions(ordered)
        parts.append(findings.of_left(findings.left(positions, drained, acknowledged, bronze.ends, named), span.until))
    keys = bronze.events.select("k", *WHICH).unionByName(hashed(every, NAMES).select("k", *NAMES, f.lit(None).alias(ID)))
    # What may be about several topics is found with each of them.
    found = reduce(DataFrame.unionByName, parts).distinct()
    return found, findings.hand_overs(hashed(every, NAMES), span.since, span.until), collisions(keys, WHICH)


def _report(spark: SparkSession, directory: Path, store: Store, settings: AuditSettings, span: Range,
            activity: dict[str, Activity], clashes: int, doubts: tuple[str, ...]) -> Report:
    evidence = spark.read.parquet(str(directory / EVIDENCE))
    counted = evidence.groupBy("kind", "proven").agg(
        f.count("*").alias("n"), f.sum(f.col("amount").cast("decimal(38,0)")).alias("amount"),
        f.sum(f.col("doubled").cast("decimal(38,0)")).alias("doubled")).collect()
    proven = any(row["proven"] for row in counted)
    gravest = evidence.where(f.col("proven") == proven).orderBy(f.col("amount").desc(), *NAMES, "start").limit(SHOWN)
    waits = spark.read.parquet(str(directory / HAND_OVERS)).agg(
        f.count("*").alias("n"), f.max(f.col("end") - f.col("start")).alias("longest")).first()
    twice = [row for row in counted if row["kind"] == findings.Kind.TWICE and row["proven"]]
    if clashes:
        doubts += (f"{clashes} hashes stand for several partitions, whose findings are mixed: audit fewer groups at once",)
    return Report(
        cluster=store.cluster, groups=[group.name for group in settings.groups], since=span.since, until=span.until,
        guard_band=span.band, rows=sum(each.commits for each in activity.values()),
        violations={row["kind"]: row["n"] for row in counted if row["proven"]},
        undecided={row["kind"]: row["n"] for row in counted if not row["proven"]},
        records_twice=int(sum(row["amount"] for row in twice)), records_doubled=int(sum(row["doubled"] for row in twice)),
        sentences=[findings.sentence(row) for row in gravest.collect()], doubts=doubts, collisions=clashes,
        hand_overs=waits["n"] if waits else 0, longest_hand_over=(waits["longest"] or 0) if waits else 0)
