"""What must hold before the coordination of a group is moved (docs/facts/coordination.md): the group as ZooKeeper and Kafka
have it, where the members commit (#offsets there), and the changes that the spec makes. docs/preflight-groups.md lists it.
"""

from collections.abc import Iterator, Sequence

from switchover.api.consumer_group_migration import ContainerChange
from switchover.coordination.assignment import VARIANTS, Ambiguous, Strategy
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Malformed, Subscribed, differs_in_java
from switchover.engine.gate import Gate, Unseen, Verdict, check, fail, info, seen, unknown, wait, warn
from switchover.groups.coordination.brokers import CAPACITY
from switchover.groups.coordination.members import Consumer, Members
from switchover.groups.coordination.membership import NO_FOREIGN_MEMBERS, PODS_ARE_MEMBERS
from switchover.groups.facts import Need, StoreSample
from switchover.groups.gates.convergence import OFFSETS_REPLICATED, ONE_COORDINATOR
from switchover.groups.picture import ORIGINAL, Picture
from switchover.groups.preflight import brokers, workloads
from switchover.groups.reading import members_of, samples, stores_of
from switchover.kafka.group import GroupState, GroupType
from switchover.reasons.cluster import ZOOKEEPER_UNKNOWN
from switchover.reasons.groups import (
    ALREADY_MOVED,
    ASSIGNMENT_AMBIGUOUS,
    ASSIGNMENT_NOT_UNDERSTOOD,
    ASSIGNMENT_UNCLEAR,
    ASSIGNOR_NOT_EAGER,
    BRIDGE_MISSING,
    GROUP_EMPTY,
    GROUP_NOT_STABLE,
    GROUP_TYPE_UNSUPPORTED,
    KAFKA_CONSUMER_TOO_EARLY,
    KAFKA_OFFSETS_AHEAD,
    MALFORMED_REGISTRATION,
    NO_COMMIT_SEEN,
    NOT_MIGRATION_ENABLED,
    NOTHING_IS_REPLACED,
    NOTHING_TO_CHANGE,
    OFFSET_OUTSIDE_LOG,
    OFFSETS_IN_BOTH,
    OFFSETS_IN_KAFKA_ONLY,
    OFFSETS_UNKNOWN,
    PATTERN_DIFFERS,
    PATTERN_ESCAPED,
    STORES_WATCHED,
    ZOOKEEPER_OFFSETS_AHEAD,
    ZOOKEEPER_RIGHT_MISSING,
)
from switchover.reasons.notes import ASSIGNMENT_UNDERSTOOD, CONSUMER_IS_PYTHON, OFFSET_RESET_DECIDES, SUBSCRIPTIONS_DIFFER
from switchover.text.command import command

EAGER = tuple(Strategy)
"""What the Kafka members of migration-enabled consumers offer (R2 and R9 of docs/facts/coordination.md#the-rules)."""


def find_wrong_group(picture: Picture) -> Iterator[Verdict]:
    members = members_of(picture)
    first = picture.consumer(ORIGINAL)
    for consumer_id, why, way in members.malformed:
        yield fail(MALFORMED_REGISTRATION, why, subject=consumer_id, unblocks=way)
    if first is Consumer.KAFKA:
        yield from _of_kafka(members)
    else:
        yield from _of_zookeeper(picture, members, first)


def _of_zookeeper(picture: Picture, members: Members, first: Consumer | None) -> Iterator[Verdict]:
    group, world = members.kafka.name, members.world
    if not world.registrations and not world.malformed:
        yield fail(GROUP_EMPTY, f"no consumer of group {group} is registered below /consumers/{group}/ids", subject=group,
                   observed=0, threshold="its members", unblocks="check spec.group, and that spec.zookeeper.connect has the"
                   " chroot that the consumers have; a group without members needs no migration: start the new pods")
        return
    if kafka := members.kafka_consumers:
        yield fail(KAFKA_CONSUMER_TOO_EARLY, f"{kafka[0].client_id} at {kafka[0].host} is a member of Kafka's group {group},"
                   " which old consumers know nothing of: each side owns every partition", subject=kafka[0].client_id,
                   observed=len(kafka), threshold=0, unblocks="stop it, or give it another group.id")
    others = sorted(members.enabled) if first is Consumer.OLD else world.old
    if others and first is Consumer.OLD:
        yield fail(ALREADY_MOVED, f"{others[0]} is migration-enabled already", subject=others[0], observed=len(others),
                   threshold=0, unblocks="take them back first; or, if all are, set spec.coordination.replace to Nothing")
    elif others:
        yield fail(NOT_MIGRATION_ENABLED, f"{others[0]} knows nothing of the migration, and nothing is to be replaced",
                   subject=others[0], observed=len(others), threshold=0,
                   unblocks="set spec.coordination.replace to All, with a bridge for every workload")
    wanted = Mode.KAFKA if picture.spec.coordination is not None and picture.spec.coordination.to == "Kafka" \
        else Mode.ZOOKEEPER
    if first is Consumer.ENABLED and (world.mode or Mode.ZOOKEEPER) is wanted:
        yield fail(NOTHING_TO_CHANGE, f"the mode of group {group} is {wanted} already", subject=group, observed=wanted,
                   unblocks="nothing to do: delete this migration")


