"""The claim, the copy, the dual write that follows, and that it loses nothing."""

from collections.abc import Sequence

from switchover.answers.observed import Known
from switchover.api.status import Verdict as Outcome
from switchover.cluster import blocked_writes
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import (
    copied_under_claim,
    hand_on_command,
    is_claimed,
    leading_controller,
    log_of,
    quorum_of,
    samples,
    silence,
    stands_still,
    zookeeper_of,
)
from switchover.engine.gate import Gate, Verdict, answered, fail, passed, seen, unknown, wait
from switchover.metadata.cluster import ABSENT, LIMIT, QUOTA, SCRAM_USER, Difference
from switchover.metadata.parity import MigrationState
from switchover.reasons.cluster import (
    CLAIMED_NOT_COPIED,
    DUAL_WRITE_BEHIND,
    DUAL_WRITE_STANDS_STILL,
    DUAL_WRITE_STUCK,
    METADATA_DIFFERS,
    MIGRATION_NODE_GONE,
    NOT_CLAIMED,
    NOT_COPIED,
    PARITY_UNKNOWN,
    PARITY_UNSETTLED,
    PARTITIONS_WITHOUT_STATE,
    QUOTA_STOPS_DUAL_WRITE,
    STALE_MIGRATION_NODE,
    ZOOKEEPER_UNKNOWN,
)
from switchover.reasons.walk import NO_CONTROLLER
from switchover.text.command import kubectl
from switchover.zookeeper.nodes import ZooKeeperState

CLAIM_SECONDS = 120.0
"""The driver waits for up to a minute between two looks; twice that is too long."""
SLOWER = 4
"""How many times slower than on the replica the copy may be: a replica's ZooKeeper is on loopback, without a disk."""
RESCUE_SECONDS = 60.0
"""How long controllers that were restarted may take to come back before the copy's time counts again."""


def check_claimed(picture: Picture) -> Verdict:
    state = zookeeper_of(picture)
    if state.controller is None:
        return wait(NO_CONTROLLER, "/controller does not exist at this moment", subject="/controller",
                    unblocks="wait: a controller takes it within seconds; if none does, check ZooKeeper's health")
    if state.controller.ephemeral or state.controller.node_id not in picture.controllers.values():
        return wait(NOT_CLAIMED, "the KRaft controllers have not claimed /controller yet", subject="/controller",
                    observed=f"node {state.controller.node_id}", threshold=f"one of {sorted(picture.controllers.values())}",
                    unblocks=_who_is_missing(picture, state))
    return passed(f"/controller belongs to KRaft controller {state.controller.node_id}")


def _who_is_missing(picture: Picture, state: ZooKeeperState) -> str:
    """What the migration driver waits for: every broker of /brokers/ids registered as migrating."""
    log = picture.facts.log
    if isinstance(log, Known):
        registered = {node_id for node_id, item in log.value.brokers.items() if item.migrating_zk}
        if missing := sorted(set(state.brokers) - registered):
            return f"wait until brokers {missing} have registered with the controllers"
    return "wait: the controllers claim it by themselves; after a repair in ZooKeeper that can take a minute"


def check_claim_follows_registration(picture: Picture) -> Verdict:
    """With every broker registered the claim follows at once, or after a repair in ZooKeeper within a minute.

    A migration driver that lost its ZooKeeper session at the wrong moment never goes on (seen on 3.9.2 after controllers had
    stood still for longer than their session); a restart of the controllers ends that.
    """
    log = log_of(picture)
    registered = {node_id for node_id, item in log.brokers.items() if item.migrating_zk and not item.fenced}
    settled = log.migration_state is not MigrationState.PRE_MIGRATION
    if settled or not picture.brokers or not set(picture.brokers.values()) <= registered:
        return passed()
    return check_claimed(picture)


def check_copied(picture: Picture) -> Verdict:
    state = zookeeper_of(picture)
    # Reported even when the log cannot be read: a quorum that died in the middle of the copy is what the watchdog is for.
    if state.migration is None or state.migration.offset <= 0:
        return wait(NOT_COPIED, "the controllers have not copied the metadata yet", subject="/migration",
                    observed="absent" if state.migration is None else f"offset {state.migration.offset}",
                    threshold="offset > 0", unblocks="wait until the controllers finish the copy")
    log = log_of(picture)
    if log.migration_state is not MigrationState.MIGRATION or log.open_transaction is not None:
        found = log.migration_state.name if log.migration_state is not None else "none"
        return wait(NOT_COPIED, "the metadata log does not say MIGRATION yet", subject="metadata log", observed=found,
                    threshold="MIGRATION, no open transaction", unblocks="wait until the controllers finish the copy")
    return passed(f"copied up to offset {state.migration.offset}")


