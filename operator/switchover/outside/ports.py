"""What Switchover asks of the outside world, in our words. Adapters implement these; tests fake them.

Every method has a time limit of its own and raises one of the three errors below, never a client library's.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from switchover.cluster.examination import BrokerExamination, StorageClasses, TemplateChange, ZooKeeperRights
from switchover.cluster.facts import (
    Address,
    BrokerView,
    ControllerNode,
    LogImage,
    MigrationNode,
    NodeAnswer,
    Quorum,
    Workload,
    ZooKeeperState,
    ZooKeeperTopics,
)
from switchover.cluster.rehearsal.settings import Command
from switchover.coordination.mode import Mode
from switchover.coordination.world import World
from switchover.engine.calls import Call
from switchover.engine.figures import Figure
from switchover.kafka.group import BrokerGroups, Group, OffsetsTopic, Readiness
from switchover.kubernetes.jobs import JobRun
from switchover.kubernetes.members import MemberWorkload
from switchover.lag.membership import Membership
from switchover.lag.window import Asked, Sweep
from switchover.metadata.cluster import Entity
from switchover.metadata.parity import TreeReading
from switchover.outside.addresses import looked_up
from switchover.outside.credentials import ANYWHERE, AllowedServers
from switchover.partition import TopicPartition
from switchover.zookeeper.groups import GroupMigration, IdleGroups, ZooKeeperGroup
from switchover.zookeeper.tree import Tree


class Unreachable(Exception):
    """Nobody answered, or too late: nothing is known; try again."""


class NotListening(Unreachable):
    """The host answered that nobody listens on that port, or there is no such host."""


class Untold(Unreachable):
    """A broker answered that it knows of no broker, not even of itself."""


class Refused(Exception):
    """The other side understood and said no (rights, bad input): a person must act. The message says what to do."""


class Malformed(Refused):
    """What was read breaks the protocol that it should follow: whoever wrote it must change, no right helps."""


class Fenced(Exception):
    """Somebody else changed it since we read it: do nothing, read again."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a Kafka cluster or ZooKeeper: address list and the client properties of the credentials Secret.

    A server that another one told of gets the credentials only if `allowed` has it. `within` is the namespace in which names
    mean what they say (outside/addresses.py), "" where that is the one that we run in.
    """

    servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    allowed: AllowedServers = ANYWHERE
    within: str = ""

    def __repr__(self) -> str:                     # secrets never reach a log
        return f"Access({self.servers!r})"

    @property
    def reached(self) -> str:
        """The list as it is looked up from here."""
        servers, slash, chroot = self.servers.partition("/")
        split = (server.strip().rpartition(":") for server in servers.split(","))
        return ",".join(f"{looked_up(host, self.within)}{colon}{port}" for host, colon, port in split) + slash + chroot

    @property
    def addresses(self) -> Sequence[Address]:
        """The servers of the list, in their order. Raises Refused for what is none."""
        found = []
        for server in self.servers.partition("/")[0].split(","):
            host, _, port = server.strip().rpartition(":")
            if not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
                raise Refused(f"server {server.strip()!r} is not of the form HOST:PORT")
            found.append(Address(host.removeprefix("[").removesuffix("]"), int(port)))
        return found


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kafka cluster's id, and where each of its brokers listens."""

    cluster_id: str
    brokers: Mapping[int, Address]


class KafkaNodes(Protocol):
    """Questions to one Kafka node at a time, over the raw protocol."""

    async def api_versions(self, node: Address) -> NodeAnswer: ...
    async def metadata(self, broker: Address) -> BrokerView: ...
    async def quorum(self, voters: Iterable[Address]) -> Quorum:
        """DescribeQuorum from whichever voter leads."""
        ...

    async def log(self, voters: Mapping[int, Address]) -> LogImage:
        """Follow the metadata log from where the last call ended to the high watermark, from the leader."""
        ...

    async def examine(self, broker: Address, broker_id: int) -> BrokerExamination:
        """What a broker tells of itself in Preflight; Refused names the right that our user lacks."""
        ...

    async def identity(self, node: Address, cluster_id: str, among: Iterable[int]) -> frozenset[int]:
        """Which of these brokers the one is that listens there; Refused for one of another cluster, and as for `examine`."""
        ...

    async def marker(self, broker: Address, broker_id: int) -> str:
        """The key by which its process tells the edits that started it; "" without one. Refused as for `examine`."""
        ...

    async def set_quota(self, controller: Address, entity: Entity, key: str, value: float | None) -> None:
        """Set one quota through the controller that leads; None removes it, and one that is not there is no error."""
        ...

    async def close(self) -> None: ...


