"""Why any migration waits, and the rollback and the end of a cluster.

Texts: the page of docs/runbooks that the first argument names.
"""

from switchover.reasons.reason import Reason, Urgency

_WALK = "walk"

APPROVAL_VOID = Reason(_WALK, "ApprovalVoid", Urgency.STANDS)
AWAITING_APPROVAL = Reason(_WALK, "AwaitingApproval", Urgency.STANDS, prose=True)
BACKUPS_MISSING = Reason(_WALK, "BackupsMissing", Urgency.STANDS, prose=True)
BAKING = Reason(_WALK, "Baking", Urgency.NONE)
BEING_DELETED = Reason(_WALK, "BeingDeleted", Urgency.NONE)
DEFECT = Reason(_WALK, "Defect", Urgency.LOOK)
EFFECT_FAILED = Reason(_WALK, "EffectFailed", Urgency.LOOK)
EFFECT_REFUSED = Reason(_WALK, "EffectRefused", Urgency.STANDS)
HELD_UNTIL_THE_END = Reason(_WALK, "HeldUntilTheEnd", Urgency.STANDS)
INVALID_SPEC = Reason(_WALK, "InvalidSpec", Urgency.STANDS)
LEASE_NOT_HELD = Reason(_WALK, "LeaseNotHeld", Urgency.STANDS)
MUST_HOLD = Reason(_WALK, "MustHold", Urgency.NONE)
NO_SUCH_STEP = Reason(_WALK, "NoSuchStep", Urgency.STANDS)
NO_WINDOW_FITS = Reason(_WALK, "NoWindowFits", Urgency.STANDS)
NOT_OBSERVED = Reason(_WALK, "NotObserved", Urgency.LOOK)
ORDER_UNKNOWN = Reason(_WALK, "OrderUnknown", Urgency.LOOK)
OUTSIDE_WINDOW = Reason(_WALK, "OutsideWindow", Urgency.LOOK)
PAUSED = Reason(_WALK, "Paused", Urgency.STANDS)
POINT_OF_NO_RETURN = Reason(_WALK, "PointOfNoReturn", Urgency.STANDS)
CLUSTER_ID_CHANGED = Reason(_WALK, "ClusterIdChanged", Urgency.NOW)
RECORD_CONTRADICTED = Reason(_WALK, "RecordContradicted", Urgency.NOW, prose=True)
RECORD_OF_ANOTHER = Reason(_WALK, "RecordOfAnother", Urgency.LOOK)
STATUS_UNREADABLE = Reason(_WALK, "StatusUnreadable", Urgency.STANDS)
TOO_MUCH_WORK = Reason(_WALK, "TooMuchWork", Urgency.STANDS)
UNDO_NOT_AVAILABLE = Reason(_WALK, "UndoNotAvailable", Urgency.STANDS)
UNKNOWN_STEP = Reason(_WALK, "UnknownStep", Urgency.STANDS)
WINDOW_TOO_SHORT = Reason(_WALK, "WindowTooShort", Urgency.LOOK)
WINDOWS_OPEN_TOO_OFTEN = Reason(_WALK, "WindowsOpenTooOften", Urgency.STANDS)

OF_WINDOWS = frozenset(each.name for each in (OUTSIDE_WINDOW, WINDOW_TOO_SHORT, NO_WINDOW_FITS, WINDOWS_OPEN_TOO_OFTEN))
"""Why a batch or step waits for its time."""

_ROLLBACK = "rollback"

BROKER_SILENT = Reason(_ROLLBACK, "BrokerSilent", Urgency.LOOK)
CONTROLLER_NOT_KNOWN = Reason(_ROLLBACK, "ControllerNotKnown", Urgency.LOOK)
CONTROLLER_RUNS = Reason(_ROLLBACK, "ControllerRuns", Urgency.LOOK)
CONTROLLER_UNKNOWN = Reason(_ROLLBACK, "ControllerUnknown", Urgency.LOOK)
LEFTOVER = Reason(_ROLLBACK, "Leftover", Urgency.STANDS)
METADATA_NOT_IN_ZOOKEEPER = Reason(_ROLLBACK, "MetadataNotInZooKeeper", Urgency.STANDS)
NO_CONTROLLER = Reason(_ROLLBACK, "NoController", Urgency.NOW)
PARTITION_EPOCH_UNKNOWN = Reason(_ROLLBACK, "PartitionEpochUnknown", Urgency.LOOK)
PARTITION_VERSIONS_BEHIND = Reason(_ROLLBACK, "PartitionVersionsBehind", Urgency.NOW, prose=True)
PARTITION_VERSIONS_UNKNOWN = Reason(_ROLLBACK, "PartitionVersionsUnknown", Urgency.NONE)
STILL_CLAIMED = Reason(_ROLLBACK, "StillClaimed", Urgency.STANDS)
TEMPLATE_NOT_RESTORED = Reason(_ROLLBACK, "TemplateNotRestored", Urgency.LOOK)
WRONG_MODE = Reason(_ROLLBACK, "WrongMode", Urgency.LOOK)
ZOOKEEPER_REGISTRATION = Reason(_ROLLBACK, "ZooKeeperRegistration", Urgency.NONE)

_ENDING = "ending"

CONTROLLER_FLAGGED = Reason(_ENDING, "ControllerFlagged", Urgency.LOOK)
NOT_BACK_WITHOUT_ZOOKEEPER = Reason(_ENDING, "NotBackWithoutZooKeeper", Urgency.NOW)
NOT_FINALIZED = Reason(_ENDING, "NotFinalized", Urgency.LOOK)
PODS_NEED_ZOOKEEPER = Reason(_ENDING, "PodsNeedZooKeeper", Urgency.STANDS)
RETAINING = Reason(_ENDING, "Retaining", Urgency.NONE)
SOAKING = Reason(_ENDING, "Soaking", Urgency.NONE)
STILL_DUAL_WRITING = Reason(_ENDING, "StillDualWriting", Urgency.NONE)
ZOOKEEPER_IN_USE = Reason(_ENDING, "ZooKeeperInUse", Urgency.STANDS)
ZOOKEEPER_RUNS = Reason(_ENDING, "ZooKeeperRuns", Urgency.STANDS)
ZOOKEEPER_UNVERIFIED = Reason(_ENDING, "ZooKeeperUnverified", Urgency.LOOK)
