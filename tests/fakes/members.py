"""Workloads of consumers, of which a fake API server has the objects: what is written there is what their pods do.

`unit.group_world` says what a Deployment, a StatefulSet, and a member of a group do in a second; here that is put into
objects, and taken from them.
"""

from collections.abc import Mapping
from typing import Any

from fakes.api_server import FakeApi, Object, copied
from fakes.kubelet import time_of
from switchover.kubernetes.client.member_workloads import HASH
from switchover.kubernetes.members import HPA
from unit.group_world import Pod, Workload, World

PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets"}


class ServedWorld(World):
    """A world whose workloads, ReplicaSets, pods and autoscaler are objects of `api`."""

    def __init__(self, api: FakeApi, *workloads: tuple[str, str, int], **how: Any) -> None:
        super().__init__(*workloads, now=api.now(), **how)
        self.api = api
        self._served: dict[str, str] = {}                  # pod -> the uid that it has on paper
        for name, workload in self.workloads.items():
            spec = {**workload.spec, "selector": {"matchLabels": {"app": "orders"}}}
            api.add("apps/v1", workload.made["kind"], self._plural(workload), name, spec=spec)
        if self.autoscaler is not None:
            name = self.autoscaler["metadata"]["name"]
            target = {"apiVersion": "apps/v1", "kind": self.workloads[name].made["kind"], "name": name}
            api.add("autoscaling/v2", HPA, "horizontalpodautoscalers", name,
                    spec={**self.autoscaler["spec"], "scaleTargetRef": target})
        self._take()
        self._give()

    def tick(self) -> None:
        """A second passes."""
        self._take()
        self.pass_time(1.0)
        self._give()

    # --- what was written ---------------------------------------------------------------------------------------------

    def _take(self) -> None:
        for name, workload in self.workloads.items():
            workload.made = copied(self.api.objects[self._plural(workload), name])
            for pod in workload.pods.values():
                if (found := self.api.objects.get(("pods", pod.name))) is not None and pod.uid == self._served[pod.name]:
                    pod.annotations = found["metadata"].get("annotations") or {}
                    if "deletionTimestamp" in found["metadata"]:
                        self._end(pod)
        if self.autoscaler is not None:
            name = self.autoscaler["metadata"]["name"]
            self.autoscaler = copied(self.api.objects["horizontalpodautoscalers", name])

    # --- what has become of it ----------------------------------------------------------------------------------------

    def _give(self) -> None:
        living = {name: pod for workload in self.workloads.values() for name, pod in workload.pods.items()}
        for name, uid in tuple(self._served.items()):
            if name not in living or living[name].uid != uid:
                if "deletionTimestamp" not in self.api.objects["pods", name]["metadata"]:
                    self.api.remove("pods", name)
                self.api.gone("pods", name)
                del self._served[name]
        for name, workload in self.workloads.items():
            sets = self._give_sets(name, workload) if workload.made["kind"] == "Deployment" else {}
            for pod in workload.pods.values():
                self._give_pod(workload, pod, sets.get(pod.revision) or self._object(workload))
            status = {"observedGeneration": workload.made["metadata"]["generation"], "replicas": len(workload.alive)}
            if not sets:
                status |= {"updateRevision": workload.revision, "currentRevision": workload.current}
            self.api.edit(self._plural(workload), name, lambda found, status=status: found.update(status=status))

    def _give_sets(self, name: str, workload: Workload) -> Mapping[str, Object]:
        """By revision."""
        found = {}
        for revision, each in workload.controller.sets.items():
            key = "replicasets", f"{name}-{revision}"
            if key not in self.api.objects:
                template = copied(self.templates[revision])
                labels = {**template["metadata"]["labels"], HASH: revision}
                template["metadata"]["labels"] = labels
                self.api.add("apps/v1", "ReplicaSet", *key, spec={"template": template}, metadata={
                    "labels": labels, "ownerReferences": [_controller(self._object(workload))]})
            spec = {"replicas": each.size, "minReadySeconds": each.min_ready}

            def change(found: Object, spec: Object = spec, available: int = each.available) -> None:
                found["spec"] |= spec
                found["status"] = {"availableReplicas": available}

            self.api.edit(*key, change)
            generation = self.api.objects[key]["metadata"]["generation"]
            self.api.edit(*key, lambda found, generation=generation: found["status"].update(observedGeneration=generation))
            found[revision] = self.api.objects[key]
        return found

    def _give_pod(self, workload: Workload, pod: Pod, owner: Object) -> None:
        if pod.name not in self._served:
            label = HASH if workload.made["kind"] == "Deployment" else "controller-revision-hash"
            self.api.add("v1", "Pod", "pods", pod.name, spec={"containers": [], "nodeName": "node-0"}, metadata={
                "labels": {"app": "orders", label: pod.revision}, "ownerReferences": [_controller(owner)]})
            self._served[pod.name] = pod.uid
        crashes = self._is(pod, self.crashing) and pod.ends is None
        state = {"waiting": {"reason": "CrashLoopBackOff"}} if crashes else {"running": {"startedAt": time_of(pod.born)}}
        status = {"podIPs": [{"ip": pod.ip}], "conditions": [{"type": "Ready", "status": str(pod.ready)}],
                  "containerStatuses": [{"name": "app", "restartCount": pod.restarts, "state": state}]}
        self.api.edit("pods", pod.name, lambda found: found.update(status=status))
        if pod.ends is not None and "deletionTimestamp" not in self.api.objects["pods", pod.name]["metadata"]:
            self.api.remove("pods", pod.name)

    def _object(self, workload: Workload) -> Object:
        return self.api.objects[self._plural(workload), workload.made["metadata"]["name"]]

    @staticmethod
    def _plural(workload: Workload) -> str:
        return PLURALS[workload.made["kind"]]


def _controller(owner: Object) -> Object:
    return {"kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
