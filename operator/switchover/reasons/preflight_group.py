"""Before a group is touched. Texts: docs/runbooks/preflight-group.md."""

from switchover.reasons.reason import Reason, Urgency

SUBJECT = "preflight-group"

CHANGE_REFUSED = Reason(SUBJECT, "ChangeRefused", Urgency.STANDS)
CHANGE_UNDONE = Reason(SUBJECT, "ChangeUndone", Urgency.STANDS)
CLAIM_NOT_ALLOWED = Reason(SUBJECT, "ClaimNotAllowed", Urgency.STANDS)
CLAIMED_BY_ANOTHER = Reason(SUBJECT, "ClaimedByAnother", Urgency.STANDS, prose=True)
FEATURE_NOT_FINALIZED = Reason(SUBJECT, "FeatureNotFinalized", Urgency.STANDS)
FORBIDDEN_SETTING = Reason(SUBJECT, "ForbiddenSetting", Urgency.STANDS)
KAFKA_STREAMS = Reason(SUBJECT, "KafkaStreams", Urgency.STANDS)
KUBERNETES_RIGHT_MISSING = Reason(SUBJECT, "KubernetesRightMissing", Urgency.STANDS)
KUBERNETES_UNKNOWN = Reason(SUBJECT, "KubernetesUnknown", Urgency.STANDS)
LEASE_HELD_BY_ANOTHER = Reason(SUBJECT, "LeaseHeldByAnother", Urgency.STANDS)
MALFORMED_MEMBER = Reason(SUBJECT, "MalformedMember", Urgency.STANDS)
NO_CLIENT_STRATEGY = Reason(SUBJECT, "NoClientStrategy", Urgency.STANDS)
NO_ONLINE_ROLLBACK = Reason(SUBJECT, "NoOnlineRollback", Urgency.STANDS)
NO_ROOM_FOR_BATCH = Reason(SUBJECT, "NoRoomForBatch", Urgency.STANDS)
NOT_CONSUMERS = Reason(SUBJECT, "NotConsumers", Urgency.STANDS)
POLICIES_DIFFER = Reason(SUBJECT, "PoliciesDiffer", Urgency.STANDS)
POLICY_FORBIDS = Reason(SUBJECT, "PolicyForbids", Urgency.STANDS)
READING_REFUSED = Reason(SUBJECT, "ReadingRefused", Urgency.STANDS)
SECRET_NOT_ALLOWED = Reason(SUBJECT, "SecretNotAllowed", Urgency.STANDS)
STATIC_MEMBERS_IN_DEPLOYMENT = Reason(SUBJECT, "StaticMembersInDeployment", Urgency.STANDS)
STRATEGIES_CANNOT_MIX = Reason(SUBJECT, "StrategiesCannotMix", Urgency.STANDS)
WORKLOAD_NOT_READY = Reason(SUBJECT, "WorkloadNotReady", Urgency.STANDS)
WORKLOAD_OWNED = Reason(SUBJECT, "WorkloadOwned", Urgency.STANDS)
WORKLOAD_UNSUPPORTED = Reason(SUBJECT, "WorkloadUnsupported", Urgency.STANDS, prose=True)
WRONG_KAFKA_VERSION = Reason(SUBJECT, "WrongKafkaVersion", Urgency.STANDS)
