"""The user's own template, tried before a broker has it: a Job whose pod is a broker's by that template, but for Kafka.

Its init containers and entry script run as in the pod of the broker that goes first, under its name; where Kafka would start
stands the door, which reports what configuration has reached it, and ends. A copy of a broker's pod with named changes
(`_pod`): labels of our own, so that nobody's Service, budget or StatefulSet selects it; directories of its own in place of
whatever a broker may write to; no probes, ports or neighbours; few resources. It belongs to the migration, and goes with it.
"""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from switchover.answers.observed import NOT_ASKED, Known, Observed, Unknown
from switchover.api.job_message import NONCE
from switchover.api.kafka_migration import BrokerSet, NodeMode
from switchover.api.meta import API_VERSION, AcceptedRisk
from switchover.cluster import names, nodes, template
from switchover.cluster.controllers.manifests import NOT_COPIED, PLACED, labels_that_place, without_host_ports
from switchover.cluster.door import mount
from switchover.cluster.door.brokers import ContainerMissing, container_of, layout_of
from switchover.cluster.door.directives import Directive
from switchover.cluster.door.mount import DOOR, KEEP, NOT_DATA, TRIAL
from switchover.cluster.ending.own_configuration import KEYS, Broker, log_dirs, metadata_dir
from switchover.cluster.facts import KubernetesState
from switchover.cluster.picture import Picture
from switchover.cluster.reading import broker_workloads
from switchover.engine.effects import Create, Delete, Effect
from switchover.kubernetes.workloads import JobRun, Workload
from switchover.shared import foreign_json

TRIES = "SWITCHOVER_TRIES"
"""Variable of the first init container: a digest of what the Job was made of, above all the template."""
COMPARED_WITH = "SWITCHOVER_COMPARED_WITH"
"""Another: the broker with which it is compared, as it ran when the Job was made."""
EDITS = "\n".join((Directive("mode", "Trial"), *(Directive("tell", key) for key in KEYS), ""))
LAID_OUT = "switchover-trial"
DEADLINE_SECONDS = 1800
REQUESTS = {"cpu": "50m", "memory": "256Mi"}
"""An entry script may start a tool of Kafka's; limits are the user's own."""
REQUESTS_BEFORE = {"cpu": "10m", "memory": "16Mi"}
"""Of the user's init containers, whose limits may be small: there may be no room for one more pod like a broker's."""
READ_ONLY = (*NOT_DATA, "emptyDir", "csi", "image")
"""Kinds of volumes that hold no broker's data."""
NOT_TRIED = (*NOT_COPIED, "ports", "resizePolicy", "terminationMessagePath")
OF_A_BROKER = (*PLACED, "priorityClassName", "priority", "preemptionPolicy", "resources")


# --- what is done -----------------------------------------------------------------------------------------------------


def keep(picture: Picture, state: KubernetesState) -> tuple[Effect, ...]:
    """A Job for each new template that a broker is to be rolled to, and none for another one, or for none."""
    effects: list[Effect] = []
    for name, workload in broker_workloads(state).items():
        job = picture.facts.trials.get(name, NOT_ASKED)
        if not isinstance(job, Known):
            continue
        wanted = digest(workload, picture.broker_sets[name]) if _is_wanted(picture, state, workload) else None
        if job.value is not None and job.value.given.get(TRIES) != wanted:
            effects.append(Delete("batch/v1", "Job", job.value.name, job.value.uid))
        elif job.value is None and wanted is not None and isinstance(broker := goes_first(picture, name), Known):
            effects.append(Create(_manifest(picture, workload, wanted, broker.value)))
    return tuple(effects)


def _is_wanted(picture: Picture, state: KubernetesState, workload: Workload) -> bool:
    brokers = picture.broker_sets[workload.name]
    return (picture.own_configuration and AcceptedRisk.UNTRIED_TEMPLATE not in picture.spec.accepted_risks
            and bool(picture.position.left(picture.pods_of(workload.name), NodeMode.OWN_KRAFT))
            and template.is_brought(workload, brokers, state.originals.get(workload.name)))


