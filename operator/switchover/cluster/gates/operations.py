"""What people plan and do: windows, a rehearsal, backups."""

from collections.abc import Iterator
from dataclasses import replace

from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.status import Severity
from switchover.api.status import Verdict as Outcome
from switchover.cluster.estimate import work_of
from switchover.cluster.facts import Export, Need
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal import replica_job
from switchover.cluster.rehearsal.report import TO_DUAL_WRITE, Report
from switchover.engine.gate import Gate, Unseen, Verdict, fail, gravest, passed, seen, unknown, wait
from switchover.engine.windows import judge, utc
from switchover.reasons.preflight import REHEARSAL_FAILED, REHEARSAL_INCOMPLETE, REHEARSAL_RUNNING, REHEARSAL_UNKNOWN
from switchover.reasons.walk import BACKUPS_MISSING, NOT_OBSERVED
from switchover.text.command import kubectl


def check_within_window(picture: Picture) -> Verdict:
    return judge(picture.spec.windows, picture.position, picture.now, lambda: seconds_needed(picture),
                 picture.step.one_piece)


def seconds_needed(picture: Picture) -> float:
    """How long what starts next in this step takes, at the pace of the slowest batch so far."""
    work = work_of(picture.at(replace(picture.position, batch=None)), picture.step, slowest=True)
    return next((each.seconds for each in work if each.disrupts), 0.0)


WITHIN_WINDOW: Gate[Picture] = Gate("WithinWindow", check_within_window)


# --- rehearsal ------------------------------------------------------------------------------------------------------------
# What the rehearsal of claim and copy found, before any of the user's objects is touched (docs/rehearsal.md).

def check_rehearsed(picture: Picture) -> Verdict:
    """A rehearsal has finished and found nothing that would end the migration."""
    if not picture.spec.rehearsal.enabled:
        return passed("left out: spec.rehearsal.enabled is false")
    found = _found(picture)
    seconds = found.seconds.get(TO_DUAL_WRITE, 0.0)
    message = f"claim, copy and dual write of {found.topics} topics took {seconds:.1f} s on a replica"
    return gravest(_findings(picture, found), message)


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
        raise Unseen(wait(REHEARSAL_RUNNING, "the replica's Job does not exist yet", subject=_job(picture),
                          unblocks="nothing to do: it is created"))
    if not job.message and not job.ended:
        raise Unseen(wait(REHEARSAL_RUNNING, job.detail or "the rehearsal runs", subject=_job(picture),
                          unblocks="nothing to do: it ends by itself"))
    found = replica_job.told(job)
    if not isinstance(found, str):
        return found.at(picture.spec.zookeeper.connect)
    if replica_job.is_outdated(picture, job):
        raise Unseen(wait(REHEARSAL_RUNNING, "the rehearsal could not run, and its inputs have changed since",
                          subject=_job(picture), unblocks="nothing to do: it is rehearsed again"))
    raise Unseen(fail(
        REHEARSAL_FAILED, f"the rehearsal did not finish: {found}", subject=_job(picture),
        unblocks="repair the cause, or set spec.rehearsal.enabled to false. It runs again once the spec or the brokers'"
                 " template has changed; to run it now:"
                 f" {kubectl(picture.namespace, 'delete job {}', replica_job.job_name(picture))}"))


def _findings(picture: Picture, found: Report) -> Iterator[Verdict]:
    for each in found.findings:
        outcome = Outcome.FAIL if each.severity is Severity.BLOCKER else Outcome.PASS
        yield Verdict(outcome, each.reason, each.message, each.subject, unblocks=each.cure, severity=each.severity)
    if found.more:
        yield fail(REHEARSAL_INCOMPLETE, f"{found.more} more findings had no room in the report", subject=_job(picture),
                   unblocks="read all of them: " + kubectl(
                       picture.namespace, "logs job/{} -c {}", replica_job.job_name(picture), replica_job.CONDUCTOR))


def _job(picture: Picture) -> str:
    return f"Job {replica_job.job_name(picture)}"


REHEARSED: Gate[Picture] = Gate("Rehearsed", check_rehearsed, needs=(Need.REHEARSAL,))
REHEARSED_AGAIN: Gate[Picture] = Gate("RehearsedAgain", check_rehearsed_again, needs=(Need.REHEARSAL,))


# --- backups --------------------------------------------------------------------------------------------------------------
# ZooKeeper and the metadata log are backed up before the point of no return, or a person said why not.

SOAK = Step.SOAK.value
CLOCKS_APART_SECONDS = 300.0
"""How far the clock of whoever took the backups may run ahead of ours."""
TAKE_BACKUPS = "take both backups as the runbook shows, then set spec.backups: {takenTime, location}, or {skipReason}"


def check_backups_taken(picture: Picture) -> Verdict:
    """A backup counts when it was taken after Soak began: from then on every broker runs on KRaft."""
    backups, since = picture.spec.backups, picture.entered.get(SOAK)
    if backups is not None and backups.skip_reason is not None:
        return passed(f"backups skipped: {backups.skip_reason}")
    if since is None:
        return unknown(NOT_OBSERVED, f"the status does not say when {SOAK} began", subject=SOAK)
    if backups is None or backups.taken_time is None:
        return wait(BACKUPS_MISSING, "spec.backups does not confirm backups of ZooKeeper and the metadata log",
                    observed="none", subject="spec.backups", threshold=f"taken after {utc(since)}", unblocks=TAKE_BACKUPS)
    taken = backups.taken_time.timestamp()
    if taken > picture.now + CLOCKS_APART_SECONDS:
        return wait(BACKUPS_MISSING, "spec.backups.takenTime is in the future", subject="spec.backups",
                    observed=utc(taken), threshold=f"not after {utc(picture.now)}", unblocks=TAKE_BACKUPS)
    if taken <= since:
        return wait(BACKUPS_MISSING, "the backups were taken before every broker ran on KRaft",
                    subject="spec.backups", observed=utc(taken), threshold=f"after {utc(since)}", unblocks=TAKE_BACKUPS)
    return passed(f"backups of {utc(taken)}" + (f" at {backups.location}" if backups.location else ""))


BACKUPS_TAKEN: Gate[Picture] = Gate("BackupsTaken", check_backups_taken)
