"""A controller whose one try to register is lost never registers (docs/facts/kraft.md#a-controller-that-never-registers)."""

import pytest

from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import quiet_for

CONTROLLERS = [f"kafka-controller-{number}" for number in range(3)]


def stalled(world: MigrationWorld) -> str:
    """The message of the condition Stalled, "" while it is False."""
    return next((each["message"] for each in world.status.get("conditions", ())
                 if each["type"] == "Stalled" and each["status"] == "True"), "")


def evicted(world: MigrationWorld) -> list[str]:
    return [name for write in world.api.writes if "eviction" in write.text for name in CONTROLLERS if name in write.text]


@pytest.mark.parametrize("lost", [
    pytest.param(CONTROLLERS[2:], id="one", marks=pytest.mark.long), pytest.param(CONTROLLERS, id="all")])
def test_it_is_restarted_once_and_registers(world: MigrationWorld, lost: list[str]) -> None:
    """That is no failure: whoever wants failures rolled back goes on."""
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(onFailure="RollBack"))
    world.kafka.unregistered = dict.fromkeys(lost, 1)
    assert world.live(lambda: world.step == "EnableMigration")
    assert sorted(evicted(world)) == lost
    world.goes_on(whole=False)


def test_one_that_does_not_register_then_either_is_restarted_no_more(world: MigrationWorld) -> None:
    world.kafka.unregistered = {CONTROLLERS[1]: 1000}
    assert world.live(lambda: "not even after a restart" in stalled(world))
    quiet_for(world, 600)
    assert (evicted(world), world.step) == (CONTROLLERS[1:2], "ProvisionControllers")
