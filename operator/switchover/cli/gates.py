"""Every gate of every plan: at which steps it is judged, what it is for, and which reasons it can give.

The reasons are found in its check: every function that it calls, as far as names show.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

from switchover.cluster.picture import Picture as ClusterPicture
from switchover.cluster.plan import PLAN
from switchover.engine.gate import Gate
from switchover.engine.plan import Plan
from switchover.groups import plan
from switchover.groups.picture import Picture as GroupPicture
from switchover.groups.workloads.kinds import KINDS
from switchover.reasons.reason import Reason, Urgency

ANY = "At any step"
ASKED: Mapping[str, tuple[type, ...]] = {            # by room, whose methods a check may call
    "cluster": (ClusterPicture,), "groups": (GroupPicture, *map(type, KINDS.values()))}


def gates_of(value: object) -> Iterator[Gate[Any]]:
    """Every gate of a step, whatever it is for."""
    if isinstance(value, Gate):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from gates_of(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from gates_of(getattr(value, field.name))


@cache
def steps() -> Mapping[str, list[Gate[Any]]]:
    """The gates of every step of every plan, by the kind and name of the step."""
    found: dict[str, list[Gate[Any]]] = {}
    plans: Iterable[tuple[str, Plan[Any]]] = (
        ("KafkaMigration", PLAN), *(("ConsumerGroupMigration", each) for each in plan.plans()))
    for kind, each in plans:
        for step in each.steps:
            known = found.setdefault(f"{kind}: {step.name}", [])
            known += [gate for gate in unique(gates_of(step)) if gate.name not in {each.name for each in known}]
    return found


def unique(gates: Iterable[Gate[Any]]) -> list[Gate[Any]]:
    return list({gate.name: gate for gate in gates}.values())


def given(check: object) -> set[str]:
    """The names of the reasons that a check can give."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[object] = [check]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        match value:
            case Reason():
                found.add(value.name)
            case partial():
                waiting += [value.func, *value.args, *value.keywords.values()]
            case property():
                waiting.append(value.fget)
            case tuple() | list() | frozenset():
                waiting += value
            case dict():
                waiting += value.values()
            case FunctionType() if value.__module__.startswith("switchover."):
                waiting += called(value)
            case _ if hasattr(value, "__wrapped__"):
                waiting.append(value.__wrapped__)
    return found


def called(function: FunctionType) -> Iterator[object]:
    """What a function names: of its module, of modules that it names, of what it closes over, of the pictures."""
    names = set(names_in(function.__code__))
    for name in names:
        yield function.__globals__.get(name)
        yield from (vars(each).get(name) for each in ASKED.get(function.__module__.split(".")[1], ()))
    for module in [each for name in names if isinstance(each := function.__globals__.get(name), ModuleType)]:
        if module.__name__.startswith("switchover."):
            yield from (vars(module).get(name) for name in names)
    yield from (cell.cell_contents for cell in function.__closure__ or ())
    yield from function.__defaults__ or ()


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from names_in(each)


def said_of(check: object) -> str:
    """What a check's docstring says first; of one that is made of a function that finds, that function's."""
    functions = [check, *(cell.cell_contents for cell in getattr(check, "__closure__", None) or ())]
    return next((" ".join(text.partition("\n\n")[0].split()) for each in functions
                 if isinstance(each, FunctionType) and (text := inspect.getdoc(each))), "")


OF_THE_WALK: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Approval": ("A person has approved the step, for the plan on record.", ("ApprovalVoid", "AwaitingApproval")),
    "Bake": ("The batch has stayed healthy for as long as `spec.rollout` says.", ("Baking",)),
    "Deletion": ("What the object has changed is taken back, so that it may go.", ("BeingDeleted", "HeldUntilTheEnd")),
    "Effects": ("What is to be done was accepted.", ("EffectFailed", "EffectRefused")),
    "Lease": ("This operator holds the Lease of what the migration changes.", ("LeaseNotHeld",)),
    "Order": ("It is known which pod comes next.", ("OrderUnknown",)),
    "Paused": ("`spec.desiredState` lets steps and batches begin.", ("Paused",)),
    "Replace": ("The pod behind the slash runs in the mode that it was assigned.", (
        "ModeMismatch", "NodeUnknown", "PodComingUp", "PodInTrouble")),
    "Rollback": ("A migration that rolled back by itself is tried again or acknowledged; the reason is that of the "
                 "rollback, with `onFailure: RollBack` any.", ("ClaimedNotCopied", "StaleMigrationNode")),
    "Step": ("The step on record is one of the plan.", ("UnknownStep",)),
    "Steps": ("Each step that the spec names is one of the plan.", ("NoSuchStep",)),
    "Undo": ("The step can be taken back.", ("PointOfNoReturn", "UndoNotAvailable")),
}
"""What the walk itself waits for at any step, with what it can wait for."""


def names() -> list[str]:
    """Of every gate, and of what the walk itself waits for."""
    return sorted({*OF_THE_WALK, *(gate.name for gates in steps().values() for gate in gates)})


def explained(name: str, linked: Callable[[str], str] = str) -> str:
    """A gate as Markdown: what the column WAITING-FOR shows while it must hold, and what it can wait for."""
    said, can_be = OF_THE_WALK.get(name, ("", ()))
    at: dict[str, list[str]] = {}
    reasons = {*can_be}
    for step, gates in steps().items():
        kind, _, of = step.partition(": ")
        for gate in gates:
            if gate.name == name:
                at.setdefault(kind, []).append(of)
                said = said or said_of(gate.look)
                reasons |= given(gate.look)
    if can_be:
        at[ANY] = []
    where = "; ".join(": ".join(filter(None, (kind, ", ".join(of)))) for kind, of in at.items())
    can = f"Can wait for {', '.join(map(linked, sorted(reasons)))}." if reasons else "It waits for nothing."
    return "\n\n".join(filter(None, [f"Urgency: that of the reason; while it only must hold, {Urgency.NONE}.", said,
                                     f"{where}. {can}", "```\nswitchover status NAME\n```"]))
