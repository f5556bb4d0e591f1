"""Windows, and the ends of plans: the soak, a group without members, and the verdict of the pipeline's audit."""

from switchover.api.consumer_group_migration import ConsumerGroupMigrationStep as Name
from switchover.api.job_message import AuditVerdict, read
from switchover.engine.gate import Gate, Verdict, fail, passed, seen, unknown, wait
from switchover.engine.windows import judge
from switchover.groups.facts import Need
from switchover.groups.picture import Picture
from switchover.groups.reading import group_of, pods_of, samples
from switchover.groups.slots import BATCH_SECONDS, sizes
from switchover.kafka.group import GroupState
from switchover.kubernetes.workloads import JobState
from switchover.reasons.groups import (
    AUDIT_FAILED,
    AUDIT_INDETERMINATE,
    AUDIT_RUNNING,
    AUDIT_UNKNOWN,
    AUDIT_VIOLATIONS,
    GROUP_NOT_EMPTY,
    PODS_ENDING,
)
from switchover.reasons.walk import SOAKING
from switchover.text.command import kubectl


def check_within_window(picture: Picture) -> Verdict:
    return judge(picture.spec.windows, picture.position, picture.now, lambda: seconds_needed(picture), one_piece=False)


def seconds_needed(picture: Picture) -> float:
    """How long the next batch takes."""
    batches = sizes(picture)
    return BATCH_SECONDS + batches[min(picture.position.batches_done, len(batches) - 1)].bake


WITHIN_WINDOW: Gate[Picture] = Gate("WithinWindow", check_within_window)


def check_soaked(picture: Picture) -> Verdict:
    """The group has been watched for spec.soakSeconds with every member moved."""
    since = picture.entered.get(Name.SETTLE, picture.now)
    soaked, wanted = picture.now - since, float(picture.spec.soak_seconds)
    if soaked < wanted:
        return wait(SOAKING, "the group is watched before rollback is given up", subject=picture.spec.group,
                    observed=f"{soaked:.0f} s", threshold=f"{wanted:.0f} s", unblocks="nothing: this wait ends by itself")
    return passed(f"watched for {soaked:.0f} s")


def check_empty(picture: Picture) -> Verdict:
    """Every member has left: only then does the coordinator take the group by the other protocol, whatever its policy."""
    group = group_of(picture)
    if pods := [pod.name for _, _, pod in pods_of(picture)]:
        return wait(PODS_ENDING, f"{len(pods)} pods are still there", subject=pods[0], observed=len(pods), threshold=0,
                    unblocks="Kubernetes ends them")
    if group.members or group.state not in (GroupState.EMPTY, GroupState.DEAD):
        named = group.members[0].client_id if group.members else group.name
        return wait(GROUP_NOT_EMPTY, f"group {group.name} still has {len(group.members)} members", subject=named,
                    observed=group.state, threshold=GroupState.EMPTY,
                    unblocks="a member that did not leave times out with its session; one that stays runs outside of"
                             " spec.workloads: stop it")
    return passed("the group is empty")


SOAKED: Gate[Picture] = Gate("Soaked", check_soaked)
EMPTY: Gate[Picture] = Gate("GroupEmpty", check_empty, samples=samples)


def check_audit(picture: Picture) -> Verdict:
    """Clean; or Indeterminate where spec.audit.acceptIndeterminate takes that."""
    job = seen(picture.facts.audit, AUDIT_UNKNOWN, "the audit's Job")
    if job is None:
        return wait(AUDIT_RUNNING, "the Job of the audit is not there yet", subject=picture.spec.group,
                    unblocks="nothing to do: it is created")
    subject = f"Job {job.name}"
    again = f"then have it run again: {kubectl(picture.namespace, 'delete job {}', job.name)}"
    if job.state is JobState.RUNNING:
        return wait(AUDIT_RUNNING, job.detail or "the audit runs", subject=subject,
                    unblocks="nothing to do: it ends by itself")
    try:
        left = read(job.message)
        verdict = left.audit_verdict()
    except ValueError as why:
        return unknown(AUDIT_UNKNOWN, f"the audit left a report that this operator cannot read: {why}", subject=subject,
                       unblocks=f"set audit.image to an image of the operator's own release; {again}")
    if job.state is JobState.FAILED or verdict is None:
        reason = left.reason or job.detail or "it left no verdict"
        return fail(AUDIT_FAILED, f"the audit could not judge: {reason}", subject=subject,
                    unblocks=f"repair what it names; {again}")
    if left.nonce != job.nonce:
        return unknown(AUDIT_UNKNOWN, "the verdict does not repeat the Job's nonce: another pod has left it, or an image"
                       " of an earlier release", subject=subject,
                       unblocks=f"set audit.image to an image of the operator's own release; {again}")
    evidence = "; ".join(left.evidence) or "see its report in the store"
    match verdict:
        case AuditVerdict.CLEAN:
            return passed("the audit found nothing that was consumed twice or not at all")
        case AuditVerdict.INDETERMINATE if picture.spec.audit.accept_indeterminate:
            return passed(f"the audit could not prove it, which is accepted: {evidence}")
        case AuditVerdict.INDETERMINATE:
            return fail(AUDIT_INDETERMINATE, evidence, subject=subject, observed=verdict, threshold=AuditVerdict.CLEAN,
                        unblocks=f"set audit.acceptIndeterminate, or bring the data that it misses; {again}")
        case AuditVerdict.VIOLATIONS:
            return fail(AUDIT_VIOLATIONS, evidence, subject=subject, observed=verdict, threshold=AuditVerdict.CLEAN,
                        unblocks=f"repair what the evidence shows; {again}")


AUDIT_CLEAN: Gate[Picture] = Gate("AuditClean", check_audit, needs=(Need.AUDIT,))
