"""Walks of a Deployment: it is held, and held again; its template, its own settings and its autoscaler on the way."""

import copy
from typing import Any

import pytest

from switchover.engine.effects import Patch
from switchover.groups.plan import plan_of
from switchover.groups.workloads.change import container_of
from switchover.groups.workloads.deployment import HOLD_SECONDS
from unit.group_walk import PLANS, D, Walk, check_back, check_there
from unit.group_world import World


@pytest.mark.parametrize("plan", [plan for plan in PLANS if "Stateful" not in plan])
def test_a_deployments_template_is_written_only_while_nobody_would_leave_for_it(plan, monkeypatch):
    """Held from the same patch on, and paused or without a pod that may be unavailable; offline, without any pod."""
    walk, written, perform = PLANS[plan](), [], World.perform

    def performed(world: World, effect: Any) -> None:
        perform(world, effect)
        if isinstance(effect, Patch) and effect.kind == D and any(
                each["path"].startswith("/spec/template") for each in effect.operations):
            workload = world.workloads[effect.name]
            written.append(effect.name)
            if workload.alive:
                assert workload.spec["minReadySeconds"] == HOLD_SECONDS
                assert workload.spec.get("paused") or workload.spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0

    monkeypatch.setattr(World, "perform", performed)
    walk.wants(holds=["HandOver"])
    walk.until(lambda: walk.position.step == "HandOver")
    walk.wants(desiredState="RolledBack")
    check_back(walk.until(), plan)
    assert len(written) == (4 if any("bridge" in each for each in walk.wanted["workloads"]) else 2), "there and back"


def test_every_pod_is_replaced_once_and_back_only_those_that_had_moved():
    walk = PLANS["Deployment"]().until()
    assert walk.world.born == 8
    walk = PLANS["Deployment"]()
    walk.until(lambda: walk.position.step == "Rollout")
    assert walk.world.born == 6
    stayed = {pod.uid for pod in walk.world.workloads["orders"].alive if pod.client["GROUP_PROTOCOL"] == "classic"}
    walk.wants(desiredState="RolledBack")
    check_back(walk.until(), "Deployment")
    assert walk.world.born == 8
    assert stayed <= {pod.uid for pod in walk.world.workloads["orders"].alive}


@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_without_room_for_a_surge_pods_leave_before_their_successors_start(back):
    walk = PLANS["Deployment"]()
    walk.wants(rollout={"steps": [{"pods": 2, "bakeSeconds": 6}, {"pods": 1, "bakeSeconds": 3}], "surge": 0})
    most = 0
    for _ in range(600):
        if back and walk.position.step == "Settle":
            walk.wants(desiredState="RolledBack")
        if walk.ended():
            break
        walk.step()
        most = max(most, sum(walk.world.workloads["orders"].controller.sizes.values()))
    (check_back if back else check_there)(walk, "Deployment")
    assert (most, walk.fewest) == (4, 2)


def in_the_middle_of(step: str) -> Walk:
    """A Deployment's walk, with a batch of the step proven; in Settle, which has none, once it has begun."""
    walk = PLANS["Deployment"]()
    return walk.until(lambda: walk.position.step == step and (
        walk.position.opened is not None if step == "Settle"
        else walk.position.batch is not None and walk.position.batch.proven))


# --- what is the user's own ----------------------------------------------------------------------------------------------

OWN: dict[str, dict[str, Any]] = {
    "Recreate": {"strategy": {"type": "Recreate"}},
    "all at once": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "100%"}}},
    "minReadySeconds": {"minReadySeconds": 5, "progressDeadlineSeconds": 60},
}


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_a_deployment_gets_its_own_settings_back_and_nothing_restarts_for_it(own, back):
    walk = PLANS["Deployment"]()
    before = walk.world.workloads["orders"].spec
    before |= OWN[own]
    settings = copy.deepcopy({key: each for key, each in before.items() if key != "template"})
    if back:
        walk.until(lambda: walk.position.step == "Settle")
        walk.wants(desiredState="RolledBack")
    walk.until()
    pods = set(walk.world.workloads["orders"].pods)
    walk.world.pass_time(20)
    after = walk.world.workloads["orders"]
    assert {key: each for key, each in after.spec.items() if key != "template"} == settings
    assert (set(after.pods), walk.fewest) == (pods, 4)
    assert {each.client["GROUP_PROTOCOL"] for each in after.pods.values()} == {"classic" if back else "consumer"}


@pytest.mark.parametrize("step", ["Canary", "Rollout", "Settle"])
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_what_others_change_in_the_template_meanwhile_stays_and_holds_nothing_up(step, back):
    """While it is paused no ReplicaSet has that template; its pods are known by those that they were made of."""
    walk = in_the_middle_of(step)
    orders = walk.world.workloads["orders"]
    assert orders.spec["paused"]
    orders.spec["template"]["spec"]["containers"].append({"name": "mesh", "image": "mesh:1", "env": []})
    walk.step()
    assert sorted({mode for _, mode, _ in walk.picture().pods()}) == (
        ["Original", "Target"] if step == "Canary" else ["Target"])
    if back:
        walk.wants(desiredState="RolledBack")
    walk.until()
    walk.world.pass_time(30)
    wanted = "classic" if back else "consumer"
    assert {pod.client["GROUP_PROTOCOL"] for pod in orders.alive} == {wanted}
    assert {pod.revision for pod in orders.alive} == {orders.revision}, "its own settings roll it on"
    assert [each["name"] for each in orders.spec["template"]["spec"]["containers"]] == ["app", "mesh"]
    assert walk.fewest >= 3


