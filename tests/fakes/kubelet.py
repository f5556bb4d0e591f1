"""The StatefulSet controller and the kubelets of a fake API: pods come, mount what is there at that moment, and start.

A container reads its configuration when it starts, as a Secret or ConfigMap volume shows it then; one that crashed starts
again in the same pod. A pod that is deleted stays until its process has ended. What happens to processes is put into
`started` and `stopped` for whoever plays them.
"""

import base64
import hashlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from javaproperties import loads

from fakes import environment_image
from fakes.api_server import FOREGROUND, NAMESPACE, FakeApi, Object
from switchover.api.job_message import NONCE
from switchover.cli.rehearse_replica import tree_of
from switchover.cluster.door import mount
from switchover.cluster.ending import trial_job
from switchover.cluster.rehearsal.report import TO_DUAL_WRITE, Report, as_message
from switchover.kubernetes import reports
from switchover.kubernetes.client.pods import BACKOFF, JOB_POD, given

REPLACEMENT_SECONDS = (2.0, 4.0)       # until the new pod has an address (docs/facts/kraft.md#in-pods)
REHEARSAL_SECONDS = 12.0               # on a replica of a small cluster (docs/facts/rehearsal.md)
TRIAL_SECONDS = 4.0                    # of a template: the entry script of an image whose layers are there
BACK_OFF_SECONDS = 10.0                # until a container that crashed is started again
PROTECTION = "kubernetes.io/pvc-protection"

REPORTS = {reports.DISKS: "disks 1 1 9 0 0\n", reports.REACH: "reach 2 3\n"}
"""What init containers say: nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container that has just started: the server.properties that its image would give to Kafka, and the uid of its pod's
    volume claim. `edits` are those of the door over its start script: "" for a door without any, None for no door."""

    pod: str
    stateful_set: str
    ordinal: int
    file: str
    volume: str
    edits: str | None
    image: str


