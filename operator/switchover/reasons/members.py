"""A group's members and its coordinator: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "members", "A group's members and its coordinator",
    "kafka-consumer-groups.sh --bootstrap-server kafka:9092 --describe --group GROUP --members --verbose")

ASSIGNMENT_USER_DATA = Reason(
    SUBJECT, "AssignmentUserData", Urgency.STANDS,
    meaning="The assignment of a classic member carries user data. The coordinator takes that for a custom "
            "assignor's and refuses every member of the consumer protocol (error 69, GROUP_ID_NOT_FOUND).\n\n"
            "librdkafka with `cooperative-sticky` does this from its second generation on, with another length "
            "after each rebalance, which is why it is looked at again right before the canary. Kafka Streams does "
            "it too. Java's assignors, and librdkafka's `range` and `roundrobin`, do not.",
    look="Which client and strategy the member in the message uses: `kubectl logs POD`, its configuration. "
         "`status.group.assignor` is the strategy in force.",
    do="There is no way online. Set `spec.protocol.strategy: Offline`: all members stop and start again. Once "
       "Baseline has begun that takes a rollback: `switchover rollback cgmig/NAME`, change it when it is RolledBack, "
       "then `switchover retry cgmig/NAME`.")

ASSIGNOR_UNKNOWN = Reason(
    SUBJECT, "AssignorUnknown", Urgency.STANDS,
    meaning="The brokers have no assignor of the name in `spec.protocol.remoteAssignor`. A client that asks for "
            "it dies at its first heartbeat (UNSUPPORTED_ASSIGNOR).",
    look="`observed` has the brokers' assignors; without a setting they are `uniform` and `range` "
         "(`group.consumer.assignors`).",
    do="Name one of theirs in `spec.protocol.remoteAssignor` and, the same, in the clients' "
       "`group.remote.assignor`.")

COORDINATOR_FULL = Reason(
    SUBJECT, "CoordinatorFull", Urgency.LOOK,
    meaning="The broker that coordinates the group would coordinate more consumers than "
            "`spec.gates.maxConsumersPerCoordinator` (5,000 by default), counting all groups and what one batch "
            "adds.",
    look="`status.group.coordinator` is the broker. Which groups it coordinates: `kafka-consumer-groups.sh "
         "--bootstrap-server kafka:9092 --describe --all-groups --state`.",
    do="Make the batches of `spec.rollout` smaller, or wait for a quieter hour. If that broker has memory and "
       "sockets to spare, raise the limit. A group goes where its id hashes to in `__consumer_offsets`, so a "
       "reassignment of that topic's leaders moves it, and so does another `group.id`.")

COORDINATOR_LOAD_UNKNOWN = Reason(
    SUBJECT, "CoordinatorLoadUnknown", Urgency.LOOK,
    meaning="How many consumers each broker coordinates could not be counted: it takes the list of all groups "
            "from every broker.",
    look="The message. Mostly our user may not Describe the Cluster, and then brokers show only some of the "
         "groups.",
    do="`kafka-acls.sh --bootstrap-server kafka:9092 --add --allow-principal User:USER --operation Describe "
       "--cluster`. If a broker does not answer, see [BrokerSilent].")

COORDINATOR_UNKNOWN = Reason(
    SUBJECT, "CoordinatorUnknown", Urgency.LOOK,
    meaning="The group's coordinator did not tell its settings, so it cannot be said whether the group fits; or "
            "no broker answers for the group at all.",
    look="`status.group.coordinator`; that broker's pod and log; whether our user may DescribeConfigs on the "
         "cluster.",
    do="Let the broker answer. While coordinators move this passes by itself.")

EPOCH_CHURN = Reason(
    SUBJECT, "EpochChurn", Urgency.STANDS,
    meaning="The group rebalances again and again: more than three new epochs in a minute, although no pod is "
            "being replaced.",
    look="Pods that restart or are not Ready, and members that leave and return:\n\n"
         "```\n"
         "kubectl get pods --selector LABELS --watch\n"
         "kubectl logs POD --since 5m | grep -i -E 'rebalanc|revoked|fenced|max.poll|left group'\n"
         "```\n\n"
         "Usual causes: `max.poll.interval.ms` exceeded, a pod killed for memory, members that disagree on the "
         "topics they subscribe to, a classic member that nobody lets in.",
    do="Repair the member. If it began with the new pods, go back: `desiredState: RolledBack`.")

FOREIGN_MEMBERS = Reason(
    SUBJECT, "ForeignMembers", Urgency.STANDS,
    meaning="Members of the group run in no pod of `spec.workloads`. Nobody would move them, so the group would "
            "stay mixed for ever.",
    prose=True)

GROUP_FLIPPED_BACK = Reason(
    SUBJECT, "GroupFlippedBack", Urgency.LOOK,
    meaning="New pods are there, but no member takes part by the consumer protocol any more: with the last of "
            "them the coordinator converted the group back. Each way costs a rebalance of all.",
    look="The new pods: restarts, evictions, their logs.\n\n"
         "```\n"
         "kubectl describe deployment WORKLOAD | grep NewReplicaSet       # orders-6c9f…: its pods are the new "
         "ones\n"
         "kubectl get pods --label-columns pod-template-hash\n"
         "```\n\n"
         "(Of a StatefulSet the new pods have the highest ordinals.)",
    do="It goes on when one of them joins again. Avoid it with two canaries: `spec.rollout.steps[0].pods: 2`, "
       "which may be changed at any time; one restart then does not turn the group.")

GROUP_NOT_CONVERTED = Reason(
    SUBJECT, "GroupNotConverted", Urgency.LOOK,
    meaning="The coordinator still holds the group by the other protocol.",
    look="`status.group`: type, members, classicMembers. The coordinator's log says `Converted the classic group "
         "to a consumer group.` or why it does not.",
    do="On the way to the consumer protocol: wait; if it lasts, see [NotAMember]. On the way to the classic one "
       "the coordinator converts when its last member of the consumer protocol is gone: a static member that has "
       "left counts until its session ends (45 to 60 s). If all members are classic and the type stays Consumer, "
       "the brokers' `group.consumer.migration.policy` is `upgrade` or `disabled`, or the group is larger than "
       "`group.max.size`: correct that, or go on with [NoOnlineRollback].")

GROUP_NOT_EMPTY = Reason(
    SUBJECT, "GroupNotEmpty", Urgency.LOOK,
    meaning="All pods have been stopped and the group still has members, so it cannot be started with the other "
            "protocol yet.",
    look="Who it is: `kafka-consumer-groups.sh --bootstrap-server kafka:9092 --describe --group GROUP --members`.",
    do="Wait for one session timeout (45 s by default): members whose pods were killed, and static members, leave "
       "only then. One that stays longer runs outside of `spec.workloads`: stop it. Nothing is consumed "
       "meanwhile; `desiredState: RolledBack` starts the old pods again.")

GROUP_NOT_STABLE = Reason(
    SUBJECT, "GroupNotStable", Urgency.LOOK,
    meaning="The group is rebalancing, or converging on a new assignment. Stable is what proves that every "
            "member, old and new, is at the group's epoch.",
    look="`status.group.state`. Preparing/CompletingRebalance are the classic protocol's, Assigning and "
         "Reconciling the consumer protocol's. After one pod it takes 1 to 4 s (classic) or 4 to 10 s (consumer).",
    do="Wait. If it stays so for more than a minute or two, one member does not follow: `kubectl logs` of each, "
       "and look for a poll loop that blocks. It is fenced after its `max.poll.interval.ms` (5 minutes by "
       "default). A group that is Assigning for ever after a rollback is in [PartitionsUnowned].")

GROUP_RIGHT_MISSING = Reason(
    SUBJECT, "GroupRightMissing", Urgency.STANDS,
    meaning="The coordinator was asked by a heartbeat that creates nothing, and refused our user. Members of the "
            "consumer protocol need the same rights: their own users may lack them too, which nothing but their "
            "refusal would tell.",
    look="`observed`. GROUP_AUTHORIZATION_FAILED: our user lacks Read on the group. TOPIC_AUTHORIZATION_FAILED: "
         "it lacks Describe on a topic that the group subscribes to.",
    do="Grant it, and look whether the members' users have it:\n\n"
       "```\n"
       "kafka-acls.sh --bootstrap-server kafka:9092 --add --allow-principal User:USER --operation Read --group "
       "GROUP\n"
       "kafka-acls.sh --bootstrap-server kafka:9092 --add --allow-principal User:USER --operation Describe "
       "--topic TOPIC\n"
       "```")

MEMBER_BEHIND = Reason(
    SUBJECT, "MemberBehind", Urgency.LOOK,
    meaning="A member has not followed the group's last assignment: it is at an older epoch, or still gives up or "
            "takes over partitions.",
    look="`subject` is its client id, the message its address. `kubectl get pods --output wide | grep ADDRESS`, "
         "`kubectl logs POD`.",
    do="Wait some heartbeats (5 s each). One that never follows does not poll: restart its pod (`kubectl delete "
       "pod POD`).")

MEMBER_MISSING = Reason(
    SUBJECT, "MemberMissing", Urgency.LOOK,
    meaning="A pod is not a member of the group by the protocol that it should use. Being Ready proves nothing of "
            "that.",
    look="`subject` is the pod, `observed` what was seen of it.\n\n"
         "```\n"
         "kubectl logs POD --since 5m\n"
         "```",
    do="A pod that has just started joins within seconds. In Preflight: the pod consumes another group, is a "
       "standby, or its address is hidden from the brokers (see [ForeignMembers]). All pods of the workloads must "
       "be members. During the rollout, after 60 s, this becomes [NotAMember] or [WrongProtocol], which say why.")

MEMBERS_NOT_MOVED = Reason(
    SUBJECT, "MembersNotMoved", Urgency.LOOK,
    meaning="Every pod has been replaced, and members still take part by the old protocol: they came back, or "
            "were never among the workloads.",
    look="`subject` is the client id of the first. `status.group.classicMembers` against `members`.",
    do="If it is a pod of the workloads, look at its configuration: which `group.protocol` does it use? Delete it "
       "once that is right. If it is somebody else's, stop it ([ForeignMembers]).")

NEW_POD_RESTARTS = Reason(
    SUBJECT, "NewPodRestarts", Urgency.NOW,
    meaning="A pod that the migration brought has restarted a container. The migration stands, or turns back with "
            "`onFailure: RollBack`. An old pod of a Deployment stops only when its successor is a member, so a "
            "pod that never came up has cost nothing (with `rollout.surge: 0` the group is short of it).",
    look="```\n"
         "kubectl describe pod POD\n"
         "kubectl logs --previous POD --all-containers\n"
         "```\n\n"
         "A constructor that fails at once: a setting that the new protocol forbids ([ForbiddenSetting]), or a "
         "client that does not know it. `UNRELEASED_INSTANCE_ID`: a static member whose predecessor was killed; "
         "its id is free after the session timeout (45 to 60 s). All containers of the pod count, sidecars too.",
    do="If the cause has passed, delete the pod: the one that replaces it counts from nothing, and the migration "
       "goes on. If the change is wrong: `desiredState: RolledBack`, correct `spec.workloads`, then Running.")

NOT_A_MEMBER = Reason(
    SUBJECT, "NotAMember", Urgency.NOW,
    meaning="A new pod has been Ready for more than a minute and is no member of the group, or it has restarted "
            "and what brokers and group tell says that it was refused. Clients say little when a broker refuses "
            "them, and librdkafka before 2.15 says nothing: the pod looks healthy for ever. The message has the "
            "likely cause, by what brokers and group tell. An old pod of a Deployment stops only when its "
            "successor is a member, so nothing is lost yet; a StatefulSet is one member short, and so is a "
            "Deployment with `rollout.surge: 0`, by a batch.",
    prose=True)

NOTHING_SUBSCRIBED = Reason(
    SUBJECT, "NothingSubscribed", Urgency.LOOK,
    meaning="No member subscribes to a topic that exists, so there is nothing to own.",
    look="`kafka-consumer-groups.sh --bootstrap-server kafka:9092 --describe --group GROUP --members --verbose`; "
         "`kafka-topics.sh --list`.",
    do="Create the topic, or correct the subscription. With a pattern under the consumer protocol: brokers match "
       "the whole name, so `^orders` matches a topic of exactly that name; write `^orders.*`.")

OFFSETS_TOPIC_UNKNOWN = Reason(
    SUBJECT, "OffsetsTopicUnknown", Urgency.LOOK,
    meaning="`__consumer_offsets` could not be looked at: its in-sync replicas or its largest record.",
    look="The message. Our user needs Describe and DescribeConfigs on that topic, and DescribeConfigs on the "
         "cluster.",
    do="Grant it, or let the brokers answer.")

OFFSETS_UNDER_REPLICATED = Reason(
    SUBJECT, "OffsetsUnderReplicated", Urgency.LOOK,
    meaning="A partition of `__consumer_offsets` misses a replica. If its leader failed now, the group's newest "
            "records could be lost or its coordinator be away.",
    look="`kafka-topics.sh --bootstrap-server kafka:9092 --describe --topic __consumer_offsets "
         "--under-replicated-partitions`.",
    do="Let the brokers catch up. If one never does, look at its disk and log. No batch begins meanwhile.")

OFFSETS_UNKNOWN = Reason(
    SUBJECT, "OffsetsUnknown", Urgency.LOOK,
    meaning="The group's committed offsets or the ends of its partitions were not read.",
    look="The message. In the first seconds after the operator's start there are just none yet.",
    do="Wait; a coordinator that moves answers again within seconds. If it lasts, our user lacks Describe on the "
       "group or on a topic, or a broker does not answer. Try it from the operator's pod:\n\n"
       "```\n"
       "kubectl exec deployment/switchover -- switchover lag --bootstrap-server kafka:9092 --group GROUP "
       "--samples 2 --span 2 --every 1\n"
       "```")

OWNED_TWICE = Reason(
    SUBJECT, "OwnedTwice", Urgency.NOW,
    meaning="Two members tell that they own the same partition. While partitions are handed over this may show "
            "for a moment; if it stays, records are processed twice.",
    look="`subject` is the partition.\n\n"
         "```\n"
         "kafka-consumer-groups.sh --bootstrap-server kafka:9092 --describe --group GROUP --members --verbose\n"
         "```",
    do="Wait for a minute. If it stays, restart one of the two pods, the new one first.")

PARTITIONS_UNKNOWN = Reason(
    SUBJECT, "PartitionsUnknown", Urgency.LOOK,
    meaning="How many partitions the group's topics have could not be read.",
    look="The message. Our user needs Describe on each topic that the group subscribes to.",
    do="Grant it, or let the broker answer.")

PARTITIONS_UNOWNED = Reason(
    SUBJECT, "PartitionsUnowned", Urgency.NOW,
    meaning="Partitions have no owner: nobody consumes them. A moving partition has none for a heartbeat or two "
            "(5 s each). After 60 s the migration is Stalled, or turns back with `onFailure: RollBack`.",
    prose=True)

POD_ENDING = Reason(
    SUBJECT, "PodEnding", Urgency.LOOK,
    meaning="A pod that is being replaced has not ended yet; until then it may still consume.",
    look="`kubectl describe pod POD`: its grace period. Closing a consumer may take as long as its commits are "
         "retried.",
    do="Wait. If its node is lost, decide whether it is really down, and only then `kubectl delete pod POD "
       "--force --grace-period 0`.")

POD_MODE_UNKNOWN = Reason(
    SUBJECT, "PodModeUnknown", Urgency.LOOK,
    meaning="A pod was made of a template that is neither the original nor one of this migration: somebody "
            "changed the workload meanwhile.",
    look="`kubectl get deployment,statefulset NAME --output yaml --show-managed-fields`: who wrote image, "
         "variables or arguments last.",
    do="As in [RevertedByGitOps]: stop the writer and put the template right. A pod of an earlier revision that "
       "is left over: delete it.")

PODS_ENDING = Reason(
    SUBJECT, "PodsEnding", Urgency.LOOK,
    meaning="All pods have been told to stop, and some are still there. Nothing is started before the group is "
            "empty.",
    look="`kubectl get pods`, `kubectl describe pod POD`.",
    do="Wait for the grace period. If a node is lost and really down, delete its pod with `--force --grace-period "
       "0`. Nothing is consumed meanwhile.")

PROBE_PENDING = Reason(
    SUBJECT, "ProbePending", Urgency.LOOK,
    meaning="Before the second bounce the coordinator was asked whether every member offers the new strategy. The "
            "question leaves a pending member behind, and a rebalance would wait for it: "
            "`group.min.session.timeout.ms` (6 s).",
    look="`observed` counts the seconds.",
    do="Nothing: it ends by itself after the brokers' `group.min.session.timeout.ms` (6 s by default) and 2 s "
       "more.")

READINESS_UNKNOWN = Reason(
    SUBJECT, "ReadinessUnknown", Urgency.LOOK,
    meaning="The coordinator could not be asked whether it serves the consumer protocol.",
    look="The message; [BrokerSilent].",
    do="Usually nothing: a coordinator that moves answers again within seconds.")

STRATEGIES_UNKNOWN = Reason(
    SUBJECT, "StrategiesUnknown", Urgency.NONE,
    meaning="It could not be asked which strategies the members offer. The question leaves a pending member "
            "behind for 6 s, which would hold up a rebalance, so it is asked only while the group is Stable and "
            "has members.",
    look="`status.group.state`; the message. Our user needs Read on the group.",
    do="Wait until the group is Stable.")

STRATEGY_NOT_OFFERED = Reason(
    SUBJECT, "StrategyNotOffered", Urgency.LOOK,
    meaning="Not every member offers the strategy that the second bounce would leave as the only one. If it went "
            "on, the first new pod would be refused (INCONSISTENT_GROUP_PROTOCOL).",
    look="The bridges in `spec.workloads`: does each list the new strategy? Members beside them: "
         "[ForeignMembers]. After a move of the coordinator it knows only each member's selected strategy until "
         'the next rebalance, and the answer is "not all" although all do.',
    do="If the coordinator has moved (`status.group.coordinator`, its log), let the group rebalance once: "
       "`kubectl delete pod POD` with one pod of the group. If a bridge is wrong: `desiredState: RolledBack`, "
       "correct it, then Running.")

STRATEGY_NOT_SELECTED = Reason(
    SUBJECT, "StrategyNotSelected", Urgency.LOOK,
    meaning="All pods have bounced and the group still uses another strategy. Each member votes for the first of "
            "its own list that all others have, too.",
    look="`observed` is the strategy in force; empty while the group rebalances.",
    do="Wait for the rebalance to end. If it stays, a member still lists the old one: compare the container's "
       "configuration with `template` in the spec, and look at whether the application reads it at all.")

TWO_COORDINATORS = Reason(
    SUBJECT, "TwoCoordinators", Urgency.NOW,
    meaning="More than one broker answers for the group as its coordinator. Right after a failover this lasts a "
            "few seconds: a broker whose process stood still does not know yet that another one took over. If it "
            "stays, members of each may own the same partitions, and records are processed twice. Nothing is "
            "replaced meanwhile; after half a minute the migration is Stalled.",
    look="`observed` has the brokers. One of them leads the partition of `__consumer_offsets` that the group's "
         "name hashes to; the log of the other says when it last heard of the cluster.\n\n"
         "```\n"
         "kafka-topics.sh --bootstrap-server kafka:9092 --describe --topic __consumer_offsets\n"
         'kubectl logs kafka-N --since 10m | grep -E "GroupCoordinator|BrokerLifecycleManager"\n'
         "```",
    do="Restart the brokers that do not lead that partition. Members that were with them join the other one.")

WRONG_PROTOCOL = Reason(
    SUBJECT, "WrongProtocol", Urgency.NOW,
    meaning="A new pod has joined the group, by the wrong protocol: the change in the spec does not change what "
            "the client does.",
    look="`kubectl exec POD -- env`, its log of the client's configuration: `group.protocol`. Many applications "
         "need the variable under another name, or read it from a file.",
    do="`desiredState: RolledBack`, correct `spec.workloads`, then Running. For a client that is too old "
       "(librdkafka before 2.12, and before 2.15 it hides refusals; Java before 4.0) a newer one comes first, as "
       "the `bridge`.")
