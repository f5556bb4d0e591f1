"""Ranges against the sets that they stand for."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from history.ranges import Ranges

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)).map(lambda pair: (pair[0], sum(pair) - 1)), max_size=12)


def integers(ranges) -> set[int]:
    return {number for first, last in ranges for number in range(first, last + 1)}


@given(RANGES)
def test_ranges_are_the_set_of_what_was_added_sorted_and_never_touching(added) -> None:
    ranges = Ranges(added)
    assert integers(ranges) == integers(added)
    assert len(ranges) == len(integers(added))
    parts = list(ranges)
    assert all(after[0] > before[1] + 1 for before, after in pairwise(parts))


@given(RANGES, RANGES)
def test_adding_tells_what_was_there_before(before, added) -> None:
    ranges = Ranges(before)
    known = integers(before)
    for first, last in added:
        assert integers(ranges.add(first, last)) == integers([(first, last)]) & known
        known |= integers([(first, last)])


@given(RANGES, RANGES)
def test_difference_and_intersection(one, other) -> None:
    assert integers(Ranges(one) - Ranges(other)) == integers(one) - integers(other)
    assert integers(Ranges(one) & Ranges(other)) == integers(one) & integers(other)


def test_a_million_offsets_in_order_are_one_range() -> None:
    ranges = Ranges()
    for offset in range(0, 1_000_000, 100):
        ranges.add(offset, offset + 99)
    assert list(ranges) == [(0, 999_999)]
    assert str(Ranges([(3, 3), (5, 9)])) == "3, 5–9"
