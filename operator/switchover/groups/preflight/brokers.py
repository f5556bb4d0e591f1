"""What Switchover may do, and what every broker says of group coordination: feature, policy, assignors, release, and whether
the group fits (docs/facts/groups.md#size).
"""

from collections.abc import Iterator

from switchover.answers.observed import Known, Observed
from switchover.engine.gate import Unseen, Verdict, check, fail, seen, unknown, warn
from switchover.engine.policy import find_unchecked
from switchover.groups.facts import Need
from switchover.groups.gates.convergence import CAPACITY, OFFSETS_REPLICATED
from switchover.groups.gates.protocol import READY, finalize_command, to_consumer
from switchover.groups.picture import Picture
from switchover.groups.preflight.group import OFFLINE
from switchover.groups.reading import (
    DOWNGRADES,
    POLICY,
    UPGRADES,
    brokers,
    coordinator,
    group_of,
    offsets_topic_of,
    raise_message_bytes,
)
from switchover.groups.slots import surplus
from switchover.kafka.group import Group
from switchover.reasons.groups import COORDINATOR_UNKNOWN, GROUP_TOO_LARGE, RECORD_TOO_LARGE
from switchover.reasons.notes import CHECK_PATCH_RELEASE, RECORD_LARGE
from switchover.reasons.preflight import (
    FEATURE_NOT_FINALIZED,
    KUBERNETES_RIGHT_MISSING,
    NO_ONLINE_ROLLBACK,
    NO_ROOM_FOR_BATCH,
    POLICIES_DIFFER,
    POLICY_FORBIDS,
    READING_REFUSED,
    WRONG_KAFKA_VERSION,
)
from switchover.reasons.walk import NOT_OBSERVED
from switchover.shared.grouped import grouped


def find_refusals(picture: Picture) -> Iterator[Verdict]:
    """Every reading that was refused: it will be refused until a person acts, so it is no matter of waiting."""
    facts = picture.facts
    readings: dict[str, Observed[object]] = {
        "the workloads": facts.fleet, f"group {picture.spec.group}": facts.group, "the cluster": facts.cluster_id,
        "offsets": facts.samples, "the groups of every coordinator": facts.coordinated,
        "__consumer_offsets": facts.offsets_topic, "the consumer protocol": facts.readiness,
        "our rights in Kubernetes": facts.missing_rights,
        "ZooKeeper": facts.zookeeper, "our rights in ZooKeeper": facts.missing_zookeeper_rights,
        **{f"broker {broker}": answer for broker, answer in facts.brokers.items()},
    }
    if not any(isinstance(reading, Known) for reading in readings.values()):
        raise Unseen(unknown(NOT_OBSERVED, "nothing could be read yet"))
    refused = grouped((reading.why, subject) for subject, reading in readings.items()
                      if not isinstance(reading, Known) and reading.refused and not reading.malformed)
    for why, subjects in refused.items():
        yield fail(READING_REFUSED, why, subject=", ".join(subjects[:5]), unblocks="grant what the message asks for")


def find_missing_rights(picture: Picture) -> Iterator[Verdict]:
    missing = seen(picture.facts.missing_rights, NOT_OBSERVED, "our rights in Kubernetes")
    if missing:
        listed = ", ".join(missing[:20])
        yield fail(KUBERNETES_RIGHT_MISSING, f"this account may not {listed} in its namespace", subject="Role switchover",
                   observed=f"{len(missing)} missing", threshold="all that the chart's Role grants",
                   unblocks="install the chart's Role, or grant these rights")


def find_unchecked_hosts(picture: Picture) -> Iterator[Verdict]:
    yield from find_unchecked(picture.facts.unchecked)


RIGHTS = (
    check("HostsChecked", find_unchecked_hosts, "servers must have certificates for their own names"),
    check("Readings", find_refusals, "no reading was refused",
          needs=(Need.LOAD, Need.READINESS, Need.RIGHTS, Need.RIGHTS_IN_ZOOKEEPER)),
    check("Rights", find_missing_rights, "Switchover may do all that a migration needs", needs=(Need.RIGHTS,)),
)


