"""What an approval is given for: every part of a spec that bears on what follows, of one object and one attempt."""

import re
from typing import Any

import pytest

from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec
from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.api.meta import UNBOUND
from switchover.cluster.plan import PLAN
from switchover.engine.approvals import HASH_DIGITS, plan_hash
from switchover.groups.plan import plan_of
from unit import group_pictures, pictures

APPROVAL = {"name": "Finalize", "planHash": "7f3a7f3a7f3a7f3a", "approver": "alice"}
CLUSTER: dict[str, Any] = {
    "desiredState": "Paused", "approvals": [APPROVAL], "readinessPolicy": "OnAcceptance", "holds": [],
    "rollout": {"steps": [{"pods": 2}]}, "onFailure": "RollBack", "gates": {"groups": []},
    "windows": [{"name": "night", "cron": "0 1 * * 1", "durationSeconds": 3600}], "backups": {"skipReason": "no time"},
    "acceptedRisks": ["PasswordsInClear"],
    "zookeeper": {"connect": "other:2181"}, "kafka": {"bootstrapServers": "other:9092"},
    "upgrade": {"image": "kafka:3.9"}, "handOver": "OwnConfiguration",
    "brokers": [{"name": "other", "configuration": {"configMapRef": {"name": "kafka-config"}}}],
    "controllers": {"storage": {"size": "2Gi"}}, "soakSeconds": 1, "zookeeperRetentionSeconds": 1,
    "rehearsal": {"enabled": False},
}
"""Another value for every part of a KafkaMigration's spec than `pictures.spec_of()` has."""
GROUP: dict[str, Any] = {
    "desiredState": "Paused", "approvals": [{**APPROVAL, "name": "Settle"}], "readinessPolicy": "OnAcceptance",
    "holds": ["Settle"], "rollout": {"steps": [{"pods": 3}]}, "onFailure": "RollBack", "gates": {"maxStallSeconds": 99},
    "windows": CLUSTER["windows"], "acceptedRisks": CLUSTER["acceptedRisks"], "group": "payments",
    "kafka": {"bootstrapServers": "kafka-2:9092"},
    "protocol": {"to": "Consumer", "strategy": "Offline"},
    "audit": {"enabled": True, "image": "pipeline:1", "claim": "pipeline"}, "soakSeconds": 7,
    "workloads": [group_pictures.workload_of("StatefulSet")],
}


def of_cluster(uid: str = "uid-1", attempt: int = 1, **changes: Any) -> str:
    return plan_hash(uid, attempt, PLAN.names, pictures.spec_of(**changes))


def of_group(uid: str = "uid-1", attempt: int = 1, **changes: Any) -> str:
    spec = group_pictures.spec_of(*changes.pop("workloads", ()), **changes)
    return plan_hash(uid, attempt, plan_of(spec).names, spec)


def attribute(part: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", part)


def test_every_part_of_a_spec_is_tried_here():
    assert {attribute(part) for part in CLUSTER} == set(KafkaMigrationSpec.model_fields)
    rest = {"zookeeper", "assignment_strategy", "coordination"}
    assert {attribute(part) for part in GROUP} | rest == set(ConsumerGroupMigrationSpec.model_fields)


@pytest.mark.parametrize("part", CLUSTER)
def test_an_approval_of_a_cluster_binds_all_that_bears_on_what_follows(part):
    """alice approved, then somebody emptied gates.groups and set backups.skipReason: Finalize ran on her word."""
    assert (of_cluster(**{part: CLUSTER[part]}) == of_cluster()) == (attribute(part) in UNBOUND)


@pytest.mark.parametrize("part", GROUP)
def test_an_approval_of_a_group_does_as_well(part):
    assert (of_group(**{part: GROUP[part]}) == of_group()) == (attribute(part) in UNBOUND)


def test_no_two_plans_have_one_hash():
    strategy, zookeeper = {"assignmentStrategy": {"to": "range"}}, {"coordination": {"to": "Kafka"}}
    hashes = [of_group(), of_group("uid-2"), of_group(attempt=2), of_group(**strategy),
              of_group(**zookeeper, zookeeper={"connect": "zookeeper:2181"}),
              of_group(**zookeeper, zookeeper={"connect": "zookeeper:2182"}), of_cluster(), of_cluster("uid-2"),
              of_cluster(attempt=2)]
    assert len({*hashes}) == len(hashes)
    assert of_group() == of_group()


def test_what_is_as_by_default_counts_as_what_is_not_said():
    """A release that adds a part with a default asks for no approval anew."""
    assert of_cluster(onFailure="Pause", holds=["Finalize"], windows=[]) == of_cluster()


def test_a_hash_is_what_an_approval_may_hold_and_long_enough_that_nobody_finds_two_specs_of_one():
    hashed = of_cluster()
    assert len(hashed) == HASH_DIGITS >= 32
    given = pictures.spec_of(approvals=[{**APPROVAL, "planHash": hashed}]).approvals[0]
    assert given.plan_hash == hashed
