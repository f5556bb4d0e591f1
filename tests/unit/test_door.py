"""The door: the script, run by bash as a pod would, against files of every kind; it does what `edits.applied` says of them.

Whether it reads a file as Java does is asked of Java in tests/adapters/test_door_and_java.py.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from javaproperties import loads

from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import modes
from switchover.cluster.door import edits
from switchover.cluster.door.mount import DOOR, KEEP
from switchover.cluster.modes import ControllerListener, Voters
from switchover.kubernetes import reports
from switchover.network.addresses import Address
from unit.door_files import FILES, fuzzed
from unit.pictures import found_of

ADDRESSES = {3000 + number: Address(f"kc-{number}.kc.kafka.svc", 9093) for number in range(3)}
PLAIN = Voters(ADDRESSES, ControllerListener("CONTROLLER", 9093, "PLAINTEXT", {}))
TLS = Voters(ADDRESSES, ControllerListener("CONTROLLER", 9093, "SSL", {
    "listener.name.controller.ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----\nMA==\\\n-----END-----\n",
    "listener.name.controller.ssl.keystore.key": " leading",
    "listener.name.controller.plain.sasl.jaas.config": 'password="\xe9 \N{EURO SIGN}\N{KEY}";'}))
CLUSTER_ID = "-3raY7KWTxSn8W3jfckSSw"
FORMAT = f"format {CLUSTER_ID} 3.9"
READABLE = {name: content for name, content in FILES.items() if name != "malformed"}
TERMINATION = "termination"
EXIT_CONFIG = 78


def keys_of(content: bytes) -> dict[str, str]:
    """What a file says."""
    return dict(loads(content.decode("latin-1")))


@dataclass(frozen=True)
class Started:
    """What the image's own script got, or why it got nothing."""

    code: int
    words: str
    arguments: tuple[str, ...] = ()
    file: bytes = b""

    @property
    def keys(self) -> dict[str, str]:
        return keys_of(self.file)


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """A pod's file system: `kafka-server-start.sh` with the line that leads through the door, and every name resolves."""
    for directory in ("bin", "run", "tools", "metadata"):
        (tmp_path / directory).mkdir()
    script(tmp_path / "door.sh", DOOR)
    own_script(tmp_path, 'printf "%s\\0" "$0" "$@" >"$STARTED"')
    script(tmp_path / "tools" / "getent", "#!/bin/sh\n")
    return tmp_path


@cache
def through_the_door(text: str) -> str:
    """What the init container makes of an image's own script."""
    with TemporaryDirectory() as directory:
        start = script(Path(directory) / "kafka-server-start.sh", f"#!/bin/bash\n: kafka-run-class\n{text}\n")
        subprocess.run(["bash", "-c", KEEP, "keep", start, start], check=True,
                       env={**os.environ, "SWITCHOVER_RUN": directory})
        return (Path(directory) / "start" / start.name).read_text()


def own_script(pod: Path, text: str) -> None:
    """The image's own start script does this."""
    script(pod / "bin" / "kafka-server-start.sh", through_the_door(text))


@pytest.fixture
def controller(pod: Path) -> Path:
    """A controller's pod with a tool that notes with what it was called, and formats."""
    script(pod / "bin" / "kafka-storage.sh", f"""\
#!/bin/sh
printf '%s\\n' "$@" "JMX_PORT=$JMX_PORT" "KAFKA_JMX_OPTS=$KAFKA_JMX_OPTS" >{pod}/formatted
grep -q process.roles=controller {pod}/run/server.properties || exit 3
touch {pod}/metadata/meta.properties
""")
    return pod


def start(pod: Path, directives: Iterable[str] | None, content: bytes | None, *arguments: str,
          options: Sequence[str] = (), java: str = "") -> Started:
    """What Kafka is started with. `content` None: there is no file; `java` are options for it."""
    properties_file, edited, started = pod / "server.properties", pod / "edits", pod / "started"
    for each in (properties_file, edited, started, pod / TERMINATION):
        each.unlink(missing_ok=True)
    if content is not None:
        properties_file.write_bytes(content)
    if directives is not None:
        edited.write_text("".join(f"{each}\n" for each in directives))
    environment = {"PATH": f"{pod / 'tools'}:{os.environ['PATH']}", "SWITCHOVER_EDITS": str(edited),
                   "SWITCHOVER_DOOR": str(pod / "door.sh"), "SWITCHOVER_RUN": str(pod / "run"),
                   "SWITCHOVER_TERMINATION_LOG": str(pod / TERMINATION),
                   "STARTED": str(started), "LC_ALL": "C.UTF-8", "JMX_PORT": "9999", "KAFKA_OPTS": java}
    done = subprocess.run([pod / "bin" / "kafka-server-start.sh", *options, properties_file, *arguments], env=environment,
                          capture_output=True, timeout=60, check=False)
    words = done.stderr.decode(errors="replace")
    if not started.exists():
        return Started(done.returncode, words)
    given = tuple(started.read_bytes().decode().split("\0")[:-1])
    file = next(Path(each).read_bytes() for each in given if each.endswith(".properties"))
    return Started(done.returncode, words, given, file)


