"""Lag, progress and the audit: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "lag", "Lag, progress and the audit",
    "switchover lag --bootstrap-server kafka:9092 --group GROUP")

AUDIT_FAILED = Reason(
    SUBJECT, "AuditFailed", Urgency.STANDS,
    meaning="The Job of the audit ended without a verdict.",
    look="The message has its own words, or Kubernetes' (a deadline, an image, out of memory). `kubectl logs "
         "job/NAME` has the rest.",
    do="Mend what it names. Then `kubectl delete job NAME`: it is made anew.")

AUDIT_INDETERMINATE = Reason(
    SUBJECT, "AuditIndeterminate", Urgency.STANDS,
    meaning="The audit could prove neither that every record was consumed once, nor the contrary. It never calls "
            "clean what it did not see.",
    look="The message names what is missing: no capture before the migration began, a hole between two captures, "
         "transaction logs of ZooKeeper that were purged, clocks that differ by more than the guard band. Or "
         "commits that may have been late (`or a commit was late`): a member committed a lower offset, and "
         "whether it had read again or its client sent an older commit once more, as it may when brokers restart, "
         "no commit tells. Or what was found may be of another topic (`or the topic was created again`), or of a "
         "group whose members are not known (`but not all of the group was read`).",
    do="What can be brought (a capture that had stopped: start it) bring, then delete the Job. Of late commits "
       "the application's own records decide. What is gone is gone: `audit.acceptIndeterminate` goes on without a "
       "proof, in the next migration; this one's spec is frozen, so roll back, or leave it as it stands: the "
       "group works.")

AUDIT_RUNNING = Reason(
    SUBJECT, "AuditRunning", Urgency.LOOK,
    meaning="The pipeline's audit of this group runs as a Job (`spec.audit`): it waits until a capture has come "
            "to the end of the migration, then judges.",
    look="`kubectl logs job/NAME`: it says what it does, every ten seconds. Where it waits for a capture, look "
         "whether one runs.",
    do="Nothing, as long as it goes on. A pod that does not start is told with the kubelet's reason.")

AUDIT_UNKNOWN = Reason(
    SUBJECT, "AuditUnknown", Urgency.LOOK,
    meaning="The Job of the audit could not be read, or what it says is not understood: its image is of another release "
            "than the operator, or another pod has left a verdict in its name.",
    look="The message. The operator's Role must allow `get`, `create` and `delete` of `jobs` in `batch`.",
    do="Install the chart's Role of this version; it is read again in the next pass. Or set `spec.audit.image` to an image "
       "of the operator's own release, and `kubectl delete job` the one that is named: it is made anew.")

AUDIT_VIOLATIONS = Reason(
    SUBJECT, "AuditViolations", Urgency.NOW,
    meaning="The audit has found records of this group that were consumed twice or not at all, between the first "
            "step of the migration and its end.",
    look="The message has the first pieces of evidence: group, partition, offsets. All of them are in the store, "
         "in `runs/audit/CLUSTER/RUN/`, with a report. Is it the migration, or a consumer that commits under this "
         "group's id and is no member (`assign`)?",
    do="Stop what consumes twice. Decide with the application's owners whether what was consumed twice has to be "
       "repaired. When it is dealt with, delete the Job: it is made anew and judges again the whole time up to "
       "then. To end the migration without the audit is not possible: roll back, or accept by a migration of its "
       "own.")

BASELINE_UNKNOWN = Reason(
    SUBJECT, "BaselineUnknown", Urgency.LOOK,
    meaning="The ConfigMap that `gates.baselineRef` names could not be read.",
    look="The message: the API server does not answer, or the operator's Role lacks `get` on ConfigMaps.",
    do="Wait, or grant the right (the chart does). Unknown never opens a gate; it goes on when the answer comes.")

BASELINE_UNUSABLE = Reason(
    SUBJECT, "BaselineUnusable", Urgency.LOOK,
    meaning="The ConfigMap that `gates.baselineRef` names does not exist, or holds no baseline of this group that "
            "this operator can read.",
    look="The message: it is not there, it has no key `baseline`, it is another group's, of another version, or a "
         "line of it is not a baseline's.",
    do="Run the pipeline's job `baseline`, and apply the file of this group from `configmaps/` of its run into "
       "the namespace of the migration: `kubectl apply -f FILE`. Or take `gates.baselineRef` out of the spec: "
       "gates may change at any time, and the lag is then judged by `maxTimeLagSeconds` and `maxStallSeconds` "
       "alone. The ConfigMap is read again after 30 s.")

COMMIT_WENT_BACK = Reason(
    SUBJECT, "CommitWentBack", Urgency.NOW,
    meaning="The committed offset of a partition is lower than it was: somebody commits what is behind, and what "
            "lies between will be delivered again. The migration stands, or turns back with `onFailure: "
            "RollBack`.",
    look="Which member owns the partition, and whether anybody reset offsets by hand:\n\n"
         "```\n"
         "kafka-consumer-groups.sh --bootstrap-server kafka:9092 --describe --group GROUP\n"
         "kubectl logs POD --since 10m\n"
         "```\n\n"
         "A member that was paused for longer than `max.poll.interval.ms` and commits what it had then, code that "
         "seeks back, and `auto.offset.reset: earliest` after a failed fetch of the offsets all look like this. "
         "A conversion of the group itself never changed a committed offset.",
    do="Stop the member that does it. If nothing explains it, go back (`desiredState: RolledBack`) before you "
       "look further, and check for duplicates between the two offsets of the message.")

GROUP_HAS_NO_COMMITS = Reason(
    SUBJECT, "GroupHasNoCommits", Urgency.LOOK,
    meaning="A group of `spec.gates.groups` has no committed offset: nothing can be said about its health.",
    look="`kafka-consumer-groups.sh --describe --group NAME`.",
    do="Start the group, or take it out of the list.")

GROUP_HAS_NO_MEMBERS = Reason(
    SUBJECT, "GroupHasNoMembers", Urgency.STANDS,
    meaning="A group of `spec.gates.groups` holds a batch of brokers, and it has no members: nobody is there who "
            "could consume and commit. In Preflight it is a Warning. A job that does not run now has no members. A "
            "group that Flink commits for, or whose offsets MirrorMaker copies from another cluster, never has any: "
            "it is well as long as that commits.",
    look="`kafka-consumer-groups.sh --describe --group NAME --members`. The message ends with what its partitions hold for.",
    do="Start its consumers, or whatever commits for it; or take it out of the list.")

GROUP_LAG = Reason(
    SUBJECT, "GroupLag", Urgency.LOOK,
    meaning="A group is further behind than `maxLag` on a partition.",
    look="The group's own logs, its lag over time.",
    do="Let it catch up. If this is its normal lag, raise `spec.gates.groups[].maxLag`.")

GROUP_NEVER_COMMITTED = Reason(
    SUBJECT, "GroupNeverCommitted", Urgency.LOOK,
    meaning="A group of `spec.gates.groups` has committed offsets, but none on this partition, which has records. "
            "Whether it is behind there cannot be said, so nothing is moved.",
    look="`kafka-consumer-groups.sh --describe --group NAME`: who is assigned the partition, and whether its "
         "`CURRENT-OFFSET` is `-`.",
    do="If the member does not consume there, repair it. A group that begins at the end of a partition "
       "(`auto.offset.reset=latest`) commits with the next record that it reads; where none is expected, commit "
       "its position once, while the group is stopped: `kafka-consumer-groups.sh --group NAME --topic "
       "TOPIC:PARTITION --reset-offsets --to-latest --execute`. Or take the group out of the list.")

GROUP_OFFSETS_WRONG = Reason(
    SUBJECT, "GroupOffsetsWrong", Urgency.NOW,
    meaning="What a group of `spec.gates.groups` has committed on a partition does not fit the log, or went back: "
            "records were deleted before they were consumed (LOST), it has committed beyond the end (BEYOND_END), or "
            "the commit fell by more than 10,000 or has not come back within `maxStallSeconds` (REWOUND). [The lag "
            "page](../lag.md) has each verdict.",
    look="The message has partition and verdict. `kafka-consumer-groups.sh --describe --group NAME`, and whether anybody "
         "reset offsets by hand or made the topic anew. BEYOND_END while brokers restart: did a partition elect a replica "
         "that was not in sync?",
    do="LOST: find out since when, and whether it has to be replayed; it ends with the group's next commit. REWOUND ends by "
       "itself when the group has read up to where it was. BEYOND_END: do not go on before you know where the records are. "
       "Or take the group out of the list.")

GROUP_ON_ZOOKEEPER = Reason(
    SUBJECT, "GroupOnZooKeeper", Urgency.STANDS,
    meaning="A consumer group has members below `/consumers/GROUP/ids` in ZooKeeper. Such consumers look brokers "
            "up in `/brokers/ids`, and a broker that moves to KRaft vanishes from there: they would consume less "
            "with every batch, and nothing in the end. The metadata migration copies nothing below `/consumers`. "
            "So MoveBrokers does not begin while there is one. If one appears in the middle of it, no further "
            "batch starts, and the group already misses the brokers that have moved.",
    prose=True)

GROUP_STALLED = Reason(
    SUBJECT, "GroupStalled", Urgency.NOW,
    meaning="A group with lag has not committed on a partition for longer than `maxStallSeconds` (than 4 s, which are "
            "two sweeps, where that is less).",
    look="Is it rebalancing? Is a member stuck? What nobody can consume is not waited for; where our user may not "
         "READ the topic nobody can tell, and a marker at the end counts as a record.",
    do="Repair the consumer. The migration goes on by itself.")

GROUP_UNKNOWN = Reason(
    SUBJECT, "GroupUnknown", Urgency.LOOK,
    meaning="A group could not be read: its offsets (KafkaMigration), or what its coordinator tells of state and "
            "members (ConsumerGroupMigration).",
    look="The reason is in the message: often its coordinator moves.",
    do="Usually nothing. If it lasts, check the rights of `spec.kafka.credentialsRef`: Describe on the group and, "
       "for what members own, on all of its topics.")

LAG_NOT_HEALTHY_YET = Reason(
    SUBJECT, "LagNotHealthyYet", Urgency.LOOK,
    meaning="The group does not keep up as it must: some partition's oldest uncommitted record is older than "
            "`spec.gates.maxTimeLagSeconds`, or it has kept up for less than `lagPassSeconds`. The count begins "
            "anew after each rebalance.",
    look="The message names the worst partition in the words of [the lag page](../lag.md).\n\n"
         "```\n"
         "kubectl exec deployment/switchover -- switchover lag --bootstrap-server kafka:9092 --group GROUP "
         "--watch\n"
         "```",
    do="Wait while it catches up. If this age is normal for the group, raise `spec.gates.maxTimeLagSeconds`, "
       "which may be changed at any time. A group that commits seldom needs a limit above its commit interval.")

LAG_NOT_SEEN_YET = Reason(
    SUBJECT, "LagNotSeenYet", Urgency.LOOK,
    meaning="There are not enough samples to judge the lag by, or they fail. One sweep is made every 5 s, and at "
            "least five are needed; after a start of the operator it begins anew.",
    look="The message says what is missing.",
    do="Wait half a minute. If it lasts, the sweeps fail: see [OffsetsUnknown].")

LAG_UNHEALTHY = Reason(
    SUBJECT, "LagUnhealthy", Urgency.NOW,
    meaning="The lag says that something is wrong and will not heal by waiting: nothing is committed although "
            "there is something to do, records were deleted before they were consumed, or offsets make no sense. "
            "The migration stands, or turns back with `onFailure: RollBack`.",
    look="The message has partition and verdict; what each verdict means is on [the lag page](../lag.md). Which "
         "pod owns the partition: `kafka-consumer-groups.sh --bootstrap-server kafka:9092 --describe --group "
         "GROUP`, then `kubectl logs POD`.",
    do="STOPPED: look at the member that owns the partition, restart it if it hangs; on a quiet topic of "
       "transactional producers it may be markers and aborted records ([PartitionStalled]). LOST: retention "
       "deleted what was not read; find out since when, and whether it has to be replayed. BEHIND and growing: "
       "too few members, or slow ones. If the owner is a new pod, go back with `desiredState: RolledBack` and "
       "look in peace.")

LAG_UNKNOWN = Reason(
    SUBJECT, "LagUnknown", Urgency.LOOK,
    meaning="The lag could not be read: the group's offsets, or the ends of the partitions.",
    look="The message: a broker that does not answer, or a right that is missing.",
    do="Our user needs Describe on the group and on its topics. Unknown never opens a gate; it goes on when the "
       "answer comes.")

NO_PROGRESS_YET = Reason(
    SUBJECT, "NoProgressYet", Urgency.LOOK,
    meaning="A new pod owns a partition that has records and has not committed on it yet.",
    look="`subject` is the partition, `observed` the committed offset and the end. `kubectl logs POD`.",
    do="Wait for one commit interval of the application. If it never commits: does it process anything? Callbacks "
       "that call `assign()` under the consumer protocol leave a member of librdkafka with partitions that it "
       "does not fetch. After `spec.gates.maxStallSeconds` this becomes [PartitionStalled].")

PARTITION_STALLED = Reason(
    SUBJECT, "PartitionStalled", Urgency.NOW,
    meaning="A partition has records, and its committed offset has stood for longer than "
            "`spec.gates.maxStallSeconds` (75 by default). Heartbeats say nothing of this: a member can hold a "
            "partition and not consume it. The migration stands, or turns back with `onFailure: RollBack`.",
    look="Who owns it, and what that pod does:\n\n"
         "```\n"
         "kafka-consumer-groups.sh --bootstrap-server kafka:9092 --describe --group GROUP\n"
         "kubectl logs POD --since 5m\n"
         "```",
    do="If the owner hangs, restart it. If it is a new pod and the application's own rebalance callbacks call "
       "`assign()` or `unassign()`, they do not fit the new protocol: go back.\n\n"
       "Two causes are no fault of the consumer. Its commit interval is longer than the limit: raise "
       "`maxStallSeconds` above it. And with transactional producers nothing but markers or aborted records may "
       "be left in a partition, which some clients never commit: the operator looks into the log for that ([what "
       "nobody can consume](../lag.md)), but needs Read on the topic, and `spec.gates.isolation: ReadCommitted` "
       "where the members read committed records.")
