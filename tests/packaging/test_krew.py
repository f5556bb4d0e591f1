"""`kubectl switchover` as krew installs it: its manifest by krew's own rules, and the program out of the archive."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACK, LAUNCHER = ROOT / "deploy/krew/pack", ROOT / "deploy/krew/kubectl-switchover"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
URL = "https://downloads.example/switchover"

PLUGIN = {"apiVersion", "kind", "metadata", "spec"}
SPEC = {"version", "shortDescription", "description", "caveats", "homepage", "platforms"}
PLATFORM = {"uri", "sha256", "selector", "files", "bin"}
"""Fields of krew's v1alpha2 (pkg/index/types.go of krew 0.4); it refuses none, and does nothing with others."""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("krew")
    subprocess.run((PACK, sys.executable, directory, URL + "/"), check=True)
    return directory


@pytest.fixture
def installed(packed: Path, tmp_path: Path) -> Path:
    """What krew does: it unpacks into a directory of the version, and links the program into one on the PATH."""
    manifest = yaml.safe_load((packed / "switchover.yaml").read_text())
    store, (platform,) = tmp_path / "store/switchover" / manifest["spec"]["version"], manifest["spec"]["platforms"]
    with tarfile.open(packed / platform["uri"].rpartition("/")[2]) as archive:
        archive.extractall(store, filter="data")
    program = tmp_path / "bin" / "kubectl-switchover"
    program.parent.mkdir()
    program.symlink_to(os.path.relpath(store / platform["bin"], program.parent))
    return program


def test_krew_would_take_the_manifest(packed: Path) -> None:
    """By ValidatePlugin (internal/index/validation/validate.go)."""
    found: dict[str, Any] = yaml.safe_load((packed / "switchover.yaml").read_text())
    assert (found["apiVersion"], found["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert found["metadata"] == {"name": "switchover"}
    spec = found["spec"]
    assert spec["version"] == f"v{VERSION}"
    assert re.fullmatch(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", spec["version"])
    assert 0 < len(spec["shortDescription"]) <= 50
    assert "\n" not in spec["shortDescription"]
    (platform,) = spec["platforms"]
    assert (found.keys() - PLUGIN, spec.keys() - SPEC, platform.keys() - PLATFORM) == (set(), set(), set())
    (selector,) = platform["selector"]["matchExpressions"]
    assert (selector["key"], selector["operator"], selector["values"]) == ("os", "In", ["linux", "darwin"])
    assert platform["bin"] == LAUNCHER.name
    archive = packed / f"kubectl-switchover-{VERSION}.tar.gz"
    assert platform["uri"] == f"{URL}/{archive.name}"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert "@" not in yaml.safe_dump(found)


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
def test_the_first_call_installs_it_and_later_ones_run_it(installed: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.base_prefix, 'bin')}{os.pathsep}{os.environ['PATH']}"

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run((installed, *arguments), env={**os.environ, "PATH": path}, capture_output=True, text=True,
                              check=False)

    first, second = run("--version"), run("explain", "AwaitingApproval")
    assert (first.returncode, first.stdout, first.stderr) == (
        0, f"{VERSION}\n", "kubectl switchover: the first call installs its packages, once\n")
    assert (second.returncode, second.stdout, second.stderr) == (
        0, (ROOT / "docs/runbooks/AwaitingApproval.md").read_text(), "")
    refused = run("list", "--kubeconfig", "/nowhere")
    assert (refused.returncode, refused.stderr) == (2, "switchover: the kubeconfig /nowhere does not exist\n")