# --- modes --------------------------------------------------------------------------------------------------------------


OVERRIDES = {"zookeeper.connect": "zk:2181/other, really", "broker.id": "7", "min.insync.replicas": "2", "a": "\\y z",
             "listener.security.protocol.map": "INTERNAL:SASL_SSL,CONTROLLER:SSL", "ssl.truststore.password": " p\\u0041"}
each_kind = pytest.mark.parametrize(
    ("voters", "overrides"), [(PLAIN, {}), (TLS, OVERRIDES)], ids=["plaintext", "TLS, overrides"])
each_file = pytest.mark.parametrize("name", READABLE)


def as_arguments(overrides: dict[str, str]) -> tuple[str, ...]:
    return tuple(word for key, value in overrides.items() for word in ("--override", f"{key}={value}"))


def assert_that_the_door_does_what_is_said(
        pod: Path, directives: Sequence[str], name: str, overrides: dict[str, str]) -> None:
    found = start(pod, directives, FILES[name], *as_arguments(overrides))
    assert found.code == 0, found.words
    assert found.keys == edits.applied(directives, keys_of(FILES[name]) | overrides)


@each_kind
@pytest.mark.parametrize("mode", [Mode.ZOOKEEPER_RAISED, Mode.MIGRATION, Mode.KRAFT])
@each_file
def test_a_broker_runs_with_what_its_mode_is(
        pod: Path, name: str, mode: str, voters: Voters, overrides: dict[str, str]) -> None:
    live = keys_of(FILES[name]) | overrides
    assert_that_the_door_does_what_is_said(pod, edits.broker(mode, 1, voters, found_of(live)), name, overrides)


@each_kind
@pytest.mark.parametrize("mode", modes.RUNNING_CONTROLLERS)
@each_file
def test_a_controller_runs_with_what_its_mode_is(
        controller: Path, name: str, mode: str, voters: Voters, overrides: dict[str, str]) -> None:
    live = keys_of(FILES[name]) | overrides
    directives = edits.controller(mode, 3000, voters, found_of(live), CLUSTER_ID, str(controller / "metadata"))
    assert_that_the_door_does_what_is_said(controller, directives, name, overrides)


@pytest.mark.parametrize(("voters", "overrides"), [(TLS, {}), (PLAIN, OVERRIDES)], ids=["TLS", "plaintext, overrides"])
@pytest.mark.parametrize("mode", [Mode.MIGRATION, Mode.KRAFT])
@pytest.mark.parametrize("name", ["own stores", "an authorizer", "a listener of the controllers' name"])
def test_stores_and_overrides_each_for_itself(
        pod: Path, name: str, mode: str, voters: Voters, overrides: dict[str, str]) -> None:
    test_a_broker_runs_with_what_its_mode_is(pod, name, mode, voters, overrides)


def test_stores_of_all_listeners_become_those_of_the_brokers_listeners_alone(pod: Path) -> None:
    """Else Kafka takes them for the controllers' listener as well, and refuses two stores of different kinds at once."""
    brokers_ = found_of(keys_of(FILES["own stores"]))
    assert brokers_.encrypted == ("INTERNAL", "CLIENTS")
    keys = start(pod, edits.broker(Mode.MIGRATION, 1, TLS, brokers_), FILES["own stores"]).keys
    assert [key for key in keys if key.startswith("ssl.")] == []
    assert keys["listener.name.internal.ssl.keystore.password"] == "p\\q"
    assert keys["listener.name.internal.ssl.truststore.location"] == "/t"
    assert keys["listener.name.clients.ssl.truststore.location"] == "/u", "its own stays"
    assert {key for key in keys if key.startswith("listener.name.controller.")} == set(TLS.listener.settings)
    assert {key: keys[key] for key in TLS.listener.settings} == TLS.listener.settings


