"""What the init containers run: one copies the image's own start script with a line that leads through the door; another, in
a controller's pod, keeps any broker from starting there. Bash runs them here.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from javaproperties import loads

from switchover.api.kafka_migration import BrokerSet, BrokerStart
from switchover.cluster.door.mount import DOOR, GUARD, KEEP, TRIAL
from switchover.cluster.ending.trial_job import EDITS
from switchover.kubernetes import reports

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
    def copy(self) -> Path:
        return self.run / "start"

    @property
    def lines(self) -> list[str]:
        """Those of the copied script."""
        return (self.copy / self.start.name).read_text().splitlines()

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

    def keep(self, *known: Path, place: Path | None = None, **more: str) -> "subprocess.CompletedProcess[str]":
        """As the init container does it: the script is an argument, and no file of the image."""
        return subprocess.run(
            ["bash", "-c", KEEP, "switchover-original", self.start, place or self.start.parent, *known],
            env=self.environment(**more), capture_output=True, text=True, timeout=60, check=False)

    def mount(self) -> None:
        """In Kafka's own container the copy lies in the directory's place."""
        shutil.rmtree(self.start.parent)
        self.start.parent.symlink_to(self.copy)


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


# --- what is copied -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["#!/bin/bash", "#!/usr/bin/env bash", "#!/bin/sh -e", ""])
@pytest.mark.parametrize("text", [
    "exec java kafka.Kafka", "kafka-run-class & '&' \\& $0 `id` $(id) %s \\n", "kafka-run-class\n\n# the end"])
def test_a_script_is_copied_with_one_line_in_front(image: Image, first: str, text: str) -> None:
    image.write(image.start, f"{first}\n{text}\n" if first else f"{text}\n")
    done = image.keep()
    assert (done.returncode, done.stderr) == (0, "")
    assert image.lines[0] == (first or "#!/bin/bash")
    assert image.lines[1].endswith('"${SWITCHOVER_DOOR:-/etc/switchover/door.sh}" --start "$0" "$@"; fi')
    assert image.lines[2:] == text.splitlines()
    assert os.access(image.copy / image.start.name, os.X_OK)
    assert image.last_words == ""


def test_a_directory_is_copied_with_all_that_can_be_run_there(image: Image) -> None:
    image.write(image.root / "bin" / "kafka-run-class.sh", "#!/bin/sh\necho runs\n")
    (image.root / "bin" / "link.sh").symlink_to("kafka-run-class.sh")
    assert image.keep().returncode == 0
    assert subprocess.run([image.copy / "link.sh"], capture_output=True, text=True, check=True).stdout == "runs\n"


def test_of_a_directory_with_much_else_the_script_alone_is_copied(image: Image) -> None:
    image.write(image.root / "bin" / "bash", "")
    assert image.keep(place=image.start).returncode == 0
    assert [each.name for each in image.copy.iterdir()] == [image.start.name]


def test_a_script_that_is_a_link_is_copied(image: Image) -> None:
    image.start.rename(image.root / "elsewhere")
    image.start.symlink_to(image.root / "elsewhere")
    assert image.keep().returncode == 0
    assert image.lines[2:] == APACHE.splitlines()[1:]
    assert (image.root / "elsewhere").read_text() == APACHE, "the image's own is as it was"


def test_a_newer_image_takes_the_place_of_what_was_copied(image: Image) -> None:
    """The container runs again where the kubelet restarts its pod's, and the directory is still there."""
    assert image.keep().returncode == 0
    image.write(image.start, f"{APACHE}# newer\n")
    assert image.keep().returncode == 0
    assert image.lines[-1] == "# newer"


# --- refusals -----------------------------------------------------------------------------------------------------------


def test_without_the_script_those_that_there_are_are_named(image: Image) -> None:
    other, missing = image.root / "usr" / "kafka-server-start", image.root / "nowhere"
    image.write(other, APACHE)
    image.start.unlink()
    assert_refused(image, image.keep(missing, other), f"the image has no {image.start}; its start script is {other}."
                   f" Roll back, set in spec.brokers: start: {{script: {other}}}, and try again")
    assert not image.copy.exists()


@pytest.mark.parametrize("how", ["PATH", "KAFKA_HOME"])
def test_a_script_is_found_where_the_image_itself_finds_it(image: Image, how: str) -> None:
    """debezium/container-images has it in /kafka/bin, which is in PATH and in $KAFKA_HOME."""
    script = image.root / "kafka" / "bin" / "kafka-server-start.sh"
    script.parent.parent.mkdir()
    image.write(script, APACHE)
    image.write(image.root / "tools" / "kafka-server-start.sh", "exec /usr/bin/my-own-launcher\n")
    image.start.unlink()
    more = {"PATH": f"{script.parent}:{os.environ['PATH']}"} if how == "PATH" else {
        "PATH": f"{image.root / 'tools'}:{os.environ['PATH']}", "KAFKA_HOME": str(script.parent.parent)}
    assert_refused(image, image.keep(**more), f"its start script is {script}. Roll back, set in spec.brokers:"
                   f" start: {{script: {script}}}, and try again")
    named = yaml.safe_load(image.last_words.partition("spec.brokers: ")[2].partition(", and")[0])
    assert BrokerSet.model_validate({"name": "kafka", **named}).start == BrokerStart(script=str(script))


