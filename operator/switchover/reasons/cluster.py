"""Controllers, brokers, and what is written to both.

Texts: the page of docs/runbooks that the first argument names.
"""

from switchover.reasons.reason import Reason, Urgency

_CONTROLLERS = "controllers"

CONTROLLER_COMING_UP = Reason(_CONTROLLERS, "ControllerComingUp", Urgency.NONE)
CONTROLLER_IN_TROUBLE = Reason(_CONTROLLERS, "ControllerInTrouble", Urgency.LOOK, prose=True)
CONTROLLER_NOT_READY = Reason(_CONTROLLERS, "ControllerNotReady", Urgency.LOOK)
CONTROLLER_SILENT = Reason(_CONTROLLERS, "ControllerSilent", Urgency.LOOK)
CONTROLLER_STARTING = Reason(_CONTROLLERS, "ControllerStarting", Urgency.NONE)
LISTENER_CREDENTIALS_CHANGED = Reason(_CONTROLLERS, "ListenerCredentialsChanged", Urgency.STANDS)
LISTENER_CREDENTIALS_UNUSABLE = Reason(_CONTROLLERS, "ListenerCredentialsUnusable", Urgency.STANDS)
METADATA_LOG_UNKNOWN = Reason(_CONTROLLERS, "MetadataLogUnknown", Urgency.LOOK)
METADATA_VERSION_MISMATCH = Reason(_CONTROLLERS, "MetadataVersionMismatch", Urgency.STANDS)
NO_MIGRATION_STATE = Reason(_CONTROLLERS, "NoMigrationState", Urgency.NONE)
QUORUM_CANNOT_MIGRATE = Reason(_CONTROLLERS, "QuorumCannotMigrate", Urgency.STANDS)
QUORUM_STARTING = Reason(_CONTROLLERS, "QuorumStarting", Urgency.NONE)
QUORUM_UNKNOWN = Reason(_CONTROLLERS, "QuorumUnknown", Urgency.LOOK)
QUORUM_VOLUMES_LOST = Reason(_CONTROLLERS, "QuorumVolumesLost", Urgency.NOW, prose=True)
EDITS_CANNOT_BE_WRITTEN = Reason(_CONTROLLERS, "EditsCannotBeWritten", Urgency.STANDS)
SETTINGS_UNKNOWN = Reason(_CONTROLLERS, "SettingsUnknown", Urgency.LOOK)
VOLUME_REPLACED = Reason(_CONTROLLERS, "VolumeReplaced", Urgency.NOW)
VOTER_BEHIND = Reason(_CONTROLLERS, "VoterBehind", Urgency.NONE)
WRONG_VOTERS = Reason(_CONTROLLERS, "WrongVoters", Urgency.STANDS)

_BROKERS = "brokers"

BROKER_DEAF = Reason(_BROKERS, "BrokerDeaf", Urgency.NOW)
BROKER_FENCED = Reason(_BROKERS, "BrokerFenced", Urgency.LOOK)
BROKER_LOST_ZOOKEEPER = Reason(_BROKERS, "BrokerLostZooKeeper", Urgency.NOW)
BROKER_ON_ZOOKEEPER = Reason(_BROKERS, "BrokerOnZooKeeper", Urgency.LOOK)
BROKERS_ON_KRAFT = Reason(_BROKERS, "BrokersOnKRaft", Urgency.STANDS)
BROKERS_OUT_OF_REACH = Reason(_BROKERS, "BrokersOutOfReach", Urgency.STANDS)
BROKERS_UNKNOWN = Reason(_BROKERS, "BrokersUnknown", Urgency.LOOK)
DISKS_UNKNOWN = Reason(_BROKERS, "DisksUnknown", Urgency.LOOK)
DOOR_NOT_PASSED = Reason(_BROKERS, "DoorNotPassed", Urgency.STANDS, prose=True)
DOOR_STILL_THERE = Reason(_BROKERS, "DoorStillThere", Urgency.STANDS, prose=True)
FORWARDING_STUCK = Reason(_BROKERS, "ForwardingStuck", Urgency.NOW)
LEADER_STUCK = Reason(_BROKERS, "LeaderStuck", Urgency.NOW)
LOG_DIRECTORY_FORMATTED = Reason(_BROKERS, "LogDirectoryFormatted", Urgency.STANDS)
MODE_MISMATCH = Reason(_BROKERS, "ModeMismatch", Urgency.STANDS)
NO_WITNESS = Reason(_BROKERS, "NoWitness", Urgency.LOOK)
NODE_UNKNOWN = Reason(_BROKERS, "NodeUnknown", Urgency.LOOK)
NOT_REGISTERED = Reason(_BROKERS, "NotRegistered", Urgency.LOOK)
OBSERVER_BEHIND = Reason(_BROKERS, "ObserverBehind", Urgency.NONE)
OUT_OF_SYNC = Reason(_BROKERS, "OutOfSync", Urgency.LOOK)
ADDRESS_REMEMBERED = Reason(_BROKERS, "AddressRemembered", Urgency.NONE)
REACH_UNKNOWN = Reason(_BROKERS, "ReachUnknown", Urgency.LOOK)
STARTED_BY_OTHER_EDITS = Reason(_BROKERS, "StartedByOtherEdits", Urgency.LOOK)
TOPIC_ID_MISSING_ON_DISK = Reason(_BROKERS, "TopicIdMissingOnDisk", Urgency.STANDS)
UNKNOWN_BROKER = Reason(_BROKERS, "UnknownBroker", Urgency.STANDS)
WOULD_LOSE_IN_SYNC_REPLICAS = Reason(_BROKERS, "WouldLoseInSyncReplicas", Urgency.LOOK)
ZOOKEEPER_UNKNOWN = Reason(_BROKERS, "ZooKeeperUnknown", Urgency.LOOK)

_DUAL_WRITE = "dual-write"

CLAIMED_NOT_COPIED = Reason(_DUAL_WRITE, "ClaimedNotCopied", Urgency.NOW, prose=True)
DUAL_WRITE_BEHIND = Reason(_DUAL_WRITE, "DualWriteBehind", Urgency.LOOK)
DUAL_WRITE_STANDS_STILL = Reason(_DUAL_WRITE, "DualWriteStandsStill", Urgency.NOW)
DUAL_WRITE_STUCK = Reason(_DUAL_WRITE, "DualWriteStuck", Urgency.NOW)
PARTITIONS_WITHOUT_STATE = Reason(_DUAL_WRITE, "PartitionsWithoutState", Urgency.LOOK)
METADATA_DIFFERS = Reason(_DUAL_WRITE, "MetadataDiffers", Urgency.NOW, prose=True)
MIGRATION_NODE_GONE = Reason(_DUAL_WRITE, "MigrationNodeGone", Urgency.NOW)
NOT_CLAIMED = Reason(_DUAL_WRITE, "NotClaimed", Urgency.STANDS, prose=True)
NOT_COPIED = Reason(_DUAL_WRITE, "NotCopied", Urgency.LOOK)
PARITY_UNKNOWN = Reason(_DUAL_WRITE, "ParityUnknown", Urgency.LOOK)
PARITY_UNSETTLED = Reason(_DUAL_WRITE, "ParityUnsettled", Urgency.NONE)
QUOTA_STOPS_DUAL_WRITE = Reason(_DUAL_WRITE, "QuotaStopsDualWrite", Urgency.NOW)
STALE_MIGRATION_NODE = Reason(_DUAL_WRITE, "StaleMigrationNode", Urgency.NOW)
