"""The gates of the toggle and of what may disturb it: KIP-125's mode, who acknowledges it, and whether the store that the
next members read has what the others have committed (docs/facts/coordination.md#which-store-counts).
"""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from switchover.answers.observed import Known
from switchover.api.status import Verdict as Outcome
from switchover.coordination.mode import Mode
from switchover.engine.gate import Gate, Verdict, passed, wait
from switchover.groups.coordination import mode
from switchover.groups.coordination.members import Consumer
from switchover.groups.facts import Stored, StoreSample
from switchover.groups.picture import Picture
from switchover.groups.reading import fleet_of, members_of, samples, stores_of
from switchover.reasons.groups import (
    GUARDS_LEFT,
    KAFKA_CONSUMER_TOO_EARLY,
    KAFKA_CONSUMERS_LEFT,
    KAFKA_OFFSETS_BEHIND,
    MEMBER_WAITS,
    MODE_NODE_CHANGED,
    MODE_NOT_FOLLOWED,
    NOT_QUIET_YET,
    OLD_CONSUMER_ARRIVED,
    ZOOKEEPER_OFFSETS_BEHIND,
)
from switchover.shared.partition import TopicPartition

AT_ONCE, NEVER = 0.0, inf
"""Found twice in a row, and found for ever."""


def check_intruders(picture: Picture) -> Verdict:
    """Nobody takes part whom the mode of this step cannot keep off what others fetch."""
    members, want = members_of(picture), mode.wanted(picture)
    old, kafka = members.world.old, members.kafka_consumers
    if want is Mode.KAFKA and old:
        found = wait(OLD_CONSUMER_ARRIVED, f"{old[0]} does not know the migration, and the group is Kafka's: the mode goes"
                    " back to zookeeper until it is gone", subject=old[0], observed=f"{len(old)} old consumers", threshold=0,
                    unblocks="stop whatever starts old consumers of this group; it goes on"
                             f" {picture.spec.gates.quiet_seconds} s after the last one")
        return found if not kafka else replace(found, outcome=Outcome.FAIL, message=(
            f"{old[0]} does not know the migration, and the mode stays Kafka's, as KafkaConsumers are in the group: only"
            " owner nodes and guards keep it off"))
    if want is Mode.ZOOKEEPER and kafka:
        wrong = mode.misbuilt(picture)
        unblocks = (f"the bridge of spec.workloads must be a migration-enabled consumer: pod {wrong[0]} is none" if wrong
                else "stop it: KafkaConsumers may come when every member has acknowledged the mode kafka")
        found = wait(KAFKA_CONSUMER_TOO_EARLY, f"{kafka[0].client_id} at {kafka[0].host} is a KafkaConsumer in the group:"
                    " the mode gives way to it while it is there, so that its share is its own", subject=kafka[0].client_id,
                    observed=f"{len(kafka)} KafkaConsumers", threshold=0, unblocks=unblocks)
        return found if not old else replace(found, outcome=Outcome.FAIL, message=(
            f"{kafka[0].client_id} at {kafka[0].host} is a KafkaConsumer in the group, and fetches what its owners in"
            " ZooKeeper fetch as well"))
    return passed("no other consumer reads these topics for the group")


def check_mode_kept(picture: Picture) -> Verdict:
    """The mode znode says what this step wants."""
    members, want = members_of(picture), mode.wanted(picture)
    if want is None or mode.is_wanted(picture, members):
        return passed("the mode is what this step wants")
    world = members.world
    there = "is gone" if world.mode_version < 0 else f"says {world.mode_data.decode(errors='backslashreplace')!r}"
    if want is Mode.KAFKA and not members.kafka_consumers and not mode.is_quiet(picture):
        return _not_quiet(picture)
    return wait(MODE_NODE_CHANGED, f"the mode znode of group {picture.spec.group} {there}, where this step wants {want}:"
                " it is written again unless that would let two consumers at one partition", subject="migration/mode",
                observed=there, threshold=want, unblocks="find out who else writes it; nothing else to do")


