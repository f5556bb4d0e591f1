"""A set of offsets, kept as inclusive ranges: millions of records in order are one pair of numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Range = tuple[int, int]
"""First and last offset, both inside."""


class Ranges:
    """A growing set of integers; the ranges it iterates over are sorted and never touch each other."""

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in ranges:
            self.add(first, last)

    def add(self, first: int, last: int) -> list[Range]:
        """Add first to last; returns the parts of it that were in the set before. An empty range adds nothing."""
        if last < first:
            return []
        low, high = bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)
        met = list(zip(self._firsts[low:high], self._lasts[low:high], strict=True))
        self._firsts[low:high] = [min(first, met[0][0]) if met else first]
        self._lasts[low:high] = [max(last, met[-1][1]) if met else last]
        shared = ((max(first, a), min(last, b)) for a, b in met)
        return [(a, b) for a, b in shared if a <= b]

    def __iter__(self) -> Iterator[Range]:
        return zip(self._firsts, self._lasts, strict=True)

    def __len__(self) -> int:
        """How many integers, not how many ranges."""
        return sum(self._lasts) - sum(self._firsts) + len(self._firsts)

    def __sub__(self, other: "Ranges") -> "Ranges":
        left = Ranges()
        for first, last in self:
            at = bisect_left(other._lasts, first)
            while at < len(other._firsts) and other._firsts[at] <= last:
                left.add(first, other._firsts[at] - 1)
                first = other._lasts[at] + 1
                at += 1
            left.add(first, last)
        return left

    def __and__(self, other: "Ranges") -> "Ranges":
        return self - (self - other)

    def __str__(self) -> str:
        return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in self)
