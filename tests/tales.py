"""Stories that a person can read, in tests/stories: tests that live them compare them. `make stories` writes them anew."""

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from switchover.engine.story import WIDTH, laid_out

STORIES = Path(__file__).parent / "stories"

Tale = list[tuple[float, str]]
"""Lines with their times, in seconds. What begins with a star no operator told: the test did it, or a person in it."""


def without_nonce(text: str) -> str:
    """In names of objects a nonce is made of the time, to its last digit."""
    return re.sub(r"(?<=-)[0-9a-f]{16}(?=-\d)", "NONCE", text)


def assert_told(name: str, about: str, tale: Iterable[tuple[float, str]]) -> None:
    """That the story of this name is told as it stands in its file, from its first line on in minutes and seconds."""
    lines = [(at, without_nonce(line)) for at, line in tale]
    begin = lines[0][0]
    text = "".join(f"{line}\n" for line in (f"# {about}", "", *laid_out((_minutes(at - begin), line) for at, line in lines)))
    assert max(map(len, about.splitlines())) < WIDTH
    assert_golden(STORIES / f"{name}.txt", text, "STORIES")


def assert_golden(file: Path, text: str, variable: str) -> None:
    """That the file has this text. With `write` in the variable, which `make` of its name sets, it is written."""
    if os.environ.get(variable) == "write":
        file.write_text(text, encoding="utf-8")
        return
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    if before != text:
        differences = difflib.unified_diff(
            before.splitlines(), text.splitlines(), f"{file.parent.name}/{file.name}", "as it is now", lineterm="")
        pytest.fail("\n".join([*differences, "", f"If that is right, `make {variable.lower()}` writes it."]), pytrace=False)


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60:3d}:{int(seconds) % 60:02d}"
