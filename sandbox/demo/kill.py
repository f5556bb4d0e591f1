"""`make demo KILL=5`: SIGKILL of the operator at chosen moments of the migration."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from demo import operator_process
from switchover.cli.objects import Resource


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of the migration: a step, from a batch of it on."""

    step: str
    batch: int
    words: str
    direction: str = "Forward"

    def reached(self, resource: Resource) -> bool:
        """Is the migration there?"""
        progress = resource.get("status", {}).get("progress", {})
        there = progress.get("step") == self.step and progress.get("direction", "Forward") == self.direction
        return bool(there and progress.get("batch", 0) >= self.batch)


MOMENTS = (
    Moment("MoveBrokers", 1, "the first broker moves to KRaft"),
    Moment("EnableMigration", 2, "the last broker of EnableMigration restarts"),
    Moment("Finalize", 2, "between two controllers of Finalize"),
    Moment("CopyMetadata", 0, "the last broker, whose start claims ZooKeeper, is due"),
    Moment("MoveBrokers", 3, "the last broker moves to KRaft"),
)
"""By importance: KILL=3 means the first three."""
BACK = (
    Moment("EnableMigration", 3, "the leader of the quorum, the last controller, is to stop", "Backward"),
    Moment("EnableMigration", 5, "between two brokers on their way back to plain ZooKeeper", "Backward"),
)
"""On the way back of a claim."""


@dataclass(slots=True)
class Killer:
    """Kills the operator once at each moment. `killed` are the moments at which a process really died."""

    moments: Sequence[Moment]
    killed: list[Moment] = field(default_factory=list)

    def __call__(self, resource: Resource, container: str) -> str | None:
        """Kill the container's processes if the migration has reached a moment that is still due, and say so.

        While the operator is down already (no process), the moment stays due.
        """
        for moment in self.moments:
            if moment not in self.killed and moment.reached(resource) and operator_process.kill(container):
                self.killed.append(moment)
                return f"SIGKILL to the operator: {moment.words}"
        return None

    @property
    def missed(self) -> list[Moment]:
        """Moments at which nothing was killed."""
        return [moment for moment in self.moments if moment not in self.killed]
