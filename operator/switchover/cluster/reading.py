"""How checks read a picture: the value or, while it is unknown, `Unseen` with what the check answers then."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from switchover.answers.observed import Known, Observed, Unknown
from switchover.api.kafka_migration import BrokerSet
from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.status import Direction
from switchover.cluster import coming_up
from switchover.cluster.door.brokers import ContainerMissing, container_of
from switchover.cluster.facts import KubernetesState, Written
from switchover.cluster.picture import Picture
from switchover.engine.gate import Unseen, Verdict, of, seen, unknown, wait
from switchover.engine.rollout import Phase
from switchover.kafka.node import BrokerExamination, Quorum
from switchover.kubernetes.workloads import Pod, Workload
from switchover.metadata.parity import LogImage, MigrationState
from switchover.network.addresses import Address
from switchover.reasons.cluster import (
    CONTROLLER_COMING_UP,
    CONTROLLER_IN_TROUBLE,
    METADATA_LOG_UNKNOWN,
    QUORUM_UNKNOWN,
    ZOOKEEPER_UNKNOWN,
)
from switchover.reasons.preflight import BROKERS_NOT_IDENTIFIED, KUBERNETES_UNKNOWN
from switchover.reasons.walk import BROKER_SILENT, NOT_OBSERVED, WRONG_MODE
from switchover.text.command import Command, command, kubectl
from switchover.zookeeper.nodes import MigrationNode, ZooKeeperGroup, ZooKeeperState, ZooKeeperTopics

T = TypeVar("T")


def until(awaited: str, picture: Picture, pod: str) -> str:
    """What to wait for, and the command that shows why it does not come."""
    return f"wait until {awaited}; if not, look at its log: {kubectl(picture.namespace, 'logs {}', pod)}"


def samples(picture: Picture) -> int:
    return picture.spec.gates.stable_samples


def unless_coming_up(picture: Picture, asked: Observed[object]) -> None:
    """Where controllers do not answer while one of them starts, that is why."""
    if not isinstance(asked, Known) and (coming := controllers_coming_up(picture)) is not None:
        raise Unseen(coming)


def log_of(picture: Picture) -> LogImage:
    unless_coming_up(picture, picture.facts.log)
    return seen(picture.facts.log, METADATA_LOG_UNKNOWN, "metadata log")


def quorum_of(picture: Picture) -> Quorum:
    unless_coming_up(picture, picture.facts.quorum)
    return seen(picture.facts.quorum, QUORUM_UNKNOWN, "quorum")


def pods_of_controllers(picture: Picture) -> Mapping[str, Pod]:
    """By name; none while they cannot be seen."""
    state = picture.facts.kubernetes
    return state.value.controllers.pods if isinstance(state, Known) and state.value.controllers is not None else {}


def phases_of_controllers(picture: Picture) -> Mapping[int, Phase]:
    """How far the controllers have come that are not up, by node.id."""
    pods, state = pods_of_controllers(picture), picture.facts.kubernetes
    if not isinstance(state, Known) or state.value.controllers is None:
        return {}
    return {node_id: phase for name, node_id in sorted(picture.controllers.items()) if name in picture.position.nodes
            and (phase := coming_up.phase_of(picture, name, pods.get(name))) is not None}


def controllers_coming_up(picture: Picture) -> Verdict | None:
    """Where a controller cannot be asked since its pod is not up: how far that is, one in trouble first."""
    phases = phases_of_controllers(picture)
    if not phases:
        return None
    node_id = min(phases, key=lambda each: (not phases[each].in_trouble, each))
    name = next(name for name, known in picture.controllers.items() if known == node_id)
    phase, others = phases[node_id], len(phases) - 1
    message = phase.message + (f"; {others} more {'does' if others == 1 else 'do'} not come up" if others else "")
    if not phase.in_trouble:
        return unknown(CONTROLLER_COMING_UP, message, subject=f"pod {name}", unblocks="wait until the pods start and answer")
    return unknown(CONTROLLER_IN_TROUBLE, message, subject=f"pod {name}",
                   unblocks=f"find out why: {phase.look}{_other_spec(picture)}")


def with_new_volumes(picture: Picture) -> str:
    """How to get controllers without what is in their volumes, before any broker knows them."""
    rollback, retry = _again(picture)
    return f"roll back, which deletes the controllers with their volumes: {rollback}; once that is RolledBack, {retry}"


def _again(picture: Picture) -> Iterator[Command]:
    return (command("switchover {} {} --namespace {}", act, *picture.named) for act in ("rollback", "retry"))


def _other_spec(picture: Picture) -> str:
    """How to get other controllers, where only they were made yet: until then their part of the spec cannot change."""
    at = picture.position
    if at.step != Step.PROVISION_CONTROLLERS or at.direction is Direction.BACKWARD:
        return ""
    rollback, retry = _again(picture)
    return f"; if spec.controllers must change: {rollback}, change it once that is RolledBack, then {retry}"


def leading_controller(picture: Picture) -> str:
    """The pod of the controller that leads the quorum; "" while that is not known."""
    quorum = picture.facts.quorum
    leader = quorum.value.leader_id if isinstance(quorum, Known) else None
    return next((name for name, node_id in picture.controllers.items() if node_id == leader), "")


def hand_on_command(picture: Picture) -> str:
    """What makes another controller lead."""
    leader = leading_controller(picture)
    return kubectl(picture.namespace, "delete pod {}", leader) if leader else (
        "delete the pod of the leading controller, once one leads")


def leading_address(picture: Picture) -> Address | None:
    """Where that controller listens."""
    return picture.voter_addresses.get(picture.controllers.get(leading_controller(picture), -1))


def kubernetes_of(picture: Picture) -> KubernetesState:
    return seen(picture.facts.kubernetes, NOT_OBSERVED)


def zookeeper_of(picture: Picture) -> ZooKeeperState:
    return seen(picture.facts.zookeeper, ZOOKEEPER_UNKNOWN, "ZooKeeper")


def _written(picture: Picture) -> Written:
    return seen(picture.facts.migration_written, ZOOKEEPER_UNKNOWN, "/migration")


def groups_in_zookeeper(picture: Picture) -> Mapping[str, ZooKeeperGroup]:
    return seen(picture.facts.zookeeper_groups, ZOOKEEPER_UNKNOWN, "/consumers")


def minima_of(picture: Picture) -> Mapping[str, int]:
    """The topics' min.insync.replicas."""
    return seen(picture.facts.min_insync, NOT_OBSERVED)


