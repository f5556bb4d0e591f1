"""Workloads, pods and what belongs to them, in one namespace (`ports.Workloads`).

Nothing written here carries an ownerReference: deleting a migration must take nothing away from a running Kafka.
"""

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from switchover.answers.clock import Clock
from switchover.answers.errors import Fenced, NameTaken, Refused, Unreachable
from switchover.kubernetes import names
from switchover.kubernetes.client import index, ownership
from switchover.kubernetes.client.api_server import FIELD_MANAGER, ApiServer, Conflict, Forbidden, NotFound, OverBudget
from switchover.kubernetes.client.member_workloads import other_kind, read_member_workloads
from switchover.kubernetes.client.ownership import applied_by
from switchover.kubernetes.client.pods import JOB_POD, never_allows, read_job, read_pod
from switchover.kubernetes.client.warning_events import WarningEvents
from switchover.kubernetes.lease import LOOKING_SECONDS, holder_of, shares
from switchover.kubernetes.members import MemberWorkload
from switchover.kubernetes.selectors import required, selects
from switchover.kubernetes.workloads import JobRun, Pod, Workload

T = TypeVar("T")

NOT_WATCHED = {"reloader.stakater.com/ignore": "true"}
"""Stakater's Reloader would else write a hash of every new file into the template, and pods would be due for a restart."""


