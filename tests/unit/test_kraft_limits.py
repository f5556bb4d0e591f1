"""The largest limits that the spec of a KafkaMigration may set: each still shuts its gate."""

from dataclasses import replace

import pytest

from switchover.api.kafka_migration import KafkaMigrationGates, NodeMode
from switchover.api.meta import GroupHealth
from switchover.api.status import Verdict as Outcome
from unit.kraft_gates import GATES, dual_write, outcome
from unit.kraft_spoilers import quorum, samples, sweep, written
from unit.limits import largest
from unit.pictures import NOW, OFFSET, PRE, moment

LIMITS = {
    "dual_write_max_lag": lambda most: quorum(high_watermark=OFFSET + most + 2),
    "dual_write_max_age_seconds": lambda most: written(NOW - most - 1),
}
"""What is more than the largest limit allows, of the gate DualWriteAlive."""
LONGER = {"stable_samples", "step_patience_seconds", "broker_session_timeout_seconds", "copy_timeout_seconds",
          "quorum_stable_seconds"}
"""A larger one waits longer before a gate opens, or before it is overdue."""
WIDER = {"idle_group_seconds"}
"""A larger one finds more."""


@pytest.mark.parametrize("limit", LIMITS)
def test_no_limit_of_dual_write_switches_its_gate_off(limit: str):
    most = largest(limit, KafkaMigrationGates)
    picture = dual_write()
    patient = replace(picture, spec=picture.spec.evolve(gates=picture.spec.gates.evolve(**{limit: most})))
    assert GATES["DualWriteAlive"].check(patient).outcome is Outcome.PASS
    assert GATES["DualWriteAlive"].check(LIMITS[limit](most)(patient)).reason == "DualWriteBehind"


def test_every_limit_of_a_migration_is_known_by_what_a_large_one_does():
    numbers = {name for name, field in KafkaMigrationGates.model_fields.items()
               if any(hasattr(each, "le") for each in field.metadata)}
    assert numbers == LIMITS.keys() | LONGER | WIDER


def test_the_largest_limit_of_a_standstill_is_still_one():
    longest = largest("max_stall_seconds", GroupHealth)
    stands = [sweep(ago, 90, 99) for ago in (*range(longest + 900, 600, -60), *range(600, -1, -2))]
    patient = moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.ZOOKEEPER), NodeMode.MIGRATION_CONTROLLER,
                     ("kafka-0",), PRE, gates={
        "groups": [{"name": "orders", "maxStallSeconds": longest}]})
    assert GATES["GroupsHealthy"].check(samples(*stands)(patient)).reason == "GroupStalled"
    assert outcome("GroupsHealthy", samples(*stands[60:])(patient)) is Outcome.PASS
    assert outcome("GroupsHealthy", samples(*stands[:-1], sweep(0, 91, 99))(patient)) is Outcome.PASS


def test_the_largest_limit_of_lag_is_still_one():
    most = largest("max_lag", GroupHealth)
    patient = moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.ZOOKEEPER), NodeMode.MIGRATION_CONTROLLER,
                     ("kafka-0",), PRE, gates={
        "groups": [{"name": "orders", "maxLag": most}]})
    assert GATES["GroupsHealthy"].check(samples(sweep(0, 0, most + 1))(patient)).reason == "GroupLag"
