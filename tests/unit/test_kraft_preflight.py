"""Preflight: each kind of bad input is refused in words, by the gate that it concerns, before anything is touched."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from switchover.api.status import Severity
from switchover.api.status import Verdict as Outcome
from switchover.core.gate import Verdict
from switchover.core.kraft import preflight
from switchover.core.kraft.facts import (
    Address,
    ControllerNode,
    MigrationNode,
    ServerConfiguration,
    ZooKeeperTopic,
)
from switchover.core.kraft.overrides import overrides
from switchover.core.kraft.picture import Picture
from switchover.core.observed import Known, Unknown
from unit.pictures import (
    NOW,
    answer,
    moment,
    server_properties,
    spec_of,
    spoil,
    spoil_each,
    spoil_pod,
    spoil_workload,
    value,
    with_fact,
    workload_of,
)

GATES = {gate.name: gate for gate in preflight.GATES}
W, F, U = Outcome.WAIT, Outcome.FAIL, Outcome.UNKNOWN
Change = Callable[[Picture], Picture]


def check(name: str, picture: Picture) -> Verdict:
    return GATES[name].check(picture)


def wanted(**spec: Any) -> Change:
    return lambda picture: replace(picture, spec=spec_of(**spec))


def kubernetes(**changes: object) -> Change:
    return lambda picture: spoil(picture, "kubernetes", **changes)


def configured(text: str, **other_keys: str) -> Change:
    return kubernetes(configurations={"kafka": ServerConfiguration("ConfigMap kafka-config", text, other_keys)})


def appended(line: str) -> Change:
    return configured(f"{server_properties()}\n{line}\n")


def workload(**changes: object) -> Change:
    return lambda picture: spoil_workload(picture, **changes)


def container(**changes: object) -> Change:
    def changed(picture: Picture) -> Picture:
        template = workload_of(picture).template
        containers = [{**template["spec"]["containers"][0], **changes}]
        return spoil_workload(picture, template={**template, "spec": {**template["spec"], "containers": containers}})

    return changed


def by_environment(prefix: str = "KAFKA_") -> Change:
    """The brokers' configuration is a container's variables; what is read from there stays the picture's."""
    return wanted(brokers=[{"name": "kafka", "configuration": {"environment": {"prefix": prefix}}}])


def zookeeper(**changes: object) -> Change:
    return lambda picture: spoil(picture, "zookeeper", **changes)


def topics(**changes: object) -> Change:
    return lambda picture: spoil(picture, "zookeeper_topics", **changes)


def registered(broker: int, host: str) -> Change:
    def changed(picture: Picture) -> Picture:
        brokers = value(picture.facts.zookeeper).brokers
        return spoil(picture, "zookeeper", brokers={**brokers, broker: {"INTERNAL": Address(host, 9092)}})

    return changed


def protocol(version: str, *brokers: int) -> Change:
    return lambda picture: spoil_each(
        picture, "broker_settings", lambda _: {"inter.broker.protocol.version": version}, *brokers)


def replicas(topic: str, *assignment: int) -> Change:
    def changed(view):
        return replace(view, partitions=tuple(
            replace(item, topic=topic, leader=assignment[0], replicas=assignment, isr=assignment)
            for item in view.partitions))

    return lambda picture: with_fact(spoil_each(picture, "views", changed), "min_insync", Known({topic: 1}, NOW))


def both(first: Change, second: Change) -> Change:
    return lambda picture: second(first(picture))


def listener(protocol: str, credentials: dict[str, str] | str) -> Change:
    controllers = {"storage": {"size": "1Gi"},
                   "listener": {"securityProtocol": protocol, "credentialsRef": {"name": "keys"}}}
    return lambda picture: kubernetes(listener_credentials=credentials)(wanted(controllers=controllers)(picture))


def certificate(name: str) -> str:
    return (Path(__file__).parent / "golden" / "certificates" / f"{name}.crt").read_text()


CHAIN = "ssl.keystore.certificate.chain"
TLS = {CHAIN: certificate("wildcard"), "ssl.truststore.certificates": certificate("wildcard"),
       "ssl.keystore.key": "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----"}
PLAIN = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": 'PlainLoginModule required username="kafka" password="p";'}
ACLS = "authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n"


class Bad(NamedTuple):
    """One kind of bad input, and which gate says what of it."""

    what: str
    spoil: Change
    gate: str
    outcome: Outcome
    reason: str
    told: str
    """Words that the subject or the message must contain: the culprit."""


