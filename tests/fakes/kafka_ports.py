"""`ports.KafkaNodes` and `ZooKeeper` on the simulated cluster."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from fakes.incarnation import Incarnation
from fakes.kafka_world import CLUSTER_ID, PROTOCOL, Kafka, Node
from fakes.quorum_log import QuorumLog, as_metadata
from fakes.views import whole_view
from switchover.answers.errors import NotListening, Refused, Unreachable
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import modes
from switchover.kafka.node import (
    BrokerExamination,
    BrokerView,
    LogDirectory,
    NodeAnswer,
    Partition,
    Quorum,
    Replica,
    TopicIds,
    WholeView,
)
from switchover.lag.group import Membership
from switchover.lag.window import Asked, Offsets, Reading, Sweep
from switchover.metadata.cluster import Entity
from switchover.metadata.parity import LogImage, TreeReading
from switchover.network.addresses import Address
from switchover.shared.partition import TopicPartition
from switchover.zookeeper.nodes import (
    IdleGroups,
    ZooKeeperGroup,
    ZooKeeperRights,
    ZooKeeperState,
    ZooKeeperTopic,
    ZooKeeperTopics,
)
from switchover.zookeeper.tree import Tree

T = TypeVar("T")

ZOOKEEPER_BROKER = dict.fromkeys((*range(52), 56, 57, 58, 60, 61, *range(65, 70)), 5) | {
    modes.FETCH: 17, modes.LEADER_AND_ISR: 7}
EPOCH = 9
"""Of every partition in KRaft."""
KRAFT_BROKER = dict.fromkeys((*range(4), *range(7, 52), 55, 57, 60, 61), 5) | {1: 17}
CONTROLLER = dict.fromkeys((1, *range(52, 56), 62, 63, 70), 5) | {1: 17}


def hidden(key: str) -> bool:
    """Whether a broker keeps a setting to itself."""
    return key.endswith((".secret", ".password", "jaas.config"))


class SimulatedNodes:
    """`ports.KafkaNodes`."""

    def __init__(self, incarnation: Incarnation, kafka: Kafka) -> None:
        self._incarnation = incarnation
        self._kafka = kafka

    async def api_versions(self, node: Address) -> NodeAnswer:
        return await self._incarnation.call(lambda: self._answer(self._listening(node)))

    async def known_brokers(self, broker: Address) -> BrokerView:
        return await self.metadata(broker)

    async def metadata(self, broker: Address) -> WholeView:
        return await self._incarnation.call(lambda: self._view(self._listening(broker)))

    async def quorum(self, voters: Iterable[Address]) -> Quorum:
        wanted = tuple(voters)
        return await self._incarnation.call(lambda: self._quorum(wanted))

    async def log(self, voters: Mapping[int, Address], cluster_id: str | None = None) -> LogImage:
        told = await self._incarnation.call(lambda: self._log(voters))
        if cluster_id not in (None, self._kafka.clusters.get("controllers", CLUSTER_ID)):
            raise Refused(f"a controller of another cluster than {cluster_id}")
        return told

    async def examine(self, broker: Address, broker_id: int) -> BrokerExamination:
        """A broker that runs on the file that it started with; our user may do everything."""
        def answer() -> BrokerExamination:
            settings = {key: value for key, value in self._listening(broker).settings.items() if not hidden(key)}
            directories = tuple(LogDirectory(path, offline=False) for path in settings["log.dirs"].split(","))
            return BrokerExamination(settings, directories, frozenset({"CLUSTER_ACTION", "DESCRIBE", "DESCRIBE_CONFIGS"}),
                                     frozenset(key for key in self._listening(broker).settings if hidden(key)))

        return await self._incarnation.call(answer)

    async def topic_ids(self, broker: Address, broker_id: int) -> TopicIds:
        def answer() -> TopicIds:
            self._listening(broker)
            return TopicIds({topic: f"id-of-{topic}" for topic in self._kafka.topics})

        return await self._incarnation.call(answer)

    async def identity(self, node: Address, cluster_id: str, among: Iterable[int]) -> frozenset[int]:
        """Of the registered brokers, the one that listens there."""
        wanted = frozenset(among)

        def answer() -> frozenset[int]:
            assert cluster_id == CLUSTER_ID
            return wanted & {self._listening(node).node_id}

        return await self._incarnation.call(answer)

    async def marker(self, broker: Address, broker_id: int) -> str:
        """By which edits the broker was started."""
        return await self._incarnation.call(lambda: self._listening(broker).marker)

    async def settings(self, broker: Address, broker_id: int) -> Mapping[str, str]:
        def answer() -> Mapping[str, str]:
            node = self._listening(broker)
            assert node.node_id == broker_id
            told = {key: value for key, value in node.settings.items() if not hidden(key)}
            return told | ({PROTOCOL: f"{modes.release_of(told[PROTOCOL])}-IV0"} if PROTOCOL in told else {})

        return await self._incarnation.call(answer)

    async def min_insync_replicas(self, broker: Address, topics: Iterable[str]) -> Mapping[str, int]:
        wanted = tuple(topics)

        def answer() -> Mapping[str, int]:
            self._listening(broker)
            return dict.fromkeys(wanted, 2)

        return await self._incarnation.call(answer)

    async def log_ends(self, broker: Address, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Ten records a second, on whoever has caught up."""
        wanted = tuple(partitions)

        def answer() -> Mapping[TopicPartition, int]:
            node, now = self._listening(broker), self._incarnation.api.now()
            return dict.fromkeys(wanted, int(now * 10) if now >= node.in_sync_at else 0)

        return await self._incarnation.call(answer)

    async def ask_controller(self, broker: Address) -> None:
        def answer() -> None:
            node = self._listening(broker)
            if (node.pod, node.started_at) in self._kafka.passes_nothing_on or not self._kafka.rules:
                raise Unreachable(f"{broker}: no complete answer within 3 s")

        await self._incarnation.call(answer)

    async def set_quota(self, controller: Address, entity: Entity, key: str, value: float | None) -> None:
        ((kind, user),) = entity
        assert (kind, self._listening(controller).node_id) == ("user", self._kafka.leader)
        await self._incarnation.call(lambda: self._kafka.set_quota(str(user), key, value, self._incarnation.api.now()))

    async def close(self) -> None:
        """Nothing is open."""

    def _listening(self, where: Address) -> Node:
        if self._kafka.refused_at(where):
            raise NotListening(f"nobody listens at {where}")
        if (node := self._kafka.at(where)) is None:
            raise Unreachable(f"nobody answers at {where}")
        return node

    def _answer(self, node: Node) -> NodeAnswer:
        fresh = self._incarnation.api.now() < node.open_at + 1
        match node.mode:
            case Mode.ZOOKEEPER if self._kafka.old:
                return NodeAnswer({**ZOOKEEPER_BROKER, modes.FETCH: modes.FETCH_OF_3_9 - 1}, False, -1, None)
            case Mode.ZOOKEEPER | Mode.ZOOKEEPER_PINNED | Mode.ZOOKEEPER_RAISED | Mode.MIGRATION:
                return NodeAnswer(ZOOKEEPER_BROKER, node.mode == Mode.MIGRATION, -1, None)
            case Mode.KRAFT:
                return NodeAnswer(KRAFT_BROKER, False, self._offset(), self._kafka.metadata_version)
            case _:
                level, epoch = (1, -1) if fresh else (self._kafka.metadata_version, self._offset())
                return NodeAnswer(CONTROLLER, node.mode == Mode.MIGRATION_CONTROLLER, epoch, level)

    def _offset(self) -> int:
        return self._kafka.log.offset if self._kafka.log is not None else -1

    def _view(self, node: Node) -> WholeView:
        kafka = self._kafka
        forgetful = self._incarnation.api.now() < node.open_at + 3       # it has not heard of its own absence yet
        partitions = tuple(
            Partition(topic, index, kafka.told[topic, index][0], replicas,
                      replicas if forgetful else tuple(sorted(kafka.told[topic, index][1])))
            for topic, all_of_it in kafka.topics.items() for index, replicas in all_of_it.items()
        )
        told = kafka.clusters.get(node.pod, CLUSTER_ID)
        return whole_view(told, kafka.controller_named_by(node), kafka.alive(), partitions)

    def _led(self, asked: Sequence[Node]) -> QuorumLog:
        """The log, if its leader is among those that were asked: nobody else answers."""
        if self._kafka.log is None or self._kafka.leader not in {node.node_id for node in asked}:
            raise Unreachable("no voter answers as the leader")
        return self._kafka.log

    def _quorum(self, voters: Sequence[Address]) -> Quorum:
        kafka, now = self._kafka, self._incarnation.api.now()
        log = self._led([node for where in voters if (node := kafka.at(where)) is not None])
        assert kafka.leader is not None
        reached = log.offset
        followers = {
            node_id: Replica(reached if now - kafka.last_fetch.get(node_id, 0) < 1 else 0,
                             int(kafka.last_fetch.get(node_id, 0) * 1000))
            for node_id in kafka.voters
        }
        observers = {
            node.node_id: Replica(reached, int(now * 1000))
            for node in kafka.nodes.values() if node.mode in (Mode.MIGRATION, Mode.KRAFT) and node.is_open(now)
        }
        high_watermark = -1 if now < kafka.leader_since + 0.1 else reached
        return Quorum(kafka.leader, log.epoch, high_watermark, followers, observers)

    def _log(self, voters: Mapping[int, Address]) -> LogImage:
        log = self._led([node for where in voters.values() if (node := self._kafka.at(where)) is not None])
        return LogImage(log.offset - 1, log.epoch, log.state, self._kafka.metadata_version, dict(log.controllers),
                        dict(log.brokers), log.transaction, 0, replace(as_metadata(log.metadata),
                                                    epochs=dict.fromkeys(self._kafka.tree.states, EPOCH)))


