"""Snapshots of both sides, one after the other, what they say together, and the differences as rows and sentences.

Values are those of `Difference`, in which secrets are hidden already: not even their hash goes out, for a short password
can be guessed from one.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from switchover.metadata.cluster import ABSENT, LIMIT, ClusterMetadata, Difference
from switchover.metadata.parity import Comparison, LogImage, MigrationState, TreeReading, compare


class Unread(Exception):
    """A side could not be read; `refused` when it will not be the next time either, until a person acts."""

    def __init__(self, why: str, *, refused: bool) -> None:
        super().__init__(why)
        self.refused = refused


class Sides(Protocol):
    """Where the metadata is read from; both readings raise Unread."""

    async def zookeeper(self) -> TreeReading: ...
    async def kraft(self) -> LogImage: ...
    async def close(self) -> None: ...


class Verdict(StrEnum):
    """CLEAN: there was a moment at which both sides were equal, and nothing persists. INDETERMINATE: not known."""

    CLEAN = "Clean"
    DRIFT = "Drift"
    INDETERMINATE = "Indeterminate"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One reading of both sides: when it began (ms), how far each had got, and how much differed.

    `zookeeper` is the offset that dual write has reached, -1 without `/migration`.
    """

    time: int
    zookeeper: int
    kraft: int
    persistent: int
    unsettled: int


@dataclass(frozen=True, slots=True)
class Found:
    """A difference in the last snapshot. `since` is the log's offset at the first snapshot that had it."""

    difference: Difference
    persistent: bool
    since: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """What all snapshots say. `entries` is the number of things on both sides of the last one that were compared; None where
    nothing could be, and then nothing is known of any difference."""

    verdict: Verdict
    reason: str
    snapshots: tuple[Snapshot, ...] = ()
    found: tuple[Found, ...] = ()
    entries: int | None = None


NOTHING_TO_COMPARE = {
    None: "the metadata log says nothing of a migration: ZooKeeper holds no copy of it",
    MigrationState.NONE: "the metadata log belongs to a cluster that was never migrated: ZooKeeper holds no copy of it",
    MigrationState.PRE_MIGRATION: "the controllers still wait for all brokers: nothing has been copied yet",
    MigrationState.POST_MIGRATION: "the migration is finalized: ZooKeeper is not written any more, so there is nothing to "
                                   "compare",
}
"""Why there is no drift to speak of while the log does not say MIGRATION."""


async def judged(sides: Sides, snapshots: int, pause: float, say: Callable[[str], None]) -> Judgement:
    """Read both sides so often, `pause` seconds apart. One that did not answer may do so the next time."""
    last: Comparison | None = None
    taken: list[Snapshot] = []
    entries, unread = 0, ""
    for number in range(1, snapshots + 1):
        if number > 1:
            await asyncio.sleep(pause)
        began = int(time.time() * 1000)
        side = "ZooKeeper's metadata"
        try:
            tree = await sides.zookeeper()      # before the log, so that what it lacks was on its way
            side = "KRaft's metadata"
            log = await sides.kraft()
        except Unread as error:
            unread = f"{side} could not be read: {error}"
            say(f"snapshot {number} of {snapshots}: {unread}")
            if error.refused:
                break
            continue
        if log.migration_state is not MigrationState.MIGRATION:
            return Judgement(Verdict.INDETERMINATE, NOTHING_TO_COMPARE[log.migration_state], tuple(taken))
        last = compare(last, tree, log)
        taken.append(Snapshot(began, tree.offset, log.offset, len(last.parity.differences), last.parity.unsettled))
        entries = size(tree.metadata) + size(log.metadata)
        say(f"snapshot {number} of {snapshots}: differences that persist: {taken[-1].persistent}, that may be on "
            f"their way: {taken[-1].unsettled} (log at {log.offset}, dual write at {tree.offset})")
    if last is None or len(taken) < 2:
        return Judgement(Verdict.INDETERMINATE, unread, tuple(taken))
    found = tuple(
        Found(item, item in last.parity.differences, since) for item, since in last.since.items()
        if isinstance(item, Difference))
    verdict, reason = _verdict(last, taken[-1])
    return Judgement(verdict, reason, tuple(taken), found, entries)


