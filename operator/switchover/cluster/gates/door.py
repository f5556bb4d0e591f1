"""Which edits a broker was started with, as its own process tells it: the marker among its settings."""

from switchover.answers.observed import Known, Unknown
from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.kafka_migration import NodeMode
from switchover.cluster import names, template
from switchover.cluster.door import edits
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of
from switchover.engine.gate import Gate, Verdict, fail, passed, seen, unknown, wait
from switchover.kubernetes.workloads import Workload
from switchover.reasons.cluster import DOOR_NOT_PASSED, DOOR_STILL_THERE, STARTED_BY_OTHER_EDITS
from switchover.reasons.walk import BROKER_SILENT, NOT_OBSERVED
from switchover.text.command import kubectl

OWN = (NodeMode.ZOOKEEPER, NodeMode.OWN_KRAFT)
"""The modes in which brokers run by their own template."""


def check_started_by_its_edits(picture: Picture) -> Verdict:
    """Each broker of the batch runs with the edits that are written for it or, by its own template alone, with none."""
    state = kubernetes_of(picture)
    for name in picture.batch:
        record, workload = picture.position.nodes[name], name.rpartition("-")[0]
        asked = picture.facts.markers.get(record.node_id, Unknown(f"broker {record.node_id} was not asked"))
        shown = seen(asked, BROKER_SILENT, name)
        written = edits.marker_of(state.node_files.get(workload, {}).get(name, ""))
        if not written and record.assigned not in OWN:
            return unknown(NOT_OBSERVED, f"Secret {names.node_files(workload)} has no edits for {name}", subject=name)
        wanted = "" if record.assigned in OWN or _went_its_own_way(picture, state.brokers.get(workload)) else written
        if shown == wanted:
            continue
        if not wanted:
            return wait(DOOR_STILL_THERE, f"{name} was started through Switchover's door, not by its own template alone",
                        subject=name, observed=shown, threshold="no marker",
                        unblocks=f"its template is restored; then {kubectl(picture.namespace, 'delete pod {}', name)}")
        if not shown:
            return fail(DOOR_NOT_PASSED, not_passed(picture, name), subject=name, observed="no marker", threshold=wanted,
                        unblocks="roll back (spec.desiredState: RolledBack), set spec.brokers[].start to the script that the"
                        " container really starts Kafka by, and try again")
        return wait(STARTED_BY_OTHER_EDITS, f"{name} was started with other edits than Secret {names.node_files(workload)}"
                    " has for it", subject=name, observed=shown, threshold=wanted,
                    unblocks=kubectl(picture.namespace, "delete pod {}", name))
    return passed(f"{', '.join(picture.batch)} started as written")


def _went_its_own_way(picture: Picture, workload: Workload | None) -> bool:
    """After HandOver the template is the user's: one without the door starts brokers without a marker."""
    if picture.position.step != Step.RELEASE_ZOOKEEPER or workload is None:
        return False
    return bool({"volumes", "mounts"} & {*template.changed_back(workload, picture.broker_sets[workload.name])})


def not_passed(picture: Picture, name: str) -> str:
    """What it means that a process has no marker."""
    brokers, where = picture.brokers_of(name.rpartition("-")[0]), "its start script"
    if isinstance(brokers, Known):
        where = f"{brokers.value.script} of container {brokers.value.container}"
    return f"{name} runs Kafka, but was not started by {where}: the edits of its mode did not reach it"


STARTED_BY_ITS_EDITS: Gate[Picture] = Gate("StartedByItsEdits", check_started_by_its_edits)
