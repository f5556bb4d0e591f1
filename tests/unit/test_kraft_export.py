"""What an export leaves out, and what it must never touch."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from switchover.answers.errors import Refused
from switchover.cli.export import Document, as_stream, export, into_directory
from switchover.cluster import names
from switchover.cluster.ending.export import manifest_of, runs_the_same, stateful_set_manifest
from unit.pictures import migration

PROBE = {"timeoutSeconds": 1, "periodSeconds": 2, "successThreshold": 1, "failureThreshold": 3,
         "httpGet": {"path": "/", "port": 1, "scheme": "HTTP"}}
LOOKS_LIKE_A_DEFAULT = {"protocol": "TCP", "restartPolicy": "Always", "type": "ClusterIP"}


def live() -> dict[str, Any]:
    """A StatefulSet as the API server gives it."""
    pod = {
        "containers": [{
            "name": "kafka", "image": "kafka", "terminationMessagePath": "/dev/termination-log", "resources": {},
            "ports": [{"containerPort": 9092, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}],
            "env": [{"name": "protocol", "value": "TCP"}], "readinessProbe": PROBE,
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "config", "configMap": {"name": "kafka-config", "defaultMode": 420}},
                    {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 256}}],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 60, "nodeSelector": LOOKS_LIKE_A_DEFAULT}
    annotations = {names.CLAIM: "uid", "kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "streams"}
    return {
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "kafka", "namespace": "kafka", "uid": "1", "generation": 3, "resourceVersion": "7",
                     "labels": LOOKS_LIKE_A_DEFAULT, "annotations": annotations, "managedFields": [{}]},
        "spec": {"replicas": 3, "selector": {"matchLabels": LOOKS_LIKE_A_DEFAULT}, "podManagementPolicy": "Parallel",
                 "updateStrategy": {"type": "OnDelete"}, "revisionHistoryLimit": 10,
                 "template": {"metadata": {"creationTimestamp": None, "labels": LOOKS_LIKE_A_DEFAULT}, "spec": pod}},
        "status": {"replicas": 3},
    }


def test_metadata_keeps_what_a_person_wrote_and_says_where_it_comes_from():
    assert manifest_of(live(), "to-kraft")["metadata"] == {
        "name": "kafka", "namespace": "kafka", "labels": {**LOOKS_LIKE_A_DEFAULT, names.MIGRATION_LABEL: "to-kraft"},
        "annotations": {"team": "streams"}}


def test_defaults_go_and_everything_else_stays():
    spec = manifest_of(live(), "to-kraft")["spec"]
    assert spec == {
        "replicas": 3, "selector": {"matchLabels": LOOKS_LIKE_A_DEFAULT}, "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "template": {"metadata": {"labels": LOOKS_LIKE_A_DEFAULT}, "spec": {
            "containers": [{
                "name": "kafka", "image": "kafka",
                "ports": [{"containerPort": 9092}, {"containerPort": 53, "protocol": "UDP"}],
                "env": [{"name": "protocol", "value": "TCP"}],
                "readinessProbe": {"periodSeconds": 2, "httpGet": {"path": "/", "port": 1}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": "config", "configMap": {"name": "kafka-config"}},
                        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 256}}],
            "terminationGracePeriodSeconds": 60, "nodeSelector": LOOKS_LIKE_A_DEFAULT}}}


def test_brokers_get_their_own_strategy_back():
    partitioned = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    before = live()
    manifest = stateful_set_manifest(before, "to-kraft", {"template": {}, "updateStrategy": partitioned})
    assert manifest["spec"]["updateStrategy"] == partitioned
    assert before == live()


def test_the_strategy_alone_is_no_difference_to_the_pods():
    other = live()
    other["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    assert runs_the_same(other, live())
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "another"
    assert not runs_the_same(other, live())


# --- the command --------------------------------------------------------------------------------------------------------


class Cluster:
    """Objects of one finalized migration. `mutated` is what a dry run makes of a template, as an admission webhook may."""

    def __init__(self, mutated: bool = False) -> None:
        self.mutated = mutated

    async def get(self, name: str) -> dict[str, Any]:
        found = migration().model_dump(by_alias=True, mode="json", exclude_none=True)
        found["status"] = {"attempt": 1, "progress": {"step": "HandOver"}}
        return found

    async def manifest(self, api_version: str, kind: str, name: str) -> dict[str, Any]:
        if kind == "StatefulSet":
            return live()
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "kafka"}, "spec": {}}

    async def original(self, name: str) -> dict[str, Any]:
        return {"updateStrategy": {"type": "RollingUpdate"}}

    async def node_files(self, secret: str) -> dict[str, str]:
        return {"door.sh": "#!/bin/bash", "kafka-0": "mode C\nset process.roles=broker\n"}

    async def preview_stateful_set(self, name: str, operations: Any) -> dict[str, Any]:
        applied = deepcopy(live())
        if self.mutated:
            applied["spec"]["template"]["spec"]["restartPolicy"] = "webhook was here"
        return applied


@pytest.mark.parametrize(("mutated", "noisy"), [(False, False), (True, True)])
async def test_values_go_only_when_the_api_server_would_put_the_same_back(mutated: bool, noisy: bool):
    cluster = Cluster(mutated)
    text = as_stream(await export("to-kraft", cluster, cluster, with_secrets=False))  # type: ignore[arg-type]
    assert ("terminationMessagePath" in text) is noisy
    assert "updateStrategy:\n    type: RollingUpdate" in text
    assert "#   process.roles=broker\n" in text, "what a configuration of one's own must say"
    assert ("#   kubectl --namespace kafka annotate --overwrite configmap/kafka-config secret/keys"
            " helm.sh/resource-policy=keep\n") in text, "what the controllers' pods use of the brokers'"


def test_a_document_without_a_manifest_is_only_spoken_of():
    assert str(Document("one\ntwo")) == "# one\n# two\n"


PASSWORD = Document("", {
    "kind": "Secret", "metadata": {"name": "kafka"}, "stringData": {"kafka-0": "sasl.password=hunter2"}})
SERVICE = Document("", {"kind": "Service", "metadata": {"name": "kafka"}})


def test_a_secret_is_read_by_nobody_who_could_read_the_file_before(tmp_path: Path):
    file, elsewhere = tmp_path / PASSWORD.file, tmp_path / "elsewhere"
    file.write_text("old")
    file.chmod(0o644)
    with file.open() as reader:
        assert list(into_directory([PASSWORD, SERVICE], tmp_path)) == [f"wrote {file}", f"wrote {tmp_path / SERVICE.file}"]
        assert file.stat().st_mode & 0o777 == 0o600
        assert "hunter2" in file.read_text()
        assert reader.read() == "old", "who had it open reads what it was"
    assert (tmp_path / SERVICE.file).stat().st_mode & 0o444 == 0o444
    elsewhere.write_text("old")
    file.unlink()
    file.symlink_to(elsewhere)
    list(into_directory([PASSWORD], tmp_path))
    assert (elsewhere.read_text(), file.is_symlink()) == ("old", False)
    assert {each.name for each in tmp_path.iterdir()} == {file.name, SERVICE.file, "elsewhere"}


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / PASSWORD.file).mkdir()
    with pytest.raises(Refused, match=f"cannot write to {tmp_path}: Is a directory"):
        list(into_directory([PASSWORD], tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == [PASSWORD.file]
