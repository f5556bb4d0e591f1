"""The controllers' own manifests: a copy of the brokers' pod, changed; theirs alone, there to stay, and owned by nobody."""

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest

from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import names
from switchover.cluster.controllers import manifests as controllers
from switchover.cluster.door import brokers, edits, mount
from switchover.cluster.door.brokers import Brokers
from switchover.cluster.door.mount import GUARD, REACH
from switchover.cluster.ending import zookeeper_users
from switchover.cluster.goals import claim_and_provision
from switchover.cluster.modes import ControllerListener, Voters
from switchover.engine.effects import Provide, WriteNodeFiles
from switchover.kubernetes import reports
from switchover.network.addresses import Address
from unit.pictures import given, moment, spec_of, spoil, spoil_workload, stateful_set, value, workload_of

TRACKING = ("argocd.argoproj.io/instance", "app.kubernetes.io/instance", "kustomize.toolkit.fluxcd.io/name",
            "meta.helm.sh/release-name")
"""What GitOps tools and Helm know their own objects by."""
DATA = {"name": "data", "mountPath": "/var/lib/kafka"}
SCRIPT = "/opt/kafka/bin/kafka-server-start.sh"
SCRAM = "KAFKA_ZOOKEEPER_BOOTSTRAP_SCRAM_USERS"


def demo() -> dict[str, Any]:
    found: dict[str, Any] = stateful_set()["spec"]["template"]
    return found


