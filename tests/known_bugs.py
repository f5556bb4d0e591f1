"""`make known-bugs`: brings each bug of tests/known_bugs/ back, one at a time, and shows that a test sees it.

A patch there begins with what a person saw, and has a line `Caught by: ` with the test that must fail.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CAUGHT_BY = "Caught by: "
FAILED = 1
"""What pytest exits with when a test failed; all else is no proof."""


class Bug(NamedTuple):
    patch: Path
    seen: str
    test: str


def bugs() -> Iterator[Bug]:
    """Raises `ValueError` for a patch without a test."""
    for patch in sorted(ROOT.joinpath("tests", "known_bugs").glob("*.patch")):
        head = patch.read_text().partition("\ndiff --git ")[0].splitlines()
        tests = [line.removeprefix(CAUGHT_BY) for line in head if line.startswith(CAUGHT_BY)]
        if len(tests) != 1:
            raise ValueError(f"{patch.name} must name one test: {CAUGHT_BY}tests/…")
        yield Bug(patch, head[0], tests[0])


def bring_back(tree: Path, bug: Bug, *, undo: bool = False) -> None:
    subprocess.run(["git", "apply", *(["--reverse"] if undo else []), bug.patch], cwd=tree, check=True)


def fails(tree: Path, test: str) -> bool:
    """Whether a test of a tree fails, as one that sees the bug does."""
    path = os.pathsep.join(str(tree / part) for part in ("operator", "tests", "sandbox", "sandbox/apps", "website"))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test], cwd=tree,
                          env={**os.environ, "PYTHONPATH": path, "CI": "true"}, stdout=subprocess.DEVNULL)
    return done.returncode == FAILED


def main() -> int:
    missed = 0
    with TemporaryDirectory() as directory:
        tree = Path(directory)
        for name in subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")[:-1]:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
        for bug in bugs():
            begun = time.monotonic()
            bring_back(tree, bug)
            caught = fails(tree, bug.test)
            bring_back(tree, bug, undo=True)
            missed += not caught
            print(f"{'caught' if caught else 'MISSED'} after {time.monotonic() - begun:3.0f} s: {bug.seen}\n    {bug.test}")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
