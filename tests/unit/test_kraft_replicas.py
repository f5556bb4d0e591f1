"""When a restart takes no replica too many, by what other brokers say."""

from dataclasses import replace

from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Verdict as Outcome
from switchover.cluster.picture import Picture
from switchover.kafka.node import BrokerView, Partition, Topic
from unit.kraft_gates import GATES, outcome, to_b
from unit.kraft_spoilers import partition, pod, silent
from unit.pictures import NOW, PRE, moment, spoil_each


def test_a_restarted_broker_is_no_witness_for_itself():
    blind = silent("views", 0)
    assert outcome("AllInSync", blind(to_b())) is Outcome.PASS
    assert outcome("RestartIsSafe", partition(0, isr=(0,))(to_b())) is Outcome.PASS
    assert outcome("AllInSync", partition(1, isr=(1, 2))(to_b())) is Outcome.WAIT, "it says in sync, another says not"


def test_one_that_was_asked_for_no_partitions_is_no_witness_and_must_answer():
    def brief(*brokers: int) -> Picture:
        return spoil_each(to_b(), "views", lambda view: BrokerView(
            view.cluster_id, view.controller_id, view.brokers), *brokers)

    for gate in ("AllInSync", "RestartIsSafe"):
        assert outcome(gate, brief(0, 1)) is Outcome.PASS
        assert outcome(gate, partition(2, isr=(2,))(brief(0, 1))) is Outcome.WAIT
        assert outcome(gate, silent("views", 1)(brief(0, 1))) is Outcome.UNKNOWN
        assert outcome(gate, brief(1, 2)) is Outcome.UNKNOWN, "of the batch alone it is known"


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
    shrunk = spoil_each(to_b(), "views", lambda view: replace(view, topics={"orders": Topic((elsewhere,))}))
    assert outcome("RestartIsSafe", shrunk) is Outcome.PASS


def test_the_next_broker_waits_until_those_that_stay_have_forgotten_former_addresses():
    """kafka-0 is in the batch. What brokers remember is from before the other one's start."""
    def waits(name: str, started: float = NOW - 20, **changes: object) -> bool:
        picture = pod(name, **changes)(pod("kafka-2", started_at=started)(to_b()))
        return outcome("AddressesKnown", picture) is Outcome.WAIT

    assert not waits("kafka-1", remembers=1)
    assert waits("kafka-1", remembers=30)
    assert not waits("kafka-1", remembers=30, started=NOW - 30)
    assert not waits("kafka-1", remembers=30, started_at=NOW - 10), "it asked for the new one"
    assert not waits("kafka-0", remembers=30), "it goes itself"
    picture = pod("kafka-2", started_at=NOW - 20, host_ports=frozenset())(pod("kafka-1", remembers=30)(to_b()))
    assert outcome("AddressesKnown", picture) is Outcome.PASS, "on its node's network an address stays"
