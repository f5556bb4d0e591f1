"""What others say never becomes a directive of its own: as many lines and words as there should be, or a refusal by name."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchover.answers.errors import Malformed
from switchover.answers.observed import Known, Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import goals, names
from switchover.cluster.door import edits
from switchover.cluster.door.brokers import DATA_FIELD
from switchover.cluster.door.directives import Directive, NotADirective
from switchover.cluster.door.mount import DOOR
from switchover.cluster.gates.on_record import RECORD_HOLDS
from switchover.cluster.modes import ControllerListener, Voters
from switchover.cluster.picture import Picture
from switchover.engine.effects import WriteNodeFiles
from switchover.kafka.client.metadata import advertised_address
from switchover.metadata.parity import MigrationState
from switchover.network.addresses import Address
from switchover.zookeeper.client import znodes
from unit.pictures import CLUSTER_ID, found_of, moment, spoil_each, value

ENDS_OF_LINES = [*"\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\0\x01\x7f", "\r\n"]
EVIL = [f"a{end}set super.users=User:eve" for end in ENDS_OF_LINES] + ["a set b=c", "a drop x", "\ud800", "a\tb", ""]
TEXT = st.one_of(st.sampled_from(EVIL), st.text(max_size=30), st.text("a \n\r\t=:,\u2028\0set", max_size=30))
at_leisure = settings(deadline=None, max_examples=200)
OPERATIONS = ("mode", "marker", "format", "names", "drop", "set", "join", "swap", "copy")
VOTERS = moment("Preflight").voters
assert VOTERS is not None
MOVING = moment("MoveBrokers", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, state=MigrationState.MIGRATION)


def assert_whole(file: str, like: str) -> None:
    """The lines of one file are those of another by their operations and keys, whoever reads them."""
    assert shape(file) == shape(like)
    assert len(file.splitlines()) == len(file.split("\n")) - 1 == len(file.encode().split(b"\n")) - 1
    assert not {*file} & {chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0))}


def shape(file: str) -> list[tuple[str, int]]:
    """Each line's operation with the number of its words, but for what may have blanks: a value, a directory."""
    found = []
    for line in file.split("\n")[:-1]:
        operation, *words = line.split(" ")
        assert operation in OPERATIONS
        found.append((line.partition("=")[0], 1) if operation == "set" else (operation, min(len(words), 3)))
    return found


@pytest.mark.parametrize("text", EVIL)
def test_no_word_of_a_directive_is_more_than_that(text: str) -> None:
    for made in (lambda: Directive("drop", text), lambda: Directive("copy", "a", "b", text),
                 lambda: Directive.setting(text, "x")):
        with pytest.raises(NotADirective):
            made()
    with pytest.raises(NotADirective):
        Directive.setting("a=b", "x")


@pytest.mark.parametrize("end", ENDS_OF_LINES)
def test_a_directory_may_have_blanks_and_no_end_of_a_line(end: str) -> None:
    assert Directive("format", CLUSTER_ID, "3.9", rest="/my data/x") == f"format {CLUSTER_ID} 3.9 /my data/x"
    with pytest.raises(NotADirective, match="must be one line"):
        Directive("format", CLUSTER_ID, "3.9", rest=f"/d{end}drop a")


@at_leisure
@given(TEXT)
def test_the_value_of_a_setting_is_any_text(text: str) -> None:
    directive = Directive.setting("key", text)
    assert_whole(f"{directive}\n", "set key=\n")
    assert edits.applied((directive,), {}) == edits.settings_of(f"{directive}\n") == {"key": text}


# --- what ZooKeeper says ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    f"{CLUSTER_ID} 3.9 /d\nset super.users=User:ANONYMOUS\nformat {CLUSTER_ID}", f"{CLUSTER_ID}\n", "my-cluster",
    CLUSTER_ID[1:], f"{CLUSTER_ID}A", f"{CLUSTER_ID}==", f"{CLUSTER_ID[:-1]}+", f"{CLUSTER_ID[:-1]} ",
    f"{CLUSTER_ID[:-1]}é"])
def test_a_cluster_id_is_22_characters_of_base64url(text: str) -> None:
    with pytest.raises(ValueError, match="is no cluster id of Kafka's") as told:
        znodes.cluster_id(json.dumps({"version": "1", "id": text}).encode())
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 160
    assert znodes.cluster_id(b'{"version":"1","id":"-3raY7KWTxSn8W3jfckS_w"}') == "-3raY7KWTxSn8W3jfckS_w"


@at_leisure
@given(TEXT)
def test_whatever_zookeeper_says_is_the_clusters_id(text: str) -> None:
    """A line of the controllers' edits, once: anything that they are to be set to (review A3)."""
    try:
        cluster_id = znodes.cluster_id(json.dumps({"version": "1", "id": text}).encode())
    except ValueError:
        return
    assert_whole(of_a_controller(cluster_id), of_a_controller(CLUSTER_ID))


def of_a_controller(cluster_id: str) -> str:
    return edits.written(edits.controller(Mode.MIGRATION_CONTROLLER, 3000, VOTERS, found_of({}), cluster_id, "/d"))


