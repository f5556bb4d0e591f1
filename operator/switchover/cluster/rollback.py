"""Goals and orders of a rollback: the controllers stop, ZooKeeper's controller takes over, and nothing of ours is left.

The order was run on real Kafka (docs/facts/kraft.md#rollback): leader last, epoch before `/migration` before
`/controller`, and no broker before every broker names the ZooKeeper controller.
"""

from switchover.answers.observed import Known, Observed
from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Verdict as Outcome
from switchover.cluster import names, nodes, template
from switchover.cluster.effects import DeleteZNode, RaiseEpoch, RaiseVersions
from switchover.cluster.facts import KubernetesState
from switchover.cluster.gates.dual_write import DRIVER_ALIVE, are_ended_by_a_new_leader
from switchover.cluster.gates.rollback import is_behind
from switchover.cluster.goals import state_of
from switchover.cluster.picture import Picture
from switchover.cluster.reading import broker_workloads, is_claimed, leading_controller, pods_of_controllers
from switchover.engine.effects import Delete, Effect, patch_stateful_set, replacement
from switchover.engine.rollout import BatchSize, Sight
from switchover.metadata.parity import MigrationState
from switchover.zookeeper.nodes import ZooKeeperState


def _zookeeper(picture: Picture) -> ZooKeeperState | None:
    return picture.facts.zookeeper.value if isinstance(picture.facts.zookeeper, Known) else None


# --- the controllers --------------------------------------------------------------------------------------------------


def _all_stopped(picture: Picture, state: KubernetesState) -> bool:
    """Seen in this pass: every controller waits instead of running Kafka, or the controllers are gone, pods and all."""
    if state.controllers is None:
        return True
    seen = [nodes.sight(picture, name) for name in picture.controllers if name in picture.position.nodes]
    return all(isinstance(one, Known) and one.value.mode == NodeMode.STOPPED for one in seen)


def to_stop(picture: Picture) -> Observed[list[str]]:
    """Controllers of a claim that are not stopped yet, the leader last; without a claim they are removed as they are."""
    if not isinstance(picture.facts.kubernetes, Known):
        return picture.facts.kubernetes
    zookeeper = picture.facts.zookeeper
    if not isinstance(zookeeper, Known):
        return zookeeper
    if picture.facts.kubernetes.value.controllers is None or not is_claimed(zookeeper.value):
        return Known([], zookeeper.at)
    leader = zookeeper.value.controller.node_id if zookeeper.value.controller is not None else -1
    left = picture.position.left(picture.controllers, NodeMode.STOPPED)
    return Known(nodes.leader_last(picture, left, leader), zookeeper.at)


def stop_sizes(picture: Picture) -> tuple[BatchSize, ...]:
    """One by one in dual write, so that the leader can go last; all together where there is nothing left to write."""
    return (BatchSize(1 if picture.high_watermark >= 0 else len(picture.controllers), 0.0),)


def stop_pod(picture: Picture, name: str, seen: Sight) -> Effect:
    """Replace the pod; with a stale `/migration` at once, since every election brings the controllers nearer to deleting
    all topics."""
    zookeeper, log = _zookeeper(picture), picture.facts.log
    migration = zookeeper.migration if zookeeper is not None else None
    fresh = isinstance(log, Known) and log.value.migration_state is MigrationState.PRE_MIGRATION
    stale = fresh and migration is not None and migration.offset > 0
    return replacement(name, seen.uid, ready=seen.ready, at_once=stale)


def to_start_again(picture: Picture) -> Observed[list[str]]:
    """All controllers, when they stopped before the last metadata that was seen had reached ZooKeeper."""
    state, zookeeper = state_of(picture), _zookeeper(picture)
    if state is None or zookeeper is None or state.controllers is None or not is_claimed(zookeeper):
        return Known([], picture.now)
    lost = _all_stopped(picture, state) and is_behind(picture, zookeeper)
    return Known(list(picture.controllers) if lost else [], picture.now)


