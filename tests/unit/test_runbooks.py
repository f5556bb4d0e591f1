"""Every reason that a gate can give has a runbook, and every runbook a reason."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path

from switchover.core.groups import preflight as groups
from switchover.core.groups.gates import membership
from switchover.core.groups.gates.protocol import check_plain_assignments
from switchover.core.status import MUST_HOLD
from switchover.rehearsal import judge

ROOT = Path(__file__).parents[2]
RUNBOOKS = ROOT / "docs" / "runbooks"
VERDICTS = frozenset({"wait", "fail", "unknown"})
FINDINGS = VERDICTS - {"unknown"} | {"warn", "info"}
SOURCE = ROOT / "operator" / "switchover"


def reasons(within: Path = SOURCE, calls: frozenset[str] = VERDICTS) -> Iterator[str]:
    """The first argument of every call that makes a verdict but `passed`."""
    for path in within.rglob("*.py"):
        yield from reasons_in(path.read_text(), calls, path.name)


def reasons_in(text: str, calls: frozenset[str], where: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls and node.args:
            reason = node.args[0]
            assert isinstance(reason, ast.Constant), f"{where}:{node.lineno}: a reason must be written out"
            yield str(reason.value)


def rehearsed() -> Iterator[tuple[str, str]]:
    """Of everything that a rehearsal can find, the reason and how its severity is written."""
    yield from ((reason, "BLOCKER") for _, reason, _ in judge.ENDS.values())
    for node in ast.walk(ast.parse(inspect.getsource(judge))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
            _, reason, severity, *_ = node.args
            if isinstance(reason, ast.Constant):
                yield str(reason.value), ast.unparse(severity)


POLICY = frozenset(reason for file in ("policy.py", "credentials.py")
                   for reason in reasons_in((SOURCE / "core" / file).read_text(), FINDINGS, file))
"""What both kinds of Preflight find of images and credentials."""


def test_reasons_and_runbooks_are_the_same() -> None:
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == {MUST_HOLD, *reasons(),
                     *(reason for reason, severity in rehearsed() if severity not in ("WARNING", "INFO"))}


def test_the_index_lists_every_page() -> None:
    index = (RUNBOOKS / "README.md").read_text()
    pages = {path.name for path in RUNBOOKS.glob("*.md")} - {"README.md"}
    assert [page for page in pages if f"({page})" not in index] == []


def test_links_between_pages_lead_somewhere() -> None:
    for path in RUNBOOKS.glob("*.md"):
        for target in path.read_text().split("](")[1:]:
            assert (RUNBOOKS / target.partition(")")[0].partition("#")[0]).exists(), f"{path.name}: {target}"


def listed(lines: Iterable[str]) -> list[str]:
    """The first column of a table, without its heading."""
    return sorted([line.split("|")[1].strip() for line in lines if line.startswith("| ")][1:])


def test_the_table_of_preflight_lists_every_finding() -> None:
    lines = (ROOT / "docs" / "preflight.md").read_text().splitlines()
    assert listed(lines) == sorted({*reasons(SOURCE / "core" / "kraft" / "preflight", FINDINGS), *POLICY})


def test_the_table_of_the_rehearsal_lists_every_finding() -> None:
    lines = (ROOT / "docs" / "rehearsal.md").read_text().splitlines()
    assert listed(line for line in lines if line.count("|") == 4) == sorted({reason for reason, _ in rehearsed()})


def test_the_tables_of_preflight_for_groups_list_every_finding_and_what_its_other_gates_wait_for() -> None:
    text, _, coordination = (ROOT / "docs" / "preflight-groups.md").read_text().partition("\n## Coordination")
    findings, _, gates = text.partition("\n## Gates")
    moved = SOURCE / "core" / "groups" / "coordination" / "preflight"
    assert listed(coordination.splitlines()) == sorted({*reasons(moved, FINDINGS)})
    own, borrowed = SOURCE / "core" / "groups" / "preflight", inspect.getsource(check_plain_assignments)
    assert listed(findings.splitlines()) == sorted(
        {*reasons(own, FINDINGS), *POLICY, *reasons_in(borrowed, FINDINGS, "check_plain_assignments")})
    shared = [gate.check for gate in groups.GATES if ".gates." in gate.check.__module__]
    text = "\n".join(map(inspect.getsource, (*shared, membership.no_member_to_be, membership.judge_strangers)))
    assert listed(gates.splitlines()) == sorted({*reasons_in(text, VERDICTS - {"unknown"}, "gates")})
