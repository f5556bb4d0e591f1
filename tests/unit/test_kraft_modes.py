"""What every node runs with in every mode, held against files that were read by a person.

golden/demo has the edits of the demo's nodes; golden/nasty the properties that they make of a file with continuation lines,
duplicates, SASL, an authorizer of ZooKeeper's days, stores for all listeners and a listener map that names the controllers
already, whose own listener encrypts. That the door makes the same of it is in test_door.py.
"""

from collections.abc import Mapping
from pathlib import Path

import javaproperties
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchover.api.kafka_migration import BrokerSet
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import modes
from switchover.cluster.door import brokers, edits
from switchover.cluster.modes import ControllerListener, Voters
from switchover.metadata.names import STANDARD_AUTHORIZER
from switchover.network.addresses import Address
from unit import pictures
from unit.pictures import found_of, moment, server_properties

GOLDEN = Path(__file__).parent / "golden"
NASTY = (GOLDEN / "nasty" / "server.properties").read_text(encoding="utf-8")
GIVEN = {"demo": dict(javaproperties.loads(server_properties())), "nasty": dict(javaproperties.loads(NASTY))}
PLAIN = moment("Preflight").voters
assert PLAIN is not None
TLS = Voters(PLAIN.addresses, ControllerListener("CONTROLLER", 9093, "SSL", {
    "listener.name.controller.ssl.keystore.type": "PEM", "listener.name.controller.ssl.keystore.key": "a key\n",
    "listener.name.controller.ssl.truststore.type": "PEM"}))
VOTERS = {"demo": PLAIN, "nasty": TLS}
CLUSTER_ID = "-clusterOnPaperAAAAAAA"
LOG_DIR = "/var/lib/kafka/kraft-controller"
BROKER_ID, CONTROLLER_ID = 1, 3001
WITH_QUORUM = (Mode.MIGRATION, Mode.KRAFT, *modes.RUNNING_CONTROLLERS)
QUORUM = ("controller.quorum.voters", "controller.listener.names", "listener.security.protocol.map")


def directives(properties: Mapping[str, str], mode: str, voters: Voters) -> tuple[str, ...]:
    if mode in modes.BROKERS:
        return edits.broker(mode, BROKER_ID, voters, found_of(properties))
    return edits.controller(mode, CONTROLLER_ID, voters, found_of(properties), CLUSTER_ID, LOG_DIR)


def applied(properties: Mapping[str, str], mode: str, voters: Voters = PLAIN) -> dict[str, str]:
    return edits.applied(directives(properties, mode, voters), properties)


def of(name: str, mode: str) -> dict[str, str]:
    return applied(GIVEN[name], mode, VOTERS[name])


each_file = pytest.mark.parametrize("name", GIVEN)


@pytest.mark.parametrize("mode", [Mode.ZOOKEEPER, Mode.ZOOKEEPER_RAISED, *WITH_QUORUM])
def test_the_edits_of_the_demo_are_as_they_were_approved(mode):
    """Of brokers whose protocol version is too old."""
    text = "".join(f"{line}\n" for line in directives(pictures.given("3.5"), mode, PLAIN))
    assert text == (GOLDEN / "demo" / f"{mode}.edits").read_text(encoding="utf-8")


@pytest.mark.parametrize("mode", WITH_QUORUM)
def test_what_comes_of_a_nasty_file_is_as_it_was_approved(mode):
    text = "".join(f"{key}={value.encode('unicode_escape').decode()}\n" for key, value in sorted(of("nasty", mode).items()))
    assert text == (GOLDEN / "nasty" / f"{mode}.properties").read_text(encoding="utf-8")


# --- brokers ------------------------------------------------------------------------------------------------------------


@each_file
def test_mode_zookeeper_changes_nothing(name):
    assert directives(GIVEN[name], Mode.ZOOKEEPER, VOTERS[name]) == ("mode A",)
    assert of(name, Mode.ZOOKEEPER) == GIVEN[name]


