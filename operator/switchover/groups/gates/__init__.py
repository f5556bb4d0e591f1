"""The gates of a ConsumerGroupMigration (docs/facts/groups.md).

Each is a pure check of one picture. The group itself is the witness: a pod that is Ready proves nothing of membership.
"""
