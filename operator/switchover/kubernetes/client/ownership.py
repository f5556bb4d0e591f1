"""Whom an object of the Kubernetes API belongs to: marks of GitOps tools, managedFields, its controller, who applied it."""

from collections.abc import Container, Iterator, Mapping
from datetime import datetime
from typing import Any

from switchover.kubernetes import names
from switchover.kubernetes.gitops import FLUX_SSA, LAST_APPLIED, MARKS
from switchover.kubernetes.strategic_merge import MERGE_KEYS
from switchover.kubernetes.workloads import Manager
from switchover.shared import foreign_json

DEEPEST = 32
"""Levels of a template that are looked at: it has fewer."""


def marks(found: Mapping[str, Any]) -> dict[str, str]:
    """Labels and annotations of the tools that we know; nothing else of them leaves the adapter."""
    metadata = found["metadata"]
    both = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return {key: value for key, value in both.items() if key.startswith(MARKS)}


ROLLS_BY = frozenset({"f:updateStrategy", "f:strategy", "f:minReadySeconds", "f:progressDeadlineSeconds", "f:paused"})
"""What says how the pods of a workload are replaced."""


def managers(found: Mapping[str, Any], *, every_place: bool = False) -> tuple[Manager, ...]:
    """The entries of managedFields that own something of the parts that a migration changes or freezes; with `every_place`
    each place of the template is one, written as `places.words` writes it."""
    entries = []
    for entry in found["metadata"].get("managedFields") or ():
        spec = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        parts = _parts(spec) | ({*_places(spec.get("f:template") or {}, "", "")} if every_place else set())
        marked = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
        if parts and any(f"f:{FLUX_SSA}" in (marked.get(where) or {}) for where in ("f:annotations", "f:labels")):
            parts |= {FLUX_SSA}
        if parts:
            time = entry.get("time")
            entries.append(Manager(
                name=entry.get("manager", ""), operation=entry.get("operation", ""),
                subresource=entry.get("subresource", ""),
                at=datetime.fromisoformat(time).timestamp() if time else 0.0, parts=parts))
    return tuple(entries)


def _parts(fields: Mapping[str, Any]) -> frozenset[str]:
    template = fields.get("f:template") or {}
    pod = template.get("f:spec") or {}
    named = pod.get("f:containers") or {}
    containers = tuple(named.values())
    owned = {
        "volumes": "f:volumes" in pod,
        "mounts": any("f:volumeMounts" in container for container in containers),
        "command": any("f:command" in container for container in containers),
        "annotations": "f:annotations" in (template.get("f:metadata") or {}),
        "strategy": bool(ROLLS_BY & {*fields}),
        "replicas": "f:replicas" in fields,
    }
    own = {f"{field} of {name}" for key, container in named.items() if (name := _named(key))
           for field in ("image", "env", "args") if f"f:{field}" in container}
    return frozenset(part for part, owns in owned.items() if owns) | own


def _places(fields: Mapping[str, Any], at: str, name: str, depth: int = DEEPEST) -> Iterator[str]:
    for key, inner in fields.items() if depth and isinstance(fields, Mapping) else ():
        step = key.removeprefix("f:")
        if key.startswith("f:"):
            place = f"{at}.{step}" if at else step
        elif (item := _item(key, MERGE_KEYS.get(name, ""))) is not None:
            place = f"{at}[{item}]"
        else:
            continue
        yield place
        yield from _places(inner, place, step, depth - 1)


def _named(key: str) -> str:
    """The name in a key such as `k:{"name":"kafka"}`; "" for every other key, which its manager may have made up."""
    return str(_item(key, "name") or "")


def _item(key: str, by: str) -> Any:
    """The value of an item's key in a field such as `k:{"name":"kafka"}`; None for every other key."""
    if not key.startswith("k:"):
        return None
    try:
        found = foreign_json.parsed(key[2:])
    except ValueError:
        return None
    return found.get(by) if isinstance(found, dict) else None


def controls(uids: Container[str], found: Mapping[str, Any]) -> bool:
    """Whether an object with one of these uids controls it. Other owners prove nothing: anybody may name them."""
    return any(reference["uid"] in uids and reference.get("controller") is True
               for reference in found["metadata"].get("ownerReferences") or ())


def owner(found: Mapping[str, Any]) -> str:
    """Kind and name of the controller that owns it, "" when there is none."""
    for reference in found["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return f"{reference['kind']} {reference['name']}"
    return ""


def applied_by(stateful_set: Mapping[str, Any]) -> tuple[str, ...]:
    """Who applied a manifest with our volume in it: managers of server-side apply, and kubectl's annotation of client-side.

    Nobody else has a reason to write that volume. The revision shows whether the rest of the manifest is what runs.
    """
    metadata = stateful_set["metadata"]
    found = {
        entry["manager"] for entry in metadata.get("managedFields") or ()
        if entry.get("operation") == "Apply" and entry.get("manager") != names.MANAGER and _owns(entry.get("fieldsV1") or {})
    }
    if _has(_last_applied((metadata.get("annotations") or {}).get(LAST_APPLIED, ""))):
        found.add("client-side apply")
    return tuple(sorted(found))


def _owns(fields: Mapping[str, Any]) -> bool:
    for step in ("f:spec", "f:template", "f:spec", "f:volumes"):
        fields = fields.get(step) or {}
    return f'k:{{"name":"{names.NODE_FILES}"}}' in fields


def _has(manifest: Any) -> bool:
    for step in ("spec", "template", "spec", "volumes"):
        manifest = manifest.get(step) if isinstance(manifest, dict) else None
    return isinstance(manifest, list) and any(
        isinstance(item, dict) and item.get("name") == names.NODE_FILES for item in manifest)


def _last_applied(text: str) -> Any:
    try:
        return foreign_json.parsed(text or "{}")
    except ValueError:                             # anybody may write an annotation
        return {}
