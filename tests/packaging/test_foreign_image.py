"""The operator's image for a machine of another kind, made on this one: what is in it, as nothing of it can run here."""

import json
import os
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

import notice

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("SWITCHOVER_CACHE") or
             Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "switchover"))
STORAGE = Path(os.environ.get("BUILDAH_ROOT") or CACHE / "containers")
BUILDAH = ("buildah", "--root", str(STORAGE), "--runroot", f"{STORAGE}-run", "--storage-driver", "overlay")
EITHER = "localhost/switchover/python-either"
"""A list of two images, as a registry has under one name."""
AARCH64 = 183
"""e_machine of an ELF file (elf.h)."""


def run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout.strip()


@pytest.fixture
def image() -> Iterator[str]:
    """It, by `make image`, whose base is for both architectures."""
    run(ROOT / "sandbox/images/build", "python", "python-arm64")
    subprocess.run((*BUILDAH, "manifest", "rm", EITHER), capture_output=True)        # of a run that was ended
    run(*BUILDAH, "manifest", "create", EITHER, "localhost/switchover/python:3.11", "localhost/switchover/python-arm64:3.11")
    certificates = os.environ.get("PIP_CERT", "")
    trusted = f" --volume {certificates}:/run/host-ca.crt:ro --build-arg PIP_CERT=/run/host-ca.crt" if certificates else ""
    flags = f"--isolation chroot --network host --pull-never --layers --format docker{trusted}"
    run("make", "image", "ARCHITECTURE=arm64", f"IMAGE_ENGINE={' '.join(BUILDAH)}", f"BASE_IMAGE={EITHER}",
        f"IMAGE_FLAGS={flags}")
    yield f"localhost/switchover/operator:{run('make', '--silent', 'version')}-arm64"
    run(*BUILDAH, "manifest", "rm", EITHER)


@pytest.fixture
def root(image: str) -> Iterator[Path]:
    container = run(*BUILDAH, "from", "--pull-never", image)
    try:
        yield Path(run(*BUILDAH, "mount", container))
    finally:
        run(*BUILDAH, "rm", container)


def machine(file: Path) -> int | None:
    """For which an ELF file is; None for any other."""
    with file.open("rb") as opened:
        head = opened.read(20)
    return struct.unpack_from("<H", head, 18)[0] if head.startswith(b"\x7fELF") else None


@pytest.mark.long
def test_it_is_for_that_machine_and_holds_nothing_of_this_one(image: str, root: Path) -> None:
    told = json.loads(run(*BUILDAH, "inspect", "--type", "image", image))["OCIv1"]
    assert (told["os"], told["architecture"], told["config"]["User"]) == ("linux", "arm64", "10001:10001")
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in told["config"]["Labels"].items()}
    assert labels.keys() >= {"title", "description", "licenses"}
    assert labels["version"] == run("make", "--silent", "version")
    assert labels["revision"].removesuffix("-dirty") == run("git", "rev-parse", "HEAD")
    files = [file for file in root.rglob("*") if file.is_file() and not file.is_symlink()]
    machines = Counter(found for file in files if (found := machine(file)) is not None)
    assert machines.keys() == {AARCH64}
    of_packages = [file for file in files if file.is_relative_to(root / "opt/venv") and machine(file) is not None]
    assert len(of_packages) >= 40
    names = " ".join(file.name for file in of_packages)
    assert "aarch64-linux-gnu.so" in names
    assert "x86_64" not in names


@pytest.mark.long
def test_all_that_is_locked_is_in_it_and_its_program_finds_its_python(root: Path) -> None:
    (packages,) = (root / "opt/venv/lib").glob("python3*/site-packages")
    there = {canonicalize_name(each.name.partition("-")[0]) for each in packages.glob("*.dist-info")}
    assert there == {canonicalize_name(each) for each in notice.locked("operator")} | {"switchover"}
    assert list(packages.rglob("api_server.*.pyc"))
    program = (root / "opt/venv/bin/switchover").read_text()
    assert program.startswith("#!/opt/venv/bin/python")
    python = root / "opt/venv/bin/python"
    while python.is_symlink():
        link = Path(os.readlink(python))
        python = root / link.relative_to("/") if link.is_absolute() else python.parent / link
    assert machine(python) == AARCH64
