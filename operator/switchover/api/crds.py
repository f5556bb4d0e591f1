"""The two CustomResourceDefinitions, rendered from the models: `python -m switchover.api.crds [--check] [crds]`.

A structural schema has no `$ref`, no null and no union, so pydantic's JSON schema is inlined and narrowed here. CEL
rules come with the fields and models they speak of; those that compare the old object with the new stand at the root.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from switchover.api.consumer_group_migration import (
    ConsumerGroupMigration,
    ConsumerGroupMigrationSpec,
    ConsumerGroupMigrationStatus,
)
from switchover.api.kafka_migration import KafkaMigration, KafkaMigrationSpec, KafkaMigrationStatus
from switchover.api.meta import CHANGEABLE, GROUP, VERSION, MigrationSpec
from switchover.api.schema import Model, Rule, add_rules
from switchover.api.status import UNSEEN, MigrationStatus

Schema = dict[str, Any]

_NOT_STRUCTURAL = ("title", "propertyNames", "additionalProperties")
"""Keywords of pydantic that a CRD does not know, or that would contradict `properties`."""


_FIRST = ("description", "type", "format", "enum", "default", "required")
"""Keywords that a reader of the YAML looks for first."""


def inline(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """`schema` without `$ref`, null and keywords that a structural schema does not have."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].rsplit("/", 1)[1]]
        return inline({**target, **{key: value for key, value in schema.items() if key != "$ref"}}, definitions)
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        return inline({**choices[0], **{key: value for key, value in schema.items() if key != "anyOf"}}, definitions)

    result = {key: value for key, value in schema.items() if key not in _NOT_STRUCTURAL}
    if "const" in result:
        result["enum"] = [result.pop("const")]
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = inline(schema["additionalProperties"], definitions)
    if "properties" in schema:
        result["properties"] = {name: inline(field, definitions) for name, field in schema["properties"].items()}
    if "items" in schema:
        result["items"] = inline(schema["items"], definitions)
        result.setdefault("x-kubernetes-list-type", "atomic")
    if result.get("type") == "integer":
        result["format"] = "int64"
    result = _with_default(result)
    return {**{key: result[key] for key in _FIRST if key in result}, **result}


def _with_default(schema: Schema) -> Schema:
    """An object's default is empty, filled from the defaults of its fields; an empty text or list needs none."""
    default = _without_null(schema.pop("default", None))
    if default in (None, "", []):
        return schema
    return {**schema, "default": {} if "properties" in schema else default}


def _without_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_null(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return value


def without_defaults(schema: Schema) -> Schema:
    """`schema` without any default: what the operator has not observed must not look observed."""
    result = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in schema:
        result["properties"] = {name: without_defaults(field) for name, field in schema["properties"].items()}
    if "items" in schema:
        result["items"] = without_defaults(schema["items"])
    return result


def frozen(spec: type[MigrationSpec], short: str) -> list[Rule]:
    """One rule for each part of a spec that must stay as it is once something was made or changed by it. `short` is what
    commands call the kind."""
    recorded = "has(oldSelf.status) && has(oldSelf.status.planHash) && oldSelf.status.planHash != ''"
    can_go_back = ("has(oldSelf.status.rollback) && has(oldSelf.status.rollback.available)"
                   " && oldSelf.status.rollback.available")
    way = (f"'to change it: switchover rollback {short}/' + self.metadata.name + '; change it once that is RolledBack; then"
           f" switchover retry {short}/' + self.metadata.name")
    rules = []
    for attribute, field in spec.model_fields.items():
        if attribute in CHANGEABLE:
            continue
        name, untouched = to_camel(attribute), spec.untouched.get(attribute, spec.untouched[""])
        free = re.sub(r"\bstatus\b", "oldSelf.status", untouched.cel)
        same = _same(name, field, spec.changeable.get(attribute, frozenset()))
        begun = f"must stay as it was: {untouched.step} has begun with it"
        rules.append(Rule(
            f"!({recorded}) || ({free}) || ({same})", f"{begun}; roll back to change it", f".spec.{name}",
            f"'{begun}; ' + ({can_go_back} ? {way} : 'the point of no return is passed')"))
    return rules


def _same(name: str, field: FieldInfo, changeable: frozenset[str]) -> str:
    """That a part of a spec is as it was, those of its attributes left out that may change."""
    if not changeable:
        return _unchanged(name, required=field.is_required())
    assert isinstance(field.annotation, type)
    assert issubclass(field.annotation, Model)
    return " && ".join(_unchanged(f"{name}.{to_camel(each)}", required=inner.is_required())
                       for each, inner in field.annotation.model_fields.items() if each not in changeable)


def _unchanged(path: str, *, required: bool) -> str:
    new, old = f"self.spec.{path}", f"oldSelf.spec.{path}"
    same = f"{new} == {old}"
    return same if required else f"has({new}) == has({old}) && (!has({new}) || {same})"


def object_schema(model: type[Model], spec: type[MigrationSpec], status: type[MigrationStatus], short: str) -> Schema:
    """The `openAPIV3Schema` of a resource."""
    status_schema = without_defaults(_json_schema(status))
    status_schema["properties"]["observedGeneration"]["default"] = -1
    schema: Schema = {
        "type": "object",
        "description": model.__doc__,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 63}}},
            "spec": _json_schema(spec),
            "status": {**status_schema, "default": dict(UNSEEN)},
        },
    }
    add_rules(schema, *frozen(spec, short))
    return schema


