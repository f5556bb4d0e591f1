"""What the rehearsal of claim and copy found, before anything of the user's is touched (docs/rehearsal.md)."""

from collections.abc import Iterator

from switchover.api.status import Severity
from switchover.api.status import Verdict as Outcome
from switchover.cluster.facts import Export, Need
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal import replica_job
from switchover.cluster.rehearsal.report import TO_DUAL_WRITE, Report
from switchover.engine.gate import Gate, Unseen, Verdict, fail, gravest, passed, seen, unknown, wait
from switchover.reasons.preflight import REHEARSAL_FAILED, REHEARSAL_INCOMPLETE, REHEARSAL_RUNNING, REHEARSAL_UNKNOWN
from switchover.text.command import command, kubectl


def check_rehearsed(picture: Picture) -> Verdict:
    """A rehearsal has come to its end and found nothing that stands in the way."""
    if not picture.spec.rehearsal.enabled:
        return passed("left out: spec.rehearsal.enabled is false")
    found = _found(picture)
    seconds = found.seconds.get(TO_DUAL_WRITE, 0.0)
    told = f"claim, copy and dual write of {found.topics} topics took {seconds:.1f} s on a replica"
    return gravest(_findings(picture, found), told)


def check_rehearsed_again(picture: Picture) -> Verdict:
    """The same, of the tree as it is right before the copy."""
    if picture.spec.rehearsal.enabled and not replica_job.stands(picture, _found(picture), _tree(picture).digest):
        return wait(REHEARSAL_RUNNING, "the metadata has changed since it was rehearsed", subject=_job(picture),
                    unblocks="nothing to do: it is rehearsed again")
    return check_rehearsed(picture)


def _tree(picture: Picture) -> Export:
    return seen(picture.facts.exported, REHEARSAL_UNKNOWN, "ZooKeeper's metadata")


def _found(picture: Picture) -> Report:
    if not picture.operator_image:
        raise Unseen(unknown(
            REHEARSAL_UNKNOWN, "the operator does not know its own image, which the replica's pod needs",
            subject="IMAGE", unblocks="set IMAGE in the operator's environment, as the chart does"))
    job = seen(picture.facts.rehearsal, REHEARSAL_UNKNOWN, _job(picture))
    if job is None:
        _tree(picture)
        seen(replica_job.release(picture), REHEARSAL_UNKNOWN, "the brokers' protocol version")
        seen(replica_job.classes_to_try(picture), REHEARSAL_UNKNOWN, "the brokers' own classes")
        raise Unseen(wait(REHEARSAL_RUNNING, "the replica's Job is not there yet", subject=_job(picture),
                          unblocks="nothing to do: it is created"))
    if not job.message and not job.ended:
        raise Unseen(wait(REHEARSAL_RUNNING, job.detail or "the rehearsal runs", subject=_job(picture),
                          unblocks="it ends by itself"))
    found = replica_job.told(job)
    if not isinstance(found, str):
        return found.at(picture.spec.zookeeper.connect)
    if replica_job.is_outdated(picture, job):
        raise Unseen(wait(REHEARSAL_RUNNING, "the rehearsal could not run, and what it is made of has changed since",
                          subject=_job(picture), unblocks="nothing to do: it is rehearsed again"))
    raise Unseen(fail(
        REHEARSAL_FAILED, f"the rehearsal did not come to its end: {found}", subject=_job(picture),
        unblocks=f"mend what it names; it is made again when the spec or the brokers' template has changed, else"
                 f" {kubectl(picture.namespace, 'delete job {}', replica_job.job_name(picture))};"
                 " or set spec.rehearsal.enabled to false"))


def _findings(picture: Picture, found: Report) -> Iterator[Verdict]:
    for each in found.findings:
        outcome = Outcome.FAIL if each.severity is Severity.BLOCKER else Outcome.PASS
        yield Verdict(outcome, each.reason, each.message, each.subject, unblocks=each.cure, severity=each.severity)
    if found.more:
        yield fail(REHEARSAL_INCOMPLETE, f"{found.more} more findings had no room in the report", subject=_job(picture),
                   unblocks=command("kubectl logs job/{} -c {}", replica_job.job_name(picture), replica_job.CONDUCTOR)
                   + " has them all")


def _job(picture: Picture) -> str:
    return f"Job {replica_job.job_name(picture)}"


REHEARSED: Gate[Picture] = Gate("Rehearsed", check_rehearsed, needs=(Need.REHEARSAL,))
REHEARSED_AGAIN: Gate[Picture] = Gate("RehearsedAgain", check_rehearsed_again, needs=(Need.REHEARSAL,))
