"""A simulated Kafka cluster with its ZooKeeper, on its way to KRaft and back, as docs/facts/kraft.md has the real one.

What a node does follows from the edits that its pod mounted when it started. The model is deliberately unpleasant where
Kafka is: the claim comes before the last broker's port is open; a fresh controller tells metadata.version 1 for a
second; only the leader answers DescribeQuorum; a broker that has just restarted believes that everything is in sync; a
broker that cached the old address of a new leader is fenced for a while; who wins the election finalizes; a broker that
still names KRaft while the quorum is down takes five minutes to stop; elections are aborted where a partition's state has
a newer epoch than the ZooKeeper controller; brokers registered with a quorum that was wiped never register with the next.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from javaproperties import loads

from fakes.kubelet import Container, Kubelet, address
from fakes.quorum_log import QUOTAS, QuorumLog, as_metadata, put
from fakes.zookeeper_tree import Key, ZooKeeperTree
from invariants.events import Cluster, Event, RolledByKubernetes, Started
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import modes
from switchover.cluster.door import edits
from switchover.metadata.kafka_config import unwritable
from switchover.metadata.parity import BrokerRegistration, MigrationState
from switchover.network.addresses import Address
from switchover.zookeeper.nodes import ControllerNode, MigrationNode, ZooKeeperGroup

CLUSTER_ID = "simulatedClusterAAAAAA"
SESSION_SECONDS = 9.0                  # broker.session.timeout.ms
NAME_CACHE_SECONDS = 30.0              # networkaddress.cache.ttl of a JVM
ALONE_SECONDS = 2.0                    # a leader that lost its followers leads, commits nothing, and writes to ZooKeeper
FORLORN_STOP_SECONDS = 300.0           # of a broker that asks a dead quorum for its controlled shutdown (5.2)
BROKER_PORT = 9092
STOPPED = Mode.STOPPED


BROKER_MODES = (*modes.WITHOUT_QUORUM, Mode.MIGRATION, Mode.KRAFT)
PROTOCOL = "inter.broker.protocol.version"


@dataclass
class Node:
    """One Kafka process. `open_at` is when its port opens, `in_sync_at` when its replicas have caught up.

    `names` is the controller that the broker was last told of, `log` the quorum that it registered with.
    """

    pod: str
    node_id: int
    mode: str
    started_at: float
    open_at: float
    in_sync_at: float
    settings: Mapping[str, str]        # what it started with: its file and the command line, edited
    marker: str
    ready: bool = False
    names: ControllerNode | None = None
    told_at: float | None = None
    log: QuorumLog | None = None

    @property
    def is_broker(self) -> bool:
        return self.mode in BROKER_MODES

    def is_open(self, now: float) -> bool:
        return now >= self.open_at


@dataclass
class Kafka:
    """The cluster. `tick` moves it; the ports read it; `happened` is told of what the invariants want to know."""

    kubelet: Kubelet
    seed: int
    topics: dict[str, dict[int, tuple[int, ...]]]
    happened: Callable[[Event], None]
    nodes: dict[str, Node] = field(default_factory=dict)
    starts: dict[tuple[str, str], int] = field(default_factory=dict)
    tree: ZooKeeperTree = field(default_factory=ZooKeeperTree)
    protocol: str = "3.9"              # of the user's file
    old: bool = False                  # the user's image is older than 3.9; any other image is not
    old_images: set[str] = field(default_factory=set)          # the user's, and those that only claim to be newer
    advertise: str = "names"           # of pods; or their "addresses", or "services" that each lead to a broker
    clusters: dict[str, str] = field(default_factory=dict)     # "ZooKeeper" or a pod -> another id that it says
    planted: dict[str, Any] = field(default_factory=dict)      # fields of ClusterMetadata that ZooKeeper alone has so
    old_groups: dict[str, ZooKeeperGroup] = field(default_factory=dict)     # those that have members in ZooKeeper
    stands_since: float | None = None  # no group has committed anything since then
    aborted: bool = False              # what has come since then was aborted, and nothing comes any more
    zookeeper_hidden: bool = False     # from the operator alone: a network policy, say
    zookeeper_stopped: bool = False    # its servers are scaled away
    # the quorum
    volumes: dict[str, QuorumLog | None] = field(default_factory=dict)
    log: QuorumLog | None = None
    leader: int | None = None
    leader_since: float = 0.0
    stuck_since: float = -1.0                      # the leader of that moment writes to ZooKeeper no more
    voters: frozenset[int] = frozenset()
    last_fetch: dict[int, float] = field(default_factory=dict)
    # partitions: who is in sync in truth, and what was last written and told
    isr: dict[Key, frozenset[int]] = field(default_factory=dict)
    told: dict[Key, tuple[int, frozenset[int]]] = field(default_factory=dict)
    # metadata
    wanted: dict[str, str] = field(default_factory=dict)
    # trouble that tests make
    copy_fails: bool = False
    write_seconds: tuple[float, float] = (0.0, 1.0)
    unregistered: dict[str, int] = field(default_factory=dict)
    """Pods of controllers -> of how many processes, from the first, the only try to register is lost."""
    refuses: set[tuple[str, str]] = field(default_factory=set)     # (pod, mode): it exits when started so
    takes_nobody_back: set[tuple[str, float]] = field(default_factory=set)
    """Processes of brokers, by pod and start, whose changes of in-sync replicas reach no controller any more."""
    passes_nothing_on: set[tuple[str, float]] = field(default_factory=set)
    """Those of whose requests none does."""
    without_heartbeats: set[tuple[str, float]] = field(default_factory=set)
    """And those of whose heartbeats none does."""
    _volume_of: dict[str, str] = field(default_factory=dict)
    _election_at: float | None = None
    _alone_since: float | None = None   # the leader has no majority of followers any more
    _copied_at: float | None = None
    _dual_write_at: float | None = None
    _confused: tuple[int, float, float] | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.whim = random.Random(self.seed)           # of answers: asking changes nothing in the world
        self.kubelet.ends_in = self._ends_in
        self.kubelet.rolled = self._rolled
        for topic, partitions in self.topics.items():
            put(self.wanted, f"topic {topic}", str(partitions))
            for index, replicas in partitions.items():
                self._new_partition((topic, index), replicas)
        self.wanted |= {"config orders": "retention.ms=86400000", "acl orders": "Read", "scram alice": "salt and keys",
                        "quota alice": "1048576"}
        self.tree.metadata = dict(self.wanted)

    @property
    def state(self) -> MigrationState | None:
        """ZkMigrationState as the metadata log has it."""
        return self.log.state if self.log is not None else None

    @property
    def release(self) -> str:
        """The protocol version of a broker with the flag, and of the controllers."""
        return self.protocol if self.protocol in modes.METADATA_LEVELS else modes.RAISED

    @property
    def metadata_version(self) -> int:
        return modes.METADATA_LEVELS[self.release]

    @property
    def rules(self) -> str:
        """Who can act as controller at this moment: ZooKeeper, KRaft or "" for nobody."""
        if not self.tree.claimed:
            return "ZooKeeper" if self.tree.controller is not None else ""
        return "KRaft" if self.commits and self.log is not None and self.log.copied else ""

    @property
    def commits(self) -> bool:
        """The quorum has a leader that has followers."""
        return self.leader is not None and self._alone_since is None

    def _rolled(self, pod: str) -> None:
        self.happened(RolledByKubernetes(self.kubelet.api.now(), pod))

    # --- what administrators do ---------------------------------------------------------------------------------------

    def change(self, name: str, value: str | None) -> bool:
        """Change an item of the metadata; False when nobody can act. None removes it."""
        now = self.kubelet.api.now()
        if self.rules == "KRaft":
            assert self.log is not None
            self.log.change(name, value, now + self._random.uniform(*self.write_seconds))
        elif self.rules == "ZooKeeper":
            put(self.tree.metadata, name, value)
        else:
            return False
        put(self.wanted, name, value)
        return True

    def set_quota(self, user: str, key: str, value: float | None, now: float) -> None:
        """Through the leading controller; a driver that repeated itself at it begins anew after its pause."""
        kind = next(kind for kind, known in QUOTAS.items() if known == key)
        self.change(f"{kind} {user}", None if value is None else f"{value:.0f}")
        self._dual_write_at = now + 13

    def create_topic(self, topic: str, partitions: dict[int, tuple[int, ...]]) -> bool:
        """Create a topic; False when nobody can act."""
        if not self.change(f"topic {topic}", str(partitions)):
            return False
        self.topics[topic] = partitions
        for index, replicas in partitions.items():
            self._new_partition((topic, index), replicas)
        return True

    def _new_partition(self, key: Key, replicas: tuple[int, ...]) -> None:
        self.isr[key] = frozenset(replicas)
        self.told[key] = (replicas[0], frozenset(replicas))
        self.tree.states[key] = self._acting_epoch()

    def _acting_epoch(self) -> int:
        if self.rules == "KRaft":
            assert self.log is not None
            return self.log.epoch
        return self.tree.controller_epoch

    # --- one step of time ---------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        while self.kubelet.stopped:
            self._stop(self.kubelet.stopped.pop(0), now)
        while self.kubelet.started:
            self._start(self.kubelet.started.pop(0), now)
        for node in self.nodes.values():
            if not node.ready and now >= (node.started_at if node.mode == STOPPED else node.open_at) + 1:
                node.ready = True
                self.kubelet.report(node.pod, ready=True)
        self._zookeeper_brokers(now)
        self._quorum(now)
        if self.leader is not None:
            assert self.log is not None
            if self.commits:
                self.log.offset += 1                   # the no-op records of a leader
                self._register(self.log, now)
            self._migrate(self.log, now)
        self._announce(now)
        self._replicas(now)
        self.happened(self.seen(now))

    def _start(self, container: Container, now: float) -> None:
        broker_id = container.ordinal + 1              # `--override broker.id` of the user's command line
        settings = dict(loads(container.file)) | {"broker.id": str(broker_id)}
        mode = mode_of(container.edits, settings, self.protocol)
        if self.old and not self.old_images:
            self.old_images.add(container.image)               # the first to start are the user's
        if mode == Mode.ZOOKEEPER_PINNED and container.image in self.old_images:
            mode = Mode.ZOOKEEPER
        if container.edits is not None:
            settings = edits.applied(container.edits.splitlines(), settings)
        if mode in BROKER_MODES and settings.get("node.id", str(broker_id)) != str(broker_id):
            mode = ""
        empty = container.volume != "" and self.volumes.get(container.volume) is None
        self.happened(Started(now, container.pod, mode, empty))
        if not mode or (container.pod, mode) in self.refuses:
            self.kubelet.report(container.pod, ready=False, crashed=True)
            return
        self.starts[container.pod, mode] = self.starts.get((container.pod, mode), 0) + 1
        node_id = broker_id if mode in BROKER_MODES else int(settings.get("node.id", -1))
        open_at = now + self._random.uniform(*((2.0, 4.0) if mode in modes.RUNNING_CONTROLLERS else (3.0, 8.0)))
        if mode == STOPPED:
            open_at = float("inf")
        self.nodes[container.pod] = Node(container.pod, node_id, mode, now, open_at,
                                         open_at + self._random.uniform(2.0, 5.0),
                                         settings, edits.marker_of(container.edits or ""))
        if mode in modes.RUNNING_CONTROLLERS:
            listed = settings["controller.quorum.voters"].split(",")
            self.voters = frozenset(int(voter.partition("@")[0]) for voter in listed)
            self._volume_of[container.pod] = container.volume
            self.volumes.setdefault(container.volume, None)

    def _stop(self, pod: str, now: float) -> None:
        node = self.nodes.pop(pod, None)
        if node is None:
            return
        if node.is_broker:
            self.tree.registered.discard(node.node_id)
            controller = self.tree.controller
            if controller is not None and controller.ephemeral and controller.node_id == node.node_id:
                self.tree.controller = None
        if node.node_id == self.leader:
            self.leader, self._dual_write_at = None, None
            self._election_at = now + self._random.uniform(0.5, 2.0)
        if self.log is not None and self.commits and (known := self.log.brokers.get(node.node_id)) is not None:
            self.log.register_broker(node.node_id, BrokerRegistration(known.epoch, known.migrating_zk, True))

    def crash(self, pod: str) -> None:
        """A process ends by itself; its container is started again after a while."""
        self._stop(pod, self.kubelet.api.now())
        self.kubelet.report(pod, ready=False, crashed=True)

    def hang(self, pod: str) -> None:
        """A process answers nobody any more, and will not until it is started anew."""
        node = self.nodes[pod]
        node.open_at = node.in_sync_at = float("inf")
        if node.node_id == self.leader:
            self.leader, self._dual_write_at = None, None

    def _ends_in(self, pod: str) -> float:
        """Seconds from the signal to the end of the process."""
        node = self.nodes.get(pod)
        if node is None or node.mode == STOPPED:
            return 0.5
        if node.mode in modes.RUNNING_CONTROLLERS:
            others = [each for each in self.nodes.values() if each.mode in modes.RUNNING_CONTROLLERS and each.pod != pod]
            return self._random.uniform(0.5, 1.5) if others else 5.0
        if self.forlorn(node):
            return FORLORN_STOP_SECONDS
        return self._random.uniform(*((2.5, 7.0) if node.mode == Mode.KRAFT else (0.5, 2.5)))

    def forlorn(self, node: Node) -> bool:
        """A broker in Migration that would ask KRaft for its controlled shutdown, with nobody there to answer."""
        return node.mode == Mode.MIGRATION and node.names is not None and not node.names.ephemeral and not self.commits

    # --- ZooKeeper ----------------------------------------------------------------------------------------------------

    def _zookeeper_brokers(self, now: float) -> None:
        alive = [node for node in self.nodes.values()
                 if node.mode in (*modes.WITHOUT_QUORUM, Mode.MIGRATION) and now >= node.open_at - 0.5]
        self.tree.registered |= {node.node_id for node in alive}
        if self.tree.controller is None and alive:
            self.tree.take_over(self._random.choice(alive).node_id, ephemeral=True, kraft_epoch=-1)
        migrating = [node for node in self.nodes.values()
                     if node.mode == Mode.MIGRATION_CONTROLLER and now > node.started_at + 1]
        if self.tree.migration is None and migrating:
            self.tree.migration = MigrationNode(False, -1, -1, -1, 0, now)

    def _announce(self, now: float) -> None:
        """Brokers in ZooKeeper's modes are told of a new controller by itself, a moment after it has taken over."""
        controller = self.tree.controller
        if controller is None or not self.rules:
            return
        for node in self.nodes.values():
            if node.mode == Mode.KRAFT or not node.is_broker or not node.is_open(now) or node.names == controller:
                continue
            if node.told_at is None:
                node.told_at = now + self._random.uniform(0.1, 3.0)
            elif now >= node.told_at:
                node.names, node.told_at = controller, None

    # --- the quorum ---------------------------------------------------------------------------------------------------

    def _quorum(self, now: float) -> None:
        alive = sorted(
            (node for node in self.nodes.values() if node.mode in modes.RUNNING_CONTROLLERS and node.is_open(now)),
                       key=lambda node: node.node_id)
        for node in alive:
            self.last_fetch[node.node_id] = now
        if len(alive) * 2 <= len(self.voters) or not self.voters:
            self._election_at = None
            self._alone_since = now if self._alone_since is None else self._alone_since
            if now >= self._alone_since + ALONE_SECONDS:
                self.leader = None
            return
        self._alone_since = None
        if self.leader is not None:
            for node in alive:                         # a volume that was empty follows the others
                self.volumes[self._volume_of[node.pod]] = self.log
            return
        if self._election_at is None:
            self._election_at = now + self._random.uniform(0.5, 2.0)
        if now >= self._election_at:
            self._election_at = None
            self._elect(alive, now)

    def _elect(self, alive: list[Node], now: float) -> None:
        logs = [log for node in alive if (log := self.volumes[self._volume_of[node.pod]]) is not None]
        self.log = log = max(logs, key=lambda each: (each.epoch, each.offset)) if logs else QuorumLog()
        candidates = [node for node in alive if self.volumes[self._volume_of[node.pod]] is log] or alive
        winner = self._random.choice(candidates)
        self.leader, self.leader_since = winner.node_id, now
        self.volumes |= {self._volume_of[node.pod]: log for node in alive}
        log.epoch += 1
        log.offset += 1
        if log.state is None:
            log.offset += 4
            log.state = MigrationState.PRE_MIGRATION if winner.mode == Mode.MIGRATION_CONTROLLER else MigrationState.NONE
        elif log.state is MigrationState.MIGRATION and winner.mode == Mode.KRAFT_CONTROLLER:
            log.state = MigrationState.POST_MIGRATION
        elif log.state is MigrationState.MIGRATION:
            if self.tree.migration is not None:
                self.tree.claim(winner.node_id, log.epoch, now)
                self.tree.states = dict.fromkeys(self.tree.states, log.epoch)      # a full resync rewrites them all,
                self.planted = {}                                                  # and whatever others have written
                self._dual_write_at = now + self._random.uniform(1.0, 3.0)
        elif log.transaction is not None:              # AbortTransaction "Controller failover"
            log.transaction, self._copied_at = None, None
        if log.epoch > 1 and (brokers := self._brokers()):     # somebody cached the address that the winner had before
            victim = self._random.choice([node.node_id for node in brokers])
            until = max(now, winner.started_at + NAME_CACHE_SECONDS)
            self._confused = (victim, now + SESSION_SECONDS, until)

    def _register(self, log: QuorumLog, now: float) -> None:
        """Registrations that reach the leader: controllers with their flag, brokers in the mode of their start."""
        for node in self.nodes.values():
            if node.mode in modes.RUNNING_CONTROLLERS:
                lost = self.starts.get((node.pod, Mode.MIGRATION_CONTROLLER), 0) <= self.unregistered.get(node.pod, 0)
                if now >= node.open_at + 0.5 and not lost:
                    log.register_controller(node.node_id, node.mode == Mode.MIGRATION_CONTROLLER)
            elif node.mode in (Mode.MIGRATION, Mode.KRAFT) and now >= node.open_at - 0.7 and node.log in (None, log) and (
                    _has_a_feature(node, self.release)):
                node.log = log
                self._register_broker(log, node, now)

    def _register_broker(self, log: QuorumLog, node: Node, now: float) -> None:
        known, zookeeper = log.brokers.get(node.node_id), node.mode == Mode.MIGRATION
        if known is None or known.epoch < int(node.started_at * 10):
            log.register_broker(node.node_id, BrokerRegistration(int(node.started_at * 10), zookeeper, True))
            return
        victim, begin, end = self._confused or (-1, 0.0, 0.0)
        fenced = (now < node.open_at + 0.3 or (node.node_id == victim and begin <= now < end)
                  or (node.pod, node.started_at) in self.without_heartbeats)
        if known.fenced != fenced:
            log.register_broker(node.node_id, BrokerRegistration(known.epoch, zookeeper, fenced))

    # --- claim, copy, dual write --------------------------------------------------------------------------------------

    def _migrate(self, log: QuorumLog, now: float) -> None:
        assert self.leader is not None
        tree, leader = self.tree, self._controller(self.leader)
        if leader.mode != Mode.MIGRATION_CONTROLLER or tree.migration is None:
            return
        if not self.commits and log.state is not MigrationState.MIGRATION:
            return
        if log.state is MigrationState.PRE_MIGRATION and log.transaction is None and self._everybody_is_here(log):
            if tree.migration.offset > 0:
                self._phantom_copy(log, now)
                return
            tree.claim(self.leader, log.epoch, now)
            log.transaction = "ZK Migration"
            self._copied_at = now + 0.7
        elif log.transaction is not None and self._copied_at is not None and now >= self._copied_at:
            if self.copy_fails:
                self.crash(leader.pod)                 # "Aborting the ZK migration"
                return
            log.copy(tree.metadata)
            self._dual_write_at = now + 0.6
            tree.reached(log.offset - 1, now)
        elif log.state is MigrationState.MIGRATION and self._dual_write_at is not None and now >= self._dual_write_at:
            if self.stuck_since == self.leader_since:
                return
            if unwritable(as_metadata(log.metadata).quotas) or tree.stateless:
                tree.reached(tree.migration.offset, now)           # it begins again and again: the offset stays
                return
            tree.reached(log.write_behind(tree.metadata, now), now)

    def _phantom_copy(self, log: QuorumLog, now: float) -> None:
        """`/migration` is an older quorum's: this one takes it for its own work, and its empty image for the truth."""
        stale = self.tree.migration
        assert stale is not None
        assert self.leader is not None
        if not self.tree.claimed:
            self.tree.claim(self.leader, log.epoch, now)
        if (log.epoch, log.offset) > (stale.epoch, stale.offset):
            self.tree.metadata.clear()

    def _everybody_is_here(self, log: QuorumLog) -> bool:
        assigned = {replica for partitions in self.topics.values() for replicas in partitions.values()
                    for replica in replicas}
        needed = assigned | self.tree.registered
        ready = all(log.controllers.get(voter, False) for voter in self.voters)
        return ready and all(node_id in log.brokers and log.brokers[node_id].migrating_zk for node_id in needed)

    # --- partitions ---------------------------------------------------------------------------------------------------

    def _replicas(self, now: float) -> None:
        able = self._able(now)
        epoch = self._acting_epoch()
        for key, replicas in self._partitions():
            in_sync = frozenset(replica for replica in replicas if replica in able)
            if self.leads_and_is_stuck(self.told[key][0]):
                in_sync &= self.isr[key]
            if self.rules == "ZooKeeper" and (late := self.tree.behind.get(key, 0)):
                if in_sync >= self.isr[key]:
                    continue                           # the controller does not believe the leader
                self.tree.behind[key] = late - 1       # its own change counts
            self.isr[key] = in_sync
            leader = self.told[key][0]
            if not self.rules or (self.rules == "ZooKeeper" and self.tree.states[key] > epoch):
                continue                               # nobody can elect: everybody goes on naming the dead leader
            if leader not in self.isr[key]:
                leader = min(self.isr[key], default=-1)
                self.tree.states[key] = epoch
            self.told[key] = leader, self.isr[key]

    def _able(self, now: float) -> set[int]:
        """The brokers that a leader would take back."""
        fenced = {broker for broker, known in (self.log.brokers if self.log is not None else {}).items() if known.fenced}
        away = fenced if self.rules == "KRaft" else set()
        return {node.node_id for node in self._brokers() if now >= node.in_sync_at} - away

    def process(self, broker_id: int) -> tuple[str, float]:
        """The one of a broker that runs now, by pod and start."""
        return next((node.pod, node.started_at) for node in self._brokers() if node.node_id == broker_id)

    def leads_and_is_stuck(self, broker_id: int) -> bool:
        return any(node.node_id == broker_id and (node.pod, node.started_at) in self.takes_nobody_back
                   for node in self._brokers())

    def _partitions(self) -> list[tuple[Key, tuple[int, ...]]]:
        return [((topic, index), replicas) for topic, partitions in self.topics.items()
                for index, replicas in partitions.items()]

    # --- for the invariants -------------------------------------------------------------------------------------------

    def seen(self, now: float) -> Cluster:
        """The truth of this moment."""
        pods = {node.node_id: node.pod for node in self._brokers()}
        controllers = {node.pod: node for node in self.nodes.values() if not node.is_broker}
        tree, log = self.tree, self.log
        alive = {node.node_id for node in self._brokers() if node.is_open(now)}
        named = {node_id: f"kafka-{node_id - 1}" for _, replicas in self._partitions() for node_id in replicas} | pods
        ruling = log.metadata if tree.claimed and log is not None and log.copied else tree.metadata
        return Cluster(
            now,
            brokers={node.pod: node.mode for node in self._brokers()},
            controllers={pod: node.mode for pod, node in controllers.items()},
            cluster_id=CLUSTER_ID,
            leader=next((pod for pod, node in controllers.items() if node.node_id == self.leader), ""),
            quorum=self.commits,
            state=log.state.name if log is not None and log.state is not None else None,
            dual_write_age=now - tree.migration.mtime if tree.migration is not None else None,
            rules=self.rules,
            claimed=tree.claimed,
            migration_offset=tree.migration.offset if tree.migration is not None else None,
            registered=frozenset(named[node_id] for node_id in tree.registered),
            names_kraft=frozenset(node.pod for node in self._brokers() if self.forlorn(node)),
            in_sync={key: frozenset(named[node_id] for node_id in isr) for key, isr in self.isr.items()},
            replicas={key: frozenset(named[node_id] for node_id in replicas) for key, replicas in self._partitions()},
            stuck=frozenset(pods[broker_id] for broker_id in pods if self.leads_and_is_stuck(broker_id)),
            caught_up={key: frozenset(named[node_id] for node_id in replicas if node_id in self._able(now))
                       for key, replicas in self._partitions() if self.leads_and_is_stuck(self.told[key][0])},
            leaderless=frozenset(key for key, (leader, _) in self.told.items() if leader not in alive),
            epoch=tree.controller_epoch,
            partition_epoch=tree.partition_epoch,
            metadata=ruling,
            metadata_wanted=self.wanted,
            zookeeper_stopped=self.zookeeper_stopped,
        )

    # --- for the ports ------------------------------------------------------------------------------------------------

    def _brokers(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.is_broker]

    def _controller(self, node_id: int) -> Node:
        return next(node for node in self.nodes.values() if node.node_id == node_id)

    def at(self, where: Address) -> Node | None:
        """The process that listens there, if its port is open."""
        node = self._led_to(where)
        return node if node is not None and node.is_open(self.kubelet.api.now()) else None

    def refused_at(self, where: Address) -> bool:
        """A pod is there and its port is closed, as that of a controller that was told to wait."""
        node = self._led_to(where)
        return node is not None and node.mode == STOPPED

    def _led_to(self, where: Address) -> Node | None:
        first = where.host.split(".")[0]
        return next((node for node in self.nodes.values() if first == node.pod or where.host == self.ip(node.pod)
                     or where == service_of(node)), None)

    def ip(self, pod: str) -> str:
        """The pod's address at this moment."""
        found = self.kubelet.api.objects.get(("pods", pod), {})
        return next((each["ip"] for each in (found.get("status") or {}).get("podIPs", ())), "")

    def advertised(self, node: Node) -> Address:
        """Where a broker says that it is."""
        match self.advertise:
            case "addresses":
                return Address(self.ip(node.pod), BROKER_PORT)
            case "services":
                return service_of(node)
        return Address(address(node.pod, "kafka"), BROKER_PORT)

    def alive(self) -> dict[int, Address]:
        """The brokers that a client is told of: by ZooKeeper, or by the controllers once they rule."""
        known = self.log.brokers if self.tree.claimed and self.log is not None else {}
        return {
            node.node_id: self.advertised(node) for node in self._brokers()
            if (not known[node.node_id].fenced if node.node_id in known else node.node_id in self.tree.registered)
        }

    def controller_named_by(self, node: Node) -> int:
        """What a broker answers in Metadata: the true controller while ZooKeeper rules, then any living broker (3.2)."""
        if node.mode != Mode.KRAFT and (node.names is None or node.names.ephemeral):
            return -1 if node.names is None else node.names.node_id
        alive = sorted(self.alive())
        return self.whim.choice(alive) if alive else -1


