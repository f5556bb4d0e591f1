"""How far samples of a group reach back: as far as the gates look, however far that is, in a bounded number."""

from collections import deque
from typing import Protocol, TypeVar

MOST = 300
"""Samples of one group that are kept, about."""
SHORTEST = 600.0
"""Seconds that they reach back at least."""


class Sample(Protocol):
    """Something that was seen at a time."""

    @property
    def at(self) -> float: ...


S = TypeVar("S", bound=Sample)


def span(max_stall_seconds: float) -> float:
    """Seconds to look back, so that a standstill longer than the limit is seen as one."""
    return max(SHORTEST, 1.1 * max_stall_seconds)


def keep(samples: deque[S], new: S, seconds: float) -> None:
    """Append a sample, and let go of what lies further back than `seconds`.

    Of a long time they stay evenly apart: one takes the place of that before it, unless it is far enough from the one
    before that. The newest is always there.
    """
    if len(samples) > 1 and samples[-1].at - samples[-2].at < seconds / MOST:
        samples.pop()
    samples.append(new)
    while new.at - samples[0].at > seconds:
        samples.popleft()
