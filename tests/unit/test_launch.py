"""How a job of the pipeline runs in Kubernetes."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from switchover.cli.main import app
from switchover.core.launch import CONFIG, Launcher, Run, manifest

CONFIG_TEXT = "cluster: demo\nstore: /data\n"
RUN = Run("nightly", "inventory", "pipeline:1", CONFIG_TEXT, "pipeline", secrets=("kafka-client",), labels={"team": "a"})


def pod_of(found: dict[str, Any]) -> dict[str, Any]:
    spec = found["spec"]
    return {"Job": lambda: spec["template"], "CronJob": lambda: spec["jobTemplate"]["spec"]["template"],
            "SparkApplication": lambda: spec["driverSpec"]["podTemplateSpec"] if "driverSpec" in spec
            else spec["driver"]["template"]}[found["kind"]]()


EVERY = [(Launcher.JOB, ""), (Launcher.JOB, "0 3 * * *"), (Launcher.SPARK_APPLICATION, ""),
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
    apache, kubeflow = manifest(RUN, Launcher.SPARK_APPLICATION), manifest(RUN, Launcher.KUBEFLOW_SPARK_APPLICATION)
    assert (apache["apiVersion"], apache["spec"]["driverArgs"]) == ("spark.apache.org/v1", ours)
    assert (kubeflow["apiVersion"], kubeflow["spec"]["arguments"]) == ("sparkoperator.k8s.io/v1beta2", ours)
    for found in (apache, kubeflow):
        assert found["spec"]["sparkConf"]["spark.kubernetes.driver.master"] == "local[2]"


def test_executors_as_pods_need_an_account_and_get_its_token() -> None:
    spec = pod_of(manifest(Run("a", "inventory", "p:1", CONFIG_TEXT, "c", service_account="spark")))["spec"]
    assert (spec["serviceAccountName"], "automountServiceAccountToken" in spec) == ("spark", False)


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
    (CONFIG_TEXT, ["--launcher", "SparkApplication", "--schedule", "0 3 * * *"], "only a Job can have a schedule"),
])
def test_what_cannot_run_is_refused_in_words(tmp_path: Path, text: str | None, more: list[str], words: str) -> None:
    file = tmp_path / "pipeline.yaml"
    if text is not None:
        file.write_text(text)
    answer = CliRunner().invoke(app, ["launch", "audit", "--config", str(file), "--image", "i", "--claim", "c", *more])
    assert (answer.exit_code, words in answer.output) == (2, True), answer.output
