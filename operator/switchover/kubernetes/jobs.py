"""Jobs of Kubernetes that a migration runs, as facts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from switchover.api.job_message import NONCE


class JobState(StrEnum):
    """How far a Job of Kubernetes is."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class JobRun:
    """A Job. `message` is the termination message of its newest pod that ended, of one that repeats the nonce before any
    other; `detail` says what it waits for or why it failed, as Kubernetes has it. `created` is in seconds since the epoch.
    `given` are the variables SWITCHOVER_… of its pod's template, which nobody can change, as one can annotations."""

    name: str
    state: JobState
    message: str = ""
    detail: str = ""
    uid: str = ""
    created: float = 0.0
    annotations: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.state is not JobState.RUNNING

    @property
    def nonce(self) -> str:
        """What its reports repeat."""
        return self.given.get(NONCE, "")
