"""What a pod names of its namespace, wherever it may name it."""

from typing import Any

from switchover.cluster.controllers import manifests


def template_of(**pod: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": [{"name": "kafka"}], **pod}}


EVERYWHERE = template_of(
    serviceAccountName="brokers",
    imagePullSecrets=[{"name": "registry"}],
    initContainers=[
        {"name": "render", "envFrom": [{"configMapRef": {"name": "defaults"}}, {"secretRef": {"name": "login"}}]}],
    containers=[{"name": "kafka", "env": [
        {"name": "PLAIN", "value": "configMap"},
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "zones", "key": "a"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "passwords", "key": "b"}}}]}],
    volumes=[
        {"name": "config", "configMap": {"name": "kafka-config"}},
        {"name": "scripts", "configMap": {"name": "kafka-config"}},
        {"name": "tls", "secret": {"secretName": "kafka-tls"}},
        {"name": "both", "projected": {"sources": [
            {"secret": {"name": "jaas"}}, {"configMap": {"name": "more"}}, {"downwardAPI": {"items": []}}]}},
        {"name": "shared", "persistentVolumeClaim": {"claimName": "plugins"}},
        {"name": "vault", "csi": {"driver": "secrets", "nodePublishSecretRef": {"name": "vault-token"}}},
        {"name": "switchover-node-files", "secret": {"secretName": "kafka-controller-switchover"}},
        {"name": "run", "emptyDir": {}}])


def test_each_object_is_told_once_and_our_own_secret_is_not() -> None:
    assert manifests.borrowed_objects(EVERYWHERE, "kafka-controller") == (
        "configmap/defaults", "configmap/kafka-config", "configmap/more", "configmap/zones", "persistentvolumeclaim/plugins",
        "secret/jaas", "secret/kafka-tls", "secret/login", "secret/passwords", "secret/registry", "secret/vault-token",
        "serviceaccount/brokers")


def test_a_pod_that_uses_nothing_has_nothing_to_keep() -> None:
    assert manifests.keep_borrowed(template_of(serviceAccountName="default"), "kafka-controller", "kafka") == ""


def test_what_is_to_be_kept_is_a_command() -> None:
    told = manifests.keep_borrowed(
        template_of(volumes=[{"name": "c", "configMap": {"name": "a"}}]), "kafka-controller", "streams")
    assert told.endswith(
        ": kubectl --namespace streams annotate --overwrite configmap/a helm.sh/resource-policy=keep")
