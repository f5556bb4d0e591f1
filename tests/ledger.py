"""Which long tests have run on which commit: the ledger's entries, what is left to run, shards of it, and the table.

The ledger is one file of JSON lines for all checkouts of a machine. It only grows. The last entry of each test is published
in the repository, so that shards of several machines, or of several days, come together.
"""

import fcntl
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path

CHANGES = "+changes"
"""Behind the commit of a tree that holds more than the commit does: what ran there has run on no commit."""

PUBLISHED = Path("tests", "long_tests.jsonl")
"""Below the root: the last entry of each long test."""

PAPER = (str(PUBLISHED), "tests/proof.jsonl", "tests/soak.jsonl", "docs/proof.md", "docs/measurements.md", "CHANGELOG.md")
"""What no long test reads: what the ledger publishes, and what is written down beside it. A commit of these alone counts as
the one before it."""

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

STORIES = "tests/sandbox/"
"""Each file here is one story in one fixture, run whole or not at all; elsewhere a test, by its parameters, is its own."""

UNKNOWN = {"sandbox": 1500.0, "adapters": 60.0, "simulation": 60.0}
"""Seconds of what has never been measured, by layer: of a story, of a test. Of other layers 10."""


class Unusable(Exception):
    """Something that was given cannot be used; its words say what and why."""


@dataclass(frozen=True)
class Entry:
    """A test has ended. `seconds` with what it set up and took down, `at` in UTC."""

    commit: str
    test: str
    result: str
    seconds: float
    at: str


def place(environment: Mapping[str, str]) -> Path:
    """The ledger's file, where all that checkouts share lies."""
    home = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(environment.get("SWITCHOVER_CACHE") or f"{home}/switchover") / "ledger.jsonl"


def tree(root: Path) -> str:
    """The last commit at `root` that changed more than PAPER, with CHANGES behind it when the tree holds more than it."""
    tested = (".", *(f":(exclude){path}" for path in PAPER))
    head, changes = _git(root, "rev-list", "-1", "HEAD", "--", *tested), _git(root, "status", "--porcelain", "--", *tested)
    if not head:
        raise Unusable(f"the ledger tells what ran on which commit, and git knows none at {root}")
    return head + (CHANGES if changes else "")


def _git(root: Path, *words: str) -> str:
    told = subprocess.run(["git", "--no-optional-locks", "-C", str(root), *words], capture_output=True, text=True)
    if told.returncode:
        raise Unusable(f"the ledger tells what ran on which commit, and git knows none at {root}: {told.stderr.strip()}")
    return told.stdout.strip()


def short(commit: str) -> str:
    """A commit as people read it."""
    digest, plus, changes = commit.partition("+")
    return digest[:10] + plus + changes


def append(ledger: Path, entry: Entry) -> None:
    """One line more, whoever else writes at this moment; once back, nothing that happens to us loses it."""
    ledger.parent.mkdir(parents=True, exist_ok=True)
    line = lines([entry])
    with ledger.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(line)


def lines(entries: Iterable[Entry]) -> str:
    """Entries as they stand in a ledger."""
    return "".join(json.dumps(asdict(entry)) + "\n" for entry in entries)


def read(ledger: Path, size: int | None = None) -> list[Entry]:
    """All entries, the oldest first; of the first `size` bytes, so that several readers read the same."""
    if not ledger.exists():
        return []
    entries = []
    for number, line in enumerate(ledger.read_bytes()[:size].splitlines(), 1):
        try:
            entries.append(Entry(**json.loads(line)))
        except (ValueError, TypeError):
            raise Unusable(f"line {number} of {ledger} is no entry of the ledger; take it out") from None
    return entries


# --- what belongs together, and what it costs -------------------------------------------------------------------------


def file_of(test: str) -> str:
    return test.split("::")[0]


def unit(test: str) -> str:
    """What is run or left out as one: a story's file, or the test."""
    return file_of(test) if test.startswith(STORIES) else test


def function(test: str) -> str:
    """What seconds are known of: a story, or a test function, whatever its parameters."""
    return unit(test).split("[")[0]


def costs(tests: Iterable[str], known: Mapping[str, float]) -> dict[str, float]:
    """The seconds of each unit of these tests, as far as the repository knows them."""
    return {unit(test): known.get(function(test), UNKNOWN.get(_layer(test), 10.0)) for test in tests}


