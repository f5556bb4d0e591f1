"""Maintenance windows: when they are open, how long still, and when the next one opens that is long enough.

Times are seconds since the epoch. A window opens whenever its cron expression says so on the clocks of its time zone, and
stays open for its duration in elapsed seconds, whatever those clocks do meanwhile. An opening in the hour that clocks skip
comes right after it; one in the hour that they repeat comes once, the first time (as Debian's cron does it).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim

from switchover.api.meta import Window

CLOCK_CHANGE = 3 * 3600.0
"""More than any clock is ever put back: how far to start beyond a moment, so that no opening near it is missed."""
LOOK_AHEAD = 100
"""How many stretches are looked at for one that is long enough; daily windows are seen for months."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time without a gap in which one window or another is open; `window` is the one that stays open to its end."""

    window: Window
    opens: float
    closes: float


def open_now(windows: Sequence[Window], now: float, seconds: float) -> Stretch | None:
    """The stretch from `now` on, followed until it holds `seconds` or ends; None while every window is closed."""
    stretch: Stretch | None = None
    closes = now
    while closes < now + seconds or stretch is None:
        ends = [(opening + window.duration_seconds, window) for window in windows
                if (opening := _last_opening(window, closes)) is not None]
        latest, window = max(ends, key=lambda end: end[0], default=(closes, None))
        if window is None or latest <= closes:
            break
        closes, stretch = latest, Stretch(window, now, latest)
    return stretch


def next_stretch(windows: Sequence[Window], after: float, seconds: float) -> Stretch | None:
    """The first stretch that opens after a moment; None when no window will ever open again."""
    openings = [opening for window in windows if (opening := _next_opening(window, after)) is not None]
    return open_now(windows, min(openings), seconds) if openings else None


def first_fit(windows: Sequence[Window], now: float, seconds: float) -> Stretch | None:
    """The first stretch, beginning with the one that is open now, in which `seconds` still fit.

    None when none of the next stretches is that long.
    """
    return next((stretch for stretch in islice(_stretches(windows, now, seconds), LOOK_AHEAD)
                 if stretch.closes - stretch.opens >= seconds), None)


def _stretches(windows: Sequence[Window], now: float, seconds: float) -> Iterator[Stretch]:
    stretch = open_now(windows, now, seconds) or next_stretch(windows, now, seconds)
    while stretch is not None:
        yield stretch
        stretch = next_stretch(windows, stretch.closes, seconds)


@lru_cache(maxsize=256)
def zone(name: str) -> ZoneInfo:
    """The time zone of that name. Raises KeyError, ValueError or OSError where there is none."""
    return ZoneInfo(name)


def _moment(window: Window, at: float) -> datetime:
    return datetime.fromtimestamp(int(at), zone(window.time_zone))


def _last_opening(window: Window, at: float) -> float | None:
    """The last opening at or before a moment."""
    later = CronSim(window.cron, _moment(window, at + CLOCK_CHANGE), reverse=True)
    return next((opening for each in later if (opening := each.timestamp()) <= at), None)


def _next_opening(window: Window, after: float) -> float | None:
    """The first opening after a moment."""
    earlier = CronSim(window.cron, _moment(window, after - CLOCK_CHANGE))
    return next((opening for each in earlier if (opening := each.timestamp()) > after), None)


def utc(seconds: float) -> str:
    """Seconds since the epoch as 2026-11-26T14:35:00Z."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
