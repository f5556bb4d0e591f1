"""What a controller's pod has where a broker would have its data keeps a real broker from joining the cluster."""

import subprocess
from pathlib import Path

import pytest

from adapters.clusters import kafka_cluster
from adapters.servers import ServerError
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.door.mount import GUARD
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper


def guard(data: str) -> None:
    """The init container."""
    subprocess.run(["bash", "-c", GUARD, "guard", data], check=True)


async def test_a_broker_that_starts_in_a_controllers_pod_ends_before_it_registers(tmp_path: Path) -> None:
    """Its container may start Kafka past the door: then it has the brokers' own configuration and an empty disk."""
    with kafka_cluster(tmp_path, brokers=(1, 2)) as cluster:
        cluster.zookeeper.start(cluster.zookeeper.properties())
        broker, impostor = cluster.brokers[1], cluster.brokers[2]
        broker.start(cluster.broker_properties(1, Mode.ZOOKEEPER))
        properties = cluster.broker_properties(2, Mode.ZOOKEEPER)
        [data] = [line.partition("=")[2] for line in properties.splitlines() if line.startswith("log.dirs=")]
        for _ in range(2):                                       # a pod starts more than once
            guard(data)
            with pytest.raises(ServerError, match="switchover-no-broker-here"):
                impostor.start(properties)
        zookeeper = KazooZooKeeper(Access(cluster.zookeeper_connect))
        try:
            assert set((await zookeeper.state()).brokers) == {1}
        finally:
            await zookeeper.close()
