"""The tests that prove what the documents say are there, and so are the commands. Their links: test_citations.py."""

import re
from collections.abc import Iterator
from pathlib import Path

import typer

from switchover.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LAYERS = [path.name for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py"))]
FILES = {path.name for path in (ROOT / "tests").rglob("test_*.py")}


def prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def missing_tests() -> Iterator[str]:
    for page in PAGES:
        for name in re.findall(rf"`(?:tests/)?((?:{'|'.join(LAYERS)})/(?:[\w/]+/)?test_\w+\.py)", prose(page)):
            if not (ROOT / "tests" / name).exists():
                yield f"{page.relative_to(ROOT)}: {name}"
        for name in re.findall(r"`(test_\w+\.py)", prose(page)):
            if name not in FILES:
                yield f"{page.relative_to(ROOT)}: {name}"


def missing_functions() -> Iterator[str]:
    for page in PAGES:
        for name, function in re.findall(r"`((?:\w+/)+test_\w+\.py)::(\w+)`", prose(page)):
            if not re.search(rf"^(?:async )?def {function}\(", (ROOT / "tests" / name).read_text(), re.MULTILINE):
                yield f"{page.relative_to(ROOT)}: {name}::{function}"


def test_the_tests_that_are_named_exist() -> None:
    assert {"unit", "simulation", "apiserver", "sandbox"} <= set(LAYERS)
    assert list(missing_tests()) == []
    assert list(missing_functions()) == []


def wrong_commands() -> Iterator[str]:
    commands = typer.main.get_command(app).commands     # type: ignore[attr-defined]
    for page in PAGES:
        for line in re.findall(r"(?:^|\$ |`|-- )switchover ([a-z][^`\n#|…]*)", page.read_text(), re.MULTILINE):
            name, *rest = line.split()
            known = {each for param in getattr(commands.get(name), "params", ()) for each in param.opts}
            given = {each.partition("=")[0] for each in rest if re.match(r"--[a-z]", each)} - {"--help"}
            if name not in commands or (name != "pipeline" and given - known):
                yield f"{page.relative_to(ROOT)}: switchover {line.strip()}"


def test_the_commands_on_the_pages_are_the_programs_own() -> None:
    assert list(wrong_commands()) == []


def test_each_defect_of_the_front_doors_is_held_by_a_test() -> None:
    table = (ROOT / "docs/testing.md").read_text().split("| | what it was | held by |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == [f"D{number}" for number in range(1, len(rows) + 1)]
    assert len(rows) >= 18
    assert [row for row in rows if "test_" not in row[2]] == []


def test_each_attacker_of_the_threat_model_is_held_by_a_test() -> None:
    """All that anybody cannot do names where that is proved, but for those who are trusted."""
    table = (ROOT / "docs/security.md").read_text().split("| who | cannot |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert len(rows) > 15
    assert [row for row in rows if row[1] and "test_" not in row[3]] == []
    named = {each for row in rows for each in re.findall(r"`([\w/]+\.py)`", row[3])}
    assert len(named) > 30
    assert [each for each in sorted(named) if not (ROOT / "tests" / each).is_file()] == []