def test_before_there_are_controllers_only_the_modes_without_them_can_be_told():
    old = found_of({modes.PROTOCOL_VERSION: "3.5"})
    assert edits.broker(Mode.ZOOKEEPER, 1, None, old) == ("mode A",)
    assert edits.broker(Mode.ZOOKEEPER_RAISED, 1, None, old) == ("mode R", f"set {modes.PROTOCOL_VERSION}=3.9")
    for mode in (Mode.MIGRATION, Mode.KRAFT):
        with pytest.raises(ValueError, match=f"a broker has no mode '{mode}'"):
            edits.broker(mode, 1, None, old)


def test_mode_migration_adds_and_takes_nothing_away():
    ours = {modes.MIGRATION_FLAG, *QUORUM}
    for name, before in GIVEN.items():
        after = applied(before, Mode.MIGRATION)
        assert {key: item for key, item in after.items() if key not in ours} == {
            key: item for key, item in before.items() if key not in ours}, name
        assert after[modes.MIGRATION_FLAG] == "true"


@each_file
def test_a_broker_on_kraft_has_its_id_under_its_new_name(name):
    keys = of(name, Mode.KRAFT)
    assert (keys["process.roles"], keys["node.id"]) == ("broker", str(BROKER_ID))
    assert keys.get("listeners") == GIVEN[name].get("listeners")


@each_file
@pytest.mark.parametrize("mode", [Mode.KRAFT, Mode.KRAFT_CONTROLLER])
def test_nothing_of_zookeeper_is_left_at_the_end(name, mode):
    keys = of(name, mode)
    assert [key for key in keys if "zookeeper" in key or key in ("broker.id", "inter.broker.protocol.version")] == []


# --- controllers --------------------------------------------------------------------------------------------------------


@each_file
@pytest.mark.parametrize("mode", modes.RUNNING_CONTROLLERS)
def test_controllers_own_their_listener_their_volume_and_no_rack(name, mode):
    keys = of(name, mode)
    assert keys["listeners"] == "CONTROLLER://:9093"
    assert keys["log.dirs"] == LOG_DIR
    assert keys.keys() & {"advertised.listeners", "broker.rack", "log.dir", "broker.id"} == set()
    assert keys["node.id"] == str(CONTROLLER_ID)
    assert keys["process.roles"] == "controller"


@pytest.mark.parametrize("mode", modes.RUNNING_CONTROLLERS)
def test_controllers_are_formatted_for_this_cluster_and_wait_for_one_another(mode):
    lines = directives(GIVEN["demo"], mode, PLAIN)
    hosts = " ".join(f"kafka-controller-{number}.kafka-controller.kafka.svc" for number in range(3))
    letter = {Mode.MIGRATION_CONTROLLER: "P", Mode.KRAFT_CONTROLLER: "F"}[mode]
    assert lines[:3] == (f"mode {letter}", f"format {CLUSTER_ID} 3.9 {LOG_DIR}", f"names {hosts}")
    assert directives({modes.PROTOCOL_VERSION: "3.7-IV4"}, mode, PLAIN)[1] == f"format {CLUSTER_ID} 3.7 {LOG_DIR}"


@pytest.mark.parametrize("mode", modes.RUNNING_CONTROLLERS)
def test_what_the_controllers_decide_in_kraft_stays_the_users_choice(mode):
    """Preferred leaders, replication and minima are their business (ControllerServer); and who has it on the command line
    has it there (public-cases.md BH-25)."""
    decided = {"auto.leader.rebalance.enable": "false", "min.insync.replicas": "2", "default.replication.factor": "3",
               "unclean.leader.election.enable": "true", "num.partitions": "7", "super.users": "User:a"}
    assert decided.items() <= applied(decided, mode).items()


