"""Before a group is touched: what each reason means, and what to do."""

from switchover.reasons.reason import Reason, Subject, Urgency

SUBJECT = Subject(
    "preflight-group", "Before a group is touched",
    "switchover preflight -f migration.yaml")

CHANGE_REFUSED = Reason(
    SUBJECT, "ChangeRefused", Urgency.STANDS,
    meaning="A dry run of a change that the migration makes to a workload's template was refused, by validation, "
            "a policy or an admission webhook.",
    look="The message: it has the words of whoever refused.",
    do="Have the policy allow it for Switchover's account, or correct what validation does not like.")

CHANGE_UNDONE = Reason(
    SUBJECT, "ChangeUndone", Urgency.STANDS,
    meaning="A dry run shows that the API server keeps something else than the migration writes: admission puts "
            "it back, or, in the patch of a template, a field is written in another way than the API server keeps "
            "it. Such a change would never be seen to be done.",
    look="The message names what differs. Then `kubectl get mutatingwebhookconfigurations`, and policies that "
         "mutate.",
    do="Exempt that workload for the time of the migration. In a patch write what is kept, as `kubectl get "
       "--output yaml` shows it: a quantity in its shortest form (`2Gi` for `2048Mi`), no empty text, and beside "
       "`$patch: replace` and `$retainKeys` also the defaults that they would take away (`defaultMode: 420` of a "
       "volume).")

CLAIM_NOT_ALLOWED = Reason(
    SUBJECT, "ClaimNotAllowed", Urgency.STANDS,
    meaning="An audit, or the patch of a template, is to use a volume claim that the chart's value `allow.claims` "
            "does not have. Its pods may read and write all that lies there.",
    look="The field that the message names, and what is on that volume.",
    do="Whoever installed the chart allows the claim: `helm upgrade … --set 'allow.claims={pipeline}'`. A claim "
       "that the workload mounts already needs no leave.")

CLAIMED_BY_ANOTHER = Reason(
    SUBJECT, "ClaimedByAnother", Urgency.STANDS,
    meaning="A StatefulSet or Deployment carries the claim annotation of another migration.",
    prose=True)

FEATURE_NOT_FINALIZED = Reason(
    SUBJECT, "FeatureNotFinalized", Urgency.STANDS,
    meaning="The brokers run Kafka 4, but the feature `group.version` is not finalized at 1. An upgrade of the "
            "software alone does not do it, and operators that upgrade brokers have left it behind. Every member "
            "of the consumer protocol would be refused with UNSUPPORTED_VERSION.",
    look="`kafka-features.sh --bootstrap-server kafka:9092 describe`. A level of 0 is shown by the name being "
         "absent.",
    do="```\n"
       "kafka-features.sh --bootstrap-server kafka:9092 upgrade --feature group.version=1\n"
       "```\n\n"
       "Once the new protocol was used, the cluster can be downgraded to 3.4.1 or newer only.")

FORBIDDEN_SETTING = Reason(
    SUBJECT, "ForbiddenSetting", Urgency.STANDS,
    meaning="The changed pods would set something that a client refuses to start with. Under the consumer "
            "protocol these are `session.timeout.ms`, `heartbeat.interval.ms` and "
            "`partition.assignment.strategy`: brokers decide them. Under the classic protocol, in Java, it is "
            "`group.remote.assignor`.",
    look="`observed` is the setting, `subject` the workload. Variables and arguments of the container are looked "
         "at; a file that is mounted or baked into the image is not.",
    do="Give the variable an empty value in `template.env` of that workload, or leave the argument out of "
       "`template.args`. Frameworks set some of these by themselves: look for their switch. Brokers keep sessions "
       "between `group.consumer.min.session.timeout.ms` (45 s) and `group.consumer.max.session.timeout.ms` (60 "
       "s); a group that needs more wants that raised on the brokers first.")

