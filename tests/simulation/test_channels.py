"""A broker that has lost one of its channels to the controller: the operator restarts it, once, and goes on
(docs/facts/kraft.md#a-leader-that-takes-nobody-back)."""

import pytest

from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import at_step, second_batch, told, waits_for
from simulation.test_rollback import assert_as_before
from switchover.api.kafka_migration import NodeMode as Mode


def plant(world: MigrationWorld) -> str:
    """Break a broker that is not in the batch and leads something that the batch carries; its pod's name."""
    moving = {int(name[-1]) + 1 for name in world.status["progress"]["batchNodes"]}
    leader = next(leader for key, (leader, _) in sorted(world.kafka.told.items())
                  if leader not in moving and moving & {*world.kafka.topics[key[0]][key[1]]})
    world.kafka.takes_nobody_back.add(world.kafka.process(leader))
    return f"kafka-{leader - 1}"


def remedies(world: MigrationWorld) -> list[str]:
    return [each["message"] for each in world.status["history"] if "remediation" in each["message"]]


def test_it_is_restarted_in_its_mode_and_the_migration_goes_on(world: MigrationWorld) -> None:
    second_batch(world)
    stuck = plant(world)
    mode = world.kafka.nodes[stuck].mode
    assert world.live(lambda: waits_for(world, "LeaderStuck"))
    assert told(world, "LeaderStuck")["subject"] == stuck
    assert world.live(lambda: world.status["progress"].get("batchIsRemediation", False))
    assert (world.status["progress"]["batchNodes"], world.status["progress"]["remediatedNodes"]) == ([stuck], [stuck])
    assert world.live(lambda: world.status["progress"].get("batch", 0) >= 3 and not waits_for(world, "LeaderStuck"))
    assert remedies(world) == [f"batch 2: restart of {stuck}, the remediation of LeaderStuck"]
    assert world.kafka.starts[stuck, mode] == 2
    assert world.phase == "Running"


@pytest.mark.parametrize("killed", [False, pytest.param(True, marks=pytest.mark.long)])
def test_in_a_rollback_it_is_the_next_that_goes_back_to_zookeeper(world: MigrationWorld, killed: bool) -> None:
    second_batch(world)
    world.want("RolledBack")
    found: list[str] = []

    def planted() -> bool:
        back = [times for (_, mode), times in world.kafka.starts.items() if mode == Mode.ZOOKEEPER and times > 1]
        if back and world.status["progress"].get("batchNodes") and not found:
            found.append(plant(world))
        return bool(found)

    assert world.live(planted)
    (stuck,) = found
    if killed:
        assert not world.live(lambda: False, kill_when=lambda: world.status["progress"].get("batchIsRemediation", False))
    assert world.live(lambda: world.phase == "RolledBack")
    assert len(remedies(world)) == 1
    assert stuck in remedies(world)[0]
    assert world.kafka.starts[stuck, Mode.ZOOKEEPER] == 2
    assert_as_before(world)


@pytest.mark.parametrize(("channel", "reason"), [
    ("passes_nothing_on", "ForwardingStuck"), ("without_heartbeats", "BrokerFenced")])
def test_one_that_passes_nothing_on_or_whose_heartbeats_are_lost_is_restarted_as_well(
        world: MigrationWorld, channel: str, reason: str) -> None:
    at_step(world, "Soak")
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(soakSeconds=150))
    lost: set[tuple[str, float]] = getattr(world.kafka, channel)
    lost.add(world.kafka.process(2))
    assert world.live(lambda: bool(remedies(world)))
    assert "restart of kafka-1, the remediation of " + reason in remedies(world)[0]
    assert world.live(lambda: world.step == "Finalize")
    assert len(remedies(world)) == 1
    assert world.kafka.starts["kafka-1", Mode.KRAFT] == 2