def test_all_that_there_are_are_named(image: Image) -> None:
    places = [image.root / name / "kafka-server-start" for name in ("a", "b", "c")]
    for place in places:
        image.write(place, APACHE)
    image.start.unlink()
    assert_refused(image, image.keep(*places), f"its start script is {places[0]}, or {places[1]} {places[2]}. Roll back")


def test_without_any_script_that_is_said(image: Image) -> None:
    image.start.unlink()
    assert_refused(image, image.keep(), "no start script of Kafka's in its PATH, in $KAFKA_HOME or where images have theirs")


def test_a_directory_is_no_script(image: Image) -> None:
    image.start.unlink()
    image.start.mkdir()
    assert_refused(image, image.keep(), f"the image has no {image.start}")


def test_what_is_no_script_of_a_shell_is_refused(image: Image) -> None:
    image.write(image.start, "#!/usr/bin/python3\nimport kafka.Kafka\n")
    assert_refused(image, image.keep(), f"{image.start} is no script of a shell, but of /usr/bin/python3")


@pytest.mark.parametrize("content", [b"#!/bin/bash\nexec /opt/zookeeper/bin/zkServer.sh\n", b"", b"\x7fELF\0\0\1\0"])
def test_a_script_that_starts_no_kafka_is_refused(image: Image, content: bytes) -> None:
    image.start.write_bytes(content)
    assert_refused(image, image.keep(), f"{image.start} does not start Kafka: it names neither kafka-run-class nor kafka.")
    assert not image.copy.exists()


def test_a_directory_that_cannot_be_written_is_named(image: Image) -> None:
    image.run.rmdir()
    assert_refused(image, image.keep(), f"{image.copy} cannot be written")


def test_where_nobody_reads_last_words_it_refuses_all_the_same(image: Image) -> None:
    image.start.unlink()
    (image.root / "termination").mkdir()
    done = image.keep()
    assert done.returncode == EXIT_CONFIG
    assert "Is a directory" not in done.stderr


# --- from the init container to Kafka -----------------------------------------------------------------------------------

BESIDE = """\
#!/bin/bash
printf '%s\\n' "${KAFKA_HEAP_OPTS-no heap}" "$@"
while [[ $# -gt 0 && ! -f $1 ]]; do shift; done
cat "$1"
"""
"""A `kafka-run-class.sh` that tells what it was given."""
HEAP = """\
if [ "x$KAFKA_HEAP_OPTS" = "x" ]; then
    export KAFKA_HEAP_OPTS="-Xmx1G -Xms1G"
fi
"""
"""These lines of Kafka's own script are edited by the entry scripts of wurstmeister/kafka and debezium/kafka."""


def started(image: Image, directives: str, command: list[str], **more: str) -> list[str]:
    """The lines that `kafka-run-class.sh` writes, at last."""
    image.write(image.root / "door.sh", DOOR)
    (image.root / "edits").write_text(directives)
    (image.root / "server.properties").write_text("a=1\n")
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True, cwd=image.root, env=image.environment(
            SWITCHOVER_EDITS=str(image.root / "edits"), SWITCHOVER_DOOR=str(image.root / "door.sh"), **more),
    ).stdout.splitlines()


@pytest.mark.parametrize("directives", ["mode A\nmarker A.1\n", "mode B\nmarker B.1\nset b=2\n"], ids=["A", "B"])
@pytest.mark.parametrize("text", [APACHE, APACHE.replace("$(dirname $0)", '$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)')],
                         ids=["by its name", "by its source"])
def test_the_script_is_called_again_with_what_the_door_made(image: Image, text: str, directives: str) -> None:
    """Under its own name: it finds the scripts beside it, and its own defaults and the pod's stay."""
    image.write(image.start, text)
    image.write(image.start.with_name("kafka-run-class.sh"), BESIDE)
    assert image.keep().returncode == 0
    image.mount()
    lines = started(image, directives, [str(image.start), "server.properties", "--override", "c=3"], EXTRA_ARGS="-name mine")
    begins, mode = ["no heap", "-name", "mine", "kafka.Kafka"], directives[5]
    changed = {"A": ["server.properties", "--override", "c=3", "--override", "switchover.A.1=1", "a=1"],
               "B": [str(image.run / "server.properties"), "--override", "switchover.B.1=1", "a=1",
                     "# set by Switchover for mode B"]}[mode]
    assert lines[:len(begins) + len(changed)] == [*begins, *changed]
    assert sorted(lines[len(begins) + len(changed):]) == {"A": [], "B": ["b=2", "c=3"]}[mode]


