"""Figures on the pages are the code's own (claims.py), or measured: whoever changes one learns here which page says it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from os.path import relpath
from pathlib import Path

import pytest

from ratchet import GENERATED
from switchover.api import consumer_group_migration, kafka_migration
from switchover.api.schema import Model
from switchover.pipeline import config
from unit.claims import CLAIMS, value

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "docs/measurements.md"
CHART = ROOT / "helm/switchover"
PAGES = sorted({ROOT / "README.md", ROOT / "bench/README.md", CHART / "README.md", CHART / "values.yaml",
                *(page for room in ("", "guide", "pipeline") for page in (ROOT / "docs" / room).glob("*.md"))} - {MEASURED})
COUNTED = {word: float(number) for number, word in enumerate(re.findall(
    r"\w+", "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"), 1)}
WORDS = COUNTED | {"a": 1, "an": 1, "half": 0.5, "twenty": 20, "fifty": 50, "twice": 2}
UNIT = r"(s|ms|min|h|KiB|MiB|GiB|MB|GB|%|seconds|minutes|hours|days|alerts|commands|panels|times)(?![\w`-])"
FIGURE = re.compile(rf"(?<![\w.,:/#-])(?:(\d[\d,.]*)[ -]?|({'|'.join(COUNTED)}|twenty|fifty)[ -]){UNIT}", re.IGNORECASE)
DEFAULT = re.compile(r"`(?:[a-z.]+\.)?(\w+)`[^`|.(]{0,30}\(([\d,]+)( days)?[);]")
PLAIN = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")

LEFT = {
    "../README": 2, "../helm/switchover/README": 1, "disaster": 1, "guide/group-deployments": 2, "guide/group-rollback": 1,
    "guide/group-steps": 3, "guide/group-tools": 1, "guide/groups": 1, "guide/prepare": 1, "kafka-4": 1,
    "pipeline/README": 1, "pipeline/baseline": 1, "pipeline/inventory": 1, "preflight-groups": 1, "sandbox": 1, "testing": 1}
"""How many figures of a page nothing gives: what Kafka or Kubernetes does, examples, what a machine needs. It only falls."""


def number(text: str) -> float:
    return WORDS[text.lower()] if text.lower() in WORDS else float(text.replace(",", ""))


@cache
def sections(page: Path) -> list[tuple[str, str]]:
    """The title, and all of it on one line without blocks of code."""
    text = re.sub(r"```.*?```", "", GENERATED.sub("", page.read_text()), flags=re.DOTALL)
    parts = re.split(r"\n(?=#+ )", text) if page.suffix == ".md" else [text.replace("\n# ", "\n")]
    return [(part.partition("\n")[0].lstrip("# "), re.sub(r"\s+", " ", part).strip()) for part in parts]


@pytest.mark.parametrize(("page", "claim", "values"), [(page, claim, values) for page, claim, *values in CLAIMS])
def test_a_figure_is_what_the_code_does(page: str, claim: str, values: list[float | str]) -> None:
    found = [each for _, text in sections(ROOT / "docs" / f"{page}.md") for each in re.finditer(claim, text)]
    assert found, f"{page} says it no more"
    for each in found:
        assert [number(group) for group in each.groups()] == [value(given) for given in values], each[0]


@cache
def defaults() -> dict[str, set[float]]:
    found: dict[str, set[float]] = defaultdict(set)
    models = [each for module in (kafka_migration, consumer_group_migration, config) for each in vars(module).values()
              if isinstance(each, type) and issubclass(each, Model)]
    for field in (field for model in models for field in model.model_fields.values()):
        if isinstance(field.default, int | float):
            found[field.alias or ""].add(field.default)
    return found


def test_a_default_behind_its_field_is_the_fields_own() -> None:
    said = [(page, each[1], number(each[2]) * (86_400 if each[3] else 1)) for page in PAGES for _, text in sections(page)
            for each in DEFAULT.finditer(text) if each[1] in defaults()]
    assert len(said) > 8
    assert [each for each in said if each[2] not in defaults()[each[1]]] == []


def is_measured(figure: str, unit: str) -> bool:
    """Whether a line of measurements.md with this unit has a number that rounds to the figure."""
    digits = len(figure.partition(".")[2])
    return any(round(number(each), digits) == number(figure) for line in MEASURED.read_text().splitlines()
               if re.search(rf"(?<![A-Za-z]){unit}(?![A-Za-z])", line) for each in PLAIN.findall(line))


def unfounded(page: Path) -> Iterator[str]:
    """Figures that no claim and no default is. What a section that links to the measurements says must stand there; what
    these link to is a table of measurements itself."""
    name = relpath(page, ROOT / "docs").removesuffix(".md")
    tables = set(re.findall(rf"\]\({re.escape(name)}\.md(?:#([\w-]*))?\)", MEASURED.read_text()))
    claims = [DEFAULT, *(row[1] for row in CLAIMS if row[0] == name)]
    for title, text in sections(page):
        if tables & {"", re.sub(r"\W+", "-", title.lower())}:
            continue
        said = [each.span() for claim in claims for each in re.finditer(claim, text)]
        for each in FIGURE.finditer(re.sub(r"`[^`]*`", lambda inline: "`" * len(inline[0]), text)):
            if not any(begin <= each.start() < end for begin, end in said) and not (
                    MEASURED.name in text and is_measured(each[1] or each[2], each[3])):
                yield f"{name}: …{text[max(0, each.start() - 50):each.end() + 20]}…"


def test_other_figures_become_no_more() -> None:
    found = [each for page in PAGES for each in unfounded(page)]
    assert Counter(each.partition(":")[0] for each in found) == LEFT, "\n".join(found)