def test_the_template_that_is_left_is_the_users_own_with_the_change_and_no_more():
    walk = PLANS["Deployment"]().until()
    _, container = container_of(walk.world.workloads["orders"].spec["template"], "app")
    assert container == {"name": "app", "image": "orders:1", "env": [{"name": "GROUP_PROTOCOL", "value": "consumer"},
                                                                     {"name": "STRATEGIES", "value": "range"}]}


# --- whoever takes the hold off -----------------------------------------------------------------------------------------

TAKEN: dict[str, dict[str, Any]] = {
    "the seconds": {"minReadySeconds": 0},
    "the seconds and the pause": {"minReadySeconds": 0, "paused": None},
    "all of it": {"minReadySeconds": 0, "progressDeadlineSeconds": 600, "paused": None,
                  "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}},
}


def write_over(walk: Walk, fields: dict[str, Any]) -> None:
    """Fields of the Deployment's spec; None takes one out."""
    spec = walk.world.workloads["orders"].spec
    for key, each in fields.items():
        spec.pop(key, None)
        if each is not None:
            spec[key] = each


def test_a_deployment_is_held_again_also_while_a_step_waits_for_its_approval():
    walk = PLANS["Deployment"]()
    walk.wants(holds=["Rollout"])
    walk.until(lambda: walk.position.step == "Rollout")
    for _ in range(3):
        walk.step()
    write_over(walk, TAKEN["all of it"])
    assert walk.step().judged["WorkloadsAreOurs"].verdict.reason == "DeploymentNotHeld", "told before the step is open, too"
    for _ in range(4):
        walk.step()
    world = walk.world.workloads["orders"]
    assert world.spec["minReadySeconds"] == HOLD_SECONDS
    assert sum(pod.client["GROUP_PROTOCOL"] == "classic" for pod in world.alive) >= 1, "held again within a pass"


SHARES = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}
RESET = {"a strategy of shares": SHARES, "shares, and no pause": {**SHARES, "paused": None},
         "Recreate": {"strategy": {"type": "Recreate"}},
         "both numbers": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}}


@pytest.mark.parametrize("step", ["Canary", "Rollout", "Settle"])
@pytest.mark.parametrize("taken", RESET)
def test_whoever_sets_the_strategy_alone_is_told_and_it_is_set_again(step, taken):
    walk = in_the_middle_of(step)
    write_over(walk, RESET[taken])
    decision = walk.step()
    verdict = decision.judged["WorkloadsAreOurs"].verdict
    assert verdict.reason == "StrategyReset"
    assert verdict.observed.startswith(RESET[taken]["strategy"]["type"])
    assert sorted(map(bool, walk.world.workloads["orders"].spec["strategy"]["rollingUpdate"].values())) == [False, True]
    check_there(walk.until(), "Deployment")


@pytest.mark.parametrize("step", ["Canary", "Rollout", "Settle"])
@pytest.mark.parametrize("taken", TAKEN)
def test_whoever_takes_the_hold_off_is_told_and_it_is_held_again(step, taken):
    walk = in_the_middle_of(step)
    write_over(walk, TAKEN[taken])
    decision = walk.step()
    assert decision.judged["WorkloadsAreOurs"].verdict.reason == "DeploymentNotHeld"
    assert walk.world.workloads["orders"].spec["minReadySeconds"] == HOLD_SECONDS
    assert walk.fewest == 4
    check_there(walk.until(), "Deployment")


# --- its autoscaler -----------------------------------------------------------------------------------------------------


def autoscaled(walk: Walk) -> dict[str, Any]:
    assert walk.world.autoscaler is not None
    settings: dict[str, Any] = walk.world.autoscaler["spec"]
    return settings


@pytest.mark.parametrize("plan", ["Deployment", "Deployment bridged", "strategy, Deployment", "offline, Deployment"])
def test_an_autoscaler_that_is_applied_again_in_any_step_is_paused_again(plan):
    """As a GitOps tool does it: with what Git says."""
    walk = PLANS[plan](autoscaled="orders")
    woken = {"Preflight", "Baseline", "HandOver"}
    while not walk.ended():
        at, paused = walk.position, "behavior" in autoscaled(walk)
        if at.opened is not None and paused and at.step not in woken:
            woken.add(at.step)
            autoscaled(walk).clear()
            autoscaled(walk)["minReplicas"] = 4
            walk.step()
            assert "behavior" in autoscaled(walk), f"not paused again in {at.step}"
        walk.step()
    assert woken == {step.name for step in plan_of(walk.migration.spec).steps}
    check_there(walk, plan)


def test_an_autoscaler_is_paused_again_in_a_pause_and_on_the_way_back():
    walk = PLANS["Deployment"]()
    walk.until(lambda: walk.position.step == "Rollout" and walk.position.batch is not None)
    for state in ("Paused", "RolledBack"):
        walk.wants(desiredState=state)
        walk.step()
        autoscaled(walk).clear()
        autoscaled(walk)["minReplicas"] = 4
        for _ in range(4):
            walk.step()
        assert "behavior" in autoscaled(walk)
    check_back(walk.until(), "Deployment")


def test_an_autoscaler_that_came_since_is_told_and_left_alone():
    walk = PLANS["Deployment"](autoscaled="")
    walk.until(lambda: walk.position.step == "Rollout" and walk.position.batch is not None)
    walk.world.autoscaler = PLANS["Deployment"]().world.autoscaler
    for _ in range(5):
        decision = walk.step()
    assert decision.judged["WorkloadsAreOurs"].verdict.reason == "AutoscalerActive"
    assert autoscaled(walk) == {"minReplicas": 4}