class KafkaAdmin(Protocol):
    """Questions to the cluster through an ordinary client."""

    async def min_insync_replicas(self, topics: Iterable[str]) -> Mapping[str, int]: ...
    async def broker_settings(self, broker_id: int) -> Mapping[str, str]:
        """The live configuration of a broker; sensitive values are absent."""
        ...

    async def close(self) -> None: ...


class Groups(Protocol):
    """Consumer groups, asked of the brokers that coordinate them.

    While a coordinator moves or loads its groups every answer is Unreachable, and says so. Refused names the right that our
    user lacks. Asking for a group's coordinator makes Kafka create `__consumer_offsets` where there is none yet.
    """

    async def describe(self, group: str) -> Group:
        """A group that does not exist is DEAD.

        Refused also names a member of a classic group whose bytes are not the consumer protocol.
        """
        ...

    async def cluster(self) -> Cluster: ...
    async def broker(self, broker: Address, broker_id: int) -> BrokerGroups:
        """What a broker says of itself."""
        ...

    async def readiness(self, group: str, topics: Iterable[str]) -> Readiness:
        """Whether the group's coordinator serves the consumer protocol, and us these topics. Changes nothing."""
        ...

    async def all_support(self, group: str, strategy: str) -> bool:
        """Whether every classic member offers that strategy; right after the coordinator has moved False may be wrong.

        Only for a group that is Stable and has members: of others it is not asked, and Unreachable. It leaves a pending
        member behind in a classic group, for `group.min.session.timeout.ms` (6 s): that does nothing while the group stays
        Stable, but a rebalance in that time waits for its end, so hold every restart back as long. Never leave the group
        for it: that rebalances (docs/facts/groups.md#do-all-members-offer-a-strategy).
        """
        ...

    async def coordinators(self, group: str) -> frozenset[int]:
        """Node ids of the brokers that answer for the group; who cannot be reached answers for nobody."""
        ...

    async def coordinated(self) -> Mapping[int, int]:
        """Node id -> members of all consumer and classic groups that this broker coordinates."""
        ...

    async def offsets_topic(self) -> OffsetsTopic: ...
    async def partitions(self, topics: Iterable[str]) -> Mapping[str, int]:
        """The number of partitions of each topic; one that does not exist is absent."""
        ...

    async def close(self) -> None: ...


class GroupOffsets(Protocol):
    """How far consumer groups are, all of them at once."""

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        """A reading of every group asked for; what could not be read of one is told in its reading.

        Raises only when no broker answers at all, or none accepts us.
        """
        ...

    async def close(self) -> None: ...


class GroupMemberships(Protocol):
    """Who is in the consumer groups, through an ordinary client."""

    async def groups(self) -> Sequence[str]: ...
    async def memberships(self, groups: Iterable[str]) -> Mapping[str, Membership | str]:
        """Of each group its members, or why its coordinator does not tell them. A group that does not exist is Dead."""
        ...


class ZooKeeperGroups(Protocol):
    """Consumer groups that ZooKeeper coordinates, or did; the connect string has the brokers' chroot.

    Refused names the right that our credentials lack.
    """

    async def world(self, group: str) -> World:
        """What the group looks like, read at once; a group that does not exist has no member and no mode."""
        ...

    async def offsets(self, group: str) -> Mapping[TopicPartition, int]:
        """The offsets that are committed to ZooKeeper; one that the old consumer takes for none is absent."""
        ...

    async def set_mode(self, group: str, mode: Mode, version: int) -> None:
        """Write the mode znode over that `World.mode_version`, or create it for -1; that it says so already is success.

        Fenced says what is there in its place.
        """
        ...

    async def remove_guards(self, group: str, partitions: Collection[TopicPartition]) -> None:
        """Delete the owner nodes of these partitions that belong to no session; one that is gone is done."""
        ...

    async def missing_rights(self, group: str) -> tuple[str, ...]:
        """What we lack, by the nodes' ACLs, to own the mode znode and to remove guards, such as `WRITE on /consumers/…`."""
        ...

    async def close(self) -> None: ...


