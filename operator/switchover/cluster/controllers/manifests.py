"""The manifests of the controllers that Switchover creates: a copy of the brokers' pod, changed.

Their configuration is the brokers' own with a controller's edits, so every path, class, login and variable that it names
must be there: the pod is copied, and what is changed of it is named in `_pod`. Own labels only, stable names before
readiness, volumes that outlive the StatefulSet, no owner: deleting the migration takes nothing away.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from typing import Any

from switchover.api.kafka_migration import BrokerSet, KafkaMigrationSpec
from switchover.cluster import names
from switchover.cluster.controllers import listener
from switchover.cluster.door import mount
from switchover.cluster.door.brokers import SKIPS, Brokers, ContainerMissing, Layout, layout_of, upgraded
from switchover.cluster.modes import ControllerListener, Voters
from switchover.cluster.template import as_counted, mount_below
from switchover.kubernetes.gitops import MARKS
from switchover.kubernetes.names import TOKEN
from switchover.kubernetes.selectors import keys
from switchover.network.addresses import Address
from switchover.text.command import kubectl

# --- borrowed -------------------------------------------------------------------------------------------------------------
# What a pod uses of others' making, by name: the controllers' pods are a copy of the brokers', and go on using theirs.

_NAMED = {
    "configMap": ("configmap", "name"), "configMapRef": ("configmap", "name"), "configMapKeyRef": ("configmap", "name"),
    "secret": ("secret", "secretName"), "secretRef": ("secret", "name"), "secretKeyRef": ("secret", "name"),
    "nodePublishSecretRef": ("secret", "name"), "imagePullSecrets": ("secret", "name"),
    "persistentVolumeClaim": ("persistentvolumeclaim", "claimName")}
"""The fields of a pod's spec that refer to an object of the namespace: its kind, and where its name stands. A projected
volume's Secret is the one that stands in `name`."""


def borrowed_objects(template: Mapping[str, Any], workload: str) -> tuple[str, ...]:
    """ConfigMaps, Secrets, claims and the ServiceAccount that the pods of `workload` name, as kubectl takes them: kind/name.

    Not the Secret with their own edits.
    """
    pod = template["spec"]
    account = pod.get("serviceAccountName") or "default"
    found = {*_below(pod), *([f"serviceaccount/{account}"] if account != "default" else [])}
    return tuple(sorted(found - {f"secret/{names.node_files(workload)}"}))


def keep_borrowed(template: Mapping[str, Any], workload: str, namespace: str) -> str:
    """What to do so that an upgrade of the brokers' chart does not delete these objects; "" where there are none."""
    if not (used := borrowed_objects(template, workload)):
        return ""
    return ("Delete nothing that the controllers' pods still use, or they do not start again; Helm's upgrades leave what is"
            f" annotated: {kubectl(namespace, 'annotate --overwrite {} helm.sh/resource-policy=keep', used)}")


def _below(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _below(item)
    elif isinstance(value, Mapping):
        for field, item in value.items():
            yield from _below(item)
            if field in _NAMED:
                kind, key = _NAMED[field]
                yield from (f"{kind}/{name}" for each in (item if isinstance(item, list) else [item])
                            if isinstance(each, Mapping) and (name := each.get(key) or each.get("name")))


METADATA = "kraft-controller"
"""The directory of the metadata log, next to the brokers' log directories on a volume of the controllers' own."""
FALLBACK = "/var/lib/kafka-controller"
"""Where that volume is mounted when the brokers' data lies on none."""
TOKEN_VOLUME = "switchover-token"
LOGS = f"{mount.RUN}/logs"
GRACE_SECONDS = 60
"""A leader that stops last has no quorum left to hand over to and takes about 5 s (docs/facts/kraft.md#rollback)."""

READY = f"""[ -e {mount.RUN}/stopped ] || exec 3<>"/dev/tcp/127.0.0.1/$1"
"""
"""Ready is a controller that listens, or one that is stopped on purpose: the disruption budget lets the next one go then.
A pod that is Ready and refuses connections is therefore stopped. Kafka's own scripts need bash, so it is there.
Each look is a process in the pod: often while it starts, seldom once it runs."""
NEVER = 2**31 - 1
"""How often a controller may be found not to listen before Kubernetes ends it: it may wait long until brokers admit it."""
RESOURCES = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
"""For the heap that is the default; a namespace's own default may be too little for any."""
HEAP = "KAFKA_HEAP_OPTS"
"""A broker's is too much for a controller."""
NOT_COPIED = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle")
"""Of the container that runs Kafka: they ask for what a broker has."""
NOT_COPIED_LABELS = (*MARKS, "helm.sh/")
"""How labels begin that say which application a pod belongs to: those of GitOps tools, and app.kubernetes.io/."""
PLACED = ("affinity", "topologySpreadConstraints", "hostname", "subdomain", "nodeName", "hostNetwork", "readinessGates")
"""Of the pod: where brokers go, by their own labels and names, the ports of the node that they take, and what others
must say of them."""


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


def log_dir(original: Mapping[str, Any], brokers: Brokers) -> str:
    """Where a controller keeps its metadata log, in a pod that is a copy of this template. Raises ContainerMissing."""
    below = mount_below(_kafka(original["template"], brokers), brokers.log_dir)
    return f"{below['mountPath'].rstrip('/') if below is not None else FALLBACK}/{METADATA}"


def _kafka(template: Mapping[str, Any], brokers: Brokers) -> Mapping[str, Any]:
    """The container that runs Kafka. Raises ContainerMissing."""
    found: Mapping[str, Any] | None = next(
        (each for each in template["spec"]["containers"] if each["name"] == brokers.container), None)
    if found is None:
        raise ContainerMissing(f"there is no container {brokers.container}")
    return found


def manifests(migration: str, spec: KafkaMigrationSpec, set_: BrokerSet, original: Mapping[str, Any],
              claims: Sequence[str], brokers: Brokers, addresses_of_brokers: Sequence[str] = (),
              with_token: Set[str] = frozenset(),
              selectors: Iterable[Mapping[str, Any] | None] = ()) -> tuple[dict[str, Any], ...]:
    """Service, disruption budget and StatefulSet of the controllers.

    `original` is the template of the brokers' StatefulSet `set_` before it was changed, `claims` are the names of its volume
    claim templates, `addresses_of_brokers` where these listen for controllers, as `host:port`, `with_token` the containers
    of the brokers' pods that have a token of their ServiceAccount, and `selectors` what selects pods here.
    """
    name = spec.controllers.name
    selector = {names.CONTROLLERS_LABEL: name}
    labels = names.controller_labels(name, migration)
    of_pods = pod_labels(migration, spec, original["template"], selectors)
    volume, pod = _pod(spec, set_, original, claims, brokers, of_pods, addresses_of_brokers, with_token)
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
                "template": pod,
                "volumeClaimTemplates": [_claim(spec, volume, labels)],
            },
        },
    )


