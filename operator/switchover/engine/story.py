"""The story of a migration: what each pass saw, judged and decided that the pass before it had not, in lines for people.

Pure. It has names, modes, states and the messages of verdicts, which are in the status as well: never what a file, a Secret
or a template holds. An effect writes its own line (`engine.effects`).
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from switchover.api.status import Direction
from switchover.api.status import Verdict as Outcome
from switchover.engine.gate import Judgement
from switchover.engine.plan import Decision
from switchover.engine.position import Position
from switchover.shared.grouped import grouped

LONGEST, MOST = 1000, 50
"""Characters of one line, and lines of one pass."""
WIDTH = 120
"""Columns of a story as it is shown."""

_VERBS = {Outcome.WAIT: "waits", Outcome.FAIL: "fails", Outcome.UNKNOWN: "unknown"}


@dataclass(frozen=True, slots=True)
class Page:
    """What a story has said so far: the place, each fact by its subject, and by `_key` how each gate was judged in the last
    pass."""

    place: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)
    judged: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    stalled: str = ""


def next_page(before: Page, at: Position, seen: Mapping[str, str], decision: Decision) -> tuple[Page, tuple[str, ...]]:
    """The page after a pass at a position, and the lines that it adds. `seen` are the facts worth a line."""
    stalled = decision.stalled.gate if decision.stalled is not None else ""
    judged = {name: _key(item) for name, item in decision.judged.items()}
    page = Page(_place(at), {**before.seen, **seen}, judged, stalled)
    lines = [line if len(line) <= LONGEST else f"{line[:LONGEST]} …" for line in _added(before, page, decision.judged)]
    return page, (*lines[:MOST], *([f"… and {len(lines) - MOST} lines more"] if len(lines) > MOST else ()))


def laid_out(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Lines with their times as text to read: a time once, a gap before each step, and nothing wider than WIDTH."""
    last: str | None = None
    for time, line in lines:
        if line.startswith("step: ") and last is not None:
            yield ""
        begin = time if time != last else " " * len(time)
        yield from textwrap.wrap(line, WIDTH, initial_indent=f"{begin}  ", subsequent_indent=" " * (len(time) + 6),
                                 break_long_words=False, break_on_hyphens=False)
        last = time


def _added(before: Page, page: Page, judged: Mapping[str, Judgement]) -> Iterator[str]:
    if page.place != before.place:
        yield f"step: {page.place}"
    if changed := [f"{subject} {state}" for subject, state in page.seen.items() if before.seen.get(subject) != state]:
        yield f"seen: {', '.join(changed)}"
    new = [item for name, item in judged.items() if before.judged.get(name) != page.judged[name]]
    if opened := [item.gate for item in new if item.open]:
        yield f"open: {', '.join(opened)}"
    if passing := [f"{item.gate} ({item.held[1]})" for item in new if not item.open and item.held[1]]:
        yield f"passing: {', '.join(passing)}"
    yield from _shut(item for item in new if item.verdict.outcome in _VERBS)
    if page.stalled and page.stalled != before.stalled:
        yield f"stalled: {page.stalled}"


def _shut(new: Iterable[Judgement]) -> Iterator[str]:
    """Gates that found the same are named together."""
    gates = grouped(((item.verdict.outcome, item.verdict.reason, " ".join(item.verdict.message.split())), item.gate)
                    for item in new)
    for (outcome, reason, message), names in gates.items():
        yield f"{_VERBS[outcome]}: {', '.join(names)}: {reason}, {message}"


def _key(item: Judgement) -> tuple[object, ...]:
    """What makes a judgement worth another line; a message that counts seconds does not."""
    return item.open, item.verdict.outcome, item.verdict.reason, item.verdict.subject


def _place(at: Position) -> str:
    way = "forward" if at.direction is Direction.FORWARD else "back"
    again = f", attempt {at.attempt}" if at.attempt > 1 else ""
    return f"{at.step}, {way}{again}{', at its end' if at.finished else ''}"
