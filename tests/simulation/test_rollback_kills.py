"""The operator dies at each moment of each write of one full way back, and the next one finishes it."""

from collections.abc import Callable
from functools import cache

import pytest

from invariants.any_migration import differences
from simulation import kills
from simulation.migration_world import EndState, MigrationWorld
from simulation.moments import to_step
from simulation.test_rollback import assert_as_before


def before_the_way_back(patch: pytest.MonkeyPatch) -> MigrationWorld:
    """All brokers on KRaft, a change made in dual write, and the way back asked for."""
    world = MigrationWorld(patch)
    to_step(world, "Soak")
    assert world.kafka.change("config orders", "retention.ms=3600000")
    world.want("RolledBack")
    return world


@cache
def reference() -> tuple[EndState, int, list[str]]:
    """The end of a way back without a kill, the number of writes before it, and all writes."""
    with pytest.MonkeyPatch.context() as patch:
        world = before_the_way_back(patch)
        begin = len(world.api.writes)
        assert world.live(lambda: world.phase == "RolledBack")
        return world.end_state(), begin, [write.text for write in world.api.writes]


def killed_once(point: kills.Point) -> str:
    """What is wrong after a kill at that point; "" for nothing."""
    with pytest.MonkeyPatch.context() as patch:
        world = before_the_way_back(patch)
        try:
            if not world.live(lambda: world.phase == "RolledBack", kill_at=point):
                world.live(lambda: world.phase == "RolledBack")
            assert_as_before(world)
        except AssertionError as error:
            return f"killed at {point}: {str(error)[:500]}"
        wrong = differences(world.end_state(), reference()[0])
        return f"killed at {point}: another end: {wrong}" if wrong else ""


def all_kills() -> kills.Kills:
    _, begin, writes = reference()
    return kills.Kills(killed_once, writes, begin)


def test_a_kill_at_a_write_of_the_way_back(counted: Callable[[str], None]) -> None:
    all_kills().one(counted, moving=True)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(kills.SHARES))
def test_a_kill_at_each_write_of_the_way_back(counted: Callable[[str], None], share: int) -> None:
    all_kills().share(share, counted)


def test_a_kill_after_every_move_of_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """One way back in which no process outlives its first effect, or its first record of a new position."""
    world = before_the_way_back(monkeypatch)
    world.jury.memory.limits.without_controller = 300.0
    lives, moves = world.lives, world.moves
    while not world.live(lambda: world.phase == "RolledBack",
                         kill_when=lambda: world.moves - moves >= world.lives - lives):
        assert world.lives < 1000, f"no end in sight: {world.step}"
    assert_as_before(world)
    assert differences(world.end_state(), reference()[0]) == []
