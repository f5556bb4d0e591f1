"""Preflight: each kind of bad input is refused in words, by the gate that it concerns, before anything is touched."""

import json
import shlex
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import yaml

from fakes.views import changed
from switchover.answers.observed import Known, Unknown
from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Severity
from switchover.api.status import Verdict as Outcome
from switchover.cluster import preflight
from switchover.cluster.plan import PLAN
from switchover.kafka.node import LogDirectory
from switchover.kubernetes import gitops
from switchover.kubernetes.ports import StorageClasses
from switchover.kubernetes.selectors import selects
from switchover.kubernetes.workloads import Manager
from switchover.metadata.passwords import SecretNotKnown
from switchover.zookeeper.nodes import ControllerNode, IdleGroups, ZooKeeperTopic
from unit.kraft_spoilers import container, pod_spec, without_members, zookeeper
from unit.pictures import NOW, answer, moment, spoil, spoil_each, spoil_pod, value, with_fact
from unit.preflight_pictures import (
    ACLS,
    ARGO,
    AUTHORIZER,
    CHAIN,
    COPIED,
    EMPTY,
    FLUX,
    FLUX_HELM,
    GATES,
    NO_READ,
    PLAIN,
    TLS,
    TWO,
    WIDE,
    Change,
    at_its_pod,
    at_run_time,
    between_brokers,
    both,
    certificate,
    check,
    classes,
    disks,
    dry_run,
    examined,
    findings,
    hidden,
    ids,
    kubernetes,
    listener,
    login,
    lost,
    on_a_volume,
    protocol,
    registered,
    replicas,
    static,
    told,
    told_by_brokers,
    topics,
    wanted,
    with_old_groups,
    workload,
    written_by,
)

ADDED = "INTERNAL://kafka-1.kafka-headless:9092,NEW://kafka-1.kafka-headless:9098"
W, F, U = Outcome.WAIT, Outcome.FAIL, Outcome.UNKNOWN


def unknown_ids(why: str, *, refused: bool = False) -> Change:
    """Broker 1 does not tell of its logs."""
    def changed(picture):
        told = {**picture.facts.examination.topic_ids, 1: Unknown(why, refused=refused)}
        return with_fact(picture, "examination", replace(picture.facts.examination, topic_ids=told))

    return changed


class Bad(NamedTuple):
    """One kind of bad input, and which gate says what of it."""

    what: str
    spoil: Change
    gate: str
    outcome: Outcome
    reason: str
    told: str
    """Words that the subject or the message must contain: the culprit."""