def check_quiet(picture: Picture) -> Verdict:
    """No old consumer for spec.gates.quietSeconds: one that restarts would take the whole group back and forth."""
    members = members_of(picture)
    if old := members.world.old:
        return wait(OLD_CONSUMER_ARRIVED, f"{old[0]} does not know the migration: the group stays with ZooKeeper",
                    subject=old[0], observed=f"{len(old)} old consumers", threshold=0,
                    unblocks="stop whatever starts old consumers of this group, or add its workload before the migration")
    return passed("no old consumer is left") if mode.is_quiet(picture) else _not_quiet(picture)


def _not_quiet(picture: Picture) -> Verdict:
    return wait(NOT_QUIET_YET, "an old consumer may come back, and is waited for before Kafka coordinates the group",
                subject=picture.spec.group, observed=f"{mode.quiet_for(picture):.0f} s",
                threshold=f"{picture.spec.gates.quiet_seconds} s", unblocks="nothing: this wait ends by itself")


def check_followed(picture: Picture) -> Verdict:
    """Every migration-enabled member says that it follows the mode znode in the version that it has now (R4)."""
    members = members_of(picture)
    world = members.world
    follow = world.mode or Mode.ZOOKEEPER
    for consumer_id, answer in sorted(world.acknowledgements.items()):
        if answer is None:
            return wait(MODE_NOT_FOLLOWED, f"{consumer_id} does not tell which mode it follows: it is no migration-enabled"
                        " consumer of Switchover's", subject=consumer_id, unblocks="run switchover[consumer] in its pod")
        if answer.waits:
            return wait(MEMBER_WAITS, f"{consumer_id} does not follow the mode: {answer.waits}", subject=consumer_id,
                        observed=answer.mode, threshold=follow, unblocks="repair what it names")
        if answer.mode is not follow or (world.mode_version >= 0 and answer.mode_version != world.mode_version):
            return wait(MODE_NOT_FOLLOWED, f"{consumer_id} does not follow the mode {follow} of now"
                                           " yet", subject=consumer_id,
                        observed=f"{answer.mode}, version {answer.mode_version}",
                        threshold=f"{follow}, version {world.mode_version}", unblocks="it follows within seconds")
    return passed(f"{len(world.acknowledgements)} members follow the mode {follow}")


def check_kafka_consumers_gone(picture: Picture) -> Verdict:
    """Every source of KafkaConsumers has no pods, and none is a member: nothing keeps one off what ZooKeeper gives out."""
    members = members_of(picture)
    fleet_of(picture)
    for workload in picture.spec.workloads:
        source, live = picture.source(workload.name), picture.live_mode(workload.name)
        if isinstance(source, Known) and live and picture.consumer(live) is Consumer.KAFKA and source.value.replicas:
            return wait(KAFKA_CONSUMERS_LEFT, f"{source.value} would start KafkaConsumers", subject=workload.name,
                        observed=f"{source.value.replicas} replicas", threshold=0, unblocks="it is scaled to 0")
    pods = [pod.name for _, live, pod in picture.pods() if live and picture.consumer(live) is Consumer.KAFKA]
    if pods:
        return wait(KAFKA_CONSUMERS_LEFT, f"pod {pods[0]} of KafkaConsumers is still there", subject=pods[0],
                    observed=len(pods), threshold=0, unblocks="wait until it ends")
    if kafka := members.kafka_consumers:
        return wait(KAFKA_CONSUMERS_LEFT, f"{kafka[0].client_id} at {kafka[0].host} is still a KafkaConsumer in group"
                    f" {picture.spec.group}", subject=kafka[0].client_id, observed=len(kafka), threshold=0,
                    unblocks="its session ends; one that stays runs outside of spec.workloads: stop it")
    return passed("no KafkaConsumer is left")