def template_with(pod: Mapping[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    """The demo's template with these fields of its pod's spec and of its container."""
    found = demo()
    found["spec"] |= pod or {}
    found["spec"]["containers"][0] |= container
    return found


def known_of(template: Mapping[str, Any], spec: KafkaMigrationSpec, **settings: str) -> Brokers:
    return brokers.find(template, spec.brokers[0], given() | {key.replace("_", "."): text for key, text in settings.items()})


def manifests(spec: KafkaMigrationSpec | None = None, template: Mapping[str, Any] | None = None,
              claims: Sequence[str] = ("data",), **settings: str) -> dict[str, dict[str, Any]]:
    own, source = spec or spec_of(), template or demo()
    before = deepcopy(source)
    original = {"template": source, "updateStrategy": {"type": "RollingUpdate"}}
    made = controllers.manifests(
        "to-kraft", own, own.brokers[0], original, claims, known_of(source, own, **settings))
    assert source == before, "nothing is changed in place"
    return {manifest["kind"]: manifest for manifest in made}


def with_controllers(**changes: Any) -> KafkaMigrationSpec:
    return spec_of(controllers={"storage": {"size": "1Gi"}, **changes})


def stateful(*arguments: Any, **others: Any) -> dict[str, Any]:
    found: dict[str, Any] = manifests(*arguments, **others)["StatefulSet"]["spec"]
    return found


def pod(*arguments: Any, **others: Any) -> dict[str, Any]:
    found: dict[str, Any] = stateful(*arguments, **others)["template"]
    return found


def container(*arguments: Any, **others: Any) -> dict[str, Any]:
    first: dict[str, Any] = pod(*arguments, **others)["spec"]["containers"][0]
    return first


def copied(fields: Mapping[str, Any] | None = None, spec: KafkaMigrationSpec | None = None,
           **of_container: Any) -> dict[str, Any]:
    """The controllers' pod's spec where the brokers' has these fields, and their container those."""
    found: dict[str, Any] = pod(spec, template_with(fields, **of_container))["spec"]
    return found


def values(environment: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By name; the last counts, as Kubernetes has it."""
    return {item["name"]: item.get("value") for item in environment}


# --- their own ----------------------------------------------------------------------------------------------------------


def test_there_are_a_service_a_budget_and_a_statefulset_of_one_name():
    made = manifests()
    assert made.keys() == {"Service", "PodDisruptionBudget", "StatefulSet"}
    assert {manifest["metadata"]["name"] for manifest in made.values()} == {"kafka-controller"}


def test_labels_are_our_own_and_no_tool_or_broker_selects_them():
    template = demo()
    template["metadata"]["labels"] |= dict.fromkeys(TRACKING, "kafka") | {"team": "streams"}
    made = manifests(template=template)
    labels = [made[kind]["metadata"]["labels"] for kind in made] + [pod(template=template)["metadata"]["labels"]]
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


MESH = {"sidecar.istio.io/inject": "true", "istio.io/rev": "stable", "azure.workload.identity/use": "true"}


def test_a_label_by_which_something_injects_is_copied_and_one_by_which_pods_are_selected_is_not():
    source = demo()
    used = {"example.org/set", "example.org/budget", "example.org/apart", "example.org/zone"}
    source["metadata"]["labels"] |= MESH | dict.fromkeys(used, "kafka") | {"team": "streams", "helm.sh/chart": "kafka-1"}
    source["spec"] |= {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"example.org/apart": "kafka"}}}]}},
        "topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"example.org/zone": "kafka"}}}]}
    selectors = ({"matchLabels": {"app": "kafka", "example.org/set": "kafka"}}, None, {},
                 {"matchExpressions": [{"key": "example.org/budget", "operator": "Exists"}]})
    own = names.controller_labels("kafka-controller", "to-kraft")
    assert controllers.pod_labels("to-kraft", spec_of(), source, selectors) == {**MESH, **own}
    made = pod(template=source)["metadata"]["labels"]
    assert MESH.items() <= made.items()
    assert source["metadata"]["labels"].items() >= MESH.items()
    of_user = with_controllers(template={"labels": {"istio.io/rev": "canary"}})
    assert controllers.pod_labels("to-kraft", of_user, source, selectors)["istio.io/rev"] == "canary"


def test_what_selects_pods_of_the_namespace_is_what_no_label_of_theirs_is_made_of():
    """As the controllers are made by the walk: by the StatefulSet's own selector and by every budget's."""
    picture = moment("ProvisionControllers", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER)
    template = deepcopy(dict(workload_of(picture).template))
    template["metadata"]["labels"] |= {"example.org/set": "kafka", "example.org/budget": "kafka", **MESH}
    state = value(picture.facts.kubernetes)
    original = {**state.originals["kafka"], "template": template}
    picture = spoil_workload(picture, template=template, selector={"matchLabels": {"example.org/set": "kafka"}},
                             selectors={"all": {"matchLabels": {"example.org/budget": "kafka"}}})
    picture = spoil(picture, "kubernetes", controllers=None, originals={"kafka": original})
    [files] = claim_and_provision(picture)
    assert isinstance(files, WriteNodeFiles)
    picture = spoil(picture, "kubernetes", node_files={"kafka": state.node_files["kafka"], "kafka-controller": files.files})
    [effect] = claim_and_provision(picture)
    assert isinstance(effect, Provide)
    made = effect.manifests[-1]
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert MESH.items() <= labels.items()
    assert not {"example.org/set", "example.org/budget"} & labels.keys()


def test_labels_of_the_user_cannot_take_ours_away():
    own = pod(with_controllers(template={"labels": {names.CONTROLLERS_LABEL: "other", "team": "kafka"}}))
    assert own["metadata"]["labels"][names.CONTROLLERS_LABEL] == "kafka-controller"
    assert own["metadata"]["labels"]["team"] == "kafka"


def test_controllers_find_each_other_before_they_are_ready():
    service = manifests()["Service"]["spec"]
    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is True


def test_they_start_together_and_are_replaced_only_by_us():
    spec = stateful()
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"] == {"type": "OnDelete"}
    assert manifests()["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize("replicas", [3, 5])
def test_there_are_as_many_as_asked_for_and_voters_for_each(replicas):
    spec = with_controllers(replicas=replicas, firstNodeId=100)
    assert stateful(spec)["replicas"] == replicas
    assert list(controllers.voters(spec, "kafka", {}).addresses) == list(range(100, 100 + replicas))


def test_voters_are_the_pods_names_in_the_headless_service():
    spec, service = spec_of(), manifests()["Service"]
    hosts = [str(address) for address in controllers.voters(spec, "kafka", {}).addresses.values()]
    assert hosts[0] == f"kafka-controller-0.{service['metadata']['name']}.kafka.svc:{service['spec']['ports'][0]['port']}"
    assert stateful()["serviceName"] == service["metadata"]["name"]


def test_a_leader_that_stops_last_has_time_for_it():
    assert copied({"terminationGracePeriodSeconds": 5})["terminationGracePeriodSeconds"] >= 30


def test_each_controller_passes_the_door_with_its_own_edits():
    spec = pod()["spec"]
    assert mount.passes(spec["containers"][0])
    assert mount.is_mounted(spec, names.node_files("kafka-controller"))
    assert not mount.is_mounted(spec, names.node_files("kafka"))
    assert spec["containers"][0]["env"][0]["name"] == mount.POD_NAME
    assert {"name": mount.RUN_VOLUME, "mountPath": "/opt/kafka/bin", "subPath": mount.COPY} in (
        spec["containers"][0]["volumeMounts"])


def test_ready_is_one_that_listens():
    own = container(with_controllers(listener={"port": 9193}))
    for probe in ("startupProbe", "readinessProbe"):
        assert own[probe]["exec"]["command"] == ["bash", "-c", controllers.READY, "ready", "9193"]
    assert own["startupProbe"]["failureThreshold"] == controllers.NEVER, "one that waits to be let in is not ended"
    assert own["readinessProbe"]["periodSeconds"] > own["startupProbe"]["periodSeconds"]
    assert own["ports"] == [{"name": "controller", "containerPort": 9193, "protocol": "TCP"}]


def test_they_get_no_token_unless_it_is_asked_for():
    assert copied({"automountServiceAccountToken": True})["automountServiceAccountToken"] is False
    asked = with_controllers(template={"automountServiceAccountToken": True})
    assert copied({"automountServiceAccountToken": False}, asked)["automountServiceAccountToken"] is True


def test_what_the_template_says_is_taken():
    own = with_controllers(template={
        "image": "kafka:own", "heapOptions": "-Xmx1g", "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "kafka", "operator": "Exists"}], "annotations": {"note": "quorum"},
        "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}, "affinity": {"nodeAffinity": {}}})
    source = template_with({"nodeSelector": {"a": "b"}, "tolerations": [{"key": "x"}]})
    source["metadata"]["annotations"] = {"note": "brokers", "other": "stays"}
    spec = pod(own, source)["spec"]
    assert spec["containers"][0]["image"] == spec["initContainers"][0]["image"] == "kafka:own"
    assert values(spec["containers"][0]["env"])["SWITCHOVER_HEAP_OPTS"] == "-Xmx1g"
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert [toleration["key"] for toleration in spec["tolerations"]] == ["kafka"]
    assert spec["affinity"] == {"nodeAffinity": {}}
    assert "topologySpreadConstraints" not in spec
    assert pod(own, source)["metadata"]["annotations"] == {"note": "quorum", "other": "stays"}


# --- what is copied -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("field", "value"), [
    ("serviceAccountName", "kafka"), ("securityContext", {"runAsUser": 7, "fsGroup": 7}),
    ("imagePullSecrets", [{"name": "registry"}]), ("nodeSelector", {"disk": "ssd"}),
    ("tolerations", [{"key": "kafka", "operator": "Exists"}]), ("priorityClassName", "high"),
    ("hostAliases", [{"ip": "10.0.0.1", "hostnames": ["zookeeper"]}]), ("dnsConfig", {"options": [{"name": "ndots"}]}),
    ("shareProcessNamespace", True), ("schedulerName", "own"), ("runtimeClassName", "gvisor")])
def test_of_the_pod_everything_is_copied_that_is_not_changed(field, value):
    assert copied({field: value})[field] == value


@pytest.mark.parametrize(("field", "value"), [
    ("image", "kafka:3.9.2"), ("imagePullPolicy", "Always"), ("command", ["bash", "-c", "exec kafka-server-start.sh x"]),
    ("args", ["x"]), ("workingDir", "/opt"), ("securityContext", {"readOnlyRootFilesystem": True}),
    ("envFrom", [{"secretRef": {"name": "passwords"}}, {"prefix": "X_", "configMapRef": {"name": "more"}}])])
def test_of_the_container_everything_is_copied_that_is_not_changed(field, value):
    assert copied(**{field: value})["containers"][0][field] == value


def test_annotations_are_copied():
    source = demo()
    source["metadata"]["annotations"] = {"vault.hashicorp.com/agent-inject": "true"}
    assert pod(template=source)["metadata"]["annotations"] == source["metadata"]["annotations"]
    assert pod()["metadata"]["annotations"] == {}
    del source["metadata"]
    assert pod(template=source)["metadata"]["annotations"] == {}


def test_variables_stay_as_they_are_and_in_their_order():
    theirs = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}, {"name": "B", "value": "$(A)"},
              {"name": "C", "value": "1"}, {"name": "C", "value": "2"}]
    environment = copied(env=theirs)["containers"][0]["env"]
    assert [item for item in environment if item["name"] in "ABC"] == theirs
    assert environment[-1] == {"name": mount.JVM_VARIABLE, "value": mount.JVM_OPTIONS}


@pytest.mark.parametrize("theirs", [
    {"name": "KAFKA_HEAP_OPTS", "value": "-Xmx32g"},
    {"name": "KAFKA_HEAP_OPTS", "valueFrom": {"configMapKeyRef": {"name": "jvm", "key": "heap"}}}])
def test_the_heap_is_the_controllers_own(theirs):
    """The door sets it. An entry script that sees a heap may edit the start script for it."""
    heap = [item for item in copied(env=[theirs])["containers"][0]["env"] if "HEAP" in item["name"]]
    assert heap == [{"name": "SWITCHOVER_HEAP_OPTS", "value": "-Xms256m -Xmx512m"}]


def test_its_resources_are_the_controllers_own():
    broker = {"requests": {"memory": "64Gi"}}
    own = copied(resources=broker)["containers"][0]
    assert own["resources"] == {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    counted = {"requests": {"cpu": "2", "ephemeral-storage": "1Gi"}, "limits": {"cpu": "4", "memory": "64Gi", "gpu": "1"}}
    for each in (made := copied(resources=counted))["initContainers"][0], made["containers"][0]:
        assert each["resources"] == {
            "requests": {"cpu": "100m", "memory": "1Gi", "ephemeral-storage": "1Gi"},
            "limits": {"cpu": "4", "memory": "2Gi"}}, "a quota that counts it refuses whoever does not say it"
    asked = with_controllers(template={"resources": {"limits": {"memory": "4Gi"}}})
    assert copied(None, asked, resources=broker)["containers"][0]["resources"] == {"limits": {"memory": "4Gi"}}


@pytest.mark.parametrize("theirs", [[], [{"name": "LOG_DIR", "value": "/var/lib/kafka/logs"},
                                         {"name": "EXTRA_ARGS", "value": "-name kafkaServer -loggc"}]])
def test_what_kafkas_own_scripts_log_does_not_fill_the_volume(theirs):
    """`LOG_DIR` and `EXTRA_ARGS` are kafka-run-class.sh's: log4j's files, never deleted, and a gigabyte of `-loggc`."""
    pod = copied(env=theirs)
    own = pod["containers"][0]
    [log_dir] = [item["value"] for item in own["env"] if item["name"] == "LOG_DIR"]
    volume = next(each["name"] for each in own["volumeMounts"] if each["mountPath"] == log_dir)
    assert {"name": volume, "emptyDir": {}} in pod["volumes"], "nor the container's memory"
    assert [item["value"] for item in own["env"] if item["name"] == "EXTRA_ARGS"] == ["-name kafkaServer"]


def test_bitnamis_entrypoint_writes_no_credentials_to_zookeeper():
    own = copied(image="bitnami/kafka", command=[], env=[{"name": SCRAM, "value": "true"}])["containers"][0]
    assert [item for item in own["env"] if item["name"] == SCRAM] == [{"name": SCRAM, "value": "false"}]


VOLUMES = [
    {"name": "config", "configMap": {"name": "kafka-config"}},
    {"name": "keys", "secret": {"secretName": "kafka-keys", "defaultMode": 0o400}},
    {"name": "csi", "csi": {"driver": "csi.cert-manager.io", "readOnly": True}},
    {"name": "rendered", "emptyDir": {"medium": "Memory"}},
    {"name": "all", "projected": {"sources": []}},
    {"name": "host", "hostPath": {"path": "/mnt"}},
]


def test_every_volume_is_copied_and_mounted_as_it_was():
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}", "readOnly": True} for volume in VOLUMES]
    mounts += [{"name": "data", "mountPath": "/var/lib/kafka", "subPath": "kafka"}]
    spec = copied({"volumes": VOLUMES}, volumeMounts=mounts)
    assert [volume for volume in spec["volumes"] if volume["name"] not in mount.OURS] == VOLUMES
    assert [each for each in spec["containers"][0]["volumeMounts"] if each["name"] not in mount.OURS] == mounts


INIT = [
    {"name": "render", "image": "busybox", "command": ["sh", "-c", "envsubst </a >/b"], "env": [{"name": "A", "value": "1"}],
     "volumeMounts": [{"name": "config", "mountPath": "/a"}]},
    {"name": "mesh", "image": "mesh", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}},
]


LAST_WORDS = {"terminationMessagePolicy": "FallbackToLogsOnError"}
"""Of every container: why it ended is in the pod's status, and so in what the migration waits for."""


def test_init_containers_are_copied_after_ours():
    first, *others, last = copied({"initContainers": INIT})["initContainers"]
    assert (first["name"], others, last["name"]) == (mount.KEEPER, [each | LAST_WORDS for each in INIT], mount.GUARDIAN)
    assert copied()["initContainers"] == [first, last]


def test_the_start_script_is_kept_in_the_controllers_own_image():
    keeper = copied(resources={"limits": {"memory": "64Gi"}}, securityContext={"runAsUser": 7})["initContainers"][0]
    assert keeper["command"][4] == SCRIPT
    assert keeper["image"] == demo()["spec"]["containers"][0]["image"]
    assert keeper["securityContext"] == {"runAsUser": 7}
    assert keeper["resources"]["limits"] == {"memory": "2Gi"}, "what the quota counts is the controllers'"


SIDECAR = {"name": "exporter", "image": "exporter", "ports": [{"name": "metrics", "containerPort": 5556}],
           "livenessProbe": {"httpGet": {"path": "/", "port": 5556}}, "env": [{"name": "KAFKA_HEAP_OPTS", "value": "mine"}]}


def test_sidecars_are_copied_whole():
    source = demo()
    source["spec"]["containers"].insert(0, SIDECAR)
    first, second = pod(template=source)["spec"]["containers"]
    assert (first["name"], second) == ("kafka", SIDECAR | LAST_WORDS)
    assert first | LAST_WORDS == first


def test_what_shall_be_omitted_is():
    source = template_with({"initContainers": [*INIT, {"name": "auto-discovery", "image": "kubectl"}]})
    source["spec"]["containers"].append(SIDECAR)
    spec = pod(with_controllers(template={"omit": ["auto-discovery", "mesh", "exporter", "nobody"]}), source)["spec"]
    assert [each["name"] for each in spec["initContainers"]] == [mount.KEEPER, "render", mount.GUARDIAN]
    assert [each["name"] for each in spec["containers"]] == ["kafka"]


def test_the_container_that_runs_kafka_cannot_be_omitted():
    assert container(with_controllers(template={"omit": ["kafka"]}))["name"] == "kafka"


def test_a_start_script_of_the_users_is_what_is_kept():
    """Mounted over the image's own, it gives way to its copy in the container alone."""
    theirs = {"name": "scripts", "mountPath": SCRIPT, "subPath": "start.sh"}
    spec = copied(volumeMounts=[theirs, {"name": "data", "mountPath": "/var/lib/kafka"}])
    assert SCRIPT not in {each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
    assert theirs in spec["initContainers"][0]["volumeMounts"]


def test_a_copy_of_a_template_that_is_ours_already_has_everything_once():
    """A revision kept by hand may be one."""
    source = demo()
    own = source["spec"]["containers"][0]
    source["spec"]["volumes"] = mount.volumes("kafka-switchover", source["spec"]["volumes"])
    source["spec"]["initContainers"] = [mount.init_container(SCRIPT, own)]
    own |= {"volumeMounts": mount.mounts(SCRIPT, own), "env": [{"name": mount.POD_NAME, "value": "x"}]}
    spec, clean = pod(template=source)["spec"], pod(template=template_with(env=[]))["spec"]
    assert spec == clean


# --- what is not --------------------------------------------------------------------------------------------------------


def test_probes_and_hooks_of_brokers_are_not_copied():
    """They ask for what a broker has."""
    probe = {"exec": {"command": ["kafka-topics.sh"]}}
    asked = dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), probe)
    own = copied(**asked, lifecycle={"preStop": probe})["containers"][0]
    assert own.keys() & {"livenessProbe", "lifecycle"} == set()
    assert probe not in (own["startupProbe"], own["readinessProbe"])


def test_ports_of_brokers_are_not_copied_and_no_port_is_the_nodes():
    """A hostPort can only be had once on a node, where the broker has it."""
    source = template_with(ports=[{"containerPort": 9092, "hostPort": 9092}, {"containerPort": 9999}])
    own = {**SIDECAR, "ports": [{"name": "metrics", "containerPort": 5556, "hostPort": 5556}]}
    source["spec"]["containers"].append(own)
    source["spec"] |= {"initContainers": [{**own, "name": "mesh", "restartPolicy": "Always"}], "hostNetwork": True}
    spec = pod(template=source)["spec"]
    assert [port["containerPort"] for port in spec["containers"][0]["ports"]] == [9093]
    assert spec["containers"][1]["ports"] == [{"name": "metrics", "containerPort": 5556}]
    assert "hostPort" not in json.dumps(spec)
    assert "hostNetwork" not in spec


AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "kafka"}}}]},
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}


