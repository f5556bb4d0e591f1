"""Secured clusters: the controllers' listener has keys that Kafka can use, and the nodes are allowed what they do on it."""

from collections.abc import Iterator, Mapping

from switchover.answers.observed import Known, Observed
from switchover.api.controllers import SecurityProtocol
from switchover.api.meta import AcceptedRisk
from switchover.cluster import modes
from switchover.cluster.controllers import listener, manifests
from switchover.cluster.controllers.listener import ScramRefused
from switchover.cluster.door.brokers import PROTOCOL_MAP, between_brokers, protocols
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import configured, examined, kubernetes_in_preflight
from switchover.engine.gate import Unseen, Verdict, check, fail, seen, several, unknown, warn
from switchover.engine.policy import find_unchecked
from switchover.metadata.names import STANDARD_AUTHORIZER
from switchover.network.credentials import KAFKA, Unusable, allowed_servers, check_encrypted, checks_hosts
from switchover.reasons.cluster import LISTENER_CREDENTIALS_UNUSABLE, SETTINGS_UNKNOWN, ZOOKEEPER_UNKNOWN
from switchover.reasons.groups import ZOOKEEPER_RIGHT_MISSING
from switchover.reasons.notes import SUPER_USERS_HIDDEN, ZOOKEEPER_RIGHT_UNSURE
from switchover.reasons.preflight import (
    CERTIFICATE_LACKS_NAMES,
    CONTROLLERS_NOT_AUTHORIZED,
    KAFKA_RIGHT_MISSING,
    KUBERNETES_RIGHT_MISSING,
    READING_REFUSED,
    SCRAM_ON_CONTROLLERS,
    WEAKER_CONTROLLERS,
)
from switchover.reasons.walk import BROKER_SILENT, NOT_OBSERVED
from switchover.shared.grouped import grouped


def _secret(picture: Picture) -> str:
    reference = picture.spec.controllers.listener.credentials_ref
    return f"Secret {reference.name}" if reference is not None else "spec.controllers.listener"


def find_unusable_credentials(picture: Picture) -> Iterator[Verdict]:
    own, subject = picture.spec.controllers.listener, _secret(picture)
    credentials = kubernetes_in_preflight(picture).listener_credentials
    if isinstance(credentials, str):
        yield fail(LISTENER_CREDENTIALS_UNUSABLE, credentials, subject=subject,
                   unblocks="create it, or correct spec.controllers.listener.credentialsRef")
        return
    try:
        if own.credentials_ref is not None:         # before a word is told of a Secret that is for something else
            servers = allowed_servers(own.credentials_ref.name, picture.namespace, credentials, KAFKA)
            if why_not := servers.why_not(manifests.addresses(picture.spec, picture.namespace).values()):
                yield fail(LISTENER_CREDENTIALS_UNUSABLE, why_not, subject=subject, unblocks="run that command")
                return
        settings = listener.node_settings(own, credentials)
        check_encrypted(listener.client_properties(own, credentials), picture.spec.accepted_risks)
        if chain := credentials.get("ssl.keystore.certificate.chain") if own.security_protocol.endswith("SSL") else None:
            listener.check_certificate(chain, picture.now)
    except ScramRefused as why:
        yield fail(SCRAM_ON_CONTROLLERS, f"{subject}: {why}", subject=subject, observed=credentials["sasl.mechanism"],
                   threshold="PLAIN", unblocks="use PLAIN or client certificates on the controllers' listener; the brokers'"
                   " own listeners may keep SCRAM")
        return
    except Unusable as why:
        yield fail(LISTENER_CREDENTIALS_UNUSABLE, f"{subject}: {why}", subject=subject,
                   unblocks="correct that key of the Secret")
        return
    if chain and settings.get(_identification(own.name), "https"):
        hosts = [address.host for address in manifests.addresses(picture.spec, picture.namespace).values()]
        if missing := [host for host in hosts if not listener.is_valid_for(chain, host)]:
            yield fail(CERTIFICATE_LACKS_NAMES, f"the certificate in {subject} does not name {several(missing)}: nodes would"
                       " not trust each other", subject=subject, observed=several(listener.certificate_names(chain)),
                       threshold=f"*.{hosts[0].partition('.')[2]}",
                       unblocks="issue it for the names of all controllers' pods, as a wildcard or one by one")


def _identification(name: str) -> str:
    return f"listener.name.{name.lower()}.ssl.endpoint.identification.algorithm"


