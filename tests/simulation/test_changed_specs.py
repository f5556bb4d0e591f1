"""A spec that is changed on the way: before anything is made of it Preflight looks again, later it takes a rollback."""

from typing import Any

import pytest

from fakes.api_server import Object
from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import opened, quiet_for, told, until_step, waits_for
from simulation.pasting import commands, paste
from simulation.test_windows import CLOSED
from switchover.api.kafka_migration import NodeMode as Mode

CONTROLLERS = {"name": "kafka-controller", "replicas": 3, "firstNodeId": 3000, "storage": {"size": "1Gi"}}


def change(world: MigrationWorld, **spec: Any) -> None:
    """What a person changes of the spec, or of its controllers."""
    own = {"controllers": CONTROLLERS | spec} if spec.keys() <= {"name", "replicas", "firstNodeId", "template"} else spec
    world.say(f"a person changes {', '.join(spec)}")
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(own))
    world.witness.wish()


def moves(world: MigrationWorld) -> list[tuple[str, str]]:
    return [(each["from"], each["to"]) for each in world.status["history"] if each["from"] != each["to"]]


def test_what_is_changed_before_anything_is_touched_is_checked_from_the_start(world: MigrationWorld) -> None:
    """It stood before UpgradeBrokers until its window opened, and the whole spec could not be changed any more."""
    change(world, windows=[CLOSED])
    assert world.live(lambda: waits_for(world, "OutsideWindow"))
    before, hashed = world.step, world.status["planHash"]
    change(world, firstNodeId=2)
    assert world.live(lambda: waits_for(world, "NodeIdTaken"), limit=60)
    assert (before, world.step, world.status.get("planHash", "")) == ("UpgradeBrokers", "Preflight", "")
    assert ("UpgradeBrokers", "Preflight") in moves(world)
    told_of = told(world, "NodeIdTaken")
    assert (told_of["gate"], told_of["unblocks"]) == ("NodeIds", "set spec.controllers.firstNodeId to 4 or more")
    change(world, firstNodeId=3100)
    assert world.live(lambda: waits_for(world, "OutsideWindow"))
    assert world.status["planHash"] not in ("", hashed), "nobody's approval of the earlier plan counts"
    assert {each["name"]: each["nodes"] for each in world.status["plan"]["nodes"]}["kafka-controller"] == 3
    change(world, windows=[])
    assert world.live(lambda: world.step == "EnableMigration")
    assert {node["nodeId"] for node in world.status["nodes"]} == {1, 2, 3, 3100, 3101, 3102}
    assert world.status["attempt"] == 1


def test_a_stateful_set_that_is_misspelled_is_answered_with_the_one_that_is_there(world: MigrationWorld) -> None:
    change(world, brokers=[{"name": "kafak"}])
    assert world.live(lambda: waits_for(world, "StatefulSetMissing"), limit=60)
    assert told(world, "StatefulSetMissing")["unblocks"] == (
        "correct spec.brokers[].name (did you mean kafka?), or create it")


def test_a_stateful_set_that_is_not_there_leaves_no_secret(world: MigrationWorld) -> None:
    """A CRD of before the rules lets brokers be added in the middle of a batch."""
    until_step(world, "EnableMigration", 1)
    change(world, brokers=[{"name": "kafka"}, {"name": "ghost"}])
    assert world.live(lambda: waits_for(world, "StatefulSetMissing"))
    assert {each["metadata"]["name"] for each in world.api.of("secrets")} == {
        "kafka-switchover", "kafka-controller-switchover"}
    change(world, brokers=[{"name": "kafka"}])
    world.goes_on(whole=False)


def test_a_batch_that_no_waiting_makes_safe_is_made_smaller_by_the_field_that_it_names(world: MigrationWorld) -> None:
    """Any two of three brokers share a partition: it waited for replicas that were all there."""
    change(world, rollout={"steps": [{"pods": 2, "bakeSeconds": 5}]})
    assert world.live(lambda: waits_for(world, "WouldLoseInSyncReplicas"))
    assert told(world, "WouldLoseInSyncReplicas")["unblocks"].startswith("make the batches smaller (spec.rollout.steps): ")
    step = world.step
    quiet_for(world, 60)
    change(world, rollout={"steps": [{"pods": 1, "bakeSeconds": 5}]})
    assert world.live(lambda: world.step != step)


def test_a_rehearsal_that_cannot_run_is_left_out_by_the_field_that_it_names(world: MigrationWorld) -> None:
    """The API server refused the change that the migration itself had printed."""
    world.kubelet.rehearsed = lambda _: "the replica's controller did not come up"
    assert world.live(lambda: waits_for(world, "RehearsalFailed"))
    assert told(world, "RehearsalFailed")["unblocks"].startswith("repair the cause, or set spec.rehearsal.enabled to")
    change(world, rehearsal={"enabled": False})
    assert world.live(lambda: world.step == "EnableMigration")
    assert ("Rehearse", "Preflight") in moves(world)