def goes_first(picture: Picture, workload: str) -> Observed[Broker]:
    """Of a StatefulSet, the broker that is rolled to the new template first."""
    left = nodes.brokers_to_own_kraft(picture)
    if not isinstance(left, Known):
        return left
    pod = next((name for name in left.value if name.rpartition("-")[0] == workload), "")
    if not pod or (found := picture.pod_of(pod)) is None:
        return Unknown(f"StatefulSet {workload} has no pod that could be rolled")
    settings = picture.facts.broker_settings.get(node_id := picture.brokers[pod], NOT_ASKED)
    if not isinstance(settings, Known):
        return settings
    compared = {key: value for key, value in settings.value.items() if key in KEYS}
    return Known(Broker(pod, node_id, found.ips, compared), settings.at)


def digest(workload: Workload, brokers: BrokerSet) -> str | None:
    """Of what its Job is made of: the template without ours, what the spec says of it, and our scripts, which change with a
    release. None where it is not known which container of it runs Kafka."""
    try:
        theirs = template.without_ours(workload.template, brokers)
    except ContainerMissing:
        return None
    return names.digest([theirs, workload.claim_templates, brokers.model_dump(mode="json"), EDITS, DOOR, KEEP, TRIAL])


def compared_with(job: JobRun) -> Broker | None:
    """The broker with which a Job is compared; None for a Job that does not say."""
    try:
        found = foreign_json.parsed(job.given.get(COMPARED_WITH, ""))
        settings = {str(key): str(value) for key, value in found["settings"].items()}
        return Broker(str(found["pod"]), int(found["id"]), tuple(map(str, found["addresses"])), settings)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


# --- its objects ------------------------------------------------------------------------------------------------------


def _manifest(picture: Picture, workload: Workload, tries: str, broker: Broker) -> Mapping[str, Any]:
    labels = names.labels(picture.name)
    placed = labels_that_place(workload.template, (workload.selector, *workload.selectors.values()))
    compared = {"pod": broker.pod, "id": broker.node_id, "addresses": list(broker.addresses), "settings": broker.settings}
    pod = picture.pod_of(broker.pod)
    given = {NONCE: names.digest([picture.uid, picture.now, workload.name]), TRIES: tries,
             COMPARED_WITH: json.dumps(compared, sort_keys=True)}
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": names.trial(workload.name, picture.uid), "labels": labels,
            "ownerReferences": [{
                "apiVersion": API_VERSION, "kind": "KafkaMigration", "name": picture.name, "uid": picture.uid}]},
        "spec": {
            "backoffLimit": 0, "activeDeadlineSeconds": DEADLINE_SECONDS,
            "template": _pod(workload, picture.broker_sets[workload.name], broker, pod.node if pod is not None else "",
                             picture.cluster_id, {**placed, **labels}, given)},
    }


def _pod(workload: Workload, brokers: BrokerSet, broker: Broker, node: str, cluster_id: str,
         labels: Mapping[str, str], given: Mapping[str, str]) -> dict[str, Any]:
    """The pod's template. What it has of its own node it gets on the broker's, where there is room."""
    source = deepcopy(dict(template.without_ours(workload.template, brokers)))
    pod, metadata, kafka = source["spec"], source.get("metadata") or {}, container_of(source, brokers)
    there = [{"weight": 100, "preference": {"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": [node]}]}}] if node else []
    node_affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    known = {
        "metadata.name": broker.pod,
        "metadata.labels['statefulset.kubernetes.io/pod-name']": broker.pod,
        "metadata.labels['apps.kubernetes.io/pod-index']": broker.pod.rpartition("-")[2],
        **{f"metadata.labels['{key}']": value for key, value in (metadata.get("labels") or {}).items()}}
    others = [_with_requests(_as_the_broker(without_host_ports(each), known), REQUESTS_BEFORE)
              for each in pod.get("initContainers") or ()]
    container, script = _as_the_broker(kafka, known), layout_of(kafka, brokers).script
    container = _with_requests({key: value for key, value in container.items() if key not in NOT_TRIED}, REQUESTS)
    data = sorted({*log_dirs(broker.settings), metadata_dir(broker.settings)})
    volumes = _volumes(pod, workload.claim_templates)
    for key in OF_A_BROKER:
        pod.pop(key, None)
    return {"metadata": {"labels": dict(labels), "annotations": metadata.get("annotations") or {}}, "spec": pod | {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "hostname": broker.pod,
        **({"subdomain": workload.service} if workload.service else {}),
        "affinity": {"nodeAffinity": {**node_affinity, "preferredDuringSchedulingIgnoredDuringExecution": [
            *there, *(node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ())]}},
        "volumes": [*volumes, *mount.DIRECTORIES],
        "initContainers": [{**each, "terminationMessagePolicy": "FallbackToLogsOnError"} for each in (
            _laid_out(container, data, broker, cluster_id, given), _copied(container, script), *others)],
        "containers": [{**container, "volumeMounts": _mounts(script, container),
                        "terminationMessagePolicy": "FallbackToLogsOnError"}],
    }}