BAD = [
    # objects
    Bad("a StatefulSet that does not exist", kubernetes(brokers={"kafka": None}), "ObjectsExist", F, "StatefulSetMissing",
        "StatefulSet kafka does not exist in namespace kafka"),
    Bad("a StatefulSet that another migration claimed", workload(claimed_by="uid-of-another"), "ObjectsExist", F,
        "ClaimedByAnother", "uid-of-another"),
    Bad("a StatefulSet of two thousand million pods", workload(replicas=2_000_000_000), "ObjectsExist", F, "TooManyPods",
        "StatefulSet kafka wants 2000000000 pods"),
    Bad("a pod that is not ready", lambda picture: spoil_pod(picture, "kafka-1", ready=False), "ObjectsExist", W,
        "PodsNotReady", "kafka"),
    Bad("a pod that is missing", workload(pods={}), "ObjectsExist", W, "PodsNotReady", "kafka"),
    Bad("a cluster that another migration moves", kubernetes(lease_holder="uid-of-another/operator"), "ClusterIsFree", F,
        "ClusterIsTaken", "another migration"),
    # windows
    Bad("a window too short for the canary", wanted(
        windows=[{"name": "night", "cron": "0 1 * * *", "durationSeconds": 240}], rollout={"steps": [
            {"pods": 1, "bakeSeconds": 300}]}), "WindowsFit", F, "NoWindowFits", "CopyMetadata needs 510 s"),
    Bad("windows that open too often to look at", wanted(
        windows=[{"name": f"w{n}", "cron": "* * * * *", "durationSeconds": 60} for n in range(32)], rollout={"steps": [
            {"pods": 1, "bakeSeconds": 604_800}]}), "WindowsFit", F, "WindowsOpenTooOften", "none of the next 500 openings"),
    # templates
    Bad("a container of another name", wanted(brokers=[{"name": "kafka", "container": "broker"}]), "ObjectsExist", F,
        "ContainerMissing", "StatefulSet kafka: there is no container broker; the pod has: kafka"),
    Bad("containers of which none is called like Kafka", pod_spec(containers=[{"name": "a"}, {"name": "b"}]), "ObjectsExist",
        F, "ContainerMissing", "no container whose name says that it runs Kafka; the pod has: a, b"),
    Bad("containers of which two are called like Kafka", pod_spec(containers=[{"name": "kafka-a"}, {"name": "kafka-b"}]),
        "ObjectsExist", F, "ContainerMissing", "the pod has: kafka-a, kafka-b"),
    Bad("a command that starts Kafka without its start script", container(command=["java"], args=["kafka.Kafka", "f"]),
        "StartScripts", F, "StartNotSupported", "container kafka of StatefulSet kafka runs java kafka.Kafka"),
    # the configuration itself
    Bad("a broker that runs on KRaft already", static({"process.roles": "broker"}, 1), "Configuration", F, "AlreadyKRaft",
        "broker 1 has process.roles"),
    Bad("a migration begun by hand", static({"zookeeper.metadata.migration.enable": "true"}, 2), "Configuration", F,
        "MigrationAlreadyConfigured", "broker 2 already has settings of a migration begun by hand"),
    Bad("voters given by hand", static({"controller.quorum.voters": "1@a:9093"}), "Configuration", F,
        "MigrationAlreadyConfigured", "begun by hand"),
    Bad("voters that a broker hides", hidden("controller.quorum.voters"), "Configuration", F, "MigrationAlreadyConfigured",
        "begun by hand"),
    Bad("a listener with the controllers' name", static({"listeners": "INTERNAL://:9092, CONTROLLER://:9095"}, 1),
        "ListenerName", F, "ListenerNameTaken", "broker 1 has a listener CONTROLLER"),
    Bad("a listener that was added at run time", at_run_time({"listeners": ADDED, "num.io.threads": "9"}, 1), "Listeners", F,
        "ListenersSetAtRunTime", "broker 1 (kafka-1) has listeners set dynamically: on KRaft it ignores that, and"
        " with it its other dynamic settings (num.io.threads)"),
    Bad("addresses that were changed at run time", at_run_time({"advertised.listeners": "INTERNAL://elsewhere:9092"}, 2),
        "Listeners", F, "ListenersSetAtRunTime", "broker 2 (kafka-2) has advertised.listeners set dynamically"),
    Bad("a map of run time without the controllers", at_run_time({
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT"}, 0), "Listeners", F,
        "ListenersSetAtRunTime", "broker 0 (kafka-0) has listener.security.protocol.map set dynamically"),
    Bad("a broker that still runs through an earlier door", hidden("switchover.B.0a1b2c3d", 2), "Configuration", F,
        "DoorStillThere", "broker 2 still runs Switchover's start script of an earlier attempt (switchover.B.0a1b2c3d)"),
    Bad("broker ids that Kafka generates", static({"broker.id": "-1"}, 0, 2), "BrokerIds", F, "GeneratedBrokerId",
        "kafka-0 (0), kafka-2 (2)"),
    # residue
    Bad("/migration of an earlier attempt", zookeeper(migration=COPIED), "Residue", F, "Residue", "its offset is 12"),
    Bad("an empty /migration", zookeeper(migration=EMPTY), "Residue", F, "Residue", "KAFKA-19480"),
    Bad("a /controller that KRaft claimed", zookeeper(controller=ControllerNode(3000, False, 4)), "Residue", F, "Residue",
        "/controller"),
    Bad("nobody who is the controller", zookeeper(controller=None), "Residue", W, "NoController", "/controller"),
    Bad("controllers that exist already", examined("objects", {"StatefulSet kafka-controller": ""}), "Names", F, "Residue",
        "StatefulSet kafka-controller exists"),
    Bad("volumes of earlier controllers", kubernetes(controller_claims=("data-kafka-controller-0",)), "Names", F,
        "Residue", "data-kafka-controller-0"),
    # who is who
    Bad("a pod that no broker registers for", registered(1, "10.0.0.7"), "Membership", W, "BrokersNotIdentified", "kafka-1"),
    Bad("two brokers that register for one pod", registered(7, "kafka-1.elsewhere"), "Membership", W, "BrokersNotIdentified",
        "kafka-1"),
    Bad("a pod that says it is another's broker", both(registered(1, "10.0.0.7"), told("kafka-1", 2)), "Membership", W,
        "BrokersNotIdentified", "pods kafka-1 and kafka-2 both seem to be broker 2"),
    Bad("brokers at their pods' addresses, which no Secret names", both(at_its_pod(1), login), "Addresses", F,
        "AddressesChange", "StatefulSet kafka advertise pod addresses at kafka:9092"),
    Bad("a Secret, and no broker that tells where they are", both(login, lambda picture: with_fact(picture, "views", {})),
        "Addresses", U, "BrokerSilent", "no broker answered a Metadata request"),
    Bad("a broker that is no pod of ours", registered(7, "kafka-7.elsewhere"), "Membership", F, "UnknownBroker", "broker 7"),
    Bad("a controller with a broker's id", wanted(controllers={"storage": {"size": "1Gi"}, "firstNodeId": 2}), "NodeIds",
        F, "NodeIdTaken", "2"),
    Bad("a dead broker in an assignment", topics(topics={"orders": ZooKeeperTopic("id", {0: (0, 1, 9)})}), "Membership", F,
        "DeadBrokerInAssignment", "orders-0 is assigned to broker 9"),
    Bad("a topic whose node lost its id", lost("orders"), "TopicIds", F, "TopicWithoutId", "orders has lost its topic_id"),
    Bad("a topic that nobody knows by an id", both(lost("orders"), ids({})), "TopicIds", F, "TopicWithoutId",
        "orders 1 topics have no topic_id, and no broker serves them by one"),
    Bad("a topic that got another id in ZooKeeper", topics(topics={"orders": ZooKeeperTopic("another", {0: (0, 1, 2)})}),
        "TopicIds", W, "TopicIdDiffers", "another topic_id in ZooKeeper"),
    Bad("a topic whose logs have another id", ids({"orders": "topicIdAAAA"}, 2, others={"orders": 1}), "TopicIds", F,
        "TopicIdDiffers", "on the disks of broker 2"),
    Bad("brokers that do not agree on an id", ids({"orders": "another"}, 1), "TopicIds", W, "TopicIdDiffers",
        "by several ids"),
    Bad("a broker that does not tell of its logs", ids({"orders": "topicIdAAAA"}, 1, silent=frozenset({"orders"})),
        "TopicIds", U, "NotObserved", "broker 1 does not report whether its logs of orders"),
    Bad("a node that cannot be parsed", topics(malformed=("/config/users/bob: no JSON",)), "Topics", F, "MalformedNode",
        "/config/users/bob"),
    Bad("a topic that is being deleted", topics(pending_deletes=("old",)), "Topics", W, "PendingDeletes", "old"),
    Bad("a reassignment under way", topics(reassigning=True), "Topics", W, "Reassigning", "reassign"),
    # versions
    Bad("a broker of another version", lambda picture: spoil_each(
        picture, "answers", lambda told: replace(told, api_keys={**told.api_keys, 1: 16}), 1), "Versions", F,
        "WrongKafkaVersion", "broker 1 (kafka-1) is older than Kafka 3.9"),
    Bad("a broker with the migration flag",
        lambda picture: spoil_each(picture, "answers", lambda _: answer(Mode.MIGRATION), 2),
        "Versions", F, "NotInZooKeeperMode", "kafka-2"),
    Bad("a broker on KRaft", lambda picture: spoil_each(picture, "answers", lambda _: answer(Mode.KRAFT), 0), "Versions", F,
        "NotInZooKeeperMode", "kafka-0"),
    Bad("a broker with another inter.broker.protocol.version", protocol("3.8-IV0", 1), "Versions", F,
        "ProtocolVersionsDiffer", "broker 1"),
    Bad("a protocol version too old to be raised", protocol("2.7-IV2"), "Versions", F, "ProtocolVersionUnsupported", "3.6"),
    Bad("a broker that does not answer", lambda picture: with_fact(
        picture, "answers", {**picture.facts.answers, 1: Unknown("no answer within 3 s")}), "Versions", U, "BrokerSilent",
        "kafka-1"),
    Bad("an upgrade to the image that runs", both(wanted(upgrade={"image": "kafka"}), lambda picture: spoil_each(
        picture, "answers", lambda told: replace(told, api_keys={**told.api_keys, 1: 16}), 1)), "Versions", F,
        "UpgradeChangesNothing", "is the image that kafka-1 runs"),
    # health
    Bad("a replica out of sync", lambda picture: spoil_each(picture, "views", lambda view: changed(
        view, lambda each: replace(each, isr=(0, 2)) if each.index == 0 else each), 1),
        "Health", W, "OutOfSync", "orders-0"),
    Bad("a topic with one replica", replicas("logs", 1), "Health", F, "TopicCannotSpareABroker", "logs"),
    Bad("a topic that needs all its replicas", lambda picture: with_fact(picture, "min_insync", Known({"orders": 3}, NOW)),
        "Health", F, "TopicCannotSpareABroker", "orders"),
    Bad("a topic whose minimum nobody tells", lambda picture: with_fact(picture, "min_insync", Known({}, NOW)), "Health", U,
        "NotObserved", "orders"),
]

# The controllers' listener, and who may do what on it.
BAD += [
    Bad("a Secret that is not there", listener("SSL", "Secret keys does not exist"), "ListenerUsable", F,
        "ListenerCredentialsUnusable", "Secret keys does not exist"),
    Bad("SCRAM between controllers", listener("SASL_SSL", {**TLS, "sasl.mechanism": "SCRAM-SHA-512"}),
        "ListenerUsable", F, "ScramOnControllers", "sasl.mechanism SCRAM-SHA-512"),
    Bad("a certificate for one controller alone", listener("SSL", {**TLS, CHAIN: certificate("one-name")}),
        "ListenerUsable", F, "CertificateLacksNames", "kafka-controller-1.kafka-controller.kafka.svc"),
    Bad("a certificate that is over", listener("SSL", {**TLS, CHAIN: certificate("expired")}),
        "ListenerUsable", F, "ListenerCredentialsUnusable", "is valid from"),
    Bad("a certificate for servers alone", listener("SSL", {**TLS, CHAIN: certificate("server-only")}),
        "ListenerUsable", F, "ListenerCredentialsUnusable", "not issued for client_auth"),
    Bad("encrypted brokers, and a plain listener of the controllers", between_brokers("SSL"),
        "ListenerAsSecure", F, "WeakerControllers", "no encryption (PLAINTEXT), and"),
    Bad("brokers with passwords, and a plain listener of the controllers", between_brokers("SASL_PLAINTEXT"),
        "ListenerAsSecure", F, "WeakerControllers", "no authentication (PLAINTEXT)"),
    Bad("brokers with certificates", between_brokers("SSL", **{"listener.name.internal.ssl.client.auth": "required"}),
        "ListenerAsSecure", F, "WeakerControllers", "no authentication and no encryption"),
    Bad("encrypted brokers, and passwords in clear between controllers", both(
        listener("SASL_PLAINTEXT", PLAIN), between_brokers("SASL_SSL")),
        "ListenerAsSecure", F, "WeakerControllers", "no encryption (SASL_PLAINTEXT)"),
    Bad("a listener of the brokers that is in no map", between_brokers("x"),
        "ListenerAsSecure", U, "SettingsUnknown", "inter-broker listener"),
    Bad("a clock that nobody tells", examined("ahead", Unknown("no answer")), "Clocks", U, "KubernetesUnknown", "clock"),
    Bad("an image of another repository", wanted(controllers={
        "storage": {"size": "1Gi"}, "template": {"image": "evil/kafka:3.9.2"}}), "ImageAllowed", F, "ImageNotAllowed",
        "spec.controllers.template.image"),
    *(Bad(f"controllers with {what}", wanted(controllers={"storage": {"size": "1Gi"}, "template": given}), "ImageAllowed", F,
          "PodChangeNotAllowed", f"the chart's allow.{what} does not list: {name}") for what, given, name in (
              ("annotations", {"annotations": {"iam.amazonaws.com/role": "admin"}}, "iam.amazonaws.com/role"),
              ("labels", {"labels": {"azure.workload.identity/use": "true"}}, "azure.workload.identity/use"),
              ("pods", {"tolerations": [{"operator": "Exists"}]}, "tolerateAll"))),
    Bad("an authorizer that is not Kafka's", classes({"authorizer.class.name": "com.example.Audited"}, 1), "Classes", F,
        "ForeignAuthorizer", "authorizer.class.name of broker 1 is com.example.Audited, not Kafka's own: it will run on"
        " brokers and controllers"),
    Bad("an authorizer, and nobody known to the controllers", ACLS, "NodesAuthorized", F, "ControllersNotAuthorized",
        "User:ANONYMOUS"),
    Bad("an authorizer of one broker alone", static({"authorizer.class.name": AUTHORIZER}, 2), "NodesAuthorized", F,
        "ControllersNotAuthorized", "broker 2 has an authorizer and no super.users"),
    Bad("an authorizer, and a user", both(listener("SASL_PLAINTEXT", PLAIN), ACLS), "NodesAuthorized", F,
        "ControllersNotAuthorized", "User:kafka"),
    Bad("an authorizer, and a certificate", both(listener("SSL", TLS), ACLS), "NodesAuthorized", F,
        "ControllersNotAuthorized", r"User:CN=controllers,OU=Kafka,O=Shop\, Inc.,C=DE"),
    Bad("an authorizer, and a certificate whose name only Kafka can make", both(both(listener("SSL", TLS), ACLS), static(
        {"principal.builder.class": "org.example.Builder"})), "NodesAuthorized", F, "ControllersNotAuthorized",
        "the principal of the controllers' certificate or user"),
]


def test_a_weaker_listener_is_accepted_by_name_only() -> None:
    picture = both(wanted(acceptedRisks=["WeakerControllers"]), between_brokers("SASL_SSL"))(moment("Preflight"))
    verdict = check("ListenerAsSecure", picture)
    assert verdict.outcome is Outcome.PASS
    assert [finding.reason for finding in verdict.findings] == ["WeakerControllers"]


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SSL", "SASL_PLAINTEXT", "PLAINTEXT"])
def test_certificates_are_as_secure_as_anything(protocol: str) -> None:
    picture = both(listener("SSL", TLS), between_brokers(protocol))(moment("Preflight"))
    assert not check("ListenerAsSecure", picture).findings


def test_nobody_is_told_to_make_everybody_a_super_user() -> None:
    verdict = check("NodesAuthorized", ACLS(moment("Preflight")))
    assert verdict.unblocks == "secure the controllers' listener with credentials of a super user"


# Who else is there, and what is in the way of an eviction.
BAD += [
    Bad("another operator's StatefulSet", workload(owner="Kafka my-cluster"), "Ownership", F, "OwnedByAnotherOperator",
        "Kafka my-cluster"),
    Bad("Flux that would put everything back", workload(marks=FLUX), "Ownership", F, "GitOpsConflict",
        "Flux Kustomization flux-system/kafka"),
    Bad("Flux's mark that is not in Git", workload(marks={**FLUX, gitops.FLUX_SSA: "IfNotPresent"}, managers=(
        Manager("kustomize-controller", "Apply", "", NOW, frozenset({"mounts"})),)), "Ownership", F, "GitOpsConflict",
        "Flux Kustomization flux-system/kafka"),
    Bad("a budget of the whole namespace", workload(selectors=WIDE), "ControllersBudget", F, "SeveralBudgets",
        "PodDisruptionBudget all would select the controllers"),
    Bad("data in the container", disks(LogDirectory("/opt/more", offline=False)), "BrokerVolumes", F, "BrokerDataIsVolatile",
        "/opt/more of StatefulSet kafka lies on the container's own file system"),
    Bad("two budgets of the next pods", workload(budgets=("kafka", "everything")), "Budgets", F, "SeveralBudgets",
        "the next pods of StatefulSet kafka have more than one PodDisruptionBudget (kafka, everything)"),
    Bad("two budgets of one pod", lambda picture: spoil_pod(picture, "kafka-1", budgets=("kafka", "kafka-1")), "Budgets", F,
        "SeveralBudgets", "pod kafka-1 has more than one PodDisruptionBudget (kafka, kafka-1)"),
    Bad("a budget that allows nothing", workload(strict_budgets=("kafka",)), "Budgets", F, "BudgetAllowsNothing",
        "PodDisruptionBudget kafka"),
    Bad("a metadata log in the container", static({"metadata.log.dir": "/opt/metadata"}, 1), "BrokerVolumes", F,
        "BrokerDataIsVolatile", "/opt/metadata of StatefulSet kafka"),
    *(Bad(f"data on a volume of kind {kind}", on_a_volume(**{kind: {}}), "BrokerVolumes", F, "BrokerDataIsVolatile",
          f"/var/lib/kafka/data of StatefulSet kafka lies on a volume of kind {kind}")
      for kind in ("emptyDir", "ephemeral", "csi", "flexVolume", "configMap", "kindOfTomorrow")),
]

# What is asked in Preflight alone.
BAD += [
    Bad("a reading that is refused", lambda picture: with_fact(
        picture, "min_insync", Unknown("our user needs DESCRIBE_CONFIGS", refused=True)), "Readable", F, "ReadingRefused",
        "DESCRIBE_CONFIGS"),
    Bad("topics that our user may not read", unknown_ids("grant it Read on topic orders", refused=True), "Readable", F,
        "ReadingRefused", "logs of broker 1 grant it Read on topic orders"),
    Bad("a broker that does not tell of its logs in time", unknown_ids("no answer"), "TopicIds", U, "BrokerSilent",
        "broker 1: no answer"),
    Bad("rights that are missing in Kubernetes", examined("missing_rights", ("create pods/eviction", "patch secrets")),
        "KubernetesRights", F, "KubernetesRightMissing", "create pods/eviction, patch secrets"),
    Bad("rights in Kubernetes that nobody tells", examined("missing_rights", Unknown("no answer")), "KubernetesRights", U,
        "NotObserved", "rights"),
    Bad("a user who may not read the metadata log", told_by_brokers(
        lambda told: replace(told, operations=frozenset({"DESCRIBE"})), 2), "KafkaRights", F, "KafkaRightMissing",
        "on broker 2 Switchover's user may not DESCRIBE_CONFIGS or CLUSTER_ACTION"),
    Bad("ZooKeeper rights that are missing", examined("zookeeper_rights", NO_READ), "ZooKeeperRights", F,
        "ZooKeeperRightMissing", "the ACL of / "),
    Bad("ZooKeeper rights that nobody tells", examined("zookeeper_rights", Unknown("no answer")), "ZooKeeperRights", U,
        "ZooKeeperUnknown", "rights"),
    Bad("a password that cannot be compared", examined("malformed", {
        "/config/brokers/1": SecretNotKnown("encrypted, and password.encoder.secret is not known")}), "Parse", F,
        "EncoderSecretMissing", "/config/brokers/1"),
    Bad("a quota that is no number", examined("malformed", {"/config/users/bob": "producer_byte_rate is not a number"}),
        "Parse", F, "MalformedNode", "/config/users/bob"),
    Bad("a tree that is being read", examined("malformed", Unknown("ZooKeeper's metadata is being read")), "Parse", U,
        "ZooKeeperUnknown", "metadata"),
    Bad("brokers of another cluster", lambda picture: spoil_each(
        picture, "views", lambda view: replace(view, cluster_id="another"), 1), "OneCluster", F, "ClusterIdsDiffer",
        "broker 1 belongs to cluster another"),
    Bad("a log directory that would be a directive of its own", lambda picture: spoil_each(
        picture, "broker_settings", lambda told: {**told, "log.dirs": "/d\nset a=b"}, 0), "EditsCanBeWritten", F,
        "EditsCannotBeWritten", "StatefulSet kafka: log.dirs is '/d\\nset a=b', and must be one line"),
    Bad("a Service with the controllers' name", examined("objects", {"Service kafka-controller": ""}), "Names", F, "Residue",
        "Service kafka-controller"),
    Bad("our own Secret of an earlier attempt", examined("objects", {"Secret kafka-controller-switchover": "switchover"}),
        "Names", F, "Residue", "Secret kafka-controller-switchover"),
    Bad("somebody's Secret with our name", examined("objects", {"Secret kafka-switchover": "Helm"}), "Names", F, "NameTaken",
        "Secret kafka-switchover"),
    Bad("a storage class that does not exist", wanted(controllers={"storage": {"size": "1Gi", "storageClassName": "fast"}}),
        "Storage", F, "StorageClassMissing", "fast"),
    Bad("storage classes that nobody tells", examined("storage_classes", Unknown("no answer")), "Storage", U, "NotObserved",
        "storage classes"),
    Bad("no default storage class", examined("storage_classes", StorageClasses(frozenset({"a"}), "")), "Storage", F,
        "StorageClassMissing", "default"),
    Bad("a policy that refuses the change", dry_run(Unknown("admission webhook says no", refused=True)), "TemplateChange", F,
        "ChangeRefused", "admission webhook says no"),
    Bad("a dry run that failed", dry_run(Unknown("no answer")), "TemplateChange", U, "NotObserved", "no answer"),
    Bad("a webhook that undoes the change", dry_run(None), "TemplateChange", F, "ChangeUndone", "strategy"),
    Bad("an offline disk", disks(LogDirectory("/a", offline=True)), "Disks", F, "LogDirOffline",
        "log directory /a of broker 1"),
    Bad("many disks and an old protocol", lambda picture: disks(*TWO)(protocol("3.6-IV2")(picture)), "Disks", F,
        "JbodNeedsNewerProtocol", "broker 1"),
    Bad("a protocol version within a release", protocol("3.7-IV1"), "Versions", F, "ProtocolVersionUnsupported", "3.7-IV4"),
    Bad("two topics with one id", topics(topics={name: ZooKeeperTopic("id", {0: (0, 1, 2)}) for name in ("orders", "copy")}),
        "Topics", F, "TopicsShareAnId", "topics copy, orders have the same topic_id"),
    Bad("a topic that our user may not see", topics(topics={"secret": ZooKeeperTopic("id", {0: (0, 1, 2)})}), "TopicsSeen",
        W, "TopicsHidden", "secret"),
    Bad("a broker that tells nothing of itself", lambda picture: with_fact(picture, "examination", replace(
        picture.facts.examination, brokers={})), "Configuration", U, "BrokerSilent", "broker 0 was not asked"),
]

@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.what)
def test_bad_input_is_refused_in_words(bad: Bad):
    verdict = check(bad.gate, bad.spoil(moment("Preflight")))
    assert (verdict.outcome, verdict.reason) == (bad.outcome, bad.reason), verdict.message
    assert bad.told in f"{verdict.subject} {verdict.message} {verdict.threshold}"
    assert verdict.unblocks, "a refusal says what to do"


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.what)
def test_no_other_gate_breaks_on_bad_input(bad: Bad):
    picture = bad.spoil(moment("Preflight"))
    for gate in preflight.GATES:
        assert gate.check(picture).message


