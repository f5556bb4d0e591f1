"""The jobs of the pipeline, each as a Job, before a migration and at its last hold."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from demo.cluster import Cluster
from demo.progress import Resource
from demo_pipeline import jobs

CONFIG: dict[str, Any] = {
    "cluster": "sandbox", "store": "/data", "spark": {"master": "local[1]", "memory": "600m"},
    "kafka": {"bootstrapServers": "kafka:9092"}, "zookeeper": {"connect": "zookeeper:2181"},
    "drift": {"pauseSeconds": 5, "quorumVoters": ",".join(
        f"{3000 + number}@kafka-controller-{number}.kafka-controller:9093" for number in range(3))},
}
CLAIM = {
    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": jobs.CLAIM},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@dataclass
class Jobs:
    """Captures before the migration; at its last hold runs the others in turn, once. `told` has what each left.

    But baseline: it wants the history of many captures, which `make demo-pipeline` has.
    """

    cluster: Cluster
    directory: Path
    told: dict[str, Any] = field(default_factory=dict)
    _since: float = 0.0

    def capture(self) -> None:
        """What the audit's range begins with."""
        self.cluster.kubectl("apply", "--filename", "-", feed=yaml.safe_dump(CLAIM))
        self._run("capture", CONFIG)
        self._since = time.time()

    def __call__(self, resource: Resource, container: str) -> str | None:
        if resource.get("status", {}).get("phase") != "AwaitingApproval" or "drift" in self.told:
            return None
        audit = {"groups": [{"name": "orders"}], "since": round(self._since * 1000)}      # it captures again by itself
        for job in ("audit", "inventory", "drift"):
            self._run(job, {**CONFIG, "audit": audit})
        return f"the pipeline's jobs: {self.told}"

    def _run(self, job: str, config: dict[str, Any]) -> None:
        file = self.directory / "pipeline.yaml"
        file.write_text(yaml.safe_dump(config))
        self.told[job] = jobs.run(self.cluster, job, file, print).told
