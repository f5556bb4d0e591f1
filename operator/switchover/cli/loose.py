"""Values of a JSON document of any shape, read so that what is not there, or is of another sort, is empty or None. Pure."""

from collections.abc import Mapping
from typing import Any

from switchover.cli.tree import seconds


def mapping(value: Any) -> Mapping[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> tuple[Mapping[str, Any], ...]:
    """The objects in a list."""
    return tuple(each for each in value if isinstance(each, Mapping)) if isinstance(value, list) else ()


def text(value: Any) -> str:
    """The text, or an empty one."""
    return value if isinstance(value, str) else ""


def texts(value: Any) -> tuple[str, ...]:
    """The texts in a list."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def whole(value: Any) -> int | None:
    """The whole number; true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def time(value: Any) -> str:
    """The time, where it is one."""
    try:
        seconds(text(value))
    except (ValueError, OverflowError, OSError):
        return ""
    return text(value)
