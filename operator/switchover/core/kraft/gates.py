"""The gates between the steps of a KafkaMigration: G1 to G15 of kraft-migration.md section 5, as corrected by what was run.

Each is a pure check of one picture. The metadata log is the witness for registration and state (observers of the quorum
are not: feasibility-kraft.md 3.2), ZooKeeper and ApiVersions are the others.
"""

from collections.abc import Iterable

from switchover.core.gate import Gate, Verdict, fail, passed, unknown, wait
from switchover.core.kraft import template
from switchover.core.kraft.facts import (
    BrokerView,
    GroupSample,
    LogImage,
    MigrationState,
    Partition,
    Quorum,
    ZooKeeperState,
)
from switchover.core.kraft.modes import METADATA_LEVELS
from switchover.core.kraft.picture import Picture
from switchover.core.observed import Known, Observed, Unknown

CAUGHT_UP_RECORDS = 5
"""How far a voter or observer may be behind the high watermark: the log grows by two no-op records a second."""
FETCHED_SECONDS = 3.0
"""How old the last fetch of a follower may be; it fetches every half second."""


def _samples(picture: Picture) -> int:
    return picture.spec.gates.stable_samples


def _missing(*observed: Observed[object]) -> Verdict | None:
    for item in observed:
        if isinstance(item, Unknown):
            return unknown("NotObserved", item.why)
    return None


def _log(picture: Picture) -> LogImage | Verdict:
    log = picture.facts.log
    return log.value if isinstance(log, Known) else unknown("MetadataLogUnknown", log.why, subject="metadata log")


def _quorum(picture: Picture) -> Quorum | Verdict:
    quorum = picture.facts.quorum
    return quorum.value if isinstance(quorum, Known) else unknown("QuorumUnknown", quorum.why, subject="quorum")


def _zookeeper(picture: Picture) -> ZooKeeperState | Verdict:
    state = picture.facts.zookeeper
    return state.value if isinstance(state, Known) else unknown("ZooKeeperUnknown", state.why, subject="ZooKeeper")


# --- G1: the quorum ---------------------------------------------------------------------------------------------------


def check_quorum_up(picture: Picture) -> Verdict:
    quorum = _quorum(picture)
    if isinstance(quorum, Verdict):
        return quorum
    expected = set(picture.controllers.values())
    if set(quorum.voters) != expected:
        return fail("WrongVoters", "the quorum's voters are not the controllers of this migration",
                    observed=sorted(quorum.voters), threshold=sorted(expected),
                    unblocks="wipe the volumes of a controller that belongs to another quorum")
    if quorum.high_watermark < 1:
        return wait("QuorumStarting", "the leader has no high watermark yet", subject=f"controller {quorum.leader_id}")
    return _voters_caught_up(picture, quorum)


def _voters_caught_up(picture: Picture, quorum: Quorum, spared: frozenset[int] = frozenset()) -> Verdict:
    for node_id, voter in sorted(quorum.voters.items()):
        if node_id == quorum.leader_id or node_id in spared:
            continue
        age = picture.now - voter.last_fetch_ms / 1000
        behind = quorum.high_watermark - voter.log_end_offset
        if behind > CAUGHT_UP_RECORDS or age > FETCHED_SECONDS:
            return wait("VoterBehind", f"controller {node_id} does not follow the leader", subject=f"controller {node_id}",
                        observed=f"{behind} records behind, last fetch {age:.1f} s ago",
                        threshold=f"{CAUGHT_UP_RECORDS} records, {FETCHED_SECONDS:.0f} s", unblocks="it catches up")
    return passed(f"leader {quorum.leader_id}, epoch {quorum.leader_epoch}, all voters at the high watermark")


