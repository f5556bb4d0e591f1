"""The patches of tests/known_bugs fit today's code, and their tests see them: some here, all by `make known-bugs`."""

import subprocess
from collections.abc import Callable

import samples
from known_bugs import ROOT, Bug, bugs, caught, copied

BROUGHT_BACK = 5


def test_each_known_bug_can_be_brought_back() -> None:
    for bug in bugs():
        subprocess.run(["git", "apply", "--check", bug.patch], cwd=ROOT, check=True)
        file, _, name = bug.test.partition("::")
        assert f"def {name}(" in ROOT.joinpath(file).read_text(), bug.patch.name


def test_some_known_bugs_are_caught(counted: Callable[[str], None]) -> None:
    """Of those that a unit test sees: each takes some three seconds."""
    cheap = [(bug,) for bug in bugs() if bug.test.startswith("tests/unit/")]
    with copied() as tree:
        def check(bug: Bug) -> None:
            assert caught(tree, bug), f"{bug.patch.stem} is back, and {bug.test} passes"

        samples.each(BROUGHT_BACK, cheap, "known bugs", check, counted)