@dataclass
class Kubelet:
    """Looked after by `tick`; `report` is how a process says that it is ready or has crashed.

    `ends_in` gives the seconds for which a pod's process will go on ending once it is asked to; `rolled` is told of every
    pod that a StatefulSet replaces by itself. `rehearsed` gives what a rehearsal leaves, a report that it found nothing;
    `refuses` the last words of the entry script of a pod with this spec, "" where it comes to the start of Kafka.
    """

    api: FakeApi
    seed: int
    ends_in: Callable[[str], float] = lambda pod: 1.0
    rolled: Callable[[str], None] = lambda pod: None
    held: set[str] = field(default_factory=set)        # claims that somebody else's finalizer keeps
    stuck: set[str] = field(default_factory=set)       # pods whose first init container does not end
    rehearsed: Callable[[Report], str] = as_message
    refuses: Callable[[Object], str] = lambda spec: ""
    keeps_history: bool = False                        # of templates, as `kubectl rollout undo` reads it
    started: list[Container] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    _due: dict[tuple[str, int], float] = field(default_factory=dict)
    _jobs: dict[str, float] = field(default_factory=dict)
    _running: set[str] = field(default_factory=set)
    _ending: dict[str, float] = field(default_factory=dict)
    _restarts: dict[str, float] = field(default_factory=dict)
    _revisions: dict[tuple[str, str], str] = field(default_factory=dict)
    _addresses: list[str] = field(default_factory=list)
    _given: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def tick(self, now: float) -> None:
        """What controllers and kubelets would have done until now."""
        for pod in self._pods():
            if "deletionTimestamp" in pod["metadata"]:
                self._end(pod["metadata"]["name"], now)
        for stateful_set in list(self.api.of("statefulsets")):
            self._control(stateful_set, now)
        for job in list(self.api.of("jobs")):
            self._run(job, now)
        self._collect_garbage()
        for pod in self._pods():
            name = pod["metadata"]["name"]
            again = self._restarts.get(name)
            if name in self.stuck and name not in self._running and name not in self._ending:
                self._initialize(pod, now)
            elif name not in self._ending and (name not in self._running or (again is not None and now >= again)):
                self._restarts.pop(name, None)
                self._start(pod, now)

    def report(self, pod: str, *, ready: bool, crashed: bool = False) -> None:
        """A process became ready, or it ended by itself: then its container is started again after a while."""
        now = time_of(self.api.now())
        waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}

        def change(found: Object) -> None:
            status = found["status"]
            status["conditions"] = [{"type": "Ready", "status": str(ready), "lastTransitionTime": now}]
            if crashed:
                status["containerStatuses"][0]["state"] = waiting

        if ("pods", pod) in self.api.objects:
            self.api.edit("pods", pod, change)
            if crashed:
                self._restarts[pod] = self.api.now() + BACK_OFF_SECONDS

    def restored(self, before: Mapping[tuple[str, str], Object]) -> None:
        """The API server has other objects than `before`: a pod of another uid is another pod, whose containers start anew;
        one that is there no more has none."""
        for name in sorted(self._running | {*self._ending}):
            then, now = before.get(("pods", name), {}), self.api.objects.get(("pods", name), {})
            if then.get("metadata", {}).get("uid") != now.get("metadata", {}).get("uid"):
                self.stopped.append(name)
                self._running.discard(name)
                self._ending.pop(name, None)
                self._restarts.pop(name, None)

    def _end(self, name: str, now: float) -> None:
        if name not in self._ending:
            self._ending[name] = now + self.ends_in(name)
            self.stopped.append(name)
        elif now >= self._ending[name]:
            del self._ending[name]
            self._running.discard(name)
            self._restarts.pop(name, None)
            self._addresses += [each["ip"] for each in self.api.objects["pods", name]["status"].get("podIPs", ())]
            self.api.gone("pods", name)

    def _pods(self) -> list[Object]:
        """Those of StatefulSets."""
        return [pod for pod in self.api.of("pods") if JOB_POD not in pod["metadata"]["labels"]]

    def _run(self, job: Object, now: float) -> None:
        if trial_job.TRIES in given(job):
            self._try(job, now)
        else:
            self._rehearse(job, now)

    def _try(self, job: Object, now: float) -> None:
        """What the door reports of the file that the image would give to Kafka, and of the command line of the world's."""
        spec = job["spec"]["template"]["spec"]
        if job["metadata"]["uid"] not in self._jobs:
            self._jobs[job["metadata"]["uid"]] = now + TRIAL_SECONDS
            self._begin(job, now)
        if job.get("status") or now < self._jobs[job["metadata"]["uid"]]:
            return
        [container], pod = spec["containers"], spec["hostname"]
        [_, _, _, _, _, told, *_] = spec["initContainers"][0]["command"]
        settings = loads(self._file(spec, pod)) | {"broker.id": str(int(pod.rpartition("-")[2]) + 1)}
        asked = [line.removeprefix("tell ") for line in told.splitlines() if line.startswith("tell ")]
        report = [f"{key}={settings[key]}" for key in asked if key in settings]
        report = [f"trial 2 {len(report)} {given(job)[NONCE]}", *report]
        ended = {"exitCode": 0, "reason": "Completed", "message": "\n".join(report)}
        if words := self.refuses(spec):
            ended = {"exitCode": 1, "reason": "Error", "message": words}
        self._end_job(job, {"name": container["name"], "state": {"terminated": ended}})

    def _end_job(self, job: Object, status: Object) -> None:
        name, failed = job["metadata"]["name"], status["state"]["terminated"]["exitCode"] != 0
        self.api.edit("pods", f"{name}-pod", lambda found: found.update(
            status={"phase": "Failed" if failed else "Succeeded", "containerStatuses": [status]}))
        condition = {"type": "Failed", "reason": BACKOFF} if failed else {"type": "Complete"}
        self.api.edit("jobs", name, lambda found: found.update(status={"conditions": [{**condition, "status": "True"}]}))

    def _begin(self, job: Object, now: float) -> None:
        name = job["metadata"]["name"]
        self.api.add("v1", "Pod", "pods", f"{name}-pod", spec={"containers": []}, status={"phase": "Running"},
                     metadata={"labels": {JOB_POD: name}, "creationTimestamp": time_of(now),
                               "ownerReferences": [
                               {"uid": job["metadata"]["uid"], "kind": "Job", "name": name, "controller": True}]})

    def _rehearse(self, job: Object, now: float) -> None:
        """A rehearsal that finds nothing, of the tree that its pod is told."""
        volumes = {each["name"]: each for each in job["spec"]["template"]["spec"]["volumes"]}
        parts = [self.api.objects.get(("configmaps", source["configMap"]["name"]))
                 for source in volumes["tree"]["projected"]["sources"]]
        due = self._jobs.setdefault(job["metadata"]["uid"], now + REHEARSAL_SECONDS)
        if job.get("status") or now < due or any(part is None for part in parts):
            return
        self._begin(job, now)
        told = self._conducted(job, [part["data"]["part"] for part in parts if part is not None])
        ended = {"exitCode": 0, "message": told}
        self._end_job(job, {"name": "rehearsal", "state": {"terminated": ended}})

    def _conducted(self, job: Object, parts: list[str]) -> str:
        """What the conductor leaves."""
        try:
            tree = tree_of(parts, given(job))
        except ValueError as why:
            return str(why)
        seconds = {TO_DUAL_WRITE: REHEARSAL_SECONDS}
        return self.rehearsed(Report(
            tree.digest, (), len(tree.nodes), len(tree.topics), seconds, nonce=given(job)[NONCE]))

    def _collect_garbage(self) -> None:
        """Pods whose StatefulSet is gone or goes in the foreground; claims that were deleted and are not used any more."""
        sets = {found["metadata"]["uid"]: found for found in self.api.of("statefulsets")}
        self._collect_rehearsals()
        owners = set()
        for pod in self._pods():
            for owner in pod["metadata"].get("ownerReferences", ()):
                owners.add(owner["uid"])
                found = sets.get(owner["uid"])
                if found is None or "deletionTimestamp" in found["metadata"]:
                    self.api.remove("pods", pod["metadata"]["name"])
        for uid, found in sets.items():
            if "deletionTimestamp" in found["metadata"] and uid not in owners:
                assert found["metadata"]["finalizers"] == [FOREGROUND]
                self.api.gone("statefulsets", found["metadata"]["name"])
        for claim in list(self.api.of("persistentvolumeclaims")):
            name = claim["metadata"]["name"]
            used = any(name.endswith(f"-{pod['metadata']['name']}") for pod in self.api.of("pods"))
            if "deletionTimestamp" in claim["metadata"] and not used and name not in self.held:
                self.api.gone("persistentvolumeclaims", name)

    def _collect_rehearsals(self) -> None:
        """A Job whose migration is gone, and the pods and ConfigMaps of one that is."""
        for kind, plural, owned in (("KafkaMigration", "kafkamigrations", ("jobs",)),
                                    ("Job", "jobs", ("pods", "configmaps"))):
            living = {found["metadata"]["uid"] for found in self.api.of(plural)}
            for each in owned:
                for found in list(self.api.of(each)):
                    owners = found["metadata"].get("ownerReferences", ())
                    if any(owner["kind"] == kind and owner["uid"] not in living for owner in owners):
                        self.api.remove(each, found["metadata"]["name"])
                        if each == "pods":
                            self.api.gone(each, found["metadata"]["name"])

    def _control(self, stateful_set: Object, now: float) -> None:
        name, spec = stateful_set["metadata"]["name"], stateful_set["spec"]
        version = stateful_set["metadata"]["uid"], stateful_set["metadata"]["resourceVersion"]
        if version not in self._revisions:
            self._revisions[version] = f"{name}-{_hash(spec['template'])}"
        revision = self._revisions[version]
        if (stateful_set.get("status") or {}).get("updateRevision") != revision:
            self.api.edit("statefulsets", name, lambda found: found.update(status={"updateRevision": revision}))
        if self.keeps_history:
            self._keep(stateful_set, revision)
        if "deletionTimestamp" in stateful_set["metadata"]:
            return
        strategy = (spec.get("updateStrategy") or {"type": "RollingUpdate"})["type"]
        for ordinal in range(spec["replicas"]):
            pod = self.api.objects.get(("pods", f"{name}-{ordinal}"))
            if pod is None:
                due = self._due.setdefault((name, ordinal), now + self._random.uniform(*REPLACEMENT_SECONDS))
                if now >= due:
                    del self._due[name, ordinal]
                    self._create(stateful_set, ordinal, revision)
            elif strategy == "RollingUpdate" and "deletionTimestamp" not in pod["metadata"] and (
                    pod["metadata"]["labels"]["controller-revision-hash"] != revision):
                self.rolled(f"{name}-{ordinal}")
                self.api.remove("pods", f"{name}-{ordinal}")

    def _keep(self, stateful_set: Object, revision: str) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "controller": True,
                 **{key: stateful_set["metadata"][key] for key in ("name", "uid")}}
        template = stateful_set["spec"]["template"]
        kept = {each["metadata"]["name"]: each["revision"] for each in self.api.of("controllerrevisions")
                if owner in each["metadata"].get("ownerReferences", ())}
        newest = max(kept.values(), default=0)
        if revision not in kept:
            self.api.add("apps/v1", "ControllerRevision", "controllerrevisions", revision, revision=newest + 1,
                         metadata={"labels": template["metadata"]["labels"], "ownerReferences": [owner]},
                         data={"spec": {"template": {**template, "$patch": "replace"}}})
        elif kept[revision] < newest:
            self.api.edit("controllerrevisions", revision, lambda found: found.update(revision=newest + 1))

    def _create(self, stateful_set: Object, ordinal: int, revision: str) -> None:
        name, spec = stateful_set["metadata"]["name"], stateful_set["spec"]
        volumes = list(spec["template"]["spec"].get("volumes") or ())
        for claim in spec.get("volumeClaimTemplates") or ():
            claim_name = f"{claim['metadata']['name']}-{name}-{ordinal}"
            volumes.append({"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim_name}})
            if ("persistentvolumeclaims", claim_name) not in self.api.objects:
                labels = {**spec["selector"]["matchLabels"], **(claim["metadata"].get("labels") or {})}
                self.api.add("v1", "PersistentVolumeClaim", "persistentvolumeclaims", claim_name,
                             metadata={"labels": labels, "finalizers": [PROTECTION]},
                             spec={"storageClassName": "standard"}, status={"phase": "Bound"})
        template = json.loads(json.dumps(spec["template"]))
        metadata = {
            "labels": {**template["metadata"]["labels"], "controller-revision-hash": revision},
            "ownerReferences": [{"uid": stateful_set["metadata"]["uid"], "kind": "StatefulSet", "name": name,
                                 "controller": True}],
        }
        self.api.add("v1", "Pod", "pods", f"{name}-{ordinal}", metadata=metadata,
                     spec={**template["spec"], "volumes": volumes, "nodeName": f"node-{ordinal % 3}"},
                     status={"phase": "Pending", "conditions": [], "podIPs": [{"ip": self._address()}]})

    def _address(self) -> str:
        """That of the pod that went before the last one: no pod gets its own again, and many another's."""
        if len(self._addresses) > 1:
            return self._addresses.pop(0)
        self._given += 1
        return f"10.1.0.{self._given}"

    def _initialize(self, pod: Object, now: float) -> None:
        """Its init container runs on; nothing is written twice."""
        first, *others = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
        if "initContainerStatuses" in pod["status"]:
            return
        running = {"name": first["name"], "state": {"running": {"startedAt": time_of(now)}}}
        waiting = [{"name": each["name"], "state": {"waiting": {"reason": "PodInitializing"}}} for each in others]
        self.api.edit("pods", pod["metadata"]["name"], lambda found: found["status"].update(
            conditions=[{"type": "Ready", "status": "False"}], initContainerStatuses=[running], containerStatuses=waiting))

    def _start(self, pod: Object, now: float) -> None:
        name = pod["metadata"]["name"]
        files, container = self._files(pod["spec"], name), pod["spec"]["containers"][0]
        edits = None
        if any(mount.SCRIPT_KEY in seen for seen in files.values()):
            kept = any(each["name"] == mount.KEEPER for each in pod["spec"].get("initContainers") or ())
            edits = files.get(mount.EDITS, {}).get(name, "") if kept else ""
        self._running.add(name)
        state = {"name": container["name"], "state": {"running": {"startedAt": time_of(now)}}}
        ended = [{"name": each["name"], "state": {"terminated": {
            "exitCode": 0, "reason": "Completed", "message": REPORTS.get(each["name"], "")}}}
            for each in pod["spec"].get("initContainers") or ()]
        self.api.edit("pods", name, lambda found: found.update(status={
            "phase": "Running", "conditions": [{"type": "Ready", "status": "False"}], "podIPs": found["status"]["podIPs"],
            "initContainerStatuses": ended, "containerStatuses": [state]}))
        stateful_set, _, ordinal = name.rpartition("-")
        claims = [claim["metadata"]["uid"] for claim in self.api.of("persistentvolumeclaims")
                  if claim["metadata"]["name"].endswith(f"-{name}")]
        file = self._file(pod["spec"], name)
        self.started.append(Container(name, stateful_set, int(ordinal), file, claims[0] if claims else "", edits,
                                      container["image"]))

    def _files(self, spec: Object, pod: str) -> dict[str, Mapping[str, str]]:
        """What the first container of a pod sees at each of its mounts."""
        files: dict[str, Mapping[str, str]] = {}
        for mounted in spec["containers"][0].get("volumeMounts") or ():
            volume = next((each for each in spec.get("volumes") or () if each["name"] == mounted["name"]), None)
            if volume is not None and "persistentVolumeClaim" not in volume:
                files[mounted["mountPath"]] = self._mounted(volume, mounted, pod)
        return files

    def _file(self, spec: Object, pod: str) -> str:
        """The server.properties that its image would give to Kafka."""
        container = spec["containers"][0]
        if environment_image.ENTRYPOINT in container.get("command", ()):
            return environment_image.written(container)
        files = self._files(spec, pod).values()
        return next((seen["server.properties"] for seen in files if "server.properties" in seen), "")

    def _mounted(self, volume: Mapping[str, Any], mounted: Mapping[str, Any], pod: str) -> dict[str, str]:
        """The files below a mount, or the one that it is; a sub-path that does not exist is an empty directory."""
        if "secret" in volume:
            secret = self.api.objects.get(("secrets", volume["secret"]["secretName"]), {})
            content = {key: base64.b64decode(value).decode() for key, value in (secret.get("data") or {}).items()}
            items = volume["secret"].get("items")
        elif "emptyDir" in volume:
            return {}
        else:
            content = dict(self.api.objects["configmaps", volume["configMap"]["name"]]["data"])
            items = volume["configMap"].get("items")
        if items is not None:
            content = {item["path"]: content[item["key"]] for item in items}
        if "subPath" not in mounted and "subPathExpr" not in mounted:
            return content
        path = mounted.get("subPath") or mounted["subPathExpr"].replace("$(SWITCHOVER_POD_NAME)", pod)
        return {path: content[path]} if path in content else {}


def address(pod: str, service: str) -> str:
    """The name under which a pod's peers find it."""
    return f"{pod}.{service}.{NAMESPACE}.svc"


def _hash(template: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]


def time_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