def check_controllers_ready(picture: Picture) -> Verdict:
    log = _log(picture)
    if isinstance(log, Verdict):
        return log
    for node_id in sorted(picture.controllers.values()):
        answer = picture.facts.answers.get(node_id, Unknown(f"controller {node_id} was not asked"))
        if not isinstance(answer, Known):
            return unknown("ControllerUnknown", answer.why, subject=f"controller {node_id}")
        if not log.controllers.get(node_id, False):
            return wait("ControllerNotReady", f"controller {node_id} has not registered as ready to migrate",
                        subject=f"controller {node_id}", unblocks="it registers with zookeeper.metadata.migration.enable=true")
        if answer.value.features_epoch < 0:
            return wait("ControllerStarting", f"controller {node_id} does not know the finalized features yet",
                        subject=f"controller {node_id}")
    return passed("every controller registered as ready")


def check_pre_migration(picture: Picture) -> Verdict:
    log = _log(picture)
    if isinstance(log, Verdict):
        return log
    if log.migration_state is MigrationState.NONE:
        return fail("QuorumCannotMigrate", "this quorum was first started without the migration flag and can never migrate",
                    observed=log.migration_state.name, threshold=MigrationState.PRE_MIGRATION.name,
                    unblocks="wipe the controllers' volumes and start again")
    if log.migration_state is None:
        return wait("NoMigrationState", "the metadata log holds no migration state yet", subject="metadata log")
    level = METADATA_LEVELS.get(protocol_version(picture) or "")
    if log.metadata_version != level:
        return fail("MetadataVersionMismatch", "the quorum's metadata.version is not the brokers' protocol version",
                    observed=log.metadata_version, threshold=level,
                    unblocks="wipe the controllers' volumes: they were formatted for another release")
    return passed(f"state {log.migration_state.name}, metadata.version {log.metadata_version}")


def protocol_version(picture: Picture) -> str | None:
    """inter.broker.protocol.version as all brokers' live settings have it (without the -IV suffix); None if unknown."""
    versions = set()
    for settings in picture.facts.broker_settings.values():
        if isinstance(settings, Known):
            versions.add(settings.value.get("inter.broker.protocol.version", "").split("-")[0])
    return versions.pop() if len(versions) == 1 else None


# --- Replicas and restarts --------------------------------------------------------------------------------------------


def _others_views(picture: Picture, nodes: Iterable[str]) -> list[tuple[int, BrokerView]] | Verdict:
    """What brokers outside the batch see; Unknown unless at least one answers and every one that answers not is named."""
    moved = {picture.position.nodes[name].node_id for name in nodes if name in picture.position.nodes}
    views: list[tuple[int, BrokerView]] = []
    unreachable: list[str] = []
    for broker_id in sorted(set(picture.brokers.values()) - moved):
        view = picture.facts.views.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        if isinstance(view, Known):
            views.append((broker_id, view.value))
        else:
            unreachable.append(view.why)
    if unreachable or not views:
        why = "; ".join(unreachable) or "there is no other broker to ask"
        return unknown("NoWitness", f"no other broker can tell whether replicas are in sync: {why}")
    return views


def check_restart_is_safe(picture: Picture) -> Verdict:
    """Every partition keeps min.insync.replicas without the whole batch, by a reading of other brokers (promise 3)."""
    views = _others_views(picture, picture.batch)
    if isinstance(views, Verdict):
        return views
    minima = picture.facts.min_insync
    if not isinstance(minima, Known):
        return unknown("NotObserved", minima.why)
    leaving = {picture.position.nodes[name].node_id for name in picture.batch}
    accepted = set(picture.spec.gates.accepted_topics)
    for witness, view in views:
        for partition in view.partitions:
            carried = leaving & set(partition.replicas)
            if not carried or partition.topic in accepted:
                continue
            rest = set(partition.isr) - leaving
            needed = minima.value.get(partition.topic)
            if needed is None:
                return unknown("NotObserved", f"min.insync.replicas of {partition.topic} is not known yet")
            needed = min(needed, len(partition.replicas))
            if len(rest) < max(needed, 1):
                name = f"{partition.topic}-{partition.index}"
                return wait("WouldLoseInSyncReplicas",
                            f"{name} would have too few replicas in sync without {', '.join(picture.batch)}",
                            subject=name, observed=f"{len(rest)} left in sync, seen by broker {witness}",
                            threshold=f"min.insync.replicas {needed}", unblocks="its other replicas come back in sync")
    return passed("every partition keeps its minimum without the batch")


