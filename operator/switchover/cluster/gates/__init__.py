"""The gates between the steps of a KafkaMigration (docs/facts/kraft.md).

Each is a pure check of one picture. The metadata log is the witness for registration and state (observers of the quorum are
not: docs/facts/kraft.md#what-a-node-answers); ZooKeeper and ApiVersions are the others.
"""
