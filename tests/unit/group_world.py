"""Workloads of consumers on paper: what Kubernetes makes of each effect, and what their pods then do in the group.

One second after the other: pods are made, start, get Ready, join, consume and commit, end and leave. A Deployment does what
`deployment_controller.py` says of it, a StatefulSet what `groups/workloads/stateful_set.py` does.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jsonpatch

from fakes.api_server import copied
from simulation.coordination.clients import Client, ConsumerClient
from simulation.coordination.coordinator import Coordinator, Partitions, Who
from simulation.coordination.loop import Loop
from switchover.engine.effects import Apply, Create, DeletePod, Effect, Evict, Patch
from switchover.groups.workloads.stateful_set import partition_of
from switchover.kafka.group import MemberProtocol
from switchover.kubernetes import names
from switchover.kubernetes.members import COST, HPA, Autoscaler, MemberPod, MemberWorkload
from unit.deployment_controller import Controller
from unit.group_pictures import NOW, revision_of, template

START_SECONDS, END_SECONDS = 2.0, 2.0
RATE = 10
"""Records a second in each partition."""


@dataclass
class Pod:
    """A pod, its consumer, and when things happened to it. `member_id` is "" until its client begins."""

    name: str
    uid: str
    ip: str
    revision: str
    client: Mapping[str, str]
    born: float
    ready: bool = False
    ends: float | None = None
    restarts: int = 0
    member_id: str = ""
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass
class Workload:
    """A Deployment or StatefulSet as the API server has it, and its pods. `current` is a StatefulSet's older revision."""

    made: dict[str, Any]
    pods: dict[str, Pod] = field(default_factory=dict)
    current: str = ""
    count: int = 0
    controller: Controller = field(default_factory=Controller)

    @property
    def spec(self) -> Any:
        return self.made["spec"]

    @property
    def revision(self) -> str:
        return revision_of(self.spec["template"])

    @property
    def alive(self) -> list[Pod]:
        """Those that do not end."""
        return [pod for pod in self.pods.values() if pod.ends is None]


