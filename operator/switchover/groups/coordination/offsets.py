"""Where the members commit, whether the two stores fit together (docs/facts/coordination.md#offsets), and whether the one
that the next members read has what the others have committed (#which-store-counts there).
"""

from collections.abc import Iterator, Sequence

from switchover.engine.gate import Gate, Unseen, Verdict, check, fail, info, passed, unknown, wait
from switchover.groups.coordination.members import Consumer
from switchover.groups.facts import Stored, StoreSample
from switchover.groups.picture import ORIGINAL, Picture
from switchover.groups.reading import stores_of
from switchover.reasons.groups import (
    KAFKA_OFFSETS_AHEAD,
    KAFKA_OFFSETS_BEHIND,
    NO_COMMIT_SEEN,
    OFFSET_OUTSIDE_LOG,
    OFFSETS_IN_BOTH,
    OFFSETS_IN_KAFKA_ONLY,
    OFFSETS_UNKNOWN,
    STORES_WATCHED,
    ZOOKEEPER_OFFSETS_AHEAD,
    ZOOKEEPER_OFFSETS_BEHIND,
)
from switchover.reasons.notes import OFFSET_RESET_DECIDES
from switchover.shared.partition import TopicPartition
from switchover.text.command import command


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


def _moves(stores: Sequence[StoreSample], store: str) -> bool:
    first, last = stores[0].offsets, stores[-1].offsets
    return any(getattr(found, store) != getattr(first[each], store) for each, found in last.items() if each in first)


def _watched(picture: Picture) -> Sequence[StoreSample]:
    """What was read in this step, none of an earlier try."""
    return [each for each in stores_of(picture) if each.at >= picture.position.entered]


def find_wrong_storage(picture: Picture) -> Iterator[Verdict]:
    """offsets.storage is not in the registration: which store moves tells it."""
    if picture.consumer(ORIGINAL) is not Consumer.OLD:
        return
    group, wanted = picture.spec.group, picture.spec.gates.quiet_seconds
    stores = _watched(picture)
    if not stores:
        raise Unseen(unknown(OFFSETS_UNKNOWN, "no offset was read in this step yet", subject=group))
    watched = stores[-1].at - stores[0].at
    in_zookeeper, in_kafka = _moves(stores, "zookeeper"), _moves(stores, "kafka")
    if in_kafka and in_zookeeper:
        yield fail(OFFSETS_IN_BOTH, f"members of group {group} commit to Kafka and to ZooKeeper (offsets.storage=kafka with"
                   " dual.commit.enabled): both commits would fail, silently, as soon as a migration-enabled member joins",
                   subject=group, observed="both stores move", threshold="ZooKeeper's alone",
                   unblocks="set offsets.storage=zookeeper on every member: no offset in ZooKeeper is behind")
    elif in_kafka:
        yield fail(OFFSETS_IN_KAFKA_ONLY, f"members of group {group} commit to Kafka alone (offsets.storage=kafka,"
                   " dual.commit.enabled=false)", subject=group, observed="Kafka's store moves",
                   threshold="ZooKeeper's alone",
                   unblocks="in this order: dual.commit.enabled=true on every member; wait until this says OffsetsInBoth;"
                            " then offsets.storage=zookeeper on every member."
                            " Set to zookeeper at once, they would start without their offsets")
    elif watched < wanted:
        yield wait(STORES_WATCHED, f"which store the members of group {group} commit to is watched", subject=group,
                   observed=f"{watched:.0f} s", threshold=f"{wanted} s", unblocks="nothing: this wait ends by itself")
    elif not in_zookeeper and not _idle(stores[-1]):
        yield wait(NO_COMMIT_SEEN, f"members of group {group} have committed nothing in {watched:.0f} s although there are"
                   " records", subject=group, observed="no store moves", threshold="ZooKeeper's alone",
                   unblocks="they consume and commit; with auto.commit.interval.ms above 60 s raise gates.quietSeconds")


def _idle(last: StoreSample) -> bool:
    """Everything is committed to ZooKeeper and nothing to Kafka: nothing could move."""
    return all(found.kafka is None and (found.zookeeper == found.end or found.end == found.start)
               for found in last.offsets.values())


def find_hazards(picture: Picture) -> Iterator[Verdict]:
    """A migration-enabled member goes on from the greater offset of both stores: one that is left over skips records."""
    stores = stores_of(picture)
    earlier, latest = stores[-2].offsets, stores[-1].offsets
    from_kafka, left_over = picture.consumer(ORIGINAL) is Consumer.KAFKA, _kafka_is_left_over(picture)
    for partition, found in sorted(latest.items()):
        before = earlier.get(partition, found)
        for store, committed, previous in (("ZooKeeper", found.zookeeper, before.zookeeper),
                                           ("Kafka", found.kafka, before.kafka)):
            if (previous is not None and previous > found.end) or (committed is not None and committed < before.start):
                yield fail(OFFSET_OUTSIDE_LOG, f"the offset of {partition} in {store} lies outside of its log",
                           subject=str(partition), observed=committed, threshold=f"{found.start} to {found.end}",
                           unblocks="a topic that was made anew, or a group that fell behind its retention: set or delete"
                                    f" the offset in {store} while nobody consumes")
        if left_over and before.kafka is not None and (found.zookeeper is None or before.kafka > found.zookeeper):
            yield fail(KAFKA_OFFSETS_AHEAD, f"Kafka has an offset of {partition} ahead of ZooKeeper's: records between"
                       " them would be skipped", subject=str(partition), observed=found.kafka, threshold=found.zookeeper,
                       unblocks="delete the group's offsets in Kafka now, while it has no member there: "
                                + command("kafka-consumer-groups.sh --bootstrap-server {} --delete-offsets --group {}"
                                          " --topic {}", picture.spec.kafka.bootstrap_servers, picture.spec.group,
                                          partition.topic))
        if from_kafka and before.zookeeper is not None and (found.kafka is None or before.zookeeper > found.kafka):
            yield fail(ZOOKEEPER_OFFSETS_AHEAD, f"ZooKeeper has an offset of {partition} ahead of Kafka's: records between"
                       " them would be skipped", subject=str(partition), observed=found.zookeeper, threshold=found.kafka,
                       unblocks=f"delete the znodes below /consumers/{picture.spec.group}/offsets/{partition.topic}")


def _kafka_is_left_over(picture: Picture) -> bool:
    """Whether what Kafka has is no position of the members: never advise to delete the only one that they have."""
    if picture.consumer(ORIGINAL) is not Consumer.OLD:
        return picture.consumer(ORIGINAL) is Consumer.ENABLED
    watched = _watched(picture)
    return bool(watched) and _moves(watched, "zookeeper") and not _moves(watched, "kafka")


def find_missing_offsets(picture: Picture) -> Iterator[Verdict]:
    latest = stores_of(picture)[-1].offsets
    missing = sorted(each for each, found in latest.items() if found.zookeeper is None and found.kafka is None)
    if missing:
        yield info(OFFSET_RESET_DECIDES, f"{len(missing)} partitions have no offset in either store, {missing[0]} first:"
                   " each client's auto.offset.reset decides where it begins, and nobody tells what that is (largest by"
                   " default for old consumers)",
                   subject=str(missing[0]), observed=len(missing),
                   cure="give the new clients the reset that the old ones have")


CHECKS = (
    check("Storage", find_wrong_storage, "the members commit to ZooKeeper alone"),
    check("Stores", find_hazards, "neither store has an offset that would skip records"),
    check("Offsets", find_missing_offsets, "every partition has an offset"),
)