class ZooKeeper(Protocol):
    """The ZooKeeper tree of a Kafka cluster (chroot included in the connect string)."""

    async def state(self) -> ZooKeeperState: ...
    async def topics(self) -> ZooKeeperTopics: ...
    async def metadata(self, secret: str | None, *, states: bool = False) -> TreeReading:
        """All metadata that dual write carries; passwords decrypted with `secret`. May take long; one at a time.

        With `states` also the versions of the partitions' states: a request for each.
        """
        ...

    async def groups(self) -> Mapping[str, ZooKeeperGroup]:
        """The consumer groups that have members below `/consumers`."""
        ...

    async def idle_groups(self) -> IdleGroups:
        """When the groups without members committed last, of as many as a bounded number of reads allows."""
        ...

    def servers(self) -> Sequence[Address]: ...
    async def connections(self, server: Address) -> int:
        """Clients of one server by the four-letter word `srvr`, the asker not counted.

        NotListening where no server accepts a connection; Refused where the server does not tell.
        """
        ...

    async def partition_epoch(self) -> int:
        """The largest `controller_epoch` in the state of any partition; 0 where there is none."""
        ...

    async def stateless(self) -> Mapping[tuple[str, int], tuple[int, ...]]:
        """The partitions that a topic's node lists and that have no state: (topic, index) -> replicas."""
        ...

    async def create_states(self, replicas: Mapping[tuple[str, int], tuple[int, ...]], controller_epoch: int) -> None:
        """Create partitions' states, with all replicas in sync and the first one as leader; one that is there stays.

        Fenced when `/controller_epoch` is not `controller_epoch` any more.
        """
        ...

    async def delete(self, path: str, version: int, controller_epoch: int) -> None:
        """Delete a node in that version while `/controller_epoch` is still that; Fenced otherwise. Gone is success."""
        ...

    async def raise_epoch(self, epoch: int, expected: int) -> None:
        """Set `/controller_epoch`; Fenced when it is not `expected` any more."""
        ...

    async def raise_versions(self, epochs: Mapping[tuple[str, int], int], controller_epoch: int) -> None:
        """Write partitions' states again as they are until their versions are no less; a partition that is gone is done.

        Fenced when `/controller_epoch` is not `controller_epoch` any more, or a state was written meanwhile.
        """
        ...

    async def rights(self) -> ZooKeeperRights:
        """What our credentials may do with the nodes that a rollback writes, by their ACLs."""
        ...

    async def server_mode(self, server: Address) -> str:
        """standalone, leader, follower or observer, by the four-letter word `srvr`; Refused where it does not tell."""
        ...

    async def close(self) -> None: ...


