"""How far samples of a group reach back: as far as the gates look, however far that is, in a bounded number."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from switchover.partition import TopicPartition

MOST = 300
"""Samples of one group that are kept, about."""
SHORTEST = 600.0
"""Seconds that they reach back at least."""


class Sample(Protocol):
    """Something that was seen at a time."""

    @property
    def at(self) -> float: ...


class Sweep(Sample, Protocol):
    """One sweep over a group: partition -> (committed offset or None, end of what is left to consume)."""

    @property
    def offsets(self) -> Mapping[TopicPartition, tuple[int | None, int]]: ...


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


def stalled_seconds(found: Sequence[Sweep], partition: TopicPartition) -> float:
    """For how long the committed offset of a partition has stood while there was something to commit, oldest sweep first."""
    committed, end = found[-1].offsets[partition]
    if committed is None or committed >= end:
        return 0.0
    since = found[-1].at
    for sample in reversed(found):
        before, its_end = sample.offsets.get(partition, (None, 0))
        if before != committed or its_end <= committed:
            break
        since = sample.at
    return found[-1].at - since
