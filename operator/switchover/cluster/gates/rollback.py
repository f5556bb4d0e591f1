"""What must hold in the rollback of a claim (docs/facts/kraft.md#rollback)."""

from collections.abc import Sequence

from switchover.answers.observed import Known, Unknown
from switchover.cluster import names, template
from switchover.cluster.facts import Need
from switchover.cluster.gates.dual_write import PATIENCE_SECONDS, check_dual_write, check_parity
from switchover.cluster.gates.workloads import original_missing
from switchover.cluster.picture import Picture
from switchover.cluster.reading import (
    copied_under_claim,
    is_claimed,
    kubernetes_of,
    not_in_its_mode,
    samples,
    until,
    zookeeper_of,
)
from switchover.engine.gate import Gate, Verdict, of, passed, seen, unknown, wait
from switchover.kafka.node import NOT_LISTENING
from switchover.metadata.parity import MigrationState
from switchover.reasons.cluster import METADATA_LOG_UNKNOWN
from switchover.reasons.walk import (
    BROKER_SILENT,
    CONTROLLER_NOT_KNOWN,
    CONTROLLER_RUNS,
    CONTROLLER_UNKNOWN,
    LEFTOVER,
    METADATA_NOT_IN_ZOOKEEPER,
    NO_CONTROLLER,
    PARTITION_EPOCH_UNKNOWN,
    PARTITION_VERSIONS_BEHIND,
    PARTITION_VERSIONS_UNKNOWN,
    STILL_CLAIMED,
    TEMPLATE_NOT_RESTORED,
    ZOOKEEPER_REGISTRATION,
)
from switchover.zookeeper.nodes import ZooKeeperState

NAMED_SAMPLES = 6
"""A broker that still believes in KRaft names a random live broker as controller: six right answers are no accident."""


def is_behind(picture: Picture, state: ZooKeeperState) -> bool:
    """Whether a record that KRaft was seen to accept in dual write is missing in ZooKeeper.

    Asked when the controllers have stopped, no record is allowed: it may be a change, and nobody would ever write it. The
    leader, which stops last, has seconds for what it accepted while it was not alone (docs/facts/kraft.md#rollback). Without
    `/migration` nothing is missing: that is deleted when everything was there.
    """
    return state.migration is not None and picture.high_watermark - 1 > state.migration.offset


def check_written_back(picture: Picture) -> Verdict:
    """ZooKeeper has all that KRaft accepted. Without a finished copy KRaft never accepted anything."""
    state = zookeeper_of(picture)
    if state.controller is None:
        return wait(NO_CONTROLLER, "/controller does not exist at this moment", subject="/controller",
                    unblocks="wait until a broker becomes the controller")
    if (migration := copied_under_claim(state)) is None:
        return passed("KRaft has no metadata that ZooKeeper lacks")
    log = picture.facts.log
    if isinstance(log, Known):
        if log.value.migration_state is MigrationState.PRE_MIGRATION:
            return passed("/migration is stale: nothing was copied")
        written = check_dual_write(picture)
        return check_parity(picture) if written.outcome == "Pass" else written
    if not _are_down(picture):
        return unknown(METADATA_LOG_UNKNOWN, of("metadata log", log.why), subject="metadata log")
    if is_behind(picture, state):
        return wait(METADATA_NOT_IN_ZOOKEEPER, "the controllers are down, and the last metadata that they were seen to have"
                    " is not in ZooKeeper", subject="/migration", observed=f"offset {migration.offset}",
                    threshold=f"offset {picture.high_watermark - 1}",
                    unblocks="delete no volume, and start the controllers again")
    return passed("the controllers are down, and ZooKeeper has all that was seen of their metadata")


def _are_down(picture: Picture) -> bool:
    """A majority of the controllers refuses connections: nobody can ask the quorum anything."""
    answers = [picture.facts.answers.get(node_id) for node_id in picture.controllers.values()]
    silent = sum(isinstance(answer, Known) and answer.value == NOT_LISTENING for answer in answers)
    return silent * 2 > len(answers)


