"""The rehearsal of a migration in Kubernetes: a Job whose pod is the replica, made, told the tree, and made anew.

The pod has nothing of the user's but the brokers' image and what admits it: no volume, label, token or credential. The tree
comes to it in ConfigMaps that belong to the Job, masked. It goes by itself: the Job ends after DEADLINE_SECONDS, and an hour
after its end Kubernetes deletes it with all that belongs to it, whatever becomes of the operator.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from switchover.api.kafka_migration import KafkaMigrationStep, RehearsalSpec, RehearsalStatus
from switchover.api.meta import API_VERSION
from switchover.cluster import names
from switchover.cluster.compute import as_counted
from switchover.cluster.door.brokers import upgraded
from switchover.cluster.door.layout import ContainerMissing, container_of, layout_of
from switchover.cluster.modes import METADATA_LEVELS, RAISED, release_of
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal import report as reports
from switchover.cluster.rehearsal.report import TO_DUAL_WRITE, Report
from switchover.cluster.rehearsal.scripts import RUN
from switchover.engine.effects import Create, Delete, Effect, Patch
from switchover.kubernetes import json_patch
from switchover.kubernetes.jobs import JobRun
from switchover.metadata.kafka_config import foreign, names_classes
from switchover.outside.observed import Known, Observed

REPLICA, TREE = "/rehearsal", "/tree"
CONDUCTOR = "rehearsal"
PROCESSES = ("zookeeper", "controller", "broker")
"""What runs in containers of the brokers' image; each runs what the conductor tells it to."""
TOLD = "switchover.dev/tree-told"
"""Annotation of the Job: the ConfigMaps with the tree are there."""
RELEASE = "switchover.dev/release"
"""Another: the release that the replica is formatted for."""
MADE_OF = "switchover.dev/made-of"
"""Another: a digest of all that the Job is made of but the tree."""
REPORTERS = ("kafka.metrics.reporters", "metric.reporters")
"""They would report of a cluster that is none."""
_CLASSES = re.compile(r"[\w.$, ]+")
DEADLINE_SECONDS, KEPT_SECONDS = 1800, 3600
USER = 10001
"""Of the operator's image."""
RESOURCES: Mapping[str, Mapping[str, Any]] = {
    "zookeeper": {"requests": {"cpu": "100m", "memory": "384Mi"}, "limits": {"memory": "768Mi"}},
    "controller": {"requests": {"cpu": "100m", "memory": "640Mi"}, "limits": {"memory": "1Gi"}},
    "broker": {"requests": {"cpu": "50m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
    CONDUCTOR: {"requests": {"cpu": "50m", "memory": "192Mi"}, "limits": {"memory": "1Gi"}},
}


# --- what is done -----------------------------------------------------------------------------------------------------


def rehearse(picture: Picture) -> tuple[Effect, ...]:
    """A Job with the tree. One that found something, or could not run, is made again once the tree or what it is made of is
    another: somebody has mended it."""
    return _kept(picture, lambda found, digest: found.passed or found.digest == digest)


def rehearse_again(picture: Picture) -> tuple[Effect, ...]:
    """The same right before the copy, where the tree has changed since."""
    return _kept(picture, lambda found, digest: stands(picture, found, digest))


def stands(picture: Picture, found: Report, digest: str) -> bool:
    """Whether a rehearsal is one of the tree of now, or was begun in this step: a tree that always changes has no other."""
    job = picture.facts.rehearsal
    begun_here = (isinstance(job, Known) and job.value is not None
                  and job.value.created + 1 >= picture.position.entered)       # the API server tells whole seconds
    return found.digest == digest or (found.passed and begun_here)


def classes_to_try(picture: Picture) -> Observed[Mapping[str, str]]:
    """The brokers' own classes, by setting; none right before the copy: they were tried in Rehearse."""
    if picture.position.step != KafkaMigrationStep.REHEARSE:
        return Known({}, picture.now)
    found: dict[str, str] = {}
    for settings in picture.facts.broker_settings.values():
        if not isinstance(settings, Known):
            return settings
        found |= own_classes(settings.value)
    return Known(found, picture.now)


def own_classes(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Of a broker's settings those that name classes which are not Kafka's."""
    return {key: value for key, value in sorted(settings.items())
            if names_classes(key) and key not in REPORTERS and foreign(value) and _CLASSES.fullmatch(value)}


def _kept(picture: Picture, holds: Callable[[Report, str], bool]) -> tuple[Effect, ...]:
    job, tree = picture.facts.rehearsal, picture.facts.exported
    if not picture.spec.rehearsal.enabled or not isinstance(job, Known) or not isinstance(tree, Known):
        return ()
    if job.value is None:
        manifest = _manifest(picture, len(tree.value.parts))
        return () if manifest is None else (Create(manifest),)
    gone = (Delete("batch/v1", "Job", job.value.name, job.value.uid),)
    found = told(job.value) if job.value.message or job.value.ended else None
    if isinstance(found, Report) and not holds(found, tree.value.digest):
        return gone
    if not (isinstance(found, Report) and found.passed) and is_outdated(picture, job.value):
        return gone
    if found is not None or TOLD in job.value.annotations:
        return ()
    return (*(Create(part) for part in config_maps(job.value.name, job.value.uid, tree.value.parts)),
            Patch("batch/v1", "Job", job.value.name, (
                json_patch.same(job.value.uid),
                {"op": "add", "path": json_patch.annotation(TOLD), "value": tree.value.digest},
            ), "the tree is there"))


def is_outdated(picture: Picture, job: JobRun) -> bool:
    """Whether a Job would be made otherwise now: by another image or script, with other resources."""
    return made_of(picture) not in (None, job.annotations.get(MADE_OF))


def made_of(picture: Picture) -> str | None:
    """What the Job of now would have as MADE_OF; None while that cannot be told."""
    wanted = _manifest(picture, 0)
    found: str | None = wanted["metadata"]["annotations"][MADE_OF] if wanted is not None else None
    return found


def clear_away(picture: Picture) -> tuple[Effect, ...]:
    """No Job: another attempt begins with one of its own."""
    job = picture.facts.rehearsal
    found = job.value if isinstance(job, Known) else None
    return () if found is None else (Delete("batch/v1", "Job", found.name, found.uid),)


def told(job: JobRun) -> Report | str:
    """The report that a rehearsal left, or why there is none."""
    try:
        return reports.read(job.message)
    except ValueError:
        return job.message.strip()[-400:] or job.words or "it left no report"


def measured(picture: Picture) -> RehearsalStatus | None:
    """For the record, what a rehearsal measured that found nothing in the way; None where none is seen."""
    job = picture.facts.rehearsal
    found = told(job.value) if isinstance(job, Known) and job.value is not None else ""
    if isinstance(found, str) or not found.passed or TO_DUAL_WRITE not in found.seconds:
        return None
    return RehearsalStatus(digest=found.digest, topics=found.topics, znodes=found.znodes,
                           seconds=math.ceil(found.seconds[TO_DUAL_WRITE]))


# --- its objects ------------------------------------------------------------------------------------------------------


def job_name(migration: str) -> str:
    """At most 63 characters, which a label of its pods may have."""
    return f"{migration[:52].rstrip('.-')}-rehearsal"


def _manifest(picture: Picture, parts: int) -> Mapping[str, Any] | None:
    own, state, of, classes = picture.spec.brokers[0], picture.facts.kubernetes, release(picture), classes_to_try(picture)
    workload = state.value.brokers.get(own.name) if isinstance(state, Known) else None
    if workload is None or not picture.operator_image or not isinstance(of, Known) or not isinstance(classes, Known):
        return None
    try:
        container = upgraded(container_of(workload.template, own), picture.new_image)
    except ContainerMissing:
        return None                                    # told by the gates of the template
    owner = {"apiVersion": API_VERSION, "kind": "KafkaMigration", "name": picture.name, "uid": picture.uid}
    found = job(job_name(picture.name), picture.spec.rehearsal, workload.template["spec"], container,
                layout_of(container, own).script, of.value, picture.operator_image, parts, classes.value)
    labels, metadata = names.labels(picture.name), found["metadata"]
    return {**found, "metadata": {**metadata, "labels": labels, "ownerReferences": [owner],
                                  "annotations": {**metadata["annotations"], MADE_OF: _digest(found)}}}


def _digest(job: Mapping[str, Any]) -> str:
    """Of a Job but for the parts of the tree, of which the report tells a digest."""
    pod = job["spec"]["template"]["spec"]
    return names.digest([job["metadata"]["annotations"], {**pod, "volumes": [each["name"] for each in pod["volumes"]]}])


def release(picture: Picture) -> Observed[str]:
    """The protocol version with which the controllers will be formatted."""
    own = picture.brokers_of(picture.spec.brokers[0].name)
    if not isinstance(own, Known):
        return own
    known = release_of(own.value.release)
    return Known(known if known in METADATA_LEVELS else RAISED, own.at)


def job(name: str, wanted: RehearsalSpec, pod: Mapping[str, Any], kafka: Mapping[str, Any], script: str, release: str,
        image: str, parts: int, classes: Mapping[str, str]) -> dict[str, Any]:
    """The Job. `pod` and `kafka` are the brokers' pod and its container that runs Kafka, `image` is the operator's,
    `classes` are the brokers' own."""
    own = {"app.kubernetes.io/managed-by": names.MANAGER}
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": own, "annotations": {RELEASE: release}},
        "spec": {
            "backoffLimit": 0, "activeDeadlineSeconds": DEADLINE_SECONDS, "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"metadata": {"labels": own}, "spec": {
                "restartPolicy": "Never", "automountServiceAccountToken": False, "enableServiceLinks": False,
                "terminationGracePeriodSeconds": 5,
                **{key: pod[key] for key in ("securityContext", "imagePullSecrets", "nodeSelector", "tolerations")
                   if key in pod},
                "containers": [_conductor(wanted, release, image, kafka, classes),
                               *(_process(wanted, process, kafka, script) for process in PROCESSES)],
                "volumes": [
                    {"name": "replica", "emptyDir": {"medium": "Memory"}},
                    {"name": "tmp", "emptyDir": {}},
                    {"name": "tree", "projected": {"sources": [
                        {"configMap": {"name": _part_name(name, index), "items": [{"key": "part", "path": f"{index:04}"}]}}
                        for index in range(parts)]}},
                ],
            }},
        },
    }


