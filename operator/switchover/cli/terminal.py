"""What reaches a terminal: the one place that takes out what would move its cursor, turn its text around or end a line."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from switchover.visible import printable

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 1000
"""Columns of an output that is no terminal: nothing is cut or wrapped there."""


def console() -> "Console":
    """Standard output, for tables."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)


def clean(value: Any) -> Any:
    """A JSON value with every text in it, and every key, printable."""
    match value:
        case str():
            return printable(value)
        case Mapping():
            return {printable(str(key)): clean(each) for key, each in value.items()}
        case Sequence():
            return [clean(each) for each in value]
        case _:
            return value
