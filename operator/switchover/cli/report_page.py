"""A report as HTML, Markdown and JSON, all of the same data. Pure.

The HTML is one file that loads nothing and runs nothing (its Content-Security-Policy says so, too); on the dashboard it has
the one script that reads it again. Jinja escapes every text in it, and `report_of` has made each printable before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache
from itertools import pairwise
from math import sqrt
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from switchover.api.kafka_migration import RestartPace
from switchover.api.schema import Model, rfc3339
from switchover.api.status import AcceptedApproval, Answer, Direction, Finding, GateStreak, Transition, WaitingFor
from switchover.cli.command import Output
from switchover.cli.display import clock, document
from switchover.cli.plots import COLOURS, Points, drawn, is_dashed
from switchover.cli.report import Irreversible, Line, Measured, Report
from switchover.cli.timeline import Batch, Stage
from switchover.text.visible import in_markdown

UNKNOWN = "Unknown"
WIDTH = 1000.0
"""Of a drawing, in units of its own: it is as wide as the page lets it be."""
MODES = {
    "KafkaMigration": "Modes of brokers: ZooKeeper as they were, ZooKeeperPinned on Kafka 3.9 with the protocol version of"
                      " before, ZooKeeperRaised with the protocol version raised, Migration with the migration flag,"
                      " KRaft by Switchover's edits, OwnKRaft by your own configuration; of controllers:"
                      " MigrationController while they migrate, KRaftController finalized, Stopped.",
    "ConsumerGroupMigration": "Modes: Original the workload as it was, Intermediate the workload with its bridge,"
                              " Target the workload with the template of the spec.",
}
NOTHING_YET = f"{UNKNOWN}: the status has no step and no move yet."
_OVER = ("Succeeded", "RolledBack")
TIMES = ("start", "end", "opened", "proven", "time", "since")
"""Names in JSON of what is an empty text where it is not known, and not null."""
FIELDS: Mapping[type[Model], str] = {
    AcceptedApproval: "step=name approver reason time=accepted_time plan_hash",
    Answer: "gate=name time verdict message observed threshold since",
    Finding: "code severity subject message cure",
    GateStreak: "name verdict since",
    RestartPace: "mode=name batches average_seconds slowest_seconds",
    Transition: "time before=from_ after=to message reason backward=direction",
    WaitingFor: "gate verdict reason subject message observed threshold since unblocks runbook=runbook_url"}
"""What JSON has of each part of the status, by its name there (=, where it is another one here)."""
LEAST = 4.0
"""Width of what took no time at all, so that it is seen."""


class Bar(NamedTuple):
    """A part of a row of the timeline: `sort` is wait, hold, work, back or bake."""

    x: float
    width: float
    sort: str


class Row(NamedTuple):
    """A stage, or a batch of one, with its bars; `took` is in seconds, up to now for what is under way."""

    name: str
    is_batch: bool
    start: datetime | None
    end: str
    took: float | None
    texts: tuple[str, ...]
    bars: tuple[Bar, ...]


class Curve(NamedTuple):
    """A line of a plot: whose it is, its colour, the worst value with its time, and the last one."""

    of: str
    sort: str
    dashed: bool
    worst: str
    when: str
    last: str


class Plot(NamedTuple):
    """A figure over time, of one or of several: a line for each, and where the steps begin."""

    title: str
    curves: tuple[Curve, ...]
    lines: tuple[Points, ...]
    marks: tuple[tuple[float, str], ...]


PLOTS = {
    "GroupLag": ("Lag of the groups", "records"),
    "GroupGap": ("Gap: how long a partition with records had no commit", "s"),
    "DualWriteLag": ("Dual write: records that ZooKeeper did not have", "records"),
    "DualWriteAge": ("Dual write: time since the last one", "s"),
    "Restarts": ("Pods put on record to be replaced", "pods"),
}
"""Title and unit of each figure of status.measurements that is drawn."""
NOTHING_MEASURED = "Nothing was measured: no group is named, or none was seen."
MEASUREMENTS_UNKNOWN = f"{UNKNOWN}: the status does not have them."


class Live(NamedTuple):
    """Of a page that is read again every so many seconds, by a script in it; `home` is the page of all migrations."""

    seconds: int
    script: str
    home: str


def html(report: Report, live: Live | None = None) -> str:
    """One page that stands alone, or the dashboard's."""
    return template("report.html.j2").render(
        live=live, report=report, facts=facts(report), rows=tuple(rows(report)), split=tuple(split(report)),
        plots=tuple(plots(report)), drawn=drawn, unmeasured=unmeasured(report),
        tables=tables(report), nothing_yet=NOTHING_YET, modes=MODES.get(report.kind, ""), width=WIDTH)


