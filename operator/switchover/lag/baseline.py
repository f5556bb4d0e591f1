"""What is usual for a group's partitions, hour by hour of the week, and the text in which the pipeline hands it over.

The text is the key `baseline` of a ConfigMap. Whole seconds, rounded up:

    switchover-baseline 1 {"group":"orders","until":1795000000000}
    orders/0 4,6 17-19=40,6 20=-,9

The first line has a version and JSON: the group, and when the history ends (ms since the epoch). Then comes a line for each
partition: 0.99 quantile of the time lag and of the time between two commits over all hours, then those hours of the week
(UTC; 0 begins on Monday at 00:00) that differ from it. `-` is what is not known. There are no empty lines.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from typing import Final, TypeVar

import numpy as np

from switchover.lag.samples import NONE, Ints
from switchover.lag.thresholds import Baseline
from switchover.shared import foreign_json
from switchover.shared.partition import TopicPartition

KEY: Final = "baseline"
"""The ConfigMap's key that holds the text."""
HOURS: Final = 168
"""In a week."""
LARGEST: Final = 10**12
"""Seconds; more than any history has."""
MAX_BYTES: Final = 1 << 20
"""No ConfigMap is larger."""
TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""What Kafka lets be a topic's name."""

_HOUR_MS = 3_600_000
_MONDAY = 4 * 24 * _HOUR_MS
"""The epoch began on a Thursday; the first Monday after it, in ms."""
_HEAD = "switchover-baseline"
_VERSION = 1

Usual = tuple[int, int]
"""0.99 quantiles in ms: of the time lag, and of the time between two commits; NONE for what is not known."""


@dataclass(frozen=True, slots=True)
class Usuals:
    """What one partition is used to: over all hours, and in those hours of the week that differ."""

    always: Usual
    hours: Mapping[int, Usual] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class WeeklyBaseline:
    """What a group is used to. `until`: when the history ends it was found in (ms); `digest` names the text."""

    group: str
    until: int
    partitions: Mapping[TopicPartition, Usuals]
    digest: str = ""

    def at(self, now: int, partitions: Sequence[TopicPartition]) -> Baseline:
        """Of these partitions at `now` (ms since the epoch)."""
        hour = hour_of_week(now)
        nothing = Usuals((NONE, NONE))
        found = [(usuals := self.partitions.get(each, nothing)).hours.get(hour, usuals.always) for each in partitions]
        return Baseline(np.array([lag for lag, _ in found], dtype=np.int64),
                        np.array([interval for _, interval in found], dtype=np.int64))


Moments = TypeVar("Moments", int, Ints)


def hour_of_week(time: Moments) -> Moments:
    """Of a moment, or many, in ms since the epoch: 0 begins on Monday at 00:00 UTC, which knows no summer time."""
    return (time - _MONDAY) // _HOUR_MS % HOURS


# --- text ---------------------------------------------------------------------------------------------------------------


def text_of(baseline: WeeklyBaseline, *, hours: bool = True) -> str:
    """The text of a baseline, sorted; without `hours` what holds over all hours alone.

    Raises ValueError for a topic whose name Kafka would not take.
    """
    head = json.dumps({"group": baseline.group, "until": baseline.until}, separators=(",", ":"))
    lines = [f"{_HEAD} {_VERSION} {head}"]
    for partition, usuals in sorted(baseline.partitions.items()):
        if not TOPIC.fullmatch(partition.topic):
            raise ValueError(f"{partition.topic[:100]!r} is not a topic's name")
        always = _written(usuals.always)
        runs = _runs({hour: text for hour, usual in usuals.hours.items() if (text := _written(usual)) != always})
        lines.append(" ".join([f"{partition.topic}/{partition.partition}", always, *(runs if hours else ())]))
    return "\n".join(lines) + "\n"


def parse(text: str, group: str) -> WeeklyBaseline:
    """The baseline of `group` in a text. Raises ValueError that says where it is none."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"it has {len(text)} characters, more than any ConfigMap")
    first, *lines = text.removesuffix("\n").split("\n")
    until = _head(first, group)
    partitions: dict[TopicPartition, Usuals] = {}
    for number, line in enumerate(lines, 2):
        try:
            partition, usuals = _line(line)
            if partition in partitions:
                raise ValueError("the partition is there twice")
        except ValueError as error:
            raise ValueError(f"line {number} ({line[:60]!r}): {error}") from None
        partitions[partition] = usuals
    return WeeklyBaseline(group, until, partitions, blake2b(text.encode(errors="replace"), digest_size=6).hexdigest())


def _written(usual: Usual) -> str:
    return ",".join("-" if value == NONE else str(-(-value // 1000)) for value in usual)


def _runs(hours: Mapping[int, str]) -> Iterator[str]:
    """Neighbouring hours that say the same, as one."""
    ordered = sorted(hours.items())
    for (text, _), run in groupby(enumerate(ordered), key=lambda each: (each[1][1], each[1][0] - each[0])):
        found = [hour for _, (hour, _) in run]
        yield f"{found[0]}-{found[-1]}={text}" if len(found) > 1 else f"{found[0]}={text}"


def _head(line: str, group: str) -> int:
    name, _, rest = line.partition(" ")
    version, _, head = rest.partition(" ")
    if name != _HEAD:
        raise ValueError(f"it does not begin with {_HEAD}: {line[:60]!r}")
    if version != str(_VERSION):
        raise ValueError(f"it is of version {version[:20]!r}, and this operator reads version {_VERSION}")
    try:
        fields = foreign_json.parsed(head)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or not isinstance(fields.get("group"), str) or type(fields.get("until")) is not int:
        raise ValueError(f"its first line does not name a group and a time: {line[:60]!r}")
    if fields["group"] != group:
        raise ValueError(f"it is the baseline of group {fields['group'][:100]!r}")
    return int(fields["until"])


_PLACE = re.compile(rf"({TOPIC.pattern})/([0-9]{{1,10}})")
_USUAL = re.compile(r"(-|[0-9]{1,13}),(-|[0-9]{1,13})")
_RUN = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?=(.*)")


def _line(line: str) -> tuple[TopicPartition, Usuals]:
    place, _, rest = line.partition(" ")
    if (found := _PLACE.fullmatch(place)) is None:
        raise ValueError("it must begin with TOPIC/PARTITION")
    always, *runs = rest.split(" ")
    hours: dict[int, Usual] = {}
    for run in runs:
        if (parts := _RUN.fullmatch(run)) is None:
            raise ValueError(f"{run[:40]!r} must be HOUR=SECONDS,SECONDS or HOUR-HOUR=SECONDS,SECONDS")
        begin, end = int(parts[1]), int(parts[2] or parts[1])
        if not begin <= end < HOURS:
            raise ValueError(f"{run[:40]!r}: hours run from 0 to {HOURS - 1}")
        hours.update(dict.fromkeys(range(begin, end + 1), _usual(parts[3])))
    return TopicPartition(found[1], int(found[2])), Usuals(_usual(always), hours)


def _usual(text: str) -> Usual:
    if (found := _USUAL.fullmatch(text)) is None:
        raise ValueError(f"{text[:40]!r} must be SECONDS,SECONDS, or '-' for what is not known")
    lag, interval = (NONE if each == "-" else min(int(each), LARGEST) * 1000 for each in found.groups())
    return lag, interval
