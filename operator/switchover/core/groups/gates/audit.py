"""The verdict of the pipeline's audit, before a migration has Succeeded."""

from switchover.core.gate import Gate, Verdict, fail, passed, unknown, wait
from switchover.core.groups.audit import told
from switchover.core.groups.picture import Picture
from switchover.core.jobs import JobState
from switchover.core.observed import Known
from switchover.reasons.lag import AUDIT_FAILED, AUDIT_INDETERMINATE, AUDIT_RUNNING, AUDIT_UNKNOWN, AUDIT_VIOLATIONS

AGAIN = "delete the Job, and it is made anew"


def check_audit(picture: Picture) -> Verdict:
    """Clean; or Indeterminate where spec.audit.acceptIndeterminate takes that."""
    found = picture.facts.audit
    if not isinstance(found, Known):
        return unknown(AUDIT_UNKNOWN, found.why, subject="the audit's Job")
    job = found.value
    if job is None:
        return wait(AUDIT_RUNNING, "the Job of the audit is not there yet", subject=picture.spec.group,
                    unblocks="nothing to do: it is created")
    subject = f"Job {job.name}"
    if job.state is JobState.RUNNING:
        return wait(AUDIT_RUNNING, job.words or "the audit runs", subject=subject, unblocks="it ends by itself")
    left = told(job.message)
    if job.state is JobState.FAILED or not left.verdict:
        why = left.reason or job.words or "it left no verdict"
        return fail(AUDIT_FAILED, f"the audit could not judge: {why}", subject=subject,
                    unblocks=f"mend what it names; then {AGAIN}")
    evidence = "; ".join(left.evidence) or "see its report in the store"
    match left.verdict:
        case "Clean":
            return passed("the audit found nothing that was consumed twice or by nobody")
        case "Indeterminate" if picture.spec.audit.accept_indeterminate:
            return passed(f"the audit could not prove it, which is accepted: {evidence}")
        case "Indeterminate":
            return fail(AUDIT_INDETERMINATE, evidence, subject=subject, observed=left.verdict, threshold="Clean",
                        unblocks=f"set audit.acceptIndeterminate, or bring what it misses; then {AGAIN}")
        case _:
            return fail(AUDIT_VIOLATIONS, evidence, subject=subject, observed=left.verdict, threshold="Clean",
                        unblocks=f"look at its evidence; when it is dealt with, {AGAIN}")


AUDIT_CLEAN: Gate[Picture] = Gate("AuditClean", check_audit)
