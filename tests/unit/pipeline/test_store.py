"""What captures and jobs leave, and what of it is read."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from switchover.pipeline.outcome import JobFailed
from switchover.pipeline.store import File, Manifest, Overtaken, Store
from switchover.pipeline.tables import ENDS

BEGAN = 1_700_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path, "demo")


def rows(count: int) -> pa.Table:
    return pa.table({"topic": ["orders"] * count, "partition": list(range(count)), "start": [0] * count,
                     "end": [10] * count, "time": [BEGAN] * count}, schema=ENDS)


def written(store: Store, run: str, count: int = 3) -> File:
    return store.file(run, "ends", 0, BEGAN, rows(count))


def filed(store: Store, number: int, run: str, *files: File, began: int = BEGAN) -> Manifest:
    manifest = Manifest(number, run, began, began + 1000, {"offsets": {"0": 7}}, {"unknown": 1}, ("a note",), files)
    store.commit(manifest)
    return manifest


def test_a_manifest_is_read_as_it_was_written(store: Store) -> None:
    manifest = filed(store, 0, "a", written(store, "a"))
    assert store.manifests() == (manifest,)


def test_a_file_that_no_manifest_names_is_never_read(store: Store) -> None:
    named, _ = written(store, "a"), written(store, "died")
    filed(store, 0, "a", named)
    assert store.files("ends") == [str(store.root / named.path)]


def test_of_two_captures_at_once_one_is_overtaken_and_the_other_keeps_its_files(store: Store) -> None:
    first, second = written(store, "a"), written(store, "b")
    filed(store, 0, "a", first)
    with pytest.raises(Overtaken):
        filed(store, 0, "b", second)
    store.discard([second])
    assert store.files("ends") == [str(store.root / first.path)]
    assert not (store.root / second.path).exists()


def test_a_range_of_time_takes_every_capture_that_touches_it(store: Store) -> None:
    for number in range(3):
        filed(store, number, f"r{number}", written(store, f"r{number}"), began=BEGAN + number * 10_000)
    assert [Path(path).name for path in store.files("ends", since=BEGAN + 5_000, until=BEGAN + 15_000)] == ["r1-0.parquet"]


def test_a_missing_manifest_is_refused_by_its_number(store: Store) -> None:
    for number in range(3):
        filed(store, number, f"r{number}")
    (store.root / "manifests/demo/00000001.json").unlink()
    with pytest.raises(JobFailed, match="manifest 00000001 is missing"):
        store.manifests()
    with pytest.raises(JobFailed, match="manifest 00000001 is missing"):
        store.last()


def test_the_last_is_the_newest_and_there_may_be_none(store: Store) -> None:
    assert store.last() is None
    manifests = [filed(store, number, f"r{number}") for number in range(3)]
    assert store.last() == manifests[-1]


def test_the_newest_files_are_those_of_the_last_capture_that_has_any(store: Store) -> None:
    assert store.newest("ends") == []
    for number, run in enumerate(("a", "b")):
        filed(store, number, run, written(store, run))
    filed(store, 2, "c")
    assert [Path(path).name for path in store.newest("ends")] == ["b-0.parquet"]


def test_junk_instead_of_a_manifest_is_refused_by_its_path(store: Store) -> None:
    filed(store, 0, "a")
    (store.root / "manifests/demo/00000000.json").write_text("[]")
    with pytest.raises(JobFailed, match=r"00000000\.json is not a manifest"):
        store.manifests()


def test_a_file_cut_short_is_refused(store: Store) -> None:
    file = written(store, "a")
    filed(store, 0, "a", file)
    path = store.root / file.path
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(JobFailed, match="is not there as manifest 00000000 names it"):
        store.files("ends")


def test_other_columns_than_the_tables_are_refused(store: Store) -> None:
    with pytest.raises((KeyError, ValueError)):
        store.file("a", "commits", 0, BEGAN, rows(1))


def test_results_appear_whole_or_not_at_all(store: Store) -> None:
    def break_off() -> None:
        with store.results("audit", {}) as directory:
            (directory / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        break_off()
    assert store.latest("audit") is None
    assert list((store.root / "runs/audit/demo").iterdir()) == []
    told: dict[str, object] = {"verdict": "Clean"}
    with store.results("audit", told) as directory:
        (directory / "report.html").write_text("<p>")
    latest = store.latest("audit")
    assert latest is not None
    manifest = json.loads((latest / "manifest.json").read_text())
    assert manifest["verdict"] == "Clean"
    assert [file["path"] for file in manifest["files"]] == ["report.html"]


def test_what_died_captures_left_is_removed_when_it_is_a_day_old(store: Store) -> None:
    import os

    named, old, young = written(store, "a"), written(store, "old"), written(store, "young")
    filed(store, 0, "a", named)
    for file in (named, old):
        os.utime(store.root / file.path, (0, 0))
    assert store.remove_left() == 1
    assert [(store.root / file.path).exists() for file in (named, old, young)] == [True, False, True]
