"""How gates read a picture: what is unknown raises `Unseen` with the verdict to give."""

from collections.abc import Mapping

from switchover.answers.observed import Known
from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.status import Direction
from switchover.cluster import coming_up
from switchover.cluster.facts import KubernetesState
from switchover.cluster.picture import Picture
from switchover.engine.gate import Unseen, Verdict, seen, unknown, wait
from switchover.engine.rollout import Phase
from switchover.kafka.node import Quorum
from switchover.kubernetes.workloads import Pod
from switchover.metadata.image import LogImage, MigrationState
from switchover.network.addresses import Address
from switchover.reasons.brokers import ZOOKEEPER_UNKNOWN
from switchover.reasons.controllers import CONTROLLER_COMING_UP, CONTROLLER_IN_TROUBLE, METADATA_LOG_UNKNOWN, QUORUM_UNKNOWN
from switchover.reasons.rollback import BROKER_SILENT, WRONG_MODE
from switchover.reasons.walk import NOT_OBSERVED
from switchover.text.command import command, kubectl
from switchover.zookeeper.nodes import MigrationNode, ZooKeeperState

NEW_POD_ANSWERS = "its new pod answers; its log says why it does not"
BROKER_REGISTERS = "it registers; if it lasts, its log says why it does not"


def samples(picture: Picture) -> int:
    return picture.spec.gates.stable_samples


def log_of(picture: Picture) -> LogImage:
    log = picture.facts.log
    if isinstance(log, Known):
        return log.value
    raise Unseen(controllers_coming_up(picture) or unknown(METADATA_LOG_UNKNOWN, log.why, subject="metadata log"))


def quorum_of(picture: Picture) -> Quorum:
    quorum = picture.facts.quorum
    if isinstance(quorum, Known):
        return quorum.value
    raise Unseen(controllers_coming_up(picture) or unknown(QUORUM_UNKNOWN, quorum.why, subject="quorum"))


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
    told = phase.words + (f"; {others} more {'does' if others == 1 else 'do'} not come up" if others else "")
    if not phase.in_trouble:
        return unknown(CONTROLLER_COMING_UP, told, subject=f"pod {name}", unblocks="the pods start and answer")
    return unknown(CONTROLLER_IN_TROUBLE, told, subject=f"pod {name}",
                   unblocks=f"{phase.look} says more{_other_spec(picture)}")


def _other_spec(picture: Picture) -> str:
    """The way to other controllers, where nothing but they was made yet: their part of the spec stays as it is till then."""
    at = picture.position
    if at.step != Step.PROVISION_CONTROLLERS or at.direction is Direction.BACKWARD:
        return ""
    rollback, retry = (command("switchover {} {} --namespace {}", act, *picture.named) for act in ("rollback", "retry"))
    return f"; where spec.controllers must change: {rollback}, change it once that is RolledBack, then {retry}"


def leading_controller(picture: Picture) -> str:
    """The pod of the controller that leads the quorum; "" while that is not known."""
    quorum = picture.facts.quorum
    leader = quorum.value.leader_id if isinstance(quorum, Known) else None
    return next((name for name, node_id in picture.controllers.items() if node_id == leader), "")


def hand_on_command(picture: Picture) -> str:
    """What lets another controller lead."""
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


def silence(picture: Picture) -> float:
    """Seconds in which nobody has written `/migration`.

    Unknown until that was seen to happen, or is longer than the limit of dual write: differences to ZooKeeper's clock would
    make a dead driver look alive, or a live one dead.
    """
    written = seen(picture.facts.migration_written, ZOOKEEPER_UNKNOWN, "/migration")
    stood = max(0.0, picture.now - written.since)
    if not written.seen_to_change and stood <= picture.spec.gates.dual_write_max_age_seconds:
        raise Unseen(unknown(
            ZOOKEEPER_UNKNOWN, "/migration has not been looked at for long enough to tell whether it is written",
            subject="/migration"))
    return stood


def stands_still(picture: Picture) -> float:
    """Seconds for which dual write has not come on: the offset of `/migration` stood, and KRaft's metadata went on.

    In dual write it follows the log, in which the leading controller writes twice a second.
    """
    state, quorum = zookeeper_of(picture), quorum_of(picture)
    written = seen(picture.facts.migration_written, ZOOKEEPER_UNKNOWN, "/migration")
    if state.migration is None:
        raise Unseen(unknown(ZOOKEEPER_UNKNOWN, "it does not exist", subject="/migration"))
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
        return wait(BROKER_SILENT, mode.why, subject=name, unblocks="the broker answers")
    if mode.value != record.assigned:
        return wait(WRONG_MODE, f"{name} does not answer in its mode", subject=name, observed=mode.value,
                    threshold=record.assigned, unblocks=NEW_POD_ANSWERS)
    return None


def is_claimed(state: ZooKeeperState) -> bool:
    """KRaft holds `/controller`: no broker can become the ZooKeeper controller."""
    return state.controller is not None and not state.controller.ephemeral


def copied_under_claim(state: ZooKeeperState) -> MigrationNode | None:
    """`/migration` of a claim whose copy is done; None where KRaft has accepted no metadata yet."""
    node = state.migration
    return node if is_claimed(state) and node is not None and node.offset > 0 else None
