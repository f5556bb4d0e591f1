"""Groups that ZooKeeper coordinates: brokers that would leave them behind, and what Preflight says of them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.api.status import Verdict as Outcome
from switchover.cluster.gates.groups import NO_ZOOKEEPER_GROUPS
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.coordination.mode import Mode
from switchover.engine.gate import Verdict
from switchover.kubernetes.ports import GroupMigration
from switchover.zookeeper.nodes import IdleGroups
from unit.kraft_gates import GATES, MOMENTS
from unit.kraft_spoilers import OLD, TOGGLED, moving, old_groups, opened_at
from unit.pictures import NOW, moment, with_fact
from unit.preflight_pictures import Change, check, examined, findings, wanted, with_old_groups


def no_groups(*changes: Callable[[Picture], Picture]) -> Verdict:
    picture = MOMENTS["NoZooKeeperGroups"]()
    for change in changes:
        picture = change(picture)
    return GATES["NoZooKeeperGroups"].check(picture)


def test_an_old_group_is_told_with_its_members_and_the_migration_to_wait_for():
    found = no_groups(old_groups(pay=OLD), moving(pay=(GroupMigration("pay-to-kafka", "Running"),), other=()))
    assert found.message.startswith("ZooKeeper coordinates group pay (2 members)")
    assert found.observed == "members: pay 2"
    assert found.unblocks == "finish ConsumerGroupMigration/pay-to-kafka (now Running), or stop the consumers of pay"


def test_without_a_migration_of_the_group_one_is_to_be_created():
    found = no_groups(old_groups(pay=OLD), moving(other=(GroupMigration("other", ""),)))
    assert found.unblocks.startswith("create a ConsumerGroupMigration of pay with coordination to Kafka, or stop")


def test_migrations_that_could_not_be_listed_hide_no_group():
    found = no_groups(old_groups(pay=OLD), lambda p: with_fact(p, "group_migrations", Unknown("forbidden")))
    assert (found.outcome, found.reason) == (Outcome.WAIT, "GroupOnZooKeeper")
    assert "could not be listed: forbidden" in found.unblocks


def test_a_group_is_assigned_by_kafka_only_when_all_its_members_can_be():
    assert TOGGLED.is_assigned_by_kafka
    assert "mode kafka) still needs ZooKeeper" in no_groups(old_groups(pay=TOGGLED)).message
    for other in (replace(TOGGLED, mode=Mode.ZOOKEEPER), replace(TOGGLED, mode=None),
                  replace(TOGGLED, members=frozenset({"pay_a", "pay_old"}))):
        assert not other.is_assigned_by_kafka
        assert "ZooKeeper coordinates group pay" in no_groups(old_groups(pay=other)).message


def test_in_the_middle_of_the_step_it_says_what_the_group_already_misses():
    begun = opened_at(NOW - 60)
    assert "find no broker that is on KRaft, so no more" in no_groups(old_groups(pay=OLD), begun).message
    assert "no further batch" not in no_groups(old_groups(pay=OLD)).message


def test_many_groups_are_counted():
    found = no_groups(old_groups(**{f"g{index}": OLD for index in range(9)}))
    assert "and g1, g2, g3, g4, g5 and 3 more;" in found.message
    assert found.subject == "g0, g1, g2, g3, g4 and 4 more"
    assert found.unblocks.endswith("and 6 more")


def test_move_brokers_is_entered_and_watched_by_the_gate_and_its_way_back_is_not():
    step = next(step for step in PLAN.steps if step.name == "MoveBrokers")
    assert step.back is not None
    assert NO_ZOOKEEPER_GROUPS in step.forward.enter
    assert NO_ZOOKEEPER_GROUPS in step.forward.watch
    assert NO_ZOOKEEPER_GROUPS not in (*step.back.enter, *step.back.watch)


# --- what Preflight says of them ----------------------------------------------------------------------------------------


def old_groups_found(*changes: Change) -> list[tuple[str, str]]:
    picture = moment("Preflight")
    for change in changes:
        picture = change(picture)
    return findings("ZooKeeperGroups", picture)


def test_a_group_is_idle_within_the_window_alone():
    week = 604_800
    commits = examined("idle_groups", IdleGroups({"edge": NOW - week, "late": NOW - 60, "dead": NOW - week - 1}))
    assert old_groups_found(commits) == [("IdleZooKeeperGroup", "late"), ("IdleZooKeeperGroup", "edge")]
    assert old_groups_found(commits, wanted(gates={"idleGroupSeconds": 30})) == []


def test_a_group_that_has_members_again_is_not_idle():
    commits = examined("idle_groups", IdleGroups({"pay": NOW - 60}))
    assert old_groups_found(commits, with_old_groups("pay")) == [("ZooKeeperGroup", "pay")]


def test_of_many_groups_twenty_are_told_and_all_counted():
    names = [f"g{index:03}" for index in range(300)]
    told = check("ZooKeeperGroups", with_old_groups(*names)(moment("Preflight"))).findings
    assert [finding.subject for finding in told] == names[:20]
    assert {finding.observed for finding in told} == {"300 such groups"}


def test_the_cure_names_the_migration_that_moves_the_group():
    moving = Known({"pay": (GroupMigration("pay-to-kafka", ""),)}, NOW)
    picture = with_fact(with_old_groups("orders", "pay")(moment("Preflight")), "group_migrations", moving)
    orders, pay = check("ZooKeeperGroups", picture).findings
    assert orders.unblocks.startswith("create a ConsumerGroupMigration of orders")
    assert pay.unblocks == "finish ConsumerGroupMigration/pay-to-kafka, or stop the consumers of pay"


@pytest.mark.parametrize("blind", [
    lambda picture: with_fact(picture, "zookeeper_groups", Unknown("no answer")),
    examined("idle_groups", Unknown("groups in ZooKeeper are being read")),
])
def test_groups_that_could_not_be_read_are_not_none(blind: Change):
    verdict = check("ZooKeeperGroups", blind(moment("Preflight")))
    assert (verdict.outcome, verdict.reason, verdict.subject) == (Outcome.UNKNOWN, "ZooKeeperUnknown", "/consumers")