COPIED = MigrationNode(False, 3000, 12, 1, 3, NOW)
EMPTY = MigrationNode(True, -1, -1, -1, 0, NOW)

BAD = [
    # objects
    Bad("a StatefulSet that does not exist", kubernetes(brokers={"kafka": None}), "ObjectsExist", F, "StatefulSetMissing",
        "StatefulSet kafka does not exist in namespace kafka"),
    Bad("a ConfigMap that does not exist", kubernetes(configurations={"kafka": "ConfigMap kafka-config does not exist"}),
        "ObjectsExist", F, "ConfigurationMissing", "ConfigMap kafka-config does not exist"),
    Bad("a key that does not exist",
        kubernetes(configurations={"kafka": "ConfigMap kafka-config has no key server.properties"}),
        "ObjectsExist", F, "ConfigurationMissing", "has no key server.properties"),
    Bad("a StatefulSet that another migration claimed", workload(claimed_by="uid-of-another"), "ObjectsExist", F,
        "ClaimedByAnother", "uid-of-another"),
    Bad("a pod that is not ready", lambda picture: spoil_pod(picture, "kafka-1", ready=False), "ObjectsExist", W,
        "PodsNotReady", "kafka"),
    Bad("a pod that is missing", workload(pods={}), "ObjectsExist", W, "PodsNotReady", "kafka"),
    Bad("a cluster that another migration moves", kubernetes(lease_holder="uid-of-another/operator"), "ClusterIsFree", F,
        "ClusterIsTaken", "another migration"),
    # what this version does not do
    Bad("an automatic rollback", wanted(onFailure="RollBack"), "Supported", F, "NotSupportedYet", "spec.onFailure"),
    # windows
    Bad("a window too short for the canary", wanted(
        windows=[{"name": "night", "cron": "0 1 * * *", "durationSeconds": 240}], rollout={"steps": [
            {"pods": 1, "bakeSeconds": 300}]}), "WindowsFit", F, "NoWindowFits", "CopyMetadata needs 510 s"),
    # templates
    Bad("a container of another name", wanted(brokers=[{
        "name": "kafka", "container": "broker", "configuration": {"configMapRef": {"name": "kafka-config"}}}]),
        "TemplateSupported", F, "TemplateUnsupported", "there is no container broker; the pod has: kafka"),
    Bad("a configuration that is not mounted", container(volumeMounts=[{"name": "data", "mountPath": "/var/lib/kafka"}]),
        "TemplateSupported", F, "TemplateUnsupported", "does not mount ConfigMap kafka-config"),
    Bad("an entrypoint that cannot be wrapped", lambda picture: by_environment()(container(command=[])(picture)),
        "TemplateSupported", F, "TemplateUnsupported", "has no command"),
    Bad("a variable that the command sets", lambda picture: by_environment()(
        container(command=["sh", "-c", "export KAFKA_PROCESS_ROLES=x; exec run"])(picture)), "Configuration", F,
        "OverriddenOnCommandLine", "process.roles"),
    Bad("a property to change that the image has no variable for", lambda picture: by_environment("KAFKA_CFG_")(
        appended("zookeeper.a-b=x")(picture)), "Configuration", F, "TemplateUnsupported", "cannot express"),
    # the configuration itself
    Bad("a file that is none", configured("listeners=\\u00zz"), "Configuration", F, "ConfigurationMalformed",
        "ConfigMap kafka-config"),
    Bad("brokers that run on KRaft already", appended("process.roles=broker"), "Configuration", F, "AlreadyKRaft",
        "process.roles"),
    Bad("a migration begun by hand", appended("zookeeper.metadata.migration.enable=true"), "Configuration", F,
        "MigrationAlreadyConfigured", "begun by hand"),
    Bad("voters given by hand", appended("controller.quorum.voters=1@a:9093"), "Configuration", F,
        "MigrationAlreadyConfigured", "begun by hand"),
    Bad("a listener with the controllers' name", appended("listeners=INTERNAL://:9092,CONTROLLER://:9095"),
        "Configuration", F, "ListenerNameTaken", "CONTROLLER"),
    Bad("broker ids that Kafka generates", lambda picture: container(args=[], command=["start"])(
        appended("broker.id.generation.enable=true")(picture)), "BrokerIds", F, "GeneratedBrokerId", "generate"),
    Bad("a file that is too large", configured("#" * 350_000), "Configuration", F, "ConfigurationTooLarge", "too large"),
    Bad("a file that is too large for many brokers",
        lambda picture: configured("#" * 110_000)(workload(replicas=10)(picture)), "Configuration", F,
        "ConfigurationTooLarge", "too large"),
    Bad("a file that is not what runs", appended("inter.broker.protocol.version=3.8"), "ConfigurationIsLive", F,
        "FileIsNotLive", "inter.broker.protocol.version"),
    # residue
    Bad("/migration of an earlier attempt", zookeeper(migration=COPIED), "Residue", F, "Residue", "its offset is 12"),
    Bad("an empty /migration", zookeeper(migration=EMPTY), "Residue", F, "Residue", "KAFKA-19480"),
    Bad("a /controller that KRaft claimed", zookeeper(controller=ControllerNode(3000, False, 4)), "Residue", F, "Residue",
        "/controller"),
    Bad("nobody who is the controller", zookeeper(controller=None), "Residue", W, "NoController", "/controller"),
    Bad("controllers that exist already", lambda picture: spoil(
        picture, "kubernetes", controllers=replace(workload_of(picture), name="kafka-controller")), "Residue", F, "Residue",
        "StatefulSet kafka-controller exists"),
    Bad("volumes of earlier controllers", kubernetes(controller_claims=("data-kafka-controller-0",)), "Residue", F,
        "Residue", "data-kafka-controller-0"),
    # who is who
    Bad("a pod that no broker registers for", registered(1, "10.0.0.7"), "Membership", W, "BrokersNotIdentified", "kafka-1"),
    Bad("two brokers that register for one pod", registered(7, "kafka-1.elsewhere"), "Membership", W, "BrokersNotIdentified",
        "kafka-1"),
    Bad("a broker that is no pod of ours", registered(7, "kafka-7.elsewhere"), "Membership", F, "UnknownBroker", "broker 7"),
    Bad("a controller with a broker's id", wanted(controllers={"storage": {"size": "1Gi"}, "firstNodeId": 2}), "Membership",
        F, "NodeIdTaken", "2"),
    Bad("a dead broker in an assignment", topics(topics={"orders": ZooKeeperTopic("id", {0: (0, 1, 9)})}), "Membership", F,
        "DeadBrokerInAssignment", "orders-0 is assigned to broker 9"),
    Bad("a topic without an id", topics(topics={"orders": ZooKeeperTopic(None, {0: (0, 1, 2)})}), "Topics", F,
        "TopicWithoutId", "orders"),
    Bad("a node that cannot be parsed", topics(malformed=("/config/users/bob: no JSON",)), "Topics", F, "MalformedNode",
        "/config/users/bob"),
    Bad("a topic that is being deleted", topics(pending_deletes=("old",)), "Topics", W, "PendingDeletes", "old"),
    Bad("a reassignment under way", topics(reassigning=True), "Topics", W, "Reassigning", "reassign"),
    # versions
    Bad("a broker of another version", lambda picture: spoil_each(
        picture, "answers", lambda told: replace(told, api_keys={**told.api_keys, 1: 16}), 1), "Versions", F,
        "WrongKafkaVersion", "kafka-1"),
    Bad("a broker with the migration flag", lambda picture: spoil_each(picture, "answers", lambda _: answer("B"), 2),
        "Versions", F, "NotInZooKeeperMode", "kafka-2"),
    Bad("a broker on KRaft", lambda picture: spoil_each(picture, "answers", lambda _: answer("C"), 0), "Versions", F,
        "NotInZooKeeperMode", "kafka-0"),
    Bad("a broker with another inter.broker.protocol.version", protocol("3.8-IV0", 1), "Versions", F,
        "ProtocolVersionsDiffer", "broker 1"),
    Bad("a protocol version too old to migrate", protocol("3.5-IV2"), "Versions", F, "ProtocolVersionUnsupported", "3.6"),
    Bad("a broker that does not answer", lambda picture: with_fact(
        picture, "answers", {**picture.facts.answers, 1: Unknown("no answer within 3 s")}), "Versions", U, "BrokerSilent",
        "kafka-1"),
    # health
    Bad("a replica out of sync", lambda picture: spoil_each(picture, "views", lambda view: replace(
        view, partitions=(replace(view.partitions[0], isr=(0, 2)),)), 1), "Health", W, "OutOfSync", "orders-0"),
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
    Bad("stores on the command line that must move", both(
        listener("SSL", TLS), container(args=["--override", "ssl.keystore.location=x"])),
        "ListenerUsable", F, "OverriddenOnCommandLine", "ssl.keystore.location"),
    Bad("an authorizer, and nobody known to the controllers", appended(f"{ACLS}super.users=User:kafka"),
        "NodesAuthorized", F, "ControllersNotAuthorized", "User:ANONYMOUS"),
    Bad("an authorizer, and another user", both(
        listener("SASL_PLAINTEXT", PLAIN), appended(f"{ACLS}super.users=User:admin;User:ANONYMOUS")),
        "NodesAuthorized", F, "ControllersNotAuthorized", "User:kafka"),
    Bad("an authorizer, and another certificate", both(
        listener("SSL", TLS), appended(f"{ACLS}super.users=User:CN=controllers")),
        "NodesAuthorized", F, "ControllersNotAuthorized", r"User:CN=controllers,OU=Kafka,O=Shop\, Inc.,C=DE"),
]

