"""Every reason that prints a command which changes something has a case in which that command was run (tests/printed.py)."""

import ast
from collections import defaultdict
from pathlib import Path

from printed import changing
from switchover.reasons import REASONS
from tales import assert_golden
from unit.test_messages import of_gates

TESTS = Path(__file__).parents[1]
LAYERS = ("simulation", "adapters", "apiserver", "sandbox")
BEYOND_THE_TABLES = frozenset({"ApprovalVoid", "AwaitingApproval", "BeingDeleted", "HeldUntilTheEnd", "Paused",
                               "PointOfNoReturn", "RecordContradicted"})
"""What no table of findings has, since the walk says it."""
PAGE = Path(__file__).parent / "golden" / "cases.txt"


def acting() -> dict[str, str]:
    """Reason -> a command that changes something, which it prints."""
    said = (each for _, verdict in of_gates() for each in (verdict, *verdict.findings))
    return {each.reason: commands[0] for each in said
            if each.reason in REASONS and (commands := changing(f"{each.message} {each.unblocks}"))}


def cases() -> dict[str, list[str]]:
    """Reason -> the tests that say that they are its case."""
    found: dict[str, list[str]] = defaultdict(list)
    for layer in LAYERS:
        for path in sorted((TESTS / layer).glob("*.py")):
            for test in ast.walk(ast.parse(path.read_text())):
                for each in test.decorator_list if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) else ():
                    if isinstance(each, ast.Call) and ast.unparse(each.func) == "pytest.mark.case":
                        for reason in each.args:
                            found[ast.literal_eval(reason)].append(f"{layer}/{path.name}::{test.name}")
    return found


def test_what_changes_something_was_run() -> None:
    wanted = acting()
    assert "LeaderStuck" in wanted, "the tables still print commands"
    assert {*wanted} | BEYOND_THE_TABLES <= cases().keys() <= REASONS.keys()


def test_the_page_says_which_case_runs_the_command_of_a_reason() -> None:
    """Where the walk prints the command, or a page, the case alone has it."""
    wanted, found = acting(), cases()
    every = {*wanted} | BEYOND_THE_TABLES
    lines = [f"{len(every)} reasons print a command that changes something; {len({*found} - every)} more have a case."
             " `make messages` writes this page from the tables of findings and the marks of the tests."]
    for reason in sorted(found):
        lines += ["", reason, *(f"  {each}" for each in (wanted.get(reason), *found[reason]) if each)]
    assert_golden(PAGE, "\n".join([*lines, ""]), "MESSAGES")
