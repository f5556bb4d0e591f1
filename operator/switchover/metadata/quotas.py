"""Quotas that KRaft takes over and dual write cannot write to ZooKeeper: it repeats itself at the first one for ever.

The controller copies a quota by its number alone. The way back into ZooKeeper goes through the definitions of Kafka 3.9,
which refuse a key that they do not have and a whole number with a decimal (docs/facts/rehearsal.md).
"""

from collections.abc import Iterator, Mapping
from math import floor
from typing import NamedTuple

from switchover.metadata.cluster import Entity, entity_words
from switchover.metadata.kafka_config import CLIENT_QUOTAS, IP_QUOTAS


class Unwritable(NamedTuple):
    """A quota of KRaft's that never gets to ZooKeeper. `instead` is the whole number below, and None for one that Kafka does
    not know: that has no effect, and nothing stands for it."""

    entity: Entity
    key: str
    value: float
    instead: float | None

    def __str__(self) -> str:
        return f"quota {self.key} of {entity_words(self.entity)}"


def unwritable(quotas: Mapping[Entity, Mapping[str, float]]) -> tuple[Unwritable, ...]:
    """All of them, in order of their names."""
    return tuple(sorted(_unwritable(quotas), key=str))


def _unwritable(quotas: Mapping[Entity, Mapping[str, float]]) -> Iterator[Unwritable]:
    for entity, values in quotas.items():
        definitions = IP_QUOTAS if entity and entity[0][0] == "ip" else CLIENT_QUOTAS
        for key, value in values.items():
            known = definitions.get(key)
            if known is None:
                yield Unwritable(entity, key, value, None)
            elif known.type in ("INT", "LONG") and not value.is_integer():
                yield Unwritable(entity, key, value, float(floor(value)))
