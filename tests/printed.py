"""Commands that the product prints for a person, and running them as they stand.

A test marked `case("Reason", …)` makes the state in which the product gives these reasons, gets what it prints, runs that by
`paste`, and asserts what must be so afterwards. A case that ran nothing fails.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from switchover.text import command as commands_made
from switchover.text.command import Command

LOOKS = re.compile(
    r"kubectl (-n \S+ |--namespace \S+ )?(get|describe|logs|rollout status|exec \S+ (--container \S+ )?-- cat) "
    r"|kafka-\S+ .*--(describe|list)\b|zookeeper-shell.sh \S+ (get|ls|stat) "
    r"|switchover (plan|preflight|status|explain)\b|\$\(")
"""Commands that change nothing."""
_made: set[str] = set()
pasted: list[str] = []
"""What the test that runs has pasted so far."""


def _noted(kind: type[Command], text: str) -> Command:
    _made.add(text)
    return str.__new__(kind, text)


Command.__new__ = _noted            # type: ignore[assignment,method-assign]
assert commands_made.command("kubectl {}", "x") in _made


def printed(text: str) -> list[str]:
    """The commands in a text, in its order, as the product has made them; not those that are parts of others."""
    return [text[begin:end] for begin, end in sorted(_spans(text))]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    spans = {match.span() for each in _made if each in text for match in re.finditer(re.escape(each), text)}
    for begin, end in spans:
        if not any(other != (begin, end) and other[0] <= begin and end <= other[1] for other in spans):
            yield begin, end


def changing(text: str) -> list[str]:
    """Those of the printed commands that change something."""
    return [each for each in printed(text) if not LOOKS.match(each)]


def paste(line: str, tools: Path, **environment: str) -> str:
    """What a printed command prints, run by a shell as it stands; `tools` has kubectl and whatever else it names.

    Raises `AssertionError` when it fails.
    """
    done = _run(line, {**os.environ, **environment, "PATH": f"{tools}:{os.environ['PATH']}"})
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    pasted.append(line)
    return done.stdout


def _run(line: str, environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """At a terminal, where somebody says yes to what our own program asks."""
    terminal, stdin = os.openpty()
    try:
        os.write(terminal, b"y\n" if line.startswith("switchover ") else b"\4")
        return subprocess.run(
            ["bash", "-c", line], env=environment, capture_output=True, text=True, timeout=300, stdin=stdin)
    finally:
        os.close(stdin)
        os.close(terminal)
