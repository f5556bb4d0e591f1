"""The manifests of the controllers that Switchover creates (design, end of section 6).

Own labels only, stable names before readiness, volumes that outlive the StatefulSet, no owner: deleting the migration
takes nothing away.
"""

from collections.abc import Mapping
from typing import Any

from switchover.api.kafka_migration import BrokerSet, KafkaMigrationSpec
from switchover.core.kraft import listener, name_cache, names
from switchover.core.kraft.facts import Address, Workload
from switchover.core.kraft.modes import ControllerListener, Voters
from switchover.core.kraft.template import broker_container

METADATA_DIR = "/var/lib/kafka-controller/data"
FILES = "/etc/switchover"
RUN_DIR = "/run/switchover"
GRACE_SECONDS = 60
"""A leader that stops last has no quorum left to hand over to and takes about 5 s (feasibility-kraft.md 5.1)."""

START = """set -eu
PATH="$PATH:/opt/kafka/bin:/opt/bitnami/kafka/bin"
tool() { command -v "$1.sh" || command -v "$1"; }
file="${FILES}/${POD_NAME}.properties"
rm -f "${RUN_DIR}/stopped"
if grep -q '^switchover.stopped=true' "${file}"; then
    echo "stopped by Switchover: Kafka is not started"
    touch "${RUN_DIR}/stopped"
    trap 'exit 0' TERM INT
    while true; do sleep 3600 & wait "$!"; done
fi
tries=0
for host in ${VOTER_HOSTS}; do
    until getent hosts "${host}" >/dev/null || [ "${tries}" -ge 30 ]; do tries=$((tries + 1)); sleep 1; done
done
[ -f "${METADATA_DIR}/meta.properties" ] || "$(tool kafka-storage)" format \\
    --cluster-id="${CLUSTER_ID}" --release-version="${RELEASE_VERSION}" --config="${file}"
exec "$(tool kafka-server-start)" "${file}"
"""
"""Names first: a controller that cannot reach the leader in its first 5 s gives its registration up for good ("channel
manager timed out", then "waiting for the previous RPC to complete" for ever; Kafka 3.9.2, seen in the sandbox), and the JVM
remembers for 10 s that a name does not exist, as those of new pods do not at first. After 30 s it starts all the same: a
quorum needs only two of three.

Stopped is a mode like the others: the last controller to stop on the way back is the leader, and no controller may start
again behind our back (feasibility-kraft.md 5.1)."""

READY = """[ -e "${RUN_DIR}/stopped" ] || exec 3<>"/dev/tcp/127.0.0.1/${CONTROLLER_PORT}"
"""
"""Ready is a controller that listens, or one that is stopped on purpose: the disruption budget lets the next one go then.
A pod that is Ready and refuses connections is therefore stopped. Kafka's own scripts need bash, so it is there."""


def addresses(spec: KafkaMigrationSpec, namespace: str) -> dict[int, Address]:
    """The controllers by the names of their pods; what these stand for changes with every restart."""
    controllers = spec.controllers
    return {
        node_id: Address(f"{pod}.{controllers.name}.{namespace}.svc", controllers.listener.port)
        for pod, node_id in names.controller_pods(spec).items()
    }


def voters(spec: KafkaMigrationSpec, namespace: str, credentials: Mapping[str, str]) -> Voters:
    """The static quorum. Raises `credentials.Unusable` for credentials that do not fit its listener."""
    own = spec.controllers.listener
    settings = listener.node_settings(own, credentials)
    return Voters(addresses(spec, namespace), ControllerListener(own.name, own.port, own.security_protocol, settings))


def manifests(migration: str, spec: KafkaMigrationSpec, brokers: BrokerSet, workload: Workload, cluster_id: str,
              release_version: str) -> tuple[dict[str, Any], ...]:
    """Service, disruption budget and StatefulSet of the controllers; image and security as the brokers have them."""
    name = spec.controllers.name
    selector = {names.CONTROLLERS_LABEL: name}
    labels = names.controller_labels(name, migration)
    return (
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": selector,
                "ports": [{"name": "controller", "port": spec.controllers.listener.port, "protocol": "TCP"}],
            },
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "labels": labels},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "serviceName": name,
                "replicas": spec.controllers.replicas,
                "podManagementPolicy": "Parallel",
                "updateStrategy": {"type": "OnDelete"},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "selector": {"matchLabels": selector},
                "template": _pod(spec, brokers, workload, labels, cluster_id, release_version),
                "volumeClaimTemplates": [_claim(spec, labels)],
            },
        },
    )