# What is told and shuts nothing: (what, change, gate, severity, code).
TOLD = [
    ("client properties that take any name", lambda picture: with_fact(picture, "unchecked", Known(("kafka-client",), NOW)),
     "HostsChecked", Severity.WARNING, "HostsUnchecked"),
    ("a listener whose nodes take any name", listener("SSL", TLS | {"ssl.endpoint.identification.algorithm": ""}),
     "HostsChecked", Severity.WARNING, "HostsUnchecked"),
    ("an API server whose clock is ahead", examined("ahead", 61.0), "Clocks", Severity.WARNING, "ClocksApart"),
    ("an API server whose clock is behind", examined("ahead", -5.5), "Clocks", Severity.WARNING, "ClocksApart"),
    ("a broker whose clock is behind", lambda picture: spoil(picture, "zookeeper", ahead={1: 0.2, 2: -3600.0}), "Clocks",
     Severity.WARNING, "ClocksApart"),
    ("a protocol version that is raised", protocol("2.8-IV1"), "Versions", Severity.WARNING, "ProtocolVersionIsRaised"),
    ("a policy for settings", static({"alter.config.policy.class.name": "org.example.Policy"}, 1), "Features",
     Severity.WARNING, "AlterConfigPolicy"),
    ("a policy of the user's own", classes({"create.topic.policy.class.name": "com.example.Names"}), "Classes",
     Severity.WARNING, "ForeignClass"),
    ("a reporter beside Kafka's own", classes({"metric.reporters": "org.apache.kafka.common.metrics.JmxReporter, a.b.C"}, 2),
     "Classes", Severity.WARNING, "ForeignClass"),
    ("a class that brokers hide", hidden("listener.name.internal.plain.sasl.server.callback.handler.class"), "Classes",
     Severity.WARNING, "ForeignClass"),
    ("an authorizer of the user's own that is accepted", both(wanted(acceptedRisks=["ForeignAuthorizer"]), classes(
        {"authorizer.class.name": "com.example.Audited"})), "Classes", Severity.WARNING, "ForeignClass"),
    ("delegation tokens", hidden("delegation.token.secret.key", 1), "Features", Severity.INFO, "DelegationTokens"),
    ("a topic with one replica that the user accepts", lambda picture: replicas("logs", 1)(
        wanted(gates={"acceptedTopics": ["logs"]})(picture)), "Health", Severity.WARNING, "TopicStandsStill"),
    ("nodes that may not be read", lambda picture: spoil_pod(picture, "kafka-1", cordoned=None), "NodesSeen",
     Severity.WARNING, "NodesUnseen"),
    ("an autoscaler", workload(managers=(written_by("kube-controller-manager", "replicas", subresource="scale"),)),
     "Ownership", Severity.WARNING, "AutoscalerOwnsReplicas"),
    ("Argo CD by its tracking id", workload(marks=ARGO), "Ownership", Severity.WARNING, "GitOpsOwned"),
    ("Argo CD by its label", workload(marks={"app.kubernetes.io/instance": "streaming"}, managers=(
        written_by("argocd-controller", "mounts"),)), "Ownership", Severity.WARNING, "GitOpsOwned"),
    ("a HelmRelease of Flux", workload(marks=FLUX_HELM), "Ownership", Severity.WARNING, "GitOpsOwned"),
    ("Flux that was told in capitals", workload(marks={**FLUX, "kustomize.toolkit.fluxcd.io/ssa": "IGNORE"}), "Ownership",
     Severity.INFO, "GitOpsTolerates"),
    ("Flux that was told", workload(marks={**FLUX, "kustomize.toolkit.fluxcd.io/reconcile": "disabled"}), "Ownership",
     Severity.INFO, "GitOpsTolerates"),
    ("Flux that makes it once, as Git says", workload(marks={**FLUX, gitops.FLUX_SSA: "IfNotPresent"}, managers=(
        Manager("kustomize-controller", "Apply", "", NOW, frozenset({"mounts", gitops.FLUX_SSA})),)), "Ownership",
     Severity.INFO, "GitOpsTolerates"),
    ("Wave", workload(marks={"wave.pusher.com/update-on-config-change": "true"}), "Ownership", Severity.WARNING,
     "TemplateRewritten"),
    ("Reloader", workload(marks={"reloader.stakater.com/auto": "true"}), "Ownership", Severity.WARNING, "TemplateRewritten"),
    ("Reloader for one Secret", workload(marks={"secret.reloader.stakater.com/reload": "kafka-users"}), "Ownership",
     Severity.WARNING, "TemplateRewritten"),
    ("Rancher's Fleet", workload(marks={
        "meta.helm.sh/release-name": "kafka", "objectset.rio.cattle.io/id": "default-kafka"}), "Ownership",
     Severity.WARNING, "GitOpsOwned"),
    ("a HelmRelease that was told", workload(marks={**FLUX_HELM, "helm.toolkit.fluxcd.io/driftDetection": "disabled"}),
     "Ownership", Severity.INFO, "GitOpsTolerates"),
    ("Helm", workload(marks={"meta.helm.sh/release-name": "kafka"}), "Ownership", Severity.INFO, "HelmOwned"),
    ("a chart of Bitnami's, which will have controllers of that name", lambda picture: container(image="bitnami/kafka:3.9")(
        workload(marks={"meta.helm.sh/release-name": "kafka"})(picture)), "NamesOfCharts", Severity.WARNING,
     "NameOfTheChart"),
    ("kubectl", workload(managers=(written_by("kubectl-client-side-apply", "mounts", "strategy"),)), "Ownership",
     Severity.INFO, "WrittenBefore"),
    ("a ZooKeeper server alone", lambda picture: with_fact(picture, "examination", replace(
        picture.facts.examination, zookeeper_modes={"zookeeper:2181": Known("standalone", NOW)})), "Ensemble",
     Severity.WARNING, "SingleZooKeeper"),
    ("a ZooKeeper server that answers srvr with other words", lambda picture: with_fact(picture, "examination", replace(
        picture.facts.examination, zookeeper_modes={"zookeeper:2181": Unknown("it is forbidden", refused=True)})),
     "Ensemble", Severity.WARNING, "ZooKeeperTellsNothing"),
    ("a low epoch", lambda picture: picture, "Ensemble", Severity.INFO, "LowControllerEpoch"),
    ("a right that an address may give", examined("zookeeper_rights", replace(NO_READ, unjudged={"/": ("ip",)})),
     "ZooKeeperRights", Severity.WARNING, "ZooKeeperRightUnsure"),
    ("ids that were generated once", zookeeper(generated_ids=True), "BrokerIds", Severity.INFO, "IdsWereGenerated"),
    ("a replication that differs", static({"default.replication.factor": "2"}, 1), "BrokersAlike", Severity.WARNING,
     "BrokersDiffer"),
    ("a setting that the others have not", static({"unclean.leader.election.enable": "true"}, 2), "BrokersAlike",
     Severity.WARNING, "BrokersDiffer"),
    ("super users of some brokers alone", hidden("super.users", 0, 2), "BrokersAlike", Severity.WARNING, "BrokersDiffer"),
    ("super users whom only Kafka knows", both(ACLS, hidden("super.users")), "NodesAuthorized", Severity.WARNING,
     "SuperUsersHidden"),
    ("everyone allowed where no ACL is", both(ACLS, hidden("allow.everyone.if.no.acl.found")), "NodesAuthorized",
     Severity.WARNING, "SuperUsersHidden"),
    ("the script that starts Kafka", lambda picture: picture, "StartScripts", Severity.INFO, "StartScript"),
    ("a storage class that cannot be seen", examined("storage_classes", Unknown("forbidden", refused=True)), "Storage",
     Severity.INFO, "StorageClassUnseen"),
    ("a pod that waits for ZooKeeper", pod_spec(initContainers=[
        {"name": "wait", "command": ["sh", "-c", "until nc -z zookeeper 2181; do sleep 1; done"]}]), "PodsWithoutZooKeeper",
     Severity.WARNING, "PodsNeedZooKeeper"),
    ("a pod that seems to wait for it", pod_spec(initContainers=[
        {"name": "wait", "command": ["sh", "-c", "until nslookup $ZK_HOST; do sleep 1; done"]}]), "PodsWithoutZooKeeper",
     Severity.WARNING, "PodsMayNeedZooKeeper"),
    ("a group to watch that has no members", without_members, "WatchedGroups", Severity.WARNING, "GroupHasNoMembers"),
    ("no readiness probe", container(readinessProbe=None), "Probes", Severity.WARNING, "NoReadinessProbe"),
    ("a pod without a budget", lambda picture: spoil_pod(picture, "kafka-1", budgets=()), "Budgets", Severity.WARNING,
     "NoBudget"),
    ("data on a node", on_a_volume(hostPath={"path": "/data"}), "BrokerVolumes", Severity.WARNING, "BrokerDataIsOnANode"),
    ("a group of old consumers", with_old_groups("pay"), "ZooKeeperGroups", Severity.WARNING, "ZooKeeperGroup"),
    ("a group without members that committed lately", examined("idle_groups", IdleGroups({"pay": NOW - 7200})),
     "ZooKeeperGroups", Severity.WARNING, "IdleZooKeeperGroup"),
    ("groups that one sweep had no room for", examined("idle_groups", IdleGroups({}, 312)), "ZooKeeperGroups",
     Severity.INFO, "IdleGroupsUnread"),
    ("the size of the metadata", lambda picture: picture, "Topics", Severity.INFO, "MetadataSize"),
]


