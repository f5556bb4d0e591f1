"""Every reason that a gate can give has a runbook, and every runbook a reason."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from switchover.cli.explain import REFERENCE, explain, plain, sections
from switchover.cluster.rehearsal import judge
from switchover.engine import reconcile
from switchover.groups import preflight as groups
from switchover.groups.gates import membership
from switchover.groups.gates.protocol import check_plain_assignments
from switchover.reasons import REASONS, notes
from switchover.reasons.reason import Reason, Urgency
from switchover.reasons.walk import MUST_HOLD
from unit.given_reasons import CONSTANTS, FINDINGS, FOUND, NOTED, NOTES, SOURCE, reasons, reasons_in

ROOT = Path(__file__).parents[2]
RUNBOOKS = ROOT / "docs" / "runbooks"
SUBJECTS = sorted({each.subject for each in REASONS.values()})
TO_DO = re.compile(r"^\*\*(Do|All of it)\b|\. `switchover explain \w+` prints \[", re.MULTILINE)
"""What a section must have, or where it is."""


def rehearsed() -> Iterator[tuple[str, str]]:
    """Of everything that a rehearsal can find, the reason and how its severity is written."""
    yield from ((reason.name, "BLOCKER") for _, reason, _ in judge.ENDS.values())
    for node in ast.walk(ast.parse(inspect.getsource(judge))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id == "blocker" and isinstance(reason := node.args[1], ast.Name) and reason.id in CONSTANTS:
            yield CONSTANTS[reason.id], "BLOCKER"
        elif node.func.id == "note" and isinstance(reason := node.args[1], ast.Name):
            yield NOTES[reason.id], ast.unparse(node.args[2])


POLICY = frozenset(reason for reason in reasons_in((SOURCE / "engine/policy.py").read_text(), FINDINGS, "policy.py"))
"""What both kinds of Preflight find of images and credentials."""


def test_every_reason_is_given_and_no_other() -> None:
    found = {reason for reason, severity in rehearsed() if severity not in ("WARNING", "INFO")}
    stops = {each.name for each in vars(reconcile).values() if isinstance(each, Reason)}
    given = {MUST_HOLD.name, *reasons(), *found, *stops}
    assert given == set(REASONS)
    assert set(CONSTANTS.values()) == set(REASONS)
    assert len(CONSTANTS) == len(REASONS)


def test_every_note_is_given() -> None:
    found = {code for code, severity in rehearsed() if severity in ("WARNING", "INFO")}
    given = {*reasons(calls=NOTED), *found}
    assert given - {*REASONS} <= {*notes.NOTES} <= given
    assert {*notes.NOTES} == {*NOTES.values()}


def test_the_tables_of_findings_say_of_a_note_what_explain_says() -> None:
    pages = [(ROOT / "docs" / f"{page}.md").read_text() for page in ("preflight", "preflight-groups", "rehearsal")]
    lines = [line for page in pages for line in page.splitlines() if line.count("|") == 4]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    told = {(name, re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", when)) for _, name, _, when, _ in rows if name in notes.NOTES}
    assert told == {(each.name, each.when) for each in notes.NOTES.values()}
    assert all(each.when in explain(each.name) for each in notes.NOTES.values() if each.name not in REASONS)


def test_what_is_prose_has_its_page_and_nothing_else_has_one() -> None:
    assert {page.stem for page in RUNBOOKS.glob("*.md")} == {
        *SUBJECTS, "README", *(each.name for each in REASONS.values() if each.prose)}


def test_the_index_names_the_page_of_each_subject() -> None:
    listed = re.findall(r"^\* \[(.*)\]\((.*)\.md\)$", (RUNBOOKS / "README.md").read_text(), re.MULTILINE)
    titles = [(RUNBOOKS / f"{subject}.md").read_text().partition("\n")[0] for _, subject in listed]
    assert (sorted(subject for _, subject in listed), [f"# {title}" for title, _ in listed]) == (SUBJECTS, titles)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_page_has_a_section_for_each_of_its_reasons_and_no_other(subject: str) -> None:
    found = [*sections((RUNBOOKS / f"{subject}.md").read_text())]
    assert found == sorted(each.name for each in REASONS.values() if each.subject == subject)


@pytest.mark.parametrize("reason", REASONS.values(), ids=lambda reason: reason.name)
def test_a_runbook_says_how_urgent_it_is_and_what_to_do(reason: Reason) -> None:
    texts = [sections((RUNBOOKS / f"{reason.subject}.md").read_text())[reason.name]]
    if reason.prose:
        texts.append((RUNBOOKS / f"{reason.name}.md").read_text())
        assert f"]({reason.name}.md)" in texts[0]
    for text in texts:
        assert f"Urgency: {reason.urgency.short}.\n" in text
        assert TO_DO.search(text)


def test_what_an_urgency_means_stands_once_in_the_index_and_is_printed_with_each_reason() -> None:
    index = (RUNBOOKS / "README.md").read_text()
    assert all(f"* {each}.\n" in index for each in Urgency)
    assert all(f"Urgency: {each.urgency}.\n" in explain(each.name) for each in REASONS.values())


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_reason_that_a_page_names_is_a_link_to_its_runbook(subject: str) -> None:
    """`[OtherReason]` in the text, and where it leads at the page's end."""
    text, *links = re.split(r"(?m)^(?=\[\w+\]: )", (RUNBOOKS / f"{subject}.md").read_text())
    prose = re.sub(r"(?ms)^```.*?^```$", "", text)
    named = {name or words for words, name in REFERENCE.findall(prose) if (name or words)[:1].isupper()}
    assert named <= REASONS.keys()
    led = {name: REASONS[name].runbook.removeprefix("runbooks/") for name in sorted(named)}
    assert "".join(links) == "".join(f"[{name}]: {place}\n" for name, place in led.items())


