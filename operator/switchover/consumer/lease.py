"""How long a member may believe that its session with ZooKeeper lives, by its own clock (rule R8 of
docs/facts/coordination.md#the-rules).

kazoo notices a silent server only after two thirds of the timeout, and a process that was stopped wakes up believing what
it believed. So every hand-out asks the lease, which runs out before the server can have ended the session.
"""

from dataclasses import dataclass

SHARE = 0.6
"""Of the negotiated timeout: the server counts from the same request that the lease counts from, and no earlier."""


@dataclass(slots=True)
class Lease:
    """`timeout`: seconds that were negotiated. `until`: when it runs out, of a monotonic clock. `doubts` counts how often it
    was ended."""

    timeout: float
    until: float = float("-inf")
    doubts: int = 0

    def renewed(self, asked: float) -> None:
        """The server has answered what was sent at `asked`."""
        self.until = max(self.until, asked + SHARE * self.timeout)

    def end(self) -> None:
        """Suspended, or another session: nothing is known any more until the server answers again."""
        self.until = float("-inf")
        self.doubts += 1

    def holds(self, now: float) -> bool:
        """Whether the session is certain to live."""
        return now < self.until
