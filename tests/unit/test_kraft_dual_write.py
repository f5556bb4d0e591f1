"""The claim, the copy and dual write: what is waited for, how long, and by whose clock."""

from dataclasses import replace

import pytest

from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Verdict as Outcome
from switchover.cluster.gates.dual_write import copy_timeout
from switchover.kafka.node import Partition, Topic
from unit.kraft_gates import GATES, claimed, dual_write, outcome, to_b
from unit.kraft_spoilers import migration_node, standing, written
from unit.pictures import ACTIVE, NOW, moment, spoil_each


def test_before_the_claim_there_is_no_copy_to_watch_for():
    assert outcome("CopyFollowsClaim", to_b()) is Outcome.PASS


def test_the_watchdog_waits_longer_for_a_larger_cluster():
    picture = claimed()
    many = tuple(Partition("orders", index, 0, (0, 1, 2), (0, 1, 2)) for index in range(5000))
    large = spoil_each(picture, "views", lambda view: replace(view, topics={"orders": Topic(many)}))
    assert copy_timeout(large) - copy_timeout(picture) == pytest.approx(5, abs=0.01)


def test_dual_write_wants_at_least_five_samples_and_the_quorum_its_time():
    picture = moment("DualWrite", NodeMode.MIGRATION, NodeMode.MIGRATION_CONTROLLER, (), ACTIVE,
                     gates={"stableSamples": 1, "quorumStableSeconds": 17})
    assert GATES["DualWrite"].samples(picture) == 5
    assert GATES["QuorumUp"].hold(picture) == 17.0


@pytest.mark.parametrize("hour", [-3600, 3600])
def test_zookeepers_clock_makes_no_driver_dead_or_alive(hour: float):
    """The attack of the security review: an hour ahead made a dead driver fresh, an hour behind a live one dead."""
    clock = migration_node(mtime=NOW + hour)
    assert GATES["DriverAlive"].check(written(NOW - 60)(clock(dual_write()))).reason == "DualWriteStuck"
    assert outcome("DriverAlive", written(NOW - 1)(clock(dual_write()))) is Outcome.PASS


def test_a_driver_that_writes_nothing_is_named_and_no_record_is_blamed():
    """The controllers were cut off from ZooKeeper: there is no record to look for in the log."""
    silent = written(NOW - 60, offset_since=NOW - 60)(standing(60)(dual_write()))
    found = GATES["DriverAlive"].check(silent)
    assert (found.reason, found.message.partition(" writes")[0]) == (
        "DualWriteStuck", "the leading controller, kafka-controller-0,")
    assert outcome("DualWriteBegins", silent) is Outcome.PASS