class SimulatedTree:
    """`ports.ZooKeeperTree`: what of the tree a rehearsal is told."""

    def __init__(self, incarnation: Incarnation, kafka: Kafka) -> None:
        self._incarnation = incarnation
        self._kafka = kafka

    async def export(self) -> Tree:
        def nodes() -> Tree:
            written = {f"/{name}": value.encode() for name, value in self._kafka.tree.metadata.items()}
            return Tree({"/cluster/id": CLUSTER_ID.encode(), **written})

        return await self._incarnation.call(nodes)

    async def close(self) -> None:
        """Nothing is open."""


def _serving(kafka: Kafka, answer: T) -> T:
    if not kafka.alive():
        raise Unreachable("no broker answers")
    return answer


class SimulatedOffsets:
    """`lag.window.GroupOffsets`: each group follows a topic of ten records a second, while its partitions have leaders."""

    def __init__(self, incarnation: Incarnation, kafka: Kafka) -> None:
        self._incarnation = incarnation
        self._kafka = kafka

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        now, since = self._incarnation.api.now(), self._kafka.stands_since
        committed, end = int((now if since is None else since) * 10) - 5, int(now * 10)
        if self._kafka.aborted:
            end = committed + 5
        offsets = {TopicPartition("orders", 0): Offsets(round(now * 1000), committed, end, 0, end)}
        sweep = Sweep({
            name: Reading(offsets, frozenset({"orders"}), unreadable={
                each: stretch._replace(end=end) for each, stretch in wanted.looks.items() if self._kafka.aborted})
            for name, wanted in asked.items()}, {"orders": 1})
        return await self._incarnation.call(lambda: _serving(self._kafka, sweep))

    async def close(self) -> None:
        """Nothing is open."""


