"""The pages of docs/reference/, of CRDs, commands, metrics, reasons and gates. `make docs` writes them; none is committed.

A field, metric, command or option without words raises ValueError.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
import yaml
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from switchover.api.kafka_migration import FORMERLY
from switchover.cli import gates
from switchover.cli.explain import section
from switchover.cli.main import app
from switchover.process.metrics import INFO, METRICS, Metrics
from switchover.reasons import REASONS
from switchover.reasons.reason import Reason

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "reference"
MADE = "<!-- Written by `make docs`. -->\n"
KUBERNETES = {"apiVersion", "kind", "metadata"}
"""What every object has, and Kubernetes describes."""

Schema = Mapping[str, Any]


def said(words: str | None, whose: str) -> str:
    """Text as a cell of a table, on one line. Raises ValueError where there is none."""
    if not words or not words.strip():
        raise ValueError(f"{whose} has no words")
    line = " ".join(words.split())
    return re.sub(r"[\\|*<\[\]]", lambda found: "&lt;" if found[0] == "<" else f"\\{found[0]}", line)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


# --- the fields of a CRD ------------------------------------------------------------------------------------------------


def kind_of(schema: Schema) -> str:
    """The type of a field with what bounds it; of an enumeration what is still written."""
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if schema["type"] == "array":
        most = f", at most {schema['maxItems']}" if "maxItems" in schema else ""
        return f"list of {kind_of(schema['items'])}{most}"
    if schema["type"] == "object" and "additionalProperties" in schema:
        return "map of strings"
    if "enum" in schema:
        return ", ".join(f"`{value}`" if value else "empty" for value in schema["enum"] if value not in FORMERLY)
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return " ".join([f"{schema['type']} ({schema['format']})" if "format" in schema else schema["type"], *bounds])


def default_of(field: Schema) -> str:
    """The default as YAML on one line, nothing where there is none."""
    if "default" not in field:
        return ""
    return f"`{yaml.safe_dump(field['default'], default_flow_style=True, width=1000).removesuffix('...' + chr(10)).strip()}`"


def inner(schema: Schema) -> Schema:
    """What stands in a list, through all lists; anything else itself."""
    return inner(schema["items"]) if schema.get("type") == "array" else schema


def fields(path: str, schema: Schema) -> Iterator[str]:
    """A section for an object, and one for each object in it."""
    yield f"\n## {path}\n\n{said(schema.get('description'), path)}\n\n| field | type | default | |\n|---|---|---|---|\n"
    for name, field in sorted(schema["properties"].items()):
        default = "needed" if name in schema.get("required", ()) else default_of(field)
        rules = [rule["message"] for rule in (*field.get("x-kubernetes-validations", ()), *inner_rules(field))
                 if "message" in rule]
        words = " ".join([field.get("description") or "", *(f"{rule[0].upper()}{rule[1:]}." for rule in rules)])
        yield row(f"`{name}`", kind_of(field), default, said(field.get("description") and words, f"{path}.{name}"))
    for name, field in sorted(schema["properties"].items()):
        if "properties" in inner(field):
            yield from fields(f"{path}.{name}{'[]' if field['type'] == 'array' else ''}", inner(field))


def inner_rules(field: Schema) -> tuple[Schema, ...]:
    """The rules of what stands in a list of plain values; an object in a list has its own section."""
    found = inner(field)
    return tuple(found.get("x-kubernetes-validations", ())) if found is not field and "properties" not in found else ()


def resource(file: Path) -> str:
    """Every field of spec and status of the newest version of a CRD, in the order of its path."""
    crd = yaml.safe_load(file.read_text())
    names = crd["spec"]["names"]
    schema = crd["spec"]["versions"][-1]["schema"]["openAPIV3Schema"]
    parts = {name: part for name, part in schema["properties"].items() if name not in KUBERNETES}
    return (f"# {names['kind']}: every field\n\n{MADE}\n{said(schema['description'], names['kind'])} Short name "
            f"`{', '.join(names['shortNames'])}`. Examples, and what belongs together: [the resources](../api.md).\n"
            + "".join(line for name, part in parts.items() for line in fields(name, part)))


# --- commands, metrics, reasons, gates -----------------------------------------------------------------------------------


def commands() -> str:
    """What `switchover COMMAND --help` prints, for every command."""
    group = typer.main.get_command(app)
    text = (f"# Commands and options\n\n{MADE}\nWhat `--help` prints. How they belong together: "
            "[the command line](../cli.md).\n")
    for name, command in sorted(group.commands.items()):                                    # type: ignore[attr-defined]
        said(command.help, f"switchover {name}")
        for option in command.params:
            said(option.help, f"{option.name} of switchover {name}")
        printed = CliRunner().invoke(app, [name, "--help"], prog_name="switchover", env={"COLUMNS": "110", "TERM": "dumb"})
        text += f"\n## switchover {name}\n\n```text\n{printed.output.strip()}\n```\n"
    return text


def metrics() -> str:
    """Every metric of the operator's own registry, by its name on a scrape."""
    registry = CollectorRegistry()
    own = Metrics(registry, float)
    labels = {INFO: ("migration", "namespace", "kind", "name"),
              **{name: ("migration", *metric.labels) for name, metric in METRICS.items()},
              **{each._name: each._labelnames for each in vars(own).values() if hasattr(each, "_labelnames")}}
    rows = [row(f"`{family.name}{'_total' if family.type == 'counter' else ''}`", family.type,
                ", ".join(f"`{label}`" for label in labels[family.name]), said(family.documentation, family.name))
            for family in sorted(registry.collect(), key=lambda family: family.name)]
    return (f"# Metrics\n\n{MADE}\nOn port 9090. What they are for, and what is worth an alert: "
            "[watch it](../guide/watch.md#prometheus).\n\n"
            "| metric | type | labels | says |\n|---|---|---|---|\n" + "".join(rows))


