"""Walks along every plan of a ConsumerGroupMigration: there, back from everywhere, and there again."""

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest

import samples
from switchover.api.job_message import NONCE
from switchover.engine.plan import decide
from switchover.groups.picture import Facts
from switchover.groups.plan import plan_of
from switchover.kubernetes.client.pods import given
from tales import assert_told
from unit.group_pictures import AUDIT, UID, workload_of
from unit.group_walk import KIND, PLANS, D, S, Walk, check_back, check_on_the_way, check_there, each_plan, walk
from unit.group_world import World
from unit.small_plan import intent

TOLD = {"Deployment": "group-deployment", "StatefulSet bridged": "group-bridge", "offline, StatefulSet": "group-offline"}
"""Plans whose stories are kept."""
PATCH = """
    metadata: {annotations: {checksum/config: new}}
    spec:
      volumes: [{name: config, configMap: {name: consumer-protocol}}]
      initContainers: [{name: convert, image: 'orders:1'}]
      containers:
        - name: app
          env: [{name: GROUP_PROTOCOL, value: consumer}]
          volumeMounts: [{name: config, mountPath: /etc/orders}]"""


@pytest.mark.parametrize("kind", [D, S])
def test_by_a_patch_there_and_back(kind):
    """What the change consists of is the walk's affair nowhere."""
    plan = "Deployment" if kind == D else "StatefulSet"
    there, back = (walk((kind, "orders", 3), change={"template": {"patch": PATCH}}) for _ in range(2))
    check_there(there.until(), plan)
    template = there.world.workloads["orders"].spec["template"]
    assert template["metadata"]["annotations"] == {"checksum/config": "new"}
    assert template["spec"]["volumes"] == [{"name": "config", "configMap": {"name": "consumer-protocol"}}]
    back.until(lambda: back.position.step == "Settle").wants(desiredState="RolledBack")
    back.until()
    fresh = walk((kind, "orders", 3)).world.workloads["orders"].spec
    assert (back.position.step, back.world.workloads["orders"].spec) == ("Preflight", fresh)


# --- there --------------------------------------------------------------------------------------------------------------


@pytest.mark.story
@each_plan
def test_the_walk_goes_through_every_step_in_its_order(plan):
    walk = PLANS[plan]().tells().until()
    assert walk.steps == [step.name for step in plan_of(walk.migration.spec).steps]
    check_there(walk, plan)
    check_on_the_way(walk, plan)
    if plan in TOLD:
        assert_told(TOLD[plan], f"A consumer group is carried over, {plan}.", walk.story)


@pytest.mark.parametrize("plan", ["Deployment", "offline, StatefulSet"])
def test_with_the_lag_kernel_as_the_judge(plan):
    walk = PLANS[plan](judges_lag=True)
    walk.wants(onFailure="RollBack", gates={"lagPassSeconds": 9, "stableSamples": 2})
    check_there(walk.until(passes=900), plan)


def test_an_audit_comes_before_the_end_and_is_of_the_whole_migration():
    walk = PLANS["Deployment"]()
    began = walk.world.now
    walk.wants(audit=AUDIT)
    check_there(walk.until(), "Deployment")
    assert walk.steps[-2:] == ["Audit", "HandOver"]
    (job,) = walk.world.jobs
    template = job["spec"]["template"]
    config = json.loads(template["metadata"]["annotations"]["switchover.dev/pipeline"])
    assert config["audit"]["groups"] == [{"name": "orders"}]
    assert began * 1000 <= config["audit"]["since"] < config["audit"]["until"] <= walk.world.now * 1000
    assert job["metadata"]["ownerReferences"][0]["uid"] == UID
    assert len(given(job)[NONCE]) == 16, "which its verdict repeats"
    assert template["spec"]["volumes"][1] == {"name": "store", "persistentVolumeClaim": {"claimName": "pipeline"}}


def test_a_stateful_set_under_on_delete_is_given_its_own_strategy_back():
    """Its current revision is one of long ago, until it is held."""
    walk = Walk(World((S, "orders", 3), on_delete=True), {"workloads": (workload_of(S),)}).until()
    assert walk.world.workloads["orders"].spec["updateStrategy"] == {"type": "OnDelete"}
    assert {pod.client["GROUP_PROTOCOL"] for pod in walk.world.workloads["orders"].pods.values()} == {"consumer"}


@pytest.mark.parametrize("step", ["Canary", "Rollout", "Settle", "HandOver"])
def test_a_held_step_waits_for_its_approval_and_goes_on_with_it(step):
    walk = PLANS["Deployment"]()
    walk.wants(holds=[step])
    walk.until(lambda: walk.position.step == step)
    for _ in range(10):
        decision = walk.step()
    assert (walk.position.opened, decision.effects, "Approval" in decision.judged) == (None, (), True)
    assert walk.migration.status.phase == "AwaitingApproval"
    assert {each.type: each.status for each in walk.migration.status.conditions}["Succeeded"] == "False"
    walk.wants(approvals=[{"name": step, "planHash": walk.migration.status.plan_hash, "approver": "alice"}])
    check_there(walk.until(), "Deployment")


