"""What of a configuration of the user's own would not bring the same broker back: each difference, named with the value."""

from collections.abc import Mapping

import pytest

from switchover.cluster.ending.own_configuration import KEYS, Broker, differences, metadata_dir
from switchover.cluster.modes import DEFAULT_PROTOCOL_MAP
from switchover.text.visible import SECRET

VOTERS = ",".join(f"{3000 + n}@kc-{n}.kc.kafka.svc:9093" for n in range(3))
NOW = {
    "process.roles": "broker", "node.id": "2", "broker.id": "2", "controller.quorum.voters": VOTERS,
    "controller.quorum.bootstrap.servers": "", "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://0.0.0.0:9092,EXTERNAL://0.0.0.0:31092",
    "advertised.listeners": "PLAINTEXT://kafka-2.kafka-headless.kafka:9092,EXTERNAL://203.0.113.7:31092",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "security.inter.broker.protocol": "PLAINTEXT", "log.dirs": "/var/lib/kafka/data", "log.dir": "/tmp/kafka-logs",
    "zookeeper.metadata.migration.enable": "false", "authorizer.class.name": "",
    "sasl.mechanism.controller.protocol": "GSSAPI", "sasl.mechanism.inter.broker.protocol": "GSSAPI",
}
"""What a broker of cp-helm-charts tells of itself once it runs on KRaft by its edits, defaults included."""
CHART = {
    "process.roles": "broker", "broker.id": "2", "controller.quorum.voters": VOTERS,
    "controller.listener.names": "CONTROLLER", "listeners": NOW["listeners"],
    "advertised.listeners": NOW["advertised.listeners"],
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "log.dirs": "/var/lib/kafka/data",
}
"""What the chart's values make of the file, where they are right."""


def told(found: Mapping[str, str | None], now: Mapping[str, str | None] = {}) -> list[str]:
    """Of the chart's file and of the running broker, each changed; None takes a key away."""
    file = {key: value for key, value in {**CHART, **found}.items() if value is not None}
    live = {key: value for key, value in {**NOW, **now}.items() if value is not None}
    return [str(each) for each in differences(file, Broker("kafka-2", 2, ("10.0.0.7",), live))]


def test_none_of_what_is_asked_for_holds_a_secret() -> None:
    assert not [key for key in KEYS if SECRET.search(key)]


# --- as three public charts have it ---------------------------------------------------------------------------------------


def test_a_map_that_lacks_a_listener_that_the_chart_advertises() -> None:
    """The values that were on the page of cp-helm-charts: `No security protocol defined for listener EXTERNAL`."""
    wrong, right = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert told({"listener.security.protocol.map": wrong}) == [
        f"listener.security.protocol.map is {wrong}, and must have EXTERNAL:PLAINTEXT"]
    assert told({"listener.security.protocol.map": right}) == []


def test_an_id_that_a_script_takes_from_what_the_migration_left_otherwise() -> None:
    """Bitnami's chart 22: setup.sh finds no node.id in meta.properties, and sets the variable to nothing."""
    assert told({"broker.id": None, "node.id": ""}) == ["node.id is not set, and must be 2, the id of kafka-2"]
    assert told({"broker.id": None, "node.id": "2"}) == []


def test_the_defaults_of_kafka_are_no_difference() -> None:
    """A map that is not set has the controllers' listener, unless something encrypts or authenticates."""
    plain = {"listeners": "PLAINTEXT://:9092", "advertised.listeners": None, "listener.security.protocol.map": None}
    joined = {**plain, "listener.security.protocol.map": f"{DEFAULT_PROTOCOL_MAP},CONTROLLER:PLAINTEXT"}
    assert told(plain, joined) == []
    assert told({**plain, "listeners": None}, joined) == []
    assert told({**plain, "listeners": "SSL://:9093"}, {**joined, "listeners": "SSL://:9093"}) == [
        "listener.security.protocol.map is not set, and must have CONTROLLER:PLAINTEXT"]


