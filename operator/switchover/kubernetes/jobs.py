"""Jobs of Kubernetes that a migration runs, as facts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class JobState(StrEnum):
    """How far a Job of Kubernetes is."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class JobRun:
    """A Job. `message` is the termination message of its newest pod that ended; `words` say what it waits for or why it
    failed, as Kubernetes has it. `created` is in seconds since the epoch."""

    name: str
    state: JobState
    message: str = ""
    words: str = ""
    uid: str = ""
    created: float = 0.0
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.state is not JobState.RUNNING
