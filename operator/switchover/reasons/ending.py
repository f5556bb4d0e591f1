"""Soak, end, and ZooKeeper's release. Texts: docs/runbooks/ending.md."""

from switchover.reasons.reason import Reason, Urgency

SUBJECT = "ending"

CONTROLLER_FLAGGED = Reason(SUBJECT, "ControllerFlagged", Urgency.LOOK)
NOT_BACK_WITHOUT_ZOOKEEPER = Reason(SUBJECT, "NotBackWithoutZooKeeper", Urgency.NOW)
NOT_FINALIZED = Reason(SUBJECT, "NotFinalized", Urgency.LOOK)
PODS_NEED_ZOOKEEPER = Reason(SUBJECT, "PodsNeedZooKeeper", Urgency.STANDS)
RETAINING = Reason(SUBJECT, "Retaining", Urgency.NONE)
SOAKING = Reason(SUBJECT, "Soaking", Urgency.NONE)
STILL_DUAL_WRITING = Reason(SUBJECT, "StillDualWriting", Urgency.NONE)
ZOOKEEPER_IN_USE = Reason(SUBJECT, "ZooKeeperInUse", Urgency.STANDS)
ZOOKEEPER_RUNS = Reason(SUBJECT, "ZooKeeperRuns", Urgency.STANDS)
ZOOKEEPER_UNVERIFIED = Reason(SUBJECT, "ZooKeeperUnverified", Urgency.LOOK)
