"""The model of ZooKeeper -> KRaft and back (tests/models): its states, guards one by one, and the real operator in it."""

from collections.abc import Callable
from pathlib import Path

import pytest

import switchover
from models import guarded
from models.conformance import Life, validated
from models.guarded import Graph, Model, assert_named, assert_spin_finds_the_same, explore
from models.kraft import GUARDS, HAZARDS, kraft
from simulation.migration_world import LOOKS, MigrationWorld, live_to_the_end
from simulation.moments import to_batch, to_step, until_step
from switchover.api.kafka_migration import KafkaMigrationStep as Step

Bounds = tuple[int, int, int]
"""Elections of KRaft in an attempt, attempts, troubles: at most so many.

A trouble is a crash, a broker that cannot reach the controllers, or a request of the operator that is late.
"""
TWO_ATTEMPTS, TWO_ELECTIONS, MANY_ELECTIONS, A_TROUBLE = (1, 2, 0), (2, 1, 0), (5, 1, 0), (1, 1, 1)
TWICE_BOTH, A_LATE_REQUEST = (2, 2, 0), (1, 2, 1)
SEEN_ALL = (60, 1, 0)
"""More elections than a simulated migration has."""

ROLLED_BACK = "direction == BACK and step == NOT_BEGUN"
BEFORE_FINALIZE = "log != FINAL and step < FINALIZE"
ENDED = "log == FINAL"

TRAPS: dict[str, tuple[Bounds, str, int]] = {
    "NO_LEFTOVER": (TWO_ELECTIONS, "TOPICS_DELETED", 16),
    "RESTART_IS_SAFE": (TWO_ELECTIONS, "TWO_AWAY", 6),
    "ALL_IN_SYNC": (TWO_ELECTIONS, "NOBODY_RULES", 7),
    "DUAL_WRITE_ALIVE": (TWO_ELECTIONS, "NOBODY_RULES", 20),
    "ALL_KRAFT": (TWO_ELECTIONS, "CUT_OFF", 23),
    "NOTHING_BEHIND": (TWO_ELECTIONS, "METADATA_LOST", 23),
    "NO_CLAIM_MEANWHILE": (TWO_ELECTIONS, "METADATA_LOST", 23),
    "CONTROLLERS_STOPPED": (TWO_ELECTIONS, "TWO_CONTROLLERS", 20),
    "EPOCH_RAISED": (MANY_ELECTIONS, "ELECTIONS_ABORTED", 29),
    "ZOOKEEPER_RULES": (TWO_ELECTIONS, "NOBODY_RULES", 10),
    "ZOOKEEPER_NAMED": (TWO_ELECTIONS, "ASKS_IN_VAIN", 26),
    "NODE_VERSIONS": (A_LATE_REQUEST, "TWO_CONTROLLERS", 53),
    "CONTROLLERS_GONE": (TWICE_BOTH, "OLD_LOG", 36),
}
"""Guard -> what happens without it: in which bounds, the hazard, and the fewest moves to it."""
STUCK = {"NONE_LEFT_ON_KRAFT": "a broker on KRaft is never moved again once the step that moves it was taken back"}
"""Guard -> why there are states without a way back, and without it nothing else."""
NOTHING = {
    "QUORUM_UP": "comfort: brokers would get the flag before there is a leader, and wait. Of the rest the model lacks the"
                 " hazard: its controllers are one, and either lead or may elect",
    "COPIED": "each broker's DUAL_WRITE_ALIVE holds the same back; without both the trap comes out (`TOGETHER`)",
    "WRITTEN_BACK": "comfort: NOTHING_BEHIND starts the controllers again that stopped too early. The model lacks the hazard"
                    " of a change that no look at the log has seen",
    "MIGRATION_NODE_FIRST": "comfort: no controller runs between the two deletions. The order is the documentation's",
}
"""Guard -> why its loss brings nothing."""
TOGETHER: dict[tuple[str, ...], tuple[str, int]] = {("COPIED", "DUAL_WRITE_ALIVE"): ("NOT_COPIED", 12)}
"""Guards of which one is enough -> a hazard without both, and the fewest moves to it."""

A_STORY = """\
Preflight passes, and ProvisionControllers begins.
The controllers start.
The controllers elect a leader.
The controllers are ready, and EnableMigration begins.
Broker 0 is restarted with the migration flag.
A person wants everything back.
The operator looks who holds /controller.
The controllers, seen without a claim, are removed as they are.
Broker 0 comes up.
Broker 0 is restarted on plain ZooKeeper."""
"""Without ZOOKEEPER_RULES: broker 0 was the ZooKeeper controller, and no other one has taken over yet."""

LIFE = Life()
LOOKS.append(LIFE.look)


def assert_sound(graph: Graph, attempts: int) -> None:
    """Nothing bad happens, and from everywhere before Finalize there is a way back, and one to the end."""
    no_more_attempt = f"direction == BACK and attempt == {attempts}"
    guarded.assert_sound(graph, HAZARDS, ((ROLLED_BACK, BEFORE_FINALIZE), (ENDED, f"not ({no_more_attempt})")))


# --- all states -------------------------------------------------------------------------------------------------------


def test_in_all_states_nothing_bad_happens_and_ways_lead_back_and_to_the_end(counted: Callable[[str], None]) -> None:
    states = 0
    for bounds in (TWO_ATTEMPTS, MANY_ELECTIONS, A_TROUBLE):
        graph = explore(kraft(*bounds))
        assert_sound(graph, attempts=bounds[1])
        states += len(graph.states)
    assert states > 600_000, "the model can do less than it could"
    counted(f"{states:,} states of the model")


