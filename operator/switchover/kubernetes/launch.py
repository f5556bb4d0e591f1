"""How a job of the pipeline runs in Kubernetes: manifests, and nothing of what the jobs do.

One pod with `local[N]` is the default (SPARK-42190); what outgrows it has executors as pods. The
configuration travels as an annotation of the pod and is read as a file (downward API), so that a job is one object: nothing
is left behind, and nobody needs a right on ConfigMaps.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from switchover.api.job_message import NONCE

CONFIG = "switchover.dev/pipeline"
"""Annotation with the configuration (YAML)."""
EXECUTOR = "switchover.dev/executor"
"""Annotation with the pod template of Spark's executors (JSON), which is as good as YAML."""
JOB_LABEL = "switchover.dev/job"
DIRECTORY, FILE, EXECUTOR_FILE = "/etc/switchover", "pipeline.yaml", "executor.yaml"
STORE = "/data"
USER = 10001
MESSAGE = "/dev/termination-log"
SCRATCH = "spark-local-dir-1"
"""Volumes of such names are what Spark on Kubernetes takes for its scratch, and mounts nothing else there."""
FINISHED_SECONDS = 86_400
"""How long a finished Job stays for a person to look at."""


class Launcher(StrEnum):
    """What runs the job. SPARK_APPLICATION is of whichever operator a cluster has: see `detected`."""

    JOB = "Job"
    SPARK_ON_KUBERNETES = "SparkOnKubernetes"
    SPARK_APPLICATION = "SparkApplication"
    APACHE_SPARK_APPLICATION = "ApacheSparkApplication"
    KUBEFLOW_SPARK_APPLICATION = "KubeflowSparkApplication"


SPARK_OPERATORS = {"spark.apache.org": Launcher.APACHE_SPARK_APPLICATION,
                   "sparkoperator.k8s.io": Launcher.KUBEFLOW_SPARK_APPLICATION}
"""By API group, the preferred one first: both have a kind SparkApplication, with other fields."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `config` is the text of the jobs' configuration, whose store is at STORE, in volume claim `claim`.

    `secrets` are mounted below /etc/switchover-secrets, each under its name. `cpu` and `memory` are Kubernetes quantities.
    `executors` counts with SPARK_ON_KUBERNETES alone. The outcome repeats `nonce`, where there is one.
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
    executors: int = 2
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: Mapping[str, Any] | None = None
    nonce: str = ""


def secret_path(secret: str) -> str:
    """Where a Secret of client properties is mounted: a file for each."""
    return f"/etc/switchover-secrets/{secret}"


def detected(groups: Collection[str]) -> Launcher:
    """The operator whose SparkApplication a cluster with these API groups takes. Raises ValueError where it has none."""
    for group, launcher in SPARK_OPERATORS.items():
        if group in groups:
            return launcher
    raise ValueError(f"the cluster has no SparkApplication (neither of {' nor of '.join(SPARK_OPERATORS)}): "
                     f"install one of these operators, or take --launcher {Launcher.JOB}")


def manifest(run: Run, launcher: Launcher = Launcher.JOB, schedule: str = "") -> dict[str, Any]:
    """The one object to apply; with a `schedule` (cron) a CronJob.

    Raises ValueError for a schedule of a SparkApplication, for executors that nobody may create, and for SPARK_APPLICATION,
    which `detected` must have resolved.
    """
    match launcher:
        case Launcher.JOB:
            job = _job(run, _pod(run, {"args": _arguments(run)}))
        case Launcher.SPARK_ON_KUBERNETES:
            job = _job(run, _driver(run))
        case _ if schedule:
            raise ValueError("only a Job can have a schedule: a SparkApplication is scheduled by its operator's own kind")
        case Launcher.APACHE_SPARK_APPLICATION:
            return _spark_application(run)
        case Launcher.KUBEFLOW_SPARK_APPLICATION:
            return _kubeflow(run)
        case Launcher.SPARK_APPLICATION:
            raise ValueError("which operator's SparkApplication was not detected")
    if not schedule:
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(run), "spec": job}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": _metadata(run), "spec": {
        "schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job}}}


def _arguments(run: Run) -> list[str]:
    return [run.job, "--config", f"{DIRECTORY}/{FILE}"]


def _metadata(run: Run) -> dict[str, Any]:
    owners = {"ownerReferences": [dict(run.owner)]} if run.owner is not None else {}
    return {"name": run.name, "labels": _labels(run), **owners}


def _labels(run: Run) -> dict[str, str]:
    return {**run.labels, JOB_LABEL: run.job}


def _job(run: Run, template: Mapping[str, Any]) -> dict[str, Any]:
    return {"backoffLimit": 1, "activeDeadlineSeconds": run.deadline_seconds, "ttlSecondsAfterFinished": FINISHED_SECONDS,
            "template": template}


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
        "env": [{"name": "SWITCHOVER_TERMINATION_MESSAGE", "value": MESSAGE},
                *([{"name": NONCE, "value": run.nonce}] if run.nonce else [])],
        "terminationMessagePath": MESSAGE, "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": run.cpu, "memory": run.memory}, "limits": {"memory": run.memory}},
        "volumeMounts": [{"name": "config", "mountPath": DIRECTORY}, {"name": "store", "mountPath": STORE},
                         {"name": SCRATCH, "mountPath": "/tmp"}, *secrets],
    }


def _volumes(run: Run) -> list[dict[str, Any]]:
    return [
        {"name": "config", "downwardAPI": {"items": [_annotation(CONFIG, FILE)]}},
        {"name": "store", "persistentVolumeClaim": {"claimName": run.claim}},
        {"name": SCRATCH, "emptyDir": {}},
        *({"name": f"secret-{index}", "secret": {"secretName": secret}} for index, secret in enumerate(run.secrets)),
    ]


def _annotation(key: str, path: str) -> dict[str, Any]:
    return {"path": path, "fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}}


MAIN = "local:///opt/pipeline.py"
"""What spark-submit starts: the image's few lines that call our entry point."""
HEAP = "1g"
"""Of a JVM that spark-submit or an operator starts; Python has the rest of the pod's memory."""


