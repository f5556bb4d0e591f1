"""What a migration tells in figures (Prometheus): the KIP's metrics for people without JMX, and where the time goes.

Label values are words of ours, names of pods and uids: never a name that a tenant of the cluster chose.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from switchover.api.kafka_migration import KafkaMigrationSpec, KafkaMigrationStatus, MetadataState
from switchover.api.status import Phase
from switchover.core.gate import Judgement
from switchover.core.kraft import names
from switchover.core.kraft.facts import MigrationState
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.status import STEPS
from switchover.core.observed import Known

METADATA_TYPE = {"A": "ZooKeeper", "B": "Dual", "C": "KRaft"}
"""KIP-866's MetadataType of a broker by its mode. Kafka 3.9 does not have that metric (kraft-migration.md, section 0)."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: what it says, its labels beside `migration`, and whether it only grows."""

    says: str
    labels: tuple[str, ...] = ()
    counter: bool = False


METRICS: Mapping[str, Metric] = {
    "switchover_migration_state": Metric("1 for the state of the metadata, 0 for the others", ("state",)),
    "switchover_zk_migration_state": Metric("ZkMigrationState in the metadata log, -1 before its first record"),
    "switchover_node_assigned_mode": Metric("1 for the mode that a node starts in next", ("node", "kind", "mode")),
    "switchover_node_observed_mode": Metric("1 for the mode that a node answers in now", ("node", "kind", "mode")),
    "switchover_broker_metadata_type": Metric("1 for where a broker takes its metadata from", ("node", "type")),
    "switchover_dual_write_lag_records": Metric("Records of the metadata log that ZooKeeper does not have yet"),
    "switchover_dual_write_age_seconds": Metric("Time since the last write to /migration"),
    "switchover_parity_differences": Metric("Differences that count between ZooKeeper's metadata and KRaft's, at most 1000"),
    "switchover_restarts": Metric("Pods put on record to be replaced, over all attempts", ("kind",), counter=True),
    "switchover_gate_wait_seconds": Metric("Time in which a gate kept the migration waiting", ("gate",), counter=True),
    "switchover_step": Metric("1 for the step on record and the way it is walked", ("step", "direction")),
    "switchover_phase": Metric("1 for the phase, 0 for the others", ("phase",)),
    "switchover_attempt": Metric("Number of the attempt, from 1"),
    "switchover_rollback_available": Metric("1 while every step can be taken back"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One value of a metric."""

    metric: str
    labels: tuple[str, ...]
    value: float


def figures(spec: KafkaMigrationSpec, status: KafkaMigrationStatus, picture: Picture | None) -> tuple[Figure, ...]:
    """Everything that can be told now; what could not be observed is absent. Without a picture: what is on record alone."""
    return (*_on_record(spec, status), *(_observed(picture) if picture is not None else ()))


def _on_record(spec: KafkaMigrationSpec, status: KafkaMigrationStatus) -> Iterator[Figure]:
    for state in MetadataState:
        yield Figure("switchover_migration_state", (state.value,), state is status.metadata_state)
    for phase in Phase:
        yield Figure("switchover_phase", (phase.value,), phase is status.phase)
    own = names.controller_pods(spec)
    for node in status.nodes:
        labels = (node.name, "controller" if node.name in own else "broker", node.assigned.value)
        yield Figure("switchover_node_assigned_mode", labels, 1)
    yield Figure("switchover_restarts", ("broker",), status.broker_restarts)
    yield Figure("switchover_restarts", ("controller",), status.controller_restarts)
    step = status.progress.step if status.progress.step in STEPS else "Unknown"
    yield Figure("switchover_step", (step, status.progress.direction.value), 1)
    yield Figure("switchover_attempt", (), status.attempt)
    yield Figure("switchover_rollback_available", (), status.rollback.available)


def _observed(picture: Picture) -> Iterator[Figure]:
    for name, record in picture.position.nodes.items():
        mode = picture.mode(record.node_id)
        if not isinstance(mode, Known) or not mode.value:
            continue
        yield Figure("switchover_node_observed_mode",
                     (name, "controller" if name in picture.controllers else "broker", mode.value), 1)
        if name in picture.brokers and mode.value in METADATA_TYPE:
            yield Figure("switchover_broker_metadata_type", (name, METADATA_TYPE[mode.value]), 1)
    if isinstance(parity := picture.facts.parity, Known):
        yield Figure("switchover_parity_differences", (), len(parity.value.differences))
    log, zookeeper, quorum = picture.facts.log, picture.facts.zookeeper, picture.facts.quorum
    if not isinstance(log, Known):
        return
    state = log.value.migration_state
    yield Figure("switchover_zk_migration_state", (), -1 if state is None else state.value)
    node = zookeeper.value.migration if isinstance(zookeeper, Known) else None
    if state is not MigrationState.MIGRATION or node is None or node.offset < 0:
        return                                                   # only dual write makes a lag mean something
    yield Figure("switchover_dual_write_age_seconds", (), max(0.0, picture.now - node.mtime))
    if isinstance(quorum, Known) and quorum.value.high_watermark >= 0:
        yield Figure("switchover_dual_write_lag_records", (), max(0, quorum.value.high_watermark - 1 - node.offset))


def waits_of(judged: Iterable[Judgement], seconds: float) -> Mapping[str, float]:
    """The seconds since the last pass for every gate that is not open. A gate of one node counts for all of its kind."""
    return {item.gate.partition("/")[0]: seconds for item in judged if not item.open}
