"""Many migrations on a real API server, with all that stands around them: what one operator is tried with."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import uuid4

from adapters.clusters import KafkaCluster, KRaftNode
from adapters.eventually import eventually
from adapters.group_members import create_topic
from adapters.simulated_members import Topic, crowd
from switchover.api.meta import API_VERSION
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import MemberProtocol
from switchover.kubernetes.client.api_server import ApiServer, NotFound, connect
from switchover.network.credentials import Access

TOPIC = Topic("orders", 12)
BEGUN = "2026-11-28T00:00:00Z"
CLUSTERS, SCALED = "clusters", "scaled"
PROGRESS = {
    "moving": {"step": "Baseline", "index": 1, "total": 6, "startTime": BEGUN, "stepStartTime": BEGUN, "openTime": BEGUN},
    "ended": {"step": "HandOver", "index": 5, "total": 6, "startTime": BEGUN, "stepStartTime": BEGUN, "openTime": BEGUN,
              "completeTime": BEGUN},
}
"""What the status of each kind says of where it stands."""


@dataclass(frozen=True)
class Wanted:
    """What is measured: so many migrations of a kind (planned, scaled, moving, ended, clusters) beside so many pods of
    others."""

    count: int
    kind: str = "planned"
    foreign: int = 0
    topics: int = 0

    @property
    def plural(self) -> str:
        """The resource."""
        return "kafkamigrations" if self.kind == CLUSTERS else "consumergroupmigrations"

    def __str__(self) -> str:
        beside = ", ".join(words for words, number in (
            (f"{self.foreign} pods of others", self.foreign),
            (f"a large cluster of {self.topics} topics", self.topics)) if number)
        return f"{self.count} {self.kind}{f' beside {beside}' if beside else ''}"


def name_of(number: int) -> str:
    return f"group-{number}"


def names(count: int) -> list[str]:
    return [name_of(number) for number in range(count)]


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "app", "image": "localhost/consumer:1"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}}


def migration(name: str, servers: str, kind: str = "planned") -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "ConsumerGroupMigration", "metadata": {"name": name},
            "spec": {"desiredState": "Running" if kind in PROGRESS else "Planned", "group": name,
                     "kafka": {"bootstrapServers": servers}, "protocol": {"to": "Consumer"},
                     "workloads": [{"name": name, "container": "app", "template": {"image": "localhost/consumer:2"}}]}}


def beside(name: str) -> list[dict[str, Any]]:
    """A budget of the Deployment and an autoscaler."""
    named = {"metadata": {"name": name}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return [{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", **named,
             "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}}},
            {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **named,
             "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 2}}]


def stateful_set(name: str, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "kafka", "image": "localhost/kafka:3.9.2", "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "command": ["/opt/kafka/bin/kafka-server-start.sh", "/etc/kafka/server.properties"]}
    claim = {"metadata": {"name": "data"},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
            "spec": {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                     "volumeClaimTemplates": [claim]}}


def cluster_migration(name: str, zookeeper: str, servers: str) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "KafkaMigration", "metadata": {"name": name},
            "spec": {"desiredState": "Planned", "zookeeper": {"connect": zookeeper},
                     "kafka": {"bootstrapServers": servers}, "brokers": [{"name": name}],
                     "controllers": {"name": f"{name}-controller", "storage": {"size": "1Gi"}}}}


def foreign(name: str) -> dict[str, Any]:
    """Of a scheduler that does not exist: the real one writes again and again why it finds no node for each."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"foreign-{name}", "labels": {"app": "foreign"}},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "app", "image": "localhost/foreign:1"}]}}


async def each(names: Iterable[str], work: Callable[[str], Awaitable[object]]) -> None:
    """Eight at a time: the API server has the same two cores."""
    room = asyncio.Semaphore(8)

    async def one(name: str) -> None:
        async with room:
            await work(name)

    await asyncio.gather(*map(one, names))


def status(made: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """That of a migration which an operator has brought so far."""
    phase = {"moving": "Running", "ended": "Succeeded"}[kind]
    return {"observedGeneration": made["metadata"]["generation"], "uid": made["metadata"]["uid"], "phase": phase,
            "progress": PROGRESS[kind]}


class Largest(NamedTuple):
    """A large cluster: where its metadata is, who answers for its brokers, and how many they are."""

    zookeeper: str
    servers: str
    brokers: int


@asynccontextmanager
async def world(kubeconfig: str, wanted: Wanted, servers: str | KafkaCluster,
                largest: Largest | None) -> AsyncIterator[ApiServer]:
    """A namespace with so many migrations: of groups at these bootstrap servers, or of this cluster, and the largest one."""
    count = wanted.count
    server = await connect(f"scale-{uuid4().hex[:8]}", kubeconfig)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": server.namespace}}

    async def make(name: str) -> None:
        path = server.resource_path(API_VERSION, wanted.plural)
        if isinstance(servers, KafkaCluster):
            await server.request("POST", server.path("apps/v1", "StatefulSet"), stateful_set(name))
            await server.request("POST", path, cluster_migration(name, servers.zookeeper_connect, servers.bootstrap))
            return
        await server.request("POST", server.path("apps/v1", "Deployment"), deployment(name))
        if wanted.kind == SCALED:
            for made in beside(name):
                await server.request("POST", server.path(made["apiVersion"], made["kind"]), made)
        made = await server.request("POST", path, migration(name, servers, wanted.kind))
        if wanted.kind in PROGRESS:
            await server.json_patch(f"{path}/{name}/status",
                                    [{"op": "add", "path": "/status", "value": status(made, wanted.kind)}])

    try:
        await server.request("POST", "/api/v1/namespaces", namespace)
        await each(names(count), make)
        await each(names(wanted.foreign), lambda name: server.request("POST", server.path("v1", "Pod"), foreign(name)))
        if largest is not None:
            await server.request("POST", server.path("apps/v1", "StatefulSet"), stateful_set("largest", largest.brokers))
            await server.request("POST", server.resource_path(API_VERSION, wanted.plural), cluster_migration(
                "largest", largest.zookeeper, largest.servers))
        yield server
    finally:
        if largest is not None:
            await drop(server, wanted.plural, "largest")
        await each(names(count), lambda name: drop(server, wanted.plural, name))
        await server.request("DELETE", f"/api/v1/namespaces/{server.namespace}")
        await server.close()


async def drop(server: ApiServer, plural: str, name: str) -> None:
    """The migration with its finalizer, whose operator is gone."""
    path = server.resource_path(API_VERSION, plural, name)
    try:
        await server.json_patch(path, [{"op": "add", "path": "/metadata/finalizers", "value": []}])
        await server.request("DELETE", path)
    except NotFound:
        pass


@asynccontextmanager
async def crowded(broker: KRaftNode, most: int) -> AsyncIterator[Callable[[int], Awaitable[None]]]:
    """The broker serves groups, `most` at last; so many of them have two members once the function has returned."""
    await create_topic(broker.address, TOPIC.name, TOPIC.partitions)
    groups = WireGroups(Access(str(broker.address)))

    async def served() -> None:
        """The first question makes the broker create __consumer_offsets, whose partitions it begins to serve one by one."""
        await asyncio.gather(*(groups.describe(name_of(number)) for number in range(most)))

    await eventually(served, lambda _: True)
    async with crowd(broker.address, MemberProtocol.CLASSIC, TOPIC, connections=20, seconds=36_000) as members:
        joined = 0

        async def join(count: int) -> None:
            nonlocal joined
            if count > joined:
                await members.join({name_of(number): 2 for number in range(joined, count)})
            joined = max(joined, count)

        yield join