def config_maps(name: str, uid: str, parts: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    """The tree; they belong to the Job, and go with it."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
    return [{"apiVersion": "v1", "kind": "ConfigMap",
             "metadata": {"name": _part_name(name, index), "labels": {"app.kubernetes.io/managed-by": names.MANAGER},
                          "ownerReferences": [owner]},
             "data": {"part": part}} for index, part in enumerate(parts)]


def _part_name(name: str, index: int) -> str:
    return f"{name}-{index}"


_MOUNTS = ({"name": "replica", "mountPath": REPLICA}, {"name": "tmp", "mountPath": "/tmp"})


def _conductor(wanted: RehearsalSpec, release: str, image: str, kafka: Mapping[str, Any],
               classes: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": CONDUCTOR, "image": image,
        "command": ["python3", "-m", "switchover.cli.rehearse_replica", TREE, REPLICA, release,
                    *(f"{key}={value}" for key, value in classes.items())],
        "imagePullPolicy": kafka.get("imagePullPolicy", "IfNotPresent"),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "allowPrivilegeEscalation": False,
                            "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
        "resources": _resources(wanted, CONDUCTOR, kafka),
        "volumeMounts": [*_MOUNTS, {"name": "tree", "mountPath": TREE, "readOnly": True}],
    }


def _process(wanted: RehearsalSpec, name: str, kafka: Mapping[str, Any], script: str) -> dict[str, Any]:
    return {
        "name": name, "image": kafka["image"], "command": ["bash", "-c", RUN, "run", name, REPLICA, script],
        "env": [{"name": "MEMORY_LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}],
        **{key: kafka[key] for key in ("imagePullPolicy", "securityContext") if key in kafka},
        "resources": _resources(wanted, name, kafka),
        "volumeMounts": list(_MOUNTS),
    }


def _resources(wanted: RehearsalSpec, name: str, kafka: Mapping[str, Any]) -> Mapping[str, Any]:
    given = {kind: value for kind, value in wanted.resources.manifest().items() if value}
    return {**as_counted(RESOURCES[name], kafka), **given}