class KubernetesWorkloads:
    """`ports.Workloads` on a real API server. `before`: operators that act no more, whose Leases are ours."""

    def __init__(self, server: ApiServer, clock: Clock, before: Container[str] = ()) -> None:
        self._server = server
        self._before = before
        self._clock = clock
        self._read_versions: dict[str, str] = {}
        self._leases: dict[str, tuple[tuple[Any, Any], float]] = {}     # how each stood, and since when by our clock
        self._read_uids: dict[str, str] = {}       # path -> uid of what may be deleted one day
        self._events = WarningEvents(server, clock)

    # --- reading ------------------------------------------------------------------------------------------------------

    async def stateful_set(self, name: str) -> Workload | None:
        """One alone of `stateful_sets`."""
        return (await self.stateful_sets((name,)))[name]

    async def stateful_sets(self, wanted: Sequence[str]) -> Mapping[str, Workload | None]:
        """The StatefulSets with their pods and the budgets that select them; None for one that does not exist."""
        found = await asyncio.gather(*(
            self._server.find(self._server.path("apps/v1", "StatefulSet", name)) for name in wanted))
        if not any(found):
            return dict.fromkeys(wanted)
        budgets, volumes, *pods = await asyncio.gather(
            self._server.items(self._server.path("policy/v1", "PodDisruptionBudget")),
            self._server.items(self._server.path("v1", "PersistentVolumeClaim")),
            *(self._pods_of(each) for each in found),
        )
        self._remember("policy/v1", "PodDisruptionBudget", budgets)
        read = await asyncio.gather(*(self._workload(*each, budgets, volumes) for each in zip(found, pods, strict=True)))
        return dict(zip(wanted, read, strict=True))

    async def _pods_of(self, stateful_set: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
        """What its selector can select of the namespace."""
        if stateful_set is None:
            return ()
        return await self._server.items(self._server.path("v1", "Pod"), required(stateful_set["spec"].get("selector")))

    async def _workload(self, found: Mapping[str, Any] | None, pods: Sequence[Mapping[str, Any]],
                        budgets: Sequence[Mapping[str, Any]], volumes: Sequence[Mapping[str, Any]]) -> Workload | None:
        if found is None:
            return None
        uid = found["metadata"]["uid"]
        own = [pod for pod in pods if ownership.controls({uid}, pod)]
        cordoned = await self._cordoned({node for pod in own if (node := pod["spec"].get("nodeName"))})
        claims = {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in volumes}
        labels = (found["spec"]["template"].get("metadata") or {}).get("labels") or {}
        guards = {pod["metadata"]["name"]: _selecting(budgets, _metadata(pod, "labels", {})) for pod in own}
        guard = _selecting(budgets, labels)
        guarding = {*guard}.union(*guards.values())
        read = Workload(
            name=found["metadata"]["name"],
            uid=uid,
            replicas=found["spec"].get("replicas", 1),
            template=found["spec"]["template"],
            update_strategy=found["spec"].get("updateStrategy") or {},
            update_revision=(found.get("status") or {}).get("updateRevision", ""),
            claimed_by=_metadata(found, "annotations", {}).get(names.CLAIM, ""),
            made_for=_metadata(found, "labels", {}).get(names.MIGRATION_LABEL, ""),
            budgets=guard,
            pods={name: read_pod(pod, cordoned, claims, guards[name]) for pod in own for name in [pod["metadata"]["name"]]},
            generation=found["metadata"].get("generation", 0),
            applied_by=applied_by(found),
            marks=ownership.marks(found),
            managers=ownership.managers(found),
            owner=ownership.owner(found),
            claim_templates=tuple(
                claim["metadata"]["name"] for claim in found["spec"].get("volumeClaimTemplates") or ()
            ),
            strict_budgets=tuple(name for budget in budgets for name in [budget["metadata"]["name"]]
                                 if name in guarding and never_allows(budget)),
            selectors={budget["metadata"]["name"]: budget["spec"].get("selector") for budget in budgets},
            first_ordinal=(found["spec"].get("ordinals") or {}).get("start", 0),
            selector=found["spec"].get("selector"),
            service=found["spec"].get("serviceName", ""),
        )
        absent = await self._events.why_none(uid, [name for name in read.wanted if name not in read.pods])
        return replace(read, absent=absent, pods={**read.pods, **await self._without_volumes(read.pods, own, volumes)})

    async def _without_volumes(self, pods: Mapping[str, Pod], found: Iterable[Mapping[str, Any]],
                               volumes: Iterable[Mapping[str, Any]]) -> Mapping[str, Pod]:
        """Those without a node that a claim waits for a volume for, with what events say of that."""
        unbound = {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in volumes
                   if (claim.get("status") or {}).get("phase") == "Pending"}
        wanting: dict[str, Pod] = {}
        for pod in found:
            known = pods[pod["metadata"]["name"]]
            for claim in () if known.node else index.claims({"spec": pod["spec"]}) & unbound.keys():
                if why := await self._events.why_not(unbound[claim]):
                    trouble = "; ".join(filter(None, (known.trouble, f"claim {claim}: {why}")))
                    wanting[known.name] = replace(known, trouble=trouble)
        return wanting

    async def member_workloads(self, wanted: Iterable[tuple[str, str]]) -> Mapping[str, MemberWorkload | None]:
        """Deployments and StatefulSets by (kind, name), each with its pods; None: it does not exist."""
        return await read_member_workloads(self._server, self._events, wanted)

    async def others_called(self, names: Iterable[str]) -> Mapping[str, str]:
        """Of these names those that a workload of a kind that is not moved has, or that of a Canary: name -> what."""
        return {name: kind for name in names if (kind := await other_kind(self._server, name))}

    async def _cordoned(self, nodes: set[str]) -> frozenset[str] | None:
        """The unschedulable ones; None without the right to read nodes, which belong to no namespace."""
        async def cordoned(node: str) -> bool:
            try:
                return bool((await self._server.beyond("/api/v1/nodes", node))["spec"].get("unschedulable"))
            except NotFound:
                return False

        first, rest = sorted(nodes)[:1], sorted(nodes)[1:]                 # the first alone: one refusal stands for all
        try:
            answers = [await cordoned(node) for node in first] + await asyncio.gather(*map(cordoned, rest))
        except Forbidden:
            return None
        return frozenset(node for node, answer in zip(first + rest, answers, strict=True) if answer)

    async def config_map(self, name: str) -> Mapping[str, str] | None:
        """All of a ConfigMap; None when it does not exist."""
        found = await self._server.find(self._server.path("v1", "ConfigMap", name))
        return None if found is None else dict(found.get("data") or {}) | _decoded(found.get("binaryData"))

    async def client_properties(self, secret: str) -> Mapping[str, str]:
        """Every key of the Secret is a client property; Refused when the Secret does not exist."""
        found = await self._server.find(self._server.path("v1", "Secret", secret))
        if found is None:
            raise Refused(f"Secret {secret} does not exist in namespace {self._server.namespace}")
        return _decoded(found.get("data"))

    async def node_files(self, secret: str) -> Mapping[str, str]:
        """The Secret that holds one file a pod; empty when it does not exist."""
        self._read_versions.pop(secret, None)
        found = await self._server.find(self._server.path("v1", "Secret", secret))
        if found is None:
            return {}
        self._remember("v1", "Secret", (found,))
        self._read_versions[secret] = found["metadata"]["resourceVersion"]
        return _decoded(found.get("data"))

    async def job(self, name: str, uid: str) -> JobRun | None:
        """The Job of that name and uid with what its newest pod left; None: it does not exist, whatever has its name."""
        found = await self._server.find(self._server.path("batch/v1", "Job", name)) if uid else None
        if found is None or found["metadata"]["uid"] != uid:
            return None
        pods = await self._server.items(self._server.path("v1", "Pod"), {JOB_POD: name})
        return read_job(found, pods, "" if pods else await self._events.why_not(found["metadata"]["uid"]))

    async def original(self, name: str) -> Mapping[str, Any] | None:
        """The data of the ControllerRevision; None when it does not exist."""
        found = await self._server.find(self._server.path("apps/v1", "ControllerRevision", name))
        if found is None:
            return None
        self._remember("apps/v1", "ControllerRevision", (found,))
        data: Mapping[str, Any] = found["data"]
        return data

    async def volume_claims(self, labels: Mapping[str, str]) -> Sequence[str]:
        """Names of the claims that carry all the labels."""
        claims = await self._server.items(self._server.path("v1", "PersistentVolumeClaim"), labels)
        self._remember("v1", "PersistentVolumeClaim", claims)
        return sorted(claim["metadata"]["name"] for claim in claims)

    async def manifest(self, api_version: str, kind: str, name: str) -> Mapping[str, Any] | None:
        """An object as the API server has it; None when it does not exist."""
        return await self._server.find(self._server.path(api_version, kind, name))

    async def preview_stateful_set(self, name: str, operations: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The object that this JSON patch would make; nothing is stored."""
        return await self._patch("apps/v1", "StatefulSet", name, operations, dry_run=True)

    # --- writing ------------------------------------------------------------------------------------------------------

    async def write_node_files(self, secret: str, files: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Make the Secret hold exactly these files, if it still is what `node_files` last read; Fenced otherwise.

        An operator that stood still between deciding and writing would else put back an assignment of long ago.
        """
        data = {key: base64.b64encode(_bytes(text)).decode() for key, text in files.items()}
        version = self._read_versions.pop(secret, None)
        try:
            if version is None:
                metadata = {"name": secret, "labels": dict(labels), "annotations": NOT_WATCHED}
                manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
                path = self._server.path("v1", "Secret")
                await self._server.request("POST", path, manifest, field_manager=FIELD_MANAGER)
            else:
                await self._server.json_patch(
                    self._server.path("v1", "Secret", secret),
                    [
                        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
                        {"op": "add", "path": "/data", "value": data},
                    ],
                )
        except (Conflict, NotFound):
            raise Fenced(f"Secret {secret} is not what was read") from None

    async def patch(self, api_version: str, kind: str, name: str, operations: Sequence[Mapping[str, Any]],
                    subresource: str = "") -> None:
        """JSON patch; Fenced when one of its tests fails or the object is gone."""
        await self._patch(api_version, kind, name, operations, subresource)

    async def _patch(self, api_version: str, kind: str, name: str, operations: Sequence[Mapping[str, Any]],
                     subresource: str = "", *, dry_run: bool = False) -> Mapping[str, Any]:
        path = self._server.path(api_version, kind, name, subresource)
        try:
            return await self._server.json_patch(path, operations, dry_run=dry_run)
        except NotFound:
            raise Fenced(f"{kind} {name} is gone") from None
        except Conflict as error:
            raise Fenced(f"{kind} {name}: {error}") from None

    async def create(self, manifest: Mapping[str, Any]) -> str:
        """Create it in our namespace: its uid. Fenced when the name is taken."""
        path, made = self._server.path(manifest["apiVersion"], manifest["kind"]), dict(manifest)
        found = await self._written(manifest, self._server.request("POST", path, made, field_manager=FIELD_MANAGER))
        return str(found["metadata"]["uid"])

    async def provide(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Create them in their order. One with our labels is there already; NameTaken at the first with others."""
        for manifest in manifests:
            try:
                await self.create(manifest)
            except Fenced:
                kind, name = manifest["kind"], manifest["metadata"]["name"]
                found = await self.manifest(manifest["apiVersion"], kind, name)
                if found is None:
                    raise                                  # gone by now: the next pass tries again
                if not _has_labels(found, manifest["metadata"]["labels"]):
                    raise NameTaken(f"{kind} {name} exists and is not Switchover's") from None

    async def apply(self, manifest: Mapping[str, Any]) -> None:
        """Server-side apply with the fixed field manager, in our namespace whatever the manifest says of one."""
        path = self._server.path(manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"])
        await self._written(manifest, self._server.apply(path, manifest))

    async def _written(self, manifest: Mapping[str, Any], writing: Awaitable[T]) -> T:
        try:
            return await writing
        except NotFound:
            raise Refused(f"namespace {self._server.namespace} does not exist") from None
        except Conflict as error:
            raise Fenced(f"{manifest['kind']} {manifest['metadata']['name']}: {error}") from None

    async def delete_object(self, api_version: str, kind: str, name: str, uid: str = "",
                            labels: Mapping[str, str] | None = None) -> None:
        """Delete, dependants first: a workload is gone only when its pods are. Nothing to do when it does not exist.

        Without a uid it is the object that was last read: an operator that stood still between deciding and deleting would
        else delete what a later attempt has made under the same name.
        """
        path = self._server.path(api_version, kind, name)
        uid = uid or self._read_uids.pop(path, "")
        if labels or not uid:
            if (found := await self._server.find(path)) is None or not _has_labels(found, labels or {}):
                return
            uid = uid or found["metadata"]["uid"]
        workload = kind in ("StatefulSet", "Deployment")
        policy = "Foreground" if workload else "Background"    # its absence must prove that of its pods
        await self._delete(path, {"propagationPolicy": policy, "preconditions": {"uid": uid}})

    def _remember(self, api_version: str, kind: str, found: Iterable[Mapping[str, Any]]) -> None:
        for item in found:
            name = item["metadata"]["name"]
            self._read_uids[self._server.path(api_version, kind, name)] = item["metadata"]["uid"]

    async def evict(self, pod: str, uid: str) -> None:
        """Evict with a uid precondition; Refused carries the budget's message; a pod already gone is success."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": self._server.namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        try:
            await self._server.request("POST", self._server.path("v1", "Pod", pod, "eviction"), eviction)
        except NotFound:
            return
        except Conflict as error:
            if "UID" not in str(error):
                raise Fenced(f"pod {pod}: {error}") from None
        except OverBudget as error:
            raise Refused(str(error)) from None
        except Unreachable as error:
            if "more than one PodDisruptionBudget" in str(error):  # a 500, which never heals by itself
                raise Refused(f"pod {pod} has more than one PodDisruptionBudget, and the eviction API allows one") from None
            raise

    async def delete_pod(self, pod: str, uid: str) -> None:
        """Delete with a uid precondition; a pod already gone is success."""
        await self._delete(self._server.path("v1", "Pod", pod), {"preconditions": {"uid": uid}})

    async def _delete(self, path: str, options: Mapping[str, Any]) -> None:
        try:
            await self._server.request("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions"} | dict(options))
        except (NotFound, Conflict):
            return  # gone, or another object bears the name already

    # --- the Lease ----------------------------------------------------------------------------------------------------

    async def holds_lease(self, name: str, holder: str, seconds: int) -> bool:
        """Whether the Lease is ours as it stands, and not due: to hold it nothing would be written."""
        lease = await self._server.find(self._server.path("coordination.k8s.io/v1", "Lease", name))
        return lease is not None and self._is_ours(lease, holder, seconds)

    async def hold_lease(self, name: str, holder: str, seconds: int) -> str:
        """Take or renew the Lease when it is free, ours, or expired; the holder after the call.

        It has expired when nobody has renewed it under our eyes for as long as it says: its holder's clock may be any.
        One that another operator of the same migration holds to look, or has left, is ours as well; to act it is taken over.
        """
        path = self._server.path("coordination.k8s.io/v1", "Lease", name)
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        renewed = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": _micro_time(now)}
        lease = await self._server.find(path)
        if lease is None:
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name},
                "spec": renewed | {"acquireTime": _micro_time(now), "leaseTransitions": 0},
            }
            return await self._write_lease("POST", self._server.path("coordination.k8s.io/v1", "Lease"), path, lease)
        spec, current = lease.get("spec") or {}, holder_of(lease)
        shared = shares(holder, current, spec.get("leaseDurationSeconds"), self._before)
        if current not in ("", holder) and not shared and not self._expired(name, spec):
            return current
        if self._is_ours(lease, holder, seconds):
            return holder                                     # fresh enough: not a write for every pass
        if current != holder:
            renewed |= {"acquireTime": _micro_time(now), "leaseTransitions": (spec.get("leaseTransitions") or 0) + 1}
        return await self._write_lease("PUT", path, path, lease | {"spec": spec | renewed})

    def _is_ours(self, lease: Mapping[str, Any], holder: str, seconds: int) -> bool:
        spec, current = lease.get("spec") or {}, holder_of(lease)
        lasts, now = spec.get("leaseDurationSeconds"), datetime.fromtimestamp(self._clock.now(), UTC)
        shared = seconds == LOOKING_SECONDS and shares(holder, current, lasts, self._before)
        return (current == holder or shared) and lasts == seconds and not _is_old(spec, now, seconds / 3)

    def _expired(self, name: str, spec: Mapping[str, Any]) -> bool:
        now, renewed = self._clock.now(), (spec.get("holderIdentity"), spec.get("renewTime"))
        known, since = self._leases.get(name, (None, now))
        if known != renewed:
            self._leases[name], since = (renewed, now), now
        return now - since > (spec.get("leaseDurationSeconds") or 0)

    async def _write_lease(self, method: str, path: str, object_path: str, lease: Mapping[str, Any]) -> str:
        """Write it if it still is what was read (its resourceVersion is in it), else say who was faster."""
        try:
            written = await self._server.request(method, path, dict(lease), field_manager=FIELD_MANAGER)
        except Conflict:
            if (found := await self._server.find(object_path)) is None:
                raise Fenced("the Lease comes and goes") from None
            written = found
        except NotFound:
            raise Fenced("the Lease was just released") from None
        return holder_of(written)

    async def release_lease(self, name: str, holder: str) -> None:
        """Remove the Lease if it is ours; one that somebody else holds by now stays."""
        path = self._server.path("coordination.k8s.io/v1", "Lease", name)
        lease = await self._server.find(path)
        if lease is not None and holder_of(lease) == holder:
            unchanged = {field: lease["metadata"][field] for field in ("uid", "resourceVersion")}
            await self._delete(path, {"preconditions": unchanged})


def _selecting(budgets: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> tuple[str, ...]:
    """The names of those that select a pod with these labels."""
    return tuple(budget["metadata"]["name"] for budget in budgets if selects(budget["spec"].get("selector"), labels))


def _metadata(found: Mapping[str, Any], field: str, default: Any) -> Any:
    return found["metadata"].get(field) or default


def _has_labels(found: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    return bool(labels.items() <= _metadata(found, "labels", {}).items())


def _decoded(data: Mapping[str, str] | None) -> dict[str, str]:
    """Base64 values as text; bytes that are no UTF-8 survive the way through `_bytes` unchanged."""
    try:
        return {key: base64.b64decode(value).decode(errors="surrogateescape") for key, value in (data or {}).items()}
    except binascii.Error:
        raise Refused("the API server sent data that is not base64") from None


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _micro_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _is_old(spec: Mapping[str, Any], now: datetime, seconds: float) -> bool:
    """Whether we have not renewed our own Lease for so long."""
    renewed = spec.get("renewTime")
    return not renewed or abs(now - datetime.fromisoformat(renewed)) > timedelta(seconds=seconds)