def _of_kafka(members: Members) -> Iterator[Verdict]:
    found, world = members.kafka, members.world
    if there := sorted({*world.registrations, *world.malformed, *members.enabled}):
        yield fail(ALREADY_MOVED, f"{there[0]} is registered in ZooKeeper, where the group should have KafkaConsumers"
                                   " alone",
                   subject=there[0], observed=len(there), threshold=0, unblocks="stop it")
    if not found.members:
        yield fail(GROUP_EMPTY, f"group {found.name} has no members in Kafka", subject=found.name, observed=found.state,
                   threshold=GroupState.STABLE, unblocks="check spec.group; a group without members needs no migration")
        return
    if found.type is not GroupType.CLASSIC:
        yield fail(GROUP_TYPE_UNSUPPORTED, f"group {found.name} is of type {found.type}: migration-enabled consumers are"
                   " classic members", subject=found.name, observed=found.type, threshold=GroupType.CLASSIC,
                   unblocks="migrate it to the classic protocol first (spec.protocol.to: Classic)")
    elif found.state is not GroupState.STABLE:
        yield wait(GROUP_NOT_STABLE, f"group {found.name} is {found.state}", subject=found.name, observed=found.state,
                   threshold=GroupState.STABLE, unblocks="it settles")
    elif found.assignor not in EAGER:
        yield fail(ASSIGNOR_NOT_EAGER, f"group {found.name} uses {found.assignor}: migration-enabled consumers offer"
                   f" {' and '.join(EAGER)}", subject=found.assignor, observed=found.assignor, threshold=" or ".join(EAGER),
                   unblocks="migrate it to range first (spec.assignmentStrategy)")


def find_patterns(picture: Picture) -> Iterator[Verdict]:
    for consumer_id, registration in sorted(members_of(picture).world.registrations.items()):
        if registration.by is Subscribed.STATIC:
            continue
        pattern = next(iter(registration.subscription), "")
        if "\\\\" in pattern:
            yield fail(PATTERN_ESCAPED, f"{consumer_id} subscribes by {pattern}: consumers of 1.0.1 and newer write a"
                       " backslash twice, and so match no topic (KAFKA-5631)", subject=consumer_id, observed=pattern,
                       unblocks="write the pattern without backslashes: [.] for a dot")
        elif differs_in_java(pattern):
            yield fail(PATTERN_DIFFERS, f"{consumer_id} subscribes by {pattern}: Java and Python may not match the same"
                       " topics by it, and members that disagree own nothing", subject=consumer_id, observed=pattern,
                       threshold="letters, digits, . _ - | * + ? []"
                                 " ()", unblocks="subscribe by name, or by a simpler pattern")


def find_unclear_assignment(picture: Picture) -> Iterator[Verdict]:
    """The strategy and the code line of old consumers are not in their registrations: who owns what tells them."""
    members, migration = members_of(picture), picture.spec.coordination
    if migration is None or picture.consumer(ORIGINAL) is not Consumer.OLD or not members.world.registrations:
        return
    if ambiguous := _ambiguous(members, migration.assignment_strategy):
        yield ambiguous
        return
    agreeing = members.agreeing(migration.assignment_strategy)
    if not agreeing:
        yield wait(ASSIGNMENT_NOT_UNDERSTOOD, f"who owns what in group {picture.spec.group} is not what"
                   f" {migration.assignment_strategy or 'any strategy of the old consumer'} makes of its members",
                   subject=picture.spec.group, observed=f"{len(members.world.owners)} owner nodes",
                   threshold=migration.assignment_strategy or ", ".join(VARIANTS),
                   unblocks="the group settles; if it stays so: a consumer that gave up (restart it), members of different"
                            " strategies, of ≤ 0.11 and ≥ 1.0 with roundrobin, or a client that is not the Java one")
    elif len(agreeing) > 1:
        yield fail(ASSIGNMENT_UNCLEAR, f"who owns what in group {picture.spec.group} is the same by {', '.join(agreeing)}",
                   subject=picture.spec.group, observed=", ".join(agreeing), threshold="one of them",
                   unblocks="name the members' strategy in spec.coordination.assignmentStrategy: Range unless they set"
                            " partition.assignment.strategy")
    else:
        yield info(ASSIGNMENT_UNDERSTOOD, f"who owns what in group {picture.spec.group} is what {agreeing[0]} makes of its"
                   " members: the migration-enabled consumer must be given the same strategy", subject=picture.spec.group,
                   observed=agreeing[0])