SED = r"""sed -r -i 's/(export KAFKA_HEAP_OPTS)="(.*)"/\1="-Xmx3g"/g' bin/kafka-server-start.sh"""


@pytest.mark.parametrize(("edit", "heap"), [
    (f"{SED}; exec bin/kafka-server-start.sh", "-Xmx3g"),
    ("chmod +x bin/kafka-server-start.sh; exec bin/kafka-server-start.sh", "-Xmx1G -Xms1G"),
    ("cp bin/kafka-server-start.sh bin/mine.sh; exec bin/mine.sh", "-Xmx1G -Xms1G"),
    ("PATH=$PWD/bin:$PATH exec kafka-server-start.sh", "-Xmx1G -Xms1G"),
    ("exec sh bin/kafka-server-start.sh", "-Xmx1G -Xms1G"),
], ids=["sed -i", "chmod", "cp", "by the path", "by another shell"])
@pytest.mark.parametrize("controller", [False, True], ids=["broker", "controller"])
def test_an_entry_script_may_do_to_it_what_it_does_to_its_own(image: Image, edit: str, heap: str, controller: bool) -> None:
    """And what it edits counts, but for a controller's heap, which is the spec's."""
    image.write(image.start, APACHE.replace("base_dir", HEAP + "base_dir", 1))
    image.write(image.start.with_name("kafka-run-class.sh"), BESIDE)
    assert image.keep().returncode == 0
    image.mount()
    image.write(image.root / "entrypoint", f"#!/bin/bash\nset -e\n{edit} server.properties\n")
    lines = started(image, "mode B\nset b=2\n", [str(image.root / "entrypoint")],
                    **({"SWITCHOVER_HEAP_OPTS": "-Xmx512m"} if controller else {}))
    assert lines[0] == ("-Xmx512m" if controller else heap)
    assert lines[-3:] == ["a=1", "# set by Switchover for mode B", "b=2"]


# --- a trial ------------------------------------------------------------------------------------------------------------


def lay_out(image: Image, *directories: Path) -> "subprocess.CompletedProcess[str]":
    """As the init container of a trial's pod does it."""
    return subprocess.run(
        ["bash", "-c", TRIAL, "switchover-trial", DOOR, f"{EDITS}marker n0nce\n", "version=0\nbroker.id=2\n", *directories],
        env=image.environment(), capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("entry", [
    "exec bin/kafka-server-start.sh server.properties --override node.id=2",
    "bin/kafka-server-start.sh -daemon server.properties --override=node.id=2",
    "sed -n s/^broker.id=/node.id=/p data/meta.properties >>server.properties\n"
    "exec sh bin/kafka-server-start.sh server.properties",
], ids=["exec", "as a daemon", "by the id that the disk tells"])
def test_what_an_entry_script_hands_to_kafka_is_reported_in_its_place(image: Image, entry: str) -> None:
    image.write(image.root / "server.properties", "process.roles=broker\nsasl.jaas.config=hunter2\n")
    assert image.keep().returncode == 0
    assert lay_out(image, image.root / "data").returncode == 0
    image.mount()
    image.write(image.root / "entrypoint", f"#!/bin/bash\nset -e\n{entry}\n")
    laid_out = {"SWITCHOVER_DOOR": str(image.run / "door.sh"), "SWITCHOVER_EDITS": str(image.run / "edits")}
    done = subprocess.run([image.root / "entrypoint"], cwd=image.root, env=image.environment(**laid_out),
                          capture_output=True, text=True, timeout=60, check=True)
    assert "Kafka is not started" in done.stderr
    assert reports.started_with(image.last_words, "n0nce") == {"process.roles": "broker", "node.id": "2"}


def test_a_log_directory_is_a_brokers_and_has_no_room_for_a_metadata_log(image: Image) -> None:
    found = [image.root / "data" / "a", image.root / "data" / "b"]
    assert lay_out(image, *found).returncode == 0
    for each in found:
        assert loads((each / "meta.properties").read_text()) == {"version": "0", "broker.id": "2"}
        assert (each / "__cluster_metadata-0").is_file()


def test_a_log_directory_that_cannot_be_written_is_told(image: Image) -> None:
    (image.root / "data").write_text("")
    assert_refused(image, lay_out(image, image.root / "data"), "data/meta.properties cannot be written")


def test_where_nothing_can_be_rolled_back_that_is_not_advised(image: Image) -> None:
    image.start.unlink()
    done = subprocess.run(["bash", "-c", KEEP, "keep", image.start, image.start], capture_output=True, text=True, timeout=60,
                          env=image.environment(SWITCHOVER_ADVICE=""), check=False)
    assert done.returncode == EXIT_CONFIG
    assert image.last_words.endswith("where images have theirs.\n"), "no advice"


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
