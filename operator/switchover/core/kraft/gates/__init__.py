"""The gates between the steps of a KafkaMigration: G1 to G15 of kraft-migration.md section 5, as corrected by what was run.

Each is a pure check of one picture. The metadata log is the witness for registration and state (observers of the quorum are
not: feasibility-kraft.md 3.2); ZooKeeper and ApiVersions are the others.
"""