def _ambiguous(members: Members, strategy: str | None) -> Verdict | None:
    """Two partitions of one hash matter where the strategy may be roundrobin."""
    if strategy == "Range" or (strategy is None and members.agreeing("Range")):
        return None
    try:
        for name, variant in VARIANTS.items():
            if strategy in (None, name):
                members.world.intended(*variant)
    except Ambiguous as error:
        return fail(ASSIGNMENT_AMBIGUOUS, f"roundrobin of group {members.kafka.name}: {error}", subject=members.kafka.name,
                    unblocks="set partition.assignment.strategy to range on every old consumer")
    except Malformed:
        return None                                                   # a finding of its own
    return None


def find_different_subscriptions(picture: Picture) -> Iterator[Verdict]:
    """Both coordinators allow it; old consumers up to 0.10.1 with roundrobin do not."""
    found = members_of(picture).world.registrations
    if len({(each.by, tuple(sorted(each.subscription))) for each in found.values()}) > 1:
        yield warn(SUBSCRIPTIONS_DIFFER, f"members of group {picture.spec.group} subscribe to different topics",
                   subject=picture.spec.group, cure="if that is a deployment under way let it end first")


def find_missing_rights(picture: Picture) -> Iterator[Verdict]:
    missing = seen(picture.facts.missing_zookeeper_rights, ZOOKEEPER_UNKNOWN, picture.spec.group)
    if missing:
        yield fail(ZOOKEEPER_RIGHT_MISSING, f"our credentials for ZooKeeper lack {', '.join(missing[:5])}",
                   subject=picture.spec.group, observed=f"{len(missing)} missing",
                   threshold="to write the mode znode and remove guards",
                   unblocks="give spec.zookeeper.credentialsRef a user that has them, or change the nodes' ACLs")


REGISTRATIONS = (
    check("Group", find_wrong_group, "the group is of the kind that the migration starts from", samples=samples),
    check("ZooKeeperRights", find_missing_rights, "we may write what the migration writes",
          needs=(Need.RIGHTS_IN_ZOOKEEPER,)),
    check("Patterns", find_patterns, "patterns match the same topics for every member"),
    check("Assignment", find_unclear_assignment, "who owns what is understood"),
    check("Subscriptions", find_different_subscriptions, "members subscribe to the same topics"),
    NO_FOREIGN_MEMBERS,
    PODS_ARE_MEMBERS,
)


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
                           unblocks="the topic was created again, or the group fell behind its retention: set or delete"
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
                       unblocks=f"delete /consumers/{picture.spec.group}/offsets/{partition.topic}/{partition.partition} in"
                                    " ZooKeeper: nobody reads it now")


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


STORES = (
    check("Storage", find_wrong_storage, "the members commit to ZooKeeper alone"),
    check("Stores", find_hazards, "neither store has an offset that would skip records"),
    check("Offsets", find_missing_offsets, "every partition has an offset"),
)


def find_wrong_changes(picture: Picture) -> Iterator[Verdict]:
    for workload in picture.spec.workloads:
        if picture.replaces and workload.bridge is None:
            yield fail(BRIDGE_MISSING, f"workload {workload.name} has no bridge: between old consumers and KafkaConsumers"
                       " there must be migration-enabled ones", subject=workload.name,
                       unblocks="add a bridge: an image of the application on switchover[consumer]; or set"
                                " spec.coordination.replace to Nothing where its pods are migration-enabled already")
        if not picture.replaces and (workload.bridge is not None or workload.template != ContainerChange()):
            yield fail(NOTHING_IS_REPLACED, f"workload {workload.name} has a change, and spec.coordination.replace is"
                                            " Nothing",
                       subject=workload.name, unblocks="give it an empty template ({}) and no bridge, or replace All")


def find_python(picture: Picture) -> Iterator[Verdict]:
    """There is no other implementation: the old Java consumer was deleted from Kafka in 2.0."""
    if picture.replaces:
        yield info(CONSUMER_IS_PYTHON, "the migration-enabled consumer is a Python library (switchover[consumer]): the"
                   " bridge of a Java application is its processing in Python for as long as the migration takes",
                   subject="bridge",
                   cure="where that cannot be, move offline: stop every old consumer, write ZooKeeper's offsets to Kafka"
                        " (docs/guide/coordination.md), start the KafkaConsumers")


CHANGES = (
    check("Changes", find_wrong_changes, "every workload has the changes that the way needs"),
    check("Library", find_python, "what the bridge is made of is known"),
)
GATES: tuple[Gate[Picture], ...] = (
    *brokers.RIGHTS,
    *REGISTRATIONS,
    *STORES,
    *workloads.CHECKS,
    *CHANGES,
    ONE_COORDINATOR,
    CAPACITY,
    OFFSETS_REPLICATED,
)
