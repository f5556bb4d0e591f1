"""What is missing for a proof, the verdict, and what people read of it. Pure.

A range [since, until] is covered by a source (Kafka or ZooKeeper) when
* a capture of it began at or before `since`: what is older may have been compacted or overwritten before anybody read it;
* a capture of it began at or after `until`: a capture reads at least what there was when it began;
* no capture in between found that what the one before it had not read yet was gone (`inputs["holes"]` of its manifest), or
  that `__consumer_offsets` had been made again (`inputs["offsets"]["next"]` went back);
* no capture of it left out a record that it could not read (`counts` of its manifest).
ZooKeeper need only be covered where the groups wrote to it, and then its transaction logs must be as well: of two polls only
the last write before each is seen.

Every doubt makes Indeterminate of Clean. What was not read of a group leaves open as well what was found of it: nobody
knows who consumed where its members are not known (`unread_of_group`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from switchover.api.job_message import AuditVerdict
from switchover.pipeline.store import Manifest

KAFKA, ZOOKEEPER, LOGS = "Kafka", "ZooKeeper", "ZooKeeper's transaction logs"
SOURCES: Mapping[str, frozenset[str]] = {
    KAFKA: frozenset({"commits", "ownership", "ends", "topics", "groups"}),
    ZOOKEEPER: frozenset({"znodes"}),
    LOGS: frozenset({"transactions"}),
}
"""The tables that a capture of a source files, be they empty."""
MEMBERS_READ = ("Classic", "Consumer")
"""Types of groups whose members' records are read."""
UNREAD = ("unknown ", "bad key", "bad value")
"""How counts of records begin that the decoders left out. A member's malformed assignment counts for its group alone."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What was seen of one group before the end of the range."""

    commits: int = 0
    in_range: int = 0
    """Commits in the range."""
    in_zookeeper: int = 0
    """Offsets that were written to ZooKeeper in the range, and owner nodes that were there."""
    ever_in_zookeeper: int = 0
    """Offsets that were written to ZooKeeper at any time."""
    unread: int = 0
    """Members whose assignment could not be read, and stood in the range."""
    in_kafka: int = 0
    """Commits in Kafka at any time."""
    log_partition: int | None = None
    """Of `__consumer_offsets`, where all of its records lie."""
    records: int = 0
    """Of its members that were read, at any time."""
    described: int = 0
    """How often captures of the range described it."""
    other_types: int = 0
    """Of these, as of a type that is none of MEMBERS_READ."""
    members: int = 0
    """In the largest of these descriptions."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What is missing for a proof: `doubts`, in sentences; `groups`, of which nothing that is found is proven; and whether
    all commits of the range were read."""

    doubts: tuple[str, ...]
    groups: tuple[str, ...]
    to_the_end: bool


def missing(manifests: Sequence[Manifest], since: int, until: int, groups: Sequence[str],
            activity: Mapping[str, Activity]) -> Missing:
    """Of these groups, of which `activity` was seen."""
    sources = [KAFKA, *([ZOOKEEPER, LOGS] if any(each.in_zookeeper for each in activity.values()) else ())]
    records = unread(manifests, since, until)
    of_groups = {name: unread_of_group(name, activity.get(name), manifests, since, until) for name in groups}
    all_doubts = [*doubts(manifests, since, until, sources), *holes(manifests, since, until), *records]
    for name, own in of_groups.items():
        all_doubts += [*of_group(name, activity.get(name)), *own]
    return Missing(tuple(all_doubts), tuple(name for name, own in of_groups.items() if own or records),
                   to_the_end(manifests, until))


def doubts(manifests: Sequence[Manifest], since: int, until: int, sources: Iterable[str]) -> list[str]:
    """Why these sources are not covered; nothing where they are."""
    found = []
    for source in sources:
        captures = [each for each in manifests if SOURCES[source] & {file.table for file in each.files}]
        if not captures:
            found.append(f"nothing was captured of {source}" + (
                ", and polls do not show what was written in between: give zookeeper.transactionLogs" * (source == LOGS)))
            continue
        if captures[0].began > since:
            found.append(f"the first capture of {source} began at {moment(captures[0].began)}, after the range began: "
                         "what was written before may have been compacted or overwritten")
        if captures[-1].began < until:
            found.append(f"the last capture of {source} began at {moment(captures[-1].began)}, before the range ends")
    return found


