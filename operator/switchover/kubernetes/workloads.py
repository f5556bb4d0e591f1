"""What Kubernetes says of the workloads that a migration changes, of the pods of a StatefulSet, and of Jobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from switchover.api.job_message import NONCE
from switchover.kubernetes.reports import DiskReport


@dataclass(frozen=True, slots=True)
class Manager:
    """An entry of an object's managedFields: who wrote which of the parts that matter here, and when last.

    `parts` are of: volumes, mounts, command, annotations (of its pods), strategy, replicas, and of each container "image of
    app", "env of app" and "args of app"; of a group's workload also each place of the template ("spec.volumes[config]").
    With any of them, Flux's mark `ssa` is one as well.
    `subresource` is "scale" for autoscalers and kubectl scale.
    """

    name: str
    operation: str                    # Apply or Update
    subresource: str
    at: float                         # seconds since the epoch; 0.0 when the API server does not say
    parts: frozenset[str]


class Managed(Protocol):
    """A workload that a GitOps tool or a person may manage."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def marks(self) -> Mapping[str, str]: ...
    @property
    def managers(self) -> tuple[Manager, ...]: ...


class Stage(StrEnum):
    """How far the kubelet has got with a pod that shall run."""

    PENDING = "Pending"               # it has no node
    PREPARING = "Preparing"           # an image is pulled, or volumes are mounted
    INITIALIZING = "Initializing"     # an init container runs
    ENDED = "Ended"                   # a container has ended, and is started again
    RUNNING = "Running"


class Reached(NamedTuple):
    """A stage, the container that it is about ("" while there is none), and since when, if the kubelet says so."""

    stage: Stage
    container: str
    since: float | None


RUNS = Reached(Stage.RUNNING, "", None)
NAMES_REMEMBERED = 30
"""Seconds for which Java keeps a name's address unless it is asked otherwise (docs/decisions/0002-addresses.md)."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a StatefulSet that we move. `trouble` is the kubelet's reason when it does not come up, `reached` how far
    it has got.

    `disks` is None where it has reported nothing: it started before the template was changed, or still starts. `volumes`
    are its claims, each as "name/uid": a claim that was made again has another uid, and nothing of the data. `ips` are its
    addresses, the first one first; on its node's network (`hostNetwork`) they are the node's, and of their ports only
    `host_ports` are reserved for it. None: all ports of its addresses are its own. `unreached` are the brokers' addresses
    that gave a controller's pod no answer when it started, and whether each took the connection; None where it has not
    reported. `with_token` are its containers that have a token of its ServiceAccount. `budgets` are the PodDisruptionBudgets
    that select it by its own labels, of which some are not its template's. `remembers` are the seconds for which its JVM
    keeps the address of a name, as far as a variable says: Java's default of 30 otherwise.
    """

    name: str
    uid: str
    node: str
    ready: bool
    terminating: bool
    revision: str
    started_at: float | None
    cordoned: bool | None             # its node; None when we may not read nodes
    trouble: str
    disks: DiskReport | None = None
    volumes: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    host_ports: frozenset[int] | None = None
    reached: Reached = RUNS
    unreached: Mapping[str, bool] | None = None
    with_token: frozenset[str] = frozenset()
    budgets: tuple[str, ...] = ()
    remembers: int = NAMES_REMEMBERED


MOST_PODS = 1000
"""What one migration takes on: its status has a record of each. Kubernetes itself takes two thousand million replicas."""


def listed(replicas: int) -> int:
    """How many of them anything is listed for: one more than may be, at most, by which too many are found."""
    return min(replicas, MOST_PODS + 1)


@dataclass(frozen=True, slots=True)
class Workload:
    """A StatefulSet and its pods, read in this pass."""

    name: str
    uid: str
    replicas: int
    template: Mapping[str, Any]
    update_strategy: Mapping[str, Any]
    update_revision: str
    claimed_by: str                   # our claim annotation, "" when free
    budgets: tuple[str, ...]          # names of the PodDisruptionBudgets that select what its template makes
    pods: Mapping[str, Pod]
    generation: int = 0               # of its spec; status does not move it
    applied_by: tuple[str, ...] = ()  # who but us applied a manifest that has the template we made
    marks: Mapping[str, str] = field(default_factory=dict)     # labels and annotations of GitOps tools
    managers: tuple[Manager, ...] = ()
    owner: str = ""                   # its controller by ownerReference, "Kafka my-cluster"; "" when nobody's
    claim_templates: tuple[str, ...] = ()                      # names of its volumeClaimTemplates
    strict_budgets: tuple[str, ...] = ()                       # those of its template or pods that never allow a disruption
    selectors: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)    # of every budget of the namespace
    first_ordinal: int = 0            # spec.ordinals.start
    selector: Mapping[str, Any] | None = None                  # its own
    absent: Mapping[str, str] = field(default_factory=dict)    # pods that do not exist -> why, by the last event about them
    made_for: str = ""                # our label: the migration that made it
    service: str = ""                 # the one that gives its pods their names, "" where none does

    @property
    def kind(self) -> str:
        return "StatefulSet"

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names of the pods that it shall have, also of one that does not exist at this moment; of too many not all."""
        return tuple(f"{self.name}-{ordinal}"
                     for ordinal in range(self.first_ordinal, self.first_ordinal + listed(self.replicas)))


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