def find_unauthorized_nodes(picture: Picture) -> Iterator[Verdict]:
    """With an authorizer, whoever the nodes are to the controllers must be a super user.

    Before the copy the controllers know no ACL at all, and brokers could not register by one.
    """
    credentials = kubernetes_in_preflight(picture).listener_credentials
    if isinstance(credentials, str):
        return
    found = next((each for each in configured(picture) if each.keys.get("authorizer.class.name", "").strip() in (
        modes.ACL_AUTHORIZER, STANDARD_AUTHORIZER)), None)
    if found is None:
        return
    try:
        principal = listener.principal_of_the_nodes(picture.spec.controllers.listener, credentials, found.keys)
    except Unusable:
        return                                           # told above
    who = principal or "the principal of the controllers' certificate or user"
    subject, cure = f"broker {found.broker_id}", "secure the controllers' listener with credentials of a super user"
    # As ANONYMOUS everybody who reaches a listener without authentication would be a super user.
    anonymous = principal == listener.ANONYMOUS
    wanted = "a super user" if anonymous else who
    if found.has("super.users") or found.has("allow.everyone.if.no.acl.found"):
        everybody = "; then so is whoever reaches a listener without authentication" if anonymous else ""
        yield warn(SUPER_USERS_HIDDEN, f"{subject} has an authorizer, and Kafka hides its super.users: the controllers do"
                   f" not come up unless {who}, as which the nodes connect, is a super user{everybody}",
                   subject="super.users", observed="hidden", threshold=wanted,
                   cure=cure if anonymous else f"check that it is in super.users on every broker, or {cure}")
    else:
        add = "" if anonymous else "add that principal to super.users on every broker, or "
        yield fail(CONTROLLERS_NOT_AUTHORIZED, f"{subject} has an authorizer and no super.users: the nodes connect to the"
                   f" controllers as {who}, and could not register",
                   subject="super.users", observed="not set", threshold=wanted,
                   unblocks=f"{add}{cure}")


def find_weaker_listener(picture: Picture) -> Iterator[Verdict]:
    """What the controllers' listener carries is all metadata, SCRAM credentials included."""
    own = picture.spec.controllers.listener.security_protocol
    ours = _protection(own, client_auth="required")            # listener.py asks for it where TLS alone authenticates
    accepted = AcceptedRisk.WEAKER_CONTROLLERS in picture.spec.accepted_risks
    lacking: dict[str, frozenset[str]] = {}
    for broker_id, told in examined(picture):
        protocol, client_auth = _between_brokers(told.static_settings)
        if protocol not in {*SecurityProtocol}:
            raise Unseen(unknown(SETTINGS_UNKNOWN, f"broker {broker_id} does not report the security protocol of its"
                                 " inter-broker listener", subject=f"broker {broker_id}"))
        if missing := _protection(protocol, client_auth) - ours:
            lacking[protocol] = missing
    for protocol, missing in sorted(lacking.items()):
        message = (f"the controllers' listener has no {' and no '.join(sorted(missing))} ({own}), and the"
                   f" inter-broker listener has ({protocol}): whoever reaches it can read all metadata")
        subject, cure = "spec.controllers.listener", "give it securityProtocol SSL or SASL_SSL and a credentialsRef"
        if accepted:
            yield warn(WEAKER_CONTROLLERS, message, subject=subject, observed=own, threshold=protocol, cure=cure)
        else:
            yield fail(WEAKER_CONTROLLERS, message, subject=subject, observed=own, threshold=protocol,
                       unblocks=f"{cure}, or accept it by name: spec.acceptedRisks: [{AcceptedRisk.WEAKER_CONTROLLERS}]")


def _between_brokers(settings: Mapping[str, str]) -> tuple[str, str]:
    """The security protocol of the inter-broker listener, and what it asks of TLS clients (KafkaConfig's defaults)."""
    name, known = between_brokers(settings), protocols(settings.get(PROTOCOL_MAP, ""))
    prefixed = settings.get(f"listener.name.{name.lower()}.ssl.client.auth")
    return known.get(name.upper(), name.upper()), prefixed or settings.get("ssl.client.auth", "none")


def _protection(protocol: str, client_auth: str) -> frozenset[str]:
    encrypted, sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
    authenticated = sasl or (encrypted and client_auth == "required")
    return frozenset((*(["encryption"] if encrypted else []), *(["authentication"] if authenticated else [])))


def find_unchecked_hosts(picture: Picture) -> Iterator[Verdict]:
    yield from find_unchecked(picture.facts.unchecked)
    own = picture.spec.controllers.listener.credentials_ref
    credentials = kubernetes_in_preflight(picture).listener_credentials
    if own is not None and not isinstance(credentials, str) and not checks_hosts(credentials):
        yield from find_unchecked(Known((own.name,), picture.now))


CHECKS = (
    check("HostsChecked", find_unchecked_hosts, "servers must have certificates for their own names"),
    check("ListenerAsSecure", find_weaker_listener, "the controllers' listener is secured as the brokers' own",
          needs=(Need.EXAMINATION,)),
    check("ListenerUsable", find_unusable_credentials, "the controllers' listener can be served and reached"),
    check("NodesAuthorized", find_unauthorized_nodes, "the nodes are allowed what they do on the controllers' listener",
          needs=(Need.EXAMINATION,)),
)


# --- rights ---------------------------------------------------------------------------------------------------------------
# What Switchover itself may do: in Kubernetes, in Kafka and in ZooKeeper.

CLUSTER_OPERATIONS = ("DESCRIBE", "DESCRIBE_CONFIGS", "CLUSTER_ACTION")
"""On the cluster: quorum and log directories; settings; the metadata log (KafkaApis, ControllerApis)."""
NEEDED_ON = {"/": "DELETE", "/controller_epoch": "WRITE"}
"""What the way back does in ZooKeeper: `/controller` and `/migration` are deleted, the epoch is raised (KAFKA-20488)."""


