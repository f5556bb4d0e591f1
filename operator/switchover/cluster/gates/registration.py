"""Brokers run in their mode and are registered so, by the metadata log, ZooKeeper and themselves."""

from collections.abc import Collection

from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode
from switchover.cluster import modes
from switchover.cluster.gates.quorum import CAUGHT_UP_RECORDS
from switchover.cluster.picture import Picture
from switchover.cluster.reading import log_of, not_in_its_mode, quorum_of, samples, until, zookeeper_of
from switchover.engine.gate import Gate, Verdict, fail, passed, seen, several, wait
from switchover.reasons.cluster import (
    BROKER_FENCED,
    BROKER_LOST_ZOOKEEPER,
    BROKER_ON_ZOOKEEPER,
    NOT_REGISTERED,
    OBSERVER_BEHIND,
    UNKNOWN_BROKER,
)
from switchover.reasons.walk import BROKER_SILENT, WRONG_MODE, ZOOKEEPER_REGISTRATION
from switchover.zookeeper.nodes import ZooKeeperState


def check_moved_broker(picture: Picture) -> Verdict:
    """Each broker of the batch runs in its mode, and is registered so in the metadata log, unfenced."""
    state = zookeeper_of(picture)
    return _registered(picture, state)


def check_started_broker(picture: Picture) -> Verdict:
    """The same without ZooKeeper, which may be gone."""
    return _registered(picture, None)


def _registered(picture: Picture, state: ZooKeeperState | None) -> Verdict:
    log = log_of(picture)
    for name in picture.batch:
        record = picture.position.nodes[name]
        node_id, zookeeper_mode = record.node_id, record.assigned not in modes.ON_KRAFT
        if (other := not_in_its_mode(picture, name)) is not None:
            return other
        if state is not None and (node_id in state.brokers) != zookeeper_mode:
            found = "is missing from" if zookeeper_mode else "is still in"
            return wait(ZOOKEEPER_REGISTRATION, f"broker {node_id} {found} /brokers/ids in ZooKeeper", subject=name,
                        unblocks=until("it registers", picture, name) if zookeeper_mode
                        else "wait: its old session with ZooKeeper ends by its timeout")
        registration = log.brokers.get(node_id)
        if registration is None or registration.migrating_zk != zookeeper_mode:
            return wait(NOT_REGISTERED, f"the metadata log has no registration of broker {node_id} in mode"
                        f" {record.assigned}", subject=name,
                        unblocks=until("it registers", picture, name))
        if registration.fenced:
            return wait(BROKER_FENCED, f"the controllers fence broker {node_id}", subject=name,
                        unblocks=until(HEARTBEATS_ARRIVE, picture, name))
    return passed(f"{', '.join(picture.batch)} registered")


def check_modes_on_record(picture: Picture) -> Verdict:
    """Each broker that has settled, by the record, runs in that mode: the next batch writes the files of all."""
    for name, node_id in sorted(picture.brokers.items()):
        record = picture.position.nodes[name]
        if not record.settled:
            continue
        mode = seen(picture.mode(node_id), BROKER_SILENT, name)
        if mode != record.assigned:
            return wait(WRONG_MODE, f"{name} does not run in the mode that status.nodes has for it", subject=name,
                        observed=mode, threshold=record.assigned,
                        unblocks="see status.history. If status.nodes is right, restart the pod: it comes back in that"
                                 " mode. If somebody changed status.nodes, restore it")
    return passed("every broker runs in the mode on record")


def check_observers_caught_up(picture: Picture) -> Verdict:
    """Each broker of the batch follows the metadata log."""
    quorum = quorum_of(picture)
    for name in picture.batch:
        node_id = picture.position.nodes[name].node_id
        observer = quorum.observers.get(node_id)
        behind = quorum.high_watermark - observer.log_end_offset if observer is not None else None
        if behind is None or behind > CAUGHT_UP_RECORDS:
            return wait(OBSERVER_BEHIND, f"broker {node_id} does not follow the metadata log", subject=name,
                        observed="not an observer" if behind is None else f"{behind} records behind",
                        threshold=f"{CAUGHT_UP_RECORDS} records",
                        unblocks="wait until it fetches from the controllers; if not, check that it reaches their port")
    return passed("the metadata log is followed")


HEARTBEATS_ARRIVE = "its heartbeats reach the controllers"
FENCED_SECONDS = 90.0
"""A broker that starts, or whose controller has moved, is unfenced once the JVM has forgotten an old address, after 30 s."""


def fenced(picture: Picture) -> list[str]:
    """The pods of brokers that the controllers fence."""
    log = picture.facts.log
    known = log.value.brokers if isinstance(log, Known) else {}
    return [name for name, node_id in sorted(picture.brokers.items()) if node_id in known and known[node_id].fenced]


def check_nobody_fenced(picture: Picture) -> Verdict:
    """The controllers fence no broker of this cluster."""
    return _nobody_fenced(picture, ())


