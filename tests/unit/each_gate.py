"""For the rules of every gate, of a cluster's migration and of a group's: which there are, what one reads, what shuts it."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import fields
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from switchover.api.status import Verdict as Outcome
from switchover.engine.gate import Gate, Verdict

Facts = TypeVar("Facts")


class Finding(NamedTuple):
    """What is wrong with the healthy picture of a gate, and what the gate must say; `cure` is in what unblocks it."""

    gate: str
    what: str
    spoil: Callable[[Any], Any]
    outcome: Outcome
    reason: str
    subject: str = ""
    cure: str = ""

    @property
    def title(self) -> str:
        """The name of its test."""
        return f"{self.gate}: {self.what}"

    def told(self, verdict: Verdict) -> None:
        """Raises `AssertionError` unless the verdict says it, in words."""
        assert (verdict.outcome, verdict.reason) == (self.outcome, self.reason), verdict
        assert verdict.message
        assert not self.subject or self.subject == verdict.subject
        assert self.cure in verdict.unblocks
        assert verdict.unblocks


def every_gate(gates: ModuleType, preflight: ModuleType) -> dict[str, Gate[Any]]:
    """Every gate of a plan, wherever a module keeps it, by its name."""
    modules = [importlib.import_module(f"{gates.__name__}.{found.name}") for found in pkgutil.iter_modules(gates.__path__)]
    found = [item for module in (*modules, preflight) for item in vars(module).values() if isinstance(item, Gate)]
    by_name = {gate.name: gate for gate in (*found, *preflight.GATES)}
    assert len(by_name) == len({id(gate) for gate in (*found, *preflight.GATES)}), "two gates of one name"
    return by_name


def watched(facts: Facts, read: set[str], within: str = "") -> Facts:
    """The same facts; whichever of them is read from now on is in `read`, after the name of those that they are `within`."""
    names = {field.name for field in fields(facts)}

    class Watched(type(facts)):
        def __getattribute__(self, fact: str) -> object:
            if fact in names:
                read.add(within + fact)
            return super().__getattribute__(fact)

    return Watched(**{name: getattr(facts, name) for name in names})
