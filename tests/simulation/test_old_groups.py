"""A consumer group that ZooKeeper still coordinates holds the brokers back from KRaft, and nothing before."""


from simulation.migration_world import HOW_FAR, NAME, MigrationWorld
from simulation.moments import quiet_for, reference, told, until_step, waits_for
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.zookeeper.nodes import ZooKeeperGroup

OLD = ZooKeeperGroup(frozenset({"orders_a", "orders_b"}))


def gone(world: MigrationWorld, whole: bool) -> None:
    world.kafka.old_groups.clear()
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]


@HOW_FAR
def test_it_waits_before_the_first_broker_leaves_zookeeper_and_goes_on_once_the_group_is_gone(
    world: MigrationWorld, whole: bool
) -> None:
    world.kafka.old_groups["orders"] = OLD
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"]["gates"].update(stepPatienceSeconds=60))
    assert world.live(lambda: waits_for(world, "GroupOnZooKeeper"))
    assert world.step == "MoveBrokers"
    assert "openTime" not in world.status["progress"]
    quiet_for(world, 120)                                         # longer than a step's patience: nobody is to blame
    assert world.phase == "Running"
    found = told(world, "GroupOnZooKeeper")
    assert (found["subject"], found["observed"], found["verdict"]) == ("orders", "members: orders 2", "Wait")
    assert found["unblocks"].startswith("create a ConsumerGroupMigration of orders")
    assert ("ZooKeeperGroup", "orders") in [(item["code"], item["subject"]) for item in world.status["findings"]]
    gone(world, whole)


def test_it_points_at_the_migration_of_the_group(world: MigrationWorld) -> None:
    world.kafka.old_groups["orders"] = OLD
    for name, coordination in (("orders-to-kafka", {"to": "Kafka"}), ("orders-back", {"to": "ZooKeeper"}), ("other", None)):
        spec = {"group": "orders", **({"coordination": coordination} if coordination else {"protocol": {"to": "Consumer"}})}
        world.api.add("switchover.dev/v1alpha1", "ConsumerGroupMigration", "consumergroupmigrations", name, spec=spec)
    world.api.edit("consumergroupmigrations", "orders-to-kafka", lambda found: found.update(status={"phase": "Running"}))
    assert world.live(lambda: waits_for(world, "GroupOnZooKeeper"))
    assert told(world, "GroupOnZooKeeper")["unblocks"] == (
        "finish ConsumerGroupMigration/orders-to-kafka (now Running), or stop the consumers of orders")
    world.kafka.old_groups.clear()
    assert world.live(lambda: world.step == "MoveBrokers" and "openTime" in world.status["progress"])
    assert [item["message"] for item in world.status["history"] if item["message"].startswith("MoveBrokers begins")] == [
        "MoveBrokers begins; ConsumerGroupMigration/orders-to-kafka cannot go back to ZooKeeper from here:"
        " old consumers find no broker on KRaft"]


@HOW_FAR
def test_one_that_appears_in_the_middle_stops_the_next_batch(world: MigrationWorld, whole: bool) -> None:
    until_step(world, "MoveBrokers", 1)
    world.kafka.old_groups["orders"] = OLD
    assert world.live(lambda: waits_for(world, "GroupOnZooKeeper"))
    assert "so no more batches start" in told(world, "GroupOnZooKeeper")["message"]
    quiet_for(world, 120)
    assert sum(node.mode == Mode.KRAFT for node in world.kafka.nodes.values()) == 1
    gone(world, whole)


def test_a_rollback_does_not_wait_for_it(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    world.kafka.old_groups["orders"] = OLD
    assert world.live(lambda: waits_for(world, "GroupOnZooKeeper"))
    world.want("RolledBack")
    assert world.live(lambda: world.phase == "RolledBack")
    assert {node.mode for node in world.kafka.nodes.values()} == {Mode.ZOOKEEPER}
