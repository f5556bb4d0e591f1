"""Names and labels that Switchover puts on what it touches or creates, whatever it migrates."""

MANAGER = "switchover"
CLAIM = "switchover.dev/claimed-by"
"""Annotation on a workload that a migration moves: the migration's uid."""
MIGRATION_LABEL = "switchover.dev/migration"
NODE_FILES = "switchover-node-files"
"""The volume that no template has but one that we changed."""


def labels(migration: str) -> dict[str, str]:
    """Our own labels: none that a user's Service or workload could select, none that a GitOps tool tracks."""
    return {"app.kubernetes.io/managed-by": MANAGER, MIGRATION_LABEL: migration}
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a container finds a token of its pod's ServiceAccount."""