def linked(name: str) -> str:
    return f"[{name}](../{REASONS[name].runbook})"


def reasons() -> str:
    """Every reason once, below the first step at which a gate can give it."""
    first: dict[str, str] = {}
    for step, of in gates.steps().items():
        for name in sorted({name for gate in of for name in gates.given(gate.look)}):
            first.setdefault(name, step)
    for name, reason in REASONS.items():
        if reason.subject in ELSEWHERE:
            first.setdefault(name, ELSEWHERE[reason.subject])
    text = (f"# Reasons\n\n{MADE}\nWhat stands in `status.waitingFor`, by the first step at which it can. `switchover "
            "explain REASON` prints its runbook. What the column WAITING-FOR shows besides are [gates](gates.md). Findings "
            "of Preflight without a runbook: [of a cluster](../preflight.md), [of a group](../preflight-groups.md).\n")
    for step in (*gates.steps(), gates.ANY):
        names = sorted(name for name in REASONS if first.get(name, gates.ANY) == step)
        if names:
            rows = "".join(
                row(linked(name), REASONS[name].urgency.short, sentence(REASONS[name])) for name in names)
            text += f"\n## {step}\n\n| reason | urgency | |\n|---|---|---|\n{rows}"
    return text


ELSEWHERE = {"rehearsal": "KafkaMigration: Rehearse", "coordination": "ConsumerGroupMigration: Preflight"}
"""Where the reasons of a subject are given that no check names: those of the rehearsal's report, and of registrations."""


def sentence(reason: Reason) -> str:
    """The first sentence of what a reason means, in a cell of a table and without its links."""
    words = re.sub(r"\[([^]]*)\](?:\([^)]*\)|\[\w+\])?", r"\1", " ".join(section(reason).split("\n\n")[1].split()))
    return re.split(r"(?<=[^.]\.)\s+(?=[A-Z*`(])", words)[0].replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def all_gates() -> str:
    """Every gate, with what it can wait for."""
    text = (f"# Gates\n\n{MADE}\nThe column WAITING-FOR shows a reason, or a gate with how long it has passed and how "
            f"long it must: `AllInSync 4/9 s` ({linked('MustHold')}). `status.gates` has all that were judged.\n")
    return text + "".join(f"\n## {name}\n\n{gates.explained(name, linked)}\n" for name in gates.names())


def pages() -> Mapping[str, str]:
    """Every page by its name."""
    return {
        **{f"{file.stem.partition('_')[2].removesuffix('s')}.md": resource(file)
           for file in (ROOT / "crds").glob("*.yaml")},
        "commands.md": commands(), "metrics.md": metrics(), "reasons.md": reasons(),
        "gates.md": all_gates(),
    }


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text)
