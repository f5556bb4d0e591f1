"""Nodes in a rollout: how each is seen and replaced, how many go together, and in which order."""

import math
from collections.abc import Callable, Iterable, Mapping

from switchover.answers.observed import Known, Observed, Unknown
from switchover.api.kafka_migration import NodeMode
from switchover.cluster import coming_up, template
from switchover.cluster.door.brokers import Brokers
from switchover.cluster.gates import replicas
from switchover.cluster.gates.quorum import unregistered
from switchover.cluster.gates.registration import fenced
from switchover.cluster.gates.workloads import OWN, not_passed
from switchover.cluster.picture import Picture
from switchover.engine.effects import Effect, replacement
from switchover.engine.position import NodeRecord
from switchover.engine.rollout import BatchSize, Sight
from switchover.kafka.node import NOT_LISTENING

LEADERS_UNKNOWN = "no broker has answered which partitions each broker leads"


def sight(picture: Picture, name: str) -> Observed[Sight]:
    """The pod of a node and the mode it answers in."""
    if not isinstance(picture.facts.kubernetes, Known):
        return picture.facts.kubernetes
    at = picture.facts.kubernetes.at
    workload = picture.workload_of(name)
    if workload is None and name in picture.controllers:
        return Known(Sight("", True, False, None, NodeMode.STOPPED), at)      # it is deleted only after its pods
    if workload is None:
        return Unknown(f"the StatefulSet of pod {name} does not exist")
    record = picture.position.nodes[name]
    mode = picture.mode(node_id := record.node_id)
    shown = mode.value if isinstance(mode, Known) else ""
    pod = workload.pods.get(name)
    answer = picture.facts.answers.get(node_id)
    if record.assigned == NodeMode.STOPPED and pod is not None and pod.ready and isinstance(answer, Known) and (
            answer.value == NOT_LISTENING):
        shown = NodeMode.STOPPED              # any other node listens later: not every pod has a readiness probe
    phase = coming_up.phase_of(picture, name, pod)
    if pod is None:
        return Known(Sight("", False, False, None, shown, phase.message if phase is not None else "", phase), at)
    trouble = pod.trouble or _door(picture, name, shown) or _release(picture, name, shown)
    return Known(Sight(pod.uid, pod.ready, pod.terminating, pod.started_at, shown, trouble, phase), at)


def _door(picture: Picture, name: str, shown: str) -> str:
    """Why a broker answers in another mode than its own: the edits did not reach its process."""
    record = picture.position.nodes[name]
    marker = picture.facts.markers.get(record.node_id)
    if shown in ("", record.assigned) or record.assigned in OWN or not isinstance(marker, Known) or marker.value:
        return ""
    return not_passed(picture, name)


def _release(picture: Picture, name: str, shown: str) -> str:
    """Why a broker answers as one that was not upgraded: it runs by its edits, and an older Kafka."""
    record = picture.position.nodes[name]
    if shown != NodeMode.ZOOKEEPER or record.assigned in OWN or not isinstance(
            picture.facts.markers.get(record.node_id), Known):
        return ""
    brokers = picture.brokers_of(name.rpartition("-")[0])
    if not isinstance(brokers, Known) or not brokers.value.image:
        return ""
    return f"{name} runs a Kafka older than 3.9: the image {brokers.value.image} is not of that release"


def replace_pod(_: Picture, name: str, seen: Sight) -> Effect:
    """Evict or delete the pod, so that a new one takes its place."""
    return replacement(name, seen.uid, ready=seen.ready)


def sizes(picture: Picture) -> tuple[BatchSize, ...]:
    """The batches of brokers as the spec asks; a share of the brokers is rounded up."""
    brokers = len(picture.brokers)
    return tuple(
        BatchSize(batch.pods or math.ceil(brokers * (batch.percent or 0) / 100), float(batch.bake_seconds))
        for batch in picture.spec.rollout.steps
    )


def one_by_one(_: Picture) -> tuple[BatchSize, ...]:
    """Controllers go one at a time; their gates hold for longer than a broker's session, which is their bake."""
    return (BatchSize(1, 0.0),)