def _out_of_sync(partitions: Iterable[Partition]) -> list[Partition]:
    return [p for p in partitions if set(p.isr) != set(p.replicas) or p.leader < 0]


def check_all_in_sync(picture: Picture) -> Verdict:
    """No broker outside the batch sees a partition without its leader or with a replica out of sync."""
    views = _others_views(picture, picture.batch)
    if isinstance(views, Verdict):
        return views
    for witness, view in views:
        if lagging := _out_of_sync(view.partitions):
            first = lagging[0]
            missing = sorted(set(first.replicas) - set(first.isr))
            name = f"{first.topic}-{first.index}"
            return wait("OutOfSync", f"{name}: replicas {missing} are out of sync, as broker {witness} sees it",
                        subject=name, observed=f"{len(lagging)} partitions", threshold="0 partitions",
                        unblocks="the replicas catch up")
    return passed("all replicas in sync, as seen by the other brokers")


def check_brokers_see_each_other(picture: Picture) -> Verdict:
    """Every broker lists every broker as alive: in KRaft this is the view of who is unfenced."""
    expected = set(picture.brokers.values())
    for broker_id in sorted(expected):
        view = picture.facts.views.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        if not isinstance(view, Known):
            return wait("BrokerSilent", view.why, subject=f"broker {broker_id}", unblocks="the broker answers")
        if missing := expected - set(view.value.brokers):
            return wait("BrokerFenced", f"broker {broker_id} does not list brokers {sorted(missing)} as alive",
                        subject=f"broker {min(missing)}", unblocks="they are alive again for every broker")
    return passed("every broker lists every broker")


def check_moved_broker(picture: Picture) -> Verdict:
    """G2 and G8: each broker of the batch runs in its mode, and is registered so in the metadata log, unfenced."""
    log = _log(picture)
    if isinstance(log, Verdict):
        return log
    state = _zookeeper(picture)
    if isinstance(state, Verdict):
        return state
    for name in picture.batch:
        record = picture.position.nodes[name]
        node_id, zookeeper_mode = record.node_id, record.assigned != "C"
        mode = picture.mode(node_id)
        if not isinstance(mode, Known):
            return wait("BrokerSilent", mode.why, subject=name, unblocks="the broker answers")
        if mode.value != record.assigned:
            return wait("WrongMode", f"{name} does not answer in its mode", subject=name, observed=mode.value,
                        threshold=record.assigned)
        if (node_id in state.brokers) != zookeeper_mode:
            told = "is missing from" if zookeeper_mode else "is still in"
            return wait("ZooKeeperRegistration", f"broker {node_id} {told} /brokers/ids", subject=name)
        registration = log.brokers.get(node_id)
        if registration is None or registration.migrating_zk != zookeeper_mode:
            return wait("NotRegistered", f"the metadata log has no registration of broker {node_id} in mode"
                        f" {record.assigned}", subject=name,
                        unblocks="the broker registers with the controllers; look at its log for the refusal")
        if registration.fenced:
            return wait("BrokerFenced", f"the controllers fence broker {node_id}", subject=name,
                        unblocks="its heartbeats reach the controllers")
    return passed(f"{', '.join(picture.batch)} registered")


def check_observers_caught_up(picture: Picture) -> Verdict:
    """Each broker of the batch follows the metadata log."""
    quorum = _quorum(picture)
    if isinstance(quorum, Verdict):
        return quorum
    for name in picture.batch:
        node_id = picture.position.nodes[name].node_id
        observer = quorum.observers.get(node_id)
        behind = quorum.high_watermark - observer.log_end_offset if observer is not None else None
        if behind is None or behind > CAUGHT_UP_RECORDS:
            return wait("ObserverBehind", f"broker {node_id} does not follow the metadata log", subject=name,
                        observed="not an observer" if behind is None else f"{behind} records behind",
                        threshold=f"{CAUGHT_UP_RECORDS} records")
    return passed("the metadata log is followed")


