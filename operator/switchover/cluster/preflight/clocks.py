"""Clocks: windows open by ours, and who compares times in logs and status must know how far they are apart."""

from collections.abc import Iterator

from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import zookeeper_of
from switchover.engine.gate import Verdict, check, seen, warn
from switchover.reasons.notes import CLOCKS_APART
from switchover.reasons.preflight import KUBERNETES_UNKNOWN

APART_SECONDS = 5.0


def find_clocks_apart(picture: Picture) -> Iterator[Verdict]:
    """No gate compares clocks of two machines; a person who reads their times does."""
    ahead = seen(picture.facts.examination.ahead, KUBERNETES_UNKNOWN, "the API server's clock")
    if abs(ahead) > APART_SECONDS:
        yield _apart("the operator's clock", ahead, f"the API server's clock is {_told(ahead)} the operator's:"
                     " windows open, and the status tells times, by the operator's")
    for broker_id, seconds in sorted(zookeeper_of(picture).ahead.items()):
        if abs(seconds) > APART_SECONDS:
            yield _apart(f"broker {broker_id}", seconds,
                         f"when broker {broker_id} registered, its clock was {_told(seconds)} ZooKeeper's")


def _apart(subject: str, seconds: float, message: str) -> Verdict:
    return warn(CLOCKS_APART, message, subject=subject, observed=f"{seconds:.0f} s", threshold=f"{APART_SECONDS:.0f} s",
                cure="let every node take the time from the same source (NTP)")


def _told(seconds: float) -> str:
    return f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"


CHECKS = (check("Clocks", find_clocks_apart, "the clocks agree", needs=(Need.EXAMINATION,)),)
