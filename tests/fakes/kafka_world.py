"""A simulated Kafka cluster with its ZooKeeper, on its way to KRaft, as feasibility-kraft.md saw the real one.

What a node does follows from the file that its pod mounted when it started. The model is deliberately unpleasant where
Kafka is: the claim comes before the last broker's port is open; a fresh controller tells metadata.version 1 for a
second; only the leader answers DescribeQuorum; a broker that has just restarted believes that everything is in sync; a
broker that cached the old address of a new leader is fenced for a while; who wins the election finalizes.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from javaproperties import loads

from fakes.kubelet import Container, Kubelet, address
from switchover.core.kraft.facts import Address, BrokerRegistration, ControllerNode, MigrationNode, MigrationState
from switchover.metadata.cluster import Assignment, ClusterMetadata, Topic

CLUSTER_ID = "simulatedClusterAAAAAA"
METADATA_3_9 = 21
SESSION_SECONDS = 9.0                  # broker.session.timeout.ms
NAME_CACHE_SECONDS = 30.0              # networkaddress.cache.ttl of a JVM
BROKER_PORT, CONTROLLER_PORT = 9092, 9093


@dataclass
class Node:
    """One Kafka process. `open_at` is when its port opens, `in_sync_at` when its replicas have caught up."""

    pod: str
    node_id: int
    mode: str
    started_at: float
    open_at: float
    in_sync_at: float
    ready: bool = False

    def is_open(self, now: float) -> bool:
        return now >= self.open_at


@dataclass
class Kafka:
    """The cluster. `tick` moves it; the ports read it."""

    kubelet: Kubelet
    seed: int
    violations: list[str]
    topics: Mapping[str, Mapping[int, tuple[int, ...]]]
    nodes: dict[str, Node] = field(default_factory=dict)
    starts: dict[tuple[str, str], int] = field(default_factory=dict)
    # ZooKeeper
    controller: ControllerNode | None = None
    controller_epoch: int = 0
    migration: MigrationNode | None = None
    registered: set[int] = field(default_factory=set)
    planted: dict[str, Any] = field(default_factory=dict)      # fields of ClusterMetadata that ZooKeeper alone has so
    zookeeper_hidden: bool = False     # from the operator alone: a network policy, say
    # the quorum and its log
    leader: int | None = None
    leader_since: float = 0.0
    epoch: int = 0
    offset: int = 0
    state: MigrationState | None = None
    controllers: dict[int, bool] = field(default_factory=dict)
    brokers: dict[int, BrokerRegistration] = field(default_factory=dict)
    transaction: str | None = None
    voters: frozenset[int] = frozenset()
    last_fetch: dict[int, float] = field(default_factory=dict)
    # partitions
    leaders: dict[tuple[str, int], int] = field(default_factory=dict)
    isr: dict[tuple[str, int], frozenset[int]] = field(default_factory=dict)
    _election_at: float | None = None
    _copied_at: float | None = None
    _dual_write_at: float | None = None
    _confused: tuple[int, float, float] | None = None
    _settled: bool = False

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        for topic, partitions in self.topics.items():
            for index, replicas in partitions.items():
                self.leaders[topic, index] = replicas[0]
                self.isr[topic, index] = frozenset(replicas)

    # --- one step of time ---------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        while self.kubelet.stopped:
            self._stop(self.kubelet.stopped.pop(0), now)
        while self.kubelet.started:
            self._start(self.kubelet.started.pop(0), now)
        for node in self.nodes.values():
            if not node.ready and now >= node.open_at + 1:
                node.ready = True
                self.kubelet.report(node.pod, ready=True)
        self._zookeeper_registrations(now)
        self._quorum(now)
        if self.leader is not None:
            self.offset += 1                           # the no-op records of a leader
            self._register(now)
            self._migrate(now)
        self._replicas(now)
        self._judge()

    def _start(self, container: Container, now: float) -> None:
        text = next((text for files in container.files.values() for name, text in sorted(files.items())
                     if name in ("server.properties", f"{container.pod}.properties")), None)
        settings = dict(loads(text)) if text is not None else {}
        mode = mode_of(settings)
        broker_id = container.ordinal + 1              # `--override broker.id` of the user's command line
        if mode in ("A", "B", "C") and settings.get("node.id", str(broker_id)) != str(broker_id):
            mode = ""
        if not mode:
            self.violations.append(f"{container.pod} starts without a configuration that can be")
            self.kubelet.report(container.pod, ready=False, crashed=True)
            return
        self.starts[container.pod, mode] = self.starts.get((container.pod, mode), 0) + 1
        node_id = int(settings["node.id"]) if mode in ("P", "F") else broker_id
        open_at = now + self._random.uniform(*((2.0, 4.0) if mode in ("P", "F") else (3.0, 8.0)))
        self.nodes[container.pod] = Node(container.pod, node_id, mode, now, open_at,
                                         open_at + self._random.uniform(2.0, 5.0))
        if mode in ("P", "F"):
            listed = settings["controller.quorum.voters"].split(",")
            self.voters = frozenset(int(voter.partition("@")[0]) for voter in listed)
        if mode == "C" and self.state is not MigrationState.MIGRATION:
            self.violations.append(f"{container.pod} starts in mode C while the log says {self.state}")

    def _stop(self, pod: str, now: float) -> None:
        node = self.nodes.pop(pod, None)
        if node is None:
            return
        self.registered.discard(node.node_id)
        if self.controller is not None and self.controller.ephemeral and self.controller.node_id == node.node_id:
            self.controller = None
        if node.node_id == self.leader:
            self.leader, self._dual_write_at = None, None
            self._election_at = now + self._random.uniform(0.5, 2.0)
        if (known := self.brokers.get(node.node_id)) is not None and self.leader is not None:
            self._record(node.node_id, BrokerRegistration(known.epoch, known.migrating_zk, True))

    # --- ZooKeeper ----------------------------------------------------------------------------------------------------

    def _zookeeper_registrations(self, now: float) -> None:
        alive = [node for node in self.nodes.values() if node.mode in ("A", "B") and now >= node.open_at - 0.5]
        self.registered |= {node.node_id for node in alive}
        if self.controller is None and alive:
            self.controller_epoch += 1
            self.controller = ControllerNode(self._random.choice(alive).node_id, True, -1)
        migrating = [node for node in self.nodes.values() if node.mode == "P" and now > node.started_at + 1]
        if self.migration is None and migrating:
            self.migration = MigrationNode(False, -1, -1, -1, 0, now)

    # --- the quorum ---------------------------------------------------------------------------------------------------

    def _quorum(self, now: float) -> None:
        alive = sorted(node.node_id for node in self.nodes.values() if node.mode in ("P", "F") and node.is_open(now))
        for node_id in alive:
            self.last_fetch[node_id] = now
        if len(alive) * 2 <= len(self.voters) or not self.voters:
            if self.leader is not None:
                self.leader, self._election_at = None, None
            return
        if self.leader is not None:
            return
        if self._election_at is None:
            self._election_at = now + self._random.uniform(0.5, 2.0)
        if now >= self._election_at:
            self._election_at = None
            self._elect(self._random.choice(alive), now)

    def _elect(self, winner: int, now: float) -> None:
        self.leader, self.leader_since = winner, now
        self.epoch += 1
        self.offset += 1
        mode = self._controller(winner).mode
        if self.state is None:
            self.offset += 4
            self.state = MigrationState.PRE_MIGRATION if mode == "P" else MigrationState.NONE
        elif self.state is MigrationState.MIGRATION and mode == "F":
            self.state = MigrationState.POST_MIGRATION
            if any(node.mode != "C" for node in self.nodes.values() if node.node_id not in self.voters):
                self.violations.append("the election finalized while a broker is not on KRaft")
        elif self.state is MigrationState.MIGRATION:
            self._take_controller_node(now)
            self._dual_write_at = now + self._random.uniform(1.0, 3.0)
        if self.epoch > 1:                             # somebody cached the address that the winner had before it moved
            victim = self._random.choice([node.node_id for node in self._broker_nodes()])
            until = max(now, self._controller(winner).started_at + NAME_CACHE_SECONDS)
            self._confused = (victim, now + SESSION_SECONDS, until)

    def _register(self, now: float) -> None:
        """Registrations that reach the leader: controllers with their flag, brokers in the mode of their start."""
        for node in self.nodes.values():
            if node.node_id in self.voters:
                if now >= node.open_at + 0.5 and self.controllers.get(node.node_id) != (node.mode == "P"):
                    self.controllers[node.node_id] = node.mode == "P"
                    self.offset += 1
            elif node.mode in ("B", "C") and now >= node.open_at - 0.7:
                self._register_broker(node, now)

    def _register_broker(self, node: Node, now: float) -> None:
        known, zookeeper = self.brokers.get(node.node_id), node.mode == "B"
        if known is None or known.epoch < int(node.started_at * 10):
            self._record(node.node_id, BrokerRegistration(int(node.started_at * 10), zookeeper, True))
            return
        victim, begin, end = self._confused or (-1, 0.0, 0.0)
        fenced = now < node.open_at + 0.3 or (node.node_id == victim and begin <= now < end)
        if known.fenced != fenced:
            self._record(node.node_id, BrokerRegistration(known.epoch, zookeeper, fenced))

    def _record(self, node_id: int, registration: BrokerRegistration) -> None:
        self.brokers[node_id] = registration
        self.offset += 1

    # --- claim, copy, dual write --------------------------------------------------------------------------------------

    def _migrate(self, now: float) -> None:
        assert self.leader is not None
        if self._controller(self.leader).mode != "P" or self.migration is None:
            return
        if self.state is MigrationState.PRE_MIGRATION and self.transaction is None and self._everybody_is_here():
            self._take_controller_node(now)
            self.transaction = "ZK Migration"
            self._copied_at = now + 0.7
        elif self.transaction is not None and self._copied_at is not None and now >= self._copied_at:
            self.transaction, self.state = None, MigrationState.MIGRATION
            self.offset += 200
            self._dual_write_at = now + 0.6
            self._write_migration(now)
        elif self.state is MigrationState.MIGRATION and self._dual_write_at is not None and now >= self._dual_write_at:
            self._write_migration(now)

    def _everybody_is_here(self) -> bool:
        assigned = {replica for partitions in self.topics.values() for replicas in partitions.values()
                    for replica in replicas}
        needed = assigned | self.registered
        ready = all(self.controllers.get(voter, False) for voter in self.voters)
        return ready and all(node_id in self.brokers and self.brokers[node_id].migrating_zk for node_id in needed)

    def _take_controller_node(self, now: float) -> None:
        assert self.leader is not None
        assert self.migration is not None
        self.controller_epoch += 1
        self.controller = ControllerNode(self.leader, False, self.epoch)
        self.migration = MigrationNode(False, self.leader, self.migration.offset, self.epoch,
                                       self.migration.version + 1, now)

    def _write_migration(self, now: float) -> None:
        assert self.leader is not None
        assert self.migration is not None
        self.migration = MigrationNode(False, self.leader, self.offset - 1, self.epoch, self.migration.version + 1, now)

    # --- partitions ---------------------------------------------------------------------------------------------------

    def _replicas(self, now: float) -> None:
        kraft = self.controller is not None and not self.controller.ephemeral
        able = {
            node.node_id for node in self._broker_nodes()
            if now >= node.in_sync_at and not (kraft and self.brokers[node.node_id].fenced)
        }
        for key, replicas in self._partitions():
            self.isr[key] = frozenset(replica for replica in replicas if replica in able)
            if self.leaders[key] not in self.isr[key]:
                self.leaders[key] = min(self.isr[key], default=-1)

    def _partitions(self) -> list[tuple[tuple[str, int], tuple[int, ...]]]:
        return [((topic, index), replicas) for topic, partitions in self.topics.items()
                for index, replicas in partitions.items()]

    # --- what must never be -------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        modes = {node.mode for node in self._broker_nodes()}
        if {"A", "C"} <= modes:
            self.violations.append("brokers on plain ZooKeeper and on KRaft at the same time")
        if "B" in modes and self.leader is None and not self.voters:
            self.violations.append("a broker with the migration flag before there is a quorum")
        self._settled = self._settled or all(len(self.isr[key]) == len(replicas) for key, replicas in self._partitions())
        for key, replicas in self._partitions():
            if self._settled and len(self.isr[key]) < len(replicas) - 1:
                self.violations.append(f"{key[0]}-{key[1]} has {len(self.isr[key])} replicas in sync")

    # --- for the ports ------------------------------------------------------------------------------------------------

    def metadata(self) -> ClusterMetadata:
        """What both sides hold: dual write is never late here. `planted` makes ZooKeeper differ."""
        return ClusterMetadata(topics={
            name: Topic(f"id-of-{name}", {index: Assignment(replicas) for index, replicas in partitions.items()})
            for name, partitions in self.topics.items()
        })

    def _broker_nodes(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.mode in ("A", "B", "C")]

    def _controller(self, node_id: int) -> Node:
        return next(node for node in self.nodes.values() if node.node_id == node_id)

    def at(self, where: Address) -> Node | None:
        """The process that listens there, if its port is open."""
        node = self.nodes.get(where.host.split(".")[0])
        return node if node is not None and node.is_open(self.kubelet.api.now()) else None

    def alive(self) -> dict[int, Address]:
        """The brokers that a client is told of: by ZooKeeper, or by the controllers once they rule."""
        kraft = self.controller is not None and not self.controller.ephemeral
        return {
            node.node_id: Address(address(node.pod, "kafka"), BROKER_PORT) for node in self._broker_nodes()
            if (not self.brokers[node.node_id].fenced if kraft and node.node_id in self.brokers
                else node.node_id in self.registered)
        }


def mode_of(settings: Mapping[str, str]) -> str:
    """The mode that a configuration stands for; "" for one that Kafka would refuse."""
    flag = settings.get("zookeeper.metadata.migration.enable") == "true"
    match settings.get("process.roles"):
        case "controller":
            return "P" if flag else "F"
        case "broker":
            return "C" if "zookeeper.connect" not in settings and not flag else ""
        case None if "zookeeper.connect" in settings:
            return "B" if flag and "controller.quorum.voters" in settings else "A"
    return ""