def brokers_to(mode: NodeMode, picture: Picture) -> Observed[list[str]]:
    """Brokers not assigned to `mode` yet: those that lead least first, the ZooKeeper controller's last."""
    zookeeper = picture.facts.zookeeper
    if not isinstance(zookeeper, Known):
        return zookeeper
    controller = zookeeper.value.controller
    if controller is None and mode == NodeMode.MIGRATION:
        return Unknown("/controller does not exist at this moment")
    return _least_first(mode, picture, None if controller is None else controller.node_id)


def _least_first(mode: NodeMode, picture: Picture, last: int | None = None) -> Observed[list[str]]:
    if (leads := _leads(picture)) is None:
        return Unknown(LEADERS_UNKNOWN)

    def rank(name: str) -> tuple[bool, int, str]:
        broker_id = picture.brokers[name]
        return broker_id == last, leads[broker_id], name

    return Known(sorted(picture.position.left(picture.brokers, mode), key=rank), picture.now)


def _leads(picture: Picture) -> Mapping[int, int] | None:
    """How many partitions each broker leads; None while no broker answers."""
    view = next(iter(picture.whole_views.values()), None)
    if view is None:
        return None
    leads = dict.fromkeys(picture.brokers.values(), 0)
    for partition in view.partitions:
        leads[partition.leader] = leads.get(partition.leader, 0) + 1
    return leads


def to_start_without_zookeeper(picture: Picture, mode: NodeMode) -> Observed[list[str]]:
    """The broker that leads least, once in the step and where it runs in this mode; none where ZooKeeper is others' too."""
    if picture.position.batches_done or picture.spec.zookeeper.shared:
        return Known([], picture.now)
    if (leads := _leads(picture)) is None:
        return Unknown(LEADERS_UNKNOWN)
    least = min(picture.brokers, key=lambda name: (leads[picture.brokers[name]], name))
    return Known([least] if picture.position.nodes[least].assigned == mode else [], picture.now)


def controller_to_start_without_zookeeper(picture: Picture) -> Observed[list[str]]:
    """A follower, after the broker."""
    if picture.position.batches_done != 1 or picture.spec.zookeeper.shared:
        return Known([], picture.now)
    return _follower(picture)


def controller_to_start_again(picture: Picture) -> Observed[list[str]]:
    """A follower, where the brokers have changed to the user's own configuration: the controllers' pods are a copy of the
    brokers' old ones, and name the ConfigMaps and Secrets that were changed for it. One that started since proves it."""
    state, opened = picture.facts.kubernetes, picture.position.opened
    if not picture.own_configuration or opened is None:
        return Known([], picture.now)
    if not isinstance(state, Known):
        return state
    pods = state.value.controllers.pods.values() if state.value.controllers is not None else ()
    if any(pod.started_at is not None and pod.started_at > opened for pod in pods):
        return Known([], state.at)
    return _follower(picture)


def leader_last(picture: Picture, controllers: Iterable[str], leader: int) -> list[str]:
    """These controllers by name, the one that leads at the end."""
    return sorted(controllers, key=lambda name: (picture.controllers[name] == leader, name))


def _follower(picture: Picture) -> Observed[list[str]]:
    """The first controller that does not lead; the leader where it is alone."""
    quorum = picture.facts.quorum
    if not isinstance(quorum, Known):
        return quorum
    return Known(leader_last(picture, picture.controllers, quorum.value.leader_id)[:1], quorum.at)


def brokers_to_pinned(picture: Picture) -> Observed[list[str]]:
    """Brokers that run a Kafka older than 3.9."""
    return _those_that_must(NodeMode.ZOOKEEPER_PINNED, picture, lambda brokers: brokers.image != "")


def brokers_to_raised(picture: Picture) -> Observed[list[str]]:
    """Brokers whose protocol version is too old for a migration."""
    return _those_that_must(NodeMode.ZOOKEEPER_RAISED, picture, lambda brokers: brokers.raised)


def _those_that_must(mode: NodeMode, picture: Picture, must: Callable[[Brokers], bool]) -> Observed[list[str]]:
    pods: set[str] = set()
    for name in picture.broker_sets:
        found = picture.brokers_of(name)
        if not isinstance(found, Known):
            return found
        pods |= set(picture.pods_of(name)) if must(found.value) else set()
    if not pods:
        return Known([], picture.now)
    left = brokers_to(mode, picture)
    return Known([name for name in left.value if name in pods], left.at) if isinstance(left, Known) else left


