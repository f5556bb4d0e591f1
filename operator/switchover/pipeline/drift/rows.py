"""Differences as rows, and as sentences that anybody may be shown.

Values are those of `Difference`, in which secrets are hidden already: not even their hash goes out, for a short password
can be guessed from one.
"""

import hashlib
from collections.abc import Iterable
from enum import StrEnum

from switchover.metadata.cluster import ABSENT, Difference
from switchover.pipeline.drift.judgement import Found

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
    """Without anything that a terminal would act on; a long one is cut, and told apart by the hash of all of it."""
    escaped = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:LONGEST + 1])
    if len(escaped) <= LONGEST:
        return escaped
    whole = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{escaped[:LONGEST]}… (sha256 {whole[:16]})"
