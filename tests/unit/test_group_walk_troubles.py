"""Walks along a group's plans in which something goes wrong: clients that fail, people who interfere, Kafka itself."""

from dataclasses import replace

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.engine.effects import Evict
from switchover.groups.picture import Picture
from switchover.kafka.group import GroupType
from tales import assert_told
from unit.group_pictures import member, pod, value, with_group
from unit.group_walk import FORWARD, PLANS, check_back, check_on_the_way, check_there, each_plan, new, spared

FAULTS = {"silent": ("group-refused-canary", "The canary's new client does not join: the group goes back by itself."),
          "slow": ("group-stalled", "The canary's new client joins and commits nothing: the group goes back by itself.")}
"""Faults whose stories are kept, with what they are about."""


@pytest.mark.story
@each_plan
@pytest.mark.parametrize(("fault", "reason"), [("silent", "NotAMember"), ("crashing", "NewPodRestarts"),
                                               ("slow", "PartitionStalled")])
def test_a_new_client_that_fails_turns_the_migration_back_by_itself(plan, fault, reason):
    walk = PLANS[plan]().tells()
    walk.wants(onFailure="RollBack")
    getattr(walk.world, fault).add(new(plan))
    for _ in range(300):
        walk.step()
        if walk.position.finished:
            break
    assert walk.position.failure == reason
    check_back(walk, plan)
    if plan == "Deployment" and fault in FAULTS:
        name, about = FAULTS[fault]
        assert_told(name, about, walk.story)
    assert walk.fewest >= sum(walk.total.values()) - spared(plan), "the canaries that fail cost a member that works"
    assert not [effect for effect in walk.world.done if isinstance(effect, Evict)]


@each_plan
def test_a_new_client_that_fails_is_told_and_nothing_follows_where_a_person_is_to_decide(plan):
    walk = PLANS[plan]()
    walk.world.silent.add(new(plan))
    for _ in range(150):
        decision = walk.step()
    assert decision.stalled is not None
    assert decision.stalled.verdict.reason == "NotAMember"
    assert (walk.migration.status.phase, walk.position.direction) == ("Stalled", FORWARD)
    if "offline" not in plan:
        failing = [pod for each in walk.world.workloads.values() for pod in each.pods.values()
                   if new(plan) in pod.client.values()]
        assert len(failing) == (2 if "Deployment" in plan or plan == "both" else 1)
    walk.wants(desiredState="RolledBack")
    walk.until()
    check_back(walk, plan)


@pytest.mark.story
@pytest.mark.parametrize(("step", "name", "by"), [
    ("Canary", "orders", 3), ("Canary", "orders", -1), ("Rollout", "orders", 3), ("Rollout", "orders", -3)])
def test_whoever_scales_in_the_middle_is_told_and_nothing_moves_until_it_is_put_right(step, name, by):
    walk = PLANS["Deployment"]()
    walk.until(lambda: walk.position.step == step and walk.position.batch is not None and walk.position.batch.proven)
    walk.tells().say(f"somebody scales {name} by {by}")
    scaled, moved = walk.world.workloads[name], len(walk.world.done)
    scaled.spec["replicas"] += by
    for _ in range(15):
        decision = walk.step()
    assert (len(walk.world.done), walk.migration.status.phase) == (moved, "Stalled")
    while (told := decision.judged["WorkloadsAreOurs"].verdict).reason == "ReplicasChanged":
        walk.say(f"a person scales {told.subject} back to {told.threshold}")
        walk.world.workloads[told.subject].spec["replicas"] = int(told.threshold)
        decision = walk.step()
    check_there(walk.until(), "Deployment")
    if (step, by) == ("Rollout", 3):
        assert_told("group-scaled", "Somebody scales the Deployment in the middle of a batch.", walk.story)


def moved(picture: Picture) -> Picture:
    """The same group at the coordinator on broker 2."""
    facts = picture.facts
    return replace(with_group(coordinator=2)(picture), facts=replace(
        with_group(coordinator=2)(picture).facts, brokers={**facts.brokers, 2: facts.brokers[1]},
        coordinators=Known(frozenset({2}), picture.now), coordinated=Known({2: 4}, picture.now)))


@pytest.mark.story
def test_a_coordinator_that_moves_costs_time_and_nothing_else():
    walk = PLANS["Deployment"]()
    walk.until(lambda: walk.position.step == "Rollout" and walk.position.batch is not None)
    walk.tells().say("the group's coordinator moves from broker 1 to broker 2")
    done = len(walk.world.done)
    for _ in range(4):
        walk.step(lambda picture: replace(picture, facts=replace(
            picture.facts, group=Unknown("broker 1 is not the coordinator of the group any more"))))
    assert len(walk.world.done) == done
    for _ in range(200):
        if walk.ended():
            break
        assert walk.step(moved).stalled is None
    check_there(walk, "Deployment")
    check_on_the_way(walk, "Deployment")
    assert_told("group-coordinator-moves", "The group's coordinator moves to another broker in the middle of a batch.",
                walk.story)


def with_member_of_a_pod_that_is_gone(picture: Picture) -> Picture:
    group = value(picture.facts.group)
    gone = member(pod("gone", "10.9.9.9", ""), group.members[0].protocol, (), group.epoch)
    return with_group(members=(*group.members, gone))(picture)


def test_the_member_of_a_pod_that_was_killed_makes_no_bake_void_until_its_session_must_have_ended():
    walk = PLANS["Deployment"]()
    walk.wants(rollout={"steps": [{"pods": 2, "bakeSeconds": 600}]})
    walk.until(lambda: walk.position.batch is not None and walk.position.batch.proven is not None)
    proven = walk.position.batch
    for _ in range(20):
        decision = walk.step(with_member_of_a_pod_that_is_gone)
    assert (decision.judged["NoForeignMembers"].verdict.reason, walk.position.batch) == ("ForeignMembers", proven)
    walk.step()
    for _ in range(21):
        assert walk.position.batch == proven
        walk.step(with_member_of_a_pod_that_is_gone)
    assert replace(proven, proven=None) == walk.position.batch


def test_under_policy_upgrade_a_group_that_nobody_assigns_is_cured_by_one_eviction():
    """The last member of the consumer protocol leaves, and its partitions have no owner."""
    walk = PLANS["Deployment"](policy="upgrade")
    walk.wants(protocol={"to": "Consumer", "acceptNoOnlineRollback": True})
    walk.until(lambda: walk.position.step == "Rollout" and walk.position.batch is not None)
    walk.wants(desiredState="RolledBack")
    for _ in range(300):
        walk.step()
        if walk.ended():
            break
    check_back(walk, "Deployment")
    assert len([effect for effect in walk.world.done if isinstance(effect, Evict)]) == 1
    assert walk.world.coordinator.type is GroupType.CONSUMER, "such a group stays of that type, with classic members alone"