def test_stores_never_come_to_a_listener_of_the_controllers_name(pod: Path) -> None:
    """The brokers' map may name it already."""
    text = b"listener.security.protocol.map=CONTROLLER:SSL,A:SSL\nssl.keystore.location=/k\n"
    keys = start(pod, edits.broker(Mode.MIGRATION, 1, TLS, found_of(keys_of(text))), text).keys
    assert keys["listener.name.a.ssl.keystore.location"] == "/k"
    assert "listener.name.controller.ssl.keystore.location" not in keys


def test_what_no_directive_touches_stays_as_it_is_written(pod: Path) -> None:
    text = b"# mine\n\n  a : 1\\\n   2\nzookeeper.connect=zk\n! and this\r\nb=\xe9\n"
    found = start(pod, ["mode C", "drop zookeeper."], text)
    assert found.file == b"# mine\n\n  a : 1\\\n   2\n! and this\nb=\xe9\n# set by Switchover for mode C\n"


def test_a_file_of_any_kind_is_read_as_the_library_reads_it(pod: Path) -> None:
    """60 of noise; Java is asked about a thousand more."""
    for text in fuzzed(60):
        found = start(pod, ["mode B", "set added=x"], text)
        try:
            keys = keys_of(text)
        except ValueError:
            assert (found.code, found.arguments) == (EXIT_CONFIG, ()), text
            continue
        assert found.code == 0, (text, found.words)
        assert found.keys == {**keys, "added": "x"}, text


@pytest.mark.parametrize("listed", ["", ",", "A:SSL,", "A:SSL,,B:SSL", " A : SSL , CONTROLLER : X , B:SSL", "CONTROLLER:X",
                                    "CONTROLLERS:SSL", "CONTROLLER"])
def test_a_list_is_joined_as_it_is_said(pod: Path, listed: str) -> None:
    directives = ["mode B", "join map CONTROLLER:SSL A:PLAINTEXT"]
    found = start(pod, directives, f"map={listed}\n".encode()).keys
    assert found == edits.applied(directives, {"map": listed.lstrip()})
    assert [item.partition(":")[0].strip() for item in found["map"].split(",")].count("CONTROLLER") == 1


def test_a_copy_or_a_swap_has_its_conditions(pod: Path) -> None:
    directives = ["mode B", "copy a c", "copy b c X", "copy d absent X", "copy e absent", "copy f empty X", "swap c 3 4",
                  "swap b 3 4", "swap absent 3 4"]
    properties = {"b": "1", "c": " 3 ", "empty": ""}
    found = start(pod, directives, b"b=1\nc=\\ 3\\ \nempty=\n").keys
    assert found == edits.applied(directives, properties) == {"a": " 3 ", "b": "1", "c": "4", "d": "X", "empty": "", "f": ""}


# --- arguments ----------------------------------------------------------------------------------------------------------


def test_overrides_become_part_of_the_file_and_lose_against_the_mode(pod: Path) -> None:
    found = start(pod, ["mode B", "set b=ours"], b"a=1\nb=2\nc=3\n", "--override", "a=x y=z", "--override=b=4", "--other",
                  "--override", "d=", options=["-daemon"])
    assert found.arguments == (str(pod / "bin" / "kafka-server-start.sh"), "-daemon", str(pod / "run" / "server.properties"),
                               "--other")
    assert found.keys == {"a": "x y=z", "b": "ours", "c": "3", "d": ""}


def test_in_mode_zookeeper_nothing_is_changed_and_the_marker_goes_along(pod: Path) -> None:
    found = start(pod, ["mode A", "marker A.7"], b"a=1", "--override", "b=\N{EURO SIGN}")
    assert found.arguments[1:] == (str(pod / "server.properties"), "--override", "b=\N{EURO SIGN}", "--override",
                                   "switchover.A.7=1")
    assert found.file == b"a=1"


def test_mode_zookeeper_does_not_even_read_the_file(pod: Path) -> None:
    for content in (*FILES.values(), b"a=\0"):
        assert start(pod, ["mode A"], content).file == content


@pytest.mark.parametrize("letter", ["B", "P"])
def test_the_marker_is_an_override_in_every_mode(pod: Path, letter: str) -> None:
    arguments = start(pod, [f"mode {letter}", f"marker {letter}.7"], b"").arguments
    assert arguments[-2:] == ("--override", f"switchover.{letter}.7=1")


