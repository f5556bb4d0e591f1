"""Claim, copy, dual write and parity. Texts: docs/runbooks/dual-write.md."""

from switchover.reasons.reason import Reason, Urgency

SUBJECT = "dual-write"

CLAIMED_NOT_COPIED = Reason(SUBJECT, "ClaimedNotCopied", Urgency.NOW, prose=True)
DUAL_WRITE_BEHIND = Reason(SUBJECT, "DualWriteBehind", Urgency.LOOK)
DUAL_WRITE_STANDS_STILL = Reason(SUBJECT, "DualWriteStandsStill", Urgency.NOW)
DUAL_WRITE_STUCK = Reason(SUBJECT, "DualWriteStuck", Urgency.NOW)
PARTITIONS_WITHOUT_STATE = Reason(SUBJECT, "PartitionsWithoutState", Urgency.LOOK)
METADATA_DIFFERS = Reason(SUBJECT, "MetadataDiffers", Urgency.NOW, prose=True)
MIGRATION_NODE_GONE = Reason(SUBJECT, "MigrationNodeGone", Urgency.NOW)
NOT_CLAIMED = Reason(SUBJECT, "NotClaimed", Urgency.STANDS, prose=True)
NOT_COPIED = Reason(SUBJECT, "NotCopied", Urgency.LOOK)
PARITY_UNKNOWN = Reason(SUBJECT, "ParityUnknown", Urgency.LOOK)
PARITY_UNSETTLED = Reason(SUBJECT, "ParityUnsettled", Urgency.NONE)
QUOTA_STOPS_DUAL_WRITE = Reason(SUBJECT, "QuotaStopsDualWrite", Urgency.NOW)
STALE_MIGRATION_NODE = Reason(SUBJECT, "StaleMigrationNode", Urgency.NOW)
