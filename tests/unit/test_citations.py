"""What code and documents cite is in this repository: the page, and the heading on it."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import reference

ROOT = Path(__file__).parents[2]
TRACKED = tuple(Path(name) for name in subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True,
).stdout.splitlines() if (ROOT / name).is_file() and not (ROOT / name).is_symlink())
TEXTS = (".py", ".java", ".xml", ".yaml", ".yml", ".toml", ".go", ".sh", ".tpl", ".j2", ".md", "")
CITATION = re.compile(r"(?<![\w/.-])((?:docs|tests|operator)/[\w./-]+\.md)(#[\w-]+)?")
"""A page of the repository, as code and comments name it."""
LINK = re.compile(r"(?<!\\)\]\(<?([^)\s>]+)>?\)")
DEFINITION = re.compile(r"^\[[^]]+\]: (\S+)$", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
TEST = re.compile(r"`((?:unit|simulation|pipeline|adapters|apiserver|sandbox|packaging|invariants)/[\w/]+\.py)`")
"""A test that a page of facts names as its evidence."""
MADE = Path("docs/reference")
"""Pages that `make docs` makes; they are read as it would write them."""
ELSEWHERE = re.compile(
    r"\b(?:zkcc|group-protocol|kraft-migration|lag-and-spark|progressive-delivery|codebases|reliability|feasibility-[a-z]+)\.md"
    r'|"""[GCF]\d{1,2}(?:\.\d)?(?::|,| and | to )'
    r"|\bdesign,? (?:promise|section)|\bsection \d+ of the (?:design|lag sheet)")
"""What was cited here once and is in no repository."""


@cache
def made() -> dict[Path, str]:
    return {MADE / name: text for name, text in reference.pages().items()}


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = FENCE.sub("", read(page))
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return frozenset([*found, *re.findall(r'<a (?:id|name)="([^"]+)"', text)])


def missing(page: Path, anchor: str) -> str:
    """What is not there: the page, its heading, or nothing."""
    if not (page in made() if page.parent == MADE else (ROOT / page).exists()):
        return f"{page} is not there"
    return f"{page} has no #{anchor}" if anchor and anchor not in anchors(page) else ""


def read(path: Path) -> str:
    if path.parent == MADE:
        return made()[path]
    try:
        return (ROOT / path).read_text()
    except UnicodeDecodeError:
        return ""


def cited(text: str) -> Iterator[tuple[Path, str]]:
    """The pages that a text names by their path from the root, each with its anchor."""
    for page, anchor in CITATION.findall(text):
        yield Path(page), anchor.removeprefix("#")


def linked(source: Path, text: str) -> Iterator[tuple[Path, str]]:
    """Where a page's own links lead in this repository."""
    prose = FENCE.sub("", re.sub(r"`[^`\n]*`", "", text))
    for target in [*LINK.findall(prose), *DEFINITION.findall(prose)]:
        if re.match(r"[a-z][a-z+.-]*:|/", target):
            continue
        path, _, anchor = target.partition("#")
        page = (ROOT / source.parent / path).resolve() if path else ROOT / source
        yield page.relative_to(ROOT) if page.is_relative_to(ROOT) else page, anchor if page.suffix == ".md" else ""


def test_what_is_cited_is_there() -> None:
    wrong = [f"{source}: {what}" for source in TRACKED if source.suffix in TEXTS and source.name != "CHANGELOG.md"
             for page, anchor in cited(read(source)) if (what := missing(page, anchor))]
    assert not wrong, "\n".join(wrong)


def test_every_link_of_a_page_leads_somewhere() -> None:
    pages = [*made(), *(page for page in TRACKED if page.suffix == ".md")]
    wrong = [f"{page}: {what}" for page in pages for target, anchor in linked(page, read(page))
             if (what := missing(target, anchor))]
    assert len(pages) > 50
    assert not wrong, "\n".join(wrong)


def test_the_evidence_of_facts_is_a_test_that_is_there() -> None:
    pages = list((ROOT / "docs" / "facts").glob("*.md"))
    wrong = [f"{page.name}: {test}" for page in pages for test in TEST.findall(page.read_text())
             if not (ROOT / "tests" / test).is_file()]
    assert len(pages) > 6
    assert not wrong


def test_nothing_cites_what_is_not_here() -> None:
    wrong = [f"{source}: {found.group()}" for source in TRACKED
             if source.suffix in TEXTS and source.name != Path(__file__).name for found in ELSEWHERE.finditer(read(source))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("page", "found"), [
    ("architecture.md#promises", ""), ("architecture.md", ""),
    ("facts/kraft.md#no-such", "D/facts/kraft.md has no #no-such"), ("no-such.md", "D/no-such.md is not there")])
def test_a_citation_is_followed(page: str, found: str) -> None:
    assert [missing(*each) for each in cited(f"(see docs/{page}).")] == [found.replace("D/", "docs/")]


def test_a_link_is_followed_from_its_page() -> None:
    page = Path("docs/facts/kraft.md")
    text = "[a](#metrics) [b](../api.md#nothing) [c](https://example.org/x#y) ```[d](no.md)``` `[e](no.md)`"
    assert [missing(target, anchor) for target, anchor in linked(page, text)] == ["", "docs/api.md has no #nothing"]
