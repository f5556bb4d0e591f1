"""A deletion on the way: nothing is stranded, nothing is held without words, and what stays behind is listed."""

from typing import Any

import pytest

from fakes.api_server import Object
from printed import changing
from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import before_finalize, quiet_for, to_step, until_step, waits_for
from simulation.pasting import paste, paste_for
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.engine.intent import ABANDON
from switchover.metadata.parity import MigrationState
from tales import assert_told

KEY = ("kafkamigrations", NAME)


def delete(world: MigrationWorld) -> None:
    world.api.remove(*KEY)


def gone(world: MigrationWorld) -> bool:
    return KEY not in world.api.objects


def edit(world: MigrationWorld, **spec: Any) -> None:
    world.api.edit(*KEY, lambda found: found["spec"].update(spec))


def abandon(found: Object) -> None:
    found["metadata"].setdefault("annotations", {})[ABANDON] = "true"


def left_behind(world: MigrationWorld) -> list[str]:
    return [event["message"] for event in world.api.of("events") if event["reason"] == "LeftBehind"]


# --- before anything was touched, and after the end -----------------------------------------------------------------------


def test_in_preflight_it_goes_at_once_and_leaves_nothing(world: MigrationWorld) -> None:
    edit(world, desiredState="Planned")
    assert world.live(lambda: world.step == "Preflight")
    objects = {key for key in world.api.objects if key[0] not in ("events", "leases")}
    delete(world)
    assert world.live(lambda: gone(world), limit=30)
    assert {key for key in world.api.objects if key[0] not in ("events", "leases")} == objects - {KEY}
    assert left_behind(world) == []
    assert not list(world.api.of("leases"))


def test_after_finalize_it_goes_at_once_and_what_stays_is_listed(world: MigrationWorld) -> None:
    before_finalize(world)
    assert world.live(world.approved_and(lambda: world.step == "HandOver", only=("Finalize",)))
    delete(world)
    assert world.live(lambda: gone(world), limit=30)
    assert world.kafka.state is MigrationState.POST_MIGRATION
    assert left_behind(world) == [
        "StatefulSet, Service and PodDisruptionBudget kafka-controller",
        *(f"PersistentVolumeClaim data-kafka-controller-{n}" for n in range(3)),
        "Secret kafka-controller-switchover",
        "Secret kafka-switchover, which the pods of StatefulSet kafka mount",
        "update strategy OnDelete of StatefulSet kafka: it replaces no pod by itself",
        "annotation switchover.dev/claimed-by of StatefulSet kafka: remove it before another migration",
        "ControllerRevision kafka-before-switchover-1 with the template as it was",
        "/controller and /migration in ZooKeeper",
    ]
    assert not list(world.api.of("leases"))


# --- after the claim ------------------------------------------------------------------------------------------------------


