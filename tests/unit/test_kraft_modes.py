"""The server.properties of every node in every mode, held against files that were read by a person.

golden/demo is the demo's own file, golden/nasty one with continuation lines, duplicates, SASL, an authorizer of ZooKeeper's
days and a listener map that names the controllers already.
"""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchover.core.kraft import modes
from switchover.core.kraft.facts import Address
from switchover.core.kraft.modes import ControllerListener, Voters, properties, render_broker, render_controller
from unit.pictures import moment, server_properties

GOLDEN = Path(__file__).parent / "golden"
FILES = {"demo": server_properties(), "nasty": (GOLDEN / "nasty" / "server.properties").read_text(encoding="utf-8")}
VOTERS = moment("Preflight").voters
LOG_DIR = "/var/lib/kafka-controller/data"
BROKER_ID, CONTROLLER_ID = 1, 3001


def rendered(text: str, mode: str) -> str:
    if mode in "ABC":
        return render_broker(text, mode, BROKER_ID, VOTERS)
    return render_controller(text, mode, CONTROLLER_ID, VOTERS, LOG_DIR)


each_file = pytest.mark.parametrize("name", FILES)
each_mode = pytest.mark.parametrize("mode", "ABCPF")


@each_file
@each_mode
def test_a_file_is_rendered_as_it_was_approved(name, mode):
    assert rendered(FILES[name], mode) == (GOLDEN / name / f"{mode}.properties").read_text(encoding="utf-8")


@each_file
def test_mode_a_is_the_users_file_byte_for_byte(name):
    assert rendered(FILES[name], "A") == FILES[name]


@each_file
def test_mode_b_adds_and_takes_nothing_away(name):
    before, after = properties(FILES[name]), properties(rendered(FILES[name], "B"))
    ours = {modes.MIGRATION_FLAG, *modes.QUORUM_KEYS}
    assert {key: item for key, item in after.items() if key not in ours} == {
        key: item for key, item in before.items() if key not in ours}
    assert after[modes.MIGRATION_FLAG] == "true"


@each_file
@each_mode
def test_comments_of_the_user_stay(name, mode):
    comments = [line for line in FILES[name].splitlines() if line.startswith(("#", "!"))]
    assert [line for line in rendered(FILES[name], mode).splitlines() if line in comments] == comments


@each_file
@pytest.mark.parametrize("mode", "CF")
def test_nothing_of_zookeeper_is_left_at_the_end(name, mode):
    keys = properties(rendered(FILES[name], mode))
    assert [key for key in keys if "zookeeper" in key or key in ("broker.id", "inter.broker.protocol.version")] == []


@each_file
def test_controllers_own_their_listener_their_volume_and_no_rack(name):
    for mode in "PF":
        keys = properties(rendered(FILES[name], mode))
        assert keys["listeners"] == "CONTROLLER://:9093"
        assert keys["log.dirs"] == LOG_DIR
        assert keys.keys() & {"advertised.listeners", "broker.rack", "log.dir", "broker.id"} == set()
        assert keys["node.id"] == str(CONTROLLER_ID)
        assert keys["process.roles"] == "controller"


def test_what_the_controllers_decide_in_kraft_stays_the_users_choice():
    """Preferred leaders, replication and minima are the controllers' business from now on (ControllerServer)."""
    text = "auto.leader.rebalance.enable=false\nmin.insync.replicas=2\ndefault.replication.factor=3\n"
    for mode in "PF":
        assert properties(text).items() <= properties(rendered(text, mode)).items()


@each_file
def test_a_migrating_controller_reaches_zookeeper_and_the_brokers_as_they_do(name):
    before, keys = properties(FILES[name]), properties(rendered(FILES[name], "P"))
    for key in ("zookeeper.connect", "password.encoder.secret"):
        assert keys.get(key) == before.get(key)
    assert keys["inter.broker.listener.name"] == before.get(
        "inter.broker.listener.name", before.get("security.inter.broker.protocol"))
    assert "security.inter.broker.protocol" not in keys, "Kafka refuses both"


@each_file
def test_every_node_knows_the_controllers_the_same_way(name):
    told = [{key: properties(rendered(FILES[name], mode))[key] for key in sorted(modes.QUORUM_KEYS)} for mode in "BCPF"]
    assert told == [told[0]] * 4
    assert told[0]["controller.quorum.voters"] == (
        "3000@kafka-controller-0.kafka-controller.kafka.svc:9093,"
        "3001@kafka-controller-1.kafka-controller.kafka.svc:9093,"
        "3002@kafka-controller-2.kafka-controller.kafka.svc:9093")
    listeners = [item.partition(":")[0] for item in told[0]["listener.security.protocol.map"].split(",")]
    assert listeners.count("CONTROLLER") == 1


@pytest.mark.parametrize("mode", "CPF")
def test_the_authorizer_follows_into_kraft_and_another_one_stays(mode):
    keys = properties(rendered(FILES["nasty"], mode))
    assert keys["authorizer.class.name"] == modes.STANDARD_AUTHORIZER
    own = "authorizer.class.name=org.example.Own\n"
    assert properties(rendered(own, mode)).items() >= properties(own).items()
    assert "authorizer.class.name" not in properties(rendered("a=b\n", mode))


def test_without_a_protocol_map_kafkas_own_is_written_out():
    keys = properties(rendered("zookeeper.connect=z:2181\n", "B"))
    assert keys["listener.security.protocol.map"] == f"{modes.DEFAULT_PROTOCOL_MAP},CONTROLLER:PLAINTEXT"


