"""Walks along every plan of a ConsumerGroupMigration: there, back from everywhere, and there again."""

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import samples
from switchover.engine.effects import DeletePod, Evict, Patch
from switchover.engine.plan import decide
from switchover.groups.picture import Facts, Picture
from switchover.groups.plan import plan_of
from switchover.groups.workloads.change import container_of
from switchover.groups.workloads.deployment import HOLD_SECONDS
from switchover.kafka.group import GroupState, GroupType
from switchover.outside.observed import Known, Unknown
from tales import assert_told
from unit.group_pictures import AUDIT, BOUNCES, BRIDGED, TO_CLASSIC, UID, member, pod, value, with_group, workload_of
from unit.group_walk import FORWARD, KIND, Walk
from unit.group_world import World
from unit.small_plan import intent

D, S = "Deployment", "StatefulSet"
STRATEGY = {"assignmentStrategy": {"to": "cooperative-sticky"}}
OFFLINE = {"protocol": {"to": "Consumer", "strategy": "Offline"}}
DOWN = {"protocol": {"to": "Classic"}}
QUICK = {"soakSeconds": 6, "gates": {"stableSamples": 2, "maxStallSeconds": 30},
         "rollout": {"steps": [{"pods": 2, "bakeSeconds": 6}, {"pods": 2, "bakeSeconds": 3}]}}


def walk(*workloads: tuple[str, str, int], change: dict[str, Any] | None = None, spec: dict[str, Any] | None = None,
         judges_lag: bool = False, **world: Any) -> Walk:
    """At its start; bakes and the soak last a pass or two."""
    wanted = tuple(workload_of(kind, name, **(change or {})) for kind, name, _ in workloads)
    return Walk(World(*workloads, **world), {"workloads": wanted, **QUICK, **(spec or {})}, judges_lag=judges_lag)


PLANS: dict[str, Callable[..., Walk]] = {
    "Deployment": lambda **more: walk((D, "orders", 4), **{"autoscaled": "orders", **more}),
    "StatefulSet": lambda **more: walk((S, "orders", 4), **more),
    "both": lambda **more: walk((D, "orders", 3), (S, "payments", 3), **more),
    "Deployment bridged": lambda **more: walk((D, "orders", 4), change=BRIDGED, **more),
    "StatefulSet bridged": lambda **more: walk((S, "orders", 4), change=BRIDGED, **more),
    "strategy, Deployment": lambda **more: walk((D, "orders", 4), change=BOUNCES, spec=STRATEGY, **more),
    "strategy, StatefulSet": lambda **more: walk((S, "orders", 4), change=BOUNCES, spec=STRATEGY, **more),
    "offline, Deployment": lambda **more: walk((D, "orders", 4), spec=OFFLINE, **more),
    "offline, StatefulSet": lambda **more: walk((S, "orders", 4), spec=OFFLINE, **more),
    "to classic, Deployment": lambda **more: walk(
        (D, "orders", 4), change={"template": TO_CLASSIC}, spec=DOWN, protocol="consumer", **more),
    "to classic, StatefulSet": lambda **more: walk(
        (S, "orders", 4), change={"template": TO_CLASSIC}, spec=DOWN, protocol="consumer", **more),
}
TOLD = {"Deployment": "group-deployment", "StatefulSet bridged": "group-bridge", "offline, StatefulSet": "group-offline"}
"""Plans whose stories are kept."""
each_plan = pytest.mark.parametrize("plan", PLANS)


def new(plan: str) -> str:
    """What only the new clients of a plan have among their settings."""
    return "cooperative-sticky" if "strategy" in plan else "classic" if "classic" in plan else "consumer"


def spared(plan: str) -> int:
    """How many members a plan can be short of: a StatefulSet takes a pod away before it makes the next."""
    return 100 if "offline" in plan else 1 if "StatefulSet" in plan or plan == "both" else 0


def check_there(walk: Walk, plan: str) -> None:
    """Every pod is a new one's, nothing of ours is left, and the group is whole."""
    walked, world = walk.position, walk.world
    assert (walked.finished, walked.step, walked.direction) == (True, "HandOver", FORWARD)
    assert walk.migration.status.phase == "Succeeded"
    assert {name: each.spec["replicas"] for name, each in world.workloads.items()} == walk.total
    assert all(new(plan) in pod.client.values() for each in world.workloads.values() for pod in each.pods.values())
    check_left_alone(walk)