def all_controllers(picture: Picture) -> tuple[BatchSize, ...]:
    """Every controller in one batch."""
    return (BatchSize(len(picture.controllers), 0.0),)


def to_restart(picture: Picture) -> Observed[list[str]]:
    """Every controller, once: what merely died is healed by it (docs/facts/kraft.md#killed-after-the-claim)."""
    tried = any(name in picture.position.rescued for name in picture.controllers)
    return Known([] if tried else list(picture.controllers), picture.now)


def to_hand_on(picture: Picture) -> Observed[list[str]]:
    """The leader, one after the other, each once: of a driver that is stuck, whose process is older than the last write of
    `/migration`; of differences that the next leader ends, whose process is older than the step."""
    quorum, zookeeper, pods = picture.facts.quorum, _zookeeper(picture), pods_of_controllers(picture)
    if not isinstance(quorum, Known):
        return quorum
    migration = zookeeper.migration if zookeeper is not None else None
    parity, since = picture.facts.parity, None
    if migration is not None and DRIVER_ALIVE.check(picture).outcome is Outcome.WAIT:
        since = migration.mtime
    elif isinstance(parity, Known) and are_ended_by_a_new_leader(parity.value.differences):
        since = picture.position.opened
    leader = leading_controller(picture)
    old = leader in pods and since is not None and (pods[leader].started_at or picture.now) < since
    return Known([leader] if old else [], quorum.at)


def to_fail_over(picture: Picture) -> Observed[list[str]]:
    """The leader of this moment, once in the soak."""
    quorum = picture.facts.quorum
    if picture.position.batches_done:
        return Known([], picture.now)
    if not isinstance(quorum, Known):
        return quorum
    leader = leading_controller(picture)
    return Known([leader] if leader else [], quorum.at)


# --- the brokers ------------------------------------------------------------------------------------------------------


def to_migration(picture: Picture) -> Observed[list[str]]:
    """Brokers that left ZooKeeper; one that does not answer is the first to be brought back."""
    return _broken_first(picture, nodes.brokers_to(NodeMode.MIGRATION, picture))


def to_zookeeper(picture: Picture) -> Observed[list[str]]:
    """Brokers with the flag, the ZooKeeper controller's last."""
    return _broken_first(picture, nodes.brokers_to(NodeMode.ZOOKEEPER, picture))


def _broken_first(picture: Picture, left: Observed[list[str]]) -> Observed[list[str]]:
    if not isinstance(left, Known):
        return left
    return Known(sorted(left.value, key=lambda name: isinstance(picture.mode(picture.brokers[name]), Known)), left.at)


def no_files(_: Picture) -> tuple[Effect, ...]:
    """Brokers on their original template read the user's own file."""
    return ()


# --- goals ------------------------------------------------------------------------------------------------------------


def is_critical(picture: Picture) -> bool:
    """KRaft is stopping and ZooKeeper's controller has not taken over yet: the migration must not be paused here.

    From the choice of the first controller on, before `Picture.is_stopping`: its edits already say so.
    """
    zookeeper = _zookeeper(picture)
    stopping = any(picture.position.nodes[name].assigned == NodeMode.STOPPED
                   for name in picture.controllers if name in picture.position.nodes)
    return stopping and (zookeeper is None or zookeeper.controller is None or is_claimed(zookeeper))