FIRST = (4, 0)
"""The first release whose brokers serve the consumer protocol in production (KIP-848)."""
REPAIRED = (4, 4)
"""The first release of which no patch has KAFKA-20845."""
STUCK_FROM = (4, 3)
"""From here on a mixed group whose last member of the new protocol leaves under policy `upgrade` is left without owners."""


def find_old_brokers(picture: Picture) -> Iterator[Verdict]:
    if picture.spec.protocol is None:
        return
    for broker_id, broker in brokers(picture).items():
        if broker.release < FIRST:
            yield fail(WRONG_KAFKA_VERSION, f"broker {broker_id} is older than Kafka 4.0: its consumer protocol is a"
                       " preview", subject=f"broker {broker_id}", observed=".".join(map(str, broker.release)),
                       threshold="4.0", unblocks="upgrade every broker to 4.0 or newer")
        elif broker.group_version < 1:
            yield fail(FEATURE_NOT_FINALIZED, f"the feature group.version is not finalized on broker {broker_id}, which runs"
                       f" {'.'.join(map(str, broker.release))}: an upgrade of the software does not finalize it",
                       subject=f"broker {broker_id}", observed=broker.group_version, threshold=1,
                       unblocks=finalize_command(picture))


def find_policy(picture: Picture) -> Iterator[Verdict]:
    """Only the coordinator's value counts, and any broker may become it: all must say the same."""
    if picture.spec.protocol is None or picture.offline:
        return
    policies = {broker_id: broker.settings.get(POLICY, "").lower() for broker_id, broker in brokers(picture).items()
                if broker.release >= FIRST}                              # older ones have a finding of their own
    if not policies:
        return
    observed = ", ".join(f"{broker_id}: {policy or 'none'}" for broker_id, policy in policies.items())
    if len(set(policies.values())) > 1:
        yield fail(POLICIES_DIFFER, f"{POLICY} is not the same on every broker", subject=POLICY, observed=observed,
                   threshold="one value", unblocks="set the same on every broker (a restart of each)")
        return
    policy = next(iter(policies.values()))
    forward, back = (UPGRADES, DOWNGRADES) if to_consumer(picture) else (DOWNGRADES, UPGRADES)
    if policy not in forward:
        yield fail(POLICY_FORBIDS, f"{POLICY} is {policy or 'not set'}: the coordinator refuses members of the new protocol",
                   subject=POLICY, observed=observed, threshold=" or ".join(sorted(forward)),
                   unblocks=f"set it to bidirectional on every broker (a restart of each); or {OFFLINE}")
    elif policy not in back:
        yield from _one_way(picture, policy, observed)


def _one_way(picture: Picture, policy: str, observed: str) -> Iterator[Verdict]:
    assert picture.spec.protocol is not None
    stuck = to_consumer(picture) and any(each.release >= STUCK_FROM for each in brokers(picture).values())
    message = f"{POLICY} is {policy}: a rollback cannot convert the group online"
    if stuck:
        message += ("; from Kafka 4.3 on partitions are then without owners until it restarts one more pod")
    unblocks = "set it to bidirectional on every broker (a restart of each), or spec.protocol.acceptNoOnlineRollback to true"
    if picture.spec.protocol.accept_no_online_rollback:
        yield warn(NO_ONLINE_ROLLBACK, message, subject=POLICY, observed=observed, threshold="bidirectional", cure=unblocks)
    else:
        yield fail(NO_ONLINE_ROLLBACK, message, subject=POLICY, observed=observed, threshold="bidirectional",
                   unblocks=unblocks)


def find_unclear_release(picture: Picture) -> Iterator[Verdict]:
    """Patch releases are not sent on the wire."""
    if picture.spec.protocol is None:
        return
    topic = offsets_topic_of(picture)
    if topic.compressed and any(broker.release < REPAIRED for broker in brokers(picture).values()):
        yield warn(CHECK_PATCH_RELEASE, "offsets.topic.compression.codec is set: on 4.0.2, 4.1.1, 4.1.2, 4.2.0, 4.2.1, 4.3.0"
                   " and 4.3.1 the conversion may damage a large group (KAFKA-20845), and brokers do not report their patch"
                   " release", subject="brokers", cure="check that they run 4.0.3, 4.1.3, 4.2.2, 4.3.2, 4.4 or newer")