def test_nothing_in_a_file_is_executed(pod: Path) -> None:
    text = b"a$(touch " + bytes(pod) + b"/x)=1\n`id`=2\nb=$(id)\nc[$(id)]=3\n*=4\n@=5\n'=6\n\"=7\n]=8\n&=\\\\&\n"
    found = start(pod, ["mode B", "drop b", "set &=&", "copy d c[$(id)]"], text)
    assert not (pod / "x").exists()
    assert found.keys == {"a$(touch": f"{pod}/x)=1", "`id`": "2", "c[$(id)]": "3", "*": "4", "@": "5", "'": "6", '"': "7",
                          "]": "8", "&": "&", "d": "3"}


# --- a controller's beginning -------------------------------------------------------------------------------------------


def begun(controller: Path, directives: Iterable[str] = ()) -> Started:
    return start(controller, ["mode P", *directives, "set process.roles=controller"], b"broker.id=1\n")


@pytest.mark.parametrize("tool", ["kafka-storage.sh", "kafka-storage"])
def test_a_log_directory_is_formatted_before_kafka_starts(controller: Path, tool: str) -> None:
    """Of the name that Apache's scripts have, or Confluent's; a cluster's id may begin with a dash."""
    (controller / "bin" / "kafka-storage.sh").rename(controller / "bin" / tool)
    found = begun(controller, [f"{FORMAT} {controller}/metadata"])
    assert found.code == 0, found.words
    assert (controller / "formatted").read_text().splitlines() == [
        "format", f"--cluster-id={CLUSTER_ID}", "--release-version=3.9", f"--config={controller}/run/server.properties",
        "JMX_PORT=", "KAFKA_JMX_OPTS= "]


def test_a_log_that_is_there_is_never_formatted_again(controller: Path) -> None:
    (controller / "metadata" / "meta.properties").write_text("version=1\n")
    assert begun(controller, [f"{FORMAT} {controller}/metadata"]).code == 0
    assert not (controller / "formatted").exists()


def test_a_log_directory_that_does_not_exist_yet_is_formatted(controller: Path) -> None:
    (controller / "metadata").rmdir()
    script(controller / "bin" / "kafka-storage.sh", f"#!/bin/sh\nmkdir {controller}/metadata\n")
    assert begun(controller, [f"{FORMAT} {controller}/metadata"]).code == 0
    assert (controller / "metadata").is_dir()


@pytest.mark.parametrize("text", ["#!/bin/sh\necho 'No space left' >&2\nexit 1\n", None], ids=["it fails", "it is missing"])
def test_without_its_format_a_controller_does_not_start(controller: Path, text: str | None) -> None:
    (controller / "bin" / "kafka-storage.sh").unlink()
    if text is not None:
        script(controller / "bin" / "kafka-storage.sh", text)
    found = begun(controller, [f"{FORMAT} {controller}/metadata"])
    assert (found.code, found.arguments) == (EXIT_CONFIG, ())
    assert "the log directory cannot be formatted" in (controller / TERMINATION).read_text()
    assert text is None or "No space left" in found.words, "the tool's own words"


def test_names_are_waited_for_and_not_for_ever(controller: Path) -> None:
    """One resolves at the third time, one never."""
    script(controller / "tools" / "getent", f"""\
#!/bin/sh
echo "$2" >>{controller}/asked
[ "$2" = late ] && [ "$(grep -c late {controller}/asked)" -ge 3 ]
""")
    script(controller / "tools" / "sleep", f"#!/bin/sh\necho $1 >>{controller}/slept\n")
    assert begun(controller, ["names late never"]).code == 0
    asked = (controller / "asked").read_text().split()
    assert (asked.count("late"), asked.count("never")) == (3, 29)
    assert (controller / "slept").read_text().split() == ["1"] * 30, "for all names together"


# --- a trial ------------------------------------------------------------------------------------------------------------


def tried(pod: Path, content: bytes | None, *arguments: str, keys: Iterable[str]) -> tuple[Started, str]:
    """What became of the start script, and the report."""
    found = start(pod, ["mode Trial", "marker n0nce", *(f"tell {key}" for key in keys)], content, *arguments)
    termination = pod / TERMINATION
    return found, termination.read_text(encoding="latin-1") if termination.exists() else ""


@each_file
def test_a_trial_reports_what_is_asked_for_as_kafka_would_read_it_and_starts_nothing(pod: Path, name: str) -> None:
    keys = keys_of(FILES[name]) | OVERRIDES
    asked = sorted(key for key in keys if re.fullmatch(r"[\w.]+", key, re.ASCII))
    found, report = tried(pod, FILES[name], *as_arguments(OVERRIDES), keys=[*asked, "nobody.set.this"])
    assert (found.code, found.arguments) == (0, ())
    assert reports.started_with(report, "n0nce") == {key: keys[key] for key in asked}
    assert not [*(pod / "run").iterdir()], "no file is left"


