"""Where a broker is registered, and for how long none may be fenced."""

from switchover.api.status import Verdict as Outcome
from unit.kraft_gates import GATES, all_kraft, outcome, to_c
from unit.kraft_spoilers import zookeeper


def test_a_broker_in_mode_kraft_must_have_left_zookeeper():
    assert outcome("MovedBroker", to_c()) is Outcome.PASS
    stays = zookeeper(brokers={0: {}, 1: {}, 2: {}})(to_c())
    assert GATES["MovedBroker"].check(stays).reason == "ZooKeeperRegistration"


def test_after_a_change_of_leader_nobody_may_be_fenced_for_longer_than_a_brokers_session():
    picture = all_kraft()
    assert GATES["NobodyFencedForLong"].hold(picture) > picture.spec.gates.broker_session_timeout_seconds
