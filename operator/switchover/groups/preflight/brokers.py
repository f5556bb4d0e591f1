"""What every broker says of group coordination: feature, policy, assignors, release."""

from collections.abc import Iterator

from switchover.engine.gate import Verdict, check, fail, warn
from switchover.groups.gates.protocol import READY, finalize_command, to_consumer
from switchover.groups.picture import Picture
from switchover.groups.preflight.group import OFFLINE
from switchover.groups.reading import brokers, offsets_topic_of
from switchover.groups.refusals import DOWNGRADES, POLICY, UPGRADES
from switchover.reasons.notes import CHECK_PATCH_RELEASE
from switchover.reasons.preflight import (
    FEATURE_NOT_FINALIZED,
    NO_ONLINE_ROLLBACK,
    POLICIES_DIFFER,
    POLICY_FORBIDS,
    WRONG_KAFKA_VERSION,
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
    for broker_id, told in brokers(picture).items():
        if told.release < FIRST:
            yield fail(WRONG_KAFKA_VERSION, f"broker {broker_id} is older than Kafka 4.0: its consumer protocol is a"
                       " preview",
                       subject=f"broker {broker_id}", observed=".".join(map(str, told.release)), threshold="4.0",
                       unblocks="upgrade every broker to 4.0 or newer")
        elif told.group_version < 1:
            yield fail(FEATURE_NOT_FINALIZED, f"broker {broker_id} runs {'.'.join(map(str, told.release))}, but the feature"
                       " group.version is not finalized: the software alone does not do it", subject=f"broker {broker_id}",
                       observed=told.group_version, threshold=1, unblocks=finalize_command(picture))


def find_policy(picture: Picture) -> Iterator[Verdict]:
    """Only the coordinator's value counts, and any broker may become it: all must say the same."""
    if picture.spec.protocol is None or picture.offline:
        return
    policies = {broker_id: told.settings.get(POLICY, "").lower() for broker_id, told in brokers(picture).items()
                if told.release >= FIRST}                             # older ones have a finding of their own
    if not policies:
        return
    told = ", ".join(f"{broker_id}: {policy or 'none'}" for broker_id, policy in policies.items())
    if len(set(policies.values())) > 1:
        yield fail(POLICIES_DIFFER, f"the brokers do not have the same {POLICY}", subject=POLICY, observed=told,
                   threshold="one value", unblocks="set the same on every broker: it needs a restart of each")
        return
    policy = next(iter(policies.values()))
    forward, back = (UPGRADES, DOWNGRADES) if to_consumer(picture) else (DOWNGRADES, UPGRADES)
    if policy not in forward:
        yield fail(POLICY_FORBIDS, f"{POLICY} is {policy or 'not set'}: the coordinator refuses the members of the new"
                   " protocol",
                   subject=POLICY, observed=told, threshold=" or ".join(sorted(forward)),
                   unblocks=f"set it to bidirectional on every broker (a restart of each); or {OFFLINE}")
    elif policy not in back:
        yield from _one_way(picture, policy, told)


def _one_way(picture: Picture, policy: str, told: str) -> Iterator[Verdict]:
    assert picture.spec.protocol is not None
    stuck = to_consumer(picture) and any(each.release >= STUCK_FROM for each in brokers(picture).values())
    message = f"{POLICY} is {policy}: the group does not go back online"
    if stuck:
        message += ("; from Kafka 4.3 on its partitions lose their owners when the last new member leaves, and a rollback"
                    " restarts one more pod to heal that")
    cure = "set it to bidirectional on every broker (a restart of each), or spec.protocol.acceptNoOnlineRollback to true"
    if picture.spec.protocol.accept_no_online_rollback:
        yield warn(NO_ONLINE_ROLLBACK, message, subject=POLICY, observed=told, threshold="bidirectional", cure=cure)
    else:
        yield fail(NO_ONLINE_ROLLBACK, message, subject=POLICY, observed=told, threshold="bidirectional", unblocks=cure)


def find_unclear_release(picture: Picture) -> Iterator[Verdict]:
    """Patch releases are not told on the wire."""
    if picture.spec.protocol is None:
        return
    topic = offsets_topic_of(picture)
    if topic.compressed and any(told.release < REPAIRED for told in brokers(picture).values()):
        yield warn(CHECK_PATCH_RELEASE, "in 4.0.2, 4.1.1, 4.1.2, 4.2.0, 4.2.1, 4.3.0 and 4.3.1 a large group may be damaged"
                   " when it is converted and offsets.topic.compression.codec is set (KAFKA-20845); brokers do not tell"
                   " their patch release",
                   subject="brokers", cure="run 4.0.3, 4.1.3, 4.2.2, 4.3.2, 4.4 or newer")


CHECKS = (
    check("BrokerReleases", find_old_brokers, "every broker serves the consumer protocol"),
    check("MigrationPolicy", find_policy, "the brokers convert the group there and back"),
    check("PatchRelease", find_unclear_release, "no known defect is in the way"),
    READY,
)
