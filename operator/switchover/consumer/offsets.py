"""Which of two stores' offsets counts (docs/facts/coordination.md#which-store-counts)."""

from typing import NamedTuple


class Stored(NamedTuple):
    """What a store says of one partition: the next offset to read, None for none."""

    zookeeper: int | None
    kafka: int | None

    @property
    def position(self) -> int | None:
        """Where to go on: the later one, since whoever consumed last may have committed to one store alone."""
        return max((offset for offset in self if offset is not None), default=None)


def parsed(data: bytes | None) -> int | None:
    """The offset that a node holds; what is negative or no number counts as none, as the old consumer has it."""
    try:
        offset = int((data or b"").decode())
    except ValueError:
        return None
    return offset if offset >= 0 else None
