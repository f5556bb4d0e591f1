"""`switchover explain`: of a reason, finding, gate or field what the package says of it; nobody is asked."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from switchover.answers.errors import Refused
from switchover.api.crds import definitions
from switchover.cli.objects import KINDS
from switchover.reasons import REASONS
from switchover.reasons.notes import NOTES
from switchover.reasons.reason import Reason
from switchover.text.nearest import nearest

Schema = Mapping[str, Any]


def schemas() -> Mapping[str, Schema]:
    """By the kind's name."""
    return {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in definitions()}


def properties(schema: Schema) -> Mapping[str, Schema]:
    """The fields of an object, or of each item of a list."""
    found: Mapping[str, Schema] = schema.get("items", schema).get("properties", {})
    return found


def paths(schema: Schema, prefix: str = "") -> Iterator[str]:
    """Those of all fields, as spec.approvals.name."""
    for name, inner in properties(schema).items():
        yield f"{prefix}{name}"
        yield from paths(inner, f"{prefix}{name}.")


RUNBOOKS = files("switchover") / "runbooks"
"""docs/runbooks, which travels with the package."""
REFERENCE = re.compile(r"\[([^][]+)\](?:\[(\w+)\])?(?![(\w])")
"""`[OtherReason]`, or `[text][OtherReason]`."""


def explain(what: str) -> str:
    """The text for a reason such as AwaitingApproval, a finding such as NoBudget, a gate such as AllInSync, or a field such
    as kmig.spec.soakSeconds. Refused for none of them."""
    if what in REASONS:
        reason = REASONS[what]
        text = page(what) if reason.prose else f"# {what}\n\n{plain(section(reason))}"
        return text.replace(f"Urgency: {reason.urgency.short}.", f"Urgency: {reason.urgency}.", 1)
    if what in NOTES:
        return NOTES[what].text
    if what and (found := "\n".join(field(what))):
        return found
    from switchover.cli import gates  # every plan: whoever asks for none need not wait

    if (gate := what.partition("/")[0]) in gates.names():                 # Replace/kafka-1
        return f"# {gate}\n\n{gates.explained(gate)}"
    near = [] if "." in what else nearest(what, [*REASONS, *NOTES, *gates.names()], 3)
    hint = f"did you mean {', '.join(near)}?" if near else "reasons stand in status.waitingFor, fields begin with spec."
    raise Refused(f"{what} is neither a reason nor a finding nor a gate nor a field; {hint}")


def reasons() -> list[str]:
    """Every reason and every finding."""
    return sorted({*REASONS, *NOTES})


def section(reason: Reason) -> str:
    """What the page of its subject says of a reason, as Markdown."""
    return sections(page(reason.subject))[reason.name]


@cache
def page(name: str) -> str:
    return (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")


def sections(markdown: str) -> dict[str, str]:
    """Each section of a page by its heading, with what the page's head says for all, without the links at its end."""
    head, *found = re.sub(r"(?m)^\[\w+\]: .*$", "", markdown).split("\n## ")
    of_all = head.partition("\n")[2]
    return {name: f"{text.strip()}\n{of_all}".strip() for name, _, text in (each.partition("\n") for each in found)}


def plain(markdown: str) -> str:
    """To be read on a terminal: a link to another reason is its name."""
    def named(found: re.Match[str]) -> str:
        text, name = found.groups()
        if (name or text) not in REASONS:
            return found[0]
        return text if name is None else f"{text} ({name})"

    return REFERENCE.sub(named, markdown)


def field(dotted: str) -> Iterator[str]:
    """The field in each kind that has it, with its fields; nothing where none has."""
    first, _, rest = dotted.partition(".")
    named, known = [kind for kind in KINDS if kind.goes_by(first)], schemas()
    for kind in named or KINDS:
        schema = _at(known[kind.name], [part for part in (rest if named else dotted).split(".") if part])
        if schema is not None:
            yield f"{'.'.join((kind.short, *filter(None, (rest if named else dotted).split('.'))))} <{_type(schema)}>"
            yield from _details(schema)


def _at(schema: Schema, path: list[str]) -> Schema | None:
    for part in path:
        inner = properties(schema).get(part)
        if inner is None:
            return None
        schema = inner
    return schema


def _type(schema: Schema) -> str:
    return f"[]{schema['items'].get('type', 'object')}" if "items" in schema else str(schema.get("type", "object"))


def _details(schema: Schema) -> Iterator[str]:
    yield f"  {_described(schema)}"
    plain = schema.get("items", schema)
    if "enum" in plain:
        yield f"  one of: {', '.join(str(each) or 'none' for each in plain['enum'])}"
    if (default := schema.get("default")) is not None and not isinstance(default, dict):
        yield f"  default: {', '.join(default) if isinstance(default, list) else json.dumps(default).strip(chr(34))}"
    bounds = [f"{word} {plain[key]}" for key, word in (("minimum", "at least"), ("maximum", "at most")) if key in plain]
    if bounds:
        yield f"  {', '.join(bounds)}"
    for name, inner in properties(schema).items():
        yield f"  .{name} <{_type(inner)}>  {_described(inner).partition('. ')[0].removesuffix('.')}".rstrip()


def _described(schema: Schema) -> str:
    """On one line, however it is wrapped in the source."""
    return " ".join(str(schema.get("description", "")).split())
