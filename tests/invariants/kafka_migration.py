"""K1 to K11 of docs/testing.md#invariants: what holds for a Kafka cluster between ZooKeeper and KRaft, there and back."""

import re
from collections.abc import Iterator
from itertools import combinations

from invariants.events import Cluster, Effect, Event, Recorded, RolledByKubernetes, Started
from invariants.memory import Memory, Standing
from switchover.api.kafka_migration import NodeMode as Mode

PLAIN = {Mode.ZOOKEEPER, Mode.ZOOKEEPER_PINNED, Mode.ZOOKEEPER_RAISED}
"""The modes of brokers that know of no migration."""
RUNNING = {Mode.MIGRATION_CONTROLLER, Mode.KRAFT_CONTROLLER}
"""Those of controllers that run."""
TOGETHER = [*({*plain, *ours} for count in range(4) for plain in combinations(sorted(PLAIN), count)
              for ours in ((), (Mode.MIGRATION,))),
            {Mode.MIGRATION, Mode.KRAFT}, {Mode.KRAFT}]
ACTING_SECONDS = 5.0
"""A failover of the quorum between a reading and an eviction is nobody's fault."""


def modes_go_together(memory: Memory, event: Event) -> Iterator[str]:
    """K1, the brokers."""
    assert isinstance(event, Cluster)
    modes = {mode for mode in event.brokers.values() if mode}
    if modes not in TOGETHER:
        yield f"brokers run in modes {sorted(modes)} at the same time"
    if Mode.MIGRATION in modes and not (memory.quorum_seen or event.quorum):
        yield "a broker runs with the migration flag before there is a quorum"


def modes_have_their_time(memory: Memory, event: Event) -> Iterator[str]:
    """K1, an eviction: Migration needs a quorum, KRaft needs a living dual write; the last one needs ZooKeeper stopped."""
    assert isinstance(event, Effect)
    cluster = memory.cluster
    if cluster is None or memory.kind(event) != "broker pod":
        return
    assigned = memory.standing.nodes.get(event.name, {}).get("assigned")
    if memory.standing.place == "ReleaseZooKeeper>":
        if cluster.zookeeper_stopped is False or cluster.state not in (None, "POST_MIGRATION"):
            yield f"{event.name} is restarted while ZooKeeper runs, and the log says {cluster.state}: that proves nothing"
        return
    if assigned == Mode.MIGRATION and not cluster.quorum and not memory.standing.backward:
        yield f"{event.name} goes to Migration without a quorum"
    if assigned == Mode.KRAFT and cluster.state not in (None, "MIGRATION"):
        yield f"{event.name} goes to KRaft while the log says {cluster.state}"
    if assigned == Mode.KRAFT and (cluster.dual_write_age or 0) > memory.limits.dual_write_age:
        yield f"{event.name} goes to KRaft while the dual write has been dead for {cluster.dual_write_age:.0f} s"
    if assigned in PLAIN and cluster.claimed:
        yield f"{event.name} goes to {assigned} while KRaft has the cluster"


def starts_as_it_may(memory: Memory, event: Event) -> Iterator[str]:
    """K1 and K8, a process that starts."""
    assert isinstance(event, Started)
    cluster = memory.cluster
    if not event.mode:
        yield f"{event.pod} starts without a configuration that can be"
    if cluster is None:
        return
    if event.mode in PLAIN and cluster.claimed:
        yield f"{event.pod} starts in mode {event.mode} while KRaft has the cluster"
    if event.mode == Mode.KRAFT and cluster.state not in ("MIGRATION", "POST_MIGRATION"):
        yield f"{event.pod} starts in mode KRaft while the log says {cluster.state}"


def starts_on_its_log(memory: Memory, event: Event) -> Iterator[str]:
    """K8: an empty log begins with the flag, and only where nothing was left behind."""
    assert isinstance(event, Started)
    if event.mode == Mode.KRAFT_CONTROLLER and event.empty:
        yield f"{event.pod} starts without the flag on an empty log"
    left = memory.cluster is not None and (memory.cluster.migration_offset or 0) > 0
    if event.mode == Mode.MIGRATION_CONTROLLER and event.empty and left and not memory.cluster.quorum:  # type: ignore[union-attr]
        yield f"{event.pod} starts on an empty log while /migration tells of an older copy"


