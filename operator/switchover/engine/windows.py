"""Maintenance windows: when they are open, how long still, and when the next one opens that is long enough.

Times are seconds since the epoch. A window opens whenever its cron expression says so on the clocks of its time zone, and
stays open for its duration in elapsed seconds, whatever those clocks do meanwhile. An opening in the hour that clocks skip
comes right after it; one in the hour that they repeat comes once, the first time (as Debian's cron does it).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from heapq import merge
from zoneinfo import ZoneInfo

from cronsim import CronSim

from switchover.api.meta import Window
from switchover.api.status import Direction
from switchover.engine.gate import Verdict, passed, wait
from switchover.engine.pace import under_way
from switchover.engine.position import Position
from switchover.reasons.walk import NO_WINDOW_FITS, OUTSIDE_WINDOW, WINDOW_TOO_SHORT, WINDOWS_OPEN_TOO_OFTEN

CLOCK_CHANGE = 3 * 3600.0
"""More than any clock is ever put back."""
LOOK_AHEAD, LOOK_AHEAD_SECONDS = 100, 100 * 86_400.0
"""So many stretches, and all of so many days, are looked at for one that is long enough."""
MOST_OPENINGS = 500
"""How many openings one calendar looks at. Each takes 10 to 100 µs, and whoever writes a spec says how many there are."""
FURTHEST = timedelta(days=1500)
"""How far ahead an opening is looked for: the next 29 February is seen, what comes once in 28 years is not."""


class TooManyOpenings(Exception):
    """The windows open so often that their answer would take too long to find."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time without a gap in which one window or another is open; `window` is the one that stays open to its end."""

    window: Window
    opens: float
    closes: float


class Calendar:
    """The stretches from `now` on, one after the other. A stretch is followed only as far as somebody asks.

    Every question may raise TooManyOpenings.
    """

    def __init__(self, windows: Sequence[Window], now: float) -> None:
        self._now = now
        self._openings = merge(*(_openings(window, now) for window in windows), key=lambda each: each.opens)
        self._looked_at = 0
        self._coming = next(self._openings, None)
        self._stretch: Stretch | None = None

    def open_now(self, seconds: float) -> Stretch | None:
        """The stretch from `now` on, followed until it holds `seconds` or ends; None while every window is closed. To be
        asked first."""
        found = self._followed(self._now + seconds)
        return found if found is not None and found.opens == self._now else None

    def first_fit(self, at: float, seconds: float) -> Stretch | None:
        """The first stretch in which `seconds` fit from `at` on; `at` is never before that of the last question.

        None when none of the next stretches is that long.
        """
        looked_at = 0
        while (opened := self._followed(at)) is not None:
            opens = max(at, opened.opens)
            found = self._followed(opens + seconds)
            if found is not None and found.closes - opens >= seconds:
                return replace(found, opens=opens)
            looked_at += 1
            if looked_at > LOOK_AHEAD and opens > at + LOOK_AHEAD_SECONDS:
                break
            self._stretch = None
        return None

    def _followed(self, until: float) -> Stretch | None:
        """The stretch of now, or the next one, followed until a moment or its end."""
        if self._stretch is None:
            self._stretch = self._next()
        while self._stretch is not None and self._stretch.closes < until and (
                self._coming is not None and self._coming.opens <= self._stretch.closes):
            coming = self._next()
            if coming is not None and coming.closes > self._stretch.closes:
                self._stretch = replace(coming, opens=self._stretch.opens)
        return self._stretch

    def _next(self) -> Stretch | None:
        found, self._looked_at = self._coming, self._looked_at + 1
        if self._looked_at > MOST_OPENINGS:
            raise TooManyOpenings
        self._coming = next(self._openings, None)
        return found


def _openings(window: Window, now: float) -> Iterator[Stretch]:
    """The window's own openings, beginning with the one that is open now."""
    duration = window.duration_seconds
    begin = now + 60.0
    back = max(0.0, _offset(window, begin - CLOCK_CHANGE) - _offset(window, begin))   # clocks were put back a moment ago
    before = _Openings(window, begin + back, now - duration, reverse=True)
    last = next((opening for each in before if (opening := each.timestamp()) <= now), now - duration)
    if last + duration > now:
        yield Stretch(window, now, last + duration)
    for each in _Openings(window, now, now + FURTHEST.total_seconds()):
        if (opening := each.timestamp()) > now:
            yield Stretch(window, opening, opening + duration)