@each_file
def test_a_migrating_controller_reaches_zookeeper_and_the_brokers_as_they_do(name):
    before, keys = GIVEN[name], of(name, Mode.MIGRATION_CONTROLLER)
    for key in ("zookeeper.connect", "password.encoder.secret"):
        assert keys.get(key) == before.get(key)
    assert keys["inter.broker.listener.name"] == before.get(
        "inter.broker.listener.name", before.get("security.inter.broker.protocol"))
    assert "security.inter.broker.protocol" not in keys, "Kafka refuses both"
    assert keys[modes.MIGRATION_FLAG] == "true"


def test_without_a_word_of_it_brokers_speak_plaintext_to_one_another():
    assert applied({}, Mode.MIGRATION_CONTROLLER)["inter.broker.listener.name"] == "PLAINTEXT"


def test_a_stopped_controller_has_no_edits():
    assert edits.STOPPED == ("mode Stopped",)


# --- both ---------------------------------------------------------------------------------------------------------------


@each_file
def test_every_node_knows_the_controllers_the_same_way(name):
    told = [{key: of(name, mode)[key] for key in QUORUM} for mode in WITH_QUORUM]
    assert told == [told[0]] * 4
    assert told[0]["controller.quorum.voters"] == (
        "3000@kafka-controller-0.kafka-controller.kafka.svc:9093,"
        "3001@kafka-controller-1.kafka-controller.kafka.svc:9093,"
        "3002@kafka-controller-2.kafka-controller.kafka.svc:9093")
    listeners = [item.partition(":")[0] for item in told[0]["listener.security.protocol.map"].split(",")]
    assert listeners.count("CONTROLLER") == 1


@pytest.mark.parametrize("mode", [Mode.KRAFT, *modes.RUNNING_CONTROLLERS])
def test_the_authorizer_follows_into_kraft_and_another_one_stays(mode):
    name = "authorizer.class.name"
    for theirs in (modes.ACL_AUTHORIZER, f" {modes.ACL_AUTHORIZER} "):
        assert applied({name: theirs}, mode)[name] == STANDARD_AUTHORIZER
    for theirs in ("org.example.Own", "", STANDARD_AUTHORIZER):
        assert applied({name: theirs}, mode)[name] == theirs
    assert name not in applied({"a": "b"}, mode)


@pytest.mark.parametrize("mode", [Mode.ZOOKEEPER_RAISED, Mode.MIGRATION])
def test_on_zookeeper_the_authorizer_stays(mode):
    assert of("nasty", mode)["authorizer.class.name"] == modes.ACL_AUTHORIZER


@pytest.mark.parametrize("listed", [{}, {"listener.security.protocol.map": ""}])
def test_without_a_protocol_map_kafkas_own_is_written_out(listed):
    keys = applied({"zookeeper.connect": "z:2181", **listed}, Mode.MIGRATION)
    assert keys["listener.security.protocol.map"] == f"{modes.DEFAULT_PROTOCOL_MAP},CONTROLLER:PLAINTEXT"


@pytest.mark.parametrize("mode", WITH_QUORUM)
def test_settings_of_the_controllers_listener_reach_every_node(mode):
    keys = applied({}, mode, TLS)
    assert keys["listener.security.protocol.map"].endswith(",CONTROLLER:SSL")
    assert TLS.listener.settings.items() <= keys.items()


@pytest.mark.parametrize("mode", WITH_QUORUM)
def test_stores_for_all_listeners_move_to_those_that_use_them_and_not_to_the_controllers(mode):
    before = {"listener.security.protocol.map": "A:SSL,B:PLAINTEXT,C:SASL_SSL,CONTROLLER:SSL", "ssl.keystore.location": "/k",
              "ssl.keystore.password": "p", "listener.name.c.ssl.keystore.location": "/own", "ssl.client.auth": "required"}
    moved = {key: value for key, value in applied(before, mode, TLS).items() if "ssl." in key}
    assert moved == {
        "listener.name.a.ssl.keystore.location": "/k", "listener.name.a.ssl.keystore.password": "p",
        "listener.name.c.ssl.keystore.location": "/own", "listener.name.c.ssl.keystore.password": "p",
        "ssl.client.auth": "required", **TLS.listener.settings}
    plain = applied(before, mode)
    assert {key: plain.get(key) for key in before if "ssl." in key} == {key: before[key] for key in before if "ssl." in key}


