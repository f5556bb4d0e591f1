"""Opening what a migration is observed through, with the credentials that its spec names."""

import asyncio
from collections.abc import Mapping

from switchover.adapters.kafka import ConfluentKafkaAdmin
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.adapters.survey import KubernetesSurvey
from switchover.adapters.wire import KafkaWire
from switchover.adapters.zookeeper import KazooZooKeeper
from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.api.meta import SecretRef
from switchover.observe import Observer
from switchover.ports import Access, Clock


class Connections:
    """`reconcile.Connect` on the real adapters."""

    def __init__(self, namespace: str, workloads: KubernetesWorkloads, survey: KubernetesSurvey, clock: Clock) -> None:
        self._namespace = namespace
        self._survey = survey
        self._workloads = workloads
        self._clock = clock

    async def __call__(self, spec: KafkaMigrationSpec) -> Observer:
        kafka, zookeeper = await asyncio.gather(
            self._properties(spec.kafka.credentials_ref), self._properties(spec.zookeeper.credentials_ref)
        )
        return Observer(
            self._namespace,
            self._workloads,
            self._survey,
            KafkaWire(kafka),
            ConfluentKafkaAdmin(Access(spec.kafka.bootstrap_servers, kafka)),
            KazooZooKeeper(Access(spec.zookeeper.connect, zookeeper)),
            self._clock,
        )

    async def _properties(self, secret: SecretRef | None) -> Mapping[str, str]:
        return await self._workloads.client_properties(secret.name) if secret is not None else {}