def check_nobody_fenced(picture: Picture) -> Verdict:
    """The controllers fence no broker of this cluster."""
    log = _log(picture)
    if isinstance(log, Verdict):
        return log
    for name, node_id in sorted(picture.brokers.items()):
        registration = log.brokers.get(node_id)
        if registration is None or registration.fenced:
            told = "is not registered" if registration is None else "is fenced"
            return wait("BrokerFenced", f"broker {node_id} {told}", subject=name,
                        unblocks="its heartbeats reach the controllers")
    return passed("no broker is fenced")


# --- Template and nodes -----------------------------------------------------------------------------------------------


def check_template_is_ours(picture: Picture) -> Verdict:
    """Before each eviction the template is read again: not ours, no eviction (feasibility-modes.md)."""
    state = picture.facts.kubernetes
    if not isinstance(state, Known):
        return unknown("NotObserved", state.why)
    for name, brokers in picture.broker_sets.items():
        workload = state.value.brokers.get(name)
        if workload is None:
            return fail("StatefulSetMissing", f"StatefulSet {name} does not exist", subject=name,
                        unblocks="create it again as it was")
        if not template.is_ours(workload, brokers):
            return fail("RevertedByGitOps",
                        f"somebody changed mount, volume or update strategy of StatefulSet {name} back: a pod that starts"
                        " now would not find its configuration, so no pod is evicted", subject=name,
                        unblocks="stop the tool that applies the old manifest (suspend its sync, or give it the exported"
                                 " template) and restore the template")
    return passed("the brokers' templates are ours")


def check_nodes_schedulable(picture: Picture) -> Verdict:
    """No batch starts while a node that carries a broker is cordoned."""
    state = picture.facts.kubernetes
    if not isinstance(state, Known):
        return unknown("NotObserved", state.why)
    for workload in state.value.brokers.values():
        for pod in workload.pods.values() if workload is not None else ():
            if pod.cordoned:
                return wait("NodeCordoned", f"node {pod.node} is cordoned and carries {pod.name}", subject=pod.node,
                            unblocks=f"kubectl uncordon {pod.node}")
    return passed("no node of a broker is cordoned")


# --- G4 to G6: claim, copy, dual write ----------------------------------------------------------------------------------


def check_claimed(picture: Picture) -> Verdict:
    state = _zookeeper(picture)
    if isinstance(state, Verdict):
        return state
    if state.controller is None:
        return wait("NoController", "/controller does not exist at this moment", subject="/controller")
    if state.controller.ephemeral or state.controller.node_id not in picture.controllers.values():
        return wait("NotClaimed", "the KRaft controllers have not taken over /controller", subject="/controller",
                    observed=f"node {state.controller.node_id}", threshold=f"one of {sorted(picture.controllers.values())}",
                    unblocks=_who_is_missing(picture, state))
    return passed(f"/controller belongs to KRaft controller {state.controller.node_id}")


def _who_is_missing(picture: Picture, state: ZooKeeperState) -> str:
    """What the migration driver waits for: every broker of /brokers/ids registered as migrating."""
    log = picture.facts.log
    if isinstance(log, Known):
        registered = {node_id for node_id, item in log.value.brokers.items() if item.migrating_zk}
        if missing := sorted(set(state.brokers) - registered):
            return f"brokers {missing} register with the controllers"
    return "the controllers claim it by themselves; after a repair inside ZooKeeper that can take a minute"


def check_copied(picture: Picture) -> Verdict:
    state, log = _zookeeper(picture), _log(picture)
    if isinstance(state, Verdict):
        return state
    if isinstance(log, Verdict):
        return log
    if state.migration is None or state.migration.offset <= 0:
        return wait("NotCopied", "the metadata is not copied yet", subject="/migration",
                    observed="absent" if state.migration is None else f"offset {state.migration.offset}",
                    threshold="offset > 0", unblocks="the controllers finish the copy")
    if log.migration_state is not MigrationState.MIGRATION or log.open_transaction is not None:
        told = log.migration_state.name if log.migration_state is not None else "none"
        return wait("NotCopied", "the metadata log does not say MIGRATION yet", subject="metadata log", observed=told,
                    threshold="MIGRATION, no open transaction")
    return passed(f"copied up to offset {state.migration.offset}")


