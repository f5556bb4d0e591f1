"""What is read only where a gate, a rollout or a leg names it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product

import pytest

from named_facts import NAMES
from switchover.answers.observed import Known, Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Direction
from switchover.cluster.facts import Facts, Need
from switchover.cluster.gates.dual_write import PARITY
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.engine.plan import Leg, Plan, Step, decide
from switchover.engine.position import Position
from switchover.groups.facts import Need as GroupNeed
from switchover.groups.picture import Facts as GroupFacts
from switchover.groups.plan import plan_of
from unit.group_pictures import spec_of, strategies, workload_of
from unit.pictures import moment, spoil
from unit.small_plan import BACKWARD, FORWARD, intent

PREFLIGHT = {Need.EXAMINATION, Need.TOPICS_IN_ZOOKEEPER, Need.GROUPS_IN_ZOOKEEPER, Need.BROKER_SETTINGS, Need.MEMBERS}
BEGUN: Mapping[tuple[str, Direction], Iterable[Need]] = {
    ("Preflight", FORWARD): PREFLIGHT, ("Preflight", BACKWARD): {Need.BROKER_SETTINGS},
    ("Rehearse", FORWARD): {Need.REHEARSAL, Need.BROKER_SETTINGS}, ("Rehearse", BACKWARD): {Need.REHEARSAL},
    ("UpgradeBrokers", FORWARD): {Need.MEMBERS, Need.BROKER_SETTINGS, Need.CAUGHT_UP},
    ("UpgradeBrokers", BACKWARD): {Need.BROKER_SETTINGS, Need.PARTITION_EPOCH, Need.CAUGHT_UP},
    ("RaiseProtocolVersion", FORWARD): {Need.MEMBERS, Need.BROKER_SETTINGS, Need.CAUGHT_UP},
    ("RaiseProtocolVersion", BACKWARD): {Need.BROKER_SETTINGS, Need.PARTITION_EPOCH, Need.CAUGHT_UP},
    ("ProvisionControllers", FORWARD): {Need.BROKER_SETTINGS},
    ("ProvisionControllers", BACKWARD): {Need.BROKER_SETTINGS, Need.PARTITION_EPOCH, Need.PARITY},
    ("EnableMigration", FORWARD): {Need.MEMBERS, Need.BROKER_SETTINGS, Need.CAUGHT_UP},
    ("EnableMigration", BACKWARD): {Need.BROKER_SETTINGS, Need.PARTITION_EPOCH, Need.PARITY, Need.CAUGHT_UP},
    ("CopyMetadata", FORWARD): {Need.MEMBERS, Need.BROKER_MODES, Need.CAUGHT_UP},
    ("CopyMetadata", BACKWARD): {Need.BROKER_MODES, Need.PARITY, Need.STATELESS},
    ("DualWrite", FORWARD): {Need.MEMBERS, Need.PARITY, Need.STATELESS, Need.CAUGHT_UP, Need.FORWARDING},
    ("DualWrite", BACKWARD): {Need.PARITY},
    ("MoveBrokers", FORWARD): {
        Need.MEMBERS, Need.PARITY, Need.STATELESS, Need.GROUPS_IN_ZOOKEEPER, Need.CAUGHT_UP, Need.FORWARDING},
    ("MoveBrokers", BACKWARD): {Need.PARITY, Need.STATELESS, Need.CAUGHT_UP, Need.FORWARDING},
    ("Soak", FORWARD): {Need.PARITY, Need.STATELESS, Need.CAUGHT_UP, Need.FORWARDING},
    ("Soak", BACKWARD): {Need.PARITY},
    ("Finalize", FORWARD): {Need.MEMBERS},
    ("HandOver", FORWARD): {Need.MEMBERS, Need.TRIALS},
    ("ReleaseZooKeeper", FORWARD): {Need.CLIENTS_OF_ZOOKEEPER, Need.ZOOKEEPER_SETS},
}
"""What costs a cluster something, where it is read once a step has begun; nowhere else."""
BEFORE: Mapping[tuple[str, Direction], Iterable[Need]] = {
    ("ProvisionControllers", FORWARD): {Need.EXAMINATION},
    ("CopyMetadata", FORWARD): {Need.REHEARSAL}, ("Finalize", FORWARD): {Need.PARITY, Need.STATELESS, Need.CAUGHT_UP}}
"""What is read besides, before it has."""


@pytest.mark.parametrize(("step", "direction"), tuple(product(PLAN.names, Direction)))
def test_what_costs_a_cluster_something_is_read_where_something_names_it(step: str, direction: Direction) -> None:
    begun = {*BEGUN.get((step, direction), ())}
    assert PLAN.needs(Position(step=step, direction=direction, opened=1.0)) == begun
    assert PLAN.needs(Position(step=step, direction=direction)) == begun | {*BEFORE.get((step, direction), ())}


def test_nothing_is_named_in_a_step_that_no_plan_has() -> None:
    assert PLAN.needs(Position(step="Elsewhere")) == frozenset()


@pytest.mark.parametrize(("names", "facts"), [(Need, Facts), (GroupNeed, GroupFacts)])
def test_whatever_can_be_named_is_a_fact(names: Iterable[str], facts: type) -> None:
    assert frozenset().union(*NAMES[facts].values()) == {*names}


def test_a_group_is_not_probed_once_a_step_has_begun() -> None:
    plan = plan_of(spec_of(workload_of(bridge=strategies("both")), assignmentStrategy={"to": "cooperative-sticky"}))
    at = Position(step="BounceTwo")
    assert plan.needs(at) >= {GroupNeed.OFFERED, GroupNeed.LOAD}
    assert not plan.needs(replace(at, opened=1.0))


def test_a_gate_that_does_not_name_what_it_reads_fails_every_test_that_judges_it() -> None:
    forgetful = replace(PARITY, needs=())
    at = moment("DualWrite", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER)
    plan = Plan((Step("DualWrite", forward=Leg(watch=(forgetful, PARITY)), back=None),))
    with pytest.raises(AssertionError, match="Parity in DualWrite, Forward, reads parity and does not name it"):
        decide(plan, at, intent(), {}, at.now)


def test_a_leg_that_does_not_name_what_its_goal_reads_fails_too() -> None:
    at = moment("DualWrite", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER)
    leg: Leg[Picture] = Leg(goal=lambda picture: (picture.facts.parity, ())[1])
    with pytest.raises(AssertionError, match="DualWrite, Forward, reads parity"):
        decide(Plan((Step("DualWrite", forward=leg, back=None),)), at, intent(), {}, at.now)
    decide(Plan((Step("DualWrite", forward=replace(leg, needs=(Need.PARITY,)), back=None),)), at, intent(), {}, at.now)


def test_what_brokers_were_is_not_taken_from_brokers_that_run_by_our_edits() -> None:
    provisioning = moment("ProvisionControllers", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER)
    lost = spoil(provisioning, "kubernetes", originals={"kafka": None})
    assert isinstance(lost.brokers_of("kafka"), Known), "they run as the user started them"
    nodes = {**lost.position.nodes, "kafka-0": replace(lost.position.nodes["kafka-0"], assigned=Mode.MIGRATION)}
    found = lost.at(replace(lost.position, nodes=nodes)).brokers_of("kafka")
    assert isinstance(found, Unknown)
    assert "the backup of StatefulSet kafka, is missing" in found.why
