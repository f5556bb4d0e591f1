"""Reasons as the source gives them: the first argument of every call that makes a verdict or a finding, or the second one of
`seen`, after the fact."""

import ast
from collections.abc import Iterator
from pathlib import Path

import switchover
from switchover.reasons import MODULES, notes
from switchover.reasons.notes import Note
from switchover.reasons.reason import Reason

SOURCE = Path(switchover.__file__).parent
FOUND = frozenset({"wait", "fail"})
VERDICTS = FOUND | {"unknown", "seen"}
NOTED = frozenset({"warn", "info"})
FINDINGS = FOUND | NOTED
CONSTANTS = {name: each.name for module in MODULES for name, each in vars(module).items() if isinstance(each, Reason)}
NOTES = {name: each.name for name, each in vars(notes).items() if isinstance(each, Note)}


def reasons(within: Path = SOURCE, calls: frozenset[str] = VERDICTS) -> Iterator[str]:
    """What every call that makes a verdict but `passed` gives, in all that is below a directory."""
    for path in within.rglob("*.py"):
        yield from reasons_in(path.read_text(), calls, path.name)


def reasons_in(text: str, calls: frozenset[str], where: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls and node.args:
            reason = node.args[node.func.id == "seen"]
            known = CONSTANTS if node.func.id in VERDICTS else CONSTANTS | NOTES
            name = reason.id if isinstance(reason, ast.Name) else ""
            assert name in known, f"{where}:{node.lineno}: gives none of switchover.reasons"
            yield known[name]