def check_copy_follows_claim(picture: Picture) -> Verdict:
    """The watchdog of the claimed-but-not-copied window, in which the cluster has no working controller (1.5)."""
    claimed, copied = check_claimed(picture), check_copied(picture)
    if claimed.outcome != "Pass" or copied.outcome == "Pass":
        return passed()
    if copied.outcome == "Unknown":
        return copied
    return wait("ClaimedNotCopied",
                "the KRaft controllers claimed the cluster and have not copied its metadata: no controller works now, so"
                " no leader can be elected. Restart no broker", subject="/migration",
                unblocks="look at the controllers' logs for the record that cannot be copied; if they merely died, start"
                         " them again and the copy is repeated")


def check_no_phantom_copy(picture: Picture) -> Verdict:
    """offset > 0 while the log says neither MIGRATION nor POST_MIGRATION: a stale /migration; topics would be deleted."""
    state, log = picture.facts.zookeeper, picture.facts.log
    if missing := _missing(state, log):
        return missing
    assert isinstance(state, Known)
    assert isinstance(log, Known)
    node = state.value.migration
    settled = log.value.migration_state in (MigrationState.MIGRATION, MigrationState.POST_MIGRATION)
    if node is not None and node.offset > log.value.offset + 1 and not settled:
        return fail("StaleMigrationNode",
                    "/migration says that metadata was copied, but the metadata log says that it was not: the controllers"
                    " would delete every topic from ZooKeeper", subject="/migration", observed=f"offset {node.offset}",
                    unblocks="stop all controllers now, then delete /controller and /migration")
    return passed()


def check_dual_write(picture: Picture) -> Verdict:
    """G6: `/migration` is rewritten twice a second, and its offset stands at the high watermark."""
    state, quorum = _zookeeper(picture), _quorum(picture)
    if isinstance(state, Verdict):
        return state
    if isinstance(quorum, Verdict):
        return quorum
    if state.migration is None:
        return fail("MigrationNodeGone", "/migration does not exist any more", subject="/migration",
                    unblocks="find out who deleted it; no step goes on without dual write")
    limits = picture.spec.gates
    age = picture.now - state.migration.mtime
    lag = quorum.high_watermark - 1 - state.migration.offset
    if lag > limits.dual_write_max_lag or age > limits.dual_write_max_age_seconds:
        return wait("DualWriteBehind", "metadata written to KRaft has not reached ZooKeeper", subject="/migration",
                    observed=f"{lag} records, {age:.1f} s old",
                    threshold=f"{limits.dual_write_max_lag} records, {limits.dual_write_max_age_seconds} s",
                    unblocks="the leading controller reaches ZooKeeper again")
    return passed(f"lag {lag}, {max(age, 0):.1f} s old")


# --- G10, G13, G14 ------------------------------------------------------------------------------------------------------


def check_all_kraft(picture: Picture) -> Verdict:
    """G10: no broker runs on ZooKeeper, by ZooKeeper, by ApiVersions and by the metadata log."""
    state, log = _zookeeper(picture), _log(picture)
    if isinstance(state, Verdict):
        return state
    if isinstance(log, Verdict):
        return log
    if state.brokers:
        return wait("BrokerOnZooKeeper", f"brokers {sorted(state.brokers)} are still registered in ZooKeeper",
                    subject=f"broker {min(state.brokers)}", unblocks="they run in KRaft mode")
    for name, node_id in sorted(picture.brokers.items()):
        mode = picture.mode(node_id)
        if not isinstance(mode, Known):
            return unknown("BrokerSilent", mode.why, subject=name)
        registration = log.brokers.get(node_id)
        if mode.value != "C" or registration is None or registration.migrating_zk:
            return wait("BrokerOnZooKeeper", f"broker {node_id} ({name}) is not in KRaft mode", subject=name,
                        observed=mode.value, threshold="C", unblocks="it runs in KRaft mode")
    strangers = sorted(
        node_id for node_id, item in log.brokers.items() if item.migrating_zk and node_id not in picture.brokers.values())
    if strangers:
        return fail("UnknownBroker", f"broker {strangers[0]} is registered in ZooKeeper mode and is none of this migration",
                    subject=f"broker {strangers[0]}", unblocks="move or remove it: finalizing would cut it off (KAFKA-20960)")
    return passed("every broker runs in KRaft mode")