def test_they_go_where_brokers_may_but_apart_from_one_another():
    spec = copied({"affinity": AFFINITY, "hostname": "kafka", "subdomain": "kafka", "nodeName": "a"})
    assert spec.keys() & {"hostname", "subdomain", "nodeName"} == set()
    assert spec["affinity"].keys() == {"nodeAffinity", "podAntiAffinity"}
    assert spec["affinity"]["nodeAffinity"] == AFFINITY["nodeAffinity"]
    term = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"].items() <= pod()["metadata"]["labels"].items()


@pytest.mark.parametrize("affinity", [None, {}, {"podAntiAffinity": AFFINITY["podAntiAffinity"]}, {"nodeAffinity": None}])
def test_without_an_affinity_for_nodes_they_spread_all_the_same(affinity):
    assert copied({"affinity": affinity})["affinity"].keys() == {"podAntiAffinity"}


def test_they_spread_over_zones_by_their_own_labels():
    (spread,) = pod()["spec"]["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("topology.kubernetes.io/zone", "ScheduleAnyway")
    assert spread["labelSelector"] == {"matchLabels": {names.CONTROLLERS_LABEL: "kafka-controller"}}


# --- the metadata log ---------------------------------------------------------------------------------------------------


def test_their_volumes_outlive_them():
    spec = stateful()
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}, (
        "the cluster's default class")
    assert claim["metadata"] == {"name": "data", "labels": names.controller_labels("kafka-controller", "to-kraft")}


