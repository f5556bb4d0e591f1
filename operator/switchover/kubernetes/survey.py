"""What is asked of Kubernetes about other objects than a migration changes: plain immutable values."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TemplateChange:
    """What the API server would make of the template change: template and update strategy after a dry run."""

    template: Mapping[str, object]
    update_strategy: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StorageClasses:
    """Names of the classes that exist, and of the default one; "" when there is none."""

    existing: frozenset[str]
    default: str


@dataclass(frozen=True, slots=True)
class GroupMigration:
    """A ConsumerGroupMigration that takes a group from ZooKeeper's coordination to Kafka's. `phase` may be empty."""

    name: str
    phase: str

    def __str__(self) -> str:
        return f"ConsumerGroupMigration/{self.name}"
