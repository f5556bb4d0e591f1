"""Replicas and restarts: what other brokers say, since a restarted broker is no witness for itself."""

from collections.abc import Iterable

from switchover.answers.observed import Known
from switchover.cluster.facts import CaughtUp
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of, minima_of, samples
from switchover.engine.gate import Gate, Unseen, Verdict, passed, unknown, wait
from switchover.kafka.node import WholeView, seen_by
from switchover.reasons.cluster import (
    ADDRESS_REMEMBERED,
    BROKER_DEAF,
    BROKER_FENCED,
    NO_WITNESS,
    OUT_OF_SYNC,
    WOULD_LOSE_IN_SYNC_REPLICAS,
)
from switchover.reasons.walk import BROKER_SILENT, NOT_OBSERVED


def others_views(picture: Picture, nodes: Iterable[str]) -> dict[int, WholeView]:
    """What those brokers outside the batch see that were asked for all partitions; Unknown unless every broker outside it
    answers, and one of them about partitions."""
    moved = {picture.position.nodes[name].node_id for name in nodes if name in picture.position.nodes}
    others = sorted(set(picture.brokers.values()) - moved)
    unreachable = [view.why for view in map(picture.view, others) if not isinstance(view, Known)]
    views = {broker_id: view for broker_id, view in picture.whole_views.items() if broker_id in others}
    if unreachable or not views:
        why = "; ".join(unreachable) or "there is no other broker to ask"
        raise Unseen(unknown(NO_WITNESS, f"no other broker can tell whether replicas are in sync: {why}"))
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
                            unblocks="smaller batches (spec.rollout.steps): all its replicas are in sync already"
                            if whole else "its other replicas come back in sync")
    return passed("every partition keeps its minimum without the batch")


def check_addresses_known(picture: Picture) -> Verdict:
    """Brokers outside the batch call each other where they are: who takes over a leader's partitions is found by followers.

    By the time alone: followers first call a broker when it leads something (docs/decisions/0002-addresses.md).
    """
    kubernetes_of(picture)
    found = (picture.pod_of(name) for name in sorted(picture.brokers) if name not in picture.batch)
    started = [(pod, pod.started_at) for pod in found if pod is not None and pod.started_at is not None]
    for pod, at in started:
        keep = max((other.remembers for other, before in started if before < at), default=0)
        if pod.host_ports is None and (up := picture.now - at) < keep:
            return wait(ADDRESS_REMEMBERED, f"brokers that started before {pod.name} may call it at its former address for"
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
                        unblocks="the replicas catch up")
    return passed("all replicas in sync, as seen by the other brokers")


DEAF_SECONDS = 60.0
"""A controller tells a broker that has started of the others within seconds (docs/runbooks/brokers.md#brokerdeaf)."""


def _up_for(picture: Picture, broker_id: int) -> float:
    """Seconds since the broker's pod has started; 0 while that is not known."""
    name = next((name for name, known in picture.brokers.items() if known == broker_id), "")
    pod = picture.pod_of(name)
    return picture.now - pod.started_at if pod is not None and pod.started_at is not None else 0.0


def check_brokers_see_each_other(picture: Picture) -> Verdict:
    """Every broker lists every broker as alive: in KRaft this is the view of who is unfenced."""
    expected = set(picture.brokers.values())
    for broker_id in sorted(expected):
        view = picture.view(broker_id)
        if not isinstance(view, Known) and view.no_metadata and (up := _up_for(picture, broker_id)) > DEAF_SECONDS:
            return wait(BROKER_DEAF, f"broker {broker_id} answers, and nobody has told it of any broker: no controller"
                        " reaches it at its listener between brokers", subject=f"broker {broker_id}", observed=f"{up:.0f} s",
                        threshold=f"{DEAF_SECONDS:.0f} s", unblocks="the controllers' logs say why (a login, a store, a name"
                        " that they lack); it can all be taken back: desiredState: RolledBack")
        if not isinstance(view, Known):
            return wait(BROKER_SILENT, view.why, subject=f"broker {broker_id}", unblocks="the broker answers")
        if missing := expected - set(view.value.brokers):
            return wait(BROKER_FENCED, f"broker {broker_id} does not list brokers {sorted(missing)} as alive",
                        subject=f"broker {min(missing)}", unblocks="they are alive again for every broker")
    return passed("every broker lists every broker")


RESTART_IS_SAFE: Gate[Picture] = Gate("RestartIsSafe", check_restart_is_safe)
ADDRESSES_KNOWN: Gate[Picture] = Gate("AddressesKnown", check_addresses_known)
ALL_IN_SYNC: Gate[Picture] = Gate("AllInSync", check_all_in_sync, samples=samples)
BROKERS_SEE_EACH_OTHER: Gate[Picture] = Gate("BrokersSeeEachOther", check_brokers_see_each_other, samples=samples)