def check_partition_versions(picture: Picture) -> Verdict:
    """No leader knows a newer version of its partition's state than the ZooKeeper controller will (`cluster.behind`)."""
    state = zookeeper_of(picture)
    if copied_under_claim(state) is None:
        return passed("KRaft changed no partition")
    if picture.is_stopping:
        return passed("the controllers are stopping")
    if not isinstance(picture.facts.log, Known) and _are_down(picture):
        return passed("the controllers are down: their metadata cannot be compared")
    log = seen(picture.facts.log, METADATA_LOG_UNKNOWN, "metadata log")
    if log.migration_state is MigrationState.PRE_MIGRATION:
        return passed("/migration is stale: KRaft changed no partition")
    parity = seen(picture.facts.parity, PARTITION_VERSIONS_UNKNOWN, "/brokers/topics",
                  saying="the versions of the partitions' states have not been compared: ")
    if parity.behind is None:
        return unknown(PARTITION_VERSIONS_UNKNOWN, "the states of the partitions were not read yet",
                       subject="/brokers/topics")
    if parity.behind:
        first = next((f" ({topic}-{index} first)" for topic, index in parity.overdue), "")
        return wait(PARTITION_VERSIONS_BEHIND, f"{parity.behind} partition states have a lower version in ZooKeeper than"
                    f" their leaders have{first}: a ZooKeeper controller would refuse these leaders' changes for ever",
                    subject="/brokers/topics", observed=parity.behind, threshold=0,
                    unblocks="nothing to do: Switchover raises them within seconds")
    return passed("ZooKeeper has every partition's state in the version that its leader knows")


def check_controllers_stopped(picture: Picture) -> Verdict:
    """Each controller of the batch is Ready and refuses connections: it waits instead of running Kafka."""
    state = kubernetes_of(picture)
    if state.controllers is None:
        return passed("there are no controllers")
    for name in picture.batch:
        answer = picture.facts.answers.get(picture.controllers[name], Unknown(f"{name} was not asked"))
        if seen(answer, CONTROLLER_UNKNOWN, name) != NOT_LISTENING:
            return wait(CONTROLLER_RUNS, f"{name} still runs Kafka", subject=name, unblocks="wait until it stops")
    return passed(f"{', '.join(picture.batch)} stopped")


def check_zookeeper_rules(picture: Picture) -> Verdict:
    """Every broker names the ZooKeeper controller. One that still believes in KRaft takes five minutes to stop."""
    state = zookeeper_of(picture)
    if state.controller is None:
        return wait(NO_CONTROLLER, "/controller does not exist at this moment", subject="/controller",
                    unblocks="wait: a broker becomes the controller within a second; if none does, restart one broker")
    if is_claimed(state):
        seen(picture.facts.partition_epoch, PARTITION_EPOCH_UNKNOWN, "/brokers/topics",
             saying="the states of the partitions cannot be read: ")
        return wait(STILL_CLAIMED, "KRaft still holds /controller", subject="/controller",
                    observed=f"node {state.controller.node_id}", threshold="a broker, ephemeral",
                    unblocks="nothing to do: Switchover stops the controllers and deletes that node")
    for name, node_id in sorted(picture.brokers.items()):
        view = picture.view(node_id)
        if isinstance(view, Known):
            if view.value.controller_id != state.controller.node_id:
                return wait(CONTROLLER_NOT_KNOWN, f"broker {node_id} does not know the ZooKeeper controller yet",
                            subject=name, observed=f"controller {view.value.controller_id}",
                            threshold=f"controller {state.controller.node_id}",
                            unblocks="wait a second; do not stop the broker before: that would take five minutes")
            continue
        workload = picture.workload_of(name)
        pod = workload.pods.get(name) if workload is not None else None
        down = workload is not None and (pod is None or not pod.ready)
        if not (down and name in picture.batch):                  # one that is down cannot hang when it is replaced
            return unknown(BROKER_SILENT, of(name, view.why), subject=name)
    return passed(f"every broker names controller {state.controller.node_id}")


def check_plain_broker(picture: Picture) -> Verdict:
    """Each broker of the batch runs on plain ZooKeeper again."""
    state = zookeeper_of(picture)
    for name in picture.batch:
        if (other := not_in_its_mode(picture, name)) is not None:
            return other
        node_id = picture.position.nodes[name].node_id
        if node_id not in state.brokers:
            return wait(ZOOKEEPER_REGISTRATION, f"broker {node_id} is missing from /brokers/ids", subject=name,
                        unblocks=until("it registers", picture, name))
    return passed(f"{', '.join(picture.batch)} on ZooKeeper")