def markdown(report: Report) -> str:
    """The same for a ticket that takes Markdown."""
    return "\n".join(_lines(report)) + "\n"


def json_of(report: Report) -> str:
    """The data themselves; what is not known is null or empty."""
    return document(_plain(report), Output.JSON)


def _plain(value: Any, name: str = "") -> Any:
    match value:
        case None if name in TIMES:
            return ""
        case datetime():
            return rfc3339(value)
        case Direction():
            return value is Direction.BACKWARD
        case tuple():
            return [_plain(each) for each in value]
        case Model():
            names = (each.partition("=") for each in FIELDS[type(value)].split())
            return {name: _plain(getattr(value, field or name), name) for name, _, field in names}
        case None | str() | int():
            return value
    return {each.name: _plain(getattr(value, each.name), each.name) for each in fields(value)}


def facts(report: Report) -> tuple[Line, ...]:
    """What stands under the heading."""
    ended = moment(report.end) if report.end or report.phase in _OVER else "not yet" if report.phase else UNKNOWN
    plan = "none on record" if report.plan_hash == "" else known(report.plan_hash)
    return (Line("Plan", plan), Line("Attempt", known(report.attempt)), Line("Progress", report.progress),
            Line("Began", moment(report.start)), Line("Ended", ended), Line("Rollback", report.rollback),
            *(Line(each.name, moment(each.value)) for each in report.about),
            Line("Written", moment(report.written)))


def known(value: object) -> str:
    """The value, or Unknown where there is none; 0 is a value."""
    return UNKNOWN if value in (None, "") else str(value)


def lasted(duration: float | None) -> str:
    """Seconds at a glance, or Unknown."""
    return UNKNOWN if duration is None else clock(duration)


