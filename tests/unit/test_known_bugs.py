"""The patches of tests/known_bugs fit today's code, and the tests that they name are there: `make known-bugs` runs them."""

import subprocess

from known_bugs import ROOT, bugs


def test_each_known_bug_can_be_brought_back() -> None:
    for bug in bugs():
        subprocess.run(["git", "apply", "--check", bug.patch], cwd=ROOT, check=True)
        file, _, name = bug.test.partition("::")
        assert f"def {name}(" in ROOT.joinpath(file).read_text(), bug.patch.name
