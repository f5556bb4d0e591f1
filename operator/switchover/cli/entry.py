"""The entry points: with nothing but Python's own modules, so that a bare installation can say what it lacks."""

import os
import shlex
import sys

from switchover.runtime.extras import needed_by

ONLY_THESE = ":4"
"""Cobra's directive, as kubectl wants it after what a plugin completes: no names of files with it."""


def main() -> None:
    """Run the command that the arguments name: `switchover`, and `kubectl switchover`."""
    command = next((each for each in sys.argv[1:] if not each.startswith("-")), "")
    with needed_by(command):
        from switchover.cli.main import app

        app()


def complete() -> None:
    """What `kubectl switchover WORD …` may go on with: the last argument is the word that is typed."""
    line = ["switchover", *sys.argv[1:]]
    os.environ |= {"_SWITCHOVER_COMPLETE": "complete_bash", "COMP_WORDS": shlex.join(line),
                   "COMP_CWORD": str(len(line) - 1)}
    try:
        with needed_by(""):
            from switchover.cli.main import app

            app(prog_name="switchover")
    finally:
        print(ONLY_THESE)
