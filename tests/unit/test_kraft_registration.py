"""Where a broker is registered, and for how long none may be fenced."""

from dataclasses import replace

from switchover.answers.observed import Unknown
from switchover.api.status import Verdict as Outcome
from unit.kraft_gates import GATES, all_kraft, outcome, to_c
from unit.kraft_spoilers import silent, zookeeper
from unit.pictures import with_fact


def test_a_broker_in_mode_kraft_must_have_left_zookeeper():
    assert outcome("MovedBroker", to_c()) is Outcome.PASS
    stays = zookeeper(brokers={0: {}, 1: {}, 2: {}})(to_c())
    assert GATES["MovedBroker"].check(stays).reason == "ZooKeeperRegistration"


def test_those_are_named_that_have_lost_zookeeper_and_need_it():
    gate, moving = GATES["OthersInZooKeeper"], to_c()           # broker 0 moves, 1 and 2 are in mode Migration
    assert "brokers 1, 2 answer, but have no session with ZooKeeper" in gate.check(zookeeper(brokers={})(moving)).message
    assert "broker 2 answers, but has no session with ZooKeeper" in gate.check(zookeeper(brokers={1: {}})(moving)).message
    assert gate.check(zookeeper(brokers={1: {}, 2: {}})(moving)).outcome is Outcome.PASS
    assert gate.check(with_fact(all_kraft(), "zookeeper", Unknown("stopped"))).outcome is Outcome.PASS
    quiet = gate.check(silent("answers", 2)(zookeeper(brokers={1: {}})(moving)))
    assert (quiet.outcome, quiet.reason) == (Outcome.UNKNOWN, "BrokerSilent"), "that is another trouble"
    nodes = moving.position.nodes                                     # the batch of broker 1 gave way to a remedy
    position = replace(moving.position, nodes={**nodes, "kafka-1": replace(nodes["kafka-1"], settled=False)})
    assert gate.check(zookeeper(brokers={2: {}})(moving.at(position))).outcome is Outcome.PASS


def test_after_a_change_of_leader_nobody_may_be_fenced_for_longer_than_a_brokers_session():
    picture = all_kraft()
    assert GATES["NobodyFencedForLong"].hold(picture) > picture.spec.gates.broker_session_timeout_seconds
