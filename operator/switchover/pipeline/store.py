"""The directory where a cluster's captures and the results of jobs lie.

    bronze/TABLE/cluster=C/date=YYYY-MM-DD/RUN-N.parquet     written by captures
    manifests/C/00000042.json                                one for each capture, in order, and the only truth
    runs/JOB/C/RUN/                                          what a job left: Parquet, reports and manifest.json

A file that no manifest names was left by a capture that died, and is never read. A manifest is created exclusively under
the next number (as the logs of table formats are), so of two captures at once one has its ranges and the other goes again.
"""

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from switchover.pipeline.outcome import JobFailed
from switchover.pipeline.tables import SCHEMAS
from switchover.shared import foreign_json

LEFT_SECONDS = 86_400
"""A file that no manifest names is removed when it is so old: nobody writes on it any more."""


class Overtaken(Exception):
    """Another capture has filed a manifest under this number: what was read must be planned again."""


@dataclass(frozen=True, slots=True)
class File:
    """One Parquet file of a table; `path` is relative to the store."""

    table: str
    path: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One capture: what it read, from where to where, and the files that hold it.

    `inputs` is what the next capture goes on from (for example offsets by partition, zxid by server); `counts` what it met
    (unknown versions and the like); `notes` what a reader must know. Times are ms since the epoch.
    """

    number: int
    run: str
    began: int
    ended: int
    inputs: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    version: str = ""


class Store:
    """The part of one cluster."""

    def __init__(self, root: Path, cluster: str) -> None:
        self.root = root
        self.cluster = cluster

    def manifests(self) -> tuple[Manifest, ...]:
        """All captures, oldest first. Raises JobFailed when one is missing or cannot be read."""
        found = [self._read(path) for path in sorted(self._manifests.glob("[0-9]*.json"))]
        for expected, manifest in enumerate(found):
            self._check(expected, manifest.number)
        return tuple(found)

    def last(self) -> Manifest | None:
        """The newest capture; the others are counted and not read. Raises JobFailed as `manifests` does."""
        paths = sorted(self._manifests.glob("[0-9]*.json"))
        for expected, path in enumerate(paths):
            self._check(expected, int(path.stem))
        return self._read(paths[-1]) if paths else None

    def files(self, table: str, since: int | None = None, until: int | None = None) -> list[str]:
        """Absolute paths of a table's files from captures that ended at or after `since` and began before `until` (ms).

        Raises JobFailed when a file that a manifest names is not there or has another size.
        """
        return [path for manifest in self.manifests()
                if (since is None or manifest.ended >= since) and (until is None or manifest.began < until)
                for path in self._paths(manifest, table)]

    def newest(self, table: str) -> list[str]:
        """Absolute paths of a table's files from the last capture that filed it, be they empty. Raises as `files` does."""
        return next((paths for manifest in reversed(self.manifests()) if (paths := self._paths(manifest, table))), [])

    def file(self, run: str, table: str, index: int, began: int, rows: pa.Table) -> File:
        """Write rows of a table; nothing reads them before a manifest names them. Raises ValueError for other columns."""
        day = datetime.fromtimestamp(began / 1000, UTC).date()
        path = Path("bronze", table, f"cluster={self.cluster}", f"date={day}", f"{run}-{index}.parquet")
        absolute = self.root / path
        absolute.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows.select(SCHEMAS[table].names).cast(SCHEMAS[table]), absolute, compression="zstd")
        _sync(absolute)
        return File(table, str(path), rows.num_rows, absolute.stat().st_size, _sha256(absolute))

    def commit(self, manifest: Manifest) -> None:
        """Make a capture's files part of the tables. Raises Overtaken when there is a manifest of this number."""
        self._manifests.mkdir(parents=True, exist_ok=True)
        final = self._manifests / f"{manifest.number:08}.json"
        draft = self._manifests / f".{manifest.run}"
        draft.write_text(json.dumps(asdict(manifest), indent=1) + "\n", encoding="utf-8")
        _sync(draft)
        try:
            os.link(draft, final)              # unlike a rename, it fails where the number is taken
        except FileExistsError:
            raise Overtaken(final.name) from None
        finally:
            draft.unlink()

    def discard(self, files: Iterable[File]) -> None:
        """Remove files that no manifest will name."""
        for file in files:
            (self.root / file.path).unlink(missing_ok=True)

    def remove_left(self) -> int:
        """Remove what died captures left, a day old at least; how many files."""
        named = {file.path for manifest in self.manifests() for file in manifest.files}
        left = [path for path in self.root.glob(f"bronze/*/cluster={self.cluster}/date=*/*.parquet")
                if str(path.relative_to(self.root)) not in named and time.time() - path.stat().st_mtime > LEFT_SECONDS]
        for path in left:
            path.unlink(missing_ok=True)
        return len(left)

    @contextmanager
    def results(self, job: str, record: dict[str, Any]) -> Iterator[Path]:
        """A directory for what a job leaves; it appears under its name, with `record` as manifest.json, when the block ends.

        `record` may be filled inside of the block. Left by an exception, nothing remains.
        """
        parent = self.root / "runs" / job / self.cluster
        run = new_run()
        draft = parent / f".{run}"
        draft.mkdir(parents=True)
        try:
            yield draft
            files = [{"path": str(path.relative_to(draft)), "bytes": path.stat().st_size, "sha256": _sha256(path)}
                     for path in sorted(draft.rglob("*")) if path.is_file()]
            (draft / "manifest.json").write_text(json.dumps(
                {"job": job, "cluster": self.cluster, "run": run, "version": version("switchover"), **record,
                 "files": files},
                indent=1) + "\n", encoding="utf-8")
            draft.rename(parent / run)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def latest(self, job: str) -> Path | None:
        """The newest results of a job."""
        found = sorted((self.root / "runs" / job / self.cluster).glob("[0-9]*/manifest.json"))
        return found[-1].parent if found else None

    def _paths(self, manifest: Manifest, table: str) -> list[str]:
        found = [(self.root / file.path, file.bytes) for file in manifest.files if file.table == table]
        for path, size in found:
            if not path.is_file() or path.stat().st_size != size:
                raise JobFailed(f"{path} is not there as manifest {manifest.number:08} names it: restore it from a backup")
        return [str(path) for path, _ in found]

    def _check(self, expected: int, number: int) -> None:
        if number != expected:
            raise JobFailed(f"{self._manifests}: manifest {expected:08} is missing; restore it, or start a new store")

    @property
    def _manifests(self) -> Path:
        return self.root / "manifests" / self.cluster

    @staticmethod
    def _read(path: Path) -> Manifest:
        try:
            content = foreign_json.parsed(path.read_text(encoding="utf-8"))
            return Manifest(**{**content, "notes": tuple(content["notes"]),
                               "files": tuple(File(**file) for file in content["files"])})
        except (ValueError, TypeError, KeyError) as error:
            raise JobFailed(f"{path} is not a manifest: {error}") from None


def new_run() -> str:
    """A name for one run; later ones sort after earlier ones."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:8]}"


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
