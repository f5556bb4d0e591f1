"""The one change of the brokers' template: what it looks like, what it leaves alone, and how it is told and taken back."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest

from switchover.api.kafka_migration import BrokerSet
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import names, template
from switchover.cluster.door import brokers, mount
from switchover.cluster.door.brokers import SCRIPTS, ContainerMissing
from switchover.cluster.door.mount import KEEP
from switchover.cluster.template import changed_back, is_ours, is_outdated, original_manifest, patch, would_restart
from switchover.kubernetes import reports
from switchover.kubernetes.workloads import Workload
from unit.pictures import Cluster, given, moment, stateful_set, workload_of

APACHE, BITNAMI, CONFLUENT = SCRIPTS
OWN = BrokerSet(name="kafka")
POD_NAME = {"name": mount.POD_NAME, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}
SCRAM = "KAFKA_ZOOKEEPER_BOOTSTRAP_SCRAM_USERS"


def workload(manifest: dict[str, Any]) -> Workload:
    return Cluster(manifest=manifest).workload()


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return found


def broker_of(manifest: dict[str, Any]) -> dict[str, Any]:
    return next(item for item in pod_of(manifest)["containers"] if "kafka" in item["name"])


def patched(manifest: dict[str, Any], own: BrokerSet = OWN) -> dict[str, Any]:
    operations = patch(workload(manifest), own)
    result: dict[str, Any] = jsonpatch.apply_patch(manifest, [dict(operation) for operation in operations])
    return result


def test_brokers_that_are_upgraded_get_the_image_and_their_original_keeps_its_own():
    before = stateful_set()
    operations = patch(workload(before), OWN, "kafka:3.9")
    after = jsonpatch.apply_patch(before, [dict(operation) for operation in operations])
    pod = after["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "kafka:3.9"
    assert next(each for each in pod["initContainers"] if each["name"] == mount.KEEPER)["image"] == "kafka:3.9"
    assert changed_back(workload(after), OWN, "kafka:3.9") == ()
    pod["containers"][0]["image"] = "kafka:3.8"
    assert changed_back(workload(after), OWN, "kafka:3.9") == ("image",)
    assert changed_back(workload(after), OWN) == ()


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The demo's StatefulSet with its broker's container changed."""
    manifest = stateful_set()
    change(broker_of(manifest))
    return manifest


# --- templates of every kind --------------------------------------------------------------------------------------------


def bare() -> dict[str, Any]:
    """As little as a container can have: its image's own entrypoint, and nothing mounted."""
    manifest = stateful_set()
    pod = pod_of(manifest)
    pod["containers"] = [{"name": "kafka", "image": "apache/kafka"}]
    del pod["volumes"]
    return manifest


def second_container() -> dict[str, Any]:
    """The broker is not the first container."""
    manifest = stateful_set()
    pod_of(manifest)["containers"].insert(0, {"name": "metrics", "image": "metrics", "volumeMounts": [
        {"name": "config", "mountPath": "/etc/kafka"}]})
    return manifest


def init_containers() -> dict[str, Any]:
    """One that ends, and one that stays beside the broker."""
    manifest = stateful_set()
    pod_of(manifest)["initContainers"] = [
        {"name": "render", "image": "busybox", "volumeMounts": [{"name": "config", "mountPath": "/x"}]},
        {"name": "mesh", "image": "mesh", "restartPolicy": "Always"}]
    return manifest


def bitnami() -> dict[str, Any]:
    """The chart's: a file that an init container writes, mounted by subPath; credentials of SCRAM at every start."""
    manifest = stateful_set()
    pod = pod_of(manifest)
    pod["initContainers"] = [{"name": "kafka-init", "image": "bitnami/kafka", "env": [{"name": SCRAM, "value": "true"}]}]
    pod["containers"] = [{
        "name": "kafka", "image": "bitnami/kafka:3.9", "securityContext": {"readOnlyRootFilesystem": True},
        "env": [{"name": "BITNAMI_DEBUG", "value": "false"}, {"name": SCRAM, "value": "true"}],
        "envFrom": [{"secretRef": {"name": "kafka-passwords"}}],
        "volumeMounts": [{"name": "data", "mountPath": "/bitnami/kafka"},
                         {"name": "kafka-config", "mountPath": "/opt/bitnami/kafka/config/server.properties",
                          "subPath": "server.properties"}]}]
    pod["volumes"] = [{"name": "kafka-config", "emptyDir": {}}]
    return manifest


