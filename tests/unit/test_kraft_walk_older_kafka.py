"""Brokers of an older Kafka, or of a protocol version that is too old: there, and back to what they were."""


import pytest

from switchover.api.kafka_migration import NodeMode as Mode
from unit.kraft_walk import (
    PROOF,
    REHEARSED,
    Walk,
    changes,
    check_back_at_the_start,
    in_batch,
    one_by_one,
    opened,
    replaced_in_batch,
)
from unit.pictures import BROKERS, CONTROLLERS, UID, UPGRADED, Cluster, spec_of, three
from unit.small_plan import BACKWARD, FORWARD


def too_old() -> Walk:
    walk = Walk()
    walk.cluster = Cluster(protocol="3.5")
    return walk


def test_the_protocol_version_is_raised_before_there_is_anything_to_migrate_to():
    walk = too_old()
    walk.until("ProvisionControllers")
    assert walk.modes_seen[-1] == three(Mode.ZOOKEEPER_RAISED)
    assert [name for name, mode in walk.assigned if mode == Mode.ZOOKEEPER_RAISED] == ["kafka-1", "kafka-0", "kafka-2"]
    assert walk.cluster.controllers == {}
    assert walk.cluster.claimed_by == UID
    walk.until()
    assert changes(walk.modes_seen) == one_by_one(Mode.ZOOKEEPER, Mode.ZOOKEEPER_RAISED, Mode.MIGRATION, Mode.KRAFT)
    assert sorted(walk.cluster.replaced) == sorted([*BROKERS, *BROKERS, *BROKERS, *CONTROLLERS, REHEARSED, *PROOF])


def older(protocol: str) -> Walk:
    """Brokers of an older Kafka, and the image that they are upgraded to."""
    walk = Walk()
    walk.cluster = Cluster(protocol=protocol, old=True)
    walk.spec = spec_of(rollout={"steps": [{"pods": 1, "bakeSeconds": 5}]}, upgrade={"image": UPGRADED})
    return walk


@pytest.mark.parametrize(("protocol", "through"), [
    ("3.8", [Mode.ZOOKEEPER, Mode.ZOOKEEPER_PINNED, Mode.MIGRATION, Mode.KRAFT]),
    ("3.4", [Mode.ZOOKEEPER, Mode.ZOOKEEPER_PINNED, Mode.ZOOKEEPER_RAISED, Mode.MIGRATION, Mode.KRAFT])])
def test_an_older_kafka_is_upgraded_before_anything_else(protocol, through):
    walk = older(protocol)
    walk.until("RaiseProtocolVersion")
    assert walk.cluster.controllers == {}
    walk.until()
    assert changes(walk.modes_seen) == one_by_one(*through)
    restarts = [*BROKERS] * (len(through) - 1)
    assert sorted(walk.cluster.replaced) == sorted([*restarts, *CONTROLLERS, REHEARSED, *PROOF])


UPGRADING = {
    "opened": opened("UpgradeBrokers"),
    **{f"batch {index} {what}": moment("UpgradeBrokers", index)
       for index in (1, 3) for what, moment in (("assigned", in_batch), ("moved", replaced_in_batch))},
    "raised": replaced_in_batch("RaiseProtocolVersion", 2),
    "the first to Migration": replaced_in_batch("EnableMigration", 1),
    "the first to KRaft": replaced_in_batch("MoveBrokers", 1),
}


@pytest.mark.parametrize("moment", UPGRADING)
def test_the_way_back_ends_at_the_older_kafka(moment):
    walk = older("3.4")
    walk.go(UPGRADING[moment](walk))
    assert not walk.position.finished
    walk.go(lambda: False, BACKWARD)
    check_back_at_the_start(walk)
    assert {node.mode for node in walk.cluster.brokers.values()} == {Mode.ZOOKEEPER}


RAISED = {
    "opened": opened("RaiseProtocolVersion"),
    **{f"batch {index} {what}": moment("RaiseProtocolVersion", index)
       for index in (1, 3) for what, moment in (("assigned", in_batch), ("moved", replaced_in_batch))},
    "controllers": opened("ProvisionControllers"),
    "the first to Migration": replaced_in_batch("EnableMigration", 1),
    "all in Migration": opened("DualWrite"),
    "the first to KRaft": replaced_in_batch("MoveBrokers", 1),
}


@pytest.mark.parametrize("moment", RAISED)
def test_the_way_back_ends_at_the_old_version(moment):
    walk = too_old()
    walk.go(RAISED[moment](walk))
    assert not walk.position.finished
    before = len(walk.cluster.replaced)
    walk.go(lambda: False, BACKWARD)
    check_back_at_the_start(walk)
    restarts = [pod for pod in walk.cluster.replaced[before:] if pod in BROKERS]
    assert max((restarts.count(pod) for pod in restarts), default=0) <= 2
    walk.until()
    assert walk.position.attempt == 2
    assert {node.mode for node in walk.cluster.brokers.values()} == {Mode.KRAFT}


def test_no_file_that_a_broker_mounts_is_removed_before_it_runs_on_its_own_again():
    walk = too_old()
    walk.until("EnableMigration")
    walk.go(lambda: walk.position.step == "RaiseProtocolVersion", BACKWARD)
    while any(node.mode == Mode.ZOOKEEPER_RAISED for node in walk.cluster.brokers.values()):
        assert walk.cluster.files["kafka-switchover"]
        assert walk.cluster.original is not None
        walk.step(direction=BACKWARD)
    walk.go(lambda: False, BACKWARD)
    check_back_at_the_start(walk)


def test_once_the_templates_are_given_back_nobody_turns_round():
    walk = too_old()
    walk.go(in_batch("RaiseProtocolVersion", 2)(walk))
    walk.go(lambda: walk.position.direction is BACKWARD and walk.position.batch is not None, BACKWARD)
    for _ in range(200):
        walk.step(direction=FORWARD)
        if walk.position.finished:
            break
    check_back_at_the_start(walk)
