"""What an ordinary run takes of what there is too much of: the same in CI each time, something else with every other run."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

SAMPLE = int(os.environ.get("SAMPLE") or (0 if "CI" in os.environ else random.SystemRandom().randrange(1_000_000)))
"""Which sample it is. A failure names it; `SAMPLE=<number>` takes it again."""

T = TypeVar("T")


def taken(things: Sequence[T], count: int) -> list[T]:
    """So many of them; all when there are no more."""
    return random.Random(SAMPLE).sample(things, min(count, len(things)))


def told(count: int, everything: int, what: str) -> str:
    """How much of how much, and how to take it again."""
    return f"{count} of {everything} {what}" + ("" if count == everything else f" (SAMPLE={SAMPLE})")
