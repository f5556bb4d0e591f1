"""A rehearsal holds the migration where it finds something, is repeated once somebody has mended it, and goes by itself."""

from dataclasses import replace

import pytest

from fakes.api_server import Object
from fakes.kubelet import REHEARSAL_SECONDS
from simulation.migration_world import HOW_FAR, NAME, MigrationWorld
from simulation.moments import at_step, quiet_for, reference, told, waits_for
from switchover.api.job_message import NONCE
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Severity
from switchover.cluster import names
from switchover.cluster.rehearsal.pack import packed
from switchover.cluster.rehearsal.report import TO_DUAL_WRITE, TREE_DIGEST, Finding, Report, Stage, as_message
from switchover.kubernetes.client.pods import JOB_POD
from switchover.zookeeper.tree import Tree

EVIL = "/config/topics/evil"
BLOCKER = Finding(Stage.COPY, "CopyWouldFail", Severity.BLOCKER, "the controller ends", EVIL, "delete it")
SIGHT = Finding(Stage.SYNC, "NodeWouldBeDeleted", Severity.INFO, "it says nothing", "/config/topics/gone")


CLEAN = Report("0" * 16, (), 1, 1, {TO_DUAL_WRITE: 1.0})


def job_of(world: MigrationWorld) -> tuple[str, str]:
    return "jobs", names.job(NAME, "rehearsal", (world.migration["metadata"]["uid"],))


def parts_of(job: Object) -> list[str]:
    """The ConfigMaps that its pod waits for."""
    volumes = {each["name"]: each for each in job["spec"]["template"]["spec"]["volumes"]}
    return [each["configMap"]["name"] for each in volumes["tree"]["projected"]["sources"]]


def created(world: MigrationWorld) -> int:
    return sum(write.text == f"POST jobs {job_of(world)[1]}" for write in world.api.writes)


def plant(world: MigrationWorld, message: str, **owner: object) -> None:
    """A pod that says by its label that it is the Job's, and leaves this."""
    job = world.api.objects[job_of(world)]["metadata"]
    world.api.add("v1", "Pod", "pods", "planted", spec={"containers": []}, metadata={
        "labels": {JOB_POD: job["name"]}, "creationTimestamp": "2099-01-01T00:00:00Z",
        "ownerReferences": [{"kind": "Job", "name": job["name"], "uid": job["uid"], **owner}]}, status={
        "phase": "Succeeded", "containerStatuses": [{"name": "x", "state": {"terminated": {
            "exitCode": 0, "message": message}}}]})


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
    at_step(world, "EnableMigration")
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
    world.api.remove(*job_of(world))
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
    assert job_of(world) not in world.api.objects
    world.kubelet.rehearsed = as_message
    world.want("Running")
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert created(world) == 2


def test_it_goes_with_its_migration(world: MigrationWorld) -> None:
    at_step(world, "ProvisionControllers")
    job = job_of(world)
    made = {job, *(("configmaps", part) for part in parts_of(world.api.objects[job]))}
    assert len(made) == 2
    assert made <= world.api.objects.keys()
    world.api.remove("kafkamigrations", NAME)
    assert world.live(lambda: ("kafkamigrations", NAME) not in world.api.objects)
    world.timeline.wait(30)
    world.advance()
    assert not made & world.api.objects.keys()
    assert not [pod for pod in world.api.of("pods") if "rehearsal" in pod["metadata"]["name"]]


def test_its_measure_is_on_record_and_outlives_its_job(world: MigrationWorld) -> None:
    at_step(world, "EnableMigration")
    assert world.status["rehearsal"]["seconds"] == REHEARSAL_SECONDS
    world.api.remove(*job_of(world))
    assert world.live(lambda: world.step == "MoveBrokers")
    assert world.status["rehearsal"]["seconds"] == REHEARSAL_SECONDS