def test_voters_are_written_in_the_order_of_their_ids():
    listener = ControllerListener("CONTROLLER", 9093, "PLAINTEXT", {})
    assert str(Voters({2: Address("b", 1), 1: Address("a", 1)}, listener)) == "1@a:1,2@b:1"


def test_a_node_has_no_mode_of_the_other_kind():
    for mode in (Mode.MIGRATION_CONTROLLER, Mode.KRAFT_CONTROLLER, Mode.STOPPED, ""):
        with pytest.raises(ValueError, match=f"a broker has no mode '{mode}'"):
            edits.broker(mode, 1, PLAIN, found_of({}))
    for mode in (Mode.ZOOKEEPER, Mode.ZOOKEEPER_RAISED, Mode.MIGRATION, Mode.KRAFT, Mode.STOPPED):
        with pytest.raises(ValueError, match=f"a controller has no mode '{mode}'"):
            edits.controller(mode, 1, PLAIN, found_of({}), CLUSTER_ID, LOG_DIR)


@pytest.mark.parametrize("text", ["a\\b", "a\nb\r\fc", " leading", "é€😀", "a=b:c#d!", "\t"])
def test_a_setting_is_one_line_of_ascii_whatever_it_holds(text):
    """As Kafka's own files are: in which encoding a byte beyond is read depends on who reads it."""
    voters = Voters(PLAIN.addresses, ControllerListener("CONTROLLER", 9093, "SASL_PLAINTEXT", {"x": text}))
    lines = edits.broker(Mode.MIGRATION, 1, voters, found_of({}))
    assert all(line.isascii() and len(line.splitlines()) == 1 for line in lines)
    assert edits.applied(lines, {})["x"] == edits.settings_of("\n".join(lines))["x"] == text


# --- properties of any kind ---------------------------------------------------------------------------------------------

KEYS = st.sampled_from([
    "broker.id", "zookeeper.connect", "zookeeper.session.timeout.ms", "listeners", "authorizer.class.name", "log.dirs",
    "inter.broker.listener.name", "security.inter.broker.protocol", "num.io.threads", "min.insync.replicas", "x.y",
    "listener.security.protocol.map", "inter.broker.protocol.version", "node.id", "ssl.keystore.location",
])
VALUES = st.one_of(st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=12),
                   st.sampled_from(["A:SSL", "A:SSL,CONTROLLER:X", modes.ACL_AUTHORIZER, "3.5", "/k"]))
PROPERTIES = st.dictionaries(KEYS, VALUES, max_size=12)
at_leisure = settings(deadline=None)               # the machine may be busy with other layers


@at_leisure
@given(PROPERTIES)
def test_whatever_the_properties_mode_zookeeper_has_them(properties):
    assert applied(properties, Mode.ZOOKEEPER) == properties


@at_leisure
@given(PROPERTIES, st.sampled_from((Mode.ZOOKEEPER_RAISED, *WITH_QUORUM)), st.sampled_from([PLAIN, TLS]))
def test_whatever_the_properties_edits_twice_are_edits_once(properties, mode, voters):
    lines = directives(properties, mode, voters)
    once = edits.applied(lines, properties)
    assert edits.applied(lines, once) == once


@at_leisure
@given(PROPERTIES, st.sampled_from((Mode.ZOOKEEPER_RAISED, *WITH_QUORUM)), st.sampled_from([PLAIN, TLS]))
def test_whatever_the_properties_those_that_a_mode_does_not_touch_stay(properties, mode, voters):
    after = applied(properties, mode, voters)
    for key in ("num.io.threads", "min.insync.replicas", "x.y"):
        assert after.get(key) == properties.get(key)


