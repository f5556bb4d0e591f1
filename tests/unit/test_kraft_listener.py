"""The controllers' listener out of its Secret: what nodes' edits say of it, who the nodes are, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from switchover.api.controllers import ControllerListener
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import modes, names
from switchover.cluster.controllers import listener, manifests
from switchover.cluster.controllers.listener import Unusable, apply_rules, distinguished_name
from switchover.cluster.door import brokers, edits
from switchover.cluster.gates.connections import check_listener_credentials
from switchover.cluster.modes import Voters
from switchover.cluster.picture import Picture
from switchover.engine.gate import Verdict
from switchover.network import sasl
from switchover.network.addresses import Address
from unit.pictures import CLUSTER_ID, moment, spec_of, spoil, stateful_set

CERTIFICATES = Path(__file__).parent / "golden" / "certificates"
CHAIN = (CERTIFICATES / "wildcard.crt").read_text()
KEY = "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----"
TLS = {"ssl.keystore.certificate.chain": CHAIN, "ssl.keystore.key": KEY, "ssl.truststore.certificates": f"{CHAIN}\n\n"}
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PLAIN = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": MODULE + r' required username="k" password="a\"\\b";'}


def given(protocol: str, name: str = "CONTROLLER") -> ControllerListener:
    return ControllerListener.model_validate(
        {"name": name, "securityProtocol": protocol, "credentialsRef": {"name": "keys"}})


def moving(protocol: str) -> Picture:
    """Brokers are about to be moved, beside controllers with such a listener."""
    spec = spec_of(controllers={"storage": {"size": "1Gi"}, "listener": {
        "securityProtocol": protocol, "credentialsRef": {"name": "keys"}}})
    return replace(moment("EnableMigration", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER), spec=spec)


def test_nodes_know_each_other_by_their_certificates():
    settings = listener.node_settings(given("SSL", "QUORUM"), TLS)
    assert settings == {
        "listener.name.quorum.ssl.client.auth": "required",
        "listener.name.quorum.ssl.keystore.type": "PEM", "listener.name.quorum.ssl.truststore.type": "PEM",
        "listener.name.quorum.ssl.keystore.certificate.chain": CHAIN,
        "listener.name.quorum.ssl.keystore.key": f"{KEY}\n",
        "listener.name.quorum.ssl.truststore.certificates": CHAIN,
    }


def test_the_one_user_of_plain_is_client_and_server():
    settings = listener.node_settings(given("SASL_PLAINTEXT"), PLAIN)
    login = sasl.parse("x", settings.pop("listener.name.controller.plain.sasl.jaas.config"))
    assert login.options == {"username": "k", "password": 'a"\\b', "user_k": 'a"\\b'}
    assert settings == {"sasl.mechanism.controller.protocol": "PLAIN",
                        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN"}


def test_plain_inside_of_tls_asks_for_no_certificate():
    settings = listener.node_settings(given("SASL_SSL"), TLS | PLAIN)
    assert settings["listener.name.controller.ssl.client.auth"] == "none"
    assert settings["sasl.mechanism.controller.protocol"] == "PLAIN"


def test_we_connect_as_the_spec_says():
    assert listener.client_properties(given("SSL"), TLS) == {**TLS, "security.protocol": "SSL"}
    assert listener.node_settings(ControllerListener(), {}) == {}


@pytest.mark.parametrize(("protocol", "credentials", "why"), [
    ("SSL", TLS | PLAIN, "sasl.jaas.config does not belong to a listener with securityProtocol SSL"),
    ("SSL", TLS | {"security.protocol": "SASL_SSL"}, "security.protocol is not SSL"),
    ("SSL", {}, "ssl.keystore.certificate.chain is missing"),
    ("SSL", TLS | {"ssl.keystore.type": "JKS"}, "ssl.keystore.type is not PEM"),
    ("SSL", TLS | {"ssl.truststore.certificates": "s3cret"}, "ssl.truststore.certificates is not made of PEM"),
    ("SSL", TLS | {"ssl.keystore.key": KEY.replace(" PRIVATE", " RSA PRIVATE")}, "openssl pkcs8 -topk8 -nocrypt"),
    ("SSL", TLS | {"ssl.keystore.key": "s3cret"}, "ssl.keystore.key is not a PEM key"),
    ("SASL_PLAINTEXT", PLAIN | TLS, "ssl.keystore.certificate.chain does not belong"),
    ("SASL_PLAINTEXT", {}, r"sasl.mechanism \(absent\) is not PLAIN"),
    ("SASL_PLAINTEXT", PLAIN | {"sasl.mechanism": "SCRAM-SHA-256"}, "SCRAM users are part of the metadata"),
    ("SASL_PLAINTEXT", PLAIN | {"sasl.jaas.config": 'x password="s3cret'}, "sasl.jaas.config is not of the form"),
    ("SASL_PLAINTEXT", PLAIN | {"sasl.jaas.config": 'a.Other required username="u" password="s3cret";'},
     "must name PlainLoginModule"),
    ("SASL_PLAINTEXT", PLAIN | {"sasl.jaas.config": 'PlainLoginModule required username="a b" password="s3cret";'},
     "the username in sasl.jaas.config has characters"),
])
def test_what_cannot_be_used_is_told_without_its_values(protocol, credentials, why):
    with pytest.raises(Unusable, match=why) as refused:
        listener.node_settings(given(protocol), credentials)
    assert "s3cret" not in str(refused.value)


# --- In the edits -------------------------------------------------------------------------------------------------------

OWN = {
    "listeners": "REPLICATION://:9091,CLIENTS://:9092,OPEN://:9093",
    "listener.security.protocol.map": "REPLICATION:SSL, CLIENTS:SASL_SSL, OPEN:PLAINTEXT",
    "inter.broker.listener.name": "REPLICATION",
    "ssl.keystore.location": "/keys/broker.jks", "ssl.keystore.password": "p", "ssl.truststore.location": "/keys/trust.jks",
    "listener.name.clients.ssl.keystore.location": "/keys/clients.jks",
}
BROKERS = brokers.find(stateful_set()["spec"]["template"], spec_of().brokers[0], OWN)


def given_by(mode: str, voters: Voters) -> dict[str, str]:
    """What a node is started with, made of the brokers' own file."""
    directives = edits.broker(mode, 1, voters, BROKERS) if mode in (Mode.MIGRATION, Mode.KRAFT) else edits.controller(
        mode, 3000, voters, BROKERS, CLUSTER_ID, "/data")
    return edits.applied(directives, OWN)