def _with_requests(container: Mapping[str, Any], requests: Mapping[str, str]) -> dict[str, Any]:
    return {**container, "resources": {**(container.get("resources") or {}), "requests": requests}}


def _as_the_broker(container: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    """A container whose variables say of its pod what they would in the broker's: the pod of a Job has another name."""
    def replaced(variable: Mapping[str, Any]) -> Mapping[str, Any]:
        path = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
        return {"name": variable["name"], "value": known[path]} if path in known else variable

    return {**container, **({"env": [replaced(each) for each in container["env"]]} if container.get("env") else {})}


def _volumes(pod: Mapping[str, Any], claims: Sequence[str]) -> list[Mapping[str, Any]]:
    """Empty directories in place of all that a broker may write to."""
    mounted = [each for kind in ("initContainers", "containers") for container in pod.get(kind) or ()
               for each in container.get("volumeMounts") or ()]

    def is_read(volume: Mapping[str, Any]) -> bool:
        used = [each for each in mounted if each["name"] == volume["name"]]
        return any(kind in volume for kind in READ_ONLY) or (bool(used) and all(each.get("readOnly") for each in used))

    own = [each if is_read(each) else {"name": each["name"], "emptyDir": {}}
           for each in pod.get("volumes") or () if each["name"] not in claims]
    return [*own, *({"name": claim, "emptyDir": {}} for claim in claims)]


def _laid_out(container: Mapping[str, Any], data: Sequence[str], broker: Broker, cluster_id: str,
              given: Mapping[str, str]) -> dict[str, Any]:
    """The init container that lays out the door, and on the volumes the directories of a broker that has migrated."""
    below = {each: template.mount_below(container, each) for each in data}
    mounted = {found["mountPath"]: found for found in below.values() if found is not None}
    meta = f"version=0\nbroker.id={broker.node_id}\ncluster.id={cluster_id}\n"
    edits = f"{EDITS}marker {given[NONCE]}\n"
    found = mount.init_like(
        container, LAID_OUT,
        ["bash", "-c", TRIAL, LAID_OUT, DOOR, edits, meta, *(each for each, found in below.items() if found is not None)],
        [*mounted.values(), {"name": mount.RUN_VOLUME, "mountPath": mount.RUN}])
    return found | {"env": [*({"name": key, "value": value} for key, value in given.items()), *(found.get("env") or ())]}


def _copied(container: Mapping[str, Any], script: str) -> dict[str, Any]:
    """The init container that copies the start script."""
    found = mount.init_container(script, container)
    return found | {"env": [*(found.get("env") or ()), {"name": "SWITCHOVER_ADVICE", "value": ""}]}


def _mounts(script: str, container: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """As in a broker's pod that is led through the door, which lies in a directory here: no Secret of ours is needed."""
    return [*(each for each in mount.mounts(script, container) if each["name"] != mount.VOLUME), *(
        {"name": mount.RUN_VOLUME, "mountPath": path, "subPath": file, "readOnly": True}
        for path, file in ((mount.SCRIPT, "door.sh"), (mount.EDITS, "edits")))]
