"""What no gate of the way back waits for: what never was there, and who is dead or down."""

from dataclasses import replace

from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Verdict as Outcome
from unit.kraft_gates import GATES, dual_write, given_back, outcome, stopping
from unit.kraft_spoilers import dead, log, migration_node, silent, versions, with_log_unknown
from unit.pictures import PRE, moment, spoil_pod


def test_what_kraft_never_accepted_cannot_be_missing_in_zookeeper():
    unclaimed = moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.MIGRATION, NodeMode.ZOOKEEPER),
                       NodeMode.MIGRATION_CONTROLLER, (), PRE)
    assert outcome("WrittenBack", with_log_unknown(unclaimed)) is Outcome.PASS
    assert outcome("WrittenBack", with_log_unknown(migration_node(offset=-1)(dual_write()))) is Outcome.PASS
    stale = migration_node(offset=9_999)(log(migration_state=PRE)(dual_write()))
    assert outcome("WrittenBack", stale) is Outcome.PASS


def test_controllers_that_died_for_good_do_not_lock_the_way_back():
    assert outcome("WrittenBack", dead(dual_write())) is Outcome.PASS


def test_partitions_that_kraft_never_changed_cannot_be_behind():
    unread = versions(None)
    one_left = moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.MIGRATION, NodeMode.ZOOKEEPER),
                      NodeMode.MIGRATION_CONTROLLER, (), PRE)
    assert outcome("PartitionVersions", unread(one_left)) is Outcome.PASS
    assert outcome("PartitionVersions", unread(migration_node(offset=-1)(dual_write()))) is Outcome.PASS
    stale = migration_node(offset=9_999)(log(migration_state=PRE)(dual_write()))
    assert outcome("PartitionVersions", unread(stale)) is Outcome.PASS


def test_once_controllers_stop_or_are_dead_nobody_can_tell_what_is_behind():
    assert outcome("PartitionVersions", versions(None)(dead(dual_write()))) is Outcome.PASS
    assert outcome("PartitionVersions", versions(None)(stopping())) is Outcome.UNKNOWN
    evicted = stopping().position.with_node("kafka-controller-1", replace(
        stopping().position.nodes["kafka-controller-1"], evictions=1))
    assert outcome("PartitionVersions", versions(None)(stopping().at(evicted))) is Outcome.PASS


def test_a_broker_that_is_down_cannot_hang_and_need_not_name_the_controller():
    broken = spoil_pod(silent("views", 0)(given_back()), "kafka-0", ready=False)
    assert outcome("ZooKeeperRules", broken) is Outcome.PASS
    other = spoil_pod(silent("views", 1)(given_back()), "kafka-1", ready=False)
    assert GATES["ZooKeeperRules"].check(other).reason == "BrokerSilent", "it is not the one that is replaced now"


def test_six_answers_in_a_row_are_wanted_before_a_broker_is_stopped():
    assert GATES["ZooKeeperRules"].samples(given_back()) == 6