# What a command line of the user may override, and what it must not.
BAD += [
    Bad(f"an override of {key}", container(args=["--override", f"{key}=x"]), "Configuration", F, "OverriddenOnCommandLine",
        key)
    for key in ("node.id", "process.roles", "controller.quorum.voters", "controller.listener.names",
                "listener.security.protocol.map", "zookeeper.metadata.migration.enable", "authorizer.class.name")
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.what)
def test_bad_input_is_refused_in_words(bad: Bad):
    verdict = check(bad.gate, bad.spoil(moment("Preflight")))
    assert (verdict.outcome, verdict.reason) == (bad.outcome, bad.reason), verdict.message
    assert bad.told in f"{verdict.subject} {verdict.message} {verdict.threshold}"
    assert verdict.unblocks, "a refusal says what to do"


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.what)
def test_no_other_gate_breaks_on_bad_input(bad: Bad):
    for gate in preflight.GATES:
        assert gate.check(bad.spoil(moment("Preflight"))).message


# What is told and shuts nothing: (what, change, gate, severity, code).
TOLD = [
    ("a policy for settings", appended("alter.config.policy.class.name=org.example.Policy"), "Features", Severity.WARNING,
     "AlterConfigPolicy"),
    ("delegation tokens", appended("delegation.token.secret.key=hidden"), "Features", Severity.INFO, "DelegationTokens"),
    ("a topic with one replica that the user accepts", lambda picture: replicas("logs", 1)(
        wanted(gates={"acceptedTopics": ["logs"]})(picture)), "Health", Severity.WARNING, "TopicStandsStill"),
    ("nodes that may not be read", lambda picture: spoil_pod(picture, "kafka-1", cordoned=None), "NodesSeen",
     Severity.WARNING, "NodesUnseen"),
    ("the size of the metadata", lambda picture: picture, "Topics", Severity.INFO, "MetadataSize"),
]


