"""How a rehearsal went: what was seen of the replica, before anybody judges it."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from enum import IntEnum

from switchover.cluster.rehearsal.log import Trouble
from switchover.metadata.cluster import Difference


class Reached(IntEnum):
    """How far the controller got."""

    NOTHING = 0
    CLAIMED = 1
    COPIED = 2
    DUAL_WRITE = 3


@dataclass(frozen=True, slots=True)
class Process:
    """How a process of the replica fared: its exit code, None while it ran on, and the errors that it told."""

    exit_code: int | None = None
    troubles: tuple[Trouble, ...] = ()

    @property
    def cause(self) -> Trouble | None:
        """The error that tells most: the last one with an exception, else the last one."""
        newest = self.troubles[::-1]
        return next((each for each in newest if each.exception), newest[0] if newest else None)


@dataclass(frozen=True, slots=True)
class Canary:
    """A KRaft broker that loaded the replica's image; `topics` are those that it lists, None when it listed none."""

    process: Process
    topics: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Course:
    """What is None was not come to, and what is "" was not in the way."""

    reached: Reached
    controller: Process = Process()
    waited_for: Set[int] = frozenset()
    """Brokers of assignments without which the controller did not claim: the migration would wait for them."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """Registrations that the controller refused: broker -> Kafka's error."""
    differences: tuple[Difference, ...] | None = None
    """The exported tree against the metadata image."""
    unread: str = ""
    """Why the image could not be read."""
    after: Mapping[str, bytes | None] | None = None
    """The replica's tree once dual write had begun."""
    canary: Canary | None = None
    back: str | None = None
    """Why /controller and /migration could not be deleted as a rollback does it; "" when they were."""
    finalized: bool | None = None
    after_finalize: tuple[Difference, ...] | None = None
    ended_by: Mapping[str, Process] = field(default_factory=dict)
    """Settings of the brokers' own that name classes, with which a node on KRaft did not come up -> how it fared."""