def all_but_the_last_to_migration(picture: Picture) -> Observed[list[str]]:
    """EnableMigration leaves one broker, the ZooKeeper controller's, to CopyMetadata."""
    left = brokers_to(NodeMode.MIGRATION, picture)
    return Known(left.value[:-1], left.at) if isinstance(left, Known) else left


def the_last_to_migration(picture: Picture) -> Observed[list[str]]:
    return brokers_to(NodeMode.MIGRATION, picture)


def brokers_to_kraft(picture: Picture) -> Observed[list[str]]:
    return brokers_to(NodeMode.KRAFT, picture)


def brokers_to_own_kraft(picture: Picture) -> Observed[list[str]]:
    """Brokers of which the user has brought a template of their own. ZooKeeper, which none of them uses, may be stopped."""
    left, state = _least_first(NodeMode.OWN_KRAFT, picture), picture.facts.kubernetes
    if not isinstance(left, Known):
        return left
    if not isinstance(state, Known):
        return state
    if not picture.own_configuration:
        return Known([], left.at)
    theirs = {name for name, workload in state.value.brokers.items() if workload is not None and template.is_brought(
        workload, picture.broker_sets[name], state.value.originals.get(name))}
    return Known([name for name in left.value if name.rpartition("-")[0] in theirs], left.at)


def controllers_to_kraft(picture: Picture) -> Observed[list[str]]:
    """Followers first, the leader of this moment last.

    Should leadership move to a controller that was chosen already, it goes all the same: every broker is on KRaft and the
    approval is given, so whoever wins the election may finalize.
    """
    seen = picture.facts.quorum
    if not isinstance(seen, Known):
        return seen
    left = picture.position.left(picture.controllers, NodeMode.KRAFT_CONTROLLER)
    return Known(leader_last(picture, left, seen.value.leader_id), seen.at)


def to_register_again(picture: Picture) -> Observed[list[str]]:
    """Controllers that do not register, each once, the leader last."""
    quorum, missing = picture.facts.quorum, unregistered(picture)
    if not isinstance(quorum, Known) or not isinstance(missing, Known):
        return missing if isinstance(quorum, Known) else quorum
    left = [name for name in missing.value if name not in picture.position.rescued]
    return Known(sorted(left, key=lambda name: picture.controllers[name] == quorum.value.leader_id), missing.at)


def leader_that_is_stuck(picture: Picture) -> Observed[list[str]]:
    """The leader that has left a replica that caught up out of sync for longest, each once in a step."""
    names = {broker_id: name for name, broker_id in picture.brokers.items()}
    return _once(picture, (names[each.leader] for each in replicas.caught_up(picture) if each.leader in names))


def broker_that_is_cut_off(picture: Picture) -> Observed[list[str]]:
    """One that forwards nothing to the controller."""
    return _once(picture, replicas.cut_off(picture))


def broker_without_heartbeats(picture: Picture) -> Observed[list[str]]:
    """One that the controllers fence, although its pod has been Ready for long; where they fence all, none is at fault."""
    found = fenced(picture)
    lost = [name for name in found if replicas.is_up(picture, name)]
    return _once(picture, lost if len(found) < len(picture.brokers) else ())


def _once(picture: Picture, pods: Iterable[str]) -> Observed[list[str]]:
    """The first that the step has not restarted yet; none while another broker's pod is not there."""
    left = [name for name in pods if name not in picture.position.rescued]
    return Known(left[:1] if replicas.all_ready(picture) else [], picture.now)


def assign_brokers(picture: Picture) -> Mapping[str, NodeRecord]:
    """The brokers as they are, which UpgradeBrokers puts on record."""
    pods = picture.broker_pods()
    assert isinstance(pods, Known), "the gate BrokersIdentified has passed"
    return {name: NodeRecord(broker_id, NodeMode.ZOOKEEPER) for name, broker_id in pods.value.items()}


def assign_missing_brokers(picture: Picture) -> Mapping[str, NodeRecord]:
    """The same of brokers that a release without UpgradeBrokers has not put on record."""
    return {} if picture.brokers else assign_brokers(picture)


def assign_controllers(picture: Picture) -> Mapping[str, NodeRecord]:
    """The controllers to start in the mode MigrationController, which ProvisionControllers puts on record."""
    return {name: NodeRecord(node_id, NodeMode.MIGRATION_CONTROLLER) for name, node_id in picture.controllers.items()}
