"""Findings that stop nothing, the Warnings and Infos of Preflight and of the rehearsal: each code, and when it is found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """`name` is the code in `status.findings`; `when` completes "found when", in Markdown."""

    name: str
    when: str

    @property
    def text(self) -> str:
        """All that is known of it, as Markdown."""
        return (f"# {self.name}\n\nA Warning or an Info: it stops nothing. Its message, and what to do, stand in"
                f" `status.findings`.\n\n**Found when**: {self.when}.\n")


ALTER_CONFIG_POLICY = Note("AlterConfigPolicy", "an `alter.config.policy.class.name` is configured (KAFKA-19026)")
ASSIGNMENT_UNDERSTOOD = Note(
    "AssignmentUnderstood",
    "who owns what fits one strategy: the migration-enabled consumer must be given the same")
AUTOSCALER_IS_PAUSED = Note(
    "AutoscalerIsPaused",
    "an HPA or ScaledObject will be paused meanwhile, and given back as it was")
AUTOSCALER_OWNS_REPLICAS = Note("AutoscalerOwnsReplicas", "an autoscaler sets the replicas of a StatefulSet")
BROKER_DATA_IS_ON_A_NODE = Note("BrokerDataIsOnANode", "a log directory, as the broker reports it, lies on a hostPath")
BROKER_IS_UPGRADED = Note(
    "BrokerIsUpgraded",
    "a broker is older than Kafka 3.9, and `spec.upgrade` brings it there: it restarts once more")
BROKERS_DIFFER = Note(
    "BrokersDiffer",
    "a setting with which controllers decide or reach the brokers is not the same on all brokers; controllers "
    "will have what the pod of the first StatefulSet gives them")
BROKERS_WOULD_COMPLAIN = Note(
    "BrokersWouldComplain",
    "a KRaft broker starts with an error, such as a quota for a host name that does not resolve")
CHECK_PATCH_RELEASE = Note(
    "CheckPatchRelease",
    "`offsets.topic.compression.codec` is set and the brokers' release has patch levels that may damage a "
    "large group as it is converted (KAFKA-20845)")
CLASS_DID_NOT_START = Note(
    "ClassDidNotStart",
    "a controller or a broker on KRaft does not come up with a class of the brokers' own; its own settings, "
    "which Kafka hides, it did not have")
CLIENT_ASSIGNOR_LOST = Note(
    "ClientAssignorLost",
    "the group uses a strategy that brokers do not have: partitions will be given out differently")
CLOCKS_APART = Note(
    "ClocksApart",
    "the operator's clock and the API server's, or a broker's and ZooKeeper's, differ by more than 5 s")
CO_PARTITIONING_LOST = Note(
    "CoPartitioningLost",
    "`range` gives equal partitions of several topics to one member today, and the brokers' assignor that was "
    "chosen does not")
CONSUMER_IS_PYTHON = Note(
    "ConsumerIsPython",
    "pods are replaced: the migration-enabled consumer is a Python library")
DELEGATION_TOKENS = Note("DelegationTokens", "delegation tokens are configured")
FOREIGN_CLASS = Note(
    "ForeignClass",
    "a setting names a class that is not Kafka's own, or a broker hides which; the message says where it will "
    "run")
GITOPS_OWNED = Note(
    "GitOpsOwned",
    "an Argo CD Application, a Flux HelmRelease or a bundle of Rancher's Fleet owns a StatefulSet; the finding says"
    " what to paste")
GITOPS_OWNS_IT = Note("GitOpsOwnsIt", "Argo CD or Flux applies a workload again and again; the finding says what to paste")
GITOPS_TOLERATES = Note("GitOpsTolerates", "Flux owns a StatefulSet and is set to leave it alone")
GROUP_HAS_NO_MEMBERS = Note(
    "GroupHasNoMembers",
    "a group of `spec.gates.groups` has no members: batches of brokers wait while it has something to consume and nobody "
    "commits")
HELM_OWNED = Note("HelmOwned", "a Helm release owns a StatefulSet")
HOSTS_UNCHECKED = Note(
    "HostsUnchecked",
    "a Secret has an empty `ssl.endpoint.identification.algorithm`: any certificate of the same authority is "
    "believed")
IDLE_GROUPS_UNREAD = Note(
    "IdleGroupsUnread",
    "there are more groups without members in ZooKeeper than one sweep reads (20,000 nodes of offsets)")
IDLE_ZOOKEEPER_GROUP = Note(
    "IdleZooKeeperGroup",
    "a group without members committed to ZooKeeper within `spec.gates.idleGroupSeconds` (7 days): a batch "
    "job's, say")
IDS_WERE_GENERATED = Note("IdsWereGenerated", "Kafka generated broker ids once; every broker has an explicit one now")
LOW_CONTROLLER_EPOCH = Note("LowControllerEpoch", "`/controller_epoch` is below 50 (KAFKA-20488)")
METADATA_SIZE = Note("MetadataSize", "always: the number of topics and partitions")
NAME_OF_THE_CHART = Note(
    "NameOfTheChart",
    "the brokers' chart calls what it renders for controllers by `spec.controllers.name`: its upgrade to KRaft"
    " values would be refused")
NO_BUDGET = Note("NoBudget", "no PodDisruptionBudget selects a broker's pod")
NO_READINESS_PROBE = Note("NoReadinessProbe", "the brokers have no readiness probe")
NODE_WOULD_BE_CREATED = Note(
    "NodeWouldBeCreated",
    "dual write writes a node under another name, next to the one that is there")
NODE_WOULD_BE_DELETED = Note("NodeWouldBeDeleted", "dual write deletes a node that says nothing")
NODE_WOULD_BE_REWRITTEN = Note("NodeWouldBeRewritten", "dual write gives a node another content")
NODES_UNSEEN = Note("NodesUnseen", "the operator has no right to read nodes")
OFFSET_RESET_DECIDES = Note("OffsetResetDecides", "partitions have no offset in either store")
OLD_TOOLS_GO_BLIND = Note(
    "OldToolsGoBlind",
    "to the consumer protocol: tools on the old DescribeGroups will show the group as Dead")
ONE_CANARY = Note(
    "OneCanary",
    "to the consumer protocol with a first batch of one pod: each restart of it converts the whole group back "
    "and forth")
PATTERN_MEANS_LESS = Note("PatternMeansLess", "a variable looks like a pattern that brokers match against the whole name")
PATTERN_UNSUPPORTED = Note(
    "PatternUnsupported",
    "a variable looks like a pattern that brokers refuse: they match by RE2, without look-around and back-"
    "references")
PODS_MAY_NEED_ZOOKEEPER = Note(
    "PodsMayNeedZooKeeper",
    "an init container, sidecar, probe or hook of the brokers names something like ZooKeeper, or its port")
PODS_NEED_ZOOKEEPER = Note(
    "PodsNeedZooKeeper",
    "an init container, probe or hook of the brokers asks for ZooKeeper")
PROTOCOL_VERSION_IS_RAISED = Note(
    "ProtocolVersionIsRaised",
    "`inter.broker.protocol.version` is 2.8 to 3.5: the brokers restart once more")
RECORD_LARGE = Note(
    "RecordLarge",
    "the conversion, or a rebalance, is estimated at over 70 % of what one batch of `__consumer_offsets` may "
    "hold")
SINGLE_ZOOKEEPER = Note("SingleZooKeeper", "a ZooKeeper server stands alone")
START_SCRIPT = Note(
    "StartScript",
    "always: the script by which the pod seems to start Kafka, where the edits will be made. Look whether it "
    "is the one")
STATIC_MEMBERS_LEAVE_LATE = Note(
    "StaticMembersLeaveLate",
    "a `group.instance.id` is made of the pod: no new pod takes it, and the partitions of each pod that leaves"
    " wait for its session to end")
STORAGE_CLASS_UNSEEN = Note(
    "StorageClassUnseen",
    "whether the controllers' storage class exists cannot be seen from the namespace")
STRICT_BUDGET = Note(
    "StrictBudget",
    "a PodDisruptionBudget allows no disruption now: batches do not ask it, an eviction that heals a rollback "
    "does (PartitionsUnowned)")
SUBSCRIPTIONS_DIFFER = Note("SubscriptionsDiffer", "members subscribe to different topics")
SUPER_USERS_HIDDEN = Note(
    "SuperUsersHidden",
    "with an authorizer: Kafka hides who is in `super.users`; unless the principal as which the nodes meet on "
    "the controllers' listener is, the controllers do not come up. Over PLAINTEXT that is everybody: give the "
    "listener credentials instead")
TEMPLATE_REWRITTEN = Note(
    "TemplateRewritten",
    "Wave or Stakater's Reloader watches the Secrets of a StatefulSet, and writes into its template when one "
    "changes")
TOPIC_STANDS_STILL = Note(
    "TopicStandsStill",
    "a topic in `spec.gates.acceptedTopics` stands still when one of its brokers restarts")
WRITTEN_BEFORE = Note("WrittenBefore", "who wrote mounts or strategy of a StatefulSet last, where no tool owns it")
ZOOKEEPER_GROUP = Note("ZooKeeperGroup", "a consumer group has members in ZooKeeper: MoveBrokers waits until it has none")
ZOOKEEPER_RIGHT_UNSURE = Note(
    "ZooKeeperRightUnsure",
    "whether our credentials may do in ZooKeeper what a rollback does depends on an ACL of scheme ip, x509 or "
    "another")
ZOOKEEPER_TELLS_NOTHING = Note(
    "ZooKeeperTellsNothing",
    "what answers for a ZooKeeper server does not answer `srvr`: its clients cannot be counted when it is to "
    "be released")

NOTES: dict[str, Note] = {each.name: each for each in tuple(vars().values()) if isinstance(each, Note)}
"""Every one by its code."""
