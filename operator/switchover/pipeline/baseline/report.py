"""What the job `baseline` found, in words and one table."""

from collections.abc import Sequence
from dataclasses import dataclass

from switchover.pipeline.baseline.config_map import name_of
from switchover.pipeline.baseline.history import Course

SHOWN = 200
"""Groups in the table: those with most alarms."""


@dataclass(frozen=True, slots=True)
class GroupResult:
    """A group's figures, as the columns of `kernel.GROUPS`."""

    group: str
    hours_told: bool
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
    short = sum(not each.hours_told for each in tested)
    skewed = sum(each.skewed for each in tested)
    told = (
        (not tested, "no group has committed anything that a capture has seen"),
        (unread, f"no baseline for {unread} partitions whose ends no capture has read: the topic is gone or not visible"),
        (few, f"no baseline for {few} partitions: too few captures could be judged"),
        (short, f"the ConfigMaps of {short} groups tell all hours alone: they would be too large"),
        (left, f"{left} partitions are left out of ConfigMaps that would be too large: their gate has no baseline"),
        (skewed, f"{skewed} commits were ahead of the end at their time and not at the next capture: clocks differ"))
    return [words for count, words in told if count]
