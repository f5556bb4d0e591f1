"""The schemas of both kinds, as this program has them, and how any such schema is read."""

from collections.abc import Iterator, Mapping
from typing import Any

from switchover.api.crds import definitions

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