def check_majority_without_batch(picture: Picture) -> Verdict:
    """G13: the other voters are caught up before a controller stops."""
    quorum = _quorum(picture)
    if isinstance(quorum, Verdict):
        return quorum
    leaving = frozenset(picture.position.nodes[name].node_id for name in picture.batch)
    return _voters_caught_up(picture, quorum, spared=leaving)


def check_followers_first(picture: Picture) -> Verdict:
    """G13: the leader is moved last, so that the election that finalizes is the last one; read right before."""
    quorum = _quorum(picture)
    if isinstance(quorum, Verdict):
        return quorum
    left = {name for name in picture.controllers if picture.position.nodes[name].assigned != "F"} - set(picture.batch)
    for name in picture.batch:
        if picture.position.nodes[name].node_id == quorum.leader_id and left:
            return wait("LeaderLast", f"{name} became the leader while other controllers are not finalized", subject=name,
                        unblocks="nothing to do: leadership is read again")
    return passed()


def check_controller_finalized(picture: Picture) -> Verdict:
    """Each controller of the batch answers without the migration flag."""
    for name in picture.batch:
        mode = picture.mode(picture.position.nodes[name].node_id)
        if not isinstance(mode, Known):
            return wait("ControllerSilent", mode.why, subject=name, unblocks="the controller answers")
        if mode.value != "F":
            return wait("WrongMode", f"{name} still has the migration flag", subject=name, observed=mode.value,
                        threshold="F")
    return passed(f"{', '.join(picture.batch)} without the flag")


def check_finalized(picture: Picture) -> Verdict:
    """G14: POST_MIGRATION is in the log, and no controller is registered with the flag."""
    log = _log(picture)
    if isinstance(log, Verdict):
        return log
    if log.migration_state is not MigrationState.POST_MIGRATION:
        told = log.migration_state.name if log.migration_state is not None else "none"
        return wait("NotFinalized", "the metadata log does not say POST_MIGRATION", subject="metadata log", observed=told,
                    threshold="POST_MIGRATION", unblocks="a controller without the flag becomes leader")
    flagged = sorted(node_id for node_id, ready in log.controllers.items() if ready)
    if flagged:
        return wait("ControllerFlagged", f"controllers {flagged} are registered with the migration flag",
                    subject=f"controller {flagged[0]}")
    return passed("POST_MIGRATION, no controller has the flag")


def check_dual_write_ended(picture: Picture) -> Verdict:
    """G14: `/migration` is not written any more. It stays behind for ever and is evidence of nothing else."""
    state = _zookeeper(picture)
    if isinstance(state, Verdict):
        return state
    age = picture.now - state.migration.mtime if state.migration is not None else None
    if age is not None and age <= picture.spec.gates.dual_write_max_age_seconds:
        return wait("StillDualWriting", "/migration was written a moment ago", subject="/migration",
                    observed=f"{age:.1f} s", threshold=f"> {picture.spec.gates.dual_write_max_age_seconds} s")
    return passed("/migration is frozen")


# --- Soak, retention, ZooKeeper -----------------------------------------------------------------------------------------


def check_soaked(picture: Picture) -> Verdict:
    since = picture.position.opened
    stood = picture.now - since if since is not None else 0.0
    if stood < picture.spec.soak_seconds:
        return wait("Soaking", "all brokers run on KRaft, dual write goes on", observed=f"{stood:.0f} s",
                    threshold=f"{picture.spec.soak_seconds} s", unblocks="nothing to do: the soak ends by itself")
    return passed("soaked")


