"""What the brokers' disks must tell before a step that would stumble over it
(docs/facts/kraft.md#formatted-log-directories)."""

from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode
from switchover.cluster.picture import Picture
from switchover.engine.gate import Gate, Unseen, Verdict, fail, passed, seen, unknown, wait
from switchover.kubernetes.reports import DiskReport
from switchover.reasons.cluster import DISKS_UNKNOWN, LOG_DIRECTORY_FORMATTED, TOPIC_ID_MISSING_ON_DISK
from switchover.reasons.walk import NOT_OBSERVED
from switchover.text.command import command


def _report_again(name: str) -> str:
    return f"its pod starts again and reports: {command('kubectl delete pod {}', name)} (it comes back in its assigned mode)"


def _reports(picture: Picture) -> dict[str, DiskReport]:
    """Pod name -> report, of every broker but those that still run on plain ZooKeeper and have not started since we ask."""
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
            told = "has not reported its disks" if silent else "found no log directory on its volumes"
            raise Unseen(unknown(DISKS_UNKNOWN, f"pod {name} {told}", subject=name))
    return found


def check_disks_allow_rollback(picture: Picture) -> Verdict:
    """No log directory of a broker that must come back to plain ZooKeeper mode was formatted by kafka-storage."""
    reports = _reports(picture)
    for name, report in reports.items():
        if report.formatted:
            first = next(iter(report.formatted_directories), "a log directory")
            return fail(LOG_DIRECTORY_FORMATTED, f"{name}: {first} was formatted by kafka-storage (meta.properties of"
                        " version 1); a broker on plain ZooKeeper refuses to start with it", subject=name,
                        observed=f"{report.formatted} of {report.directories} log directories", threshold="none",
                        unblocks=f"make it version 0 as the runbook shows, then {_report_again(name)}")
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
                        unblocks=f"move it away if the broker has that partition no more; then {_report_again(name)}")
    return passed(f"{sum(report.partitions for report in reports.values())} partition directories with their topic ids")


DISKS_ALLOW_ROLLBACK: Gate[Picture] = Gate("DisksAllowRollback", check_disks_allow_rollback)
TOPIC_IDS_ON_DISK: Gate[Picture] = Gate("TopicIdsOnDisk", check_topic_ids_on_disk)