@pytest.mark.long
def test_the_same_in_millions_of_states() -> None:
    graph = explore(kraft(2, 2, 1))
    assert len(graph.states) > 3_000_000
    assert_sound(graph, attempts=2)


# --- guards -----------------------------------------------------------------------------------------------------------


def first_bad(model: Model) -> tuple[str, list[str]]:
    """The hazard that takes the fewest moves, and its story."""
    return min(explore(model, until_bad=True).bad().items(), key=lambda found: len(found[1]))


@pytest.mark.parametrize("guard", [
    pytest.param(guard, marks=pytest.mark.long if TRAPS[guard][0] == A_LATE_REQUEST else ()) for guard in TRAPS])
def test_without_a_guard_its_trap_comes_out(guard: str) -> None:
    bounds, hazard, moves = TRAPS[guard]
    found, story = first_bad(kraft(*bounds).without(guard))
    assert (found, len(story)) == (hazard, moves)


@pytest.mark.parametrize("guard", STUCK)
def test_without_a_guard_a_rollback_is_stuck_for_ever(guard: str) -> None:
    graph = explore(kraft(*TWO_ATTEMPTS).without(guard))
    assert graph.bad() == {}
    stuck = graph.without_a_way(ROLLED_BACK, BEFORE_FINALIZE)
    assert graph.story(stuck[0])[-1] == "ZooKeeper has all metadata, and EnableMigration is taken back."


@pytest.mark.parametrize("guard", NOTHING)
def test_a_guard_that_is_listed_as_such_is_missed_by_nothing_in_the_model(guard: str) -> None:
    for bounds in (TWO_ATTEMPTS, TWO_ELECTIONS):
        assert_sound(explore(kraft(*bounds).without(guard)), attempts=bounds[1])


@pytest.mark.parametrize("guards", TOGETHER)
def test_without_two_guards_of_which_one_is_enough_their_trap_comes_out(guards: tuple[str, ...]) -> None:
    hazard, moves = TOGETHER[guards]
    assert len(explore(kraft(*TWO_ELECTIONS).without(*guards)).bad()[hazard]) == moves


def test_each_guard_and_each_hazard_has_its_place_here() -> None:
    assert sorted([*TRAPS, *STUCK, *NOTHING]) == sorted(GUARDS)
    assert {guard for command in kraft(*TWO_ELECTIONS).commands for guard in command.guards} == {*GUARDS}
    assert {hazard for _, hazard, _ in TRAPS.values()} | {hazard for hazard, _ in TOGETHER.values()} == {*HAZARDS}


def test_each_guard_names_what_the_product_has() -> None:
    assert_named(GUARDS.values(), Path(switchover.__file__).parent)


def test_a_shortest_counterexample_reads_as_a_story() -> None:
    assert "\n".join(first_bad(kraft(*TWO_ELECTIONS).without("ZOOKEEPER_RULES"))[1]) == A_STORY


# --- Spin -------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_spin_finds_as_many_states_and_nothing_bad(tmp_path: Path) -> None:
    assert_spin_finds_the_same(kraft(*TWO_ATTEMPTS), tmp_path)


# --- the real operator ------------------------------------------------------------------------------------------------


def lived_back(world: MigrationWorld) -> Life:
    """What was seen of a world from its start on, until all that happened in it is taken back."""
    life = LIFE.before(world)
    world.want("RolledBack")

    def back() -> bool:
        life.look(world)
        return world.phase == "RolledBack"

    assert world.live(back)
    return life


def test_a_life_to_the_end_is_one_of_the_model(counted: Callable[[str], None]) -> None:
    live_to_the_end()
    assert (LIFE.looks[0][1]["step"], LIFE.looks[-1][1]["log"]) == (0, 2)
    counted(f"{len(LIFE.looks)} looks at a life, at most {validated(kraft(*SEEN_ALL), LIFE)} states of the model each")


BACK_FROM: dict[str, Callable[[MigrationWorld], None]] = {
    Step.ENABLE_MIGRATION: lambda world: until_step(world, "EnableMigration", 1),
    Step.COPY_METADATA: lambda world: to_batch(world, "CopyMetadata", 1),
    Step.DUAL_WRITE: lambda world: to_step(world, "DualWrite"),
    Step.MOVE_BROKERS: lambda world: to_batch(world, "MoveBrokers", 2),
    Step.SOAK: lambda world: to_step(world, "Soak"),
}


@pytest.mark.parametrize("step", BACK_FROM)
def test_a_life_back_is_one_of_the_model(world: MigrationWorld, step: str, counted: Callable[[str], None]) -> None:
    BACK_FROM[step](world)
    assert world.step == step
    if step in (Step.MOVE_BROKERS, Step.SOAK):
        assert world.kafka.change("config orders", "retention.ms=3600000")
    life = lived_back(world)
    assert any(seen.get("unwritten") for _, seen in life.looks) == (step in (Step.MOVE_BROKERS, Step.SOAK))
    assert life.looks[-1][1]["step"] == 0
    counted(f"{len(life.looks)} looks, at most {validated(kraft(*SEEN_ALL), life)} states of the model each")


def test_a_life_that_no_operator_may_live_is_refused(world: MigrationWorld) -> None:
    """The controllers still run when /controller is deleted."""
    to_step(world, "DualWrite")
    life = lived_back(world)
    deleted = next(number for number, (_, seen) in enumerate(life.looks)
                   if seen["controllers"] == 2 and seen["controller"] != 4)
    time, seen = life.looks[deleted]
    life.looks[deleted] = time, {**seen, "controllers": 1}
    with pytest.raises(AssertionError, match=f"look {deleted}: no behaviour of the model"):
        validated(kraft(*SEEN_ALL), life)
