"""ZooKeeper and KRaft hold the same metadata. The only proof, for this cluster, that dual write loses nothing."""

from collections.abc import Sequence

from switchover.answers.observed import Known
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import hand_on_command
from switchover.engine.gate import Gate, Verdict, passed, unknown, wait
from switchover.metadata.cluster import ABSENT, LIMIT, QUOTA, SCRAM_USER, Difference
from switchover.reasons.cluster import METADATA_DIFFERS, PARITY_UNKNOWN, PARITY_UNSETTLED

NAMED = 3
"""How many differences a message names."""
PATIENCE_SECONDS = 60.0


def check_parity(picture: Picture) -> Verdict:
    """No difference that persists, by a reading that began after the batch, or else the step, did."""
    seen = picture.facts.parity
    if not isinstance(seen, Known):
        return unknown(PARITY_UNKNOWN, seen.why, subject="metadata")
    found = seen.value.differences
    if found:
        more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
        return wait(METADATA_DIFFERS, "; ".join(str(item) for item in found[:NAMED]) + more,
                    subject=f"{found[0].kind} {found[0].key}", observed=len(found), threshold=0,
                    unblocks=_cure(picture, found))
    at = picture.position
    begun = at.batch.started if at.batch is not None else at.opened if at.opened is not None else at.entered
    if seen.at < begun:
        return wait(PARITY_UNSETTLED, "the metadata was not compared since this began", subject="metadata",
                    unblocks="the next comparison, within seconds")
    if not seen.value.proven:
        return wait(PARITY_UNSETTLED, f"{seen.value.unsettled} differences may still be on their way to ZooKeeper",
                    subject="metadata", observed=seen.value.unsettled, unblocks="the next comparison, within seconds")
    return passed("ZooKeeper and KRaft hold the same metadata")


def are_ended_by_a_new_leader(found: Sequence[Difference]) -> bool:
    """Whether a restart of the leading controller ends these differences, and nothing is lost by it.

    A new leader writes all of KRaft's metadata over ZooKeeper's, so one difference that is for a person keeps it from all.
    * A SCRAM credential that KRaft has: entry scripts write the same password with a new salt to ZooKeeper at each start of
      a broker, past dual write. Brokers on KRaft have never accepted it. One that ZooKeeper alone has would be gone.
    * A quota: no tool of Kafka 3.9 writes one to ZooKeeper, so what is there is the older value (the removal of a client's
      last quota never gets there, docs/runbooks/MetadataDiffers.md).
    Anything else may be what somebody wants and has told ZooKeeper alone: an access right given or taken away
    (`kafka-acls.sh --authorizer-properties zookeeper.connect`), a password of a broker, a topic's retention. A topic that
    ZooKeeper lacks can make the full write fail half-way, and a node that cannot be read is passed over by it.
    """
    mended = all(item.kind == QUOTA or (item.kind == SCRAM_USER and item.kraft != ABSENT) for item in found)
    return mended and 0 < len(found) < LIMIT           # beyond it there may be others, which are not named


def _cure(picture: Picture, found: Sequence[Difference]) -> str:
    command = hand_on_command(picture)
    if not are_ended_by_a_new_leader(found):
        return f"find out which side is right, as the runbook tells; where it is KRaft's: {command}"
    if picture.position.opened is None:
        return command
    return f"after a minute Switchover restarts the leading controller, each once in this step; by hand: {command}"


PARITY: Gate[Picture] = Gate("Parity", check_parity, patience=lambda _: PATIENCE_SECONDS, needs=(Need.PARITY,))
