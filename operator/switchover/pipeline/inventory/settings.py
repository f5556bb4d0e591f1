"""What `inventory` may be told."""

from typing import Annotated, Any, Literal

from pydantic import Field

from switchover.api.schema import Model

Pattern = Annotated[str, Field(min_length=1, max_length=512)]


class Workload(Model, extra="forbid"):
    """The workloads whose pods are members of groups: what only their owner knows."""

    groups: Pattern
    """A group's name, or a pattern of it: `*` and `?` as in a shell."""
    name: Pattern = "{group}"
    """The workload's name; {group} stands for the group's."""
    kind: Literal["Deployment", "StatefulSet"] = "Deployment"
    container: Pattern
    """The container that holds the consumer."""
    template: dict[str, Any] = Field(default_factory=dict)
    """The change that the migration ends with, as in ConsumerGroupMigration."""
    bridge: dict[str, Any] | None = None
    """The change in between, as there; a group that ZooKeeper coordinates needs one."""


class InventorySettings(Model, extra="forbid"):
    """Settings of `inventory`."""

    include: tuple[Pattern, ...] = ("*",)
    """Groups that are looked at."""
    exclude: tuple[Pattern, ...] = ()
    """And of these, groups that are not."""
    cut_topics: tuple[Pattern, ...] = ()
    """Topics that connect nobody: an audit or dead-letter topic that many groups read glues the fleet together."""
    max_groups: Annotated[int, Field(ge=1, le=10_000)] = 20
    """Groups in one wave; connected ones stay together, even where they are more."""
    max_partitions: Annotated[int, Field(ge=1, le=10_000_000)] = 2_000
    """Partitions in one wave, likewise."""
    dead_seconds: Annotated[int, Field(ge=60, le=31_536_000)] = 604_800
    """A group without members that has not committed for so long is dead."""
    workloads: tuple[Workload, ...] = ()
    """The first that matches a group is its own; a group without one gets no manifest."""
