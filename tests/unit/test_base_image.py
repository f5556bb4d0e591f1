"""The base image is made of the very packages that are locked, or not at all. A stand-in of debootstrap puts them there."""

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

BASE = Path(__file__).parents[2] / "sandbox/images/base"
DEBOOTSTRAP = """#!/bin/sh
for root; do :; done
[ "$*" = "--variant=minbase --force-check-gpg bookworm $root" ] || exit 9
mkdir -p $root/var/lib/apt/lists $root/var/cache/apt $root/usr/share/doc/bash
mkdir -p $root/etc/apt/apt.conf.d $root/etc/dpkg/dpkg.cfg.d
printf packages >$root/var/lib/apt/lists/mirror_debian_dists_bookworm_InRelease
touch $root/usr/share/doc/bash/copyright $root/usr/share/doc/bash/changelog.gz
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A copy of its directory, and a place for the image."""
    shutil.copytree(BASE, tmp_path / "base")
    program = tmp_path / "debootstrap"
    program.write_text(DEBOOTSTRAP)
    program.chmod(0o755)
    (tmp_path / "image").mkdir()
    return tmp_path


def make(base: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run((base / "base/rootfs", base / "image"), env={"PATH": f"{base}:/usr/sbin:/usr/bin:/sbin:/bin"},
                          capture_output=True, text=True, check=False)


def test_other_packages_make_no_image_and_the_new_lock_is_told(base: Path) -> None:
    done = make(base)
    assert done.returncode == 1
    assert f"rootfs: Debian's packages are not those that {base}/base/InRelease.sha256 locks" in done.stderr
    assert done.stderr.splitlines()[-1] == f"{hashlib.sha256(b'packages').hexdigest()}  -"
    assert not (base / "image/rootfs.tar").exists()


def test_the_locked_ones_make_an_image_that_holds_apt_to_them_and_keeps_their_licences(base: Path) -> None:
    lock = f"{hashlib.sha256(b'packages').hexdigest()}  -\n"
    (base / "base/InRelease.sha256").write_text(lock)
    done = make(base)
    assert done.returncode == 0, done.stderr
    with tarfile.open(base / "image/rootfs.tar") as image:
        names = image.getnames()
        locked, hook = (image.extractfile(f"./etc/apt/{name}") for name in ("InRelease.sha256", "apt.conf.d/locked"))
        assert locked is not None
        assert locked.read().decode() == lock
        assert hook is not None
        command = hook.read().decode().split('"')[1].replace("/var/lib/apt/lists", str(base)).replace(
            "/etc/apt", str(base / "base"))
    assert "./usr/share/doc/bash/copyright" in names
    assert not [name for name in names if "changelog" in name or "_InRelease" in name]
    file = base / "mirror_debian_dists_bookworm_InRelease"
    for content, accepted in (("packages", True), ("others", False)):
        file.write_text(content)
        assert (subprocess.run(("sh", "-c", command), capture_output=True, check=False).returncode == 0) is accepted