def test_a_trial_tells_no_more_than_it_is_asked_for(pod: Path) -> None:
    _, report = tried(pod, b"node.id=7\nssl.keystore.password=hunter2\nempty=\n", "--override",
                      "sasl.jaas.config=hunter2", keys=["node.id", "empty"])
    assert report == "trial 2 2 n0nce\nnode.id=7\nempty=\n"
    assert tried(pod, b"", keys=["node.id"])[1] == "trial 2 0 n0nce\n"


@pytest.mark.parametrize(("content", "why"), [
    (None, "no file that can be read"), (FILES["malformed"], "malformed"),
    (b"node.id=" + b"7" * 4096, "longer than a report")])
def test_a_trial_that_cannot_tell_says_why(pod: Path, content: bytes | None, why: str) -> None:
    found, report = tried(pod, content, keys=["node.id"])
    assert (found.code, found.arguments) == (EXIT_CONFIG, ())
    assert why in report
    assert reports.started_with(report, "n0nce") is None


# --- the brokers' login -------------------------------------------------------------------------------------------------


KEYED = """\
listener.security.protocol.map=OUTSIDE:SSL, internal:sasl_ssl
inter.broker.listener.name=INTERNAL
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.internal.scram-sha-512.sasl.jaas.config=Scram required password="a\\\\b";
listener.name.internal.plain.sasl.jaas.config=of another mechanism
listener.name.outside.ssl.keystore.location=/of/another/listener
sasl.jaas.config=Kafka reads no such
listener.name.internal.sasl.login.class=nor such
ssl.keystore.location=/general
ssl.truststore.location=/trust
listener.name.internal.ssl.keystore.location=/own
config.providers=file
config.providers.file.class=FileConfigProvider
min.insync.replicas=2
"""
FILED = "listener.security.protocol.map=INTERNAL:SASL_PLAINTEXT\ninter.broker.listener.name=INTERNAL\n"
LIMITS = {"request.timeout.ms": "20000", "default.api.timeout.ms": "20000"}


@pytest.fixture
def lets_in(controller: Path) -> Path:
    """A controller's pod that has reached two brokers, and Kafka's tool, which keeps what it is given and is let in."""
    (controller / "run" / "reached").write_text("kafka-0:9092,kafka-1:9092")
    script(controller / "tools" / "sleep", f"#!/bin/sh\necho $1 >>{controller}/slept\n")
    return answering(controller, "exit 0")


def answering(controller: Path, what: str) -> Path:
    script(controller / "bin" / "kafka-cluster.sh", f"""\
#!/bin/bash
printf '%s\\n' "$*" "$KAFKA_OPTS" >{controller}/asked
cp {controller}/run/login.* {controller}
{what}
""")
    return controller


def logged_in(controller: Path, content: str, letter: str = "P", options: str = "") -> Started:
    """What becomes of a controller whose pod has this file and these options for Java."""
    return start(controller, [f"mode {letter}", f"{FORMAT} {controller}/metadata", "set process.roles=controller"],
                 content.encode(), java=options)


def test_a_client_logs_in_with_what_the_broker_would(lets_in: Path) -> None:
    found = logged_in(lets_in, KEYED)
    assert found.code == 0, found.words
    assert "a broker of kafka-0:9092,kafka-1:9092 lets this controller in" in found.words
    assert keys_of((lets_in / "login.properties").read_bytes()) == LIMITS | {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512", "sasl.jaas.config": 'Scram required password="a\\b";',
        "ssl.keystore.location": "/own", "ssl.truststore.location": "/trust",
        "config.providers": "file", "config.providers.file.class": "FileConfigProvider"}
    asked, options = (lets_in / "asked").read_text().splitlines()
    assert asked == f"cluster-id --bootstrap-server kafka-0:9092,kafka-1:9092 --config {lets_in}/run/login.properties"
    assert options == ""
    assert not [*(lets_in / "run").glob("login*")]