def silence(picture: Picture) -> float:
    """Seconds in which nobody has written `/migration`.

    Unknown until a write was seen, or the limit of dual write is over: differences to ZooKeeper's clock would make a dead
    driver look alive, or a live one dead.
    """
    written = _written(picture)
    stood = max(0.0, picture.now - written.since)
    if not written.seen_to_change and stood <= picture.spec.gates.dual_write_max_age_seconds:
        raise Unseen(unknown(
            ZOOKEEPER_UNKNOWN, "/migration was not watched for long enough yet to see whether it is still written",
            subject="/migration"))
    return stood


def stands_still(picture: Picture) -> float:
    """Seconds for which dual write has not come on: the offset of `/migration` stood, and KRaft's metadata went on.

    In dual write it follows the log, in which the leading controller writes twice a second.
    """
    state, quorum = zookeeper_of(picture), quorum_of(picture)
    written = _written(picture)
    if state.migration is None:
        raise Unseen(unknown(ZOOKEEPER_UNKNOWN, "/migration does not exist", subject="/migration"))
    if quorum.high_watermark - 1 - state.migration.offset <= picture.spec.gates.dual_write_max_lag:
        return 0.0
    return max(0.0, picture.now - written.offset_since)


def log_left_behind(picture: Picture) -> LogImage | None:
    """KRaft's metadata while dual write does not come on; None where it does, or where that cannot be seen."""
    try:
        log, stood = log_of(picture), stands_still(picture)
    except Unseen:
        return None
    if log.migration_state is not MigrationState.MIGRATION or stood <= picture.spec.gates.dual_write_max_age_seconds:
        return None
    return log


