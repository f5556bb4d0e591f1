"""What is asked of Kubernetes. `client/` implements these; tests fake them.

Every method has a time limit of its own and raises one of the errors of `answers.errors`, never a client library's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from switchover.kubernetes.members import MemberWorkload
from switchover.kubernetes.workloads import JobRun, Workload


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


class Workloads(Protocol):
    """Workloads, pods and what belongs to them, in the operator's namespace only."""

    async def stateful_set(self, name: str) -> Workload | None: ...
    async def stateful_sets(self, wanted: Sequence[str]) -> Mapping[str, Workload | None]: ...
    async def member_workloads(self, wanted: Iterable[tuple[str, str]]) -> Mapping[str, MemberWorkload | None]:
        """Deployments and StatefulSets by (kind, name) with their pods, budgets and autoscalers; None: it does not exist."""
        ...

    async def others_called(self, names: Iterable[str]) -> Mapping[str, str]:
        """Of these names those that a workload of a kind that is not moved has, or that of a Canary: name -> what."""
        ...

    async def config_map(self, name: str) -> Mapping[str, str] | None:
        """All of a ConfigMap; None when it does not exist."""
        ...

    async def client_properties(self, secret: str) -> Mapping[str, str]: ...
    async def node_files(self, secret: str) -> Mapping[str, str]:
        """The Secret that holds one file a pod; empty when it does not exist."""
        ...

    async def write_node_files(self, secret: str, files: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Write it over what `node_files` last read; Fenced when somebody else has written it since."""
        ...

    async def preview_stateful_set(self, name: str, operations: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The object that this JSON patch would make, by a dry run; Fenced when one of its tests fails."""
        ...

    async def apply(self, manifest: Mapping[str, Any]) -> None:
        """Server-side apply with the fixed field manager."""
        ...

    async def create(self, manifest: Mapping[str, Any]) -> str:
        """Create an object: its uid. Fenced when the name is taken."""
        ...

    async def patch(self, api_version: str, kind: str, name: str, operations: Sequence[Mapping[str, Any]],
                    subresource: str = "") -> None:
        """JSON patch; Fenced when one of its tests fails or the object is gone."""
        ...

    async def manifest(self, api_version: str, kind: str, name: str) -> Mapping[str, Any] | None:
        """An object as the API server has it; None when it does not exist."""
        ...

    async def provide(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Create objects in their order; NameTaken at the first whose name an object has that is not ours."""
        ...

    async def delete_object(self, api_version: str, kind: str, name: str, uid: str = "",
                            labels: Mapping[str, str] | None = None) -> None:
        """Delete, dependants first; nothing to do when it does not exist, or bears another uid or other labels."""
        ...

    async def job(self, name: str, uid: str) -> JobRun | None:
        """The Job of that name and uid with what its newest pod left; None: it does not exist, whatever has its name."""
        ...

    async def original(self, name: str) -> Mapping[str, Any] | None:
        """The data of ControllerRevision `name`, in which we keep what a StatefulSet was before we touched it."""
        ...

    async def volume_claims(self, labels: Mapping[str, str]) -> Sequence[str]: ...
    async def evict(self, pod: str, uid: str) -> None:
        """Evict with a uid precondition; Refused carries the budget's message on 429; a pod already gone is success."""
        ...

    async def delete_pod(self, pod: str, uid: str) -> None:
        """Delete with a uid precondition; for pods that are not Ready and would block their own repair."""
        ...

    async def holds_lease(self, name: str, holder: str, seconds: int) -> bool:
        """Whether it is this holder's as it stands, for so many seconds, and need not be renewed yet."""
        ...

    async def hold_lease(self, name: str, holder: str, seconds: int) -> str:
        """Take or renew the Lease when it is free, expired or ours; the holder after the call."""
        ...

    async def release_lease(self, name: str, holder: str) -> None: ...


class Survey(Protocol):
    """What is asked of Kubernetes about other objects than a migration changes; nothing of it changes anything."""

    async def managers_of(self, objects: Iterable[tuple[str, str, str]]) -> Mapping[str, str]:
        """Of those that exist (API version, kind, name): "Kind name" -> its label app.kubernetes.io/managed-by or ""."""
        ...

    async def missing_rights(self, secrets: Iterable[str]) -> tuple[str, ...]:
        """Which rights that a migration needs we do not have, such as `patch statefulsets.apps`.

        Those to Secrets are asked for by the names of these, since the Role may name the Secrets that it is for.
        """
        ...

    async def storage_classes(self) -> StorageClasses:
        """Refused without the right to read them, which no Role can give: they belong to no namespace."""
        ...

    async def called(self, kinds: Iterable[str]) -> Mapping[str, str]:
        """The names of all workloads of these kinds (apps/v1) in our namespace, each with its kind."""
        ...

    async def classes_in_use(self) -> frozenset[str]:
        """Storage classes of the bound volume claims in our namespace."""
        ...

    async def try_patch(self, kind: str, name: str, operations: Sequence[Mapping[str, Any]]) -> TemplateChange:
        """Dry run of a JSON patch of a workload, admission included; Refused with the message of whoever refuses it."""
        ...

    async def time(self) -> float:
        """The API server's clock: seconds since the epoch, whole ones."""
        ...

    async def stateful_sets_behind(self, services: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Of these names in our namespace those that a Service has: the StatefulSets whose pods it selects."""
        ...

    async def group_migrations(self) -> Mapping[str, tuple[GroupMigration, ...]]:
        """The ConsumerGroupMigrations in our namespace with coordination to Kafka, by the group that they move."""
        ...


class Migrations(Protocol):
    """The custom resource."""

    async def get(self, name: str) -> Mapping[str, Any] | None: ...
    async def record(self, name: str, uid: str, resource_version: str, status: Mapping[str, Any]) -> str:
        """Replace the status if the object still is what was read; the new resourceVersion. Fenced otherwise."""
        ...

    async def announce(self, name: str, uid: str, reason: str, message: str, *, warning: bool) -> None:
        """A Kubernetes Event on the resource."""
        ...
