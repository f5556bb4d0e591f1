"""The figures of a KafkaMigration, in addition to those of every migration: the KIP's metrics for people without JMX."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from switchover.answers.observed import NOT_ASKED, Known, Observed
from switchover.api.kafka_migration import KafkaMigrationSpec, KafkaMigrationStatus, MetadataState, NodeMode
from switchover.cluster import modes, names
from switchover.cluster.picture import Picture
from switchover.cluster.status import STEPS, dual_write
from switchover.engine.figures import Figure, Metric, on_record
from switchover.metadata.parity import MigrationState
from switchover.zookeeper.nodes import ControllerNode

METADATA_TYPE = {
    **dict.fromkeys(modes.WITHOUT_QUORUM, "ZooKeeper"),
    NodeMode.MIGRATION: "Dual", **dict.fromkeys(modes.ON_KRAFT, "KRaft")}
"""KIP-866's MetadataType of a broker by its mode. Kafka 3.9 does not have that metric (docs/facts/kraft.md#metrics)."""


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
}


def figures(spec: KafkaMigrationSpec, status: KafkaMigrationStatus, picture: Picture | None) -> tuple[Figure, ...]:
    """Every figure that is known now; what could not be observed is absent. Without a picture: what is on record alone."""
    return (*_on_record(spec, status), *(_observed(picture) if picture is not None else ()))


def _on_record(spec: KafkaMigrationSpec, status: KafkaMigrationStatus) -> Iterator[Figure]:
    for state in MetadataState:
        yield Figure("switchover_migration_state", (state.value,), state is status.metadata_state)
    own = names.controller_pods(spec)
    for node in status.nodes:
        labels = (node.name, "controller" if node.name in own else "broker", node.assigned.value)
        yield Figure("switchover_node_assigned_mode", labels, 1)
    yield Figure("switchover_restarts", ("broker",), status.broker_restarts)
    yield Figure("switchover_restarts", ("controller",), status.controller_restarts)
    yield from on_record(status, STEPS)


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
    if isinstance(log := picture.facts.log, Known):
        state = log.value.migration_state
        yield Figure("switchover_zk_migration_state", (), -1 if state is None else state.value)
    lag, age = dual_write(picture)
    if age is not None:
        yield Figure("switchover_dual_write_age_seconds", (), age)
    if lag is not None:
        yield Figure("switchover_dual_write_lag_records", (), lag)


# --- digest ---------------------------------------------------------------------------------------------------------------
# The facts of a pass over a KafkaMigration that its story has.

T = TypeVar("T")


def digest(picture: Picture) -> Mapping[str, str]:
    """Ends of sentences by their subject. Names, modes and numbers of nodes alone."""
    return dict(_sentences(picture))


def _sentences(picture: Picture) -> Iterator[tuple[str, str]]:
    facts = picture.facts
    for name, record in picture.position.nodes.items():
        mode = picture.mode(record.node_id)
        yield name, f"in {mode.value}" if isinstance(mode, Known) and mode.value else "silent"
    if facts.zookeeper is not NOT_ASKED:
        yield "ZooKeeper's controller", _of(facts.zookeeper, lambda state: _controller(state.controller))
    if facts.quorum is not NOT_ASKED:
        yield "the quorum's leader", _of(facts.quorum, lambda quorum: str(quorum.leader_id))
    if facts.log is not NOT_ASKED:
        yield "the metadata log's state", _of(facts.log, lambda log: _state(log.migration_state))
    if views := picture.whole_views:
        yield "replicas", "are not all in sync" if any(view.lagging for view in views.values()) else "are all in sync"


def _of(fact: Observed[T], shown: Callable[[T], str]) -> str:
    return f"is {shown(fact.value)}" if isinstance(fact, Known) else "cannot be seen"


def _controller(found: ControllerNode | None) -> str:
    if found is None:
        return "nobody"
    return f"broker {found.node_id}" if found.ephemeral else f"KRaft's {found.node_id}"


def _state(found: MigrationState | None) -> str:
    return "none" if found is None else found.name
