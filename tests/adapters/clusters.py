"""A Kafka cluster of real processes: ZooKeeper, brokers in mode ZooKeeper, Migration or KRaft, and controllers.

The configurations are those of docs/facts/kraft.md#configurations, written out here on purpose: what the operator's
edits make is tried on real Kafka in test_modes.py, not used to test itself.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from adapters.formatted import lay_out, random_id
from adapters.servers import KafkaServer, ServerError, ZooKeeperServer, loopback
from patience import stretched, until
from switchover.answers.errors import Unreachable
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.kafka.client.nodes import KafkaWire
from switchover.network.addresses import Address

COMMON = """\
num.network.threads=2
num.io.threads=2
background.threads=2
log.cleaner.dedupe.buffer.size=2097152
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class KafkaCluster:
    """Servers that belong together. Nothing runs until it is started; `kill()` ends all."""

    def __init__(self, directory: Path, *, brokers: Iterable[int] = (1,), controllers: Iterable[int] = ()) -> None:
        self.zookeeper = ZooKeeperServer(directory / "zookeeper")
        self.brokers = {i: KafkaServer(directory / f"broker-{i}", loopback(9092)) for i in brokers}
        self.controllers = {i: KafkaServer(directory / f"controller-{i}", loopback(9093), heap="160m")
                            for i in controllers}

    @property
    def bootstrap(self) -> str:
        return ",".join(str(broker.address) for broker in self.brokers.values())

    @property
    def zookeeper_connect(self) -> str:
        return f"{self.zookeeper.address}/kafka"

    def broker_properties(self, broker: int, mode: str, extra: str = "") -> str:
        """`server.properties` of a broker in mode ZooKeeper, Migration or KRaft."""
        server = self.brokers[broker]
        text = COMMON + f"listeners=PLAINTEXT://{server.address}\nlog.dirs={server.directory / 'data'}\n"
        if mode in (Mode.ZOOKEEPER, Mode.MIGRATION):
            # The longest session that our ZooKeeper grants: a starved broker is not forgotten.
            text += (f"broker.id={broker}\nzookeeper.connect={self.zookeeper_connect}\n"
                     "zookeeper.session.timeout.ms=10000\ninter.broker.protocol.version=3.9\n")
        if mode in (Mode.MIGRATION, Mode.KRAFT):
            text += self._quorum()
        if mode == Mode.MIGRATION:
            text += "zookeeper.metadata.migration.enable=true\n"
        if mode == Mode.KRAFT:
            text += f"node.id={broker}\nprocess.roles=broker\n"
        return text + extra

    def controller_properties(self, controller: int, mode: str, extra: str = "") -> str:
        """`server.properties` of a controller in mode MigrationController or KRaftController (finalized, or born so)."""
        server = self.controllers[controller]
        text = COMMON + self._quorum() + (
            f"node.id={controller}\nprocess.roles=controller\nlisteners=CONTROLLER://{server.address}\n"
            f"log.dirs={server.directory / 'data'}\n")
        if mode == Mode.MIGRATION_CONTROLLER:
            text += (f"zookeeper.connect={self.zookeeper_connect}\nzookeeper.metadata.migration.enable=true\n"
                     "inter.broker.listener.name=PLAINTEXT\n")
        return text + extra

    def start_zookeeper_mode(self, extra: str = "") -> None:
        """ZooKeeper, then every broker in its mode."""
        self.zookeeper.start(self.zookeeper.properties())
        for broker, server in self.brokers.items():
            server.start(self.broker_properties(broker, Mode.ZOOKEEPER, extra), wait=False)
        for broker, server in self.brokers.items():
            try:
                server.wait()
            except ServerError as error:            # starved while it started: a kubelet would start it again
                if "SessionExpired" not in str(error):
                    raise
                server.start(self.broker_properties(broker, Mode.ZOOKEEPER, extra))
        self.wait_for_brokers()

    def start_controllers(self, cluster_id: str, mode: str = Mode.MIGRATION_CONTROLLER) -> None:
        """Format every controller and start all of them."""
        for controller, server in self.controllers.items():
            text = self.controller_properties(controller, mode)
            lay_out(server, cluster_id, text)
            server.start(text, wait=False)
        for server in self.controllers.values():
            server.wait()

    def start_kraft(self, extra: str = "") -> None:
        """A cluster born in KRaft mode: no ZooKeeper, brokers formatted too."""
        cluster_id = random_id()
        self.start_controllers(cluster_id, Mode.KRAFT_CONTROLLER)
        for broker, server in self.brokers.items():
            text = self.broker_properties(broker, Mode.KRAFT, extra)
            lay_out(server, cluster_id, text)
            server.start(text, wait=False)
        self.wait_for_brokers()

    def wait_for_brokers(self) -> None:
        """Until every broker answers for itself, and each names all of them and a controller.

        One that answers may know of none yet, while the others name it. A librdkafka client that asks earlier may wait
        its whole time limit for a controller (docs/facts/kraft.md#what-a-node-answers).
        """
        for server in self.brokers.values():
            server.wait()
        with ThreadPoolExecutor(1) as elsewhere:        # a test that waits here may have an event loop of its own
            until(lambda: elsewhere.submit(asyncio.run, self._whole()).result(),
                  f"brokers {sorted(self.brokers)} each name all of them and a controller", pause=0.1)

    async def _whole(self) -> bool:
        wire = patient_wire({})
        try:
            views = [await wire.metadata(server.address) for server in self.brokers.values()]
        except Unreachable:
            return False
        return all(view.brokers.keys() == self.brokers.keys() and view.controller_id in self.brokers for view in views)

    def kill(self) -> None:
        """End every process at once: nothing of a test's cluster is needed afterwards."""
        for server in (*self.brokers.values(), *self.controllers.values(), self.zookeeper):
            server.kill()

    def _quorum(self) -> str:
        voters = ",".join(f"{i}@{server.address}" for i, server in self.controllers.items())
        return (f"controller.quorum.voters={voters}\ncontroller.listener.names=CONTROLLER\n"
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n")


def patient_wire(properties: Mapping[str, str]) -> KafkaWire:
    """Kafka's nodes, on a machine that may be slow: what a test asks once is answered."""
    return KafkaWire(properties, seconds=stretched(10))


class KRaftNode(KafkaServer):
    """A whole KRaft cluster in one node, 1, broker and controller: of any version that `fetch` has."""

    def __init__(self, directory: Path, version: str) -> None:
        super().__init__(directory, loopback(9092), version=version)

    def begin(self, settings: str = "", *, features: Mapping[str, int] | None = None) -> None:
        """Format and start it; `settings` are lines of its own, `features` levels other than those of its release."""
        properties = self.properties(settings)
        lay_out(self, random_id(), properties, features)
        self.start(properties)

    def properties(self, settings: str = "") -> str:
        controller = Address(self.address.host, 9093)
        return COMMON + (
            f"node.id=1\nprocess.roles=broker,controller\nlog.dirs={self.directory / 'data'}\n"
            f"listeners=PLAINTEXT://{self.address},CONTROLLER://{controller}\ncontroller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            # What such a log is told of each half second that nothing happens is two fifths of what the node costs then.
            f"controller.quorum.voters=1@{controller}\nmetadata.max.idle.interval.ms=0\n{settings}")


@contextlib.contextmanager
def node(directory: Path, version: str) -> Iterator[KRaftNode]:
    """A node, not started yet, whose process ends with the block."""
    server = KRaftNode(directory, version)
    try:
        yield server
    finally:
        server.kill()


@contextlib.contextmanager
def kafka_cluster(
    directory: Path, *, brokers: Iterable[int] = (1,), controllers: Iterable[int] = ()
) -> Iterator[KafkaCluster]:
    """A cluster whose processes end with the block."""
    cluster = KafkaCluster(directory, brokers=brokers, controllers=controllers)
    try:
        yield cluster
    finally:
        cluster.kill()
