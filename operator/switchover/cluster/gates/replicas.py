"""Replicas and restarts: what other brokers say, since a restarted broker is no witness for itself, and whether it reaches
the controller."""

from collections.abc import Collection, Iterable
from operator import itemgetter

from switchover.answers.observed import Known
from switchover.cluster import modes, names
from switchover.cluster.facts import CaughtUp, Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of, minima_of, samples, until
from switchover.engine.gate import Gate, Unseen, Verdict, of, passed, seen, unknown, wait
from switchover.kafka.node import WholeView, seen_by
from switchover.reasons.cluster import (
    ADDRESS_REMEMBERED,
    BROKER_DEAF,
    BROKER_FENCED,
    FORWARDING_STUCK,
    LEADER_STUCK,
    NO_WITNESS,
    OUT_OF_SYNC,
    WOULD_LOSE_IN_SYNC_REPLICAS,
)
from switchover.reasons.walk import BROKER_SILENT, NOT_OBSERVED
from switchover.text.command import kubectl


def others_views(picture: Picture, nodes: Iterable[str]) -> dict[int, WholeView]:
    """What those brokers outside the batch see that were asked for all partitions; Unknown unless every broker outside it
    answers, and one of them about partitions."""
    moved = {picture.position.nodes[name].node_id for name in nodes if name in picture.position.nodes}
    others = sorted(set(picture.brokers.values()) - moved)
    unreachable = [view.why for view in map(picture.view, others) if not isinstance(view, Known)]
    views = {broker_id: view for broker_id, view in picture.whole_views.items() if broker_id in others}
    if unreachable or not views:
        why = "; ".join(unreachable) or "there is no other broker to ask"
        raise Unseen(unknown(NO_WITNESS, f"no other broker can confirm that replicas are in sync: {why}"))
    return views


def check_restart_is_safe(picture: Picture) -> Verdict:
    """Every partition keeps min.insync.replicas without the whole batch, by a reading of other brokers."""
    return restart_is_safe(picture, frozenset())


def restart_is_safe(picture: Picture, caught: frozenset[CaughtUp]) -> Verdict:
    """The same where replicas that have caught up count, as long as another one is in sync."""
    views = others_views(picture, picture.batch)
    minima = minima_of(picture)
    leaving = {picture.position.nodes[name].node_id for name in picture.batch}
    accepted = set(picture.spec.gates.accepted_topics)
    for witness, _, topic in seen_by(views):
        for partition in topic.partitions:
            if leaving.isdisjoint(partition.replicas) or partition.topic in accepted:
                continue
            rest = set(partition.isr) - leaving
            needed = minima.get(partition.topic)
            if needed is None:
                return unknown(NOT_OBSERVED, f"min.insync.replicas of {partition.topic} is not known yet")
            needed = min(needed, len(partition.replicas))
            back = {each.follower for each in caught if (each.topic, each.index) == (partition.topic, partition.index)}
            if not rest or len(rest | back) < needed:
                name = f"{partition.topic}-{partition.index}"
                whole = len(leaving) > 1 and {*partition.isr} == {*partition.replicas}
                return wait(WOULD_LOSE_IN_SYNC_REPLICAS,
                            f"{name} would have too few replicas in sync without {', '.join(picture.batch)}",
                            subject=name, observed=f"{len(rest)} left in sync, seen by broker {witness}",
                            threshold=f"min.insync.replicas {needed}",
                            unblocks="make the batches smaller (spec.rollout.steps): all its replicas are in sync already"
                            if whole else "wait until its other replicas are back in sync")
    return passed("every partition keeps its minimum without the batch")


def check_addresses_known(picture: Picture) -> Verdict:
    """Brokers outside the batch know each other's current addresses: followers must find whoever takes over from a leader.

    By the time alone: followers first connect to a broker when it leads something (docs/decisions/0002-addresses.md).
    """
    kubernetes_of(picture)
    found = (picture.pod_of(name) for name in sorted(picture.brokers) if name not in picture.batch)
    started = [(pod, pod.started_at) for pod in found if pod is not None and pod.started_at is not None]
    for pod, at in started:
        keep = max((other.remembers for other, before in started if before < at), default=0)
        if pod.host_ports is None and (up := picture.now - at) < keep:
            return wait(ADDRESS_REMEMBERED, f"brokers that started before {pod.name} may use its former address for"
                        f" {keep} s", subject=pod.name, observed=f"{up:.0f} s", threshold=f"{keep} s",
                        unblocks="nothing to do: it is over by then")
    return passed("brokers know each other's addresses")


