"""Before a cluster is touched: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "preflight-cluster", "Before a cluster is touched",
    "switchover preflight -f migration.yaml")

ADDRESSES_CHANGE = Reason(
    SUBJECT, "AddressesChange", Urgency.STANDS,
    meaning="On the listener of `spec.kafka.bootstrapServers` brokers advertise the addresses of their pods. Each "
            "restart of the migration gives a pod another one. Credentials go only to servers that their Secret "
            "names ([decision 11](../decisions/0011-credentials.md)), and nobody can name an address before it is "
            "there: after the first restart the broker could not be asked.",
    look="`bootstrap.servers` of the Secret in `spec.kafka.credentialsRef`; `advertised.listeners` of the "
         "brokers.",
    do="Give in `spec.kafka.bootstrapServers` another listener, whose advertised host names lead to the pods (a "
       "headless Service) or to one broker each. Without credentials addresses do no harm.")

ALREADY_KRAFT = Reason(
    SUBJECT, "AlreadyKRaft", Urgency.STANDS,
    meaning="A broker runs with `process.roles`: it is on KRaft already.",
    look="`kafka-configs.sh --describe --all --entity-type brokers --entity-name ID`.",
    do="Nothing is left to migrate. If the wrong StatefulSet is named, correct `spec.brokers`.")

BROKER_DATA_IS_VOLATILE = Reason(
    SUBJECT, "BrokerDataIsVolatile", Urgency.STANDS,
    meaning="A directory of the brokers lies on a volume that is not known to outlive the pod. Only a claim, a network "
            "volume and a hostPath are; emptyDir, a generic `ephemeral` volume (its claim is deleted with the pod), inline "
            "`csi`, any other kind and the container itself are not. An evicted broker would come back without its "
            "replicas, or, where it is `metadata.log.dir`, not at all once it is on KRaft.",
    look="The directory in the message, which the broker itself tells (`kafka-log-dirs.sh --describe`), and the "
         "volume that is mounted there.",
    do="Move the data to a volume from a claim, broker by broker, before the migration.")

BROKERS_NOT_IDENTIFIED = Reason(
    SUBJECT, "BrokersNotIdentified", Urgency.STANDS,
    meaning="It cannot be told which pod is which broker. The message names the pod, why not, and what each "
            "broker advertises in `/brokers/ids`.",
    prose=True)

BUDGET_ALLOWS_NOTHING = Reason(
    SUBJECT, "BudgetAllowsNothing", Urgency.STANDS,
    meaning="A PodDisruptionBudget allows no disruption even while every broker is healthy (`maxUnavailable: 0`, "
            "or `minAvailable` as large as the number of brokers). No broker could ever be evicted.",
    look="`kubectl get poddisruptionbudget NAME --output yaml`, `status.desiredHealthy` and "
         "`status.expectedPods`.",
    do="Set `maxUnavailable: 1`.")

CERTIFICATE_LACKS_NAMES = Reason(
    SUBJECT, "CertificateLacksNames", Urgency.STANDS,
    meaning="The certificate of the controllers' listener does not name every controller, so nodes would refuse "
            "to connect to the one that is missing.",
    look="`openssl x509 -noout -ext subjectAltName` on `ssl.keystore.certificate.chain`.",
    do="Issue it for `*.<controllers' name>.<namespace>.svc`, or for each pod; the message names them.")

CLUSTER_IDS_DIFFER = Reason(
    SUBJECT, "ClusterIdsDiffer", Urgency.STANDS,
    meaning="The brokers and the ZooKeeper that the spec names belong to two clusters.",
    look="`/cluster/id` in ZooKeeper, and the brokers' `meta.properties`.",
    do="Correct `spec.zookeeper.connect`, chroot included, or `spec.kafka.bootstrapServers`.")

CLUSTER_IS_TAKEN = Reason(
    SUBJECT, "ClusterIsTaken", Urgency.STANDS,
    meaning="Another KafkaMigration holds the Lease of this Kafka cluster.",
    look="`kubectl get lease`, `kubectl get kmig`.",
    do="Finish or delete the other one. Two migrations of one cluster would restart brokers together.")

CONTROLLERS_NOT_AUTHORIZED = Reason(
    SUBJECT, "ControllersNotAuthorized", Urgency.STANDS,
    meaning="The brokers have an authorizer and no `super.users`, so the principal under which nodes meet on the "
            "controllers' listener is no super user. Until the copy the controllers know no ACL, so brokers could "
            "not register; after it an ACL could shut them out.",
    look="The principal in the message. It is `User:ANONYMOUS` on a PLAINTEXT listener, the user's name with "
         "SASL, the certificate's subject (after `ssl.principal.mapping.rules`) with SSL. Where `super.users` is "
         "set, Kafka hides to what, and [Preflight](../preflight.md) can only warn (SuperUsersHidden).",
    do="Give the controllers' listener credentials of a super user, or add the principal that they have to "
       "`super.users` on every broker. Never add `User:ANONYMOUS`: everybody who reaches a PLAINTEXT listener "
       "would be a super user.")

DEAD_BROKER_IN_ASSIGNMENT = Reason(
    SUBJECT, "DeadBrokerInAssignment", Urgency.STANDS,
    meaning="A partition is assigned to a broker that does not live. The migration would wait for it for ever, "
            "without a word.",
    look="The partition is in the message.",
    do="Reassign it to living brokers with `kafka-reassign-partitions.sh`, or start that broker.\n\n"
       "Kafka's driver notices a repair made in ZooKeeper only after up to a minute.")

ENCODER_SECRET_MISSING = Reason(
    SUBJECT, "EncoderSecretMissing", Urgency.STANDS,
    meaning="A broker configuration in ZooKeeper holds an encrypted password. Without the brokers' "
            "`password.encoder.secret`, which Kafka never tells, it cannot be compared with KRaft's.",
    look="The path is in the message. The brokers' own configuration has `password.encoder.secret`.",
    do="Put it into the Secret of `spec.zookeeper.credentialsRef` ([its keys](../api.md)), under that name. **Do "
       "not delete the node**: it is as it should be.")

FOREIGN_AUTHORIZER = Reason(
    SUBJECT, "ForeignAuthorizer", Urgency.STANDS,
    meaning="The brokers' authorizer is not Kafka's own. It is carried as it is to the controllers and to brokers on KRaft, "
            "where `zookeeper.connect` is gone. One that extends AclAuthorizer, or asks ZooKeeper itself, ends each broker "
            "and controller that starts with it, and Finalize restarts controllers when there is no way back.",
    look="The class in the message; its documentation, for KRaft.",
    do="Try it on a KRaft cluster of Kafka 3.9 with the version that the brokers have: create an ACL, be refused by it. "
       "Then accept it: `spec.acceptedRisks: [ForeignAuthorizer]`. Where it does not run on KRaft, give the brokers one "
       "that does before the migration.\n\n"
       "Seen in [a run](../facts/kraft.md#classes-that-are-not-kafkas).")

GENERATED_BROKER_ID = Reason(
    SUBJECT, "GeneratedBrokerId", Urgency.STANDS,
    meaning="Kafka generated broker ids. A migration refuses that.",
    look="The message names each pod with its id, which is also in `meta.properties` in its log directories.",
    do="Give each broker the id that it has as `broker.id`, for example from its ordinal on the command line, **and** "
       "`broker.id.generation.enable=false`: without that Kafka refuses an id above `reserved.broker.max.id` (1000), and "
       "generated ones begin at 1001. Restart one broker after the other.")

GITOPS_CONFLICT = Reason(
    SUBJECT, "GitOpsConflict", Urgency.STANDS,
    meaning="Flux owns a StatefulSet of brokers and applies it again with every reconciliation: mount, volume and "
            "update strategy would be put back in the middle of the migration.",
    look="The labels `kustomize.toolkit.fluxcd.io/name` and `namespace` of the StatefulSet.",
    do="Run the command that `unblocks` gives: the annotation `kustomize.toolkit.fluxcd.io/reconcile=disabled` on "
       "the live StatefulSet makes Flux leave this one object alone. Remove it after HandOver, when Git holds "
       "the new template.")

JBOD_NEEDS_NEWER_PROTOCOL = Reason(
    SUBJECT, "JbodNeedsNewerProtocol", Urgency.STANDS,
    meaning="A broker has several log directories; KRaft knows such brokers from `inter.broker.protocol.version` "
            "3.7 on.",
    look="`log.dirs` and `inter.broker.protocol.version`, as the broker runs with them.",
    do="Raise `inter.broker.protocol.version` to 3.9 on every broker.")

KAFKA_RIGHT_MISSING = Reason(
    SUBJECT, "KafkaRightMissing", Urgency.STANDS,
    meaning="Our Kafka user may not read what the migration is judged by: the quorum, the metadata log, settings.",
    look="The user of `spec.kafka.credentialsRef`, and `super.users` of the brokers.",
    do="Make it a super user. ACLs are not enough: the controllers know none before the metadata was copied.")

LISTENER_NAME_TAKEN = Reason(
    SUBJECT, "ListenerNameTaken", Urgency.STANDS,
    meaning="The brokers have a listener of the name that the controllers shall use.",
    look="`listeners`, as the brokers run with it.",
    do="Choose another `spec.controllers.listener.name`.")

LISTENERS_SET_AT_RUN_TIME = Reason(
    SUBJECT, "ListenersSetAtRunTime", Urgency.STANDS,
    meaning="A broker's listeners, their addresses or their security protocols were set at run time (KIP-226), and are not "
            "those of its own configuration. A broker on KRaft refuses such settings, and with them everything else that "
            "was set at run time for this broker alone: it starts with the listeners of its configuration. Clients of a "
            "listener that was added would find nobody there.",
    look="`kafka-configs.sh --bootstrap-server BROKER --describe --entity-type brokers --entity-name ID`.",
    do="Put the settings that the message names into the broker's own configuration, and restart it. Then run the command "
       "in the message: it takes the settings of run time away, and the listener goes on as before "
       "([a run](../facts/kraft.md#settings-of-one-broker-alone)). The next broker after that.")

LOG_DIR_OFFLINE = Reason(
    SUBJECT, "LogDirOffline", Urgency.STANDS,
    meaning="A broker has a failed log directory. In migration mode a broker stops when a log directory fails "
            "(KAFKA-16431).",
    look="`kafka-log-dirs.sh --describe`.",
    do="Repair or replace the disk and restart the broker, or take the directory out of `log.dirs` once its "
       "replicas live elsewhere.")

MALFORMED_NODE = Reason(
    SUBJECT, "MalformedNode", Urgency.STANDS,
    meaning="A node in ZooKeeper holds what Kafka would not read, at the next start of a broker or in the copy. "
            "What Kafka 3.9 takes is what its own definitions take ([which cases were "
            "run](../facts/public-cases.md)):",
    prose=True)

MIGRATION_ALREADY_CONFIGURED = Reason(
    SUBJECT, "MigrationAlreadyConfigured", Urgency.STANDS,
    meaning="A broker runs with settings of a migration that was begun by hand.",
    look="`zookeeper.metadata.migration.enable`, `controller.*` in its configuration.",
    do="Take it back by hand to plain ZooKeeper mode first; then start again.")

NAME_TAKEN = Reason(
    SUBJECT, "NameTaken", Urgency.STANDS,
    meaning="An object stands where Switchover would write one of its own, and it is not Switchover's. It is neither "
            "changed nor taken for the migration's own, also where it came after Preflight, and a rollback leaves it.",
    look="The object that the message names.",
    do="Rename or delete it.")

NODE_ID_TAKEN = Reason(
    SUBJECT, "NodeIdTaken", Urgency.STANDS,
    meaning="A controller would get the id of a broker.",
    look="`spec.controllers.firstNodeId` and the brokers' ids.",
    do="Choose another firstNodeId.")

NOT_IN_ZOOKEEPER_MODE = Reason(
    SUBJECT, "NotInZooKeeperMode", Urgency.STANDS,
    meaning="A broker is not a plain ZooKeeper broker.",
    look="Its settings (`kafka-configs.sh --describe --all`); its answer to ApiVersions.",
    do="Take it back to plain ZooKeeper mode. A migration begun by hand must be undone by hand.")

OWNED_BY_ANOTHER_OPERATOR = Reason(
    SUBJECT, "OwnedByAnotherOperator", Urgency.STANDS,
    meaning="A StatefulSet of brokers has an ownerReference to an object of another operator, which keeps it as "
            "that object says and would put every change back.",
    look="`kubectl get statefulset NAME --output jsonpath='{.metadata.ownerReferences}'`.",
    do="Migrate with that operator, or have it give the StatefulSet up (most can be told to orphan it).")

PENDING_DELETES = Reason(
    SUBJECT, "PendingDeletes", Urgency.STANDS,
    meaning="A topic is being deleted.",
    look="`/admin/delete_topics`.",
    do="Wait. A deletion that never ends usually waits for a dead broker.")

PODS_NOT_READY = Reason(
    SUBJECT, "PodsNotReady", Urgency.STANDS,
    meaning="Not every pod of the StatefulSet is ready.",
    look="`kubectl get pods`.",
    do="Make the cluster whole before it is migrated.")

PROTOCOL_VERSION_UNSUPPORTED = Reason(
    SUBJECT, "ProtocolVersionUnsupported", Urgency.STANDS,
    meaning="`inter.broker.protocol.version`, as the brokers run with it, is older than 2.8, from which on "
            "Switchover raises it to what a migration needs (3.6); or it is not the last version of its release, "
            "which controllers would refuse.",
    look="Live values are in the message.",
    do="Raise it to 3.9 on every broker, one by one. Coming from before 2.8, topics get their ids with it.")

PROTOCOL_VERSIONS_DIFFER = Reason(
    SUBJECT, "ProtocolVersionsDiffer", Urgency.STANDS,
    meaning="The brokers do not have the same inter.broker.protocol.version.",
    look="Live values are in the message.",
    do="Set one value and restart those that differ.")

REASSIGNING = Reason(
    SUBJECT, "Reassigning", Urgency.STANDS,
    meaning="Partitions are being reassigned.",
    look="`kafka-reassign-partitions.sh --list`.",
    do="Let it end or cancel it.")

RESIDUE = Reason(
    SUBJECT, "Residue", Urgency.STANDS,
    meaning="Something is left of an earlier attempt: `/migration`, a claimed `/controller`, a controllers' "
            "StatefulSet or its volumes.",
    look="The message names it.",
    do="Make sure that **no KRaft controller runs**, then remove what is named. With a stale `/migration`, fresh "
       "controllers delete every topic from ZooKeeper.\n\n"
       "Seen in [a run](../facts/kraft.md#a-leftover-migration): it looks healthy until everything is gone.")

SCRAM_ON_CONTROLLERS = Reason(
    SUBJECT, "ScramOnControllers", Urgency.STANDS,
    meaning="The Secret of the controllers' listener asks for SCRAM. SCRAM users are part of the metadata, which "
            "the controllers have only once they run together: none could log in to another, and no broker could "
            "register before the copy.",
    look="`sasl.mechanism` in the Secret that `spec.controllers.listener.credentialsRef` names.",
    do="Use PLAIN, or `securityProtocol: SSL` with client certificates. The brokers' own listeners may keep "
       "SCRAM.")

SEVERAL_BUDGETS = Reason(
    SUBJECT, "SeveralBudgets", Urgency.STANDS,
    meaning="Two PodDisruptionBudgets select a broker's pod, or one of a whole namespace selects the controllers "
            "as well as the one that the migration makes for them. The eviction API refuses such pods with an "
            "error, for ever. It goes by the labels of the pod, some of which its template does not have, such as "
            "`statefulset.kubernetes.io/pod-name`.",
    look="`kubectl get poddisruptionbudgets`, and `kubectl get pods --show-labels`.",
    do="Delete all of them but one, or run the command that the finding prints: it deletes the one that selects "
       "fewer of the brokers, or takes the controllers out of the wide one.")

START_NOT_SUPPORTED = Reason(
    SUBJECT, "StartNotSupported", Urgency.STANDS,
    meaning="The command of the brokers' container starts the class `kafka.Kafka` by itself (`java … "
            "kafka.Kafka`, `kafka-run-class.sh … kafka.Kafka`), and not Kafka's start script, over which "
            "Switchover puts its own: the edits of a mode would reach no broker.",
    look="`command` and `args` of the container in the StatefulSet.",
    do="Start Kafka by the script that `unblocks` names, with the same file and the same arguments (`--override "
       "KEY=VALUE`). Options of the JVM go into `KAFKA_HEAP_OPTS`, `KAFKA_OPTS` and the like. Let that roll out "
       "before the migration.")

STORAGE_CLASS_MISSING = Reason(
    SUBJECT, "StorageClassMissing", Urgency.STANDS,
    meaning="The storage class of the controllers' volumes does not exist, or none is named and none is the "
            "default. Their pods would stay Pending.",
    look="`kubectl get storageclasses`.",
    do="Correct `spec.controllers.storage.storageClassName`.")

TOPIC_CANNOT_SPARE_A_BROKER = Reason(
    SUBJECT, "TopicCannotSpareABroker", Urgency.STANDS,
    meaning="A topic stands still whenever one of its brokers restarts: it has no more replicas than "
            "min.insync.replicas.",
    look="`kafka-topics.sh --describe --topic NAME`.",
    do="Add replicas, lower its min.insync.replicas, or accept it by name in `spec.gates.acceptedTopics`.")

TOPIC_ID_DIFFERS = Reason(
    SUBJECT, "TopicIdDiffers", Urgency.NOW,
    meaning="A topic's id in ZooKeeper is not the one that brokers serve it by, or not the one on their disks. An old "
            "tool wrote the topic's node without its id, and the controller that came next gave it another "
            "(KAFKA-14190). Each broker that restarts refuses its own logs then, and once all replicas of a partition "
            "have restarted nobody serves it.",
    look="The topic and the broker are in the message. On the disk `partition.metadata` in the partition's directory "
         "has the id; `zookeeper-shell.sh ZOOKEEPER get /brokers/topics/NAME` shows the one in ZooKeeper.",
    do="**Restart no broker.** Run the command in the message, in bash or zsh, where `zookeeper-shell.sh` of Kafka is "
       "and ZooKeeper can be reached. It writes the id on the disk into the topic's node and leaves all else there as "
       "it is. Where the controller has the wrong id, the command deletes `/controller`, so that it is elected again "
       "and reads the right one. No broker restarts. Find the tool that writes topics to ZooKeeper, and stop it.\n\n"
       "Seen in [a run](../facts/kraft.md#topic-ids): also where no broker served the partitions any more.")

TOPIC_WITHOUT_ID = Reason(
    SUBJECT, "TopicWithoutId", Urgency.NOW,
    meaning="A topic has no id in ZooKeeper. Where brokers serve it by one, an old tool has written its node without "
            "it. The next controller gives the topic another id, which the logs on the disks do not have "
            "([TopicIdDiffers]). Where no broker serves it by an id, the cluster's protocol version is older than "
            "2.8, and the migration would stall before the claim.",
    look="`zookeeper-shell.sh ZOOKEEPER get /brokers/topics/NAME`.",
    do="Where the message has a command: **restart no broker**, and run it, in bash or zsh, where `zookeeper-shell.sh` "
       "of Kafka is and ZooKeeper can be reached. It writes the id that brokers serve back into the node, and leaves "
       "all else there as it is. Find the tool that writes topics to ZooKeeper, and stop it. Else raise "
       "`inter.broker.protocol.version` to 3.9 on every broker, one by one: the controller writes ids then, and so do "
       "brokers on their disks.")

TOPICS_HIDDEN = Reason(
    SUBJECT, "TopicsHidden", Urgency.STANDS,
    meaning="ZooKeeper has topics that no broker shows us. A broker leaves out, without a word, what a user may "
            "not DESCRIBE, so their health could not be judged. A topic created this moment is told for a pass or "
            "two as well.",
    look="The ACLs of the topics named.",
    do="Give our user DESCRIBE and DESCRIBE_CONFIGS on every topic, or make it a super user.")

TOPICS_SHARE_AN_ID = Reason(
    SUBJECT, "TopicsShareAnId", Urgency.STANDS,
    meaning="Two topics have the same `topic_id` in ZooKeeper: somebody copied a topic's node, a restore script "
            "perhaps. KRaft knows topics by their ids. The copy goes through, parity finds no difference, and "
            "then each broker that comes up on KRaft knows one of the two topics, and sets the directories of the "
            "other aside (`-stray`).",
    look="The message names the topics. On a broker's disk, `partition.metadata` in a directory of each topic "
         "says which id the topic really has:\n\n"
         "```\n"
         "kubectl exec POD --container CONTAINER -- sh -c 'grep topic_id "
         "/LOG-DIRECTORY/TOPIC-0/partition.metadata'\n"
         "zookeeper-shell.sh ZOOKEEPER get /brokers/topics/TOPIC\n"
         "```",
    do="If only the node is wrong, write the id of the disk into it. If both have it on their disks, keep one "
       "topic: create another with Kafka's tools for the records of the second, copy them, and delete that one. "
       "(What Kafka makes of two such topics was seen; this repair was not tried.)")

UPGRADE_CHANGES_NOTHING = Reason(
    SUBJECT, "UpgradeChangesNothing", Urgency.STANDS,
    meaning="`spec.upgrade.image` is the image that the brokers run already, and that is of a Kafka older than "
            "3.9. Nothing was touched.",
    look="`kubectl get statefulset NAME --output jsonpath='{.spec.template.spec.containers[*].image}'`",
    do="Name an image of Kafka 3.9 in `spec.upgrade.image`.")

WEAKER_CONTROLLERS = Reason(
    SUBJECT, "WeakerControllers", Urgency.STANDS,
    meaning="The brokers encrypt or authenticate what they tell each other, and the controllers' listener would "
            "not. Over that listener goes all metadata, the credentials of SCRAM users included: whoever reaches "
            "its port could read it.",
    look="`spec.controllers.listener`, and `inter.broker.listener.name` (or `security.inter.broker.protocol`) "
         "with `listener.security.protocol.map` of the brokers.",
    do="Give the listener `securityProtocol: SSL` or `SASL_SSL` and a Secret ([its keys](../api.md)). If the "
       "network itself keeps strangers away and you accept that: `spec.acceptedRisks: [WeakerControllers]`.")