HOSTS = ["kafka-0.kafka", "kafka_0.my_net", "10.0.0.1", "fd00::1", "fe80::1%eth0", "localhost", "a" * 255, "k."]
NO_HOSTS = ["", "a b", "-x", "a\n", "a\tb", "$(A)", "a/b", "a;b", "kafkä", "a@b", "a,b", "[::1]", "a" * 256, "a\0"]


@pytest.mark.parametrize("host", NO_HOSTS)
def test_what_is_no_host_is_refused_wherever_it_is_read(host: str) -> None:
    with pytest.raises(ValueError, match="no name or address of a host"):
        Address(host, 9092)
    with pytest.raises(Malformed, match="broker 7 is said to listen at '"):
        advertised_address("broker 7", host, 9092)
    with pytest.raises(ValueError, match=r"endpoint '|no name or address"):
        znodes.endpoints(json.dumps({"endpoints": [f"A://{host}{'x]' if host == '[::1]' else ''}:9092"]}).encode())


@pytest.mark.parametrize("host", HOSTS)
def test_what_kafka_takes_for_a_host(host: str) -> None:
    written = f"[{host}]" if ":" in host else host
    assert znodes.endpoints(json.dumps({"endpoints": [f"A://{written}:9092"]}).encode()) == {"A": Address(host, 9092)}


# --- what brokers say, and what is kept of them -------------------------------------------------------------------------


def files_of(picture: Picture) -> Mapping[str, str]:
    """All edits that would be written."""
    effects = (*goals.controller_files(picture), *goals.broker_files(picture))
    return {pod: text for effect in effects if isinstance(effect, WriteNodeFiles)
            for pod, text in effect.files.items() if text != DOOR}


def told_by_brokers(picture: Picture, **told: str) -> Picture:
    return spoil_each(picture, "broker_settings", lambda found: {**found, **told}, 0)


def with_kept(picture: Picture, **data: Any) -> Picture:
    """Somebody has made the ControllerRevision again."""
    state = value(picture.facts.kubernetes)
    original = dict(state.originals["kafka"])
    original[DATA_FIELD] = {**original[DATA_FIELD], **data}
    return replace(picture, facts=replace(picture.facts, kubernetes=Known(
        replace(state, originals={"kafka": original}), picture.now)))


@at_leisure
@given(st.sampled_from(["log.dirs", "log.dir", "inter.broker.protocol.version", "inter.broker.listener.name",
                        "listener.security.protocol.map"]), TEXT)
def test_whatever_a_broker_says_of_itself(key: str, text: str) -> None:
    picture = told_by_brokers(moment("Preflight"), **({"log.dirs": ""} if key == "log.dir" else {}), **{key: f"{text}:SSL"})
    found = picture.brokers_of("kafka")
    if isinstance(found, Unknown):
        assert found.malformed
        assert found.why.startswith("the settings of the brokers of StatefulSet kafka: ")
        assert found.why.isprintable()
        return
    for mode in (Mode.MIGRATION, Mode.KRAFT, Mode.ZOOKEEPER_RAISED):
        brokers = replace(found.value, image="kafka:3.9")
        assert_whole(edits.written(edits.broker(mode, 1, TLS, brokers)),
                     edits.written(edits.broker(mode, 1, TLS, replace(brokers, version="3.9", encrypted=tuple(
                         "a" * (index + 1) for index, _ in enumerate(brokers.encrypted))))))


TLS = Voters(VOTERS.addresses, ControllerListener("CONTROLLER", 9093, "SSL", {
    "listener.name.controller.ssl.keystore.type": "PEM", "listener.name.controller.ssl.keystore.key": "a key\n"}))


@pytest.mark.parametrize("text", EVIL)
@pytest.mark.parametrize("kept", [lambda text: {"log_dir": text or "\n"}, lambda text: {"release": text},
                                  lambda text: {"encrypted": [text]}], ids=["log_dir", "release", "encrypted"])
def test_what_is_kept_of_the_brokers_stops_the_migration_by_name(kept: Any, text: str) -> None:
    picture = with_kept(MOVING, **kept(text))
    if kept(text).get("log_dir", "").isprintable() and "log_dir" in kept(text):
        return                                                  # blanks are part of a directory
    found = RECORD_HOLDS.check(picture)
    assert (found.outcome, found.reason, found.subject) == ("Fail", "EditsCannotBeWritten", "StatefulSet kafka")
    assert found.message.startswith(f"ControllerRevision {names.original('kafka', 1)}, the backup of StatefulSet kafka: ")
    assert found.message.isprintable()
    assert files_of(picture) == {}, "they stay as they are written"


@pytest.mark.parametrize("broken", [{"encrypted": None}, {"encrypted": [1]}, {"release": 3}, {"log_dir": ["/d"]}])
def test_what_is_kept_in_another_form(broken: Mapping[str, Any]) -> None:
    found = with_kept(MOVING, **broken).brokers_of("kafka")
    assert isinstance(found, Unknown)
    assert "is not of the form that Switchover writes" in found.why


def test_the_edits_of_a_migration_can_be_written() -> None:
    """Or the tests above would pass for nothing."""
    picture = MOVING
    assert RECORD_HOLDS.check(picture).outcome == "Pass"
    assert isinstance(picture.brokers_of("kafka"), Known)
    assert files_of(picture).keys() == {*picture.brokers, *picture.controllers}
