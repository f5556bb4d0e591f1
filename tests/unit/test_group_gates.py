"""Every gate of the plans of a group: it passes on a healthy picture of its moment, and is shut when blind.

What each finds wrong is in test_group_findings.py.
"""

from dataclasses import fields, replace
from typing import Any

import pytest

from switchover.answers.observed import Unknown
from switchover.api.status import Verdict as Outcome
from switchover.groups.picture import Facts
from switchover.groups.plan import plan_of
from unit.each_gate import watched
from unit.group_gates import GATES, MOMENTS
from unit.group_pictures import (
    AUDIT,
    BOUNCES,
    BRIDGED,
    STRATEGY,
    all_consumer,
    mixed,
    of_stateful_set,
    spec_of,
    with_fact,
    workload_of,
)

BY_CLOCK_OR_SPEC = {
    "Soaked": "compares the clock with the record alone",
    "WithinWindow": "has nothing to compare while there are no windows",
    "Tools": "tells what is so by the spec alone",
}
"""Gates that observe nothing, so that nothing they need can be unknown."""

each_gate = pytest.mark.parametrize("name", sorted(GATES))


def test_every_gate_has_its_moment_here():
    assert MOMENTS.keys() == GATES.keys()


@each_gate
def test_a_gate_passes_on_a_healthy_picture_by_at_least_one_sample_and_no_negative_time(name):
    picture, gate = MOMENTS[name](), GATES[name]
    assert gate.check(picture).outcome is Outcome.PASS
    assert gate.samples(picture) >= 1
    assert gate.hold(picture) >= 0
    assert gate.patience is None or gate.patience(picture) > 0


@each_gate
def test_a_gate_that_sees_nothing_does_not_pass(name):
    seen = GATES[name].check(replace(MOMENTS[name](), facts=Facts()))
    assert (seen.outcome is Outcome.PASS) == (name in BY_CLOCK_OR_SPEC)


WORDS_ALONE = {"NewPodsJoin": {"brokers"}, "Readings": {field.name for field in fields(Facts)}}
"""Facts that only make what is told clearer, and the check that looks for refusals alone."""


@each_gate
def test_a_gate_is_shut_as_soon_as_anything_it_read_is_unknown(name):
    picture = MOMENTS[name]()
    read: set[str] = set()
    GATES[name].check(replace(picture, facts=watched(picture.facts, read)))
    assert bool(read) == (name not in BY_CLOCK_OR_SPEC)
    for fact in sorted(read - {"lease_holder"} - WORDS_ALONE.get(name, set())):
        several = fact == "brokers"
        blind: list[Any] = [dict.fromkeys(picture.facts.brokers, Unknown("no answer")), {}] if several else [
            Unknown("no answer")]
        for unknown in blind:
            seen = GATES[name].check(with_fact(picture, fact, unknown))
            assert seen.outcome in (Outcome.UNKNOWN, Outcome.WAIT), f"{fact} unknown: {seen}"
            assert seen.message


def test_every_gate_of_a_plan_is_among_these():
    specs = (spec_of(), spec_of(workload_of(**BRIDGED)), spec_of(workload_of(**BOUNCES), **STRATEGY),
             spec_of(protocol={"to": "Consumer", "strategy": "Offline"}), spec_of(audit=AUDIT))
    legs = [leg for spec in specs for step in plan_of(spec).steps for leg in (step.forward, step.back) if leg is not None]
    used = {gate.name for leg in legs for gate in (*leg.enter, *leg.watch, *leg.done)}
    used |= {gate.name for leg in legs for rescue in leg.rescues for gate in rescue.gates}
    used |= {gate.name for leg in legs for rollout in leg.rollouts for gate in (*rollout.before, *rollout.after)}
    used |= {gate.name for spec in specs for gate in plan_of(spec).rests_on}
    assert used == GATES.keys()


@pytest.mark.parametrize("picture", [mixed, of_stateful_set, all_consumer, lambda: of_stateful_set("Settle", "TTTTTT", ())])
def test_healthy_moments_of_both_kinds_open_the_gates_of_a_batch(picture):
    for name in ("PodsAreMembers", "WorkloadsAreOurs", "NewPodsJoin", "NoForeignMembers", "Converged", "Covered",
                 "GroupConverted"):
        assert GATES[name].check(picture()).outcome is Outcome.PASS, name
