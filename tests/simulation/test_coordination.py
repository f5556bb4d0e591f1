"""Groups of all four kinds of members in virtual time, under all that docs/facts/coordination.md#the-rules lists,
around the Member that we ship."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import samples
from simulation.coordination.oracle import Broken
from simulation.coordination.prototype import holes
from simulation.coordination.story import Story

SEEDS, SHARES = 10_000, 4
ORDINARY = 400
"""Seeds of an ordinary run; `long` takes them all."""
SEARCHED = 300
"""Seeds in which every hole of the prototype must show."""
PATH = os.pathsep.join(str(Path(__file__).parents[2] / each) for each in ("operator", "tests"))


def told(seed: int, settings: Mapping[str, Any]) -> tuple[str, Story]:
    """What broke in the story of a seed, with what happened before; empty when nothing did."""
    story = Story(seed, **settings)
    try:
        story.run()
    except Broken as broken:
        return "\n".join([f"seed {seed}: {broken}", *story.told]), story
    return "", story


def judge(seeds: Sequence[int], counted: Callable[[str], None]) -> None:
    stories = [told(seed, {}) for seed in seeds]
    oracles = [story.oracle for _, story in stories]
    hand_overs, duplicates, excused, answers = (
        sum(getattr(each, name) for each in oracles) for name in ("hand_overs", "duplicates", "excused", "answers"))
    counted(f"{samples.told(len(seeds), SEEDS, 'groups')}, {hand_overs} hand-overs, {answers} commits of applications, "
            f"{duplicates} records again after faults, {excused} deliveries beside an old member that no fence keeps out")
    broken = [words for words, _ in stories if words]
    assert not broken, f"{len(broken)} of {len(seeds)}: {broken[0]}"
    assert min(hand_overs, answers) > 30 * len(seeds)       # a world in which nothing moves proves nothing


def test_some_groups_under_chaos(counted: Callable[[str], None]) -> None:
    judge(samples.taken(range(SEEDS), ORDINARY), counted)


@pytest.mark.long
@pytest.mark.parametrize("share", range(SHARES))
def test_ten_thousand_groups_under_chaos(counted: Callable[[str], None], share: int) -> None:
    judge(range(share, SEEDS, SHARES), counted)


@pytest.mark.parametrize("hole", holes())
def test_a_hole_of_the_prototype_is_caught(hole: str) -> None:
    assert any(told(seed, holes()[hole])[0] for seed in range(SEARCHED)), f"{SEARCHED} stories with {hole} in them went well"


def test_a_seed_is_the_same_story_in_every_process() -> None:
    """Sets have another order in each. What is told with a seed could not be looked at again."""
    code = """from simulation.test_coordination import told
for seed in (68, 70, 93, 99):
    words, story = told(seed, {})
    print(words, story.told, story.loop.steps)"""
    told_by = {subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": order, "PYTHONPATH": PATH},
                              check=True, capture_output=True, text=True).stdout for order in ("1", "2")}
    assert len(told_by) == 1
    assert "start g_" in told_by.pop()