@at_leisure
@given(PROPERTIES, st.sampled_from([PLAIN, TLS]))
def test_whatever_the_properties_b_comes_from_a_and_c_from_b_alike(properties, voters):
    """A broker on KRaft has the same whether it comes from the user's own or from what was between."""
    lines = directives(properties, Mode.KRAFT, voters)
    assert edits.applied(lines, applied(properties, Mode.MIGRATION, voters)) == edits.applied(lines, properties)


# --- the protocol version -----------------------------------------------------------------------------------------------


def with_version(version: str) -> dict[str, str]:
    return GIVEN["demo"] | {modes.PROTOCOL_VERSION: version}


@pytest.mark.parametrize("version", ["2.8", "3.5", "3.5-IV2", "3.5.1", " 3.0-IV1 ", "0.10.0"])
def test_a_version_too_old_is_raised_in_r_and_b_and_nowhere_else(version):
    before = with_version(version)
    assert applied(before, Mode.ZOOKEEPER) == before
    assert applied(before, Mode.ZOOKEEPER_RAISED) == before | {modes.PROTOCOL_VERSION: "3.9"}
    assert applied(before, Mode.MIGRATION) == of("demo", Mode.MIGRATION), "as if it had always been the raised one"
    for mode in (Mode.KRAFT, *modes.RUNNING_CONTROLLERS):
        assert modes.PROTOCOL_VERSION not in applied(before, mode)


@pytest.mark.parametrize("version", ["3.6", "3.6-IV2", "3.7.2", "3.8", "3.9", "3.9-IV0"])
def test_a_version_that_will_do_stays_what_it_is(version):
    before = with_version(version)
    assert applied(before, Mode.ZOOKEEPER_RAISED) == before
    assert applied(before, Mode.MIGRATION)[modes.PROTOCOL_VERSION] == version


# --- brokers that are upgraded first --------------------------------------------------------------------------------------


def upgraded_edits(mode: str, version: str) -> tuple[str, ...]:
    found = brokers.find({"spec": {"containers": [{"name": "kafka"}]}}, BrokerSet(name="kafka"),
                         {modes.PROTOCOL_VERSION: version}, "kafka:3.9")
    return edits.broker(mode, BROKER_ID, PLAIN, found)


def test_an_upgraded_broker_keeps_its_protocol_version_until_it_is_raised_or_on_kraft():
    held, raised = (f"set {modes.PROTOCOL_VERSION}={version}" for version in ("3.8-IV0", "3.9"))
    assert upgraded_edits(Mode.ZOOKEEPER, "3.8-IV0") == ("mode A",)
    assert upgraded_edits(Mode.ZOOKEEPER_PINNED, "3.8-IV0") == ("mode U", held)
    assert held in upgraded_edits(Mode.MIGRATION, "3.8-IV0")
    assert f"drop {modes.PROTOCOL_VERSION}" in upgraded_edits(Mode.KRAFT, "3.8-IV0")
    assert upgraded_edits(Mode.ZOOKEEPER_PINNED, "3.4-IV0") == ("mode U", f"set {modes.PROTOCOL_VERSION}=3.4-IV0")
    assert upgraded_edits(Mode.ZOOKEEPER_RAISED, "3.4-IV0") == ("mode R", raised)
    assert raised in upgraded_edits(Mode.MIGRATION, "3.4-IV0")


def test_a_broker_of_the_right_release_keeps_whatever_its_configuration_says():
    found = directives({modes.PROTOCOL_VERSION: "3.8-IV0"}, Mode.MIGRATION, PLAIN)
    assert not [each for each in found if modes.PROTOCOL_VERSION in each]


def test_a_record_of_the_release_before_is_of_brokers_that_are_not_upgraded():
    data = found_of(GIVEN["demo"]).data()
    del data["image"], data["version"]
    kept = brokers.stored({brokers.DATA_FIELD: data})
    assert kept is not None
    assert (kept.image, kept.version) == ("", "")