def _verdict(last: Comparison, snapshot: Snapshot) -> tuple[Verdict, str]:
    if count := len(last.parity.differences):
        more = "at least " if count + last.parity.unsettled >= LIMIT else ""
        return Verdict.DRIFT, f"differences that persist: {more}{count}"
    if last.parity.proven:
        return Verdict.CLEAN, "no difference persists"
    missing = ("there is no /migration in ZooKeeper that says how far dual write has got" if snapshot.zookeeper < 0 else
               f"dual write has got to offset {snapshot.zookeeper}, the log to {snapshot.kraft}")
    return Verdict.INDETERMINATE, (
        f"differences that may still be on their way: {last.parity.unsettled}; {missing}: take more snapshots, or "
        "longer pauses")


def size(metadata: ClusterMetadata) -> int:
    """How many things of it are compared."""
    return (sum(1 + len(topic.partitions) for topic in metadata.topics.values())
            + sum(map(len, metadata.configs.values())) + sum(map(len, metadata.quotas.values()))
            + len(metadata.acls) + len(metadata.scram) + len(metadata.tokens) + len(metadata.malformed)
            + (metadata.next_producer_id is not None))


COLUMNS = ("entity_type string, entity string, field string, class string, zookeeper string, kraft string, "
           "persistent boolean, since_offset long")
"""The table `differences`. `field` is null where the whole entity is concerned; `since_offset` is the log's offset at the
first snapshot that had it."""
LONGEST = 200
"""Characters of a name or value."""

Row = tuple[str, str, str | None, str, str, str, bool, int]

_TYPES = {"broker configuration": "broker", "topic configuration": "topic"}
_SEPARATORS = {"broker configuration": " ", "topic configuration": " ", "quota": " ", "SCRAM user": " ", "partition": "-"}
"""The kinds whose keys name an entity and a field of it; the field has no separator in it."""


class Kind(StrEnum):
    """What is wrong with it in KRaft, ZooKeeper being what it is. MALFORMED: a znode that is not what Kafka writes."""

    MISSING = "missing"
    EXTRA = "extra"
    DIFFERENT = "different"
    MALFORMED = "malformed"


def kind(difference: Difference) -> Kind:
    if difference.kind == "znode":
        return Kind.MALFORMED
    if difference.kraft == ABSENT:
        return Kind.MISSING
    return Kind.EXTRA if difference.zookeeper == ABSENT else Kind.DIFFERENT


def rows(found: Iterable[Found]) -> list[Row]:
    """In their order; names and values are escaped and cut."""
    return [_row(each) for each in found]


def _row(found: Found) -> Row:
    said = found.difference
    entity, field = said.key, None
    if (separator := _SEPARATORS.get(said.kind)) is not None:
        entity, _, field = said.key.rpartition(separator)
    return (_TYPES.get(said.kind, said.kind), shown(entity), None if field is None else shown(field), kind(said),
            shown(said.zookeeper), shown(said.kraft), found.persistent, found.since)


def sentence(difference: Difference) -> str:
    """`topic configuration orders retention.ms: ZooKeeper says '1', KRaft says '2'`, escaped and cut."""
    return (f"{difference.kind} {shown(difference.key)}: ZooKeeper says {shown(difference.zookeeper)}, "
            f"KRaft says {shown(difference.kraft)}")


def shown(text: str) -> str:
    """Without anything that a terminal would act on; a long one is cut, and distinguished by the hash of all of it."""
    escaped = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:LONGEST + 1])
    if len(escaped) <= LONGEST:
        return escaped
    whole = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{escaped[:LONGEST]}… (sha256 {whole[:16]})"