# --- key by key -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("found", "words"), [
    ({"process.roles": None}, "process.roles is not set, and must be broker"),
    ({"process.roles": "broker,controller"}, "process.roles is broker,controller, and must be broker"),
    ({"broker.id": None}, "node.id is not set, and must be 2, the id of kafka-2"),
    ({"broker.id": "102"}, "broker.id is 102, and must be 2, the id of kafka-2"),
    ({"node.id": "3"}, "node.id is 3, and must be 2, the id of kafka-2"),
    ({"controller.quorum.voters": None}, f"controller.quorum.voters is not set, and must be {VOTERS}"),
    ({"controller.quorum.voters": VOTERS.replace("3002", "3003")},
     f"controller.quorum.voters is {VOTERS.replace('3002', '3003')}, and must be {VOTERS}"),
    ({"controller.quorum.voters": VOTERS.replace("kc-1", "kafka-1")},
     f"controller.quorum.voters is {VOTERS.replace('kc-1', 'kafka-1')}, and must be {VOTERS}"),
    ({"controller.quorum.voters": VOTERS.rpartition(",")[0]},
     f"controller.quorum.voters is {VOTERS.rpartition(',')[0]}, and must be {VOTERS}"),
    ({"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "kc:9093"},
     f"controller.quorum.voters is not set, and must be {VOTERS} (controller.quorum.bootstrap.servers in its place leaves"
     " this cluster without a leader)"),
    ({"controller.listener.names": "CTRL",
      "listener.security.protocol.map": f"{CHART['listener.security.protocol.map']},CTRL:SSL"},
     "controller.listener.names is CTRL, and must be CONTROLLER"),
    ({"listeners": "PLAINTEXT://:9092"}, "listeners is PLAINTEXT://:9092, and must have EXTERNAL on port 31092"),
    ({"listeners": "PLAINTEXT://:9094,EXTERNAL://:31092"},
     "listeners is PLAINTEXT://:9094,EXTERNAL://:31092, and must have PLAINTEXT on port 9092"),
    ({"advertised.listeners": "PLAINTEXT://kafka-2.kafka-headless.kafka:9092,EXTERNAL://203.0.113.8:31092"},
     "what is advertised for EXTERNAL is 203.0.113.8:31092, and must be 203.0.113.7:31092, where its clients find it now"),
    ({"advertised.listeners": "PLAINTEXT://kafka-2:9092,EXTERNAL://203.0.113.7:31092"},
     "what is advertised for PLAINTEXT is kafka-2:9092, and must be kafka-2.kafka-headless.kafka:9092, where its clients"
     " find it now"),
    ({"advertised.listeners": "PLAINTEXT://kafka-2.kafka-headless.kafka:9092"},
     "what is advertised for EXTERNAL is not set, and must be 203.0.113.7:31092, where its clients find it now"),
    ({"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:SSL,CONTROLLER:PLAINTEXT"},
     "listener.security.protocol.map is PLAINTEXT:PLAINTEXT,EXTERNAL:SSL,CONTROLLER:PLAINTEXT, and must have"
     " EXTERNAL:PLAINTEXT"),
    ({"listeners": f"{CHART['listeners']},NEW://:9099"},
     f"listener.security.protocol.map is {CHART['listener.security.protocol.map']}, and must have NEW:a protocol"),
    ({"inter.broker.listener.name": "EXTERNAL"}, "inter.broker.listener.name is EXTERNAL, and must be PLAINTEXT"),
    ({"log.dirs": None}, "log.dirs is /tmp/kafka-logs, and must be /var/lib/kafka/data, where its data is"),
    ({"log.dirs": "/var/lib/kafka/data/logs"},
     "log.dirs is /var/lib/kafka/data/logs, and must be /var/lib/kafka/data, where its data is"),
    ({"metadata.log.dir": "/meta"}, "metadata.log.dir is /meta, and must be /var/lib/kafka/data, where its metadata log is"),
    ({"zookeeper.metadata.migration.enable": "true"},
     "zookeeper.metadata.migration.enable is true, and must not be set: the migration has ended"),
    ({"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"},
     "authorizer.class.name is kafka.security.authorizer.AclAuthorizer, and must not be set"),
    ({"sasl.mechanism.inter.broker.protocol": "PLAIN"},
     "sasl.mechanism.inter.broker.protocol is PLAIN, and must be GSSAPI"),
])
def test_what_differs_is_named_with_what_it_is_and_must_be(found: dict[str, str | None], words: str) -> None:
    assert told(found) == [words]