def test_the_storage_class_is_the_users():
    spec = with_controllers(storage={"size": "8Gi", "storageClassName": "fast"})
    claim = stateful(spec)["volumeClaimTemplates"][0]["spec"]
    assert (claim["storageClassName"], claim["resources"]["requests"]["storage"]) == ("fast", "8Gi")


def log_dir(template: Mapping[str, Any], **settings: str) -> str:
    return controllers.log_dir({"template": template}, known_of(template, spec_of(), **settings))


def on_disks(*mounts: Mapping[str, Any]) -> dict[str, Any]:
    return template_with({"volumes": []}, volumeMounts=list(mounts))


@pytest.mark.parametrize(("mounts", "directories", "volume", "directory"), [
    ([{"name": "data", "mountPath": "/data"}], "/data/logs", "data", "/data/kraft-controller"),
    ([{"name": "data", "mountPath": "/data/"}], "/data", "data", "/data/kraft-controller"),
    ([{"name": "d1", "mountPath": "/d/1"}, {"name": "d2", "mountPath": "/d/2"}], "/d/2/x,/d/1/x", "d2",
     "/d/2/kraft-controller"),
    ([{"name": "root", "mountPath": "/d"}, {"name": "deep", "mountPath": "/d/deep"}], "/d/deep/x", "deep",
     "/d/deep/kraft-controller"),
    ([{"name": "data", "mountPath": "/data", "subPathExpr": "$(ME)"}], "/data", "data", "/data/kraft-controller"),
])
def test_the_log_lies_beside_the_brokers_directory_on_a_volume_of_its_own(mounts, directories, volume, directory):
    """Other claims are empty directories: their paths exist, and nothing of a broker is on them."""
    source, claims = on_disks(*mounts), [each["name"] for each in mounts]
    assert log_dir(source, log_dirs=directories) == directory
    spec = stateful(template=source, claims=claims, log_dirs=directories)
    assert [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]] == [volume]
    own = spec["template"]["spec"]
    assert [each for each in own["volumes"] if each["name"] not in mount.OURS] == [
        {"name": claim, "emptyDir": {}} for claim in claims if claim != volume]
    assert [each for each in own["containers"][0]["volumeMounts"] if each["name"] not in mount.OURS] == mounts


