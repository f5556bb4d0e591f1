"""How a consumer group coordinates itself through ZooKeeper, and KIP-125's addition to it; pure.

The old consumer's own znodes, registrations and arithmetic (docs/facts/coordination.md#znodes), and what a
migration-enabled consumer and the operator exchange below `migration`.
"""
