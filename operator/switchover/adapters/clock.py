"""The wall clock of the machine we run on."""

import time


class WallClock:
    """`ports.Clock` by the machine's clock, in seconds since the epoch."""

    def now(self) -> float:
        return time.time()
