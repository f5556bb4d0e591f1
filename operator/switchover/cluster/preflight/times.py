"""Times: windows that are long enough, and clocks that agree."""

from collections.abc import Iterator

from switchover.cluster.estimate import work_of
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_in_preflight, zookeeper_of
from switchover.engine.gate import Verdict, check, fail, seen, warn
from switchover.engine.windows import LONGER, SELDOMER, START_SECONDS, TOO_OFTEN, Calendar, TooManyOpenings, about
from switchover.reasons.notes import CLOCKS_APART
from switchover.reasons.preflight import KUBERNETES_UNKNOWN
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


# --- clocks ---------------------------------------------------------------------------------------------------------------
# Clocks: windows open by ours, and who compares times in logs and status must know how far they are apart.

APART_SECONDS = 5.0


def find_clocks_apart(picture: Picture) -> Iterator[Verdict]:
    """No gate compares clocks of two machines; a person who reads their times does."""
    ahead = seen(picture.facts.examination.ahead, KUBERNETES_UNKNOWN, "the API server's clock")
    if abs(ahead) > APART_SECONDS:
        yield _apart("the operator's clock", ahead, f"the API server's clock is {_told(ahead)} the operator's,"
                     " by which windows open and the status has its times")
    for broker_id, seconds in sorted(zookeeper_of(picture).ahead.items()):
        if abs(seconds) > APART_SECONDS:
            yield _apart(f"broker {broker_id}", seconds,
                         f"the clock of broker {broker_id} was {_told(seconds)} ZooKeeper's when it registered")


def _apart(subject: str, seconds: float, message: str) -> Verdict:
    return warn(CLOCKS_APART, message, subject=subject, observed=f"{seconds:.0f} s", threshold=f"{APART_SECONDS:.0f} s",
                cure="set the clocks of all nodes from one source (NTP)")


def _told(seconds: float) -> str:
    return f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"


CHECKS = (
    check("WindowsFit", find_too_short_windows, "everything fits into a window",
                needs=(Need.BROKER_SETTINGS,)),
    check("Clocks", find_clocks_apart, "the clocks agree", needs=(Need.EXAMINATION,)),
)
