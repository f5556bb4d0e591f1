"""Pictures of Preflight in which something is wrong, and what its gates say of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fakes.views import changed as changed_view
from switchover.answers.observed import Known, Unknown
from switchover.api.status import Severity
from switchover.cluster import preflight
from switchover.cluster.picture import Picture
from switchover.engine.gate import Verdict
from switchover.kafka.node import BrokerExamination, LogDirectory, TopicIds
from switchover.kubernetes.workloads import Manager
from switchover.network.addresses import Address
from switchover.zookeeper.nodes import MigrationNode, ZooKeeperGroup, ZooKeeperRights, ZooKeeperTopic
from unit.kraft_spoilers import container
from unit.pictures import NOW, spec_of, spoil, spoil_each, spoil_pod, spoil_workload, value, with_fact, workload_of

GATES = {gate.name: gate for gate in preflight.GATES}
Change = Callable[[Picture], Picture]


def check(name: str, picture: Picture) -> Verdict:
    return GATES[name].check(picture)


def findings(gate: str, picture: Picture) -> list[tuple[str, str]]:
    return [(finding.reason, finding.subject) for finding in check(gate, picture).findings
            if finding.severity is not Severity.INFO]


def wanted(**spec: Any) -> Change:
    return lambda picture: replace(picture, spec=spec_of(**spec))


def both(first: Change, second: Change) -> Change:
    return lambda picture: second(first(picture))


def login(picture: Picture) -> Picture:
    return wanted(kafka={"bootstrapServers": "kafka:9092", "credentialsRef": {"name": "login"}})(picture)


def protocol(version: str, *brokers: int) -> Change:
    return lambda picture: spoil_each(
        picture, "broker_settings", lambda _: {"inter.broker.protocol.version": version}, *brokers)


# --- what is in Kubernetes ----------------------------------------------------------------------------------------------

MOUNTED_ELSEWHERE = [{"name": "config", "mountPath": "/etc/kafka"}, {"name": "scratch", "mountPath": "/var/lib/kafka"}]
FLUX = {"kustomize.toolkit.fluxcd.io/name": "kafka", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
FLUX_HELM = {"helm.toolkit.fluxcd.io/name": "kafka", "helm.toolkit.fluxcd.io/namespace": "flux-system"}
ARGO = {"argocd.argoproj.io/tracking-id": "streaming:apps/StatefulSet:kafka/kafka"}
WIDE = {"all": {}, "kafka": {"matchLabels": {"app": "kafka"}},
        "data": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}


def kubernetes(**changes: object) -> Change:
    return lambda picture: spoil(picture, "kubernetes", **changes)


def workload(**changes: object) -> Change:
    return lambda picture: spoil_workload(picture, **changes)


def written_by(name: str, *parts: str, subresource: str = "", at: float = NOW) -> Manager:
    return Manager(name, "Update", subresource, at, frozenset(parts))


def on_a_volume(**kind: object) -> Change:
    """The brokers' data lies on a volume of the pod."""
    def changed(picture: Picture) -> Picture:
        picture = container(volumeMounts=MOUNTED_ELSEWHERE)(picture)
        template = workload_of(picture).template
        volumes = [*template["spec"]["volumes"], {"name": "scratch", **kind}]
        return spoil_workload(picture, template={**template, "spec": {**template["spec"], "volumes": volumes}})

    return changed


def dry_run(result: Unknown | None) -> Change:
    """The dry run of the template change: an answer that is none, or an admission that keeps the old strategy."""
    def changed(picture: Picture) -> Picture:
        known = picture.facts.examination.template_changes["kafka"]
        told = result or replace(known, value=replace(known.value, update_strategy={"type": "RollingUpdate"}))
        return with_fact(picture, "examination", replace(picture.facts.examination, template_changes={"kafka": told}))

    return changed


# --- what is in ZooKeeper -----------------------------------------------------------------------------------------------

COPIED = MigrationNode(False, 3000, 12, 1, 3, NOW)
EMPTY = MigrationNode(True, -1, -1, -1, 0, NOW)
NO_READ = ZooKeeperRights({"/": frozenset({"READ"}), "/controller_epoch": frozenset({"READ", "WRITE"})}, {})


def topics(**changes: object) -> Change:
    return lambda picture: spoil(picture, "zookeeper_topics", **changes)


def lost(*names: str) -> Change:
    """Topics whose nodes have lost their ids."""
    return topics(topics={name: ZooKeeperTopic(None, dict.fromkeys(range(3), (0, 1, 2))) for name in names})


def with_old_groups(*names: str) -> Change:
    """Groups with one member in ZooKeeper."""
    groups = {name: ZooKeeperGroup(frozenset({f"{name}_a"})) for name in names}
    return lambda picture: with_fact(picture, "zookeeper_groups", Known(groups, NOW))


def registered(broker: int, host: str) -> Change:
    def changed(picture: Picture) -> Picture:
        brokers = value(picture.facts.zookeeper).brokers
        return spoil(picture, "zookeeper", brokers={**brokers, broker: {"INTERNAL": Address(host, 9092)}})

    return changed


# --- what brokers say ---------------------------------------------------------------------------------------------------

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
TWO = (LogDirectory("/a", offline=False), LogDirectory("/b", offline=False))


