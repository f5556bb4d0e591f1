"""The cluster as ZooKeeper and its brokers see it: who belongs to it, what is under way, and whether it is healthy."""

from collections.abc import Collection, Iterator, Sequence

from switchover.answers.observed import Known
from switchover.cluster.facts import Need
from switchover.cluster.identity import at_their_pods
from switchover.cluster.picture import Picture
from switchover.cluster.reading import (
    broker_workloads,
    brokers_by_pod,
    kubernetes_in_preflight,
    minima_of,
    samples,
    topics_of,
    zookeeper_of,
)
from switchover.engine.gate import Gate, Unseen, Verdict, check, fail, info, passed, several, unknown, wait, warn
from switchover.kafka.node import BrokerView, WholeView, seen_by
from switchover.reasons.cluster import OUT_OF_SYNC, UNKNOWN_BROKER
from switchover.reasons.notes import METADATA_SIZE, TOPIC_STANDS_STILL
from switchover.reasons.preflight import (
    ADDRESSES_CHANGE,
    BROKERS_NOT_IDENTIFIED,
    DEAD_BROKER_IN_ASSIGNMENT,
    MALFORMED_NODE,
    PENDING_DELETES,
    REASSIGNING,
    TOPIC_CANNOT_SPARE_A_BROKER,
    TOPICS_HIDDEN,
    TOPICS_SHARE_AN_ID,
)
from switchover.reasons.walk import BROKER_SILENT, NOT_OBSERVED
from switchover.shared.grouped import grouped
from switchover.text.nearest import nearest


def check_brokers_identified(picture: Picture) -> Verdict:
    """Read again in the pass that puts every pod and its broker id on record."""
    kubernetes_in_preflight(picture)
    zookeeper_of(picture)
    found = picture.broker_pods()
    if not isinstance(found, Known):
        return wait(BROKERS_NOT_IDENTIFIED, found.why, subject="/brokers/ids",
                    unblocks="wait until every broker is registered in ZooKeeper again")
    return passed("every pod is known as a broker")


def check_brokers_on_record(picture: Picture) -> Verdict:
    """The same of a record by a release without UpgradeBrokers; else they are on record already, and are not asked again."""
    return passed("every broker is on record") if picture.brokers else check_brokers_identified(picture)


def find_strangers(picture: Picture) -> Iterator[Verdict]:
    """Every broker is a pod of ours and alive, and no partition is assigned to a broker that is not."""
    state = zookeeper_of(picture)
    kubernetes_in_preflight(picture)
    found = picture.broker_pods()
    if not isinstance(found, Known):
        yield wait(BROKERS_NOT_IDENTIFIED, found.why, subject="/brokers/ids",
                   unblocks="let each broker advertise a host name that begins with its pod's name, or answer at the pod's"
                            " own address")
        return
    known = set(found.value.values())
    for stranger in sorted(set(state.brokers) - known):
        yield fail(UNKNOWN_BROKER, f"broker {stranger} is registered in ZooKeeper, and is no pod of spec.brokers",
                   subject=f"broker {stranger}", unblocks="name all StatefulSets of the cluster in spec.brokers")
    dead = [
        f"{name}-{partition} is assigned to broker {broker}"
        for name, topic in sorted(topics_of(picture).topics.items())
        for partition, replicas in sorted(topic.assignment.items())
        for broker in sorted(set(replicas) - known)
    ]
    if dead:
        yield fail(DEAD_BROKER_IN_ASSIGNMENT, f"{several(dead)}, which is not registered: the controllers would wait for it"
                   " for ever", subject=dead[0].split()[0], observed=f"{len(dead)} replicas",
                   threshold=f"brokers {sorted(known)}", unblocks="reassign these partitions to brokers that are registered")


def _views(picture: Picture) -> list[BrokerView]:
    """What the brokers that answer say of the cluster."""
    views = [view.value for view in picture.facts.views.values() if isinstance(view, Known)]
    if not views:
        raise Unseen(unknown(BROKER_SILENT, "no broker answered a Metadata request", subject="brokers"))
    return views


def _whole_views(picture: Picture) -> dict[int, WholeView]:
    """The same of those that were asked for all partitions."""
    if not (views := picture.whole_views):
        raise Unseen(unknown(BROKER_SILENT, "no broker answered a Metadata request for all topics", subject="brokers"))
    return views


def find_moving_addresses(picture: Picture) -> Iterator[Verdict]:
    """A Secret goes only to servers that it names, and nobody can name the address that a pod will have."""
    secret = picture.spec.kafka.credentials_ref
    if secret is None:
        return
    told = {broker_id: address for view in _views(picture) for broker_id, address in view.brokers.items()}
    pods, sets = brokers_by_pod(picture), broker_workloads(kubernetes_in_preflight(picture))
    for name in sorted(at_their_pods(told, pods, sets.values())):
        yield fail(ADDRESSES_CHANGE, f"brokers of StatefulSet {name} advertise pod addresses at"
                   f" {picture.spec.kafka.bootstrap_servers}: a replaced pod has another one, and Secret {secret.name} is"
                   " sent only to servers that it names", subject=f"StatefulSet {name}",
                   unblocks="name in spec.kafka.bootstrapServers a listener that advertises host names")


