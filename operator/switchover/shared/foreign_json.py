"""JSON that others wrote: the only place that reads it. Whatever it holds, it is a value or a ValueError with the reason."""

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

DEEPEST = 64
"""Levels of lists and objects in each other. Nothing that Kafka, Kubernetes or we write comes near; Python's own reader, and
whoever walks what it read, ends with a RecursionError at some depth below a thousand."""


def parsed(text: str | bytes) -> Any:
    """The value of a JSON document. Raises ValueError: for what is no JSON, which NaN and Infinity are not either, for a
    number that no float holds, and for what nests deeper than DEEPEST."""
    return _read(text, json.loads)


def first(data: bytes) -> Any:
    """The same of the first document in these bytes, whatever follows it: Kafka's reader stops there. Raises ValueError."""
    text = data.decode(json.detect_encoding(data)).lstrip(" \t\n\r")
    return _read(text, lambda given, **options: json.JSONDecoder(**options).raw_decode(given)[0])


def _read(text: str | bytes, read: Callable[..., Any]) -> Any:
    try:
        found = read(text, parse_constant=_no_number, parse_float=_number)
    except RecursionError:
        raise ValueError(f"nests deeper than {DEEPEST} levels") from None
    level = [found]
    for _ in range(DEEPEST + 1):
        inner = [each for each in level if isinstance(each, dict | list)]
        if not inner:
            return found
        level = [value for each in inner for value in (each.values() if isinstance(each, dict) else each)]
    raise ValueError(f"nests deeper than {DEEPEST} levels")


def listed(text: str, take: Callable[[Any], None]) -> Any:
    """The value of an answer of the API server, however deep, with no elements in its `items`: `take` gets one after the
    other, so that they are not in memory at once. Raises ValueError for what is no JSON."""
    try:
        at = _begin(text, 0, "{")
        found: dict[str, Any] = {}
        while text[at:at + 1] != "}":
            key, at = _ANSWERS.raw_decode(text, at)
            at = _begin(text, at, ":")
            if key == "items" and text[at:at + 1] == "[":
                found[key], at = [], _begin(text, at, "[")
                while text[at:at + 1] != "]":
                    each, at = _ANSWERS.raw_decode(text, at)
                    take(each)
                    at = _next(text, at, "]")
                at = _begin(text, at, "]")
            else:
                found[key], at = _ANSWERS.raw_decode(text, at)
            at = _next(text, at, "}")
        return found
    except (RecursionError, TypeError) as error:
        raise ValueError(f"no object: {type(error).__name__}") from None


def _begin(text: str, at: int, mark: str) -> int:
    """Where what follows that mark begins."""
    at = _end_of_blanks(text, at)
    if text[at:at + 1] != mark:
        raise ValueError(f"{mark} is missing at character {at}")
    return _end_of_blanks(text, at + 1)


def _next(text: str, at: int, end: str) -> int:
    """Where the next element is, or the end."""
    at = _end_of_blanks(text, at)
    return at if text[at:at + 1] == end else _begin(text, at, ",")


def _end_of_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


_ANSWERS = json.JSONDecoder(parse_constant=_no_number, parse_float=_number)
_BLANKS = re.compile(r"[ \t\n\r]*")
