"""KRaft controllers. Texts: docs/runbooks/controllers.md."""

from switchover.reasons.reason import Reason, Urgency

SUBJECT = "controllers"

CONTROLLER_COMING_UP = Reason(SUBJECT, "ControllerComingUp", Urgency.NONE)
CONTROLLER_IN_TROUBLE = Reason(SUBJECT, "ControllerInTrouble", Urgency.LOOK, prose=True)
CONTROLLER_NOT_READY = Reason(SUBJECT, "ControllerNotReady", Urgency.LOOK)
CONTROLLER_SILENT = Reason(SUBJECT, "ControllerSilent", Urgency.LOOK)
CONTROLLER_STARTING = Reason(SUBJECT, "ControllerStarting", Urgency.NONE)
LISTENER_CREDENTIALS_CHANGED = Reason(SUBJECT, "ListenerCredentialsChanged", Urgency.STANDS)
LISTENER_CREDENTIALS_UNUSABLE = Reason(SUBJECT, "ListenerCredentialsUnusable", Urgency.STANDS)
METADATA_LOG_UNKNOWN = Reason(SUBJECT, "MetadataLogUnknown", Urgency.LOOK)
METADATA_VERSION_MISMATCH = Reason(SUBJECT, "MetadataVersionMismatch", Urgency.STANDS)
NO_MIGRATION_STATE = Reason(SUBJECT, "NoMigrationState", Urgency.NONE)
QUORUM_CANNOT_MIGRATE = Reason(SUBJECT, "QuorumCannotMigrate", Urgency.STANDS)
QUORUM_STARTING = Reason(SUBJECT, "QuorumStarting", Urgency.NONE)
QUORUM_UNKNOWN = Reason(SUBJECT, "QuorumUnknown", Urgency.LOOK)
QUORUM_VOLUMES_LOST = Reason(SUBJECT, "QuorumVolumesLost", Urgency.NOW, prose=True)
EDITS_CANNOT_BE_WRITTEN = Reason(SUBJECT, "EditsCannotBeWritten", Urgency.STANDS)
SETTINGS_UNKNOWN = Reason(SUBJECT, "SettingsUnknown", Urgency.LOOK)
VOLUME_REPLACED = Reason(SUBJECT, "VolumeReplaced", Urgency.NOW)
VOTER_BEHIND = Reason(SUBJECT, "VoterBehind", Urgency.NONE)
WRONG_VOTERS = Reason(SUBJECT, "WrongVoters", Urgency.STANDS)
