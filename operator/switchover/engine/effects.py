"""Effects: what `decide` hands out to be done. Each is idempotent and derived again from facts in every pass."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply of a manifest: an object of ours, or of the user's the fields that are ours."""

    manifest: Mapping[str, Any]

    def __str__(self) -> str:
        return f"apply {self.manifest['kind']} {self.manifest['metadata']['name']}"


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object that is ours; one of that name that is there already stays as it is.

    The uid of a Job goes on record, and nothing is read of a Job before. Another one of its name gives way: it has no state.
    """

    manifest: Mapping[str, Any]

    def __str__(self) -> str:
        return f"create {self.manifest['kind']} {self.manifest['metadata']['name']}"


@dataclass(frozen=True, slots=True)
class Provide:
    """Create objects that are ours, in this order, each after the one that it needs; NameTaken at the first whose name an
    object has that is not ours."""

    manifests: tuple[Mapping[str, Any], ...]

    def __str__(self) -> str:
        return ", ".join(str(Create(each)) for each in self.manifests)


@dataclass(frozen=True, slots=True)
class WriteNodeFiles:
    """Write the Secret that holds one file a node: this is how a node is assigned its mode."""

    secret: str
    files: Mapping[str, str] = field(repr=False)          # they may hold passwords
    labels: Mapping[str, str]

    def __str__(self) -> str:
        return f"write the files of Secret {self.secret}"


@dataclass(frozen=True, slots=True)
class Patch:
    """JSON patch of an object, or of its `subresource`, with tests that fence it."""

    api_version: str
    kind: str
    name: str
    operations: tuple[Mapping[str, Any], ...]
    purpose: str
    subresource: str = ""

    def __str__(self) -> str:
        return f"{self.subresource or 'patch'} {self.kind} {self.name}: {self.purpose}"


def patch_stateful_set(name: str, operations: tuple[Mapping[str, Any], ...], purpose: str) -> Patch:
    """JSON patch of a StatefulSet that belongs to the user."""
    return Patch("apps/v1", "StatefulSet", name, operations, purpose)


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict exactly this pod; budgets hold."""

    pod: str
    uid: str

    def __str__(self) -> str:
        return f"evict pod {self.pod} ({self.uid})"


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete exactly this pod; no budget holds."""

    pod: str
    uid: str

    def __str__(self) -> str:
        return f"delete pod {self.pod} ({self.uid})"


def replacement(pod: str, uid: str, *, ready: bool, at_once: bool = False) -> Evict | DeletePod:
    """What has exactly this pod replaced, whoever wants it: an eviction. A pod that is not Ready is deleted, since a budget
    would keep it from its own repair; so is one that has to go `at_once`, where waiting for a budget does harm."""
    return Evict(pod, uid) if ready and not at_once else DeletePod(pod, uid)


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object that is ours; a workload goes only after its pods, so that its absence proves theirs."""

    api_version: str
    kind: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Without them it is somebody else's of that name, and stays."""

    def __str__(self) -> str:
        return f"delete {self.kind} {self.name}"


class Elsewhere:
    """An effect on something else than Kubernetes: the observer of the migration performs it."""

    __slots__ = ()


Effect = Apply | Create | Provide | WriteNodeFiles | Patch | Evict | DeletePod | Delete | Elsewhere
