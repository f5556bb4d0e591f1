"""The controllers' own manifests: theirs alone, there to stay, and owned by nobody."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.core.kraft import controllers, names
from unit.pictures import CLUSTER_ID, Cluster, spec_of

TRACKING = ("argocd.argoproj.io/instance", "app.kubernetes.io/instance", "kustomize.toolkit.fluxcd.io/name",
            "meta.helm.sh/release-name")
"""What GitOps tools and Helm know their own objects by."""


def manifests(spec: KafkaMigrationSpec | None = None, cluster: Cluster | None = None) -> dict[str, dict[str, Any]]:
    own = spec or spec_of()
    made = controllers.manifests("to-kraft", own, own.brokers[0], (cluster or Cluster()).workload(), CLUSTER_ID, "3.9")
    return {manifest["kind"]: manifest for manifest in made}


def with_controllers(**changes: Any) -> KafkaMigrationSpec:
    return spec_of(controllers={"storage": {"size": "1Gi"}, **changes})


def pod(spec: KafkaMigrationSpec | None = None, cluster: Cluster | None = None) -> dict[str, Any]:
    template: dict[str, Any] = manifests(spec, cluster)["StatefulSet"]["spec"]["template"]
    return template


def container(spec: KafkaMigrationSpec | None = None, cluster: Cluster | None = None) -> dict[str, Any]:
    only: dict[str, Any] = pod(spec, cluster)["spec"]["containers"][0]
    return only


def every_object(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from every_object(item)
    elif isinstance(value, list):
        for item in value:
            yield from every_object(item)


def test_there_are_a_service_a_budget_and_a_statefulset_of_one_name():
    made = manifests()
    assert made.keys() == {"Service", "PodDisruptionBudget", "StatefulSet"}
    assert {manifest["metadata"]["name"] for manifest in made.values()} == {"kafka-controller"}


def test_nothing_is_owned_by_anything():
    assert [item for item in every_object(list(manifests().values())) if "ownerReferences" in item] == []


def test_nothing_names_a_namespace():
    for manifest in manifests().values():
        assert "namespace" not in manifest["metadata"]


def test_labels_are_our_own_and_no_tool_or_broker_selects_them():
    made = manifests()
    labels = [made[kind]["metadata"]["labels"] for kind in made] + [pod()["metadata"]["labels"]]
    for own in labels:
        assert own == {**names.labels("to-kraft"), names.CONTROLLERS_LABEL: "kafka-controller"}
        assert not own.keys() & set(TRACKING)
        assert own.get("app") != "kafka", "the brokers' Service would send clients to a controller"


def test_service_budget_and_statefulset_select_the_controllers_alone():
    made, own = manifests(), {names.CONTROLLERS_LABEL: "kafka-controller"}
    assert made["Service"]["spec"]["selector"] == own
    assert made["PodDisruptionBudget"]["spec"]["selector"] == {"matchLabels": own}
    assert made["StatefulSet"]["spec"]["selector"] == {"matchLabels": own}
    assert own.items() <= pod()["metadata"]["labels"].items()


def test_labels_of_the_user_cannot_take_ours_away():
    own = pod(with_controllers(template={"labels": {names.CONTROLLERS_LABEL: "other", "team": "kafka"}}))
    assert own["metadata"]["labels"][names.CONTROLLERS_LABEL] == "kafka-controller"
    assert own["metadata"]["labels"]["team"] == "kafka"


def test_controllers_find_each_other_before_they_are_ready():
    service = manifests()["Service"]["spec"]
    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is True


def test_they_start_together_and_are_replaced_only_by_us():
    spec = manifests()["StatefulSet"]["spec"]
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"] == {"type": "OnDelete"}
    assert manifests()["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


def test_their_volumes_outlive_them():
    spec = manifests()["StatefulSet"]["spec"]
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    claim = spec["volumeClaimTemplates"][0]
    assert claim["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    assert "storageClassName" not in claim["spec"], "the cluster's default"
    assert claim["metadata"]["name"] in {mount["name"] for mount in container()["volumeMounts"]}


def test_the_storage_class_is_the_users():
    spec = with_controllers(storage={"size": "8Gi", "storageClassName": "fast"})
    claim = manifests(spec)["StatefulSet"]["spec"]["volumeClaimTemplates"][0]["spec"]
    assert (claim["storageClassName"], claim["resources"]["requests"]["storage"]) == ("fast", "8Gi")


def test_the_log_lies_on_the_volume():
    mounts = {mount["name"]: mount["mountPath"] for mount in container()["volumeMounts"]}
    assert controllers.METADATA_DIR.startswith(f"{mounts['data']}/")


def test_what_kafkas_own_scripts_log_does_not_fill_that_volume():
    """`LOG_DIR` and `EXTRA_ARGS` are kafka-run-class.sh's: log4j's files, never deleted, and a gigabyte of `-loggc`."""
    mounts = {mount["name"]: mount["mountPath"] for mount in container()["volumeMounts"]}
    environment = {item["name"]: item.get("value") for item in container()["env"]}
    assert environment["LOG_DIR"].startswith(f"{mounts['run']}/")
    assert "-loggc" not in environment["EXTRA_ARGS"]


@pytest.mark.parametrize("replicas", [3, 5])
def test_there_are_as_many_as_asked_for_and_voters_for_each(replicas):
    spec = with_controllers(replicas=replicas, firstNodeId=100)
    assert manifests(spec)["StatefulSet"]["spec"]["replicas"] == replicas
    assert list(controllers.voters(spec, "kafka", {}).addresses) == list(range(100, 100 + replicas))


def test_voters_are_the_pods_names_in_the_headless_service():
    spec, service = spec_of(), manifests()["Service"]
    hosts = [str(address) for address in controllers.voters(spec, "kafka", {}).addresses.values()]
    assert hosts[0] == f"kafka-controller-0.{service['metadata']['name']}.kafka.svc:{service['spec']['ports'][0]['port']}"
    assert manifests()["StatefulSet"]["spec"]["serviceName"] == service["metadata"]["name"]


def test_a_log_is_formatted_once_for_this_cluster_and_release():
    environment = {item["name"]: item.get("value") for item in container()["env"]}
    assert (environment["CLUSTER_ID"], environment["RELEASE_VERSION"]) == (CLUSTER_ID, "3.9")
    script = container()["command"][-1]
    assert '[ -f "${METADATA_DIR}/meta.properties" ] ||' in script, "a log that is there is never formatted again"
    assert script.rstrip().splitlines()[-1].startswith("exec "), "signals reach the JVM"


def test_each_controller_reads_its_own_file():
    mounts = {mount["name"]: mount for mount in container()["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod()["spec"]["volumes"]}
    assert volumes["files"] == {"name": "files", "secret": {"secretName": names.node_files("kafka-controller")}}
    assert mounts["files"]["readOnly"] is True
    environment = {item["name"]: item.get("value") for item in container()["env"]}
    assert environment["FILES"] == mounts["files"]["mountPath"]
    assert '${FILES}/${POD_NAME}.properties' in container()["command"][-1]


def test_a_leader_that_stops_last_has_time_for_it():
    assert pod()["spec"]["terminationGracePeriodSeconds"] >= 30


def test_image_and_security_are_the_brokers():
    cluster = Cluster()
    broker_pod = cluster.manifest["spec"]["template"]["spec"]
    broker_pod["imagePullSecrets"] = [{"name": "registry"}]
    broker_pod["containers"][0]["securityContext"] = {"readOnlyRootFilesystem": True}
    own = pod(cluster=cluster)["spec"]
    assert own["containers"][0]["image"] == broker_pod["containers"][0]["image"]
    assert own["securityContext"] == broker_pod["securityContext"]
    assert own["imagePullSecrets"] == [{"name": "registry"}]
    assert own["containers"][0]["securityContext"] == {"readOnlyRootFilesystem": True}


def test_they_get_no_token_unless_it_is_asked_for():
    assert pod()["spec"]["automountServiceAccountToken"] is False
    asked = with_controllers(template={"automountServiceAccountToken": True})
    assert pod(asked)["spec"]["automountServiceAccountToken"] is True


def test_what_the_template_says_is_taken():
    own = with_controllers(template={
        "image": "kafka:own", "heapOptions": "-Xmx1g", "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "kafka", "operator": "Exists"}], "annotations": {"note": "quorum"},
        "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}, "affinity": {"nodeAffinity": {}}})
    spec = pod(own)["spec"]
    assert spec["containers"][0]["image"] == "kafka:own"
    assert {"name": "KAFKA_HEAP_OPTS", "value": "-Xmx1g"} in spec["containers"][0]["env"]
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["tolerations"][0]["key"] == "kafka"
    assert spec["affinity"] == {"nodeAffinity": {}}
    assert pod(own)["metadata"]["annotations"] == {"note": "quorum"}


def test_without_an_affinity_of_the_user_they_spread_over_nodes_and_zones():
    spec = pod()["spec"]
    term = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"].items() <= pod()["metadata"]["labels"].items()
    assert spec["topologySpreadConstraints"][0]["topologyKey"] == "topology.kubernetes.io/zone"


def test_manifests_are_plain_json_and_the_same_each_time():
    assert json.loads(json.dumps(manifests())) == manifests()
