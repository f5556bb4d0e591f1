"""Maintenance windows: when they are open, how long still, and when the next one opens that is long enough.

Times are seconds since the epoch. A window opens whenever its cron expression says so on the clocks of its time zone, and
stays open for its duration in elapsed seconds, whatever those clocks do meanwhile. An opening in the hour that clocks skip
comes right after it; one in the hour that they repeat comes once, the first time (as Debian's cron does it).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from heapq import merge
from zoneinfo import ZoneInfo

from cronsim import CronSim

from switchover.api.meta import Window

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
