"""Who is in a group while its coordination moves, by what ZooKeeper and Kafka's coordinator said in one pass (KIP-125).

Old consumers are known to ZooKeeper alone, KafkaConsumers to Kafka alone, and migration-enabled members to both by one name:
the consumer id, `<group>_<pod>-<epoch ms>-<8 hex>`, is the client.id of the Kafka member that each of them brings along.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from zlib import crc32

from switchover.api.consumer_group_migration import CoordinationMigration
from switchover.coordination.assignment import VARIANTS, Ambiguous
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Malformed
from switchover.coordination.world import World
from switchover.kafka.group import LEFT, Group, Member
from switchover.shared.grouped import grouped
from switchover.shared.partition import TopicPartition


class Consumer(StrEnum):
    """The kinds of consumer that pods of a migration run."""

    OLD = "old"
    ENABLED = "migration-enabled"
    KAFKA = "KafkaConsumer"


def pod_of(group: str, consumer_id: str) -> str:
    """The host in a consumer id, which in Kubernetes is the pod's name."""
    return consumer_id.removeprefix(f"{group}_").rsplit("-", 2)[0]


def consumer_of(thread: str) -> str:
    """The consumer id in an owner node's value."""
    return thread.rpartition("-")[0]


@dataclass(frozen=True)
class Members:
    """The members of a group. `kafka` was read before `world`: who is in both then is not taken for a KafkaConsumer."""

    world: World
    kafka: Group

    @cached_property
    def enabled(self) -> frozenset[str]:
        """Consumer ids of the migration-enabled members."""
        return frozenset(self.world.acknowledgements)

    @cached_property
    def kafka_consumers(self) -> tuple[Member, ...]:
        """Members of Kafka's group alone: nothing in ZooKeeper keeps a partition from them.

        Whoever is called like a consumer of ZooKeeper's and is not there has lost its session: it fetches nothing.
        """
        named = re.compile(rf"{re.escape(self.kafka.name)}_.+-\d+-[0-9a-f]{{1,8}}")
        return tuple(member for member in self.kafka.members if member.client_id not in self.enabled
                     and not named.fullmatch(member.client_id) and member.epoch != LEFT)

    @cached_property
    def by_pod(self) -> Mapping[str, Sequence[str]]:
        """The consumer ids that ZooKeeper knows, by the pod that they name."""
        return grouped((pod_of(self.kafka.name, consumer_id), consumer_id)
                       for consumer_id in sorted({*self.world.registrations, *self.world.malformed, *self.enabled}))

    def is_registered(self, pod: str, consumer: Consumer) -> bool:
        """Whether a consumer of this kind, which ZooKeeper knows, runs in the pod."""
        return any((each in self.enabled) is (consumer is Consumer.ENABLED) and each in self.world.registrations
                   for each in self.by_pod.get(pod, ()))

    @cached_property
    def malformed(self) -> Sequence[tuple[str, str, str]]:
        """Of each registration that no old Java consumer can read: its name, what is wrong, and the way out. Who owns it may
        be a healthy client of another make: nobody is asked to stop it."""
        if self.world.registrations:
            wrong, way = ("old Java consumers own nothing while it is there",
                          "look which members consume, and leave those alone; the others need a group of their own")
        else:
            wrong, way = ("it is another client than the old Java consumer, which this migration is not for",
                          "leave it alone where it consumes, and delete this migration: such a client moves by its own means"
                          " (pykafka: managed=True)")
        return [(consumer_id, f"the registration of {consumer_id} {why}: {wrong}", way)
                for consumer_id, why in sorted(self.world.malformed.items())]

    @cached_property
    def followed(self) -> frozenset[Mode]:
        """By which modes members choose their partitions now; more than one while a toggle is under way."""
        modes = {each.mode for each in self.world.acknowledgements.values() if each is not None}
        if self.world.old:
            modes.add(Mode.ZOOKEEPER)
        if self.kafka_consumers:
            modes.add(Mode.KAFKA)
        return frozenset(modes)

    @cached_property
    def owners(self) -> Mapping[TopicPartition, tuple[str, ...]]:
        """Who may fetch each partition: the session that holds its owner node, and KafkaConsumers that are assigned it. A
        guard is nobody.
        """
        found: dict[TopicPartition, tuple[str, ...]] = {
            partition: (consumer_of(owner.thread),) for partition, owner in self.world.owners.items() if owner.session}
        for member in self.kafka_consumers:
            for partition in member.assigned:
                found[partition] = (*found.get(partition, ()), member.member_id)
        return found

    @cached_property
    def guards(self) -> frozenset[TopicPartition]:
        """Partitions whose owner node belongs to no session."""
        return frozenset(partition for partition, owner in self.world.owners.items() if not owner.session)

    def topics(self) -> frozenset[str]:
        """Every topic that somebody subscribes to."""
        named = {topic for streams in self._streams().values() for topic in streams}
        return frozenset(named).union(*(member.topics for member in self.kafka.members))

    def expected(self, partitions: Mapping[str, int]) -> frozenset[TopicPartition]:
        """Every partition of these topics. `partitions` is how many Kafka says that each has."""
        found = {TopicPartition(topic, number) for streams in self._streams().values() for topic in streams
                 for number in self.world.topics.get(topic, ())}
        topics = {topic for member in self.kafka_consumers for topic in member.topics}
        return frozenset(found | {TopicPartition(topic, number) for topic in topics
                                  for number in range(partitions.get(topic, 0))})

    def _streams(self) -> Mapping[str, Mapping[str, int]]:
        try:
            return self.world.streams()
        except Malformed:
            return {}

    # --- the arithmetic of the old consumer ---------------------------------------------------------------------------

    def agreeing(self, strategy: str | None) -> tuple[str, ...]:
        """The variants by which every partition belongs to whoever owns it; only `strategy` where the user names it."""
        return tuple(self._agreeing(strategy))

    def _agreeing(self, strategy: str | None) -> Iterator[str]:
        held = {partition: owner.thread for partition, owner in self.world.owners.items() if owner.session}
        for name, variant in VARIANTS.items():
            if strategy not in (None, name):
                continue
            try:
                intended = self.world.intended(*variant)
            except (Malformed, Ambiguous):
                continue
            if intended == held:
                yield name

    @cached_property
    def generation(self) -> int:
        """Another one whenever who owns what has changed: nothing tells the generation of a group in ZooKeeper."""
        return crc32(repr(sorted(self.owners.items())).encode())


def consumers(migration: CoordinationMigration) -> tuple[Consumer, Consumer, Consumer]:
    """What pods run before, between and after."""
    if migration.replace == "Nothing":
        return Consumer.ENABLED, Consumer.ENABLED, Consumer.ENABLED
    if migration.to == "Kafka":
        return Consumer.OLD, Consumer.ENABLED, Consumer.KAFKA
    return Consumer.KAFKA, Consumer.ENABLED, Consumer.OLD