def test_after_the_claim_it_is_held_in_words_and_goes_on_to_its_end(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    delete(world)
    assert world.live(lambda: waits_for(world, "HeldUntilTheEnd"))
    assert world.status["phase"] == "Terminating"
    assert world.live(lambda: waits_for(world, "AwaitingApproval"))
    quiet_for(world, 120)                                          # a deletion approves nothing
    assert {"HeldUntilTheEnd", "AwaitingApproval"} <= {item["reason"] for item in world.status["waitingFor"]}
    assert world.live(world.approved_and(lambda: gone(world)))
    assert world.kafka.state is MigrationState.POST_MIGRATION
    left = {kind for kind, _ in world.api.objects}
    assert {"statefulsets", "services", "secrets", "persistentvolumeclaims", "pods"} <= left
    assert "/controller and /migration in ZooKeeper" in left_behind(world)


@pytest.mark.case("HeldUntilTheEnd")
def test_what_is_held_goes_by_the_command_that_is_printed(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    delete(world)
    assert world.live(lambda: waits_for(world, "HeldUntilTheEnd"))
    starts, kept = dict(world.kafka.starts), {*objects(world)}
    paste_for(world, "HeldUntilTheEnd")
    assert world.live(lambda: gone(world), limit=30)
    assert (world.kafka.starts, {*objects(world)}) == (starts, kept)
    assert "/controller and /migration in ZooKeeper" in left_behind(world)


@pytest.mark.case("BeingDeleted")
def test_what_is_taken_back_goes_at_once_by_the_command_that_is_printed(world: MigrationWorld) -> None:
    to_step(world, "EnableMigration")
    delete(world)
    assert world.live(lambda: waits_for(world, "BeingDeleted"))
    paste_for(world, "BeingDeleted")
    assert world.live(lambda: gone(world), limit=30)
    assert "statefulsets" in {kind for kind, name in world.api.objects if name == "kafka-controller"}


def test_a_pause_after_the_claim_holds_a_deletion_and_says_both(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    edit(world, desiredState="Paused")
    delete(world)
    assert world.live(lambda: waits_for(world, "HeldUntilTheEnd") and waits_for(world, "Paused"))
    quiet_for(world, 120)
    edit(world, desiredState="Running")
    world.goes_on(whole=False)


@pytest.mark.story
def test_an_abandoned_migration_goes_at_once_changes_nothing_and_tells_what_it_leaves(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    world.story.clear()
    world.say("a person deletes the KafkaMigration")
    delete(world)
    assert world.live(lambda: waits_for(world, "HeldUntilTheEnd"))
    starts, kept = dict(world.kafka.starts), {*objects(world)}
    world.say("a person abandons it")
    world.api.edit(*KEY, abandon)
    assert world.live(lambda: gone(world), limit=30)
    assert world.kafka.starts == starts
    assert {*objects(world)} == kept
    assert "update strategy OnDelete of StatefulSet kafka: it replaces no pod by itself" in left_behind(world)
    assert "/controller and /migration in ZooKeeper" in left_behind(world)
    assert_told("abandoned", "A KafkaMigration is deleted half done: it is held, until a person abandons it.", world.story)


@pytest.mark.case("InvalidSpec")
def test_a_spec_that_cannot_be_read_is_not_let_go_under_way_without_a_word(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)
    edit(world, controllers={"replicas": "many"})
    delete(world)
    assert world.live(lambda: "it cannot be rolled back" in str(world.status.get("conditions")), limit=60)
    assert not gone(world)
    [abandoned] = {line for each in world.status["conditions"] for line in changing(each["message"])}
    paste(world, abandoned)
    assert world.live(lambda: gone(world), limit=60)


# --- before the claim -----------------------------------------------------------------------------------------------------


def objects(world: MigrationWorld) -> dict[tuple[str, str], Any]:
    """What is there but for what differs by right: specs, and whose the StatefulSets are. A rehearsal is the resource's own,
    and goes with it (test_rehearsal.py)."""
    return {key: (found.get("spec") if key[0] == "statefulsets" else None, found["metadata"].get("annotations") or {})
            for key, found in world.api.objects.items()
            if key[0] not in ("events", "leases", "kafkamigrations", "pods") and "-rehearsal" not in key[1]}


def taken_back(world: MigrationWorld, before: dict[tuple[str, str], Any]) -> None:
    assert objects(world) == before
    assert {node.mode for node in world.kafka.nodes.values()} == {Mode.ZOOKEEPER}
    assert len(world.kafka.nodes) == 3
    assert world.kafka.tree.migration is None
    assert world.kafka.rules == "ZooKeeper"
    assert left_behind(world) == []
    assert not list(world.api.of("leases"))


@pytest.mark.parametrize("step", ["ProvisionControllers", "EnableMigration", "CopyMetadata"])
def test_before_the_claim_everything_is_taken_back_before_it_goes(world: MigrationWorld, step: str) -> None:
    before = objects(world)
    to_step(world, step)
    delete(world)
    assert world.live(lambda: waits_for(world, "BeingDeleted"))
    assert world.status["phase"] == "Terminating"
    assert world.live(lambda: gone(world))
    taken_back(world, before)


def test_a_deletion_in_the_middle_of_a_batch_is_survived_by_operators_that_die(world: MigrationWorld) -> None:
    before = objects(world)
    until_step(world, "EnableMigration", 1)
    delete(world)
    lives, moves = world.lives, world.moves
    while not world.live(lambda: gone(world), kill_when=lambda: world.moves - moves >= world.lives - lives):
        assert world.lives - lives < 200, world.step
    assert world.lives - lives > 10
    taken_back(world, before)


def test_a_rollback_after_the_claim_lets_it_go_when_everything_is_taken_back(world: MigrationWorld) -> None:
    before = objects(world)
    until_step(world, "MoveBrokers", 1)
    delete(world)
    assert world.live(lambda: waits_for(world, "HeldUntilTheEnd"))
    edit(world, desiredState="RolledBack")
    assert world.live(lambda: gone(world))
    taken_back(world, before)
