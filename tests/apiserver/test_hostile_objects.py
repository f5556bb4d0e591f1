"""Objects that one tenant may create, and the operator of all: it goes on with the others, and says what it cannot read."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.examples import documented_of
from apiserver.processes import running
from patience import until

Kubectl = Callable[..., Any]
LEVELS = 9_900
"""The API server itself refuses 10,000."""
LOOSE = {"manager": "mallory", "operation": "Update", "fieldsType": "FieldsV1", "time": "2026-11-25T12:00:00Z"}


def nested(levels: int) -> dict[str, Any]:
    """Free-form fields as deep as that, written without recursion."""
    return {"raw": '{"f:a":' * levels + "{}" + "}" * levels}


def manifest(resource: dict[str, Any], levels: int) -> str:
    """JSON of a resource with managed fields of so many levels: no reader of ours is asked to write them."""
    resource["metadata"]["managedFields"] = [{**LOOSE, "apiVersion": resource["apiVersion"], "fieldsV1": "DEEP"}]
    return json.dumps(resource).replace('"DEEP"', nested(levels)["raw"])


def migration(name: str) -> dict[str, Any]:
    """One that only shows its plan."""
    found = documented_of("KafkaMigration")[0]
    return {**found, "metadata": {"name": name}, "spec": {**found["spec"], "desiredState": "Planned"}}


@pytest.fixture
def operator(kubeconfig: Path, namespace: str, crds: object, tmp_path: Path) -> "Iterator[subprocess.Popen[str]]":
    with running(kubeconfig, namespace, tmp_path / "log") as process:
        yield process


def is_seen(kubectl: Kubectl, namespace: str, name: str) -> bool:
    """Whether the operator has written its status."""
    told = kubectl("-n", namespace, "get", "kafkamigration", name, "--output", "jsonpath={.status.phase}")
    return bool(told.stdout.strip())


@pytest.mark.parametrize("levels", [1_500, LEVELS])
def test_one_object_does_not_end_the_watch_of_the_others(
    operator: subprocess.Popen[str], kubectl: Kubectl, namespace: str, tmp_path: Path, levels: int
) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-kafka-0"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    for number, hostile in enumerate((claim, migration("hostile"))):
        file = tmp_path / f"{number}.json"
        file.write_text(manifest(hostile, levels))
        path = "/api/v1/namespaces/{}/persistentvolumeclaims" if number == 0 else (
            "/apis/switchover.dev/v1alpha1/namespaces/{}/kafkamigrations")
        kubectl("create", "--raw", path.format(namespace), "-f", str(file))
    file = tmp_path / "other.json"
    file.write_text(json.dumps(migration("other")))
    kubectl("-n", namespace, "create", "-f", str(file))
    log = tmp_path / "log"
    until(lambda: is_seen(kubectl, namespace, "other"), lambda: f"the other one is seen: {log.read_text()[-2000:]}")
    assert operator.poll() is None, log.read_text()[-2000:]