def test_settings_of_the_controllers_listener_reach_every_node():
    listener = ControllerListener("CONTROLLER", 9093, "SSL", {"listener.name.controller.ssl.keystore.location": "/keys"})
    voters = Voters({3000: Address("c", 9093)}, listener)
    for text in (render_broker("", "B", 1, voters), render_broker("", "C", 1, voters),
                 render_controller("", "P", 3000, voters, LOG_DIR), render_controller("", "F", 3000, voters, LOG_DIR)):
        assert properties(text)["listener.security.protocol.map"].endswith(",CONTROLLER:SSL")
        assert properties(text)["listener.name.controller.ssl.keystore.location"] == "/keys"


def test_voters_are_written_in_the_order_of_their_ids():
    listener = ControllerListener("CONTROLLER", 9093, "PLAINTEXT", {})
    assert str(Voters({2: Address("b", 1), 1: Address("a", 1)}, listener)) == "1@a:1,2@b:1"


def test_a_node_has_no_mode_of_the_other_kind():
    with pytest.raises(ValueError, match="a broker has no mode 'P'"):
        render_broker("", "P", 1, VOTERS)
    with pytest.raises(ValueError, match="a controller has no mode 'B'"):
        render_controller("", "B", 1, VOTERS, LOG_DIR)


def test_every_key_that_a_mode_of_a_broker_sets_is_refused_on_the_command_line():
    for text in FILES.values():
        for mode in "BC":
            before, after = properties(text), properties(rendered(text, mode))
            assert {key for key in after if after[key] != before.get(key)} <= modes.BROKER_KEYS


# --- any file at all ----------------------------------------------------------------------------------------------------

KEYS = st.sampled_from([
    "broker.id", "zookeeper.connect", "zookeeper.session.timeout.ms", "listeners", "authorizer.class.name", "log.dirs",
    "inter.broker.listener.name", "security.inter.broker.protocol", "num.io.threads", "min.insync.replicas", "x.y",
    "listener.security.protocol.map", "inter.broker.protocol.version", "node.id",
])
VALUES = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=12)


def line(key: str, sign: str, text: str) -> str:
    escaped = text.replace("\\", "\\\\")
    return f"{key}{sign}{escaped}"


LINES = st.one_of(
    st.builds(line, KEYS, st.sampled_from(["=", ": ", " = "]), VALUES),
    st.builds(lambda key: f"{key}=a,\\\n    b", KEYS),
    st.builds(lambda text: f"# {text}", VALUES),
    st.just(""),
)
at_leisure = settings(deadline=None)               # the machine may be busy with other layers
TEXTS = st.lists(LINES, max_size=12).map("\n".join)


@at_leisure
@given(TEXTS)
def test_whatever_the_file_mode_a_is_the_file(text):
    assert rendered(text, "A") == text


@at_leisure
@given(TEXTS, st.sampled_from("BCPF"))
def test_whatever_the_file_rendering_twice_is_rendering_once(text, mode):
    once = rendered(text, mode)
    assert properties(rendered(once, mode)) == properties(once)


@at_leisure
@given(TEXTS, st.sampled_from("BCPF"))
def test_whatever_the_file_settings_that_a_mode_does_not_touch_stay(text, mode):
    before, after = properties(text), properties(rendered(text, mode))
    for key in ("num.io.threads", "min.insync.replicas", "x.y"):
        assert after.get(key) == before.get(key)


@at_leisure
@given(TEXTS)
def test_whatever_the_file_b_comes_from_a_and_c_from_b_alike(text):
    """A broker's KRaft file is the same whether it is made from the user's file or from the one in between."""
    assert properties(rendered(rendered(text, "B"), "C")) == properties(rendered(text, "C"))


# --- the protocol version -----------------------------------------------------------------------------------------------


def with_version(version: str) -> str:
    text = FILES["demo"]
    assert "inter.broker.protocol.version=3.9\n" in text
    return text.replace("inter.broker.protocol.version=3.9", f"inter.broker.protocol.version = {version}")


@pytest.mark.parametrize("version", ["2.8", "3.5", "3.5-IV2", "3.5.1", " 3.0-IV1 ", "0.10.0"])
def test_a_version_too_old_is_raised_in_r_and_b_and_nowhere_else(version):
    text = with_version(version)
    assert modes.is_too_old(text)
    assert rendered(text, "A") == text
    before = properties(text)
    r, b = properties(render_broker(text, "R", BROKER_ID, VOTERS)), properties(rendered(text, "B"))
    assert r == {**before, modes.PROTOCOL_VERSION: "3.9"}
    assert b == properties(rendered(FILES["demo"], "B")), "as if it had always been the raised one"
    for mode in "CPF":
        assert modes.PROTOCOL_VERSION not in properties(rendered(text, mode))


@pytest.mark.parametrize("version", ["3.6", "3.6-IV2", "3.7.2", "3.8", "3.9", "3.9-IV0", ""])
def test_a_version_that_will_do_stays_what_it_is(version):
    text = with_version(version)
    assert not modes.is_too_old(text)
    assert render_broker(text, "R", BROKER_ID, VOTERS) == text
    assert properties(rendered(text, "B"))[modes.PROTOCOL_VERSION] == version


def test_what_is_no_properties_file_names_no_version():
    assert not modes.is_too_old("inter.broker.protocol.version=3.5\nbad=\\u12\n")


def test_without_a_version_it_is_kafkas_own():
    text = FILES["demo"].replace("inter.broker.protocol.version=3.9\n", "")
    assert not modes.is_too_old(text)
    assert modes.PROTOCOL_VERSION not in properties(rendered(text, "B"))
