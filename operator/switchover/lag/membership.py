"""What must be true of a group beside its lag, from what its coordinator tells an ordinary client."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from switchover.lag.group import Group, TopicPartition


@dataclass(frozen=True, slots=True)
class Membership:
    """A group's state in Kafka's word, and what each member (by its id) is assigned."""

    state: str
    assigned: Mapping[str, frozenset[TopicPartition]]

    @property
    def topics(self) -> frozenset[str]:
        """Those of which something is assigned: DescribeGroups tells an ordinary client no subscription."""
        return frozenset(each.topic for owned in self.assigned.values() for each in owned)

    @property
    def generation(self) -> int:
        """Stands for the generation, which no description of a classic group tells: another one whenever who owns what
        has changed."""
        owners = sorted((member, sorted(owned)) for member, owned in self.assigned.items())
        return int.from_bytes(blake2b(repr(owners).encode(), digest_size=6).digest())


def group_of(membership: Membership, partitions: Mapping[str, int], committed: frozenset[str]) -> Group:
    """The group's side of an evaluation. `partitions` is how many each topic has.

    While nothing is assigned (no member, or a rebalance) the topics that it has `committed` to stand for the subscribed
    ones. Such a group never passes, so a commit opens no gate here.
    """
    assigned = Counter(each for owned in membership.assigned.values() for each in owned)
    topics = membership.topics or committed
    expected = assigned.keys() | {
        TopicPartition(topic, number) for topic in topics for number in range(partitions.get(topic, 0))}
    return Group(
        frozenset(expected),
        stable=None if membership.state == "Unknown" else membership.state == "Stable",
        generation=membership.generation,
        sole_owners=all(assigned[each] == 1 for each in expected))
