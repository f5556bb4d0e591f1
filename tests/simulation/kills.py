"""Kill the operator at a moment of one write of a run, let the next process finish, and compare the ends.

An ordinary run takes a sample of all these points; a long one takes them all, in shares.
"""

from collections.abc import Callable, Sequence

import samples
from fakes.incarnation import ANSWERED, APPLIED, BEFORE

Point = tuple[int, str]
MOMENTS = (BEFORE, APPLIED, ANSWERED)
SHARES = 8
RECORDS = ("kafkamigrations", "leases", "events")


class Kills:
    """The points of one run, by its writes after the first `begin`; `killed` says what was wrong after one, or nothing."""

    def __init__(self, killed: Callable[[Point], str], writes: Sequence[str], begin: int = 0,
                 moments: Sequence[str] = MOMENTS) -> None:
        self._killed = killed
        numbers = range(begin + 1, len(writes) + 1)
        moving = {number for number in numbers if writes[number - 1].split()[1] not in RECORDS}
        self._effects, self._others = (
            [(number, moment) for number in numbers if (number in moving) is wanted for moment in moments]
            for wanted in (True, False))

    def one(self, counted: Callable[[str], None], *, moving: bool) -> None:
        """Judge a point of a write that moves something, or of one that does not."""
        self._judge(samples.taken(self._effects if moving else self._others, 1), counted)

    def share(self, number: int, counted: Callable[[str], None]) -> None:
        """Judge one of SHARES shares of all points."""
        self._judge((self._effects + self._others)[number::SHARES], counted)

    def _judge(self, points: Sequence[Point], counted: Callable[[str], None]) -> None:
        assert points
        everything = len(self._effects) + len(self._others)
        counted(samples.told(len(points), everything, "kills"))
        wrong = [result for point in points if (result := self._killed(point))]
        assert wrong == [], f"SAMPLE={samples.SAMPLE}"
