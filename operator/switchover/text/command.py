"""Commands for people to paste into a POSIX shell: text of ours, and in it what others named, quoted."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, TypeAlias

Argument: TypeAlias = str | int | Mapping[str, Any]
_AFTER_AN_OPTION = re.compile(r"(?<!\S)-[^\s=]+ $")


class Command(str):
    """What `command` has made. As a part of another command it stays as it is."""


def command(template: str, *foreign: Argument | Sequence[Argument]) -> Command:
    """The template, which is a constant, with an argument for each `{}`; `{{` and `}}` are braces.

    A mapping becomes JSON, a sequence several arguments, a Command a part of this one. No argument becomes an option:
    one that begins with a dash is tied to the option before it by `=`, or comes after `--`.
    """
    line, rest = "", iter(foreign)
    for text, field, _, _ in Formatter().parse(template):
        line += text
        if field is None:
            continue
        given = next(rest)
        several = given if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
        if not line[-1:].strip() and any(map(_is_like_an_option, several)):
            line = f"{line[:-1]}=" if len(several) == 1 and _AFTER_AN_OPTION.search(line) else f"{line}-- "
        line += " ".join(map(_quoted, several))
    return Command(line)


def kubectl(namespace: str, template: str, *foreign: Argument | Sequence[Argument]) -> Command:
    """A command of kubectl in a namespace."""
    return command("kubectl --namespace {} {}", namespace, command(template, *foreign))


def _is_like_an_option(given: Argument) -> bool:
    return not isinstance(given, Command) and str(given).startswith("-")


def _quoted(given: Argument) -> str:
    """As the shell reads it back; what cannot be seen stands there by its bytes, so that a command is one line."""
    if isinstance(given, Command):
        return given
    text = json.dumps(given, separators=(",", ":")) if isinstance(given, Mapping) else str(given)
    return shlex.quote(text) if text.isprintable() else f"$'{''.join(map(_by_bytes, text))}'"


def _by_bytes(character: str) -> str:
    if character == "\0":                   # no argument of a program holds one: what was named so does not exist
        return r"\134000"
    if character.isascii() and character.isalnum():
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode(errors="surrogatepass"))
