"""`pytest --ledger` in a repository of its own."""

import subprocess
from pathlib import Path

import pytest

import ledger
from ledger import Entry
from unit import inner_pytest

pytestmark = pytest.mark.long           # each begins pytest several times

QUICK = """
import os
import pytest

def test_not_long(): assert False, "is not to run"

@pytest.mark.long
@pytest.mark.parametrize("n", [1, 2])
def test_each(n):
    assert n != int(os.environ.get("BREAK", "0"))
"""
STORY = """
import os
import pytest
pytestmark = pytest.mark.long

def test_first(): pass

def test_second():
    if "DIE" in os.environ: os.kill(os.getpid(), 9)
"""
EACH = [f"tests/simulation/test_quick.py::test_each[{n}]" for n in (1, 2)]
FIRST, SECOND = (f"tests/sandbox/test_story.py::test_{name}" for name in ("first", "second"))


class Project:
    """A repository with one file of quick long tests and one story."""

    def __init__(self, root: Path) -> None:
        self.root, self.cache = root / "project", root / "cache"
        for file, text in (("simulation/test_quick.py", QUICK), ("sandbox/test_story.py", STORY)):
            path = self.root / "tests" / file
            path.parent.mkdir(parents=True)
            path.write_text(text)
        (self.root / "docs").mkdir()
        (self.root / ".gitignore").write_text("__pycache__\n")
        self.git("init")
        self.commit = self.committed()

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
        command = ["git", "-C", str(self.root), *identity, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def committed(self) -> str:
        self.git("add", ".")
        self.git("commit", "--message", "so far")
        return self.git("rev-parse", "HEAD").strip()

    def pytest(self, *arguments: str, **environment: str) -> inner_pytest.Ended:
        return inner_pytest.run(self.root, "-v", *arguments, plugins=("xdist", "long_tests"),
                                SWITCHOVER_CACHE=str(self.cache), **environment)

    def ran(self) -> list[tuple[str, str, str]]:
        """What stands in the ledger."""
        entries = ledger.read(self.cache / "ledger.jsonl")
        return [(entry.commit, entry.test, entry.result) for entry in entries]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_run_goes_on_where_the_one_before_was_killed(project: Project) -> None:
    killed = project.pytest("--ledger", "run", "tests/simulation", "tests/sandbox", DIE="1", BREAK="2")
    assert killed.returncode == -9
    assert f"long tests: 4 to run on {project.commit[:10]}, about 27 min one after the other" in killed.stdout
    so_far = [(project.commit, EACH[0], "passed"), (project.commit, EACH[1], "failed"), (project.commit, FIRST, "passed")]
    assert project.ran() == so_far
    again = project.pytest("--ledger", "run")
    assert again.returncode == 0
    assert f"long tests: 3 to run on {project.commit[:10]}" in again.stdout
    assert project.ran() == [*so_far, *((project.commit, test, "passed") for test in (FIRST, SECOND, EACH[1]))]
    assert f"ledger: 3 passed on {project.commit[:10]}" in again.stdout.splitlines()
    nothing = project.pytest("--ledger", "run")
    assert nothing.returncode == 0
    assert f"long tests: none left to run on {project.commit[:10]}" in nothing.stdout
    assert len(project.ran()) == 6


def test_beside_workers_one_process_writes_and_a_worker_that_dies_fails_its_test(project: Project) -> None:
    ended = project.pytest("--ledger", "run", "--numprocesses", "2", DIE="1")
    assert ended.returncode == 1
    assert ended.stdout.count("long tests: 4 to run") == 1
    assert sorted(project.ran()) == sorted((project.commit, test, "failed" if test == SECOND else "passed")
                                           for test in (*EACH, FIRST, SECOND))
    again = project.pytest("--ledger", "run", "--numprocesses", "2")
    assert again.returncode == 0
    assert sorted(test for _, test, _ in project.ran()[4:]) == [FIRST, SECOND]
    nothing = project.pytest("--ledger", "run", "--numprocesses", "2")
    assert nothing.returncode == 0
    assert "none left to run" in nothing.stdout


def test_a_tree_with_changes_counts_for_no_commit_nor_does_one_that_is_changed_meanwhile(project: Project) -> None:
    (project.root / "notes").touch()
    ended = project.pytest("--ledger", "run", "tests/simulation")
    dirty = f"{project.commit}+changes"
    assert project.ran() == [(dirty, test, "passed") for test in EACH]
    assert f"ledger: 2 passed on {project.commit[:10]}+changes, which counts for no commit" in ended.stdout.splitlines()
    (project.root / "notes").unlink()
    (project.root / "tests" / "simulation" / "test_quick.py").write_text(QUICK + "    open('notes', 'w').close()\n")
    commit = project.committed()
    project.pytest("--ledger", "run", "tests/simulation")
    assert project.ran()[2:] == [(f"{commit}+changes", test, "passed") for test in EACH]


def test_shards_share_all_long_tests_among_them_by_the_seconds_in_the_repository(project: Project) -> None:
    known = [Entry(project.commit, test, "passed", 30, "2026-11-01T08:00:00+00:00") for test in (FIRST, SECOND)]
    (project.root / ledger.PUBLISHED).write_text(ledger.lines(known))
    (project.root / "tests" / "simulation" / "test_quick.py").write_text(QUICK + "\n")     # another commit than theirs
    project.committed()
    first = project.pytest("--ledger", "run", "--shard", "1/3")
    assert "long tests, shard 1 of 3: 2 to run" in first.stdout
    assert "about 1 min one after the other" in first.stdout
    project.pytest("--ledger", "run", "--shard", "3/3")
    assert [test for _, test, _ in project.ran()] == [FIRST, SECOND, EACH[1]]
    project.pytest("--ledger", "run", "--shard", "2/3")
    assert [test for _, test, _ in project.ran()[3:]] == [EACH[0]]


def test_the_table_is_shown_and_written(project: Project) -> None:
    project.pytest("--ledger", "run", "tests/simulation", BREAK="2")
    shown = project.pytest("--ledger", "show")
    assert shown.returncode == 0
    quick = next(line for line in shown.stdout.splitlines() if line.startswith("tests/simulation/test_quick.py"))
    assert quick.split()[1:7] == ["2", "1", "1", "0", "1", project.commit[:10]]
    story = next(line for line in shown.stdout.splitlines() if line.startswith("tests/sandbox/test_story.py"))
    assert story.split()[1:7] == ["2", "0", "0", "2", "0", "never"]
    assert len(project.ran()) == 2
    assert project.git("status", "--porcelain") == ""
    project.pytest("--ledger", "write")
    assert [line.split()[1] for line in project.git("status", "--porcelain").splitlines()] == [str(ledger.PUBLISHED)]
    published = ledger.read(project.root / ledger.PUBLISHED)
    assert [(each.test, each.result) for each in published] == [(EACH[0], "passed"), (EACH[1], "failed")]


def test_another_machine_goes_on_with_what_was_published(project: Project) -> None:
    project.pytest("--ledger", "run", "tests/simulation")
    project.pytest("--ledger", "write")
    project.committed()
    (project.cache / "ledger.jsonl").unlink()
    there = project.pytest("--ledger", "run")
    assert f"long tests: 2 to run on {project.commit[:10]}, about 25 min" in there.stdout
    assert project.ran() == [(project.commit, test, "passed") for test in (FIRST, SECOND)]
    project.pytest("--ledger", "write")
    assert [each.test for each in ledger.read(project.root / ledger.PUBLISHED)] == [FIRST, SECOND, *EACH]


@pytest.mark.parametrize(("arguments", "words"), [
    (("--ledger", "run", "--shard", "9/8"), "ERROR: SHARD=9/8: a shard is one of so many, 1/8 to 8/8"),
    (("--shard", "3/8"), "ERROR: --shard is a share of --ledger run"),
    (("--ledger", "show", "--numprocesses", "2"), "ERROR: --ledger show runs nothing, leave --numprocesses out"),
])
def test_nonsense_is_refused_in_one_line(project: Project, arguments: tuple[str, ...], words: str) -> None:
    ended = project.pytest(*arguments)
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert ended.stderr.strip() == words


def test_make_refuses_a_shard_that_does_not_exist_before_it_builds_anything() -> None:
    ended = subprocess.run(["python3", inner_pytest.TESTS / "ledger.py", "x"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (2, "SHARD=x: a shard is one of so many, 1/8 to 8/8\n")
