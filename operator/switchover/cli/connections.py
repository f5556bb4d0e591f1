"""Opening what a migration is observed through, with the credentials that its spec names, and again when these change."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from switchover.adapters.kafka import ConfluentKafkaAdmin
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.adapters.survey import KubernetesSurvey
from switchover.adapters.wire import KafkaWire
from switchover.adapters.wire_groups import WireGroups
from switchover.adapters.wire_offsets import WireOffsets
from switchover.adapters.zookeeper import KazooZooKeeper
from switchover.adapters.zookeeper_coordination import KazooZooKeeperGroups
from switchover.api.consumer_group_migration import ConsumerGroupMigration, ConsumerGroupMigrationSpec
from switchover.api.kafka_migration import KafkaMigration, KafkaMigrationSpec
from switchover.api.meta import SecretRef
from switchover.core.kraft import listener
from switchover.observe import Clients, Observer
from switchover.observe_group import GroupClients, GroupObserver
from switchover.ports import Access, Clock, GroupOffsets, Groups, KafkaAdmin, KafkaNodes, ZooKeeper, ZooKeeperGroups

logger = logging.getLogger(__name__)


class Client(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=Client)


@dataclass(frozen=True, slots=True)
class Adapters:
    """What opens a client from client properties; each raises Refused for those that it cannot use."""

    nodes: Callable[[Mapping[str, str]], KafkaNodes] = KafkaWire
    admin: Callable[[Access], KafkaAdmin] = ConfluentKafkaAdmin
    zookeeper: Callable[[Access], ZooKeeper] = KazooZooKeeper


REAL = Adapters()


class Connections:
    """`reconcile.Connect` on the real adapters."""

    def __init__(self, namespace: str, workloads: KubernetesWorkloads, survey: KubernetesSurvey, clock: Clock,
                 adapters: Adapters = REAL) -> None:
        self._namespace = namespace
        self._survey = survey
        self._workloads = workloads
        self._clock = clock
        self._adapters = adapters

    async def __call__(self, migration: KafkaMigration) -> Observer:
        connected = Credentialed(migration.spec, self._workloads, self._adapters)
        return Observer(self._namespace, self._workloads, self._survey, connected, self._clock)


class Kept:
    """Clients that are open, each with the properties that it was opened with.

    Every pass looks into the Secrets, so that a rotation needs no restart of the operator.
    """

    def __init__(self, workloads: KubernetesWorkloads) -> None:
        self._workloads = workloads
        self._open: dict[str, tuple[Mapping[str, str], Client]] = {}
        self._replaced: list[Client] = []           # closed in the next pass: something may still be under way

    async def close(self) -> None:
        """Close every connection."""
        self._replaced += [client for _, client in self._open.values()]
        self._open.clear()
        await self.close_replaced()

    async def close_replaced(self) -> None:
        old, self._replaced = self._replaced, []
        await asyncio.gather(*(client.close() for client in old), return_exceptions=True)

    def get(self, name: str, properties: Mapping[str, str], open_: Callable[[Mapping[str, str]], C]) -> C:
        """The client of this name, a new one when its properties are not those that it was opened with."""
        held = self._open.get(name)
        if held is not None and held[0] == properties:
            kept: C = held[1]      # type: ignore[assignment]     # opened below, under the same name
            return kept
        client = open_(properties)
        self._open[name] = (properties, client)
        if held is not None:
            logger.info("the credentials for %s have changed: connecting anew", name)
            self._replaced.append(held[1])
        return client

    async def properties(self, secret: SecretRef | None) -> Mapping[str, str]:
        return await self._workloads.client_properties(secret.name) if secret is not None else {}


class Credentialed:
    """`observe.Connected` for a KafkaMigration."""

    def __init__(self, spec: KafkaMigrationSpec, workloads: KubernetesWorkloads, adapters: Adapters) -> None:
        self._spec = spec
        self._adapters = adapters
        self._kept = Kept(workloads)

    async def clients(self, *, controllers: bool) -> Clients:
        """The clients for this pass. Raises Refused and Unreachable where a Secret cannot be read or used."""
        await self._kept.close_replaced()
        spec, own = self._spec, self._spec.controllers.listener
        kafka, zookeeper, secret = await asyncio.gather(
            self._kept.properties(spec.kafka.credentials_ref), self._kept.properties(spec.zookeeper.credentials_ref),
            self._kept.properties(own.credentials_ref if controllers else None))
        open_nodes, open_admin, open_zookeeper = self._adapters.nodes, self._adapters.admin, self._adapters.zookeeper
        brokers = self._kept.get("brokers", kafka, open_nodes)
        return Clients(
            brokers=brokers,
            controllers=self._kept.get("controllers", listener.client_properties(own, secret), open_nodes)
            if controllers else brokers,
            admin=self._kept.get("admin", kafka, lambda with_: open_admin(Access(spec.kafka.bootstrap_servers, with_))),
            zookeeper=self._kept.get("zookeeper", zookeeper, lambda with_: open_zookeeper(
                Access(spec.zookeeper.connect, with_))),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._kept.close()


@dataclass(frozen=True, slots=True)
class GroupAdapters:
    """What opens a client of consumer groups; each raises Refused for an access that it cannot use."""

    groups: Callable[[Access], Groups] = WireGroups
    offsets: Callable[[Access], GroupOffsets] = WireOffsets
    zookeeper: Callable[[Access], ZooKeeperGroups] = KazooZooKeeperGroups


REAL_GROUPS = GroupAdapters()


class GroupConnections:
    """`reconcile.Connect` of ConsumerGroupMigration on the real adapters."""

    def __init__(self, workloads: KubernetesWorkloads, survey: KubernetesSurvey, clock: Clock,
                 adapters: GroupAdapters = REAL_GROUPS) -> None:
        self._workloads = workloads
        self._survey = survey
        self._clock = clock
        self._adapters = adapters

    async def __call__(self, migration: ConsumerGroupMigration) -> GroupObserver:
        connected = CredentialedGroups(migration.spec, self._workloads, self._adapters)
        return GroupObserver(self._workloads, self._survey, connected, self._clock)


class CredentialedGroups:
    """`observe_group.GroupConnected`."""

    def __init__(self, spec: ConsumerGroupMigrationSpec, workloads: KubernetesWorkloads, adapters: GroupAdapters) -> None:
        self._spec = spec
        self._adapters = adapters
        self._kept = Kept(workloads)

    async def clients(self) -> GroupClients:
        """The clients for this pass. Raises Refused and Unreachable where a Secret cannot be read or used."""
        await self._kept.close_replaced()
        kafka, servers = await self._kept.properties(self._spec.kafka.credentials_ref), self._spec.kafka.bootstrap_servers
        return GroupClients(
            groups=self._kept.get("groups", kafka, lambda with_: self._adapters.groups(Access(servers, with_))),
            offsets=self._kept.get("offsets", kafka, lambda with_: self._adapters.offsets(Access(servers, with_))),
            zookeeper=await self._zookeeper())

    async def _zookeeper(self) -> ZooKeeperGroups | None:
        if (wanted := self._spec.zookeeper) is None:
            return None
        properties = await self._kept.properties(wanted.credentials_ref)
        return self._kept.get(
            "zookeeper", properties, lambda with_: self._adapters.zookeeper(Access(wanted.connect, with_)))

    async def close(self) -> None:
        """Close every connection."""
        await self._kept.close()