KAFKA_STREAMS = Reason(
    SUBJECT, "KafkaStreams", Urgency.STANDS,
    meaning="The group is a Kafka Streams application. Brokers refuse to convert it online, and it has a protocol "
            "of its own (`streams`, KIP-1071), not `consumer`.",
    look="`status.group.assignor` is `stream`.",
    do="Move it by hand, without this resource: stop the whole application, set `group.protocol=streams`, start "
       "it; back the same way. Brokers and clients of 4.2.1 or newer: 4.2.0 loses groups when it loads them "
       "(KAFKA-20254). Only committed offsets survive.")

KUBERNETES_RIGHT_MISSING = Reason(
    SUBJECT, "KubernetesRightMissing", Urgency.STANDS,
    meaning="The account that Switchover runs with lacks rights that the migration would need half-way.",
    look="`kubectl auth can-i --list --as system:serviceaccount:NAMESPACE:NAME`.",
    do="Install the chart's Role and RoleBinding in this namespace as they are. Where the chart's `rbac.secrets` "
       "names any Secrets, `rbac.secrets.write` must name `STATEFULSET-switchover` for every StatefulSet of "
       "brokers and of controllers. (`switchover plan` asks for the rights of the account that runs it.)")

KUBERNETES_UNKNOWN = Reason(
    SUBJECT, "KubernetesUnknown", Urgency.STANDS,
    meaning="The API server did not tell what belongs to this migration.",
    look="The message; the API server's health; the operator's Role.",
    do="Repair it. Nothing is done meanwhile.")

LEASE_HELD_BY_ANOTHER = Reason(
    SUBJECT, "LeaseHeldByAnother", Urgency.STANDS,
    meaning="Another ConsumerGroupMigration holds the Lease of this group.",
    look="`observed` is the holder: the uid of a resource, then the operator's pod.\n\n"
         "```\n"
         "kubectl get leases --output "
         "custom-columns=NAME:.metadata.name,HOLDER:.spec.holderIdentity,RENEWED:.spec.renewTime\n"
         "kubectl get cgmig --output custom-columns=NAME:.metadata.name,UID:.metadata.uid,GROUP:.spec.group\n"
         "```",
    do="Let the other one end, or delete it. A Lease that nobody renews expires after 30 s.")

MALFORMED_MEMBER = Reason(
    SUBJECT, "MalformedMember", Urgency.STANDS,
    meaning="A member of the group told its coordinator a subscription or an assignment that is not the consumer "
            "protocol. The coordinator would refuse every member of the new protocol (GROUP_ID_NOT_FOUND, `the "
            "embedded consumer protocol is malformed`), and Switchover cannot tell what that member owns.",
    look="The message names the member, its address, and what is wrong with its bytes.",
    do="Stop that member, or give it a client that speaks the protocol; a client with an assignor of its own may "
       "write what it likes there.")

NO_CLIENT_STRATEGY = Reason(
    SUBJECT, "NoClientStrategy", Urgency.STANDS,
    meaning="The group is held by the consumer protocol. There brokers assign partitions, and no client's "
            "`partition.assignment.strategy` counts.",
    look="`status.group.type` is Consumer.",
    do="Delete this resource. To change the brokers' assignor, set `group.remote.assignor` on the clients and "
       "roll them out as usual.")

NO_ONLINE_ROLLBACK = Reason(
    SUBJECT, "NoOnlineRollback", Urgency.STANDS,
    meaning="The brokers' `group.consumer.migration.policy` lets the group go one way only. Forward works; a "
            "rollback cannot turn the group back by itself.\n\n"
            "With `upgrade`, when the last new member leaves, the group stays of type Consumer with its classic "
            "members. On Kafka 4.3 and newer (seen on 4.3.1 and 4.4.0; 4.0.2 and 4.2.1 are fine) it is worse: "
            "nobody computes the next assignment, and the partitions of the last new members have no owner until "
            "a member joins. A rollback waits a minute for that and then evicts one pod, whose return heals it.",
    look="`observed` has each broker's value.",
    do="Best: set `group.consumer.migration.policy=bidirectional` on every broker. It is a static setting: a "
       "restart of each. Else, knowing the above, set `spec.protocol.acceptNoOnlineRollback: true`; then this is "
       "a Warning. To make a classic group of it again after such a rollback, stop all members, wait until the "
       "group is Empty, and start them: an empty group is taken by either protocol under any policy.")

