"""What is asked of Kafka. `client/` implements these; tests fake them.

Every method has a time limit of its own and raises one of the errors of `answers.errors`, never a client library's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from switchover.kafka.group import BrokerGroups, Group, OffsetsTopic, Readiness
from switchover.kafka.node import BrokerExamination, BrokerView, NodeAnswer, Quorum, TopicIds, WholeView
from switchover.lag.group import Membership
from switchover.metadata.cluster import Entity
from switchover.metadata.parity import LogImage
from switchover.network.addresses import Address
from switchover.shared.partition import TopicPartition

LISTENER = "PLAINTEXT"
"""That of the stand-ins, which must be the controller's inter.broker.listener.name."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kafka cluster's id, and where each of its brokers listens."""

    cluster_id: str
    brokers: Mapping[int, Address]


class KafkaNodes(Protocol):
    """Questions to one Kafka node at a time, over the raw protocol."""

    async def api_versions(self, node: Address) -> NodeAnswer: ...
    async def known_brokers(self, broker: Address) -> BrokerView: ...
    async def metadata(self, broker: Address) -> WholeView: ...
    async def quorum(self, voters: Iterable[Address]) -> Quorum:
        """DescribeQuorum from whichever voter leads."""
        ...

    async def log(self, voters: Mapping[int, Address], cluster_id: str | None = None) -> LogImage:
        """Follow the metadata log from where the last call ended to the high watermark, from the leader; Refused where that
        is a controller of another cluster."""
        ...

    async def examine(self, broker: Address, broker_id: int) -> BrokerExamination:
        """What a broker answers about itself in Preflight; Refused names the right that our user lacks."""
        ...

    async def topic_ids(self, broker: Address, broker_id: int) -> TopicIds:
        """The ids of topics as a broker serves them, and as its logs have them; Refused names the right that our user lacks.

        A request for each 2,000 of its logs.
        """
        ...

    async def identity(self, node: Address, cluster_id: str, among: Iterable[int]) -> frozenset[int]:
        """Which of these brokers the one is that listens there; Refused for one of another cluster, and as for `examine`."""
        ...

    async def marker(self, broker: Address, broker_id: int) -> str:
        """The key that names the edits its process was started with; "" without one. Refused as for `examine`."""
        ...

    async def settings(self, broker: Address, broker_id: int) -> Mapping[str, str]:
        """The live configuration of a broker; sensitive values are absent. Refused as for `examine`."""
        ...

    async def min_insync_replicas(self, broker: Address, topics: Iterable[str]) -> Mapping[str, int]:
        """What is in force of each topic; one that this broker does not know is absent. Refused names the right."""
        ...

    async def log_ends(self, broker: Address, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where this broker's own replicas end, whether it leads or follows; one that it does not answer is absent."""
        ...

    async def ask_controller(self, broker: Address) -> None:
        """Ask this broker what it has to pass on to the controller: ListPartitionReassignments, in mode Migration or KRaft.
        Refused where the controller does not let us ask it; it was reached then."""
        ...

    async def set_quota(self, controller: Address, entity: Entity, key: str, value: float | None) -> None:
        """Set one quota through the controller that leads; None removes it, and one that is not there is no error."""
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


class GroupMemberships(Protocol):
    """Who is in the consumer groups, through an ordinary client."""

    async def groups(self) -> Sequence[str]: ...
    async def memberships(self, groups: Iterable[str]) -> Mapping[str, Membership | str]:
        """Of each group its members, or why its coordinator does not list them. A group that does not exist is Dead."""
        ...

    async def close(self) -> None: ...


class Registrar(Protocol):
    """Registers brokers with a replica's controller."""

    async def __call__(self, controller: Address, brokers: Iterable[int], cluster_id: str, level: int,
                       seconds: float) -> Mapping[int, str]:
        """Kafka's errors for those that it refuses."""
        ...
