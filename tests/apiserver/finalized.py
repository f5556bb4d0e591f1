"""A cluster as it stands after Finalize, on a real API server without nodes: taken over by our own patch."""

import asyncio
from collections.abc import Callable
from typing import Any

from patience import Patience
from switchover.answers.clock import WallClock
from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.cli.export import Document, export
from switchover.cluster import names, template
from switchover.cluster.controllers import manifests
from switchover.cluster.door import brokers, mount
from switchover.cluster.door.mount import DOOR
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.migrations import KubernetesMigrations
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.workloads import Workload

Kubectl = Callable[..., Any]
PODS = ("kafka-0", "kafka-1", "kafka-2")
SPEC = {
    "zookeeper": {"connect": "zookeeper:2181"},
    "kafka": {"bootstrapServers": "kafka:9092"},
    "brokers": [{"name": "kafka"}],
    "controllers": {"name": "kafka-controller", "storage": {"size": "1Gi"}},
}
MIGRATION = {
    "apiVersion": "switchover.dev/v1alpha1", "kind": "KafkaMigration", "metadata": {"name": "to-kraft"}, "spec": SPEC}


class Finalized:
    """A cluster as it stands after Finalize: taken over by our own patch, its controllers applied by us."""

    def __init__(self, server: ApiServer, kubectl: Kubectl, namespace: str) -> None:
        self.server = server
        self.workloads = KubernetesWorkloads(server, WallClock())
        self.migrations = KubernetesMigrations(server, WallClock(), "KafkaMigration", "kafkamigrations")
        self._kubectl = kubectl
        self.namespace = namespace

    def kubectl(self, *arguments: str, stdin: str | None = None) -> None:
        self._kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def apply(self, how: tuple[str, ...], text: str) -> None:
        """Apply as a person or a GitOps tool does."""
        self.kubectl(*how, "-f", "-", stdin=text)

    async def take_over(self) -> None:
        """What the operator did on the way."""
        spec = KafkaMigrationSpec.model_validate(SPEC)
        labels = names.labels("to-kraft")
        workload = await self.workload()
        claim = {"name": "kafka", "annotations": {names.CLAIM: "uid-of-the-migration"}}
        await self.workloads.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": claim})
        found = brokers.find(workload.template, spec.brokers[0], {"log.dirs": "/var/lib/kafka/data"})
        await self.workloads.apply(template.original_manifest(workload, found, 1, labels))
        original = await self.original()
        edits = {pod: f"mode C\nset node.id={number}\n" for number, pod in enumerate(PODS)}
        await self.workloads.write_node_files("kafka-switchover", {mount.SCRIPT_KEY: DOOR, **edits}, labels)
        await self.workloads.write_node_files("kafka-controller-switchover", {"keystore.jks": "\udcfe\udced"}, labels)
        await self.workloads.patch("apps/v1", "StatefulSet", "kafka", template.patch(workload, spec.brokers[0]))
        for manifest in manifests.manifests(
                "to-kraft", spec, spec.brokers[0], original, workload.claim_templates, found):
            await self.workloads.apply(manifest)

    async def record(self, step: str) -> None:
        """Put a step on record."""
        found = await self.migrations.get("to-kraft")
        assert found is not None
        metadata = found["metadata"]
        await self.migrations.record("to-kraft", metadata["uid"], metadata["resourceVersion"],
                                     {"attempt": 1, "progress": {"step": step}})

    async def export(self, *, with_secrets: bool = False) -> list[Document]:
        return await export("to-kraft", self.migrations, self.workloads, with_secrets)

    async def applied_by(self) -> tuple[str, ...]:
        """Who applied the template that runs, as the operator sees it."""
        return (await self.workload()).applied_by

    async def workload(self) -> Workload:
        """The brokers' StatefulSet, as the operator sees it."""
        found = await self.workloads.stateful_set("kafka")
        assert found is not None
        return found

    async def original(self) -> Any:
        """What is kept of it."""
        found = await self.workloads.original(names.original("kafka", 1))
        assert found is not None
        return found

    async def live(self, name: str) -> dict[str, Any]:
        """A StatefulSet once its controller has seen what was last written."""
        for _ in Patience(30).looks():
            found = await self.server.get(self.server.path("apps/v1", "StatefulSet", name))
            if found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]:
                return found
            await asyncio.sleep(0.1)
        raise AssertionError(f"the StatefulSet controller does not look at {name}")
