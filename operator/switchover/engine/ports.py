"""Who is told of a migration, in our words, and who works out what is decided about it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from switchover.engine.calls import Call
from switchover.engine.figures import Figure

T = TypeVar("T")


class TooMuchWork(Exception):
    """It took more of the processor than one object may; the message says where it was ended."""


class Worker(Protocol):
    """Works something out, within a deadline for each object: pure work, which may be ended and begun again."""

    async def __call__(self, uid: str, work: Callable[[], T], /) -> T:
        """What `work` returns or raises. Raises TooMuchWork."""
        ...


async def at_once(_: str, work: Callable[[], T]) -> T:
    """Without a deadline."""
    return work()


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
