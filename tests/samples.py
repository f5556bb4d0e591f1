"""What an ordinary run takes of what there is too much of: the same in CI each time, something else with every other run."""

import os
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

SAMPLE = int(os.environ.get("SAMPLE") or (0 if "CI" in os.environ else random.SystemRandom().randrange(1_000_000)))
"""Which sample it is. A failure names it; `SAMPLE=<number>` takes it again."""

T = TypeVar("T")


def taken(things: Sequence[T], count: int) -> list[T]:
    """So many of them; all when there are no more."""
    return random.Random(SAMPLE).sample(things, min(count, len(things)))


def told(count: int, everything: int, what: str) -> str:
    """How much of how much, and how to take it again."""
    return f"{count} of {everything} {what}" + ("" if count == everything else f" (SAMPLE={SAMPLE})")


def each(count: int, everything: Sequence[tuple[Any, ...]], what: str, check: Callable[..., None],
         counted: Callable[[str], None]) -> None:
    """Check so many of them, one after the other."""
    chosen = taken(everything, count)
    counted(told(len(chosen), len(everything), what))
    for one in chosen:
        try:
            check(*one)
        except AssertionError as error:
            raise AssertionError(f"{one}, SAMPLE={SAMPLE}: {error}") from error
