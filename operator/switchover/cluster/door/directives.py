"""A line of the edits, and all that they are written from: what another party said is a word of it, never more."""

import re
from typing import Self

from javaproperties import escape


class NotADirective(ValueError):
    """What was to be a word or the end of a line is not; the message shows it, escaped."""


class Directive(str):
    """An operation, its arguments, and `rest`, the last of them, which may have blanks in it. Raises NotADirective."""

    __slots__ = ()

    def __new__(cls, operation: str, *arguments: str, rest: str = "") -> Self:
        return super().__new__(cls, " ".join((operation, *map(word, arguments), *([line(rest)] if rest else []))))

    @classmethod
    def setting(cls, key: str, value: str) -> Self:
        """`set`: the value may be any text, for it is escaped as a properties file has it."""
        if "=" in key:
            raise NotADirective(f"a key is {key[:60]!r}, and must have no '='")
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\f", "\\f")
        escaped = _ESCAPED.sub(lambda found: escape(found[0]), escaped)
        return super().__new__(cls, f"set {word(key)}={escaped}")


_ESCAPED = re.compile(r"[^\t\x20-\x7e]+")
_BLANK = re.compile(r"\s")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Controls, ends of a line among them, and halves of characters."""


def word(text: str, what: str = "a word") -> str:
    """The text, if it is one word. Raises NotADirective, which says what it is."""
    if _BLANK.search(text):
        raise NotADirective(f"{what} is {text[:60]!r}, and must be one word")
    return line(text, what)


def line(text: str, what: str = "a line") -> str:
    """The text, if whoever reads it finds one line. Raises NotADirective, which says what it is."""
    if not text or _CONTROL.search(text):
        raise NotADirective(f"{what} is {text[:60]!r}, and must be one line without control characters")
    return text