def check_leaders_can_be_elected(picture: Picture) -> Verdict:
    """A controller is active, ZooKeeper's or KRaft's: a broker may stop only where one elects other leaders."""
    state = zookeeper_of(picture)
    if state.controller is None:
        return wait(NO_CONTROLLER, "/controller does not exist at this moment", subject="/controller",
                    unblocks="wait: a controller takes it within seconds; if none does, check ZooKeeper's health")
    return check_copied(picture) if is_claimed(state) else passed("ZooKeeper's controller is active")


def check_copy_follows_claim(picture: Picture) -> Verdict:
    """The watchdog of the time between claim and copy, in which the cluster has no working controller."""
    claimed, copied = answered(check_claimed, picture), answered(check_copied, picture)
    if claimed.outcome == "Unknown":
        return claimed
    if claimed.outcome != "Pass" or copied.outcome == "Pass":
        return passed()
    if copied.outcome == "Unknown":
        return copied
    return wait(CLAIMED_NOT_COPIED,
                "the KRaft controllers have claimed the cluster, but not copied its metadata: no controller works now, so"
                " no leader can be elected. Restart no broker", subject="/migration",
                unblocks="look in the controllers' logs for the record that cannot be copied; if they merely died, start"
                         " them again: they repeat the copy")


def copy_timeout(picture: Picture) -> float:
    """Seconds between claim and copy before the watchdog speaks: the limit, and as much as the copy itself may take.

    That is SLOWER times what the rehearsal took, and where there was none a second for every 1,000 partitions.
    """
    limit = picture.spec.gates.copy_timeout_seconds
    if picture.rehearsed is not None:
        return limit + SLOWER * picture.rehearsed
    partitions = max((view.size for view in picture.whole_views.values()), default=0)
    return limit + partitions / 1000


def check_no_phantom_copy(picture: Picture) -> Verdict:
    """offset > 0 while the log says neither MIGRATION nor POST_MIGRATION: a stale /migration; topics would be deleted."""
    state, log = zookeeper_of(picture), log_of(picture)
    node = state.migration
    settled = log.migration_state in (MigrationState.MIGRATION, MigrationState.POST_MIGRATION)
    if node is not None and node.offset > log.offset + 1 and not settled:
        # The log may have been read a moment before ZooKeeper: only what stays so is true.
        return wait(STALE_MIGRATION_NODE,
                    "/migration says that metadata was copied, and the metadata log that it was not: the controllers would"
                    " delete every topic from ZooKeeper", subject="/migration", observed=f"offset {node.offset}",
                    unblocks="stop them now: "
                             + kubectl(picture.namespace, "scale statefulset {} --replicas 0", picture.spec.controllers.name)
                             + "; once their pods are gone, delete /migration, then /controller")
    return passed()


def check_dual_write(picture: Picture) -> Verdict:
    """`/migration` is rewritten twice a second, and its offset stands at the high watermark."""
    state, quorum = zookeeper_of(picture), quorum_of(picture)
    if state.migration is None:
        return fail(MIGRATION_NODE_GONE, "/migration does not exist any more", subject="/migration",
                    unblocks="find out who deleted it: no step goes on without dual write")
    limits = picture.spec.gates
    age = silence(picture)
    lag = quorum.high_watermark - 1 - state.migration.offset
    if lag > limits.dual_write_max_lag or age > limits.dual_write_max_age_seconds:
        return wait(DUAL_WRITE_BEHIND, "metadata written to KRaft has not reached ZooKeeper", subject="/migration",
                    observed=f"{lag} records, {age:.1f} s old",
                    threshold=f"{limits.dual_write_max_lag} records, {limits.dual_write_max_age_seconds} s",
                    unblocks="check that the leading controller reaches ZooKeeper")
    return passed(f"lag {lag}, {age:.1f} s old")


