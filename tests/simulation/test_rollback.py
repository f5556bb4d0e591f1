"""The way back, from everywhere, by the real operator in virtual time; and forward again on the same world."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.kafka_world import STOPPED
from invariants.any_migration import differences
from simulation.migration_world import HOW_FAR, EndState, MigrationWorld
from simulation.moments import before_finalize, reasons, reference, to_batch, to_step
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.plan import PLAN
from tales import assert_told

STEPS = [step.name for step in PLAN.steps]
BEFORE_THE_END = STEPS[: STEPS.index("Finalize")]
BATCHES = [("EnableMigration", 1), ("EnableMigration", 2), ("CopyMetadata", 1),
           ("MoveBrokers", 1), ("MoveBrokers", 2), ("MoveBrokers", 3)]
ORDINARY = [("CopyMetadata", 1)]
"""The middles that an ordinary run takes, beside that of MoveBrokers in which metadata is changed; `long` takes them all."""
LONG = pytest.mark.long
OURS = {"controllerrevisions", "services", "secrets", "persistentvolumeclaims"}


def without_restarts(end: EndState) -> EndState:
    return replace(end, starts={}, status={**end.status, "restarts": ()})


# --- ends -------------------------------------------------------------------------------------------------------------


def assert_as_before(world: MigrationWorld) -> None:
    """Nothing is left of the migration: plain brokers, the user's own objects, all metadata, and nothing of ours."""
    kafka, broker_set = world.kafka, world.api.objects["statefulsets", "kafka"]
    assert {pod: node.mode for pod, node in kafka.nodes.items()} == {f"kafka-{n}": Mode.ZOOKEEPER for n in range(3)}
    assert (kafka.tree.migration, kafka.tree.claimed) == (None, False)
    assert kafka.tree.metadata == kafka.wanted
    assert broker_set["spec"] == world.original["spec"]
    assert not broker_set["metadata"].get("annotations")
    assert {name for plural, name in world.api.objects if plural == "statefulsets"} == {"kafka"}
    left = {(plural, name) for plural, name in world.api.objects if plural in OURS} - {
        ("persistentvolumeclaims", f"data-kafka-{n}") for n in range(3)}
    assert left == set()
    assert world.phase == "RolledBack"
    conditions = {each["type"]: each["status"] for each in world.status["conditions"]}
    assert conditions["Succeeded"] == "False"
    before = len(world.api.writes)
    assert world.live(lambda: world.timeline.now() > begun + 60) if (begun := world.timeline.now()) else False
    assert len(world.api.writes) == before, "it is over, and still it writes"


def assert_as_never_turned(world: MigrationWorld) -> None:
    """The end of a second attempt is that of a first one, but for how often nodes were started."""
    assert differences(without_restarts(world.end_state()), without_restarts(reference()[0])) == []
    assert world.kafka.log is not None
    assert world.kafka.log.metadata == world.kafka.wanted


def back_and_to_the_end(world: MigrationWorld) -> None:
    assert world.roll_back()
    assert_as_before(world)
    assert world.try_again()
    assert_as_never_turned(world)


# --- from everywhere --------------------------------------------------------------------------------------------------


@LONG
@pytest.mark.parametrize("step", BEFORE_THE_END)
def test_back_from_each_step_and_forward_again(world: MigrationWorld, step: str) -> None:
    to_step(world, step)
    back_and_to_the_end(world)


@pytest.mark.story
@HOW_FAR
@pytest.mark.parametrize(("step", "batch"), [
    pytest.param(step, batch, marks=() if (step, batch) in ORDINARY else LONG) for step, batch in BATCHES])
def test_back_from_the_middle_of_each_batch_and_forward_again(
        world: MigrationWorld, step: str, batch: int, whole: bool) -> None:
    to_batch(world, step, batch)
    assert world.roll_back()
    if (step, batch) in ORDINARY:
        assert_told("back-from-copy-metadata",
                    "In the middle of the claim the operator is killed, and a person wants everything back.", world.story)
    assert_as_before(world)
    if whole:
        assert world.try_again()
        assert_as_never_turned(world)


@pytest.mark.story
@HOW_FAR
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=LONG) for n in range(2, 9))])
def test_metadata_changed_in_dual_write_survives(monkeypatch: pytest.MonkeyPatch, seed: int, whole: bool) -> None:
    world = MigrationWorld(monkeypatch, seed, lag=5.0)
    to_batch(world, "MoveBrokers", 2)
    world.story.clear()
    world.say("people make a topic and change settings, an ACL and a password")
    assert world.kafka.create_topic("made-in-dual-write", {0: (1, 2, 3)})
    assert world.kafka.change("config orders", "retention.ms=3600000")
    assert world.kafka.change("acl orders", None)
    assert world.kafka.change("scram bob", "his salt and keys")
    assert world.roll_back()
    if seed == 1:
        assert_told("back-from-move-brokers", "Back from dual write, with one broker on KRaft and another one on its way.",
                    world.story)
    assert_as_before(world)
    assert "topic made-in-dual-write" in world.kafka.tree.metadata
    if whole:
        assert world.try_again()
        assert_as_never_turned(world)


@pytest.mark.story
def test_finalize_is_never_turned(world: MigrationWorld) -> None:
    to_step(world, "Finalize")
    world.story.clear()
    world.want("RolledBack")
    begun = world.timeline.now()
    assert world.live(lambda: "PointOfNoReturn" in reasons(world) and world.timeline.now() > begun + 120)
    assert world.kafka.state is not None
    assert STOPPED not in {node.mode for node in world.kafka.nodes.values()}
    world.want("Running")
    assert world.run_to_the_end()
    assert_as_never_turned(world)
    assert_told("too-late-to-turn", "A rollback is wanted after the point of no return, and the wish is taken back.",
                world.story)


@HOW_FAR
def test_before_its_approval_finalize_can_be_turned_and_an_old_approval_does_not_count(
        world: MigrationWorld, whole: bool) -> None:
    before_finalize(world)
    old: dict[str, Any] = {"name": "Finalize", "planHash": world.status["planHash"], "approver": "alice"}
    assert world.roll_back()
    assert_as_before(world)
    if not whole:                        # in another attempt it is void: unit/test_core_approvals.py, test_core_intent.py
        return
    world.want("Running", approvals=[old])
    assert world.live(lambda: world.step == "Finalize" and "ApprovalVoid" in reasons(world))
    begun = world.timeline.now()
    assert world.live(lambda: world.timeline.now() > begun + 120)
    assert world.step == "Finalize"
    assert not world.status["progress"].get("openTime")
    assert {node.mode for node in world.kafka.nodes.values()} == {Mode.KRAFT, Mode.MIGRATION_CONTROLLER}
    world.goes_on(whole)
    assert_as_never_turned(world)
