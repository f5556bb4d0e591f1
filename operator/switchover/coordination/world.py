"""What one group looks like in ZooKeeper, read at once, and what follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from switchover.coordination import assignment
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.assignment import Strategy, Text
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Malformed, NotJson, Registration
from switchover.shared.partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner node: the thread that it names and the session that it ends with. A guard has no session: 0."""

    thread: str
    session: int = 0


@dataclass(frozen=True)
class World:
    """A consistent read: no child of `ids` and of `migration/ids` came or went while it was made (rule R3).

    `malformed` says of each registration that the old consumer cannot read what is wrong with it. `mode` is None where the
    node does not exist, is empty or says something else; `mode_version` is the transaction that wrote the node (mzxid:
    unlike its version it never comes again), -1 where there is none.
    """

    registrations: Mapping[str, Registration] = field(default_factory=dict)
    malformed: Mapping[str, str] = field(default_factory=dict)
    acknowledgements: Mapping[str, Acknowledgement | None] = field(default_factory=dict)
    mode: Mode | None = None
    mode_data: bytes = b""
    mode_version: int = -1
    topics: Mapping[str, Sequence[int]] = field(default_factory=dict)      # of every topic that may be subscribed to
    owners: Mapping[TopicPartition, Owner] = field(default_factory=dict)
    brokers: frozenset[int] = frozenset()                                  # registered: others no old consumer finds
    strange_owners: tuple[str, ...] = ()                                   # of a session, below `owners`, for no partition

    @cached_property
    def old(self) -> tuple[str, ...]:
        """Members that know nothing of KIP-125: registered, and not below `migration/ids`."""
        return tuple(sorted((self.registrations.keys() | self.malformed.keys()) - self.acknowledgements.keys()))

    @property
    def foreign(self) -> str:
        """A node of a client that is not the Java one, or nothing. pykafka registers the bare name of a topic, and
        owns `owners/b'TOPIC'/LEADER-PARTITION`; it commits to Kafka as nobody's member (pykafka 2.8.0, tried)."""
        named = sorted(consumer_id for consumer_id, why in self.malformed.items() if isinstance(why, NotJson))
        if named:
            return f"the registration of {named[0]} {self.malformed[named[0]]}"
        return f"{self.strange_owners[0]} is no old consumer's owner node" if self.strange_owners else ""

    def streams(self, *, exclude_internal: bool = True) -> dict[str, Mapping[str, int]]:
        """Streams of every member by topic. Raises Malformed of the member that stops them all."""
        for consumer_id, why in self.malformed.items():
            raise Malformed(f"{consumer_id} {why}")
        found: dict[str, Mapping[str, int]] = {}
        for consumer_id, registration in self.registrations.items():
            try:
                found[consumer_id] = registration.streams(self.topics, exclude_internal=exclude_internal)
            except Malformed as problem:
                raise Malformed(f"{consumer_id} {problem}") from None
        return found

    def intended(self, strategy: Strategy, text: Text, *, exclude_internal: bool = True) -> dict[TopicPartition, str]:
        """The thread of every subscribed partition, as all members compute it. Raises Malformed and Ambiguous."""
        return assignment.assigned(strategy, text, self.streams(exclude_internal=exclude_internal), self.topics)
