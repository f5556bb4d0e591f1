"""The model of a group's conversion (tests/models/group.py): its states under each policy, and its guards one by one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import switchover
from models import guarded
from models.group import BEGUN, ENDED, HAZARDS, KAFKA, LEFT_OUT, POLICIES, RESTART, ROLLED_BACK, Way
from models.guarded import Graph, assert_named, assert_spin_finds_the_same, explore, promela
from switchover.engine.gate import Gate
from switchover.engine.plan import Leg
from switchover.groups.picture import Picture
from switchover.groups.plan import plan_of
from unit.group_pictures import spec_of

THERE, BACK_TO_CLASSIC = Way("Consumer", "bidirectional"), Way("Classic", "bidirectional")
A_TROUBLE = Way("Consumer", "bidirectional", troubles=1)
ONE_WAY = ("ONLINE_ROLLBACK",)
"""What spec.protocol.acceptNoOnlineRollback takes away."""
FORGETFUL = Way("Consumer", "upgrade", surge=True)
GIVEN_UP = tuple(name for name in THERE.guards() if name.startswith("GIVEN_UP"))

TRAPS: dict[tuple[str, ...], tuple[Way, str, int]] = {
    ("MIGRATION_POLICY", *ONE_WAY): (Way("Consumer", "disabled"), "REFUSED", 5),
    ONE_WAY: (Way("Classic", "downgrade"), "REFUSED", 19),
    ("PODS_ARE_MEMBERS",): (BACK_TO_CLASSIC, "TOO_FEW", 7),
    ("PODS_ARE_MEMBERS", "GROUP_CONVERTED"): (THERE, "NOT_CONVERTED", 6),
    ("MEMBERS_AGAIN",): (THERE, "LAST_MEMBER", 19),
    ("ALL_MOVED",): (A_TROUBLE, "NOT_MOVED", 28),
    ("COVERAGE_KEPT", *ONE_WAY): (FORGETFUL, "ORPHANED", 16),
    ("OFFSETS_REPLICATED",): (A_TROUBLE, "OFFSETS_LOST", 5),
    GIVEN_UP: (THERE, "TWO_OWNERS", 7),
}
"""Guards -> what happens without them: which way, the hazard, and the fewest moves to it."""
NOTHING = {
    "GROUP_CONVERTED": "PODS_ARE_MEMBERS holds the same back: the first consumer member converts the group",
    "NO_FOREIGN_MEMBERS": "ALL_MOVED holds the end; this one says so before the first pod has moved",
    "CONVERGED": "comfort: partitions are without owners for longer, and the model has no time",
    "COVERED": "comfort, for the same reason; COVERAGE_KEPT holds the same back at the ends",
}
"""Guard -> why its loss brings nothing."""

A_STORY = """\
Preflight passes, and Baseline begins.
The workloads are claimed, and the canary's step begins.
Pod 2 is moved.
A person wants everything back.
Pod 2 comes up.
Pod 2 joins by the consumer protocol.
Who has a successor leaves.
Pod 2 is taken back.
Pod 2 comes up.
Pod 2 joins by the classic protocol.
Who has a successor leaves.
Pod 2 is back for good.
Every pod is back, and the moving is taken back.
The member in place 0 gives up what is not its own.
The member in place 1 gives up what is not its own.
The workloads are given back: everything is as before."""
"""Without COVERAGE_KEPT, under policy `upgrade` from Kafka 4.3 on: the coordinator has forgotten to assign."""


def assert_sound(way: Way, graph: Graph) -> None:
    """Nothing bad happens; where Preflight passes there is a way back from everywhere before the end, and one to it."""
    goals = ((ROLLED_BACK, BEGUN), (ENDED, f"not ({ENDED})"))
    guarded.assert_sound(graph, HAZARDS, goals if way.goes(there=True) else ())


# --- all states -------------------------------------------------------------------------------------------------------


def ways(troubles: int) -> Iterator[Way]:
    """Each protocol, policy and kind of workload."""
    for to, policy, surge in product(("Consumer", "Classic"), POLICIES, (False, True)):
        yield Way(to, policy, surge=surge, troubles=troubles)


def explored(troubles: int) -> int:
    """How many states there are of all ways that the operator begins, each of them sound."""
    states = 0
    for way in ways(troubles):
        graph = explore(way.model())
        begun = any(each["step"] for each in map(graph.model.values, graph.states))
        assert begun == (way.policy == "bidirectional"), "Preflight lets through what cannot go back, or holds what can"
        if begun:
            assert_sound(way, graph)
            states += len(graph.states)
    return states


def test_in_all_states_nothing_bad_happens_and_ways_lead_back_and_to_the_end(counted: Callable[[str], None]) -> None:
    states = explored(troubles=1)
    assert states > 100_000, "the model can do less than it could"
    counted(f"{states:,} states of the model")


@pytest.mark.long
def test_the_same_with_two_troubles() -> None:
    assert explored(troubles=2) > 400_000


@pytest.mark.parametrize("surge", [False, True])
def test_where_a_person_accepts_that_it_cannot_go_back_online_it_goes_back_all_the_same(surge: bool) -> None:
    """Under policy `upgrade`: the coordinator may forget to assign, and the restart of one pod ends that."""
    for since_4_3 in (False, True):
        way = Way("Consumer", "upgrade", surge=surge, since_4_3=since_4_3)
        assert_sound(way, explore(way.model().without(*ONE_WAY)))


def test_without_the_restart_of_one_pod_a_rollback_is_stuck_for_ever() -> None:
    model = FORGETFUL.model().without(*ONE_WAY)
    graph = explore(replace(model, commands=tuple(each for each in model.commands if each.story != RESTART)))
    assert graph.bad() == {}
    stuck = graph.without_a_way(ROLLED_BACK, f"{BEGUN} and phase == FORGOTTEN")
    assert "Every pod is back, and the moving is taken back." in graph.story(stuck[-1])


def test_a_killed_pods_session_that_ends_after_a_rollback_is_seen_by_nobody() -> None:
    """Under policy `upgrade` from Kafka 4.3 on. No gate of the product asks for the end of that session."""
    way = Way("Consumer", "upgrade", troubles=1)
    graph = explore(way.model().without(*ONE_WAY))
    story = graph.bad()["ORPHANED"]
    assert graph.bad().keys() == {"ORPHANED"}
    assert (story[-2:], len(story)) == (["The workloads are given back: everything is as before.",
                                         "The session of a killed pod ends."], 15)


# --- guards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guards", TRAPS, ids=lambda guards: guards[0])
def test_without_a_guard_its_trap_comes_out(guards: tuple[str, ...]) -> None:
    way, hazard, moves = TRAPS[guards]
    assert len(explore(way.model().without(*guards)).bad()[hazard]) == moves


@pytest.mark.parametrize("guard", NOTHING)
def test_a_guard_that_is_listed_as_such_is_missed_by_nothing_in_the_model(guard: str) -> None:
    for way in (A_TROUBLE, Way("Classic", "bidirectional", troubles=1), Way("Consumer", "bidirectional", surge=True)):
        assert_sound(way, explore(way.model().without(guard)))
    assert_sound(FORGETFUL, explore(FORGETFUL.model().without(guard, *ONE_WAY)))


def test_each_guard_and_each_hazard_has_its_place_here() -> None:
    guards = THERE.guards().keys()
    assert {name for names in TRAPS for name in names} | NOTHING.keys() == guards
    assert {guard for command in THERE.model().commands for guard in command.guards} == guards
    assert {hazard for _, hazard, _ in TRAPS.values()} == {*HAZARDS}


def test_each_guard_names_what_the_product_has() -> None:
    assert_named((each for each in THERE.guards().values() if each.stands_for != KAFKA), Path(switchover.__file__).parent)


def gates_of(leg: Leg[Picture] | None) -> Iterator[Gate[Picture]]:
    if leg is not None:
        yield from (*leg.enter, *leg.watch, *leg.done)
        for rollout in (*leg.rollouts, *(rescue.rollout for rescue in leg.rescues)):
            yield from (*rollout.before, *rollout.after)


def test_each_gate_of_the_plan_is_a_guard_or_is_left_out_for_a_reason() -> None:
    plan = plan_of(spec_of(audit={"enabled": True, "image": "pipeline:1", "claim": "pipeline"}))
    gates = [gate for step in plan.steps[1:] for leg in (step.forward, step.back) for gate in gates_of(leg)]
    guarded = " ".join(each.stands_for for each in THERE.guards().values())
    assert {gate.name for gate in gates if gate.look.__name__ not in guarded} == LEFT_OUT.keys()


def test_a_shortest_counterexample_reads_as_a_story() -> None:
    assert "\n".join(explore(FORGETFUL.model().without("COVERAGE_KEPT", *ONE_WAY)).bad()["ORPHANED"]) == A_STORY


# --- Spin -------------------------------------------------------------------------------------------------------------


def test_promela_has_a_step_for_each_command() -> None:
    assert promela(A_TROUBLE.model()).count(":: d_step") == len(A_TROUBLE.model().commands)


@pytest.mark.long
@pytest.mark.parametrize("to", ["Consumer", "Classic"])
def test_spin_finds_as_many_states_and_nothing_bad(to: str, tmp_path: Path) -> None:
    assert_spin_finds_the_same(Way(to, "bidirectional", surge=True, troubles=1).model(), tmp_path)