BROKERS = (
    check("BrokerReleases", find_old_brokers, "every broker serves the consumer protocol"),
    check("MigrationPolicy", find_policy, "the brokers convert the group there and back"),
    check("PatchRelease", find_unclear_release, "no known defect is in the way"),
    READY,
)


UNLIMITED = 2**31 - 1
PROTOCOLS = 2
"""Strategies that a client lists by default; each carries the whole metadata again into the conversion."""


def find_too_many_members(picture: Picture) -> Iterator[Verdict]:
    broker, found = coordinator(picture), group_of(picture)
    if broker is None:
        yield unknown(COORDINATOR_UNKNOWN, "the group's coordinator did not return its settings", subject=found.name)
        return
    if picture.offline:
        return
    new, old = ("group.consumer.max.size", "group.max.size") if to_consumer(picture) else (
        "group.max.size", "group.consumer.max.size")
    here, batch = len(found.members), surplus(picture)
    for setting, why in ((new, "the coordinator would refuse"), (old, "in a rollback it would refuse")):
        limit = int(broker.settings.get(setting, UNLIMITED))
        if picture.spec.protocol is None or here + batch <= limit:
            continue
        if here > limit:
            yield fail(GROUP_TOO_LARGE, f"{here} members exceed {setting}: {why} to convert the group",
                       subject=setting, observed=here, threshold=limit,
                       unblocks=f"raise {setting} to {here + batch} or more on every broker, or {OFFLINE}")
        else:
            yield fail(NO_ROOM_FOR_BATCH, f"{here} members and a batch of {batch} more exceed {setting}: {why}"
                       " members of the batch", subject=setting, observed=here + batch, threshold=limit,
                       unblocks=f"reduce the batches of spec.rollout, raise {setting} to {here + batch} or more on"
                                f" every broker, or {OFFLINE}")


def conversion_bytes(found: Group) -> int:
    """The one batch that converts a group, in bytes (an estimate on the high side; docs/facts/groups.md#size)."""
    total = 0
    for member in found.members:
        topics = sum(len(topic) + 1 for topic in member.topics)
        owned = {each.topic for each in member.assigned}
        named = sum(len(topic) + 18 for topic in owned) + 4 * len(member.assigned)
        own = 3 * (len(found.name) + len(member.member_id) + 16) + len(member.client_id) + len(member.host) + 46
        total += own + topics + PROTOCOLS * (max(member.metadata, topics + len(member.topics)) + 40) + 2 * named
    return total


def rebalance_bytes(found: Group) -> int:
    """The one record that a rebalance of a classic group writes, in bytes."""
    return sum(member.metadata + member.assignment + 100 for member in found.members)


def find_too_large_records(picture: Picture) -> Iterator[Verdict]:
    found, topic = group_of(picture), offsets_topic_of(picture)
    online = to_consumer(picture) and not picture.offline
    needed = conversion_bytes(found) if online else rebalance_bytes(found)
    what = "the batch that converts the group" if online else "the record of a rebalance"
    limit = topic.max_message_bytes
    if needed > limit and not topic.compressed:
        yield fail(RECORD_TOO_LARGE, f"{what} is estimated at {needed} bytes: the coordinator would fail with"
                   " UNKNOWN_SERVER_ERROR", subject="__consumer_offsets max.message.bytes", observed=needed, threshold=limit,
                   unblocks=f"list one strategy in partition.assignment.strategy, or {OFFLINE}; or make room for it:"
                            f" {raise_message_bytes(picture, needed)}")
    elif needed > limit * 0.7:
        yield warn(RECORD_LARGE, f"{what} is estimated at {needed} bytes, {100 * needed // limit} % of what fits",
                   subject="__consumer_offsets max.message.bytes", observed=needed, threshold=limit,
                   cure="raise max.message.bytes of __consumer_offsets")


SIZE = (
    check("GroupSize", find_too_many_members, "the group and a batch fit into the brokers' limits"),
    check("RecordSize", find_too_large_records, "the group's records fit into __consumer_offsets"),
    CAPACITY,
    OFFSETS_REPLICATED,
)
