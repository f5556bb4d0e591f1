"""Which steps a spec of a ConsumerGroupMigration asks for, and what the plan's hash covers."""

import pytest

from switchover.engine.position import Position
from switchover.groups import goals
from switchover.groups.plan import plan_of
from unit.group_pictures import BOUNCES, BRIDGED, TO_CLASSIC, spec_of, workload_of

D, S = "Deployment", "StatefulSet"
STRATEGY = {"assignmentStrategy": {"to": "cooperative-sticky"}}
BOTH = (workload_of(), workload_of(S, "payments"))
OVER_BRIDGES = (workload_of(**BRIDGED), workload_of(S, "payments", **BRIDGED))
DOWN = {"template": TO_CLASSIC}

PLANS = {
    "a Deployment": (spec_of(), "Canary Rollout"),
    "a StatefulSet": (spec_of(workload_of(S)), "Canary Rollout"),
    "both": (spec_of(*BOTH), "Canary Rollout"),
    "a Deployment over a bridge": (spec_of(workload_of(**BRIDGED)), "BridgeCanary Bridge Canary Rollout"),
    "a StatefulSet over a bridge": (spec_of(workload_of(S, **BRIDGED)), "BridgeCanary Bridge Canary Rollout"),
    "both over a bridge": (spec_of(*OVER_BRIDGES), "BridgeCanary Bridge Canary Rollout"),
    "two bounces": (spec_of(workload_of(**BOUNCES), **STRATEGY), "BounceOneCanary BounceOne BounceTwo"),
    "two bounces of a StatefulSet": (spec_of(workload_of(S, **BOUNCES), **STRATEGY), "BounceOneCanary BounceOne BounceTwo"),
    "to classic": (spec_of(workload_of(**DOWN), protocol={"to": "Classic"}), "Canary Rollout"),
    "a StatefulSet to classic": (spec_of(workload_of(S, **DOWN), protocol={"to": "Classic"}), "Canary Rollout"),
    **{f"coordination to {to}": (
        spec_of(workload_of(**BRIDGED), coordination={"to": to}, zookeeper={"connect": "zookeeper:2181"}),
        f"ReplaceWithMigrationEnabled Toggle ReplaceWith{whom}") for to, whom in (
            ("Kafka", "KafkaConsumers"), ("ZooKeeper", "OldConsumers"))},
    "the mode alone": (spec_of(workload_of(template={}), coordination={"to": "Kafka", "replace": "Nothing"},
                               zookeeper={"connect": "zookeeper:2181"}), "Toggle"),
    **{f"offline, {kind}": (spec_of(workload_of(kind), protocol={"to": "Consumer", "strategy": "Offline"}), "Stop Start")
       for kind in (D, S)},
}


@pytest.mark.parametrize("what", PLANS)
def test_the_steps_of_every_kind_of_spec(what):
    spec, between = PLANS[what]
    assert [step.name for step in plan_of(spec).steps] == ["Preflight", "Baseline", *between.split(), "Settle", "HandOver"]


@pytest.mark.parametrize("what", PLANS)
def test_an_audit_is_a_step_before_the_last_of_every_plan(what):
    spec = PLANS[what][0].evolve(audit={"enabled": True, "image": "pipeline:1", "claim": "pipeline"})
    assert [step.name for step in plan_of(spec).steps][-3:] == ["Settle", "Audit", "HandOver"]
    assert plan_of(spec).can_go_back(Position(step="Audit", opened=1.0))


@pytest.mark.parametrize("what", PLANS)
def test_every_step_but_the_last_can_be_taken_back(what):
    plan = plan_of(PLANS[what][0])
    assert [step.name for step in plan.steps if step.back is None] == ["HandOver"]
    assert plan.point_of_no_return == "HandOver"
    assert plan.can_go_back(Position(step="Settle", opened=1.0))
    assert plan.can_go_back(Position(step="HandOver"))
    assert not plan.can_go_back(Position(step="HandOver", opened=1.0))


@pytest.mark.parametrize("what", PLANS)
def test_no_leg_has_two_gates_of_one_name(what):
    """They would share a streak."""
    for step in plan_of(PLANS[what][0]).steps:
        for leg in (step.forward, step.back):
            if leg is not None:
                gates = (*leg.watch, *leg.done, *(gate for each in leg.rollouts for gate in each.after))
                assert len({gate.name for gate in gates}) == len({id(gate) for gate in gates}), step.name


def test_after_a_stop_nothing_but_the_lag_itself_tells_of_what_stood():
    """What stood while nobody was there would take the migration back as soon as it starts its pods again."""
    start = next(step for step in plan_of(PLANS["offline, Deployment"][0]).steps if step.name == "Start")
    assert not {"GoesOn", "LagHealthy"} & {gate.name for gate in (*start.forward.watch, *start.forward.done)}
    assert "LagRecovered" in {gate.name for gate in start.forward.done}
    assert start.forward.goal is goals.started_as_target