@pytest.mark.parametrize("found", [
    {"node.id": " 2 "},
    {"controller.quorum.voters": ", ".join(reversed(VOTERS.split(",")))},
    {"controller.quorum.voters": VOTERS.replace(".svc", ".svc.cluster.local.")},
    {"controller.quorum.voters": VOTERS.replace(".kafka.svc", "")},
    {"controller.quorum.bootstrap.servers": "kc:9093"},
    {"listeners": "EXTERNAL://:31092,PLAINTEXT://[::]:9092"},
    {"listeners": f"{CHART['listeners']},NEW://:9099",
     "listener.security.protocol.map": f"{CHART['listener.security.protocol.map']},NEW:SASL_SSL"},
    {"security.inter.broker.protocol": "PLAINTEXT"},
    {"inter.broker.listener.name": "plaintext"},
    {"log.dirs": "/var/lib/kafka/data/"},
    {"log.dirs": None, "log.dir": "/var/lib//kafka/data"},
    {"metadata.log.dir": "/var/lib/kafka/data"},
    {"zookeeper.metadata.migration.enable": "False"},
])
def test_another_way_to_say_the_same_is_no_difference(found: dict[str, str | None]) -> None:
    assert told(found) == []


def test_the_address_of_its_own_pod_is_another_one_in_the_next_pod() -> None:
    """incubator/kafka advertises POD_IP."""
    def at(host: str) -> dict[str, str | None]:
        return {"advertised.listeners": f"PLAINTEXT://{host}:9092,EXTERNAL://203.0.113.7:31092"}

    assert told(at("10.0.0.99"), at("10.0.0.7")) == []
    assert told(at("10.0.0.99"), at("10.0.0.8")) != [], "that is nobody's it knows of"
    assert told(at("kafka-2"), at("10.0.0.7")) != []


def test_what_nobody_has_set_to_be_advertised_is_where_it_listens() -> None:
    assert told({"advertised.listeners": None}, {"advertised.listeners": None}) == []
    assert told({"advertised.listeners": "PLAINTEXT://kafka-2.a:9092,EXTERNAL://:31092"},
                {"advertised.listeners": None, "listeners": "PLAINTEXT://:9092,EXTERNAL://:31092"}) == []


def test_the_order_of_log_directories_says_where_the_metadata_log_is() -> None:
    two = {"log.dirs": "/a,/b"}
    assert metadata_dir(two) == "/a"
    assert told({"log.dirs": "/b, /a"}, two) == ["metadata.log.dir is /b, and must be /a, where its metadata log is"]
    assert told({"log.dirs": "/b,/a", "metadata.log.dir": "/a"}, two) == []


def test_all_that_differs_is_named() -> None:
    assert [each.split(" ")[0] for each in told(dict.fromkeys(CHART))] == [
        "process.roles", "node.id", "controller.quorum.voters", "controller.listener.names", "listeners", "what", "what",
        "log.dirs"]


def test_a_broker_with_an_authorizer_has_the_same_one() -> None:
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert told({}, {"authorizer.class.name": standard}) == [
        f"authorizer.class.name is not set, and must be {standard}"]
    assert told({"authorizer.class.name": standard}, {"authorizer.class.name": standard}) == []