def manifest(kind: str, name: str, replicas: int, protocol: str, on_delete: bool) -> dict[str, Any]:
    """As the API server keeps it."""
    made: dict[str, Any] = {
        "kind": kind, "metadata": {"name": name, "uid": f"uid-of-{name}", "generation": 1, "resourceVersion": "1"},
        "spec": {"replicas": replicas, "template": template(protocol)}}
    if kind == "Deployment":
        shape = {"maxSurge": "25%", "maxUnavailable": "25%"}
        made["spec"] |= {"strategy": {"type": "RollingUpdate", "rollingUpdate": shape}, "progressDeadlineSeconds": 600}
    else:
        made["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
        if on_delete:
            made["spec"]["updateStrategy"] = {"type": "OnDelete"}
    return made


class World:
    """`crashing` and `silent` are clients, as the variables or image that they have, which never come up, or never join;
    `slow` ones join and never commit.
    """

    def __init__(self, *workloads: tuple[str, str, int], protocol: str = "classic", policy: str = "bidirectional",
                 partitions: int = 12, autoscaled: str = "", on_delete: bool = False, now: float = NOW) -> None:
        self.now = now
        self.workloads = {name: Workload(manifest(kind, name, replicas, protocol, on_delete))
                          for kind, name, replicas in workloads}
        self.originals: dict[str, dict[str, Any]] = {}
        self.autoscaler: dict[str, Any] | None = {
            "kind": HPA, "metadata": {"name": autoscaled, "uid": "uid-of-hpa", "resourceVersion": "1"},
            "spec": {"minReplicas": 4}} if autoscaled else None
        self.loop = Loop(0)
        self.clients: dict[str, Client] = {}                    # by member id
        self.coordinator = self._coordinated(partitions, policy)
        self.offsets = dict.fromkeys(self.coordinator.partitions, (1000, 1000))
        self.crashing: set[str] = set()
        self.silent: set[str] = set()
        self.slow: set[str] = set()
        self.done: list[Effect] = []
        self.jobs: list[Mapping[str, Any]] = []
        self.born = 0
        self.templates: dict[str, Mapping[str, Any]] = {}
        for workload in self.workloads.values():
            workload.current = "of-long-ago" if on_delete else workload.revision
        self.pass_time(20.0)

    def _coordinated(self, partitions: int, policy: str) -> Coordinator:
        return Coordinator(self.loop, partial(dict, orders=tuple(range(partitions))), policy)

    # --- what is done to it -------------------------------------------------------------------------------------------

    def perform(self, effect: Effect) -> None:
        """Raises jsonpatch.JsonPatchTestFailed where the API server would fence it."""
        self.done.append(effect)
        match effect:
            case Patch(_, kind, name, operations, _, _) if kind == HPA:
                assert self.autoscaler is not None
                self.autoscaler = _patched(self.autoscaler, operations)
            case Patch(_, "Pod", name, operations, _, _):
                pod = next(each.pods[name] for each in self.workloads.values() if name in each.pods)
                made = {"metadata": {"uid": pod.uid, "resourceVersion": "1", "annotations": pod.annotations}}
                pod.annotations = _patched(made, operations)["metadata"]["annotations"]
            case Patch(_, kind, name, operations, _, subresource):
                workload = self.workloads[name]
                assert workload.made["kind"] == kind
                before = deepcopy(workload.spec)
                workload.made = _patched(workload.made, operations)
                if workload.spec != before:
                    workload.made["metadata"]["generation"] += 1
                changed = {key for key in workload.spec if workload.spec[key] != before.get(key)}
                changed |= {*before} - {*workload.spec}
                assert changed <= ({"replicas"} if subresource == "scale" else {
                    "template", "updateStrategy", "strategy", "minReadySeconds", "progressDeadlineSeconds", "paused"})
            case Create({"kind": "Job"} as made):
                self.jobs.append(made)
            case Apply(made):
                assert made["kind"] == "ControllerRevision"
                self.originals.setdefault(made["metadata"]["name"], deepcopy(made["data"]))
            case Evict(name, uid) | DeletePod(name, uid):
                pod = next(each.pods[name] for each in self.workloads.values() if name in each.pods)
                assert pod.uid == uid
                assert isinstance(effect, Evict) or not pod.ready
                self._end(pod)
            case _:
                raise AssertionError(f"no such effect here: {effect}")

    # --- time ---------------------------------------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.now += 1.0
            for workload in self.workloads.values():
                for pod in tuple(workload.pods.values()):
                    self._live(workload, pod)
                self._deploy(workload) if workload.made["kind"] == "Deployment" else self._order(workload)
            self.loop.run(self.loop.now + 1.0)
            self._consume()

    def _live(self, workload: Workload, pod: Pod) -> None:
        if pod.ends is not None:
            if self.now >= pod.ends:
                self._leave(pod)
                del workload.pods[pod.name]
        elif self._is(pod, self.crashing):
            pod.ready = False
            pod.restarts += self.now - pod.born > START_SECONDS
            self._leave(pod)
        elif not pod.ready:
            pod.ready = self.now - pod.born >= START_SECONDS
        elif not pod.member_id and not self._is(pod, self.silent):
            protocol = MemberProtocol(pod.client["GROUP_PROTOCOL"].capitalize())
            strategies = tuple(pod.client["STRATEGIES"].split(","))
            who = Who(f"{pod.name}-{pod.uid}", ("orders",), protocol, strategies, host=pod.ip)
            kind = ConsumerClient if protocol is MemberProtocol.CONSUMER else Client
            self.clients[who.member_id] = kind(who, self.coordinator, _nothing, partial(self._gives_back, who), _nothing)
            self.clients[who.member_id].enter()
            pod.member_id = who.member_id

    def _gives_back(self, who: Who, _: Partitions) -> None:
        """What it committed last is what it had."""
        self.loop.after(0.02, self.clients[who.member_id].released)

    def _leave(self, pod: Pod) -> None:
        if pod.member_id:
            self.clients.pop(pod.member_id).leave()
            pod.member_id = ""

    @staticmethod
    def _is(pod: Pod, kinds: Iterable[str]) -> bool:
        return bool({*pod.client.values()} & {*kinds})

    def _end(self, pod: Pod) -> None:
        if pod.ends is None:
            pod.ends, pod.ready = self.now + END_SECONDS, False

    def _make(self, workload: Workload, name: str, made: Mapping[str, Any]) -> None:
        self.born += 1
        container = made["spec"]["containers"][0]
        client = {"image": container["image"], **{each["name"]: each.get("value", "") for each in container["env"]}}
        workload.pods[name] = Pod(name, f"uid-{self.born}", f"10.0.{self.born // 250}.{self.born % 250}", revision_of(made),
                                  client, self.now)
        self.templates[revision_of(made)] = made

    def _deploy(self, workload: Workload) -> None:
        controller, name = workload.controller, workload.made["metadata"]["name"]
        newest = workload.revision
        if newest not in self.templates:
            self.templates[newest] = copied(workload.spec["template"])
        controller.tick(workload.spec, newest)
        for revision, wanted in controller.sizes.items():
            current = [pod for pod in workload.alive if pod.revision == revision]
            first = sorted(current, key=lambda each: (each.ready, int(each.annotations.get(COST, "0")), -each.born))
            for pod in first[: max(0, len(current) - wanted)]:
                self._end(pod)
            for _ in range(wanted - len(current)):
                workload.count += 1
                self._make(workload, f"{name}-{workload.count:03d}", self.templates[revision])
        ready = [pod for pod in workload.alive if pod.ready]
        controller.told({revision: sum(pod.revision == revision for pod in ready) for revision in controller.sets})

    def _order(self, workload: Workload) -> None:
        """One at a time, and only while every other is Ready (OrderedReady)."""
        name, replicas = workload.made["metadata"]["name"], workload.spec["replicas"]
        partition = partition_of(workload.spec["updateStrategy"], replicas)
        on_delete = workload.spec["updateStrategy"]["type"] == "OnDelete"
        for ordinal in range(replicas):
            pod = workload.pods.get(f"{name}-{ordinal}")
            if pod is None:
                old = ordinal < partition and not on_delete and workload.current != workload.revision
                made = self.templates[workload.current] if old else workload.spec["template"]
                self._make(workload, f"{name}-{ordinal}", made)
                return
            if not pod.ready:
                return
        for pod in workload.alive:
            if int(pod.name.rpartition("-")[2]) >= replicas:
                self._end(pod)
        if all(pod.revision == workload.revision for pod in workload.alive) and not on_delete:
            workload.current = workload.revision
        for ordinal in reversed(range(partition, replicas)):
            if (pod := workload.pods[f"{name}-{ordinal}"]).revision != workload.revision and not on_delete:
                self._end(pod)
                return

    def _consume(self) -> None:
        lazy = {pod.member_id for each in self.workloads.values() for pod in each.pods.values() if self._is(pod, self.slow)}
        for name, client in self.clients.items():
            if name not in lazy:
                client.commit({each: self.offsets[each][1] for each in client.owned})
        for each, (committed, end) in self.offsets.items():
            self.offsets[each] = (self.coordinator.offsets.get(each, committed), end + RATE)

    # --- what is seen of it -------------------------------------------------------------------------------------------

    def members(self) -> int:
        """How many members run in pods that stay."""
        return sum(pod.member_id in self.coordinator.members for each in self.workloads.values() for pod in each.alive)

    def seen(self, name: str) -> MemberWorkload | None:
        workload = self.workloads.get(name)
        if workload is None:
            return None
        metadata, annotations = workload.made["metadata"], workload.made["metadata"].get("annotations", {})
        scaler = self.autoscaler
        own = scaler is not None and scaler["metadata"]["name"] == name
        return MemberWorkload(
            kind=workload.made["kind"], name=name, uid=metadata["uid"], resource_version=metadata["resourceVersion"],
            generation=metadata["generation"], caught_up=True, replicas=workload.spec["replicas"],
            seen=len(workload.alive), template=copied(workload.spec["template"]), update_revision=self._newest(workload),
            pods={pod.name: self._seen(pod) for pod in workload.pods.values()},
            update_strategy=copied(workload.spec.get("updateStrategy") or workload.spec["strategy"]),
            min_ready=workload.spec.get("minReadySeconds", 0), deadline=workload.spec.get("progressDeadlineSeconds"),
            sizes=workload.controller.sizes, templates=self._made_of(workload), available=self._available(workload),
            paused=workload.spec.get("paused", False),
            current_revision=workload.current,
            annotated=bool(annotations), claimed_by=annotations.get(names.CLAIM, ""),
            autoscalers=(_autoscaler(scaler),) if own and scaler is not None else ())

    def _made_of(self, workload: Workload) -> dict[str, Mapping[str, Any]]:
        if workload.made["kind"] == "StatefulSet":
            return {}
        return {pod.revision: self.templates[pod.revision] for pod in workload.pods.values()}

    @staticmethod
    def _newest(workload: Workload) -> str:
        known = workload.made["kind"] == "StatefulSet" or workload.revision in workload.controller.sets
        return workload.revision if known else ""

    @staticmethod
    def _available(workload: Workload) -> int:
        newest = workload.controller.sets.get(workload.revision)
        if newest is None:
            return 0
        return newest.available if newest.min_ready == workload.spec.get("minReadySeconds", 0) else newest.size

    def _seen(self, pod: Pod) -> MemberPod:
        crashes = self._is(pod, self.crashing) and pod.ends is None
        return MemberPod(name=pod.name, uid=pod.uid, ips=frozenset({pod.ip}), node="node-0", ready=pod.ready,
                         terminating=pod.ends is not None, revision=pod.revision,
                         restarts=pod.restarts, trouble="CrashLoopBackOff" if crashes else "",
                         started_at=None if crashes else pod.born, resource_version="1", annotated=bool(pod.annotations),
                         cost=pod.annotations.get(COST, ""))


def _nothing(*_: object) -> None:
    """Who consumes looks at what its client owns."""


def _patched(made: dict[str, Any], operations: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    after: dict[str, Any] = jsonpatch.apply_patch(made, [dict(each) for each in operations])
    after["metadata"]["resourceVersion"] = str(int(after["metadata"]["resourceVersion"]) + 1)
    return after


def _autoscaler(made: Mapping[str, Any]) -> Autoscaler:
    settings = {key: made["spec"][key] for key in ("minReplicas", "behavior") if key in made["spec"]}
    return Autoscaler(api_version="autoscaling/v2", kind=HPA, name=made["metadata"]["name"], uid=made["metadata"]["uid"],
                      resource_version=made["metadata"]["resourceVersion"], settings=settings)
