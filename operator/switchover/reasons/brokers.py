"""Brokers and their replicas: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "brokers", "Brokers and their replicas",
    "kubectl logs POD --tail=200")

BROKER_DEAF = Reason(
    SUBJECT, "BrokerDeaf", Urgency.NOW,
    meaning="A broker has run for more than a minute and answers, but knows of no broker, not even of itself: "
            "nobody has told it. In ZooKeeper mode brokers learn of each other, of topics and of elections from "
            "the controller, which connects to them at the listener between brokers "
            "(`inter.broker.listener.name`). While KRaft's controllers hold the cluster and cannot connect there, "
            "nobody is elected for anything any more.",
    look="The leading controller's log (`kubectl logs POD --container controller`): a refused password, a "
         "certificate for other names, a name that does not resolve, a connection that times out. The "
         "controllers' pod is a copy of the brokers', so logins and stores are there, unless they come by an init "
         "container or sidecar in `spec.controllers.template.omit`, or are made for a pod by its name. A "
         "NetworkPolicy of the brokers does not know the controllers' pods: they have the label "
         "`switchover.dev/controllers` and none of the brokers'.",
    do="Do not delete the broker's pod: the next one hears as little. Let the controllers in, or give them what "
       "they lack, and delete their pods one by one; or take everything back (`desiredState: RolledBack`), which "
       "is possible until Finalize.")

BROKER_FENCED = Reason(
    SUBJECT, "BrokerFenced", Urgency.LOOK,
    meaning="The controllers fence a broker, or another broker does not list it as alive: its heartbeats do not "
            "arrive.",
    look="The broker's log for `Unable to send a heartbeat`, the leading controller's for `Fencing broker`. Does "
         "the name of each controller resolve to its pod's present address inside the broker's pod?",
    do="Usually it heals within the name cache of the JVM (30 s by default). If it does not, look for a network "
       "policy or a node that is cut off; then delete the broker's pod.\n\n"
       "After a controller moved, a JVM may use its old address for as long as it caches names "
       "([facts](../facts/kraft.md#in-pods)).")

BROKER_LOST_ZOOKEEPER = Reason(
    SUBJECT, "BrokerLostZooKeeper", Urgency.NOW,
    meaning="A broker that needs ZooKeeper, and is not being moved, is not in `/brokers/ids`: it has no session with "
            "ZooKeeper. It is up, but the controller elects it for nothing and tells it of no election. "
            "Another loss could leave partitions without a leader, so no batch begins "
            "([what such a broker does](../facts/kraft.md#a-broker-without-zookeeper)).",
    look="The broker's log for `Session` and `ZooKeeperClient`; whether its pod runs; whether ZooKeeper's servers can be "
         "reached from its node.",
    do="Restore what lies between: a network policy, a node, a name. The broker registers by itself once it reaches "
       "ZooKeeper. Do not delete its pod before that: without ZooKeeper it does not start.")

BROKER_ON_ZOOKEEPER = Reason(
    SUBJECT, "BrokerOnZooKeeper", Urgency.LOOK,
    meaning="A broker is still in ZooKeeper mode where all must be on KRaft.",
    look="`status.nodes`: assigned and observed mode; the pod's log.",
    do="Wait for its batch. If it is assigned KRaft and does not come up in it, see [ModeMismatch].")

BROKERS_ON_KRAFT = Reason(
    SUBJECT, "BrokersOnKRaft", Urgency.STANDS,
    meaning="A broker has no endpoint in `/brokers/ids`: it runs on KRaft. Consumers that ZooKeeper coordinates "
            "look brokers up there and nowhere else, so a group cannot go back to ZooKeeper's coordination.",
    look="`kubectl get kmig` (is a KafkaMigration at MoveBrokers or beyond?), `zookeeper-shell.sh HOST:2181 ls "
         "/brokers/ids`. A broker that restarts in ZooKeeper mode is missing for a moment, too.",
    do="Leave the group with Kafka. To go back all the same, roll the KafkaMigration back first, until every "
       "broker runs in ZooKeeper mode; once it has finalized, there is no rollback.")

BROKERS_OUT_OF_REACH = Reason(
    SUBJECT, "BrokersOutOfReach", Urgency.STANDS,
    meaning="The controllers run, and one of their pods got no answer from a broker's inter-broker listener when it "
            "started, for twenty seconds. Nothing is claimed yet and no broker was touched. Once the cluster is "
            "claimed the controllers tell every broker over that listener who leads what; brokers that hear nothing "
            "would go on with what they knew, and fall out of step. Kafka is asked for its versions, which it tells "
            "before any login; a listener that encrypts is asked for an answer of TLS.",
    look="The addresses in the message. Where the pod cannot connect: NetworkPolicies of the brokers; the controllers' "
         "pods have the label `switchover.dev/controllers`, and of the brokers' labels those with a prefix by which "
         "nothing is selected. Where something takes the connection and gives no answer: what stands before the broker. A "
         "mesh's sidecar in mode STRICT takes connections of its own mesh alone. The pod asks in an init container, and "
         "a mesh whose sidecar is an ordinary container is not there yet. A broker that was down at that moment counts as "
         "well.",
    do="Let the controllers in, or bring the broker back, then delete the controllers' pods by the command of the "
       "message: they start again and try again. Where brokers encrypt or have logins, a controller that reaches "
       "one also logs in there before it first runs; one that is not let in, or gets no answer, is named by "
       "[ControllerInTrouble].")

BROKERS_UNKNOWN = Reason(
    SUBJECT, "BrokersUnknown", Urgency.LOOK,
    meaning="No broker has been asked about its settings yet, or the list of brokers could not be read.",
    look="`kubectl logs deployment/switchover`; whether `spec.kafka.bootstrapServers` answers from the operator's "
         "pod:\n\n"
         "```\n"
         "kubectl exec deployment/switchover -- switchover lag --bootstrap-server kafka:9092 --group GROUP "
         "--samples 2 --span 2 --every 1\n"
         "```",
    do="In the first seconds nothing. If it lasts, correct the address, the credentials or the network policy.")

DISKS_UNKNOWN = Reason(
    SUBJECT, "DisksUnknown", Urgency.LOOK,
    meaning="A broker's pod has not told what is on its disks, or it found no log directory on its volumes.",
    look="The termination message of the init container `switchover-disks`: `kubectl get pod <pod> -o yaml`. It "
         "is empty where a log directory cannot be read, and it counts no directory where the data lies on no "
         "volume, or more than three levels below the mount.",
    do="Delete the pod: it comes back in its assigned mode and reports again. If the volume is empty that was "
       "not, somebody replaced it: see to that first.")

DOOR_NOT_PASSED = Reason(
    SUBJECT, "DoorNotPassed", Urgency.STANDS,
    meaning="A broker runs Kafka without the edits of its mode: its process shows no marker among its settings, "
            "so it was not started by the script over which Switchover's own stands. Something else starts Kafka "
            "in that container: another start script (two Kafkas in one image, a symbolic link to another "
            "directory), a launcher, `java` by itself. Such a broker is what it was before and does no harm. No "
            "other broker is touched.",
    prose=True)

DOOR_STILL_THERE = Reason(
    SUBJECT, "DoorStillThere", Urgency.STANDS,
    meaning="A broker was started through Switchover's script, which its process tells by a marker among its "
            "settings, at a time when it should run by its own template alone: in Preflight, before anything is "
            "changed, or at the end of a rollback.",
    prose=True)

FORWARDING_STUCK = Reason(
    SUBJECT, "ForwardingStuck", Urgency.NOW,
    meaning="A broker answers, and for 30 seconds it has not passed on to the controller what it was asked, while another "
            "broker does. Clients that ask this broker to create a topic or to change a setting wait in vain. It has lost "
            "the channel by which it forwards requests ([how](../facts/kraft.md#a-leader-that-takes-nobody-back)).",
    look="The broker's log, for `to-controller-forwarding`.",
    do="Nothing at first: after another 45 seconds Switchover restarts that broker, once in a step, when no partition loses "
       "its minimum in sync by that. The message has the command to do it yourself.")

LEADER_STUCK = Reason(
    SUBJECT, "LeaderStuck", Urgency.NOW,
    meaning="A replica has had all records of its leader for 15 seconds, and the leader still calls it out of sync. Kafka "
            "takes such a replica back within a second. The leader has lost the way by which it tells the controller who "
            "is in sync, which brokers of 3.9 were seen to do while the cluster changed between ZooKeeper's controller and "
            "KRaft's ([how](../facts/kraft.md#a-leader-that-takes-nobody-back)). It lets no replica leave the in-sync set "
            "either: when a follower dies, producers with `acks=all` stand still.",
    look="The leader's log, for `alter-partition`. `kafka-topics.sh --describe --under-replicated-partitions` lists its "
         "partitions.",
    do="Nothing at first: after another 45 seconds Switchover restarts that leader, once in a step, and says so in "
       "`status.history`. It does not where a partition would have no other replica in sync meanwhile, or fewer than "
       "`min.insync.replicas` once those that have caught up are back. Then the choice is yours: the message has the "
       "command. While the leader stops, another replica leads and takes the rest in within a second; a partition without "
       "another in sync has no leader until the pod is back.")

LOG_DIRECTORY_FORMATTED = Reason(
    SUBJECT, "LogDirectoryFormatted", Urgency.STANDS,
    meaning="A log directory of a broker has a `meta.properties` of version 1: it was formatted by "
            "`kafka-storage`, as a replaced disk or an image's start script does it. A broker on plain ZooKeeper "
            "refuses to start with it, so it must not be sent back there yet.",
    look="`kubectl exec <pod> -- cat <directory>/meta.properties`.",
    do="While the broker runs with the migration flag (mode Migration), which reads both versions, write the file anew "
       "with three lines: `version=0`, `broker.id=<the broker's id>`, `cluster.id=<as it was>`. Then delete the "
       "pod: it comes back in its assigned mode and reports again.")

MODE_MISMATCH = Reason(
    SUBJECT, "ModeMismatch", Urgency.STANDS,
    meaning="A node was evicted twice and still does not answer in the mode that it was assigned.",
    look="The message: that its edits did not reach it is told there ([DoorNotPassed] says what to look at then). "
         "Else the log of the pod, its init container `switchover-original` among them, and the edits in the pod "
         "against those of the Secret; they must be the same, and the file that Kafka got must be what they "
         "make:\n\n"
         "```\n"
         "kubectl exec POD --container CONTAINER -- cat /etc/switchover/edits\n"
         "kubectl get secret STATEFULSET-switchover --output jsonpath='{.data.POD}' | base64 --decode\n"
         "kubectl exec POD --container CONTAINER -- grep -v -i password /run/switchover/server.properties\n"
         "```",
    do="Repair what keeps it from starting (the log says so), then delete the pod.")

NO_WITNESS = Reason(
    SUBJECT, "NoWitness", Urgency.LOOK,
    meaning="No broker outside the batch can tell whether replicas are in sync. The one that was restarted is not "
            "asked: it would speak for itself.",
    look="The other brokers: [BrokerSilent].",
    do="Let them answer.")

NODE_UNKNOWN = Reason(
    SUBJECT, "NodeUnknown", Urgency.LOOK,
    meaning="A node, or the workload that fills a slot of a group, could not be observed.",
    look="The message.",
    do="Let it answer; the operator asks again.")

NOT_REGISTERED = Reason(
    SUBJECT, "NotRegistered", Urgency.LOOK,
    meaning="A broker runs in its mode and the metadata log has no registration of it. It may look healthy and be "
            "refused all the same.",
    look="Its log for `UNSUPPORTED_VERSION` or another refusal; the leading controller's log.",
    do="Most often inter.broker.protocol.version does not match the quorum's metadata.version. After controllers "
       "were wiped, a broker registers only when it is restarted.")

OBSERVER_BEHIND = Reason(
    SUBJECT, "ObserverBehind", Urgency.NONE,
    meaning="A moved broker does not follow the metadata log.",
    look="Its log; the way to the controllers' port.",
    do="Wait; if it lasts, repair the network between them.")

OUT_OF_SYNC = Reason(
    SUBJECT, "OutOfSync", Urgency.LOOK,
    meaning="A partition has a replica out of sync, or no leader.",
    look="`kafka-topics.sh --describe --under-replicated-partitions`.",
    do="Let the replicas catch up. If one never does, look at its broker's disk and log. A replica that has caught up "
       "and is not taken back is named by [LeaderStuck].")

ADDRESS_REMEMBERED = Reason(
    SUBJECT, "AddressRemembered", Urgency.NONE,
    meaning="A broker has a new address since its restart, and Java may keep the former one for 30 seconds in brokers that "
            "started before it. Restarted now, the next broker might leave its partitions to this one, and the followers "
            "could not fetch from it: no record of `acks=all` would be acknowledged until they ask for the name again.",
    look="`kubectl get pods`: its age. Brokers whose template is Switchover's keep names for one second; those on your own "
         "template keep them for 30, or for what `-Dsun.net.inetaddr.ttl` says in a variable of the container.",
    do="Nothing.")

REACH_UNKNOWN = Reason(
    SUBJECT, "ReachUnknown", Urgency.LOOK,
    meaning="A controller's pod has not reported which brokers it reaches. Its init container `switchover-reach` "
            "does that when the pod starts; it takes half a minute at most. Or there are no controllers yet: they are "
            "made when every broker is registered in ZooKeeper, since each is told there whom to try.",
    look="`kubectl describe pod NAME`: whether the pod starts at all, and what that container says.",
    do="Usually nothing. Where the container ended without a report (a policy that forbids to write the "
       "termination message, say), delete the pod, and look at its events.")

STARTED_BY_OTHER_EDITS = Reason(
    SUBJECT, "StartedByOtherEdits", Urgency.LOOK,
    meaning="A broker shows a marker, and another one than the edits have that are written for it: it started "
            "before they were, with a Secret that the kubelet had not read again, or somebody changed the Secret "
            "by hand.",
    look="`observed` is what the process says, `threshold` what the Secret says now:\n\n"
         "```\n"
         "kubectl get secret STATEFULSET-switchover --output jsonpath='{.data.POD}' | base64 --decode\n"
         "kubectl get secret STATEFULSET-switchover --output yaml --show-managed-fields       # who wrote it\n"
         "```",
    do="Delete the pod: it starts with the edits that are there. If somebody else writes that Secret, keep them "
       "from it first: every broker runs the script in it.")

TOPIC_ID_MISSING_ON_DISK = Reason(
    SUBJECT, "TopicIdMissingOnDisk", Urgency.STANDS,
    meaning="A partition directory has no `partition.metadata`. Kafka writes it when a controller tells a broker "
            "of a partition with its topic id, so most often the directory belongs to a partition that the broker "
            "has no more. A migrating broker throws at it (KAFKA-21022), and one in KRaft mode puts it aside as "
            "a stray.",
    look="Whether the broker is among the partition's replicas: `kafka-topics.sh --describe --topic <topic>`.",
    do="If it is not, move the directory out of the log directory. If it is, restart the broker once: it writes "
       "the file. In both cases delete the pod, so that it reports again; it comes back in its assigned mode.")

UNKNOWN_BROKER = Reason(
    SUBJECT, "UnknownBroker", Urgency.STANDS,
    meaning="A broker is registered that is no pod of `spec.brokers`. Finalizing would cut it off.",
    look="`/brokers/ids`, or the registrations in the metadata log.",
    do="Name its StatefulSet in `spec.brokers`, or remove the broker. Once UpgradeBrokers has begun, only the second.")

WOULD_LOSE_IN_SYNC_REPLICAS = Reason(
    SUBJECT, "WouldLoseInSyncReplicas", Urgency.LOOK,
    meaning="A partition would have fewer than min.insync.replicas in sync without the batch.",
    look="The partition and the witness are in the message.",
    do="Let its other replicas catch up. No pod is evicted before. Where all of them are in sync, brokers of the batch share"
       " the partition: lower `pods` or `percent` in `spec.rollout.steps`. In most clusters any two brokers share one.")

ZOOKEEPER_UNKNOWN = Reason(
    SUBJECT, "ZooKeeperUnknown", Urgency.LOOK,
    meaning="ZooKeeper did not answer.",
    look="Its pods and quorum; does its name resolve in the operator's pod?",
    do="Repair it. Nothing goes on meanwhile; brokers in ZooKeeper mode need it as well.")
