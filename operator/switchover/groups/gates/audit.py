"""The verdict of the pipeline's audit, before a migration has Succeeded."""

from switchover.api.job_message import AuditVerdict, read
from switchover.engine.gate import Gate, Verdict, fail, passed, seen, unknown, wait
from switchover.groups.facts import Need
from switchover.groups.picture import Picture
from switchover.kubernetes.jobs import JobState
from switchover.reasons.groups import AUDIT_FAILED, AUDIT_INDETERMINATE, AUDIT_RUNNING, AUDIT_UNKNOWN, AUDIT_VIOLATIONS

AGAIN = "delete the Job, and it is made anew"


def check_audit(picture: Picture) -> Verdict:
    """Clean; or Indeterminate where spec.audit.acceptIndeterminate takes that."""
    job = seen(picture.facts.audit, AUDIT_UNKNOWN, "the audit's Job")
    if job is None:
        return wait(AUDIT_RUNNING, "the Job of the audit is not there yet", subject=picture.spec.group,
                    unblocks="nothing to do: it is created")
    subject = f"Job {job.name}"
    if job.state is JobState.RUNNING:
        return wait(AUDIT_RUNNING, job.detail or "the audit runs", subject=subject, unblocks="it ends by itself")
    try:
        left = read(job.message)
        verdict = left.audit_verdict()
    except ValueError as why:
        return unknown(AUDIT_UNKNOWN, f"what the audit says is not understood: {why}", subject=subject,
                       unblocks=f"set audit.image to an image of the operator's own release; then {AGAIN}")
    if job.state is JobState.FAILED or verdict is None:
        reason = left.reason or job.detail or "it left no verdict"
        return fail(AUDIT_FAILED, f"the audit could not judge: {reason}", subject=subject,
                    unblocks=f"mend what it names; then {AGAIN}")
    if left.nonce != job.nonce:
        return unknown(AUDIT_UNKNOWN, "the verdict does not repeat the Job's nonce: another pod has left it, or an image"
                       " of an earlier release", subject=subject,
                       unblocks=f"set audit.image to an image of the operator's own release; then {AGAIN}")
    evidence = "; ".join(left.evidence) or "see its report in the store"
    match verdict:
        case AuditVerdict.CLEAN:
            return passed("the audit found nothing that was consumed twice or not at all")
        case AuditVerdict.INDETERMINATE if picture.spec.audit.accept_indeterminate:
            return passed(f"the audit could not prove it, which is accepted: {evidence}")
        case AuditVerdict.INDETERMINATE:
            return fail(AUDIT_INDETERMINATE, evidence, subject=subject, observed=verdict, threshold=AuditVerdict.CLEAN,
                        unblocks=f"set audit.acceptIndeterminate, or bring what it misses; then {AGAIN}")
        case AuditVerdict.VIOLATIONS:
            return fail(AUDIT_VIOLATIONS, evidence, subject=subject, observed=verdict, threshold=AuditVerdict.CLEAN,
                        unblocks=f"look at its evidence; when it is dealt with, {AGAIN}")


AUDIT_CLEAN: Gate[Picture] = Gate("AuditClean", check_audit, needs=(Need.AUDIT,))