def measured(entries: Iterable[Entry]) -> dict[str, float]:
    """The seconds that are known of stories and functions: of each story the sum, of each function the mean, over the last
    runs of their tests that passed."""
    took: dict[str, list[float]] = {}
    for entry in last(entries).values():
        if entry.result == PASSED:
            took.setdefault(function(entry.test), []).append(entry.seconds)
    return {name: sum(each) if name.startswith(STORIES) else sum(each) / len(each) for name, each in took.items()}


def last(entries: Iterable[Entry]) -> dict[str, Entry]:
    """The entry of each test that was made last, on whatever machine."""
    return {entry.test: entry for entry in sorted(entries, key=lambda entry: entry.at)}


# --- shards -----------------------------------------------------------------------------------------------------------


def shard(words: str) -> tuple[int, int]:
    """3/8 as (3, 8)."""
    right = re.fullmatch(r"([1-9]\d{0,2})/([1-9]\d{0,2})", words)
    if right is None or int(right[1]) > int(right[2]):
        raise Unusable(f"SHARD={words}: a shard is one of so many, 1/8 to 8/8")
    return int(right[1]), int(right[2])


def split(cost: Mapping[str, float], shards: int) -> list[set[str]]:
    """The units in so many shards of about equal time, the same on every machine: the longest first, each to the shard that
    has least."""
    parts: list[set[str]] = [set() for _ in range(shards)]
    spent = [0.0] * shards
    for name in sorted(cost, key=lambda name: (-cost[name], name)):
        least = spent.index(min(spent))
        parts[least].add(name)
        spent[least] += cost[name]
    return parts


# --- what is left -----------------------------------------------------------------------------------------------------


def left(tests: Sequence[str], entries: Iterable[Entry], commit: str) -> list[str]:
    """Those of the tests that have not passed on this commit, with all of their story; the files first that hold a test
    which never ran or whose last run lies furthest back."""
    entries = list(entries)
    passed = _passed(entries, commit)
    again = {unit(test) for test in tests if test not in passed}
    todo = [test for test in tests if unit(test) in again]
    at = {test: entry.at for test, entry in last(entries).items()}
    age: dict[str, str] = {}
    for test in todo:
        age[file_of(test)] = min(at.get(test, ""), age.get(file_of(test), "~"))
    return sorted(todo, key=lambda test: age[file_of(test)])


def _passed(entries: Iterable[Entry], commit: str) -> set[str]:
    """The tests whose last run on this commit passed."""
    results = last(entry for entry in entries if entry.commit == commit)
    return set() if commit.endswith(CHANGES) else {test for test, entry in results.items() if entry.result == PASSED}


# --- the table --------------------------------------------------------------------------------------------------------

HEAD = ("long tests of", "tests", "passed", "failed", "never run", "on this commit", "last run on", "at (UTC)", "seconds")


def table(tests: Iterable[str], entries: Iterable[Entry], commit: str) -> list[tuple[str, ...]]:
    """By file: its long tests, how each of them did when it ran last, how many passed on this commit, when one ran last, and
    the seconds of their last runs."""
    entries = list(entries)
    on_it = _passed(entries, commit)
    ended = last(entries)
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(file_of(test), []).append(test)
    rows = [_row(file, files[file], on_it, ended) for file in sorted(files)]
    return [*rows, _row("all", [test for file in files.values() for test in file], on_it, ended)]


def _row(name: str, tests: Sequence[str], on_it: Set[str], ended: Mapping[str, Entry]) -> tuple[str, ...]:
    results = [ended[test].result if test in ended else SKIPPED for test in tests]
    ran = sorted((ended[test] for test in tests if test in ended), key=lambda entry: entry.at)
    when = (short(ran[-1].commit), ran[-1].at[:16].replace("T", " ")) if ran else ("never", "")
    counts = (len(tests), *(results.count(each) for each in (PASSED, FAILED, SKIPPED)), len(on_it.intersection(tests)))
    return (name, *map(str, counts), *when, f"{sum(entry.seconds for entry in ran):.0f}" if ran else "")


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """The table for a terminal."""
    widths = [max(len(row[at]) for row in (HEAD, *rows)) for at in range(len(HEAD))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (HEAD, *rows)]


def _layer(test: str) -> str:
    """The directory below tests/."""
    return (*Path(file_of(test)).parts, "", "")[1]


if __name__ == "__main__":
    # Asked by make before it builds anything for a shard that does not exist.
    try:
        shard(sys.argv[1])
    except Unusable as wrong:
        print(wrong, file=sys.stderr)
        sys.exit(2)