def not_in_its_mode(picture: Picture, name: str) -> Verdict | None:
    """What a broker is waited for that does not answer in the mode on record for it; None where it does."""
    record = picture.position.nodes[name]
    mode = picture.mode(record.node_id)
    if not isinstance(mode, Known):
        return wait(BROKER_SILENT, of(name, mode.why), subject=name,
                    unblocks=until("the broker answers", picture, name))
    if mode.value != record.assigned:
        return wait(WRONG_MODE, f"{name} does not run in its mode yet", subject=name, observed=mode.value,
                    threshold=record.assigned, unblocks=until("its new pod answers", picture, name))
    return None


def is_claimed(state: ZooKeeperState) -> bool:
    """KRaft holds `/controller`: no broker can become the ZooKeeper controller."""
    return state.controller is not None and not state.controller.ephemeral


def copied_under_claim(state: ZooKeeperState) -> MigrationNode | None:
    """`/migration` of a claim whose copy is done; None where KRaft has accepted no metadata yet."""
    node = state.migration
    return node if is_claimed(state) and node is not None and node.offset > 0 else None


# --- in Preflight ---------------------------------------------------------------------------------------------------------


def kubernetes_in_preflight(picture: Picture) -> KubernetesState:
    return seen(picture.facts.kubernetes, KUBERNETES_UNKNOWN, "Kubernetes")


def topics_of(picture: Picture) -> ZooKeeperTopics:
    return seen(picture.facts.zookeeper_topics, ZOOKEEPER_UNKNOWN, "ZooKeeper")


def brokers_by_pod(picture: Picture) -> Mapping[str, int]:
    """Pod name -> broker id."""
    return seen(picture.broker_pods(), BROKERS_NOT_IDENTIFIED)


def of_each_broker(picture: Picture, answers: Mapping[int, Observed[T]]) -> Iterator[tuple[int, T]]:
    """What every broker answered, by its id."""
    for broker_id in sorted(brokers_by_pod(picture).values()):
        answer = answers.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        yield broker_id, seen(answer, BROKER_SILENT, f"broker {broker_id}")


def examined(picture: Picture) -> Iterator[tuple[int, BrokerExamination]]:
    """What every broker said of itself."""
    return of_each_broker(picture, picture.facts.examination.brokers)


def broker_workloads(state: KubernetesState) -> Mapping[str, Workload]:
    """The StatefulSets of brokers that exist."""
    return {name: workload for name, workload in state.brokers.items() if workload is not None}


def workloads(picture: Picture) -> Iterator[tuple[str, BrokerSet, Workload]]:
    """The StatefulSets of brokers; each of them exists."""
    state = kubernetes_in_preflight(picture)
    for name, brokers in picture.broker_sets.items():
        workload = state.brokers.get(name)
        if workload is None:
            raise Unseen(unknown(NOT_OBSERVED, f"StatefulSet {name} does not exist", subject=name))
        yield name, brokers, workload


def image_of(brokers: BrokerSet, workload: Workload) -> str:
    """Of the container that runs Kafka, "" where that is not known."""
    try:
        return str(container_of(workload.template, brokers).get("image", ""))
    except ContainerMissing:
        return ""


class Configured(NamedTuple):
    """A StatefulSet with what one of its brokers runs with: `keys` are the settings that it was given, without defaults,
    `hidden` the names of those that it does not show."""

    workload: Workload
    container: Mapping[str, Any]
    broker_id: int
    keys: Mapping[str, str]
    hidden: frozenset[str]

    def has(self, key: str) -> bool:
        return key in self.keys or key in self.hidden


def configured(picture: Picture) -> Iterator[Configured]:
    """Every broker of every StatefulSet."""
    examinations, brokers = dict(examined(picture)), brokers_by_pod(picture)
    for name, spec, workload in workloads(picture):
        try:
            container = container_of(workload.template, spec)
        except ContainerMissing as why:
            raise Unseen(unknown(NOT_OBSERVED, f"StatefulSet {name}: {why}", subject=name)) from None
        for pod, broker_id in sorted(brokers.items(), key=lambda item: item[1]):
            if pod.rpartition("-")[0] == name:
                found = examinations[broker_id]
                yield Configured(workload, container, broker_id, found.static_settings, found.hidden)
