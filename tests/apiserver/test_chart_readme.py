"""The chart's README has every value, as values.yaml says it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from apiserver.charts import CHART


def described(text: str) -> dict[str, str]:
    """path -> what a line `# --` says above it"""
    found: dict[str, str] = {}
    parents: list[str] = []
    words = ""
    for line in text.splitlines():
        if told := re.fullmatch(r" *# -- (.+)", line):
            words = told[1]
        elif key := re.match(r"( *)([A-Za-z]+):", line):
            parents[len(key[1]) // 2:] = [key[2]]
            if words:
                found[".".join(parents)] = words
            words = ""
    return found


def defaults(values: Mapping[str, Any], known: Mapping[str, str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every path that has words of its own, and every leaf beside them, with its default."""
    for key, value in values.items():
        path = f"{prefix}{key}"
        if path in known or not isinstance(value, dict) or not value:
            yield path, value
        else:
            yield from defaults(value, known, f"{path}.")


def rows() -> list[str]:
    """Raises KeyError for a value without words."""
    text = (CHART / "values.yaml").read_text()
    words = described(text)
    return [f"| `{path}` | `{json.dumps(value)}` | {words[path]} |" for path, value in defaults(yaml.safe_load(text), words)]


def test_every_value_has_its_row() -> None:
    """What fails prints the row to paste."""
    wanted = rows()
    found = [line for line in (CHART / "README.md").read_text().splitlines() if line.startswith("| `")]
    assert "\n".join(found) == "\n".join(wanted)
    assert len(wanted) > 30