NO_ROOM_FOR_BATCH = Reason(
    SUBJECT, "NoRoomForBatch", Urgency.STANDS,
    meaning="The group fits into `group.consumer.max.size` (or `group.max.size`, in a rollback), and a batch on "
            "top does not: new pods join before old ones leave, and the last of them would be refused "
            "(GROUP_MAX_SIZE_REACHED).",
    look="`subject` is the setting, `threshold` its value on the coordinator, `observed` what would be needed.",
    do="Make the batches of `spec.rollout` smaller (`surge: 0` is no help: the check reckons with a batch on "
       "top), raise the setting on every broker (it is static: a restart of each), or set "
       "`spec.protocol.strategy: Offline`.")

NOT_CONSUMERS = Reason(
    SUBJECT, "NotConsumers", Urgency.STANDS,
    meaning="The group's protocol type is not `consumer`, so brokers never convert it. Connect's workers have the "
            "type `connect`.",
    look="`observed` is the type.",
    do="Connect's workers stay as they are. The tasks of a sink connector are ordinary consumers in the group "
       "`connect-<connector>`; they run in the workers' pods and get their settings by `consumer.override.*` of "
       "the connector.")

POLICIES_DIFFER = Reason(
    SUBJECT, "PoliciesDiffer", Urgency.STANDS,
    meaning="Brokers have different values of `group.consumer.migration.policy`. Only the coordinator's counts, "
            "and any broker may become it, so nobody could say whether the group can be converted tomorrow.",
    look="`observed` has each broker's value.",
    do="Set the same on every broker, best `bidirectional`. It is static: a restart of each, one at a time. If a "
       "roll of the brokers is under way, let it end.")

POLICY_FORBIDS = Reason(
    SUBJECT, "PolicyForbids", Urgency.STANDS,
    meaning="The brokers' `group.consumer.migration.policy` forbids the way that the spec asks for: the "
            "coordinator would refuse every new member (GROUP_ID_NOT_FOUND, `online upgrade is disabled`), or, on "
            "the way to classic, not convert the group.",
    look="`observed` has each broker's value; without a setting it is `bidirectional` on Kafka 4.",
    do="Set `bidirectional` on every broker (static: a restart of each), or set `spec.protocol.strategy: "
       "Offline`, which works under any policy.")

READING_REFUSED = Reason(
    SUBJECT, "ReadingRefused", Urgency.STANDS,
    meaning="Kubernetes, Kafka or ZooKeeper understood a question of Preflight and refused it. It will go on "
            "doing so until somebody acts.",
    look="The message: it says who refused what, and which right is missing.",
    do="Give that right, or correct the credentials in the Secret that the spec names. A Secret that does not "
       "name the servers is sent nowhere (decision 0011): if they are yours, run the command in the message.")

SECRET_NOT_ALLOWED = Reason(
    SUBJECT, "SecretNotAllowed", Urgency.STANDS,
    meaning="The patch of a template brings a Secret into pods that did not have it, and the chart's value "
            "`allow.secrets` does not have that Secret. Whoever may create a migration would otherwise read any "
            "Secret of the namespace through a workload.",
    look="The message: it names the patch and the Secret.",
    do="Whoever installed the chart allows it: `helm upgrade … --set 'allow.secrets={orders-*}'`. A Secret that "
       "the template names already, in whatever place, needs no leave.")