def check_retained(picture: Picture) -> Verdict:
    since = picture.position.opened
    stood = picture.now - since if since is not None else 0.0
    if stood < picture.spec.zookeeper_retention_seconds:
        return wait("Retaining", "ZooKeeper is kept", observed=f"{stood:.0f} s",
                    threshold=f"{picture.spec.zookeeper_retention_seconds} s", unblocks="nothing to do: it ends by itself")
    return passed("retention is over")


def check_zookeeper_unused(picture: Picture) -> Verdict:
    """G15: no client is connected to any ZooKeeper server, ourselves not counted."""
    for server, connections in sorted(picture.facts.zookeeper_connections.items()):
        if not isinstance(connections, Known):
            return unknown("ZooKeeperUnverified", connections.why, subject=server)
        if connections.value > 0:
            return wait("ZooKeeperInUse", f"{connections.value} clients are connected to {server}", subject=server,
                        observed=connections.value, threshold=0,
                        unblocks="stop whatever still uses this ZooKeeper; the commands of Kafka's tools count too")
    if not picture.facts.zookeeper_connections:
        return unknown("ZooKeeperUnverified", "no ZooKeeper server was asked")
    return passed("no client is connected to ZooKeeper")


# --- HandOver -----------------------------------------------------------------------------------------------------------


def check_no_pod_would_restart(picture: Picture) -> Verdict:
    """The update strategy may only come back while every pod has the update revision (feasibility-modes.md)."""
    state = picture.facts.kubernetes
    if not isinstance(state, Known):
        return unknown("NotObserved", state.why)
    for name, workload in state.value.brokers.items():
        if workload is None:
            return fail("StatefulSetMissing", f"StatefulSet {name} does not exist", subject=name)
        for pod in workload.pods.values():
            if pod.revision != workload.update_revision:
                return wait("WouldRestart", f"{pod.name} does not have the update revision: Kubernetes would restart it",
                            subject=pod.name, observed=pod.revision, threshold=workload.update_revision,
                            unblocks="the template equals what the pods run")
    return passed("no pod would restart")


# --- Groups -------------------------------------------------------------------------------------------------------------


def check_groups_healthy(picture: Picture) -> Verdict:
    """The named groups go on: commits advance where there is something to commit, and lag is under its threshold."""
    for group in picture.spec.gates.groups:
        samples = picture.facts.groups.get(group.name, Unknown(f"group {group.name} was not sampled"))
        if not isinstance(samples, Known):
            return unknown("GroupUnknown", samples.why, subject=group.name)
        if verdict := _group_trouble(group.name, samples.value, group.max_lag, group.max_stall_seconds):
            return verdict
    return passed("the named groups are healthy")


def _group_trouble(name: str, samples: tuple[GroupSample, ...], max_lag: int, max_stall: float) -> Verdict | None:
    newest = samples[-1]
    if not newest.offsets:
        return wait("GroupHasNoCommits", f"group {name} has no committed offset", subject=name,
                    unblocks="the group consumes and commits")
    for (topic, partition), (committed, end) in sorted(newest.offsets.items()):
        if committed is None:
            continue
        subject = f"{name} {topic}-{partition}"
        if end - committed > max_lag:
            return wait("GroupLag", f"group {name} is behind on {topic}-{partition}", subject=subject,
                        observed=f"{end - committed} records", threshold=f"{max_lag} records",
                        unblocks="the group catches up")
        stalled = _stalled_seconds(samples, (topic, partition), committed, end)
        if stalled > max_stall:
            return wait("GroupStalled", f"group {name} has not committed on {topic}-{partition}", subject=subject,
                        observed=f"{stalled:.0f} s", threshold=f"{max_stall:.0f} s", unblocks="the group commits again")
    return None


def _stalled_seconds(samples: tuple[GroupSample, ...], key: tuple[str, int], committed: int, end: int) -> float:
    """Seconds in which the committed offset stood still although there was something to commit."""
    if committed >= end:
        return 0.0
    newest = samples[-1].at
    start = newest
    for sample in reversed(samples):
        before = sample.offsets.get(key)
        if before is None or before[0] != committed or before[1] <= committed:
            break
        start = sample.at
    return newest - start


