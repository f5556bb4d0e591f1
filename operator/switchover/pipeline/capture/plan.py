"""Which offsets of `__consumer_offsets` one capture reads: pure, from the last manifest and what the broker says now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from switchover.pipeline.outcome import JobFailed

TOPIC = "__consumer_offsets"
INPUT = "offsets"
"""The key in a manifest's inputs: {"topicId": …, "next": {partition: offset}}."""
HOLES = "holes"
"""The key in a manifest's inputs: what its capture found to be gone, [{"partition", "from", "to"}, …]."""


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets [begin, end) of one partition."""

    partition: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Hole:
    """Offsets [begin, end) of one partition that the log no longer held; `end` None: nobody knows how many."""

    partition: int
    begin: int
    end: int | None


@dataclass(frozen=True, slots=True)
class Log:
    """The topic now: `topic_id` (None: the brokers have none) and of each partition its log start and high watermark."""

    topic_id: str | None
    watermarks: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read, a range for each partition of the topic, be it empty."""

    ranges: tuple[Range, ...]
    holes: tuple[Hole, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def records(self) -> int:
        """At most so many: compaction leaves holes."""
        return sum(each.end - each.begin for each in self.ranges)


def plan(inputs: Mapping[str, Any], log: Log) -> Plan:
    """Go on where the last manifest (its `inputs`, empty for the first) ended, and list what is no longer there.

    Raises JobFailed when a partition that was read before is not among those of the same topic: it would be left out in
    silence.
    """
    before = inputs.get(INPUT)
    resumed: Mapping[str, int] = {} if before is None else before["next"]
    if before is not None and _recreated(before, log):
        return Plan(tuple(Range(number, start, end) for number, (start, end) in sorted(log.watermarks.items())),
                    tuple(Hole(number, resumed[str(number)], None) for number in sorted(map(int, resumed))),
                    (f"{TOPIC} was deleted and created again since the last capture: it is read from its start, and what "
                     "the old one held after that capture is not known",))
    if missing := sorted(number for number in map(int, resumed) if number not in log.watermarks):
        raise JobFailed(f"{TOPIC}: partitions {missing} were captured before and the brokers do not name them now; "
                        "look at that topic's description")
    ranges, holes, notes = list[Range](), list[Hole](), list[str]()
    for number, (start, end) in sorted(log.watermarks.items()):
        begin = resumed.get(str(number), start)
        if begin < start:
            holes.append(Hole(number, begin, start))
            notes.append(f"{TOPIC}-{number}: offsets {begin} to {start - 1} were deleted before they were read")
        elif begin > end:
            holes.append(Hole(number, end, begin))
            notes.append(f"{TOPIC}-{number}: the log went back from {begin} to {end}, as after an unclean leader election: "
                         f"what was captured from {end} on is gone there; new records are read from {end} on")
        ranges.append(Range(number, min(max(begin, start), end), end))
    return Plan(tuple(ranges), tuple(holes), tuple(notes))


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