def examined(item: str, known: object) -> Change:
    """One of the facts that Preflight alone asks for, changed."""
    def changed(picture: Picture) -> Picture:
        observed = known if isinstance(known, Unknown) else Known(known, NOW)
        return with_fact(picture, "examination", replace(picture.facts.examination, **{item: observed}))

    return changed


def told_by_brokers(change: Callable[[BrokerExamination], BrokerExamination], *only: int) -> Change:
    """What brokers tell of themselves, changed."""
    def changed(picture: Picture) -> Picture:
        brokers = {broker: Known(change(told.value), NOW) if not only or broker in only else told
                   for broker, told in picture.facts.examination.brokers.items()}
        return with_fact(picture, "examination", replace(picture.facts.examination, brokers=brokers))

    return changed


def static(settings: Mapping[str, str], *only: int) -> Change:
    """Brokers were given other settings; "" takes one away."""
    def changed(told: BrokerExamination) -> BrokerExamination:
        merged = {**told.static_settings, **settings}
        return replace(told, static_settings={key: value for key, value in merged.items() if value})

    return told_by_brokers(changed, *only)


def hidden(name: str, *only: int) -> Change:
    """A setting of which brokers tell no more than that they have it."""
    return told_by_brokers(lambda told: replace(told, hidden=frozenset({*told.hidden, name})), *only)


def classes(settings: Mapping[str, str], *only: int) -> Change:
    """The classes that brokers run with."""
    return told_by_brokers(lambda told: replace(told, classes=settings), *only)


def at_run_time(settings: Mapping[str, str], *only: int) -> Change:
    """What was set at run time for brokers, each alone."""
    return told_by_brokers(lambda told: replace(told, own_dynamic=settings), *only)


def ids(served: Mapping[str, str], *only: int, **others: Any) -> Change:
    """The topics' ids as brokers serve them."""
    def changed(picture: Picture) -> Picture:
        told = {broker: Known(TopicIds(served, **others), NOW) if not only or broker in only else before
                for broker, before in picture.facts.examination.topic_ids.items()}
        return with_fact(picture, "examination", replace(picture.facts.examination, topic_ids=told))

    return changed


def disks(*directories: LogDirectory) -> Change:
    return told_by_brokers(lambda told: replace(told, log_directories=directories), 1)


def replicas(topic: str, *assignment: int) -> Change:
    def changed(view):
        return changed_view(view, lambda item: replace(
            item, topic=topic, leader=assignment[0], replicas=assignment, isr=assignment))

    return lambda picture: with_fact(
        spoil(spoil_each(picture, "views", changed), "zookeeper_topics", topics={}), "min_insync", Known({topic: 1}, NOW))


def told(pod: str, *ids: int) -> Change:
    """What a pod says which broker it is, when it is asked."""
    return lambda picture: with_fact(picture, "identities", {pod: Known(frozenset(ids), NOW)})


def at_its_pod(broker: int) -> Change:
    """A broker that advertises its pod's address."""
    def changed(picture: Picture) -> Picture:
        picture = spoil_pod(picture, f"kafka-{broker}", ips=("10.0.0.7", "fd00::7"))
        return spoil_each(picture, "views", lambda view: replace(
            view, brokers={**view.brokers, broker: Address("FD00:0::7", 9092)}))

    return changed


ACLS = static({"authorizer.class.name": AUTHORIZER})


# --- the controllers' listener, and that of the brokers -----------------------------------------------------------------


def certificate(name: str) -> str:
    return (Path(__file__).parent / "golden" / "certificates" / f"{name}.crt").read_text()


CHAIN = "ssl.keystore.certificate.chain"
TLS = {CHAIN: certificate("wildcard"), "ssl.truststore.certificates": certificate("wildcard"),
       "ssl.keystore.key": "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----"}
PLAIN = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": 'PlainLoginModule required username="kafka" password="p";'}


def listener(protocol: str, credentials: dict[str, str] | str) -> Change:
    """A listener whose Secret names the controllers; its passwords may travel unencrypted."""
    controllers = {"storage": {"size": "1Gi"},
                   "listener": {"securityProtocol": protocol, "credentialsRef": {"name": "keys"}}}
    if isinstance(credentials, dict):
        credentials = {"bootstrap.servers": "*.kafka-controller.kafka.svc:9093"} | credentials
    spec = wanted(controllers=controllers, acceptedRisks=["PasswordsInClear"])
    return lambda picture: kubernetes(listener_credentials=credentials)(spec(picture))


def between_brokers(protocol: str, **settings: str) -> Change:
    """The brokers' own listener, as one of them tells of it."""
    def changed(picture: Picture) -> Picture:
        brokers = dict(picture.facts.examination.brokers)
        broker, told = next((broker, told) for broker, told in brokers.items() if isinstance(told, Known))
        theirs = {"inter.broker.listener.name": "INTERNAL", "listener.security.protocol.map": f"X:SSL, internal:{protocol}"}
        brokers[broker] = replace(told, value=replace(
            told.value, static_settings=told.value.static_settings | theirs | settings))
        return with_fact(picture, "examination", replace(picture.facts.examination, brokers=brokers))

    return changed
