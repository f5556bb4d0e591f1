"""The rehearsal. Texts: docs/runbooks/rehearsal.md."""

from switchover.reasons.reason import Reason, Urgency

SUBJECT = "rehearsal"

BROKERS_WOULD_END = Reason(SUBJECT, "BrokersWouldEnd", Urgency.STANDS)
CLAIM_WOULD_NOT_COME = Reason(SUBJECT, "ClaimWouldNotCome", Urgency.STANDS)
COPY_WOULD_FAIL = Reason(SUBJECT, "CopyWouldFail", Urgency.STANDS)
DUAL_WRITE_WOULD_NOT_BEGIN = Reason(SUBJECT, "DualWriteWouldNotBegin", Urgency.STANDS)
FINALIZE_WOULD_FAIL = Reason(SUBJECT, "FinalizeWouldFail", Urgency.STANDS)
METADATA_WOULD_BE_LOST = Reason(SUBJECT, "MetadataWouldBeLost", Urgency.STANDS)
METADATA_WOULD_DIFFER = Reason(SUBJECT, "MetadataWouldDiffer", Urgency.STANDS)
REGISTRATION_WOULD_BE_REFUSED = Reason(SUBJECT, "RegistrationWouldBeRefused", Urgency.STANDS)
REHEARSAL_FAILED = Reason(SUBJECT, "RehearsalFailed", Urgency.STANDS)
REHEARSAL_INCOMPLETE = Reason(SUBJECT, "RehearsalIncomplete", Urgency.STANDS)
REHEARSAL_RUNNING = Reason(SUBJECT, "RehearsalRunning", Urgency.NONE)
REHEARSAL_UNKNOWN = Reason(SUBJECT, "RehearsalUnknown", Urgency.STANDS)
ROLLBACK_WOULD_FAIL = Reason(SUBJECT, "RollbackWouldFail", Urgency.STANDS)
TOPIC_WOULD_GO = Reason(SUBJECT, "TopicWouldGo", Urgency.STANDS)
TOPIC_WOULD_VANISH = Reason(SUBJECT, "TopicWouldVanish", Urgency.STANDS)
