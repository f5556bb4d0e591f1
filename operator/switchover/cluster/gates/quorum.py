"""The quorum of controllers is up, ready to migrate, and keeps its majority while one of them restarts."""

from switchover.answers.observed import Known, Observed, Unknown
from switchover.api.kafka_migration import NodeMode
from switchover.cluster.facts import Need
from switchover.cluster.modes import CONTROLLERS_REGISTER, METADATA_LEVELS
from switchover.cluster.picture import Picture
from switchover.cluster.reading import (
    controllers_coming_up,
    log_of,
    phases_of_controllers,
    quorum_of,
    samples,
    unless_coming_up,
    until,
    with_new_volumes,
)
from switchover.engine.gate import Gate, Verdict, fail, of, passed, seen, several, unknown, wait
from switchover.kafka.node import NOT_LISTENING, Quorum
from switchover.metadata.parity import LogImage, MigrationState
from switchover.reasons.cluster import (
    CONTROLLER_NOT_READY,
    CONTROLLER_SILENT,
    CONTROLLER_STARTING,
    METADATA_VERSION_MISMATCH,
    NO_MIGRATION_STATE,
    QUORUM_CANNOT_MIGRATE,
    QUORUM_STARTING,
    SETTINGS_UNKNOWN,
    VOTER_BEHIND,
    WRONG_VOTERS,
)
from switchover.reasons.walk import CONTROLLER_UNKNOWN, WRONG_MODE
from switchover.text.command import kubectl

CAUGHT_UP_RECORDS = 5
"""How far a voter or observer may be behind the high watermark: the log grows by two no-op records a second."""
REGISTRATION_SECONDS = 120.0
"""A controller registers within seconds of its start, or never (docs/facts/kraft.md#a-controller-that-never-registers)."""
FETCHED_SECONDS = 3.0
"""How old the last fetch of a follower may be; it fetches every half second."""


def check_quorum_up(picture: Picture) -> Verdict:
    quorum = quorum_of(picture)
    expected = set(picture.controllers.values())
    if set(quorum.voters) != expected:
        return fail(WRONG_VOTERS, f"what answers at the controllers' addresses is a quorum of"
                    f" {several(sorted(quorum.voters))}, not of {several(sorted(expected))}",
                    observed=sorted(quorum.voters), threshold=sorted(expected),
                    unblocks="delete no volume. See which pods have these addresses: "
                             + kubectl(picture.namespace, "get pods --output wide"))
    if quorum.high_watermark < 1:
        return wait(QUORUM_STARTING, "the leader has no high watermark yet", subject=f"controller {quorum.leader_id}",
                    unblocks="wait until a majority of the controllers fetches from it, within seconds")
    return _voters_caught_up(picture, quorum)


def _voters_caught_up(picture: Picture, quorum: Quorum, spared: frozenset[int] = frozenset()) -> Verdict:
    """Measured from when the leader was asked: the rest of a pass may take longer than a follower may be silent."""
    asked = picture.facts.quorum.at if isinstance(picture.facts.quorum, Known) else picture.now
    for node_id, voter in sorted(quorum.voters.items()):
        if node_id == quorum.leader_id or node_id in spared:
            continue
        age = asked - voter.last_fetch_ms / 1000
        behind = quorum.high_watermark - voter.log_end_offset
        if behind > CAUGHT_UP_RECORDS or age > FETCHED_SECONDS:
            phase = phases_of_controllers(picture).get(node_id)
            return wait(VOTER_BEHIND, f"controller {node_id} does not follow the leader"
                        + (f": {phase.message}" if phase is not None else ""), subject=f"controller {node_id}",
                        observed=f"{behind} records behind, last fetch {age:.1f} s ago",
                        threshold=f"{CAUGHT_UP_RECORDS} records, {FETCHED_SECONDS:.0f} s",
                        unblocks=f"find out why: {phase.look}" if phase is not None and phase.in_trouble
                        else "wait until it has caught up")
    return passed(f"leader {quorum.leader_id}, epoch {quorum.leader_epoch}, all voters at the high watermark")


