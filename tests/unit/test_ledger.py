"""The ledger of long tests: what has run on which commit, what is left, and in which shares."""

import fcntl
import subprocess
import threading
from pathlib import Path

import pytest

import ledger
from ledger import Entry, Unusable

COMMIT, OTHER = "a" * 40, "b" * 40
STORY = [f"tests/sandbox/test_story.py::test_{name}" for name in "abc"]
KILLS = [f"tests/simulation/test_kills.py::test_kill[{number}]" for number in range(3)]
VERSIONS = ["tests/adapters/test_versions.py::test_there[4.0]", "tests/adapters/test_versions.py::test_back"]
TESTS = [*KILLS, *VERSIONS, *STORY]


def entry(test: str, result: str = "passed", *, commit: str = COMMIT, seconds: float = 10, day: int = 1) -> Entry:
    return Entry(commit, test, result, seconds, f"2026-11-{day:02}T08:00:00+00:00")


# --- the file ---------------------------------------------------------------------------------------------------------


def test_it_lies_where_all_checkouts_share_things(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert ledger.place({}) == Path("/home/me/.cache/switchover/ledger.jsonl")
    assert ledger.place({"XDG_CACHE_HOME": "/cache"}) == Path("/cache/switchover/ledger.jsonl")
    assert ledger.place({"XDG_CACHE_HOME": "/cache", "SWITCHOVER_CACHE": "/here"}) == Path("/here/ledger.jsonl")


def test_what_is_written_is_read_in_its_order(tmp_path: Path) -> None:
    file = tmp_path / "new" / "ledger.jsonl"
    assert ledger.read(file) == []
    first, second = entry(KILLS[0]), entry(KILLS[0], "failed")
    ledger.append(file, first)
    size = file.stat().st_size
    ledger.append(file, second)
    assert ledger.read(file) == [first, second]
    assert ledger.read(file, size) == [first]


def test_who_writes_waits_for_who_is_writing(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    writer = threading.Thread(target=ledger.append, args=(file, entry(KILLS[0])))
    with file.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        assert ledger.read(file) == []
    writer.join()
    assert ledger.read(file) == [entry(KILLS[0])]


@pytest.mark.parametrize("line", ["{", "[]", '{"commit": "a"}', "7"])
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "ledger.jsonl"
    ledger.append(file, entry(KILLS[0]))
    with file.open("a") as end:
        end.write(line + "\n")
    with pytest.raises(Unusable, match=r"^line 2 of .*ledger\.jsonl is no entry of the ledger; take it out$"):
        ledger.read(file)


def test_the_tree_is_its_commit_or_has_changes(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
        command = ["git", "-C", str(tmp_path), *identity, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    with pytest.raises(Unusable, match=r"git knows none at .*not a git repository"):
        ledger.tree(tmp_path)
    git("init")
    with pytest.raises(Unusable, match="git knows none"):
        ledger.tree(tmp_path)
    (tmp_path / "old.py").touch()
    git("add", ".")
    git("commit", "--message", "one")
    commit = git("rev-parse", "HEAD").strip()
    assert ledger.tree(tmp_path) == commit
    for written in ("CHANGELOG.md", "docs/measurements.md"):          # what no long test reads
        (tmp_path / written).parent.mkdir(exist_ok=True)
        (tmp_path / written).touch()
        assert ledger.tree(tmp_path) == commit
    git("add", ".")
    git("commit", "--message", "two")
    assert ledger.tree(tmp_path) == commit != git("rev-parse", "HEAD").strip()
    (tmp_path / "new.py").touch()
    assert ledger.tree(tmp_path) == f"{commit}+changes"
    assert ledger.short(ledger.tree(tmp_path)) == f"{commit[:10]}+changes"


# --- what is left -----------------------------------------------------------------------------------------------------


def test_what_passed_on_this_commit_is_not_run_again() -> None:
    done = [entry(KILLS[0]), entry(KILLS[1], commit=OTHER), entry(KILLS[2], commit=f"{COMMIT}+changes")]
    assert ledger.left(KILLS, done, COMMIT) == KILLS[1:]
    assert ledger.left(KILLS, done, OTHER) == [KILLS[0], KILLS[2]]


@pytest.mark.parametrize("result", ["failed", "skipped"])
def test_what_did_not_pass_when_it_ran_last_is_run_again(result: str) -> None:
    assert ledger.left(KILLS, [entry(test) for test in KILLS] + [entry(KILLS[1], result)], COMMIT) == [KILLS[1]]
    assert ledger.left(KILLS, [entry(KILLS[1], result)] + [entry(test) for test in KILLS], COMMIT) == []


def test_a_story_is_run_whole_until_all_of_it_has_passed() -> None:
    assert ledger.left(STORY, [entry(STORY[0]), entry(STORY[1])], COMMIT) == STORY
    assert ledger.left(STORY, [entry(STORY[0]), entry(STORY[1]), entry(STORY[2], "failed")], COMMIT) == STORY
    assert ledger.left(STORY, [entry(test) for test in STORY], COMMIT) == []


def test_on_a_tree_with_changes_everything_is_run_whatever_ran_there_before() -> None:
    dirty = f"{COMMIT}+changes"
    assert sorted(ledger.left(TESTS, [entry(test, commit=dirty) for test in TESTS], dirty)) == sorted(TESTS)


def test_the_files_come_first_that_never_ran_or_ran_longest_ago_each_in_one_piece() -> None:
    ran = [entry(test, commit=OTHER, day=5) for test in KILLS]
    ran += [entry(test, commit=OTHER, day=day) for day, test in zip((9, 2), VERSIONS, strict=True)]
    assert ledger.left(TESTS, ran, COMMIT) == [*STORY, *VERSIONS, *KILLS]
    ran += [entry(VERSIONS[1], commit=OTHER, day=10)]
    assert ledger.left(TESTS, ran, COMMIT) == [*STORY, *KILLS, *VERSIONS]


# --- seconds and shards -----------------------------------------------------------------------------------------------


def test_every_unit_costs_what_is_known_of_it_or_else_what_its_layer_does() -> None:
    known = {"tests/simulation/test_kills.py::test_kill": 7.0}
    assert ledger.costs([*TESTS, "tests/apiserver/test_it.py::test_it"], known) == {
        **dict.fromkeys(KILLS, 7.0), **dict.fromkeys(VERSIONS, 60.0), "tests/sandbox/test_story.py": 1500.0,
        "tests/apiserver/test_it.py::test_it": 10.0}


def test_what_is_measured_are_sums_of_stories_and_means_of_functions_over_what_passed() -> None:
    ran = [entry(KILLS[0], seconds=2), entry(KILLS[1], seconds=99), entry(KILLS[1], commit=OTHER, seconds=4, day=2),
           entry(KILLS[2], "failed", seconds=1), *(entry(test, seconds=100) for test in STORY)]
    assert ledger.measured(ran) == {"tests/simulation/test_kills.py::test_kill": 3.0, "tests/sandbox/test_story.py": 300.0}


def test_what_is_known_of_other_machines_counts_by_when_it_ran_not_by_where_it_stands() -> None:
    here = [entry(KILLS[0], "failed", day=2)]
    published = [entry(KILLS[0], day=3), entry(KILLS[1], day=1)]
    assert ledger.left(KILLS, [*published, *here], COMMIT) == [KILLS[2]]
    assert ledger.left(KILLS, [*here, *published], COMMIT) == [KILLS[2]]
    assert ledger.last([*published, *here]) == {KILLS[0]: published[0], KILLS[1]: published[1]}


def test_shards_are_whole_disjoint_and_about_equal() -> None:
    cost = {f"test_{number}": float(1 + number * number % 97) for number in range(200)} | {"story": 600.0}
    parts = ledger.split(cost, 8)
    assert sorted(name for part in parts for name in part) == sorted(cost)
    times = [sum(cost[name] for name in part) for part in parts]
    assert max(times) - min(times) <= 10
    assert ledger.split(dict(reversed(cost.items())), 8) == parts


def test_what_the_repository_knows_is_of_files_that_there_are() -> None:
    root = Path(__file__).parents[2]
    known = {ledger.file_of(each.test) for each in ledger.read(root / ledger.PUBLISHED)}
    assert [file for file in sorted(known) if not (root / file).exists()] == []


@pytest.mark.parametrize(("words", "shard"), [("1/1", (1, 1)), ("3/8", (3, 8)), ("12/12", (12, 12))])
def test_a_shard(words: str, shard: tuple[int, int]) -> None:
    assert ledger.shard(words) == shard


@pytest.mark.parametrize("words", ["9/8", "0/8", "x", "3", "3/", "/8", "-1/8", "3/8/2", "3 /8", "03/8", "1/0", "1.5/2", ""])
def test_no_shard(words: str) -> None:
    with pytest.raises(Unusable, match=r"a shard is one of so many, 1/8 to 8/8$"):
        ledger.shard(words)


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_table() -> None:
    ran = [entry(KILLS[0], seconds=70), entry(KILLS[1], "failed", day=2),
           *(entry(test, commit=f"{OTHER}+changes", seconds=100, day=3) for test in STORY)]
    rows = ledger.table(TESTS, ran, COMMIT)
    assert rows == [
        ("tests/adapters/test_versions.py", "2", "0", "0", "2", "0", "never", "", ""),
        ("tests/sandbox/test_story.py", "3", "3", "0", "0", "0", "bbbbbbbbbb+changes", "2026-11-03 08:00", "300"),
        ("tests/simulation/test_kills.py", "3", "1", "1", "1", "1", "aaaaaaaaaa", "2026-11-02 08:00", "80"),
        ("all", "8", "4", "1", "3", "1", "bbbbbbbbbb+changes", "2026-11-03 08:00", "380"),
    ]
    assert ledger.columns(rows)[1].split() == ["tests/adapters/test_versions.py", "2", "0", "0", "2", "0", "never"]
