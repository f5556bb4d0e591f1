"""The gates of a ConsumerGroupMigration: C0 to C6 of group-protocol.md section 8, as corrected by feasibility-groups.md.

Each is a pure check of one picture. The group itself is the witness: a pod that is Ready proves nothing of membership.
"""
