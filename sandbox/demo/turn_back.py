"""In the middle of MoveBrokers: metadata is changed, the operator killed, and everything wanted back."""

import json
import time
from dataclasses import dataclass

from demo import metadata, operator_process
from demo.cluster import Cluster
from switchover.cli.objects import Resource

BATCH = 2
"""From which batch on the migration turns in the middle of one: its broker is assigned to mode KRaft and not Ready yet."""


@dataclass(slots=True)
class TurnBack:
    """An observer of one migration: changes metadata in dual write, then asks for RolledBack and kills the operator.

    `before` is the metadata right before it turned, `turned` the time in seconds since the epoch, `batch` the one in whose
    middle it did.
    """

    cluster: Cluster
    before: frozenset[str] = frozenset()
    changed: bool = False
    turned: float = 0.0
    batch: int = 0
    where: str = ""
    killed: int = 0

    def __call__(self, resource: Resource, container: str) -> str | None:
        progress = resource.get("status", {}).get("progress", {})
        if not self.changed and progress.get("step") == "DualWrite":
            metadata.change(self.cluster)
            self.before = metadata.tell(self.cluster)
            self.changed = True
            return "metadata is changed while both stores are written"
        if not self.turned and progress.get("step") == "MoveBrokers" and progress.get("batch", 0) >= BATCH:
            pod = next(iter(progress["batchNodes"]), "")
            if not pod or not self._is_down(pod):
                return None
            self._want("RolledBack")
            self.turned, self.batch = time.time(), progress["batch"]
            self.where = f"MoveBrokers, batch {self.batch}: {pod} assigned to mode KRaft, not Ready"
            self.killed = operator_process.kill(container)
            return f"everything back: desiredState RolledBack, {pod} is not Ready, SIGKILL to the operator"
        return None

    def _is_down(self, pod: str) -> bool:
        found = self.cluster.items("pods", "--selector", "app=kafka")
        ready = {item["metadata"]["name"]: any(
            one["type"] == "Ready" and one["status"] == "True" for one in item["status"].get("conditions", []))
            and "deletionTimestamp" not in item["metadata"] for item in found}
        return not ready.get(pod, False)

    def _want(self, state: str) -> None:
        patch = json.dumps({"spec": {"desiredState": state}})
        self.cluster.kubectl("patch", "kmig", "kafka", "--type", "merge", "--patch", patch)
