"""The facts of the workloads whose pods are members of a group: what Kubernetes said of them in one pass.

Deployments and StatefulSets alike; what only one of them has is empty for the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from switchover.kubernetes.workloads import Manager

KINDS: Mapping[str, tuple[str, str]] = {"Deployment": ("apps/v1", "deployments"), "StatefulSet": ("apps/v1", "statefulsets")}
"""The kinds of workload that are moved: the API version of each, and its plural in paths."""
HPA = "HorizontalPodAutoscaler"
SCALED_OBJECT = "ScaledObject"
PAUSED = "autoscaling.keda.sh/paused"
PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"
COST = "controller.kubernetes.io/pod-deletion-cost"
CANARY, PRIMARY = "Canary", "-primary"
"""Flagger's resource, and how the Deployment is called in which it runs the pods of its target, which it scales to 0."""


@dataclass(frozen=True, slots=True)
class MemberPod:
    """A pod of a workload whose pods are members. `trouble` is the kubelet's reason when it does not come up.

    `revision` is the hash of the template that it was made from: of a ReplicaSet, or of a StatefulSet's revision.
    """

    name: str
    uid: str
    ips: frozenset[str]               # as canonical writes them; of dual stack more than one
    node: str
    ready: bool
    terminating: bool
    revision: str
    restarts: int                     # of all its containers
    trouble: str
    started_at: float | None          # seconds since the epoch; None while a container does not run
    resource_version: str = ""
    annotated: bool = False           # it has any annotation at all
    cost: str = ""                    # its annotation by which a Deployment's controller chooses who leaves (leaving.py)


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """Whatever changes a workload's replicas or resources by itself.

    `settings` are exactly what a pause changes: minReplicas and behavior of a HorizontalPodAutoscaler, the pausing
    annotations of a ScaledObject; nothing of another kind. `confirmed`: its controller says that it is paused.
    """

    api_version: str
    kind: str
    name: str
    uid: str
    resource_version: str
    settings: Mapping[str, Any]
    annotated: bool = True            # it has any annotation at all
    confirmed: bool = False
    owner: str = ""                   # its controller by ownerReference

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class MemberWorkload:
    """A Deployment or StatefulSet and its pods.

    Where `caught_up` is False its controller has not acted on the last change yet, and its status is older.
    `seen` counts pods by status, those that terminate not among them; `pods` has them all.
    """

    kind: str
    name: str
    uid: str
    resource_version: str
    generation: int                   # of its spec; status does not move it
    caught_up: bool
    replicas: int                     # wanted
    seen: int
    template: Mapping[str, Any]
    update_revision: str              # of the template as it is now; "" before a Deployment has a ReplicaSet of it
    pods: Mapping[str, MemberPod]
    update_strategy: Mapping[str, Any] = field(default_factory=dict)
    current_revision: str = ""        # StatefulSet: what a pod below the partition is made of
    first_ordinal: int = 0            # StatefulSet
    min_ready: int = 0                # Deployment: minReadySeconds
    deadline: int | None = None       # Deployment: progressDeadlineSeconds
    sizes: Mapping[str, int] = field(default_factory=dict)   # Deployment: revision -> pods that its ReplicaSet wants
    templates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)   # Deployment: revision -> what it was made of
    available: int = 0                # Deployment: pods of its template that its controller may count as available
    paused: bool = False              # Deployment: its controller rolls nothing out
    trouble: str = ""                 # why its pods cannot be created, a quota say
    annotated: bool = False           # it has any annotation at all
    claimed_by: str = ""              # our claim annotation, "" when free
    marks: Mapping[str, str] = field(default_factory=dict)             # labels and annotations of GitOps tools
    managers: tuple[Manager, ...] = ()
    owner: str = ""                   # its controller by ownerReference, "Rollout orders"; "" when nobody's
    autoscalers: tuple[Autoscaler, ...] = ()
    budgets: Mapping[str, int] = field(default_factory=dict)           # that select its pods -> disruptions allowed now
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # that its template names -> their access modes

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def ready(self) -> tuple[str, ...]:
        """Names of the pods that run the template as it is now, Ready and to stay."""
        return self._ready

    @cached_property
    def _ready(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, pod in self.pods.items()
                            if pod.ready and not pod.terminating and pod.revision == self.update_revision))

    @cached_property
    def predecessors(self) -> tuple[str, ...]:
        """Names of the pods of earlier templates."""
        return tuple(name for name, pod in self.pods.items() if pod.revision != self.update_revision)
