"""The jobs of the pipeline, each as a Job, while a migration stands at its last hold."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from demo.cluster import Cluster
from demo.progress import Resource
from demo_pipeline import jobs

CONFIG: dict[str, Any] = {
    "cluster": "sandbox", "store": "/data", "spark": {"master": "local[1]", "memory": "600m"},
    "capture": {"mode": "Once"},
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
    """Runs all five in turn, once; `told` has what each left."""

    cluster: Cluster
    directory: Path
    since: float
    """When the audit's range begins (seconds, epoch)."""
    told: dict[str, Any] = field(default_factory=dict)

    def __call__(self, resource: Resource, container: str) -> str | None:
        if resource.get("status", {}).get("phase") != "AwaitingApproval" or self.told:
            return None
        self.cluster.kubectl("apply", "--filename", "-", feed=yaml.safe_dump(CLAIM))
        config = self.directory / "pipeline.yaml"
        audit = {"groups": [{"name": "orders"}], "since": round(self.since * 1000)}
        config.write_text(yaml.safe_dump({**CONFIG, "audit": audit}))
        for job in ("capture", "inventory", "baseline", "audit", "drift"):
            self.told[job] = jobs.run(self.cluster, job, config, print).told
        return f"the pipeline's jobs: {self.told}"
