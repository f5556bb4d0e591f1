"""The two sides of the metadata in one form: what is the same looks the same, and every difference is named."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from hypothesis import given
from hypothesis import strategies as st

from fakes.metadata_sides import acl_id, from_nodes, nodes_of, record, records_of, sanitized, uuid_of
from switchover.metadata import passwords
from switchover.metadata.cluster import (
    LIMIT,
    Acl,
    Assignment,
    ClusterMetadata,
    Difference,
    Hidden,
    Resource,
    Scram,
    Token,
    Topic,
    difference,
)
from switchover.metadata.cluster_replay import InconsistentLogError
from switchover.metadata.decode import Record
from switchover.metadata.names import ACL_OPERATIONS, ACL_PERMISSIONS, RESOURCE_TYPES, SCRAM_MECHANISMS
from switchover.metadata.replay import Replay

ORDERS = Topic("AAAAAAAAAAAAAAAAAAAAAg", {
    0: Assignment((1, 2, 3)), 1: Assignment((2, 3, 1), adding=(1,), removing=(3,)), 2: Assignment((3, 1, 2))})
READ = Acl("User:alice", "*", "Allow", "Read", "Topic", "literal", "orders")
ALICE = Scram(4096, Hidden((b"salt", b"stored", b"server")))
TOKEN = Token("User:alice", "User:bob", ("User:carol", "User:d e*"), 1, 3, 2)

EVERYTHING = ClusterMetadata(
    topics={"orders": ORDERS, "bare": Topic("AAAAAAAAAAAAAAAAAAAAAw", {0: Assignment((1,))})},
    configs={
        Resource("topic", "orders"): {"retention.ms": "1000", "cleanup.policy": ""},
        Resource("broker", "1"): {"log.cleaner.threads": "2"},
        Resource("broker", ""): {"log.cleaner.threads": "1"},
    },
    quotas={
        (("user", "alice@x y"),): {"producer_byte_rate": 1024.0, "request_percentage": 12.5},
        (("user", None),): {"producer_byte_rate": 5.0},
        (("client-id", "c"), ("user", "alice@x y")): {"consumer_byte_rate": 1.0},
        (("client-id", None), ("user", None)): {"consumer_byte_rate": 2.0},
        (("client-id", "c*"),): {"consumer_byte_rate": 3.0},
        (("client-id", None),): {"consumer_byte_rate": 4.0},
        (("ip", "::1"),): {"connection_creation_rate": 7.0},
        (("ip", None),): {"connection_creation_rate": 8.0},
    },
    acls=frozenset({
        READ, READ._replace(operation="IdempotentWrite", resource="Cluster", name="kafka-cluster", permission="Deny"),
        READ._replace(pattern="prefixed", name="ord"), READ._replace(resource="TransactionalId", name="*"),
    }),
    scram={("alice@x y", "SCRAM-SHA-256"): ALICE, ("bob", "SCRAM-SHA-512"): ALICE._replace(iterations=8192)},
    tokens={"id-1": TOKEN},
    next_producer_id=3000,
)


def image(*records: Record) -> ClusterMetadata:
    replay = Replay()
    for offset, item in enumerate(records):
        replay.apply(item, offset)
    return replay.image().metadata


def test_every_kind_read_from_zookeeper() -> None:
    assert from_nodes(nodes_of(EVERYTHING)) == EVERYTHING


def test_every_kind_read_from_the_log() -> None:
    assert image(*records_of(EVERYTHING)) == EVERYTHING


def test_equal_sides_differ_in_nothing() -> None:
    assert difference(EVERYTHING, image(*records_of(EVERYTHING))) == ()


# --- One difference of every kind -------------------------------------------------------------------------------------

MOVED = EVERYTHING.topics | {"orders": Topic(ORDERS.id, {**ORDERS.partitions, 1: Assignment((2, 3, 1))})}
GROWN = EVERYTHING.topics | {"orders": Topic(ORDERS.id, {**ORDERS.partitions, 3: Assignment((1, 2, 3))})}
BARE = "AAAAAAAAAAAAAAAAAAAAAw"
PLANTED: Mapping[str, tuple[dict[str, Any], Difference]] = {
    "topic gone": (
        {"topics": {"orders": ORDERS}},
        Difference("topic", "bare", "nothing", f"id {BARE}, 1 partitions", BARE)),
    "topic id": (
        {"topics": EVERYTHING.topics | {"bare": Topic("BAAAAAAAAAAAAAAAAAAAAA", {0: Assignment((1,))})}},
        Difference("topic", "bare", "id BAAAAAAAAAAAAAAAAAAAAA, 1 partitions", f"id {BARE}, 1 partitions", BARE)),
    "reassignment": (
        {"topics": MOVED},
        Difference("partition", "orders-1", "replicas [2, 3, 1]", "replicas [2, 3, 1] adding [1] removing [3]", ORDERS.id)),
    "partition": ({"topics": GROWN}, Difference("partition", "orders-3", "replicas [1, 2, 3]", "nothing", ORDERS.id)),
    "topic configuration": (
        {"configs": EVERYTHING.configs | {Resource("topic", "orders"): {"retention.ms": "999", "cleanup.policy": ""}}},
        Difference("topic configuration", "orders retention.ms", "'999'", "'1000'", ORDERS.id)),
    "empty is not nothing": (
        {"configs": EVERYTHING.configs | {Resource("topic", "orders"): {"retention.ms": "1000"}}},
        Difference("topic configuration", "orders cleanup.policy", "nothing", "''", ORDERS.id)),
    "broker configuration": (
        {"configs": {key: value for key, value in EVERYTHING.configs.items() if key.name != "1"}},
        Difference("broker configuration", "1 log.cleaner.threads", "nothing", "'2'")),
    "cluster default": (
        {"configs": EVERYTHING.configs | {Resource("broker", ""): {"log.cleaner.threads": "4"}}},
        Difference("broker configuration", "(default) log.cleaner.threads", "'4'", "'1'")),
    "user quota": (
        {"quotas": EVERYTHING.quotas | {(("user", "alice@x y"),): {"producer_byte_rate": 1.0, "request_percentage": 12.5}}},
        Difference("quota", "user alice@x y producer_byte_rate", "1.0", "1024.0")),
    "user and client quota": (
        {"quotas": EVERYTHING.quotas | {(("client-id", None), ("user", None)): {"consumer_byte_rate": 9.0}}},
        Difference("quota", "client-id (default), user (default) consumer_byte_rate", "9.0", "2.0")),
    "ip quota": (
        {"quotas": EVERYTHING.quotas | {(("ip", "10.0.0.1"),): {"connection_creation_rate": 9.0}}},
        Difference("quota", "ip 10.0.0.1 connection_creation_rate", "9.0", "nothing")),
    "ACL": (
        {"acls": EVERYTHING.acls - {READ}},
        Difference("ACL", "Allow User:alice from * Read on Topic literal orders", "nothing", "'present'")),
    "SCRAM iterations": (
        {"scram": EVERYTHING.scram | {("bob", "SCRAM-SHA-512"): ALICE}},
        Difference("SCRAM user", "bob SCRAM-SHA-512", "4096 iterations, salt and keys (hidden)",
                   "8192 iterations, salt and keys (hidden)")),
    "SCRAM key": (
        {"scram": EVERYTHING.scram | {("alice@x y", "SCRAM-SHA-256"): Scram(4096, Hidden((b"salt", b"stored", b"SERVER")))}},
        Difference("SCRAM user", "alice@x y SCRAM-SHA-256", "4096 iterations, salt and keys (hidden)",
                   "another value, 4096 iterations, salt and keys (hidden)")),
    "token": (
        {"tokens": {"id-1": TOKEN._replace(expires=99)}},
        Difference("delegation token", "id-1", str(TOKEN._replace(expires=99)), str(TOKEN))),
    "producer ids": ({"next_producer_id": 4000}, Difference("producer ids", "next", "4000", "3000")),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_one_planted_difference_is_named_and_nothing_else(kind: str) -> None:
    changes, expected = PLANTED[kind]
    changed = replace(EVERYTHING, **changes)
    assert difference(from_nodes(nodes_of(changed)), image(*records_of(EVERYTHING))) == (expected,)
    back = difference(from_nodes(nodes_of(EVERYTHING)), image(*records_of(changed)))
    assert [(item.kind, item.key) for item in back] == [(expected.kind, expected.key)]


def test_a_difference_reads_as_a_sentence() -> None:
    assert str(PLANTED["ip quota"][1]) == (
        "quota ip 10.0.0.1 connection_creation_rate: ZooKeeper says 9.0, KRaft says nothing")


def test_no_more_differences_are_named_than_somebody_reads() -> None:
    many = ClusterMetadata(topics={f"t{number}": ORDERS for number in range(LIMIT + 50)})
    assert len(difference(many, ClusterMetadata())) == LIMIT


# --- Nodes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "data", "why"), [
    ("/brokers/topics/t", b"{", "not JSON"),
    ("/brokers/topics/t", b'{"partitions": {"0": "x"}}', "replicas are not a list of broker ids"),
    ("/brokers/topics/t", b'{"partitions": {"zero": [1]}}', "invalid literal for int"),
    ("/config/topics/t", b'{"config": {"a": 1}}', "a value of config is not a text"),
    ("/config/users/u", b'{"config": {"producer_byte_rate": "many"}}', "producer_byte_rate is not a number"),
    ("/config/users/u", b'{"config": {"producer_byte_rate": "1048576.0"}}', "producer_byte_rate is no whole number of 64"),
    ("/config/clients/c", b'{"config": {"consumer_byte_rate": "2.0E7"}}', "consumer_byte_rate is no whole number of 64"),
    ("/config/clients/c", b'{"config": {"consumer_byte_rate": "9223372036854775808"}}', "no whole number of 64 bits"),
    ("/config/ips/10.0.0.1", b'{"config": {"connection_creation_rate": "100.0"}}', "connection_creation_rate is no whole"),
    ("/config/ips/10.0.0.1", b'{"config": {"connection_creation_rate": "2147483648"}}', "no whole number of 32 bits"),
    ("/config/users/u", b'{"config": {"SCRAM-SHA-256": "salt=?"}}', "SCRAM-SHA-256 is not a credential"),
    ("/kafka-acl/Topic/t", b'{"version": 2, "acls": []}', "version of the ACLs is not 1"),
    ("/kafka-acl/Topic/t",
     b'{"version": 1, "acls": [{"principal": "u", "host": "*", "permissionType": "Allow", "operation": "Nothing"}]}',
     "unknown name 'Nothing'"),
    ("/config/users/u", b'{"config": {"foo_rate": "10"}}', "foo_rate is no quota of Kafka's, and the migration would"),
    ("/config/users/u/clients/c", b'{"config": {"connection_creation_rate": "10"}}', "connection_creation_rate is no quota"),
    ("/config/clients/c", b'{"config": {"owner": "team-a"}}', "owner is no quota of Kafka's"),
    ("/config/ips/10.0.0.1", b'{"config": {"producer_byte_rate": "10"}}', "producer_byte_rate is no quota of Kafka's"),
    ("/config/users/u", b'{"config": {"producer_byte_rate": " 10"}}', "producer_byte_rate has blanks around it"),
    ("/config/users/50%off", b'{"config": {}}', "its name has a % that begins no escape"),
    ("/config/users/u/clients/%zz", b'{"config": {}}', "its name has a % that begins no escape"),
    ("/config/clients/100%", b"", "its name has a % that begins no escape"),
    ("/config/topics/t", b'{"config": {"retention.ms": "abc"}}', "retention.ms is no whole number of 64 bits, and no"),
    ("/config/topics/t", b'{"config": {"min.insync.replicas": "0"}}', "min.insync.replicas is not within 1.., and no"),
    ("/config/topics/t", b'{"config": {"cleanup.policy": "compact,none"}}', "cleanup.policy is none of compact, delete"),
    ("/config/topics/t", b'{"config": {"preallocate": "yes"}}', "preallocate is neither true nor false"),
    ("/feature", b'{"features":{"other.version":1},"version":2,"status":1}', "feature other.version is finalized"),
    ("/feature", b'{"features":{"metadata.version":99},"version":2,"status":1}', "feature metadata.version is finalized"),
    ("/feature", None, "empty"),
    ("/delegation_token/tokens/t", b'{"owner": "User:a"}', "renewers is missing"),
    ("/latest_producer_id_block", b"[]", "not a JSON object"),
    ("/latest_producer_id_block", b"", "empty"),
])
def test_a_node_that_cannot_be_read_is_a_difference(path: str, data: bytes | None, why: str) -> None:
    found = difference(from_nodes({path: data}), ClusterMetadata())
    assert [(item.kind, item.key) for item in found] == [("znode", path)]
    assert why in found[0].zookeeper


def test_what_kafka_leaves_behind_empty_is_nothing() -> None:
    nodes = {"/config/topics/t": b"", "/config/brokers/1": b'{"version":1,"config":{}}', "/config/users/u": b'{"version":1}',
             "/kafka-acl/Topic/t": b'{"version":1,"acls":[]}', "/latest_producer_id_block": None}
    assert from_nodes(nodes) == ClusterMetadata()


@pytest.mark.parametrize(("path", "data"), [
    ("/kafka-acl/Nothing/t",
     b'{"version": 1, "acls": [{"principal": "u", "host": "*", "permissionType": "Allow", "operation": "Read"}]}'),
    ("/feature", b'{"features":{"other.version":1},"version":2,"status":0}'),
    ("/feature", b'{"features":{"metadata.version":21},"version":2,"status":1}'),
    ("/feature", b'{"features":{"metadata.version":{"min_version_level":1,"max_version_level":2}},"version":1,"status":1}'),
])
def test_what_kafka_passes_over_is_nothing(path: str, data: bytes) -> None:
    assert from_nodes({path: data}) == ClusterMetadata()


@pytest.mark.parametrize(("path", "key", "value"), [
    ("/config/topics/t", "message.format.version", "0.10.2"), ("/config/topics/t", "owner", "team-a"),
    ("/config/topics/t", "retention.ms", " -1 "), ("/config/topics/t", "min.cleanable.dirty.ratio", "0.5f"),
    ("/config/brokers/<default>", "log.cleaner.threads", "abc"),
])
def test_settings_that_kafka_takes_are_settings(path: str, key: str, value: str) -> None:
    """Of a broker's it takes all, with an ERROR in its log; of a topic's those that it does not know."""
    (settings,) = from_nodes({path: json.dumps({"config": {key: value}}).encode()}).configs.values()
    assert settings == {key: value}


def test_a_number_with_javas_suffix_is_one() -> None:
    (quotas,) = from_nodes({"/config/users/u": b'{"config": {"request_percentage": "12.5d"}}'}).quotas.values()
    assert quotas == {"request_percentage": 12.5}


def test_a_block_of_a_controller_is_one_that_nobody_has_yet() -> None:
    block = {"version": 1, "broker": -1, "block_start": "3000", "block_end": "3999"}
    written = {"/latest_producer_id_block": json.dumps(block).encode()}
    assert from_nodes(written).next_producer_id == 3000
    written = {"/latest_producer_id_block": json.dumps(block | {"broker": 2}).encode()}
    assert from_nodes(written).next_producer_id == 4000


def test_words_of_acls_in_any_case_and_tokens_of_older_kafka() -> None:
    acl = b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"ALLOW","operation":"READ","host":"*"}]}'
    assert from_nodes({"/kafka-acl/Topic/orders": acl}).acls == {READ}
    token = json.dumps({"version": 2, "owner": "User%3Aalice", "renewers": [], "issueTimestamp": 1, "maxTimestamp": 2,
                        "expiryTimestamp": 3, "tokenId": "t"}).encode()
    assert from_nodes({"/delegation_token/tokens/t": token}).tokens["t"].requester == "User:alice"


# --- Secrets ----------------------------------------------------------------------------------------------------------


def encrypted(password: str, secret: str, *, iterations: int = 4096) -> str:
    """As `EncryptingPasswordEncoder` does it by default."""
    salt, vector = b"s" * 256, b"v" * 16
    key = passwords.hashlib.pbkdf2_hmac("sha512", secret.encode(), salt, iterations, 16)
    size = 16 - len(password.encode()) % 16
    encryptor = Cipher(AES(key), CBC(vector)).encryptor()
    data = encryptor.update(password.encode() + bytes([size] * size)) + encryptor.finalize()
    parts = {"encryptedPassword": b64encode(data).decode(), "keyLength": 128, "salt": b64encode(salt).decode(),
             "initializationVector": b64encode(vector).decode(), "iterations": iterations,
             "keyFactoryAlgorithm": "PBKDF2WithHmacSHA512", "cipherAlgorithm": "AES/CBC/PKCS5Padding",
             "passwordLength": len(password)}
    return ",".join(f"{key}:{value}" for key, value in parts.items())


PASSWORD = "listener.name.internal.ssl.keystore.password"


def with_password(text: str) -> dict[str, bytes]:
    return {"/config/brokers/1": json.dumps({"version": 1, "config": {PASSWORD: text}}).encode()}


def logged_password(text: str) -> ClusterMetadata:
    return image(record("Config", resource_type=4, resource_name="1", name=PASSWORD, value=text))


def test_an_encrypted_password_equals_the_plain_one_of_the_log() -> None:
    zookeeper = from_nodes(with_password(encrypted("open sesame", "s3cret")), "s3cret")
    assert difference(zookeeper, logged_password("open sesame")) == ()


def test_another_password_is_a_difference_that_shows_neither() -> None:
    zookeeper = from_nodes(with_password(encrypted("open sesame", "s3cret")), "s3cret")
    found = difference(zookeeper, logged_password("close sesame"))
    assert found == (Difference(
        "broker configuration", f"1 {PASSWORD}", "(hidden)", "another value, (hidden)"),)
    assert "sesame" not in repr(zookeeper) + repr(logged_password("close sesame"))


def test_without_the_secret_it_is_told_which_one_is_missing() -> None:
    text = encrypted("open sesame", "s3cret")
    (found,) = difference(from_nodes(with_password(text)), ClusterMetadata())
    assert (found.kind, found.key) == ("znode", "/config/brokers/1")
    assert "password.encoder.secret is not known" in found.zookeeper
    assert text not in str(found)


def test_without_a_secret_a_password_that_is_not_encrypted_is_what_it_is() -> None:
    assert difference(from_nodes(with_password("open sesame")), logged_password("open sesame")) == ()


@pytest.mark.parametrize("text", [
    encrypted("open sesame", "another"), "open sesame", "cipherAlgorithm:AES", "a:b,c",
    encrypted("open sesame", "s3cret").replace("AES/CBC/PKCS5Padding", "DES/CBC/PKCS5Padding"),
    encrypted("open sesame", "s3cret").replace("HmacSHA512", "HmacMD5"),
    encrypted("open sesame", "s3cret").replace("iterations:4096", "iterations:4096000000"),
])
def test_a_password_that_cannot_be_decrypted_is_told_without_it(text: str) -> None:
    found = difference(from_nodes(with_password(text), "s3cret"), ClusterMetadata())
    assert [(item.kind, item.key) for item in found] == [("znode", "/config/brokers/1")]
    assert "sesame" not in str(found)
    assert text not in str(found)


# Written by Kafka 3.9.2's own EncryptingPasswordEncoder with the secret encoder-secret.
CBC_OF_KAFKA = (
    "initializationVector:pqqMirIc74amANdUSUwR8g==,keyLength:128,salt:b7mcrgu7HD++d0kDQCWAwJmBBHj0Z6VFs8AUFYwmdDqSN2b"
    "iVxbfKGJhs49vdR/hJNn6fHjBZC13+SJLkagfCxVMB8IJ3TtWzmaplZg9KyWayBdqUv5EqckNFMrt52L/logPUXJKv9fvDo1oztQSujY92Z5UPF1"
    "osDw3dmokWjrUAJcW+79Rb5kuAsoVpG3H0+8ZCXk/hfLNs8qCDyW/1CdQCnIbb/aYSIRopI915PCYMWgb0oXybUqj8al2NoDr4g6yPlEJ7jH2S1I"
    "iUfQdhfnDzu2++Q13NHpgxiwAtCdTaajLfdYHigzg2hzOji98tWWcIgPiolIa0otsCFUSRA==,keyFactoryAlgorithm:PBKDF2WithHmacSHA5"
    "12,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLength:17,encryptedPassword:I1jSGr6mA/HeFUI2vOMt"
    "3AA1wAXN6Mz1kBlFpAchLlY="
)
GCM_OF_KAFKA = (
    "initializationVector:u2mkyQKoj5yK474q,keyLength:128,salt:ftGVNX0i1NFVO3Bayhov4bRJFNt1OJZtElkHzbP6AL4UOSbETF76JW/"
    "oUnzdw6azwFtzmtC0pDtkpc+n/6v0u0CJU8hC6w7IieWgVPLrCLENcc3v48WGP+A556zgn6kc1Xkp3+YtRlesK+nZ2iPaz2GgAIghqFCeJzk4RIT"
    "WbkL1MTj/XN4tJrB7F73pYZwK7pft/KMpAHgg+ZGZQFC8O49e+9kPDksL+Pn8/rhEgfBct6SxWtb5VFyafY2EqzR6eGi99MlBIEbcPSiP0YCD6+t"
    "ZdS4Qj32Ong+1CPyCGfFek1een4pfUkXWKE1UboZTrrfwJLp1LccsHFjnwFHhbw==,keyFactoryAlgorithm:PBKDF2WithHmacSHA256,ciphe"
    "rAlgorithm:AES/GCM/NoPadding,authenticationTagLength:128,iterations:2048,passwordLength:17,encryptedPassword:cqS"
    "y5WovZNTqVcx7dNuO1d+HlrCfGf/tNxAigh3iGxqwTg=="
)


@pytest.mark.parametrize(("text", "password"), [(CBC_OF_KAFKA, "keystore-password"), (GCM_OF_KAFKA, "keystöre-password")])
def test_a_password_that_kafka_encrypted(text: str, password: str) -> None:
    assert passwords.decrypted(text, "encoder-secret") == password


@pytest.mark.parametrize("name", ["my.plugin.password", "plugin.api.token", "x.sasl.jaas.config"])
def test_what_sounds_like_a_secret_is_not_shown(name: str) -> None:
    nodes = {"/config/topics/t": json.dumps({"config": {name: "open sesame"}}).encode()}
    log = image(record("Config", resource_type=2, resource_name="t", name=name, value="other"))
    assert "sesame" not in str(difference(from_nodes(nodes), log))
    assert difference(from_nodes(nodes), image(
        record("Config", resource_type=2, resource_name="t", name=name, value="open sesame"))) == ()


# --- The log's own ways -----------------------------------------------------------------------------------------------


def test_what_is_removed_in_the_log_is_gone() -> None:
    removals = (
        *(record("RemoveTopic", topic_id=uuid_of(topic)) for topic in EVERYTHING.topics.values()),
        *(record("Config", resource_type=4, resource_name=broker, name="log.cleaner.threads", value=None)
          for broker in ("1", "")),
        *(record("ClientQuota", entity=tuple({"entity_type": kind, "entity_name": name} for kind, name in entity), key=key,
                 value=0.0, remove=True) for entity, values in EVERYTHING.quotas.items() for key in values),
        *(record("RemoveAccessControlEntry", id=acl_id(acl)) for acl in EVERYTHING.acls),
        record("RemoveUserScramCredential", name="alice@x y", mechanism=1),
        record("RemoveUserScramCredential", name="bob", mechanism=2),
        record("RemoveDelegationToken", token_id="id-1"),
    )
    assert image(*records_of(EVERYTHING), *removals) == ClusterMetadata(next_producer_id=3000)


def test_a_topic_created_again_has_its_new_id_and_none_of_the_old_settings() -> None:
    again = Topic("AAAAAAAAAAAAAAAAAAAABA", {})
    seen = image(*records_of(EVERYTHING), record("RemoveTopic", topic_id=uuid_of(ORDERS)),
                 record("Topic", name="orders", topic_id=uuid_of(again)))
    assert seen.topics["orders"] == again
    assert Resource("topic", "orders") not in seen.configs


def test_a_change_of_a_partition_leaves_what_it_does_not_name() -> None:
    def change(**fields: object) -> Record:
        empty = {"replicas": None, "adding_replicas": None, "removing_replicas": None}
        return record("PartitionChange", partition_id=1, topic_id=uuid_of(ORDERS), **{**empty, **fields})

    def after(*records: Record) -> Assignment:
        return image(*records_of(EVERYTHING), *records).topics["orders"].partitions[1]

    assert after(change()) == ORDERS.partitions[1]
    assert after(change(replicas=(9, 8))) == Assignment((9, 8), (1,), (3,))
    assert after(change(replicas=(1, 2), adding_replicas=(), removing_replicas=())) == Assignment((1, 2))


@pytest.mark.parametrize("kind", [1, 8, 16, 32])
def test_configurations_of_other_resources_exist_in_kraft_alone(kind: int) -> None:
    assert image(record("Config", resource_type=kind, resource_name="x", name="a", value="b")) == ClusterMetadata()


@pytest.mark.parametrize(("item", "why"), [
    (record("RemoveTopic", topic_id=uuid_of(ORDERS)), "no topic has the id"),
    (record("Partition", topic_id=uuid_of(ORDERS), partition_id=0), "no topic has the id"),
    (record("RemoveAccessControlEntry", id=acl_id(READ)), "no ACL has the id"),
    (record("UserScramCredential", name="u", mechanism=7, salt=b"", stored_key=b"", server_key=b"", iterations=1),
     "UserScramCredential: unknown code 7"),
])
def test_a_record_that_makes_no_sense_names_its_offset(item: Record, why: str) -> None:
    with pytest.raises(InconsistentLogError, match=f"offset 0: {why}"):
        image(item)


def test_an_image_stays_as_it_was_and_costs_nothing_while_nothing_changes() -> None:
    replay = Replay()
    for offset, item in enumerate(records_of(EVERYTHING)):
        replay.apply(item, offset)
    early = replay.image().metadata
    replay.apply(record("NoOp"), 90)
    assert replay.image().metadata is early
    replay.apply(record("Partition", topic_id=uuid_of(ORDERS), partition_id=0, replicas=(7,), adding_replicas=(),
                        removing_replicas=(), partition_epoch=0), 91)
    replay.apply(record("Config", resource_type=2, resource_name="orders", name="retention.ms", value=None), 92)
    assert early == EVERYTHING
    assert replay.image().metadata.topics["orders"].partitions[0] == Assignment((7,))


def test_every_change_of_a_partition_counts_in_its_epoch() -> None:
    replay, topic_id = Replay(), uuid_of(ORDERS)
    change = record("PartitionChange", topic_id=topic_id, partition_id=0, replicas=None, adding_replicas=None,
                    removing_replicas=None)
    items = [record("Topic", name="orders", topic_id=topic_id),
             record("Partition", topic_id=topic_id, partition_id=0, replicas=(7,), adding_replicas=(), removing_replicas=(),
                    partition_epoch=53), change, change]
    for offset, item in enumerate(items):
        replay.apply(item, offset)
    before = replay.image().metadata
    assert before.epochs == {("orders", 0): 55}
    replay.apply(change, 9)
    assert (before.epochs, replay.image().metadata.epochs) == ({("orders", 0): 55}, {("orders", 0): 56})
    replay.apply(record("RemoveTopic", topic_id=topic_id), 10)
    assert replay.image().metadata.epochs == {}


def test_a_transaction_that_is_aborted_leaves_the_metadata_as_it_was() -> None:
    before = tuple(records_of(EVERYTHING))
    inside = (record("BeginTransaction", name="x"), record("RemoveTopic", topic_id=uuid_of(ORDERS)),
              record("Topic", name="new", topic_id=uuid_of(Topic("AAAAAAAAAAAAAAAAAAAABA", {}))),
              record("Partition", topic_id=uuid_of(EVERYTHING.topics["bare"]), partition_id=0, replicas=(7,),
                     adding_replicas=(), removing_replicas=(), partition_epoch=0))
    assert image(*before, *inside) == EVERYTHING
    assert image(*before, *inside, record("AbortTransaction")) == EVERYTHING
    assert image(*before, *inside, record("EndTransaction")).topics.keys() == {"bare", "new"}


# --- Any metadata at all ----------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda text: text not in (".", "..", "<default>"))
LEGAL = st.from_regex(r"[a-zA-Z0-9_-]{1,8}", fullmatch=True)
IDS = st.lists(st.integers(0, 9), unique=True, max_size=3).map(tuple)
ASSIGNMENTS = st.builds(Assignment, IDS.filter(bool), IDS, IDS)
TOPIC_IDS = st.uuids().map(lambda item: urlsafe_b64encode(item.bytes).decode().rstrip("="))
VALUES = st.dictionaries(LEGAL, TEXT, min_size=1, max_size=3)
WHOLE = st.integers(0, 2**31 - 1).map(float)
RATES = st.fixed_dictionaries({"producer_byte_rate": WHOLE}, optional={
    "consumer_byte_rate": WHOLE, "request_percentage": st.floats(0, 1e18), "controller_mutation_rate": st.floats(0, 1e18)})
NAMES = st.none() | TEXT
CLIENTS = (st.tuples(st.tuples(st.just("user"), NAMES)) | st.tuples(st.tuples(st.just("client-id"), NAMES))
           | st.tuples(st.tuples(st.just("client-id"), NAMES), st.tuples(st.just("user"), NAMES)))
QUOTAS = st.dictionaries(CLIENTS, RATES, max_size=4) | st.dictionaries(
    st.tuples(st.tuples(st.just("ip"), NAMES)), st.fixed_dictionaries({"connection_creation_rate": WHOLE}), max_size=4)


def of(words: Iterable[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(words))


def metadata() -> st.SearchStrategy[ClusterMetadata]:
    def with_topics(topics: Mapping[str, tuple[str, Mapping[int, Assignment]]]) -> st.SearchStrategy[ClusterMetadata]:
        resources = [Resource("broker", ""), Resource("broker", "1"), *(Resource("topic", name) for name in topics)]
        return st.builds(
            ClusterMetadata,
            topics=st.just({name: Topic(*item) for name, item in topics.items()}),
            configs=st.dictionaries(st.sampled_from(resources), VALUES, max_size=3),
            quotas=QUOTAS,
            acls=st.frozensets(st.builds(
                Acl, principal=TEXT.map("User:{}".format), host=TEXT, permission=of(ACL_PERMISSIONS.values()),
                operation=of(ACL_OPERATIONS.values()), resource=of(RESOURCE_TYPES.values()),
                pattern=of(("literal", "prefixed")), name=TEXT), max_size=4),
            scram=st.dictionaries(
                st.tuples(TEXT, of(SCRAM_MECHANISMS.values())),
                st.builds(Scram, st.integers(1, 9999), st.tuples(*[st.binary(min_size=1, max_size=9)] * 3).map(Hidden)),
                max_size=3),
            tokens=st.dictionaries(LEGAL, st.builds(
                Token, TEXT, TEXT, st.lists(TEXT, max_size=2).map(tuple), *[st.integers(0, 1 << 62)] * 3), max_size=2),
            next_producer_id=st.none() | st.integers(1000, 1 << 60),
        )

    partitions = st.dictionaries(st.integers(0, 40), ASSIGNMENTS, min_size=1, max_size=4)
    topics = st.dictionaries(LEGAL, st.tuples(TOPIC_IDS, partitions), max_size=3).filter(
        lambda found: len({topic_id for topic_id, _ in found.values()}) == len(found))
    return topics.flatmap(with_topics)


@given(metadata())
def test_the_same_metadata_on_both_sides_differs_in_nothing(sample: ClusterMetadata) -> None:
    zookeeper, kraft = from_nodes(nodes_of(sample)), image(*records_of(sample))
    assert zookeeper.malformed == {}
    assert zookeeper == kraft == hidden(sample)
    assert difference(zookeeper, kraft) == ()


@given(metadata(), metadata())
def test_different_metadata_differs_in_something(one: ClusterMetadata, other: ClusterMetadata) -> None:
    zookeeper, kraft = from_nodes(nodes_of(one)), image(*records_of(other))
    assert bool(difference(zookeeper, kraft)) == (zookeeper != kraft)
    assert [(i.kind, i.key) for i in difference(kraft, zookeeper)] == [(i.kind, i.key) for i in difference(zookeeper, kraft)]


def hidden(sample: ClusterMetadata) -> ClusterMetadata:
    """As read: values whose name sounds like a secret are hidden."""
    return replace(sample, configs={
        resource: {key: Hidden(value) if passwords.is_secret(key) else value for key, value in values.items()}
        for resource, values in sample.configs.items()})


@given(TEXT)
def test_names_are_sanitized_as_kafka_does_it(name: str) -> None:
    assert from_nodes({f"/config/users/{sanitized(name)}": b'{"config":{"request_percentage":"1"}}'}).quotas == {
        (("user", name),): {"request_percentage": 1.0}}
