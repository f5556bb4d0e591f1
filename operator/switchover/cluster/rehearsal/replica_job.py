"""The rehearsal of a migration in Kubernetes: a Job whose pod is the replica, made, told the tree, and made anew.

The pod has nothing of the user's but the brokers' image and what admits it: no volume, label, token or credential. The tree
comes to it in ConfigMaps that belong to the Job, masked. It goes by itself: the Job ends after DEADLINE_SECONDS, and an hour
after its end Kubernetes deletes it with all that belongs to it, whatever becomes of the operator.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

from switchover.answers.observed import Known, Observed
from switchover.api.job_message import NONCE
from switchover.api.kafka_migration import KafkaMigrationStep, RehearsalSpec, RehearsalStatus
from switchover.api.meta import API_VERSION
from switchover.cluster import names
from switchover.cluster.door.brokers import ContainerMissing, container_of, layout_of, upgraded
from switchover.cluster.door.mount import STARTS
from switchover.cluster.facts import Export
from switchover.cluster.modes import METADATA_LEVELS, RAISED, release_of
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal import report as reports
from switchover.cluster.rehearsal.report import TO_DUAL_WRITE, TREE_DIGEST, Report
from switchover.cluster.template import as_counted
from switchover.engine.effects import Create, Delete, Effect, Patch
from switchover.kubernetes import json_patch
from switchover.kubernetes.workloads import JobRun
from switchover.metadata.kafka_config import foreign, names_classes

# --- scripts --------------------------------------------------------------------------------------------------------------
# The script of the replica's containers, as they get it.

NO_SCRIPTS = 200
"""The exit code that run.sh tells where it has nothing to run Kafka's classes with."""
RUN = STARTS + resources.files(__package__).joinpath("run.sh").read_text()


REPLICA, TREE = "/rehearsal", "/tree"
CONDUCTOR = "rehearsal"
PROCESSES = ("zookeeper", "controller", "broker")
"""What runs in containers of the brokers' image; each runs what the conductor tells it to."""
TOLD = "switchover.dev/tree-told"
"""Annotation of the Job, empty until the ConfigMaps with the tree are there."""
MADE_OF = "SWITCHOVER_MADE_OF"
"""Variable of the conductor: a digest of all that the Job is made of but the tree."""
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
LARGE = 1_000_000
"""Characters of a tree as it is handed in, above which the containers request all that they may use
(docs/measurements.md#the-largest-cluster)."""


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
        manifest = _manifest(picture, tree.value)
        return () if manifest is None else (Create(manifest),)
    gone = (Delete("batch/v1", "Job", job.value.name, job.value.uid),)
    found = told(job.value) if job.value.message or job.value.ended else None
    if isinstance(found, Report) and not holds(found, tree.value.digest):
        return gone
    if not (isinstance(found, Report) and found.passed) and is_outdated(picture, job.value):
        return gone
    if found is not None or job.value.annotations.get(TOLD):
        return ()
    if job.value.given.get(TREE_DIGEST) != tree.value.digest:
        return gone                                    # the tree that it was made for is read no more
    return (*(Create(part) for part in config_maps(job.value, tree.value.parts)),
            Patch("batch/v1", "Job", job.value.name, (
                json_patch.same(job.value.uid),
                {"op": "add", "path": json_patch.annotation(TOLD), "value": tree.value.digest},
            ), "the tree is there"))


def is_outdated(picture: Picture, job: JobRun) -> bool:
    """Whether a Job would be made otherwise now: by another image or script, with other resources."""
    return made_of(picture) not in (None, job.given.get(MADE_OF))


def made_of(picture: Picture) -> str | None:
    """What the Job of now would have as MADE_OF; None while that cannot be told."""
    wanted = _manifest(picture, Export("", ()))
    return None if wanted is None else _digest(wanted)


def clear_away(picture: Picture) -> tuple[Effect, ...]:
    """No Job: another attempt begins with one of its own."""
    job = picture.facts.rehearsal
    found = job.value if isinstance(job, Known) else None
    return () if found is None else (Delete("batch/v1", "Job", found.name, found.uid),)


def told(job: JobRun) -> Report | str:
    """The report that a rehearsal left, or why there is none: what another pod says, or says of another tree, is none."""
    try:
        found = reports.read(job.message)
    except ValueError:
        return job.message.strip()[-400:] or job.detail or "it left no report"
    if found.nonce != job.nonce:
        return "another pod left a report in its name"
    return found if found.digest == job.given.get(TREE_DIGEST) else "its report is about another tree than it was given"


def measured(picture: Picture) -> RehearsalStatus | None:
    """For the record, what a rehearsal measured that found nothing in the way; None where none is seen."""
    job = picture.facts.rehearsal
    found = told(job.value) if isinstance(job, Known) and job.value is not None else ""
    if isinstance(found, str) or not found.passed or TO_DUAL_WRITE not in found.seconds:
        return None
    return RehearsalStatus(digest=found.digest, topics=found.topics, znodes=found.znodes,
                           seconds=math.ceil(found.seconds[TO_DUAL_WRITE]))


# --- its objects ------------------------------------------------------------------------------------------------------


def job_name(picture: Picture) -> str:
    return names.job(picture.name, "rehearsal", (picture.uid,))


