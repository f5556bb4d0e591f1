"""Walks along the whole plan of a KafkaMigration: there, through pauses, blindness and chance, and whatever others do."""

import copy
import random
from dataclasses import fields, replace
from typing import Any

import pytest

from switchover.answers.observed import Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import names
from switchover.cluster.door.mount import VOLUME
from switchover.cluster.facts import Facts
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.engine.plan import decide
from switchover.metadata.parity import MigrationState
from unit.kraft_walk import PROOF, REHEARSED, STEPS, Walk, changes, one_by_one, opened
from unit.pictures import BROKERS, CONTROLLERS
from unit.small_plan import BACKWARD, FORWARD, intent


@pytest.fixture(scope="module")
def walked() -> Walk:
    walk = Walk()
    walk.until()
    return walk


def test_the_walk_goes_through_every_step_in_its_order(walked):
    assert walked.steps == STEPS
    assert walked.position.finished


def test_brokers_never_run_on_zookeeper_and_on_kraft_at_the_same_time(walked):
    assert changes(walked.modes_seen) == one_by_one(Mode.ZOOKEEPER, Mode.MIGRATION, Mode.KRAFT)


def test_each_node_is_replaced_once_a_mode_and_not_more(walked):
    assert sorted(walked.cluster.replaced[:-2]) == sorted([*BROKERS, *BROKERS, *CONTROLLERS, REHEARSED])
    assert tuple(walked.cluster.replaced[-2:]) == PROOF


def test_the_zookeeper_controllers_broker_is_the_last_to_migration_and_the_leader_the_last_to_finalize(walked):
    assert [name for name, mode in walked.assigned if mode == Mode.MIGRATION] == ["kafka-1", "kafka-0", "kafka-2"]
    assert [name for name, mode in walked.assigned if mode == Mode.KRAFT_CONTROLLER][-1] == "kafka-controller-1", (
        "the rehearsal made the second one the leader")


def test_a_version_that_will_do_is_left_alone(walked):
    assert not [seen for seen in walked.modes_seen if Mode.ZOOKEEPER_RAISED in seen]
    assert [step for step in walked.steps if step == "RaiseProtocolVersion"], "it is walked through"


def test_nothing_that_is_created_names_an_owner_or_a_namespace(walked):
    for manifest in walked.cluster.applied:
        assert "ownerReferences" not in str(manifest)
        assert "namespace" not in manifest["metadata"]
        if manifest["metadata"]["name"] != "kafka":
            assert names.labels("to-kraft").items() <= manifest["metadata"]["labels"].items()


def test_the_walk_stands_before_finalize_until_it_is_approved():
    walk = Walk()
    walk.until("Finalize")
    for _ in range(20):
        decision = walk.step(approved=False)
        assert decision.effects == ()
    assert walk.position.opened is None
    assert "Approval" in decision.judged
    assert {node.mode for node in walk.cluster.controllers.values()} == {Mode.MIGRATION_CONTROLLER}
    walk.until("HandOver")
    assert walk.cluster.state is MigrationState.POST_MIGRATION


def test_an_operator_that_dies_in_every_pass_takes_longer_and_does_the_same():
    walk = Walk()
    for _ in range(60):
        walk.step()
        if walk.position.step == "EnableMigration":
            break
    for _ in range(30):
        walk.streaks = {}
        walk.step()
    assert walk.cluster.replaced == ["kafka-1"]
    assert walk.position.batch is not None
    assert walk.position.batch.proven is None, "gates that want several samples never open"
    walk.until()
    assert sorted(walk.cluster.replaced) == sorted([*BROKERS, *BROKERS, *CONTROLLERS, REHEARSED, *PROOF])


def without_our_mounts(manifest: dict[str, Any]) -> None:
    """What an apply leaves that knows every mount but ours."""
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [each for each in container["volumeMounts"] if each["name"] != VOLUME]