@pytest.mark.parametrize(("change", "gate", "severity", "code"), [told[1:] for told in TOLD], ids=[told[0] for told in TOLD])
def test_what_shuts_nothing_is_told(change, gate, severity, code):
    verdict = check(gate, change(moment("Preflight")))
    assert verdict.outcome is Outcome.PASS
    found = [finding for finding in verdict.findings if finding.reason == code]
    assert [(finding.severity, bool(finding.message)) for finding in found] == [(severity, True)]


def test_what_shuts_nothing_is_not_found_where_it_is_not():
    picture = moment("Preflight")
    codes = {finding.reason for gate in preflight.GATES for finding in gate.check(picture).findings}
    assert codes == {"MetadataSize", "LowControllerEpoch", "StartScript"}


@pytest.mark.parametrize("selector", [{}, {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}])
def test_what_takes_the_controllers_out_of_a_wide_budget_is_printed(selector):
    [found] = check("ControllersBudget", workload(selectors={"all": selector})(moment("Preflight"))).findings
    kubectl = shlex.split(found.unblocks)
    assert kubectl[:6] == ["kubectl", "--namespace", "kafka", "patch", "poddisruptionbudget", "all"]
    patched = {**selector, **json.loads(kubectl[-1])["spec"]["selector"]}
    assert check("Budgets", workload(selectors={"all": patched})(moment("Preflight"))).outcome is Outcome.PASS
    assert selects(patched, {"app": "kafka"}), "it goes on guarding the others"