QUORUM_UP: Gate[Picture] = Gate("QuorumUp", check_quorum_up, hold=lambda p: float(p.spec.gates.quorum_stable_seconds))
CONTROLLERS_READY: Gate[Picture] = Gate("ControllersReady", check_controllers_ready, samples=_samples)
PRE_MIGRATION: Gate[Picture] = Gate("PreMigration", check_pre_migration)
RESTART_IS_SAFE: Gate[Picture] = Gate("RestartIsSafe", check_restart_is_safe)
ALL_IN_SYNC: Gate[Picture] = Gate("AllInSync", check_all_in_sync, samples=_samples)
BROKERS_SEE_EACH_OTHER: Gate[Picture] = Gate("BrokersSeeEachOther", check_brokers_see_each_other, samples=_samples)
MOVED_BROKER: Gate[Picture] = Gate("MovedBroker", check_moved_broker, samples=_samples)
OBSERVERS_CAUGHT_UP: Gate[Picture] = Gate("ObserversCaughtUp", check_observers_caught_up)
NOBODY_FENCED: Gate[Picture] = Gate("NobodyFenced", check_nobody_fenced, samples=_samples)
NOBODY_FENCED_FOR_LONG: Gate[Picture] = Gate(
    "NobodyFencedForLong", check_nobody_fenced, samples=_samples,
    hold=lambda p: float(p.spec.gates.broker_session_timeout_seconds + 1))
TEMPLATE_IS_OURS: Gate[Picture] = Gate("TemplateIsOurs", check_template_is_ours)
NODES_SCHEDULABLE: Gate[Picture] = Gate("NodesSchedulable", check_nodes_schedulable)
CLAIMED: Gate[Picture] = Gate("Claimed", check_claimed)
COPIED: Gate[Picture] = Gate("Copied", check_copied)
COPY_FOLLOWS_CLAIM: Gate[Picture] = Gate(
    "CopyFollowsClaim", check_copy_follows_claim, patience=lambda p: copy_timeout(p))
NO_PHANTOM_COPY: Gate[Picture] = Gate("NoPhantomCopy", check_no_phantom_copy)
DUAL_WRITE: Gate[Picture] = Gate("DualWrite", check_dual_write, samples=lambda p: max(_samples(p), 5))
DUAL_WRITE_ALIVE: Gate[Picture] = Gate("DualWriteAlive", check_dual_write)
ALL_KRAFT: Gate[Picture] = Gate("AllKRaft", check_all_kraft, samples=_samples)
MAJORITY_WITHOUT_BATCH: Gate[Picture] = Gate("MajorityWithoutBatch", check_majority_without_batch, samples=_samples)
FOLLOWERS_FIRST: Gate[Picture] = Gate("FollowersFirst", check_followers_first)
CONTROLLER_FINALIZED: Gate[Picture] = Gate("ControllerFinalized", check_controller_finalized)
FINALIZED: Gate[Picture] = Gate("Finalized", check_finalized)
DUAL_WRITE_ENDED: Gate[Picture] = Gate("DualWriteEnded", check_dual_write_ended)
SOAKED: Gate[Picture] = Gate("Soaked", check_soaked)
RETAINED: Gate[Picture] = Gate("Retained", check_retained)
ZOOKEEPER_UNUSED: Gate[Picture] = Gate("ZooKeeperUnused", check_zookeeper_unused, samples=_samples)
NO_POD_WOULD_RESTART: Gate[Picture] = Gate("NoPodWouldRestart", check_no_pod_would_restart, samples=_samples)
GROUPS_HEALTHY: Gate[Picture] = Gate("GroupsHealthy", check_groups_healthy)


def copy_timeout(picture: Picture) -> float:
    """Seconds between claim and copy before the watchdog speaks: the limit, and a second for every 1,000 partitions."""
    partitions = max(
        (len(view.value.partitions) for view in picture.facts.views.values() if isinstance(view, Known)), default=0)
    return picture.spec.gates.copy_timeout_seconds + partitions / 1000