def restart_is_safe(memory: Memory, event: Event) -> Iterator[str]:
    """K2: what a broker carries stays above min.insync.replicas without it, and only one batch is down by our hand.

    Of a broker that is stuck, those count that the next leader takes back; and its restart is what the batch waits for.
    """
    assert isinstance(event, Effect)
    if memory.kind(event) != "broker pod":
        return
    cluster, limits = memory.cluster, memory.limits
    if cluster is not None and cluster.in_sync is not None:
        for (topic, index), in_sync in cluster.in_sync.items():
            rest = in_sync - {event.name}
            back = cluster.caught_up.get((topic, index), frozenset()) if rest and event.name in cluster.stuck else rest
            if event.name in cluster.replicas[topic, index] and len(rest | back - {event.name}) < limits.min_insync:
                yield f"{event.name} is stopped while {topic}-{index} is in sync on {sorted(in_sync)} alone"
        ours = {pod for pod in memory.restarted if pod.rpartition("-")[0] in memory.broker_sets}
        others = ours - set(memory.standing.batch_nodes)
        if others and event.name not in cluster.stuck:
            yield f"{event.name} is stopped while {sorted(others)} of another batch are not back"


def replicas_stay(memory: Memory, event: Event) -> Iterator[str]:
    """K2, what becomes of it."""
    assert isinstance(event, Cluster)
    if not memory.whole or event.in_sync is None:
        return
    for (topic, index), in_sync in event.in_sync.items():
        if len(in_sync) < min(memory.limits.min_insync, len(event.replicas[topic, index])):
            yield f"{topic}-{index} has {len(in_sync)} replicas in sync"


def only_our_hand(_: Memory, event: Event) -> Iterator[str]:
    """K2: Kubernetes rolls nothing by itself."""
    assert isinstance(event, RolledByKubernetes)
    yield f"Kubernetes restarts {event.pod}, ungated: the strategy is RollingUpdate"


def canary_first(memory: Memory, event: Event) -> Iterator[str]:
    """K3: a batch of brokers ends when it has been healthy for its bake, without a break; the way back has no bakes."""
    assert isinstance(event, Recorded)
    before, now = memory.standing, Standing(event.status)
    same = (before.place, before.attempt) == (now.place, now.attempt)
    if not same or now.backward or not before.batch_nodes or now.batch_nodes == before.batch_nodes:
        return
    brokers = all(name.rpartition("-")[0] in memory.broker_sets for name in before.batch_nodes)
    steps = (memory.spec.get("rollout") or {}).get("steps") or ()
    rescue = before.is_remedy or now.is_remedy
    if not brokers or not steps or rescue or now.gave_up(before):
        return
    bake = steps[min(before.batch, len(steps)) - 1].get("bakeSeconds", 0)
    if before.baking_since is None or event.at - before.baking_since < bake - 1:
        yield f"batch {before.batch} of {before.place} ends without its bake of {bake} s"


def no_early_finalize(memory: Memory, event: Event) -> Iterator[str]:
    """K4: an unflagged controller needs the step, an approval for this very plan, and no broker on ZooKeeper.

    One that is restarted afterwards, as a proof, was unflagged before. Whoever withdraws the approval once the first is
    unflagged withdraws nothing.
    """
    assert isinstance(event, Effect)
    standing, kind = memory.standing, memory.kind(event)
    assigned = standing.nodes.get(event.name, {}).get("assigned") if kind == "controller pod" else None
    if assigned != Mode.KRAFT_CONTROLLER and Mode.KRAFT_CONTROLLER not in (event.assigns or {}).values():
        return
    if memory.finalized and standing.place in ("HandOver>", "ReleaseZooKeeper>"):
        return
    if standing.place != "Finalize>":
        yield f"{event.name} is finalized in {standing.place}"
    plan = memory.recorded.status.get("planHash") if memory.recorded is not None else None
    approvals = memory.spec.get("approvals") or ()
    first = not any(node.get("assigned") == Mode.KRAFT_CONTROLLER for name, node in standing.nodes.items()
                    if name not in standing.batch_nodes)
    if first and not any(item["name"] == "Finalize" and item.get("planHash") == plan for item in approvals):
        yield f"{event.name} is finalized without an approval of this plan"
    if memory.cluster is not None:
        if zookeeper := sorted(pod for pod, mode in memory.cluster.brokers.items() if mode in {*PLAIN, Mode.MIGRATION}):
            yield f"{event.name} is finalized while {zookeeper} run on ZooKeeper"
        if memory.cluster.registered:
            yield f"{event.name} is finalized while {sorted(memory.cluster.registered)} are registered in ZooKeeper"


