"""Who is told of a migration, in our words."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from switchover.engine.calls import Call
from switchover.engine.figures import Figure


class Telemetry(Protocol):
    """Figures for whoever watches from outside."""

    def told(self, name: str, uid: str, figures: Sequence[Figure], waits: Mapping[str, float]) -> None:
        """The figures of a migration after a pass, and the seconds that each gate has made it wait since the last."""
        ...


Undelivered = Callable[[str], Awaitable[None]]
"""Told why a message was not taken, which holds no secret. Never raises."""


class Notify(Protocol):
    """Somebody outside who wants news of the migrations of one kind in one namespace."""

    def __call__(self, name: str, uid: str, call: Call, undelivered: Undelivered) -> None:
        """Tell of the call if it is news. Never raises, and never waits for who is told."""
        ...