def check_driver_alive(picture: Picture) -> Verdict:
    """The leader's migration driver writes `/migration` twice a second, and sends brokers in ZooKeeper mode who leads what.

    One that lost the answer to a write of that node takes it for somebody else's and repeats itself for ever ("Conditional
    update on KRaft Migration ZNode failed", `KafkaZkClient.retryMigrationRequestsUntilConnected` of 3.9.2): seen after
    ZooKeeper had answered nothing for 20 s. Only another leader claims again.
    """
    state = zookeeper_of(picture)
    if copied_under_claim(state) is None:
        return passed("no driver has to write")
    age, limit = silence(picture), picture.spec.gates.dual_write_max_age_seconds
    if age > limit:
        who = f", {leader}," if (leader := leading_controller(picture)) else ""
        return wait(DUAL_WRITE_STUCK, f"the leading controller{who} writes nothing to ZooKeeper, and sends no changes to"
                    " brokers in ZooKeeper mode", subject="/migration", observed=f"{age:.0f} s old",
                    threshold=f"{limit} s", unblocks=f"check that it reaches ZooKeeper; {_another_leads(picture)}")
    return passed(f"/migration is {age:.1f} s old")


def _another_leads(picture: Picture) -> str:
    if picture.position.opened is not None:
        return "after a minute Switchover restarts it, so that another one leads"
    return f"if ZooKeeper is well, let another one lead: {hand_on_command(picture)}"


def check_partition_states(picture: Picture) -> Verdict:
    """A new leader writes all of KRaft's metadata to ZooKeeper, and never gets past partitions without a state there
    (docs/facts/kraft.md#a-topic-that-grows-while-the-leader-changes). They are looked for while dual write stands still."""
    if not seen(picture.facts.stateless, ZOOKEEPER_UNKNOWN, "/brokers/topics"):
        return passed("no partition stops dual write")
    log_of(picture)
    stands_still(picture)
    found = blocked_writes.missing_states(picture)
    if not found:
        return passed("no partition stops dual write")
    named = blocked_writes.named_states(found)
    return wait(PARTITIONS_WITHOUT_STATE, f"no metadata reaches ZooKeeper: it has no state of {named}, and the leading"
                " controller creates none", subject=named.partition(",")[0], observed=len(found),
                unblocks="nothing to do: Switchover creates the states, and the controller tries again within a minute")


def check_dual_write_begins(picture: Picture) -> Verdict:
    """Dual write begins with all of KRaft's metadata, and repeats itself at a record that ZooKeeper's side of Kafka refuses:
    `/migration` is touched, and its offset stays (docs/facts/rehearsal.md)."""
    log_of(picture)
    stood = stands_still(picture)
    if answered(check_driver_alive, picture).outcome is Outcome.WAIT:
        return passed("the controller writes nothing, which gate DriverAlive reports: no record is refused")
    if found := blocked_writes.unwritable_quotas(picture):
        more = f"; and {len(found) - 1} more" if len(found) > 1 else ""
        return wait(QUOTA_STOPS_DUAL_WRITE, f"dual write stops: Kafka cannot write to ZooKeeper the {found[0]}{more}",
                    subject=str(found[0]), observed=f"{found[0].value!r}",
                    unblocks=f"nothing to do. Switchover changes it: {blocked_writes.changed_quota(found[0])}")
    if stood > (limit := picture.spec.gates.dual_write_max_age_seconds):
        return wait(DUAL_WRITE_STANDS_STILL, "the leading controller does not get KRaft's metadata into ZooKeeper",
                    subject="/migration", observed=f"{stood:.0f} s", threshold=f"{limit} s",
                    unblocks="wait: it writes all of it once; if that does not end, its log names the refused record")
    return passed("nothing stops dual write")


CLAIMED: Gate[Picture] = Gate("Claimed", check_claimed)
COPIED: Gate[Picture] = Gate("Copied", check_copied)
LEADERS_CAN_BE_ELECTED: Gate[Picture] = Gate("LeadersCanBeElected", check_leaders_can_be_elected)
CLAIM_FOLLOWS_REGISTRATION: Gate[Picture] = Gate(
    "ClaimFollowsRegistration", check_claim_follows_registration, patience=lambda _: CLAIM_SECONDS)
COPY_FOLLOWS_CLAIM: Gate[Picture] = Gate(
    "CopyFollowsClaim", check_copy_follows_claim, patience=copy_timeout,
    undo=lambda p: 2 * copy_timeout(p) + RESCUE_SECONDS)
