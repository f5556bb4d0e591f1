"""A step of a KafkaMigration: what every step is, and what is there while it is on record."""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

from switchover.api.kafka_migration import NodeMode
from switchover.engine.plan import Step
from switchover.engine.rollout import P
from switchover.engine.windows import Work
from switchover.metadata.parity import MigrationState

_UPGRADED = frozenset({NodeMode.ZOOKEEPER, NodeMode.ZOOKEEPER_PINNED})
_RAISED = _UPGRADED | {NodeMode.ZOOKEEPER_RAISED}
_MOVED = frozenset({NodeMode.KRAFT})
_MIGRATING = frozenset({NodeMode.MIGRATION_CONTROLLER})
_STOPPABLE = _MIGRATING | {NodeMode.STOPPED}
_FINALIZED = frozenset({NodeMode.KRAFT_CONTROLLER})


@dataclass(frozen=True, slots=True)
class Expected:
    """What the steps before one and it itself leave behind, whichever way it is walked: what the metadata log says, nothing
    before it is to be there, and the modes that brokers and controllers can be assigned, none before they are on record."""

    log: tuple[MigrationState, ...] = ()
    brokers: Set[NodeMode] = frozenset()
    controllers: Set[NodeMode] = frozenset()

    @property
    def released(self) -> bool:
        """Whether the brokers' StatefulSets may be the user's own again."""
        return self.log == (MigrationState.POST_MIGRATION,)

    @property
    def claimed(self) -> bool:
        """Whether it is not reached without a claim on them; in a rollback a lost claim stops nothing."""
        return bool(self.log) and not self.released

    @property
    def without_kraft(self) -> bool:
        """Whether no broker can run on KRaft: it is taken back only then, since its controllers are about to stop."""
        return bool(self.brokers) and NodeMode.KRAFT not in self.brokers


UNTOUCHED = Expected()
UPGRADING = Expected((), _UPGRADED, _STOPPABLE)
RAISING = Expected((), _RAISED, _STOPPABLE)
BECOMING_READY = Expected((MigrationState.PRE_MIGRATION,), _RAISED | {NodeMode.MIGRATION}, _STOPPABLE)
COPYING = Expected((MigrationState.PRE_MIGRATION, MigrationState.MIGRATION), _RAISED | {NodeMode.MIGRATION}, _MIGRATING)
WRITING = Expected((MigrationState.MIGRATION,), frozenset({NodeMode.MIGRATION}), _MIGRATING)
MOVING = Expected((MigrationState.MIGRATION,), _MOVED | {NodeMode.MIGRATION}, _MIGRATING)
MOVED = Expected((MigrationState.MIGRATION,), _MOVED, _MIGRATING)
FINALIZING = Expected((MigrationState.MIGRATION,), _MOVED, _MIGRATING | _FINALIZED)
HANDED_OVER = Expected((MigrationState.POST_MIGRATION,), _MOVED | {NodeMode.OWN_KRAFT}, _FINALIZED)


def _no_work(_: object, name: str, slowest: bool) -> Iterable[Work]:
    """The estimate of a step that takes no longer than the moments its gates want."""
    return ()


@dataclass(frozen=True, slots=True)
class ClusterStep(Step[P]):
    """A step, with what is expected of a cluster while it is on record.

    `estimate` is given its name, and whether to count by the slowest batch so far; it says what is left of the way forward,
    the batch on record not counted. In `one_piece` it goes on once a node was restarted, though its window may close.
    """

    expected: Expected = UNTOUCHED
    estimate: Callable[[P, str, bool], Iterable[Work]] = _no_work
    one_piece: bool = False
