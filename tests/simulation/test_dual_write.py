"""Dual write that does not begin or go on: KRaft took over quotas that cannot be written to ZooKeeper, and no rehearsal saw
them; a topic grew while the leading controller changed."""

import pytest

from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import waits_for
from simulation.test_rollback import assert_as_before

PLANTED = {"unknown-quota evil": "10", "quota eve": "1048576.5"}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MigrationWorld:
    world = MigrationWorld(monkeypatch)
    for name, value in PLANTED.items():
        world.kafka.change(name, value)
    return world


def test_it_is_named_and_put_right_and_the_migration_goes_on(world: MigrationWorld) -> None:
    assert world.live(lambda: waits_for(world, "QuotaStopsDualWrite"))
    told = next(each for each in world.status["waitingFor"] if each["reason"] == "QuotaStopsDualWrite")
    assert (world.step, told["subject"]) == ("DualWrite", "quota foo_rate of user evil")
    world.goes_on(whole=False)
    quotas = {name: value for name, value in world.kafka.tree.metadata.items() if name in PLANTED}
    assert quotas == {"quota eve": "1048576"}
    history = [each["message"] for each in world.status["history"] if "stood still" in each["message"]]
    assert history == ["dual write stood still: quota foo_rate of user evil = 10.0 removed,"
                       " quota producer_byte_rate of user eve = 1048576.5 set to 1048576"]


def test_it_does_not_keep_a_rollback_back(world: MigrationWorld) -> None:
    assert world.live(lambda: world.step == "DualWrite")
    world.want("RolledBack")
    assert world.live(lambda: world.phase == "RolledBack")
    assert_as_before(world)


@pytest.mark.parametrize("held", [False, True], ids=["in the step", "in a hold"])
def test_partitions_without_a_state_get_one_and_the_migration_goes_on(held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = MigrationWorld(monkeypatch)
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(holds=["MoveBrokers"] if held else []))
    assert world.live(lambda: world.step == "MoveBrokers" and (held or bool(world.status["progress"].get("batch"))))
    world.kafka.tree.stateless = {("orders", 0): world.kafka.topics["orders"][0], ("gone", 7): (101,)}
    assert world.live(lambda: waits_for(world, "PartitionsWithoutState"))
    assert world.step == "MoveBrokers"
    assert world.live(lambda: world.kafka.tree.stateless == {("gone", 7): (101,)}), "KRaft has orders, and not the other"
    world.kafka.tree.stateless = {}
    history = [each["message"] for each in world.status["history"] if "stood still" in each["message"]]
    assert history == ["dual write stood still: states created in ZooKeeper for orders-0"]
    world.goes_on(whole=False)
