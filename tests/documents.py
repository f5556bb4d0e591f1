"""The commands on the pages for users: in which world each block of them runs, and what it prints there.

A fence without a language holds commands. The line before it says where they run, or why they do not:

    <!-- run: WORLD[, at PLACE][, exit CODE][; not PROGRAM, PROGRAM: why] -->
    <!-- not run: why -->

WORLD is `nothing` (the wheel and the checkout alone), `api` (tests/apiserver), `kafka` (tests/adapters), or a test that runs
these very commands. PLACE is a state of that world. `make` says what it would do: to do it takes minutes, and root.
"""

import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from apiserver.terminal import terminal
from patience import stretched

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    ROOT / page for pattern in ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/guide/*.md", "docs/charts/*.md",
                                "docs/pipeline/*.md", "helm/switchover/README.md", "bench/README.md")
    for page in ROOT.glob(pattern))
FENCE = re.compile(r"^(?P<before>.*)\n(?P<indent> *)```(?P<language>\w*)\n(?P<text>(?:.*\n)*?)(?P=indent)```$", re.MULTILINE)
MARKER = re.compile(
    r" *<!-- (?:run: (?P<world>[\w/.]+)(?:, at (?P<place>\w+))?(?:, exit (?P<code>\d))?(?:; not (?P<without>[^:]+): .+)?"
    r"|not run: .+) -->")
ENDLESS = re.compile(r"^(?=.*--(?:watch|follow)\b|switchover (?:dashboard|consume)\b)", re.MULTILINE)
"""What a person ends by Ctrl-C."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Block(NamedTuple):
    """The text between two fences of a page."""

    page: str
    line: int
    text: str
    marker: dict[str, str] | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def script(self) -> str:
        """Its commands for bash, without those of programs that its world has not got."""
        lines = self.text.replace("\\\n", "\0").splitlines()
        if lines[0].startswith("$ "):
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        absent = tuple((self.marker or {}).get("without", "\n").split(", "))
        return "\n".join(line.replace("\0", "\\\n") for line in lines if not line.startswith(absent))

    @property
    def printed(self) -> re.Pattern[str]:
        """What it prints, in shape: a word with a digit may be another one; `…` may be anything, and alone any lines."""
        lines = self.text.replace("\\\n", "\0").splitlines()
        shown = [line.split() for line in lines if line and not line.startswith("$ ")] if lines[0].startswith("$ ") else []
        return re.compile("".join(
            r"(?:.*\n)*?" if words == ["…"] else rf" *{' +'.join(map(shape, words))} *\n?" for words in shown))


def shape(word: str) -> str:
    return r"\S+" if re.search(r"\d", word) else ".*".join(map(re.escape, word.split("…")))


def blocks(language: str = "") -> Iterator[Block]:
    """Those in this language; without one, those of commands."""
    for page in PAGES:
        text = page.read_text()
        for found in FENCE.finditer(text):
            if found["language"] == language:
                line, marker = text.count("\n", 0, found.start("text")), MARKER.fullmatch(found["before"])
                yield Block(str(page.relative_to(ROOT)), line, textwrap.dedent(found["text"]),
                            {key: value for key, value in marker.groupdict().items() if value} if marker else None)


def of(world: str) -> list[Block]:
    return [block for block in blocks() if block.marker and block.marker.get("world") == world]


def sampled(world: str) -> list[Any]:
    """The same as parameters of a test: an ordinary run takes those of the README alone."""
    return [pytest.param(block, id=str(block), marks=() if block.page == "README.md" else pytest.mark.long)
            for block in of(world)]


def standing_in(namespace: str, kubeconfig: Path, directory: Path) -> Path:
    """The kubeconfig of a person whose context has this namespace, in their directory."""
    settings = yaml.safe_load(kubeconfig.read_text())
    settings["contexts"][0]["context"]["namespace"] = namespace
    own = directory / "kubeconfig"
    own.write_text(yaml.safe_dump(settings))
    return own


def run(block: Block, directory: Path, script: str, names: Mapping[str, str] | None = None, *, seconds: float = 60,
        **environment: str) -> str:
    """What bash shows of these commands on a terminal, as in a checkout, to a person who says yes to every question; `names`
    are those that the page has in place of the world's.

    AssertionError where a command exits with another code than the marker says, or what is shown has another shape.
    """
    for path in ROOT.iterdir():
        if path.name not in {".git", ".venv", "build"}:
            (directory / path.name).symlink_to(path)
    codes, file = directory / "codes", directory / "commands"
    patient = ENDLESS.sub(f"timeout --foreground --signal INT {stretched(5):.0f} ", script)
    file.write_text(f"trap 'echo $? >>codes' ERR\nset -uo pipefail\n{patient}\n")
    path = f"{environment.pop('PATH', '')}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"HOME": str(directory), "PATH": path, "MAKEFLAGS": "n", "KUBE_EDITOR": "true", **environment}
    with terminal(("bash", "-c", 'cd "$1" && exec bash commands', "-", directory), environment) as person:
        person.leaves(seconds, question="[y/N]:", answer="y\n")
    shown = ESCAPES.sub("", person.shown)
    for name, page in (names or {}).items():
        shown = shown.replace(name, page)
    failed = [code for code in codes.read_text().split() if code != "124"] if codes.exists() else []
    assert failed == [*(block.marker or {}).get("code", "")], f"{block}: {failed}\n{shown}"
    assert block.printed.search(shown), f"{block}: {block.printed.pattern}\n{shown}"
    return shown
