"""Reasons as the source gives them: the first argument of every call that makes a verdict or a finding."""

import ast
from collections.abc import Iterator
from pathlib import Path

import switchover
from switchover.reasons import MODULES
from switchover.reasons.reason import Reason

SOURCE = Path(switchover.__file__).parent
VERDICTS = frozenset({"wait", "fail", "unknown"})
FINDINGS = VERDICTS - {"unknown"} | {"warn", "info"}
CONSTANTS = {name: each.name for module in MODULES for name, each in vars(module).items() if isinstance(each, Reason)}


def reasons(within: Path = SOURCE, calls: frozenset[str] = VERDICTS) -> Iterator[str]:
    """The first argument of every call that makes a verdict but `passed`, in all that is below a directory."""
    for path in within.rglob("*.py"):
        yield from reasons_in(path.read_text(), calls, path.name)


def reasons_in(text: str, calls: frozenset[str], where: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls and node.args:
            reason = node.args[0]
            if node.func.id in VERDICTS:
                assert isinstance(reason, ast.Name), f"{where}:{node.lineno}: a reason must be one of switchover.reasons"
                yield CONSTANTS[reason.id]
            else:
                assert isinstance(reason, ast.Constant), f"{where}:{node.lineno}: a finding must be written out"
                yield str(reason.value)
