"""What is missing for a proof. Pure.

A range [since, until] is covered by a source (Kafka or ZooKeeper) when
* a capture of it began at or before `since`: what is older may have been compacted or overwritten before anybody read it;
* a capture of it began at or after `until`: a capture reads at least what there was when it began;
* no capture in between found that what the one before it had not read yet was gone (`inputs["holes"]` of its manifest), or
  that `__consumer_offsets` had been made anew (`inputs["offsets"]["next"]` went back);
* no capture of it left out a record that it could not read (`counts` of its manifest).
ZooKeeper need only be covered where the groups wrote to it, and then its transaction logs must be as well: of two polls only
the last write before each is seen.

Every doubt makes Indeterminate of Clean; none makes a violation undone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from switchover.pipeline.store import Manifest

KAFKA, ZOOKEEPER, LOGS = "Kafka", "ZooKeeper", "ZooKeeper's transaction logs"
SOURCES: Mapping[str, frozenset[str]] = {
    KAFKA: frozenset({"commits", "ownership", "ends", "topics", "groups"}),
    ZOOKEEPER: frozenset({"znodes"}),
    LOGS: frozenset({"transactions"}),
}
"""The tables that a capture of a source files, be they empty."""
UNREAD = ("unknown ", "bad key", "bad value")
"""How counts of records begin that the decoders left out. A member's malformed assignment is told of its group alone."""


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


def doubts(manifests: Sequence[Manifest], since: int, until: int, sources: Iterable[str]) -> list[str]:
    """Why these sources are not covered, in words; nothing where they are."""
    found = []
    for source in sources:
        captures = [each for each in manifests if SOURCES[source] & {file.table for file in each.files}]
        if not captures:
            found.append(f"nothing was captured of {source}" + (
                ", and polls do not tell what was written in between: give zookeeper.transactionLogs" * (source == LOGS)))
            continue
        if captures[0].began > since:
            found.append(f"the first capture of {source} began at {moment(captures[0].began)}, after the range began: "
                         "what was written before may have been compacted or overwritten")
        if captures[-1].began < until:
            found.append(f"the last capture of {source} began at {moment(captures[-1].began)}, before the range ends")
    return found


def holes(manifests: Sequence[Manifest], since: int, until: int) -> list[str]:
    """What captures of the range found to be gone: holes, and a `__consumer_offsets` that begins anew."""
    found: list[str] = []
    reached: Mapping[str, int] = {}
    before = 0
    for manifest in manifests:
        following = (manifest.inputs.get("offsets") or {}).get("next", reached)
        if before < until and manifest.began > since:
            told = manifest.inputs.get("holes") or ()
            found += [f"capture {manifest.number} found a hole: {each!s:.120}" for each in told]
            if any(following.get(partition, offset) < offset for partition, offset in reached.items()):
                found.append(f"capture {manifest.number} found another __consumer_offsets, which began anew")
        reached, before = following, manifest.began
    return found


def unread(manifests: Sequence[Manifest], since: int, until: int) -> list[str]:
    """Records of the range that captures could not read."""
    found, before = Counter[str](), 0
    for manifest in manifests:
        if before < until and manifest.ended > since:
            found.update({name: count for name, count in manifest.counts.items() if name.startswith(UNREAD)})
        before = manifest.began
    return [f"{count} captured records could not be read ({name}): look for a newer Switchover, one that knows these brokers"
            for name, count in sorted(found.items())]


def of_group(name: str, seen: Activity | None) -> list[str]:
    """What is missing of one group."""
    if seen is None or not seen.commits:
        return [f"group {shown(name)} is not known: no commit of it was captured"]
    if not seen.in_range:
        return [f"group {shown(name)} committed nothing in the range"]
    if seen.unread:
        return [f"group {shown(name)}: {seen.unread} assignments of members could not be read: who owned what is not known"]
    return []


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