STATIC_MEMBERS_IN_DEPLOYMENT = Reason(
    SUBJECT, "StaticMembersInDeployment", Urgency.STANDS,
    meaning="Members of a Deployment have a `group.instance.id` in which nothing is of their pod: neither its name, its "
            "uid nor an address. A Deployment's new pods run at the same time as the old ones, and a new pod with the id "
            "of an old one is refused. Ids that are made of the pod are a Warning (StaticMembersLeaveLate).",
    look="`subject` is an id.",
    do="Run static members in a StatefulSet, where a pod's successor takes its id when the pod has gone: the "
       "quietest way there is, nothing moves. Or give the id up in the Deployment first, in a rollout of its own; "
       "or set `spec.rollout.surge` to 0, or `spec.protocol.strategy` to Offline: then no two pods run at once.")

STRATEGIES_CANNOT_MIX = Reason(
    SUBJECT, "StrategiesCannotMix", Urgency.STANDS,
    meaning="librdkafka cannot list an eager strategy (range, roundrobin) and `cooperative-sticky` together: the "
            "client does not start with such a list. So there is no first bounce.",
    look="`observed` is the strategy in force, `threshold` the wanted one.",
    do="One of\n\n"
       "* stop all members and start them with the new strategy: a Deployment with `strategy: {type: Recreate}`, "
       "without this resource;\n"
       "* from an eager strategy go straight to the consumer protocol (`spec.protocol`), which moves partitions "
       "one by one as well and has no such limit. From librdkafka's `cooperative-sticky` there is no way online "
       "([AssignmentUserData]).")

WORKLOAD_NOT_READY = Reason(
    SUBJECT, "WorkloadNotReady", Urgency.STANDS,
    meaning="Not every pod of the workload is Ready. Nothing is begun with a group that is not whole.",
    look="`kubectl get pods`, `kubectl describe pod POD` of the first that is not Ready; `kubectl rollout status "
         "deployment NAME`.",
    do="Make it whole, or scale it to what can run. A workload at 0 replicas needs no migration ([GroupEmpty]).")

WORKLOAD_OWNED = Reason(
    SUBJECT, "WorkloadOwned", Urgency.STANDS,
    meaning="The Deployment or StatefulSet belongs to another object (an Argo Rollout, a custom resource of some "
            "operator), which would put back what Switchover changes. Or Flagger has scaled it to 0 and runs its pods "
            "in a Deployment of its own, NAME-primary, which belongs to a Canary.",
    look="`kubectl get deployment NAME --output jsonpath='{.metadata.ownerReferences}'`.",
    do="Change the owner itself: its own canary, if it has one, with two canary pods, and the group watched by "
       "`switchover lag`. Switchover cannot move such a workload.")

WORKLOAD_UNSUPPORTED = Reason(
    SUBJECT, "WorkloadUnsupported", Urgency.STANDS,
    meaning="The workload cannot be moved in the way its kind is moved. For a Deployment: new pods could not run "
            "beside the old ones (a `hostPort`, a volume claim that only one node can mount) and "
            "`spec.rollout.surge` is not 0, or somebody has paused it. Or the container is not there, or the "
            "patch in `spec.workloads` changes more than what configures an application.",
    prose=True)

WRONG_KAFKA_VERSION = Reason(
    SUBJECT, "WrongKafkaVersion", Urgency.STANDS,
    meaning="A broker is older than Kafka 3.9 (KafkaMigration), or than Kafka 4.0 (ConsumerGroupMigration with "
            "`protocol`: in 3.9 the consumer protocol is a preview that cannot convert a group online).",
    look="The release that it tells, in `observed`, and its image.",
    do="For a KafkaMigration of brokers from 3.4 on, set `spec.upgrade.image` to an image of Kafka 3.9 with the "
       "same layout: Switchover rolls the brokers to it first, canary first, and back to their own image in a "
       "rollback ([user guide](../user-guide.md), The road to 3.9). Or upgrade them yourself, by the commands in "
       "`unblocks`. Older ones you must bring to 3.9, or to 3.4 at least. For a group upgrade to 4.0 or newer; "
       "better 4.2.2, 4.3.2 or newer, which have fixes that a rollback of a large group needs (KAFKA-20845).")