def find_refusals(picture: Picture) -> Iterator[Verdict]:
    """Every reading that was refused: it will be refused until a person acts, so it is no matter of waiting."""
    facts, examined = picture.facts, picture.facts.examination
    readings: dict[str, Observed[object]] = {
        "Kubernetes": facts.kubernetes, "ZooKeeper": facts.zookeeper, "topics in ZooKeeper": facts.zookeeper_topics,
        "consumer groups in ZooKeeper": facts.zookeeper_groups, "idle groups in ZooKeeper": examined.idle_groups,
        "min.insync.replicas": facts.min_insync, "our rights in ZooKeeper": examined.zookeeper_rights,
        "existing objects": examined.objects, "our rights in Kubernetes": examined.missing_rights,
        **{f"broker {broker}": answer for broker, answer in facts.answers.items()},
        **{f"metadata of broker {broker}": view for broker, view in facts.views.items()},
        **{f"settings of broker {broker}": settings for broker, settings in facts.broker_settings.items()},
        **{f"what broker {broker} tells of itself": told for broker, told in examined.brokers.items()},
        **{f"logs of broker {broker}": ids for broker, ids in examined.topic_ids.items()},
        **{f"group {name}": samples for name, samples in facts.groups.items()},
    }
    if not any(isinstance(reading, Known) for reading in readings.values()):
        raise Unseen(unknown(NOT_OBSERVED, "nothing could be read yet"))
    refused = grouped((reading.why, subject) for subject, reading in readings.items()
                      if not isinstance(reading, Known) and reading.refused)
    for why, subjects in refused.items():
        yield fail(READING_REFUSED, why, subject=several(subjects), unblocks="grant what the message asks for")


def find_missing_kubernetes_rights(picture: Picture) -> Iterator[Verdict]:
    missing = seen(picture.facts.examination.missing_rights, NOT_OBSERVED, "our rights in Kubernetes")
    if missing:
        yield fail(KUBERNETES_RIGHT_MISSING, f"this account may not {several(missing, 20)}",
                   subject=several(missing), observed=f"{len(missing)} rights are missing",
                   unblocks="install the chart's Role and RoleBinding in this namespace unchanged; where rbac.secrets names"
                            " Secrets, add the missing ones to its `write`")


def find_missing_kafka_rights(picture: Picture) -> Iterator[Verdict]:
    if not picture.facts.examination.brokers:
        raise Unseen(unknown(BROKER_SILENT, "no broker was asked what Switchover's user may do"))
    for broker_id, told in sorted(picture.facts.examination.brokers.items()):
        if not isinstance(told, Known):
            yield unknown(BROKER_SILENT, told.why, subject=f"broker {broker_id}")
        elif missing := [name for name in CLUSTER_OPERATIONS if name not in told.value.operations]:
            yield fail(KAFKA_RIGHT_MISSING, f"on broker {broker_id} Switchover's user may not {' or '.join(missing)} on the"
                       " cluster",
                       subject=f"broker {broker_id}", observed=", ".join(sorted(told.value.operations)) or "nothing",
                       threshold=", ".join(CLUSTER_OPERATIONS),
                       unblocks="make it a super user: before the copy the controllers know super.users, and no ACLs")


def find_missing_zookeeper_rights(picture: Picture) -> Iterator[Verdict]:
    """Without these the way back from a claim would end half-way."""
    rights = seen(picture.facts.examination.zookeeper_rights, ZOOKEEPER_UNKNOWN, "our rights in ZooKeeper")
    for path, needed in NEEDED_ON.items():
        if needed in rights.granted.get(path, ()):
            continue
        told = f"the ACL of {path} in ZooKeeper does not give Switchover {needed}, which a rollback needs"
        cure = "give spec.zookeeper.credentialsRef the brokers' own credentials, or correct the ACL"
        observed = ", ".join(sorted(rights.granted.get(path, ()))) or "nothing"
        if schemes := rights.unjudged.get(path):
            yield warn(ZOOKEEPER_RIGHT_UNSURE, f"{told}, unless its entry of scheme {several(schemes)} does",
                       subject=path, observed=observed, threshold=needed, cure=cure)
        else:
            yield fail(ZOOKEEPER_RIGHT_MISSING, told, subject=path, observed=observed, threshold=needed, unblocks=cure)


RIGHTS = (
    check("Readable", find_refusals, "no reading was refused",
          needs=(Need.EXAMINATION, Need.BROKER_SETTINGS, Need.TOPICS_IN_ZOOKEEPER, Need.GROUPS_IN_ZOOKEEPER)),
    check("KubernetesRights", find_missing_kubernetes_rights, "this account may do all that a migration does",
          needs=(Need.EXAMINATION,)),
    check("KafkaRights", find_missing_kafka_rights, "Switchover's user may read the quorum and its log",
          needs=(Need.EXAMINATION,)),
    check("ZooKeeperRights", find_missing_zookeeper_rights, "the rollback may do what it does in ZooKeeper",
          needs=(Need.EXAMINATION,)),
)