def _manifest(picture: Picture, tree: Export) -> Mapping[str, Any] | None:
    own, state, of, classes = picture.spec.brokers[0], picture.facts.kubernetes, release(picture), classes_to_try(picture)
    workload = state.value.brokers.get(own.name) if isinstance(state, Known) else None
    if workload is None or not picture.operator_image or not isinstance(of, Known) or not isinstance(classes, Known):
        return None
    try:
        container = upgraded(container_of(workload.template, own), picture.new_image)
    except ContainerMissing:
        return None                                    # told by the gates of the template
    owner = {"apiVersion": API_VERSION, "kind": "KafkaMigration", "name": picture.name, "uid": picture.uid}
    found, without_tree = (job(
        job_name(picture), picture.spec.rehearsal, workload.template["spec"], container, layout_of(container, own).script,
        of.value, picture.operator_image, each, names.digest([picture.uid, picture.now]), classes.value)
        for each in (tree, Export("", ())))
    found["metadata"] |= {"labels": names.labels(picture.name), "ownerReferences": [owner]}
    found["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": MADE_OF, "value": _digest(without_tree)})
    return found


def _digest(job: Mapping[str, Any]) -> str:
    """Of a Job but for the tree and what else it is given: of these its report tells."""
    pod = job["spec"]["template"]["spec"]
    made_of = {**pod, "volumes": [each["name"] for each in pod["volumes"]], "containers": [
        {key: value for key, value in each.items() if key != "env"} for each in pod["containers"]]}
    return names.digest(made_of)


def release(picture: Picture) -> Observed[str]:
    """The protocol version with which the controllers will be formatted."""
    own = picture.brokers_of(picture.spec.brokers[0].name)
    if not isinstance(own, Known):
        return own
    known = release_of(own.value.release)
    return Known(known if known in METADATA_LEVELS else RAISED, own.at)


def job(name: str, wanted: RehearsalSpec, pod: Mapping[str, Any], kafka: Mapping[str, Any], script: str, release: str,
        image: str, tree: Export, nonce: str, classes: Mapping[str, str]) -> dict[str, Any]:
    """The Job. `pod` and `kafka` are the brokers' pod and its container that runs Kafka, `image` is the operator's,
    `classes` are the brokers' own. Its report repeats `nonce`, which no other Job has."""
    own = {"app.kubernetes.io/managed-by": names.MANAGER}
    large = sum(map(len, tree.parts)) > LARGE
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": own, "annotations": {TOLD: ""}},
        "spec": {
            "backoffLimit": 0, "activeDeadlineSeconds": DEADLINE_SECONDS, "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"metadata": {"labels": own}, "spec": {
                "restartPolicy": "Never", "automountServiceAccountToken": False, "enableServiceLinks": False,
                "terminationGracePeriodSeconds": 5,
                **{key: pod[key] for key in ("securityContext", "imagePullSecrets", "nodeSelector", "tolerations")
                   if key in pod},
                "containers": [_conductor(wanted, release, image, kafka, classes, large) | {"env": [
                    {"name": NONCE, "value": nonce}, {"name": TREE_DIGEST, "value": tree.digest}]},
                               *(_process(wanted, process, kafka, script, large) for process in PROCESSES)],
                "volumes": [
                    {"name": "replica", "emptyDir": {"medium": "Memory"}},
                    {"name": "tmp", "emptyDir": {}},
                    {"name": "tree", "projected": {"sources": [
                        {"configMap": {"name": part, "items": [{"key": "part", "path": f"{index:04}"}]}}
                        for index, part in enumerate(_part_names(name, nonce, tree.parts))]}},
                ],
            }},
        },
    }


def config_maps(job: JobRun, parts: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    """The tree; they belong to the Job, and go with it."""
    own = {"labels": {"app.kubernetes.io/managed-by": names.MANAGER},
           "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": job.name, "uid": job.uid}]}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **own}, "data": {"part": part}}
            for name, part in zip(_part_names(job.name, job.nonce, parts), parts, strict=True)]


def _part_names(job: str, nonce: str, parts: Sequence[str]) -> Sequence[str]:
    """Those of a Job of before may still be there, and nobody can make one before its Job is there."""
    return [f"{job}-{nonce}-{index}" for index in range(len(parts))]


_MOUNTS = ({"name": "replica", "mountPath": REPLICA}, {"name": "tmp", "mountPath": "/tmp"})


def _conductor(wanted: RehearsalSpec, release: str, image: str, kafka: Mapping[str, Any],
               classes: Mapping[str, str], large: bool) -> dict[str, Any]:
    return {
        "name": CONDUCTOR, "image": image,
        "command": ["python3", "-m", "switchover.cli.rehearse_replica", TREE, REPLICA, release,
                    *(f"{key}={value}" for key, value in classes.items())],
        "imagePullPolicy": kafka.get("imagePullPolicy", "IfNotPresent"),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "allowPrivilegeEscalation": False,
                            "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
        "resources": _resources(wanted, CONDUCTOR, kafka, large),
        "volumeMounts": [*_MOUNTS, {"name": "tree", "mountPath": TREE, "readOnly": True}],
    }


def _process(wanted: RehearsalSpec, name: str, kafka: Mapping[str, Any], script: str, large: bool) -> dict[str, Any]:
    return {
        "name": name, "image": kafka["image"], "command": ["bash", "-c", RUN, "run", name, REPLICA, script],
        "env": [{"name": "MEMORY_LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}],
        **{key: kafka[key] for key in ("imagePullPolicy", "securityContext") if key in kafka},
        "resources": _resources(wanted, name, kafka, large),
        "volumeMounts": list(_MOUNTS),
    }


def _resources(wanted: RehearsalSpec, name: str, kafka: Mapping[str, Any], large: bool) -> Mapping[str, Any]:
    given = {kind: value for kind, value in wanted.resources.manifest().items() if value}
    found = as_counted(RESOURCES[name], kafka)
    if large and not given:
        found["requests"]["memory"] = found["limits"]["memory"]
    return {**found, **given}