def by_ordinal() -> dict[str, Any]:
    """Each pod has its own directory on the volume, which a variable of the container names."""
    manifest = stateful_set()
    broker = broker_of(manifest)
    broker["env"].append({"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
    broker["volumeMounts"][1] |= {"subPathExpr": "$(ME)/data"}
    return manifest


def doubled() -> dict[str, Any]:
    """A variable twice, as YAML made of pieces has it; the last one counts."""
    return changed(lambda broker: broker["env"].extend([{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]))


def own_directory() -> dict[str, Any]:
    """All of the image's scripts are the user's own."""
    manifest = changed(lambda broker: broker["volumeMounts"].append({"name": "bin", "mountPath": "/opt/kafka/bin/"}))
    pod_of(manifest)["volumes"].append({"name": "bin", "configMap": {"name": "scripts", "defaultMode": 0o755}})
    return manifest


TEMPLATES = {"the demo": stateful_set, "next to nothing": bare, "another container first": second_container,
             "init containers": init_containers, "Bitnami's chart": bitnami, "directories by name": by_ordinal,
             "a variable twice": doubled, "scripts of their own": own_directory}
each_template = pytest.mark.parametrize("manifest_of", TEMPLATES.values(), ids=TEMPLATES)


# --- the change ---------------------------------------------------------------------------------------------------------


@each_template
def test_the_change_makes_a_template_ours(manifest_of):
    before = manifest_of()
    assert not is_ours(workload(before), OWN)
    assert is_ours(workload(patched(before)), OWN)


def without_ours(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as it would be without what the change adds; lists that are empty then are gone."""
    found = deepcopy(manifest)
    pod, broker = pod_of(found), broker_of(found)
    found["spec"]["updateStrategy"] = "any"
    pod["initContainers"] = [
        each for each in pod.get("initContainers", []) if each["name"] not in (mount.KEEPER, reports.DISKS)]
    pod["volumes"] = [each for each in pod.get("volumes", []) if each["name"] not in mount.OURS]
    broker["volumeMounts"] = [each for each in broker.get("volumeMounts", []) if each["name"] not in mount.OURS]
    broker["env"] = [each for each in broker.get("env", [])
                     if each["name"] not in (mount.POD_NAME, mount.JVM_VARIABLE, SCRAM)]
    for part, field in ((pod, "initContainers"), (pod, "volumes"), (broker, "volumeMounts"), (broker, "env")):
        if not part[field]:
            del part[field]
    return found


@each_template
def test_the_change_takes_nothing_away_and_moves_nothing(manifest_of):
    assert without_ours(patched(manifest_of())) == without_ours(manifest_of())


@each_template
def test_the_change_twice_is_the_change_once(manifest_of):
    """So it is where somebody gave the strategy back between."""
    once = patched(manifest_of())
    once["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    assert patched(once) == patched(manifest_of())


@each_template
def test_pods_are_replaced_by_nobody_else_from_now_on(manifest_of):
    assert patched(manifest_of())["spec"]["updateStrategy"] == {"type": "OnDelete"}


@each_template
def test_the_change_reads_the_template_and_does_not_alter_it(manifest_of):
    manifest = manifest_of()
    patch(workload(manifest), OWN)
    assert manifest == manifest_of()


def test_the_change_fails_on_a_template_that_somebody_changed_since_it_was_read():
    operations = patch(workload(stateful_set()), OWN)
    manifest = stateful_set()
    manifest["metadata"]["generation"] += 1            # as the API server counts a change of the spec
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(manifest, [dict(operation) for operation in operations])


@pytest.mark.parametrize(("manifest_of", "own", "place", "copy"), [
    (stateful_set, OWN, "/opt/kafka/bin", "start"), (bitnami, OWN, "/opt/bitnami/kafka/bin", "start"),
    (stateful_set, BrokerSet.model_validate({"name": "kafka", "start": {"preset": "Confluent"}}),
     CONFLUENT, "start/kafka-server-start"),
    (bare, BrokerSet.model_validate({"name": "kafka", "start": {"script": "/kafka/start.sh"}}),
     "/kafka/start.sh", "start/start.sh")])
def test_a_copy_of_the_start_script_lies_in_its_place_with_the_door_and_the_pods_edits(manifest_of, own, place, copy):
    manifest = patched(manifest_of(), own)
    assert [each for each in broker_of(manifest)["volumeMounts"] if each["name"] in mount.OURS] == [
        {"name": mount.RUN_VOLUME, "mountPath": place, "subPath": copy},
        {"name": mount.VOLUME, "mountPath": mount.SCRIPT, "subPath": mount.SCRIPT_KEY, "readOnly": True},
        {"name": mount.VOLUME, "mountPath": mount.EDITS, "subPathExpr": f"$({mount.POD_NAME})", "readOnly": True},
        {"name": mount.FILES_VOLUME, "mountPath": "/run/switchover"}]
    assert pod_of(manifest)["volumes"][-3:] == [
        {"name": mount.VOLUME, "secret": {"secretName": names.node_files("kafka"), "defaultMode": 0o555}},
        {"name": mount.RUN_VOLUME, "emptyDir": {}},
        {"name": mount.FILES_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}]


def test_what_the_door_writes_for_kafka_never_reaches_a_disk():
    """It holds the passwords of the user's file, and what lay on a node's disk is there when the pod is gone."""
    kinds = {each["name"]: each.get("emptyDir", {}).get("medium") for each in pod_of(patched(stateful_set()))["volumes"]}
    mounted = {each["mountPath"]: each["name"] for each in broker_of(patched(stateful_set()))["volumeMounts"]}
    assert kinds[mounted[mount.RUN]] == "Memory"


def test_a_template_of_the_release_before_stays_as_it_is():
    """Another template would restart every broker once more in the middle of a migration."""
    manifest = patched(stateful_set())
    pod = pod_of(manifest)
    pod["volumes"] = [each for each in pod["volumes"] if each["name"] != mount.FILES_VOLUME]
    broker = broker_of(manifest)
    broker["volumeMounts"] = [{**each, "name": mount.RUN_VOLUME} if each["mountPath"] == mount.RUN else each
                              for each in broker["volumeMounts"]]
    assert template.is_ours(workload(manifest), OWN)
    assert {each["path"] for each in template.patch(workload(manifest), OWN)[1:]} == {"/spec/updateStrategy"}
    assert template.without_ours(manifest["spec"]["template"], OWN) == template.without_ours(
        patched(stateful_set())["spec"]["template"], OWN)


def test_the_change_is_to_the_container_that_runs_kafka_alone():
    before, after = second_container(), patched(second_container())
    assert pod_of(after)["containers"][0] == pod_of(before)["containers"][0]
    named = BrokerSet(name="kafka", container="metrics")
    assert pod_of(patched(before, named))["containers"][1] == pod_of(before)["containers"][1]
    assert is_ours(workload(patched(before, named)), named)
    assert not is_ours(workload(patched(before, named)), OWN), "another container"


def test_a_container_that_is_not_there_is_no_change_at_all():
    missing = BrokerSet(name="kafka", container="broker")
    with pytest.raises(ContainerMissing, match="there is no container broker; the pod has: kafka"):
        patch(workload(stateful_set()), missing)
    assert changed_back(workload(patched(stateful_set())), missing) == ("mounts",)


# --- variables ----------------------------------------------------------------------------------------------------------


@each_template
def test_the_pods_name_comes_first_and_the_name_cache_is_short(manifest_of):
    environment = broker_of(patched(manifest_of()))["env"]
    assert environment[0] == POD_NAME
    assert environment[-1] == {"name": mount.JVM_VARIABLE, "value": mount.JVM_OPTIONS}
    assert [item["name"] for item in environment].count(mount.POD_NAME) == 1


def test_a_variable_of_the_pods_name_gives_way_to_ours():
    manifest = changed(lambda broker: broker["env"].append({"name": mount.POD_NAME, "value": "x"}))
    assert [item for item in broker_of(patched(manifest))["env"] if item["name"] == mount.POD_NAME] == [POD_NAME]


def test_options_of_the_users_jvm_stay():
    manifest = changed(lambda broker: broker["env"].insert(0, {"name": mount.JVM_VARIABLE, "value": "-Down=1"}))
    found = [item["value"] for item in broker_of(patched(manifest))["env"] if item["name"] == mount.JVM_VARIABLE]
    assert found == [f"-Down=1 {mount.JVM_OPTIONS}"]


@pytest.mark.parametrize("theirs", [
    [{"name": SCRAM, "value": "true"}], [], [{"name": SCRAM, "value": "true"}, {"name": SCRAM, "value": "yes"}],
    [{"name": SCRAM, "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}]])
def test_bitnamis_entrypoint_writes_no_credentials_to_zookeeper_any_more(theirs):
    """It would past dual write, and end in KRaft mode, where it finds no zookeeper.connect."""
    manifest = bitnami()
    broker_of(manifest)["env"] = [{"name": "FIRST", "value": "1"}, *theirs]
    after = patched(manifest)
    assert [item for item in broker_of(after)["env"] if item["name"] == SCRAM] == [{"name": SCRAM, "value": "false"}]
    assert pod_of(after)["initContainers"][1] == pod_of(manifest)["initContainers"][0], "theirs is what it was"


def test_a_variable_of_bitnamis_is_no_business_of_other_images():
    manifest = changed(lambda broker: broker["env"].append({"name": SCRAM, "value": "true"}))
    assert {"name": SCRAM, "value": "true"} in broker_of(patched(manifest))["env"]


# --- init containers ----------------------------------------------------------------------------------------------------


def keeper_of(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod_of(manifest)["initContainers"][0]
    assert found["name"] == mount.KEEPER
    return found


@each_template
def test_ours_come_first_and_last_and_the_users_between(manifest_of):
    theirs = pod_of(manifest_of()).get("initContainers", [])
    first, *between, last = pod_of(patched(manifest_of()))["initContainers"]
    assert (first["name"], between, last["name"]) == (mount.KEEPER, theirs, reports.DISKS)


def test_ours_are_there_once():
    manifest = init_containers()
    theirs = list(pod_of(manifest)["initContainers"])
    pod_of(manifest)["initContainers"] += [{"name": reports.DISKS, "image": "old"}, {"name": mount.KEEPER, "image": "old"}]
    assert pod_of(patched(manifest))["initContainers"][1:-1] == theirs


@each_template
def test_the_start_script_is_kept_in_the_brokers_own_image(manifest_of):
    broker, keeper = broker_of(manifest_of()), keeper_of(patched(manifest_of()))
    script, place, *known = keeper["command"][4:]
    assert keeper["command"][:4] == ["bash", "-c", KEEP, mount.KEEPER]
    assert {script, *known} == set(SCRIPTS)
    assert place in {each["mountPath"] for each in broker_of(patched(manifest_of()))["volumeMounts"]}
    assert keeper["volumeMounts"][-1] == {"name": mount.RUN_VOLUME, "mountPath": mount.RUN}
    for field in ("image", "imagePullPolicy", "securityContext", "resources"):
        assert keeper.get(field) == broker.get(field)
    assert "env" not in keeper


def test_the_disks_are_seen_where_the_broker_sees_them():
    pod, broker = pod_of(by_ordinal()), broker_of(by_ordinal())
    assert pod_of(patched(by_ordinal()))["initContainers"][-1] == mount.disks_container(pod, broker)


def own_script(**fields: Any) -> dict[str, Any]:
    """The start script is the user's own, mounted by itself."""
    manifest = changed(lambda broker: broker["volumeMounts"].insert(
        0, {"name": "scripts", "mountPath": APACHE, "subPath": "start.sh", **fields}))
    pod_of(manifest)["volumes"].append({"name": "scripts", "configMap": {"name": "scripts"}})
    return manifest


def test_a_start_script_of_the_users_gives_way_and_is_what_is_kept():
    theirs = {"name": "scripts", "mountPath": APACHE, "subPath": "start.sh"}
    after = patched(own_script())
    assert APACHE not in {each["mountPath"] for each in broker_of(after)["volumeMounts"]}
    assert keeper_of(after)["volumeMounts"][:-1] == [theirs]
    assert "scripts" in {volume["name"] for volume in pod_of(after)["volumes"]}


def test_a_start_script_of_the_users_is_kept_by_the_change_twice_as_well():
    once = patched(own_script())
    once["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    assert patched(once) == patched(own_script())


def test_a_directory_of_the_users_scripts_stays_below_the_door():
    after = patched(own_directory())
    theirs = {"name": "bin", "mountPath": "/opt/kafka/bin/"}
    assert theirs in broker_of(after)["volumeMounts"]
    assert {"name": mount.RUN_VOLUME, "mountPath": APACHE, "subPath": "start/kafka-server-start.sh"} in (
        broker_of(after)["volumeMounts"])
    assert keeper_of(after)["volumeMounts"][:-1] == [theirs]


def test_a_mount_by_a_variable_has_that_variable_in_the_init_container():
    manifest = own_script()
    broker = broker_of(manifest)
    broker["volumeMounts"][0] = {"name": "scripts", "mountPath": APACHE, "subPathExpr": "$(NAMESPACE)/start.sh"}
    broker["envFrom"] = [{"configMapRef": {"name": "more"}}]
    keeper = keeper_of(patched(manifest))
    assert (keeper["env"], keeper["envFrom"]) == (broker["env"], broker["envFrom"])


# --- somebody changes it back -------------------------------------------------------------------------------------------


def back(part: str) -> dict[str, Any]:
    """A template that was ours, of which somebody has changed a part."""
    manifest = patched(stateful_set())
    pod, broker = pod_of(manifest), broker_of(manifest)
    script = next(each for each in broker["volumeMounts"] if each["mountPath"] == mount.SCRIPT)
    copy = next(each for each in broker["volumeMounts"] if each.get("subPath") == mount.COPY)
    edits = next(each for each in broker["volumeMounts"] if each["mountPath"] == mount.EDITS)
    match part:
        case "the strategy":
            manifest["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
        case "the volume":
            pod["volumes"] = [each for each in pod["volumes"] if each["name"] != mount.VOLUME]
        case "all volumes":
            del pod["volumes"]
        case "the volume's Secret":
            next(each for each in pod["volumes"] if each["name"] == mount.VOLUME)["secret"]["secretName"] = "another"
        case "the volume's kind":
            next(each for each in pod["volumes"] if each["name"] == mount.VOLUME).pop("secret")
        case "the door":
            broker["volumeMounts"].remove(script)
        case "the copy of the start script":
            broker["volumeMounts"].remove(copy)
        case "the door's volume: the hybrid of a client-side apply":
            script["name"] = "config"
        case "the door's key":
            script["subPath"] = "kafka-0"
        case "the edits":
            broker["volumeMounts"].remove(edits)
        case "the edits' expression":
            del edits["subPathExpr"]
        case "the edits' variable":
            edits["subPathExpr"] = "$(HOSTNAME)"
        case "all mounts":
            del broker["volumeMounts"]
        case "the init container":
            del pod["initContainers"][0]
        case "all init containers":
            del pod["initContainers"]
        case "the container":
            broker["name"] = "broker"
            pod["containers"].append({"name": "kafka", "image": "kafka"})
    return manifest


@pytest.mark.parametrize(("part", "told"), [
    ("the strategy", "strategy"), ("the volume", "volumes"), ("all volumes", "volumes"), ("the volume's Secret", "volumes"),
    ("the volume's kind", "volumes"), ("the door", "mounts"), ("the door's key", "mounts"), ("the edits", "mounts"),
    ("the copy of the start script", "mounts"),
    ("the door's volume: the hybrid of a client-side apply", "mounts"), ("the edits' expression", "mounts"),
    ("the edits' variable", "mounts"), ("all mounts", "mounts"), ("the init container", "mounts"),
    ("all init containers", "mounts"), ("the container", "mounts")])
def test_a_template_of_which_one_part_was_changed_back_is_not_ours(part, told):
    found = workload(back(part))
    assert changed_back(found, OWN) == (told,)
    assert not is_ours(found, OWN)


def test_a_template_of_the_release_before_is_ours():
    """The door itself lies over the start script there."""
    manifest = patched(stateful_set())
    broker = broker_of(manifest)
    broker["volumeMounts"] = [each for each in broker["volumeMounts"] if each.get("subPath") != mount.COPY]
    next(each for each in broker["volumeMounts"] if each["mountPath"] == mount.SCRIPT)["mountPath"] = APACHE
    assert is_ours(workload(manifest), OWN)
    assert patch(workload(manifest), OWN)[1:] == ({
        "op": "replace", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}},)


def test_a_template_that_is_the_users_own_is_changed_back_in_every_part():
    assert changed_back(workload(stateful_set()), OWN) == ("volumes", "mounts", "strategy")
    assert changed_back(workload(patched(stateful_set())), OWN) == ()


def test_kubernetes_restarts_pods_when_strategy_and_template_are_changed_back():
    whole = patched(stateful_set())
    whole["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    assert not would_restart(workload(whole), OWN), "no pod is outdated"
    pods = {name: replace(pod, revision="kafka-old") for name, pod in workload(whole).pods.items()}
    assert would_restart(replace(workload(whole), pods=pods), OWN)
    assert not would_restart(replace(workload(patched(stateful_set())), pods=pods), OWN), "OnDelete"
    del whole["spec"]["template"]["spec"]["initContainers"][0]
    assert would_restart(workload(whole), OWN), "before the update revision tells it"


# --- the way back -------------------------------------------------------------------------------------------------------


def kept(manifest: dict[str, Any]) -> dict[str, Any]:
    found = brokers.find(manifest["spec"]["template"], OWN, given())
    return original_manifest(workload(manifest), found, 2, names.labels("to-kraft"))


def test_the_original_is_kept_whole_and_owned_by_nobody():
    before, manifest = workload(stateful_set()), kept(stateful_set())
    assert manifest["data"] == {
        "template": before.template, "updateStrategy": before.update_strategy,
        "brokers": {"container": "kafka", "script": APACHE, "log_dir": "/var/lib/kafka/data", "release": "3.9",
                    "raised": False, "encrypted": [], "image": "", "version": "3.9", "waits": False,
                    "listener": "INTERNAL"}}
    assert manifest["metadata"] == {"name": "kafka-before-switchover-2", "labels": names.labels("to-kraft")}
    assert manifest["revision"] == 2


def test_a_template_is_outdated_when_the_user_changed_it_and_nothing_of_ours_is_in_it():
    original = kept(stateful_set())["data"]
    newer = changed(lambda broker: broker.update(image="kafka:newer"))
    assert not is_outdated(workload(stateful_set()), OWN, original), "it is what was kept"
    assert is_outdated(workload(newer), OWN, original)
    assert not is_outdated(workload(patched(newer)), OWN, original)
    assert not is_outdated(workload(back("the strategy")), OWN, original)
    for part in ("the init container", "all volumes", "all mounts"):
        assert not is_outdated(workload(back(part)), OWN, original), "half-way"


@each_template
def test_the_template_comes_back_as_it_was(manifest_of):
    before, ours = manifest_of(), patched(manifest_of())
    original = {"template": before["spec"]["template"], "updateStrategy": before["spec"]["updateStrategy"]}
    for operations in (template.restore_template, template.restore_strategy):
        changes = [dict(operation) for operation in operations(workload(ours), original)]
        ours = jsonpatch.apply_patch(ours, changes)
    assert ours == before


def test_the_strategy_comes_back_as_it_was_and_nothing_else():
    ours = patched(stateful_set())
    operations = template.restore_strategy(workload(ours), kept(stateful_set())["data"])
    restored = jsonpatch.apply_patch(ours, [dict(operation) for operation in operations])
    assert restored["spec"].pop("updateStrategy") == stateful_set()["spec"]["updateStrategy"]
    ours["spec"].pop("updateStrategy")
    assert restored == ours, "so that no pod restarts"


def test_the_pictures_of_these_tests_are_taken_over_by_the_plan_itself():
    assert is_ours(workload_of(moment("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER)), OWN)


# --- what a path lies on ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "found"), [
    ("/data", "data"), ("/data/", "data"), ("/data/logs/x", "logs"), ("/data/logs2", "data"), ("/data2", None),
    ("/etc/kafka/server.properties", "file"), ("/etc/kafka", None), ("/", None), ("", None)])
def test_a_path_lies_on_the_nearest_mount_above_it(path, found):
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "logs", "mountPath": "/data/logs/"},
              {"name": "file", "mountPath": "/etc/kafka/server.properties", "subPath": "x"}]
    below = template.mount_below({"volumeMounts": mounts}, path)
    assert (below["name"] if below else None) == found


def test_without_mounts_every_path_lies_on_the_containers_own_file_system():
    for container in ({}, {"volumeMounts": None}, {"volumeMounts": []}):
        assert template.mount_below(container, "/data") is None
        assert template.volume_below(workload(bare()), container, "/data") == ""


def test_the_kind_of_a_volume_is_told():
    manifest = bitnami()
    pod_of(manifest)["volumes"].append({"name": "tmp", "hostPath": {"path": "/mnt"}})
    broker_of(manifest)["volumeMounts"].append({"name": "tmp", "mountPath": "/tmp/logs"})
    paths = ("/bitnami/kafka/data", "/opt/bitnami/kafka/config/server.properties", "/tmp/logs", "/tmp", "/opt")
    found = [template.volume_below(workload(manifest), broker_of(manifest), path) for path in paths]
    assert found == ["persistentVolumeClaim", "emptyDir", "hostPath", "", ""]
