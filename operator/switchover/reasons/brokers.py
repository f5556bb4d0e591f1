"""Brokers and their replicas. Texts: docs/runbooks/brokers.md."""

from switchover.reasons.reason import Reason, Urgency

SUBJECT = "brokers"

BROKER_DEAF = Reason(SUBJECT, "BrokerDeaf", Urgency.NOW)
BROKER_FENCED = Reason(SUBJECT, "BrokerFenced", Urgency.LOOK)
BROKER_LOST_ZOOKEEPER = Reason(SUBJECT, "BrokerLostZooKeeper", Urgency.NOW)
BROKER_ON_ZOOKEEPER = Reason(SUBJECT, "BrokerOnZooKeeper", Urgency.LOOK)
BROKERS_ON_KRAFT = Reason(SUBJECT, "BrokersOnKRaft", Urgency.STANDS)
BROKERS_OUT_OF_REACH = Reason(SUBJECT, "BrokersOutOfReach", Urgency.STANDS)
BROKERS_UNKNOWN = Reason(SUBJECT, "BrokersUnknown", Urgency.LOOK)
DISKS_UNKNOWN = Reason(SUBJECT, "DisksUnknown", Urgency.LOOK)
DOOR_NOT_PASSED = Reason(SUBJECT, "DoorNotPassed", Urgency.STANDS, prose=True)
DOOR_STILL_THERE = Reason(SUBJECT, "DoorStillThere", Urgency.STANDS, prose=True)
FORWARDING_STUCK = Reason(SUBJECT, "ForwardingStuck", Urgency.NOW)
LEADER_STUCK = Reason(SUBJECT, "LeaderStuck", Urgency.NOW)
LOG_DIRECTORY_FORMATTED = Reason(SUBJECT, "LogDirectoryFormatted", Urgency.STANDS)
MODE_MISMATCH = Reason(SUBJECT, "ModeMismatch", Urgency.STANDS)
NO_WITNESS = Reason(SUBJECT, "NoWitness", Urgency.LOOK)
NODE_UNKNOWN = Reason(SUBJECT, "NodeUnknown", Urgency.LOOK)
NOT_REGISTERED = Reason(SUBJECT, "NotRegistered", Urgency.LOOK)
OBSERVER_BEHIND = Reason(SUBJECT, "ObserverBehind", Urgency.NONE)
OUT_OF_SYNC = Reason(SUBJECT, "OutOfSync", Urgency.LOOK)
ADDRESS_REMEMBERED = Reason(SUBJECT, "AddressRemembered", Urgency.NONE)
REACH_UNKNOWN = Reason(SUBJECT, "ReachUnknown", Urgency.LOOK)
STARTED_BY_OTHER_EDITS = Reason(SUBJECT, "StartedByOtherEdits", Urgency.LOOK)
TOPIC_ID_MISSING_ON_DISK = Reason(SUBJECT, "TopicIdMissingOnDisk", Urgency.STANDS)
UNKNOWN_BROKER = Reason(SUBJECT, "UnknownBroker", Urgency.STANDS)
WOULD_LOSE_IN_SYNC_REPLICAS = Reason(SUBJECT, "WouldLoseInSyncReplicas", Urgency.LOOK)
ZOOKEEPER_UNKNOWN = Reason(SUBJECT, "ZooKeeperUnknown", Urgency.LOOK)