def check_all_in_sync(picture: Picture) -> Verdict:
    """No broker outside the batch sees a partition without its leader or with a replica out of sync."""
    views = others_views(picture, picture.batch)
    for witness, view in views.items():
        if lagging := view.lagging:
            first = lagging[0]
            missing = sorted(set(first.replicas) - set(first.isr))
            name = f"{first.topic}-{first.index}"
            leaders = ", ".join(map(str, sorted({each.leader for each in lagging if each.leader >= 0}))) or "none"
            return wait(OUT_OF_SYNC, f"{name}: replicas {missing} are out of sync, as broker {witness} sees it",
                        subject=name, observed=f"{len(lagging)} partitions, leaders {leaders}", threshold="0 partitions",
                        unblocks="wait until the replicas have caught up")
    return passed("all replicas in sync, as seen by the other brokers")


DEAF_SECONDS = 60.0
"""A broker that has started gets metadata from the controller within seconds (docs/runbooks/brokers.md#brokerdeaf)."""


def _up_for(picture: Picture, broker_id: int) -> float:
    """Seconds since the broker's pod has started; 0 while that is not known."""
    name = next((name for name, known in picture.brokers.items() if known == broker_id), "")
    pod = picture.pod_of(name)
    return picture.now - pod.started_at if pod is not None and pod.started_at is not None else 0.0


def check_brokers_see_each_other(picture: Picture) -> Verdict:
    """Every broker lists every broker as alive: in KRaft this is the view of who is unfenced."""
    expected = set(picture.brokers.values())
    for name, broker_id in sorted(picture.brokers.items(), key=itemgetter(1)):
        view = picture.view(broker_id)
        if not isinstance(view, Known) and view.no_metadata and (up := _up_for(picture, broker_id)) > DEAF_SECONDS:
            controllers = f"{names.CONTROLLERS_LABEL}={picture.spec.controllers.name}"
            logs = kubectl(picture.namespace, "logs --prefix --tail 50 --selector {}", controllers)
            return wait(BROKER_DEAF, f"broker {broker_id} answers, but has no metadata: no controller reaches its listener"
                        " between brokers", subject=f"broker {broker_id}", observed=f"{up:.0f} s",
                        threshold=f"{DEAF_SECONDS:.0f} s",
                        unblocks=f"look for a missing login, store or host name: {logs}; or roll back")
        if not isinstance(view, Known):
            return wait(BROKER_SILENT, of(f"broker {broker_id}", view.why), subject=f"broker {broker_id}",
                        unblocks=until("the broker answers", picture, name))
        if missing := expected - set(view.value.brokers):
            return wait(BROKER_FENCED, f"broker {broker_id} does not list brokers {sorted(missing)} as alive",
                        subject=f"broker {min(missing)}", unblocks="wait until every broker lists them as alive")
    return passed("every broker lists every broker")


RESTART_IS_SAFE: Gate[Picture] = Gate("RestartIsSafe", check_restart_is_safe)
ADDRESSES_KNOWN: Gate[Picture] = Gate("AddressesKnown", check_addresses_known)
ALL_IN_SYNC: Gate[Picture] = Gate("AllInSync", check_all_in_sync, samples=samples)
BROKERS_SEE_EACH_OTHER: Gate[Picture] = Gate("BrokersSeeEachOther", check_brokers_see_each_other, samples=samples)


# --- channels -------------------------------------------------------------------------------------------------------------
# What a broker reports to the controller: who is in sync, what clients ask of it, its heartbeats.
#
# Each goes by a channel with a thread of its own, and brokers of 3.9 were seen to lose one of them while the cluster changed
# between ZooKeeper's controller and KRaft's (docs/facts/kraft.md#a-leader-that-takes-nobody-back). The pod is Ready all the
# while; a restart ends it.
#
# Lost heartbeats fence the broker: that is NobodyFenced's to find.

# --- who is in sync -------------------------------------------------------------------------------------------------------

STUCK_SECONDS = 15.0
"""Kafka takes a replica that has caught up back with its next fetch, half a second later at most."""
RESTART_SECONDS = 45.0
"""And so much later the leader is restarted."""


def caught_up(picture: Picture) -> tuple[CaughtUp, ...]:
    """Replicas that their leaders have not taken back for a while, the longest first; none while a broker's pod is not there
    or another broker does not list it, which is said elsewhere."""
    left_out = sorted(_left_out(picture), key=lambda each: (each.since, each.leader, each.topic, each.index))
    known = (view.value.brokers for view in picture.facts.views.values() if isinstance(view, Known))
    if not left_out or not all_ready(picture) or any({*picture.brokers.values()} - {*brokers} for brokers in known):
        return ()
    return tuple(left_out)


def _left_out(picture: Picture) -> list[CaughtUp]:
    found = picture.facts.caught_up
    return [each for each in found.value if picture.now - each.since >= STUCK_SECONDS] if isinstance(found, Known) else []


def all_ready(picture: Picture) -> bool:
    """Whether every broker's pod is there."""
    pods = [picture.pod_of(name) for name in picture.brokers]
    return all(pod is not None and pod.ready and not pod.terminating for pod in pods)