def _claim(spec: KafkaMigrationSpec, labels: Mapping[str, str]) -> dict[str, Any]:
    storage = spec.controllers.storage
    claim: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage.size}}}
    if storage.storage_class_name is not None:
        claim["storageClassName"] = storage.storage_class_name
    return {"metadata": {"name": "data", "labels": dict(labels)}, "spec": claim}


def _pod(spec: KafkaMigrationSpec, brokers: BrokerSet, workload: Workload, labels: Mapping[str, str], cluster_id: str,
         release_version: str) -> dict[str, Any]:
    template = spec.controllers.template
    broker = broker_container(workload, brokers)
    broker_pod = workload.template["spec"]
    environment = {
        "KAFKA_HEAP_OPTS": template.heap_options,
        "CLUSTER_ID": cluster_id,
        "RELEASE_VERSION": release_version,
        "VOTER_HOSTS": " ".join(f"{pod}.{spec.controllers.name}" for pod in names.controller_pods(spec)),
        "FILES": FILES,
        "METADATA_DIR": METADATA_DIR,
        "LOG_DIR": f"{RUN_DIR}/logs",           # of Kafka's own scripts: on the metadata's volume they would fill it
        "EXTRA_ARGS": "-name kafkaServer",      # theirs, without a log of the garbage collector in files
        "RUN_DIR": RUN_DIR,
        "CONTROLLER_PORT": str(spec.controllers.listener.port),
    }
    container: dict[str, Any] = {
        "name": "controller",
        "image": template.image or broker["image"],
        "command": ["/bin/sh", "-c", START],
        "env": name_cache.short([
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            *({"name": key, "value": value} for key, value in environment.items()),
        ]),
        "ports": [{"name": "controller", "containerPort": spec.controllers.listener.port, "protocol": "TCP"}],
        "readinessProbe": {"exec": {"command": ["bash", "-c", READY]}, "periodSeconds": 2, "timeoutSeconds": 5,
                           "failureThreshold": 3},
        "resources": template.resources.manifest(),
        "volumeMounts": [
            {"name": "data", "mountPath": METADATA_DIR.rsplit("/", 1)[0]},
            {"name": "files", "mountPath": FILES, "readOnly": True},
            {"name": "run", "mountPath": RUN_DIR},
        ],
    }
    for key in ("imagePullPolicy", "securityContext"):
        if key in broker:
            container[key] = broker[key]
    pod: dict[str, Any] = {
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": template.automount_service_account_token,
        "enableServiceLinks": False,          # a Service named kafka would set KAFKA_PORT, which some images read
        "containers": [container],
        "volumes": [
            {"name": "files", "secret": {"secretName": names.node_files(spec.controllers.name)}},
            {"name": "run", "emptyDir": {}},
        ],
    }
    for key in ("imagePullSecrets", "securityContext", "serviceAccountName", "priorityClassName"):
        if key in broker_pod:
            pod[key] = broker_pod[key]
    if template.node_selector:
        pod["nodeSelector"] = dict(template.node_selector)
    if template.tolerations:
        pod["tolerations"] = [toleration.manifest() for toleration in template.tolerations]
    if template.affinity is not None:
        pod["affinity"] = template.affinity.manifest()
    else:
        pod["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {names.CONTROLLERS_LABEL: spec.controllers.name}}}}]}}
        pod["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
             "labelSelector": {"matchLabels": {names.CONTROLLERS_LABEL: spec.controllers.name}}}]
    metadata = {"labels": {**template.labels, **labels}, "annotations": dict(template.annotations)}
    return {"metadata": metadata, "spec": pod}
