"""Metadata that is odd and legal, as clusters of many years have it (BH3-17 of docs/facts/public-cases.md): KIP-290's
patterns, sanitized names, tokens of before Kafka 3.3, settings of other products, addresses in IPv6."""

import json
from typing import Any

import pytest

from switchover.metadata.cluster import Resource
from switchover.metadata.tree import TreeParser
from switchover.network.addresses import Address
from switchover.zookeeper.client.znodes import endpoints

ANYBODY = {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}


def entry(path: str, said: dict[str, Any]) -> tuple[Any, ...]:
    """What is read of a node: what it is about, and its value."""
    [(_, about, value)] = TreeParser(None).entries(path, json.dumps({"version": 1, **said}).encode())
    return about, value


@pytest.mark.parametrize(("path", "rule", "read"), [
    ("/kafka-acl/Topic/*", {"principal": "Group:ops", "operation": "ALL"}, "Allow Group:ops from * All on Topic literal *"),
    ("/kafka-acl/Group/team.a:b c", {"principal": "User:CN=J\\, Dü,O=x", "host": "fd00::7"},
     "Allow User:CN=J\\, Dü,O=x from fd00::7 Read on Group literal team.a:b c"),
    ("/kafka-acl-extended/prefixed/Topic/a.b_", {"operation": "DescribeConfigs"},
     "Allow User:alice from * DescribeConfigs on Topic prefixed a.b_"),
    ("/kafka-acl/DelegationToken/abc-_", {}, "Allow User:alice from * Read on DelegationToken literal abc-_"),
    ("/kafka-acl/User/User:bob", {"operation": "CreateTokens"},
     "Allow User:alice from * CreateTokens on User literal User:bob"),
    ("/kafka-acl/Cluster/kafka-cluster", {"operation": "IdempotentWrite", "permissionType": "DENY"},
     "Deny User:alice from * IdempotentWrite on Cluster literal kafka-cluster"),
])
def test_rules(path: str, rule: dict[str, str], read: str) -> None:
    assert (str(entry(path, {"acls": [ANYBODY | rule]})[0])) == read


@pytest.mark.parametrize(("path", "quota", "about", "read"), [
    ("/config/users/CN%3Da%2CO%3D%2A%20%25", {"producer_byte_rate": "1024"}, (("user", "CN=a,O=* %"),), 1024.0),
    ("/config/users/%3Cdefault%3E", {"request_percentage": "1.5E1"}, (("user", "<default>"),), 15.0),
    ("/config/users/<default>/clients/<default>", {"consumer_byte_rate": "9223372036854775807"},
     (("client-id", None), ("user", None)), 2.0 ** 63),
    ("/config/ips/::1", {"connection_creation_rate": "10"}, (("ip", "::1"),), 10.0),
])
def test_quotas(path: str, quota: dict[str, str], about: tuple[Any, ...], read: float) -> None:
    assert entry(path, {"config": quota}) == (about, dict.fromkeys(quota, read))


def test_a_quota_that_is_no_number_is_malformed() -> None:
    path = "/config/clients/a+b%2Fc~"
    found = TreeParser(None).entries(path, b'{"version": 1, "config": {"controller_mutation_rate": "NaN"}}')
    assert found == (("malformed", path, "controller_mutation_rate is not a number"),)


@pytest.mark.parametrize(("path", "settings"), [
    ("topics/old", {"message.format.version": "0.9.0", "confluent.placement.constraints": "", "min.insync.replicas": " 1 "}),
    ("brokers/1001", {"log.message.format.version": "2.8", "advertised.listeners": "A://h:1"}),
])
def test_settings_of_removed_keys_and_of_other_products(path: str, settings: dict[str, str]) -> None:
    kind, _, name = path.partition("s/")
    assert entry(f"/config/{path}", {"config": settings}) == (Resource(kind, name), settings)


def test_a_token_from_before_it_knew_who_asked_for_it() -> None:
    token = {"owner": "User%3Aalice", "renewers": [], "issueTimestamp": 1, "maxTimestamp": 2, "expiryTimestamp": 1}
    found = entry("/delegation_token/tokens/t1", {**token, "tokenId": "t1"})
    assert "t1 owner User:alice, requester User:alice" in f"{found[0]} {found[1]}"


def test_a_brokers_endpoints() -> None:
    said = {"endpoints": ["PLAINTEXT://[fd00::1]:9092", "SASL_SSL://kafka-0.kafka:9093"], "timestamp": "1", "host": None,
            "port": -1}
    assert endpoints(json.dumps(said).encode()) == {
        "PLAINTEXT": Address("fd00::1", 9092), "SASL_SSL": Address("kafka-0.kafka", 9093)}
