"""What a broker's command line says against its file or environment."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from switchover.core.kraft import environment

_SCRIPT_FOLLOWS = re.compile(r"-[a-z]*c")
"""The option of a shell after which its script comes: `-c`, `-ec`."""


def overrides(container: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """The keys that a container's command line overrides: `--override key=value` (kafka.Kafka), and variables it assigns.

    What a shell makes of its variables cannot be told from here: such a value keeps its `$`. `prefix` is that of an image's
    variables, where the configuration comes from there.
    """
    found = environment.assigned(container, prefix) if prefix else {}
    arguments = [*_strings(container.get("command")), *_strings(container.get("args"))]
    words = list(_words(arguments))
    for flag, following in zip_longest(words, words[1:], fillvalue=""):
        setting = flag.removeprefix("--override=") if flag.startswith("--override=") else following
        if flag.startswith("--override") and "=" in setting:
            key, _, value = setting.partition("=")
            found[key] = value
    return found


def _words(arguments: Sequence[str]) -> Iterator[str]:
    """Arguments are words as they are; a script for a shell has words by the shell's rules."""
    for before, argument in zip(("", *arguments), arguments, strict=False):
        yield from _words_of(argument) if _SCRIPT_FOLLOWS.fullmatch(before) else (argument,)


def _words_of(script: str) -> Sequence[str]:
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=";&|")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:                              # a quote that is not closed: the shell would not run it either
        return script.split()


def _strings(value: object) -> Sequence[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []
