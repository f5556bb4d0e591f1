"""What a broker tells the controller: who is in sync, what clients ask of it, that it lives.

Each goes by a channel with a thread of its own, and brokers of 3.9 were seen to lose one of them while the cluster changed
between ZooKeeper's controller and KRaft's (docs/facts/kraft.md#a-leader-that-takes-nobody-back). The pod is Ready all the
while; a restart ends it.

Lost heartbeats fence the broker: that is NobodyFenced's to find.
"""

from collections.abc import Collection

from switchover.answers.observed import Known
from switchover.cluster import modes
from switchover.cluster.facts import CaughtUp, Need
from switchover.cluster.gates.replicas import others_views, restart_is_safe
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of
from switchover.engine.gate import Gate, Verdict, passed, seen, wait
from switchover.reasons.cluster import FORWARDING_STUCK, LEADER_STUCK
from switchover.reasons.walk import NOT_OBSERVED
from switchover.text.command import kubectl

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
        LEADER_STUCK, f"broker {first.leader} ({name}) leads {first.topic}-{first.index} and does not take broker"
        f" {first.follower} back in sync, which has all its records"
        + (", nor since its restart" if name in picture.position.rescued else ""),
        subject=name, observed=f"{picture.now - first.since:.0f} s, {_partitions(own)}",
        threshold=f"{STUCK_SECONDS:.0f} s",
        unblocks=_restart(picture, name))


def _partitions(found: Collection[CaughtUp]) -> str:
    """How many partitions they are of."""
    count = len({(each.topic, each.index) for each in found})
    return f"{count} partition{'' if count == 1 else 's'}"


# --- forwarding -----------------------------------------------------------------------------------------------------------

SILENT_SECONDS, UP_SECONDS = 30.0, 60.0
"""An election and hearing of it take less; so do a session and a name that Java remembers, after a start."""


def cut_off(picture: Picture) -> tuple[str, ...]:
    """The pods of brokers that answer, and do not pass on to the controller what they are asked; none where no broker is
    seen to, since the controller is at fault then."""
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
    """Every broker passes on to the controller what clients ask of it: topics to create, settings to change."""
    silent = seen(picture.facts.forwarding, NOT_OBSERVED)
    kubernetes_of(picture)
    if not (found := cut_off(picture)):
        return passed("every broker passes requests on to the controller")
    name = found[0]
    lasted = picture.now - silent[picture.brokers[name]]
    return wait(FORWARDING_STUCK, f"broker {picture.brokers[name]} ({name}) answers, and does not pass on to the controller"
                " what it is asked", subject=name, observed=f"{lasted:.0f} s", threshold=f"{SILENT_SECONDS:.0f} s",
                unblocks=_restart(picture, name))


def _restart(picture: Picture, name: str) -> str:
    """Who restarts a broker, with the command."""
    restart = kubectl(picture.namespace, "delete pod {}", name)
    if name in picture.position.rescued:
        return restart
    return (f"Switchover restarts {name}, once, when that costs no partition its minimum in sync; to do it yourself:"
            f" {restart}")


def check_leader_can_go(picture: Picture) -> Verdict:
    """The same of a leader that takes replicas back no more. Those that have caught up count, where another leader is in
    sync: it takes them back within a second or so."""
    seen(picture.facts.caught_up, NOT_OBSERVED)
    return restart_is_safe(picture, frozenset(caught_up(picture)))


LEADER_CAN_GO: Gate[Picture] = Gate("LeaderCanGo", check_leader_can_go, needs=(Need.CAUGHT_UP,))
FOLLOWERS_TAKEN_BACK: Gate[Picture] = Gate(
    "FollowersTakenBack", check_followers_taken_back, patience=lambda _: RESTART_SECONDS, needs=(Need.CAUGHT_UP,))
FORWARDS: Gate[Picture] = Gate(
    "Forwards", check_forwards, patience=lambda _: RESTART_SECONDS, needs=(Need.FORWARDING,))
