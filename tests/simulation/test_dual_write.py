"""Dual write that does not begin: KRaft took over quotas that cannot be written to ZooKeeper, and no rehearsal saw them."""

import pytest

from simulation.migration_world import MigrationWorld
from simulation.test_kafka_migration import waits_for
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