def check_back(walk: Walk, plan: str) -> None:
    """Exactly as it was before anything was touched."""
    fresh = PLANS[plan]().world
    assert (walk.position.finished, walk.position.step) == (True, "Preflight")
    assert {name: each.spec for name, each in walk.world.workloads.items()} == {
        name: each.spec for name, each in fresh.workloads.items()}
    assert not any(new(plan) in pod.client.values() for each in walk.world.workloads.values() for pod in each.pods.values())
    check_left_alone(walk)


def check_left_alone(walk: Walk) -> None:
    world = walk.world
    fresh = World(*((each.made["kind"], name, walk.total[name]) for name, each in world.workloads.items()))
    assert all(not each.made["metadata"].get("annotations") for each in world.workloads.values()), "claimed"
    for name, each in world.workloads.items():
        assert {**each.spec, "template": None} == {**fresh.workloads[name].spec, "template": None}
    if world.autoscaler is not None:
        assert world.autoscaler["spec"] == {"minReplicas": 4}
    assert (world.coordinator.state, world.members()) == (GroupState.STABLE, sum(walk.total.values()))
    assert all(world.coordinator.owner(each) for each in world.coordinator.partitions)


def check_on_the_way(walk: Walk, plan: str) -> None:
    """While nothing fails nobody leaves before whoever follows is a member, and no pod is evicted or deleted."""
    assert walk.fewest >= sum(walk.total.values()) - spared(plan)
    assert not [effect for effect in walk.world.done if isinstance(effect, Evict | DeletePod)]


PATCH = """
    metadata: {annotations: {checksum: new}}
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
    assert template["metadata"]["annotations"] == {"checksum": "new"}
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


def from_some_moments(plan: str, count: int, check: Check) -> Counter[str]:
    """Check so many moments of a plan; how many these are, of how many."""
    everything = list(moments(PLANS[plan]()))
    chosen, dice = samples.taken(everything, count), random.Random(f"{samples.SAMPLE} {plan}")
    for moment, walk in chosen:
        try:
            check(plan, dice, walk)
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


FAULTS = {"silent": ("group-refused-canary", "The canary's new client does not join: the group goes back by itself."),
          "slow": ("group-stalled", "The canary's new client joins and commits nothing: the group goes back by itself.")}
"""Faults whose stories are kept, with what they are about."""


# --- clients that fail --------------------------------------------------------------------------------------------------


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
    assert (decision.judged["NoStrangers"].verdict.reason, walk.position.batch) == ("ForeignMembers", proven)
    walk.step()
    for _ in range(21):
        assert walk.position.batch == proven
        walk.step(with_member_of_a_pod_that_is_gone)
    assert replace(proven, proven=None) == walk.position.batch


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


@pytest.mark.parametrize("step", ["Canary", "Rollout", "Settle"])
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_what_others_change_in_the_template_meanwhile_stays_and_holds_nothing_up(step, back):
    """While it is paused no ReplicaSet has that template; its pods are known by those that they were made of."""
    walk = PLANS["Deployment"]()
    walk.until(lambda: walk.position.step == step and (walk.position.opened is not None if step == "Settle" else bool(
        walk.position.batch is not None and walk.position.batch.proven)))
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
    walk = PLANS["Deployment"]()
    walk.until(lambda: walk.position.step == step and (walk.position.opened is not None if step == "Settle" else bool(
        walk.position.batch is not None and walk.position.batch.proven)))
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
    walk = PLANS["Deployment"]()
    walk.until(lambda: walk.position.step == step and (walk.position.opened is not None if step == "Settle" else bool(
        walk.position.batch is not None and walk.position.batch.proven)))
    write_over(walk, TAKEN[taken])
    decision = walk.step()
    assert decision.judged["WorkloadsAreOurs"].verdict.reason == "DeploymentNotHeld"
    assert walk.world.workloads["orders"].spec["minReadySeconds"] == HOLD_SECONDS
    assert walk.fewest == 4
    check_there(walk.until(), "Deployment")


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


def test_the_template_that_is_left_is_the_users_own_with_the_change_and_no_more():
    walk = PLANS["Deployment"]().until()
    _, container = container_of(walk.world.workloads["orders"].spec["template"], "app")
    assert container == {"name": "app", "image": "orders:1", "env": [{"name": "GROUP_PROTOCOL", "value": "consumer"},
                                                                     {"name": "STRATEGIES", "value": "range"}]}
