"""What reaches a terminal: the one place that takes out what would move its cursor, turn its text around or end a line."""

from collections.abc import Mapping, Sequence
from typing import Any


def printable(text: str) -> str:
    """The text on one line: what cannot be seen (controls, escapes, marks of direction, newlines) as Python writes it."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


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
