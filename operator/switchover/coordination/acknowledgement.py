"""What a migration-enabled member says of itself in its node below `migration/ids` (rule R4 of
docs/facts/coordination.md#the-rules).

KIP-125 leaves the node's data open; only its name counts for the other members. The operator takes a toggle for done when
every member has acknowledged the version of the mode znode that the operator wrote.
"""

import json
from dataclasses import dataclass

from switchover.coordination.mode import Mode
from switchover.shared import foreign_json
from switchover.shared.grouped import grouped
from switchover.shared.partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """One member's own account."""

    mode: Mode = Mode.ZOOKEEPER
    """By which mode it chooses its partitions."""
    mode_version: int = -1
    """World.mode_version of the mode that it follows, -1 for none; while it `waits`, of the last one that it followed."""
    generation: int = -1
    """Of Kafka's assignment that it follows, counted by itself; -1 outside the group."""
    owned: frozenset[TopicPartition] = frozenset()
    """The partitions whose owner nodes it holds."""
    waits: str = ""
    """Why it does not follow the mode znode, naming the culprit; empty where it does."""

    def encoded(self) -> bytes:
        """The node's data."""
        return json.dumps(
            {"version": 1, "mode": self.mode, "modeVersion": self.mode_version, "generation": self.generation,
             "owned": grouped(sorted(self.owned)), "waits": self.waits}, separators=(",", ":")).encode()


def decoded(data: bytes | None) -> Acknowledgement | None:
    """A member's account; None for what is not one, such as the node of another implementation of KIP-125."""
    try:
        content = foreign_json.parsed(data or b"")
        return Acknowledgement(
            Mode(content["mode"]), int(content["modeVersion"]), int(content["generation"]),
            frozenset(TopicPartition(topic, int(each)) for topic, numbers in content["owned"].items() for each in numbers),
            str(content["waits"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