def holes(manifests: Sequence[Manifest], since: int, until: int) -> list[str]:
    """What captures of the range found to be gone: holes, and a `__consumer_offsets` that begins again."""
    found: list[str] = []
    reached: Mapping[str, int] = {}
    before = 0
    for manifest in manifests:
        following = (manifest.inputs.get("offsets") or {}).get("next", reached)
        if before < until and manifest.began > since:
            gone = manifest.inputs.get("holes") or ()
            found += [f"capture {manifest.number} found a hole: {each!s:.120}" for each in gone]
            if any(following.get(partition, offset) < offset for partition, offset in reached.items()):
                found.append(f"capture {manifest.number} found another __consumer_offsets, which begins again")
        reached, before = following, manifest.began
    return found


def begun_again(manifests: Sequence[Manifest]) -> dict[int, list[int]]:
    """By partition of `__consumer_offsets` the captures (their numbers) that found another log than the one before: one that
    was created again, or went back. Its offsets say nothing of what lies before and after those of the other log."""
    found: dict[int, list[int]] = {}
    reached: Mapping[str, int] = {}
    for manifest in manifests:
        following = (manifest.inputs.get("offsets") or {}).get("next", reached)
        again = {int(partition) for partition, offset in reached.items() if following.get(partition, offset) < offset}
        again |= {hole["partition"] for hole in manifest.inputs.get("holes") or ()
                  if "partition" in hole and hole["to"] is None}
        for partition in again:
            found.setdefault(partition, []).append(manifest.number)
        reached = following
    return found


def around(manifests: Sequence[Manifest], since: int, until: int) -> tuple[int, int]:
    """When the last capture before the range began and the first one after it ended, as far as there are; ms."""
    began = max((each.began for each in manifests if each.began <= since), default=since)
    return began, min((each.ended for each in manifests if each.began >= until), default=until)


def unread(manifests: Sequence[Manifest], since: int, until: int) -> list[str]:
    """Records of the range that captures could not read."""
    found, before = Counter[str](), 0
    for manifest in manifests:
        if before < until and manifest.ended > since:
            found.update({name: count for name, count in manifest.counts.items() if name.startswith(UNREAD)})
        before = manifest.began
    return [f"{count} captured records could not be read ({name}): look for a newer Switchover, one that knows these brokers"
            for name, count in sorted(found.items())]


def to_the_end(manifests: Sequence[Manifest], until: int) -> bool:
    """Whether all commits of the range were read: a capture of Kafka began after it."""
    return any(each.began >= until and SOURCES[KAFKA] & {file.table for file in each.files} for each in manifests)


def of_group(name: str, seen: Activity | None) -> list[str]:
    """What is missing of one group; more in `unread_of_group`."""
    if seen is None or not seen.commits:
        return [f"group {shown(name)} is not known: no commit of it was captured"]
    if not seen.in_range:
        return [f"group {shown(name)} committed nothing in the range"]
    return []


def unread_of_group(name: str, seen: Activity | None, manifests: Sequence[Manifest], since: int, until: int) -> list[str]:
    """What of a group's members and records was not read: nothing that is found of it is proven then."""
    if seen is None:
        return []
    found = []
    if seen.unread:
        found.append(f"{seen.unread} assignments of members could not be read: who owned what is not known")
    if seen.in_kafka and not seen.described:
        found.append("no capture of the range describes it, as of a group of Kafka Streams or one that a capture may not"
                     " Describe: its members are not known")
    elif seen.other_types:
        found.append("it was of a type whose members are not read")
    elif seen.members and not seen.records:
        found.append("it had members, and no record of them was captured")
    gone = _gone(manifests, since, until)
    if seen.log_partition is not None and seen.log_partition in gone:
        found.append(f"records of __consumer_offsets-{seen.log_partition}, where it lies, were gone before they were read")
    if seen.ever_in_zookeeper and None in gone:
        found.append("transactions of ZooKeeper were gone before they were read")
    return [f"group {shown(name)}: {why}" for why in found]


def _gone(manifests: Sequence[Manifest], since: int, until: int) -> set[int | None]:
    """Partitions of `__consumer_offsets` in which captures of the range found holes; None: in ZooKeeper's logs."""
    found: set[int | None] = set()
    for before, manifest in pairwise((None, *manifests)):
        if (before is None or before.began < until) and manifest is not None and manifest.began > since:
            found |= {hole.get("partition") for hole in manifest.inputs.get("holes") or ()}
    return found


