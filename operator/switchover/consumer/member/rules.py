"""What a member is made by."""

from dataclasses import dataclass

from switchover.coordination.assignment import Strategy, Text


@dataclass(frozen=True, slots=True)
class Rules:
    """What a member is made by. `commit_interval` in seconds, None without automatic commits."""

    consumer_id: str
    enabled: bool = True                # coordination.migration.enabled
    strategy: Strategy = Strategy.RANGE
    text: Text = Text.SINCE_1_0
    exclude_internal: bool = True
    commit_interval: float | None = 5.0
