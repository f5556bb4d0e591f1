"""Which partitions are to be a member's: by the old consumer's arithmetic, or by Kafka's assignment."""

from collections.abc import Mapping

from switchover.consumer.member.holdings import Holding
from switchover.consumer.member.rules import Rules
from switchover.consumer.member.states import ENDING
from switchover.consumer.messages import Partitions
from switchover.coordination.assignment import Ambiguous, thread_id
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
