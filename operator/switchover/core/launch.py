"""How a job of the pipeline runs in Kubernetes: manifests, and nothing of what the jobs do.

One pod with `local[N]` is the default (SPARK-42190 is Spark's own word for it). The configuration travels as an annotation
of the pod and is read as a file (downward API), so that a job is one object: nothing is left behind, and nobody needs a
right on ConfigMaps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

CONFIG = "switchover.dev/pipeline"
"""Annotation with the configuration (YAML)."""
JOB_LABEL = "switchover.dev/job"
DIRECTORY, FILE = "/etc/switchover", "pipeline.yaml"
STORE = "/data"
USER = 10001
MESSAGE = "/dev/termination-log"
FINISHED_SECONDS = 86_400
"""How long a finished Job is kept for a person to look at."""


class Launcher(StrEnum):
    """What runs the job."""

    JOB = "Job"
    SPARK_APPLICATION = "SparkApplication"
    KUBEFLOW_SPARK_APPLICATION = "KubeflowSparkApplication"


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `config` is the text of the jobs' configuration, whose store is at STORE, in volume claim `claim`.

    `secrets` are mounted below /etc/switchover-secrets, each under its name. `cpu` and `memory` are Kubernetes quantities.
    """

    name: str
    job: str
    image: str
    config: str
    claim: str
    cpu: str = "1"
    memory: str = "2Gi"
    deadline_seconds: int = 3_600
    secrets: tuple[str, ...] = ()
    service_account: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: Mapping[str, Any] | None = None


def secret_path(secret: str) -> str:
    """Where a Secret of client properties is mounted: a file for each."""
    return f"/etc/switchover-secrets/{secret}"


def manifest(run: Run, launcher: Launcher = Launcher.JOB, schedule: str = "") -> dict[str, Any]:
    """The one object to apply. With a `schedule` (cron) a CronJob; raises ValueError with another launcher than Job."""
    if schedule and launcher is not Launcher.JOB:
        raise ValueError("only a Job can have a schedule here: a SparkApplication is scheduled by its operator's own kind")
    match launcher:
        case Launcher.JOB if schedule:
            return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": _metadata(run), "spec": {
                "schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": _job(run)}}}
        case Launcher.JOB:
            return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(run), "spec": _job(run)}
        case Launcher.SPARK_APPLICATION:
            return _spark_application(run)
        case _:
            return _kubeflow(run)


def _metadata(run: Run) -> dict[str, Any]:
    owners = {"ownerReferences": [dict(run.owner)]} if run.owner is not None else {}
    return {"name": run.name, "labels": _labels(run), **owners}


def _labels(run: Run) -> dict[str, str]:
    return {**run.labels, JOB_LABEL: run.job}


def _job(run: Run) -> dict[str, Any]:
    return {
        "backoffLimit": 1, "activeDeadlineSeconds": run.deadline_seconds, "ttlSecondsAfterFinished": FINISHED_SECONDS,
        "template": _pod(run, {"args": [run.job, "--config", f"{DIRECTORY}/{FILE}"]}),
    }


def _pod(run: Run, more: Mapping[str, Any]) -> dict[str, Any]:
    account = {"serviceAccountName": run.service_account} if run.service_account else {"automountServiceAccountToken": False}
    return {
        "metadata": {"labels": _labels(run), "annotations": {CONFIG: run.config}},
        "spec": {
            "restartPolicy": "Never", "enableServiceLinks": False, **account,
            "securityContext": {"runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                                "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {"name": "pipeline", "image": run.image, "imagePullPolicy": "IfNotPresent", **_container(run), **more}],
            "volumes": _volumes(run),
        },
    }


def _container(run: Run) -> dict[str, Any]:
    secrets = [{"name": f"secret-{index}", "mountPath": secret_path(secret), "readOnly": True}
               for index, secret in enumerate(run.secrets)]
    return {
        "env": [{"name": "SWITCHOVER_TERMINATION_MESSAGE", "value": MESSAGE}],
        "terminationMessagePath": MESSAGE, "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": run.cpu, "memory": run.memory}, "limits": {"memory": run.memory}},
        "volumeMounts": [{"name": "config", "mountPath": DIRECTORY}, {"name": "store", "mountPath": STORE},
                         {"name": "tmp", "mountPath": "/tmp"}, *secrets],
    }


def _volumes(run: Run) -> list[dict[str, Any]]:
    config = [{"path": FILE, "fieldRef": {"fieldPath": f"metadata.annotations['{CONFIG}']"}}]
    return [
        {"name": "config", "downwardAPI": {"items": config}},
        {"name": "store", "persistentVolumeClaim": {"claimName": run.claim}},
        {"name": "tmp", "emptyDir": {}},
        *({"name": f"secret-{index}", "secret": {"secretName": secret}} for index, secret in enumerate(run.secrets)),
    ]


MAIN = "local:///opt/pipeline.py"
"""What a SparkApplication starts: the image's few lines that call our entry point."""


def _spark_application(run: Run) -> dict[str, Any]:
    """`spark.apache.org/v1`: a driver alone, `local[N]` (its example pi-with-one-pod), from our pod."""
    return {
        "apiVersion": "spark.apache.org/v1", "kind": "SparkApplication", "metadata": _metadata(run),
        "spec": {
            "pyFiles": MAIN, "driverArgs": [run.job, "--config", f"{DIRECTORY}/{FILE}"],
            "sparkConf": {
                "spark.kubernetes.driver.master": "local[2]", "spark.kubernetes.container.image": run.image,
                "spark.kubernetes.driver.request.cores": run.cpu, "spark.driver.memory": "1g",
                **({"spark.kubernetes.authenticate.driver.serviceAccountName": run.service_account}
                   if run.service_account else {}),
            },
            "applicationTolerations": {"resourceRetainPolicy": "Never"},
            "driverSpec": {"podTemplateSpec": _pod(run, {"name": "spark-kubernetes-driver"})},
            "runtimeVersions": {"sparkVersion": "4.2.0"},
        },
    }


def _kubeflow(run: Run) -> dict[str, Any]:
    """`sparkoperator.k8s.io/v1beta2`: the same driver by kubeflow's operator."""
    template = _pod(run, {"name": "spark-kubernetes-driver"})
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": _metadata(run),
        "spec": {
            "type": "Python", "pythonVersion": "3", "mode": "cluster", "sparkVersion": "4.2.0", "image": run.image,
            "imagePullPolicy": "IfNotPresent", "mainApplicationFile": MAIN,
            "arguments": [run.job, "--config", f"{DIRECTORY}/{FILE}"],
            "sparkConf": {"spark.kubernetes.driver.master": "local[2]"},
            "restartPolicy": {"type": "Never"},
            "driver": {"cores": 1, "memory": "1g", "template": template,
                       **({"serviceAccount": run.service_account} if run.service_account else {})},
            "executor": {"instances": 0},
        },
    }
