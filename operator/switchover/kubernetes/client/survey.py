"""What is asked of Kubernetes about other objects than a migration changes (`ports.Survey`). Nothing is changed."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from switchover.answers.ask import Answers
from switchover.answers.errors import Fenced
from switchover.api.meta import API_VERSION
from switchover.kubernetes.client.api_server import FIELD_MANAGER, ApiServer, Conflict, NotFound
from switchover.kubernetes.members import KINDS
from switchover.kubernetes.ports import GroupMigration, StorageClasses, TemplateChange
from switchover.kubernetes.selectors import leads_to

GRANTED_SECONDS, REFUSED_SECONDS = 900.0, 15.0
"""How long it holds that we have a right, and that we have it not: a right comes while somebody waits for it, and one that
goes is noticed by whatever needs it."""
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
MANAGED_BY = "app.kubernetes.io/managed-by"
RIGHTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("coordination.k8s.io", "leases"): ("get", "create", "update", "delete"),
    ("apps", "statefulsets"): ("get", "create", "patch", "delete"),
    ("apps", "controllerrevisions"): ("get", "create", "patch", "delete"),
    ("", "pods"): ("list", "delete"),
    ("", "pods/eviction"): ("create",),
    ("", "services"): ("get", "create", "delete"),
    ("policy", "poddisruptionbudgets"): ("get", "list", "create", "delete"),
    ("", "persistentvolumeclaims"): ("get", "list", "delete"),
    ("", "secrets"): ("get", "create", "patch", "delete"),
    ("batch", "jobs"): ("get", "create", "patch", "delete"),
    ("", "configmaps"): ("create",),
}
"""What a KafkaMigration does with whom: the chart's Role grants it, and a test compares the two."""
GROUP_RIGHTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("coordination.k8s.io", "leases"): ("get", "create", "update", "delete"),
    **{(version.partition("/")[0], f"{plural}{part}"): verbs for version, plural in KINDS.values()
       for part, verbs in (("", ("get", "patch")), ("/scale", ("patch",)))},
    ("apps", "replicasets"): ("list",),
    ("apps", "daemonsets"): ("get",),
    ("argoproj.io", "rollouts"): ("get",),
    ("apps.kruise.io", "clonesets"): ("get",),
    ("core.strimzi.io", "strimzipodsets"): ("get",),
    ("apps", "controllerrevisions"): ("get", "create", "patch"),
    ("batch", "jobs"): ("get", "create", "delete"),
    ("", "pods"): ("list", "patch", "delete"),
    ("", "pods/eviction"): ("create",),
    ("", "persistentvolumeclaims"): ("list",),
    ("", "configmaps"): ("get",),
    ("", "secrets"): ("get",),
    ("policy", "poddisruptionbudgets"): ("list",),
    ("autoscaling", "horizontalpodautoscalers"): ("list", "patch"),
    ("keda.sh", "scaledobjects"): ("list", "patch"),
    ("autoscaling.k8s.io", "verticalpodautoscalers"): ("list",),
}
"""The same of a ConsumerGroupMigration."""


Right = tuple[str, str, str, str]
"""API group, resource, verb and the name of the one object, "" for any."""


