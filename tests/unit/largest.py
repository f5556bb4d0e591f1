"""Every list, map, string and number of a resource filled as far as its schema allows, one place after the other."""

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

Schema = Mapping[str, Any]
Place = tuple[str, ...]
CRDS = Path(__file__).parents[2] / "crds"
LARGEST_OBJECT = 1_500_000
"""Bytes that the API server's store takes of one object."""
FORMS = ("* * * * *", f"metadata: {{labels: {{a: '{'a' * 100_000}'}}}}", "spec: {}")
"""Texts of a form of their own, which are found by none of the ways below."""
SIZED = frozenset({"array", "string", "integer", "map"})


def schema_of(kind: str) -> Schema:
    """Of the whole object, as the API server has it."""
    crds = (yaml.safe_load(path.read_text()) for path in CRDS.glob("*.yaml"))
    crd = next(each for each in crds if each.get("spec", {}).get("names", {}).get("kind") == kind)
    schema: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def type_of(schema: Schema) -> str:
    return "map" if "additionalProperties" in schema else str(schema.get("type", ""))


def places(schema: Schema, at: Place = ()) -> Iterator[tuple[Place, Schema]]:
    """What has a size; `[]` is each item of a list."""
    if type_of(schema) in SIZED and "enum" not in schema and schema.get("format") != "date-time":
        yield at, schema
    for name, each in schema.get("properties", {}).items():
        yield from places(each, (*at, name))
    if "items" in schema:
        yield from places(schema["items"], (*at, "[]"))


def smallest(schema: Schema) -> Any:
    """Something that the schema allows."""
    if "default" in schema:
        return deepcopy(schema["default"])
    if "enum" in schema:
        return schema["enum"][0]
    match type_of(schema):
        case "object":
            return {name: smallest(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return [smallest(schema["items"])] * schema.get("minItems", 0)
        case "map":
            return {}
        case "integer":
            return schema.get("minimum", 0)
        case "boolean":
            return False
    return "2026-01-01T00:00:00Z" if schema.get("format") == "date-time" else "a" * max(1, schema.get("minLength", 1))


def _values(schema: Schema, now: Any) -> Iterator[Any]:
    """The largest first; what is there already comes last, for a text of a form of its own."""
    match type_of(schema):
        case "integer":
            yield from (schema["maximum"], schema["maximum"] - 1, now)
        case "string":
            most, text = schema["maxLength"], str(now or "")
            yield text.ljust(most, text[-1:] or "a")
            yield from ("a" * most, "1" * most, ("a" * 62 + ".") * (most // 63) + "a", "é" * (most // 2))
            yield from (between.join([text] * (most // (len(text) + 1))) for between in (",", " ", "\n") if text)
            yield from (each for each in FORMS if len(each) <= most)
            yield now or smallest(schema)
        case "array":
            yield _listed(schema, now or [])
            yield now or []
        case "map":
            value = smallest(schema["additionalProperties"])
            yield {f"key-{n}": value for n in range(schema["maxProperties"])}
            yield now or {}


def _listed(schema: Schema, now: list[Any]) -> list[Any]:
    """As many items as there may be, each like one of those that are there, and told apart by what must differ."""
    item, most = schema["items"], schema["maxItems"]
    samples = cycle(now or [smallest(item)])
    keys = schema.get("x-kubernetes-list-map-keys", [])
    if schema.get("x-kubernetes-list-type") == "set":
        return item.get("enum") or [f"{each}{n or ''}" if isinstance(each, str) else n
                                    for n, each in zip(range(most), samples, strict=False)]
    made = [deepcopy(each) for each in islice(samples, most)]
    for key in keys:
        names = item["properties"][key].get("enum") or [f"{each[key]}{n or ''}" for n, each in enumerate(made)]
        for each, name in zip(made, names, strict=False):
            each[key] = name
        made = made[: len(names)]
    return made


def filled(base: Mapping[str, Any], place: Place, schema: Schema, whole: Schema,
           allowed: Callable[[Any], object]) -> dict[str, Any] | None:
    """The object with that place as large as `allowed`, which raises ValidationError, takes it; None where it takes none."""
    found = deepcopy(dict(base))
    holders, key = _holders(found, place, whole), place[-1]
    for value in _values(schema, _now(holders, key)):
        for holder in holders:
            if key == "[]":
                holder[:] = [value]
            else:
                holder[key] = deepcopy(value)
        try:
            allowed(found)
        except ValidationError:
            continue
        return found
    return None


def _now(holders: list[Any], key: str) -> Any:
    held = holders[0]
    return (held[0] if held else None) if key == "[]" else held.get(key)


def _holders(found: dict[str, Any], place: Place, schema: Schema) -> list[Any]:
    """What the place is in: made where it is not there, the first item alone of each list."""
    at: Any = found
    for name, after in pairwise(place):
        schema = schema["items"] if name == "[]" else schema["properties"][name]
        if name == "[]":
            if not at:
                at.append(smallest(schema))
            at = at[0]
        else:
            at = at.setdefault(name, [] if after == "[]" else smallest(schema))
    return [at]


def size(of: Mapping[str, Any]) -> int:
    return len(json.dumps(of))
