"""inventory: every group with its readiness, and the waves in which they can be migrated."""
