"""A clock that a test sets."""

from dataclasses import dataclass


@dataclass
class Clock:
    """`switchover.answers.clock.Clock`; seconds."""

    seconds: float = 1000.0

    def now(self) -> float:
        return self.seconds
