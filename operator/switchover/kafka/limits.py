"""For how long Kafka is asked. A question ends when its client says so, naming the broker; whoever waits for the answer
(`answers.ask`) waits no shorter than that (tests/unit/test_limits.py)."""

NODE_SECONDS = 3.0
"""What a pass asks of every node, its connection and login included: one that hangs holds the pass up for so long."""
ANSWER_SECONDS = 5.0
"""Any other question to a node, or to all brokers at once."""
ROUND_SECONDS, LOOK_SECONDS = 3.0, 1.0
"""A round of a sweep over offsets, of which there are four; and its look into logs, where what lies behind a commit may be
large."""
SWEEP_SECONDS = 4 * ROUND_SECONDS + LOOK_SECONDS
"""A whole sweep."""
EVERY_GROUP_SECONDS = 30.0
"""What `switchover groups` asks of all brokers at once: all that they know of all their groups."""