@each_plan
def test_a_group_whose_spec_changes_before_its_pods_are_on_record_is_checked_again(plan):
    walk = PLANS[plan]()
    walk.wants(holds=["Baseline"])
    for patience in (901, 902):
        walk.until(lambda: walk.migration.status.phase == "AwaitingApproval")
        assert (walk.position.step, walk.position.nodes, walk.world.done) == ("Baseline", {}, [])
        walk.wants(gates={**walk.wanted.get("gates", {}), "stepPatienceSeconds": patience})
        assert "Preflight begins again" in walk.step().note
    walk.until(lambda: walk.migration.status.phase == "AwaitingApproval")
    walk.wants(approvals=[{"name": "Baseline", "planHash": walk.migration.status.plan_hash, "approver": "alice"}])
    walk.until(lambda: bool(walk.position.nodes))
    walk.wants(gates={**walk.wanted["gates"], "stepPatienceSeconds": 903})
    check_there(walk.until(), plan)
    assert walk.steps.count("Preflight") == 3


def test_a_hold_on_a_step_that_the_plan_does_not_have_is_a_finding_of_preflight():
    walk = PLANS["Deployment bridged"]()
    walk.wants(holds=["Promote"])
    for _ in range(10):
        walk.step()
    assert (walk.position.step, walk.world.done) == ("Preflight", [])
    assert [finding.code for finding in walk.migration.status.findings if finding.severity == "Blocker"] == ["NoSuchStep"]
    walk.wants(holds=["HandOver"])
    walk.until(lambda: walk.position.step == "HandOver")


# --- at every pass ------------------------------------------------------------------------------------------------------


@each_plan
def test_paused_or_blind_in_any_pass_nothing_is_done(plan):
    walk = PLANS[plan]()
    while not walk.ended():
        at, picture = walk.position, walk.picture()
        paused = decide(KIND.plan(picture), picture, intent(paused=True), walk.streaks, picture.now)
        assert paused.effects == ()
        assert replace(paused.position, batch=None) == replace(at, batch=None)
        blind = decide(KIND.plan(picture), replace(picture, facts=Facts()), intent(), walk.streaks, picture.now)
        assert blind.effects == ()
        assert (blind.position.step, blind.position.batch) == (at.step, at.batch)
        walk.step()


@each_plan
@pytest.mark.parametrize("phase", [0, *(pytest.param(each, marks=pytest.mark.long) for each in (2, 4))])
def test_an_operator_that_dies_again_and_again_takes_longer_and_does_the_same(plan, phase):
    """Streaks, samples and the judge of the lag are lost."""
    walk = PLANS[plan]()
    for number in range(900):
        if number % 6 == phase:
            walk.forget()
        walk.step()
        if walk.ended():
            break
    check_there(walk, plan)
    check_on_the_way(walk, plan)


# --- back ---------------------------------------------------------------------------------------------------------------


def moments(walk: Walk) -> Iterator[tuple[str, Walk]]:
    """Every step opened, every batch put on record, under way, and proven, and right before the point of no return; each
    with a walk that has come there.
    """
    seen: set[object] = set()
    while walk.position.step != "HandOver":
        at = walk.position
        batch = at.batch and (at.batch.index, at.batch.proven is not None)
        if at.opened is not None and at.step != "Preflight" and (at.step, batch) not in seen:
            seen.add((at.step, batch))
            yield f"{at.step} {batch}", copy.deepcopy(walk)
            if at.batch is not None and at.batch.proven is None:
                yield f"{at.step} {batch}, two passes later", after_two_passes(walk)
        walk.step()
    yield "HandOver", walk


def after_two_passes(walk: Walk) -> Walk:
    later = copy.deepcopy(walk)
    later.step()
    later.step()
    return later


Check = Callable[[str, random.Random, Walk], None]


@cache
def all_moments(plan: str) -> list[tuple[str, Walk]]:
    return list(moments(PLANS[plan]()))


def from_some_moments(plan: str, count: int, check: Check) -> Counter[str]:
    """Check so many moments of a plan; how many these are, of how many."""
    everything = all_moments(plan)
    chosen, dice = samples.taken(everything, count), random.Random(f"{samples.SAMPLE} {plan}")
    for moment, begun in chosen:
        try:
            check(plan, dice, copy.deepcopy(begun))
        except AssertionError as error:
            raise AssertionError(f"{plan}, back from {moment}, SAMPLE={samples.SAMPLE}: {error}") from error
    return Counter(chosen=len(chosen), everything=len(everything))


def from_some_moments_of_each_plan(count: int, check: Check, counted: Callable[[str], None]) -> None:
    found = sum((from_some_moments(plan, count, check) for plan in PLANS), Counter[str]())
    counted(samples.told(found["chosen"], found["everything"], "moments"))


def check_back_and_there_again(plan: str, dice: random.Random, walk: Walk) -> None:
    walk.wants(desiredState="RolledBack")
    walk.until()
    check_back(walk, plan)
    check_on_the_way(walk, plan)
    if dice.random() < .1:
        walk.wants(desiredState="Running")
        check_there(walk.until(), plan)
        assert walk.position.attempt == 2
        check_on_the_way(walk, plan)


def check_turned_round(plan: str, dice: random.Random, walk: Walk) -> None:
    walk.wants(desiredState="RolledBack")
    for _ in range(dice.randint(1, 30)):
        if not walk.ended():
            walk.step()
    walk.wants(desiredState="Running")
    check_there(walk.until(), plan)
    check_on_the_way(walk, plan)


def test_from_some_moments_there_is_a_way_back_and_then_forward_again(counted):
    from_some_moments_of_each_plan(4, check_back_and_there_again, counted)


def test_whoever_turns_round_on_the_way_back_still_comes_there(counted):
    from_some_moments_of_each_plan(2, check_turned_round, counted)


@pytest.mark.long
@each_plan
@pytest.mark.parametrize("check", [check_back_and_there_again, check_turned_round])
def test_from_everywhere_there_is_a_way_back_and_one_forward(plan, check):
    from_some_moments(plan, 1000, check)
