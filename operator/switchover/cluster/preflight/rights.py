"""What Switchover itself may do: in Kubernetes, in Kafka and in ZooKeeper."""

from collections.abc import Iterator

from switchover.answers.observed import Known, Observed
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.engine.gate import Unseen, Verdict, check, fail, seen, several, unknown, warn
from switchover.reasons.cluster import ZOOKEEPER_UNKNOWN
from switchover.reasons.groups import ZOOKEEPER_RIGHT_MISSING
from switchover.reasons.notes import ZOOKEEPER_RIGHT_UNSURE
from switchover.reasons.preflight import KAFKA_RIGHT_MISSING, KUBERNETES_RIGHT_MISSING, READING_REFUSED
from switchover.reasons.walk import BROKER_SILENT, NOT_OBSERVED
from switchover.shared.grouped import grouped

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
        yield fail(READING_REFUSED, why, subject=several(subjects), unblocks="give what the message asks for")


def find_missing_kubernetes_rights(picture: Picture) -> Iterator[Verdict]:
    missing = seen(picture.facts.examination.missing_rights, NOT_OBSERVED, "our rights in Kubernetes")
    if missing:
        yield fail(KUBERNETES_RIGHT_MISSING, f"this account may not {several(missing, 20)}",
                   subject=several(missing), observed=f"{len(missing)} rights are missing",
                   unblocks="install the chart's Role and RoleBinding in this namespace as they are; where its rbac.secrets"
                            " names any Secrets, name those of `write` that are missing")


def find_missing_kafka_rights(picture: Picture) -> Iterator[Verdict]:
    if not picture.facts.examination.brokers:
        raise Unseen(unknown(BROKER_SILENT, "no broker was asked what our user may do"))
    for broker_id, told in sorted(picture.facts.examination.brokers.items()):
        if not isinstance(told, Known):
            yield unknown(BROKER_SILENT, told.why, subject=f"broker {broker_id}")
        elif missing := [name for name in CLUSTER_OPERATIONS if name not in told.value.operations]:
            yield fail(KAFKA_RIGHT_MISSING, f"on broker {broker_id} our user may not {' or '.join(missing)} on the cluster",
                       subject=f"broker {broker_id}", observed=", ".join(sorted(told.value.operations)) or "nothing",
                       threshold=", ".join(CLUSTER_OPERATIONS),
                       unblocks="make it a super user: until the copy the controllers know no ACLs, but super.users alone")


def find_missing_zookeeper_rights(picture: Picture) -> Iterator[Verdict]:
    """Without these the way back from a claim would end half-way."""
    rights = seen(picture.facts.examination.zookeeper_rights, ZOOKEEPER_UNKNOWN, "our rights in ZooKeeper")
    for path, needed in NEEDED_ON.items():
        if needed in rights.granted.get(path, ()):
            continue
        told = f"the ACL of {path} in ZooKeeper does not give our credentials {needed}, which a rollback needs"
        cure = "give spec.zookeeper.credentialsRef the brokers' own credentials, or correct the ACL"
        observed = ", ".join(sorted(rights.granted.get(path, ()))) or "nothing"
        if schemes := rights.unjudged.get(path):
            yield warn(ZOOKEEPER_RIGHT_UNSURE, f"{told}, unless an entry of scheme {several(schemes)} means us",
                       subject=path, observed=observed, threshold=needed, cure=cure)
        else:
            yield fail(ZOOKEEPER_RIGHT_MISSING, told, subject=path, observed=observed, threshold=needed, unblocks=cure)


CHECKS = (
    check("Readable", find_refusals, "nothing that was asked was refused",
          needs=(Need.EXAMINATION, Need.BROKER_SETTINGS, Need.TOPICS_IN_ZOOKEEPER, Need.GROUPS_IN_ZOOKEEPER)),
    check("KubernetesRights", find_missing_kubernetes_rights, "this account may do all that a migration does",
          needs=(Need.EXAMINATION,)),
    check("KafkaRights", find_missing_kafka_rights, "our user may read the quorum and its log", needs=(Need.EXAMINATION,)),
    check("ZooKeeperRights", find_missing_zookeeper_rights, "the rollback may do what it does in ZooKeeper",
          needs=(Need.EXAMINATION,)),
)
