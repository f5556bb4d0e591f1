"""Configuration by environment variables, by real shells: each pod's own file, and what reaches the image's entrypoint."""

import os
import subprocess
from pathlib import Path

import javaproperties
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patience import stretched
from switchover.core.kraft import environment
from switchover.core.kraft.environment import FILE, NAME, WRAPPER, changes, wrapped
from switchover.core.kraft.modes import properties

SHELLS = ["/bin/dash", "/bin/bash"]
each_shell = pytest.mark.parametrize("shell", SHELLS, ids=["dash", "bash"])
INHERITED = {
    "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181", "KAFKA_BROKER_ID": "1", "KAFKA_OPTS": "-Da='b c' -De=\"f\"\n$HOME `id` \\",
    "JAVA_TOOL_OPTIONS": "", "file": "name", "PATH": os.environ["PATH"],
}


def pod(tmp_path: Path, shell: str, own: str | None, *command: str,
        variables: dict[str, str] = INHERITED) -> subprocess.CompletedProcess[bytes]:
    """The wrapped command in a container that has these variables and its own file, with /bin/sh being this shell."""
    (tmp_path / FILE).unlink(missing_ok=True)
    if own is not None:
        (tmp_path / FILE).write_text(own)
    interpreter, flag, script, name, *rest = wrapped(command)
    assert (interpreter, flag, script, name) == ("/bin/sh", "-c", WRAPPER, NAME)
    script = script.replace(f"{environment.DIRECTORY}/", f"{tmp_path}/")
    return subprocess.run([name, flag, script, name, *rest], executable=shell, env=variables, capture_output=True,
                          timeout=stretched(60), check=False)


def environment_of(done: subprocess.CompletedProcess[bytes]) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    found = dict(item.split("=", 1) for item in done.stdout.decode().split("\0")[:-1])
    return {name: value for name, value in found.items() if name not in ("PWD", "_", "SHLVL", "OLDPWD")}


@each_shell
def test_in_mode_a_the_entrypoint_sees_what_it_saw_before(tmp_path: Path, shell: str) -> None:
    assert environment_of(pod(tmp_path, shell, changes("", "", "KAFKA_"), "env", "-0")) == INHERITED


@each_shell
def test_the_file_takes_away_adds_and_changes(tmp_path: Path, shell: str) -> None:
    before = "zookeeper.connect=zookeeper:2181\nbroker.id=1\nsuper.users=User:a\n"
    own = changes(before, "super.users=User:a;User:b c\nprocess.roles=broker\n", "KAFKA_")
    seen = environment_of(pod(tmp_path, shell, own, "env", "-0"))
    gone = ("KAFKA_ZOOKEEPER_CONNECT", "KAFKA_BROKER_ID")
    unchanged = {name: value for name, value in INHERITED.items() if name not in gone}
    assert seen == {**unchanged, "KAFKA_PROCESS_ROLES": "broker", "KAFKA_SUPER_USERS": "User:a;User:b c"}


@each_shell
def test_arguments_reach_the_entrypoint_as_they_are(tmp_path: Path, shell: str) -> None:
    words = ("-n", "a b", "$HOME", "'\"", "", "*", "new\nline")
    done = pod(tmp_path, shell, changes("", "", "KAFKA_"), "/usr/bin/printf", "%s|", *words)
    assert done.stdout.decode() == "".join(f"{word}|" for word in words)


@each_shell
def test_the_entrypoint_takes_the_place_of_the_shell(tmp_path: Path, shell: str) -> None:
    """Signals must reach it: Kubernetes sends SIGTERM to process 1."""
    done = pod(tmp_path, shell, changes("", "", "KAFKA_"), "/bin/sh", "-c", "kill -TERM $$; sleep 60")
    assert done.returncode == -15
    assert pod(tmp_path, shell, changes("", "", "KAFKA_"), "/bin/sh", "-c", "exit 7").returncode == 7


@each_shell
def test_a_pod_without_its_file_does_not_start_in_whatever_mode(tmp_path: Path, shell: str) -> None:
    done = pod(tmp_path, shell, None, "env")
    assert done.returncode == 1
    assert b"this pod has no mode" in done.stderr
    assert done.stdout == b""


VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@each_shell
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(value=VALUES)
def test_whatever_the_value_an_image_makes_the_property_of_it_that_was_meant(tmp_path: Path, shell: str, value: str) -> None:
    """Quotes, dollars, newlines, spaces in front and all."""
    own = changes("", javaproperties.dumps({"super.users": value}, timestamp=None), "KAFKA_")
    seen = environment_of(pod(tmp_path, shell, own, "env", "-0"))["KAFKA_SUPER_USERS"]
    assert properties(f"super.users={seen}\n") == {"super.users": value}