def _claim(spec: KafkaMigrationSpec, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    storage = spec.controllers.storage
    claim: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage.size}}}
    if storage.storage_class_name is not None:
        claim["storageClassName"] = storage.storage_class_name
    return {"metadata": {"name": name, "labels": dict(labels)}, "spec": claim}


def _pod(spec: KafkaMigrationSpec, set_: BrokerSet, original: Mapping[str, Any], claims: Sequence[str], brokers: Brokers,
         labels: Mapping[str, str], addresses_of_brokers: Sequence[str],
         with_token: Set[str]) -> tuple[str, dict[str, Any]]:
    """The name of the volume with the metadata log, and the pod.

    The brokers' other claims become empty directories: their paths exist, and nothing of a broker is on them.
    """
    template = spec.controllers.template
    source = deepcopy(dict(original["template"]))
    pod = source["spec"]
    container = dict(upgraded(_kafka(source, brokers), brokers.image))
    below = mount_below(container, brokers.log_dir)
    volume = below["name"] if below is not None else METADATA
    if below is None:
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), {"name": volume, "mountPath": FALLBACK}]
    layout = layout_of(container, set_)

    for key in PLACED:
        pod.pop(key, None)
    omitted = {*template.omit, mount.KEEPER}
    sidecars = [without_host_ports(each) for each in pod["containers"] if each["name"] not in {brokers.container, *omitted}]
    pod["containers"] = [_controller(spec, container, layout, brokers), *sidecars]
    alike = {**pod["containers"][0], "volumeMounts": container.get("volumeMounts") or ()}
    brokers_place = re.sub(rf"{re.escape(set_.name)}-\d+(?![\w.])", f"$({mount.POD_NAME})", brokers.log_dir)
    pod["initContainers"] = [
        mount.init_container(layout.script, alike),
        *(without_host_ports(each) for each in pod.get("initContainers") or () if each["name"] not in omitted),
        *([mount.reach_container(addresses_of_brokers, alike)] if addresses_of_brokers else []),
        *([mount.guard(brokers_place, alike)] if below is not None else [])]
    pod["volumes"] = mount.volumes(names.node_files(spec.controllers.name), [
        *(each for each in pod.get("volumes") or () if each["name"] != volume),
        *({"name": claim, "emptyDir": {}} for claim in claims if claim != volume)])
    pod |= {
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": template.automount_service_account_token,
        **_placement(spec, (original["template"]["spec"].get("affinity") or {}).get("nodeAffinity")),
    }
    _give_tokens(pod, with_token - {brokers.container})
    for each in (*pod["initContainers"], *pod["containers"]):
        each["terminationMessagePolicy"] = "FallbackToLogsOnError"      # the end of its log says why, in waitingFor
    annotations = {**((source.get("metadata") or {}).get("annotations") or {}), **template.annotations}
    return volume, {"metadata": {"labels": dict(labels), "annotations": annotations}, "spec": pod}


