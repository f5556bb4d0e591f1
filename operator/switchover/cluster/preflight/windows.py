"""The windows: whatever starts within one fits into one of them."""

from collections.abc import Iterator

from switchover.cluster.estimate import work_of
from switchover.cluster.needs import Need
from switchover.cluster.picture import Picture
from switchover.cluster.preflight.reading import kubernetes
from switchover.engine.gate import Verdict, check, fail
from switchover.engine.windows import Calendar, TooManyOpenings
from switchover.engine.within_window import START_SECONDS, unfit
from switchover.reasons.walk import NO_WINDOW_FITS, WINDOWS_OPEN_TOO_OFTEN


def find_too_short_windows(picture: Picture) -> Iterator[Verdict]:
    """The step that needs most in one piece, if no window has it: it would wait for ever."""
    windows = picture.spec.windows
    if not windows:
        return
    kubernetes(picture)                                        # it tells how many brokers there are
    pieces = [work for step in picture.plan.steps for work in work_of(picture, step, slowest=True) if work.disrupts]
    longest = max(pieces, key=lambda work: work.seconds, default=None)
    if longest is None:
        return
    needed = longest.seconds + START_SECONDS
    try:
        if Calendar(windows, picture.now).first_fit(picture.now, needed) is None:
            yield unfit(fail, NO_WINDOW_FITS, windows, longest.step, needed)
    except TooManyOpenings:
        yield unfit(fail, WINDOWS_OPEN_TOO_OFTEN, windows, longest.step, needed)


CHECKS = (check("WindowsFit", find_too_short_windows, "everything fits into a window",
                needs=(Need.BROKER_SETTINGS,)),)
