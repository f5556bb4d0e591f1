"""The rehearsal of a migration's claim and copy on a throwaway replica: what of it is pure (docs/rehearsal.md)."""
