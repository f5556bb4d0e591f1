"""`switchover launch` before a real API server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from patience import stretched
from switchover.cli.main import app

Kubectl = Callable[..., object]


@pytest.fixture
def launch(kubeconfig: Path, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Its exit code and what it prints, with more options."""
    config = tmp_path / "pipeline.yaml"
    config.write_text("cluster: demo\nstore: /data\n")

    def run(*more: str) -> tuple[int, str]:
        answer = CliRunner().invoke(
            app, ["launch", "inventory", "--config", str(config), "--image", "pipeline:1", "--claim", "pipeline", *more],
            env={"KUBECONFIG": str(kubeconfig)})
        return answer.exit_code, answer.output

    return run


@contextmanager
def spark_operator(kubectl: Kubectl, group: str, version: str) -> Iterator[None]:
    """The kind alone, as the operator of this group installs it."""
    name = f"sparkapplications.{group}"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
        "name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}}, "spec": {
        "group": group, "scope": "Namespaced", "names": {"kind": "SparkApplication", "plural": "sparkapplications"},
        "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}
    kubectl("apply", "--filename", "-", stdin=yaml.safe_dump(crd))
    try:
        kubectl("wait", "--for=condition=Established", f"--timeout={stretched(30):.0f}s", f"crd/{name}")
        yield
    finally:
        kubectl("delete", "crd", name)


def test_the_spark_operator_of_the_cluster_is_found(
        kubectl: Kubectl, namespace: str, launch: Callable[..., tuple[int, str]]) -> None:
    code, words = launch("--launcher", "SparkApplication")
    assert (code, "install one of these operators, or take --launcher Job" in words) == (2, True), words
    with spark_operator(kubectl, "sparkoperator.k8s.io", "v1beta2"):
        code, manifest = launch("--launcher", "SparkApplication")
        assert (code, yaml.safe_load(manifest)["apiVersion"]) == (0, "sparkoperator.k8s.io/v1beta2")
        kubectl("apply", "--dry-run=server", "--namespace", namespace, "--filename", "-", stdin=manifest)
        with spark_operator(kubectl, "spark.apache.org", "v1"):
            code, manifest = launch("--launcher", "SparkApplication")
            assert (code, yaml.safe_load(manifest)["apiVersion"]) == (0, "spark.apache.org/v1")
            kubectl("apply", "--dry-run=server", "--namespace", namespace, "--filename", "-", stdin=manifest)


@pytest.mark.parametrize("more", [
    (), ("--schedule", "0 3 * * *"), ("--secret", "kafka-client"),
    ("--launcher", "SparkOnKubernetes", "--service-account", "spark", "--executors", "4"),
])
def test_what_is_launched_is_taken_and_fits_the_restricted_standard(
        kubectl: Kubectl, namespace: str, launch: Callable[..., tuple[int, str]], more: tuple[str, ...]) -> None:
    code, manifest = launch(*more)
    assert code == 0
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/warn=restricted", "--overwrite")
    answer = kubectl("apply", "--dry-run=server", "--namespace", namespace, "--filename", "-", stdin=manifest)
    assert "created (server dry run)" in answer.stdout
    assert "PodSecurity" not in answer.stderr
    job = yaml.safe_load(manifest)["spec"]
    pod = (job["jobTemplate"]["spec"] if "jobTemplate" in job else job)["template"]
    executor = pod["metadata"]["annotations"].get("switchover.dev/executor")
    if executor is not None:
        template = {"apiVersion": "v1", "kind": "Pod", **yaml.safe_load(executor)}
        template["metadata"]["name"] = "executor"
        answer = kubectl("apply", "--dry-run=server", "--namespace", namespace, "--filename", "-",
                         stdin=yaml.safe_dump(template))
        assert "PodSecurity" not in answer.stderr