def _json_schema(model: type[Model]) -> Schema:
    schema = model.model_json_schema(by_alias=True)
    return inline(schema, schema.pop("$defs", {}))


def _column(name: str, path: str, type: str = "string", **more: Any) -> Schema:
    return {"name": name, "type": type, "jsonPath": path, **more}


_COLUMNS = [
    _column("Phase", ".status.phase"),
    _column("Step", ".status.progress.step"),
    _column("Progress", ".status.progress.summary"),
    # Not of type date, which prints the time since and has no word for a time to come.
    _column("ETA", ".status.progress.estimatedCompletionTime"),
    _column("Waiting-For", ".status.waitingForSummary"),
    _column("Rollback", ".status.rollback.available", "boolean"),
    _column("Age", ".metadata.creationTimestamp", "date"),
    _column("Summary", ".status.summary", priority=1),
]


def definition(kind: str, short_name: str, schema: Schema, columns: list[Schema]) -> Schema:
    """A CustomResourceDefinition with one version and a status subresource."""
    singular = kind.lower()
    plural = f"{singular}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": singular,
                "shortNames": [short_name],
                "categories": ["switchover"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def definitions() -> list[Schema]:
    """Both CustomResourceDefinitions."""
    metadata = _column("Metadata", ".status.metadataState", priority=1)
    return [
        definition(
            "KafkaMigration",
            "kmig",
            object_schema(KafkaMigration, KafkaMigrationSpec, KafkaMigrationStatus, "kmig"),
            [*_COLUMNS[:-2], metadata, *_COLUMNS[-2:]],
        ),
        definition(
            "ConsumerGroupMigration",
            "cgmig",
            object_schema(ConsumerGroupMigration, ConsumerGroupMigrationSpec, ConsumerGroupMigrationStatus, "cgmig"),
            _COLUMNS,
        ),
    ]


class _PlainDumper(yaml.SafeDumper):
    """YAML without anchors, which nobody can review."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def files() -> dict[str, str]:
    """Name and content of each file of `crds/`."""
    return {
        f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml": "# Generated by make crds; do not edit.\n"
        + yaml.dump(crd, Dumper=_PlainDumper, sort_keys=False, width=120, allow_unicode=True)
        for crd in definitions()
    }


def differences(directory: Path) -> list[str]:
    """What in `directory` is not as the models say, one sentence each."""
    wanted = files()
    found = {path.name: path.read_text(encoding="utf-8") for path in directory.glob("*.yaml")}
    return [
        *(f"{directory / name} is missing" for name in sorted(wanted.keys() - found.keys())),
        *(f"{directory / name} is no CRD of the models" for name in sorted(found.keys() - wanted.keys())),
        *(
            f"{directory / name} differs from the models"
            for name in sorted(wanted.keys() & found.keys())
            if wanted[name] != found[name]
        ),
    ]


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or check them: 0 when they are as the models say, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m switchover.api.crds", description="Render the CRDs.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help="write the files; what happens without an option, too")
    mode.add_argument("--check", action="store_true", help="fail when the files are not as the models say")
    parser.add_argument("directory", nargs="?", type=Path, default=Path("crds"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    directory: Path = options.directory
    if options.check:
        found = differences(directory)
        for sentence in found:
            print(f"{sentence}: run make crds", file=sys.stderr)
        return 1 if found else 0
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (directory / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