def finalized_by_us(memory: Memory, event: Event) -> Iterator[str]:
    """K4, what becomes of it: POST_MIGRATION comes in Finalize, with every broker on KRaft."""
    assert isinstance(event, Cluster)
    if event.state != "POST_MIGRATION" or memory.finalized:
        return
    if memory.recorded is not None and memory.standing.place != "Finalize>":
        yield f"the migration was finalized in {memory.standing.place}"
    if any(mode not in (Mode.KRAFT, "") for mode in event.brokers.values()):
        yield "the migration was finalized while a broker is not on KRaft"


def no_way_back_after_it(memory: Memory, event: Event) -> Iterator[str]:
    """K5."""
    assert isinstance(event, Effect)
    if memory.finalized and memory.standing.backward and memory.kind(event) not in ("lease", "event", "migration"):
        yield f"{event.verb} {event.resource} {event.name} on the way back, after POST_MIGRATION"


def touches_nothing_else(memory: Memory, event: Event) -> Iterator[str]:
    """K6: ZooKeeper's processes, volumes and nodes, and whatever else is there, are not ours."""
    assert isinstance(event, Effect)
    if not memory.kind(event):
        yield f"{event.verb} {event.resource} {event.name}: nothing of this migration"
    if event.resource == "znodes" and not _is_state(event) and event.name not in (
            "/migration", "/controller", "/controller_epoch"):
        yield f"{event.verb} {event.name}"


def _is_state(event: Effect) -> bool:
    """A partition's state, written again as it was, or created where there was none."""
    return event.verb in ("change", "create") and re.fullmatch(
        r"/brokers/topics/[^/]+/partitions/\d+/state", event.name) is not None


def znodes_in_their_order(memory: Memory, event: Event) -> Iterator[str]:
    """K7."""
    assert isinstance(event, Effect)
    if event.resource != "znodes" or (event.verb == "create" and _is_state(event)):
        return
    cluster, path = memory.cluster, event.name
    if path == "/controller_epoch" and event.verb == "delete":
        yield "/controller_epoch is deleted"
    if path == "/controller_epoch" and event.content.get("epoch", 0) <= event.content.get("expected", 0):
        yield "/controller_epoch is not raised"
    if not memory.standing.backward:
        yield f"{event.verb} {path} on the way forward"
    if cluster is not None:
        running = sorted(pod for pod, mode in cluster.controllers.items() if mode in RUNNING)
        if running and not _is_state(event):
            yield f"{event.verb} {path} while controllers {running} run"
        if kraft := sorted(pod for pod, mode in cluster.brokers.items() if mode == Mode.KRAFT):
            yield f"{event.verb} {path} while {kraft} run on KRaft"
    if path == "/controller" and event.verb == "delete":
        if event.content.get("ephemeral"):
            yield "the ZooKeeper controller's own /controller is deleted"
        if event.content.get("migration"):
            yield "/controller is deleted before /migration"
        if behind := event.content.get("behind"):
            yield f"/controller is deleted while the states of {behind} are older than their leaders know"
        if event.content.get("epoch", 0) < event.content.get("partition_epoch", 0):
            yield (f"/controller is deleted at epoch {event.content['epoch']}, and partition states have"
                   f" {event.content['partition_epoch']}: elections would be aborted (KAFKA-20488)")


