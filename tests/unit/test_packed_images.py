"""What sandbox/load-image keeps of images: only what is there whole is believed, else it is packed again."""

import hashlib
import io
import json
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

IMAGES = Path(__file__).parents[2] / "sandbox/images"
NAME = "localhost/switchover/kafka:3.9.2"


class Storage:
    """A directory of packed images, and a buildah that has one image of two layers."""

    def __init__(self, where: Path) -> None:
        self.packed = where / "packed"
        self.buildah = where / "buildah"
        self.buildah.write_text('#!/bin/bash\necho "$*" >>"$0.log"\nto=${@: -1}\ncp -r "$0.image" "${to#dir:}"\n')
        self.buildah.chmod(0o755)
        self.changed("first")

    def changed(self, content: str) -> None:
        """The image is built anew."""
        image = self.buildah.with_suffix(".image")
        image.mkdir(exist_ok=True)
        for path in image.iterdir():
            path.unlink()
        parts = [part.encode() for part in (f"config of {content}", "a layer that all share", f"a layer of {content}")]
        told = [{"digest": f"sha256:{hashlib.sha256(part).hexdigest()}", "size": len(part)} for part in parts]
        for part, named in zip(parts, told, strict=True):
            (image / str(named["digest"]).removeprefix("sha256:")).write_bytes(part)
        (image / "version").write_text("Directory Transport Version: 1.1\n")
        (image / "manifest.json").write_text(json.dumps({"mediaType": "m", "config": told[0], "layers": told[1:]}))
        self.id, *self.layers = (str(named["digest"]).removeprefix("sha256:") for named in told)

    def pack(self) -> None:
        subprocess.run([IMAGES / "pack", self.packed, NAME, self.id, self.buildah], check=True, capture_output=True)

    @property
    def pushes(self) -> int:
        return len(self.buildah.with_suffix(".log").read_text().splitlines())

    def blob(self, name: str) -> Path:
        return self.packed / "blobs/sha256" / name

    def archived(self) -> set[str]:
        """The blobs in the archive that a node would get."""
        written = subprocess.run([IMAGES / "archive", self.packed, NAME], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(written)) as archive:
            return {Path(name).name for name in archive.getnames()}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    made = Storage(tmp_path)
    made.pack()
    return made


def test_an_image_that_is_there_whole_is_not_packed_again(storage: Storage) -> None:
    storage.pack()
    assert storage.pushes == 1
    assert {storage.id, *storage.layers} <= storage.archived()


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("left", [None, b"", b"a laye"])
def test_one_of_which_a_blob_is_gone_or_cut_short_is_packed_again(storage: Storage, part: int, left: bytes | None) -> None:
    blob = storage.blob((storage.id, *storage.layers)[part])
    whole = blob.read_bytes()
    blob.unlink()
    if left is not None:
        blob.write_bytes(left)
    storage.pack()
    assert storage.pushes == 2
    assert blob.read_bytes() == whole
    assert {storage.id, *storage.layers} <= storage.archived()


def test_one_that_was_built_anew_is_packed_again(storage: Storage) -> None:
    storage.changed("second")
    storage.pack()
    assert storage.pushes == 2
    assert {storage.id, *storage.layers} <= storage.archived()


def test_archives_for_several_nodes_remove_what_no_image_has_at_once(storage: Storage) -> None:
    for number in range(3000):
        storage.blob(f"{number}").write_bytes(b"of an image that was built anew")
    with ThreadPoolExecutor(4) as nodes:
        found = list(nodes.map(lambda _: storage.archived(), range(4)))
    assert found == [found[0]] * 4
    assert {path.name for path in storage.packed.glob("blobs/sha256/*")} == {storage.id, *storage.layers}
