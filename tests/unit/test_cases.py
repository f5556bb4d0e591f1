"""Every reason that prints a command which changes something has a case in which that command was run (tests/printed.py)."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from printed import changing
from switchover.engine.gate import Verdict
from switchover.reasons import REASONS
from unit import test_group_findings, test_kraft_findings, test_kraft_preflight
from unit.pictures import moment

TESTS = Path(__file__).parents[1]
LAYERS = ("simulation", "adapters", "apiserver", "sandbox")
BEYOND_THE_TABLES = frozenset({"ApprovalVoid", "AwaitingApproval", "BeingDeleted", "HeldUntilTheEnd", "Paused",
                               "PointOfNoReturn", "RecordContradicted"})
"""What no table of findings has, since the walk says it."""
NOT_RUN: Mapping[str, str] = {
    "DoorStillThere": "no case yet: the simulated migration that was tried did not come to this state",
    "PodsNeedZooKeeper": "no case yet: `kubectl edit` needs more of the API than the simulated one has",
    "StartedByOtherEdits": "no case yet: the simulated migration that was tried did not come to this state",
}
"""Reason -> why no case runs what it prints."""


def verdicts() -> Iterator[Verdict]:
    """What the gates say of all that the tables plant."""
    for table in (test_kraft_findings, test_group_findings):
        for each in table.FINDINGS:
            yield table.GATES[each.gate].check(each.spoil(table.MOMENTS[each.gate]()))
    for bad in test_kraft_preflight.BAD:
        yield test_kraft_preflight.check(bad.gate, bad.spoil(moment("Preflight")))


def acting() -> dict[str, str]:
    """Reason -> a command that changes something, which it prints."""
    said = (each for verdict in verdicts() for each in (verdict, *verdict.findings))
    return {each.reason: commands[0] for each in said
            if each.reason in REASONS and (commands := changing(f"{each.message} {each.unblocks}"))}


def cases() -> set[str]:
    """The reasons of which a test says that it is their case."""
    calls = (node for layer in LAYERS for path in sorted((TESTS / layer).glob("*.py"))
             for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.case")
    return {ast.literal_eval(each) for call in calls for each in call.args}


def test_what_changes_something_was_run() -> None:
    found = acting()
    assert "LeaderStuck" in found, "the tables still print commands"
    missing = {reason: found.get(reason, "") for reason in {*found} | BEYOND_THE_TABLES}
    for reason in cases() | {*NOT_RUN}:
        missing.pop(reason, None)
    assert missing == {}


def test_a_case_is_of_a_reason_and_no_excuse_outlives_it() -> None:
    assert cases() - {*REASONS} == set()
    assert {*NOT_RUN} & cases() == set()
    assert {*NOT_RUN} <= {*acting()}