def between(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds from one time to the other; None where one is not known."""
    return max(0.0, (end - start).total_seconds()) if start and end else None


def moment(time: datetime | str | None) -> str:
    """A time as people read it; a text as it is."""
    return f"{time:%Y-%m-%d %H:%M:%S} UTC" if isinstance(time, datetime) else known(time)


def begun_text(begun: bool | None) -> str:
    """Whether a step that cannot be taken back has begun."""
    return {True: "has begun", False: "has not begun", None: f"{UNKNOWN} whether it has begun"}[begun]


# --- the drawings -------------------------------------------------------------------------------------------------------


def rows(report: Report) -> Iterator[Row]:
    """The timeline, a row for each stage and batch. A stage is as wide as the square root of its time, so that a day of
    soaking leaves room for a restart of a minute; within a stage the scale is even."""
    for stage, end, x, width in _laid_out(report):
        name = f"{stage.step}, taken back" if stage.backward else stage.step
        yield Row(name, False, stage.start, _ended(stage.end, end), between(stage.start, end), tuple(_texts(stage, end)),
                  tuple(_bars(stage, end, x, width)))
        for batch in stage.batches:
            yield Row(f"batch {batch.name}", True, batch.start, _ended(batch.end, end),
                      between(batch.start, batch.end or end), (batch.what,), tuple(_batch_bars(stage, batch, end, x, width)))


def _laid_out(report: Report) -> Iterator[tuple[Stage, datetime | None, float, float]]:
    """Each stage with its end, where its bar begins, and how wide it is."""
    ends = [_end(report, stage, following) for stage, following in pairwise((*report.stages, None)) if stage is not None]
    shares = [sqrt(between(stage.start, end) or 0.0) for stage, end in zip(report.stages, ends, strict=True)]
    scale, x = max(0.0, WIDTH - LEAST * len(shares)) / (sum(shares) or 1.0), 0.0
    for stage, end, share in zip(report.stages, ends, shares, strict=True):
        yield stage, end, x, LEAST + share * scale
        x += LEAST + share * scale


def unmeasured(report: Report) -> str:
    """What is said where there is no plot."""
    return MEASUREMENTS_UNKNOWN if report.measured is None else "" if any(plots(report)) else NOTHING_MEASURED


def plots(report: Report) -> Iterator[Plot]:
    """The figures over time, on the scale of the timeline."""
    stages = tuple(_laid_out(report))
    for figure, (title, unit) in PLOTS.items():
        found = [each for each in report.measured or () if each.figure == figure
                 and any(value is not None for _, value in each.points)]
        if found:
            lines = tuple(tuple((_place(stages, time), value) for time, value in each.points) for each in found)
            yield Plot(f"{title}, {unit}", tuple(_curve(at, each, unit) for at, each in enumerate(found)), lines,
                       tuple((x, stage.step) for stage, _, x, _ in stages))


def _curve(at: int, measured: Measured, unit: str) -> Curve:
    seen = [(value, time) for time, value in measured.points if value is not None]
    worst, when = max(seen, key=lambda each: each[0])
    return Curve(measured.of, COLOURS[at % len(COLOURS)], is_dashed(at), f"{worst} {unit}", moment(when),
                 f"{seen[-1][0]} {unit}")


def _place(stages: Sequence[tuple[Stage, datetime | None, float, float]], time: datetime) -> float:
    """Where a time stands on the scale of the timeline: in the last stage that had begun by then."""
    x = 0.0
    for stage, end, begin, width in stages:
        if stage.start and stage.start <= time:
            x = begin + width * _share(stage.start, time, end)
    return x


def split(report: Report) -> Iterator[tuple[str, str, int | None, Bar | None]]:
    """Where the time went: name, sort, seconds, and a bar for each as wide as its share."""
    parts = (("Active", "work", report.active_seconds), ("Waiting for gates and bakes", "wait", report.gate_seconds),
             ("Waiting for people", "hold", report.human_seconds))
    whole, x = sum(max(0, took or 0) for _, _, took in parts), 0.0
    for name, sort, took in parts:
        width = WIDTH * max(0, took or 0) / whole if whole else 0.0
        yield name, sort, took, Bar(x, width, sort) if width else None
        x += width


def _end(report: Report, stage: Stage, following: Stage | None) -> datetime | None:
    """Until now for what is under way; None of a stage of which nobody recorded the end."""
    return stage.end or (None if following is not None or report.end else report.written)


def _ended(time: datetime | None, until: datetime | None) -> str:
    return moment(time) if time or not until else "under way"


def span(row: Row) -> str:
    """From when until when, without what both have in common; in UTC."""
    start, end = moment(row.start).removesuffix(" UTC"), row.end.removesuffix(" UTC")
    return f"{start} – {end[11:] if end[:10] == start[:10] else end}"


def _texts(stage: Stage, end: datetime | None) -> Iterator[str]:
    """How long its entry was held and by whom it was approved, and what a gate took back."""
    if stage.said or (stage.held and not stage.opened):
        yield stage.said or "held for an approval, none is on record"
    waited = between(stage.start, stage.opened or (None if stage.end else end))
    if waited:
        yield f"waited {clock(waited)} before it began" if stage.opened else f"has waited {clock(waited)} so far"
    for trouble in stage.troubles:
        yield f"{moment(trouble.time)}: {trouble.message}"


def _bars(stage: Stage, end: datetime | None, x: float, width: float) -> Iterator[Bar]:
    opened = x + width * _share(stage.start, stage.opened, end) if stage.opened else x
    if opened > x:
        yield Bar(x, opened - x, "hold" if stage.held else "wait")
    waits = not stage.opened and not stage.end
    going = "back" if stage.backward else "work"
    yield Bar(opened, x + width - opened, ("hold" if stage.held else "wait") if waits else going)


def _batch_bars(stage: Stage, batch: Batch, end: datetime | None, x: float, width: float) -> Iterator[Bar]:
    start, stop = (x + width * _share(stage.start, each, end) for each in (batch.start, batch.end or end))
    proven = x + width * _share(stage.start, batch.proven, end) if batch.proven else stop
    yield Bar(start, max(LEAST / 2, proven - start), "back" if stage.backward else "work")
    if stop > proven:
        yield Bar(proven, stop - proven, "bake")


def _share(start: datetime | None, time: datetime | None, end: datetime | None) -> float:
    """How far along a time is from start to end, 0 to 1."""
    whole, part = between(start, end), between(start, time)
    return min(1.0, part / whole) if whole and part else 0.0


@cache
def template(name: str) -> Template:
    """One of this package's, which escapes what it is given."""
    environment = Environment(loader=PackageLoader(__package__, ""), autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(known=known, lasted=lasted, moment=moment, begun=begun_text, said=said, span=span)
    return environment.get_template(name)


# --- the tables ---------------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    """A part of the report that is a table, in HTML and in Markdown. `empty` is said where there is nothing in it."""

    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    empty: str = ""


def tables(report: Report) -> dict[str, Table]:
    """Every table by its title."""
    def empty(key: str) -> str:
        return f"{UNKNOWN}: the status does not have them." if key in report.untold else "None on record."

    return {
        "Approvals": Table(("Step", "By", "Reason", "Accepted", "Plan"), tuple(
            (each.name, known(each.approver), each.reason, moment(each.accepted_time), known(each.plan_hash))
            for each in report.approvals), empty("approvals")),
        "Batches by mode": Table(("Into mode", "Batches", "Average", "Slowest"), tuple(
            (known(each.name), str(each.batches), clock(each.average_seconds), clock(each.slowest_seconds))
            for each in report.paces)),
        "Findings": Table(("Weight", "Finding", "On", "What", "What to do"), tuple(
            (each.severity, known(each.code), each.subject, known(each.message), each.cure)
            for each in report.findings), empty("findings")),
        "Gates, as they answered last": Table(("Gate", "Verdict", "Since"), tuple(
            (known(each.name), each.verdict, moment(each.since)) for each in report.gates), empty("gates")),
        "Versions": Table(("Of", "Version"), tuple((each.name, known(each.value)) for each in report.versions)),
        "Events": Table(("Time", "Type", "Reason", "What"), tuple(
            (moment(each.time), each.type, each.reason, each.message) for each in report.events)),
        "Moves": Table(("Time", "From", "To", "What"), tuple(
            (moment(each.time), each.from_, each.to, known(each.message)) for each in report.moves), empty("history")),
    }


def said(act: Irreversible) -> Table:
    """What every gate said before a step that cannot be taken back. An operator of an earlier release recorded nothing."""
    return Table(("Gate", "Verdict", "What", "Observed", "Needed", "At", "Since"), tuple(
        (each.name, each.verdict, each.message, each.observed, each.threshold, moment(each.time),
         moment(each.since)) for each in act.answers),
        f"What the gates said before it is {UNKNOWN}: the status does not have it.")


# --- Markdown -----------------------------------------------------------------------------------------------------------


def _lines(report: Report) -> Iterator[str]:
    """Its lines; texts of others can neither be markup nor end a cell."""
    whose = in_markdown(f"{report.namespace}/{report.name}")
    yield from (f"# {report.kind} {whose}: {in_markdown(known(report.phase))}", "", in_markdown(known(report.sentence)), "")
    yield from (f"* {in_markdown(line.name)}: {in_markdown(known(line.value))}" for line in facts(report))
    yield from ("", *(f"> {in_markdown(note)}" for note in report.notes))
    yield from _written("Time", Table(("Part", "Time"), tuple((name, lasted(took)) for name, _, took, _ in split(report))))
    yield from _written("Timeline", Table(("Step", "Began", "Ended", "Time", "What"), tuple(
        (row.name, moment(row.start), row.end, lasted(row.took), "; ".join(row.texts)) for row in rows(report)),
        NOTHING_YET))
    yield from ("", MODES.get(report.kind, ""))
    yield from _written("What was measured", Table(("Figure", "Of", "Worst", "When", "Last"), tuple(
        (plot.title, each.of, each.worst, each.when, each.last) for plot in plots(report) for each in plot.curves),
        unmeasured(report)))
    yield from _written("What it waits for", Table(("Gate", "Verdict", "Reason", "On", "What", "Since", "Unblocks"), tuple(
        (each.gate, each.verdict, each.reason, each.subject, each.message, moment(each.since), each.unblocks)
        for each in report.waiting), f"{UNKNOWN}: the status does not have it." if "waitingFor" in report.untold else ""))
    yield from ("", "## What cannot be taken back")
    for act in report.irreversible:
        move = f" {in_markdown(act.move)}." if act.move else ""
        yield from ("", f"**{in_markdown(act.step)}**: {begun_text(act.begun)}.{move}")
        if act.begun is not False:
            yield from _cells(said(act))
            yield from ("", *(f"* {moment(move.time)}: {in_markdown(known(move.message))}" for move in act.moves))
    restarts = Table(("What", "Pods"), tuple((each.name, known(each.value)) for each in report.restarts))
    yield from _written("Restarts", restarts)
    for title, table in tables(report).items():
        yield from _written(title, table)


def _written(title: str, table: Table) -> Iterator[str]:
    """A table under its title, or what is said instead."""
    if text := tuple(_cells(table)):
        yield from ("", f"## {title}", *text)


def _cells(table: Table) -> Iterator[str]:
    """A table, or what is said where there is nothing in it, if anything is."""
    if table.cells:
        yield from ("", f"| {' | '.join(table.names)} |", f"|{'---|' * len(table.names)}")
        yield from (f"| {' | '.join(in_markdown(cell) for cell in row)} |" for row in table.cells)
    elif table.empty:
        yield from ("", table.empty)
