"""A partition by name, as every part of the distribution says it."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