def check_template_is_original(picture: Picture) -> Verdict:
    """Before each eviction at the end of a rollback: the pod must start by what the user wrote, and only we replace it."""
    state = kubernetes_of(picture)
    for name, workload in state.brokers.items():
        original = state.originals.get(name)
        if workload is None:
            continue
        if original is None:
            if template.is_ours(workload, picture.broker_sets[name]):
                return original_missing(picture, name)
            continue
        if workload.template != original["template"] or workload.update_strategy.get("type") != "OnDelete":
            return wait(TEMPLATE_NOT_RESTORED, f"StatefulSet {name} does not have its original template with OnDelete",
                        subject=name, unblocks="Switchover restores it; stop whatever changes it meanwhile")
    return passed("the brokers' templates are the user's own")


def check_controllers_gone(picture: Picture) -> Verdict:
    """Nothing of the controllers is left that a next attempt could trip over (Strimzi #11262)."""
    state, zookeeper = kubernetes_of(picture), zookeeper_of(picture)
    if zookeeper.migration is not None:
        return wait(LEFTOVER, "/migration still exists", subject="/migration", unblocks="Switchover deletes it")
    name = picture.spec.controllers.name
    left = [f"StatefulSet {name}"] if state.controllers is not None else [
        *(f"claim {claim}" for claim in state.controller_claims),
        *([f"Secret {names.node_files(name)}"] if state.node_files.get(name) else [])]
    return _left(left) or passed("nothing is left of the controllers")


def _left(left: Sequence[str]) -> Verdict | None:
    if not left:
        return None
    return wait(LEFTOVER, f"{left[0]} still exists", subject=left[0], observed=len(left), threshold=0,
                unblocks="wait: Kubernetes removes it, a claim only once no pod mounts it")


def check_brokers_released(picture: Picture) -> Verdict:
    """The brokers' StatefulSets are the user's again, without our files, our copy of the original and our claim."""
    state = kubernetes_of(picture)
    for name, workload in state.brokers.items():
        if workload is not None and not template.is_restored(workload, state.originals.get(name)):
            return wait(TEMPLATE_NOT_RESTORED, f"StatefulSet {name} does not have its own template and update strategy yet",
                        subject=name, unblocks="wait until every pod runs by its own template; Switchover does the rest")
    return _left([
        *(f"Secret {names.node_files(name)}" for name in picture.broker_sets if state.node_files.get(name)),
        *(f"the original of StatefulSet {name}" for name in picture.broker_sets
          if state.originals.get(name) is not None),
        *(f"the claim on StatefulSet {name}" for name, workload in state.brokers.items()
          if workload is not None and workload.claimed_by == picture.uid),
    ]) or passed("the brokers' StatefulSets are the user's own")


WRITTEN_BACK: Gate[Picture] = Gate(
    "WrittenBack", check_written_back, samples=samples, patience=lambda _: PATIENCE_SECONDS, needs=(Need.PARITY,))
PARTITION_VERSIONS: Gate[Picture] = Gate(
    "PartitionVersions", check_partition_versions, samples=samples, needs=(Need.PARITY,))
CONTROLLERS_STOPPED: Gate[Picture] = Gate("ControllersStopped", check_controllers_stopped, samples=samples)
ZOOKEEPER_RULES: Gate[Picture] = Gate(
    "ZooKeeperRules", check_zookeeper_rules, samples=lambda _: NAMED_SAMPLES, needs=(Need.PARTITION_EPOCH,))
PLAIN_BROKER: Gate[Picture] = Gate("PlainBroker", check_plain_broker, samples=samples)
TEMPLATE_IS_ORIGINAL: Gate[Picture] = Gate("TemplateIsOriginal", check_template_is_original)
BROKERS_RELEASED: Gate[Picture] = Gate("BrokersReleased", check_brokers_released)
CONTROLLERS_GONE: Gate[Picture] = Gate("ControllersGone", check_controllers_gone)