@pytest.mark.parametrize("kind", [{"emptyDir": {}}, {"hostPath": {"path": "/mnt"}}, {"ephemeral": {}}])
def test_a_volume_of_brokers_that_is_no_claim_becomes_one(kind):
    source = on_disks({"name": "logs", "mountPath": "/data"})
    source["spec"]["volumes"] = [{"name": "logs", **kind}]
    spec = stateful(template=source, claims=(), log_dirs="/data")
    assert [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]] == ["logs"]
    assert {volume["name"] for volume in spec["template"]["spec"]["volumes"]} == set(mount.OURS)


@pytest.mark.parametrize("mounts", [None, [], [{"name": "config", "mountPath": "/etc/kafka"}]])
def test_where_data_lies_on_no_volume_the_log_has_one_all_the_same(mounts):
    source = demo()
    own = source["spec"]["containers"][0]
    own["volumeMounts"] = mounts
    if mounts is None:
        del own["volumeMounts"]
    assert log_dir(source) == "/var/lib/kafka-controller/kraft-controller"
    spec = stateful(template=source, claims=())
    (claim,) = spec["volumeClaimTemplates"]
    assert {"name": claim["metadata"]["name"], "mountPath": "/var/lib/kafka-controller"} in (
        spec["template"]["spec"]["containers"][0]["volumeMounts"])


