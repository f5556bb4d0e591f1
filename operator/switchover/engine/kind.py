"""What makes a resource a migration: how its objects are read, decided on and reported. All of it is pure.

`reconcile` knows of migrations only what stands here; each plan's package has one (`cluster/kind.py`, `groups/kind.py`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from switchover.api.meta import MigrationSpec, ObjectMeta
from switchover.api.status import MigrationStatus
from switchover.engine.figures import Figure
from switchover.engine.gate import Verdict
from switchover.engine.pace import Spent
from switchover.engine.plan import Decision, Intent, Plan
from switchover.engine.position import Position


class Migration(Protocol):
    """A custom resource of either kind."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def spec(self) -> MigrationSpec: ...
    @property
    def status(self) -> MigrationStatus: ...
    def evolve(self, **changes: Any) -> Self: ...


class Picture(Protocol):
    """The picture of one pass: what is wanted, on record, and observed. Times are seconds since the epoch."""

    @property
    def name(self) -> str: ...
    @property
    def named(self) -> tuple[str, str]:
        """As commands name it: kmig/kafka, and the namespace."""
        ...

    @property
    def uid(self) -> str: ...
    @property
    def position(self) -> Position: ...
    @property
    def now(self) -> float: ...
    def at(self, position: Position) -> Self:
        """The same picture with another position, to ask what would hold there."""
        ...

    def held_by(self, holder: str, now: float) -> Self:
        """The picture of now with the Lease's holder in it."""
        ...


M = TypeVar("M", bound=Migration)
P = TypeVar("P", bound=Picture)


@dataclass(frozen=True, slots=True)
class Deletion(Generic[M, P]):
    """What the deletion of an object of one kind means: the intent while it is being deleted, and why it still exists."""

    untouched: Collection[str]
    """The steps up to which nothing was made or changed yet: then nothing can be left behind."""
    may_go: Callable[[M], bool]
    """Whether it may be deleted at once."""
    intent: Callable[[Intent, P], Intent]
    verdict: Callable[[P], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[M, P]):
    """One kind of migration."""

    short: str
    """The word for it on the command line: kmig."""
    steps: Collection[str]
    """The steps of all plans that there are of it."""
    read: Callable[[Mapping[str, Any]], M]
    """The object as the API server has it. Raises pydantic's ValidationError."""
    picture: Callable[[M, str, float], P]
    """The picture before anything was observed, of a migration in a namespace now."""
    reached_by: Callable[[M], object]
    """All of the spec that says through what it is observed: another cluster, or other credentials, is another value."""
    plan: Callable[[P], Plan[P]]
    intent: Callable[[M], Intent]
    claims: Callable[[M, P], str]
    """The name of the Lease that keeps two migrations off each other; "" while it cannot be known."""
    recorded_modes: Callable[[M], Mapping[str, str]]
    """The mode in which each node was last seen, by the record."""
    next_status: Callable[[M, P, Decision, Spent, Mapping[str, str]], MigrationStatus]
    """The status after this pass, with the modes in which nodes were seen before it; the same pass always folds to the same
    status."""
    telling: Callable[[Any], object]
    """What of a status is worth writing before its heartbeat is due; figures alone are not."""
    figures: Callable[[M, P | None], Sequence[Figure]]
    """What is on record and, with a picture, what was observed."""
    digest: Callable[[P], Mapping[str, str]]
    """What was observed that the story has, by their subject. No fact that may hold a secret."""
    deletion: Deletion[M, P]
