"""The windows: whatever starts within one fits into one of them."""

from collections.abc import Iterator

from switchover.cluster.estimate import work_of
from switchover.cluster.needs import Need
from switchover.cluster.picture import Picture
from switchover.cluster.preflight.reading import kubernetes
from switchover.engine.gate import Verdict, check, fail
from switchover.engine.windows import first_fit
from switchover.engine.within_window import START_SECONDS
from switchover.reasons.walk import NO_WINDOW_FITS


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
    if first_fit(windows, picture.now, needed) is None:
        yield fail(NO_WINDOW_FITS, f"{longest.step} needs {needed:.0f} s in one piece, and no window is open for so long",
                   subject=", ".join(window.name for window in windows), threshold=f"{needed:.0f} s",
                   unblocks="make a window of spec.windows longer, or the bake in spec.rollout shorter")


CHECKS = (check("WindowsFit", find_too_short_windows, "everything fits into a window",
                needs=(Need.BROKER_SETTINGS,)),)
