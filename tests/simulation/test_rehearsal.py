"""A rehearsal holds the migration where it finds something, is repeated once somebody has mended it, and goes by itself."""

from dataclasses import replace

from fakes.kubelet import REHEARSAL_SECONDS
from simulation.migration_world import HOW_FAR, NAME, MigrationWorld
from simulation.moments import quiet_for, reference, waits_for
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Severity
from switchover.cluster.rehearsal.report import Finding, Stage, as_message

JOB, PART = ("jobs", f"{NAME}-rehearsal"), ("configmaps", f"{NAME}-rehearsal-0")
EVIL = "/config/topics/evil"
BLOCKER = Finding(Stage.COPY, "CopyWouldFail", Severity.BLOCKER, "the controller ends", EVIL, "delete it")
SIGHT = Finding(Stage.SYNC, "NodeWouldBeDeleted", Severity.INFO, "it says nothing", "/config/topics/gone")


def created(world: MigrationWorld) -> int:
    return sum(write.text == f"POST jobs {JOB[1]}" for write in world.api.writes)


def test_what_it_finds_holds_the_migration_until_somebody_has_mended_the_tree(world: MigrationWorld) -> None:
    world.kafka.change("quota evil", "1")
    world.kubelet.rehearsed = lambda report: as_message(replace(
        report, findings=(BLOCKER, SIGHT) if "quota evil" in world.kafka.tree.metadata else ()))
    assert world.live(lambda: waits_for(world, "CopyWouldFail"))
    found = next(each for each in world.status["waitingFor"] if each["reason"] == "CopyWouldFail")
    assert (found["subject"], found["unblocks"]) == (EVIL, "delete it")
    assert {each["code"] for each in world.status["findings"]} >= {"CopyWouldFail", "NodeWouldBeDeleted"}
    quiet_for(world, 120)
    assert (world.step, created(world)) == ("Rehearse", 1), "an unchanged tree is not rehearsed again"
    assert all(pod.mode == Mode.ZOOKEEPER for pod in world.kafka.nodes.values())
    world.kafka.change("quota evil", None)
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert created(world) == 2


def test_a_tree_that_has_changed_by_then_is_rehearsed_again_before_the_copy(world: MigrationWorld) -> None:
    assert world.live(lambda: world.step == "EnableMigration")
    assert world.kafka.change("quota new", "1")
    assert world.live(lambda: world.step == "DualWrite")
    assert created(world) == 2


def test_it_is_left_out_where_the_spec_says_so(world: MigrationWorld) -> None:
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(rehearsal={"enabled": False}))
    assert world.live(lambda: world.step == "MoveBrokers")
    assert created(world) == 0


@HOW_FAR
def test_one_that_does_not_come_to_its_end_is_told_and_made_anew_when_its_job_is_deleted(
    world: MigrationWorld, whole: bool
) -> None:
    world.kubelet.rehearsed = lambda _: "the replica's controller did not come up"
    assert world.live(lambda: waits_for(world, "RehearsalFailed"))
    world.kubelet.rehearsed = as_message
    quiet_for(world, 60)
    assert world.step == "Rehearse"
    world.api.remove(*JOB)
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]


def test_one_that_could_not_run_is_made_again_once_what_it_is_made_of_has_changed(world: MigrationWorld) -> None:
    """Its words are of a Job that would be another now."""
    world.kubelet.rehearsed = lambda _: "the image has no kafka-run-class beside the brokers' start script"
    assert world.live(lambda: waits_for(world, "RehearsalFailed"))
    world.kubelet.rehearsed = as_message
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(
        rehearsal={"enabled": True, "resources": {"limits": {"memory": "3Gi"}}}))
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert created(world) == 2


def test_a_rollback_takes_it_away(world: MigrationWorld) -> None:
    world.kubelet.rehearsed = lambda _: "the image has no kafka-run-class beside the brokers' start script"
    assert world.live(lambda: waits_for(world, "RehearsalFailed"))
    assert world.roll_back()
    assert JOB not in world.api.objects
    world.kubelet.rehearsed = as_message
    world.want("Running")
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert created(world) == 2


def test_it_goes_with_its_migration(world: MigrationWorld) -> None:
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert {JOB, PART} <= world.api.objects.keys()
    world.api.remove("kafkamigrations", NAME)
    assert world.live(lambda: ("kafkamigrations", NAME) not in world.api.objects)
    world.timeline.wait(30)
    world.advance()
    assert not {JOB, PART} & world.api.objects.keys()
    assert not [pod for pod in world.api.of("pods") if "rehearsal" in pod["metadata"]["name"]]


def test_its_measure_is_on_record_and_outlives_its_job(world: MigrationWorld) -> None:
    assert world.live(lambda: world.step == "EnableMigration")
    assert world.status["rehearsal"]["seconds"] == REHEARSAL_SECONDS
    world.api.remove(*JOB)
    assert world.live(lambda: world.step == "MoveBrokers")
    assert world.status["rehearsal"]["seconds"] == REHEARSAL_SECONDS