def test_controllers_that_are_changed_later_are_checked_right_before_they_are_made(world: MigrationWorld) -> None:
    """Before it, a StatefulSet of that name was taken for the controllers, and deleted in a rollback."""
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(holds=["ProvisionControllers", "Finalize"]))
    assert world.live(lambda: world.step == "ProvisionControllers" and waits_for(world, "AwaitingApproval"))
    world.api.add("apps/v1", "StatefulSet", "statefulsets", "search", spec={
        "replicas": 0, "serviceName": "search", "selector": {"matchLabels": {"app": "search"}},
        "template": {"metadata": {"labels": {"app": "search"}}, "spec": {"containers": [{"name": "search"}]}},
        "updateStrategy": {"type": "RollingUpdate"}})
    change(world, name="search")
    assert world.live(world.approved_and(lambda: waits_for(world, "Residue")), limit=120)
    assert (told(world, "Residue")["gate"], told(world, "Residue")["subject"]) == ("Names", "StatefulSet search")
    quiet_for(world, 60)
    assert (world.step, opened(world, "ProvisionControllers")) == ("ProvisionControllers", False)
    change(world, name="kafka-kraft")
    assert world.live(world.approved_and(lambda: world.step == "EnableMigration"))
    assert {node["name"].rpartition("-")[0] for node in world.status["nodes"]} == {"kafka", "kafka-kraft"}
    assert world.roll_back()
    assert ("statefulsets", "search") in world.api.objects


FOREIGN = {
    "statefulsets": ("apps/v1", "StatefulSet", {
        "replicas": 0, "serviceName": "search", "selector": {"matchLabels": {"app": "search"}},
        "template": {"metadata": {"labels": {"app": "search"}}, "spec": {"containers": [{"name": "search"}]}},
        "updateStrategy": {"type": "RollingUpdate"}}),
    "services": ("v1", "Service", {"selector": {"app": "search"}, "ports": [{"port": 80}]}),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget", {
        "maxUnavailable": 1, "selector": {"matchLabels": {"app": "search"}}})}


@pytest.mark.parametrize("plural", FOREIGN)
def test_what_gets_the_controllers_name_after_the_last_look_is_not_theirs(plural: str, world: MigrationWorld) -> None:
    """It came after the gates of ProvisionControllers had passed, and was written over, run from and deleted."""
    version, kind, spec = FOREIGN[plural]
    heard = world.api.on_write

    def appears(method: str, written: str, name: str, *rest: Any) -> None:
        heard(method, written, name, *rest)
        own = (plural, "kafka-controller")
        if (written, name) == ("secrets", "kafka-controller-switchover") and own not in world.api.objects:
            world.api.add(version, kind, plural, "kafka-controller", spec=spec)

    world.api.on_write = appears
    assert world.live(lambda: waits_for(world, "NameTaken"))
    assert f"{kind} kafka-controller exists and is not Switchover's" in told(world, "NameTaken")["message"]
    assert told(world, "NameTaken")["unblocks"] == (
        "see who uses that object. If somebody does, copy it for them under another name; then delete it")
    quiet_for(world, 60)
    foreign = world.api.objects[plural, "kafka-controller"]
    assert (foreign["spec"], foreign["metadata"].get("labels") or {}) == (spec, {})
    assert world.step == "ProvisionControllers"
    assert plural == "statefulsets" or ("statefulsets", "kafka-controller") not in world.api.objects
    assert world.roll_back()
    assert world.api.objects[plural, "kafka-controller"]["spec"] == spec, "a rollback leaves it"
    world.api.on_write = heard


def test_controllers_are_made_once_the_name_is_free(world: MigrationWorld) -> None:
    heard = world.api.on_write

    def appears(method: str, written: str, name: str, *rest: Any) -> None:
        heard(method, written, name, *rest)
        if (written, name) == ("secrets", "kafka-controller-switchover"):
            world.api.on_write = heard
            world.api.add("v1", "Service", "services", "kafka-controller", spec={"ports": [{"port": 80}]})

    world.api.on_write = appears
    assert world.live(lambda: waits_for(world, "NameTaken"))
    world.api.objects["services", "kafka-controller"]["metadata"]["deletionTimestamp"] = "now"
    world.api.gone("services", "kafka-controller")
    assert world.live(lambda: world.step == "EnableMigration")


@pytest.mark.case("ControllerInTrouble")
def test_the_commands_with_which_other_controllers_are_made_work(world: MigrationWorld) -> None:
    """It took four acts, and the field stood in no message."""
    world.kubelet.stuck = {f"kafka-controller-{number}" for number in range(3)}
    assert world.live(lambda: waits_for(world, "ControllerInTrouble"), limit=3000)
    assert [each["reason"] for each in world.status["waitingFor"]].count("ControllerInTrouble") == 1
    rollback, retry = commands(world, "ControllerInTrouble")
    paste(world, rollback)
    assert world.live(lambda: world.phase == "RolledBack")
    world.kubelet.stuck = set()
    change(world, template={"resources": {"requests": {"memory": "1Gi"}}})
    paste(world, retry)
    assert world.live(lambda: world.step == "EnableMigration")
    made: Object = world.api.objects["statefulsets", "kafka-controller"]
    (kafka,) = made["spec"]["template"]["spec"]["containers"]
    assert kafka["resources"]["requests"]["memory"] == "1Gi"
    assert (world.status["attempt"], world.kafka.starts["kafka-controller-0", Mode.MIGRATION_CONTROLLER]) == (2, 1)