def check_controllers_ready(picture: Picture) -> Verdict:
    log = log_of(picture)
    for name, node_id in sorted(picture.controllers.items(), key=lambda each: each[1]):
        asked = picture.facts.answers.get(node_id, Unknown(f"controller {node_id} was not asked"))
        unless_coming_up(picture, asked)
        answer = seen(asked, CONTROLLER_UNKNOWN, f"controller {node_id}")
        if answer == NOT_LISTENING and (found := controllers_coming_up(picture)) is not None:
            return found
        if not (log.controllers.get(node_id, False) if _registers(log) else answer.zk_migration_ready):
            again = name in picture.position.rescued
            return wait(CONTROLLER_NOT_READY, f"controller {node_id} has not registered as ready to migrate"
                        + (", not even after a restart" if again else ""), subject=f"controller {node_id}",
                        unblocks=f"see why: {kubectl(picture.namespace, 'logs {}', name)}; once it can reach the leader: "
                        + kubectl(picture.namespace, "delete pod {}", name) if again else
                        f"wait until it registers; after {REGISTRATION_SECONDS:.0f} s Switchover restarts it, once")
        if answer.features_epoch < 0:
            return wait(CONTROLLER_STARTING, f"controller {node_id} does not know the finalized features yet",
                        subject=f"controller {node_id}", unblocks="wait: it reads them from the log within seconds")
    return passed("every controller registered as ready")


def _registers(log: LogImage) -> bool:
    """Whether controllers register at all, at the metadata.version of this log."""
    return log.metadata_version is None or log.metadata_version >= CONTROLLERS_REGISTER


def unregistered(picture: Picture) -> Observed[list[str]]:
    """The controllers' pods that answer, and of which the log has no registration as ready to migrate."""
    log = picture.facts.log
    if not isinstance(log, Known):
        return log
    return Known([name for name, node_id in picture.controllers.items()
                  if _registers(log.value) and not log.value.controllers.get(node_id, False)
                  and isinstance(answer := picture.facts.answers.get(node_id), Known) and answer.value != NOT_LISTENING],
                 log.at)


def check_pre_migration(picture: Picture) -> Verdict:
    log = log_of(picture)
    if log.migration_state is MigrationState.NONE:
        return fail(QUORUM_CANNOT_MIGRATE, "the quorum was first started without the migration flag and can never migrate",
                    observed=log.migration_state.name, threshold=MigrationState.PRE_MIGRATION.name,
                    unblocks=with_new_volumes(picture))
    if log.migration_state is None:
        return wait(NO_MIGRATION_STATE, "the metadata log holds no migration state yet", subject="metadata log",
                    unblocks="wait: the first leader writes it within seconds")
    protocol = protocol_version(picture)
    if protocol is None:
        return unknown(SETTINGS_UNKNOWN, "the brokers' inter.broker.protocol.version is not known")
    level = METADATA_LEVELS.get(protocol)
    if log.metadata_version != level:
        return fail(METADATA_VERSION_MISMATCH, "the quorum's metadata.version is not the brokers' protocol version",
                    observed=log.metadata_version, threshold=level,
                    unblocks=with_new_volumes(picture))
    return passed(f"state {log.migration_state.name}, metadata.version {log.metadata_version}")


def protocol_version(picture: Picture) -> str | None:
    """inter.broker.protocol.version as all brokers' live settings have it (without the -IV suffix); None if unknown."""
    versions = set()
    for settings in picture.facts.broker_settings.values():
        if isinstance(settings, Known):
            versions.add(settings.value.get("inter.broker.protocol.version", "").split("-")[0])
    return versions.pop() if len(versions) == 1 else None


def check_majority_without_batch(picture: Picture) -> Verdict:
    """The other voters are caught up before a controller stops."""
    quorum = quorum_of(picture)
    leaving = frozenset(picture.position.nodes[name].node_id for name in picture.batch)
    return _voters_caught_up(picture, quorum, spared=leaving)


def check_controller_finalized(picture: Picture) -> Verdict:
    """Each controller of the batch answers without the migration flag."""
    for name in picture.batch:
        mode = picture.mode(picture.position.nodes[name].node_id)
        if not isinstance(mode, Known):
            return wait(CONTROLLER_SILENT, of(name, mode.why), subject=name,
                        unblocks=until("its new pod answers", picture, name))
        if mode.value != NodeMode.KRAFT_CONTROLLER:
            return wait(WRONG_MODE, f"{name} still has the migration flag", subject=name, observed=mode.value,
                        threshold=NodeMode.KRAFT_CONTROLLER, unblocks=until("its new pod answers", picture, name))
    return passed(f"{', '.join(picture.batch)} without the flag")


QUORUM_UP: Gate[Picture] = Gate("QuorumUp", check_quorum_up, hold=lambda p: float(p.spec.gates.quorum_stable_seconds))
CONTROLLERS_READY: Gate[Picture] = Gate(
    "ControllersReady", check_controllers_ready, samples=samples, patience=lambda _: REGISTRATION_SECONDS)
PRE_MIGRATION: Gate[Picture] = Gate("PreMigration", check_pre_migration, needs=(Need.BROKER_SETTINGS,))
MAJORITY_WITHOUT_BATCH: Gate[Picture] = Gate("MajorityWithoutBatch", check_majority_without_batch, samples=samples)
CONTROLLER_FINALIZED: Gate[Picture] = Gate("ControllerFinalized", check_controller_finalized)
