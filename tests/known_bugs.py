"""`make known-bugs`: brings each bug of tests/known_bugs/ back, one at a time, and shows which test sees it.

A patch there begins with what a person saw, and has a line `Caught by: ` with the test that must fail.
`BUGS="a b"` runs these alone.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def copied() -> Iterator[Path]:
    """The checkout as it is, in a directory of its own."""
    with TemporaryDirectory() as directory:
        tree = Path(directory)
        for name in subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")[:-1]:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
        yield tree


def caught(tree: Path, bug: Bug) -> bool:
    """Whether its test fails in this copy once the bug is back."""
    subprocess.run(["git", "apply", bug.patch], cwd=tree, check=True)
    path = os.pathsep.join(str(tree / part) for part in ("operator", "tests", "sandbox", "sandbox/apps", "website"))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", bug.test], cwd=tree,
                          env={**os.environ, "PYTHONPATH": path, "CI": "true"}, stdout=subprocess.DEVNULL)
    subprocess.run(["git", "apply", "--reverse", bug.patch], cwd=tree, check=True)
    return done.returncode == FAILED


def main(names: list[str]) -> int:
    known, rows = {bug.patch.stem: bug for bug in bugs()}, []
    with copied() as tree:
        for bug in [known[name] for name in names or known]:
            begun = time.monotonic()
            found = caught(tree, bug)
            rows.append((time.monotonic() - begun, found, bug))
            print(f"{len(rows)}: {bug.patch.stem}", file=sys.stderr)
    print("| bug | caught by | seconds |\n|---|---|---|")
    for seconds, found, bug in sorted(rows):
        print(f"| {bug.seen} | {'' if found else 'NOT by '}{bug.test} | {seconds:.0f} |")
    return not all(found for _, found, _ in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