class _Openings(CronSim):
    """Those from a moment on, or back from it, until about another: the days between are looked at one by one."""

    def __init__(self, window: Window, at: float, until: float, *, reverse: bool = False) -> None:
        super().__init__(window.cron, _moment(window, at), reverse)
        days = timedelta(days=2)
        self._first = _moment(window, min(at, until)).date() - days
        self._last = _moment(window, max(at, until)).date() + days

    def match_day(self, d: date) -> bool:
        if not self._first <= d <= self._last:
            raise StopIteration
        return super().match_day(d)


@lru_cache(maxsize=256)
def zone(name: str) -> ZoneInfo:
    """The time zone of that name. Raises KeyError, ValueError or OSError where there is none."""
    return ZoneInfo(name)


def _moment(window: Window, at: float) -> datetime:
    return datetime.fromtimestamp(int(at), zone(window.time_zone))


def _offset(window: Window, at: float) -> float:
    offset = _moment(window, at).utcoffset()
    return offset.total_seconds() if offset is not None else 0.0


def utc(seconds: float) -> str:
    """Seconds since the epoch as 2026-11-26T14:35:00Z."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


# --- whether what starts next may start now -----------------------------------------------------------------------------


START_SECONDS = 60.0
"""Added for the time from the choice of a batch to its first eviction, so that a short delay does not cost the window."""


def judge(windows: Sequence[Window], at: Position, now: float, seconds_needed: Callable[[], float],
          one_piece: bool) -> Verdict:
    """Whether what starts next, which takes so many seconds, may start now. What is under way goes on, and so does a step
    in `one_piece` that has begun; a rollback waits for no window.
    """
    if not windows:
        return passed("no windows: always")
    if at.direction is Direction.BACKWARD:
        return passed("the rollback waits for no window")
    chosen = at.batch is None or at.batch.started == now        # nothing of it is on record yet
    if (under_way(at) and not chosen) or (one_piece and at.batches_done > 0):
        return passed("under way: it ends although the window may close")
    needed = seconds_needed() + (START_SECONDS if chosen else 0.0)
    try:
        calendar = Calendar(windows, now)
        current = calendar.open_now(needed)
        if current is not None and current.closes - now >= needed:
            return passed(f"{current.window.name} is open for longer than the {needed:.0f} s that {at.step} needs next")
        fitting = calendar.first_fit(now, needed)
    except TooManyOpenings:
        return wait(WINDOWS_OPEN_TOO_OFTEN, f"{at.step} needs {needed:.0f} s next, and {TOO_OFTEN}", unblocks=SELDOMER,
                    **about(windows, needed))
    if fitting is None:
        return wait(NO_WINDOW_FITS, f"{at.step} needs {needed:.0f} s next, and no window is open for so long",
                    unblocks=LONGER, **about(windows, needed))
    opens = _shown(fitting)
    if current is None:
        return wait(OUTSIDE_WINDOW, f"every window is closed; {fitting.window.name} opens at {opens}",
                    subject=fitting.window.name, threshold=utc(fitting.opens),
                    unblocks=f"nothing to do: it goes on at {opens}, or change spec.windows")
    return wait(WINDOW_TOO_SHORT, f"{at.step} needs {needed:.0f} s next, and {current.window.name} closes before that;"
                f" {fitting.window.name} opens at {opens}", subject=current.window.name,
                observed=f"{current.closes - now:.0f} s", threshold=f"{needed:.0f} s",
                unblocks=f"nothing to do: it goes on at {opens}, or change spec.windows")


TOO_OFTEN = f"none of the next {MOST_OPENINGS} openings of the windows is long enough; they open too often to look further"
SELDOMER = "let the windows of spec.windows open less often, and each for longer"
LONGER = "make a window of spec.windows longer, or the bake in spec.rollout shorter"


def about(windows: Sequence[Window], needed: float) -> dict[str, str]:
    """What a verdict about all windows is about."""
    return {"subject": ", ".join(window.name for window in windows), "threshold": f"{needed:.0f} s"}


def _shown(stretch: Stretch) -> str:
    """When it opens, in the window's own time zone."""
    name = stretch.window.time_zone
    return f"{datetime.fromtimestamp(stretch.opens, zone(name)):%Y-%m-%d %H:%M} {name}"


# --- what is left to do -------------------------------------------------------------------------------------------------


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
    they open too often to find out."""
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
