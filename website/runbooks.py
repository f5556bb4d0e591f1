"""The pages of docs/runbooks/ that nobody writes: the gates, and the index by steps.

Which reasons a gate can give is found in its check: every function that it calls, as far as names tell. `make reference`
writes them.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import yaml

from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec
from switchover.cli.explaining import section
from switchover.cluster.picture import Picture as ClusterPicture
from switchover.cluster.plan import PLAN
from switchover.engine.gate import Gate
from switchover.engine.plan import Plan
from switchover.groups.picture import Picture as GroupPicture
from switchover.groups.plan import plan_of
from switchover.reasons import REASONS
from switchover.reasons.reason import Reason, Urgency

ROOT = Path(__file__).parents[1]
RUNBOOKS = ROOT / "docs" / "runbooks"
MADE = "<!-- Written by `make reference`. -->"
PICTURES = {"switchover.cluster": ClusterPicture, "switchover.groups": GroupPicture}


def plans() -> Iterator[tuple[str, Plan[Any]]]:
    """Every plan that there is: that of a cluster, and those of the groups on the page of the resources."""
    yield "KafkaMigration", PLAN
    for text in re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "api.md").read_text(), re.DOTALL | re.MULTILINE):
        for found in yaml.safe_load_all(text):
            if isinstance(found, dict) and found.get("kind") == "ConsumerGroupMigration":
                yield "ConsumerGroupMigration", plan_of(ConsumerGroupMigrationSpec.model_validate(found["spec"]))


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


def steps() -> Mapping[str, list[Gate[Any]]]:
    """The gates of every step of every plan, by the kind and name of the step."""
    found: dict[str, list[Gate[Any]]] = {}
    for kind, plan in plans():
        for step in plan.steps:
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
        for package, picture in PICTURES.items():
            if function.__module__.startswith(package):
                yield vars(picture).get(name)
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


def linked(name: str) -> str:
    return f"[{name}]({REASONS[name].runbook.removeprefix('runbooks/')})"


def said_of(check: object) -> str:
    """What a check's docstring says first; of one that is made of a function that finds, that function's."""
    functions = [check, *(cell.cell_contents for cell in getattr(check, "__closure__", None) or ())]
    return next((" ".join(words.partition("\n\n")[0].split()) for each in functions
                 if isinstance(each, FunctionType) and (words := inspect.getdoc(each))), "")


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


def of_gates() -> str:
    """The page of the gates: what the column WAITING-FOR shows while one must hold, and what each can wait for."""
    at: dict[str, dict[str, list[str]]] = {}
    words: dict[str, str] = {}
    reasons: dict[str, set[str]] = {}
    for step, gates in steps().items():
        kind, _, name = step.partition(": ")
        for gate in gates:
            at.setdefault(gate.name, {}).setdefault(kind, []).append(name)
            words[gate.name] = words.get(gate.name) or said_of(gate.check)
            reasons.setdefault(gate.name, set()).update(given(gate.check))
    text = (f"# Gates\n\n{MADE}\n\nThe column WAITING-FOR shows a reason, or a gate with how long it has passed and how "
            f"long it must: `AllInSync 4/9 s` ({linked('MustHold')}). `status.gates` has all that were judged.\n")
    for name, (said, can_be) in OF_THE_WALK.items():
        at.setdefault(name, {})[ANY] = []
        words.setdefault(name, said)
        reasons.setdefault(name, set()).update(can_be)
    for name in sorted(at):
        where = "; ".join(": ".join(filter(None, (kind, ", ".join(of)))) for kind, of in at[name].items())
        can = f"Can wait for {', '.join(map(linked, sorted(reasons[name])))}." if reasons[name] else "It waits for nothing."
        parts = [f"Urgency: that of the reason; while it only must hold, {Urgency.NONE}.", words[name], f"{where}. {can}",
                 "```\nswitchover status NAME\n```"]
        text += f"\n## {name}\n\n" + "\n\n".join(filter(None, parts)) + "\n"
    return text


def index() -> str:
    """Every reason once, below the first step at which a gate can give it."""
    first: dict[str, str] = {}
    for step, gates in steps().items():
        for name in sorted({name for gate in gates for name in given(gate.check)}):
            first.setdefault(name, step)
    for name, reason in REASONS.items():
        if reason.subject in ELSEWHERE:
            first.setdefault(name, ELSEWHERE[reason.subject])
    text = (f"# Runbooks\n\n{MADE}\n\nWhat stands in `status.waitingFor`, by the first step at which it can. `switchover "
            "explain REASON` prints it. What the column WAITING-FOR shows besides are [gates](gates.md).\n")
    for step in (*steps(), ANY):
        names = sorted(name for name in REASONS if first.get(name, ANY) == step)
        if names:
            rows = "".join(f"| {linked(name)} | {REASONS[name].urgency.partition(':')[0]} | {sentence(REASONS[name])} |\n"
                           for name in names)
            text += f"\n## {step}\n\n| reason | urgency | |\n|---|---|---|\n{rows}"
    return text


ANY = "At any step"
ELSEWHERE = {"rehearsal": "KafkaMigration: Rehearse", "coordination": "ConsumerGroupMigration: Preflight"}
"""Where the reasons of a subject are told that no check names: those of the rehearsal's report, and of registrations."""


def sentence(reason: Reason) -> str:
    """The first sentence of what a reason means, in a cell of a table and without its links."""
    words = re.sub(r"\[([^]]*)\](?:\([^)]*\)|\[\w+\])?", r"\1", " ".join(section(reason).split("\n\n")[1].split()))
    return re.split(r"(?<=[^.]\.)\s+(?=[A-Z*`(])", words)[0].replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def all_pages() -> Mapping[str, str]:
    """Every page by the name of its file."""
    return {"gates.md": of_gates(), "README.md": index()}


if __name__ == "__main__":
    for name, text in all_pages().items():
        (RUNBOOKS / name).write_text(text)
