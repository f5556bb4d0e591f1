"""What the runbook of OutOfSync tells a person to do about a leader that never takes its followers back (Kafka 3.9.2)."""

import re
from dataclasses import dataclass, field

from demo.cluster import Cluster
from demo.progress import Resource
from patience import Patience

PATIENCE_SECONDS = 75
"""A follower that can be taken back is within seconds."""


@dataclass
class Cure:
    """Restarts a leader whose partitions stay out of sync although every broker's pod is Ready.

    Such a leader lost its AlterPartition while the controller changed from ZooKeeper's to KRaft's. The operator names it and
    waits, as it must; `restarted` has the pods that were deleted here.
    """

    cluster: Cluster
    restarted: list[str] = field(default_factory=list)
    _leaders: str = ""
    _patience: Patience = field(default_factory=lambda: Patience(PATIENCE_SECONDS))

    def __call__(self, resource: Resource) -> str | None:
        """What it did about the migration as it stands, in words. Raises CommandFailed."""
        waits = resource.get("status", {}).get("waitingFor", [])
        told = next((str(item.get("observed", "")) for item in waits if item["reason"] == "OutOfSync"), "")
        named = re.search(r"leaders (\d.*)", told)
        leaders = named[1] if named is not None else ""
        if leaders != self._leaders:
            self._leaders, self._patience = leaders, Patience(PATIENCE_SECONDS)
        if not leaders or not self._patience.over or not self._all_ready():
            return None
        pod = f"kafka-{re.split(r'[, ]', leaders)[0]}"
        self.cluster.kubectl("delete", "pod", pod, "--wait=false")
        self.restarted.append(pod)
        self._leaders = ""
        return f"the runbook of OutOfSync: {pod} never takes its followers back, and is restarted by hand"

    def _all_ready(self) -> bool:
        pods = self.cluster.items("pods", "--selector", "app=kafka")
        ready = [item["status"] for pod in pods for item in pod["status"].get("conditions", []) if item["type"] == "Ready"]
        return len(pods) == 3 and ready == ["True"] * 3
