"""The windows: whatever starts within one fits into one of them."""

from collections.abc import Iterator

from switchover.cluster.estimate import work_of
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_in_preflight
from switchover.engine.gate import Verdict, check, fail
from switchover.engine.windows import Calendar, TooManyOpenings
from switchover.engine.within_window import LONGER, SELDOMER, START_SECONDS, TOO_OFTEN, about
from switchover.reasons.walk import NO_WINDOW_FITS, WINDOWS_OPEN_TOO_OFTEN


def find_too_short_windows(picture: Picture) -> Iterator[Verdict]:
    """The step that needs most in one piece, if no window has it: it would wait for ever."""
    windows = picture.spec.windows
    if not windows:
        return
    kubernetes_in_preflight(picture)                                        # it tells how many brokers there are
    pieces = [work for step in picture.plan.steps for work in work_of(picture, step, slowest=True) if work.disrupts]
    longest = max(pieces, key=lambda work: work.seconds, default=None)
    if longest is None:
        return
    needed = longest.seconds + START_SECONDS
    needs = f"{longest.step} needs {needed:.0f} s in one piece"
    try:
        if Calendar(windows, picture.now).first_fit(picture.now, needed) is None:
            yield fail(NO_WINDOW_FITS, f"{needs}, and no window is open for so long",
                       unblocks=LONGER, **about(windows, needed))
    except TooManyOpenings:
        yield fail(WINDOWS_OPEN_TOO_OFTEN, f"{needs}, and {TOO_OFTEN}",
                   unblocks=SELDOMER, **about(windows, needed))


CHECKS = (check("WindowsFit", find_too_short_windows, "everything fits into a window",
                needs=(Need.BROKER_SETTINGS,)),)
