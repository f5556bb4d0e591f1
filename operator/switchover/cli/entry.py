"""The entry point `switchover`: with nothing but Python's own modules, so that a bare installation can say what it lacks."""

import sys

from switchover.extras import needed_by


def main() -> None:
    """Run the command that the arguments name."""
    command = next((each for each in sys.argv[1:] if not each.startswith("-")), "")
    with needed_by(command):
        from switchover.cli.main import app

        app()