@pytest.mark.parametrize(("entries", "taken"), [
    ("KafkaClient {\n mine;\n};\nKafkaServer{\n theirs;\n};", "AnotherClient {\n mine;\n};\nKafkaClient {\n theirs;\n};\n"),
    ("a.KafkaServer {x;};internal.KafkaServer {y;};KafkaServer {z;};",
     "a.KafkaServer {x;};KafkaClient {y;};KafkaServer {z;};\n"),
    ("a.KafkaServer {x;}; KafkaServer\n{z;};", "a.KafkaServer {x;}; KafkaClient {z;};\n"),
])
def test_of_a_login_file_the_brokers_entry_is_the_clients(lets_in: Path, entries: str, taken: str) -> None:
    """Kafka takes the entry of the listener's name, in small letters, before the one without."""
    login = lets_in / "server.jaas"
    login.write_text(entries)
    options = f"-Djava.security.auth.login.config=/older -Da=b -Djava.security.auth.login.config={login} -Dc=d"
    assert logged_in(lets_in, FILED, options=options).code == 0
    assert (lets_in / "login.jaas").read_text() == taken
    assert (lets_in / "asked").read_text().splitlines()[1] == (
        f"{options} -Djava.security.auth.login.config={lets_in}/run/login.jaas")


@pytest.mark.parametrize(("text", "why"), [(None, "cannot be read"), ("Client { x; };", "has no entry KafkaServer")])
def test_a_login_file_without_the_brokers_login_is_told(lets_in: Path, text: str | None, why: str) -> None:
    login = lets_in / "server.jaas"
    if text is not None:
        login.write_text(text)
    found = logged_in(lets_in, FILED, options=f"-Djava.security.auth.login.config={login}")
    assert (found.code, found.arguments) == (EXIT_CONFIG, ())
    assert why in (lets_in / TERMINATION).read_text()


@pytest.mark.parametrize("words", [
    "SaslAuthenticationException: Authentication failed", "SslAuthenticationException: SSL handshake failed",
    "LoginException: Unable to obtain password", "Failed to load SSL keystore /x of type JKS",
    "Failed to load PEM SSL keystore"])
def test_a_controller_that_is_not_let_in_is_not_started_and_tries_again(lets_in: Path, words: str) -> None:
    answering(lets_in, f"echo 'ERROR: org.apache.{words}'; echo ' at x'; exit 1")
    for _ in range(2):
        found = logged_in(lets_in, KEYED)
        assert (found.code, found.arguments) == (EXIT_CONFIG, ())
        assert (lets_in / TERMINATION).read_text() == (
            "switchover: this controller cannot log in to the brokers (kafka-0:9092,kafka-1:9092) as they do to one another:"
            f" {words}\n")
        assert not (lets_in / "formatted").exists(), "nothing of it is there"


NO_ANSWER = """\
echo 'WARN Connection to node -1 could not be established'
echo 'java.util.concurrent.ExecutionException: TimeoutException: Call'
echo 'Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node'
echo '	at x'
exit 1
"""


@pytest.mark.parametrize(("what", "told"), [
    (NO_ANSWER, "1: Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node"),
    ("echo SLF4J: Failed to load class; echo Killed; exit 137", "137: Killed")], ids=["a broker is silent", "no exception"])
def test_no_answer_is_no_good_one_and_a_controller_is_not_started_by_it(lets_in: Path, what: str, told: str) -> None:
    answering(lets_in, f"echo >>{lets_in}/tries\n{what}")
    found = logged_in(lets_in, KEYED)
    assert (found.code, found.arguments) == (EXIT_CONFIG, ())
    assert (lets_in / TERMINATION).read_text() == (
        "switchover: it is not known whether the brokers (kafka-0:9092,kafka-1:9092) let this controller in:"
        f" kafka-cluster.sh ended with {told}\n")
    assert len((lets_in / "tries").read_text()) == 3
    assert not (lets_in / "formatted").exists(), "nothing of it is there"


def test_an_image_without_kafkas_tool_tells_its_name(lets_in: Path) -> None:
    (lets_in / "bin" / "kafka-cluster.sh").unlink()
    assert logged_in(lets_in, KEYED).code == EXIT_CONFIG
    assert "let this controller in: kafka-cluster ended with 127:" in (lets_in / TERMINATION).read_text()


def test_a_broker_that_restarts_is_waited_for(lets_in: Path) -> None:
    answering(lets_in, f"echo >>{lets_in}/tries; [ $(wc -l <{lets_in}/tries) -ge 3 ]")
    assert logged_in(lets_in, KEYED).code == 0
    assert (lets_in / "slept").read_text().split() == ["5", "5"]


def test_who_was_let_in_once_is_needed_and_never_kept_down(lets_in: Path) -> None:
    assert logged_in(lets_in, KEYED).code == 0
    answering(lets_in, "echo SaslAuthenticationException; exit 1")
    (lets_in / "asked").unlink()
    assert logged_in(lets_in, KEYED).code == 0
    assert not (lets_in / "asked").exists()