def moment(time: int) -> str:
    """UTC, to the millisecond. Hostile times are shown as their number."""
    try:
        return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{time} ms"


def shown(name: str | None, longest: int = 60) -> str:
    """A name as a user may see it: escaped where it holds anything but plain characters, and shortened."""
    text = name or ""
    plain = text.isprintable() and text.isascii() and "'" not in text and text
    short = text if len(text) <= longest else text[:longest] + "..."
    return short if plain else ascii(short)


SHOWN = 5
"""Sentences of evidence in the outcome."""
LONGEST = 200
"""Characters of each."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found. `violations`, `undecided`: number of findings by kind; `sentences`: the gravest ones.

    `records_twice`: sum over all violations; `records_doubled`: how many different records that are.
    """

    cluster: str
    groups: Sequence[str]
    since: int
    until: int
    guard_band: int
    rows: int = 0
    violations: Mapping[str, int] = field(default_factory=dict)
    undecided: Mapping[str, int] = field(default_factory=dict)
    records_twice: int = 0
    records_doubled: int = 0
    sentences: Sequence[str] = ()
    doubts: Sequence[str] = ()
    notes: Sequence[str] = ()
    collisions: int = 0
    hand_overs: int = 0
    longest_hand_over: int = 0

    @property
    def verdict(self) -> AuditVerdict:
        """Violations whatever is missing; Clean only where nothing is missing and nothing undecided."""
        if self.violations:
            return AuditVerdict.VIOLATIONS
        return AuditVerdict.INDETERMINATE if self.undecided or self.doubts else AuditVerdict.CLEAN

    def evidence(self) -> list[str]:
        """At most SHOWN sentences: what made the verdict first."""
        first = [*self.sentences, *self.doubts] if self.violations else [*self.doubts, *self.sentences]
        return [each if len(each) <= LONGEST else each[: LONGEST - 1] + "…" for each in first[:SHOWN]]

    def summary(self) -> dict[str, Any]:
        """Figures for the termination message."""
        return {
            "violations": sum(self.violations.values()),
            "undecided": sum(self.undecided.values()) + len(self.doubts), "recordsTwice": self.records_twice,
            "recordsDoubled": self.records_doubled, "longestHandOverMs": self.longest_hand_over}

    def manifest(self) -> dict[str, Any]:
        """For `manifest.json` of the run."""
        return {
            "verdict": str(self.verdict), "groups": list(self.groups), "since": self.since, "until": self.until,
            "guardBandMs": self.guard_band, "rows": self.rows, "violations": dict(self.violations),
            "undecided": dict(self.undecided), "recordsTwice": self.records_twice, "recordsDoubled": self.records_doubled,
            "hashCollisions": self.collisions, "handOvers": self.hand_overs, "longestHandOverMs": self.longest_hand_over,
            "evidence": self.evidence(), "doubts": list(self.doubts), "notes": list(self.notes)}

    def text(self) -> str:
        """The report for people."""
        lines = [
            f"Audit of cluster {self.cluster}: {self.verdict}", "",
            f"from      {moment(self.since)}", f"until     {moment(self.until)}",
            f"groups    {', '.join(map(shown, self.groups))}",
            f"band      {self.guard_band} ms between the clocks of ZooKeeper and Kafka", f"read      {self.rows} rows", ""]
        lines += _part("Violations", [f"{count} x {kind}" for kind, count in sorted(self.violations.items())])
        lines += _part("Undecided", [f"{count} x {kind}" for kind, count in sorted(self.undecided.items())])
        if self.records_twice:
            lines += [f"{self.records_doubled} records were consumed more than once, {self.records_twice} times in all.", ""]
        lines += _part("The gravest (all of them: evidence.parquet)", self.sentences)
        lines += _part("What is missing for a proof", self.doubts)
        lines += _part("Notes", self.notes)
        if self.hand_overs:
            lines += [f"Nobody owned a partition {self.hand_overs} times between two owners, "
                      f"{self.longest_hand_over} ms at most (hand_overs.parquet).", ""]
        return "\n".join(lines) + "\n"


def _part(title: str, items: Sequence[str]) -> list[str]:
    return [title, *(f"  {item}" for item in items), ""] if items else []