def pod_labels(migration: str, spec: KafkaMigrationSpec, template: Mapping[str, Any],
               selectors: Iterable[Mapping[str, Any] | None]) -> dict[str, str]:
    """Of the controllers' pods. The user's win over the brokers', ours over all (docs/decisions/0013-last-door.md)."""
    return {**labels_that_place(template, selectors), **spec.controllers.template.labels,
            **names.controller_labels(spec.controllers.name, migration)}


def labels_that_place(template: Mapping[str, Any], selectors: Iterable[Mapping[str, Any] | None]) -> dict[str, str]:
    """Of a brokers' template those with a prefix, by which a pod is in a mesh or has an identity, and none by which brokers
    are selected."""
    placed = _looked_at([template["spec"].get(key) for key in ("affinity", "topologySpreadConstraints")])
    selected = placed.union(*map(keys, selectors))
    return {key: value for key, value in ((template.get("metadata") or {}).get("labels") or {}).items()
            if "/" in key and not key.startswith(NOT_COPIED_LABELS) and key not in selected}


def _looked_at(value: Any) -> frozenset[str]:
    """The labels by which pods are placed apart from one another, or together."""
    if isinstance(value, Mapping):
        return frozenset().union(keys(value.get("labelSelector")), *map(_looked_at, value.values()))
    return frozenset().union(*map(_looked_at, value)) if isinstance(value, list) else frozenset()


def _give_tokens(pod: dict[str, Any], containers: Set[str]) -> None:
    """What is copied may ask the API server as it does in the brokers' pods; Kafka may not, but where the whole pod may.

    Kubernetes puts a token into all containers or into none: this is the volume that it would make.
    """
    if pod["automountServiceAccountToken"]:
        return
    asking = [each for each in (*pod["initContainers"], *pod["containers"]) if each["name"] in containers and not any(
        mount["mountPath"] == TOKEN for mount in each.get("volumeMounts") or ())]
    for each in asking:
        each["volumeMounts"] = [*(each.get("volumeMounts") or ()),
                                {"name": TOKEN_VOLUME, "mountPath": TOKEN, "readOnly": True}]
    if asking:
        pod["volumes"] = [*pod["volumes"], {"name": TOKEN_VOLUME, "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {
                "apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}]}}]


def _controller(spec: KafkaMigrationSpec, broker: Mapping[str, Any], layout: Layout, brokers: Brokers) -> dict[str, Any]:
    """The container that runs Kafka."""
    template, port = spec.controllers.template, spec.controllers.listener.port
    probe = {"exec": {"command": ["bash", "-c", READY, "ready", str(port)]}, "timeoutSeconds": 5}
    return {
        **{key: value for key, value in broker.items() if key not in NOT_COPIED},
        "image": template.image or broker["image"],
        "env": mount.environment(layout, [each for each in broker.get("env") or () if each["name"] != HEAP], {
            "SWITCHOVER_HEAP_OPTS": template.heap_options,      # the door sets it: some entry scripts edit by the other
            "LOG_DIR": LOGS,                        # of Kafka's own scripts: on the metadata's volume they would fill it
            "EXTRA_ARGS": "-name kafkaServer",      # theirs, without a log of the garbage collector in files
            **({SKIPS: "true"} if brokers.waits else {}),       # they start without ZooKeeper, too, once it is gone
        }),
        "ports": [{"name": "controller", "containerPort": port, "protocol": "TCP"}],
        "startupProbe": {**probe, "periodSeconds": 2, "failureThreshold": NEVER},
        "readinessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 3},
        "resources": {kind: given for kind, given in template.resources.manifest().items() if given} or as_counted(
            RESOURCES, broker),
        "volumeMounts": [*mount.mounts(layout.script, broker),
                         {"name": mount.RUN_VOLUME, "mountPath": LOGS, "subPath": "logs"}],
    }


def without_host_ports(container: dict[str, Any]) -> dict[str, Any]:
    ports = [{key: value for key, value in port.items() if key != "hostPort"} for port in container.get("ports") or ()]
    return container | ({"ports": ports} if ports else {})


def _placement(spec: KafkaMigrationSpec, node_affinity: Mapping[str, Any] | None) -> dict[str, Any]:
    """On the brokers' kind of nodes, but apart from one another."""
    template = spec.controllers.template
    own = {"matchLabels": {names.CONTROLLERS_LABEL: spec.controllers.name}}
    placed: dict[str, Any] = {}
    if template.node_selector:
        placed["nodeSelector"] = dict(template.node_selector)
    if template.tolerations:
        placed["tolerations"] = [toleration.manifest() for toleration in template.tolerations]
    if template.affinity is not None:
        return placed | {"affinity": template.affinity.manifest()}
    apart = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": own}}]}}
    return placed | {
        "affinity": apart | ({"nodeAffinity": dict(node_affinity)} if node_affinity else {}),
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
             "labelSelector": own}],
    }
