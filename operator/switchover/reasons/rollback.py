"""The rollback of a cluster: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "rollback", "The rollback of a cluster",
    "zookeeper-shell.sh HOST:2181 get /controller")

BROKER_SILENT = Reason(
    SUBJECT, "BrokerSilent", Urgency.LOOK,
    meaning="A broker did not answer in time. Nothing is known about it, so nothing goes on.",
    look="Is the pod Ready? Does its advertised host resolve in the operator's pod, and does a network policy let "
         "the operator in? `status.group.coordinator` tells whether it is the one that a group depends on.",
    do="Repair what keeps it from answering. The operator asks again by itself.")

CONTROLLER_NOT_KNOWN = Reason(
    SUBJECT, "ControllerNotKnown", Urgency.LOOK,
    meaning="A broker has not heard of the ZooKeeper controller yet. Stopped now, it would ask KRaft for its "
            "shutdown and wait five minutes for an answer that cannot come.",
    look="Which controller that broker names: `kafka-metadata-quorum` does not help here, DescribeCluster does.",
    do="Wait; it takes less than a second after the election. If it lasts, look at that broker's log for its "
       "connection to ZooKeeper.")

CONTROLLER_RUNS = Reason(
    SUBJECT, "ControllerRuns", Urgency.LOOK,
    meaning="In a rollback a controller is to be stopped and still accepts connections.",
    look="`kubectl logs` of that pod; its edits in the Secret of the controllers (`kafka-controller-switchover`) "
         "must say `mode Stopped`.",
    do="Wait: it has a minute to stop. If it comes back with Kafka running, delete the pod.")

CONTROLLER_UNKNOWN = Reason(
    SUBJECT, "ControllerUnknown", Urgency.LOOK,
    meaning="A controller could not be asked.",
    look="As [ControllerSilent].",
    do="As [ControllerSilent].")

LEFTOVER = Reason(
    SUBJECT, "Leftover", Urgency.STANDS,
    meaning="Something that Switchover made still exists: of the controllers, or a Secret, copy of the template "
            "or claim of the brokers. A next attempt must not find it.",
    look="The object named.",
    do="Wait: Kubernetes removes it. A volume claim stays as long as a pod mounts it; a finalizer of somebody "
       "else must be released by them.")

METADATA_NOT_IN_ZOOKEEPER = Reason(
    SUBJECT, "MetadataNotInZooKeeper", Urgency.STANDS,
    meaning="The controllers are down, and the newest metadata that Switchover saw in their log has not reached "
            "ZooKeeper. Going back now would lose it.",
    look="`status.highWatermark` against the offset in `/migration`; the controllers' pods.",
    do="Start the controllers again (delete the pods that hang); dual write catches up and the rollback goes on "
       "by itself. If their volumes are lost for good, the changes of the last moments before are lost with them: "
       "note the two offsets, and see the user guide, \"When the controllers' volumes are lost\".")

NO_CONTROLLER = Reason(
    SUBJECT, "NoController", Urgency.NOW,
    meaning="`/controller` does not exist: no broker is the controller at this moment.",
    look="ZooKeeper's health; the brokers' logs.",
    do="Usually over in seconds. If not, ZooKeeper has lost its quorum.")

PARTITION_EPOCH_UNKNOWN = Reason(
    SUBJECT, "PartitionEpochUnknown", Urgency.LOOK,
    meaning="Before KRaft's claim is ended, the `controller_epoch` in the state of every partition is compared "
            "with `/controller_epoch` (KAFKA-20488). The states cannot be read.",
    look="The words after the colon; `/brokers/topics/*/partitions/*/state`.",
    do="Make ZooKeeper answer. A malformed state is named: repair it. Do not delete `/controller` by hand: "
       "elections could abort, with everything looking healthy.")

PARTITION_VERSIONS_BEHIND = Reason(
    SUBJECT, "PartitionVersionsBehind", Urgency.NOW,
    meaning="In a rollback, before the first controller stops: the state of some partitions has a lower version "
            "in ZooKeeper than its epoch in KRaft. Every change of a partition counts in KRaft; dual write sets "
            "its node once for several changes that it learns of together, and a node that was made anew begins "
            "at 0. The leader knows KRaft's number. A ZooKeeper controller would take it for somebody who follows "
            "another controller and refuse its changes for ever: replicas that were out of sync would stay so "
            "(Kafka 3.9, `KafkaController.tryProcessAlterPartition`).",
    prose=True)

PARTITION_VERSIONS_UNKNOWN = Reason(
    SUBJECT, "PartitionVersionsUnknown", Urgency.NONE,
    meaning="In a rollback, before the first controller stops: nobody has compared the versions of the "
            "partitions' states in ZooKeeper with KRaft's epochs yet ([PartitionVersionsBehind] says why that "
            "matters).",
    look="the message says what cannot be read, or that the first comparison is under way: one request to "
         "ZooKeeper for each partition.",
    do="Wait for the reading, or make ZooKeeper or the controllers answer again.")

STILL_CLAIMED = Reason(
    SUBJECT, "StillClaimed", Urgency.STANDS,
    meaning="KRaft still holds `/controller` in ZooKeeper, so no broker can become the controller.",
    look="`/controller` in ZooKeeper; the controllers, which must all be stopped.",
    do="Nothing while the controllers stop: Switchover deletes the node behind them. No broker is restarted until "
       "a broker is the controller: it would take five minutes to stop.")

TEMPLATE_NOT_RESTORED = Reason(
    SUBJECT, "TemplateNotRestored", Urgency.LOOK,
    meaning="The brokers' StatefulSet has not its original template yet, or its update strategy: one that "
            "restarts pods by itself comes back only when every pod runs by the template.",
    look="The StatefulSet against the ControllerRevision `<name>-before-switchover-<attempt>`.",
    do="Switchover restores it. If it does not stay so, suspend the tool that changes it.")

WRONG_MODE = Reason(
    SUBJECT, "WrongMode", Urgency.LOOK,
    meaning="A node answers in another mode than it was assigned.",
    look="`status.nodes`; the pod's log.",
    do="Wait for its replacement. If it lasts, see [ModeMismatch].")

ZOOKEEPER_REGISTRATION = Reason(
    SUBJECT, "ZooKeeperRegistration", Urgency.NONE,
    meaning="`/brokers/ids` does not show what the broker's mode calls for.",
    look="`/brokers/ids`; a killed broker's id stays until its session times out.",
    do="Wait for the session timeout; if it lasts, look at the broker's log.")
