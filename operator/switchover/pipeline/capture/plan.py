"""Which offsets of `__consumer_offsets` one capture reads: pure, from the last manifest and what the broker says now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TOPIC = "__consumer_offsets"
INPUT = "offsets"
"""The key in a manifest's inputs: {"topicId": …, "next": {partition: offset}}."""
HOLES = "holes"
"""The key in a manifest's inputs: what was lost before it could be read, in words a reader can count."""


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets [begin, end) of one partition."""

    partition: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Log:
    """The topic now: `topic_id` (None: the brokers have none) and of each partition its log start and high watermark."""

    topic_id: str | None
    watermarks: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read. `holes`: records that the log no longer had when it was read, by partition."""

    ranges: tuple[Range, ...]
    holes: tuple[Range, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def records(self) -> int:
        """At most so many: compaction leaves holes."""
        return sum(each.end - each.begin for each in self.ranges)


def plan(inputs: Mapping[str, Any], log: Log) -> Plan:
    """Go on where the last manifest (its `inputs`, empty for the first) ended, and tell what is no longer there."""
    before = inputs.get(INPUT)
    resumed: Mapping[str, int] = {} if before is None else before["next"]
    notes: list[str] = []
    if before is not None and _recreated(before, log):
        notes.append(f"{TOPIC} was deleted and created again since the last capture: what it held between is not known")
        holes = tuple(Range(int(number), offset, offset + 1) for number, offset in sorted(resumed.items()))
        ranges = [Range(number, *watermarks) for number, watermarks in sorted(log.watermarks.items())]
        return Plan(tuple(ranges), holes, tuple(notes))
    ranges, lost = [], []
    for number, (start, end) in sorted(log.watermarks.items()):
        begin = resumed.get(str(number), start)
        if begin < start:
            lost.append(Range(number, begin, start))
            notes.append(f"{TOPIC}-{number}: offsets {begin} to {start - 1} were deleted before they were read")
        ranges.append(Range(number, max(begin, start), max(end, begin, start)))
    return Plan(tuple(ranges), tuple(lost), tuple(notes))


def _recreated(before: Mapping[str, Any], log: Log) -> bool:
    """Another id; without ids, a log or a number of partitions that went back."""
    if before["topicId"] is not None and log.topic_id is not None:
        return bool(before["topicId"] != log.topic_id)
    return any(int(number) not in log.watermarks or log.watermarks[int(number)][1] < offset
               for number, offset in before["next"].items())


def splits(ranges: Sequence[Range], count: int) -> tuple[tuple[Range, ...], ...]:
    """The ranges that hold something, packed into at most `count` parts of about equal size: largest first, to the least."""
    parts: list[list[Range]] = [[] for _ in range(count)]
    sizes = [0] * count
    for each in sorted(ranges, key=lambda item: (item.begin - item.end, item.partition)):
        if each.end > each.begin:
            least = sizes.index(min(sizes))
            parts[least].append(each)
            sizes[least] += each.end - each.begin
    return tuple(tuple(part) for part in parts if part)


def following(before: Plan, reached: Mapping[int, int], log: Log) -> dict[str, Any]:
    """The inputs that the next capture goes on from. `reached` of the partitions that were read: the next offset.

    Raises KeyError when a range that holds something was not read.
    """
    next_ = {str(each.partition): reached[each.partition] if each.end > each.begin else each.end for each in before.ranges}
    holes = [{"partition": each.partition, "from": each.begin, "to": each.end} for each in before.holes]
    return {INPUT: {"topicId": log.topic_id, "next": next_}, HOLES: holes}
