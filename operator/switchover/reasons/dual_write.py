"""Claim, copy, dual write and parity: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "dual-write", "Claim, copy, dual write and parity",
    "zookeeper-shell.sh HOST:2181 get /migration")

CLAIMED_NOT_COPIED = Reason(
    SUBJECT, "ClaimedNotCopied", Urgency.NOW,
    meaning="The KRaft controllers took `/controller` over and have not copied the metadata. No controller works "
            "now: no leader can be elected, no topic created.",
    prose=True)

DUAL_WRITE_BEHIND = Reason(
    SUBJECT, "DualWriteBehind", Urgency.LOOK,
    meaning="Metadata that KRaft committed has not reached ZooKeeper, or the heartbeat of `/migration` is old.",
    look="The leading controller's log; ZooKeeper's latency and health.",
    do="Repair the way from the controllers to ZooKeeper. While this stands, the rollback would lose what is "
       "missing.")

DUAL_WRITE_STANDS_STILL = Reason(
    SUBJECT, "DualWriteStandsStill", Urgency.NOW,
    meaning="KRaft has taken over the cluster's metadata, and the leading controller writes all of it to "
            "ZooKeeper before dual write begins. That takes about as long as in the rehearsal; after the time "
            "that the copy may take the step is Stalled. A controller that meets a record which ZooKeeper's side "
            "of Kafka refuses begins again and again: it touches `/migration` each time, so the node looks fresh, "
            "and its offset stays.",
    look='the log of the leading controller, for "Encountered ZooKeeper error during event '
         'SyncKRaftMetadataEvent. Will retry", and the exception below it: it names the key or the node.\n\n'
         "```sh\n"
         "kubectl logs POD-OF-THE-LEADING-CONTROLLER | grep --after-context 5 SyncKRaftMetadataEvent\n"
         "```",
    do="Change what it names through the controllers (`kafka-configs.sh --bootstrap-controller …`); ZooKeeper's "
       "node does not matter any more. When nothing is named, ask for a rollback: `desiredState: RolledBack`. "
       "Restart no broker before dual write has begun: it would learn no complete metadata.")

DUAL_WRITE_STUCK = Reason(
    SUBJECT, "DualWriteStuck", Urgency.NOW,
    meaning="KRaft leads the cluster, and its leading controller has not written `/migration` for a while, which "
            "it does twice a second. Until it does, changes reach neither ZooKeeper nor the brokers that still "
            "run in ZooKeeper mode: elections and in-sync replicas go wrong from there.",
    look="ZooKeeper first (does it answer, does it have a leader); then the leading controller's log: "
         '"Encountered ZooKeeper error … Will retry", again and again, or "Conditional update on KRaft Migration '
         'ZNode failed" (Kafka 3.9.2: it lost the answer to a write when ZooKeeper was away, and takes the node '
         "for somebody else's).",
    do="When ZooKeeper is away, bring it back. Otherwise nothing: after a minute Switchover restarts the leading "
       "controller, while a majority of the others is up, so that another one leads, claims anew and writes "
       "everything to ZooKeeper once more; one after the other, each once. When that did not help, the step is "
       "Stalled: look for the record that cannot be written ([MetadataDiffers]).")

PARTITIONS_WITHOUT_STATE = Reason(
    SUBJECT, "PartitionsWithoutState", Urgency.LOOK,
    meaning="A topic was given more partitions while the leading controller changed. Each new leader writes all of KRaft's "
            "metadata to ZooKeeper: it adds the partitions to the topic's node, and then sets their states, which nobody "
            "has created (Kafka 3.9.2). It repeats that for ever. Until it ends, changes reach neither ZooKeeper nor the "
            "brokers that still run in ZooKeeper mode; no other leader and no restart ends it.",
    look="The leading controller's log, again and again: \"Could not find partition state in ZK for TOPIC-PARTITION\", and "
         '"Encountered ZooKeeper error during event SyncKRaftMetadataEvent. Will retry".',
    do="Nothing: Switchover creates the states that are missing, as Kafka takes a missing one, and the controller writes "
       "its own over them when it tries again, within a minute. `status.history` names the partitions. When ZooKeeper's "
       "ACLs forbid it, the operator's log says so: give its credentials CREATE below `/brokers/topics`. By hand, for each "
       "partition:\n\n"
       "```sh\n"
       "zookeeper-shell.sh HOST:2181 create /brokers/topics/TOPIC/partitions/N \"\"\n"
       "zookeeper-shell.sh HOST:2181 create /brokers/topics/TOPIC/partitions/N/state \\\n"
       "  '{\"controller_epoch\":1,\"leader\":1,\"version\":1,\"leader_epoch\":0,\"isr\":[1,2,3]}'\n"
       "```")

METADATA_DIFFERS = Reason(
    SUBJECT, "MetadataDiffers", Urgency.NOW,
    meaning="ZooKeeper and the metadata log of KRaft hold different metadata, and it is not on its way: the same "
            "was found twice, although ZooKeeper had all that the log held the first time. The message names the "
            'kind, the key and what each side says (secret values as "(hidden)"); `observed` is the number of '
            "differences, 1000 at most.",
    prose=True)

MIGRATION_NODE_GONE = Reason(
    SUBJECT, "MigrationNodeGone", Urgency.NOW,
    meaning="`/migration` does not exist any more although brokers are on their way.",
    look="ZooKeeper's audit log; who has access.",
    do="Find out who deleted it. Do not restart controllers before you know: ask for help.")

NOT_CLAIMED = Reason(
    SUBJECT, "NotClaimed", Urgency.STANDS,
    meaning="Of a KafkaMigration and of a ConsumerGroupMigration this means two things.",
    prose=True)

NOT_COPIED = Reason(
    SUBJECT, "NotCopied", Urgency.LOOK,
    meaning="The controllers copy the metadata. It takes a second for hundreds of topics.",
    look="`/migration`, the metadata log's state.",
    do="Wait. If it lasts, see [ClaimedNotCopied].")

PARITY_UNKNOWN = Reason(
    SUBJECT, "ParityUnknown", Urgency.LOOK,
    meaning="ZooKeeper's metadata could not be compared with KRaft's.",
    look="The message: which side could not be read, and why.",
    do="Repair that. The operator must be able to read everything under `/brokers/topics`, `/config`, "
       "`/kafka-acl`, `/kafka-acl-extended`, `/delegation_token` and `/latest_producer_id_block`: with "
       "`zookeeper.set.acl=true` only the brokers' own credentials can read users, brokers' settings and tokens.")

PARITY_UNSETTLED = Reason(
    SUBJECT, "ParityUnsettled", Urgency.NONE,
    meaning="Whether ZooKeeper and KRaft hold the same metadata is not decided yet: they were not compared since "
            "the step or batch began, or what differed in the last reading may still be on its way.",
    look="Nothing, for a minute. If it stays: is metadata changed all the time (topics created in a loop)? Does "
         "[DualWriteBehind] stand beside it?",
    do="Wait for the next comparison, or stop whatever changes metadata without a pause.")

QUOTA_STOPS_DUAL_WRITE = Reason(
    SUBJECT, "QuotaStopsDualWrite", Urgency.NOW,
    meaning="KRaft has taken over the cluster's metadata, and dual write does not begin: the quota that is named "
            "is nothing that Kafka 3.9 can write to ZooKeeper. The leading controller tries again and again, from "
            "the beginning. Brokers that restart now learn no complete metadata. The rehearsal names such a "
            "quota before the migration begins; here it was left out, or the quota came later.",
    look="what Switchover changed, with the value of before, is in the history.\n\n"
         "```sh\n"
         "kubectl get kafkamigration NAME --output jsonpath='{range "
         ".status.history[?(@.reason==\"DualWriteRepaired\")]}{.time} {.message}{\"\\n\"}{end}'\n"
         "```",
    do="Nothing, as a rule. A quota that Kafka does not know has no effect, and Switchover removes it through the "
       "controllers; of a byte rate with a decimal it keeps the whole number below. Dual write then begins "
       "within a minute. When the controllers refuse it, grant the operator's user at the controllers' listener "
       "`AlterConfigs` on the cluster. By hand it cannot be done: `kafka-configs.sh` asks a controller for what "
       "none answers, brokers do not know yet who leads, and KRaft does not look at ZooKeeper's node any more. "
       "Restart no broker before dual write has begun.")

STALE_MIGRATION_NODE = Reason(
    SUBJECT, "StaleMigrationNode", Urgency.NOW,
    meaning="`/migration` says that metadata was copied and the log says that it was not: the controllers take an "
            "old node for their own and **will delete every topic from ZooKeeper**.",
    do="1. Stop all controllers now.\n"
       "2. Delete `/controller`, then `/migration`.\n"
       "3. A broker becomes the ZooKeeper controller; nothing is lost as long as the deletion had not begun.\n\n"
       "Seen in [a run](../facts/kraft.md#a-leftover-migration).")