def test_a_broker_at_its_pods_address_is_told_by_itself() -> None:
    """And found again after a restart, as long as no Secret must name where it is."""
    picture = told("kafka-1", 1)(registered(1, "10.0.0.7")(at_its_pod(1)(moment("Preflight"))))
    assert value(picture.broker_pods()) == {"kafka-0": 0, "kafka-1": 1, "kafka-2": 2}
    assert check("Membership", picture).outcome is check("Addresses", picture).outcome is Outcome.PASS
    assert check("Addresses", login(moment("Preflight"))).outcome is Outcome.PASS


def test_every_gate_of_preflight_finds_something():
    assert {bad.gate for bad in BAD} | {told[2] for told in TOLD} == GATES.keys()


# --- all that is found, not the first of it alone -----------------------------------------------------------------------


def test_many_culprits_are_one_finding_that_counts_them():
    twelve = {f"topic-{number:02}": ZooKeeperTopic(None, {0: (0, 1, 2)}) for number in range(12)}
    picture = topics(topics=twelve)(moment("Preflight"))
    assert findings("TopicIds", picture) == [
        ("TopicWithoutId", "topic-00, topic-01, topic-02, topic-03, topic-04 and 7 more")]
    assert check("TopicIds", picture).message.startswith("12 topics")


def test_one_gate_tells_everything_it_finds():
    picture = zookeeper(migration=COPIED, controller=None)(moment("Preflight"))
    assert [subject for _, subject in findings("Residue", picture)] == ["/migration", "/controller"]
    assert check("Residue", picture).reason == "Residue", "the gravest speaks for all: a fail before a wait"


