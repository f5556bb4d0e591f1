"""Cases: a pod that a person is asked to delete. It comes back in its assigned mode, and the migration goes on."""

import pytest

from fakes import kubelet
from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import at_step, quiet_for, second_batch, told, until_step, waits_for
from simulation.pasting import paste_for
from simulation.test_channels import plant, remedies
from simulation.test_rollback import assert_as_before
from simulation.test_rollback_trouble import NEW_SALT
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.door.edits import MARKER
from switchover.kubernetes import reports

BROKERS = ("kafka-0", "kafka-1", "kafka-2")


def started(world: MigrationWorld, before: dict[tuple[str, str], int]) -> set[tuple[str, str]]:
    """Pod and mode of each process that was started since then."""
    return {each for each, times in world.kafka.starts.items() if times != before.get(each, 0)}


def go_on(world: MigrationWorld, seconds: float) -> None:
    begin = world.timeline.now()
    assert world.live(lambda: world.timeline.now() > begin + seconds)


@pytest.mark.case("BrokersOutOfReach")
def test_controllers_try_the_brokers_again(world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as policy:
        policy.setitem(kubelet.REPORTS, reports.REACH, "reach 2 3\nkafka-0.kafka:9092\n")
        assert world.live(lambda: waits_for(world, "BrokersOutOfReach"))
        quiet_for(world, 30)
    quiet_for(world, 30)                                    # a policy that lets them through is seen by new pods alone
    before = dict(world.kafka.starts)
    paste_for(world, "BrokersOutOfReach")
    assert world.live(lambda: world.step == "EnableMigration")
    assert {pod for pod, _ in started(world, before)} == {f"kafka-controller-{n}" for n in range(3)}


@pytest.mark.case("TopicIdMissingOnDisk")
def test_each_broker_reports_its_disks_again(world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as disks:
        disks.setitem(kubelet.REPORTS, reports.DISKS, "disks 1 1 9 0 1\nnameless /var/lib/kafka/orders-0\n")
        assert world.live(lambda: waits_for(world, "TopicIdMissingOnDisk"))
        quiet_for(world, 30)
    deleted = []
    for _ in range(2):                                      # the last one has not started since they are asked
        assert world.live(lambda: waits_for(world, "TopicIdMissingOnDisk"))
        deleted.append(told(world, "TopicIdMissingOnDisk")["subject"])
        paste_for(world, "TopicIdMissingOnDisk")
        assert world.live(lambda: not (waits_for(world, "TopicIdMissingOnDisk") and told(
            world, "TopicIdMissingOnDisk")["subject"] == deleted[-1]))
    assert world.live(lambda: world.step == "DualWrite")
    assert len({*deleted} & {*BROKERS}) == 2
    assert {world.kafka.nodes[name].mode for name in BROKERS} == {Mode.MIGRATION}


@pytest.mark.long
@pytest.mark.case("LogDirectoryFormatted")
def test_a_broker_whose_directory_was_formatted_reports_again_and_goes_back(
        world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    second_batch(world)
    (formatted,) = world.status["progress"]["batchNodes"]
    with monkeypatch.context() as disks:
        disks.setitem(kubelet.REPORTS, reports.DISKS, "disks 1 1 9 1 0\nformatted /var/lib/kafka\n")
        assert world.live(lambda: world.kafka.starts.get((formatted, Mode.KRAFT), 0) == 1)
        world.want("RolledBack")
        assert world.live(lambda: world.kafka.starts[formatted, Mode.MIGRATION] == 2)
    assert world.live(lambda: waits_for(world, "LogDirectoryFormatted"))
    quiet_for(world, 30)
    while waits_for(world, "LogDirectoryFormatted"):        # once for each that reported it
        paste_for(world, "LogDirectoryFormatted")
        go_on(world, 30)
    assert world.live(lambda: world.phase == "RolledBack")
    assert_as_before(world)


@pytest.mark.case("LeaderStuck")
def test_a_person_may_restart_a_leader_that_is_stuck_before_switchover_does(world: MigrationWorld) -> None:
    second_batch(world)
    stuck = plant(world)
    mode = world.kafka.nodes[stuck].mode
    assert world.live(lambda: waits_for(world, "LeaderStuck"))
    paste_for(world, "LeaderStuck")
    assert world.live(lambda: world.status["progress"].get("batch", 0) >= 3)
    assert (world.kafka.starts[stuck, mode], remedies(world)) == (2, [])


OLD_EDITS = f"{MARKER}00000000"


@pytest.mark.long
@pytest.mark.case("StartedByOtherEdits")
def test_a_broker_that_was_started_with_old_edits_starts_with_those_of_its_secret(world: MigrationWorld) -> None:
    """A kubelet may mount what it had of a Secret."""
    until_step(world, "EnableMigration", 1)
    (moved,) = world.status["progress"]["batchNodes"]
    world.kafka.nodes[moved].marker = OLD_EDITS
    assert world.live(lambda: waits_for(world, "StartedByOtherEdits"))
    paste_for(world, "StartedByOtherEdits")
    assert world.live(lambda: world.status["progress"].get("batch", 0) >= 2)
    assert world.kafka.starts[moved, Mode.MIGRATION] == 2


@pytest.mark.long
@pytest.mark.case("DoorStillThere")
def test_a_broker_that_came_back_with_our_script_is_started_by_its_own_template(world: MigrationWorld) -> None:
    until_step(world, "EnableMigration", 2)
    world.want("RolledBack")
    before = dict(world.kafka.starts)
    assert world.live(lambda: any(mode == Mode.ZOOKEEPER for _, mode in started(world, before)))
    ((back, _),) = started(world, before)
    world.kafka.nodes[back].marker = OLD_EDITS
    assert world.live(lambda: waits_for(world, "DoorStillThere"))
    paste_for(world, "DoorStillThere")
    assert world.live(lambda: world.phase == "RolledBack")
    assert_as_before(world)


@pytest.mark.case("ForwardingStuck")
def test_a_person_may_restart_a_broker_that_passes_nothing_on(world: MigrationWorld) -> None:
    at_step(world, "Soak")
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(soakSeconds=150))
    world.kafka.passes_nothing_on.add(world.kafka.process(2))
    assert world.live(lambda: waits_for(world, "ForwardingStuck"))
    paste_for(world, "ForwardingStuck")
    assert world.live(lambda: world.step == "Finalize")
    assert (world.kafka.starts["kafka-1", Mode.KRAFT], remedies(world)) == (2, [])


@pytest.mark.case("MetadataDiffers")
@pytest.mark.parametrize("planted", [{"next_producer_id": 1000}, NEW_SALT], ids=["for a person", "for a new leader"])
def test_another_controller_writes_what_kraft_has_to_zookeeper(world: MigrationWorld, planted: dict[str, object]) -> None:
    until_step(world, "MoveBrokers", 1)
    world.kafka.planted = dict(planted)
    assert world.live(lambda: waits_for(world, "MetadataDiffers"))
    before, leader = dict(world.kafka.starts), world.kafka.leader
    paste_for(world, "MetadataDiffers")
    assert world.kafka.leader != leader
    world.goes_on(whole=False)
    assert world.kafka.planted == {}
    assert f"kafka-controller-{(leader or 0) - 3000}" in {pod for pod, _ in started(world, before)}