@pytest.mark.parametrize(("content", "letter", "reached"), [
    (KEYED, "F", "kafka-0:9092"), (KEYED, "P", ""),
    ("listener.security.protocol.map=INTERNAL:PLAINTEXT\ninter.broker.listener.name=INTERNAL\n", "P", "kafka-0:9092")],
    ids=["no broker listens for them any more", "none was reached", "nobody logs in"])
def test_there_is_nothing_to_try(lets_in: Path, content: str, letter: str, reached: str) -> None:
    (lets_in / "run" / "reached").write_text(reached)
    assert logged_in(lets_in, content, letter).code == 0
    assert not (lets_in / "asked").exists()


# --- markers ------------------------------------------------------------------------------------------------------------


def test_what_is_written_has_a_marker_that_kafka_shows(pod: Path) -> None:
    directives = edits.broker(Mode.MIGRATION, 1, PLAIN, found_of({}))
    file = edits.written(directives)
    found = start(pod, file.splitlines(), b"a=1\n")
    assert found.arguments[-2:] == ("--override", f"{edits.marker_of(file)}=1")
    assert edits.marker_of(file).startswith(f"{edits.MARKER}B.")
    assert found.keys == edits.applied(file.splitlines(), {"a": "1"}) == edits.applied(directives, {"a": "1"})


EDITED = (Mode.ZOOKEEPER, Mode.ZOOKEEPER_RAISED, Mode.MIGRATION, Mode.KRAFT)


def test_a_marker_tells_edits_from_other_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    found = found_of({})
    files = [edits.written(edits.broker(mode, number, PLAIN, found)) for mode in EDITED for number in (1, 2)]
    markers = [edits.marker_of(file) for file in files]
    assert len(set(markers)) == 5, "the node's id is in mode KRaft alone"
    assert edits.marker_of(edits.written(edits.broker(Mode.MIGRATION, 1, TLS, found))) not in markers
    monkeypatch.setattr(edits, "DOOR", DOOR + "\n")
    again = [edits.marker_of(edits.written(edits.broker(mode, 1, PLAIN, found))) for mode in EDITED]
    assert not {*again} & {*markers}, "another script is another marker"
    assert again == [edits.marker_of(edits.written(edits.broker(mode, 1, PLAIN, found))) for mode in EDITED]


def test_a_file_without_a_marker_shows_none() -> None:
    assert edits.marker_of("") == edits.marker_of("mode A\n") == ""


def test_what_a_file_sets_can_be_read_in_it() -> None:
    settings = edits.settings_of(edits.written(edits.broker(Mode.KRAFT, 1, TLS, found_of({}))))
    assert settings.keys() >= {"process.roles", "node.id", "controller.quorum.voters"}
    assert {key: settings[key] for key in TLS.listener.settings} == TLS.listener.settings


# --- refusals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("directives", "file", "arguments", "words"), [
    (None, b"", (), "edits is missing: this pod has no mode"),
    (["marker x"], b"", (), "names no mode"),
    (["mode X"], b"", (), "names no mode"),
    (["mode B", "delete a"], b"", (), "has a line that nobody understands: delete a"),
    (["mode B"], None, (), "the first argument is no file that can be read"),
    (["mode B"], b"a=\\u12", (), "malformed"),
    (["mode B"], b"a=\0", (), "has a byte of zero"),
    (["mode B"], b"", ("--override",), "the last --override has no KEY=VALUE"),
    (["mode B"], b"", ("--override", "x"), "--override x is not of the form KEY=VALUE"),
    (["mode B"], b"", ("--override", "a=\N{EURO SIGN}"), "--override a has a value that is not ASCII"),
])
def test_kafka_is_not_started_and_the_pod_says_why(
        pod: Path, directives: list[str] | None, file: bytes | None, arguments: tuple[str, ...], words: str) -> None:
    found = start(pod, directives, file, *arguments)
    assert (found.code, found.arguments) == (EXIT_CONFIG, ())
    assert words in found.words
    assert words in (pod / TERMINATION).read_text(), "the kubelet hands it on"


def test_of_the_users_file_nobody_else_can_read_the_copy(pod: Path) -> None:
    """It may hold passwords."""
    start(pod, ["mode B"], b"password=x\n")
    assert (pod / "run" / "server.properties").stat().st_mode & 0o077 == 0


