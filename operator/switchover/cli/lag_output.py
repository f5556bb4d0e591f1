"""What `switchover lag` shows, and where: a table that says why something does not pass, a line of progress, or JSON."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, RenderableType
from rich.console import Group as Lines
from rich.live import Live
from rich.table import Table
from rich.text import Text

from switchover.cli.command import console
from switchover.cli.lag import EXIT_CODES, GroupReport, Question, Report, follow_from_here
from switchover.lag import sentences
from switchover.lag.group import TopicPartition
from switchover.lag.samples import NONE
from switchover.lag.verdicts import Effect, Verdict
from switchover.lag.watch import Assessment
from switchover.runtime.garbage import look_seldom
from switchover.shared.grouped import grouped
from switchover.text.visible import printable

WORST = 3
"""Partitions of a group that the table describes."""

_COLOURS = {Effect.PASS: "green", Effect.HOLD: "yellow", Effect.INCONCLUSIVE: "magenta", Effect.FAIL: "red"}


def progress(report: Report) -> str:
    """What is missing for a verdict; empty once there is one."""
    if report.judged:
        return ""
    more = max(1, report.missing)                   # the last one may have come a moment too early
    return f"needs {more} more sample{'s' * (more > 1)} over {more * report.every:g} s for a verdict"


def table(report: Report) -> RenderableType:
    """One line for each group, then what keeps groups from passing."""
    found = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("GROUP", "STATE"):
        found.add_column(name, no_wrap=True)
    for name in ("MEMBERS", "PARTITIONS", "LAG", "TIME LAG"):
        found.add_column(name, no_wrap=True, justify="right")
    found.add_column("VERDICT", no_wrap=True)
    for group in report.groups:
        members = group.membership.assigned if group.membership is not None else None
        lag, time_lag = group.assessment.lag, group.assessment.time_lag
        found.add_row(
            Text(printable(group.name)), "?" if group.membership is None or group.why else group.membership.state,
            "?" if members is None else str(len(members)), str(len(group.assessment.group.expected)),
            "-" if lag is None else str(lag),
            "-" if time_lag is None else f"{'> ' * time_lag[1]}{time_lag[0] // 1000} s",
            Text(group.effect.name, _COLOURS[group.effect]))
    lines: list[RenderableType] = [found]
    for group in report.groups:
        lines += [Text(f"{printable(group.name)}: {printable(line)}", _COLOURS[group.effect]) for line in findings(group)]
    more = progress(report)
    lines.append(Text(f"at {_iso(report.at * 1000)}{f': {more}' if more else ''}", "dim"))
    return Lines(*lines)


def document(report: Report) -> str:
    """All of a report as one line of JSON; what is not known is null."""
    return json.dumps({
        "at": _iso(report.at * 1000), "verdict": report.effect.name, "samplesMissing": max(0, report.missing),
        "groups": [_document(group) for group in report.groups]})


def findings(group: GroupReport) -> Iterator[str]:
    """Why the group does not pass, in sentences."""
    assessment = group.assessment
    if group.why:
        yield f"its members are not known: {group.why}"
    if assessment.reading.why:
        yield f"its offsets could not be read: {assessment.reading.why}"
    for topic in group.remade:
        yield f"topic {topic} was deleted and created again: records and commits of the one before are gone, read or not"
    if group.gone:
        yield ("it is gone: it was there before, and the brokers know of no member and no offset of it any more; it was"
               " deleted, its topics were, or it ran out (offsets.retention.minutes)")
    else:
        yield from sentences.preconditions(assessment.group)
    unread = grouped((why, str(which)) for which, why in assessment.reading.failed.items()
                     if which in assessment.group.expected or isinstance(which, str))
    for why, names in unread.items():
        yield f"not read, {why}: {_few(sorted(names))}"
    found = [sentences.missing(each) for each in assessment.evaluation.missing]
    found += [sentences.sentence(assessment.partitions[row], assessment.judged, row) for row in _worst(assessment)]
    yield from found[:WORST]
    if len(found) > WORST:
        yield f"and {len(found) - WORST} partitions more that do not pass (--output json has all)"


def _worst(assessment: Assessment) -> list[int]:
    """Rows of expected partitions that do not pass, the worst first."""
    judged, q = assessment.judged, assessment.judged.quantities
    rows = [row for row in assessment.rows if judged.effect[row] != Effect.PASS]
    return sorted(rows, key=lambda row: (-judged.effect[row], -q.lag[row] if q.count[row] else 0))


def _document(group: GroupReport) -> dict[str, Any]:
    assessment = group.assessment
    rows = {each: row for row, each in enumerate(assessment.partitions)}
    return {
        "group": group.name,
        "state": group.membership.state if group.membership is not None and not group.why else None,
        "members": len(group.membership.assigned) if group.membership is not None else None,
        "verdict": group.effect.name,
        "gate": assessment.gate.effect.name,
        "sampledAt": _iso(assessment.sampled) if assessment.sampled is not None else None,
        "findings": list(findings(group)),
        "partitions": [_partition(assessment, each, rows.get(each)) for each in sorted(assessment.group.expected)],
    }


def _partition(assessment: Assessment, each: TopicPartition, row: int | None) -> dict[str, Any]:
    judged, q = assessment.judged, assessment.judged.quantities
    named = {"topic": each.topic, "partition": each.partition}
    if row is None or not q.count[row]:
        nothing = dict.fromkeys(("committed", "end", "logStart", "lag", "timeLagMs", "timeLagCensored"))
        says = sentences.missing(each) if row is None else sentences.sentence(each, judged, row)
        return named | {"verdict": Verdict.UNKNOWN.name, "effect": Effect.INCONCLUSIVE.name} | nothing | {"says": says}
    aged = q.count[row] > 1
    return named | {
        "verdict": Verdict(judged.verdict[row]).name,
        "effect": Effect(judged.effect[row]).name,
        "committed": int(q.committed[row]) if q.committed[row] != NONE else None,
        "end": int(q.end[row]),
        "logStart": int(q.start[row]),
        "lag": int(q.lag[row]),
        "timeLagMs": int(q.time_lag[row]) if aged else None,
        "timeLagCensored": bool(q.censored[row]) if aged else None,
        "says": sentences.sentence(each, judged, row),
    }


def _few(names: list[str]) -> str:
    return ", ".join(names[:WORST]) + (f" and {len(names) - WORST} more" if len(names) > WORST else "")


def _iso(milliseconds: float) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def show(question: Question, *, watch: bool, as_json: bool) -> int:
    """Show reports until there is a verdict, or with `watch` until Ctrl-C; the exit code.

    Raises Refused and Unreachable as `follow` does.
    """
    look_seldom()
    screen = console()
    last: Report | None = None

    async def follow(show: Callable[[Report], None]) -> None:
        nonlocal last
        async with contextlib.aclosing(follow_from_here(question)) as reports:
            async for report in reports:
                show(report)
                if report.judged:
                    last = report
                    if not watch:
                        return

    with contextlib.suppress(KeyboardInterrupt):
        if screen.is_terminal and not as_json:
            with Live(console=screen, auto_refresh=False) as live:
                asyncio.run(follow(lambda report: live.update(table(report), refresh=True)))
        else:
            asyncio.run(follow(lambda report: _print(screen, report, as_json)))
    return EXIT_CODES[last.effect if last is not None else Effect.INCONCLUSIVE]


def _print(screen: Console, report: Report, as_json: bool) -> None:
    if not report.judged:
        print(f"switchover: {progress(report)}", file=sys.stderr, flush=True)
    elif as_json:
        print(document(report), flush=True)
    else:
        screen.print(table(report))
