"""Names and labels that Switchover puts on what it touches or creates, whatever it migrates."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

MANAGER = "switchover"
CLAIM = "switchover.dev/claimed-by"
"""Annotation on a workload that a migration moves: the migration's uid."""
MIGRATION_LABEL = "switchover.dev/migration"
NODE_FILES = "switchover-node-files"
"""The volume that no template has but one that we changed."""


def labels(migration: str) -> dict[str, str]:
    """Our own labels: none that a user's Service or workload could select, none that a GitOps tool tracks."""
    return {"app.kubernetes.io/managed-by": MANAGER, MIGRATION_LABEL: migration}


def digest(made_of: Any) -> str:
    """Of what an object is made of, a document."""
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]


def job(name: str, what: str, of: Iterable[object]) -> str:
    """The Job that does `what`, such as a rehearsal; `of` tells those apart whose names are cut to the same. At most 63
    characters, which a label of its pods may have."""
    end = f"-{what}-{digest([*of])[:8]}"
    return f"{name[: 63 - len(end)].rstrip('.-')}{end}"


TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a container finds a token of its pod's ServiceAccount."""
