"""Virtual time: things happen in the order of their times, and in the order in which they were planned at one time."""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random


class Loop:
    """A queue of what is to come. `random` decides everything that is not decided."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.steps = 0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = count()

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + seconds, next(self._count), do))

    def run(self, until: float) -> None:
        """Let everything happen up to a time."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, do = heapq.heappop(queue)
            self.steps += 1
            do()
        self.now = until

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.random.random()
