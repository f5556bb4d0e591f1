"""What must hold of the brokers' disks before a step that would fail on it
(docs/facts/kraft.md#formatted-log-directories), and the volumes that hold the nodes' data."""

from collections.abc import Mapping

from switchover.answers.observed import Known
from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.kafka_migration import NodeMode
from switchover.cluster.gates.quorum import QUORUM_UP
from switchover.cluster.gates.replicas import ALL_IN_SYNC
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of
from switchover.engine.gate import Gate, Unseen, Verdict, fail, passed, seen, unknown, wait
from switchover.kubernetes.reports import DiskReport
from switchover.kubernetes.workloads import Pod
from switchover.reasons.cluster import (
    DISKS_UNKNOWN,
    LOG_DIRECTORY_FORMATTED,
    QUORUM_VOLUMES_LOST,
    TOPIC_ID_MISSING_ON_DISK,
    VOLUME_REPLACED,
)
from switchover.reasons.walk import NOT_OBSERVED
from switchover.text.command import kubectl


def _report_again(picture: Picture, name: str) -> str:
    return f"restart its pod, which comes back in its assigned mode: {kubectl(picture.namespace, 'delete pod {}', name)}"


def _reports(picture: Picture) -> dict[str, DiskReport]:
    """Pod name -> report, of every broker but those that have run on plain ZooKeeper since before reports were made."""
    seen(picture.facts.kubernetes, NOT_OBSERVED, "Kubernetes")
    found: dict[str, DiskReport] = {}
    for name, broker_id in sorted(picture.brokers.items()):
        pod = picture.pod_of(name)
        if pod is not None and pod.disks is not None and pod.disks.directories > 0:
            found[name] = pod.disks
            continue
        mode = picture.mode(broker_id)
        if not isinstance(mode, Known) or mode.value != NodeMode.ZOOKEEPER:
            silent = pod is None or pod.disks is None
            why = "has not reported its disks" if silent else "found no log directory on its volumes"
            raise Unseen(unknown(DISKS_UNKNOWN, f"pod {name} {why}", subject=name))
    return found


def check_disks_allow_rollback(picture: Picture) -> Verdict:
    """No log directory of a broker that must come back to plain ZooKeeper mode was formatted by kafka-storage."""
    reports = _reports(picture)
    for name, report in reports.items():
        if report.formatted:
            first = next(iter(report.formatted_directories), "a log directory")
            return fail(LOG_DIRECTORY_FORMATTED, f"{name}: {first} was formatted by kafka-storage (meta.properties of"
                        " version 1): a broker on plain ZooKeeper refuses to start with it", subject=name,
                        observed=f"{report.formatted} of {report.directories} log directories", threshold="none",
                        unblocks=f"change it to version 0 as the runbook shows, then {_report_again(picture, name)}")
    return passed(f"{sum(report.directories for report in reports.values())} log directories suit plain ZooKeeper mode")


def check_topic_ids_on_disk(picture: Picture) -> Verdict:
    """No partition directory lacks its topic id: a full LeaderAndIsr would throw, and KRaft takes the log for a stray."""
    reports = _reports(picture)
    for name, report in reports.items():
        if report.nameless:
            first = next(iter(report.nameless_directories), "a partition directory")
            return wait(TOPIC_ID_MISSING_ON_DISK, f"{name}: {first} has no partition.metadata, so its log has no topic id"
                        " (KAFKA-21022)", subject=name,
                        observed=f"{report.nameless} of {report.partitions} partition directories", threshold="none",
                        unblocks="move it away if the broker no longer has that partition, else the restart writes it;"
                                 f" {_report_again(picture, name)}")
    return passed(f"{sum(report.partitions for report in reports.values())} partition directories with their topic ids")


DISKS_ALLOW_ROLLBACK: Gate[Picture] = Gate("DisksAllowRollback", check_disks_allow_rollback)
TOPIC_IDS_ON_DISK: Gate[Picture] = Gate("TopicIdsOnDisk", check_topic_ids_on_disk)


# --- volumes --------------------------------------------------------------------------------------------------------------
# A node with another volume claim has lost its data: that is reported as an incident.
#
# The claims are put on record while the controllers are provisioned. A node with another claim is waited for until it has
# caught up; then that one is on record. A majority of the controllers cannot catch up: nobody has the metadata log then.

SETTLING = (Step.PREFLIGHT, Step.PROVISION_CONTROLLERS)
"""Steps in which no node depends on the controllers' volumes; a rollback removes them there."""
CAUGHT_UP_SECONDS = 60.0
"""A pod must be older before its replicas count: until a broker's session is over, others may list the one before it."""


def check_volumes_kept(picture: Picture) -> Verdict:
    kubernetes_of(picture)
    replaced = _replaced(picture)
    if not replaced:
        return passed("every node has the volumes that it had")
    lost = _controllers_among(picture, replaced)
    name, (before, now) = next(iter(replaced.items()))
    if _is_majority(picture, lost):
        return fail(QUORUM_VOLUMES_LOST, f"the volumes of {', '.join(lost)} are not the ones on record: the majority of the"
                    " controllers has lost the metadata log", subject=lost[0], observed=", ".join(replaced[lost[0]][1]),
                    threshold=", ".join(replaced[lost[0]][0]),
                    unblocks="delete no other volume and restart no broker; follow the runbook of QuorumVolumesLost")
    return wait(VOLUME_REPLACED, f"{name} runs on another volume than the one on record, without the data of the old one",
                subject=name, observed=", ".join(now) or "none", threshold=", ".join(before),
                unblocks=f"wait until {name} has caught up from the other nodes, and find out who deleted the claim")


def volumes_on_record(picture: Picture) -> tuple[Mapping[str, tuple[str, ...]], str]:
    """The claims to put on record for each node, and a note on those that have just caught up on another one."""
    replaced = _replaced(picture)
    found, caught_up = dict(picture.volumes), []
    for name in picture.position.nodes:
        pod = picture.pod_of(name)
        if pod is None:
            continue
        if name not in replaced:
            found[name] = pod.volumes
        elif _has_caught_up(picture, name, pod, replaced):
            found[name] = pod.volumes
            caught_up.append(name)
    note = f"{', '.join(caught_up)} caught up on another volume than before" if caught_up else ""
    return found, note


def _replaced(picture: Picture) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Node -> the claims on record and those that its pod has, where these are others."""
    if picture.position.step in SETTLING:
        return {}
    pods = {name: picture.pod_of(name) for name in picture.position.nodes}
    return {name: (before, pod.volumes) for name, pod in pods.items()
            if pod is not None and (before := picture.volumes.get(name)) and pod.volumes != before}


def _controllers_among(picture: Picture, replaced: Mapping[str, object]) -> list[str]:
    return [name for name in replaced if name in picture.controllers]


def _is_majority(picture: Picture, controllers: list[str]) -> bool:
    return len(controllers) * 2 > len(picture.controllers)


def _has_caught_up(picture: Picture, name: str, pod: Pod, replaced: Mapping[str, object]) -> bool:
    if not pod.ready or pod.started_at is None or picture.now - pod.started_at < CAUGHT_UP_SECONDS:
        return False
    if name not in picture.controllers:
        return ALL_IN_SYNC.check(picture).outcome == "Pass"
    return not _is_majority(picture, _controllers_among(picture, replaced)) and QUORUM_UP.check(picture).outcome == "Pass"


VOLUMES_KEPT: Gate[Picture] = Gate("VolumesKept", check_volumes_kept)
