"""ZooKeeper itself: its servers, the epoch that a rollback compares, and nodes that the copy would choke on."""

from collections.abc import Iterator

from switchover.answers.observed import Known
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import zookeeper_of
from switchover.engine.gate import Unseen, Verdict, check, fail, info, seen, several, unknown, warn
from switchover.kafka.node import BrokerView
from switchover.metadata.passwords import ENCODER_SECRET, SecretNotKnown
from switchover.reasons.cluster import ZOOKEEPER_UNKNOWN
from switchover.reasons.notes import LOW_CONTROLLER_EPOCH, SINGLE_ZOOKEEPER, ZOOKEEPER_TELLS_NOTHING
from switchover.reasons.preflight import CLUSTER_IDS_DIFFER, ENCODER_SECRET_MISSING, MALFORMED_NODE
from switchover.reasons.walk import BROKER_SILENT

LOW_EPOCH = 50
"""Raft epochs rise with every election; in a long migration they pass a low /controller_epoch (KAFKA-20488)."""
MALFORMED_TOLD = 20
TOPICS = "/brokers/topics/"
"""The check Topics has read these itself."""


def find_weak_ensembles(picture: Picture) -> Iterator[Verdict]:
    modes = picture.facts.examination.zookeeper_modes
    if not modes:
        raise Unseen(unknown(ZOOKEEPER_UNKNOWN, "no ZooKeeper server was asked for its mode"))
    for server, mode in sorted(modes.items()):
        if isinstance(mode, Known):
            continue
        if not mode.refused:
            yield unknown(ZOOKEEPER_UNKNOWN, mode.why, subject=f"ZooKeeper server {server}")
        else:
            yield warn(ZOOKEEPER_TELLS_NOTHING, f"ZooKeeper server {server} does not answer srvr ({mode.why}): in"
                       " ReleaseZooKeeper its clients cannot be seen", subject=f"ZooKeeper server {server}",
                       observed="no answer to srvr", cure="add srvr to its 4lw.commands.whitelist and restart it; or"
                       " check its clients yourself, and stop it in ReleaseZooKeeper: one that refuses connections has none")
    alone = [server for server, mode in modes.items() if isinstance(mode, Known) and mode.value == "standalone"]
    if alone:
        yield warn(SINGLE_ZOOKEEPER, f"ZooKeeper server {several(alone)} runs standalone: while it is down, neither dual"
                   " write nor rollback works", subject=several(alone), observed="standalone",
                   cure="have it running and backed up until the migration is finalized")
    epoch = zookeeper_of(picture).controller_epoch
    if epoch < LOW_EPOCH:
        yield info(LOW_CONTROLLER_EPOCH, f"/controller_epoch is only {epoch}: raft epochs may pass it, and a rollback then"
                   " raises it (KAFKA-20488)", subject="/controller_epoch", observed=epoch)


def find_malformed_nodes(picture: Picture) -> Iterator[Verdict]:
    """Quotas, SCRAM users, ACLs, settings and tokens as well: a malformed value kills the first broker that restarts, or,
    planted later, the copy (docs/facts/kraft.md#what-goes-wrong).
    """
    malformed = seen(picture.facts.examination.malformed, ZOOKEEPER_UNKNOWN, "ZooKeeper's metadata")
    found = {path: why for path, why in malformed.items() if not path.startswith(TOPICS)}
    for path, why in sorted(found.items())[:MALFORMED_TOLD]:
        if isinstance(why, SecretNotKnown):
            yield fail(ENCODER_SECRET_MISSING, f"{path}: {why}", subject=path, observed=f"{len(found)} nodes",
                       unblocks=f"put the brokers' {ENCODER_SECRET} into the Secret of spec.zookeeper.credentialsRef, under"
                       " that name; leave the node as it is")
            continue
        yield fail(MALFORMED_NODE, f"{path}: {why}", subject=path, observed=f"{len(found)} nodes",
                   unblocks="correct its value, with Kafka's tools where they still work; who deletes it loses what it"
                            " holds")


def find_another_cluster(picture: Picture) -> Iterator[Verdict]:
    """The brokers that we ask and the ZooKeeper that we ask are of one cluster."""
    expected = zookeeper_of(picture).cluster_id
    if not picture.facts.views:
        raise Unseen(unknown(BROKER_SILENT, "no broker was asked for its cluster"))
    for broker_id, view in sorted(picture.facts.views.items()):
        if not isinstance(view, Known):
            yield unknown(BROKER_SILENT, view.why, subject=f"broker {broker_id}")
        elif _differs(view.value, expected):
            yield fail(CLUSTER_IDS_DIFFER, f"broker {broker_id} belongs to cluster {view.value.cluster_id}, ZooKeeper"
                       f" to {expected}", subject=f"broker {broker_id}", observed=view.value.cluster_id, threshold=expected,
                       unblocks="correct spec.zookeeper.connect (with its chroot) or spec.kafka.bootstrapServers")


def _differs(view: BrokerView, expected: str) -> bool:
    return bool(view.cluster_id) and view.cluster_id != expected


CHECKS = (
    check("Ensemble", find_weak_ensembles, "ZooKeeper was looked at", needs=(Need.EXAMINATION,)),
    check("Parse", find_malformed_nodes, "every node of the metadata can be read", needs=(Need.EXAMINATION,)),
    check("OneCluster", find_another_cluster, "brokers and ZooKeeper are of one cluster"),
)
