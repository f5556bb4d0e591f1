"""What befalls the group `orders` while it is migrated: each is called with the migration at every change of it."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from demo import operator_process
from demo.cluster import Cluster

ORDERS, AUTOSCALER = "deployment/orders", "hpa/orders"
KILLS = 6
Resource = Mapping[str, Any]


def in_batch(resource: Resource, step: str) -> bool:
    progress = resource.get("status", {}).get("progress", {})
    forward = progress.get("direction", "Forward") == "Forward"
    return bool(forward and progress.get("step") == step and progress.get("batchNodes"))


@dataclass
class Flapping:
    """SIGKILL to whatever runs in the canary's pods, from the moment at which they are members until they are gone."""

    cluster: Cluster
    kills: int = 0

    def __call__(self, resource: Resource) -> None:
        if self.kills or resource.get("status", {}).get("group", {}).get("type") != "Consumer":
            return
        while self.kills < KILLS and (pods := [pod for pod in self.cluster.items("pods", "--selector", "app=orders")
                                               if _speaks(pod, "consumer")]):
            self.kills += sum(operator_process.kill(operator_process.container_id(pod)) > 0 for pod in pods)
            time.sleep(1)


def _speaks(pod: Resource, protocol: str) -> bool:
    return any(each.get("value") == protocol for container in pod["spec"]["containers"] for each in container.get("env", ()))


@dataclass
class TurnedBack:
    """As soon as a batch of Rollout has begun, the migration is to be rolled back. uids of the pods when it has turned: what
    was under way until then has moved, too."""

    cluster: Cluster
    asked: bool = False
    moved: set[str] = field(default_factory=set)
    stayed: set[str] = field(default_factory=set)

    def __call__(self, resource: Resource) -> None:
        if not self.asked and in_batch(resource, "Rollout"):
            self.asked = True
            wanted = json.dumps({"spec": {"desiredState": "RolledBack"}})
            self.cluster.kubectl("patch", "cgmig", resource["metadata"]["name"], "--type", "merge", "--patch", wanted)
        elif self.asked and not self.moved and resource["status"]["progress"]["direction"] == "Backward":
            pods = [pod for pod in self.cluster.items("pods", "--selector", "app=orders")
                    if "deletionTimestamp" not in pod["metadata"]]
            self.moved = {pod["metadata"]["uid"] for pod in pods if _speaks(pod, "consumer")}
            self.stayed = {pod["metadata"]["uid"] for pod in pods if _speaks(pod, "classic")}


@dataclass
class LetGo:
    """Once, as soon as the batch after the bridge's canary bakes: the Deployment has its own settings again, as in Git."""

    cluster: Cluster
    done: bool = False

    def __call__(self, resource: Resource) -> None:
        progress = resource.get("status", {}).get("progress", {})
        if self.done or not in_batch(resource, "Bridge") or "bakeStartTime" not in progress:
            return
        self.done = True
        own = {"minReadySeconds": None, "progressDeadlineSeconds": 600, "paused": None,
               "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}
        self.cluster.kubectl("patch", ORDERS, "--type", "merge", "--patch", json.dumps({"spec": own}))


@dataclass
class ByHand:
    """A member that runs in no workload: started in the middle of Rollout, deleted when the migration has told of it."""

    cluster: Cluster
    started: bool = False
    words: str = ""

    def __call__(self, resource: Resource) -> None:
        if not self.started and in_batch(resource, "Rollout"):
            self.started = True
            spec = self.cluster.get(ORDERS)["spec"]["template"]["spec"]
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "orders-by-hand"}, "spec": spec}
            self.cluster.kubectl("apply", "--filename", "-", feed=json.dumps(pod))
        waits = resource.get("status", {}).get("waitingFor", [])
        told = [item for item in waits if item["reason"] == "ForeignMembers"]
        if told and not self.words:
            self.words = told[0]["message"]
            self.cluster.kubectl("delete", "pod", "orders-by-hand", "--wait=false")


@dataclass
class Autoscaled:
    """The autoscaler's least number of pods and what it may do, as they are in each step."""

    cluster: Cluster
    seen: dict[str, tuple[int, set[str]]] = field(default_factory=dict)

    def __call__(self, resource: Resource) -> None:
        step = resource.get("status", {}).get("progress", {}).get("step", "Preflight")
        if step not in self.seen and (step in ("Preflight", "Settle") or in_batch(resource, step)):
            spec = self.cluster.get(AUTOSCALER)["spec"]
            self.seen[step] = spec["minReplicas"], {each.get("selectPolicy", "") for each in spec["behavior"].values()}


@dataclass
class Killer:
    """In each step once, as soon as all brokers are Ready: SIGKILL to the group's coordinator, and its pod deleted."""

    cluster: Cluster
    steps: tuple[str, ...]
    killed: dict[str, int] = field(default_factory=dict)
    followed: dict[str, int] = field(default_factory=dict)
    """Step -> the broker that the status named as the coordinator next."""
    words: set[str] = field(default_factory=set)
    """What could not be observed from the first kill on."""

    def __call__(self, resource: Resource) -> None:
        status = resource.get("status", {})
        step, node = status.get("progress", {}).get("step", ""), status.get("group", {}).get("coordinator", -1)
        if self.killed:
            self.words |= {f"{item['reason']}: {item['message']}" for item in status.get("waitingFor", [])
                           if item["verdict"] == "Unknown"}
            last = [*self.killed][-1]
            if node not in (-1, self.killed[last]):
                self.followed.setdefault(last, node)
        if step not in self.steps or step in self.killed or not (step == "Settle" or in_batch(resource, step)):
            return
        if self.cluster.get("statefulset/kafka")["status"].get("readyReplicas") != 3:
            return
        pod = f"kafka-{node}"
        assert operator_process.kill(operator_process.container_id(self.cluster.get("pod", pod)))
        self.cluster.kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
        self.killed[step] = node
        print(f"trouble: {pod}, which coordinates the group, is killed in {step}")