class KubernetesSurvey:
    """`ports.Survey` on a real API server."""

    def __init__(self, server: ApiServer, rights: Mapping[tuple[str, str], tuple[str, ...]] = RIGHTS) -> None:
        self._server = server
        self._rights = rights
        self._allowed = Answers()

    async def managers_of(self, objects: Iterable[tuple[str, str, str]]) -> Mapping[str, str]:
        """The objects that exist, by "Kind name", with their label app.kubernetes.io/managed-by."""
        wanted = tuple(objects)
        found = await asyncio.gather(*(self._labels(*each) for each in wanted))
        return {f"{kind} {name}": labels.get(MANAGED_BY, "")
                for (_, kind, name), labels in zip(wanted, found, strict=True) if labels is not None}

    async def _labels(self, api_version: str, kind: str, name: str) -> Mapping[str, str] | None:
        found = await self._server.find(self._server.path(api_version, kind, name))
        return None if found is None else found["metadata"].get("labels") or {}

    async def called(self, kinds: Iterable[str]) -> Mapping[str, str]:
        """The names of all workloads of these kinds, each with its kind."""
        return {found["metadata"]["name"]: kind for kind in kinds
                for found in await self._server.items(self._server.path("apps/v1", kind))}

    async def missing_rights(self, secrets: Iterable[str]) -> tuple[str, ...]:
        """Ask for each right by a SelfSubjectAccessReview, which every account may do: once for all migrations."""
        names = {("", "secrets"): tuple(secrets)}
        asked = [(group, resource, verb, name) for (group, resource), verbs in self._rights.items()
                 for name in names.get((group, resource), ("",)) for verb in verbs]
        unknown = [each for each in asked if not self._is_granted(each)]
        allowed = await asyncio.gather(*(self._may(each) for each in unknown))
        return tuple(f"{verb} {resource}{'.' + group if group else ''}{' ' + name if name else ''}"
                     for (group, resource, verb, name), granted in zip(unknown, allowed, strict=True) if not granted)

    def _is_granted(self, right: Right) -> bool:
        """Whether it was lately: a pass of each migration wants to know it, and no task is made for that."""
        granted = self._allowed.newest(right, GRANTED_SECONDS)
        return granted is not None and granted.value

    async def _may(self, right: Right) -> bool:
        async def ask() -> bool:
            return await self._review(*right)

        granted = await self._allowed.get(right, ask, GRANTED_SECONDS)
        return granted.value or (await self._allowed.get(right, ask, REFUSED_SECONDS)).value

    async def _review(self, group: str, resource: str, verb: str, name: str) -> bool:
        kind, _, subresource = resource.partition("/")
        attributes = {"namespace": self._server.namespace, "verb": verb, "group": group, "resource": kind,
                      "subresource": subresource, "name": name}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                  "spec": {"resourceAttributes": attributes}}
        answer = await self._server.request("POST", REVIEWS, review)
        return bool(answer["status"].get("allowed"))

    async def storage_classes(self) -> StorageClasses:
        """The classes of the whole cluster; Refused for an account that may not list them."""
        found = {item["metadata"]["name"]: item["metadata"].get("annotations") or {}
                 for item in (await self._server.beyond(CLASSES))["items"]}
        default = (name for name, annotations in found.items() if annotations.get(DEFAULT_CLASS) == "true")
        return StorageClasses(frozenset(found), next(default, ""))

    async def classes_in_use(self) -> frozenset[str]:
        """Of the claims in our namespace that are bound."""
        claims = await self._server.items(self._server.path("v1", "PersistentVolumeClaim"))
        return frozenset(claim["spec"]["storageClassName"] for claim in claims
                         if claim["spec"].get("storageClassName") and claim.get("status", {}).get("phase") == "Bound")

    async def try_patch(self, kind: str, name: str, operations: Sequence[Mapping[str, Any]]) -> TemplateChange:
        """JSON patch with dryRun=All: admission judges and changes it, and nothing is stored."""
        path = self._server.path("apps/v1", kind, name)
        try:
            found = await self._server.json_patch(path, operations, dry_run=True)
        except (NotFound, Conflict) as error:
            raise Fenced(f"{kind} {name} is not what was read: {error}") from None
        return TemplateChange(found["spec"]["template"], found["spec"].get("updateStrategy") or {})

    async def time(self) -> float:
        """The API server stamps what is created, also where nothing is stored."""
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"generateName": "switchover-"}}
        made = await self._server.request(
            "POST", self._server.path("coordination.k8s.io/v1", "Lease"), lease, field_manager=FIELD_MANAGER, dry_run="All")
        return datetime.fromisoformat(made["metadata"]["creationTimestamp"]).timestamp()

    async def stateful_sets_behind(self, services: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """By the labels of their templates: there may be no pod. A Service without a selector has none behind it."""
        wanted = tuple(services)
        found, sets = await asyncio.gather(
            asyncio.gather(*(self._server.find(self._server.path("v1", "Service", name)) for name in wanted)),
            self._server.items(self._server.path("apps/v1", "StatefulSet")))
        return {name: tuple(sorted(each["metadata"]["name"] for each in sets if leads_to(service, each)))
                for name, service in zip(wanted, found, strict=True) if service is not None}

    async def group_migrations(self) -> Mapping[str, tuple[GroupMigration, ...]]:
        """By group; one whose CRD is not installed is nobody's."""
        try:
            found = await self._server.items(self._server.resource_path(API_VERSION, "consumergroupmigrations"))
        except NotFound:
            return {}
        by_group: dict[str, tuple[GroupMigration, ...]] = {}
        for item in found:
            spec, status = item["spec"], item.get("status") or {}
            if (spec.get("coordination") or {}).get("to") == "Kafka":
                moving = GroupMigration(item["metadata"]["name"], status.get("phase", ""))
                by_group[spec["group"]] = (*by_group.get(spec["group"], ()), moving)
        return by_group
