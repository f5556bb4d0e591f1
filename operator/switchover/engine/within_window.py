"""Outside of maintenance windows nothing starts that disrupts, and within them only what can end before they close."""

from collections.abc import Callable, Sequence
from datetime import datetime

from switchover.api.meta import Window
from switchover.api.status import Direction
from switchover.engine.gate import Verdict, passed, wait
from switchover.engine.pace import under_way
from switchover.engine.position import Position
from switchover.engine.windows import MOST_OPENINGS, Calendar, Stretch, TooManyOpenings, utc, zone
from switchover.reasons.walk import NO_WINDOW_FITS, OUTSIDE_WINDOW, WINDOW_TOO_SHORT, WINDOWS_OPEN_TOO_OFTEN

START_SECONDS = 60.0
"""To spare from the choice of a batch to its first eviction, so that a moment's delay does not strand it on record."""


def judge(windows: Sequence[Window], at: Position, now: float, seconds_needed: Callable[[], float],
          one_piece: bool) -> Verdict:
    """Whether what starts next, which takes so many seconds, may start now. What is under way goes on, and so does a step
    in `one_piece` that has begun; the way back waits for no window.
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
    opens = _told(fitting)
    if current is None:
        return wait(OUTSIDE_WINDOW, f"every window is closed; {fitting.window.name} opens at {opens}",
                    subject=fitting.window.name, threshold=utc(fitting.opens),
                    unblocks=f"nothing to do: it goes on at {opens}, or change spec.windows")
    return wait(WINDOW_TOO_SHORT, f"{at.step} needs {needed:.0f} s next, and {current.window.name} closes before that;"
                f" {fitting.window.name} opens at {opens}", subject=current.window.name,
                observed=f"{current.closes - now:.0f} s", threshold=f"{needed:.0f} s",
                unblocks=f"nothing to do: it goes on at {opens}, or change spec.windows")


TOO_OFTEN = f"the windows open too often to tell where so much fits: their next {MOST_OPENINGS} openings were looked at"
SELDOMER = "let the windows of spec.windows open less often, and each for longer"
LONGER = "make a window of spec.windows longer, or the bake in spec.rollout shorter"


def about(windows: Sequence[Window], needed: float) -> dict[str, str]:
    """What a verdict about all windows is about."""
    return {"subject": ", ".join(window.name for window in windows), "threshold": f"{needed:.0f} s"}


def _told(stretch: Stretch) -> str:
    """On the clocks that the window goes by."""
    name = stretch.window.time_zone
    return f"{datetime.fromtimestamp(stretch.opens, zone(name)):%Y-%m-%d %H:%M} {name}"