def test_on_a_terminal_a_link_is_the_name() -> None:
    told = plain("See [GroupLag], [the lag][LagUnhealthy] and `a[0]`, [here](x.md).")
    assert told == "See GroupLag, the lag (LagUnhealthy) and `a[0]`, [here](x.md)."


def listed(lines: Iterable[str]) -> list[str]:
    """The first column of a table, without its heading."""
    return sorted([line.split("|")[1].strip() for line in lines if line.startswith("| ")][1:])


def test_the_table_of_preflight_lists_every_finding() -> None:
    lines = (ROOT / "docs" / "preflight.md").read_text().splitlines()
    assert listed(lines) == sorted({*reasons(SOURCE / "cluster" / "preflight", FINDINGS), *POLICY})


def test_the_table_of_the_rehearsal_lists_every_finding() -> None:
    lines = (ROOT / "docs" / "rehearsal.md").read_text().splitlines()
    assert listed(line for line in lines if line.count("|") == 4) == sorted({reason for reason, _ in rehearsed()})


def test_the_tables_of_preflight_for_groups_list_every_finding_and_what_its_other_gates_wait_for() -> None:
    text, _, coordination = (ROOT / "docs" / "preflight-groups.md").read_text().partition("\n## Coordination")
    findings, _, gates = text.partition("\n## Gates")
    moved = (SOURCE / "groups" / "coordination" / "preflight.py").read_text()
    assert listed(coordination.splitlines()) == sorted({*reasons_in(moved, FINDINGS, "preflight")})
    own, borrowed = SOURCE / "groups" / "preflight", inspect.getsource(check_plain_assignments)
    assert listed(findings.splitlines()) == sorted(
        {*reasons(own, FINDINGS), *POLICY, *reasons_in(borrowed, FINDINGS, "check_plain_assignments")})
    shared = [gate.look for gate in groups.GATES if ".gates." in gate.look.__module__]
    text = "\n".join(map(inspect.getsource, (*shared, membership.no_member_to_be, membership.judge_foreign)))
    assert listed(gates.splitlines()) == sorted({*reasons_in(text, FOUND, "gates")})
