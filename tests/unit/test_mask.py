"""No credential enters a replica, in whatever form it stands in ZooKeeper; what is masked does to Kafka what it did."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.metadata_sides import config
from fakes.planted_trees import FAULTS, METADATA, clean, planted
from switchover.cluster.observe.rehearsal import handed_in
from switchover.cluster.rehearsal import pack
from switchover.cluster.rehearsal.replica_job import config_maps
from switchover.cluster.rehearsal.settings import KNOWN, masked
from switchover.kubernetes.workloads import JobRun, JobState
from switchover.metadata.cluster import Hidden, Resource
from switchover.metadata.passwords import is_secret
from switchover.zookeeper.tree import Tree

CANARY = "hunter2-CANARY"
KEY = b64encode(b"CANARY of 32 bytes, a stored key").decode()
SALT, SERVER = b64encode(b"CANARY of salt").decode(), b64encode(b"CANARY of a server key of SCRAM!").decode()
SCRAM = f"salt={SALT},stored_key={KEY},server_key={SERVER},iterations=4096"
CIPHER = (f"encryptedPassword:{KEY},keyLength:128,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,iterations:4096,"
          f"cipherAlgorithm:AES/CBC/PKCS5Padding,initializationVector:{SALT},salt:{SERVER},passwordLength:6")
SECRETS = (CANARY, KEY, SALT, SERVER, KEY[:-1], SALT.rstrip("="))
PLACES = ("/config/users/alice", "/config/users/<default>", "/config/users/alice/clients/app", "/config/clients/app",
          "/config/ips/10.0.0.1", "/config/brokers/1", "/config/brokers/<default>", "/config/topics/t", "/config/other/x")
KEYS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-1", "ssl.key.password", "listener.name.a.ssl.keystore.password",
        "listener.name.a.plain.sasl.jaas.config", "sasl.jaas.config", "my.custom.password", "telemetry.api.key", "owner", "",
        "confluent.metrics.reporter.sasl.jaas.config", "listener.name.a.ssl.keystore.key", "ssl.keystore.password ")
VALUES = (
    CANARY, SCRAM, f"{SCRAM},", f"{SCRAM} ", f" {SCRAM}", f"{SCRAM},x={CANARY}", f"{SCRAM},salt={CANARY}",
    ",".join(reversed(SCRAM.split(","))), SCRAM.replace("=,", ","), f"salt={CANARY}", SCRAM.replace("4096", CANARY),
    SCRAM.replace("stored_key", "storedKey"), CIPHER, f"{CIPHER},x:{CANARY}", f'x required password="{CANARY}";',
    f"-----BEGIN PRIVATE KEY-----\n{KEY}\n", [CANARY], {"a": CANARY}, [[{CANARY: KEY}]], f"\u0000{CANARY}")


def text_of(nodes: Mapping[str, bytes | None]) -> str:
    """All that is in the ConfigMaps, unpacked as the pod does it."""
    maps = config_maps(JobRun("rehearsal", JobState.RUNNING, uid="uid"), handed_in(Tree(nodes)).parts)
    found = pack.unpacked([each["data"]["part"] for each in maps])
    assert found.nodes.keys() == nodes.keys()
    return "\n".join((data or b"").decode("latin-1") for data in found.nodes.values())


def assert_no_secret(nodes: Mapping[str, bytes | None]) -> None:
    text = text_of(nodes)
    assert [secret for secret in SECRETS if secret in text or json.dumps(secret)[1:-1] in text] == []
    assert "CANARY" not in text


def forms(key: str, value: Any) -> Iterator[bytes]:
    """Documents with that setting."""
    document = json.dumps({"version": 1, "config": {key: value}})
    for text in (document, f"{document} ", f"{document}\n\0{CANARY}", f"\ufeff{document}", f" {document}", document[:-1],
                 json.dumps({"version": CANARY, "config": {key: value}, "note": CANARY}), json.dumps([value]),
                 json.dumps({"config": {"a": "1"}, CANARY: {key: value}}), json.dumps(value),
                 f'{{"config":{{"a.password":"{CANARY}","a.password":"masked"}}}}'):
        yield text.encode()
    yield document.encode("utf-16")
    yield b"\xff" + document.encode()


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("key", KEYS)
def test_no_credential_in_any_form_at_any_place_enters_a_config_map(path: str, key: str) -> None:
    found = [data for value in VALUES for data in forms(key, value)]
    assert_no_secret({f"{path}-{index}": data for index, data in enumerate(found)})


WRITTEN = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5).map(CANARY.__add__)
                       | st.sampled_from(VALUES), lambda inner: st.lists(inner, max_size=3)
                       | st.dictionaries(st.sampled_from(("a", "config", "salt")), inner, max_size=3), max_leaves=6)


@settings(deadline=None)
@given(st.sampled_from(PLACES), st.dictionaries(st.sampled_from(KEYS), WRITTEN, max_size=3), st.text(max_size=4))
def test_whatever_stands_there_no_credential_comes_along(path: str, found: Mapping[str, Any], after: str) -> None:
    assert_no_secret({path: json.dumps({"version": 1, "config": found}).encode() + after.encode("utf-8", "replace")})
    assert_no_secret({path: json.dumps(found).encode()})


def value_of(path: str, key: str, value: Any) -> Any:
    """What becomes of a value."""
    data = json.dumps({"version": 1, "config": {key: value}}).encode()
    return json.loads(masked({path: data})[path] or b"")["config"][key]


ZEROS = f"salt={'A' * 19}=,stored_key={'A' * 43}=,server_key={'A' * 43}=,iterations=4096"


@pytest.mark.parametrize("value", [
    SCRAM, f"{SCRAM},", ",".join(reversed(SCRAM.split(","))), SCRAM.replace("=,", ","), f"salt=AAAA,{SCRAM}",
    SCRAM.replace("4096", "+4096")])
def test_a_credential_that_kafka_reads_stays_one(value: str) -> None:
    """As `ScramCredentialUtils` reads it: in any order, the last of a name, padded or not."""
    assert value_of("/config/users/alice", "SCRAM-SHA-512", value) == ZEROS


@pytest.mark.parametrize("value", [
    f"{SCRAM} ", f"{SCRAM},x=y", SCRAM.replace("4096", "many"), SCRAM.replace("4096", "9999999999"), "salt=xyz", "",
    f",{SCRAM}", SCRAM.replace("salt=", "salt=!"), f"{SCRAM},,", f"{SCRAM},=x"])
def test_one_that_kafka_does_not_read_stays_none(value: str) -> None:
    shown = value_of("/config/users/alice", "SCRAM-SHA-512", value)
    assert shown == ("masked" if value != f"{SCRAM},," else ZEROS), "Java's split leaves out what is empty at the end"


@pytest.mark.parametrize(("place", "key", "value", "shown"), [
    ("users/alice", "foo_rate", "10", "1"), ("clients/a", "foo_rate", "1e3", "1"), ("clients/a", "owner", "x", "masked"),
    ("users/alice", "SCRAM-SHA-1", SCRAM, "masked"), ("users/a/clients/b", "SCRAM-SHA-512", SCRAM, "masked"),
    ("topics/t", "foo.bar", "x", "masked"), ("topics/t", "a", "", ""), ("brokers/1", "ssl.key.password", CIPHER, "masked"),
    ("topics/t", "foo.bar", 7, 1), ("topics/t", "foo.bar", 0.5, 1), ("topics/t", "foo.bar", None, None),
    ("topics/t", "foo.bar", True, True), ("topics/t", "retention.ms", ["x"], []), ("brokers/1", "a", {"b": "c"}, {})])
def test_what_is_masked_has_its_form(place: str, key: str, value: Any, shown: Any) -> None:
    assert value_of(f"/config/{place}", key, value) == shown
    assert type(value_of(f"/config/{place}", key, value)) is type(shown)


@pytest.mark.parametrize(("place", "key", "value"), [
    ("topics/t", "retention.ms", "abc"), ("topics/t", "retention.ms", 86400000),
    ("topics/t", "message.format.version", "2.8"),
    ("users/alice", "producer_byte_rate", "not-a-number"), ("clients/<default>", "request_percentage", "150.0"),
    ("ips/10.0.0.1", "connection_creation_rate", "99"), ("brokers/<default>", "message.max.bytes", "x"),
    ("brokers/<default>", "metric.reporters", "com.example.Own"), ("brokers/1", "leader.replication.throttled.rate", "9")])
def test_what_is_kafkas_own_and_no_secret_is_rehearsed_as_it_is(place: str, key: str, value: Any) -> None:
    assert value_of(f"/config/{place}", key, value) == value


def test_no_key_of_kafkas_whose_value_stays_is_named_like_a_secret() -> None:
    assert [key for keys in KNOWN.values() for key in keys if is_secret(key) or key.endswith(".key")] == []


@pytest.mark.parametrize("name", FAULTS)
def test_the_masked_tree_has_the_same_faults(name: str) -> None:
    """What was found on the tree as it is, is found on the one that is rehearsed."""
    given, shown = Tree(planted(name)), Tree(masked(planted(name)))
    assert shown.metadata().malformed.keys() == given.metadata().malformed.keys()
    assert (shown.topics, shown.registered, shown.assigned) == (given.topics, given.registered, given.assigned)
    assert masked(shown.nodes) == shown.nodes, "masked is masked, whoever does it again"


def test_of_a_clean_tree_nothing_but_credentials_is_masked() -> None:
    shown = masked(clean() | {"/config/brokers/2": config({"ssl.key.password": "hunter2", "num.io.threads": "9"})})
    found = Tree(shown).metadata()
    assert (found.topics, found.quotas, found.acls, found.tokens) == (
        METADATA.topics, METADATA.quotas, METADATA.acls, METADATA.tokens)
    assert {resource: found.configs[resource] for resource in METADATA.configs} == METADATA.configs
    assert found.configs[Resource("broker", "2")] == {"ssl.key.password": Hidden("masked"), "num.io.threads": "9"}
    assert {who: scram.iterations for who, scram in found.scram.items()} == {
        who: scram.iterations for who, scram in METADATA.scram.items()}
    assert found.malformed == {}
