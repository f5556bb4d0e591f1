"""Whose manifest has the template that Switchover made: the proof that Git was brought up to date
(docs/facts/kubernetes.md#an-unchanged-apply-makes-a-hybrid)."""

from collections.abc import Mapping
from typing import Any

from switchover.kubernetes import names
from switchover.kubernetes.gitops import LAST_APPLIED
from switchover.shared import foreign_json


def applied_by(stateful_set: Mapping[str, Any]) -> tuple[str, ...]:
    """Who applied a manifest with our volume in it: managers of server-side apply, and kubectl's annotation of client-side.

    Nobody else has a reason to write that volume. Whether the rest of the manifest is what runs, the revision tells.
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