class SimulatedMemberships:
    """`kafka.ports.GroupMemberships`: each group has one member."""

    def __init__(self, incarnation: Incarnation, kafka: Kafka) -> None:
        self._incarnation = incarnation
        self._kafka = kafka

    async def groups(self) -> Sequence[str]:
        return ()

    async def memberships(self, groups: Iterable[str]) -> Mapping[str, Membership | str]:
        found: Mapping[str, Membership | str] = {
            name: Membership("Stable", {"member": frozenset({TopicPartition("orders", 0)})}) for name in groups}
        return await self._incarnation.call(lambda: _serving(self._kafka, found))

    async def close(self) -> None:
        """Nothing is open."""


class SimulatedZooKeeper:
    """`ports.ZooKeeper` at `servers`, where nobody answers but at the cluster's own."""

    def __init__(self, incarnation: Incarnation, kafka: Kafka, servers: str = "zookeeper:2181") -> None:
        self._reached = servers == "zookeeper:2181"
        self._incarnation = incarnation
        self._kafka = kafka
        kafka.tree.written = lambda method, path, content: incarnation.api.written(method, "znodes", path, "", None, content)

    async def state(self) -> ZooKeeperState:
        self._incarnation.reads["znodes"] = self._incarnation.api.now()
        return await self._incarnation.call(lambda: self._serving(self._state()))

    async def topics(self) -> ZooKeeperTopics:
        topics = self._kafka.topics
        found = {name: ZooKeeperTopic(f"id-of-{name}", dict(partitions)) for name, partitions in topics.items()}
        return await self._incarnation.call(lambda: self._serving(ZooKeeperTopics(found, (), False, ())))

    async def metadata(self, secret: str | None, *, states: bool = False) -> TreeReading:
        return await self._incarnation.call(lambda: self._serving(self._tree(states)))

    async def groups(self) -> Mapping[str, ZooKeeperGroup]:
        return await self._incarnation.call(lambda: self._serving(dict(self._kafka.old_groups)))

    async def idle_groups(self) -> IdleGroups:
        return await self._incarnation.call(lambda: self._serving(IdleGroups({})))

    def servers(self) -> Sequence[Address]:
        return (Address("zookeeper", 2181),)

    async def connections(self, server: Address) -> int:
        each = {**dict.fromkeys((*modes.WITHOUT_QUORUM, Mode.MIGRATION), 2), Mode.MIGRATION_CONTROLLER: 1}
        if self._kafka.zookeeper_stopped:
            raise NotListening(f"nobody listens at {server}")
        return await self._incarnation.call(
            lambda: self._serving(sum(each.get(node.mode, 0) for node in self._kafka.nodes.values())))

    async def partition_epoch(self) -> int:
        await asyncio.sleep(self._kafka.tree.reading_states)
        return await self._incarnation.call(lambda: self._serving(self._kafka.tree.partition_epoch))

    async def stateless(self) -> Mapping[tuple[str, int], tuple[int, ...]]:
        await asyncio.sleep(self._kafka.tree.reading_states)
        return await self._incarnation.call(lambda: self._serving(dict(self._kafka.tree.stateless)))

    async def create_states(self, replicas: Mapping[tuple[str, int], tuple[int, ...]], controller_epoch: int) -> None:
        await self._write("POST", "/brokers/topics", lambda: self._kafka.tree.create_states(replicas, controller_epoch))

    async def delete(self, path: str, version: int, controller_epoch: int) -> None:
        await self._write("DELETE", path, lambda: self._kafka.tree.delete(path, version, controller_epoch))

    async def raise_epoch(self, epoch: int, expected: int) -> None:
        await self._write("PUT", "/controller_epoch", lambda: self._kafka.tree.raise_epoch(epoch, expected))

    async def raise_versions(self, epochs: Mapping[tuple[str, int], int], controller_epoch: int) -> None:
        await self._write("PUT", "/brokers/topics", lambda: self._kafka.tree.raise_versions(epochs, controller_epoch))

    async def _write(self, method: str, path: str, act: Callable[[], None]) -> None:
        await self._incarnation.write(
            method, path, lambda: self._incarnation.call(lambda: self._serving(None) or act()))

    async def rights(self) -> ZooKeeperRights:
        everything = frozenset({"READ", "WRITE", "CREATE", "DELETE", "ADMIN"})
        rights = ZooKeeperRights(dict.fromkeys(("/", "/controller_epoch"), everything), {})
        return await self._incarnation.call(lambda: self._serving(rights))

    async def server_mode(self, server: Address) -> str:
        return await self._incarnation.call(lambda: self._serving("follower"))

    async def close(self) -> None:
        """Nothing is open."""

    def _serving(self, answer: T) -> T:
        if not self._reached or self._kafka.zookeeper_hidden or self._kafka.zookeeper_stopped:
            raise Unreachable("ZooKeeper does not answer")
        return answer

    def _tree(self, states: bool) -> TreeReading:
        tree = self._kafka.tree
        epochs = {key: EPOCH - tree.behind.get(key, 0) for key in tree.states} if states else None
        return TreeReading(tree.migration.offset if tree.migration is not None else -1,
                           replace(as_metadata(tree.metadata), epochs=epochs, **self._kafka.planted), len(tree.metadata))

    def _state(self) -> ZooKeeperState:
        kafka, tree = self._kafka, self._kafka.tree
        brokers = {
            node.node_id: {"PLAINTEXT": kafka.advertised(node)}
            for node in kafka.nodes.values() if node.is_broker and node.node_id in tree.registered
        }
        cluster_id = kafka.clusters.get("ZooKeeper", CLUSTER_ID)
        return ZooKeeperState(cluster_id, tree.controller, tree.controller_epoch, tree.migration, brokers, False)
