"""When a restart takes no replica too many, by what other brokers say."""

from dataclasses import replace

from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Verdict as Outcome
from switchover.cluster import nodes
from switchover.cluster.facts import CaughtUp
from switchover.cluster.picture import Picture
from switchover.engine.position import Batch
from switchover.kafka.node import Partition
from switchover.outside.observed import Known, Unknown
from unit.kraft_gates import GATES, outcome, to_b
from unit.kraft_spoilers import partition, silent
from unit.pictures import NOW, PRE, moment, spoil_each, spoil_pod, with_fact


def test_a_restarted_broker_is_no_witness_for_itself():
    blind = silent("views", 0)
    assert outcome("AllInSync", blind(to_b())) is Outcome.PASS
    assert outcome("RestartIsSafe", partition(0, isr=(0,))(to_b())) is Outcome.PASS
    assert outcome("AllInSync", partition(1, isr=(1, 2))(to_b())) is Outcome.WAIT, "it says in sync, another says not"


def test_a_restart_is_safe_when_the_batch_itself_is_out_of_sync():
    assert outcome("RestartIsSafe", partition(1, 2, isr=(1, 2))(to_b())) is Outcome.PASS


def test_a_whole_batch_is_taken_away_at_once_when_a_restart_is_judged():
    two = moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.MIGRATION, NodeMode.ZOOKEEPER),
                 NodeMode.MIGRATION_CONTROLLER, ("kafka-0", "kafka-1"), PRE)
    assert GATES["RestartIsSafe"].check(two).reason == "WouldLoseInSyncReplicas"


def test_an_accepted_topic_may_lose_its_minimum():
    accepted = moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.ZOOKEEPER), NodeMode.MIGRATION_CONTROLLER,
                      ("kafka-0",), PRE, gates={"acceptedTopics": ["orders"]})
    assert outcome("RestartIsSafe", partition(1, isr=(0, 1))(accepted)) is Outcome.PASS


def test_a_partition_on_other_brokers_does_not_hold_a_restart_back():
    elsewhere = Partition("orders", 0, 1, (1, 2), (1,))
    shrunk = spoil_each(to_b(), "views", lambda view: replace(view, partitions=(elsewhere,)))
    assert outcome("RestartIsSafe", shrunk) is Outcome.PASS


# --- a leader that takes nobody back ------------------------------------------------------------------------------------


def left_out(*found: CaughtUp) -> Picture:
    """Broker 0 moves to Migration; replicas that have caught up are not taken back."""
    return with_fact(to_b(), "caught_up", Known(found, NOW))


def since(seconds: float, leader: int = 1, follower: int = 2, index: int = 0) -> CaughtUp:
    return CaughtUp("orders", index, leader, follower, NOW - seconds)


def test_a_leader_that_takes_nobody_back_is_named_with_the_command():
    verdict = GATES["FollowersTakenBack"].check(left_out(since(20), since(20, index=1), since(90, leader=2, follower=0)))
    assert (verdict.outcome, verdict.reason, verdict.subject) == (Outcome.WAIT, "LeaderStuck", "kafka-2")
    assert "90 s, 1 partition" in verdict.observed
    assert verdict.unblocks.endswith("kubectl --namespace kafka delete pod kafka-2")
    assert "once" in verdict.unblocks


def test_once_restarted_the_rest_is_a_persons():
    picture = left_out(since(20))
    again = picture.at(replace(picture.position, rescued=("kafka-1",)))
    assert nodes.leader_that_is_stuck(picture) == Known(["kafka-1"], NOW)
    assert nodes.leader_that_is_stuck(again) == Known([], NOW)
    verdict = GATES["FollowersTakenBack"].check(again)
    assert "nor since its restart" in verdict.message
    assert verdict.unblocks == "kubectl --namespace kafka delete pod kafka-1"


def test_kafka_is_given_the_time_that_it_needs():
    assert GATES["FollowersTakenBack"].check(left_out(since(14))).outcome is Outcome.PASS


def test_nothing_is_said_of_leaders_while_a_pod_is_not_ready_or_the_follower_is_not_alive():
    stuck = left_out(since(20))
    for gone in (spoil_pod(stuck, "kafka-2", ready=False), spoil_pod(stuck, "kafka-0", terminating=True),
                 spoil_each(stuck, "views", lambda view: replace(view, brokers={0: view.brokers[0], 1: view.brokers[1]}))):
        assert GATES["FollowersTakenBack"].check(gone).outcome is Outcome.PASS
        assert nodes.leader_that_is_stuck(gone) == Known([], NOW)
    assert GATES["FollowersTakenBack"].check(silent("views", 1)(stuck)).outcome is Outcome.UNKNOWN


def test_what_was_not_observed_is_unknown():
    verdict = GATES["FollowersTakenBack"].check(with_fact(to_b(), "caught_up", Unknown("no look")))
    assert verdict.outcome is Outcome.UNKNOWN


def stuck_leader_goes(isr: tuple[int, ...], *caught: CaughtUp) -> Outcome:
    """Whether broker 1 may be restarted where the brokers see this ISR of its partition."""
    picture = partition(0, 1, 2, isr=isr)(left_out(*caught)).at(
        replace(to_b().position, batch=Batch(1, ("kafka-1",), NOW, rescue=True)))
    return GATES["LeaderCanGo"].check(picture).outcome


def test_it_goes_where_those_that_caught_up_make_the_minimum_again():
    assert stuck_leader_goes((0, 1), since(20)) is Outcome.PASS
    assert stuck_leader_goes((0, 1)) is Outcome.WAIT, "nobody has caught up: one replica would be left for good"
    assert stuck_leader_goes((0, 1), since(20, index=1)) is Outcome.WAIT, "what caught up is of another partition"
    assert stuck_leader_goes((1,), since(20), since(20, follower=0)) is Outcome.WAIT, "nobody else could lead"
