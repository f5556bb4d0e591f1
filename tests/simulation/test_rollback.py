"""The way back, from everywhere, by the real operator in virtual time; and forward again on the same world."""

import pytest

from simulation.migration_world import MigrationWorld
from switchover.core.kraft.plan import PLAN

STEPS = [step.name for step in PLAN.steps]
BEFORE_THE_END = STEPS[: STEPS.index("Finalize")]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MigrationWorld:
    return MigrationWorld(monkeypatch)


def opened(world: MigrationWorld, step: str) -> bool:
    return world.step == step and bool(world.status["progress"].get("openTime"))


@pytest.mark.parametrize("step", BEFORE_THE_END)
def test_back_from_each_step(world: MigrationWorld, step: str) -> None:
    world.live(lambda: False, kill_when=lambda: opened(world, step))
    assert world.roll_back()
