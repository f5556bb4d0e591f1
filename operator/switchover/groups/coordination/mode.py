"""The mode znode is the operator's: which mode a step wants, and what writes it again when others did, or must not be there.

Two kinds of member may not be in the wrong mode, as nothing else keeps them off what others fetch: an old consumer while the
group follows Kafka (rule R7 of docs/facts/coordination.md#the-rules), and a KafkaConsumer while it follows ZooKeeper
(R11 there).
"""

from dataclasses import dataclass

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import ConsumerGroupMigrationStep as Name
from switchover.api.status import Direction
from switchover.coordination.mode import Mode
from switchover.engine.effects import Effect, Elsewhere
from switchover.groups import goals
from switchover.groups.coordination.members import Consumer, Members
from switchover.groups.picture import INTERMEDIATE, ORIGINAL, Picture
from switchover.groups.workloads import kinds
from switchover.shared.partition import TopicPartition


@dataclass(frozen=True, slots=True)
class SetMode(Elsewhere):
    """Write the mode znode of a group (KIP-125), of which this is still `World.mode_version`; -1: it must not exist."""

    group: str
    mode: Mode
    version: int

    def __str__(self) -> str:
        return f"set the mode of group {self.group} to {self.mode} (over version {self.version})"


@dataclass(frozen=True, slots=True)
class RemoveGuards(Elsewhere):
    """Delete the guard nodes that keep old consumers away from these partitions."""

    group: str
    partitions: frozenset[TopicPartition]

    def __str__(self) -> str:
        return f"remove {len(self.partitions)} guards of group {self.group}"


AFTER_THE_TOGGLE = frozenset({
    Name.REPLACE_WITH_KAFKA_CONSUMERS, Name.REPLACE_WITH_OLD_CONSUMERS, Name.SETTLE, Name.AUDIT})


def wanted(picture: Picture) -> Mode | None:
    """What the mode znode is to say while in this step; None where the step does not care.

    Before the toggle begins it says what it did before; in a rollback that does not matter any more.
    """
    migration, at = picture.spec.coordination, picture.position
    assert migration is not None
    before, after = (Mode.ZOOKEEPER, Mode.KAFKA) if migration.to == "Kafka" else (Mode.KAFKA, Mode.ZOOKEEPER)
    forward, begun = at.direction is Direction.FORWARD, at.opened is not None
    if at.step in AFTER_THE_TOGGLE:
        return after
    if at.step == Name.TOGGLE and (begun or forward):
        return after if begun and forward else before
    reached = at.step == Name.REPLACE_WITH_MIGRATION_ENABLED or (at.step == Name.BASELINE and begun and forward)
    return before if reached else None


def is_wanted(picture: Picture, members: Members) -> bool:
    """Whether the znode says what is wanted. One that never was there says that ZooKeeper coordinates."""
    want, world = wanted(picture), members.world
    return want is None or world.mode is want or (want is Mode.ZOOKEEPER and world.mode_version < 0)


def quiet_for(picture: Picture) -> float:
    """For how many seconds no old consumer was seen; 0 while nobody can tell."""
    since = picture.facts.quiet_since
    return max(0.0, picture.now - since.value) if isinstance(since, Known) else 0.0


def is_quiet(picture: Picture) -> bool:
    return quiet_for(picture) >= picture.spec.gates.quiet_seconds


# --- effects ------------------------------------------------------------------------------------------------------------


def toggled(picture: Picture) -> tuple[Effect, ...]:
    """The mode that is wanted is written: Kafka's only in quiet, ZooKeeper's only without a KafkaConsumer."""
    want = wanted(picture)
    if not isinstance(picture.members, Known) or want is None or is_wanted(picture, picture.members.value):
        return ()
    members = picture.members.value
    in_the_way = (members.world.old or not is_quiet(picture)) if want is Mode.KAFKA else members.kafka_consumers
    return () if in_the_way else _written(picture, members, want)


def defended(picture: Picture) -> tuple[Effect, ...]:
    """Nobody consumes outside the group: the mode gives way to whoever cannot be held off, or their pods do.

    While KafkaConsumers are there the mode is Kafka's: members that went back would fetch what those own. Old consumers
    next to them are held off by guards, and no mode helps.
    """
    if not isinstance(picture.members, Known):
        return ()
    members = picture.members.value
    mode, old, kafka = members.world.mode, members.world.old, members.kafka_consumers
    if kafka and mode is not Mode.KAFKA:
        if not old or wanted(picture) is Mode.KAFKA:
            return _written(picture, members, Mode.KAFKA)
        return _stopped(picture)
    return _written(picture, members, Mode.ZOOKEEPER) if old and not kafka and mode is Mode.KAFKA else ()


def corrections(picture: Picture) -> tuple[Effect, ...]:
    """What others did to the mode is taken back, and what they did to the workloads."""
    return defended(picture) or toggled(picture) or goals.corrections(picture)


def corrections_in_toggle(picture: Picture) -> tuple[Effect, ...]:
    """The same without the toggle itself, which waits for its gates."""
    return defended(picture) or goals.corrections(picture)


def _written(picture: Picture, members: Members, mode: Mode) -> tuple[Effect, ...]:
    return (SetMode(picture.spec.group, mode, members.world.mode_version),)


def misbuilt(picture: Picture) -> tuple[str, ...]:
    """Pods that should be migration-enabled and run KafkaConsumers: the bridge of the spec is not what it should be."""
    if not isinstance(picture.members, Known) or wanted(picture) is not Mode.ZOOKEEPER:
        return ()
    members = picture.members.value
    return tuple(pod.name for _, mode, pod in picture.pods()
                 if mode and picture.consumer(mode) is Consumer.ENABLED and picture.kafka_consumers_of(pod)
                 and not members.is_registered(pod.name, Consumer.ENABLED))


def _stopped(picture: Picture) -> tuple[Effect, ...]:
    """In a rollback no pods of a bridge that are KafkaConsumers, unless some of it proved to be something else: their
    predecessors have not left, or they follow at once.
    """
    if picture.position.direction is Direction.FORWARD:
        return ()
    names, effects = {*misbuilt(picture)}, list[Effect]()
    for workload in picture.spec.workloads:
        source, original = picture.source(workload.name), picture.template(workload.name, ORIGINAL)
        settled = any(record.assigned == INTERMEDIATE and record.settled
                      for record in (picture.position.nodes[slot] for slot in picture.slots(workload.name)))
        if not isinstance(source, Known) or not kinds.of(source.value).rises or original is None or settled \
                or not names & source.value.pods.keys():
            continue
        if picture.live_mode(workload.name) != ORIGINAL:
            effects += goals.template(ORIGINAL)(picture)
        else:
            effects += kinds.of(source.value).fall(source.value)
    return tuple(effects)