def find_topic_trouble(picture: Picture) -> Iterator[Verdict]:
    found = topics_of(picture)
    for malformed in found.malformed:
        yield fail(MALFORMED_NODE, malformed, subject=malformed.split(":")[0],
                   unblocks="correct its value in ZooKeeper; who deletes it loses what it holds")
    named = grouped((topic.topic_id or "", name) for name, topic in sorted(found.topics.items()))
    for topic_id, alike in sorted(named.items()):
        if topic_id and len(alike) > 1:
            yield fail(TOPICS_SHARE_AN_ID, f"topics {several(alike)} have the same topic_id in ZooKeeper: brokers on KRaft"
                       " would know one of them, and set the data of the others aside", subject=several(alike),
                       observed=topic_id, threshold="an id for each topic", unblocks="compare them with the ids on disk"
                       " (partition.metadata), then correct the node or replace the topic, as the runbook says")
    if found.pending_deletes:
        yield wait(PENDING_DELETES, f"topics that are being deleted: {several(found.pending_deletes)}",
                   subject="/admin/delete_topics", unblocks="wait until the deletion ends")
    if found.reassigning:
        yield wait(REASSIGNING, "a reassignment of partitions is under way", subject="/admin/reassign_partitions",
                   unblocks="wait until the reassignment ends")
    partitions = sum(len(topic.assignment) for topic in found.topics.values())
    yield info(METADATA_SIZE, f"{len(found.topics)} topics with {partitions} partitions are to be copied",
               observed=f"{partitions} partitions")


def find_hidden_topics(picture: Picture) -> Iterator[Verdict]:
    """A broker leaves out of its Metadata, without a word, what our user may not see."""
    shown = {name for view in _whole_views(picture).values() for name, topic in view.topics.items() if topic.partitions}
    found = topics_of(picture)
    hidden = sorted(name for name, topic in found.topics.items()
                    if name not in shown and topic.assignment and name not in found.pending_deletes)
    if hidden:
        yield wait(TOPICS_HIDDEN, f"no broker shows Switchover's user these topics of ZooKeeper: {several(hidden)}",
                   subject=several(hidden), observed=f"{len(hidden)} topics",
                   unblocks="grant that user DESCRIBE and DESCRIBE_CONFIGS on every topic")


def find_ill_health(picture: Picture) -> Iterator[Verdict]:
    """Every replica in sync as each broker sees it that is asked, and no topic that can never spare a broker."""
    brokers = sorted(brokers_by_pod(picture).values())
    minima = minima_of(picture)
    accepted, whole = set(picture.spec.gates.accepted_topics), _whole_views(picture)
    cannot_spare: dict[str, tuple[int, int]] = {}
    unheard: set[str] = set()
    misspelled = set(accepted)
    for broker_id in brokers:
        view = picture.view(broker_id)
        if not isinstance(view, Known):
            yield unknown(BROKER_SILENT, view.why, subject=f"broker {broker_id}")
        elif broker_id in whole and (behind := whole[broker_id].lagging):
            named = several(f"{partition.topic}-{partition.index}" for partition in behind)
            yield wait(OUT_OF_SYNC, f"{named}: replicas out of sync, as seen by broker {broker_id}", subject=named,
                       observed=f"in sync {sorted(behind[0].isr)}", threshold=f"replicas {sorted(behind[0].replicas)}",
                       unblocks="wait until the replicas have caught up")
    for _, name, topic in seen_by(whole):
        misspelled.discard(name)
        if not topic.partitions:
            continue
        if (needed := minima.get(name)) is None:
            unheard.add(name)
        elif (replicas := min(len(each.replicas) for each in topic.partitions)) <= max(1, needed):
            cannot_spare[name] = replicas, max(1, needed)
    if unheard:
        yield unknown(NOT_OBSERVED, f"min.insync.replicas of {several(sorted(unheard))} is not known yet",
                      subject=several(sorted(unheard)))
    by_value = grouped((value, name) for name, value in sorted(cannot_spare.items()))
    for (replicas, needed), alike in sorted(by_value.items()):
        told = (f"{replicas} replica{'' if replicas == 1 else 's'} and {needed} needed in sync: it stands still whenever one"
                " of its brokers restarts")
        if known := [topic for topic in alike if topic in accepted]:
            yield warn(TOPIC_STANDS_STILL, f"topic {several(known, 20)} has {told}; spec.gates.acceptedTopics accepts that",
                       subject=several(known))
        if refused := [topic for topic in alike if topic not in accepted]:
            yield fail(TOPIC_CANNOT_SPARE_A_BROKER, f"topic {several(refused, 20)} has {told}", subject=several(refused),
                       observed=f"{replicas} replicas", threshold=f"more than {needed}",
                       unblocks=f"add replicas,{' lower min.insync.replicas,' if replicas > 1 else ''} or name it in"
                       " spec.gates.acceptedTopics"
                       + _instead(misspelled, refused))


def _instead(misspelled: Collection[str], refused: Sequence[str]) -> str:
    """Of accepted topics that are not there one that may be meant for one of these."""
    return next((f", which has {name} (did you mean {near[0]}?)" for name in sorted(misspelled)
                 if (near := nearest(name, refused))), "")


CHECKS = (
    check("Membership", find_strangers, "every replica lives on a broker of this migration",
          needs=(Need.TOPICS_IN_ZOOKEEPER,)),
    check("Addresses", find_moving_addresses, "brokers advertise addresses that outlive their pods"),
    check("Topics", find_topic_trouble, "every topic can be copied, and nothing is under way",
          needs=(Need.TOPICS_IN_ZOOKEEPER,)),
    check("TopicsSeen", find_hidden_topics, "the brokers show every topic", needs=(Need.TOPICS_IN_ZOOKEEPER,)),
    check("Health", find_ill_health, "all replicas in sync", samples=samples),
)
BROKERS_IDENTIFIED: Gate[Picture] = Gate("BrokersIdentified", check_brokers_identified)
BROKERS_ON_RECORD: Gate[Picture] = Gate("BrokersOnRecord", check_brokers_on_record)
