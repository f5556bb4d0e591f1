"""Kill the operator at a moment of one write of a run, let the next process finish, and compare the ends."""

import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor

from fakes.incarnation import ANSWERED, APPLIED, BEFORE

Point = tuple[int, str]
MOMENTS = (BEFORE, APPLIED, ANSWERED)
AT_LEAST = 6


def points(writes: Sequence[str], begin: int = 0) -> list[Point]:
    """Every moment of every write after the first `begin`: those that move something first, in an order that stays."""
    numbers = range(begin + 1, len(writes) + 1)
    effects = {number for number in numbers if writes[number - 1].split()[1] not in ("kafkamigrations", "leases", "events")}
    chosen, others = ([(number, moment) for number in numbers if (number in effects) is wanted for moment in MOMENTS]
                      for wanted in (True, False))
    for row in (chosen, others):
        random.Random(0).shuffle(row)
    return chosen + others


def run(killed: Callable[[Point], str], wanted: Sequence[Point], seconds: float) -> Iterator[str]:
    """What was wrong at each point, "" for nothing; at least a few, then as many as the time allows, two at a time."""
    os.environ["USER"] = "switchover"                          # Kopf asks
    end = time.monotonic() + seconds
    with ProcessPoolExecutor(2) as pool:
        running: deque[Future[str]] = deque()
        for count, point in enumerate(wanted):
            if time.monotonic() > end and count >= AT_LEAST:
                break
            running.append(pool.submit(killed, point))
            if len(running) >= 4:
                yield running.popleft().result()
        for each in running:
            yield each.result()


def told(results: Sequence[str], wanted: Sequence[Point]) -> str:
    """The share that was covered, in words."""
    writes = len({number for number, _ in wanted})
    return f"{len(results)} of {len(wanted)} kills ({writes} writes x {len(MOMENTS)} moments)"