def check_followers_taken_back(picture: Picture) -> Verdict:
    """No leader leaves a replica out of sync that has all of its records. One that does lets no replica leave either: when
    one dies, producers with acks=all stand still.
    """
    seen(picture.facts.caught_up, NOT_OBSERVED)
    if not _left_out(picture):
        return passed("every leader takes back what has caught up")
    kubernetes_of(picture)
    if not all_ready(picture):
        return passed("a broker's pod is not there yet")
    others_views(picture, ())
    if not (stuck := caught_up(picture)):
        return passed("a broker is not alive for all of them yet")
    first = stuck[0]
    own = [each for each in stuck if each.leader == first.leader]
    name = next((pod for pod, broker_id in picture.brokers.items() if broker_id == first.leader), "")
    return wait(
        LEADER_STUCK, f"broker {first.leader} ({name}), the leader of {first.topic}-{first.index}, does not take broker"
        f" {first.follower} back into the in-sync replicas, although it has all records"
        + (", not even after a restart" if name in picture.position.rescued else ""),
        subject=name, observed=f"{picture.now - first.since:.0f} s, {_partitions(own)}",
        threshold=f"{STUCK_SECONDS:.0f} s",
        unblocks=_restart(picture, name))


def _partitions(found: Collection[CaughtUp]) -> str:
    """How many partitions they are of."""
    count = len({(each.topic, each.index) for each in found})
    return f"{count} partition{'' if count == 1 else 's'}"


# --- forwarding -----------------------------------------------------------------------------------------------------------

SILENT_SECONDS, UP_SECONDS = 30.0, 60.0
"""An election takes less until a broker knows of it; so do a session and a name that Java remembers, after a start."""


def cut_off(picture: Picture) -> tuple[str, ...]:
    """The pods of brokers that answer, but do not forward requests to the controller; none where no broker is seen to, since
    the controller is at fault then."""
    found = picture.facts.forwarding
    silent = found.value if isinstance(found, Known) else {}
    asked = [name for name in picture.brokers if name not in picture.batch
             and picture.position.nodes[name].assigned not in modes.WITHOUT_QUORUM]
    lost = [name for name in asked if picture.now - silent.get(picture.brokers[name], picture.now) >= SILENT_SECONDS
            and is_up(picture, name)]
    others = {picture.brokers[name] for name in asked} - silent.keys() if lost else set()
    return tuple(lost) if any(isinstance(picture.facts.answers.get(each), Known) for each in others) else ()


def is_up(picture: Picture, name: str) -> bool:
    """Whether a broker answers, and its pod is Ready and has run for longer than a name may be cached and a session lasts.
    Why one is silent nobody knows: that is no lost channel."""
    pod = picture.pod_of(name)
    return (isinstance(picture.facts.answers.get(picture.brokers[name]), Known) and pod is not None and pod.ready
            and not pod.terminating and pod.started_at is not None and picture.now - pod.started_at >= UP_SECONDS)


def check_forwards(picture: Picture) -> Verdict:
    """Every broker forwards to the controller what clients ask of it: topics to create, settings to change."""
    silent = seen(picture.facts.forwarding, NOT_OBSERVED)
    kubernetes_of(picture)
    if not (found := cut_off(picture)):
        return passed("every broker forwards requests to the controller")
    name = found[0]
    lasted = picture.now - silent[picture.brokers[name]]
    return wait(FORWARDING_STUCK, f"broker {picture.brokers[name]} ({name}) answers, but does not forward requests to the"
                " controller", subject=name, observed=f"{lasted:.0f} s", threshold=f"{SILENT_SECONDS:.0f} s",
                unblocks=_restart(picture, name))


def _restart(picture: Picture, name: str) -> str:
    """Who restarts a broker, with the command."""
    restart = kubectl(picture.namespace, "delete pod {}", name)
    if name in picture.position.rescued:
        return restart
    return (f"Switchover restarts {name} once, as soon as every partition has min.insync.replicas without it; to do it"
            f" yourself: {restart}")


def check_leader_can_go(picture: Picture) -> Verdict:
    """The same of a leader that no longer takes replicas back. Those that have caught up count, where another one is in
    sync: as the leader it takes them back within a second or so."""
    seen(picture.facts.caught_up, NOT_OBSERVED)
    return restart_is_safe(picture, frozenset(caught_up(picture)))


LEADER_CAN_GO: Gate[Picture] = Gate("LeaderCanGo", check_leader_can_go, needs=(Need.CAUGHT_UP,))
FOLLOWERS_TAKEN_BACK: Gate[Picture] = Gate(
    "FollowersTakenBack", check_followers_taken_back, patience=lambda _: RESTART_SECONDS, needs=(Need.CAUGHT_UP,))
FORWARDS: Gate[Picture] = Gate(
    "Forwards", check_forwards, patience=lambda _: RESTART_SECONDS, needs=(Need.FORWARDING,))
