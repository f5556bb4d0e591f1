"""Which partitions are to be a member's, and what the first member by name does for all: guards, members that gave up."""

from collections.abc import Mapping

from switchover.consumer.member.following import Following, Rules
from switchover.consumer.member.holdings import Holding, Holdings, Requests
from switchover.consumer.member.states import ENDING
from switchover.consumer.messages import Guard, Partitions, Wake
from switchover.coordination.assignment import Ambiguous, thread_id
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Malformed
from switchover.coordination.world import World
from switchover.shared.grouped import grouped
from switchover.shared.partition import TopicPartition


class Share:
    """`trouble`: why the partitions of a member cannot be computed. All is computed once for each reading."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.trouble = ""
        self._computed: tuple[World, Mapping[TopicPartition, str]] | None = None
        self._own: tuple[World, Mapping[TopicPartition, str]] | None = None
        self._dealt: tuple[World, Partitions, Mapping[TopicPartition, str]] | None = None

    def intended(self, world: World) -> Mapping[TopicPartition, str]:
        """The thread of every partition of the group. Raises Malformed and Ambiguous."""
        if self._computed is None or self._computed[0] is not world:
            self._computed = world, world.intended(
                self._rules.strategy, self._rules.text, exclude_internal=self._rules.exclude_internal)
        return self._computed[1]

    def by_zookeeper(self, world: World, held: Mapping[TopicPartition, Holding]) -> Mapping[TopicPartition, str]:
        """The thread of each of ours; what is held already where nobody's can be computed."""
        if self._own is None or self._own[0] is not world:
            try:
                intended = self.intended(world)
            except (Malformed, Ambiguous) as problem:
                self.trouble = str(problem)
                return {partition: holding.thread for partition, holding in held.items() if holding.phase not in ENDING}
            own = f"{self._rules.consumer_id}-"
            self._own = world, {partition: thread for partition, thread in intended.items() if thread.startswith(own)}
        self.trouble = ""
        return self._own[1]

    def by_kafka(self, world: World, assigned: Partitions) -> Mapping[TopicPartition, str]:
        """Kafka knows members and no threads: its partitions are dealt to our streams in turn."""
        if self._dealt is None or self._dealt[0] is not world or self._dealt[1] is not assigned:
            self._dealt = world, assigned, self._deal(world, assigned)
        return self._dealt[2]

    def _deal(self, world: World, assigned: Partitions) -> Mapping[TopicPartition, str]:
        own = world.registrations[self._rules.consumer_id].streams(
            {each.topic for each in assigned}, exclude_internal=self._rules.exclude_internal)
        by_topic = grouped((partition.topic, partition) for partition in sorted(assigned))
        return {
            partition: thread_id(self._rules.consumer_id, index % max(own.get(topic, 1), 1))
            for topic, partitions in by_topic.items() for index, partition in enumerate(partitions)
        }


PARKED = 10.0
"""Seconds without an owner after which an old member has given up: four attempts, two seconds apart
(docs/facts/coordination.md#the-old-consumers-rebalance)."""


class FirstMember:
    """Every member has one; it does nothing in those that are not the first."""

    def __init__(self, rules: Rules, following: Following, share: Share, holdings: Holdings, requests: Requests) -> None:
        self._rules, self.following, self._share, self.holdings = rules, following, share, holdings
        self._requests = requests
        self._fresh = False                                 # a reading that was not looked at
        self._orphans: dict[TopicPartition, float] = {}     # since when an old member's partition has no owner

    def see(self) -> None:
        """The group was read."""
        self._fresh = True

    def look(self, world: World, now: float) -> None:
        """Once for each reading."""
        first = min(world.acknowledgements, default="")
        if not self._fresh or self.following.mode is None or self._rules.consumer_id != first:
            return
        self._fresh = False
        try:
            intended = self._share.intended(world)
        except (Malformed, Ambiguous):
            return
        if self.following.mode is Mode.KAFKA:
            bare = frozenset(intended.keys() - world.owners.keys() - self.holdings.keys())
            if bare:
                self._requests.ask(Guard(bare))
        elif self.following.target(world)[0] is Mode.ZOOKEEPER:
            self._take_guards(world)
            enabled = tuple(f"{each}-" for each in world.acknowledgements)
            self._wake(frozenset(partition for partition, thread in intended.items()
                                 if partition not in world.owners and not thread.startswith(enabled)), now)

    def _take_guards(self, world: World) -> None:
        """In front of an old member a guard hides offsets that only Kafka has: who takes it writes both stores first."""
        for partition, owner in world.owners.items():
            if not owner.session and partition not in self.holdings and partition not in self.holdings.wanted:
                self.holdings.take(partition, thread_id(self._rules.consumer_id, 0))

    def _wake(self, orphans: Partitions, now: float) -> None:
        """Defect D5: an old member that lost its claim four times sleeps until something changes below `ids`."""
        self._orphans = {partition: self._orphans.get(partition, now) for partition in orphans}
        if any(since <= now - PARKED for since in self._orphans.values()):
            self._orphans = {}
            self._requests.ask(Wake())
