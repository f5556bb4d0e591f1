"""What Kubernetes says of any workload that a migration changes, whatever its kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Manager:
    """An entry of an object's managedFields: who wrote which of the parts that matter here, and when last.

    `parts` are of: volumes, mounts, command, annotations (of its pods), strategy, replicas, and of each container "image of
    app", "env of app" and "args of app"; of a group's workload also each place of the template ("spec.volumes[config]").
    `subresource` is "scale" for autoscalers and kubectl scale.
    """

    name: str
    operation: str                    # Apply or Update
    subresource: str
    at: float                         # seconds since the epoch; 0.0 when the API server does not tell
    parts: frozenset[str]


class Kept(Protocol):
    """A workload that a GitOps tool or a person may keep."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def marks(self) -> Mapping[str, str]: ...
    @property
    def managers(self) -> tuple[Manager, ...]: ...
