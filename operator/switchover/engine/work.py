"""What is left to do in a step, in pieces, and how long it takes with windows in which nothing may start."""

from collections.abc import Sequence
from dataclasses import dataclass

from switchover.api.meta import Window
from switchover.engine.windows import Calendar, TooManyOpenings


@dataclass(frozen=True, slots=True)
class Work:
    """Something that starts once and then ends by itself. What `disrupts` starts within a window only.

    With `from_start` its time is counted from the beginning of its step, and not from the end of what comes before.
    """

    step: str
    seconds: float
    restarts: int = 0
    disrupts: bool = True
    from_start: bool = False


def seconds_until_done(work: Sequence[Work], windows: Sequence[Window], now: float) -> float | None:
    """How long it takes, with the times in which windows are closed; None when something fits into none of them, and when
    they open too often to tell."""
    try:
        return _seconds_until_done(work, Calendar(windows, now) if windows else None, now)
    except TooManyOpenings:
        return None


def _seconds_until_done(work: Sequence[Work], calendar: Calendar | None, now: float) -> float | None:
    at, begun, step, stretch = now, now, "", None
    for each in work:
        if each.step != step:
            step, begun = each.step, at
        if calendar is not None and each.disrupts:
            if stretch is None or at + each.seconds > stretch.closes:
                stretch = calendar.first_fit(at, each.seconds)
            if stretch is None:
                return None
            at = max(at, stretch.opens)
        at = max(at, begun + each.seconds) if each.from_start else at + each.seconds
    return at - now