def check_unguarded(picture: Picture) -> Verdict:
    """No guard keeps an old consumer off a partition any more."""
    members = members_of(picture)
    if guards := sorted(members.guards):
        return wait(GUARDS_LEFT, f"{len(guards)} owner nodes belong to no session, {guards[0]}"
                                  " first", subject=str(guards[0]),
                    observed=len(guards), threshold=0, unblocks="they are removed when every member follows the mode"
                                                                " zookeeper")
    return passed("no guard is left")


INTRUDERS: Gate[Picture] = Gate(
    "NoIntruders", check_intruders, undo=lambda picture: AT_ONCE if mode.misbuilt(picture) else NEVER)
MODE_KEPT: Gate[Picture] = Gate("ModeKept", check_mode_kept)
QUIET: Gate[Picture] = Gate("Quiet", check_quiet)
FOLLOWED: Gate[Picture] = Gate("ModeFollowed", check_followed, samples=samples)
KAFKA_CONSUMERS_GONE: Gate[Picture] = Gate("KafkaConsumersGone", check_kafka_consumers_gone, samples=lambda picture: max(
    2, samples(picture)))
UNGUARDED: Gate[Picture] = Gate("Unguarded", check_unguarded)


def _behind(earlier: StoreSample, latest: StoreSample, store: str) -> Iterator[tuple[TopicPartition, int | None, int]]:
    """Partitions of which `store` now has less than the other one had a sweep ago: what is under way does not count."""
    other = "kafka" if store == "zookeeper" else "zookeeper"
    for partition, before in sorted(earlier.offsets.items()):
        committed, wanted = getattr(latest.offsets.get(partition, before), store), getattr(before, other)
        if wanted is not None and (committed is None or committed < wanted):
            yield partition, committed, wanted


def check_zookeeper_reached(picture: Picture) -> Verdict:
    """An old consumer reads ZooKeeper alone: every offset there is at least Kafka's."""
    stores = stores_of(picture)
    for partition, committed, wanted in _behind(stores[-2], stores[-1], "zookeeper"):
        return wait(ZOOKEEPER_OFFSETS_BEHIND, f"the offset of {partition} in ZooKeeper is behind Kafka's: an old consumer"
                    " would deliver again what lies between", subject=str(partition), observed=committed, threshold=wanted,
                    unblocks="the migration-enabled member that owns it commits to both stores; if none does, look at its"
                             " log")
    return passed("no offset in ZooKeeper is behind Kafka's")


def check_kafka_reached(picture: Picture) -> Verdict:
    """A KafkaConsumer reads Kafka alone: every offset is there, and none is behind ZooKeeper's."""
    stores = stores_of(picture)
    latest: list[tuple[TopicPartition, Stored]] = sorted(stores[-1].offsets.items())
    for partition, found in latest:
        if found.kafka is None:
            return wait(KAFKA_OFFSETS_BEHIND, f"Kafka has no offset of {partition}: a KafkaConsumer would begin where its"
                        " auto.offset.reset says", subject=str(partition), observed="none",
                        threshold=found.zookeeper if found.zookeeper is not None else "an offset",
                        unblocks="the migration-enabled member that owns it commits to both stores; look at its log")
    for partition, committed, wanted in _behind(stores[-2], stores[-1], "kafka"):
        return wait(KAFKA_OFFSETS_BEHIND, f"the offset of {partition} in Kafka is behind ZooKeeper's: a KafkaConsumer would"
                    " deliver again what lies between", subject=str(partition), observed=committed, threshold=wanted,
                    unblocks="the migration-enabled member that owns it commits to both stores; if none does, look at its"
                             " log")
    return passed("every offset is in Kafka")


ZOOKEEPER_REACHED: Gate[Picture] = Gate("ZooKeeperOffsets", check_zookeeper_reached)
KAFKA_REACHED: Gate[Picture] = Gate("KafkaOffsets", check_kafka_reached)
