"""The migration itself: approvals, pauses, windows, records. Texts: docs/runbooks/walk.md."""

from switchover.reasons.reason import Reason, Urgency

SUBJECT = "walk"

APPROVAL_VOID = Reason(SUBJECT, "ApprovalVoid", Urgency.STANDS)
AWAITING_APPROVAL = Reason(SUBJECT, "AwaitingApproval", Urgency.STANDS, prose=True)
BACKUPS_MISSING = Reason(SUBJECT, "BackupsMissing", Urgency.STANDS, prose=True)
BAKING = Reason(SUBJECT, "Baking", Urgency.NONE)
BEING_DELETED = Reason(SUBJECT, "BeingDeleted", Urgency.NONE)
DEFECT = Reason(SUBJECT, "Defect", Urgency.LOOK)
EFFECT_FAILED = Reason(SUBJECT, "EffectFailed", Urgency.LOOK)
EFFECT_REFUSED = Reason(SUBJECT, "EffectRefused", Urgency.STANDS)
HELD_UNTIL_THE_END = Reason(SUBJECT, "HeldUntilTheEnd", Urgency.STANDS)
INVALID_SPEC = Reason(SUBJECT, "InvalidSpec", Urgency.STANDS)
LEASE_NOT_HELD = Reason(SUBJECT, "LeaseNotHeld", Urgency.STANDS)
MUST_HOLD = Reason(SUBJECT, "MustHold", Urgency.NONE)
NO_SUCH_STEP = Reason(SUBJECT, "NoSuchStep", Urgency.STANDS)
NO_WINDOW_FITS = Reason(SUBJECT, "NoWindowFits", Urgency.STANDS)
NOT_OBSERVED = Reason(SUBJECT, "NotObserved", Urgency.LOOK)
ORDER_UNKNOWN = Reason(SUBJECT, "OrderUnknown", Urgency.LOOK)
OUTSIDE_WINDOW = Reason(SUBJECT, "OutsideWindow", Urgency.LOOK)
PAUSED = Reason(SUBJECT, "Paused", Urgency.STANDS)
POINT_OF_NO_RETURN = Reason(SUBJECT, "PointOfNoReturn", Urgency.STANDS)
CLUSTER_ID_CHANGED = Reason(SUBJECT, "ClusterIdChanged", Urgency.NOW)
RECORD_CONTRADICTED = Reason(SUBJECT, "RecordContradicted", Urgency.NOW, prose=True)
RECORD_OF_ANOTHER = Reason(SUBJECT, "RecordOfAnother", Urgency.LOOK)
STATUS_UNREADABLE = Reason(SUBJECT, "StatusUnreadable", Urgency.STANDS)
TOO_MUCH_WORK = Reason(SUBJECT, "TooMuchWork", Urgency.STANDS)
UNDO_NOT_AVAILABLE = Reason(SUBJECT, "UndoNotAvailable", Urgency.STANDS)
UNKNOWN_STEP = Reason(SUBJECT, "UnknownStep", Urgency.STANDS)
WINDOW_TOO_SHORT = Reason(SUBJECT, "WindowTooShort", Urgency.LOOK)
WINDOWS_OPEN_TOO_OFTEN = Reason(SUBJECT, "WindowsOpenTooOften", Urgency.STANDS)

OF_WINDOWS = frozenset(each.name for each in (OUTSIDE_WINDOW, WINDOW_TOO_SHORT, NO_WINDOW_FITS, WINDOWS_OPEN_TOO_OFTEN))
"""Why a batch or step waits for its time."""