def secured(protocol: str, credentials: dict[str, str]) -> Voters:
    settings = listener.node_settings(given(protocol), credentials)
    return Voters({3000: Address("c", 9093)}, modes.ControllerListener("CONTROLLER", 9093, protocol, settings))


@pytest.mark.parametrize("mode", [Mode.MIGRATION, Mode.KRAFT, *modes.RUNNING_CONTROLLERS])
def test_stores_for_all_listeners_become_stores_of_each(mode):
    """Kafka refuses the controllers' PEM beside a store of files that stands for every listener."""
    voters = secured("SSL", TLS)
    keys = given_by(mode, voters)
    assert not set(modes.OWN_STORES) & keys.keys()
    assert keys["listener.name.replication.ssl.keystore.location"] == "/keys/broker.jks"
    assert keys["listener.name.replication.ssl.keystore.password"] == "p"
    assert keys["listener.name.replication.ssl.truststore.location"] == "/keys/trust.jks"
    assert keys["listener.name.clients.ssl.keystore.location"] == "/keys/clients.jks"
    assert keys["listener.name.clients.ssl.truststore.location"] == "/keys/trust.jks"
    assert [key for key in keys if key.startswith("listener.name.open.")] == []
    assert keys["listener.name.controller.ssl.keystore.key"] == f"{KEY}\n"
    assert "listener.name.controller.ssl.keystore.location" not in keys


@pytest.mark.parametrize("voters", [secured("SASL_PLAINTEXT", PLAIN), secured("PLAINTEXT", {})], ids=["PLAIN", "PLAINTEXT"])
def test_stores_stay_where_the_controllers_have_none(voters):
    for mode in (Mode.MIGRATION, Mode.KRAFT):
        assert given_by(mode, voters).items() >= {
            key: value for key, value in OWN.items() if key.startswith("ssl.")}.items()