def _driver(run: Run) -> dict[str, Any]:
    """The pod of a driver (`k8s://`, client mode) that makes executors like itself, which go when it goes."""
    if not run.service_account:
        raise ValueError(f"{Launcher.SPARK_ON_KUBERNETES} needs --service-account: one that may create pods")
    executor = _pod(replace(run, service_account=""), {"name": "spark-kubernetes-executor"})
    conf = {
        "spark.driver.host": "$(SPARK_DRIVER_BIND_ADDRESS)",
        "spark.kubernetes.namespace": "$(POD_NAMESPACE)",
        "spark.kubernetes.driver.pod.name": "$(POD_NAME)",             # the executors' owner
        "spark.kubernetes.container.image": run.image,
        "spark.kubernetes.executor.podTemplateFile": f"{DIRECTORY}/{EXECUTOR_FILE}",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.executor.instances": str(run.executors), "spark.kubernetes.executor.request.cores": run.cpu,
        "spark.executor.memory": HEAP, "spark.executor.memoryOverhead": HEAP,
    }
    pod = _pod(run, {"args": [
        "driver", "--master", "k8s://https://kubernetes.default.svc", "--driver-memory", HEAP,
        *(part for key, value in conf.items() for part in ("--conf", f"{key}={value}")), MAIN, *_arguments(run)]})
    pod["metadata"]["annotations"][EXECUTOR] = json.dumps(executor)
    pod["spec"]["containers"][0]["env"] += [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}} for name, field in (
            ("SPARK_DRIVER_BIND_ADDRESS", "status.podIP"), ("POD_NAMESPACE", "metadata.namespace"),
            ("POD_NAME", "metadata.name"))]
    pod["spec"]["volumes"][0]["downwardAPI"]["items"].append(_annotation(EXECUTOR, EXECUTOR_FILE))
    return pod


def _spark_application(run: Run) -> dict[str, Any]:
    """`spark.apache.org/v1`: a driver alone, `local[N]` (its example pi-with-one-pod), from our pod."""
    return {
        "apiVersion": "spark.apache.org/v1", "kind": "SparkApplication", "metadata": _metadata(run),
        "spec": {
            "pyFiles": MAIN, "driverArgs": _arguments(run),
            "sparkConf": {
                "spark.kubernetes.driver.master": "local[2]", "spark.kubernetes.container.image": run.image,
                "spark.kubernetes.driver.request.cores": run.cpu, "spark.driver.memory": HEAP,
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
            "arguments": _arguments(run),
            "sparkConf": {"spark.kubernetes.driver.master": "local[2]"},
            "restartPolicy": {"type": "Never"},
            "driver": {"cores": 1, "memory": HEAP, "template": template,
                       **({"serviceAccount": run.service_account} if run.service_account else {})},
            "executor": {"instances": 1},              # the least that it takes; with a local master none is made
        },
    }
