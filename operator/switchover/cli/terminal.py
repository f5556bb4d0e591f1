"""What reaches a terminal: the one place that takes out what would move its cursor, turn its text around or end a line."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from switchover.text.visible import printable

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 10_000
"""Columns of an output of which no line is cut or folded."""


def console(*, folds: bool = True) -> "Console":
    """Standard output, for tables; `folds`: a terminal's lines. A command that we fold would be pasted as several."""
    from rich.console import Console

    return Console(highlight=False, width=None if folds and sys.stdout.isatty() else WIDE)


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