@pytest.mark.parametrize(("change", "gate", "severity", "code"), [told[1:] for told in TOLD], ids=[told[0] for told in TOLD])
def test_what_shuts_nothing_is_told(change, gate, severity, code):
    verdict = check(gate, change(moment("Preflight")))
    assert verdict.outcome is Outcome.PASS
    found = [finding for finding in verdict.findings if finding.reason == code]
    assert [(finding.severity, bool(finding.message)) for finding in found] == [(severity, True)]
    assert "hidden" not in str(found), "a secret is named by its key alone"


def test_what_shuts_nothing_is_not_found_where_it_is_not():
    codes = {finding.reason for gate in preflight.GATES for finding in gate.check(moment("Preflight")).findings}
    assert codes == {"MetadataSize"}


def test_every_gate_of_preflight_finds_something():
    assert {bad.gate for bad in BAD} | {told[2] for told in TOLD} == GATES.keys()


# --- all that is found, not the first of it alone -----------------------------------------------------------------------


def findings(gate: str, picture: Picture) -> list[tuple[str, str]]:
    return [(finding.reason, finding.subject) for finding in check(gate, picture).findings
            if finding.severity is not Severity.INFO]


def test_many_culprits_are_one_finding_that_counts_them():
    twelve = {f"topic-{number:02}": ZooKeeperTopic(None, {0: (0, 1, 2)}) for number in range(12)}
    picture = topics(topics=twelve)(moment("Preflight"))
    assert findings("Topics", picture) == [
        ("TopicWithoutId", "topic-00, topic-01, topic-02, topic-03, topic-04 and 7 more")]
    assert check("Topics", picture).message.startswith("12 topics")