@pytest.mark.parametrize("left", [
    zookeeper(migration=COPIED), zookeeper(controller=ControllerNode(3000, False, 4)),
    examined("objects", {"StatefulSet kafka-controller": ""}), kubernetes(controller_claims=("data-kafka-controller-0",))])
def test_nothing_of_a_quorum_is_to_be_deleted_while_it_runs(left):
    """A status that was cleared after HandOver, or a new object of the name of one that is gone: the quorum is in use."""
    picture = left(moment("Preflight"))
    found = next(item for gate in ("Residue", "Names") for item in check(gate, picture).findings if item.reason == "Residue")
    assert found.unblocks.index("make sure that no KRaft controller runs") < found.unblocks.index("then delete")


@pytest.mark.parametrize(("spoil", "gate", "advice"), [
    (both(kubernetes(brokers={"kafka": None}), examined("stateful_sets", {"kafka-broker": "StatefulSet", "db": ""})),
     "ObjectsExist", "correct spec.brokers[].name (did you mean kafka-broker?), or create it"),
    (kubernetes(brokers={"kafka": None}), "ObjectsExist", "correct spec.brokers[].name, or create it"),
    (both(kubernetes(brokers={"kafka": None}), examined("stateful_sets", {"db": "StatefulSet"})),
     "ObjectsExist", "correct spec.brokers[].name (there are: db), or create it"),
    (wanted(brokers=[{"name": "kafka", "container": "kafak"}]), "ObjectsExist", "(did you mean kafka?)"),
    (workload(claimed_by="uid-of-another"), "ObjectsExist",
     "kubectl --namespace kafka annotate statefulset kafka switchover.dev/claimed-by-"),
    (wanted(controllers={"storage": {"size": "1Gi"}, "firstNodeId": 2}), "NodeIds",
     "set spec.controllers.firstNodeId to 3 or more"),
    (both(replicas("logs", 1), wanted(gates={"acceptedTopics": ["metrics", "log"]})), "Health",
     "spec.gates.acceptedTopics, which has log (did you mean logs?)"),
    (workload(strict_budgets=("budget",)), "Budgets", "kubectl --namespace kafka patch poddisruptionbudget budget "),
])
def test_what_is_known_of_the_way_out_is_in_the_advice(spoil, gate, advice):
    assert advice in next(found.unblocks for found in check(gate, spoil(moment("Preflight"))).findings)


