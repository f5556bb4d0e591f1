"""What the job `baseline` found: one page, and the ConfigMap that `gates.baselineRef` names."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import yaml

from switchover.lag.baseline import KEY, WeeklyBaseline, text_of
from switchover.pipeline.baseline.history import Course


def name_of(group: str) -> str:
    """The same name for a group always, and another one for another group."""
    readable = re.sub(r"[^a-z0-9]+", "-", group[:64].lower()).strip("-")[:40].strip("-")
    digest = blake2b(group.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    return "-".join(filter(None, ("baseline", readable, digest)))


def manifest(group: str, text: str) -> dict[str, Any]:
    """The object as `kubectl apply` takes it; it belongs into the namespace of the group's migration."""
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name_of(group), "labels": {"app.kubernetes.io/managed-by": "switchover"}},
            "data": {KEY: text}}


def bounded(baseline: WeeklyBaseline, largest: int) -> tuple[str, bool, int]:
    """The text of a baseline whose ConfigMap has at most `largest` bytes as JSON.

    Where all of it is too much, only what holds over all hours; where that still is, only the first partitions. Also:
    whether the hours are there, and how many partitions are not.
    """
    def fits(text: str) -> bool:
        return len(json.dumps(manifest(baseline.group, text), ensure_ascii=False).encode()) <= largest

    if fits(text := text_of(baseline)):
        return text, True, 0
    partitions = sorted(baseline.partitions)
    few, many = 0, len(partitions)
    if fits(text := text_of(baseline, hours=False)):
        return text, False, 0
    while few < many:                                                 # the most that fit
        middle = (few + many + 1) // 2
        chosen = {each: baseline.partitions[each] for each in partitions[:middle]}
        few, many = (middle, many) if fits(text_of(replace(baseline, partitions=chosen), hours=False)) else (few, middle - 1)
    chosen = {each: baseline.partitions[each] for each in partitions[:few]}
    return text_of(replace(baseline, partitions=chosen), hours=False), False, len(partitions) - few


class _Blocks(yaml.SafeDumper):
    """Writes text of several lines as such."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Blocks.add_representer(str, _block)


def as_yaml(found: dict[str, Any]) -> str:
    """For a file."""
    return yaml.dump(found, Dumper=_Blocks, sort_keys=False, width=1_000_000)


SHOWN = 200
"""Groups in the table: those with most alarms."""


@dataclass(frozen=True, slots=True)
class GroupResult:
    """A group's figures, as the columns of `kernel.GROUPS`."""

    group: str
    by_hour: bool
    partitions_left_out: int
    partitions: int
    with_baseline: int
    unread: int
    skewed: int
    alarms_without: int
    alarms: int
    interruptions_without: int
    interruptions: int
    passing_without: int
    passing: int


def per_day(count: int, days: float) -> float:
    """Of what happened `count` times."""
    return round(count / days, 3) if days else 0.0


def report(tested: Sequence[GroupResult], course: Course, days: float, notes: Sequence[str]) -> str:
    """As Markdown. Whatever alarmed in this history is taken for a false alarm: nobody migrated."""
    limits = course.thresholds
    sweeps = len(course.now) - course.first
    lines = [
        "# What consumer groups are used to", "",
        f"{len(tested)} groups, {len(course.now)} captures about {limits.poll / 1000:.0f} s apart. The gate LagHealthy, "
        f"with `maxTimeLagSeconds` {limits.max_time_lag // 1000} and `maxStallSeconds` {limits.max_stall // 1000}, was "
        f"tried on the last {sweeps} of them ({days:.2f} days): alarms are how often it began to fail, interruptions how "
        "often it stopped passing.", "", *(f"* {note}" for note in [*notes, *_more(tested)]), "",
        "| group | ConfigMap | partitions | with a baseline | alarms a day | without a baseline | interruptions a day "
        "| without | passing | without |", "|---|---|---|---|---|---|---|---|---|---|"]
    for each in sorted(tested, key=lambda each: (-each.alarms, -each.alarms_without, each.group))[:SHOWN]:
        counts = (each.alarms, each.alarms_without, each.interruptions, each.interruptions_without)
        shares = (f"{100 * part / max(sweeps, 1):.1f} %" for part in (each.passing, each.passing_without))
        name = name_of(each.group) if each.with_baseline else ""
        cells = [shown(each.group), name, each.partitions, each.with_baseline, *(per_day(count, days) for count in counts),
                 *shares]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    if len(tested) > SHOWN:
        lines += ["", f"{len(tested) - SHOWN} more groups are in backtest.parquet."]
    return "\n".join(lines) + "\n"


def shown(name: str) -> str:
    """A name from outside for a cell of a table: nothing in it is read as anything but text."""
    short = name if len(name) <= 80 else f"{name[:77]}..."
    return "".join(f"\\{sign}" if sign in "|`*_<>[]\\#&" else sign for sign in ascii(short)[1:-1])


def _more(tested: Sequence[GroupResult]) -> list[str]:
    unread = sum(each.unread for each in tested)
    few = sum(each.partitions - each.with_baseline - each.unread for each in tested)
    left = sum(each.partitions_left_out for each in tested)
    short = sum(not each.by_hour for each in tested)
    skewed = sum(each.skewed for each in tested)
    notes = (
        (not tested, "no group has committed anything that a capture has seen"),
        (unread, f"no baseline for {unread} partitions whose ends no capture has read: the topic is gone or not visible"),
        (few, f"no baseline for {few} partitions: too few captures could be judged"),
        (short, f"the ConfigMaps of {short} groups have figures over all hours only: by hour they would be too large"),
        (left, f"{left} partitions are left out of ConfigMaps that would be too large: their gate has no baseline"),
        (skewed, f"{skewed} commits were ahead of the end at their time and not at the next capture: clocks differ"))
    return [note for count, note in notes if count]
