"""Between ZooKeeper's coordination and Kafka's: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "coordination", "Between ZooKeeper's coordination and Kafka's",
    "zookeeper-shell.sh HOST:2181 ls /consumers/GROUP/ids")

ALREADY_MOVED = Reason(
    SUBJECT, "AlreadyMoved", Urgency.STANDS,
    meaning="Some members take part by the protocol that the group is to end with, although the migration has not "
            "begun: somebody moved them by hand, or an abandoned attempt left them.\n\n"
            "With `coordination`: members are migration-enabled already, or known to the other coordinator.",
    look="The message names the first of them.\n\n"
         "```\n"
         "kubectl get cgmig NAME --output jsonpath='{.status.group}'\n"
         "kubectl get deployment,statefulset --output "
         "custom-columns=NAME:.metadata.name,CLAIM:.metadata.annotations.switchover\\.dev/claimed-by\n"
         "```",
    do="With `coordination`, where all members are migration-enabled and shall stay so, set "
       "`spec.coordination.replace` to `Nothing`. If every member has moved, there is nothing to do: delete the "
       "resource. Else bring these pods back to the old protocol, let the group settle, and it goes on by itself.")

ASSIGNMENT_AMBIGUOUS = Reason(
    SUBJECT, "AssignmentAmbiguous", Urgency.STANDS,
    meaning="The old consumers use `roundrobin`, and two of their partitions have the same hash. Which of the two "
            "comes first then hangs on a hash map inside of each Java process: no other consumer can compute the "
            "same shares, and members that disagree own nothing at all.",
    look="The message names the two partitions.",
    do="Set `partition.assignment.strategy` to `range` on every old consumer (all at once: a group cannot mix "
       "strategies), and `spec.coordination.assignmentStrategy` to `Range`.")

ASSIGNMENT_NOT_UNDERSTOOD = Reason(
    SUBJECT, "AssignmentNotUnderstood", Urgency.LOOK,
    meaning="Who owns what in ZooKeeper is not what any strategy of the old consumer makes of the registered "
            "members. A migration-enabled member computes its share by the same arithmetic: one partition of "
            "difference, and old consumers give everything back.",
    look="The owner nodes and the members.\n"
         "```\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/migration/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT get -s /consumers/GROUP/migration/mode\n"
         "```",
    do="While the group rebalances, wait. If it stays so: restart a consumer that gave up (`can't rebalance after "
       "4 retries` in its log), and see that all members have one `partition.assignment.strategy`; with "
       "`roundrobin`, that none is of 0.11 or older beside 1.0 or newer. Clients that are not the Java one "
       "(kafka-node, kazoo-go, pykafka) compute something else: they must go first.")

ASSIGNMENT_UNCLEAR = Reason(
    SUBJECT, "AssignmentUnclear", Urgency.STANDS,
    meaning="Who owns what is the same by several strategies of the old consumer, as it is where a group is "
            "small. After the next member has joined they would differ, so it is not guessed.",
    look="`observed` has the strategies that fit.",
    do="Name the one that the members use in `spec.coordination.assignmentStrategy`: `Range` unless their "
       "configuration says `partition.assignment.strategy=roundrobin`; for that `RoundRobin` with clients of 1.0 "
       "and newer, `RoundRobinUpTo0_11` with older ones.")

ASSIGNOR_NOT_EAGER = Reason(
    SUBJECT, "AssignorNotEager", Urgency.STANDS,
    meaning="The group's strategy in Kafka is none that migration-enabled consumers offer: they let go of "
            "everything before a rebalance, since their owner nodes in ZooKeeper must be gone by then.",
    look="`observed` is the strategy in force.",
    do="Move the group to `range` first, by a `ConsumerGroupMigration` with `assignmentStrategy: {to: range}`.")

BRIDGE_MISSING = Reason(
    SUBJECT, "BridgeMissing", Urgency.STANDS,
    meaning="The strategy changes in two bounces: in the first one every member gets a list with both strategies, "
            "in the second the new one alone. A workload of the spec has no `bridge` for the first. With "
            "`coordination` the bridge is the migration-enabled consumer: without it old consumers and "
            "KafkaConsumers would stand side by side.",
    look="`status.group.assignor`: the strategy in force.",
    do="Add a `bridge` to every workload that sets `partition.assignment.strategy` to both, the new one first, "
       "and in Java by class:\n\n"
       "```\n"
       "org.apache.kafka.clients.consumer.CooperativeStickyAssignor,org.apache.kafka.clients.consumer.RangeAssignor\n"
       "```\n\n"
       "Java clients on defaults (3.0 and newer) offer both already; say it in the bridge all the same.")

GROUP_EMPTY = Reason(
    SUBJECT, "GroupEmpty", Urgency.STANDS,
    meaning="The group has no members, or does not exist: there is nothing to move online.",
    look="`spec.group` against the `group.id` of the application; the pods.",
    do="Correct the name, or start the consumers. If they are meant to be down, start them with the new "
       "configuration: an empty group is taken by either protocol, whatever the brokers' policy is, and committed "
       "offsets stay. No migration is needed for that.")

GROUP_TOO_LARGE = Reason(
    SUBJECT, "GroupTooLarge", Urgency.STANDS,
    meaning="The members alone are more than `group.consumer.max.size` allows: the coordinator would not convert "
            "the group (GROUP_ID_NOT_FOUND, `the group size exceeds the consumer group maximum size`). Or they "
            "are more than `group.max.size`: it would not convert the group back.",
    look="`subject` is the setting, `threshold` its value on the coordinator, `observed` the members.",
    do="Raise the setting on every broker (it is static: a restart of each), or set `spec.protocol.strategy: "
       "Offline`.")

GROUP_TYPE_UNSUPPORTED = Reason(
    SUBJECT, "GroupTypeUnsupported", Urgency.STANDS,
    meaning="The group is of a type that only Kafka Streams (`streams`) or share consumers use. Or, with "
            "`coordination: {to: ZooKeeper}`, of the consumer protocol: migration-enabled consumers are classic "
            "members.",
    look="`kafka-groups.sh --bootstrap-server kafka:9092 --list`.",
    do="Check `spec.group`. A group of the consumer protocol is moved to the classic one first (`protocol: {to: "
       "Classic}`). The others cannot be moved by Switchover.")

GUARDS_LEFT = Reason(
    SUBJECT, "GuardsLeft", Urgency.STANDS,
    meaning="Owner nodes that belong to no session keep old consumers off partitions that Kafka gave out. The "
            "members have gone back to ZooKeeper, and such nodes are still there.",
    look="`kubectl logs` of the operator: ZooKeeper may refuse to delete them.",
    do="Nothing: they are removed when every member follows the mode `zookeeper` ([ModeNotFollowed]). If that is "
       "refused, give our credentials DELETE on the topics below `/consumers/GROUP/owners`.")

KAFKA_CONSUMER_TOO_EARLY = Reason(
    SUBJECT, "KafkaConsumerTooEarly", Urgency.NOW,
    meaning="A KafkaConsumer is in the group while ZooKeeper coordinates it. Kafka gives it a share of the "
            "partitions, and their owners in ZooKeeper fetch the same ones: **records are processed twice**. "
            "Without old consumers Switchover sets the mode to `kafka` until it is gone, so that its share is its "
            "own; with old consumers there is no such way. If it is a pod of this migration (a `bridge` that is "
            "no migration-enabled consumer), the migration turns back by itself, and of a Deployment all pods of "
            "that batch leave at once, before others start in their place. (Not once a batch of them has been "
            "done: then some of it proved to be something else.)",
    look="The message names client id and address.\n\n"
         "```\n"
         "kafka-consumer-groups.sh --bootstrap-server kafka:9092 --describe --group GROUP --members\n"
         "```",
    do="Stop it. KafkaConsumers may come when the migration is in ReplaceWithKafkaConsumers, and only as pods of "
       "`spec.workloads`. Where the bridge was wrong, correct it after the rollback and begin again.")

KAFKA_CONSUMERS_LEFT = Reason(
    SUBJECT, "KafkaConsumersLeft", Urgency.STANDS,
    meaning="The mode does not go back to `zookeeper` while a KafkaConsumer could fetch what ZooKeeper gives out: "
            "every workload that makes them must have no pods, and Kafka's group must not know one.",
    look="The message names the workload, the pod or the member.",
    do="Pods of `spec.workloads` go by themselves. A member whose pod was killed leaves when its session ends (45 "
       "s by default). One that stays runs elsewhere: stop it.")

KAFKA_OFFSETS_AHEAD = Reason(
    SUBJECT, "KafkaOffsetsAhead", Urgency.STANDS,
    meaning="Kafka has an offset of the group that is ahead of ZooKeeper's, and its members were seen to commit "
            "to ZooKeeper alone: it is left over from another time, or from before the topic was made anew. A "
            "migration-enabled consumer goes on from the greater one, and would skip what lies between.",
    look="```\n"
         "kafka-consumer-groups.sh --bootstrap-server kafka:9092 --describe --group GROUP --offsets\n"
         "```",
    do="Look once more that these offsets stand still: members that commit to Kafka have no others "
       "([OffsetsInKafkaOnly], [OffsetsInBoth]; this page is not shown beside them). Then delete the group's "
       "offsets in Kafka (`--delete-offsets --group GROUP --topic TOPIC`) while it has no member there, which is "
       "now: later nobody can. It goes on by itself.")

KAFKA_OFFSETS_BEHIND = Reason(
    SUBJECT, "KafkaOffsetsBehind", Urgency.LOOK,
    meaning="A KafkaConsumer reads its offsets from Kafka alone. There is none of this partition, so that its "
            "`auto.offset.reset` would decide where it begins, or one that is behind ZooKeeper's.",
    look="The log of the migration-enabled pod that owns the partition: it commits to both stores, when it takes "
         "a partition too.",
    do="Nothing for a moment. If it stays so, restart that pod.")

MALFORMED_REGISTRATION = Reason(
    SUBJECT, "MalformedRegistration", Urgency.STANDS,
    meaning="A child of `/consumers/GROUP/ids` is not what the old Java consumer writes. Each Java consumer reads "
            "all of them, and one that it cannot read stops them all: they own nothing, in 0.2 s. Clients of "
            "another make read each other well: pykafka writes the bare name of the topic, and a group of its "
            "consumers alone is healthy.",
    prose=True)

MEMBER_WAITS = Reason(
    SUBJECT, "MemberWaits", Urgency.STANDS,
    meaning="A migration-enabled member does not follow the mode, and says why: an old consumer that is still "
            "there keeps it with ZooKeeper, a KafkaConsumer keeps it with Kafka.",
    look="The message has its own words.",
    do="See to whom it names.")

MODE_NODE_CHANGED = Reason(
    SUBJECT, "ModeNodeChanged", Urgency.STANDS,
    meaning="`/consumers/GROUP/migration/mode` is not what this step wants: somebody else deleted or wrote it. "
            "Members follow it within seconds, as far as it is safe: with a KafkaConsumer in the group none goes "
            "back to ZooKeeper. It is written again, over the version that was read, as soon as that lets no two "
            "consumers at one partition.",
    look="Who writes it: an older migration, a script, a person.\n"
         "```\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/migration/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT get -s /consumers/GROUP/migration/mode\n"
         "```",
    do="Stop whoever does. If it is gone for good, everything goes on by itself.")

MODE_NOT_FOLLOWED = Reason(
    SUBJECT, "ModeNotFollowed", Urgency.LOOK,
    meaning="A migration-enabled member has not acknowledged the mode znode in the version that it has now, so it "
            "may still fetch by the other coordinator's word. Nothing goes on until every member has.",
    look="Its log; `observed` is the mode and version that it follows.",
    do="Wait: it takes seconds. A member that stays behind has lost ZooKeeper or stands still: restart its pod. "
       "One that tells nothing is another implementation of KIP-125, which cannot be taken along.")

MODES_DIFFER = Reason(
    SUBJECT, "ModesDiffer", Urgency.NOW,
    meaning="Some members choose their partitions by ZooKeeper and some by Kafka. Right after a toggle that lasts "
            "seconds, and an owner node keeps them from fetching the same partition meanwhile; a KafkaConsumer "
            "knows no owner nodes.",
    look="`status.group.mode` is `mixed`.\n"
         "```\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/migration/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT get -s /consumers/GROUP/migration/mode\n"
         "```",
    do="Wait. If it stays, [ModeNotFollowed], [OldConsumerArrived] or [KafkaConsumerTooEarly] beside it says who "
       "it is.")

NO_COMMIT_SEEN = Reason(
    SUBJECT, "NoCommitSeen", Urgency.LOOK,
    meaning="Nothing was committed, to ZooKeeper or to Kafka, while the group was watched, although it has "
            "records to read: so nobody can tell where its members commit.",
    look="The lag, and the consumers' logs.",
    do="They must consume and commit. Where `auto.commit.interval.ms` is more than 60 s, raise "
       "`spec.gates.quietSeconds` to twice as much.")

NOT_MIGRATION_ENABLED = Reason(
    SUBJECT, "NotMigrationEnabled", Urgency.STANDS,
    meaning="`spec.coordination.replace` is `Nothing`, and a member knows nothing of the migration: with it the "
            "group cannot be toggled.",
    look="```\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/migration/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT get -s /consumers/GROUP/migration/mode\n"
         "```",
    do="Set `replace: All` and give each workload a bridge, or stop that member.")

NOT_QUIET_YET = Reason(
    SUBJECT, "NotQuietYet", Urgency.NONE,
    meaning="Before Kafka coordinates the group no old consumer may have been seen for `spec.gates.quietSeconds`. "
            "One that restarts every minute would take the whole group there and back each time.",
    look="Nothing is wrong.",
    do="Nothing. An operator that has just started counts from its start.")

NOTHING_IS_REPLACED = Reason(
    SUBJECT, "NothingIsReplaced", Urgency.STANDS,
    meaning="`spec.coordination.replace` is `Nothing`, and a workload has a template or bridge all the same.",
    look="`spec.workloads`.",
    do="Give it `template: {}` and no bridge, or set `replace: All`.")

NOTHING_TO_CHANGE = Reason(
    SUBJECT, "NothingToChange", Urgency.STANDS,
    meaning="The template of `spec.workloads` makes no difference to what runs, or the group uses the strategy "
            "already: pods would be replaced for nothing.",
    look="`kubectl get deployment NAME --output jsonpath='{.spec.template.spec.containers}'` against the change "
         "in the spec.",
    do="Name the image, variables or arguments that make the difference, in the right container. If the change is "
       "live already (Git was faster), the pods have moved or are moving without gates: look at `status.group`, "
       "and delete this resource.")

OFFSET_OUTSIDE_LOG = Reason(
    SUBJECT, "OffsetOutsideLog", Urgency.STANDS,
    meaning="A committed offset lies outside of its partition's log: the topic was made anew, or the group fell "
            "behind the retention. A consumer that starts there follows its `auto.offset.reset`, and the greater "
            "one of two stores may be the wrong one.",
    look="The message has partition, store and the log's bounds.",
    do="Set or delete that offset while nobody consumes. In ZooKeeper: "
       "`/consumers/GROUP/offsets/TOPIC/PARTITION`. In Kafka: `kafka-consumer-groups.sh --reset-offsets` or "
       "`--delete-offsets`.")

OFFSETS_IN_BOTH = Reason(
    SUBJECT, "OffsetsInBoth", Urgency.STANDS,
    meaning="The old consumers commit to Kafka and to ZooKeeper (`offsets.storage=kafka` with "
            "`dual.commit.enabled`). As soon as one migration-enabled member joins, Kafka refuses their commits, "
            "and then they do not write ZooKeeper either, without a line in their log; the next restart replays "
            "everything since.",
    look="Both offsets move.",
    do="Set `offsets.storage=zookeeper` on every member; `dual.commit.enabled` does not matter then. The offsets "
       "in ZooKeeper are good: this was watched. It goes on by itself.")

OFFSETS_IN_KAFKA_ONLY = Reason(
    SUBJECT, "OffsetsInKafkaOnly", Urgency.STANDS,
    meaning="The old consumers commit to Kafka alone (`offsets.storage=kafka`, `dual.commit.enabled=false`). "
            "Switched to ZooKeeper at once they would begin at offsets of long ago, or at none.",
    look="Only Kafka's offsets move.",
    do="In this order: `dual.commit.enabled=true` on every member; when this page gives way to [OffsetsInBoth], "
       "`offsets.storage=zookeeper` on every member.")

OLD_CONSUMER_ARRIVED = Reason(
    SUBJECT, "OldConsumerArrived", Urgency.NOW,
    meaning="An old consumer is registered, which knows nothing of the migration. While no KafkaConsumer is in "
            "the group, Switchover sets the mode back to `zookeeper` until it is gone, and then waits for "
            "`spec.gates.quietSeconds`. With KafkaConsumers there is no rollback, and the mode stays: members "
            "hold it off by their owner nodes and by guards on what they let go of; a partition that no "
            "migration-enabled consumer has ever owned is not guarded.",
    look="The consumer id has its host's name.\n"
         "```\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/migration/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT get -s /consumers/GROUP/migration/mode\n"
         "```",
    do="Stop whatever starts it: a forgotten Deployment, a cron job, a console consumer with `--zookeeper`.")

OWNERS_UNSETTLED = Reason(
    SUBJECT, "OwnersUnsettled", Urgency.LOOK,
    meaning="The owner nodes in ZooKeeper are not what the members' arithmetic makes of who is registered: a "
            "rebalance is under way, or an old consumer gave up in one.",
    look="Logs of old consumers: `can't rebalance after 4 retries`.\n"
         "```\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT ls /consumers/GROUP/migration/ids\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT get -s /consumers/GROUP/migration/mode\n"
         "```",
    do="Wait for half a minute. An old consumer that gave up owns nothing and says nothing until the next change "
       "of members: restart its pod.")

PATTERN_DIFFERS = Reason(
    SUBJECT, "PatternDiffers", Urgency.STANDS,
    meaning="A member subscribes by a pattern that Java and Python may read differently. Members that do not find "
            "the same topics compute different shares, and old consumers then own nothing.",
    look="The message has the pattern.",
    do="Subscribe by name, or by a pattern of letters, digits, `.`, `_`, `-`, `|`, `*`, `+`, `?`, `[]` and `()`.")

PATTERN_ESCAPED = Reason(
    SUBJECT, "PatternEscaped", Urgency.STANDS,
    meaning="A member subscribes by a pattern with a backslash, which consumers of 1.0.1 to 1.1.1 write twice "
            "(KAFKA-5631): read back it matches no topic, and the member owns nothing.",
    look="The message has the pattern.",
    do="Write it without backslashes: `[.]` for a dot.")

RECORD_TOO_LARGE = Reason(
    SUBJECT, "RecordTooLarge", Urgency.STANDS,
    meaning="The group's state would not fit into one batch of `__consumer_offsets`. A conversion is one such "
            "batch: for every member its topics, each strategy that it lists with all its metadata, and its "
            "partitions, about three times what the same group needs as a classic one. The coordinator would fail "
            "with UNKNOWN_SERVER_ERROR. The figure is an estimate on the high side.",
    look="`observed` and `threshold` in bytes.",
    do="One of\n\n"
       "* raise the limit of that topic, if replication and consumers of it allow: `kafka-configs.sh "
       "--bootstrap-server kafka:9092 --alter --entity-type topics --entity-name __consumer_offsets --add-config "
       "max.message.bytes=4194304`;\n"
       "* list one strategy only in the members' `partition.assignment.strategy` before the migration;\n"
       "* set `spec.protocol.strategy: Offline`.")

STORES_WATCHED = Reason(
    SUBJECT, "StoresWatched", Urgency.NONE,
    meaning="Where the members commit (`offsets.storage`) is not in their registrations, so both stores are "
            "watched for `spec.gates.quietSeconds`: twice the usual `auto.commit.interval.ms` of 60 s.",
    look="Nothing is wrong.",
    do="Nothing.")

WRONG_CONSUMER = Reason(
    SUBJECT, "WrongConsumer", Urgency.STANDS,
    meaning="A pod takes part as another kind of consumer than its change says: one of the bridge as an old "
            "consumer, say, because its image or variables are still the old ones.",
    look="`observed` is what it is.",
    do="Correct `spec.workloads` after a rollback, and begin again.")

ZOOKEEPER_OFFSETS_AHEAD = Reason(
    SUBJECT, "ZooKeeperOffsetsAhead", Urgency.STANDS,
    meaning="ZooKeeper has an offset of the group that is ahead of Kafka's: left over from another time. A "
            "migration-enabled consumer goes on from the greater one, and would skip what lies between.",
    look="```\n"
         "zookeeper-shell.sh ZOOKEEPER/CHROOT get /consumers/GROUP/offsets/TOPIC/PARTITION\n"
         "```",
    do="Delete these znodes: nobody reads them now. It goes on by itself.")

ZOOKEEPER_OFFSETS_BEHIND = Reason(
    SUBJECT, "ZooKeeperOffsetsBehind", Urgency.LOOK,
    meaning="An old consumer reads its offsets from ZooKeeper alone, and one of them is behind Kafka's: it would "
            "deliver again whatever lies between. KafkaConsumers commit to Kafka alone; a migration-enabled "
            "consumer that takes over goes on from the greater one and commits to both at once.",
    look="The log of the migration-enabled pod that owns the partition.",
    do="Nothing for a moment. If it stays, that pod cannot write below `/consumers/GROUP/offsets`, or the "
       "partition has no owner.")

ZOOKEEPER_RIGHT_MISSING = Reason(
    SUBJECT, "ZooKeeperRightMissing", Urgency.STANDS,
    meaning="Of a KafkaMigration: the ACLs of ZooKeeper do not let our credentials delete `/controller` and "
            "`/migration` or raise `/controller_epoch`. The rollback from a claim needs all three. Of a "
            "ConsumerGroupMigration with `coordination`: they do not let us write the mode znode of the group, or "
            "remove guards below its `owners`; the message names what is missing.",
    look="`getAcl /` and `getAcl /controller_epoch` in the brokers' chroot; of a group, the nodes of the message.",
    do="Give `spec.zookeeper.credentialsRef` the credentials that the brokers use.")
