"""What a rehearsal says of a tree, and what a real migration of two brokers in ZooKeeper mode does with it."""

import asyncio
from enum import StrEnum
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from adapters.clusters import KafkaCluster, kafka_cluster
from adapters.formatted import lay_out
from fakes.planted_trees import BROKERS, ENDS, FAULTS, STALLS, STUCK, Nodes, clean, planted
from patience import Patience
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.rehearsal.settings import TOKEN_SECRET
from switchover.metadata.names import STANDARD_AUTHORIZER
from switchover.zookeeper.client import znodes
from switchover.zookeeper.tree import to_create

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]

CONTROLLER, CLUSTER = 3000, "rehearsal-Cluster-AAAA"
RIGHTS = f"super.users=User:ANONYMOUS\ndelegation.token.secret.key={TOKEN_SECRET}\n"
ON_ZOOKEEPER = f"authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n{RIGHTS}"
ON_KRAFT = f"authorizer.class.name={STANDARD_AUTHORIZER}\n{RIGHTS}"
STANDS_SECONDS = 20.0
"""How long nothing comes of it before it is one that stands still: every retry of the driver's that was seen came sooner."""


class Course(StrEnum):
    """How far a controller comes."""

    STALLS = "never claims"
    ENDS = "ends after the claim"
    STUCK = "copies, and dual write does not begin"
    GOES_ON = "dual write"


SAID = {ENDS: Course.ENDS, STALLS: Course.STALLS, STUCK: Course.STUCK, "DeadBrokerInAssignment": Course.STALLS}
"""What a rehearsal's reason is of a controller; any other is of what comes after dual write has begun."""
REPAIRED = {
    "topic without an id": "the ZooKeeper controller gives it another id, and its data are renamed -stray",
    "topic not JSON": "the ZooKeeper controller writes it anew, with no partition",
    "reassignment under way": "the ZooKeeper controller ends it",
}
"""Where a live controller changes the tree before it is claimed, which a replica has none to do."""
ENDS_BROKERS = {"state not JSON", "topic without data", "two topics with one id", "partition without replicas"}
"""What a live ZooKeeper controller does not outlive, or resigns at: not planted beside one."""


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in REPAIRED and name not in ENDS_BROKERS])
async def test_a_controller_does_with_the_cluster_what_it_does_with_the_replica(tmp_path: Path, name: str) -> None:
    with kafka_cluster(tmp_path, brokers=BROKERS, controllers=(CONTROLLER,)) as cluster:
        assert await course(cluster, planted(name)) is SAID.get(FAULTS[name].reason, Course.GOES_ON)


async def course(cluster: KafkaCluster, wanted: Nodes) -> Course:
    """Begin a migration of a cluster with these nodes: they are planted while its brokers run."""
    before = {path: data for path, data in clean().items() if not path.startswith("/brokers/ids/")}
    cluster.zookeeper.start(cluster.zookeeper.properties())
    client = KazooClient(cluster.zookeeper_connect)
    client.start()
    try:
        client.ensure_path("")
        for path, data in to_create(before):
            client.create(path, data)
        for broker, server in cluster.brokers.items():
            server.start(cluster.broker_properties(broker, Mode.MIGRATION, ON_ZOOKEEPER), wait=False)
        cluster.wait_for_brokers()
        change(client, before, {path: data for path, data in wanted.items() if not path.startswith("/brokers/ids/")})
        server = cluster.controllers[CONTROLLER]
        settings = cluster.controller_properties(CONTROLLER, Mode.MIGRATION_CONTROLLER, ON_KRAFT)
        lay_out(server, CLUSTER, settings)
        server.start(settings, wait=False)
        return await watched(client, cluster)
    finally:
        client.stop()
        client.close()


def change(client: KazooClient, before: Nodes, after: Nodes) -> None:
    """What an old tool, or somebody by hand, has left in the tree."""
    for path in before.keys() - after.keys():
        client.delete(path)
    for path, data in after.items():
        if path not in before:
            client.create(path, data, makepath=True)
        elif data != before[path]:
            client.set(path, data)


async def watched(client: KazooClient, cluster: KafkaCluster) -> Course:
    server = cluster.controllers[CONTROLLER]
    reached, copied, patience = Course.STALLS, -1, Patience(2 * STANDS_SECONDS)
    while not patience.over:
        if server.ended:
            return Course.ENDS
        offset = migration_offset(client)
        if 0 < copied < offset:
            return Course.GOES_ON
        if offset > 0 and copied < 0:
            reached, copied, patience = Course.STUCK, offset, Patience(STANDS_SECONDS)
        await asyncio.sleep(0.2)
    return reached


def migration_offset(client: KazooClient) -> int:
    try:
        data, stat = client.get("/migration")
        return znodes.migration(data, stat.version, stat.mtime).offset
    except NoNodeError:
        return -1
