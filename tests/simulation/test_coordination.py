"""Groups of all four kinds of members in virtual time, under all that zkcc.md 4.5 lists, around the Member that we ship."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from typing import Any

import pytest

from simulation.coordination.oracle import Broken
from simulation.coordination.prototype import holes
from simulation.coordination.story import Story

SEEDS, CHUNK = 10_000, 250
SEARCHED = 300
"""Seeds in which every hole of the prototype must show."""


def told(seed: int, settings: Mapping[str, Any]) -> tuple[str, Story]:
    """What broke in the story of a seed, with what happened before; empty when nothing did."""
    story = Story(seed, **settings)
    try:
        story.run()
    except Broken as broken:
        return "\n".join([f"seed {seed}: {broken}", *story.told]), story
    return "", story


def run(first: int, seeds: int) -> tuple[list[str], int, int, int]:
    """What broke in a row of seeds; hand-overs, duplicates after faults, deliveries that no fence can prevent."""
    stories = [told(seed, {}) for seed in range(first, first + seeds)]
    oracles = [story.oracle for _, story in stories]
    return ([words for words, _ in stories if words], sum(each.hand_overs for each in oracles),
            sum(each.duplicates for each in oracles), sum(each.excused for each in oracles))


def test_ten_thousand_groups_under_chaos(counted: Callable[[str], None]) -> None:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(run, range(0, SEEDS, CHUNK), repeat(CHUNK)))
    broken = [words for chunk in found for words in chunk[0]]
    hand_overs, duplicates, excused = (sum(chunk[each] for chunk in found) for each in (1, 2, 3))
    counted(f"{SEEDS} groups, {hand_overs} hand-overs, {duplicates} records again after faults, {excused} deliveries "
          "beside an old member that no fence could keep out")
    assert not broken, f"{len(broken)} of {SEEDS}: {broken[0]}"
    assert hand_overs > 30 * SEEDS      # a world in which nothing moves proves nothing


@pytest.mark.parametrize("hole", holes())
def test_a_hole_of_the_prototype_is_caught(hole: str) -> None:
    assert any(told(seed, holes()[hole])[0] for seed in range(SEARCHED)), f"{SEARCHED} stories with {hole} in them went well"
