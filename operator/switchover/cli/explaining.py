"""`switchover explain`: of a reason, finding, gate or field what the package says of it; nobody is asked."""

import json
from collections.abc import Iterator
from difflib import get_close_matches
from importlib.resources import files

from switchover.cli.objects import KINDS
from switchover.cli.schemas import Schema, properties, schemas
from switchover.outside.errors import Refused
from switchover.reasons import REASONS
from switchover.reasons.notes import NOTES
from switchover.reasons.pages import explained

RUNBOOKS = files("switchover") / "runbooks"


def explain(what: str) -> str:
    """The text for a reason such as AwaitingApproval, a finding such as NoBudget, a gate such as AllInSync, or a field such
    as kmig.spec.soakSeconds. Refused for none of them."""
    if what in REASONS:
        reason = REASONS[what]
        return (RUNBOOKS / f"{what}.md").read_text(encoding="utf-8") if reason.prose else explained(reason)
    if what in NOTES:
        return NOTES[what].text
    if what and (found := "\n".join(field(what))):
        return found
    if (gate := gates().get(what.partition("/")[0])) is not None:         # Replace/kafka-1
        return gate
    near = [] if "." in what else get_close_matches(what, [*REASONS, *NOTES, *gates()], n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "reasons stand in status.waitingFor, fields begin with spec."
    raise Refused(f"{what} is neither a reason nor a finding nor a gate nor a field; {hint}")


def reasons() -> list[str]:
    """Every reason and every finding."""
    return sorted({*REASONS, *NOTES})


def gates() -> dict[str, str]:
    """The section of the page of gates for each of them, by name."""
    page = (RUNBOOKS / "gates.md").read_text(encoding="utf-8")
    return {section.partition("\n")[0]: f"# {section.strip()}" for section in page.split("\n## ")[1:]}


def field(dotted: str) -> Iterator[str]:
    """The field in each kind that has it, with its fields; nothing where none has."""
    first, _, rest = dotted.partition(".")
    named, known = [kind for kind in KINDS if kind.goes_by(first)], schemas()
    for kind in named or KINDS:
        schema = _at(known[kind.name], [part for part in (rest if named else dotted).split(".") if part])
        if schema is not None:
            yield f"{'.'.join((kind.short, *filter(None, (rest if named else dotted).split('.'))))} <{_type(schema)}>"
            yield from _told(schema)


def _at(schema: Schema, path: list[str]) -> Schema | None:
    for part in path:
        inner = properties(schema).get(part)
        if inner is None:
            return None
        schema = inner
    return schema


def _type(schema: Schema) -> str:
    return f"[]{schema['items'].get('type', 'object')}" if "items" in schema else str(schema.get("type", "object"))


def _told(schema: Schema) -> Iterator[str]:
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
