"""`kubectl switchover`, installed by krew from the archive that `make krew` packs."""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACK = ROOT / "deploy/krew/pack"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
URL = "https://downloads.example/switchover"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("krew")
    subprocess.run((PACK, sys.executable, directory, URL + "/"), check=True)
    return directory


def built(program: str) -> Path:
    """The directory of what sandbox/build builds under that name."""
    done = subprocess.run([ROOT / "sandbox/build", program], check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip())


def install(packed: Path, home: Path, archive: Path) -> "subprocess.CompletedProcess[str]":
    """By krew, below `home`; it uninstalls only with an index of all plugins, which is on another host."""
    command = (built("linters") / "krew", "install", "--manifest", packed / "switchover.yaml", "--archive", archive)
    return subprocess.run(command, env={**os.environ, "KREW_ROOT": str(home), "HOME": str(home)}, capture_output=True,
                          text=True, check=False)


@pytest.fixture
def installed(packed: Path, tmp_path: Path) -> Path:
    """The link to the program that krew puts on the PATH."""
    done = install(packed, tmp_path / "krew", packed / f"kubectl-switchover-{VERSION}.tar.gz")
    assert done.returncode == 0, done.stderr
    assert "Needs Python 3.11 or newer on the PATH" in done.stderr
    return tmp_path / "krew/bin/kubectl-switchover"


def test_its_manifest_says_where_the_archive_lies_and_which_one_it_is(packed: Path) -> None:
    found: dict[str, Any] = yaml.safe_load((packed / "switchover.yaml").read_text())
    spec, (platform,) = found["spec"], found["spec"]["platforms"]
    assert spec["version"] == f"v{VERSION}"
    assert len(spec["shortDescription"]) <= 50, "krew's index takes no longer one"
    assert platform["selector"]["matchExpressions"] == [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]
    archive = packed / f"kubectl-switchover-{VERSION}.tar.gz"
    assert platform["uri"] == f"{URL}/{archive.name}"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert "@" not in yaml.safe_dump(found)


def test_krew_refuses_another_archive(packed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tar.gz"
    other.write_bytes((packed / f"kubectl-switchover-{VERSION}.tar.gz").read_bytes() + b"x")
    done = install(packed, tmp_path / "krew", other)
    assert done.returncode != 0
    assert "checksum does not match" in done.stderr


def test_the_archive_has_the_wheel_what_it_needs_and_its_licences(packed: Path, installed: Path) -> None:
    store = installed.resolve().parent
    assert {each.name for each in store.iterdir()} == {
        "kubectl-switchover", "LICENSE", "NOTICE", "requirements.txt", f"switchover-{VERSION}-py3-none-any.whl"}
    assert (store / "requirements.txt").read_bytes() == (ROOT / "requirements/cli.txt").read_bytes()
    assert os.access(installed, os.X_OK)


def test_without_a_python_it_says_so_in_one_line(installed: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("dirname", "readlink"):
        (tools / name).symlink_to(shutil.which(name) or "")
    done = subprocess.run(("/bin/sh", installed, "--version"), env={"PATH": str(tools)}, capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        2, "", "kubectl switchover: needs Python 3.11 or newer, with venv and pip, on the PATH\n")


@pytest.mark.long
def test_kubectl_runs_it_and_its_first_call_installs_its_packages(installed: Path) -> None:
    path = os.pathsep.join((str(installed.parent), str(Path(sys.base_prefix, "bin")), os.environ["PATH"]))

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run((built("k8s") / "kubectl", "switchover", *arguments), env={**os.environ, "PATH": path},
                              capture_output=True, text=True, check=False)

    first, second = run("--version"), run("explain", "AwaitingApproval")
    assert (first.returncode, first.stdout, first.stderr) == (
        0, f"{VERSION}\n", "kubectl switchover: the first call installs its packages, once\n")
    assert (second.returncode, second.stdout, second.stderr) == (
        0, (ROOT / "docs/runbooks/AwaitingApproval.md").read_text(), "")
    helped = run("--help")
    assert (helped.returncode, "approve" in helped.stdout) == (0, True), helped
    refused = run("list", "--kubeconfig", "/nowhere")
    assert (refused.returncode, refused.stderr) == (2, "switchover: the kubeconfig /nowhere does not exist\n")
