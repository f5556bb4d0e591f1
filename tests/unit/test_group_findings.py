"""What can be wrong with a group, what the gate says of it and its cure; what it warns of, and what is well.

Not checked, because nothing that is observed tells it: session timeouts, client family and version, a baseline of lag and
rebalances, rights but those that the probe tells; a partition without any commit is told by LagHealthy alone.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from switchover.answers.observed import Unknown
from switchover.api.status import Direction, Severity
from switchover.api.status import Verdict as Outcome
from switchover.engine.gate import Verdict
from switchover.engine.policy import Policy
from switchover.groups.gates import convergence
from switchover.groups.picture import Picture
from switchover.groups.preflight.brokers import conversion_bytes
from switchover.groups.reading import POLICY
from switchover.kafka.group import LEFT, GroupState, GroupType, OffsetsTopic, Readiness
from switchover.kubernetes.workloads import JobState
from unit.each_gate import Finding
from unit.given_reasons import FOUND, reasons
from unit.group_gates import GATES, MOMENTS, downgrading
from unit.group_pictures import (
    BOUNCES,
    BRIDGED,
    CLASSIC,
    CONSUMER,
    NEW_CLIENT,
    NOW,
    PARTITIONS,
    STRATEGY,
    TO_CLASSIC,
    UID,
    all_consumer,
    assessment,
    audited,
    mixed,
    moment,
    samples,
    spec_of,
    strategies,
    template,
    value,
    with_brokers,
    with_fact,
    with_group,
    with_member,
    with_pod,
    with_source,
    workload_of,
)
from unit.group_spoilers import (
    FIRST,
    audited_by,
    environment,
    epochs,
    instead,
    kept,
    known,
    let_go,
    limits,
    malformed,
    policies,
    reset_by,
    rewound,
    rewritten,
    sampled,
    scaler,
    specced,
    stands,
    stranger,
    then,
    undone,
    unread,
    with_baseline,
    without_originals,
    without_source,
)

FAIL, WAIT, UNKNOWN, PASS = Outcome.FAIL, Outcome.WAIT, Outcome.UNKNOWN, Outcome.PASS


BEYOND = (
    "spec: {volumes: [{$patch: replace}, {name: a, hostPath: {path: /}}, {name: a, emptyDir: {}}]}",
    "metadata: {name: other}",
    "spec: {serviceAccountName: admin}", "spec: {hostNetwork: true}", "spec: {securityContext: {runAsUser: 0}}",
    "spec: {restartPolicy: Never}", "spec: {volumes: [{name: node, hostPath: {path: /}}]}",
    "spec: {volumes: [{name: token, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}",
    "spec: {containers: [{name: app, securityContext: {privileged: true}}]}",
    "spec: {containers: [{name: app, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}",
    "spec: {initContainers: [{name: root, image: 'orders:1', securityContext: {runAsNonRoot: false}}]}",
)
SECRETS = (
    "spec: {volumes: [{name: a, secret: {secretName: theirs}}]}",
    "spec: {volumes: [{name: a, projected: {sources: [{secret: {name: theirs}}]}}]}",
    "spec: {containers: [{name: app, envFrom: [{secretRef: {name: theirs}}]}]}",
    "spec: {containers: [{name: app, env: [{name: A, valueFrom: {secretKeyRef: {name: theirs, key: a}}}]}]}",
    "spec: {imagePullSecrets: [{name: theirs}]}",
)
WITHOUT_LEAVE = {
    "metadata: {annotations: {vault.hashicorp.com/role: payments}}": 'allow.annotations=["vault.hashicorp.com/role"]',
    "metadata: {labels: {version: v2}}": 'allow.labels=["version"]', "metadata: {labels: null}": 'allow.labels=["app"]',
    "spec: {hostAliases: [{ip: 10.0.0.66, hostnames: [db.payments]}]}": 'allow.pods=["hostAliases"]',
}
KEDA_HELD = scaler(kind="ScaledObject", settings={"autoscaling.keda.sh/paused-replicas": "3"})
VPA = scaler(kind="VerticalPodAutoscaler", settings={})

FINDINGS = [
    # the group
    Finding("Group", "nobody is there", with_group(members=(), state=GroupState.EMPTY), FAIL, "GroupEmpty", "orders",
            "spec.group"),
    Finding("Group", "no such group", with_group(members=(), state=GroupState.DEAD), FAIL, "GroupEmpty", "orders"),
    Finding("Group", "moved already", with_member(2, protocol=CONSUMER), FAIL, "AlreadyMoved", "client-of-orders-2",
            "bring them back"),
    Finding("Group", "it rebalances", with_group(state=GroupState.PREPARING_REBALANCE), WAIT, "GroupNotStable",
            "orders"),
    Finding("Group", "Connect", with_group(protocol_type="connect"), FAIL, "NotConsumers", "orders", "connect-"),
    Finding("Group", "Kafka Streams", with_group(assignor="stream"), FAIL, "KafkaStreams", "orders",
            "group.protocol=streams"),
    Finding("Group", "a share group", with_group(type=GroupType.OTHER), FAIL, "GroupTypeUnsupported", "orders"),
    Finding("Group", "a member that speaks another protocol", malformed, FAIL, "MalformedMember", "orders", "stop that"),
    Finding("Assignments", "user data", with_member(1, user_data=8), FAIL, "AssignmentUserData",
            "client-of-orders-1", "Offline"),
    Finding("PlainAssignments", "user data right before the canary", with_member(1, user_data=8), FAIL, "AssignmentUserData",
            "client-of-orders-1", "Offline"),
    Finding("NoForeignMembers", "members behind Linkerd", with_member(3, host="127.0.0.1"), WAIT, "ForeignMembers",
            "client-of-orders-3 at 127.0.0.1", "Linkerd: config.linkerd.io/skip-inbound-ports"),
    Finding("NoForeignMembers", "members behind a mesh", with_member(3, host="127.0.0.6"), WAIT, "ForeignMembers",
            "client-of-orders-3 at 127.0.0.6", "traffic.sidecar.istio.io/excludeInboundPorts"),
    Finding("NoForeignMembers", "a member of nobody's", stranger, WAIT, "ForeignMembers", "client-of-legacy at 10.9.9.9",
            "spec.workloads"),
    Finding("PodsAreMembers", "a pod is none", with_member(0, host="10.9.9.9"), WAIT, "MemberMissing", "orders-0"),
    Finding("PodsAreMembers", "by another protocol", with_member(0, protocol=CONSUMER), WAIT, "MemberMissing", "orders-0"),
    Finding("PodsAreMembers", "a pod ends", with_pod("orders-3", terminating=True), WAIT, "PodEnding", "orders-3"),
    Finding("PodsAreMembers", "of no template that is known",
            then(instead(mixed), with_source(template={**template(), "spec": {"containers": []}})), WAIT, "PodModeUnknown",
            "orders-4"),
    # brokers
    Finding("BrokerReleases", "not finalized", with_brokers(group_version=0), FAIL, "FeatureNotFinalized", "broker 1",
            "group.version=1"),
    Finding("BrokerReleases", "3.9", with_brokers(metadata_version=21), FAIL, "WrongKafkaVersion", "broker 1", "4.0"),
    Finding("ProtocolReady", "refused", known("readiness", Readiness("UNSUPPORTED_VERSION")), FAIL, "ProtocolRefused",
            "orders", "group.version=1"),
    Finding("ProtocolReady", "no such assignor", known("readiness", Readiness("", ("range",))), FAIL, "AssignorUnknown",
            "uniform", "remoteAssignor"),
    *(Finding("ProtocolReady", code, known("readiness", Readiness(code)), FAIL, "GroupRightMissing", "orders",
              "Describe") for code in ("GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED")),
    Finding("MigrationPolicy", "off", policies("disabled", "disabled"), FAIL, "PolicyForbids", POLICY, "bidirectional"),
    Finding("MigrationPolicy", "not told", policies("", ""), FAIL, "PolicyForbids", POLICY, "bidirectional"),
    Finding("MigrationPolicy", "they differ", policies("bidirectional", "upgrade"), FAIL, "PoliciesDiffer", POLICY,
            "every broker"),
    Finding("MigrationPolicy", "no way back online", policies("upgrade", "upgrade"), FAIL, "NoOnlineRollback",
            POLICY, "acceptNoOnlineRollback"),
    Finding("MigrationPolicy", "no way to classic", then(instead(downgrading), policies("upgrade")), FAIL,
            "PolicyForbids", POLICY),
    # sizes
    *(Finding("GroupSize", f"{setting} {limit}", limits(setting, limit), FAIL, reason, setting, f"raise {setting}")
      for setting in ("group.consumer.max.size", "group.max.size")
      for limit, reason in ((5, "GroupTooLarge"), (6, "NoRoomForBatch"), (7, "NoRoomForBatch"))),
    Finding("GroupSize", "the coordinator is silent", lambda picture: with_fact(picture, "brokers", {
        **picture.facts.brokers, 1: Unknown("no answer")}), UNKNOWN, "CoordinatorUnknown", "orders"),
    Finding("RecordSize", "too large", known("offsets_topic", OffsetsTopic(100, False, 0)), FAIL, "RecordTooLarge",
            "__consumer_offsets max.message.bytes", "max.message.bytes"),
    Finding("OneCoordinator", "two", known("coordinators", frozenset({3, 1})), WAIT, "TwoCoordinators", "orders",
            "restart those"),
    Finding("OneCoordinator", "it moves", known("coordinators", frozenset()), UNKNOWN, "CoordinatorUnknown", "orders"),
    Finding("CoordinatorCapacity", "full", known("coordinated", {1: 4999}), WAIT, "CoordinatorFull", "broker 1",
            "maxConsumersPerCoordinator"),
    Finding("OffsetsReplicated", "a replica is missing", known("offsets_topic", OffsetsTopic(1_048_588, False, 3)), WAIT,
            "OffsetsUnderReplicated", "__consumer_offsets"),
    # clients
    Finding("ClientSettings", "of the old protocol", specced(workload_of(template=environment(
        GROUP_PROTOCOL="consumer", SESSION_TIMEOUT_MS="45000"))), FAIL, "ForbiddenSetting", "orders", "empty value"),
    Finding("ClientSettings", "in its arguments", specced(workload_of(template={
        "args": ["--consumer-property", "heartbeat.interval.ms=3000"]})), FAIL, "ForbiddenSetting", "orders"),
    Finding("ClientSettings", "back to classic", specced(workload_of(template=environment(
        KAFKA_GROUP_REMOTE_ASSIGNOR="range")), protocol={"to": "Classic"}), FAIL, "ForbiddenSetting", "orders"),
    Finding("StaticMembers", "in a Deployment", with_member(0, instance_id="orders-a"), FAIL, "StaticMembersInDeployment",
            "orders-a", "StatefulSet"),
    Finding("StaticMembers", "of the node", with_member(0, instance_id="node-0"), FAIL,
            "StaticMembersInDeployment", "node-0", "spec.rollout.surge"),
    # strategies
    Finding("Strategies", "librdkafka", specced(workload_of(**BOUNCES), assignmentStrategy={
        "to": "cooperative-sticky", "clientFamily": "Librdkafka"}), FAIL, "StrategiesCannotMix", "cooperative-sticky",
        "stop all members"),
    Finding("Strategies", "the brokers assign", with_group(type=GroupType.CONSUMER), FAIL, "NoClientStrategy", "orders"),
    Finding("Strategies", "it is so already", with_group(assignor="cooperative-sticky"), FAIL, "NothingToChange", "orders"),
    Finding("Strategies", "no bounce in between",
            specced(workload_of(template=strategies("cooperative-sticky")), **STRATEGY), FAIL,
            "BridgeMissing", "orders", "cooperative-sticky,range"),
    Finding("StrategyOffered", "not by all", known("offered", {"cooperative-sticky": False}), WAIT, "StrategyNotOffered",
            "cooperative-sticky", "bridge"),
    Finding("ProbeExpired", "just asked", lambda picture: replace(
        picture, position=replace(picture.position, opened=NOW - 7)), WAIT, "ProbePending", "orders"),
    Finding("ProbeExpired", "no session may be short", with_brokers(settings={"group.min.session.timeout.ms": "60000"}),
            WAIT, "ProbePending", "orders"),
    Finding("Group", "Kafka Streams offline", then(
        specced(protocol={"to": "Consumer", "strategy": "Offline"}), with_group(assignor="stream")), FAIL, "KafkaStreams",
        "orders", "committed offsets"),
    Finding("Readings", "refused", lambda picture: with_fact(
        picture, "coordinated", Unknown("needs Describe on the Cluster", refused=True)), FAIL, "ReadingRefused",
        "the groups of every coordinator"),
    Finding("HostsChecked", "not known", lambda picture: with_fact(picture, "unchecked", Unknown("nobody said")), UNKNOWN,
            "NotObserved", "the credentials"),
    Finding("Rights", "one is missing", known("missing_rights", ("patch deployments.apps",)), FAIL,
            "KubernetesRightMissing", "Role switchover", "Role"),
    Finding("StrategySelected", "not yet", with_group(assignor="range"), WAIT, "StrategyNotSelected", "orders"),
    # workloads
    Finding("Workloads", "gone", without_source, FAIL, "WorkloadMissing", "orders", "spec.workloads"),
    Finding("Workloads", "misspelled", then(without_source, known("neighbours", {"order": "Deployment"})), FAIL,
            "WorkloadMissing", "orders", "did you mean order?"),
    Finding("Workloads", "of another kind", then(without_source, known("neighbours", {"orders": "StatefulSet"})), FAIL,
            "WorkloadMissing", "orders", "set its kind in spec.workloads to StatefulSet"),
    *(Finding("Workloads", f"a {kind}", then(without_source, known("others", {"orders": kind})), FAIL, "WorkloadUnsupported",
              "orders", cure) for kind, cure in (
                  ("Rollout", "setWeight"), ("CloneSet", "updateStrategy.partition"), ("StrimziPodSet", "KafkaConnect"),
                  ("DaemonSet", "nodeSelector"))),
    Finding("Workloads", "run by Flagger", then(with_source(replicas=0, pods={}, seen=0, sizes={}), known(
        "others", {"orders": "Canary orders"})), FAIL, "WorkloadOwned", "orders", "let Flagger roll"),
    Finding("Workloads", "Flagger's own", with_source(owner="Canary orders"), FAIL, "WorkloadOwned", "orders",
            "let Flagger roll"),
    Finding("Workloads", "run by a Rollout", then(with_source(replicas=0, pods={}, seen=0, sizes={}), known(
        "others", {"orders": "Rollout"})), FAIL, "WorkloadUnsupported", "orders", "setWeight"),
    Finding("Workloads", "changes nothing", specced(workload_of(template=TO_CLASSIC)), FAIL, "NothingToChange", "orders"),
    Finding("Workloads", "a bridge that changes nothing", specced(workload_of(**{**BRIDGED, "bridge": TO_CLASSIC})), FAIL,
            "NothingToChange", "orders"),
    Finding("Workloads", "a bridge that is the end already",
            specced(workload_of(**{**BRIDGED, "bridge": BRIDGED["template"]})), FAIL, "NothingToChange", "orders"),
    Finding("Workloads", "one of two over a bridge",
            specced(workload_of(), workload_of("StatefulSet", "payments", **BRIDGED)), FAIL, "BridgeMissing", "orders",
            "or none"),
    Finding("Workloads", "no such container", specced({**workload_of(), "container": "sidecar"}), FAIL,
            "WorkloadUnsupported", "orders"),
    Finding("Workloads", "paused", with_source(paused=True), FAIL, "WorkloadUnsupported", "orders"),
    Finding("Workloads", "another's", with_source(claimed_by="uid-2"), FAIL, "ClaimedByAnother", "orders"),
    Finding("Workloads", "owned", with_source(owner="Rollout orders"), FAIL, "WorkloadOwned", "orders", "Rollout orders"),
    Finding("Workloads", "not Ready", with_pod("orders-4", ready=False), WAIT, "WorkloadNotReady", "orders"),
    Finding("Workloads", "of two thousand million pods", with_source(replicas=2_000_000_000), FAIL, "TooManyPods",
            "orders"),
    Finding("Workloads", "without pods", with_source(replicas=0, pods={}), WAIT, "WorkloadNotReady", "orders"),
    Finding("Allowed", "another repository", specced(workload_of(template={"image": "evil/orders:2"})), FAIL,
            "ImageNotAllowed", "spec.workloads[orders].template.image", 'allow.images=["evil/orders"]'),
    Finding("Allowed", "another repository between", specced(workload_of(bridge={"image": "evil/orders:2"})), FAIL,
            "ImageNotAllowed", "spec.workloads[orders].bridge.image", 'allow.images=["evil/orders"]'),
    Finding("Allowed", "an audit's image", audited_by(Policy(claims=("pipeline",))), FAIL, "ImageNotAllowed",
            "spec.audit.image", 'allow.images=["pipeline"]'),
    Finding("Allowed", "an audit's claim", audited_by(Policy(images=("pipeline",))), FAIL, "ClaimNotAllowed",
            "spec.audit.claim", 'allow.claims=["pipeline"]'),
    *(Finding("Workloads", f"a patch beyond its bounds: {patch}", specced(workload_of(template={"patch": patch})), FAIL,
              "WorkloadUnsupported", "orders", "leave it out") for patch in BEYOND),
    Finding("Workloads", "another order than in the bridge", specced(workload_of(
        bridge={"patch": "spec: {volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}]}"},
        template={"patch": "spec: {volumes: [{name: b, emptyDir: {}}, {name: a, emptyDir: {}}]}"})), FAIL,
        "WorkloadUnsupported", "orders", "leave it out"),
    Finding("Workloads", "a patch without the consumer", specced(workload_of(template={"patch": (
        "spec: {containers: [{name: app, $patch: delete}]}")})), FAIL, "WorkloadUnsupported", "orders"),
    Finding("Workloads", "a patch that says nothing", specced(workload_of(template={"patch": (
        "spec: {volumes: [{configMap: {name: a}}]}")})), FAIL, "WorkloadUnsupported", "orders"),
    Finding("Allowed", "another repository in a patch", specced(workload_of(template={"patch": (
        "spec: {initContainers: [{name: first, image: evil/init}]}")})), FAIL, "ImageNotAllowed",
        "spec.workloads[orders].template.patch of initContainers[first]", 'allow.images=["evil/init"]'),
    Finding("Allowed", "another repository in a patch of the container", specced(workload_of(bridge={"patch": (
        "spec: {containers: [{name: app, image: evil/app}]}")})), FAIL, "ImageNotAllowed",
        "spec.workloads[orders].bridge.patch of containers[app]", 'allow.images=["evil/app"]'),
    *(Finding("Allowed", f"another's Secret: {patch}", specced(workload_of(template={"patch": patch})), FAIL,
              "SecretNotAllowed", "spec.workloads[orders].template.patch", 'allow.secrets=["theirs"]') for patch in SECRETS),
    *(Finding("Allowed", f"what takes leave: {patch}", specced(workload_of(template={"patch": patch})), FAIL,
              "PodChangeNotAllowed", "spec.workloads[orders].template.patch", cure)
      for patch, cure in WITHOUT_LEAVE.items()),
    Finding("Allowed", "another's claim", specced(workload_of(template={"patch": (
        "spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: theirs}}]}")})), FAIL, "ClaimNotAllowed",
        "spec.workloads[orders].template.patch", 'allow.claims=["theirs"]'),
    Finding("TemplateChange", "nobody asked", known("trials", {}), UNKNOWN, "NotObserved", "orders"),
    Finding("TemplateChange", "a policy refuses it", known("trials", {"orders.template": Unknown(
        "admission webhook says no", refused=True)}), FAIL, "ChangeRefused", "orders", "allow it"),
    Finding("TemplateChange", "a webhook undoes it", undone, FAIL, "ChangeUndone", "orders", "what it stores"),
    Finding("Autoscalers", "cannot be paused", with_source(autoscalers=(VPA,)), FAIL, "AutoscalerInTheWay",
            "VerticalPodAutoscaler orders", "delete it"),
    Finding("Autoscalers", "held by KEDA", with_source(autoscalers=(KEDA_HELD,)), FAIL, "AutoscalerInTheWay",
            "ScaledObject orders", "paused-replicas"),
    Finding("AutoscalersPaused", "not yet", with_source(autoscalers=(scaler(),)), WAIT, "AutoscalerActive",
            "HorizontalPodAutoscaler orders"),
    Finding("Lease", "another's", lambda picture: with_fact(picture, "lease_holder", "uid-2/operator-1"), WAIT,
            "LeaseHeldByAnother", "Lease"),
    Finding("WorkloadsClaimed", "not yet", with_source(claimed_by=""), WAIT, "NotClaimed", "orders"),
    Finding("WorkloadsClaimed", "the original is not kept", without_originals, WAIT, "NotClaimed", "orders"),
    Finding("RecordHolds", "a pod of before is there", instead(lambda: moment("HandOver", "OTTTTT")), FAIL,
            "RecordContradicted", "orders"),
    Finding("WorkloadsReleased", "still claimed", with_source(claimed_by=UID), WAIT, "NotReleased", "orders"),
    # nobody else writes
    Finding("WorkloadsAreOurs", "gone", without_source, FAIL, "WorkloadMissing", "orders"),
    Finding("WorkloadsAreOurs", "claimed by another", with_source(claimed_by="uid-2"), FAIL, "NotClaimed", "orders",
            "let the migration with uid uid-2 end"),
    Finding("WorkloadsAreOurs", "its claim taken off", with_source(claimed_by=""), FAIL, "NotClaimed", "orders",
            f"kubectl --namespace shop annotate deployment orders --overwrite switchover.dev/claimed-by={UID}"),
    Finding("WorkloadsAreOurs", "a template of nobody's", with_source(template=value(
        moment("Canary", spec=spec_of(workload_of(template=NEW_CLIENT))).facts.fleet).sources["orders"].template | {
            "spec": {"containers": [{"name": "app", "image": "orders:9"}]}}), FAIL, "RevertedByGitOps", "Deployment orders",
        "edit deployment orders: image of app, env of app, args of app as in spec.workloads"),
    Finding("WorkloadsAreOurs", "put back to what it was, while its pods are moved",
            then(rewritten("argocd-controller", NOW - 1, NOW - 50)), FAIL, "RevertedByGitOps",
            "Deployment orders", "edit deployment orders"),
    Finding("WorkloadsAreOurs", "put back by a helm upgrade", then(
        rewritten("helm", NOW - 1, NOW - 50), with_source(marks={"meta.helm.sh/release-name": "shop"})),
        FAIL, "RevertedByGitOps", "Deployment orders", "do not upgrade release shop before HandOver, and then only with"),
    Finding("WorkloadsAreOurs", "its hold taken off", let_go("argocd-controller"), WAIT, "DeploymentNotHeld", "orders",
            "leave strategy, minReadySeconds, progressDeadlineSeconds and paused out of it"),
    Finding("WorkloadsAreOurs", "another strategy, and still held", reset_by("argocd-controller"), WAIT, "StrategyReset",
            "orders", "leave strategy, minReadySeconds, progressDeadlineSeconds and paused out of it"),
    Finding("WorkloadsAreOurs", "scaled away", with_source(replicas=3), FAIL, "ReplicasChanged", "orders",
            "kubectl --namespace shop scale deployment orders --replicas 6"),
    Finding("WorkloadsAreOurs", "scaled up, with old pods that nobody would move", with_source(replicas=7), FAIL,
            "ReplicasChanged", "orders", "orders --replicas 6"),
    Finding("WorkloadsAreOurs", "scaled up before its template is changed", then(
        instead(lambda: moment("Canary")), with_source(replicas=8)), FAIL, "ReplicasChanged", "orders",
        "orders --replicas 6"),
    Finding("WorkloadsAreOurs", "scaled up in the soak", then(instead(all_consumer), with_source(replicas=7)), FAIL,
            "ReplicasChanged", "orders", "orders --replicas 6"),
    Finding("WorkloadsAreOurs", "a StatefulSet over its bridge, scaled", then(
        instead(lambda: moment("Bridge", "OOOIII", spec=spec_of(workload_of("StatefulSet", **BRIDGED)))),
        with_source(replicas=5)), FAIL, "ReplicasChanged", "orders",
        "scale statefulset orders --replicas 6"),
    Finding("WorkloadsAreOurs", "its autoscaler wakes", then(with_source(autoscalers=(scaler(),)), kept(scaler())), WAIT,
            "AutoscalerActive", "HorizontalPodAutoscaler orders", "paused again"),
    Finding("WorkloadsAreOurs", "an autoscaler that nobody knew", with_source(autoscalers=(scaler(),)), WAIT,
            "AutoscalerActive", "HorizontalPodAutoscaler orders", "created after"),
    Finding("WorkloadsAreOurs", "an autoscaler that cannot be paused", with_source(autoscalers=(VPA,)), WAIT,
            "AutoscalerInTheWay", "VerticalPodAutoscaler orders", "delete it"),
    # members
    Finding("NewPodsJoin", "a canary restarts", with_pod("orders-4", restarts=1, trouble="Error: 1"), FAIL,
            "NewPodRestarts", "orders-4", "kubectl --namespace shop logs --previous orders-4"),
    Finding("NewPodsJoin", "stays out", with_member(4, host="10.9.9.9"), FAIL, "NotAMember", "orders-4",
            "kubectl --namespace shop logs orders-4"),
    Finding("NewPodsJoin", "joins by the old protocol", with_member(4, protocol=CLASSIC), FAIL, "WrongProtocol",
            "orders-4", "group.protocol"),
    Finding("NewPodsJoin", "on the way back", then(instead(lambda: moment("Canary", "OOOOOO", (5,), direction=BACKWARD)),
                                                   with_member(5, host="10.9.9.9")), FAIL, "NotAMember", "orders-5"),
    # the protocol
    Finding("GroupConverted", "flipped back", then(*(with_member(index, protocol=CLASSIC) for index in (4, 5)),
                                                   with_group(type=GroupType.CLASSIC)), WAIT, "GroupFlippedBack", "orders"),
    Finding("GroupConverted", "not yet", with_group(type=GroupType.CLASSIC), WAIT, "GroupNotConverted", "orders"),
    Finding("AllMoved", "one is left", with_member(0, protocol=CLASSIC), WAIT, "MembersNotMoved", "client-of-orders-0"),
    Finding("AllMoved", "still of the other type", then(instead(lambda: moment(
        "Settle", "TTTTTT", spec=spec_of(workload_of(template=TO_CLASSIC), protocol={"to": "Classic"}))),
        with_group(type=GroupType.CONSUMER)), WAIT, "GroupNotConverted", "orders"),
    # convergence and coverage
    Finding("Converged", "reconciles", with_group(state=GroupState.RECONCILING), WAIT, "GroupNotStable", "orders"),
    Finding("Converged", "one is behind", with_member(2, epoch=16), WAIT, "MemberBehind", "client-of-orders-2"),
    Finding("Converged", "one does not own its share", with_member(2, assigned=frozenset()), WAIT, "MemberBehind",
            "client-of-orders-2"),
    *(Finding(gate, what, spoil, WAIT, reason, subject) for gate in ("Covered", "CoverageKept")
      for what, spoil, reason, subject in (
          ("an orphan", with_member(0, assigned=frozenset()), "PartitionsUnowned", "orders-0"),
          ("owned twice", with_member(1, assigned=frozenset(PARTITIONS[::6])), "OwnedTwice", "orders-0"),
          ("of a topic that is not there", known("partitions", {}), "NothingSubscribed", "orders"),
          ("a classic group rebalances", then(instead(lambda: moment("Canary")), with_group(
              state=GroupState.PREPARING_REBALANCE)), "GroupNotStable", "orders"))),
    Finding("Calm", "again and again", epochs(17, 18, 19, 20, 21), FAIL, "EpochChurn", "orders", "leave and return"),
    # progress
    Finding("GoesOn", "one stands", stands(FIRST), FAIL, "PartitionStalled", "orders-0", "member that owns it"),
    Finding("GoesOn", "one goes back", rewound, FAIL, "CommitWentBack", "orders-0", "find the member that commits"),
    Finding("Progressed", "not of its own yet", stands(PARTITIONS[4]), WAIT, "NoProgressYet", "orders-4"),
    Finding("GoesOn", "never read", sampled(), UNKNOWN, "OffsetsUnknown", "orders"),
    # lag
    Finding("LagHealthy", "one stands", known("lag", assessment(spec_of(), frozenset({FIRST}))), FAIL, "LagUnhealthy",
            "orders", "members that own"),
    Finding("LagHealthy", "a few sweeps", known("lag", assessment(spec_of(), count=3)), WAIT, "LagNotSeenYet", "orders"),
    Finding("LagHealthy", "not for long enough", known("lag", assessment(spec_of(), count=8)), WAIT, "LagNotHealthyYet",
            "orders"),
    *(Finding(gate, "no baseline", then(with_baseline, known("baseline", "it does not exist")), WAIT, "BaselineUnusable",
              "usual", "job baseline") for gate in ("LagHealthy", "LagRecovered")),
    Finding("LagHealthy", "a baseline that nobody tells", then(with_baseline, unread("baseline")), UNKNOWN,
            "BaselineUnknown", "usual"),
    Finding("LagRecovered", "one stands", known("lag", assessment(spec_of(), frozenset({FIRST}))), WAIT, "LagUnhealthy",
            "orders"),
    # what nobody answers
    *(Finding(gate, f"{fact} unread", unread(fact), UNKNOWN, reason) for gate, fact, reason in (
        ("Covered", "partitions", "PartitionsUnknown"), ("OffsetsReplicated", "offsets_topic", "OffsetsTopicUnknown"),
        ("CoordinatorCapacity", "coordinated", "CoordinatorLoadUnknown"), ("LagHealthy", "lag", "LagUnknown"),
        ("ProtocolReady", "readiness", "ReadinessUnknown"), ("StrategyOffered", "offered", "StrategiesUnknown"))),
    Finding("MigrationPolicy", "no broker was asked", lambda picture: with_fact(picture, "brokers", {}), UNKNOWN,
            "BrokersUnknown", "Kafka"),
    # the ends
    Finding("Soaked", "not yet", lambda picture: replace(picture, entered={"Settle": NOW - 10}), WAIT, "Soaking", "orders"),
    # the audit
    Finding("AuditClean", "not begun", known("audit", None), WAIT, "AuditRunning", "orders"),
    Finding("AuditClean", "runs", known("audit", audited(JobState.RUNNING, "", "pod a: Pending")), WAIT, "AuditRunning",
            "Job to-consumer-audit-1"),
    Finding("AuditClean", "twice", known("audit", audited(
        message='{"verdict": "Violations", "evidence": ["orders-0"], "nonce": "n"}')), FAIL, "AuditViolations",
            "Job to-consumer-audit-1", "delete job to-consumer-audit-1"),
    Finding("AuditClean", "unproven", known("audit", audited(message='{"verdict": "Indeterminate", "nonce": "n"}')), FAIL,
            "AuditIndeterminate", "Job to-consumer-audit-1", "audit.acceptIndeterminate"),
    Finding("AuditClean", "broke off", known("audit", audited(JobState.FAILED, '{"reason": "no captures"}')), FAIL,
            "AuditFailed", "Job to-consumer-audit-1", "repair"),
    Finding("AuditClean", "no verdict", known("audit", audited(message="Killed")), FAIL, "AuditFailed",
            "Job to-consumer-audit-1", "delete job to-consumer-audit-1"),
    Finding("AuditClean", "of another pod", known("audit", audited(message='{"verdict": "Clean"}')), UNKNOWN, "AuditUnknown",
            "Job to-consumer-audit-1", "audit.image"),
    Finding("AuditClean", "another verdict", known("audit", audited(message='{"verdict": "Spotless"}')), UNKNOWN,
            "AuditUnknown", "Job to-consumer-audit-1", "audit.image"),
    Finding("AuditClean", "another version", known("audit", audited(message='{"version": 2, "verdict": "Clean"}')), UNKNOWN,
            "AuditUnknown", "Job to-consumer-audit-1", "audit.image"),
    Finding("AuditClean", "not seen", lambda picture: with_fact(picture, "audit", Unknown("no answer")), UNKNOWN,
            "AuditUnknown", "the audit's Job"),
    Finding("GroupEmpty", "pods end", instead(mixed), WAIT, "PodsEnding", "orders-0"),
    Finding("GroupEmpty", "one does not leave", stranger, WAIT, "GroupNotEmpty", "client-of-legacy", "outside"),
    Finding("WithinWindow", "closed", specced(windows=[{"name": "night", "cron": "0 1 * * 1", "durationSeconds": 3600}]),
            WAIT, "OutsideWindow", "night"),
]


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.title)
def test_what_is_wrong_is_told_with_its_subject_and_cure(finding):
    finding.told(GATES[finding.gate].check(finding.spoil(MOMENTS[finding.gate]())))


def test_the_table_has_every_verdict_that_a_gate_can_give():
    """Written in the source, and found by a case here."""
    folder = Path(convergence.__file__).parents[1]
    rooms = ("gates", "preflight", "workloads")
    told = {reason for room in rooms for reason in reasons(folder / room, FOUND)}
    assert told - {finding.reason for finding in FINDINGS} == set()


# --- warnings -----------------------------------------------------------------------------------------------------------


class Warned(NamedTuple):
    """What shuts nothing and is told."""

    gate: str
    what: str
    spoil: Callable[[Picture], Picture]
    code: str
    cure: str
    severity: Severity = Severity.WARNING


ARGO = {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/orders"}
OF_ADDRESS = f"ip-{min(next(iter(moment('Preflight').pods()))[2].ips).replace('.', '-')}"
WARNINGS = [
    Warned("Group", "an assignor of their own", with_group(assignor="rendezvous"), "ClientAssignorLost", "depends"),
    Warned("PatchRelease", "not told", then(
        with_brokers(metadata_version=28), known("offsets_topic", OffsetsTopic(1_048_588, True, 0))), "CheckPatchRelease",
        "4.2.2"),
    Warned("MigrationPolicy", "no way back online, accepted", then(
        specced(protocol={"to": "Consumer", "acceptNoOnlineRollback": True}), policies("upgrade")), "NoOnlineRollback",
        "bidirectional"),
    Warned("RecordSize", "nearly", lambda picture: known("offsets_topic", OffsetsTopic(
        round(1.2 * conversion_bytes(value(picture.facts.group))), False, 0))(picture), "RecordLarge", "raise"),
    Warned("CoPartitioning", "range over two topics", then(known("partitions", {"orders": 24, "payments": 24}), *(
        with_member(index, topics=frozenset({"orders", "payments"})) for index in range(6))), "CoPartitioningLost", "range"),
    Warned("Patterns", "nothing matches", then(with_source(template={"spec": {"containers": [
        {"name": "app", "image": "orders:1", "env": [{"name": "TOPICS", "value": "^orders"}]}]}})), "PatternMeansLess",
        "^orders.*"),
    *(Warned("Patterns", pattern, with_source(template={"spec": {"containers": [
        {"name": "app", "image": "orders:1", "env": [{"name": "TOPICS", "value": pattern}]}]}}), "PatternUnsupported",
        "subscribe(Pattern)") for pattern in ("^(?!internal).*", r"^(a)\1.*", "^a*+.*")),
    Warned("Canary", "one alone", specced(rollout={"steps": [{"pods": 1}]}), "OneCanary", "to 2"),
    Warned("Autoscalers", "can be paused", with_source(autoscalers=(scaler(),)), "AutoscalerIsPaused", "nothing"),
    Warned("GitOps", "Argo CD", with_source(marks=ARGO), "GitOpsOwnsIt", "RespectIgnoreDifferences"),
    Warned("Workloads", "a strict budget", with_source(budgets={"orders": 0}), "StrictBudget", "delete that pod"),
    Warned("Tools", "always", lambda picture: picture, "OldToolsGoBlind", "", Severity.INFO),
    *(Warned("StaticMembers", f"by {what}", with_member(0, instance_id=made), "StaticMembersLeaveLate", "rollout of its own")
      for what, made in (("pod name", "worker-orders-0"), ("its random end", "w_ers-0"), ("uid", "uid-of-orders-0"),
                         ("address", OF_ADDRESS))),
    Warned("StaticMembers", "by pod name, in place", then(specced(rollout={"steps": [{"pods": 1}], "surge": 0}), with_member(
        0, instance_id="orders-0"), with_member(1, instance_id="fixed")), "StaticMembersLeaveLate", "a pause of a session"),
    Warned("StaticMembers", "by address, in a StatefulSet", then(instead(lambda: moment("Preflight", spec=spec_of(
        workload_of("StatefulSet")))), with_member(0, instance_id=OF_ADDRESS)), "StaticMembersLeaveLate", "session"),
]


@pytest.mark.parametrize("warned", WARNINGS, ids=lambda warned: f"{warned.gate}: {warned.what}")
def test_what_shuts_nothing_is_told_with_its_cure(warned):
    seen = GATES[warned.gate].check(warned.spoil(MOMENTS[warned.gate]()))
    assert seen.outcome is Outcome.PASS, seen
    (found,) = [item for item in seen.findings if item.reason == warned.code]
    assert (found.severity, bool(found.subject)) == (warned.severity, True)
    assert warned.cure in found.unblocks


# --- what is no finding -------------------------------------------------------------------------------------------------

BACKWARD = Direction.BACKWARD
WELL = [
    ("Converged", "a static member is between two pods", with_member(2, epoch=LEFT)),
    ("NoForeignMembers", "a static member whose pod has left", then(stranger, with_member(6, epoch=LEFT))),
    ("NewPodsJoin", "a canary is young", then(with_pod("orders-4", started_at=NOW - 30),
                                              with_member(4, host="10.9.9.9"))),
    ("NewPodsJoin", "an old pod restarted", with_pod("orders-1", restarts=4)),
    ("GoesOn", "it stood before the step, and goes on", sampled(*samples(30, until=NOW - 100, stands=frozenset({FIRST})),
                                                               *samples(2))),
    ("WorkloadsAreOurs", "the template is ours on the way back although somebody wrote it",
     then(instead(lambda: moment("Canary", "OOOOTT", direction=BACKWARD)), rewritten("kubectl", NOW - 1, NOW - 50))),
    ("WorkloadsAreOurs", "we put it back ourselves", rewritten("kubectl", NOW - 900, NOW - 5)),
    ("WorkloadsAreOurs", "an autoscaler that is paused", with_source(autoscalers=(scaler(settings={
        "minReplicas": 1, "behavior": {"scaleUp": {"selectPolicy": "Disabled"},
                                       "scaleDown": {"selectPolicy": "Disabled"}}}),))),
    ("MigrationPolicy", "offline asks no policy", then(specced(protocol={"to": "Consumer", "strategy": "Offline"}),
                                                       policies("disabled"))),
    ("Assignments", "nor for user data", then(specced(protocol={"to": "Consumer", "strategy": "Offline"}),
                                              with_member(0, user_data=9))),
    ("GroupSize", "nor for a size", then(specced(protocol={"to": "Consumer", "strategy": "Offline"}),
                                         limits("group.consumer.max.size", 2))),
    ("StaticMembers", "in a StatefulSet", then(instead(lambda: moment("Preflight", spec=spec_of(
        workload_of("StatefulSet")))), with_member(0, instance_id="orders-0"))),
    ("MigrationPolicy", "3.9 tells none", with_brokers(metadata_version=21, settings={})),
    ("GroupSize", "exactly", limits("group.consumer.max.size", 8)),
    ("GroupEmpty", "its last member was fenced", with_group(members=(), epoch=18, assignment_epoch=17)),
    ("GroupEmpty", "there is no such group any more", with_group(members=(), state=GroupState.DEAD, epoch=-1)),
    ("Readings", "no right helps against what is malformed", malformed),
    ("ProtocolReady", "the other way", instead(downgrading)),
    ("Calm", "each pod that was replaced moved it", epochs(17, 17, 17, 18, 19)),
    ("Progressed", "a partition without records", sampled(*(
        replace(sample, offsets=dict.fromkeys(PARTITIONS, (1000, 1000))) for sample in samples()))),
]


@pytest.mark.parametrize(("name", "what", "spoil"), WELL, ids=lambda each: each if isinstance(each, str) else "")
def test_what_is_well_does_not_shut(name, what, spoil):
    seen = GATES[name].check(spoil(MOMENTS[name]()))
    assert seen.outcome is Outcome.PASS, seen


# --- why a new pod is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spoil", "words"), [
    (policies("disabled", "disabled"), "online upgrade is off"),
    (with_brokers(group_version=0), "group.version is not finalized"),
    (with_member(0, user_data=3), "user data"),
    (limits("group.consumer.max.size", 6), "group.consumer.max.size members"),
    (lambda picture: with_fact(picture, "brokers", {}), "no cause is known"),
    (lambda picture: picture, "no cause is known"),
])
def test_a_canary_that_stays_out_is_told_with_its_likely_cause(spoil, words):
    refused = then(with_group(type=GroupType.CLASSIC), with_member(4, host="10.9.9.9", protocol=CLASSIC),
                   with_member(5, protocol=CLASSIC), spoil)(mixed())
    seen: Verdict = GATES["NewPodsJoin"].check(refused)
    assert seen.reason == "NotAMember"
    assert words in seen.message


@pytest.mark.parametrize(("spoil", "reason"), [(policies("disabled", "disabled"), "NotAMember"),
                                               (lambda picture: picture, "NewPodRestarts")])
def test_a_canary_that_ends_itself_because_it_is_refused_is_told_with_the_refusal(spoil, reason):
    """As a client of librdkafka 2.15 and newer may."""
    refused = then(with_group(type=GroupType.CLASSIC), with_member(4, host="10.9.9.9", protocol=CLASSIC),
                   with_member(5, protocol=CLASSIC), with_pod("orders-4", ready=False, restarts=1),
                   spoil)(mixed())
    assert GATES["NewPodsJoin"].check(refused).reason == reason