def somebody_acts(memory: Memory, event: Event) -> Iterator[str]:
    """K9: the cluster is never without a controller for long, nor a partition without a leader."""
    assert isinstance(event, Cluster)
    limits = memory.limits
    since = memory.nobody_acts_since if event.rules == "" else None
    if since is not None and event.at - since > limits.without_controller:
        yield f"no controller acts for {event.at - since:.0f} s"
    for (topic, index), lost in memory.leaderless.items():
        if (topic, index) in (event.leaderless or ()) and event.at - lost > limits.without_leader:
            yield f"{topic}-{index} has no living leader for {event.at - lost:.0f} s"


def nothing_stops_while_nobody_acts(memory: Memory, event: Event) -> Iterator[str]:
    """K9, an eviction: no broker while no controller works, none that names KRaft while the quorum is down."""
    assert isinstance(event, Effect)
    cluster, kind = memory.cluster, memory.kind(event)
    if cluster is None or kind not in ("broker pod", "controller pod"):
        return
    if kind == "broker pod":
        if event.name in cluster.names_kraft:
            yield f"{event.name} is stopped while it names KRaft and the quorum is down: five minutes"
        since = memory.nobody_acts_since
        if since is not None and event.at - since > ACTING_SECONDS:
            yield f"{event.name} is stopped while no controller acts"
        return
    followers = {pod for pod, mode in cluster.controllers.items() if mode == Mode.MIGRATION_CONTROLLER and pod != event.name}
    assigned = memory.standing.nodes.get(event.name, {}).get("assigned")
    left = followers - set(memory.standing.batch_nodes)
    if event.name == cluster.leader and left and assigned != Mode.MIGRATION_CONTROLLER:
        yield f"{event.name} leads the quorum and is stopped before {sorted(followers)}"


def metadata_stays(memory: Memory, event: Event) -> Iterator[str]:
    """K10: what rules holds what administrators made of it."""
    assert isinstance(event, Cluster)
    if event.metadata is None or event.metadata_wanted is None or not event.rules:
        return
    left, right = event.metadata, event.metadata_wanted
    for name in sorted(left.keys() | right.keys()):
        if left.get(name) != right.get(name):
            yield f"metadata: {name} is {left.get(name)!r}, an administrator made it {right.get(name)!r}"


def nothing_acknowledged_is_lost(memory: Memory, event: Event) -> Iterator[str]:
    """K11."""
    if isinstance(event, Cluster):
        if event.lost_records:
            yield f"{event.lost_records} acknowledged records cannot be read"
        known = memory.cluster.cluster_id if memory.cluster is not None else ""
        if known and event.cluster_id and known != event.cluster_id:
            yield f"cluster id {known} became {event.cluster_id}"
    elif isinstance(event, Recorded) and memory.recorded is not None:
        known, now = memory.recorded.status.get("clusterId"), event.status.get("clusterId")
        if known and memory.recorded.uid == event.uid and known != now:
            yield f"cluster id {known} became {now}"


RULES = (
    ("K1", Cluster, modes_go_together),
    ("K1", Effect, modes_have_their_time),
    ("K1", Started, starts_as_it_may),
    ("K2", Effect, restart_is_safe),
    ("K2", Cluster, replicas_stay),
    ("K2", RolledByKubernetes, only_our_hand),
    ("K3", Recorded, canary_first),
    ("K4", Effect, no_early_finalize),
    ("K4", Cluster, finalized_by_us),
    ("K5", Effect, no_way_back_after_it),
    ("K6", Effect, touches_nothing_else),
    ("K7", Effect, znodes_in_their_order),
    ("K8", Started, starts_on_its_log),
    ("K9", Cluster, somebody_acts),
    ("K9", Effect, nothing_stops_while_nobody_acts),
    ("K10", Cluster, metadata_stays),
    ("K11", Cluster, nothing_acknowledged_is_lost),
    ("K11", Recorded, nothing_acknowledged_is_lost),
)