def test_an_accepted_topic_that_is_there_is_not_taken_for_another_one():
    picture = spoil_each(moment("Preflight"), "views", lambda view: changed(
        view, lambda each: replace(each, topic="order", leader=1, replicas=(1,), isr=(1,)) if each.index == 0 else each))
    picture = with_fact(picture, "min_insync", Known({"order": 1, "orders": 1}, NOW))
    (found,) = check("Health", wanted(gates={"acceptedTopics": ["orders"]})(picture)).findings
    assert found.unblocks.endswith("or name it in spec.gates.acceptedTopics")


def test_what_was_found_before_something_unseen_is_told_too():
    picture = kubernetes(controller_claims=("data-0",))(moment("Preflight"))
    picture = examined("objects", Unknown("no answer"))(picture)
    assert check("Names", picture).outcome is F
    assert [finding.outcome for finding in check("Names", picture).findings] == [F, U]


# --- what Preflight must not mind ---------------------------------------------------------------------------------------


FINE: dict[str, tuple[str, Change]] = {
    "keys of the controllers": ("ListenerUsable", listener("SSL", TLS)),
    "classes of Kafka's own": ("Classes", classes({
        "authorizer.class.name": AUTHORIZER, "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
        "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"})),
    "an authorizer of the user's own": ("NodesAuthorized", static({"authorizer.class.name": "org.example.Own"})),
    "listeners of run time that its file has as well": ("Listeners", both(
        static({"advertised.listeners": ADDED, "listeners": ADDED}, 1),
        at_run_time({"advertised.listeners": ADDED, "listeners": ADDED.replace(",", " , ")}, 1))),
    "addresses of run time that are its listeners": ("Listeners", both(
        static({"advertised.listeners": "", "listeners": ADDED}, 1), at_run_time({"advertised.listeners": ADDED}, 1))),
    "a map of run time with the controllers": ("Listeners", at_run_time({
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT, CONTROLLER:SSL"}, 1)),
    "what else is set at run time": ("Listeners", at_run_time({
        "num.io.threads": "9", "leader.replication.throttled.rate": "1000", "listener.name.internal.max.connections": "5"})),
    "our own claim": ("ObjectsExist", workload(claimed_by=moment("Preflight").uid)),
    "our own Lease": ("ClusterIsFree", kubernetes(lease_holder=f"{moment('Preflight').uid}/another-pod")),
    "a Lease of nobody": ("ClusterIsFree", kubernetes(lease_holder="")),
    "a listener whose name begins like the controllers'": (
        "Configuration", static({"listeners": "INTERNAL://:9092,CONTROLLER_OLD://:9095"})),
    "generated ids switched on and ids given": ("BrokerIds", static({"broker.id.generation.enable": "true"})),
    "a protocol version with its -IV": ("Versions", protocol("3.9-IV0")),
    "the oldest protocol version that can migrate": ("Versions", protocol("3.6")),
    "a key that only begins like a marker": ("Configuration", hidden("switchovers.own")),
    "the same with a space after a comma": ("BrokersAlike", static({
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT, CLIENTS:PLAINTEXT"}, 1)),
    "what is each broker's own": ("BrokersAlike", static({"broker.rack": "a", "log.dirs": "/elsewhere"}, 1)),
    "our own Secret for the brokers": ("Names", examined("objects", {"Secret kafka-switchover": "switchover"})),
    "many disks": ("Disks", disks(*TWO)),
    "a storage class that bound claims use": ("Storage", lambda picture: examined(
        "storage_classes", Unknown("no", refused=True))(wanted(
            controllers={"storage": {"size": "1Gi", "storageClassName": "standard"}})(picture))),
    "a label of Helm's that says nothing about Argo CD": ("Ownership", workload(marks={"app.kubernetes.io/instance": "a"})),
    "data on a claim of the pod": ("BrokerVolumes", on_a_volume(persistentVolumeClaim={"claimName": "data"})),
    "data on a network volume": ("BrokerVolumes", on_a_volume(nfs={"server": "filer", "path": "/kafka"})),
    "a topic with one replica that the user accepts": ("Health", lambda picture: replicas("logs", 1)(
        wanted(gates={"acceptedTopics": ["logs"]})(picture))),
    "two replicas of which one is enough": ("Health", replicas("logs", 0, 1)),
}


@pytest.mark.parametrize(("gate", "spoil"), FINE.values(), ids=FINE)
def test_what_does_no_harm_is_let_through(gate, spoil):
    assert check(gate, spoil(moment("Preflight"))).outcome is Outcome.PASS


def test_the_ids_that_brokers_have_are_given_to_them_and_none_is_generated_any_more():
    found = check("BrokerIds", static({"broker.id": ""}, 1, 2)(moment("Preflight")))
    assert found.unblocks.endswith(
        "with broker.id.generation.enable=false and broker.id=1 on kafka-1, broker.id=2 on kafka-2")


def test_how_a_listener_of_run_time_gets_into_the_brokers_configuration_is_printed():
    found = check("Listeners", at_run_time({"listeners": ADDED, "advertised.listeners": ADDED}, 1)(moment("Preflight")))
    assert found.unblocks == (
        f"put listeners={ADDED} and advertised.listeners={ADDED} into the configuration of kafka-1 and restart it; then"
        " kafka-configs.sh --bootstrap-server kafka:9092 --alter --entity-type brokers --entity-name 1 --delete-config"
        " listeners,advertised.listeners")


@pytest.mark.parametrize(("setting", "where"), [
    ("create.topic.policy.class.name", "the controllers"), ("replica.selector.class", "brokers"),
    ("remote.log.storage.manager.class.name", "brokers"), ("principal.builder.class", "brokers and controllers")])
def test_where_a_class_will_run_is_told(setting, where):
    (found,) = check("Classes", classes({setting: "com.example.Own"}, 0, 2)(moment("Preflight"))).findings
    assert found.message == (f"{setting} of broker 0, 2 is com.example.Own, not Kafka's own: it will run on {where} on"
                             " KRaft, without ZooKeeper's settings")


# --- what is told of differences and of the start script ---------------------------------------------------------------


def test_the_first_broker_gives_the_controllers_what_brokers_differ_in():
    odd = static({"min.insync.replicas": "1"}, 2)
    (found,) = check("BrokersAlike", odd(moment("Preflight"))).findings
    assert (found.subject, found.observed, found.threshold) == ("min.insync.replicas", "broker 2: 1", "2")
    assert "the controllers will have that of broker 0" in found.message


def test_of_what_brokers_hide_only_their_having_it_is_told():
    (found,) = check("BrokersAlike", hidden("super.users", 1)(moment("Preflight"))).findings
    assert (found.observed, found.threshold) == ("broker 1: set, to what the broker hides", "not set")
    assert not check("BrokersAlike", hidden("super.users")(moment("Preflight"))).findings


@pytest.mark.parametrize(("spoil", "script"), [
    (lambda picture: picture, "/opt/kafka/bin/kafka-server-start.sh"),
    (container(command=["sh", "-c", "exec /own/kafka-server-start.sh /f"]), "/own/kafka-server-start.sh"),
    (wanted(brokers=[{"name": "kafka", "start": {"preset": "Confluent"}}]), "/usr/bin/kafka-server-start"),
], ids=["of the command", "of a command of the user's", "of the spec"])
def test_the_start_script_that_is_taken_is_told(spoil, script):
    (found,) = check("StartScripts", spoil(moment("Preflight"))).findings
    assert (found.reason, found.observed) == ("StartScript", script)
    assert script in found.message
    assert "spec.brokers[].start" in found.unblocks


@pytest.mark.parametrize(("how", "who"), [
    (both(listener("SASL_PLAINTEXT", PLAIN), ACLS), "User:kafka"),
    (both(listener("SSL", TLS), both(ACLS, static({"ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/U"}))),
     "User:CONTROLLERS"),
])
def test_who_must_be_a_super_user_is_told_by_name(how: Change, who: str):
    (found,) = check("NodesAuthorized", both(how, hidden("super.users"))(moment("Preflight"))).findings
    assert found.threshold == who
    assert f"unless {who}, as which the nodes connect, is a super user" in found.message


@pytest.mark.parametrize("how", [
    ACLS, both(ACLS, hidden("super.users")), both(ACLS, hidden("allow.everyone.if.no.acl.found"))])
def test_nobody_is_advised_to_make_everybody_a_super_user(how: Change):
    """Whoever reaches a PLAINTEXT listener is User:ANONYMOUS."""
    (found,) = check("NodesAuthorized", how(moment("Preflight"))).findings
    assert found.unblocks == "secure the controllers' listener with credentials of a super user"
    assert "User:ANONYMOUS" not in str(found.threshold)
    assert "must be one" not in found.message


# --- what is to be pasted -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("marks", "stanza"), [
    (ARGO, "ignoreDifferences: [{group: apps, kind: StatefulSet, name: kafka, namespace: kafka,"
           " managedFieldsManagers: [switchover]}] and syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}"),
    (FLUX, "kubectl --namespace kafka annotate --overwrite statefulset kafka"
           " kustomize.toolkit.fluxcd.io/reconcile=disabled"),
    (FLUX_HELM, "kubectl --namespace kafka annotate --overwrite statefulset kafka"
                " helm.toolkit.fluxcd.io/driftDetection=disabled"),
])
def test_a_tool_that_would_revert_comes_with_the_stanza_against_it(marks, stanza):
    (finding,) = check("Ownership", workload(marks=marks)(moment("Preflight"))).findings
    assert stanza in finding.unblocks


def test_what_reloads_a_template_is_told_with_what_takes_it_off() -> None:
    (finding,) = check("Ownership", workload(marks={"reloader.stakater.com/auto": "true"})(moment("Preflight"))).findings
    assert finding.unblocks.endswith("kubectl --namespace kafka annotate statefulset kafka reloader.stakater.com/auto-")
    silent = workload(marks={"reloader.stakater.com/auto": "false", "reloader.stakater.com/last-reloaded-from": "{}"})
    assert check("Ownership", silent(moment("Preflight"))).findings == ()


@pytest.mark.parametrize("text", [item.split(" and ")[index] for item in [
    check("Ownership", workload(marks=ARGO)(moment("Preflight"))).findings[0].unblocks] for index in (0, 1)])
def test_argos_stanza_is_yaml(text):
    assert isinstance(yaml.safe_load(text.removesuffix(" in the spec of the Application")), dict)


class _Read:
    """A spec that knows whether its part about the controllers was asked for."""

    def __init__(self, of: KafkaMigrationSpec) -> None:
        self._of, self.asked = of, False

    def __getattr__(self, name: str) -> Any:
        self.asked = self.asked or name == "controllers"
        return getattr(self._of, name)


def test_whatever_looks_at_the_controllers_of_the_spec_looks_again_right_before_they_are_made():
    """Until then the spec may change, and the namespace."""
    asking = set()
    for gate in preflight.GATES:
        picture = moment("Preflight")
        spec = _Read(picture.spec)
        gate.check(replace(picture, spec=spec))
        asking |= {gate.name} if spec.asked else set()
    again = {gate.name for gate in preflight.OF_CONTROLLERS}
    assert asking <= again | {"NamesOfCharts", "EditsCanBeWritten"}, "which only warns, and which RecordHolds goes on asking"
    assert again - asking == {"NodesAuthorized", "Listeners", "Names"}, (
        "asked where there is an authorizer, or a map set at run time; the last looks at what has the names")
    (provision,) = (step for step in PLAN.steps if step.name == "ProvisionControllers")
    assert again <= {gate.name for gate in provision.forward.enter}
