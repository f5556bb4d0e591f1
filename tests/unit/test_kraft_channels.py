"""Brokers that have lost a channel to the controller: when one is named, and when it may be restarted."""

from dataclasses import replace

from switchover.answers.observed import Known
from switchover.api.status import Verdict as Outcome
from switchover.cluster import nodes
from switchover.cluster.facts import CaughtUp
from switchover.cluster.picture import Picture
from switchover.engine.position import Batch
from unit.kraft_gates import GATES, dual_write, to_b, to_c
from unit.kraft_spoilers import partition, registration, silent
from unit.pictures import NOW, spoil_each, spoil_pod, with_fact

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
    assert "not even after a restart" in verdict.message
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


# --- forwarding and heartbeats ------------------------------------------------------------------------------------------


def cut_off(picture: Picture, **since: float) -> Picture:
    """Brokers that have passed nothing on for so long."""
    return with_fact(picture, "forwarding", Known({int(name[-1]): NOW - seconds for name, seconds in since.items()}, NOW))


def test_a_broker_that_passes_nothing_on_is_named_and_restarted_once():
    picture = cut_off(dual_write(), broker_1=31.0)
    verdict = GATES["Forwards"].check(picture)
    assert (verdict.outcome, verdict.reason, verdict.subject) == (Outcome.WAIT, "ForwardingStuck", "kafka-1")
    assert nodes.broker_that_is_cut_off(picture) == Known(["kafka-1"], NOW)
    again = picture.at(replace(picture.position, rescued=("kafka-1",)))
    assert nodes.broker_that_is_cut_off(again) == Known([], NOW)
    assert GATES["Forwards"].check(again).unblocks == "kubectl --namespace kafka delete pod kafka-1"


def test_nobody_is_blamed_too_early_nor_for_the_controller_nor_while_it_is_being_moved():
    """It is the controller where no broker is seen to pass anything on: one that starts, or is silent, tells nothing."""
    for picture in (cut_off(dual_write(), broker_1=29.0), cut_off(dual_write(), broker_0=99.0, broker_1=99.0, broker_2=99.0),
                    spoil_pod(cut_off(dual_write(), broker_1=99.0), "kafka-1", started_at=NOW - 59),
                    cut_off(to_c(), broker_0=99.0), cut_off(to_c(), broker_1=99.0, broker_2=99.0),
                    silent("answers", 2)(cut_off(dual_write(), broker_0=99.0, broker_1=99.0))):
        assert GATES["Forwards"].check(picture).outcome is Outcome.PASS
        assert nodes.broker_that_is_cut_off(picture) == Known([], NOW)


def test_a_broker_is_restarted_for_its_heartbeats_only_when_its_pod_is_there_for_long():
    lost = registration(1, fenced=True)(dual_write())
    assert nodes.broker_without_heartbeats(lost) == Known(["kafka-1"], NOW)
    assert nodes.broker_without_heartbeats(spoil_pod(lost, "kafka-1", started_at=NOW - 5)) == Known([], NOW)
    assert nodes.broker_without_heartbeats(spoil_pod(lost, "kafka-2", ready=False)) == Known([], NOW), "one at a time"
    assert nodes.broker_without_heartbeats(silent("answers", 1)(lost)) == Known([], NOW), "it may be anything"
    for broker_id in (0, 2):
        lost = registration(broker_id, fenced=True)(lost)
    assert nodes.broker_without_heartbeats(lost) == Known([], NOW), "no controller hears anybody"
    assert GATES["NobodyFenced"].patience(lost) == 90
