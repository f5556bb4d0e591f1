"""The extras of the package, and one line for a command whose packages are not installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from switchover.text.command import command as said

OF_COMMAND = {"run": "operator", "pipeline": "pipeline"}
"""The extra that a command needs; every other needs `cli`, which these two contain."""

NONE = ("switchover: this is the bare package: pip install 'switchover[cli]' for its commands, 'switchover[operator]' or "
        "'switchover[pipeline]' for these and its own; 'switchover[consumer]' is a library without commands")


@contextmanager
def needed_by(command: str) -> Iterator[None]:
    """Say in one line which extra the command needs, and exit with 2, where a package of somebody else's is not installed.

    A module of our own that is missing, or one of Python's, is no matter of extras: its error goes on.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "switchover").partition(".")[0]
        if package == "switchover" or package in sys.stdlib_module_names:
            raise
        extra = OF_COMMAND.get(command, "cli")
        lacks = f"switchover[{extra}]"
        why = f"{said('switchover {}', command)} needs {lacks}: {said('pip install {}', lacks)}" if command else NONE
        print(f"{why} ({package} is not installed)", file=sys.stderr)
        sys.exit(2)
