"""What makes a resource a migration: how its objects are read, decided on and told. All of it is pure.

`reconcile` knows of migrations only what stands here; each plan's package has one implementation (`cluster/kind.py`,
`groups/kind.py`).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

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


M = TypeVar("M", bound=Migration)
P = TypeVar("P", bound=Picture)


class Kind(Protocol[M, P]):
    """One kind of migration."""

    @property
    def short(self) -> str:
        """The word for it on the command line: kmig."""
        ...

    @property
    def steps(self) -> Collection[str]:
        """The steps of all plans that there are of it."""
        ...

    def read(self, raw: Mapping[str, Any]) -> M:
        """The object as the API server has it. Raises pydantic's ValidationError."""
        ...

    def picture(self, migration: M, namespace: str, now: float) -> P:
        """The picture before anything was observed."""
        ...

    def reached_by(self, migration: M) -> object:
        """All of the spec that says through what it is observed: another cluster, or other credentials, is another value."""
        ...

    def plan(self, picture: P) -> Plan[P]: ...
    def intent(self, migration: M) -> Intent: ...
    def claims(self, migration: M, picture: P) -> str:
        """The name of the Lease that keeps two migrations off each other; "" while it cannot be known."""
        ...

    def with_holder(self, picture: P, holder: str, now: float) -> P:
        """The picture of `now` with the Lease's holder in it."""
        ...

    def remaining(self, picture: P, decision: Decision) -> float | None:
        """Seconds until the end of the direction on record; None while nobody can tell."""
        ...

    def observed_modes(self, picture: P) -> Mapping[str, str]:
        """The mode in which each node on record was seen, as far as it was seen in this pass."""
        ...

    def recorded_modes(self, migration: M) -> Mapping[str, str]:
        """The mode in which each node was last seen, by the record."""
        ...

    def fold(self, migration: M, picture: P, decision: Decision, spent: Spent, remaining: float | None,
             seen: Mapping[str, str]) -> M:
        """The migration with its status after this pass; the same pass always folds to the same status."""
        ...

    def is_news(self, before: M, after: M) -> bool:
        """Whether the status says something new beside figures, so that it is written before its heartbeat is due."""
        ...

    def figures(self, migration: M, picture: P | None) -> Sequence[Figure]:
        """What is on record and, with a picture, what was observed."""
        ...

    def digest(self, picture: P) -> Mapping[str, str]:
        """What was observed that the story tells, in words by their subject. No fact that may hold a secret."""
        ...

    def may_go(self, migration: M) -> bool:
        """Whether an object that is being deleted is let go at once."""
        ...

    def is_untouched(self, migration: M) -> bool:
        """Whether nothing was made or changed yet: then nothing can be left behind."""
        ...

    def while_deleted(self, intent: Intent, picture: P) -> Intent:
        """The intent of an object that is being deleted."""
        ...

    def check_deletion(self, picture: P) -> Verdict:
        """Why an object that is being deleted is still there, and what ends that."""
        ...
