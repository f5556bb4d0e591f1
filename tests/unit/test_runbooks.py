"""Every reason that a gate can give has a runbook, and every runbook a reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNBOOKS = ROOT / "docs" / "runbooks"
VERDICTS = frozenset({"wait", "fail", "unknown"})
FINDINGS = VERDICTS - {"unknown"} | {"warn", "info"}
SOURCE = ROOT / "operator" / "switchover"


def reasons(within: Path = SOURCE, calls: frozenset[str] = VERDICTS) -> Iterator[str]:
    """The first argument of every call that makes a verdict but `passed`."""
    for path in within.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls and node.args:
                reason = node.args[0]
                assert isinstance(reason, ast.Constant), f"{path.name}:{node.lineno}: a reason must be written out"
                yield str(reason.value)


def test_reasons_and_runbooks_are_the_same() -> None:
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == set(reasons())


def test_the_index_lists_every_page() -> None:
    index = (RUNBOOKS / "README.md").read_text()
    pages = {path.name for path in RUNBOOKS.glob("*.md")} - {"README.md"}
    assert [page for page in pages if f"({page})" not in index] == []


def test_links_between_pages_lead_somewhere() -> None:
    for path in RUNBOOKS.glob("*.md"):
        for target in path.read_text().split("](")[1:]:
            assert (RUNBOOKS / target.partition(")")[0]).exists(), f"{path.name}: {target}"


def test_the_table_of_preflight_lists_every_finding() -> None:
    lines = (ROOT / "docs" / "preflight.md").read_text().splitlines()
    listed = [line.split("|")[1].strip() for line in lines if line.startswith("| ")][1:]
    assert sorted(listed) == sorted({*reasons(SOURCE / "core" / "kraft" / "preflight", FINDINGS)})
