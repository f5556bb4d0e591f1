"""G7: ZooKeeper and KRaft hold the same metadata. The only proof, for this cluster, that dual write loses nothing."""

from switchover.core.gate import Gate, Verdict, passed, unknown, wait
from switchover.core.kraft.picture import Picture
from switchover.core.observed import Known

NAMED = 3
"""How many differences a message names."""
PATIENCE_SECONDS = 60.0


def check_parity(picture: Picture) -> Verdict:
    """No difference that persists, by a reading that began after the batch, or else the step, did."""
    seen = picture.facts.parity
    if not isinstance(seen, Known):
        return unknown("ParityUnknown", seen.why, subject="metadata")
    found = seen.value.differences
    if found:
        more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
        return wait("MetadataDiffers", "; ".join(str(item) for item in found[:NAMED]) + more,
                    subject=f"{found[0].kind} {found[0].key}", observed=len(found), threshold=0,
                    unblocks=f"{_restart_of_the_leader(picture)}: the controller that leads next writes all to ZooKeeper"
                    " once more; see the runbook")
    at = picture.position
    begun = at.batch.started if at.batch is not None else at.opened if at.opened is not None else at.entered
    if seen.at < begun:
        return wait("ParityUnsettled", "the metadata was not compared since this began", subject="metadata",
                    unblocks="the next comparison, within seconds")
    if not seen.value.proven:
        return wait("ParityUnsettled", f"{seen.value.unsettled} differences may still be on their way to ZooKeeper",
                    subject="metadata", observed=seen.value.unsettled, unblocks="the next comparison, within seconds")
    return passed("ZooKeeper and KRaft hold the same metadata")


def _restart_of_the_leader(picture: Picture) -> str:
    quorum = picture.facts.quorum
    leader = next((pod for pod, node_id in picture.controllers.items()
                   if isinstance(quorum, Known) and node_id == quorum.value.leader_id), "")
    return f"kubectl --namespace {picture.namespace} delete pod {leader}" if leader else "restart the leading controller"


PARITY: Gate[Picture] = Gate("Parity", check_parity, patience=lambda _: PATIENCE_SECONDS)