def test_without_usable_credentials_there_are_no_voters():
    picture = moving("SSL")
    assert spoil(picture, "kubernetes", listener_credentials=TLS).voters is not None
    assert spoil(picture, "kubernetes", listener_credentials="Secret keys does not exist").voters is None
    assert spoil(picture, "kubernetes", listener_credentials={}).voters is None


# --- While nodes are moved ----------------------------------------------------------------------------------------------


def judged(credentials: dict[str, str] | str, written: dict[str, str], protocol: str = "SASL_PLAINTEXT") -> Verdict:
    picture = moving(protocol)
    voters = manifests.voters(picture.spec, "kafka", written)
    files = {"kafka": {}, "kafka-controller": {
        pod: edits.written(edits.controller(Mode.MIGRATION_CONTROLLER, node_id, voters, BROKERS, CLUSTER_ID, "/data"))
        for pod, node_id in names.controller_pods(picture.spec).items()}}
    return check_listener_credentials(spoil(picture, "kubernetes", listener_credentials=credentials, node_files=files))


def test_another_password_moves_no_node():
    other = PLAIN | {"sasl.jaas.config": PLAIN["sasl.jaas.config"].replace("password=", "password=n3w")}
    assert judged(PLAIN, PLAIN).outcome == "Pass"
    assert judged(other, PLAIN).reason == "ListenerCredentialsChanged"
    assert "n3w" not in str(judged(other, PLAIN))


def test_other_certificates_are_taken_along():
    assert judged(TLS | {"ssl.keystore.key": KEY.replace("MA==", "MB==")}, TLS, "SSL").outcome == "Pass"


@pytest.mark.parametrize("gone", ["Secret keys does not exist", {}, PLAIN | {"sasl.mechanism": "OAUTHBEARER"}], ids=str)
def test_a_secret_that_is_gone_or_broken_moves_no_node(gone):
    assert judged(gone, PLAIN).reason == "ListenerCredentialsUnusable"


def test_a_plain_listener_needs_no_secret():
    assert check_listener_credentials(moment("EnableMigration", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER)).outcome == "Pass"
    assert spec_of().controllers.listener.credentials_ref is None


# --- Who the nodes are --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("certificate", "name"), [
    ("wildcard", r"CN=controllers,OU=Kafka,O=Shop\, Inc.,C=DE"),
    ("odd", r'CN=a/b\=c\;d\<e\"f\\g,2.5.4.5=#13023137,1.2.840.113549.1.9.1=#16056140622e63,DC=org'),
    ("several", "O=Ü+CN=\\# x\\ "),
])
def test_names_are_those_that_java_gives(certificate, name):
    """As X500Principal.getName() of Java 17 printed them."""
    assert distinguished_name((CERTIFICATES / f"{certificate}.crt").read_text()) == name


@pytest.mark.parametrize(("rules", "name", "mapped"), [
    ("DEFAULT", "CN=a", "CN=a"),
    ("RULE:^CN=(.*?),OU=(.*?)$/$1@$2/L", "CN=A,OU=b", "a@b"),
    ("RULE:^OU=.*$/x/, RULE:^CN=(.*)$/$1/U", "CN=a", "A"),
    (r"RULE:^CN=(.*?)\/x$/$1/,DEFAULT", "CN=a/x", "a"),
    ("RULE:^OU=.*$/x/,DEFAULT", "CN=a", "CN=a"),
    ("RULE:^OU=.*$/x/", "CN=a", None),
    ("RULE:(?<n>", "CN=a", None),
    ("RULE:*/x/", "CN=a", None),
    ("RULE:CN=(.*)/$2/", "CN=a", None),
    ("RULE:(?=CN)CN=(.*)/$1/", "CN=a", None),                   # of Java's alone
    ("RULE:CN=(a+)+b/x/,DEFAULT", "CN=" + "a" * 5_000, "CN=" + "a" * 5_000),     # with backtracking, the rest of the day
])
def test_rules_map_names_as_in_kafka(rules, name, mapped):
    assert apply_rules(rules, name) == mapped
