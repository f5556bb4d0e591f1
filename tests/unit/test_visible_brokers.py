"""Whether old consumers find every broker: what the way back to ZooKeeper's coordination rests on."""

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.api.status import Verdict as Outcome
from switchover.engine.gate import answered
from switchover.groups.coordination.brokers import check_brokers_visible


def test_brokers_that_kafka_does_not_list_do_not_matter():
    assert check_brokers_visible(Known((1,), 5.0), Known({1, 9}, 5.0)).outcome is Outcome.PASS


def test_all_visible():
    assert check_brokers_visible(Known((1, 2), 5.0), Known({1, 2}, 5.0)).outcome is Outcome.PASS


def test_one_on_kraft_is_named_and_refused():
    found = check_brokers_visible(Known((1, 2, 3), 5.0), Known({1}, 5.0))
    assert (found.outcome, found.reason, found.subject) == (Outcome.FAIL, "BrokersOnKRaft", "broker 2, 3")
    assert found.observed == "2 of 3 brokers"
    assert "roll the KafkaMigration back" in found.unblocks


@pytest.mark.parametrize(("listed", "registered", "reason"), [
    (Unknown("no broker answers"), Known({1}, 5.0), "BrokersUnknown"),
    (Known((), 5.0), Known({1}, 5.0), "BrokersUnknown"),
    (Known((1,), 5.0), Unknown("no answer"), "ZooKeeperUnknown"),
])
def test_what_is_not_seen_is_no_pass(listed, registered, reason):
    found = answered(lambda _: check_brokers_visible(listed, registered), None)
    assert (found.outcome, found.reason) == (Outcome.UNKNOWN, reason)