def guard_of(template: Mapping[str, Any], claims: Sequence[str] = ("data",), **settings: str) -> dict[str, Any]:
    found: dict[str, Any] = stateful(template=template, claims=claims, **settings)["template"]["spec"]["initContainers"][-1]
    assert found["name"] == mount.GUARDIAN
    return found


def test_no_broker_can_start_where_one_would_have_its_data():
    """Last, so that nothing which looks for an empty volume sees it, and on the controllers' own volume."""
    guard = guard_of(template_with(securityContext={"runAsUser": 7}))
    assert guard["command"] == ["bash", "-c", GUARD, mount.GUARDIAN, "/var/lib/kafka/data"]
    assert guard["volumeMounts"] == [DATA]
    assert guard["securityContext"] == {"runAsUser": 7}


def test_a_directory_by_the_pods_name_is_guarded_by_the_controllers_own():
    guard = guard_of(demo(), log_dirs="/var/lib/kafka/kafka-12/data-kafka-12")
    place = f"/var/lib/kafka/$({mount.POD_NAME})/data-$({mount.POD_NAME})"
    assert guard["command"][-1] == place
    assert [item["name"] for item in guard["env"]] == [mount.POD_NAME]


def test_a_release_in_a_directory_is_no_pods_name():
    source = template_with(volumeMounts=[{"name": "data", "mountPath": "/opt/kafka-3.9.2/data"}])
    assert guard_of(source, log_dirs="/opt/kafka-3.9.2/data")["command"][-1] == "/opt/kafka-3.9.2/data"


