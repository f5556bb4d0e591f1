"""The rollback of a cluster. Texts: docs/runbooks/rollback.md."""

from switchover.reasons.reason import Reason, Urgency

SUBJECT = "rollback"

BROKER_SILENT = Reason(SUBJECT, "BrokerSilent", Urgency.LOOK)
CONTROLLER_NOT_KNOWN = Reason(SUBJECT, "ControllerNotKnown", Urgency.LOOK)
CONTROLLER_RUNS = Reason(SUBJECT, "ControllerRuns", Urgency.LOOK)
CONTROLLER_UNKNOWN = Reason(SUBJECT, "ControllerUnknown", Urgency.LOOK)
LEFTOVER = Reason(SUBJECT, "Leftover", Urgency.STANDS)
METADATA_NOT_IN_ZOOKEEPER = Reason(SUBJECT, "MetadataNotInZooKeeper", Urgency.STANDS)
NO_CONTROLLER = Reason(SUBJECT, "NoController", Urgency.NOW)
PARTITION_EPOCH_UNKNOWN = Reason(SUBJECT, "PartitionEpochUnknown", Urgency.LOOK)
PARTITION_VERSIONS_BEHIND = Reason(SUBJECT, "PartitionVersionsBehind", Urgency.NOW, prose=True)
PARTITION_VERSIONS_UNKNOWN = Reason(SUBJECT, "PartitionVersionsUnknown", Urgency.NONE)
STILL_CLAIMED = Reason(SUBJECT, "StillClaimed", Urgency.STANDS)
TEMPLATE_NOT_RESTORED = Reason(SUBJECT, "TemplateNotRestored", Urgency.LOOK)
WRONG_MODE = Reason(SUBJECT, "WrongMode", Urgency.LOOK)
ZOOKEEPER_REGISTRATION = Reason(SUBJECT, "ZooKeeperRegistration", Urgency.NONE)