def give_back(picture: Picture) -> tuple[Effect, ...]:
    """ZooKeeper to the brokers, then their templates and, when every pod runs by them, their update strategies."""
    state = state_of(picture)
    if state is None:
        return ()
    if first := end_claim(picture):
        return first
    zookeeper = _zookeeper(picture)
    if zookeeper is None or zookeeper.controller is None or is_claimed(zookeeper):
        return ()
    effects: list[Effect] = []
    for name, workload in broker_workloads(state).items():
        original = state.originals.get(name)
        if original is None:
            continue
        settled = not picture.position.left(picture.pods_of(name), NodeMode.ZOOKEEPER)
        if workload.template != original["template"]:
            if workload.update_strategy != template.ON_DELETE:
                continue                                # restored now, Kubernetes would roll all pods: the gate reports it
            operations = template.restore_template(workload, original)
            effects.append(patch_stateful_set(name, operations, "template as it was"))
        elif workload.update_strategy != original["updateStrategy"] and settled and all(
                pod.revision == workload.update_revision for pod in workload.pods.values()):
            operations = template.restore_strategy(workload, original)
            effects.append(patch_stateful_set(name, operations, "update strategy as it was"))
    return tuple(effects)


def end_claim(picture: Picture) -> tuple[Effect, ...]:
    """One effect at a time: controllers without a claim go as they are; behind stopped ones, the nodes of their claim."""
    state, zookeeper = state_of(picture), _zookeeper(picture)
    if state is None or zookeeper is None:
        return ()
    claimed = is_claimed(zookeeper)
    if state.controllers is not None and not claimed:
        return (Delete("apps/v1", "StatefulSet", state.controllers.name, state.controllers.uid),)
    if claimed and not picture.is_stopping and isinstance(parity := picture.facts.parity, Known) and parity.value.overdue:
        return (RaiseVersions(parity.value.overdue, zookeeper.controller_epoch),)
    if not _all_stopped(picture, state):
        return ()
    if claimed:
        epoch = picture.facts.partition_epoch
        if not isinstance(epoch, Known) or (state.controllers is not None and is_behind(picture, zookeeper)):
            return ()
        largest = max(epoch.value, zookeeper.controller.kraft_epoch if zookeeper.controller is not None else -1)
        if zookeeper.controller_epoch < largest:
            return (RaiseEpoch(largest + 1, zookeeper.controller_epoch),)
    if zookeeper.migration is not None:
        return (DeleteZNode("/migration", zookeeper.migration.version, zookeeper.controller_epoch),)
    if claimed and zookeeper.controller is not None:
        return (DeleteZNode("/controller", zookeeper.controller.version, zookeeper.controller_epoch),)
    return ()


def remove_controllers(picture: Picture) -> tuple[Effect, ...]:
    """All that ProvisionControllers made; its Secret goes last: as long as it is there, the others are tried again."""
    state = state_of(picture)
    if state is None:
        return ()
    if first := give_back(picture):
        return first
    if state.controllers is not None:
        return ()
    if state.controller_claims:
        return tuple(Delete("v1", "PersistentVolumeClaim", name) for name in state.controller_claims)
    name = picture.spec.controllers.name
    if state.node_files.get(name):
        ours = names.controller_labels(name, picture.name)
        return (Delete("v1", "Service", name, labels=ours), Delete("policy/v1", "PodDisruptionBudget", name, labels=ours),
                Delete("v1", "Secret", names.node_files(name)))
    return ()


def release_brokers(picture: Picture) -> tuple[Effect, ...]:
    """Templates and strategies back; when every broker runs by its own, nothing of ours stays: the claim goes last."""
    state = state_of(picture)
    if state is None:
        return ()
    if first := give_back(picture):
        return first
    leftovers: list[Effect] = []
    for brokers, workload in broker_workloads(state).items():
        original = state.originals.get(brokers)
        settled = not picture.position.left(picture.pods_of(brokers), NodeMode.ZOOKEEPER)
        if not settled or not template.is_restored(workload, original):
            continue
        if state.node_files.get(brokers):
            leftovers.append(Delete("v1", "Secret", names.node_files(brokers)))
        elif original is not None:
            leftovers.append(Delete("apps/v1", "ControllerRevision", picture.original_of(brokers)))
        elif workload.claimed_by == picture.uid:
            leftovers.append(patch_stateful_set(brokers, template.release(workload), "claimed no longer"))
    return tuple(leftovers)