def test_a_volume_mounted_by_a_variable_is_guarded_with_that_variable():
    theirs = [{"name": "ME", "value": "x"}, {"name": mount.POD_NAME, "value": "y"}]
    source = template_with(env=theirs, volumeMounts=[{**DATA, "subPathExpr": "$(ME)"}])
    names_ = [item["name"] for item in guard_of(source)["env"]]
    assert names_[0] == mount.POD_NAME
    assert "ME" in names_
    assert names_.count(mount.POD_NAME) == 1


def test_where_data_lies_on_no_volume_there_is_nothing_to_guard():
    spec = copied(volumeMounts=[])
    assert mount.GUARDIAN not in [each["name"] for each in spec["initContainers"]]


def test_a_volume_of_another_use_is_not_taken_for_the_log():
    """Whatever its name is."""
    source = on_disks({"name": "data", "mountPath": "/keys"})
    source["spec"]["volumes"] = [{"name": "data", "secret": {"secretName": "keys"}}]
    spec = stateful(template=source, claims=(), log_dirs="/tmp/kafka-logs")
    assert {"name": "data", "secret": {"secretName": "keys"}} in spec["template"]["spec"]["volumes"]
    assert [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]] != ["data"]


def assert_consistent(spec: Mapping[str, Any]) -> None:
    """What the API server asks of a StatefulSet's volumes, mounts and names."""
    own = spec["template"]["spec"]
    volumes = [each["name"] for each in own["volumes"]]
    claims = [each["metadata"]["name"] for each in spec["volumeClaimTemplates"]]
    assert len({*volumes, *claims}) == len(volumes) + len(claims), "a name is there twice"
    all_containers = [*own["containers"], *own["initContainers"]]
    assert len({each["name"] for each in all_containers}) == len(all_containers)
    for each in all_containers:
        mounts = each.get("volumeMounts") or []
        assert {found["name"] for found in mounts} <= {*volumes, *claims}
        paths = [found["mountPath"] for found in mounts]
        assert len(set(paths)) == len(paths), "a path is there twice"


# --- as they are in public (public-cases.md BH-04 and BH-25) ------------------------------------------------------------


