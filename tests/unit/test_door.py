"""The door: the script, run by bash as a pod would, against files of every kind; and the modes that its directives make.

Whether it reads a file as Java does is asked of Java in tests/adapters/test_door_and_java.py.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from switchover.core.kraft import modes
from switchover.core.kraft.door import SCRIPT, edits
from switchover.core.kraft.facts import Address
from switchover.core.kraft.modes import ControllerListener, Voters, properties
from unit.door_files import FILES, fuzzed

ADDRESSES = {3000 + number: Address(f"kc-{number}.kc.kafka.svc", 9093) for number in range(3)}
PLAIN = Voters(ADDRESSES, ControllerListener("CONTROLLER", 9093, "PLAINTEXT", {}))
TLS = Voters(ADDRESSES, ControllerListener("CONTROLLER", 9093, "SSL", {
    "listener.name.controller.ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----\nMA==\\\n-----END-----\n",
    "listener.name.controller.ssl.keystore.key": " leading"}))
LOG_DIR = "/var/lib/kafka-controller/data"
TERMINATION = "termination"
EXIT_CONFIG = 78


MAP = "listener.security.protocol.map"


def keys_of(text: str) -> dict[str, str]:
    """What a file says; blanks in the list of listeners say nothing."""
    found = {key: value for key, value in properties(text).items() if key}
    return found | ({MAP: found[MAP].replace(" ", "")} if MAP in found else {})


@dataclass(frozen=True)
class Started:
    """What the image's own script got, or why it got nothing."""

    code: int
    words: str
    arguments: tuple[str, ...] = ()
    file: bytes = b""

    @property
    def keys(self) -> dict[str, str]:
        return keys_of(self.file.decode("latin-1"))


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """A pod's file system: the door over `kafka-server-start.sh`, the original beside it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "run").mkdir()
    door = tmp_path / "bin" / "kafka-server-start.sh"
    door.write_text(SCRIPT)
    door.chmod(0o755)
    (tmp_path / "run" / "original").write_text('printf "%s\\0" "$0" "$@" >"$STARTED"\n')
    return tmp_path


def start(pod: Path, directives: Iterable[str] | None, content: bytes | None, *arguments: str,
          options: Sequence[str] = ()) -> Started:
    """What Kafka is started with. `content` None: there is no file."""
    properties_file, edited, started = pod / "server.properties", pod / "edits", pod / "started"
    for each in (properties_file, edited, started, pod / TERMINATION):
        each.unlink(missing_ok=True)
    if content is not None:
        properties_file.write_bytes(content)
    if directives is not None:
        edited.write_text("".join(f"{each}\n" for each in directives))
    environment = {"PATH": os.environ["PATH"], "SWITCHOVER_EDITS": str(edited), "SWITCHOVER_RUN": str(pod / "run"),
                   "SWITCHOVER_TERMINATION_LOG": str(pod / TERMINATION), "STARTED": str(started), "LC_ALL": "C.UTF-8"}
    done = subprocess.run([pod / "bin" / "kafka-server-start.sh", *options, properties_file, *arguments], env=environment,
                          capture_output=True, timeout=60, check=False)
    words = done.stderr.decode(errors="replace")
    if not started.exists():
        return Started(done.returncode, words)
    given = tuple(started.read_bytes().decode().split("\0")[:-1])
    file = next(Path(each).read_bytes() for each in given if each.endswith(".properties"))
    return Started(done.returncode, words, given, file)


# --- modes --------------------------------------------------------------------------------------------------------------


def encrypted(text: str) -> tuple[str, ...]:
    """The listeners that encrypt, as the live broker tells: from its protocol map."""
    found = properties(text).get("listener.security.protocol.map") or modes.DEFAULT_PROTOCOL_MAP
    parts = (item.partition(":") for item in found.split(","))
    return tuple(name.strip() for name, _, protocol in parts if protocol.strip().upper().endswith("SSL"))


@pytest.mark.parametrize("voters", [PLAIN, TLS], ids=["plaintext", "TLS"])
@pytest.mark.parametrize("mode", "ARBC")
@pytest.mark.parametrize("name", [name for name in FILES if name != "malformed"])
def test_a_broker_runs_with_what_its_mode_is(pod: Path, name: str, mode: str, voters: Voters) -> None:
    text = FILES[name].decode("latin-1")
    brokers = edits.Brokers(modes.is_too_old(text), encrypted(text))
    found = start(pod, edits.broker(mode, 1, voters, brokers), FILES[name])
    assert found.code == 0, found.words
    assert found.keys == keys_of(modes.render_broker(text, mode, 1, voters))


@pytest.mark.parametrize("voters", [PLAIN, TLS], ids=["plaintext", "TLS"])
@pytest.mark.parametrize("mode", "PF")
@pytest.mark.parametrize("name", [name for name in FILES if name != "malformed"])
def test_a_controller_runs_with_what_its_mode_is(pod: Path, name: str, mode: str, voters: Voters) -> None:
    text = FILES[name].decode("latin-1")
    found = start(pod, edits.controller(mode, 3000, voters, edits.Brokers(encrypted=encrypted(text)), LOG_DIR), FILES[name])
    assert found.code == 0, found.words
    assert found.keys == keys_of(modes.render_controller(text, mode, 3000, voters, LOG_DIR))


def test_what_no_directive_touches_stays_as_it_is_written(pod: Path) -> None:
    text = b"# mine\n\n  a : 1\\\n   2\nzookeeper.connect=zk\n! and this\r\nb=\xe9\n"
    found = start(pod, ["mode C", "drop zookeeper."], text)
    assert found.file == b"# mine\n\n  a : 1\\\n   2\n! and this\nb=\xe9\n# set by Switchover for mode C\n"


def test_a_file_of_any_kind_is_read_as_the_library_reads_it(pod: Path) -> None:
    """60 of noise; Java is asked about a thousand more."""
    for text in fuzzed(60):
        found = start(pod, ["mode B", "set added=x"], text)
        try:
            properties(text.decode("latin-1"))
        except ValueError:
            assert (found.code, found.arguments) == (EXIT_CONFIG, ()), text
            continue
        assert found.code == 0, (text, found.words)
        assert found.keys == {**keys_of(text.decode("latin-1")), "added": "x"}, text


# --- arguments ----------------------------------------------------------------------------------------------------------


def test_overrides_become_part_of_the_file_and_lose_against_the_mode(pod: Path) -> None:
    found = start(pod, ["mode B", "set b=ours"], b"a=1\nb=2\nc=3\n", "--override", "a=x y=z", "--override=b=4", "--other",
                  "--override", "d=", options=["-daemon"])
    assert found.arguments == (str(pod / "bin" / "kafka-server-start.sh"), "-daemon", str(pod / "run" / "server.properties"),
                               "--other")
    assert found.keys == {"a": "x y=z", "b": "ours", "c": "3", "d": ""}


def test_in_mode_a_nothing_is_changed_and_the_marker_goes_along(pod: Path) -> None:
    found = start(pod, ["mode A", "marker A.7"], b"a=1", "--override", "b=\N{EURO SIGN}")
    assert found.arguments[1:] == (str(pod / "server.properties"), "--override", "b=\N{EURO SIGN}", "--override",
                                   "switchover.A.7=1")
    assert found.file == b"a=1"


@pytest.mark.parametrize("mode", ["B", "P"])
def test_the_marker_is_an_override_in_every_mode(pod: Path, mode: str) -> None:
    assert start(pod, [f"mode {mode}", f"marker {mode}.7"], b"").arguments[-2:] == ("--override", f"switchover.{mode}.7=1")


def test_nothing_in_a_file_is_executed(pod: Path) -> None:
    text = b"a$(touch " + bytes(pod) + b"/x)=1\n`id`=2\nb=$(id)\nc[$(id)]=3\n*=4\n@=5\n'=6\n\"=7\n]=8\n&=\\\\&\n"
    found = start(pod, ["mode B", "drop b", "set &=&", "copy d c[$(id)]"], text)
    assert not (pod / "x").exists()
    assert found.keys == {"a$(touch": f"{pod}/x)=1", "`id`": "2", "c[$(id)]": "3", "*": "4", "@": "5", "'": "6", '"': "7",
                          "]": "8", "&": "&", "d": "3"}


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


def test_without_the_images_own_script_nothing_is_started(pod: Path) -> None:
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
    environment = {"PATH": os.environ["PATH"], "SWITCHOVER_EDITS": str(pod / "edits"), "SWITCHOVER_RUN": str(pod / "run")}
    door = pod / "bin" / "kafka-server-start.sh"
    with subprocess.Popen([door, "gone"], env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"switchover: stopped: Kafka is not started\n"
        process.terminate()
        assert process.wait(60) == 0
    assert (pod / "run" / "stopped").exists()


def test_it_needs_no_more_than_an_image_with_kafkas_own_scripts_has(pod: Path) -> None:
    """Bash, and nothing else on the PATH to change a file."""
    bash = shutil.which("bash")
    assert bash is not None
    (pod / "only").mkdir()
    (pod / "only" / "rm").symlink_to(str(shutil.which("rm")))
    (pod / "edits").write_text("mode B\nset a=2\n")
    (pod / "server.properties").write_bytes(b"a=1\n")
    environment = {"PATH": str(pod / "only"), "SWITCHOVER_EDITS": str(pod / "edits"), "SWITCHOVER_RUN": str(pod / "run"),
                   "STARTED": str(pod / "started")}
    subprocess.run([bash, pod / "bin" / "kafka-server-start.sh", pod / "server.properties"], env=environment, check=True)
    assert (pod / "run" / "server.properties").read_bytes() == b"# set by Switchover for mode B\na=2\n"
