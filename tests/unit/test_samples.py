"""How far samples reach back, and how many there are of them."""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import pytest

from switchover.lag.standstill import MOST, SHORTEST, keep, span


@dataclass(frozen=True)
class Seen:
    at: float


def kept(every: float, seconds: float, until: float) -> list[float]:
    found: deque[Seen] = deque()
    at = 0.0
    while at <= until:
        keep(found, Seen(at), seconds)
        assert found[-1].at == at, "the newest is always there"
        at += every
    return [each.at for each in found]


def test_of_a_short_time_all_are_kept() -> None:
    assert kept(2, SHORTEST, 1_000) == [float(at) for at in range(400, 1_001, 2)]
    assert kept(5, SHORTEST, 1_000) == [float(at) for at in range(400, 1_001, 5)]


@pytest.mark.parametrize("limit", [1, 599, 600, 3_600, 86_400])
@pytest.mark.parametrize("every", [2.0, 5.0, 30.0])
def test_they_reach_further_back_than_any_limit_and_are_not_too_many(limit: int, every: float) -> None:
    times = kept(every, span(limit), 2 * span(limit))
    assert times[-1] - times[0] > limit
    assert len(times) <= 1.5 * MOST
    assert all(later - earlier < 2 * (span(limit) / MOST + every) for earlier, later in pairwise(times))