def check_others_heard(picture: Picture) -> Verdict:
    """The same of those that are not being moved."""
    return _nobody_fenced(picture, picture.batch)


def _nobody_fenced(picture: Picture, spared: Collection[str]) -> Verdict:
    log = log_of(picture)
    brokers = {name: node_id for name, node_id in sorted(picture.brokers.items()) if name not in spared}
    lost = [name for name, node_id in brokers.items() if node_id not in log.brokers or log.brokers[node_id].fenced]
    if not lost:
        return passed("no broker is fenced")
    node_id = brokers[lost[0]]
    message = f"broker {node_id} {'is fenced' if node_id in log.brokers else 'is not registered'}"
    if len(lost) == len(brokers) > 1:
        message = f"the controllers fence every broker: {', '.join(str(brokers[name]) for name in lost)}"
    return wait(BROKER_FENCED, message, subject=lost[0], unblocks=until(HEARTBEATS_ARRIVE, picture, lost[0]))


def check_others_in_zookeeper(picture: Picture) -> Verdict:
    """Each broker outside the batch that runs in a mode with ZooKeeper has a session there."""
    nodes = picture.position.nodes
    brokers = {name: node_id for name, node_id in sorted(picture.brokers.items()) if name not in picture.batch
               and nodes[name].settled and nodes[name].assigned not in modes.ON_KRAFT}
    state = zookeeper_of(picture) if brokers else None
    answers = {name: picture.mode(node_id) for name, node_id in brokers.items()}
    lost = [name for name, node_id in brokers.items() if isinstance(answers[name], Known)
            and state is not None and node_id not in state.brokers]
    if lost:
        who = f"broker {brokers[lost[0]]} answers, but has" if len(lost) == 1 else (
            f"brokers {several(brokers[name] for name in lost)} answer, but have")
        return wait(BROKER_LOST_ZOOKEEPER, f"{who} no session with ZooKeeper: missing from /brokers/ids", subject=lost[0],
                    observed=f"{len(lost)} of {len(brokers)}", threshold="0",
                    unblocks="check that they reach ZooKeeper; their logs say why they do not")
    for name, mode in answers.items():
        seen(mode, BROKER_SILENT, name)
    return passed("every broker outside the batch that needs ZooKeeper is registered there")


def check_all_kraft(picture: Picture) -> Verdict:
    """No broker runs on ZooKeeper, by ZooKeeper, by ApiVersions and by the metadata log."""
    state, log = zookeeper_of(picture), log_of(picture)
    if state.brokers:
        return wait(BROKER_ON_ZOOKEEPER, f"brokers {sorted(state.brokers)} are still registered in ZooKeeper",
                    subject=f"broker {min(state.brokers)}", unblocks="wait until they run in KRaft mode")
    for name, node_id in sorted(picture.brokers.items()):
        mode = seen(picture.mode(node_id), BROKER_SILENT, name)
        registration = log.brokers.get(node_id)
        if mode not in modes.ON_KRAFT or registration is None or registration.migrating_zk:
            return wait(BROKER_ON_ZOOKEEPER, f"broker {node_id} ({name}) is not in KRaft mode", subject=name,
                        observed=mode, threshold=NodeMode.KRAFT, unblocks="wait until it runs in KRaft mode")
    others = sorted(
        node_id for node_id, item in log.brokers.items() if item.migrating_zk and node_id not in picture.brokers.values())
    if others:
        return fail(UNKNOWN_BROKER, f"broker {others[0]} is registered in ZooKeeper mode, but not part of this migration",
                    subject=f"broker {others[0]}",
                    unblocks="move or remove it: finalizing would cut it off (KAFKA-20960)")
    return passed("every broker runs in KRaft mode")


MOVED_BROKER: Gate[Picture] = Gate("MovedBroker", check_moved_broker, samples=samples)
STARTED_BROKER: Gate[Picture] = Gate("StartedBroker", check_started_broker, samples=samples)
MODES_ON_RECORD: Gate[Picture] = Gate("ModesOnRecord", check_modes_on_record)
OTHERS_IN_ZOOKEEPER: Gate[Picture] = Gate("OthersInZooKeeper", check_others_in_zookeeper)
OBSERVERS_CAUGHT_UP: Gate[Picture] = Gate("ObserversCaughtUp", check_observers_caught_up)
NOBODY_FENCED: Gate[Picture] = Gate(
    "NobodyFenced", check_nobody_fenced, samples=samples, patience=lambda _: FENCED_SECONDS)
OTHERS_HEARD: Gate[Picture] = Gate("OthersHeard", check_others_heard, patience=lambda _: FENCED_SECONDS)
NOBODY_FENCED_FOR_LONG: Gate[Picture] = Gate(
    "NobodyFencedForLong", check_nobody_fenced, samples=samples,
    hold=lambda p: float(p.spec.gates.broker_session_timeout_seconds + 1))
ALL_KRAFT: Gate[Picture] = Gate("AllKRaft", check_all_kraft, samples=samples)