def test_in_a_pod_of_the_release_before_the_door_lies_over_the_script(pod: Path) -> None:
    script(pod / "bin" / "kafka-server-start.sh", DOOR)
    (pod / "run" / "original").write_text('printf "%s\\0" "$0" "$@" >"$STARTED"\n')
    found = start(pod, ["mode B", "set a=2"], b"a=1\n")
    assert (found.arguments[0], found.keys) == (str(pod / "bin" / "kafka-server-start.sh"), {"a": "2"})
    (pod / "run" / "original").unlink()
    found = start(pod, ["mode A"], b"")
    assert found.code == EXIT_CONFIG
    assert "has not kept the image's own start script" in found.words


def test_a_volume_that_cannot_be_written_is_named(pod: Path) -> None:
    (pod / "run" / "server.properties").mkdir()
    found = start(pod, ["mode B"], b"")
    assert (found.code, found.arguments) == (EXIT_CONFIG, ())
    assert "run/server.properties cannot be written" in found.words


def test_stopped_waits_until_it_is_told_to_end(pod: Path) -> None:
    (pod / "edits").write_text("mode Stopped\n")
    environment = {"PATH": os.environ["PATH"], "SWITCHOVER_EDITS": str(pod / "edits"), "SWITCHOVER_RUN": str(pod / "run"),
                   "SWITCHOVER_DOOR": str(pod / "door.sh")}
    door = pod / "bin" / "kafka-server-start.sh"
    with subprocess.Popen([door, "gone"], env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"switchover: stopped: Kafka is not started\n"
        process.terminate()
        assert process.wait(60) == 0
    assert (pod / "run" / "stopped").exists()


@pytest.mark.parametrize("command", [["sh", "bin/kafka-server-start.sh"], ["bash", "kafka-server-start.sh"]])
def test_it_is_called_in_every_way_that_kafkas_own_may_be(controller: Path, command: list[str]) -> None:
    """By another shell, and from its own directory: Apache's are content with both."""
    (controller / "edits").write_text(f"mode P\nformat id 3.9 {controller}/metadata\nset process.roles=controller\n")
    (controller / "server.properties").write_bytes(b"a=1\n")
    environment = {"PATH": os.environ["PATH"], "SWITCHOVER_EDITS": str(controller / "edits"),
                   "SWITCHOVER_RUN": str(controller / "run"), "STARTED": str(controller / "started"),
                   "SWITCHOVER_DOOR": str(controller / "door.sh")}
    directory = controller if "/" in command[1] else controller / "bin"
    done = subprocess.run([*command, controller / "server.properties"], cwd=directory, env=environment, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (controller / "formatted").exists()


def test_the_controllers_heap_counts_also_where_a_command_sets_its_own(pod: Path) -> None:
    own_script(pod, 'printf %s "$KAFKA_HEAP_OPTS" >"$STARTED"')
    (pod / "edits").write_text("mode A\n")
    (pod / "server.properties").write_bytes(b"")
    environment = {"PATH": os.environ["PATH"], "SWITCHOVER_EDITS": str(pod / "edits"), "STARTED": str(pod / "started"),
                   "SWITCHOVER_RUN": str(pod / "run"), "SWITCHOVER_DOOR": str(pod / "door.sh"),
                   "KAFKA_HEAP_OPTS": "-Xmx32g", "SWITCHOVER_HEAP_OPTS": "-Xmx512m"}
    subprocess.run([pod / "bin" / "kafka-server-start.sh", pod / "server.properties"], env=environment, check=True)
    assert (pod / "started").read_text() == "-Xmx512m"


def test_it_needs_no_more_than_an_image_with_kafkas_own_scripts_has(pod: Path) -> None:
    """Bash, and nothing else on the PATH to change a file."""
    bash = shutil.which("bash")
    assert bash is not None
    (pod / "only").mkdir()
    (pod / "only" / "rm").symlink_to(str(shutil.which("rm")))
    (pod / "edits").write_text("mode B\nset a=2\n")
    (pod / "server.properties").write_bytes(b"a=1\n")
    environment = {"PATH": str(pod / "only"), "SWITCHOVER_EDITS": str(pod / "edits"), "SWITCHOVER_RUN": str(pod / "run"),
                   "STARTED": str(pod / "started"), "SWITCHOVER_DOOR": str(pod / "door.sh")}
    subprocess.run([bash, pod / "bin" / "kafka-server-start.sh", pod / "server.properties"], env=environment, check=True)
    assert (pod / "run" / "server.properties").read_bytes() == b"# set by Switchover for mode B\na=2\n"
