"""What the init containers run: one keeps the image's own start script, by which the door goes on; another, in a
controller's pod, keeps any broker from starting there. Bash runs them here.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from javaproperties import loads

from switchover.cluster.door.scripts import DOOR, GUARD, KEEP

EXIT_CONFIG = 78
APACHE = """\
#!/bin/bash
base_dir=$(dirname $0)
EXTRA_ARGS=${EXTRA_ARGS-'-name kafkaServer -loggc'}
exec $base_dir/kafka-run-class.sh $EXTRA_ARGS kafka.Kafka "$@"
"""
"""The last lines of Kafka's own."""


@dataclass(frozen=True)
class Image:
    """An image's file system, the empty directory of a pod beside it, and where the kubelet looks for last words."""

    root: Path

    @property
    def start(self) -> Path:
        return self.root / "bin" / "kafka-server-start.sh"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def kept(self) -> str:
        return (self.run / "original").read_text()

    @property
    def last_words(self) -> str:
        found = self.root / "termination"
        return found.read_text() if found.exists() else ""

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def environment(self, **more: str) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "SWITCHOVER_RUN": str(self.run),
                "SWITCHOVER_TERMINATION_LOG": str(self.root / "termination"), **more}

    def keep(self, *known: Path) -> "subprocess.CompletedProcess[str]":
        """As the init container does it: the script is an argument, and no file of the image."""
        return subprocess.run(["bash", "-c", KEEP, "switchover-original", self.start, *known], env=self.environment(),
                              capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def image(tmp_path: Path) -> Image:
    found = Image(tmp_path)
    found.run.mkdir()
    found.write(found.start, APACHE)
    return found


def assert_refused(image: Image, done: "subprocess.CompletedProcess[str]", words: str) -> None:
    assert done.returncode == EXIT_CONFIG
    assert words in done.stderr
    assert words in image.last_words, "the kubelet hands it on"


# --- what is kept -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    APACHE, APACHE.rstrip("\n"), "exec java kafka.Kafka\n", "kafka-run-class & '&' \\& $0 `id` $(id) %s \\n\n"])
def test_a_script_is_kept_as_it_is(image: Image, text: str) -> None:
    image.write(image.start, text)
    done = image.keep()
    assert (done.returncode, done.stderr) == (0, "")
    assert image.kept == text.rstrip("\n") + "\n"
    assert image.last_words == ""


def test_a_script_that_is_a_link_is_kept(image: Image) -> None:
    image.start.rename(image.root / "elsewhere")
    image.start.symlink_to(image.root / "elsewhere")
    assert image.keep().returncode == 0
    assert image.kept == APACHE


def test_a_newer_image_takes_the_place_of_what_was_kept(image: Image) -> None:
    """The container runs again where the kubelet restarts its pod's, and the directory is still there."""
    assert image.keep().returncode == 0
    image.write(image.start, f"{APACHE}# newer\n")
    assert image.keep().returncode == 0
    assert image.kept == f"{APACHE}# newer\n"


@pytest.mark.parametrize("itself", ["${BASH_SOURCE[0]}", "${BASH_SOURCE}", "$BASH_SOURCE"])
def test_a_script_that_looks_for_itself_finds_its_own_directory(image: Image, itself: str) -> None:
    """Sourced, it would find itself where it is kept."""
    image.write(image.start, f"""\
here="$(cd "$(dirname "{itself}")" && pwd)"
[[ "{itself}" != "$0" ]] || printf '%s\\n' "$here"
: exec "$here/kafka-run-class.sh"
""")
    assert image.keep().returncode == 0
    sourced = subprocess.run(
        ["bash", "-c", f". '{image.run}/original'", image.start], capture_output=True, text=True, check=True)
    assert sourced.stdout.strip() == str(image.start.parent)


# --- refusals -----------------------------------------------------------------------------------------------------------


def test_without_the_script_those_that_there_are_are_named(image: Image) -> None:
    other, missing = image.root / "usr" / "kafka-server-start", image.root / "nowhere"
    image.write(other, APACHE)
    image.start.unlink()
    assert_refused(image, image.keep(missing, other), f"the image has no {image.start}; of the start scripts that are known "
                                                      f"it has: {other}. Roll back, set spec.brokers[].start")
    assert not (image.run / "original").exists()


def test_without_any_script_that_is_said(image: Image) -> None:
    image.start.unlink()
    assert_refused(image, image.keep(), "it has: none. Roll back, set spec.brokers[].start")


def test_a_directory_is_no_script(image: Image) -> None:
    image.start.unlink()
    image.start.mkdir()
    assert_refused(image, image.keep(), f"the image has no {image.start}")


@pytest.mark.parametrize("content", [b"#!/bin/bash\nexec /opt/zookeeper/bin/zkServer.sh\n", b"", b"\x7fELF\0\0\1\0"])
def test_a_script_that_starts_no_kafka_is_refused(image: Image, content: bytes) -> None:
    image.start.write_bytes(content)
    assert_refused(image, image.keep(), f"{image.start} does not start Kafka: it names neither kafka-run-class nor kafka.")
    assert not (image.run / "original").exists()


def test_a_directory_that_cannot_be_written_is_named(image: Image) -> None:
    (image.run / "original").mkdir()
    assert_refused(image, image.keep(), f"{image.run}/original cannot be written")


def test_where_nobody_reads_last_words_it_refuses_all_the_same(image: Image) -> None:
    image.start.unlink()
    (image.root / "termination").mkdir()
    done = image.keep()
    assert done.returncode == EXIT_CONFIG
    assert "Is a directory" not in done.stderr


# --- from the init container to Kafka -----------------------------------------------------------------------------------


@pytest.mark.parametrize("directives", ["mode A\nmarker A.1\n", "mode B\nmarker B.1\nset b=2\n"], ids=["A", "B"])
@pytest.mark.parametrize("text", [APACHE, APACHE.replace("$(dirname $0)", '$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)')],
                         ids=["by its name", "by its source"])
def test_the_door_goes_on_by_what_was_kept(image: Image, text: str, directives: str) -> None:
    """The original under its own name: it finds the script beside it, and its own defaults and the pod's stay."""
    image.write(image.start, text)
    image.write(image.start.with_name("kafka-run-class.sh"), """\
#!/bin/bash
printf '%s\\n' "$@"
while [[ $# -gt 0 && ! -f $1 ]]; do shift; done
cat "$1"
""")
    assert image.keep().returncode == 0
    image.write(image.start, DOOR)                               # now it is mounted over it, in Kafka's own container
    (image.root / "edits").write_text(directives)
    (image.root / "server.properties").write_text("a=1\n")
    done = subprocess.run(
        [image.start, image.root / "server.properties", "--override", "c=3"], capture_output=True, text=True, timeout=60,
        check=True, env=image.environment(SWITCHOVER_EDITS=str(image.root / "edits"), EXTRA_ARGS="-name mine"))
    begins, mode = ["-name", "mine", "kafka.Kafka"], directives[5]
    changed = {"A": [str(image.root / "server.properties"), "--override", "c=3", "--override", "switchover.A.1=1", "a=1"],
               "B": [str(image.run / "server.properties"), "--override", "switchover.B.1=1", "a=1",
                     "# set by Switchover for mode B"]}[mode]
    lines = done.stdout.splitlines()
    assert lines[:len(begins) + len(changed)] == [*begins, *changed]
    assert sorted(lines[len(begins) + len(changed):]) == {"A": [], "B": ["b=2", "c=3"]}[mode]


# --- no broker in a controller's pod ------------------------------------------------------------------------------------


def guard(image: Image, directory: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["bash", "-c", GUARD, "switchover-guard", directory], env=image.environment(), capture_output=True,
                          text=True, timeout=60, check=False)


def test_a_broker_finds_itself_in_another_cluster(image: Image) -> None:
    """It compares the id in its log directory with the cluster's before it registers."""
    done = guard(image, image.root / "data" / "logs")
    assert (done.returncode, done.stderr) == (0, "")
    assert loads((image.root / "data" / "logs" / "meta.properties").read_text()) == {
        "version": "0", "broker.id": "2147483646", "cluster.id": "switchover-no-broker-here"}


def test_what_a_directory_says_already_stays(image: Image) -> None:
    """The pod's volume is older than this start of it."""
    image.write(image.root / "data" / "meta.properties", "version=1\n")
    assert guard(image, image.root / "data").returncode == 0
    assert (image.root / "data" / "meta.properties").read_text() == "version=1\n"


@pytest.mark.parametrize("obstacle", ["data", "data/meta.properties/x"])
def test_without_its_guard_a_controller_does_not_start(image: Image, obstacle: str) -> None:
    """A file where the directory would be; or, of a link to nowhere, a file that cannot be written."""
    if obstacle == "data":
        (image.root / "data").write_text("")
    else:
        (image.root / "data").mkdir()
        (image.root / "data" / "meta.properties").symlink_to(image.root / "nowhere" / "x")
    assert_refused(image, guard(image, image.root / "data"), f"{image.root}/data cannot be written")
