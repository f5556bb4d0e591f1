"""The jobs of the pipeline beside a migration: a capture that never ends, and the others as Jobs at its last hold."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from demo.cluster import Cluster
from demo_pipeline import jobs
from switchover.cli.objects import Resource

CONFIG: dict[str, Any] = {
    "cluster": "sandbox", "store": "/data", "spark": {"master": "local[1]", "memory": "600m"},
    "kafka": {"bootstrapServers": "kafka:9092"}, "zookeeper": {"connect": "zookeeper:2181"},
    "drift": {"pauseSeconds": 5, "quorumVoters": ",".join(
        f"{3000 + number}@kafka-controller-{number}.kafka-controller:9093" for number in range(3))},
    "capture": {"mode": "Continuous", "everySeconds": 10}, "baseline": {"minValues": 10},
}
MANIFESTS = Path(__file__).parents[2] / "sandbox" / "manifests-capture"
HISTORY = 15
"""Captures that the baseline is made of, at least."""


@dataclass
class Jobs:
    """Captures from before the migration on; at its last hold runs the others in turn, once. `told` has what each left."""

    cluster: Cluster
    directory: Path
    told: dict[str, Any] = field(default_factory=dict)
    _since: float = 0.0

    def capture(self) -> None:
        """Start it; back with the first capture, which the audit's range begins with. Raises CommandFailed."""
        self.cluster.kubectl("apply", "--filename", "-", feed=yaml.safe_dump({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pipeline"},
            "data": {"pipeline.yaml": yaml.safe_dump(CONFIG)}}))
        self.cluster.kubectl("apply", "--kustomize", str(MANIFESTS))
        self.cluster.kubectl("rollout", "status", "deployment/capture", timeout=180)
        jobs.await_captures(self.cluster, 1)
        self._since = time.time()

    def __call__(self, resource: Resource, container: str) -> str | None:
        if resource.get("status", {}).get("phase") != "AwaitingApproval" or "drift" in self.told:
            return None
        jobs.await_captures(self.cluster, HISTORY)
        audit = {"groups": [{"name": "orders"}], "since": round(self._since * 1000), "capture": False}
        file = self.directory / "pipeline.yaml"
        file.write_text(yaml.safe_dump({**CONFIG, "audit": audit}))
        for job in ("audit", "inventory", "baseline", "drift"):
            self.told[job] = jobs.run(self.cluster, job, file, print).told
        self.cluster.kubectl("delete", "deployment", "capture")
        return f"the pipeline's jobs: {self.told}"
