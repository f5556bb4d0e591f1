"""A group that `gates.groups` names holds the brokers' batches where it stands, and not where nothing is left to consume."""

from typing import Any

from simulation.migration_world import HOW_FAR, NAME, MigrationWorld
from simulation.moments import reference, told, until_step, waits_for
from switchover.api.kafka_migration import NodeMode as Mode


@HOW_FAR
def test_a_group_that_stands_holds_the_next_batch_until_it_commits_again(world: MigrationWorld, whole: bool) -> None:
    until_step(world, "EnableMigration", 1)
    world.kafka.stands_since = begin = world.timeline.now()
    found: list[tuple[float, dict[tuple[str, str], int]]] = []

    def held() -> bool:
        if not found and waits_for(world, "GroupStalled"):
            found.append((world.timeline.now(), dict(world.kafka.starts)))
        return bool(found) and world.timeline.now() > found[0][0] + 120

    assert world.live(held)
    assert found[0][0] - begin > 30
    assert world.kafka.starts == found[0][1], "no pod is replaced meanwhile"
    waits = told(world, "GroupStalled")
    assert (waits["subject"], waits["threshold"], waits["verdict"]) == ("orders orders-0", "30 s", "Wait")
    assert "orders-0 is STOPPED: no new offset was committed for " in waits["message"]
    world.kafka.stands_since = None
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]


def test_a_group_that_has_nothing_readable_left_holds_nothing(world: MigrationWorld) -> None:
    """Its topic ends in an aborted transaction: its members are given none of that, and commit nothing behind it."""
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"]["rollout"]["steps"][0].update(bakeSeconds=60))
    until_step(world, "EnableMigration", 1)
    world.kafka.stands_since, world.kafka.aborted = world.timeline.now(), True
    stalled = []

    def moved() -> bool:
        if waits_for(world, "GroupStalled"):
            stalled.append(world.timeline.now())
        return sum(each[1] is Mode.MIGRATION for each in world.kafka.starts) == 2

    assert world.live(moved)
    assert world.timeline.now() - world.kafka.stands_since > 60
    assert not stalled


def test_a_limit_longer_than_ten_minutes_is_one(world: MigrationWorld) -> None:
    def patient(found: Any) -> None:
        found["spec"]["rollout"]["steps"][0].update(bakeSeconds=900)
        found["spec"]["gates"]["groups"][0].update(maxStallSeconds=660)

    world.api.edit("kafkamigrations", NAME, patient)
    until_step(world, "EnableMigration", 1)
    world.kafka.stands_since = begin = world.timeline.now()
    assert world.live(lambda: waits_for(world, "GroupStalled"))
    assert 660 < world.timeline.now() - begin < 690
    assert told(world, "GroupStalled")["threshold"] == "660 s"
    assert world.step == "EnableMigration"