def test_a_template_changed_back_in_the_middle_stops_evictions_and_says_so():
    walk = Walk()
    walk.until("MoveBrokers")
    without_our_mounts(walk.cluster.manifest)
    before = list(walk.cluster.replaced)
    for _ in range(50):
        decision = walk.step()
    assert walk.cluster.replaced == before
    assert decision.stalled is not None
    assert decision.stalled.verdict.reason == "RevertedByGitOps"


@pytest.mark.parametrize("paused", [False, True])
def test_a_strategy_changed_back_with_the_template_is_taken_back_at_once_also_in_a_pause(paused):
    walk = Walk()
    walk.go(opened("MoveBrokers")(walk))
    ours = copy.deepcopy(walk.cluster.manifest["spec"]["template"])
    without_our_mounts(walk.cluster.manifest)
    walk.cluster.manifest["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    decision = decide(PLAN, walk.picture(), intent(FORWARD, paused=paused), walk.streaks, walk.cluster.now)
    assert [str(effect) for effect in decision.effects] == [
        "patch StatefulSet kafka: pods replaced by eviction only, again"]
    walk.cluster.perform(decision.effects[0])
    assert walk.cluster.manifest["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert walk.step().stalled.verdict.reason == "RevertedByGitOps"
    walk.cluster.manifest["spec"]["template"] = ours
    walk.until()


def test_a_strategy_alone_that_restarts_nothing_is_told_and_not_fought_over():
    walk = Walk()
    walk.go(opened("MoveBrokers")(walk))
    walk.cluster.manifest["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    decision = walk.step()
    assert decision.effects == ()
    assert decision.stalled.verdict.reason == "RevertedByGitOps"


def test_in_any_pass_it_stands_paused_and_blind_and_goes_back_or_says_why_not():
    """And a cluster of which nothing is known is never touched."""
    walk = Walk()
    for _ in range(400):
        at, picture, now = walk.position, walk.picture(), walk.cluster.now
        paused = decide(PLAN, picture, intent(FORWARD, paused=True), {}, now)
        assert (paused.position, paused.effects) == (at, ())
        blind = decide(PLAN, replace(picture, facts=Facts()), replace(intent(), approved=frozenset({"Finalize"})), {}, now)
        assert (blind.effects, blind.position.step, blind.position.batch) == ((), at.step, at.batch)
        back = decide(PLAN, picture, intent(BACKWARD), {}, now)
        assert back.effects == ()
        if PLAN.can_go_back(at):
            assert back.position.direction is BACKWARD
        elif not at.finished:
            assert (back.position, back.judged["Undo"].verdict.outcome) == (at, "Fail")
        walk.step()
        if walk.position.finished:
            break
    assert walk.position.finished


# --- an environment that fails at random --------------------------------------------------------------------------------


def dimmed(picture: Picture, chance: random.Random) -> Picture:
    """The same picture, of which now and then a reading failed."""
    lost = {}
    for field in fields(Facts):
        known = getattr(picture.facts, field.name)
        if chance.random() < 0.005:
            unknown = Unknown("no answer within 3 s")
            lost[field.name] = {key: unknown if chance.random() < 0.5 else item for key, item in known.items()} if (
                isinstance(known, dict)) else unknown
    return replace(picture, facts=replace(picture.facts, **lost))


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 8))])
def test_readings_that_fail_and_an_operator_that_dies_cost_time_and_nothing_else(seed, walked):
    chance, walk = random.Random(seed), Walk()
    for _ in range(3000):
        if chance.random() < 0.02:
            walk.streaks = {}
        walk.step(picture=dimmed(walk.picture(), chance))
        if walk.position.finished:
            break
    assert walk.position.finished, walk.position
    assert walk.steps == STEPS
    assert changes(walk.modes_seen) == changes(walked.modes_seen)
    assert sorted(walk.cluster.replaced) == sorted(walked.cluster.replaced)
    assert walk.cluster.files == walked.cluster.files
    assert walk.cluster.manifest == walked.cluster.manifest