def test_one_gate_tells_everything_it_finds():
    picture = zookeeper(migration=COPIED, controller=None)(kubernetes(controller_claims=("data-0",))(moment("Preflight")))
    assert [subject for _, subject in findings("Residue", picture)] == ["claim data-0", "/migration", "/controller"]
    assert check("Residue", picture).reason == "Residue", "the gravest speaks for all: a fail before a wait"


def test_what_was_found_before_something_unseen_is_told_too():
    picture = zookeeper(migration=COPIED)(moment("Preflight"))
    picture = with_fact(picture, "kubernetes", Unknown("the API server does not answer"))
    verdict = check("Residue", picture)
    assert verdict.outcome is U
    picture = with_fact(zookeeper(migration=COPIED)(moment("Preflight")), "zookeeper", Unknown("no answer"))
    assert check("Residue", kubernetes(controller_claims=("data-0",))(picture)).outcome is F


# --- what Preflight must not mind ---------------------------------------------------------------------------------------


FINE: dict[str, tuple[str, Change]] = {
    "keys of the controllers": ("ListenerUsable", listener("SSL", TLS)),
    "an authorizer, and a super user": ("NodesAuthorized", lambda picture: listener("SASL_PLAINTEXT", PLAIN)(
        appended(f"{ACLS}super.users=User:admin;User:kafka")(picture))),
    "an authorizer that knows nodes by rules": ("NodesAuthorized", lambda picture: listener("SSL", TLS)(appended(
        f"{ACLS}ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/L\nsuper.users=User:controllers")(picture))),
    "an authorizer of the user's own": ("NodesAuthorized", appended("authorizer.class.name=org.example.Own")),
    "our own claim": ("ObjectsExist", workload(claimed_by=moment("Preflight").uid)),
    "our own Lease": ("ClusterIsFree", kubernetes(lease_holder=f"{moment('Preflight').uid}/another-pod")),
    "a Lease of nobody": ("ClusterIsFree", kubernetes(lease_holder="")),
    "a listener whose name begins like the controllers'": (
        "Configuration", appended("listeners=INTERNAL://:9092,CONTROLLER_OLD://:9095")),
    "generated ids switched on and ids given": ("BrokerIds", appended("broker.id.generation.enable=true")),
    "a protocol version with its -IV": ("Versions", protocol("3.9-IV0")),
    "the oldest protocol version that can migrate": ("Versions", protocol("3.6")),
    "no protocol version in the file": ("ConfigurationIsLive", configured("zookeeper.connect=zookeeper:2181")),
    "a topic with one replica that the user accepts": ("Health", lambda picture: replicas("logs", 1)(
        wanted(gates={"acceptedTopics": ["logs"]})(picture))),
    "two replicas of which one is enough": ("Health", replicas("logs", 0, 1)),
}


@pytest.mark.parametrize(("gate", "spoil"), FINE.values(), ids=FINE)
def test_what_does_no_harm_is_let_through(gate, spoil):
    assert check(gate, spoil(moment("Preflight"))).outcome is Outcome.PASS


def test_every_pod_needs_its_own_copy_of_the_file():
    just_fits = configured("#" * 300_000)
    assert check("Configuration", just_fits(moment("Preflight"))).outcome is Outcome.PASS
    assert check("Configuration", just_fits(workload(replicas=4)(moment("Preflight")))).reason == "ConfigurationTooLarge"


# --- overrides on the command line --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "found"), [
    ({"args": ["--override", "broker.id=1"]}, {"broker.id": "1"}),
    ({"args": ["--override=broker.id=1"]}, {"broker.id": "1"}),
    ({"command": ["bash", "-c", "exec start server.properties --override a=1 --override b=x=y"]}, {"a": "1", "b": "x=y"}),
    ({"command": ["sh", "-c", "start \\\n  --override \\\n  a=1"]}, {"a": "1"}),
    ({"command": ["sh", "-c", "start \\\n  --override 'a=1' \\\n  --override \"b=2\""]}, {"a": "1", "b": "2"}),
    ({"args": ["server.properties", "--override"]}, {}),
    ({"args": ["node.id=1"]}, {}),
    ({}, {}),
], ids=str)
def test_overrides_are_found_wherever_they_stand(given, found):
    assert overrides(given) == found


def test_the_demo_overrides_what_it_may():
    assert overrides(workload_of(moment("Preflight")).template["spec"]["containers"][0]).keys() == {
        "broker.id", "advertised.listeners"}