def service_of(node: Node) -> Address:
    """The load balancer of one broker."""
    return Address("203.0.113.7", 31000 + node.node_id)


def _has_a_feature(node: Node, release: str) -> bool:
    """Whether the controllers take its registration: one with the flag must have exactly their metadata.version."""
    return node.mode == Mode.KRAFT or modes.release_of(node.settings.get(PROTOCOL, "")) == release


def mode_of(directives: str | None, given: Mapping[str, str], protocol: str = "3.9") -> str:
    """The mode in which Kafka runs that was given these properties, and starts through a door with these directives or,
    for None, without one; "" where it would not start. The user's own file has `protocol`."""
    lines = (directives or "").splitlines()
    if directives is not None and not lines:
        return ""                                      # the door refuses: this pod has no mode
    if lines[:1] == ["mode Stopped"]:
        return STOPPED
    settings = edits.applied(lines, given)
    flag = settings.get("zookeeper.metadata.migration.enable") == "true"
    match settings.get("process.roles"):
        case "controller":
            return Mode.MIGRATION_CONTROLLER if flag else Mode.KRAFT_CONTROLLER
        case "broker":
            return Mode.KRAFT if "zookeeper.connect" not in settings and not flag else ""
        case None if "zookeeper.connect" in settings:
            if flag and "controller.quorum.voters" in settings:
                return Mode.MIGRATION
            if modes.release_of(settings[PROTOCOL]) != protocol:
                return Mode.ZOOKEEPER_RAISED
            return Mode.ZOOKEEPER_PINNED if lines[:1] == ["mode U"] else Mode.ZOOKEEPER
    return ""
