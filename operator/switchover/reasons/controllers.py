"""KRaft controllers: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "controllers", "KRaft controllers",
    "kubectl logs POD --tail=200")

CONTROLLER_COMING_UP = Reason(
    SUBJECT, "ControllerComingUp", Urgency.NONE,
    meaning="No controller leads, and at least one controller's pod is still on its way. The message says how far "
            "it has come and since when; [PodInTrouble] has the stages and how long each may take. Longer "
            "becomes [ControllerInTrouble].",
    look="`kubectl get pods --selector switchover.dev/controllers=NAME`.",
    do="Wait.")

CONTROLLER_IN_TROUBLE = Reason(
    SUBJECT, "ControllerInTrouble", Urgency.LOOK,
    meaning="No controller leads, and Kubernetes says why one of them does not come up: it is not made (a quota, an "
            "admission), it crashes, its image "
            "cannot be pulled, it finds no node, or its memory is too small. Or one takes longer than is usual at "
            "the stage that the message names ([stages][PodInTrouble]).",
    prose=True)

CONTROLLER_NOT_READY = Reason(
    SUBJECT, "ControllerNotReady", Urgency.LOOK,
    meaning="A controller has not registered as ready to migrate.",
    look="Its log: does it start, reach the others, reach ZooKeeper?",
    do="Wait: one that has not registered after two minutes is restarted, once, since Kafka does not repeat a try "
       "that was lost ([facts](../facts/kraft.md#a-controller-that-never-registers)). If the message says that it "
       "was restarted, repair what its log names and delete its pod. With one controller not ready, Kafka does not "
       "begin.")

CONTROLLER_SILENT = Reason(
    SUBJECT, "ControllerSilent", Urgency.LOOK,
    meaning="A controller did not answer in time.",
    look="Its pod, its log, its name in DNS.",
    do="Let it come up. Two of three must run for the quorum to go on.")

CONTROLLER_STARTING = Reason(
    SUBJECT, "ControllerStarting", Urgency.NONE,
    meaning="A controller runs and does not know the finalized features yet. It takes about a second.",
    look="Its log, if it lasts.",
    do="Nothing.")

LISTENER_CREDENTIALS_CHANGED = Reason(
    SUBJECT, "ListenerCredentialsChanged", Urgency.STANDS,
    meaning="The user or password in the Secret of the controllers' listener is another than the running "
            "controllers have. A node that starts with it could not talk to the others, so no node is moved.",
    look="Who or what changed the Secret: `kubectl get secret … --output yaml --show-managed-fields`.",
    do="Put the old user and password back. Change them when the migration has ended. Certificates may be renewed "
       "at any time, as long as old and new ones have an authority in common that all trust.")

LISTENER_CREDENTIALS_UNUSABLE = Reason(
    SUBJECT, "ListenerCredentialsUnusable", Urgency.STANDS,
    meaning="The Secret of the controllers' listener does not exist, or does not hold what its `securityProtocol` "
            "needs.",
    look="The message, which names the key. [api.md](../api.md) lists the keys of each protocol.",
    do="Correct the Secret; it is read again in every pass. While brokers are being moved no node is restarted "
       "until it can be used again, because its edits could not be written.")

METADATA_LOG_UNKNOWN = Reason(
    SUBJECT, "MetadataLogUnknown", Urgency.LOOK,
    meaning="The metadata log could not be read from the quorum's leader.",
    look="Does a quorum stand? Can the operator reach the controllers' port?",
    do="Repair it. With an authorizer, the operator's user needs ClusterAction on the cluster.")

METADATA_VERSION_MISMATCH = Reason(
    SUBJECT, "MetadataVersionMismatch", Urgency.STANDS,
    meaning="The controllers were formatted for another release than the brokers' inter.broker.protocol.version.",
    look="Both are in the message.",
    do="Before the claim: delete the controllers' StatefulSet and its volume claims; Switchover makes them anew.")

NO_MIGRATION_STATE = Reason(
    SUBJECT, "NoMigrationState", Urgency.NONE,
    meaning="The metadata log holds no migration state yet.",
    look="The controllers' logs.",
    do="Wait for the first leader.")

QUORUM_CANNOT_MIGRATE = Reason(
    SUBJECT, "QuorumCannotMigrate", Urgency.STANDS,
    meaning="The quorum was first started without the migration flag. Such a quorum never migrates.",
    look="The state NONE in the metadata log.",
    do="Delete the controllers' StatefulSet and volume claims, and start again.")

QUORUM_STARTING = Reason(
    SUBJECT, "QuorumStarting", Urgency.NONE,
    meaning="The leader has no high watermark yet.",
    do="Nothing: it takes a moment.")

QUORUM_UNKNOWN = Reason(
    SUBJECT, "QuorumUnknown", Urgency.LOOK,
    meaning="No controller answered as the leader.",
    look="The controllers' pods, logs, and names in DNS.",
    do="Let two of three run.")

QUORUM_VOLUMES_LOST = Reason(
    SUBJECT, "QuorumVolumesLost", Urgency.NOW,
    meaning="The majority of the controllers runs on volumes that were made anew: the metadata log that a quorum "
            "agreed on is gone from them. While brokers are on KRaft this is the one state that Switchover cannot "
            'take back by itself (it is the stated exception to "everything can be undone until Finalize").',
    prose=True)

EDITS_CANNOT_BE_WRITTEN = Reason(
    SUBJECT, "EditsCannotBeWritten", Urgency.STANDS,
    meaning="A value that the edits of the pods would be made of is not one line, or not one word where it must be one: "
            "the rest of it would be a directive of its own. Nothing is written.",
    look="The message has the value and where it stands: a broker's settings, or the ControllerRevision that keeps what "
         "the brokers were.",
    do="Give the broker a value without control characters (and, in a name, without blanks), and restart it. A "
       "ControllerRevision cannot be edited: somebody made it again, and who may do that should be found out; make it "
       "once more from a backup.")

SETTINGS_UNKNOWN = Reason(
    SUBJECT, "SettingsUnknown", Urgency.LOOK,
    meaning="A broker's live settings could not be read.",
    look="The message; rights of `spec.kafka.credentialsRef` (DescribeConfigs).",
    do="Repair it.")

VOLUME_REPLACED = Reason(
    SUBJECT, "VolumeReplaced", Urgency.NOW,
    meaning="A broker or controller runs on another volume claim than the one on record: somebody deleted the "
            "claim, or the pod came back with a new one. What it had stored there is gone from it.",
    look="`status.nodes[].volumes` has the claims on record as name/uid, the message those of now. `kubectl get "
         "pvc` and the audit log: who deleted it. The pod's log: a broker in KRaft mode does not start on an "
         'empty volume ("No `meta.properties` found").',
    do="Nothing else may be replaced until it has caught up; no batch starts meanwhile. A broker copies its "
       "partitions from the other replicas, a controller the metadata log from the leader. Then the new claim "
       "goes on record by itself, and the history tells it.\n\n"
       "* A broker in mode KRaft that does not start must be formatted with the cluster's id (`status.clusterId`): "
       "`kafka-storage.sh format --cluster-id … --config …` on its volume. Formatted so, its directory has "
       "version 1 and stands in the way of a rollback (the gate DisksAllowRollback names it).\n"
       "* A topic with a single replica on that broker has lost its records.")

VOTER_BEHIND = Reason(
    SUBJECT, "VoterBehind", Urgency.NONE,
    meaning="A controller does not follow the leader. Where its pod is not up, the message says how far that has "
            "come ([stages][PodInTrouble]).",
    look="Its log, its disk, its network.",
    do="Wait; if it lasts, restart that controller.")

WRONG_VOTERS = Reason(
    SUBJECT, "WrongVoters", Urgency.STANDS,
    meaning="The quorum's voters are not the controllers of this migration.",
    look="`kafka-metadata-quorum.sh describe --status`.",
    do="A volume of another quorum is mounted: wipe it before the claim.")
