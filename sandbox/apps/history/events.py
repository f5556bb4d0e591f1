"""The format of a consumer history: one JSON object a line, one line an event, in the order of time.

Every line has `event`, `mono`, `wall`, `member`, `run`, and `instance` where the member is static.
  mono      seconds of CLOCK_MONOTONIC when the line was written. All processes of one machine read the same clock
            (time.monotonic() here, System.nanoTime() in Java), and no one sets it: only `mono` is ever compared.
  wall      seconds since the epoch at the same moment; for the eyes.
  member    the name of the pod; run: one life of its process. A pod that restarts is the same member in a new run.
            Lines of many members may be laid together; lines of one file are in the order of `mono`.

  event         also                                 means
  start         clock, words                         the process began; clock: the machine's boot id; words: its settings
  claim         topic, partition, since, [offset]    the partition was assigned. offset: the group's committed offset as read
                                                     between since and mono, -1 when there is none, absent when not known
  delivered     topic, partition, since, until,      these offsets were handed to the application, the first of them at
                ranges                               `since`, the last at `until`
  commit        topic, partition, offset, since      the broker accepted the offset; asked at since, answered at mono
  release       topic, partition                     given back: nothing is delivered after it
  lost          topic, partition                     taken away: another member may have had it for some time
  fenced        words                                the client was put out of the group for good (fenced, refused)
  error         words                                something that the client told, for the reader
  stop          -                                    the process ends in order
  acknowledged  topic, partition, since, until,      (of a producer) these offsets were acknowledged by the brokers
                ranges
  held          topic, partition, ranges             (of whoever reads the log back) all offsets that the log still holds
  reset         topic, partition, offset             (of whoever declares it) the group starts from here: nothing before
                                                     this moment is held against commits after it, and what it skips is
                                                     not lost. The group is empty then

The first `delivered` line after a claim is the first delivery, written at once. Later deliveries are collected in windows
of at most `SPAN` seconds, and every window is written before a commit is sent and before a partition is given back. So:
* SIGKILL takes the deliveries of the last SPAN seconds from the history, and never one that a commit has passed.
* A torn last line is what SIGKILL left of a write; the reader leaves it out and tells it.

What follows for the judgement:
* A *holding* is what one run of a member does with a partition from a claim to its next claim. Its *delivery interval*
  goes from its first to its last delivery, and these intervals must not overlap: ownership may, since a member learns
  late that it has lost a partition. Intervals that only touch do not overlap.
* A claim that nothing ended (SIGKILL, SIGSTOP for good): the interval ends with the last delivery that was written.
* release, lost, fenced and stop end a holding in the words of the report alone. What the same run delivers of the
  partition afterwards, without a new claim, belongs to the interval: a member that goes on is a double consumer.
* Deliveries between the moment at which the coordinator gave the partition away and the heartbeat by which the member
  learns of it are deliveries: when another member delivers in the meantime they overlap, and it is told.
* A static member that comes back under its instance id is another run with its own holdings. Its old process must not
  deliver between two deliveries of the new one, nor the other way round.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from history.ranges import Range

SPAN = 0.25
"""Longest time, in seconds, that one window of deliveries or acknowledgements covers."""

NO_OFFSET = -1
"""The committed offset of a group that has none, as OffsetFetch answers it."""


class Kind(StrEnum):
    """What happened; the table above says what each means."""

    START = "start"
    CLAIM = "claim"
    DELIVERED = "delivered"
    COMMIT = "commit"
    RELEASE = "release"
    LOST = "lost"
    FENCED = "fenced"
    ERROR = "error"
    STOP = "stop"
    ACKNOWLEDGED = "acknowledged"
    HELD = "held"
    RESET = "reset"


_NEEDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.START: ("clock", "words"),
    Kind.CLAIM: ("topic", "since"),
    Kind.DELIVERED: ("topic", "since", "until", "ranges"),
    Kind.COMMIT: ("topic", "since", "offset"),
    Kind.RELEASE: ("topic",),
    Kind.LOST: ("topic",),
    Kind.FENCED: ("words",),
    Kind.ERROR: ("words",),
    Kind.STOP: (),
    Kind.ACKNOWLEDGED: ("topic", "since", "until", "ranges"),
    Kind.HELD: ("topic", "ranges"),
    Kind.RESET: ("topic", "offset"),
}


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


class Process(NamedTuple):
    """One run of a member."""

    member: str
    run: str

    def __str__(self) -> str:
        return f"{self.member} (run {self.run})"


NOWHERE = Partition("", -1)


@dataclass(frozen=True, slots=True)
class Event:
    """One line. Fields that its kind does not have are empty; times are seconds of the monotonic clock, but for `wall`."""

    kind: Kind
    mono: float
    wall: float
    by: Process
    instance: str = ""
    partition: Partition = NOWHERE
    offset: int | None = None
    since: float = 0.0
    until: float = 0.0
    ranges: tuple[Range, ...] = ()
    clock: str = ""
    words: str = ""


def written(event: Event) -> bytes:
    """The line of an event, with its line feed."""
    content: dict[str, Any] = {
        "event": event.kind, "mono": round(event.mono, 6), "wall": round(event.wall, 3),
        "member": event.by.member, "run": event.by.run,
    }
    if event.instance:
        content["instance"] = event.instance
    for key in _NEEDS[event.kind]:
        match key:
            case "topic":
                content["topic"], content["partition"] = event.partition
            case "since" | "until":
                content[key] = round(getattr(event, key), 6)
            case _:
                content[key] = getattr(event, key)
    if event.offset is not None:
        content["offset"] = event.offset
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def parsed(line: bytes) -> Event:
    """The event of a line. Raises ValueError for anything that is not a whole line of this format."""
    try:
        content = json.loads(line)
        kind = Kind(content["event"])
        for key in _NEEDS[kind]:
            content[key]
        ranges = tuple((int(first), int(last)) for first, last in content.get("ranges", ()))
        offset = content.get("offset")
        return Event(
            kind, float(content["mono"]), float(content["wall"]), Process(str(content["member"]), str(content["run"])),
            instance=str(content.get("instance", "")),
            partition=Partition(str(content["topic"]), int(content["partition"])) if "topic" in content else NOWHERE,
            offset=None if offset is None else int(offset),
            since=float(content.get("since", 0)), until=float(content.get("until", 0)),
            ranges=ranges, clock=str(content.get("clock", "")), words=str(content.get("words", "")),
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"not an event: {line[:80]!r}") from problem
