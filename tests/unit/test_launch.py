"""How a job of the pipeline runs in Kubernetes."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from switchover.cli.main import app
from switchover.kubernetes.launch import CONFIG, EXECUTOR, Launcher, Run, detected, manifest

CONFIG_TEXT = "cluster: demo\nstore: /data\n"
RUN = Run("nightly", "inventory", "pipeline:1", CONFIG_TEXT, "pipeline", secrets=("kafka-client",), labels={"team": "a"})


def pod_of(found: dict[str, Any]) -> dict[str, Any]:
    spec = found["spec"]
    return {"Job": lambda: spec["template"], "CronJob": lambda: spec["jobTemplate"]["spec"]["template"],
            "SparkApplication": lambda: spec["driverSpec"]["podTemplateSpec"] if "driverSpec" in spec
            else spec["driver"]["template"]}[found["kind"]]()


EVERY = [(Launcher.JOB, ""), (Launcher.JOB, "0 3 * * *"), (Launcher.APACHE_SPARK_APPLICATION, ""),
         (Launcher.KUBEFLOW_SPARK_APPLICATION, "")]


@pytest.mark.parametrize(("launcher", "schedule"), EVERY)
def test_every_launcher_gives_the_same_pod(launcher: Launcher, schedule: str) -> None:
    """Restricted, with its configuration and the store, and no right in the cluster."""
    pod = pod_of(manifest(RUN, launcher, schedule))
    assert pod["metadata"]["annotations"] == {CONFIG: CONFIG_TEXT}
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
                                            "capabilities": {"drop": ["ALL"]}}
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes[mounts["/data"]]["persistentVolumeClaim"] == {"claimName": "pipeline"}
    assert volumes[mounts["/etc/switchover-secrets/kafka-client"]]["secret"] == {"secretName": "kafka-client"}
    assert "emptyDir" in volumes[mounts["/tmp"]]
    (item,) = volumes[mounts["/etc/switchover"]]["downwardAPI"]["items"]
    assert item == {"path": "pipeline.yaml", "fieldRef": {"fieldPath": f"metadata.annotations['{CONFIG}']"}}


def test_the_default_is_a_job_that_ends_and_is_taken_away_later() -> None:
    found = manifest(RUN)
    assert (found["apiVersion"], found["kind"], found["metadata"]["name"]) == ("batch/v1", "Job", "nightly")
    assert found["metadata"]["labels"] == {"team": "a", "switchover.dev/job": "inventory"}
    assert found["spec"]["template"]["spec"]["containers"][0]["args"] == [
        "inventory", "--config", "/etc/switchover/pipeline.yaml"]
    assert found["spec"]["activeDeadlineSeconds"] == 3600
    assert found["spec"]["ttlSecondsAfterFinished"] > 0


def test_spark_applications_are_of_the_group_that_was_asked_for() -> None:
    ours = ["inventory", "--config", "/etc/switchover/pipeline.yaml"]
    apache, kubeflow = manifest(RUN, Launcher.APACHE_SPARK_APPLICATION), manifest(RUN, Launcher.KUBEFLOW_SPARK_APPLICATION)
    assert (apache["apiVersion"], apache["spec"]["driverArgs"]) == ("spark.apache.org/v1", ours)
    assert (kubeflow["apiVersion"], kubeflow["spec"]["arguments"]) == ("sparkoperator.k8s.io/v1beta2", ours)
    for found in (apache, kubeflow):
        assert found["spec"]["sparkConf"]["spark.kubernetes.driver.master"] == "local[2]"


def test_the_operator_that_a_cluster_has_is_detected() -> None:
    assert detected({"apps", "sparkoperator.k8s.io"}) is Launcher.KUBEFLOW_SPARK_APPLICATION
    assert detected({"sparkoperator.k8s.io", "spark.apache.org"}) is Launcher.APACHE_SPARK_APPLICATION
    with pytest.raises(ValueError, match=r"no SparkApplication .*install one of these operators, or take --launcher Job"):
        detected({"apps"})


@pytest.mark.parametrize("schedule", ["", "0 3 * * *"])
def test_executors_are_made_by_a_driver_that_may_and_are_like_it(schedule: str) -> None:
    run = replace(RUN, service_account="spark", executors=3)
    driver = pod_of(manifest(run, Launcher.SPARK_ON_KUBERNETES, schedule))
    spec, container = driver["spec"], driver["spec"]["containers"][0]
    assert (spec["serviceAccountName"], "automountServiceAccountToken" in spec) == ("spark", False)
    assert "spark.executor.instances=3" in container["args"]
    assert container["args"][-4:] == ["local:///opt/pipeline.py", "inventory", "--config", "/etc/switchover/pipeline.yaml"]
    known = {variable["name"] for variable in container["env"]}
    assert set(re.findall(r"\$\((\w+)\)", " ".join(container["args"]))) <= known
    files = {item["path"]: item["fieldRef"]["fieldPath"] for item in spec["volumes"][0]["downwardAPI"]["items"]}
    assert files["executor.yaml"] == f"metadata.annotations['{EXECUTOR}']"

    executor = json.loads(driver["metadata"]["annotations"][EXECUTOR])
    alone = pod_of(manifest(RUN))
    assert executor["spec"]["automountServiceAccountToken"] is False
    for same in ("securityContext", "volumes"):
        assert executor["spec"][same] == alone["spec"][same]
    for same in ("securityContext", "volumeMounts"):
        assert executor["spec"]["containers"][0][same] == alone["spec"]["containers"][0][same]


def test_executors_that_nobody_may_make_are_refused() -> None:
    with pytest.raises(ValueError, match="needs --service-account: one that may create pods"):
        manifest(RUN, Launcher.SPARK_ON_KUBERNETES)


def test_the_command_prints_what_kubectl_takes(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(CONFIG_TEXT)
    options = ["--config", str(file), "--image", "pipeline:1", "--claim", "pipeline"]
    answer = CliRunner().invoke(app, ["launch", "capture", *options, "--schedule", "0 3 * * *"])
    assert answer.exit_code == 0, answer.output
    found = yaml.safe_load(answer.output)
    assert (found["kind"], found["metadata"]["name"]) == ("CronJob", "pipeline-capture")
    assert found["spec"]["schedule"] == "0 3 * * *"
    assert pod_of(found)["metadata"]["annotations"] == {CONFIG: CONFIG_TEXT}


@pytest.mark.parametrize(("text", "more", "words"), [
    ("cluster: demo\nstore: /elsewhere\n", [], "store must be /data"),
    ("- a", [], "store must be /data"),
    ("{", [], "is not YAML"),
    (None, [], "No such file"),
    (CONFIG_TEXT, ["--launcher", "ApacheSparkApplication", "--schedule", "0 3 * * *"], "only a Job can have a schedule"),
    (CONFIG_TEXT, ["--launcher", "SparkOnKubernetes"], "needs --service-account"),
])
def test_what_cannot_run_is_refused_in_words(tmp_path: Path, text: str | None, more: list[str], words: str) -> None:
    file = tmp_path / "pipeline.yaml"
    if text is not None:
        file.write_text(text)
    answer = CliRunner().invoke(app, ["launch", "audit", "--config", str(file), "--image", "i", "--claim", "c", *more])
    assert (answer.exit_code, words in answer.output) == (2, True), answer.output