def everything() -> dict[str, Any]:
    return template_with({"volumes": VOLUMES, "initContainers": INIT, "affinity": AFFINITY}, volumeMounts=[
        *({"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in VOLUMES),
        {"name": "data", "mountPath": "/var/lib/kafka"}, {"name": "data-2", "mountPath": "/var/lib/kafka-2"}])


@pytest.mark.parametrize("claims", [("data", "data-2"), ("data-2", "data")])
def test_a_pod_with_everything_is_one_that_kubernetes_takes(claims):
    assert_consistent(stateful(template=everything(), claims=claims))
    assert_consistent(stateful())


KEYS = {"name": "keys", "mountPath": "/keys"}


@pytest.mark.parametrize(("volume", "init"), [
    ({"csi": {"driver": "secrets-store.csi.k8s.io", "volumeAttributes": {"secretProviderClass": "kafka"}}}, None),
    ({"emptyDir": {}}, {"name": "pem-to-jks", "image": "kafka", "command": ["bash", "-c", "keytool -importkeystore"],
                        "envFrom": [{"secretRef": {"name": "store"}}], "volumeMounts": [KEYS]}),
], ids=["csi", "emptyDir"])
def test_a_keystore_is_there_wherever_it_comes_from(volume, init):
    """BH-04: mounted from a driver, or made of PEM by an init container, whose own variables come along."""
    fields = {"volumes": [{"name": "keys", **volume}], "initContainers": [init] if init else []}
    spec = copied(fields, volumeMounts=[KEYS, DATA])
    assert {"name": "keys", **volume} in spec["volumes"]
    assert KEYS in spec["containers"][0]["volumeMounts"]
    assert spec["initContainers"][1:-1] == [each | LAST_WORDS for each in fields["initContainers"]]


def test_a_login_file_is_there_however_its_option_is_given():
    """BH-04: the option from a ConfigMap, passwords from envFrom, the file itself from a Secret, classes by CLASSPATH."""
    environment = [{"name": "KAFKA_OPTS", "valueFrom": {"configMapKeyRef": {"name": "options", "key": "kafka"}}},
                   {"name": "CLASSPATH", "value": "/plugins/*"}]
    mounts = [{"name": "login", "mountPath": "/etc/login"}, {"name": "plugins", "mountPath": "/plugins"}, DATA]
    volumes = [{"name": "login", "secret": {"secretName": "jaas"}}, {"name": "plugins", "emptyDir": {}}]
    passwords = [{"secretRef": {"name": "passwords"}}]
    own = copied({"volumes": volumes}, env=environment, envFrom=passwords, volumeMounts=mounts)
    assert [item for item in own["containers"][0]["env"] if item["name"] in ("KAFKA_OPTS", "CLASSPATH")] == environment
    assert own["containers"][0]["envFrom"] == passwords
    assert own["volumes"][:2] == volumes
    assert own["containers"][0]["volumeMounts"][:3] == mounts


def test_settings_on_the_brokers_command_line_reach_the_controllers():
    """BH-25: the same command starts them, and what it says is in the file that the door makes."""
    command = ["sh", "-c", "exec /opt/kafka/bin/kafka-server-start.sh x.properties --override zookeeper.connect=zk:2181/"
                           " --override default.replication.factor=3 --override log.dirs=$(DATA)/logs"]
    own = copied(command=command, env=[{"name": "DATA", "value": "/var/lib/kafka"}])["containers"][0]
    assert own["command"] == command
    assert values(own["env"])["DATA"] == "/var/lib/kafka"
    assert mount.passes(own)


def test_manifests_are_plain_json_and_the_same_each_time():
    assert json.loads(json.dumps(manifests(template=everything()))) == manifests(template=everything())
    assert re.search(r"kafka-switchover\b", json.dumps(manifests())) is None, "the brokers' own Secret"


# --- what its first start finds out, and what its later ones must not wait for ---------------------------------------------


def test_it_tries_whether_brokers_take_its_connections():
    source = template_with(securityContext={"runAsUser": 7})
    told = ("kafka-0.kafka-headless.kafka.svc:9092", "[fd00::1]:9092")
    own = spec_of()
    made = controllers.manifests("to-kraft", own, own.brokers[0], {"template": source, "updateStrategy": {}}, ("data",),
                                 known_of(source, own), told)
    first, tries, last = made[-1]["spec"]["template"]["spec"]["initContainers"]
    assert (first["name"], tries["name"], last["name"]) == (mount.KEEPER, reports.REACH, mount.GUARDIAN)
    assert tries["command"] == ["bash", "-c", REACH, reports.REACH, *told]
    run = {"name": mount.FILES_VOLUME, "mountPath": mount.RUN}
    assert (tries["securityContext"], tries["volumeMounts"]) == ({"runAsUser": 7}, [run])


CONFLUENT = {"image": "confluentinc/cp-kafka:7.9.0"}
CONNECT = {"name": "KAFKA_ZOOKEEPER_CONNECT", "value": "zookeeper:2181"}
SKIPPED = {"name": "KAFKA_ZOOKEEPER_SSL_CLIENT_ENABLE", "value": "true"}
VOTERS = Voters({3000: Address("c", 9093)}, ControllerListener("CONTROLLER", 9093, "PLAINTEXT", {}))


@pytest.mark.parametrize(("of_container", "told"), [
    ({**CONFLUENT, "env": [CONNECT]}, True),
    ({**CONFLUENT, "env": [CONNECT, SKIPPED]}, False),                 # it is the user's: ZooKeeper is reached by TLS
    ({"env": [CONNECT]}, False),
])
def test_an_entrypoint_that_waits_for_zookeeper_is_told_not_to(of_container, told):
    """The property that the image makes of the variable is no setting of the controllers'."""
    source = template_with(**of_container)
    found = container(template=source)
    assert (SKIPPED in found["env"]) == (SKIPPED in of_container["env"] or told)
    assert zookeeper_users.users({"spec": {"containers": [found]}}, "zookeeper:2181") == ()
    own = spec_of()
    directives = edits.controller(Mode.MIGRATION_CONTROLLER, 3000, VOTERS, known_of(source, own), "cluster",
                                  "/data/kraft-controller")
    assert ("drop zookeeper.ssl.client.enable" in directives) == told
