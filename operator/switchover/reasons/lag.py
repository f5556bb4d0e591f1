"""Lag, progress and the audit. Texts: docs/runbooks/lag.md."""

from switchover.reasons.reason import Reason, Urgency

SUBJECT = "lag"

AUDIT_FAILED = Reason(SUBJECT, "AuditFailed", Urgency.STANDS)
AUDIT_INDETERMINATE = Reason(SUBJECT, "AuditIndeterminate", Urgency.STANDS)
AUDIT_RUNNING = Reason(SUBJECT, "AuditRunning", Urgency.LOOK)
AUDIT_UNKNOWN = Reason(SUBJECT, "AuditUnknown", Urgency.LOOK)
AUDIT_VIOLATIONS = Reason(SUBJECT, "AuditViolations", Urgency.NOW)
BASELINE_UNKNOWN = Reason(SUBJECT, "BaselineUnknown", Urgency.LOOK)
BASELINE_UNUSABLE = Reason(SUBJECT, "BaselineUnusable", Urgency.LOOK)
COMMIT_WENT_BACK = Reason(SUBJECT, "CommitWentBack", Urgency.NOW)
GROUP_HAS_NO_COMMITS = Reason(SUBJECT, "GroupHasNoCommits", Urgency.LOOK)
GROUP_HAS_NO_MEMBERS = Reason(SUBJECT, "GroupHasNoMembers", Urgency.STANDS)
GROUP_LAG = Reason(SUBJECT, "GroupLag", Urgency.LOOK)
GROUP_NEVER_COMMITTED = Reason(SUBJECT, "GroupNeverCommitted", Urgency.LOOK)
GROUP_OFFSETS_WRONG = Reason(SUBJECT, "GroupOffsetsWrong", Urgency.NOW)
GROUP_ON_ZOOKEEPER = Reason(SUBJECT, "GroupOnZooKeeper", Urgency.STANDS, prose=True)
GROUP_STALLED = Reason(SUBJECT, "GroupStalled", Urgency.NOW)
GROUP_UNKNOWN = Reason(SUBJECT, "GroupUnknown", Urgency.LOOK)
LAG_NOT_HEALTHY_YET = Reason(SUBJECT, "LagNotHealthyYet", Urgency.LOOK)
LAG_NOT_SEEN_YET = Reason(SUBJECT, "LagNotSeenYet", Urgency.LOOK)
LAG_UNHEALTHY = Reason(SUBJECT, "LagUnhealthy", Urgency.NOW)
LAG_UNKNOWN = Reason(SUBJECT, "LagUnknown", Urgency.LOOK)
NO_PROGRESS_YET = Reason(SUBJECT, "NoProgressYet", Urgency.LOOK)
PARTITION_STALLED = Reason(SUBJECT, "PartitionStalled", Urgency.NOW)