NO_PHANTOM_COPY: Gate[Picture] = Gate(
    "NoPhantomCopy", check_no_phantom_copy, patience=lambda _: 3.0, undo=lambda _: 3.0)
DRIVER_ALIVE: Gate[Picture] = Gate("DriverAlive", check_driver_alive, patience=lambda _: RESCUE_SECONDS)
PARTITION_STATES: Gate[Picture] = Gate("PartitionStates", check_partition_states, needs=(Need.STATELESS,))
DUAL_WRITE_BEGINS: Gate[Picture] = Gate("DualWriteBegins", check_dual_write_begins, patience=copy_timeout)
DUAL_WRITE: Gate[Picture] = Gate("DualWrite", check_dual_write, samples=lambda p: max(samples(p), 5))
DUAL_WRITE_ALIVE: Gate[Picture] = Gate("DualWriteAlive", check_dual_write)


# --- parity ---------------------------------------------------------------------------------------------------------------
# ZooKeeper and KRaft hold the same metadata: the only proof, for this cluster, that dual write loses nothing.

DIFFERENCES_NAMED = 3
"""How many differences a message names."""
PATIENCE_SECONDS = 60.0
COMPARED_AGAIN = "nothing to do: the next comparison follows within seconds"


def check_parity(picture: Picture) -> Verdict:
    """No difference that lasts, by a reading that began after the batch did, or else the step."""
    seen = picture.facts.parity
    if not isinstance(seen, Known):
        return unknown(PARITY_UNKNOWN, f"ZooKeeper and KRaft were not compared yet: {seen.why}", subject="metadata")
    found = seen.value.differences
    if found:
        more = f"; and {len(found) - DIFFERENCES_NAMED} more" if len(found) > DIFFERENCES_NAMED else ""
        return wait(METADATA_DIFFERS, "; ".join(str(item) for item in found[:DIFFERENCES_NAMED]) + more,
                    subject=f"{found[0].kind} {found[0].key}", observed=len(found), threshold=0,
                    unblocks=_repair(picture, found))
    at = picture.position
    begun = at.batch.started if at.batch is not None else at.opened if at.opened is not None else at.entered
    if seen.at < begun:
        return wait(PARITY_UNSETTLED, "the metadata has not been compared since this step or batch began",
                    subject="metadata", unblocks=COMPARED_AGAIN)
    if not seen.value.proven:
        return wait(PARITY_UNSETTLED, f"{seen.value.unsettled} differences may still be on their way to ZooKeeper",
                    subject="metadata", observed=seen.value.unsettled, unblocks=COMPARED_AGAIN)
    return passed("ZooKeeper and KRaft hold the same metadata")


def are_ended_by_a_new_leader(found: Sequence[Difference]) -> bool:
    """Whether a restart of the leading controller ends these differences, and nothing is lost by it.

    A new leader writes all of KRaft's metadata over ZooKeeper's, so a single difference that needs a person forbids it.
    * A SCRAM credential that KRaft has: entry scripts write the same password with a new salt to ZooKeeper at each start of
      a broker, past dual write. Brokers on KRaft have never accepted it. One that ZooKeeper alone has would be gone.
    * A quota: no tool of Kafka 3.9 writes one to ZooKeeper, so what is there is the older value (the removal of a client's
      last quota never gets there, docs/runbooks/MetadataDiffers.md).
    Anything else may be what somebody wants and has written to ZooKeeper alone: an access right given or taken away
    (`kafka-acls.sh --authorizer-properties zookeeper.connect`), a password of a broker, a topic's retention. A topic that
    ZooKeeper lacks can make the full write fail half-way, and a node that cannot be read is passed over by it.
    """
    mended = all(item.kind == QUOTA or (item.kind == SCRAM_USER and item.kraft != ABSENT) for item in found)
    return mended and 0 < len(found) < LIMIT           # beyond it there may be others, which are not named


def _repair(picture: Picture, found: Sequence[Difference]) -> str:
    command = hand_on_command(picture)
    if not are_ended_by_a_new_leader(found):
        return f"find out which side is right, as the runbook shows; if KRaft's is: {command}"
    if picture.position.opened is None:
        return command
    return f"after a minute Switchover restarts the leading controller, each once in this step; to do it yourself: {command}"


PARITY: Gate[Picture] = Gate("Parity", check_parity, patience=lambda _: PATIENCE_SECONDS, needs=(Need.PARITY,))
