"""The operator dies after each write of one whole migration, and the next one finishes it."""

from collections.abc import Callable

import pytest

from fakes.incarnation import APPLIED
from simulation import kills
from simulation.migration_world import MigrationWorld
from simulation.moments import reference


def test_a_kill_after_every_move(monkeypatch: pytest.MonkeyPatch, counted: Callable[[str], None]) -> None:
    """One run in which no process outlives its first effect, or its first record of a new position."""
    world = MigrationWorld(monkeypatch)

    def moved() -> bool:
        return world.moves >= world.lives

    while not world.run_to_the_end(kill_when=moved):
        assert world.lives < 1000, f"no end in sight: {world.step}"
    assert world.end_state() == reference()[0]
    counted(f"{world.lives} lives, {len(world.api.writes)} writes")


def killed_once(point: kills.Point) -> str:
    """Kill the operator after one write, let the next process finish; what was wrong, "" when nothing."""
    with pytest.MonkeyPatch.context() as patch:
        world = MigrationWorld(patch)
        if world.run_to_the_end(kill_at=point):
            return f"there is no write {point[0]}"
        try:
            world.run_to_the_end()
        except AssertionError as error:
            return f"killed at {point}, {world.api.writes[point[0] - 1].text}: {error}"
        return "" if world.end_state() == reference()[0] else f"killed at {point}: another end"


def all_kills() -> kills.Kills:
    return kills.Kills(killed_once, reference()[1], moments=(APPLIED,))


def test_a_kill_after_a_write_that_moves_nothing(counted: Callable[[str], None]) -> None:
    """Those that move something it is killed after in the run above."""
    all_kills().one(counted, moving=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(kills.SHARES))
def test_a_kill_after_each_write_one_by_one(counted: Callable[[str], None], share: int) -> None:
    all_kills().share(share, counted)