class Workloads(Protocol):
    """Workloads, pods and what belongs to them, in the operator's namespace only."""

    async def stateful_set(self, name: str) -> Workload | None: ...
    async def member_workloads(self, wanted: Iterable[tuple[str, str]]) -> Mapping[str, MemberWorkload | None]:
        """Deployments and StatefulSets by (kind, name) with their pods, budgets and autoscalers; None: it does not exist."""
        ...

    async def others_called(self, names: Iterable[str]) -> Mapping[str, str]:
        """Of these names those that a workload of a kind that is not moved has: name -> kind."""
        ...

    async def config_map(self, name: str) -> Mapping[str, str] | None:
        """All of a ConfigMap; None when it does not exist."""
        ...

    async def client_properties(self, secret: str) -> Mapping[str, str]: ...
    async def node_files(self, secret: str) -> Mapping[str, str]:
        """The Secret that holds one file a pod; empty when it does not exist."""
        ...

    async def write_node_files(self, secret: str, files: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Write it over what `node_files` last read; Fenced when somebody else has written it since."""
        ...

    async def preview_stateful_set(self, name: str, operations: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The object that this JSON patch would make, by a dry run; Fenced when one of its tests fails."""
        ...

    async def apply(self, manifest: Mapping[str, Any]) -> None:
        """Server-side apply with the fixed field manager."""
        ...

    async def create(self, manifest: Mapping[str, Any]) -> None:
        """Create an object; Fenced when the name is taken."""
        ...

    async def patch(self, api_version: str, kind: str, name: str, operations: Sequence[Mapping[str, Any]],
                    subresource: str = "") -> None:
        """JSON patch; Fenced when one of its tests fails or the object is gone."""
        ...

    async def manifest(self, api_version: str, kind: str, name: str) -> Mapping[str, Any] | None:
        """An object as the API server has it; None when it does not exist."""
        ...

    async def delete_object(self, api_version: str, kind: str, name: str, uid: str = "") -> None:
        """Delete, dependants first; nothing to do when it does not exist, or bears another uid."""
        ...

    async def job(self, name: str) -> JobRun | None:
        """A Job with what its newest pod left; None: it does not exist."""
        ...

    async def original(self, name: str) -> Mapping[str, Any] | None:
        """The data of ControllerRevision `name`, in which we keep what a StatefulSet was before we touched it."""
        ...

    async def volume_claims(self, labels: Mapping[str, str]) -> Sequence[str]: ...
    async def evict(self, pod: str, uid: str) -> None:
        """Evict with a uid precondition; Refused carries the budget's words on 429; a pod already gone is success."""
        ...

    async def delete_pod(self, pod: str, uid: str) -> None:
        """Delete with a uid precondition; for pods that are not Ready and would block their own repair."""
        ...

    async def hold_lease(self, name: str, holder: str, seconds: int) -> str:
        """Take or renew the Lease when it is free, expired or ours; the holder after the call."""
        ...

    async def release_lease(self, name: str, holder: str) -> None: ...


class Survey(Protocol):
    """What is asked of Kubernetes beside what a migration changes; nothing of it changes anything."""

    async def managers_of(self, objects: Iterable[tuple[str, str, str]]) -> Mapping[str, str]:
        """Of those that exist (API version, kind, name): "Kind name" -> its label app.kubernetes.io/managed-by or ""."""
        ...

    async def missing_rights(self, secrets: Iterable[str]) -> tuple[str, ...]:
        """Which rights that a migration needs we do not have, in words such as `patch statefulsets.apps`.

        Those to Secrets are asked for by the names of these, since the Role may name the Secrets that it is for.
        """
        ...

    async def storage_classes(self) -> StorageClasses:
        """Refused without the right to read them, which no Role can give: they belong to no namespace."""
        ...

    async def classes_in_use(self) -> frozenset[str]:
        """Storage classes of the bound volume claims in our namespace."""
        ...

    async def try_patch(self, kind: str, name: str, operations: Sequence[Mapping[str, Any]]) -> TemplateChange:
        """Dry run of a JSON patch of a workload, admission included; Refused in the words of whoever refuses it."""
        ...

    async def time(self) -> float:
        """The API server's clock: seconds since the epoch, whole ones."""
        ...

    async def group_migrations(self) -> Mapping[str, tuple[GroupMigration, ...]]:
        """The ConsumerGroupMigrations in our namespace with coordination to Kafka, by the group that they move."""
        ...


@dataclass(frozen=True, slots=True)
class ReplicaNodes:
    """How far a replica's controller has got, by the nodes that it writes; None for one that is not there."""

    controller_epoch: int | None
    controller: ControllerNode | None
    migration: MigrationNode | None


class ZooKeeperTree(Protocol):
    """The whole tree of Kafka's metadata in ZooKeeper, node by node."""

    async def export(self) -> Tree:
        """What may be read of it; nothing is written."""
        ...

    async def close(self) -> None: ...


class ReplicaTree(Protocol):
    """The ZooKeeper of a rehearsal's replica; a tree lies below a chroot of its own."""

    async def load(self, chroot: str, nodes: Mapping[str, bytes | None]) -> None:
        """Create it. Refused where something is there already: no other ZooKeeper is ever written to."""
        ...

    async def export(self, chroot: str) -> Tree: ...
    async def replica_nodes(self, chroot: str) -> ReplicaNodes: ...
    async def delete(self, chroot: str, path: str, version: int, controller_epoch: int) -> None:
        """As `ZooKeeper.delete`, which a rollback uses."""
        ...


class ReplicaProcesses(Protocol):
    """The processes of a rehearsal's replica, by name; of each name one runs at a time."""

    def start(self, name: str, command: Command) -> None:
        """Start it, once the one of that name has ended."""
        ...

    def exit_code(self, name: str) -> int | None:
        """Of the newest of that name; None while it runs."""
        ...

    def log(self, name: str) -> Iterator[str]:
        """The lines of the newest of that name."""
        ...

    def stop(self, name: str) -> None:
        """Ask it to end; SIGKILL after 10 s."""
        ...

    def data_directory(self, path: str, files: Mapping[str, str]) -> None:
        """Make a directory with these files, in which every process may write."""
        ...


class Registrar(Protocol):
    """Registers brokers with a replica's controller."""

    async def __call__(self, controller: Address, brokers: Iterable[int], cluster_id: str, level: int,
                       seconds: float) -> Mapping[int, str]:
        """Kafka's errors for those that it refuses."""
        ...


class Migrations(Protocol):
    """The custom resource."""

    async def get(self, name: str) -> Mapping[str, Any] | None: ...
    async def record(self, name: str, uid: str, resource_version: str, status: Mapping[str, Any]) -> str:
        """Replace the status if the object still is what was read; the new resourceVersion. Fenced otherwise."""
        ...

    async def announce(self, name: str, uid: str, reason: str, message: str, *, warning: bool) -> None:
        """A Kubernetes Event on the resource."""
        ...


class Telemetry(Protocol):
    """Figures for whoever watches from outside."""

    def told(self, name: str, uid: str, figures: Sequence[Figure], waits: Mapping[str, float]) -> None:
        """The figures of a migration after a pass, and the seconds that each gate has made it wait since the last."""
        ...


Undelivered = Callable[[str], Awaitable[None]]
"""Told why a message was not taken, which holds no secret. Never raises."""


class Notify(Protocol):
    """Somebody outside who wants news of the migrations of one kind in one namespace."""

    def __call__(self, name: str, uid: str, call: Call, undelivered: Undelivered) -> None:
        """Tell of the call if it is news. Never raises, and never waits for who is told."""
        ...


class Clock(Protocol):
    """Wall-clock time, so that tests can own it."""

    def now(self) -> float: ...