# --- objects of somebody else -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("owner", [{}, {"controller": True}], ids=["a label and an owner", "as if the Job controlled it"])
def test_a_planted_pod_speaks_for_no_rehearsal(world: MigrationWorld, owner: dict[str, object]) -> None:
    """Neither by a label, nor as an owned one, nor where its report lacks what the Job was given."""
    world.kubelet.rehearsed = lambda report: as_message(replace(report, findings=(BLOCKER,)))
    assert world.live(lambda: waits_for(world, "CopyWouldFail"))
    plant(world, as_message(CLEAN), **owner)
    quiet_for(world, 60)
    assert world.step == "Rehearse"
    assert waits_for(world, "CopyWouldFail")


def test_a_report_of_another_tree_is_none(world: MigrationWorld) -> None:
    """Also where whoever left it has read the Job."""
    world.kubelet.rehearsed = lambda report: as_message(replace(CLEAN, nonce=report.nonce))
    assert world.live(lambda: waits_for(world, "RehearsalFailed"))
    quiet_for(world, 60)
    assert world.step == "Rehearse"


def test_a_planted_job_gives_way_and_nothing_is_read_of_it(world: MigrationWorld) -> None:
    """One with our labels that has been clean all along, under the name that ours is to have."""
    name = job_of(world)[1]
    metadata = {"labels": names.labels(NAME), "annotations": {"switchover.dev/tree-told": "x"}}
    planted = world.api.add("batch/v1", "Job", "jobs", name, metadata=metadata, spec={"template": {"spec": {
        "containers": [{"name": "x", "env": [{"name": NONCE, "value": "n"}, {"name": TREE_DIGEST, "value": CLEAN.digest}]}],
        "volumes": [{"name": "tree", "projected": {"sources": [{"configMap": {"name": "none"}}]}}]}}},
        status={"conditions": [{"type": "Complete", "status": "True"}]})
    plant(world, as_message(replace(CLEAN, nonce="n")), controller=True)
    read: list[str] = []
    world.kubelet.rehearsed = lambda report: (read.append(report.digest), as_message(report))[1]
    assert world.live(lambda: world.step == "ProvisionControllers")
    assert world.api.objects[job_of(world)]["metadata"]["uid"] != planted["metadata"]["uid"]
    assert len(read) == 1


def test_a_job_that_an_operator_made_and_died_before_its_uid_was_on_record_is_made_anew(world: MigrationWorld) -> None:
    assert not world.live(lambda: False, kill_when=lambda: job_of(world) in world.api.objects)
    assert not world.status["made"]
    lost = world.api.objects[job_of(world)]["metadata"]["uid"]
    assert world.live(lambda: world.step == "ProvisionControllers")
    [made] = [each["proof"] for each in world.status["made"] if each["name"] == f"Job {job_of(world)[1]}"]
    assert (made, created(world)) == (world.api.objects[job_of(world)]["metadata"]["uid"], 2)
    assert made != lost


def test_a_planted_tree_is_not_rehearsed(world: MigrationWorld) -> None:
    """A ConfigMap that somebody makes before us, of the name that the Job's pod waits for."""
    other = Tree({"/brokers/topics/only-mine": b'{"version":2,"partitions":{}}'})
    (part,), read = packed(other), list[str]()

    def plant_part(method: str, plural: str, name: str, *rest: object) -> None:
        if (method, plural) == ("POST", "jobs") and not read:
            read.append(parts_of(world.api.objects[plural, name])[0])
            world.api.add("v1", "ConfigMap", "configmaps", read[0], data={"part": part})
        judged(method, plural, name, *rest)

    judged, world.api.on_write = world.api.on_write, plant_part
    assert world.live(lambda: waits_for(world, "RehearsalFailed"))
    assert "something else has made one of them" in told(world, "RehearsalFailed")["message"]
    quiet_for(world, 60)
    world.api.remove(*job_of(world))
    assert world.live(lambda: world.step == "ProvisionControllers")
