"""The rehearsal: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "rehearsal", "The rehearsal",
    "switchover rehearse -f migration.yaml")

BROKERS_WOULD_END = Reason(
    SUBJECT, "BrokersWouldEnd", Urgency.STANDS,
    meaning="A broker in KRaft mode that loads the copied metadata ends at its start. In production every broker "
            "would, one after the other, when it is moved.",
    look="The node that is named: mostly a topic's setting that Kafka's parser refuses.",
    do="Correct it: `kafka-configs.sh --bootstrap-server BROKER --alter --entity-type topics --entity-name TOPIC "
       "--delete-config KEY`. The rehearsal is repeated by itself once the tree has changed.")

CLAIM_WOULD_NOT_COME = Reason(
    SUBJECT, "ClaimWouldNotCome", Urgency.STANDS,
    meaning="On the replica the controller never claimed the cluster: the migration would stand still with its "
            "controllers up.",
    look="The node that is named: a topic without `topic_id`, or one that is no JSON. A live ZooKeeper controller "
         '"repairs" such a node by giving the topic a new id or no partitions; its data is then set aside as '
         "`-stray`.",
    do="Restart no broker. Write a lost id back as [TopicWithoutId] says, any other node as it was, or delete the topic "
       "with Kafka's tools. The rehearsal is repeated by itself once the tree has changed.")

COPY_WOULD_FAIL = Reason(
    SUBJECT, "CopyWouldFail", Urgency.STANDS,
    meaning="On the replica the controller claimed the cluster and ended while it copied. In production no "
            "controller would work from then on.",
    look="The node that is named was proven: without it the copy goes through. The exception's class is in the "
         "message; values are never shown.",
    do="Mend or delete the node, by Kafka's tools (`kafka-configs.sh`, `kafka-acls.sh`) where they can still read "
       "it, else by the command in the finding. The rehearsal is repeated by itself once the tree has changed.")

DUAL_WRITE_WOULD_NOT_BEGIN = Reason(
    SUBJECT, "DualWriteWouldNotBegin", Urgency.STANDS,
    meaning="On the replica the metadata was copied, and dual write never began. In production all looks well "
            "after that, `/migration` has an offset, and brokers that restart learn nothing.",
    look="The node that is named: mostly a quota with a key that Kafka does not know, or a byte rate with a "
         "decimal.",
    do="Remove the key or write a whole number (`kafka-configs.sh --alter --entity-type clients …`). The "
       "rehearsal is repeated by itself once the tree has changed.")

FINALIZE_WOULD_FAIL = Reason(
    SUBJECT, "FinalizeWouldFail", Urgency.STANDS,
    meaning="On the replica the controller did not leave the migration when it was started without ZooKeeper.",
    look="The exception's class in the message.",
    do="Do not begin. Keep the report (`switchover rehearse --output`) and look at what its other findings say.")

METADATA_WOULD_BE_LOST = Reason(
    SUBJECT, "MetadataWouldBeLost", Urgency.STANDS,
    meaning="Dual write would delete a node of the user's, with all that it says: Kafka cannot read it, so KRaft "
            "never had it.",
    look="The node that is named: mostly ACLs that are no JSON. Who relied on them has no rights from then on.",
    do="Write it as Kafka would (`kafka-acls.sh`), or delete it if nobody needs it.")

METADATA_WOULD_DIFFER = Reason(
    SUBJECT, "MetadataWouldDiffer", Urgency.STANDS,
    meaning="After the copy, KRaft's metadata was not what the tree says.",
    look="The message has both values; those of credentials are hidden.",
    do="Correct it in ZooKeeper by Kafka's tools. An ACL with a word that Kafka does not know is one that never "
       "allowed anything: remove it.")

REGISTRATION_WOULD_BE_REFUSED = Reason(
    SUBJECT, "RegistrationWouldBeRefused", Urgency.STANDS,
    meaning="The replica's controller refused a registration like the one that a broker will send.",
    look="The message has Kafka's error and the broker.",
    do="Compare `inter.broker.protocol.version` of the brokers, and their ids with those in `/brokers/ids`.")

REHEARSAL_FAILED = Reason(
    SUBJECT, "RehearsalFailed", Urgency.STANDS,
    meaning="The rehearsal on the replica did not come to its end, so nothing is known of what Kafka's migration "
            "would make of the metadata.",
    look="The message has the replica's own words, or Kubernetes' (an image, a quota, out of memory, a deadline "
         "of half an hour). `kubectl logs JOB -c rehearsal` tells how far it came, with the subject as JOB (`job/NAME`); of "
         "the processes, what they told stays in the pod. Where its ConfigMaps hold another tree, or a report is not its "
         "own, somebody who may create ConfigMaps or pods has made one in its name: look at the namespace's audit log.",
    do="Mend what it names. Then `kubectl delete JOB`: it is made anew. Where no such pod can run, "
       "set `spec.rehearsal.enabled` to `false`: the migration goes on without.")

REHEARSAL_INCOMPLETE = Reason(
    SUBJECT, "RehearsalIncomplete", Urgency.STANDS,
    meaning="A part of the metadata was not rehearsed: a node may not be read, what was copied could not be "
            "compared, or a broker did not answer in time.",
    look="The message says which part. `kubectl logs JOB -c rehearsal` has all findings; its subject names the Job.",
    do="Let the user of `spec.zookeeper.credentialsRef` read the nodes that are named; Kafka's own user has all "
       "of them. Then `kubectl delete JOB`, which its subject names.")

REHEARSAL_RUNNING = Reason(
    SUBJECT, "RehearsalRunning", Urgency.NONE,
    meaning="Claim, copy, rollback and end are rehearsed on a throwaway replica of the metadata "
            "([rehearsal](../rehearsal.md)). It takes half a minute for a small cluster, some minutes for one of "
            "10,000 topics or one with faults.",
    look="`kubectl logs JOB -c rehearsal -f`, with the subject as JOB: it says what it does.",
    do="Nothing. A pod that does not start is told with the kubelet's reason.")

REHEARSAL_UNKNOWN = Reason(
    SUBJECT, "RehearsalUnknown", Urgency.STANDS,
    meaning="It cannot be told whether the metadata was rehearsed: the Job or ZooKeeper's tree could not be read, "
            "or the operator does not know its own image.",
    look="The message names which.",
    do="Give the operator what it names: the rights of the chart's Role, ZooKeeper's answer, or `IMAGE` in its "
       "environment (the chart sets it).")

ROLLBACK_WOULD_FAIL = Reason(
    SUBJECT, "RollbackWouldFail", Urgency.STANDS,
    meaning="On the replica `/controller` or `/migration` could not be deleted after the controllers had stopped, "
            "as a rollback does it.",
    look="The message says why.",
    do="Nothing of the user's was touched. Tell the developers: no tree is known that does this.")

TOPIC_WOULD_GO = Reason(
    SUBJECT, "TopicWouldGo", Urgency.STANDS,
    meaning="Dual write would delete a topic from ZooKeeper, because KRaft does not know it.",
    look="Whether `/admin/delete_topics` has it: then it is a deletion that never came to its end.",
    do="Let the deletion end, or write the topic's node as it was.")

TOPIC_WOULD_VANISH = Reason(
    SUBJECT, "TopicWouldVanish", Urgency.STANDS,
    meaning="A broker in KRaft mode does not list a topic that ZooKeeper has. Its data would be set aside as "
            "`-stray`, although the metadata shows no difference.",
    look="Two topics with one `topic_id`: see [TopicsShareAnId].",
    do="As that page says.")
