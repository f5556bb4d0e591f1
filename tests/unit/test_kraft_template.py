"""The one change of the brokers' template: what it looks like, what it leaves alone, and what cannot be taken over."""

from copy import deepcopy
from typing import Any

import jsonpatch
import pytest

from switchover.api.kafka_migration import BrokerSet
from switchover.core.kraft import disks, names, template
from switchover.core.kraft.facts import Workload
from switchover.core.kraft.template import Unsupported, check_supported, is_ours, original_manifest, patch
from unit.pictures import Cluster, moment, stateful_set, workload_of

PODS = ("kafka-0", "kafka-1", "kafka-2")
OTHER_KEYS = ("log4j.properties",)
BY_CONFIG_MAP = {"configMapRef": {"name": "kafka-config"}}
BY_SECRET = {"secretRef": {"name": "kafka-config"}}


def brokers(**changes: Any) -> BrokerSet:
    return BrokerSet.model_validate({"name": "kafka", "configuration": BY_CONFIG_MAP, **changes})


def workload(manifest: dict[str, Any]) -> Workload:
    return Cluster(manifest=manifest).workload()


def container_of(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["spec"]["template"]["spec"]["containers"][0]
    return found


def directory() -> dict[str, Any]:
    """The demo: the ConfigMap is mounted as a directory."""
    return stateful_set()


def single_file() -> dict[str, Any]:
    """Only the key is mounted, by subPath."""
    manifest = stateful_set()
    container_of(manifest)["volumeMounts"][0] = {
        "name": "config", "mountPath": "/etc/kafka/server.properties", "subPath": "server.properties"}
    return manifest


def no_environment() -> dict[str, Any]:
    manifest = stateful_set()
    del container_of(manifest)["env"]
    return manifest


def from_secret() -> dict[str, Any]:
    manifest = stateful_set()
    manifest["spec"]["template"]["spec"]["volumes"] = [{"name": "config", "secret": {"secretName": "kafka-config"}}]
    return manifest


def second_container() -> dict[str, Any]:
    """The broker is not the first container, and its mount not the first mount."""
    manifest = stateful_set()
    pod = manifest["spec"]["template"]["spec"]
    pod["containers"].insert(0, {"name": "metrics", "image": "metrics", "volumeMounts": [
        {"name": "config", "mountPath": "/etc/kafka"}]})
    pod["containers"][1]["volumeMounts"].reverse()
    return manifest


SUPPORTED = {"a directory": (directory, brokers()), "a single file": (single_file, brokers()),
             "no environment": (no_environment, brokers()), "a Secret": (from_secret, brokers(configuration=BY_SECRET)),
             "another container first": (second_container, brokers())}
each_supported = pytest.mark.parametrize(("manifest_of", "own"), SUPPORTED.values(), ids=SUPPORTED)


def patched(manifest: dict[str, Any], own: BrokerSet) -> dict[str, Any]:
    operations = patch(workload(manifest), own, PODS, OTHER_KEYS)
    result: dict[str, Any] = jsonpatch.apply_patch(manifest, [dict(operation) for operation in operations])
    return result


def broker_of(manifest: dict[str, Any]) -> dict[str, Any]:
    return next(item for item in manifest["spec"]["template"]["spec"]["containers"] if item["name"] == "kafka")


# --- the change ---------------------------------------------------------------------------------------------------------


@each_supported
def test_the_change_makes_a_template_ours(manifest_of, own):
    before = manifest_of()
    assert not is_ours(workload(before), own)
    assert is_ours(workload(patched(before, own)), own)


@each_supported
def test_the_change_touches_nothing_but_mount_volume_environment_init_container_and_strategy(manifest_of, own):
    before, after = manifest_of(), patched(manifest_of(), own)
    for manifest in (before, after):
        manifest["spec"].pop("updateStrategy")
        broker = broker_of(manifest)
        broker["volumeMounts"] = [mount["mountPath"] for mount in broker["volumeMounts"]]
        broker.pop("env", None)
    assert [item["name"] for item in after["spec"]["template"]["spec"].pop("initContainers")] == [disks.CONTAINER]
    volumes = after["spec"]["template"]["spec"].pop("volumes")
    assert volumes[:-1] == before["spec"]["template"]["spec"].pop("volumes"), "the user's volumes stay"
    assert after == before


@each_supported
def test_the_users_environment_stays_and_ours_comes_first(manifest_of, own):
    before, after = broker_of(manifest_of()).get("env", []), broker_of(patched(manifest_of(), own))["env"]
    assert after[0] == {"name": template.POD_NAME,
                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}
    assert after[1:len(before) + 1] == before
    assert len({item["name"] for item in after}) == len(after)


@each_supported
def test_pods_are_replaced_by_nobody_else_from_now_on(manifest_of, own):
    assert patched(manifest_of(), own)["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_the_users_init_containers_run_first_and_ours_is_there_once():
    manifest = directory()
    own = [{"name": "chown", "image": "busybox"}]
    manifest["spec"]["template"]["spec"]["initContainers"] = [*own, {"name": disks.CONTAINER, "image": "of another"}]
    containers = patched(manifest, brokers())["spec"]["template"]["spec"]["initContainers"]
    assert containers == [*own, disks.init_container(manifest["spec"]["template"]["spec"], broker_of(manifest))]


def test_a_pod_sees_its_own_file_under_the_name_of_the_users_and_all_other_keys():
    volume = patched(directory(), brokers())["spec"]["template"]["spec"]["volumes"][-1]
    assert volume["secret"]["secretName"] == names.node_files("kafka")
    assert {item["path"]: item["key"] for item in volume["secret"]["items"]} == {
        "kafka-0/server.properties": "kafka-0.properties", "kafka-0/log4j.properties": "log4j.properties",
        "kafka-1/server.properties": "kafka-1.properties", "kafka-1/log4j.properties": "log4j.properties",
        "kafka-2/server.properties": "kafka-2.properties", "kafka-2/log4j.properties": "log4j.properties"}


def test_a_directory_is_replaced_by_the_pods_directory_and_a_file_by_the_pods_file():
    whole = broker_of(patched(directory(), brokers()))["volumeMounts"][0]
    assert (whole["mountPath"], whole["subPathExpr"]) == ("/etc/kafka", f"$({template.POD_NAME})")
    single = broker_of(patched(single_file(), brokers()))["volumeMounts"][0]
    assert (single["mountPath"], single["subPathExpr"]) == (
        "/etc/kafka/server.properties", f"$({template.POD_NAME})/server.properties")
    assert "subPath" not in single


def test_a_file_of_another_name_keeps_that_name():
    own = brokers(configuration={"configMapRef": {"name": "kafka-config", "key": "broker.conf"}})
    volume = patched(directory(), own)["spec"]["template"]["spec"]["volumes"][-1]
    assert "kafka-0/broker.conf" in {item["path"] for item in volume["secret"]["items"]}


def test_the_change_fails_on_a_template_that_somebody_changed_since_it_was_read():
    operations = patch(workload(directory()), brokers(), PODS, OTHER_KEYS)
    manifest = directory()
    manifest["metadata"]["generation"] += 1            # as the API server counts a change of the spec
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(manifest, [dict(operation) for operation in operations])


def test_the_change_reads_the_template_and_does_not_alter_it():
    manifest = directory()
    before = deepcopy(manifest)
    patch(workload(manifest), brokers(), PODS, OTHER_KEYS)
    assert manifest == before


# --- somebody changes it back -------------------------------------------------------------------------------------------


def changed_back(part: str) -> dict[str, Any]:
    manifest = patched(directory(), brokers())
    match part:
        case "the strategy":
            manifest["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
        case "the volume":
            manifest["spec"]["template"]["spec"]["volumes"].pop()
        case "the volume's Secret":
            manifest["spec"]["template"]["spec"]["volumes"][-1]["secret"]["secretName"] = "another"
        case "the mount":
            broker_of(manifest)["volumeMounts"][0] = {"name": "config", "mountPath": "/etc/kafka"}
        case "the mount's volume: the hybrid of a client-side apply":
            broker_of(manifest)["volumeMounts"][0]["name"] = "config"
        case "the mount's expression":
            del broker_of(manifest)["volumeMounts"][0]["subPathExpr"]
        case "the container":
            broker_of(manifest)["name"] = "broker"
    return manifest


@pytest.mark.parametrize("part", [
    "the strategy", "the volume", "the volume's Secret", "the mount", "the mount's expression", "the container",
    "the mount's volume: the hybrid of a client-side apply"])
def test_a_template_of_which_one_part_was_changed_back_is_not_ours(part):
    assert not is_ours(workload(changed_back(part)), brokers())


# --- what cannot be taken over ------------------------------------------------------------------------------------------


def no_mount() -> dict[str, Any]:
    manifest = stateful_set()
    container_of(manifest)["volumeMounts"] = [{"name": "data", "mountPath": "/var/lib/kafka"}]
    return manifest


def another_key() -> dict[str, Any]:
    manifest = single_file()
    container_of(manifest)["volumeMounts"][0]["subPath"] = "log4j.properties"
    return manifest


def by_expression() -> dict[str, Any]:
    manifest = stateful_set()
    container_of(manifest)["volumeMounts"][0]["subPathExpr"] = "$(HOSTNAME)"
    return manifest


def no_volumes() -> dict[str, Any]:
    manifest = stateful_set()
    del manifest["spec"]["template"]["spec"]["volumes"]
    return manifest


def no_command() -> dict[str, Any]:
    manifest = stateful_set()
    del container_of(manifest)["command"]
    return manifest


UNSUPPORTED = {
    "no such container": (directory, brokers(container="broker"), "there is no container broker; the pod has: kafka"),
    "no mount of it": (no_mount, brokers(), "container kafka does not mount ConfigMap kafka-config"),
    "another key by subPath": (another_key, brokers(), "nor its key server.properties by subPath"),
    "a mount by expression": (by_expression, brokers(), "does not mount ConfigMap kafka-config"),
    "no volumes at all": (no_volumes, brokers(), "does not mount ConfigMap kafka-config"),
    "an environment, and no command": (no_command, brokers(configuration={"environment": {}}), "has no command"),
}


@pytest.mark.parametrize(("manifest_of", "own", "told"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_what_cannot_be_taken_over_is_refused_in_words(manifest_of, own, told):
    with pytest.raises(Unsupported) as refusal:
        check_supported(workload(manifest_of()), own)
    with pytest.raises(Unsupported):
        patch(workload(manifest_of()), own, PODS, OTHER_KEYS)
    assert told in str(refusal.value)


# --- the way back -------------------------------------------------------------------------------------------------------


def test_the_original_is_kept_whole_and_owned_by_nobody():
    before = workload(directory())
    kept = original_manifest(before, 2, names.labels("to-kraft"))
    assert kept["data"] == {"template": before.template, "updateStrategy": before.update_strategy}
    assert kept["metadata"] == {"name": "kafka-before-switchover-2", "labels": names.labels("to-kraft")}


def test_the_strategy_comes_back_as_it_was():
    before = workload(directory())
    ours = patched(directory(), brokers())
    operations = template.restore_strategy(workload(ours), original_manifest(before, 1, {})["data"])
    restored = jsonpatch.apply_patch(ours, [dict(operation) for operation in operations])
    assert restored["spec"].pop("updateStrategy") == before.update_strategy
    ours["spec"].pop("updateStrategy")
    assert restored == ours, "and nothing else, so that no pod restarts"


def test_the_pictures_of_these_tests_are_taken_over_by_the_plan_itself():
    assert is_ours(workload_of(moment("EnableMigration", "BAA", "PPP")), brokers())
