"""Cases: what a person decides about the walk, by the commands of `switchover` that are printed."""

import pytest

from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import at_step, before_finalize, quiet_for, reasons, to_step, until_step, waits_for
from simulation.pasting import commands, paste, paste_for
from switchover.metadata.parity import MigrationState


@pytest.mark.case("AwaitingApproval", "ApprovalVoid")
def test_an_approval_is_given_and_given_again_for_the_plan_of_now(world: MigrationWorld) -> None:
    before_finalize(world)
    paste_for(world, "AwaitingApproval")
    [approval] = world.migration["spec"]["approvals"]
    assert (approval["name"], approval["approver"], approval["planHash"]) == ("Finalize", "alice", world.status["planHash"])
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"]["approvals"][0].update(planHash="0123456789abcdef"))
    assert world.live(lambda: waits_for(world, "ApprovalVoid"))
    quiet_for(world, 30)
    paste_for(world, "ApprovalVoid")
    assert world.migration["spec"]["approvals"] == [approval]
    assert world.live(lambda: world.step == "HandOver")


@pytest.mark.case("Paused")
def test_a_pause_is_ended(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    world.want("Paused")
    assert world.live(lambda: waits_for(world, "Paused"))
    quiet_for(world, 30)
    paste_for(world, "Paused")
    world.goes_on(whole=False)


@pytest.mark.case("PointOfNoReturn")
def test_a_rollback_that_comes_too_late_is_taken_back(world: MigrationWorld) -> None:
    to_step(world, "Finalize")
    world.want("RolledBack")
    assert world.live(lambda: "PointOfNoReturn" in reasons(world))
    quiet_for(world, 30)
    paste_for(world, "PointOfNoReturn")
    assert world.run_to_the_end()


@pytest.mark.long
@pytest.mark.case("QuorumCannotMigrate", "MetadataVersionMismatch")
def test_a_quorum_that_cannot_migrate_is_made_again_by_a_rollback(world: MigrationWorld) -> None:
    """As one that was formatted for another release is: both print this."""
    at_step(world, "ProvisionControllers")
    assert world.live(lambda: world.kafka.leader is not None)
    world.kafka.log.state = MigrationState.NONE
    assert world.live(lambda: waits_for(world, "QuorumCannotMigrate"))
    back, again = commands(world, "QuorumCannotMigrate")
    paste(world, back)
    assert world.live(lambda: world.phase == "RolledBack")
    paste(world, again)
    assert world.live(lambda: world.step == "EnableMigration")
